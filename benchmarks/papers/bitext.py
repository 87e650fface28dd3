"""Table 3 of Simianer, Riezler and Dyer (2012): ``python -m benchmarks.papers.bitext OUT --data DIR``.

Dense and sparse features, learnt from a small tuning set (SGD) and from the bitext itself (IterSelSGD; dense
features by IterMixSGD), at equal data and equal epochs. DIR has a bitext as ``train.src.gz`` and
``train.trg.gz``, and so on for ``dev``. Sets to choose the epoch (odd lines of *devtest*) and to report on
(its even lines, and *test*) are drawn from the bitext before anything else sees it; ``--further NAME=DIR``
adds the devtest of another bitext. Sentences of the bitext are decoded without rules of their own or of equal
pairs, and with language models that have not seen their references.

    OUT/base.run     sets drawn from the bitext, language model and index, for all systems; translations of
                     the sets with the weights ``configs/weights.dense``, which were set by hand
    OUT/rules        rules of sentences, extracted once for all systems
    OUT/SYSTEM.run   the first replica; OUT/SYSTEM.2.run, ... the others, which differ in ``tune: {seed}``
    OUT/table.md     the table; --table only makes it, from the existing runs

A system is ``dev.dense``, ``dev.all``, ``5000.dense``, or ``5000.all.100000``: learnt from 5,000 sentences,
of all features 100,000 selected (0: all). It can be killed and restarted at any time. Significance is tested
by approximate randomisation over sentences, with all replicas of both systems (Clark et al. 2011).

    python -m benchmarks.papers.bitext runs --data shared/data/europarl-de-en -j 2 --prune 0,0,1 \
        --further newstest=shared/data/newstest-de-en
    python -m benchmarks.papers.bitext runs --data grammars/demo --replicas 2 --epochs 2 --drawn 20 \
        --systems dev.dense,40.dense,40.all.500 --trials 50
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers.experiment import CONFIGS, Experiment, Settings, add_arguments, lines, replica_names
from benchmarks.papers.tune_runs import Run, read_run
from hiero.evaluation.compare import EvaluationReport, System, evaluate
from hiero.evaluation.config import EvalConfig

TEMPLATES = ["rule_id", "source_bigram", "shape"]
LEARNER: Settings = {
    "loss": "logistic",
    "metric": "nakov",
    "average": "sentences",
    "order": "shuffle",
    "held_out": "devtest",
}
FROM_BITEXT: Settings = {"on": "train", "leave_one_out": True, "lm": "jackknife"}
SYSTEMS = (
    "dev.dense",
    "dev.all",
    *(f"{size}.{what}" for size in (5000, 20000) for what in ("dense", "all.0", "all.10000", "all.100000")),
)
DRAWN = ("devtest", "test")
EVAL: Settings = {"metrics": ["bleu"], "tokenize": "none"}


def tune_of(system: str) -> tuple[Settings, bool]:
    """The section ``tune`` of a system, and whether it has sparse features."""
    on, features, *selected = system.split(".")
    if on == "dev":
        return {"algorithm": "sgd", "on": "dev"}, features == "all"
    size = {"sentences": int(on)}
    if features == "dense":
        return {"algorithm": "itermixsgd", **FROM_BITEXT, **size}, False
    return {"algorithm": "iterselsgd", "select": int(selected[0]), **FROM_BITEXT, **size}, True


def system_name(text: str) -> str:
    if not re.fullmatch(r"dev\.(dense|all)|[1-9]\d*\.(dense|all\.\d+)", text):
        raise argparse.ArgumentTypeError(f"found {text}, expected such as dev.all or 5000.all.100000")
    return text


def drawn(experiment: Experiment, name: str) -> Settings:
    """Source and target of a set drawn from the bitext, or of the rest of it."""
    folder = experiment.out.resolve() / "base.run" / "sequester"
    return {side: str(folder / f"{name}.{side}") for side in ("source", "target")}


def sets_of(experiment: Experiment, args: argparse.Namespace) -> dict[str, Settings]:
    """The sets that are translated and scored."""
    found = {name: drawn(experiment, name) for name in DRAWN}
    return found | {
        name: Experiment(out=args.out, data=folder).part("devtest") for name, folder in args.further
    }


def settings_of(experiment: Experiment, args: argparse.Namespace, system: str, seed: int) -> Settings:
    tune, is_sparse = tune_of(system)
    models = experiment.models()
    models["grammar"][0]["extract"] = {
        "leave_out_links": True,
        "store": str(experiment.out.resolve() / "rules"),
    }
    models["lm"][0]["text"] = drawn(experiment, "train")["target"]
    learner = LEARNER | tune | {"seed": seed, "epochs": args.epochs or 10}
    return models | {
        "data": {
            "train": drawn(experiment, "train"),
            "dev": experiment.part("dev"),
            **sets_of(experiment, args),
        },
        "features": {"templates": TEMPLATES if is_sparse else []},
        "tune": learner,
        "eval": EVAL,
    }


# ---- the table


def reports(experiment: Experiment, args: argparse.Namespace) -> dict[str, EvaluationReport]:
    """For each set, the systems that have translated it, the first one as the baseline."""
    config = EvalConfig(metrics=["bleu"], tokenize="none", trials=args.trials)
    found = {}
    for name, paths in sets_of(experiment, args).items():
        step = slice(1, None, 2) if name == LEARNER["held_out"] else slice(None)
        targets = paths.get("references") or [paths["target"]]
        references = [lines(path)[step] for path in targets]
        systems = []
        for system in args.systems:
            files = [path / f"{name}.output" for path in folders(experiment, args, system)]
            if outputs := [lines(path)[step] for path in files if path.exists()]:
                systems.append(System(system, outputs))
        if systems:
            found[name] = evaluate(systems, references, config)
    return found


def folders(experiment: Experiment, args: argparse.Namespace, system: str) -> list[Path]:
    return [experiment.out / f"{system}{suffix}.run" for suffix in replica_names(args.replicas)]


def table(experiment: Experiment, args: argparse.Namespace) -> str:
    """BLEU of each set, the mean over replicas, and its difference from the first system with p."""
    found = reports(experiment, args)
    if not found:
        sys.exit(f"{experiment.out}: found no translations, expected those of some system")
    head = ["system", "weights", "epoch", "CPU, minutes", *found]
    rows = []
    for system in args.systems:
        runs = [
            read_run(f"{system}={path / 'tune'}")
            for path in folders(experiment, args, system)
            if is_done(path)
        ]
        if runs:
            cells = [_cell(report, system) for report in found.values()]
            rows.append([system, *_costs(runs), *cells])
    ruled = [head, ["---", *["---:"] * 3, *["---"] * len(found)], *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in ruled)


def is_done(folder: Path) -> bool:
    return (folder / f"{LEARNER['held_out']}.output").exists()


def _costs(runs: Sequence[Run]) -> list[str]:
    """Weights, chosen epochs, and CPU minutes of decoding and learning of each replica."""
    minutes = [sum(one["decode_s"] + one["learn_s"] for one in run.log) / 60 for run in runs]
    shown = (
        [f"{run.chosen['features']:,}" for run in runs],
        [f"{run.epoch} of {len(run.log)}" for run in runs],
    )
    return [*(", ".join(column) for column in shown), ", ".join(f"{spent:.1f}" for spent in minutes)]


def _cell(report: EvaluationReport, system: str) -> str:
    if system not in {one.name for one in report.systems}:
        return ""
    result = report.result("bleu", system)
    text = f"{result.spread.mean:.2f} ({', '.join(f'{score:.2f}' for score in result.spread.scores)})"
    if result.comparison is not None:
        text += f" {result.comparison.difference:+.2f}, p {result.comparison.p:.4f}"
    return text


# ---- the command


def named_folder(text: str) -> tuple[str, str]:
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"found {text}, expected NAME=DIR")
    return name, folder


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.bitext", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--systems", type=lambda text: [system_name(one) for one in text.split(",")], default=list(SYSTEMS))
    add("--drawn", type=int, default=2000, metavar="N", help="pairs of devtest and test (default 2000)")
    add("--further", type=named_folder, action="append", default=[], metavar="NAME=DIR")
    add("--prune", metavar="A,B,...", help="of the language model, as in hiero lm estimate")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if not args.table:
        lm = {"prune": [int(count) for count in args.prune.split(",")]} if args.prune else {}
        weights = {"path": str(CONFIGS / "weights.dense")}
        sequester = dict.fromkeys(DRAWN, args.drawn)
        experiment.make_base({"sequester": sequester}, lm, weights=weights, eval=EVAL)
        for replica, suffix in enumerate(replica_names(args.replicas), 1):
            for system in args.systems:
                experiment.run(f"{system}{suffix}", settings_of(experiment, args, system, replica))
    experiment.write_table(table(experiment, args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
