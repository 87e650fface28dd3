# mypy: allow-untyped-calls
"""Weights of shards made one: the mean, and the ℓ1/ℓ2 selection of Simianer, Riezler and Dyer (2012).

The shards' weights are the rows of a matrix of which only running sums over each column are kept, so that
memory is that of one shard, whatever their number. Shards are taken in their order: the sums, and with them
every bit of the result, do not depend on who finished first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hiero.features import FeatureIndex
from hiero.formats.vectors import read_vectors, write_vectors
from hiero.symbols import Symbols

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class ColumnSums:
    """Sums over the columns of a matrix seen row by row; a feature that a row lacks weighs 0 there."""

    def __init__(self) -> None:
        self.rows = 0
        self.share = 0.0  # the sum of what the rows count
        self.weighted, self.plain, self.size, self.square, self.largest, self.number = np.zeros((6, 0))

    def add(self, feature: Ints, weight: Floats, share: float = 1.0) -> None:
        """A row: its features, each once, and their weights. ``share``: how much it counts in the mean."""
        self._room(int(feature.max(initial=-1)) + 1)
        self.rows += 1
        self.share += share
        self.weighted[feature] += share * weight
        self.plain[feature] += weight
        self.size[feature] += np.abs(weight)
        self.square[feature] += weight * weight
        self.largest[feature] = np.maximum(self.largest[feature], np.abs(weight))
        self.number[feature] += weight != 0

    def _room(self, size: int) -> None:
        missing = size - len(self.plain)
        if missing > 0:
            more = np.zeros(max(missing, len(self.plain) // 2))
            for name in ("weighted", "plain", "size", "square", "largest", "number"):
                setattr(self, name, np.concatenate([getattr(self, name), more]))

    def mean(self) -> Floats:
        """The mean weight of each feature over all rows, those that lack it included."""
        return self.weighted / self.share if self.share else self.weighted

    def norm(self, name: str) -> Floats:
        """A norm of each column."""
        if name == "mean":
            return np.abs(self.mean())
        norms = {"l2": np.sqrt(self.square), "l1": self.size, "linf": self.largest, "l0": self.number}
        return norms[name]


def strongest(norm: Floats, count: int) -> Ints:
    """The features with the largest norms, in the order of their numbers; of equal ones, the first.

    None of norm 0: a feature that no shard has a weight for is not in the model. ``count`` 0: all others.
    """
    present = np.flatnonzero(norm > 0)
    if count and count < len(present):
        order = np.argsort(-norm[present], kind="stable")[:count]
        present = np.sort(present[order])
    return present


def mix(
    paths: Sequence[str],
    shares: Sequence[float],
    out: str,
    *,
    select: int = 0,
    norm: str = "l2",
    values_of: str = "weight",
) -> tuple[int, int]:
    """Write the mean of the weights in some files, of the selected features.

    Returns how many features any of them has a weight for, and how many were kept.
    """
    symbols, index, columns = Symbols(), FeatureIndex(), ColumnSums()
    for path, share in zip(paths, shares, strict=True):
        ids, values = read_vectors(path, symbols, index)
        columns.add(ids.astype(np.int64), values[values_of], share)
    chosen = strongest(columns.norm(norm), select)
    write_vectors(out, symbols, index, chosen, weight=columns.mean()[chosen])
    return int(np.count_nonzero(columns.number)), len(chosen)


def weighted_sum(paths: Sequence[str], factors: Sequence[float], out: str) -> int:
    """Write a sum of the weights in some files, each times a factor; how many features it has."""
    symbols, index, total = Symbols(), FeatureIndex(), np.zeros(0)
    for path, factor in zip(paths, factors, strict=True):
        ids, values = read_vectors(path, symbols, index)
        total = np.concatenate([total, np.zeros(len(index) - len(total))])
        total[ids] += factor * values["weight"]
    chosen = np.flatnonzero(total)
    write_vectors(out, symbols, index, chosen, weight=total[chosen])
    return len(chosen)
