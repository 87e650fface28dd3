"""The weights of a learner: a vector that grows with the features and is shared with the decoder."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import Symbols, WordTable, read_only, word_table
from hiero.features.index import NAME, FeatureIndex, FeatureTable
from hiero.features.weights import Weights

Floats = npt.NDArray[np.float64]


class WeightVector:
    """Weights by the numbers of a ``FeatureIndex``, which may change between sentences.

    A ``RuleScorer`` reads them without a copy; make a new one after each change, and after ``grow``.
    ``value`` may be longer than the number of features, with 0 in unused entries.
    """

    def __init__(self, symbols: Symbols, index: FeatureIndex | None = None) -> None:
        self.symbols = symbols
        self.index = FeatureIndex() if index is None else index
        self.value: Floats = np.zeros(1024)
        self._known = 0
        self._of_name = np.zeros(0, np.int32)  # feature of each name, -1 for none
        self.grow()

    def grow(self) -> None:
        """Make room for all features of the index."""
        known, size = self._known, len(self.index)
        if size > len(self.value):
            self.value = np.concatenate([self.value, np.zeros(max(size, 2 * len(self.value)))])
        rows = self.index.table.key[known:size]
        named = np.flatnonzero(rows[:, 0] == NAME)
        self._name_room()
        self._of_name[rows[named, 1]] = known + named
        self._known = size

    def _name_room(self) -> None:
        missing = len(self.symbols.names) - len(self._of_name)
        if missing > 0:
            self._of_name = np.concatenate([self._of_name, np.full(missing, -1, np.int32)])

    def __len__(self) -> int:
        return len(self.index)

    # ---- interface for scoring

    has_shared_names = False

    def template_weights(self) -> tuple[FeatureTable, Floats]:
        return self.index.table, read_only(self.value)

    def name_weights(self, start: int = 0) -> Floats:
        self._name_room()
        feature = self._of_name[start:]
        return np.where(feature >= 0, self.value[feature], 0.0)

    def shared_weights(self) -> tuple[WordTable, Floats]:
        return word_table([]), read_only(np.empty(0))

    # ---- conversion

    def as_weights(self) -> Weights:
        """Return a copy without zeros."""
        weights = Weights(self.symbols, index=self.index)
        weights.assign(self.value[: len(self.index)])
        return weights
