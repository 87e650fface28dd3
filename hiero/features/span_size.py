"""Span size features: the numbers of source words that a rule and each of its gaps cover.

    SpanSize_X_3      a rule for X covers three words
    GapSize_X1_6-7    the first gap, an X, covers six or seven words

Gaps are distinguished by label and position on the source side.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from hiero.core.arrays import Ids, offsets_of, read_only
from hiero.core.records import MAX_GAPS
from hiero.core.symbols import Symbols
from hiero.features.index import EdgeBatch
from hiero.features.rows import FeatureRows
from hiero.features.template_kernels import span_sizes_kernel
from hiero.grammar.rules import Rules

BUCKETS = ("0", "1", "2", "3", "4", "5", "6-7", "8-10", "11-15", "16+")
BUCKET_OF_SIZE = (0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 7, 8, 8, 8, 8, 8, 9)


class SpanSize:
    """The ``EdgeFeature`` called ``span_size``."""

    name = "span_size"
    prefixes = ("SpanSize_", "GapSize_")

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._bucket = read_only(np.array(BUCKET_OF_SIZE, np.int64))
        self._ids = read_only(np.empty((0, 1 + MAX_GAPS, len(BUCKETS)), np.int32))
        self._lock = threading.Lock()

    def names(self) -> Sequence[str]:
        """The names for all labels known so far, without size 0, which does not occur."""
        return [name for names in _names(self.symbols.labels.entries()) for name in names[1:]]

    def rows(self, batch: EdgeBatch, rules: Rules) -> FeatureRows:
        """The sizes for each rule application."""
        ids = np.empty((len(batch.rule), 1 + MAX_GAPS), np.int32)
        batch = EdgeBatch._make(read_only(array) for array in batch)
        rules = Rules._make(read_only(array) for array in rules)
        span_sizes_kernel(batch, rules, self._bucket, self._name_ids(), ids)
        present = ids >= 0
        first = offsets_of(present.sum(axis=1))
        return FeatureRows(first, ids[present], np.ones(int(first[-1])))

    def _name_ids(self) -> Ids:
        """The ids of all names, by label, extended when there are new labels."""
        with self._lock:
            fresh = self.symbols.labels.entries(len(self._ids))
            if fresh:
                flat = (name.encode() for names in _names(fresh) for name in names)
                ids = self.symbols.names.intern_all(flat)
                table = ids.reshape(-1, *self._ids.shape[1:])
                self._ids = read_only(np.concatenate([self._ids, table]))
            return self._ids


def _names(labels: Sequence[bytes]) -> list[list[str]]:
    """For each label the names, one per bucket, for the span of a rule and for each of its gaps."""
    stems: list[str] = []
    for label in (entry.decode(errors="replace") for entry in labels):
        stems += [f"SpanSize_{label}_", *(f"GapSize_{label}{gap}_" for gap in range(1, 1 + MAX_GAPS))]
    return [[stem + bucket for bucket in BUCKETS] for stem in stems]
