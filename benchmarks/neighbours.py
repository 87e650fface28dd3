"""Convergence of Newton's method and L-BFGS for PRO with regularization of neighbouring bins.

    python -m benchmarks.neighbours
    python -m benchmarks.neighbours --curves

The pairs are synthetic: rules with a few features in bins, whose logarithms and noise determine the quality
of translations. For each number of bins and strength of regularization: the difference of the objective from
the best one, for L-BFGS after 200 and after 5,000 steps and for Newton's method, with CPU seconds.

With --curves, the curves that are learnt, with strengths per curve: turning points and the share of their
movement that goes against the larger part (the mean over features), the root of their mean squared distance
from the true curve, both with mean 0, and steps and CPU seconds of the optimiser. Of isotonic curves also how
far above the barrier method L-BFGS-B ends that learns steps with a bound of 0, and its seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize

from benchmarks.papers.experiment import numbers
from benchmarks.results import append_result
from hiero.bins.curves import Trend
from hiero.core.arrays import Floats
from hiero.learning.isotonic import Isotonic
from hiero.learning.newton import Found
from hiero.learning.pro import Differences, Ranking
from hiero.learning.regularize import Neighbours, Ridge

FEATURES, PAIRS, RULES = 4, 20_000, 12
METHODS: dict[str, Callable[[Ranking], Found]] = {
    "L-BFGS, 200": lambda ranking: ranking._by_lbfgs(ranking.start, 200, 20),
    "L-BFGS, 5,000": lambda ranking: ranking._by_lbfgs(ranking.start, 5000, 20),
    "Newton, 200": lambda ranking: ranking._by_newton(ranking.start, 200),
}


def true_curve(bins: int) -> Floats:
    return np.log10((1 + np.arange(bins)) / bins)


def made_up(bins: int, beta: float, gamma: float | None) -> Ranking:
    """Pairs of translations by several rules, each of which is in one bin of every feature."""
    random = np.random.default_rng(7)
    curve = true_curve(bins)
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


def by_steps(ranking: Ranking, bins: int) -> Found:
    """Find rising curves by L-BFGS-B, with the first weight and the steps of each curve as variables."""

    def weights(x: Floats) -> Floats:
        return np.cumsum(x.reshape(FEATURES, bins), axis=1).ravel()

    def objective(x: Floats) -> tuple[float, Floats]:
        value, gradient = ranking.value_and_gradient(weights(x))
        backwards = gradient.reshape(FEATURES, bins)[:, ::-1]
        return value, np.cumsum(backwards, axis=1)[:, ::-1].ravel()

    bounds = [(None, None), *[(0.0, None)] * (bins - 1)] * FEATURES
    options = {"maxiter": 5000, "maxfun": 50_000, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-8}
    start = np.zeros(FEATURES * bins)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return Found(weights(found.x), float(found.fun), int(found.nit), bool(found.success))


def curves(bits: Sequence[float], betas: Sequence[float]) -> None:
    """Print the table of --curves."""
    head = "| bits | neighbours | β per curve | turns | against | distance | steps | s | L-BFGS-B above | s |"
    print(f"{head}\n|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for number in bits:
        bins = int(2**number)
        pairs = made_up(bins, 1.0, None)
        groups = list(np.arange(FEATURES * bins).reshape(FEATURES, bins))
        for kind in ("linear", "monotone", "isotonic"):
            for beta in betas if kind == "linear" else [0.0, *betas] if kind == "isotonic" else betas:
                gamma = 2.0 if kind == "monotone" else None
                smooth = Neighbours(groups=groups, strength=beta, gamma=gamma, per="curve")
                ordered = [Isotonic(groups)] if kind == "isotonic" else []
                ranking = Ranking(pairs.rows, pairs.start, [Ridge(0.1), smooth, *ordered])
                begin = time.process_time()
                learnt, figures = ranking.minimum(200, 20)
                spent = time.process_time() - begin
                trends = [Trend.of(learnt[group]) for group in groups]
                off = [
                    learnt[g] - learnt[g].mean() - (c - c.mean()) for g in groups for c in [true_curve(bins)]
                ]
                cells = [f"{number:.0f}", kind, f"{beta:g}", f"{np.mean([one.turns for one in trends]):.0f}"]
                cells += [f"{100 * np.mean([one.against for one in trends]):.1f} %"]
                cells += [
                    f"{np.sqrt(np.mean(np.square(off))):.3f}",
                    f"{figures['iterations']:.0f}",
                    f"{spent:.1f}",
                ]
                if ordered:
                    begin = time.process_time()
                    other = by_steps(ranking, bins)
                    spent = time.process_time() - begin
                    cells += [f"{other.value - figures['objective']:.4f}", f"{spent:.1f}"]
                else:
                    cells += ["", ""]
                print(f"| {' | '.join(cells)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.neighbours", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--bits", type=numbers(int), default=[4, 8], metavar="A,B")
    parser.add_argument("--beta", type=numbers(float), metavar="A,B")
    parser.add_argument("--curves", action="store_true", help="the curves that are learnt")
    args = parser.parse_args(arguments)
    if args.curves:
        curves(args.bits, args.beta or [0.1, 1.0, 10.0])
        return 0
    args.beta = args.beta or [1e3, 1e5, 1e7, 1e9]
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
