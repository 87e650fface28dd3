"""Figures 4, 5 and 6 of Clark, Dyer and Lavie (2014).

No weights of sums of features rank all hypotheses correctly; weights of bins of their local values do.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from hiero.bins.bins import FeatureBins
from hiero.bins.config import FeatureConfig
from hiero.bins.learn import Histogram, bins_of
from hiero.learning.pro import ProLearner
from hiero.learning.regularize import Neighbours
from tests.worlds.batch import candidate_lists

Hypothesis = list[tuple[str, float]]  # features of its partial hypotheses, with values

# The better hypothesis of each sentence, then the worse one.
FIGURES: dict[str, list[tuple[Hypothesis, Hypothesis]]] = {
    "figure 4, collinear": [
        ([("H", 1), ("H", 1)], [("H", 2), ("H", 2)]),
        ([("H", 3), ("H", 3)], [("H", 2), ("H", 2)]),
    ],
    "figure 5, collision": [([("H", 2), ("H", 2)], [("H", 4)])],
    "figure 6, a bent boundary": [
        ([("B", 1)], [("A", 1), ("A", 1)]),
        ([("A", 1), ("A", 1), ("B", 1)], []),
        ([("B", -4), ("B", 1), ("B", 1), ("B", 1)], [("A", 1)]),
        ([("B", -4), ("A", 1)], [("B", 1), ("B", 1)]),
    ],
}
GOOD, BAD = [4, 4, 4, 3, 2, 1, 4, 3, 2, 1], [4, 4, 1, 0, 0, 0, 4, 3, 2, 1]  # statistics of BLEU


def summed(hypothesis: Hypothesis) -> dict[str, float]:
    """The features of a linear model."""
    total: Counter[str] = Counter()
    for name, value in hypothesis:
        total[name] += value  # type: ignore[assignment]
    return {name: float(value) for name, value in total.items() if value}


def learnt_bins(figure: list[tuple[Hypothesis, Hypothesis]]) -> dict[str, FeatureBins]:
    local = [part for pair in figure for hypothesis in pair for part in hypothesis]
    found = {}
    for feature in sorted({name for name, _ in local}):
        histogram = Histogram()
        mine = np.array([value for name, value in local if name == feature], np.float32)
        value, count = np.unique(mine, return_counts=True)
        histogram.add(value, count.astype(np.int64))
        histogram.settle()
        found[feature] = bins_of(feature, FeatureConfig(bits=4, overlap=0, keep=False), histogram)
    return found


def binned(hypothesis: Hypothesis, bins: dict[str, FeatureBins]) -> dict[str, float]:
    """The features of local discretisation: numbers of partial hypotheses with a value in each bin."""
    total: Counter[str] = Counter()
    for name, value in hypothesis:
        place = int(np.searchsorted(bins[name].begin, np.float32(value), side="right")) - 1
        total[bins[name].names[place]] += 1
    return {name: float(count) for name, count in total.items()}


def trained(pairs: list[tuple[dict[str, float], dict[str, float]]], **more: object) -> dict[str, float]:
    """Train with PRO and return the report."""
    names = sorted({name for pair in pairs for features in pair for name in features})
    number = {name: f for f, name in enumerate(names)}
    lists = candidate_lists(
        [
            (
                s,
                [
                    ((h,), {number[n]: v for n, v in sorted(f.items())}, stats)
                    for h, (f, stats) in enumerate(both)
                ],
            )
            for s, (better, worse) in enumerate(pairs)
            for both in [[(better, GOOD), (worse, BAD)]]
        ]
    )
    learner = ProLearner(metric="lin", l2=1e-4, iterations=1000, **more)  # type: ignore[arg-type]
    _, happened = learner.fit(lists, np.zeros(max(len(names), 1)), 1, 1)
    assert happened["pairs"] > 0
    return happened


@pytest.mark.parametrize("figure", FIGURES)
def test_linear_features_do_not_separate(figure: str) -> None:
    happened = trained([(summed(good), summed(bad)) for good, bad in FIGURES[figure]])
    assert happened["errors_after"] > 0


@pytest.mark.parametrize("figure", FIGURES)
def test_bins_of_local_values_do(figure: str) -> None:
    bins = learnt_bins(FIGURES[figure])
    happened = trained([(binned(good, bins), binned(bad, bins)) for good, bad in FIGURES[figure]])
    assert happened["errors_after"] == 0


def test_global_bins_do_not_separate_a_collision() -> None:
    """All sums of 4 are in one bin."""
    pairs = FIGURES["figure 5, collision"]
    rows = [tuple({f"H_{sum(v for _, v in side)}": 1.0} for side in pair) for pair in pairs]
    assert trained(rows)["errors_after"] > 0  # type: ignore[arg-type]


def test_figure_4_is_not_learnt_with_a_linear_regulariser() -> None:
    """Weights on a line separate no more than a linear feature."""
    pairs = FIGURES["figure 4, collinear"]
    bins = learnt_bins(pairs)
    assert bins["H"].begin.tolist() == [-math.inf, 2, 3]
    rows = [(binned(good, bins), binned(bad, bins)) for good, bad in pairs]
    group = np.arange(3)  # names sort as bins do
    assert sorted(bins["H"].names) == bins["H"].names
    straight = trained(rows, terms=[Neighbours(groups=[group], strength=1e5)])
    assert straight["objective"] == pytest.approx(
        straight["pairs"] * math.log(2), rel=1e-2
    )  # as with no weights
    assert trained(rows, terms=[Neighbours(groups=[group], strength=1e-3)])["objective"] < 0.2
