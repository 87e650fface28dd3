"""Small learning problems: translations with features as dictionaries and in the format of the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.evaluation.bleu import References
from hiero.learning.candidates import Candidates
from hiero.learning.learner import Example
from tests.naive.learn import Sparse

FEATURES = 8
# Quarters, so that sums are exact in any order and ties occur.
QUARTERS = st.integers(-8, 8).map(lambda quarters: quarters / 4)
ROWS = st.dictionaries(st.integers(0, FEATURES - 1), QUARTERS.filter(bool), max_size=6)
WEIGHTS = st.lists(QUARTERS, min_size=FEATURES, max_size=FEATURES)
REFERENCE = list(range(1, 8))


@dataclass
class FixedGold:
    """A metric with given values, the same for every sentence."""

    gold: list[float]

    def scores(self, example: Example) -> np.ndarray:
        return np.array(self.gold, np.float64)

    def remember(self, example: Example, oracle: int) -> None:
        self.remembered = (example.number, oracle)

    def end_epoch(self) -> None:
        self.remembered = None

    def state(self) -> dict:
        return {}

    def restore(self, state: object) -> None:
        pass


def candidates(rows: list[Sparse], weight: np.ndarray | None = None) -> Candidates:
    """Translations in the given order, not sorted by score."""
    first = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    ids = np.array([feature for row in rows for feature in sorted(row)], np.int32)
    value = np.array([row[feature] for row in rows for feature in sorted(row)], np.float64)
    score = np.zeros(len(rows))
    if weight is not None:
        score = np.array([sum(weight[f] * v for f, v in row.items()) for row in rows])
    nothing = np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int32)
    return Candidates(*map(read_only, (first, ids, value, score, *nothing)))


def example(rows: list[Sparse], texts: list[list[int]] | None = None, number: int = 0) -> Example:
    """A sentence whose reference is REFERENCE; without texts, translation i shares N - i words with it."""
    if texts is None:
        texts = [[*REFERENCE[: max(0, 7 - i)], *[0] * min(7, i)] for i in range(len(rows))]
    statistics = References([[REFERENCE]]).statistics(0, texts)
    return Example(number, len(REFERENCE), candidates(rows), statistics, len(REFERENCE))


def sentences(least: int = 1, most: int = 9) -> st.SearchStrategy[tuple[list[Sparse], list[float]]]:
    """Rows of features, and a score by the metric for each, often the same."""
    gold = st.integers(0, 6).map(lambda eighths: eighths / 8)
    pairs = st.lists(st.tuples(ROWS, gold), min_size=least, max_size=most)
    return pairs.map(lambda both: ([row for row, _ in both], [score for _, score in both]))


def as_dict(weight: np.ndarray) -> Sparse:
    return {feature: value for feature, value in enumerate(weight.tolist()) if value != 0}


def as_vector(weight: Sparse) -> np.ndarray:
    return np.array([weight.get(feature, 0.0) for feature in range(FEATURES)])
