"""Features of rules, edges or derivations, one row each: pick, merge, number and weigh rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hiero.core.array_kernels import distinct_kernel
from hiero.core.arrays import (
    Floats,
    Ids,
    Ints,
    joined_offsets,
    offsets_by_row,
    read_only,
    row_of_entry,
    take_rows,
)
from hiero.core.symbols import Vocabulary
from hiero.features.index_kernels import NAME

if TYPE_CHECKING:
    from hiero.features.index import FeatureIndex


class FeatureRows(NamedTuple):
    """The features of N things, row by row.

    first  int64 [N + 1]  row i is first[i]:first[i + 1]
    id     int32          in Symbols.names, or of a FeatureIndex where that is said
    value  float64
    """

    first: Ints
    id: Ids
    value: Floats


def pick_feature_rows(rows: FeatureRows, chosen: Ids) -> FeatureRows:
    """The chosen rows, in this order."""
    first, place = take_rows(rows.first, chosen.astype(np.int64))
    return FeatureRows(first, rows.id[place], rows.value[place])


def with_empty_row(rows: FeatureRows) -> FeatureRows:
    """The rows and, after them, one without features."""
    return rows._replace(first=np.append(rows.first, rows.first[-1]))


def concat_feature_rows(parts: Sequence[FeatureRows]) -> FeatureRows:
    """The rows of all parts, one part after the other."""
    first, ids, value = zip(*parts, strict=True)
    return FeatureRows(joined_offsets(first), np.concatenate(ids), np.concatenate(value))


def merge_feature_rows(parts: Sequence[FeatureRows]) -> FeatureRows:
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
    return FeatureRows(offsets_by_row(row, len(parts[0].first) - 1), ids, value)


def number_feature_rows(rows: FeatureRows, index: FeatureIndex, names: Vocabulary) -> FeatureRows:
    """Convert rows from ids in ``names`` to those of an index; new ones are numbered in the order of names.

    Not in the order of ids, which depends on threads.
    """
    ids = index.find_names(rows.id)
    if ids.min(initial=0) < 0:
        intern_names(rows.id, index, names)
        ids = index.find_names(rows.id)
    return FeatureRows(rows.first, ids, rows.value)


def intern_names(ids: Ids, index: FeatureIndex, names: Vocabulary) -> None:
    """Number features with these names, the new ones in the order of names."""
    distinct, _ = distinct_kernel(read_only(ids))
    index.intern_all([(NAME, name, 0) for name in sorted(distinct.tolist(), key=names.entry)])


def feature_row_scores(rows: FeatureRows, weight: Floats) -> Floats:
    """The dot product of each row with a vector of weights."""
    terms = rows.value * weight[rows.id]
    scores = np.bincount(row_of_entry(rows.first), weights=terms, minlength=len(rows.first) - 1)
    return scores.astype(np.float64)  # bincount of no entries returns integers
