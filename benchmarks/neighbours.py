"""Convergence of Newton's method and L-BFGS for PRO with regularization of neighbouring bins.

    python -m benchmarks.neighbours

The pairs are synthetic: rules with a few features in bins, whose logarithms and noise determine the quality
of translations. For each number of bins and strength of regularization: the difference of the objective from
the best one, for L-BFGS after 200 and after 5,000 steps and for Newton's method, with CPU seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.papers.experiment import numbers
from benchmarks.results import append_result
from hiero.learning.newton import Found
from hiero.learning.pro import Differences, Ranking
from hiero.learning.regularize import Neighbours, Ridge

FEATURES, PAIRS, RULES = 4, 20_000, 12
METHODS: dict[str, Callable[[Ranking], Found]] = {
    "L-BFGS, 200": lambda ranking: ranking._by_lbfgs(ranking.start, 200, 20),
    "L-BFGS, 5,000": lambda ranking: ranking._by_lbfgs(ranking.start, 5000, 20),
    "Newton, 200": lambda ranking: ranking._by_newton(ranking.start, 200),
}


def made_up(bins: int, beta: float, gamma: float | None) -> Ranking:
    """Pairs of translations by several rules, each of which is in one bin of every feature."""
    random = np.random.default_rng(7)
    curve = np.log10((1 + np.arange(bins)) / bins)
    used = random.integers(0, bins, (PAIRS, 2, RULES, FEATURES))
    good = curve[used].sum(axis=(2, 3))
    swap = random.random(PAIRS) > 1 / (1 + np.exp(-(good[:, 0] - good[:, 1])))
    used[swap] = used[swap, ::-1]
    first, ids, values = [0], [], []
    for better, worse in used + bins * np.arange(FEATURES):
        here, count = np.unique(np.concatenate([better.ravel(), worse.ravel()]), return_counts=True)
        minus = np.searchsorted(here, worse.ravel())
        value = count - 2.0 * np.bincount(minus, minlength=len(here))
        ids.append(here[value != 0].astype(np.int32))
        values.append(value[value != 0])
        first.append(first[-1] + len(ids[-1]))
    rows = Differences(np.array(first), np.concatenate(ids), np.concatenate(values))
    groups = list(np.arange(FEATURES * bins).reshape(FEATURES, bins))
    return Ranking(
        rows,
        np.zeros(FEATURES * bins),
        [Ridge(0.1), Neighbours(groups=groups, strength=beta, gamma=gamma)],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.neighbours", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--bits", type=numbers(int), default=[4, 8], metavar="A,B")
    parser.add_argument("--beta", type=numbers(float), default=[1e3, 1e5, 1e7, 1e9], metavar="A,B")
    args = parser.parse_args(arguments)
    print(f"| bits | β | neighbours | {' | '.join(f'{name} | s' for name in METHODS)} |")
    print(f"|---:|---:|---|{'---:|' * 2 * len(METHODS)}")
    small = made_up(3, 1.0, None)
    for method in METHODS.values():
        method(small)  # compiles
    for bits in args.bits:
        for gamma in (None, 2.0):
            for beta in args.beta:
                ranking = made_up(2**bits, beta, gamma)
                found = []
                for method in METHODS.values():
                    begin = time.process_time()
                    found.append((method(ranking), time.process_time() - begin))
                best = min(one.value for one, _ in found)
                cells = " | ".join(f"{one.value - best:.1f} | {spent:.1f}" for one, spent in found)
                kind = "linear" if gamma is None else "monotone"
                print(f"| {bits} | {beta:,.0f} | {kind} | {cells} |", flush=True)
                figures: dict[str, object] = {"bits": bits, "beta": beta, "neighbours": kind}
                for name, (one, spent) in zip(METHODS, found, strict=True):
                    figures |= {f"{name}, above": one.value - best, f"{name}, cpu_s": spent}
                append_result("neighbours", figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
