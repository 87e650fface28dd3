"""Learners, sets and features compared: ``python -m benchmarks.papers.learners OUT --data DIR --paper 000``.

The systems of Table 3 of Simianer, Riezler and Dyer (2012; 000), Table 5 of Eidelman (2012; 001), or Tables 2
to 5 of Green et al. (2013; 002), or those of ``--systems``. DIR has a bitext as ``train.src.gz`` and
``train.trg.gz``, and so on for ``dev``. Three sets are drawn from the bitext before anything else sees it:
*held*, to choose settings and epochs on (epochs on its odd lines), and *devtest* and *test*, to report on;
``--further NAME=DIR`` adds the devtest of another bitext. Sentences of the bitext are decoded without rules
of their own or of equal pairs, and with language models that have not seen their references.

With ``--tune N`` all learn from N drawn sources in place of dev, with as many references as dev has
(``drawn_sets``); *held* is then dev and *devtest* is devtest of DIR, and no other sets are drawn.

    OUT/base.run     sets drawn from the bitext, language model and index, for all systems; translations of
                     the sets with the weights ``configs/weights.dense``, which were set by hand
    OUT/rules        rules of sentences, extracted once for all systems
    OUT/SYSTEM.run   the first replica; OUT/SYSTEM.2.run, ... the others, which differ in ``tune: {seed}``
    OUT/table.md     the table; --table only makes it, from the existing runs

A system is ALGORITHM.SET.FEATURES, with other settings of ``tune`` behind colons: ``sgd.dev.dense``, or
``iterselsgd.5000.all:select=10000``, which learns from 5,000 sentences of the bitext. It can be killed and
restarted at any time. The first system is the baseline: p is by approximate randomisation over sentences,
with all replicas of both systems (Clark et al. 2011); intervals are by bootstrap over sentences and replicas,
so that they include the variance of tuning where there are several. *devtest + test* is both as one text.

    python -m benchmarks.papers.learners runs --data ../shared/data/europarl-de-en -j 2 --prune 0,0,1 \
        --further newstest=../shared/data/newstest-de-en
    python -m benchmarks.papers.learners runs --data grammars/demo --replicas 2 --epochs 2 --drawn 20 \
        --systems sgd.dev.dense,itermixsgd.40.dense,iterselsgd.40.all:select=500 --trials 50
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.papers.drawn_sets import drawn_experiment, make_drawn
from benchmarks.papers.experiment import (
    CONFIGS,
    Experiment,
    Settings,
    add_arguments,
    lines,
    references_of,
    replica_names,
    with_interval,
)
from benchmarks.papers.tune_runs import Run, run_in
from hiero.evaluation.compare import EvaluationReport, System, evaluate
from hiero.evaluation.config import EvalConfig
from hiero.learning.config import ALGORITHMS

FEATURES = {
    "dense": [],
    "all": ["rule_id", "source_bigram", "shape"],
    "pairs": ["word_pair", "insertion_pair", "bigram"],
    "pt": ["rule_id"],
    "pt_al_lo": ["pt_al_lo"],
}
HELD_OUT = "held"
# Beside the presets: for SGD what configs/paper-000-sgd.yaml has, and why is in paper-000.md.
SGD: Settings = {"loss": "logistic", "metric": "nakov", "average": "sentences"}
LEARNERS = dict.fromkeys(("sgd", "mixsgd", "itermixsgd", "iterselsgd"), SGD)
FROM_BITEXT: Settings = {"on": "train", "leave_one_out": True, "lm": "jackknife"}
PAPERS = {
    "000": (
        "sgd.dev.dense",
        "sgd.dev.all",
        *(f"itermixsgd.{size}.dense" for size in (5000, 20000)),
        *(f"iterselsgd.{size}.all:select={k}" for size in (5000, 20000) for k in (0, 10000, 100000)),
    ),
    "001": (
        "mira.dev.dense",
        "mira.dev.pairs",
        "mira.dev.dense:oracle=lu:prediction=cost",
        "mira.dev.pairs:oracle=lu:prediction=cost",
    ),
    "002": (
        *(f"{learner}.dev.dense" for learner in ("mert", "pro", "kbmira", "adagrad", "mira")),
        *(
            f"{learner}.dev.{which}"
            for which in ("pt", "pt_al_lo")
            for learner in ("pro", "kbmira", "adagrad", "mira")
        ),
        *(f"adagrad.{size}.{which}" for size in (5000, 15000) for which in ("dense", "pt", "pt_al_lo")),
    ),
}
DRAWN = (HELD_OUT, "devtest", "test")
POOLED = ("devtest", "test")  # scored as one text as well
DRAWN_SEED = 1
EVAL: Settings = {"metrics": ["bleu"], "tokenize": "none"}
NAME = re.compile(
    rf"(?P<algorithm>{'|'.join(ALGORITHMS)})\.(?P<on>dev|[1-9]\d*)\.(?P<features>{'|'.join(FEATURES)})"
    r"(?P<more>(:[a-z_0-9]+=[^:,=]+)*)"
)


def system_name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"found {text}, expected such as iterselsgd.5000.all:select=10000")
    return text


def system_names(text: str) -> list[str]:
    return [system_name(one) for one in text.split(",")]


def parts_of(system: str) -> tuple[Settings, list[str]]:
    """The section ``tune`` of a system, and its templates."""
    found = NAME.fullmatch(system)
    assert found is not None, system
    algorithm, on = found["algorithm"], found["on"]
    tune: Settings = {"algorithm": algorithm, "held_out": HELD_OUT, "order": "shuffle"}
    tune |= LEARNERS.get(algorithm, {})
    tune |= {"on": "dev"} if on == "dev" else {**FROM_BITEXT, "sentences": int(on)}
    for setting in found["more"].split(":")[1:]:
        key, _, value = setting.partition("=")
        tune[key] = yaml.safe_load(value)
    return tune, FEATURES[found["features"]]


def sets_of(experiment: Experiment, args: argparse.Namespace) -> dict[str, Settings]:
    """The sets that are translated and scored."""
    if args.tune:
        found = {HELD_OUT: experiment.part("dev"), "devtest": experiment.part("devtest")}
    else:
        found = {name: experiment.drawn(name) for name in DRAWN}
    return found | {
        name: Experiment(out=args.out, data=folder).part("devtest") for name, folder in args.further
    }


def learnt_from(experiment: Experiment, args: argparse.Namespace) -> dict[str, Settings]:
    """The tuning set, and the bitext without the sets that were drawn from it."""
    if args.tune:
        return {name: drawn_experiment(experiment).part(name) for name in ("train", "dev")}
    return {"train": experiment.drawn("train"), "dev": experiment.part("dev")}


def settings_of(experiment: Experiment, args: argparse.Namespace, system: str, seed: int) -> Settings:
    tune, templates = parts_of(system)
    models, sets = experiment.models(), learnt_from(experiment, args)
    models["grammar"][0]["extract"] = {
        "leave_out_links": True,
        "store": str(experiment.out.resolve() / "rules"),
    }
    models["lm"][0]["text"] = sets["train"]["target"]
    given = {"seed": seed} | ({"epochs": args.epochs} if args.epochs else {})
    return models | {
        "data": sets | sets_of(experiment, args),
        "features": {"templates": templates},
        "tune": tune | given,
        "eval": EVAL,
    }


# ---- the table


def reports(experiment: Experiment, args: argparse.Namespace) -> dict[str, EvaluationReport]:
    """For each set, and for ``POOLED`` as one, the systems that have translated it."""
    config = EvalConfig(metrics=["bleu"], tokenize="none", trials=args.trials)
    sets = sets_of(experiment, args)
    found = {}
    pooled = [POOLED] if set(POOLED) <= set(sets) else []
    for names in [*((name,) for name in sets), *pooled]:
        references = [
            joined(texts) for texts in zip(*(references_of(sets[name]) for name in names), strict=True)
        ]
        systems = []
        for system in args.systems:
            files = [
                [path / f"{name}.output" for name in names] for path in folders(experiment, args, system)
            ]
            if complete := [paths for paths in files if all(path.exists() for path in paths)]:
                systems.append(System(system, [joined(map(lines, paths)) for paths in complete]))
        if systems:
            found[" + ".join(names)] = evaluate(systems, references, config)
    return found


def joined(texts: Iterable[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(texts))


def folder_name(system: str) -> str:
    return system.replace(":", "-")


def folders(experiment: Experiment, args: argparse.Namespace, system: str) -> list[Path]:
    names = (f"{folder_name(system)}{suffix}.run" for suffix in replica_names(args.replicas))
    return [experiment.out / name for name in names]


def table(experiment: Experiment, args: argparse.Namespace) -> str:
    """BLEU of each set, the mean over replicas, and the difference from the first system with interval."""
    found = reports(experiment, args)
    if not found:
        sys.exit(f"{experiment.out}: found no translations, expected those of some system")
    head = ["system", "weights", "epoch", "converged", "CPU, minutes", "s/epoch", *found]
    rows = []
    for system in args.systems:
        done = (path / "tune" for path in folders(experiment, args, system) if is_done(path))
        runs = [run_in(path, system) for path in done]
        if runs:
            cells = [_cell(report, system) for report in found.values()]
            rows.append([system, *_costs(runs), *cells])
    ruled = [head, ["---", *["---:"] * 5, *["---"] * len(found)], *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in ruled)


def is_done(folder: Path) -> bool:
    return (folder / "devtest.output").exists()


def _costs(runs: Sequence[Run]) -> list[str]:
    """Weights, chosen epochs, epochs until convergence, and CPU time of each replica."""
    minutes = (sum(one["decode_s"] + one.get("learn_s", 0.0) for one in run.log) / 60 for run in runs)
    columns = (
        (f"{run.chosen['features']:,.0f}" for run in runs),
        (f"{run.epoch} of {len(run.log)}" for run in runs),
        (str(run.converged) for run in runs),
        (f"{spent:.1f}" for spent in minutes),
        (f"{run.seconds[1]:.0f}" for run in runs),
    )
    return [", ".join(column) for column in columns]


def _cell(report: EvaluationReport, system: str) -> str:
    if system not in {one.name for one in report.systems}:
        return ""
    result = report.result("bleu", system)
    text = f"{result.spread.mean:.2f} ({', '.join(f'{score:.2f}' for score in result.spread.scores)})"
    if result.comparison is not None:
        text += f" {with_interval(result.comparison)}, p {result.comparison.p:.4f}"
    return text


# ---- the command


def named_folder(text: str) -> tuple[str, str]:
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"found {text}, expected NAME=DIR")
    return name, folder


def make_base(experiment: Experiment, args: argparse.Namespace) -> None:
    """Draw the sets, and make the language model and the index, unless that was done."""
    lm = {"prune": [int(count) for count in args.prune.split(",")]} if args.prune else {}
    if args.tune:
        data: Settings = sets_of(experiment, args)
        experiment = make_drawn(experiment, {"dev": args.tune}, DRAWN_SEED, {})
    else:
        data = {"sequester": dict.fromkeys(DRAWN, args.drawn) | {HELD_OUT: args.drawn // 2}}
    experiment.make_base(data, lm, weights={"path": str(CONFIGS / "weights.dense")}, eval=EVAL)


def add_base_arguments(parser: argparse.ArgumentParser) -> Any:
    """Add the arguments for ``make_base``, and for further sets; return the group of those for drawn sets."""
    add, group = parser.add_argument, parser.add_mutually_exclusive_group()
    text = "pairs of devtest, and of test; held has half as many (default 2000)"
    group.add_argument("--drawn", type=int, default=2000, metavar="N", help=text)
    add("--further", type=named_folder, action="append", default=[], metavar="NAME=DIR")
    add("--prune", metavar="A,B,...", help="of the language model, as in hiero lm estimate")
    parser.set_defaults(tune=None)
    return group


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.learners", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--paper", choices=list(PAPERS), default="000", help="whose systems (default 000)")
    add("--systems", type=system_names, metavar="A,B,...")
    text = "learn from N drawn sources with all their references, and report on devtest of DIR"
    add_base_arguments(parser).add_argument("--tune", type=int, metavar="N", help=text)
    args = parser.parse_args(arguments)
    args.systems = args.systems or list(PAPERS[args.paper])
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    experiment = Experiment.of(args)
    if not args.table:
        make_base(experiment, args)
        for replica, suffix in enumerate(replica_names(args.replicas), 1):
            for system in args.systems:
                content = settings_of(experiment, args, system, replica)
                only = ["tune", *(f"decode:{name}" for name in sets_of(experiment, args))]
                experiment.run(f"{folder_name(system)}{suffix}", content, only)
    experiment.write_table(table(experiment, args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
