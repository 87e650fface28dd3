"""Make the tables of the README here from tuning runs: ``python -m benchmarks.papers.tables NAME=DIR ...``.

DIR is the directory of a run of ``hiero tune``. The epoch is chosen on odd lines of the held-out set, and
BLEU is that of its even lines. A name such as ``sgd/dense`` has the algorithm before the slash and the
features after it, as in Table 2 of Simianer, Riezler and Dyer (2012); ``mira#1``, ``mira#2``, ... are runs of
one system with different seeds.

    python -m benchmarks.papers.tables sgd/dense=runs/sgd sgd/all=runs/all itersel/all=runs/is --significance
    python -m benchmarks.papers.tables hope/fear=runs/hf lu/cost=runs/lc --stability
    python -m benchmarks.papers.tables mira#1=runs/m1 mira#2=runs/m2 mira#3=runs/m3 --boxplot mira.svg

``--significance`` translates the even lines with the chosen weights (and stores the translations in their
directory) and tests systems with the same features or the same algorithm by approximate randomisation. A
superscript number marks a significant difference from the algorithm of this number with the same features; a
star marks one from the best system of the same algorithm, which is bold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.boxplot import Box, five_numbers, svg
from benchmarks.papers.tune_runs import CLOSE, HeldOut, Run, Statistics, config_for, read_run
from hiero.core.errors import ConfigError, HieroError
from hiero.core.text import write_output
from hiero.evaluation.bleu import corpus_bleu
from hiero.evaluation.significance import Comparison, randomization_test
from hiero.tuning.held_out import held_out_score

LEVEL = 0.05


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with text aligned left and numbers right."""
    lines = [head, ["---" if at == 0 else "---:" for at in range(len(head))], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def of_chosen(run: Run, which: str = "report") -> str:
    """BLEU and brevity of even (or odd) lines with the chosen weights."""
    if f"{which}_bleu" not in run.chosen:
        return "-"
    return f"{run.chosen[f'{which}_bleu']:.2f} ({run.chosen[f'{which}_brevity']:.3f})"


def summary(runs: Sequence[Run], marks: Mapping[str, str], best: set[str]) -> str:
    """The results of each run."""
    rows = []
    for run in runs:
        wall, cpu = run.seconds
        bleu = of_chosen(run)
        bleu = f"**{bleu}**" if run.system in best else bleu
        shown = f"{bleu} {marks[run.system]}".rstrip() if marks else bleu
        rows.append([
            run.name, f"{int(run.chosen['features']):,}", str(len(run.log)), str(run.epoch),
            str(run.converged or "-"), of_chosen(run, "choose"), shown, f"{wall:.1f}", f"{cpu:.1f}",
        ])  # fmt: skip
    head = ["system", "weights", "epochs", "chosen", "converged", "odd lines", "even lines"]
    return table([*head, "s/epoch", "CPU s/epoch"], rows)


# ---- pass by pass


def stability(runs: Sequence[Run]) -> str:
    """BLEU on the tuning set in every pass: of the model's best, and of hope and fear.

    The last column is how far a pass is from the one before in the mean, the first pass left out.
    """
    passes = max(len(run.log) for run in runs)
    rows = []
    for run in runs:
        for what in ("model", "oracle", "prediction"):
            bleu = [record.get(f"{what}_bleu") for record in run.log]
            found = [value for value in bleu if value is not None]
            if not found:
                continue
            steps = np.abs(np.diff(found[1:]))
            cells = ["-" if value is None else f"{value:.1f}" for value in bleu]
            cells += [""] * (passes - len(cells))
            rows.append([run.name, what, *cells, f"{steps.mean():.2f}" if len(steps) else "-"])
    return table(["system", "BLEU of", *map(str, range(1, passes + 1)), "mean step"], rows)


# ---- significance


def split(system: str) -> tuple[str, str]:
    """Algorithm and features; a name without a slash is an algorithm."""
    algorithm, _, features = system.partition("/")
    return algorithm, features


@dataclass
class Tested:
    """Results of significance tests.

    marks  of every system
    best   those that are the best of their algorithms
    pairs  all that was tested, with the difference of the second from the first
    """

    marks: dict[str, str] = field(default_factory=dict)
    best: set[str] = field(default_factory=set)
    pairs: dict[tuple[str, str], Comparison] = field(default_factory=dict)


def tested(statistics: Mapping[str, Statistics], trials: int, seed: int) -> Tested:
    """Compare those with the same features, and those with the same algorithm.

    statistics  of BLEU, float64 [runs, lines, K], of each system
    """
    found = Tested()
    algorithms = list(dict.fromkeys(split(name)[0] for name in statistics))
    places = list(statistics)
    bleu = {name: bleu_of(rows.mean(axis=0)) for name, rows in statistics.items()}

    def differ(*names: str) -> bool:
        one, other = sorted(names, key=places.index)
        if (one, other) not in found.pairs:
            found.pairs[one, other] = randomization_test(
                points, statistics[one], statistics[other], trials, seed
            )
        return found.pairs[one, other].p < LEVEL

    for algorithm in algorithms:
        mine = [name for name in statistics if split(name)[0] == algorithm]
        if len(mine) > 1:
            found.best.add(max(mine, key=lambda name: bleu[name]))
    for name in statistics:
        algorithm, features = split(name)
        rivals = [other for other in statistics if other != name and split(other)[1] == features]
        numbers = sorted(1 + algorithms.index(split(r)[0]) for r in rivals if differ(name, r))
        champion = next((b for b in found.best if split(b)[0] == algorithm), name)
        star = "⋆" if champion != name and differ(name, champion) else ""
        raised = f"<sup>{','.join(map(str, numbers))}</sup>" if numbers else ""
        found.marks[name] = raised + star
    return found


def comparisons(found: Tested) -> str:
    rows = [
        [f"{other} − {one}", f"{pair.difference:+.2f}", f"{pair.p:.4f}"]
        for (one, other), pair in found.pairs.items()
    ]
    return table(["difference", "BLEU", "p"], rows)


def points(sums: Statistics) -> Any:
    return 100 * corpus_bleu(sums)


def bleu_of(rows: Statistics) -> float:
    return held_out_score(rows.sum(axis=0)).bleu


def statistics_of(
    runs: Sequence[Run], config: Path | None, name: str | None, threads: int
) -> dict[str, Statistics]:
    """Statistics of all runs of each system; each configuration is read once."""
    opened: dict[Path | None, HeldOut] = {}
    rows: dict[str, list[Statistics]] = {}
    for run in runs:
        key = config or run.directory
        if key not in opened:
            opened[key] = HeldOut(config_for(run, config), name, threads)
        rows.setdefault(run.system, []).append(opened[key].statistics(run))
    lines = {len(found) for several in rows.values() for found in several}
    if len(lines) > 1:
        raise ConfigError(f"found sets of {sorted(lines)} even lines, expected one set for all runs")
    return {system: np.stack(several) for system, several in rows.items()}


# ---- seeds


def boxes(runs: Sequence[Run]) -> list[Box]:
    """A box of BLEU on even lines for every system with more than one run."""
    found: dict[str, list[float]] = {}
    for run in runs:
        if "report_bleu" in run.chosen:
            found.setdefault(run.system, []).append(run.chosen["report_bleu"])
    several = [Box(name, tuple(values)) for name, values in found.items() if len(values) > 1]
    if not several:
        raise ConfigError("boxplot: found no system with several runs, expected NAME#1=DIR NAME#2=DIR ...")
    return several


def variance(several: Sequence[Box]) -> str:
    rows = []
    for box in several:
        deviation = float(np.std(box.values, ddof=1))
        numbers = [f"{value:.2f}" for value in (*five_numbers(box.values), np.mean(box.values), deviation)]
        rows.append([box.name, str(len(box.values)), *numbers])
    head = ["system", "runs", "least", "lower quartile", "median", "upper quartile", "largest"]
    return table([*head, "mean", "deviation"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.tables", description=__doc__, formatter_class=form
    )
    parser.add_argument("runs", nargs="+", metavar="NAME=DIR", help="runs, in the order of the tables")
    parser.add_argument("--stability", action="store_true", help="BLEU on the tuning set, pass by pass")
    parser.add_argument("--significance", action="store_true", help="translate even lines, and test")
    parser.add_argument("--boxplot", type=Path, metavar="OUT.svg", help="draw systems with several runs")
    parser.add_argument(
        "--config", type=Path, help="configuration to translate with (default: DIR/config.yaml of each run)"
    )
    parser.add_argument("--set", help="the held-out set in it (default: its tune: held_out, or devtest)")
    parser.add_argument("-j", "--threads", type=int, default=1)
    parser.add_argument("--trials", type=int, default=10_000, help="of the test (default: 10000)")
    parser.add_argument("--seed", type=int, default=1, help="of the test (default: 1)")
    args = parser.parse_args(arguments)
    try:
        report(args)
    except HieroError as error:
        print(f"papers: {error}", file=sys.stderr)
        return 1
    return 0


def report(args: argparse.Namespace) -> None:
    runs = [read_run(spec) for spec in args.runs]
    if len({run.name for run in runs}) < len(runs):
        raise ConfigError("found a name twice, expected NAME#1=DIR NAME#2=DIR for several runs of a system")
    found = Tested()
    if args.significance:
        statistics = statistics_of(runs, args.config, args.set, args.threads)
        found = tested(statistics, args.trials, args.seed)
    print(summary(runs, found.marks, found.best))
    print(f"converged: the first epoch within {CLOSE} BLEU of the best on odd lines, which chose.")
    print("Seconds: medians of the epochs, with the decoding of the held-out set.")
    if found.marks:
        algorithms = dict.fromkeys(split(run.system)[0] for run in runs)
        print("Algorithms: " + ", ".join(f"{n} {name}" for n, name in enumerate(algorithms, 1)) + ".")
        test = f"approximate randomisation, {args.trials:,} trials"
        print(f"Raised: differs from this algorithm with the same features (p < {LEVEL}, {test}).")
        print("⋆ differs from the best of the same algorithm, which is bold.")
        if found.pairs:
            print("\n" + comparisons(found))
    if args.stability:
        print("\n" + stability(runs))
    if args.boxplot is not None:
        several = boxes(runs)
        write_output(args.boxplot, svg(several, "BLEU of even lines"))
        print("\n" + variance(several))


if __name__ == "__main__":
    sys.exit(main())
