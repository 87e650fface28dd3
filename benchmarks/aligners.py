"""BLEU by the aligner that made the grammar: ``python -m benchmarks.aligners OUT --data DIR``.

Each system is a model of alignment with other settings of ``align`` behind colons, such as ``ibm2:null=0.08``
or ``hmm:threshold=0.2``, a file NAME=FILE with the links of another program, or ``own``, the data's
alignment. All share one language model; each has an index of its own, and its weights are tuned on dev from
equal ones, in ``--replicas`` runs of different seeds. They translate devtest. Significance is tested against
the first system by approximate randomisation over sentences, with all replicas of both (Clark et al. 2011).

    OUT/base.run      the language model
    OUT/SYSTEM.run    the first replica, with alignment and index; OUT/SYSTEM.2.run, ... the others
    OUT/table.md      the table; --table only makes it, from the existing runs

It can be killed and restarted at any time. ``python -m benchmarks.align`` has error rates and times.

    python -m benchmarks.aligners runs --data ../shared/data/multi30k-de-en -j 2
    python -m benchmarks.aligners runs --data ../shared/data/europarl-de-en --pairs 25000 --prune 0,0,1
    python -m benchmarks.aligners runs --data grammars/demo --replicas 2 --systems ibm2,hmm:threshold=0.2
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from benchmarks.papers.experiment import Experiment, Settings, add_arguments, compared, replica_names
from hiero.alignment.config import MODELS
from hiero.bitext.alignments import read_alignment
from hiero.core.text import open_output, read_lines
from hiero.evaluation.compare import System, SystemResult, evaluate
from hiero.evaluation.config import EvalConfig

SYSTEMS = (
    "ibm2",
    "ibm2:null=0.08",
    "fertility",
    "hmm",
    *(f"hmm:threshold={p}" for p in (0.4, 0.2, 0.1, 0.05)),
)
TUNE: Settings = {"algorithm": "kbmira", "on": "dev", "held_out": None}


def system_names(text: str) -> list[str]:
    found = text.split(",")
    for name in found:
        if "=" not in name.partition(":")[0] and name.partition(":")[0] not in (*MODELS, "own"):
            raise argparse.ArgumentTypeError(
                f"found {name}, expected such as hmm:threshold=0.2, NAME=FILE or own"
            )
    return found


def run_name(system: str) -> str:
    head, _, more = system.partition(":")
    return "-".join([head.partition("=")[0], *filter(None, more.split(":"))])


def first_pairs(experiment: Experiment, pairs: int) -> Settings:
    """The training set without its alignment, or its first pairs, as files below OUT."""
    part = experiment.part("train")
    if not pairs:
        return part
    folder = experiment.out.resolve() / "train"
    folder.mkdir(exist_ok=True)
    found = {}
    for side, path in part.items():
        found[side] = str(folder / side)
        if not Path(found[side]).exists():
            with open_output(Path(found[side])) as stream:
                stream.writelines(line + b"\n" for line in itertools.islice(read_lines(path), pairs))
    return found


def settings_of(experiment: Experiment, args: argparse.Namespace, system: str, seed: int) -> Settings:
    """The configuration of a replica of a system; all replicas share the index of the first."""
    train = first_pairs(experiment, args.pairs)
    first = experiment.out.resolve() / f"{run_name(system)}.run"
    head, _, more = system.partition(":")
    align: Settings = {}
    if seed > 1:
        grammar = {"index": str(first / "train.index")}
    else:
        grammar = {"index": "train"}
        if head in MODELS:
            pairs = (setting.partition("=") for setting in filter(None, more.split(":")))
            align = {"align": {"model": head} | {key: yaml.safe_load(value) for key, _, value in pairs}}
        else:
            train["alignment"] = head.partition("=")[2] if "=" in head else experiment.train()["alignment"]
    epochs = {"epochs": args.epochs} if args.epochs else {}
    return align | {
        "seed": seed,
        "data": {"train": train} | {name: experiment.part(name) for name in ("dev", "devtest")},
        "lm": [{"path": str(experiment.out.resolve() / "base.run" / "LanguageModel.lm")}],
        "grammar": [grammar],
        "tune": TUNE | {"seed": seed} | epochs,
        "eval": {"metrics": ["bleu"], "tokenize": "none"},
    }


def table(experiment: Experiment, args: argparse.Namespace) -> str:
    """Links, BLEU of devtest over replicas, and its difference from the first system."""
    names = replica_names(args.replicas)
    found = {system: experiment.outputs(run_name(system), names) for system in args.systems}
    systems = [System(system, runs) for system, runs in found.items() if runs]
    if not systems:
        sys.exit(f"{experiment.out}: found no translations, expected those of some system")
    config = EvalConfig(metrics=["bleu"], tokenize="none", trials=args.trials)
    report = evaluate(systems, experiment.references("devtest"), config)
    rows = [
        "| aligner | links | BLEU | over replicas | length | from the first | p |",
        "|---|---:|---:|---|---:|---:|---:|",
    ]
    references = experiment.references("devtest")
    for system in systems:
        result = report.result("bleu", system.name)
        rows.append(_row(system, result, num_links(experiment, system.name), references))
    return "\n".join(rows) + "\n"


def num_links(experiment: Experiment, system: str) -> str:
    path = experiment.out / f"{run_name(system)}.run" / "train.align.gz"
    if not path.exists():
        head = system.partition(":")[0]
        path = Path(head.partition("=")[2] if "=" in head else experiment.train()["alignment"])
    return f"{len(read_alignment(path).link):,}"


def _row(system: System, result: SystemResult, links: str, references: Sequence[list[str]]) -> str:
    scores = ", ".join(f"{score:.2f}" for score in result.spread.scores)
    words = [sum(len(line.split()) for line in run) for run in system.runs]
    expected = sum(len(line.split()) for line in references[0])
    length = sum(words) / len(words) / expected
    found = f"{result.spread.mean:.2f} | {scores} | {length:.3f} | {compared(result)}"
    return f"| {system.name} | {links} | {found} |"


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.aligners", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--systems", type=system_names, default=list(SYSTEMS), metavar="A,B,...")
    add("--pairs", type=int, default=0, metavar="N", help="train on the first N pairs (default: all)")
    add("--prune", metavar="A,B,...", help="of the language model, as in hiero lm estimate")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if not args.table:
        lm: Settings = {"estimate": "train", "order": args.order, "discount_fallback": True}
        if args.prune:
            lm["prune"] = [int(count) for count in args.prune.split(",")]
        experiment.run("base", {"data": {"train": first_pairs(experiment, args.pairs)}, "lm": [lm]})
        for replica, suffix in enumerate(replica_names(args.replicas), 1):
            for system in args.systems:
                content = settings_of(experiment, args, system, replica)
                experiment.run(f"{run_name(system)}{suffix}", content)
    experiment.write_table(table(experiment, args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
