"""Table 3 of Alrajeh and Niranjan (2014): ``python -m benchmarks.papers.orientation OUT --data DIR``.

Systems without an orientation model, with the lexicalised one, and with classifiers, on a bitext in DIR. All
use ``configs/paper-004.yaml`` except for the section ``reorder``. Each replica is tuned on dev with its own
seed and translates devtest, which is not used for any choice. Significance is tested against the lexicalised
model by the paired bootstrap over sentences, with all replicas pooled.

    OUT/base.run     alignment, language model and index, for all systems
    OUT/SYSTEM.run   the first replica; OUT/SYSTEM.2.run, ... the others
    OUT/table.md     the table; --table only makes it, from the existing runs

It can be killed and restarted at any time.

    python -m benchmarks.papers.orientation runs --data shared/data/multi30k-de-en -j 2
    python -m benchmarks.papers.orientation runs --data grammars/demo --epochs 2 --replicas 2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.papers.experiment import (
    Experiment,
    Settings,
    add_arguments,
    config_named,
    replica_names,
    some_of,
)
from hiero.evaluation.compare import EvaluationReport, System, evaluate
from hiero.evaluation.config import EvalConfig

SYSTEMS: dict[str, tuple[str, Settings | None]] = {
    "none": ("no model", None),
    "lexicalised": ("lexicalised", {"learner": "lexicalised"}),
    "primal": ("primal", {"learner": "primal"}),
    "dual": ("dual, ε 0.1", {"learner": "dual", "shrink": 0.1}),
    "wide": (
        "dual, ε 0.1, window 3, edges",
        {"learner": "dual", "shrink": 0.1, "window": 3, "edges": True},
    ),
}
BASELINE = "lexicalised"


def settings_of(experiment: Experiment, args: argparse.Namespace, system: str, seed: int) -> Settings:
    """The configuration of a system for these data."""
    content = config_named("paper-004")
    given = {key: getattr(args, key) for key in ("epochs", "sentences") if getattr(args, key)}
    content |= {"seed": seed, "tune": content["tune"] | given} | experiment.models()
    content["data"] = {name: experiment.part(name) for name in ("dev", "devtest")}
    del content["reorder"]
    if (reorder := SYSTEMS[system][1]) is not None:
        content["data"]["train"] = experiment.train()
        content["reorder"] = reorder
    return content


def table(experiment: Experiment, args: argparse.Namespace) -> str:
    """BLEU of devtest, the mean over replicas, and the difference from the baseline with its interval."""
    names = replica_names(args.replicas)
    found = {key: experiment.outputs(key, names) for key in (BASELINE, *SYSTEMS)}  # the baseline first
    systems = [System(SYSTEMS[key][0], runs) for key, runs in found.items() if runs]
    if not systems:
        sys.exit(f"{experiment.out}: found no translations, expected those of some system")
    config = EvalConfig(metrics=["bleu"], test="bootstrap", tokenize="none", trials=args.trials)
    report = evaluate(systems, experiment.references("devtest"), config)
    rows = [_row(report, title) for title, _ in SYSTEMS.values() if title in {one.name for one in systems}]
    head = [f"| | BLEU | over replicas | from {systems[0].name} | p |", "|---|---:|---|---:|---:|"]
    return "\n".join([*head, *rows]) + "\n"


def _row(report: EvaluationReport, title: str) -> str:
    result = report.result("bleu", title)
    scores = ", ".join(f"{score:.2f}" for score in result.spread.scores)
    compared = " | "
    if result.comparison is not None and result.comparison.interval is not None:
        low, high = result.comparison.interval.low, result.comparison.interval.high
        compared = (
            f"{result.comparison.difference:+.2f} ({low:+.2f} to {high:+.2f}) | {result.comparison.p:.4f}"
        )
    return f"| {title} | {result.spread.mean:.2f} | {scores} | {compared} |"


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.orientation", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--systems", type=some_of(SYSTEMS), default=list(SYSTEMS), metavar="A,B,...")
    add("--sentences", type=int, metavar="N", help="tune on N sentences of dev (default: all)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if not args.table:
        experiment.make_base()
        for replica, suffix in enumerate(replica_names(args.replicas), 1):
            for system in args.systems:
                experiment.run(f"{system}{suffix}", settings_of(experiment, args, system, replica))
    experiment.write_table(table(experiment, args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
