# mypy: allow-untyped-calls
"""A cache of user-defined rule features, so that Python runs once a rule and not once a sentence."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import Symbols, read_only
from hiero.features.content_part_kernels import content_kernel, content_room_kernel
from hiero.features.index import FeatureIndex, FeatureRows, RuleFeature
from hiero.features.user import RuleBatch
from hiero.grammar.rules import Grammar, Rules, RuleTable, take_rows, take_rules

MAX_RULES = 1 << 18  # the cache is cleared when it has more


class RuleCache:
    """Values of rule features by the whole content of rules; safe to share between threads."""

    def __init__(self, features: Sequence[RuleFeature], symbols: Symbols) -> None:
        self.features = features
        self.symbols = symbols
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._index = FeatureIndex()
        self._rows = FeatureRows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float64))

    def rows(self, table: RuleTable | Grammar, chosen: npt.NDArray[np.int64]) -> FeatureRows:
        """The features of the chosen rules; ids in Symbols.names."""
        with self._lock:
            if len(self._index) > MAX_RULES:
                self._clear()
            num_known = len(self._index)
            contents = self._contents(table, chosen)
            # Numbers are consecutive, so new rows are appended to the old ones.
            new, place = np.unique(contents, return_index=True)
            fresh = chosen[place[new >= num_known]]
            if len(fresh):
                batch = RuleBatch(take_rules(table.rules, fresh), table.columns, self.symbols)
                answers = [feature.rows(batch) for feature in self.features]
                self._rows = concat_rows(self._rows, merge_rows(answers))
            return pick_rows(self._rows, contents)

    def _contents(self, table: RuleTable | Grammar, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Number the rules by content: equal rules have equal numbers."""
        rules = Rules._make(read_only(array) for array in table.rules)
        columns = read_only(np.array(table.columns, np.int32))
        room = np.zeros(1, np.int64)
        content_room_kernel(rules, chosen, room)
        contents = np.empty(len(chosen), np.int32)
        writable = self._index.reserve(len(chosen), int(room[0]))
        dense, sparse = rules.dense.view(np.int32), rules.sparse_value.view(np.int32)
        content_kernel(rules, chosen, columns, dense, sparse, writable, np.empty(room[0], np.int32), contents)
        return contents


def pick_rows(rows: FeatureRows, chosen: npt.NDArray[np.int32]) -> FeatureRows:
    first, place = take_rows(rows.first, chosen.astype(np.int64))
    return FeatureRows(first, rows.id[place], rows.value[place])


def concat_rows(above: FeatureRows, below: FeatureRows) -> FeatureRows:
    """Append the rows of ``below`` to those of ``above``."""
    return FeatureRows(
        np.concatenate([above.first, below.first[1:] + above.first[-1]]),
        np.concatenate([above.id, below.id]),
        np.concatenate([above.value, below.value]),
    )


def row_of_entry(first: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The row of each entry of a CSR array."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def merge_rows(parts: Sequence[FeatureRows]) -> FeatureRows:
    """Merge the parts row by row; ids ascend in a row, values of equal ids add up, zeros are dropped."""
    row = np.concatenate([row_of_entry(part.first) for part in parts])
    ids = np.concatenate([part.id for part in parts])
    value = np.concatenate([part.value for part in parts])
    order = np.lexsort((ids, row))  # stable, so that sums are reproducible
    row, ids, value = row[order], ids[order], value[order]
    if len(row):
        starts = np.flatnonzero(np.r_[True, (np.diff(row) != 0) | (np.diff(ids) != 0)])
        value = np.add.reduceat(value, starts)
        row, ids = row[starts][value != 0], ids[starts][value != 0]
        value = value[value != 0]
    first = np.zeros(len(parts[0].first), np.int64)
    np.cumsum(np.bincount(row, minlength=len(first) - 1), out=first[1:])
    return FeatureRows(first, ids, value)
