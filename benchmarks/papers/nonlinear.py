"""Tables 2 and 3 of Clark, Dyer and Lavie (2014): ``python -m benchmarks.papers.nonlinear OUT --data DIR``.

The conditions are ``configs/paper-003.yaml`` and its ``VARIANTS``. DIR has a bitext as ``train.src.gz``,
``train.trg.gz`` and so on for ``dev`` (the tuning set) and ``devtest``, whose odd lines choose settings and
epochs and whose even lines are the test set; ``train.align.gz`` is made if it does not exist. The grid search
of a condition runs once; tuning with the chosen settings is repeated for each replica, with its own seed.

    OUT/base.run        alignment, language model and index, for all conditions
    OUT/CONDITION.run   the grid search, and the first replica; OUT/CONDITION.2.run, ... the others
    OUT/table.md        the tables; --table only makes them, from the existing runs

It can be killed and restarted at any time. Significance is tested by approximate randomisation over
sentences, with all replicas of both systems (Clark et al. 2011).

    python -m benchmarks.papers.nonlinear runs --data shared/data/multi30k-de-en -j 2
    python -m benchmarks.papers.nonlinear runs --data grammars/demo --epochs 2 --replicas 2 --bits 2 \
        --beta 1,10
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers.experiment import (
    Experiment,
    Settings,
    add_arguments,
    config_named,
    numbers,
    replica_names,
    some_of,
)
from hiero.bins.file import read_bins
from hiero.config.sections import GridSection
from hiero.core.records import record
from hiero.evaluation.compare import EvaluationReport, System, evaluate
from hiero.evaluation.config import EvalConfig
from hiero.jobs.run_directory import Manifest
from hiero.pipeline.tune_stages import OF_BINS, trials

CONDITIONS = {
    "p": "P",
    "log-p": "log P",
    "disc-p": "Disc P",
    "over-p": "Over. P",
    "lnr-p": "LNR P",
    "mnr-p": "MNR P",
    "mnr-c": "MNR C",
}
# Changes of sections of configs/paper-003.yaml, which is mnr-p; a section or key that is None is left out.
# Without neighbour regularisation, the L2 is that of cdec, whose PRO the paper used.
DROPPED = {"SampleCountF": "drop", "CountEF": "drop", "IsSingletonF": "drop", "IsSingletonFE": "drop"}
PROBABILITIES = dict.fromkeys(("EgivenFCoherent", "MaxLexFgivenE", "MaxLexEgivenF"), "probability")
RIDGE = {"neighbours": None, "l2": 250}
NO_BETA = {"beta": None, "gamma": None}
COUNTS = {  # c(s) of the sampled occurrences of the source side, c(s, t), both lexical probabilities
    "SampleCountF": {"of": "count"},
    "CountEF": {"of": "count"},
    "MaxLexFgivenE": {"of": "probability"},
    "MaxLexEgivenF": {"of": "probability"},
    "WordPenalty": {},
}
VARIANTS: dict[str, dict[str, Settings | None]] = {
    "p": {
        "features": {"transform": PROBABILITIES | DROPPED},
        "bins": None,
        "tune": {"neighbours": None},
        "grid": None,
    },
    "log-p": {"bins": None, "tune": {"neighbours": None}, "grid": None},
    "disc-p": {"tune": RIDGE, "grid": {"bits": [4, 8, 12]} | NO_BETA},
    "over-p": {"bins": {"overlap": 1}, "tune": RIDGE, "grid": NO_BETA},
    "lnr-p": {"tune": {"neighbours": "linear"}, "grid": {"gamma": None}},
    "mnr-p": {},
    "mnr-c": {
        "features": {
            "transform": {"EgivenFCoherent": "drop", "IsSingletonF": "drop", "IsSingletonFE": "drop"},
        },
        "bins": {"features": COUNTS},
    },
}
BASELINES = ("log-p", "p")
MARKS = ("*", "†")  # differs from the first baseline, from the second
LEVEL = 0.01


def variant(condition: str) -> Settings:
    """The configuration of a condition, for the data of ``configs/paper-003.yaml``."""
    content = config_named("paper-003")
    for section, changes in VARIANTS[condition].items():
        if changes is None:
            del content[section]
        else:
            merged = content[section] | changes
            content[section] = {key: value for key, value in merged.items() if value is not None}
    return content


def settings_of(experiment: Experiment, args: argparse.Namespace, condition: str) -> Settings:
    """The configuration of a condition for these data and flags."""
    content = variant(condition) | experiment.models()
    content["data"] = {name: experiment.part(name) for name in ("dev", "devtest")}
    content["tune"] = content["tune"] | ({"epochs": args.epochs} if args.epochs else {})
    given = {key: getattr(args, key) for key in ("bits", "beta", "gamma") if getattr(args, key)}
    if "grid" in content:
        content["grid"] |= {key: value for key, value in given.items() if key in content["grid"]}
    return content


def run_condition(experiment: Experiment, args: argparse.Namespace, condition: str) -> None:
    """Run the grid search, and all replicas with the chosen settings."""
    content = settings_of(experiment, args, condition)
    manifest = experiment.run(condition, content)
    for replica in range(2, args.replicas + 1):
        final = final_settings(content, manifest, experiment.out / f"{condition}.run", replica)
        experiment.run(f"{condition}.{replica}", final)


def final_settings(content: Settings, manifest: Manifest, folder: Path, seed: int) -> Settings:
    """The chosen settings with another seed; bins are those of the first replica."""
    final = {key: value for key, value in content.items() if key not in ("grid", "bins")}
    tune = dict(content["tune"]) | {"seed": seed}
    if "grid" in content:
        tune |= {key: value for key, value in chosen(content, manifest).items() if key not in OF_BINS}
    if "bins" in content:
        final["features"] = content.get("features", {}) | {"bins": str((folder / "features.bins").resolve())}
    return final | {"tune": tune}


def chosen(content: Settings, manifest: Manifest) -> Mapping[str, Any]:
    """The settings with the best score on odd lines."""
    label = manifest.stages["grid"]["figures"]["chosen"]
    return next(t.values for t in trials(record(GridSection, content["grid"], "grid")) if t.label == label)


# ---- tables


def systems(experiment: Experiment, args: argparse.Namespace) -> Iterator[System]:
    """Translations of the even lines by all existing replicas of each condition."""
    for condition, name in CONDITIONS.items():
        runs = [even(run) for run in experiment.outputs(condition, replica_names(args.replicas))]
        if runs:
            yield System(name, runs)


def even(lines: list[str]) -> list[str]:
    return lines[1::2]


def table_3(experiment: Experiment, args: argparse.Namespace) -> str:
    """BLEU of even lines, the mean over replicas, and significant differences from the baselines."""
    found = list(systems(experiment, args))
    if not found:
        sys.exit(f"{experiment.out}: found no translations, expected those of some condition")
    references = [even(lines) for lines in experiment.references("devtest")]
    config = EvalConfig(metrics=["bleu"], tokenize="none", trials=args.trials)
    names = [system.name for system in found]
    reports: dict[str, EvaluationReport] = {}
    for key in BASELINES:
        if CONDITIONS[key] in names:
            ordered = sorted(found, key=lambda system, first=CONDITIONS[key]: system.name != first)  # type: ignore[misc]
            reports[key] = evaluate(ordered, references, config)
    rows = ["| condition | BLEU | | over replicas | settings | weights |", "|---|---:|---:|---|---|---:|"]
    any_report = next(iter(reports.values()), None) or evaluate(found, references, config)
    for condition, name in CONDITIONS.items():
        if name in names:
            spread = any_report.result("bleu", name).spread
            scores = ", ".join(f"{score:.2f}" for score in spread.scores)
            bleu = f"{spread.mean:.2f}{significance(reports, name)} | {difference(reports, name)}"
            stages = Manifest(experiment.out / f"{condition}.run").stages
            rows.append(
                f"| {name} | {bleu} | {scores} | {settings_shown(stages)} | {weights_shown(stages)} |"
            )
    return "\n".join(rows) + "\n"


def significance(reports: Mapping[str, EvaluationReport], name: str) -> str:
    marks = ""
    for mark, key in zip(MARKS, BASELINES, strict=True):
        comparison = reports[key].result("bleu", name).comparison if key in reports else None
        marks += mark if comparison is not None and comparison.p < LEVEL else ""
    return marks


def difference(reports: Mapping[str, EvaluationReport], name: str) -> str:
    """The difference of mean BLEU from log P."""
    if BASELINES[0] not in reports or name == CONDITIONS[BASELINES[0]]:
        return ""
    report = reports[BASELINES[0]]
    mean = report.result("bleu", name).spread.mean
    return f"{mean - report.result('bleu', CONDITIONS[BASELINES[0]]).spread.mean:+.2f}"


def settings_shown(stages: Mapping[str, Any]) -> str:
    return stages["grid"]["figures"]["chosen"].replace(",", ", ") if "grid" in stages else "-"


def weights_shown(stages: Mapping[str, Any]) -> str:
    figures = stages.get("grid", stages.get("tune", {})).get("figures", {})
    return f"{figures['features']:,}" if "features" in figures else "-"


def table_2(experiment: Experiment) -> str:
    """BLEU by bits, with the numbers of bins and of nonzero weights."""
    folder = experiment.out / "disc-p.run"
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


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.nonlinear", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--conditions", type=some_of(CONDITIONS), default=list(CONDITIONS), metavar="A,B,...")
    add("--bits", type=numbers(int), metavar="A,B", help="values of bits to try")
    add("--beta", type=numbers(float), metavar="A,B", help="values of beta to try")
    add("--gamma", type=numbers(float), metavar="A,B", help="values of gamma to try")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if not args.table:
        experiment.make_base()
        for condition in args.conditions:
            run_condition(experiment, args, condition)
    text = table_3(experiment, args)
    legend = f"{MARKS[0]} differs from log P, {MARKS[1]} from P: p < {LEVEL}, {args.trials} trials.\n"
    if by_bits := table_2(experiment):
        legend += f"\nDisc P by bits, one run each:\n\n{by_bits}"
    experiment.write_table(f"{text}\n{legend}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
