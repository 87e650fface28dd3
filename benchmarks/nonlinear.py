"""Tables 2 and 3 of Clark, Dyer and Lavie (2014): ``python -m benchmarks.nonlinear OUT --data DIR``.

The conditions are ``configs/paper-003-*.yaml``. DIR has a bitext as ``train.src.gz``, ``train.trg.gz`` and so
on for ``dev`` (which is tuned on) and ``devtest``, whose odd lines choose settings and epochs and whose even
lines are the test set; ``train.align.gz`` is made if it is not there. The settings of a condition are sought
once; it is tuned with them as many times as there are replicas, each with its own seed.

    OUT/base.run        alignment, language model and index, for all conditions
    OUT/CONDITION.run   the search, and the first replica; OUT/CONDITION.2.run, ... the others
    OUT/table.md        the tables, which --table makes again of what there is

It can be killed and started again at any time. Significance is by approximate randomisation over sentences,
with all replicas of both systems (Clark et al. 2011).

    python -m benchmarks.nonlinear runs --data shared/data/multi30k-de-en -j 2
    python -m benchmarks.nonlinear runs --data grammars/demo --epochs 2 --replicas 2 --bits 2 --beta 1,10
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hiero.cli.stagedisplay import stage_display
from hiero.evaluation import EvalConfig, Report, System, evaluate
from hiero.formats.bins import read_bins
from hiero.formats.settings import read_settings, write_settings
from hiero.formats.text import open_output, read_lines
from hiero.gridstage import OF_BINS, trials
from hiero.manifest import Manifest
from hiero.pipeline import Run
from hiero.records import record
from hiero.sections import GridSection

CONFIGS = Path(__file__).parents[1] / "configs"
CONDITIONS = {
    "p": "P",
    "log-p": "log P",
    "disc-p": "Disc P",
    "over-p": "Over. P",
    "lnr-p": "LNR P",
    "mnr-p": "MNR P",
    "mnr-c": "MNR C",
}
BASELINES = ("log-p", "p")
MARKS = ("*", "†")  # differs from the first baseline, from the second
LEVEL = 0.01
SETS = ("dev", "devtest")

Settings = dict[str, Any]


def settings_of(condition: str, args: argparse.Namespace) -> Settings:
    """The configuration of a condition for these data, with what the flags say."""
    content: Settings = dict(read_settings(CONFIGS / f"paper-003-{condition}.yaml"))
    content["data"] = {name: data_of(args, name) for name in SETS}
    content["tune"] = content["tune"] | ({"epochs": args.epochs} if args.epochs else {})
    given = {key: getattr(args, key) for key in ("bits", "beta", "gamma") if getattr(args, key)}
    if "grid" in content:
        content["grid"] |= {key: value for key, value in given.items() if key in content["grid"]}
    base = args.out.resolve() / "base.run"
    content["grammar"] = [{"index": str(args.index.resolve() if args.index else base / "train.index")}]
    content["lm"] = [{"path": str(args.lm.resolve() if args.lm else base / "LanguageModel.lm")}]
    return content


def data_of(args: argparse.Namespace, name: str) -> Settings:
    """Where a set is: ``DIR/name.src.gz``, or in the manner of the demo, ``DIR.name.de``."""
    for form in ("{d}/{n}.src.gz {d}/{n}.trg.gz", "{d}.{n}.de {d}.{n}.en", "{d}.{n}.de.gz {d}.{n}.en.gz"):
        sides = [Path(path).resolve() for path in form.format(d=args.data, n=name).split(" ")]
        if all(path.exists() for path in sides):
            return {"source": str(sides[0]), "target": str(sides[1])}
    sys.exit(f"{args.data}: found no {name}.src.gz and {name}.trg.gz in it, expected a bitext")


def make_base(args: argparse.Namespace) -> None:
    """Alignment, language model and index."""
    if args.index and args.lm:
        return
    train = data_of(args, "train")
    links = Path(train["source"]).with_name("train.align.gz")
    if links.exists():
        train["alignment"] = str(links)
    lm = {"estimate": "train", "order": args.order, "discount_fallback": True}
    content: Settings = {"seed": 1, "data": {"train": train}, "lm": [lm], "grammar": [{"index": "train"}]}
    run(args, "base", content)


def run(args: argparse.Namespace, name: str, content: Mapping[str, Any]) -> Manifest:
    """``hiero run`` of a configuration, which is kept beside its directory."""
    path, folder = args.out / f"{name}.yaml", args.out / f"{name}.run"
    write_settings(path, dict(content), "made by python -m benchmarks.nonlinear")
    print(f"== {name}", file=sys.stderr)
    with stage_display(quiet=args.quiet) as display:
        Run(path, folder).run(display, args.threads)
    return Manifest(folder)


def run_condition(args: argparse.Namespace, condition: str) -> None:
    """The search for settings, and all replicas with those that were found."""
    content = settings_of(condition, args)
    manifest = run(args, condition, content)
    for replica in range(2, args.replicas + 1):
        run(
            args,
            f"{condition}.{replica}",
            final_settings(content, manifest, args.out / f"{condition}.run", replica),
        )


def final_settings(content: Settings, manifest: Manifest, folder: Path, seed: int) -> Settings:
    """The settings that were chosen, and another seed; bins are those of the first replica."""
    final = {key: value for key, value in content.items() if key not in ("grid", "bins")}
    tune = dict(content["tune"]) | {"seed": seed}
    if "grid" in content:
        tune |= {key: value for key, value in chosen(content, manifest).items() if key not in OF_BINS}
    if "bins" in content:
        final["features"] = content.get("features", {}) | {"bins": str((folder / "features.bins").resolve())}
    return final | {"tune": tune}


def chosen(content: Settings, manifest: Manifest) -> Mapping[str, Any]:
    """The values of the combination that is best on odd lines."""
    label = manifest.stages["grid"]["figures"]["chosen"]
    return next(t.values for t in trials(record(GridSection, content["grid"], "grid")) if t.label == label)


# ---- tables


def even_lines(path: str | Path) -> list[str]:
    return [line.decode() for line in read_lines(path)][1::2]


def systems(args: argparse.Namespace) -> Iterator[System]:
    """What was decoded of the even lines, by all replicas that there are of each condition."""
    for condition, name in CONDITIONS.items():
        found = [args.out / f"{condition}{replica}.run" / "devtest.output" for replica in replicas(args)]
        runs = [even_lines(path) for path in found if path.exists()]
        if runs:
            yield System(name, runs)


def replicas(args: argparse.Namespace) -> list[str]:
    return ["", *(f".{number}" for number in range(2, args.replicas + 1))]


def table_3(args: argparse.Namespace) -> str:
    """BLEU of even lines, the mean over replicas, and what differs from the baselines."""
    found = list(systems(args))
    if not found:
        sys.exit(f"{args.out}: found no translations, expected those of some condition")
    references = [even_lines(data_of(args, "devtest")["target"])]
    config = EvalConfig(metrics=["bleu"], tokenize="none", trials=args.trials)
    names = [system.name for system in found]
    reports: dict[str, Report] = {}
    for key in BASELINES:
        if CONDITIONS[key] in names:
            ordered = sorted(found, key=lambda system, first=CONDITIONS[key]: system.name != first)  # type: ignore[misc]
            reports[key] = evaluate(ordered, references, config)
    lines = ["| condition | BLEU | | over replicas | settings | weights |", "|---|---:|---:|---|---|---:|"]
    any_report = next(iter(reports.values()), None) or evaluate(found, references, config)
    for condition, name in CONDITIONS.items():
        if name in names:
            spread = any_report.result("bleu", name).spread
            scores = ", ".join(f"{score:.2f}" for score in spread.scores)
            bleu = f"{spread.mean:.2f}{significance(reports, name)} | {difference(reports, name)}"
            made = f"{settings_shown(args, condition)} | {weights_shown(args, condition)}"
            lines.append(f"| {name} | {bleu} | {scores} | {made} |")
    return "\n".join(lines) + "\n"


def significance(reports: Mapping[str, Report], name: str) -> str:
    marks = ""
    for mark, key in zip(MARKS, BASELINES, strict=True):
        comparison = reports[key].result("bleu", name).comparison if key in reports else None
        marks += mark if comparison is not None and comparison.p < LEVEL else ""
    return marks


def difference(reports: Mapping[str, Report], name: str) -> str:
    """From log P, in the mean."""
    if BASELINES[0] not in reports or name == CONDITIONS[BASELINES[0]]:
        return ""
    report = reports[BASELINES[0]]
    mean = report.result("bleu", name).spread.mean
    return f"{mean - report.result('bleu', CONDITIONS[BASELINES[0]]).spread.mean:+.2f}"


def settings_shown(args: argparse.Namespace, condition: str) -> str:
    stages = Manifest(args.out / f"{condition}.run").stages
    return stages["grid"]["figures"]["chosen"].replace(",", ", ") if "grid" in stages else "-"


def weights_shown(args: argparse.Namespace, condition: str) -> str:
    stages = Manifest(args.out / f"{condition}.run").stages
    figures = stages.get("grid", stages.get("tune", {})).get("figures", {})
    return f"{figures['features']:,}" if "features" in figures else "-"


def table_2(args: argparse.Namespace) -> str:
    """BLEU by bits, with the number of bins and of weights that are not 0."""
    folder = args.out / "disc-p.run"
    rows = []
    for name, entry in Manifest(folder).stages.items():
        kind, _, label = name.partition(":")
        if kind == "tune" and label.startswith("bits="):
            path, figures = folder / "grid" / f"{label}.bins", entry["figures"]
            bins = sum(map(len, read_bins(path)))
            bleu = [figures[f"{half}_bleu"] for half in ("choose", "report")]
            numbers = f"{bins:,} | {figures['features']:,} | {bleu[0]:.2f} | {bleu[1]:.2f}"
            rows.append(f"| {label.removeprefix('bits=')} | {numbers} |")
    head = ["| bits | bins | weights | odd lines | even lines |", "|---:|---:|---:|---:|---:|"]
    return "\n".join([*head, *rows]) + "\n" if rows else ""


# ---- the command


def numbers(kind: type) -> Any:
    return lambda text: [kind(part) for part in text.split(",")]


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.nonlinear", description=(__doc__ or "").split("\n\n")[0]
    )
    add = parser.add_argument
    add("out", type=Path, metavar="OUT", help="where everything goes")
    add("--data", required=True, metavar="DIR", help="a bitext: train, dev and devtest")
    add("--index", type=Path, help="an index of the training set that there is")
    add("--lm", type=Path, help="a language model that there is")
    add("--order", type=int, default=5, help="of the language model that is made (default 5)")
    add("--conditions", type=lambda text: text.split(","), default=list(CONDITIONS), metavar="A,B,...")
    add("--replicas", type=int, default=3, metavar="N", help="tuning runs of each condition (default 3)")
    add("--epochs", type=int, metavar="N", help="of each run (default: as in the configurations)")
    add("--bits", type=numbers(int), metavar="A,B", help="to try out where bits are")
    add("--beta", type=numbers(float), metavar="A,B", help="to try out where beta is")
    add("--gamma", type=numbers(float), metavar="A,B", help="to try out where gamma is")
    add("--trials", type=int, default=10_000, help="of the tests (default 10000)")
    add("--table", action="store_true", help="run nothing, but make the tables of what there is")
    add("-j", "--threads", type=int, default=1)
    add("-q", "--quiet", action="store_true")
    args = parser.parse_args(arguments)
    unknown = [name for name in args.conditions if name not in CONDITIONS]
    if unknown:
        parser.error(f"--conditions: found {unknown[0]}, expected some of {', '.join(CONDITIONS)}")
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.table:
        make_base(args)
        for condition in args.conditions:
            run_condition(args, condition)
    text = table_3(args)
    legend = f"{MARKS[0]} differs from log P, {MARKS[1]} from P: p < {LEVEL}, {args.trials} trials.\n"
    if by_bits := table_2(args):
        legend += f"\nDisc P by bits, one run each:\n\n{by_bits}"
    with open_output(args.out / "table.md") as stream:
        stream.write(f"{text}\n{legend}".encode())
    print(f"{text}\n{legend}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
