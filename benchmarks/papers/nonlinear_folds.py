"""Paper 003 on whole sets, in two folds, and by the size of the tuning set, with intervals.

    python -m benchmarks.papers.nonlinear_folds OUT --data DIR
    python -m benchmarks.papers.nonlinear_folds OUT --data DIR --sizes 250,500,1000,2000,4000

DIR has a bitext, and dev and devtest, as for ``benchmarks.papers.nonlinear``, whose conditions these are.
Before anything else sees it, sets are drawn from the bitext: *choose*, on whose odd lines settings and epochs
are chosen, and with ``--sizes`` *more*, to tune on. Where dev has several references, drawn sources have as
many in the bitext: lines with the same source and different targets. All other pairs with a drawn source or
target are left out.

Folds: tune on dev and test on devtest, and the reverse. All lines of both are scored as one text. The grid
search is made in each fold, so that no setting was chosen with the help of its test set.
Sizes: tune on the first lines of *more*, and test on dev and devtest. The grid search is made with the size
that is nearest to 1,000 lines; other sizes have its settings.

    OUT/drawn/            the drawn sets, and the rest of the bitext
    OUT/base.run          alignment, language model and index of the rest
    OUT/rules/            rules of sentences, extracted once for all conditions
    OUT/CONDITION.a.run   the first fold, b the second, or 250, ..., the size; CONDITION.a.2.run, ... are
                          further replicas, which differ in the seed of tuning
    OUT/table.md          the tables; --table only makes them, from the existing runs

It can be killed and restarted at any time. Each system is compared with its control, log P or log C. p is by
approximate randomisation with all replicas (Clark et al. 2011). Intervals are by bootstrap over sentences and
replicas; of R replicas R - 1 are drawn, which makes the variance of their mean that of tuning, divided by R.

    python -m benchmarks.papers.nonlinear_folds runs --data grammars/demo --features seven \\
        --conditions log-p7,mnr-p7,iso-p7 --epochs 2 --replicas 2 --bits 2 --beta 1 --gamma 2 --choose 20 \\
        --trials 100
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from benchmarks.papers import drawn_sets
from benchmarks.papers.experiment import (
    Experiment,
    Settings,
    add_arguments,
    lines,
    numbers,
    replica_names,
    with_interval,
)
from benchmarks.papers.nonlinear import (
    BASELINES,
    CONDITIONS,
    CONTROLS,
    SETS,
    add_condition_arguments,
    final_settings,
    set_given,
    settings_shown,
    variant,
)
from hiero.core.arrays import Floats
from hiero.evaluation.corpus_metrics import corpus_metric
from hiero.evaluation.significance import (
    COVERAGE,
    Metric,
    bootstrap_sums,
    interval,
    randomization_test,
    significance_marks,
)
from hiero.jobs.run_directory import Manifest

TUNED, CHOOSE, MORE = "dev", "choose", "more"
FOLDS = {"a": ("dev", "devtest"), "b": ("devtest", "dev")}  # tuning set and test set
TESTS = ("dev", "devtest")  # of sizes
GRID_SIZE = 1000
EVAL: Settings = {"metrics": ["bleu"], "tokenize": "none"}


# ---- sets drawn from the bitext


def make_drawn(given: Experiment, args: argparse.Namespace) -> Experiment:
    """The experiment with sets drawn from its bitext."""
    sizes = {CHOOSE: args.choose} | ({MORE: max(args.sizes)} if args.sizes else {})
    return drawn_sets.make_drawn(given, sizes, args.seed, {MORE: args.sizes} if args.sizes else {})


# ---- runs


@dataclass(frozen=True)
class Part:
    """A fold, or a size: what to tune on, and the sets to test on."""

    label: str
    tuned: Settings
    tests: Mapping[str, Settings]


def parts_of(given: Experiment, drawn: Experiment, args: argparse.Namespace) -> list[Part]:
    tests = {name: {f"test-{name}": given.part(name)} for name in TESTS}
    if not args.sizes:
        return [Part(key, given.part(on), tests[test]) for key, (on, test) in FOLDS.items()]
    both = {name: data for one in tests.values() for name, data in one.items()}
    return [Part(str(size), drawn.part(f"{MORE}{size}"), both) for size in args.sizes]


def settings_of(drawn: Experiment, args: argparse.Namespace, condition: str, part: Part) -> Settings:
    """The configuration of a condition in a part: its tuning set is called dev."""
    content = variant(condition) | drawn.models()
    content["grammar"][0]["extract"] = {"store": str(drawn.out.resolve() / "rules")}
    content["data"] = {TUNED: part.tuned, CHOOSE: drawn.part(CHOOSE), **part.tests}
    content["tune"] = content["tune"] | {"held_out": CHOOSE}
    content["eval"] = EVAL
    set_given(content, args)
    return content


def searched_part(parts: Sequence[Part], part: Part) -> Part:
    """The part whose grid search gives the settings of another: itself, or the size nearest to GRID_SIZE."""
    sizes = [one for one in parts if one.label.isdecimal()]
    return min(sizes, key=lambda one: abs(int(one.label) - GRID_SIZE)) if sizes else part


def run_condition(drawn: Experiment, args: argparse.Namespace, condition: str, parts: Sequence[Part]) -> None:
    """Run the grid search, in each fold or with one size, and all replicas with the chosen settings."""
    for part in sorted(parts, key=lambda part: part is not searched_part(parts, part)):
        searched = f"{condition}.{searched_part(parts, part).label}"
        for replica in range(1, args.replicas + 1):
            name = f"{condition}.{part.label}{replica_names(replica)[-1]}"
            content = settings_of(drawn, args, condition, part)
            if name != searched:
                folder = drawn.out / f"{searched}.run"
                content = final_settings(content, Manifest(folder), folder, replica)
            drawn.run(name, content)


# ---- tables


class Scored(NamedTuple):
    """Runs of a system on one test set: their lines and statistics."""

    text: list[list[str]]
    statistics: Floats  # [replicas, lines, ...]


def scored(drawn: Experiment, args: argparse.Namespace, condition: str, part: Part) -> list[Scored]:
    """Of each test set of a part; empty if a run is missing."""
    found = []
    for name, data in part.tests.items():
        references = [lines(path) for path in _references(data)]
        folders = [
            drawn.out / f"{condition}.{part.label}{suffix}.run" for suffix in replica_names(args.replicas)
        ]
        text = [lines(path) for folder in folders if (path := folder / f"{name}.output").exists()]
        if not text:
            return []
        metric = corpus_metric("bleu", references, tokenize="none")
        found.append(Scored(text, np.stack([metric.statistics(run) for run in text])))
    return found


def sampled_scores(metric: Metric, systems: Sequence[Sequence[Floats]], trials: int, seed: int = 1) -> Floats:
    """Scores [systems, trials] of samples of lines, the same for all systems, and of replicas.

    ``systems[k][s]`` has the statistics of system k on set s, [replicas, lines, ...]; scores are of all sets
    as one text. Each set has samples of its own, of lines and of replicas.
    """
    of_sets = enumerate(zip(*systems, strict=True))
    sums = np.sum([bootstrap_sums(of_set, trials, seed + place) for place, of_set in of_sets], axis=0)
    return np.stack([metric(rows) for rows in sums])


def rows_of(
    given: Experiment,
    drawn: Experiment,
    args: argparse.Namespace,
    parts: Sequence[Part],
    searches: Sequence[Part],
) -> dict[str, list[str]]:
    """BLEU of each condition over some parts as one text, and its difference from the control.

    searches  the parts whose grid searches gave the settings
    """
    found = {
        condition: [scored(drawn, args, condition, part) for part in parts] for condition in args.conditions
    }
    whole = {
        condition: [one for part in mine for one in part] for condition, mine in found.items() if all(mine)
    }
    references = [
        [line for part in parts for data in part.tests.values() for line in lines(_references(data)[k])]
        for k in range(len(given.references("dev")))
    ]
    metric = corpus_metric("bleu", references, tokenize="none").scores
    rows = {}
    for condition, mine in whole.items():
        control = CONTROLS.get(condition, BASELINES[args.features][0])
        runs = min(len(one.text) for one in mine)
        per_run = metric(np.stack([sum(one.statistics[r].sum(axis=0) for one in mine) for r in range(runs)]))
        row = [CONDITIONS[condition], f"{per_run.mean():.2f}", ", ".join(f"{score:.2f}" for score in per_run)]
        if control in whole and control != condition:
            row += _compared(metric, whole[control], mine, args)
        else:
            row += ["", "", ""]
        shown = [settings_shown(_stages(drawn, condition, searched)) for searched in searches]
        rows[condition] = [*row, "; ".join(dict.fromkeys(shown))]
    return rows


def _compared(
    metric: Metric,
    control: Sequence[Scored],
    system: Sequence[Scored],
    args: argparse.Namespace,
) -> list[str]:
    """The difference from the control with its interval, p, and the differences of each set."""
    sampled = sampled_scores(
        metric, [[one.statistics for one in side] for side in (control, system)], args.trials
    )
    comparison = randomization_test(metric, _whole_runs(control), _whole_runs(system), args.trials)
    comparison = replace(comparison, interval=interval(sampled[1] - sampled[0]))
    of_sets = []
    for one, other in zip(control, system, strict=True):
        of_both = metric(np.stack([side.statistics.mean(axis=0).sum(axis=0) for side in (one, other)]))
        of_sets.append(f"{of_both[1] - of_both[0]:+.2f}")
    marks = significance_marks(comparison.p).replace("*", "\\*")
    return [
        with_interval(comparison),
        f"{comparison.p:.4f}{marks}",
        ", ".join(of_sets),
    ]


def _whole_runs(sets: Sequence[Scored]) -> Floats:
    """The statistics of run r of every set, as those of one text."""
    number = min(len(one.text) for one in sets)
    return np.concatenate([one.statistics[:number] for one in sets], axis=1)


def _references(data: Settings) -> list[str]:
    return list(data.get("references") or [data["target"]])


def _stages(drawn: Experiment, condition: str, part: Part) -> Mapping[str, Settings]:
    return Manifest(drawn.out / f"{condition}.{part.label}.run").stages


HEAD = ["condition", "BLEU", "over replicas", f"difference, {COVERAGE:.0%}", "p", "of each set", "settings"]
RULE = ["---", "---:", "---", "---", "---:", "---", "---"]
DIFFERENCE = HEAD.index(f"difference, {COVERAGE:.0%}")


def markdown(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def all_tables(given: Experiment, drawn: Experiment, args: argparse.Namespace, parts: Sequence[Part]) -> str:
    """One table of both folds; or one for each size, and before them the differences by size."""
    groups = [[part] for part in parts] if args.sizes else [list(parts)]
    found = [
        rows_of(given, drawn, args, group, [searched_part(parts, part) for part in group]) for group in groups
    ]
    if not any(found):
        sys.exit(f"{given.out}: found no translations, expected those of some condition")
    tables = [markdown([HEAD, RULE, *rows.values()]) for rows in found]
    if not args.sizes:
        return tables[0]
    curve = [["difference by lines tuned on", *(part.label for part in parts)], ["---"] * (len(parts) + 1)]
    for condition in args.conditions:
        cells = [rows[condition][DIFFERENCE] if condition in rows else "" for rows in found]
        if any(cells):
            curve.append([CONDITIONS[condition], *cells])
    titled = [f"{part.label} lines:\n\n{text}" for part, text in zip(parts, tables, strict=True)]
    return "\n".join([markdown(curve), *titled])


# ---- the command


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.nonlinear_folds", description=(__doc__ or "").split("\n\n")[0]
    )
    add_arguments(parser)
    add_condition_arguments(parser)
    add = parser.add_argument
    add("--sizes", type=numbers(int), default=[], metavar="A,B", help="of tuning sets, in place of folds")
    add("--choose", type=int, default=2000, metavar="N", help="lines to choose by, drawn (default 2000)")
    add("--seed", type=int, default=1, help="of the sets that are drawn (default 1)")
    args = parser.parse_args(arguments)
    args.conditions = args.conditions or list(SETS[args.features])
    twice = [name for name, number in Counter(args.sizes).items() if number > 1]
    if twice:
        parser.error(f"argument --sizes: {twice[0]} is given twice")
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    given = Experiment.of(args)
    drawn = make_drawn(given, args)
    parts = parts_of(given, drawn, args)
    if not args.table:
        drawn.make_base()
        for condition in args.conditions:
            run_condition(drawn, args, condition, parts)
    given.write_table(all_tables(given, drawn, args, parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
