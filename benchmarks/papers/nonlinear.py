"""Tables 2 and 3 of Clark, Dyer and Lavie (2014): ``python -m benchmarks.papers.nonlinear OUT --data DIR``.

The conditions are ``configs/paper-003.yaml`` and its ``VARIANTS``, in two sets. ``--features three`` has
probabilities and the word penalty, with the L2 that is best for each. ``--features seven`` has all seven
features of cdec's extractor, as the sizes in the paper's Table 2 imply, and one L2 for all, that of cdec's
PRO: 250 (500 where pairs count twice), and 2500 towards the last weights; its strengths of neighbours are per
curve.

DIR has a bitext as ``train.src.gz``, ``train.trg.gz`` and so on for ``dev`` (the tuning set) and ``devtest``,
whose odd lines choose settings and epochs and whose even lines are the test set; ``train.align.gz`` is made
if it does not exist. The grid search of a condition runs once; tuning with the chosen settings is repeated
for each replica, with its own seed.

    OUT/base.run        alignment, language model and index, for all conditions
    OUT/CONDITION.run   the grid search, and the first replica; OUT/CONDITION.2.run, ... the others
    OUT/table.md        the tables; --table only makes them, from the existing runs

It can be killed and restarted at any time. Significance is tested by approximate randomisation over
sentences, with all replicas of both systems (Clark et al. 2011).

    python -m benchmarks.papers.nonlinear runs --data ../shared/data/multi30k-de-en -j 2
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

SETS = {
    "three": {
        "p": "P",
        "log-p": "log P",
        "disc-p": "Disc P",
        "over-p": "Over. P",
        "lnr-p": "LNR P",
        "mnr-p": "MNR P",
        "iso-p": "isotonic P",
        "mnr-c": "MNR C",
    },
    "seven": {
        "p7": "P, 7",
        "log-p7": "log P, 7",
        "disc-p7": "Disc P, 7",
        "over-p7": "Over. P, 7",
        "lnr-p7": "LNR P, 7",
        "mnr-p7": "MNR P, 7",
        "iso-p7": "isotonic P, 7",
        "log-c": "log C",
        "mnr-c7": "MNR C, one L2",
        "iso-c7": "isotonic C, one L2",
    },
}
CONDITIONS = {key: name for conditions in SETS.values() for key, name in conditions.items()}
# Systems with the same information, as logarithms; of others, the first baseline.
CONTROLS = {"mnr-c7": "log-c", "iso-c7": "log-c"}
# Changes of sections of configs/paper-003.yaml, which is mnr-p; a section or key that is None is left out.
# Without neighbour regularisation, the L2 is that of cdec, whose PRO the paper used.
DROPPED = {"SampleCountF": "drop", "CountEF": "drop", "IsSingletonF": "drop", "IsSingletonFE": "drop"}
PROBABILITIES = dict.fromkeys(("EgivenFCoherent", "MaxLexFgivenE", "MaxLexEgivenF"), "probability")
RIDGE = {"neighbours": None, "l2": 250}
NO_BETA = {"beta": None, "gamma": None}
ONE_L2 = {"l2": 250, "l2_previous": 2500}
PER_CURVE = ONE_L2 | {"beta_per": "curve"}
LINEAR_BETA, ISOTONIC_BETA, MONOTONE_BETA = [0.1, 1, 10], [0, 0.1, 1], [0.1, 1, 10]  # per curve
MONOTONE = {"beta": MONOTONE_BETA, "gamma": [2, 8]}
COUNTS = {  # c(s) of the sampled occurrences of the source side, c(s, t), both lexical probabilities
    "SampleCountF": {"of": "count"},
    "CountEF": {"of": "count"},
    "MaxLexFgivenE": {"of": "probability"},
    "MaxLexEgivenF": {"of": "probability"},
    "WordPenalty": {},
}
# With the counts and their indicators, which is the seven of the paper.
SEVEN = {name: {"of": of} for name, of in PROBABILITIES.items()} | {
    "SampleCountF": {"of": "count"},
    "CountEF": {"of": "count"},
    "IsSingletonF": {},
    "IsSingletonFE": {},
    "WordPenalty": {},
}
NO_PROBABILITY = {"transform": {"EgivenFCoherent": "drop", "IsSingletonF": "drop", "IsSingletonFE": "drop"}}
AS_GIVEN: Settings = {"transform": {}}
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
    "iso-p": {
        "tune": {"neighbours": "isotonic", "beta_per": "curve"},
        "grid": {"beta": ISOTONIC_BETA, "gamma": None},
    },
    "mnr-c": {"features": NO_PROBABILITY, "bins": {"features": COUNTS}},
    "p7": {
        "features": {"transform": PROBABILITIES},
        "bins": None,
        "tune": ONE_L2 | {"neighbours": None},
        "grid": None,
    },
    "log-p7": {"features": AS_GIVEN, "bins": None, "tune": ONE_L2 | {"neighbours": None}, "grid": None},
    "disc-p7": {
        "features": AS_GIVEN,
        "bins": {"features": SEVEN},
        "tune": ONE_L2 | {"neighbours": None},
        "grid": NO_BETA,
    },
    "over-p7": {
        "features": AS_GIVEN,
        "bins": {"features": SEVEN, "overlap": 1},
        "tune": ONE_L2 | {"neighbours": None},
        "grid": NO_BETA,
    },
    "lnr-p7": {
        "features": AS_GIVEN,
        "bins": {"features": SEVEN},
        "tune": PER_CURVE | {"neighbours": "linear"},
        "grid": {"beta": LINEAR_BETA, "gamma": None},
    },
    "mnr-p7": {"features": AS_GIVEN, "bins": {"features": SEVEN}, "tune": PER_CURVE, "grid": MONOTONE},
    "iso-p7": {
        "features": AS_GIVEN,
        "bins": {"features": SEVEN},
        "tune": PER_CURVE | {"neighbours": "isotonic"},
        "grid": {"beta": ISOTONIC_BETA, "gamma": None},
    },
    "log-c": {"features": NO_PROBABILITY, "bins": None, "tune": ONE_L2 | {"neighbours": None}, "grid": None},
    "mnr-c7": {
        "features": NO_PROBABILITY,
        "bins": {"features": COUNTS},
        "tune": PER_CURVE,
        "grid": MONOTONE,
    },
    "iso-c7": {
        "features": NO_PROBABILITY,
        "bins": {"features": COUNTS},
        "tune": PER_CURVE | {"neighbours": "isotonic"},
        "grid": {"beta": ISOTONIC_BETA, "gamma": None},
    },
}
BASELINES = {"three": ("log-p", "p"), "seven": ("log-p7", "p7")}
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
    set_given(content, args)
    return content


def set_given(content: Settings, args: argparse.Namespace) -> None:
    """Set what flags give in a configuration."""
    tune = {"epochs": args.epochs} if args.epochs else {}
    if args.l2:
        tune |= dict(zip(("l2", "l2_previous"), args.l2, strict=False))
    content["tune"] = content["tune"] | tune
    given = {key: getattr(args, key) for key in ("bits", "beta", "gamma") if getattr(args, key)}
    if "grid" in content:
        content["grid"] |= {key: value for key, value in given.items() if key in content["grid"]}


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
    for condition in args.conditions:
        name = CONDITIONS[condition]
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
    baselines = BASELINES[args.features]
    reports: dict[str, EvaluationReport] = {}
    for key in baselines:
        if CONDITIONS[key] in names:
            ordered = sorted(found, key=lambda system, first=CONDITIONS[key]: system.name != first)  # type: ignore[misc]
            reports[key] = evaluate(ordered, references, config)
    rows = ["| condition | BLEU | | over replicas | settings | weights |", "|---|---:|---:|---|---|---:|"]
    any_report = next(iter(reports.values()), None) or evaluate(found, references, config)
    for condition in args.conditions:
        name = CONDITIONS[condition]
        if name in names:
            spread = any_report.result("bleu", name).spread
            scores = ", ".join(f"{score:.2f}" for score in spread.scores)
            bleu = f"{spread.mean:.2f}{significance(reports, baselines, name)}"
            bleu += f" | {difference(reports, baselines[0], name)}"
            stages = Manifest(experiment.out / f"{condition}.run").stages
            rows.append(
                f"| {name} | {bleu} | {scores} | {settings_shown(stages)} | {weights_shown(stages)} |"
            )
    return "\n".join(rows) + "\n"


def significance(reports: Mapping[str, EvaluationReport], baselines: Sequence[str], name: str) -> str:
    marks = ""
    for mark, key in zip(MARKS, baselines, strict=True):
        comparison = reports[key].result("bleu", name).comparison if key in reports else None
        marks += mark if comparison is not None and comparison.p < LEVEL else ""
    return marks


def difference(reports: Mapping[str, EvaluationReport], baseline: str, name: str) -> str:
    """The difference of mean BLEU from the baseline."""
    if baseline not in reports or name == CONDITIONS[baseline]:
        return ""
    report = reports[baseline]
    mean = report.result("bleu", name).spread.mean
    return f"{mean - report.result('bleu', CONDITIONS[baseline]).spread.mean:+.2f}"


def settings_shown(stages: Mapping[str, Any]) -> str:
    return stages["grid"]["figures"]["chosen"].replace(",", ", ") if "grid" in stages else "-"


def weights_shown(stages: Mapping[str, Any]) -> str:
    figures = stages.get("grid", stages.get("tune", {})).get("figures", {})
    return f"{figures['features']:,}" if "features" in figures else "-"


def table_2(experiment: Experiment, condition: str) -> str:
    """BLEU by bits, with the numbers of bins and of nonzero weights."""
    folder = experiment.out / f"{condition}.run"
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
    add_condition_arguments(parser)
    args = parser.parse_args(arguments)
    args.conditions = args.conditions or list(SETS[args.features])
    return args


def add_condition_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for conditions and for the settings that they try."""
    add = parser.add_argument
    add("--features", choices=list(SETS), default="three", help="set of conditions (default three)")
    add("--conditions", type=some_of(CONDITIONS), metavar="A,B,...", help="some of them (default all)")
    add("--bits", type=numbers(int), metavar="A,B", help="values of bits to try")
    add("--beta", type=numbers(float), metavar="A,B", help="values of beta to try")
    add("--gamma", type=numbers(float), metavar="A,B", help="values of gamma to try")
    add(
        "--l2",
        type=numbers(float),
        metavar="A,B",
        help="L2, and L2 towards the last weights, of all conditions",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if not args.table:
        experiment.make_base()
        for condition in args.conditions:
            run_condition(experiment, args, condition)
    text = table_3(experiment, args)
    first, second = (CONDITIONS[key] for key in BASELINES[args.features])
    legend = (
        f"{MARKS[0]} differs from {first}, {MARKS[1]} from {second}: p < {LEVEL}, {args.trials} trials.\n"
    )
    if by_bits := table_2(experiment, "disc-p7" if args.features == "seven" else "disc-p"):
        legend += f"\nDisc P by bits, one run each:\n\n{by_bits}"
    experiment.write_table(f"{text}\n{legend}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
