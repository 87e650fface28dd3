"""Model score against CPU time for every search algorithm: ``python -m benchmarks.search OUT``.

    python -m benchmarks.search OUT [--data DIR] [--reference DIR] [--sets m30k,ep,newstest,bible]
                                [--pop-limits 10,...,2000] [--rounds 1]

``m30k`` and ``ep`` are the reference sets (benchmarks/reference.py). ``newstest`` and ``bible`` are made in
OUT from the bitexts in DIR, and kept: 60 sentences of devtest, rules from an index of the training set, and
a language model of order 3 (newstest, with English of Europarl) or 5. All have the reference's weights.

A table lists, for each algorithm and pop limit, the mean model score, candidates scored, and CPU time of
search alone and of all decoding, in loops of the reference's ``calibrate.py``, which runs before and after
each set. A second one lists the loops that algorithms need for the mean scores of cube pruning, interpolated,
and those of cdec and of Heafield's incremental search (lazy, search alone) where the reference has them.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands import hiero
from benchmarks.reference import CDEC_LOOPS, PROJECT, SETS, Bench, Stats, cdec_means
from benchmarks.results import append_result

POP_LIMITS = (10, 20, 50, 100, 200, 500, 1000, 2000)
# From the reference's README: Heafield's lazy, mean score and loops by beam.
LAZY = {
    "m30k": {100: (-8.5048, 0.9), 200: (-8.4587, 1.7), 500: (-8.4281, 4.0), 1000: (-8.4161, 7.6)},
    "ep": {100: (-20.9742, 2.6), 200: (-20.8378, 5.0), 500: (-20.6745, 11.9), 1000: (-20.6067, 23.0)},
}
NUM_SENTENCES = 60
Curve = Sequence[tuple[float, float]]  # mean scores and loops


class Recipe(NamedTuple):
    """How to make a set: its bitext, every n-th pair of which is used, and its language model."""

    bitext: str
    every: int
    order: int
    more_text: str | None  # bitext whose first target sentences the language model has, too


RECIPES = {
    "newstest": Recipe("newstest-de-en", 1, 3, "europarl-de-en"),
    "bible": Recipe("bible-de-en", 3, 5, None),
}
MORE_LINES = 100_000


def copy_lines(source: Path, target: Path, *, every: int = 1, most: int | None = None) -> None:
    with gzip.open(source) as lines, open(target, "ab") as out:
        out.writelines(itertools.islice(lines, every - 1, None if most is None else most * every, every))


def made(name: str, data: Path, out: Path) -> list[str]:
    """The options of ``hiero decode`` for a set of ``RECIPES``, which is made unless it is there."""
    recipe, folder = RECIPES[name], out / name
    source = data / recipe.bitext
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for file in ("src", "trg", "text", "input"):
            (folder / file).unlink(missing_ok=True)
        for file in ("src", "trg"):
            copy_lines(source / f"train.{file}.gz", folder / file, every=recipe.every)
        with gzip.open(source / "devtest.src.gz") as lines:
            every = sum(1 for _ in lines) // NUM_SENTENCES
        copy_lines(source / "devtest.src.gz", folder / "input", every=every, most=NUM_SENTENCES)
        (folder / "text").write_bytes((folder / "trg").read_bytes())
        if recipe.more_text:
            copy_lines(data / recipe.more_text / "train.trg.gz", folder / "text", most=MORE_LINES)
        sides = ("-s", folder / "src", "-t", folder / "trg")
        hiero("align", "-q", *sides, "-o", folder / "align")
        hiero("index", "-q", *sides, "-a", folder / "align", "-o", folder / "index")
        hiero("lm", "estimate", "-q", "--order", str(recipe.order), folder / "text", folder / "lm")
        (folder / "done").touch()
    return ["-g", str(folder / "index"), "-l", str(folder / "lm"), "-i", str(folder / "input")]


def loops_at(curve: Curve, score: float) -> float | None:
    """Loops for a mean score, between points of the curve by the logarithm of loops."""
    for (low, fast), (high, slow) in itertools.pairwise(curve):
        if low <= score <= high and low < high:
            share = (score - low) / (high - low)
            return math.exp(math.log(fast) + share * (math.log(slow) - math.log(fast)))
    return None


def measure(bench: Bench, name: str, pop_limits: Sequence[int]) -> dict[str, list[Stats]]:
    """Print the table; returns statistics by algorithm, with ``loops`` of decoding and ``search_loops``."""
    from hiero.decoder.search import SEARCHES

    before = bench.calibrate()
    runs: dict[str, list[Stats]] = {algorithm: [] for algorithm in sorted(SEARCHES)}
    for pop_limit, algorithm in itertools.product(pop_limits, runs):
        flags = ["--pop-limit", str(pop_limit), "--search", algorithm, "-j", "1"]
        runs[algorithm].append({**bench.least(name, *flags), "pop_limit": pop_limit})
    loop = min(before, bench.calibrate())
    print(f"\n{name}: calibration loop {loop:.3f} s of CPU; times in loops\n")
    print(f"{'algorithm':16}{'pops':>6}{'mean score':>12}{'scored':>12}{'search':>9}{'all':>9}")
    for algorithm, stats in runs.items():
        for run in stats:
            run["search_loops"], run["loops"] = run["cube_cpu_s"] / loop, run["decode_cpu_s"] / loop
            keys = ("pop_limit", "mean_score", "scored", "search_loops", "loops")
            pops, score, scored, search, total = (run[key] for key in keys)
            print(f"{algorithm:16}{pops:6.0f}{score:12.4f}{scored:12.0f}{search:9.3f}{total:9.3f}")
            figures = {"set": name, "algorithm": algorithm, "loop_s": loop}
            append_result("search", figures | {key: run[key] for key in keys})
    return runs


def compare(bench: Bench, name: str, runs: Mapping[str, Sequence[Stats]]) -> None:
    """Print the loops for equal mean scores."""
    curves: dict[str, Curve] = {
        algorithm: [(run["mean_score"], run["loops"]) for run in stats] for algorithm, stats in runs.items()
    }
    if name in SETS:
        means = cdec_means(bench.reference / name / "onebest.tsv.gz")
        curves["cdec"] = sorted((means[pop_limit], loops) for pop_limit, loops in CDEC_LOOPS[name].items())
        curves["lazy"] = sorted(LAZY[name].values())
    print(f"\n{name}: loops at the mean score of cube pruning\n")
    print(f"{'mean score':>12}" + "".join(f"{column:>16}" for column in curves))
    for score, _ in curves["cube"]:
        found = (loops_at(curve, score) for curve in curves.values())
        print(f"{score:12.4f}" + "".join(f"{'-' if n is None else format(n, '.2f'):>16}" for n in found))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, shared, sets = parser.add_argument, PROJECT.parent / "shared", [*SETS, *RECIPES]
    add("out", metavar="OUT", type=Path, help="directory for sets that are made")
    add("--data", type=Path, default=shared / "data", metavar="DIR")
    add("--reference", type=Path, default=shared / "reference", metavar="DIR")
    add("--sets", default=",".join(sets), help=f"of {', '.join(sets)}")
    add("--pop-limits", default=",".join(map(str, POP_LIMITS)))
    add("--rounds", type=int, default=1, help="measurements, of which the minimum is used (default 1)")
    args = parser.parse_args()
    names, pop_limits = args.sets.split(","), [int(text) for text in args.pop_limits.split(",")]
    if not set(names) <= set(sets):
        parser.error(f"--sets: found {args.sets}, expected some of {', '.join(sets)}")
    if not args.reference.is_dir():
        parser.error(f"no reference data in {args.reference}")
    args.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(args.reference.resolve(), args.out.resolve(), args.rounds)
    for name in names:
        if name in RECIPES:
            bench.files[name] = made(name, args.data, args.out.resolve())
        compare(bench, name, measure(bench, name, pop_limits))


if __name__ == "__main__":
    main()
