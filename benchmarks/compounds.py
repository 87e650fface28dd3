"""Splitting of compounds: ``python -m benchmarks.compounds OUT --data DIR``.

The source side is translated as it is (``none``), with its compounds split in the best way (``best``), or as
lattices of several ways (``lattice``), by ``prep: split_compounds`` of hiero run. All systems share one
language model, align and index their own training data, and tune their weights on dev from equal ones with
the same learner, in ``--replicas`` runs of different seeds. They translate devtest.

    OUT/base.run      the language model
    OUT/SYSTEM.run    the first replica, with alignment and index; OUT/SYSTEM.2.run, ... the others
    OUT/table.md      tokens, words unknown to the training data, BLEU; --table only makes it

It can be killed and restarted at any time.

    python -m benchmarks.compounds runs --data ../shared/data/multi30k-de-en -j 2
    python -m benchmarks.compounds runs --data ../shared/data/europarl-de-en --pairs 25000
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.aligners import TUNE, first_pairs
from benchmarks.papers.experiment import Experiment, Settings, add_arguments, compared, replica_names
from hiero.core.input import parse_input
from hiero.core.lattice import EPSILON
from hiero.core.text import read_text
from hiero.evaluation.compare import System, evaluate
from hiero.evaluation.config import EvalConfig

SYSTEMS = ("none", "best", "lattice")
SETS = ("dev", "devtest")


def settings_of(experiment: Experiment, args: argparse.Namespace, system: str, seed: int) -> Settings:
    """The configuration of a replica of a system; those after the first take its data and index."""
    out = experiment.out.resolve()
    first = out / f"{system}.run"
    data: Settings = {name: experiment.part(name) for name in SETS}
    made: Settings = {"grammar": [{"index": str(first / "train.index")}]}
    if seed == 1:
        prep = {"tokenize": False, "split_compounds": "no" if system == "none" else system}
        data["train"] = first_pairs(experiment, args.pairs)
        made = {"prep": prep, "grammar": [{"index": "train"}]}
    elif system != "none":
        data = {
            name: part | {"source": str(first / "split" / f"{name}.source")} for name, part in data.items()
        }
    epochs = {"epochs": args.epochs} if args.epochs else {}
    return made | {
        "seed": seed,
        "data": data,
        "lm": [{"path": str(out / "base.run" / "LanguageModel.lm")}],
        "tune": TUNE | {"seed": seed} | epochs,
        "eval": {"metrics": ["bleu"], "tokenize": "none"},
    }


def counts(folder: Path, system: str) -> tuple[int, int, int]:
    """Of devtest: arcs, which are words where there is one reading; unknown words; sentences with several."""
    part = folder / ("prep" if system == "none" else "split")
    known = {word for line in read_text(part / "train.source") for word in line.split()}
    arcs = unknown = several = 0
    for line in read_text(part / "devtest.source"):
        segment = parse_input(line)
        lattice = segment.lattice
        several += lattice is not None
        arcs += sum(word != EPSILON for word in segment.words)
        # Those without which there is no reading: the fewest of any path.
        if lattice is None:
            unknown += sum(word not in known for word in segment.words)
            continue
        fewest = [0] + [1 << 30] * (lattice.num_nodes - 1)
        for start, end, word in lattice.arcs:
            fewest[end] = min(fewest[end], fewest[start] + (word != EPSILON and word not in known))
        unknown += fewest[-1]
    return arcs, unknown, several


def table(experiment: Experiment, args: argparse.Namespace) -> str:
    """Tokens, unknown words and BLEU of devtest, and the difference from no splitting."""
    names = replica_names(args.replicas)
    found = {system: experiment.outputs(system, names) for system in args.systems}
    systems = [System(system, runs) for system, runs in found.items() if runs]
    if not systems:
        sys.exit(f"{experiment.out}: found no translations, expected those of some system")
    config = EvalConfig(metrics=["bleu"], tokenize="none", trials=args.trials)
    report = evaluate(systems, experiment.references("devtest"), config)
    rows = [
        "| compounds | arcs | lattices | unknown words | BLEU | over replicas | from the first | p |",
        "|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    for system in systems:
        result = report.result("bleu", system.name)
        arcs, unknown, several = counts(experiment.out / f"{system.name}.run", system.name)
        scores = ", ".join(f"{score:.2f}" for score in result.spread.scores)
        rows.append(
            f"| {system.name} | {arcs:,} | {several:,} | {unknown:,} | {result.spread.mean:.2f} | {scores} |"
            f" {compared(result)} |"
        )
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compounds", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    parser.add_argument(
        "--systems", type=lambda text: text.split(","), default=list(SYSTEMS), metavar="A,B,..."
    )
    parser.add_argument(
        "--pairs", type=int, default=0, metavar="N", help="train on the first N (default: all)"
    )
    args = parser.parse_args(arguments)
    if wrong := set(args.systems) - set(SYSTEMS):
        parser.error(f"argument --systems: found {min(wrong)}, expected some of {', '.join(SYSTEMS)}")
    experiment = Experiment.of(args)
    if not args.table:
        lm: Settings = {"estimate": "train", "order": args.order, "discount_fallback": True}
        experiment.run("base", {"data": {"train": first_pairs(experiment, args.pairs)}, "lm": [lm]})
        for replica, suffix in enumerate(replica_names(args.replicas), 1):
            for system in args.systems:
                experiment.run(f"{system}{suffix}", settings_of(experiment, args, system, replica))
    experiment.write_table(table(experiment, args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
