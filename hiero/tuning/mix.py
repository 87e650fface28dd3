# mypy: allow-untyped-calls
"""Mixing of the shards' weights: the mean, and the ℓ1/ℓ2 selection of Simianer, Riezler and Dyer (2012).

The shards' weights are the rows of a matrix of which only running sums over each column are kept, so that
memory does not grow with the number of shards. Shards are added in a fixed order, so that the result does not
depend on the order in which they finish.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.tuning.vectors import read_vectors, write_vectors

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class ColumnSums:
    """Sums over the columns of a matrix that is added row by row; features missing in a row are 0."""

    def __init__(self) -> None:
        self.rows = 0
        self.share = 0.0  # sum of the shares of the rows
        self.weighted, self.plain, self.size, self.square, self.largest, self.number = np.zeros((6, 0))

    def add(self, feature: Ints, weight: Floats, share: float = 1.0) -> None:
        """Add a row: distinct features and their weights. ``share`` is the weight of the row in the mean."""
        self._grow(int(feature.max(initial=-1)) + 1)
        self.rows += 1
        self.share += share
        self.weighted[feature] += share * weight
        self.plain[feature] += weight
        self.size[feature] += np.abs(weight)
        self.square[feature] += weight * weight
        self.largest[feature] = np.maximum(self.largest[feature], np.abs(weight))
        self.number[feature] += weight != 0

    def _grow(self, size: int) -> None:
        missing = size - len(self.plain)
        if missing > 0:
            more = np.zeros(max(missing, len(self.plain) // 2))
            for name in ("weighted", "plain", "size", "square", "largest", "number"):
                setattr(self, name, np.concatenate([getattr(self, name), more]))

    def mean(self) -> Floats:
        """The mean weight of each feature over all rows."""
        return self.weighted / self.share if self.share else self.weighted

    def norm(self, name: str) -> Floats:
        """A norm of each column."""
        if name == "mean":
            return np.abs(self.mean())
        norms = {"l2": np.sqrt(self.square), "l1": self.size, "linf": self.largest, "l0": self.number}
        return norms[name]


def strongest(norm: Floats, count: int) -> Ints:
    """The ``count`` features with the largest norms (0: all), in the order of their numbers.

    Features of norm 0 are left out; of equal norms, the first feature is selected.
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
    """Write the mean of the weights in some files, for the selected features.

    Return the number of features with a weight in any of the files, and the number selected.
    """
    symbols, index, columns = Symbols(), FeatureIndex(), ColumnSums()
    for path, share in zip(paths, shares, strict=True):
        ids, values = read_vectors(path, symbols, index)
        columns.add(ids.astype(np.int64), values[values_of], share)
    chosen = strongest(columns.norm(norm), select)
    write_vectors(out, symbols, index, chosen, weight=columns.mean()[chosen])
    return int(np.count_nonzero(columns.number)), len(chosen)


def weighted_sum(paths: Sequence[str], factors: Sequence[float], out: str) -> int:
    """Write the sum of the weights in some files, each times a factor; return the number of features."""
    symbols, index, total = Symbols(), FeatureIndex(), np.zeros(0)
    for path, factor in zip(paths, factors, strict=True):
        ids, values = read_vectors(path, symbols, index)
        total = np.concatenate([total, np.zeros(len(index) - len(total))])
        total[ids] += factor * values["weight"]
    chosen = np.flatnonzero(total)
    write_vectors(out, symbols, index, chosen, weight=total[chosen])
    return len(chosen)
