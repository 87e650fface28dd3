"""Table 3 of Alrajeh and Niranjan (2014): ``python -m benchmarks.papers.orientation OUT --data DIR``.

Systems without an orientation model, with the lexicalised one, with classifiers, and with both, on a bitext
in DIR: in a hierarchical decoder (``configs/paper-004.yaml``), or with ``--mode phrase`` in a phrase-based
one (``configs/paper-004-phrase.yaml``), whose lexicalised model is bidirectional, as in Moses. Each
replica is tuned on dev with its own seed and translates devtest, which is not used for any choice;
``--drawn 2000`` draws both from the bitext, for more lines to test on. ``--algorithm`` tunes by another
algorithm than that of the configuration, with its preset. Significance is tested against the lexicalised
model by the paired bootstrap over sentences and replicas, so that intervals include the variance of tuning.

Models that differ little are hidden by the variance of tuning. With ``--scaled`` only the system without a
model is tuned; the log-probabilities of a model have the weight of the language model times one of
``SCALES``, the one that is best on dev, and all other weights are those of that system.

    OUT/base.run               alignment, language model and index, for all systems
    OUT/model.KIND.run         an orientation model, for all replicas and both modes
    OUT/SYSTEM.run             the first replica; OUT/SYSTEM.2.run, ... the others
    OUT/phrase.SYSTEM.run      in phrase-based mode; ALGORITHM.SYSTEM.run with another algorithm
    OUT/SYSTEM.xSCALE.run      with scaled models
    OUT/table.md               the table; --table only makes it, from the existing runs

It can be killed and restarted at any time.

    python -m benchmarks.papers.orientation runs --data ../shared/data/multi30k-de-en -j 2
    python -m benchmarks.papers.orientation runs --data grammars/demo --epochs 2 --replicas 2 --mode phrase
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.papers.experiment import (
    CONFIGS,
    Experiment,
    Settings,
    add_arguments,
    config_named,
    references_of,
    replica_names,
    some_of,
    with_interval,
)
from hiero.core.symbols import Symbols
from hiero.evaluation.compare import EvaluationReport, System, evaluate
from hiero.evaluation.config import EvalConfig
from hiero.features.weights import read_weights, write_weights
from hiero.jobs.run_directory import Manifest
from hiero.reordering.feature import Reordering

# Settings of the section ``reorder`` beyond those of the configuration.
MODELS: dict[str, Settings] = {
    "lexicalised": {"learner": "lexicalised"},
    "bidirectional": {"learner": "lexicalised", "bidirectional": True},
    "unsmoothed": {"learner": "lexicalised", "bidirectional": True, "smoothing": 1e-6},
    "primal": {"learner": "primal"},
    "dual": {"learner": "dual", "shrink": 0.1},
    "ahead": {"learner": "dual", "shrink": 0.1, "bidirectional": True},
    "bag": {"learner": "dual", "shrink": 0.1, "context": "bag"},
    "wide": {"learner": "dual", "shrink": 0.1, "window": 3, "edges": True},
}
SYSTEMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "none": ("no model", ()),
    "previous": ("lexicalised, by previous phrases", ("previous",)),
    "lexicalised": ("lexicalised", ("lexicalised",)),
    "unsmoothed": ("lexicalised, unsmoothed", ("unsmoothed",)),
    "primal": ("primal", ("primal",)),
    "dual": ("dual, ε 0.1", ("dual",)),
    "ahead": ("dual, ε 0.1, bidirectional", ("ahead",)),
    "bag": ("dual, ε 0.1, words around as a bag", ("bag",)),
    "wide": ("dual, ε 0.1, window 3, edges", ("wide",)),
    "both": ("dual, ε 0.1, and lexicalised", ("dual", "lexicalised")),
    "all": ("dual, ε 0.1, bidirectional, and lexicalised", ("ahead", "lexicalised")),
}
DEFAULT = ("none", "lexicalised", "primal", "dual", "wide", "both")
BASELINE = "lexicalised"
SETS = ("dev", "devtest")
SCALES = (0.05, 0.1, 0.2, 0.4)
CONFIGS_OF = {"hiero": "paper-004", "phrase": "paper-004-phrase"}


def models_of(args: argparse.Namespace, system: str) -> list[str]:
    """The names of the orientation models of a system."""
    of_mode = {"lexicalised": "bidirectional"} if args.mode == "phrase" else {}
    of_mode |= {"previous": "lexicalised"}
    return [of_mode.get(name, name) for name in SYSTEMS[system][1]]


def part_of(experiment: Experiment, args: argparse.Namespace, name: str) -> Settings:
    return experiment.drawn(name) if args.drawn else experiment.part(name)


def train_of(experiment: Experiment, args: argparse.Namespace) -> Settings:
    """The training set with its alignment."""
    if not args.drawn:
        return experiment.train()
    made = experiment.out.resolve() / "base.run"
    alignment = next(
        path for path in (made / "sequester/train.align1", made / "train.align.gz") if path.exists()
    )
    return experiment.drawn("train") | {"alignment": str(alignment)}


def make_model(experiment: Experiment, args: argparse.Namespace, name: str) -> str:
    """Make an orientation model unless it exists; returns its path."""
    content = config_named(CONFIGS_OF[args.mode])
    reorder = {key: value for key, value in content["reorder"].items() if key not in ("learner", "shrink")}
    data = {"train": train_of(experiment, args)}
    run = f"model.{name}"
    experiment.run(run, {"seed": content["seed"], "data": data, "reorder": reorder | MODELS[name]})
    return str((experiment.out / f"{run}.run" / "reordering.model").resolve())


def name_of(args: argparse.Namespace, system: str) -> str:
    """The name of the first run of a system."""
    parts = ("phrase" if args.mode == "phrase" else None, args.algorithm, system)
    return ".".join(part for part in parts if part)


def settings_of(
    experiment: Experiment, args: argparse.Namespace, models: Sequence[str], seed: int
) -> Settings:
    """The configuration of a system with these orientation models, for these data."""
    content = config_named(CONFIGS_OF[args.mode])
    if args.algorithm:
        content["tune"] = {"algorithm": args.algorithm, "on": "dev", "held_out": None}
    given = {key: getattr(args, key) for key in ("epochs", "sentences") if getattr(args, key)}
    (grammar,) = content["grammar"]
    (found,) = experiment.models()["grammar"]
    content |= {"seed": seed, "tune": content["tune"] | given} | experiment.models()
    content["grammar"] = [grammar | found]
    content["data"] = {name: part_of(experiment, args, name) for name in SETS}
    del content["reorder"]
    if models:
        content["features"] = content.get("features", {}) | {"reordering": list(models)}
    return content


# ---- scaled models


def scaled_name(args: argparse.Namespace, system: str, scale: float, suffix: str) -> str:
    return f"{name_of(args, system)}.x{scale}{suffix}"


def run_scaled(
    experiment: Experiment, args: argparse.Namespace, system: str, models: Sequence[str], suffix: str
) -> None:
    """Translate dev with each scale, and devtest with the best one."""
    content = settings_of(experiment, args, models, 1)
    del content["tune"]
    tuned = experiment.out / f"{name_of(args, 'none')}{suffix}.run" / "weights.gz"
    weights = read_weights(tuned, Symbols())
    names = [name for path in models for name in Reordering.load(path, Symbols()).names()]

    def run(scale: float, only: Sequence[str] = ()) -> None:
        for name in names:
            weights[name] = 0.0 if name.endswith("Blocks") else scale * weights["LanguageModel"]
        name = scaled_name(args, system, scale, suffix)
        path = (experiment.out / f"{name}.weights").resolve()
        write_weights(path, weights)
        experiment.run(name, content | {"weights": {"path": str(path)}}, only)

    for scale in SCALES:
        run(scale, ["decode:dev", "eval:dev"])
    run(best_scale(experiment, args, system, suffix))


def best_scale(experiment: Experiment, args: argparse.Namespace, system: str, suffix: str) -> float:
    def score(scale: float) -> float:
        stages = Manifest(experiment.out / f"{scaled_name(args, system, scale, suffix)}.run").stages
        return float(stages["eval:dev"]["figures"]["BLEU"])

    return max(SCALES, key=score)


def scaled_outputs(experiment: Experiment, args: argparse.Namespace, system: str) -> list[list[str]]:
    """Translations of devtest by the replicas of a system with the best scale of each."""
    found = []
    for suffix in replica_names(args.replicas):
        folders = [experiment.out / f"{scaled_name(args, system, s, suffix)}.run" for s in SCALES]
        if any((folder / "devtest.output").exists() for folder in folders):
            name = scaled_name(args, system, best_scale(experiment, args, system, suffix), suffix)
            found += experiment.outputs(name, [""])
    return found


# ---- the table


def outputs_of(experiment: Experiment, args: argparse.Namespace, system: str) -> list[list[str]]:
    if args.scaled and system != "none":
        return scaled_outputs(experiment, args, system)
    return experiment.outputs(name_of(args, system), replica_names(args.replicas))


def table(experiment: Experiment, args: argparse.Namespace) -> str:
    """BLEU of devtest, the mean over replicas, and the difference from the baseline with its interval."""
    # The baseline first.
    found = {key: outputs_of(experiment, args, key) for key in (BASELINE, *SYSTEMS)}
    systems = [System(SYSTEMS[key][0], runs) for key, runs in found.items() if runs]
    if not systems:
        sys.exit(f"{experiment.out}: found no translations, expected those of some system")
    config = EvalConfig(metrics=["bleu"], test="bootstrap", tokenize="none", trials=args.trials)
    report = evaluate(systems, references_of(part_of(experiment, args, "devtest")), config)
    rows = [_row(report, title) for title, _ in SYSTEMS.values() if title in {one.name for one in systems}]
    head = [f"| | BLEU | over replicas | from {systems[0].name} | p |", "|---|---:|---|---:|---:|"]
    return "\n".join([*head, *rows]) + "\n"


def _row(report: EvaluationReport, title: str) -> str:
    result = report.result("bleu", title)
    scores = ", ".join(f"{score:.2f}" for score in result.spread.scores)
    compared = " | "
    if result.comparison is not None:
        compared = f"{with_interval(result.comparison)} | {result.comparison.p:.4f}"
    return f"| {title} | {result.spread.mean:.2f} | {scores} | {compared} |"


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.orientation", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--systems", type=some_of(SYSTEMS), default=list(DEFAULT), metavar="A,B,...")
    add("--mode", choices=list(CONFIGS_OF), default="hiero", help="default: hiero")
    add("--algorithm", metavar="NAME", help="of tuning: pro, mert, ... (default: as in the configuration)")
    add("--sentences", type=int, metavar="N", help="tune on N sentences of dev (default: all)")
    text = "tune without a model, and give models a share of the weight of the language model"
    add("--scaled", action="store_true", help=text)
    text = "draw dev and devtest from the bitext, N pairs each, in place of those of DIR"
    add("--drawn", type=int, metavar="N", help=text)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if not args.table:
        if args.drawn:
            weights = {"path": str(CONFIGS / "weights.dense")}
            experiment.make_base({"sequester": dict.fromkeys(SETS, args.drawn)}, weights=weights)
        else:
            experiment.make_base()
        wanted = {name for system in args.systems for name in models_of(args, system)}
        models = {name: make_model(experiment, args, name) for name in MODELS if name in wanted}
        for replica, suffix in enumerate(replica_names(args.replicas), 1):
            # The system without a model first: scaled ones have its weights.
            for system in sorted(args.systems, key=lambda name: name != "none"):
                paths = [models[name] for name in models_of(args, system)]
                if args.scaled and paths:
                    run_scaled(experiment, args, system, paths, suffix)
                else:
                    content = settings_of(experiment, args, paths, replica)
                    experiment.run(f"{name_of(args, system)}{suffix}", content)
    experiment.write_table(table(experiment, args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
