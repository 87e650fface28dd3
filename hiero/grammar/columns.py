# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Features of rules as dense columns and sparse rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiero.core.jit import kernel
from hiero.core.symbols import read_only

MAX_COLUMNS = 64


def choose_columns(
    num_rules: int, name: npt.NDArray[np.int32], limit: int = MAX_COLUMNS
) -> npt.NDArray[np.int32]:
    """The names that more than half of the rules have: at most the ``limit`` most frequent, by first use."""
    if not len(name):
        return np.zeros(0, np.int32)
    names, first, count = np.unique(name, return_index=True, return_counts=True)
    frequent = np.flatnonzero(count * 2 > num_rules)
    frequent = frequent[np.lexsort((first[frequent], -count[frequent]))[:limit]]
    return names[frequent[np.argsort(first[frequent])]].astype(np.int32)


def split_features(
    first_feature: npt.NDArray[np.int64],
    name: npt.NDArray[np.int32],
    value: npt.NDArray[np.float32],
    columns: npt.NDArray[np.int32] | None,
) -> tuple[
    tuple[int, ...],
    npt.NDArray[np.float32],
    npt.NDArray[np.int64],
    npt.NDArray[np.int32],
    npt.NDArray[np.float32],
]:
    """Features of rules as (columns, dense, first_sparse, sparse_name, sparse_value), as in ``Rules``.

    Feature k of rule r is at first_feature[r] + k; if a rule has a name twice, the last value counts.
    """
    num_rules = len(first_feature) - 1
    if columns is None:
        columns = choose_columns(num_rules, name)
    num_names = int(max(name.max(initial=-1), columns.max(initial=-1))) + 1
    column_of = np.full(num_names, -1, np.int64)
    column_of[columns] = np.arange(len(columns))
    num_sparse = int(np.count_nonzero(column_of[name] < 0)) if len(name) else 0
    dense = np.zeros((num_rules, len(columns)), np.float32)
    first_sparse = np.zeros(num_rules + 1, np.int64)
    sparse_name, sparse_value = np.empty(num_sparse, np.int32), np.empty(num_sparse, np.float32)
    place_of = np.full(num_names, -1, np.int64)
    split_features_kernel(
        read_only(first_feature),
        read_only(name),
        read_only(value),
        column_of,
        place_of,
        dense,
        first_sparse,
        sparse_name,
        sparse_value,
    )
    used = first_sparse[-1]
    return (
        tuple(columns.tolist()),
        read_only(dense),
        read_only(first_sparse),
        read_only(sparse_name[:used]),
        read_only(sparse_value[:used]),
    )


@kernel
def split_features_kernel(
    first_feature,
    name,
    value,
    column_of,
    place_of,
    out_dense,
    out_first_sparse,
    out_sparse_name,
    out_sparse_value,
):
    """Write features as dense rows and sparse rows.

    first_feature     int64 [R + 1]  features of rule r: name[first_feature[r]:first_feature[r + 1]]
    name              int32 [F]
    value             float32 [F]
    column_of         int64 [N]      dense column of a name, or -1
    place_of          int64 [N]      scratch, all -1: position of a name of the current rule in the output
    out_dense         float32 [R, D] all 0; written
    out_first_sparse  int64 [R + 1]  written
    out_sparse_name   int32 [S]      written
    out_sparse_value  float32 [S]    written

    O(F).  Twin: tests/naive/grammar.py::split_features.
    """
    used = 0
    for r in range(first_feature.shape[0] - 1):
        out_first_sparse[r] = used
        for k in range(first_feature[r], first_feature[r + 1]):
            column = column_of[name[k]]
            if column >= 0:
                out_dense[r, column] = value[k]
            elif place_of[name[k]] >= out_first_sparse[r]:
                out_sparse_value[place_of[name[k]]] = value[k]
            else:
                place_of[name[k]] = used
                out_sparse_name[used] = name[k]
                out_sparse_value[used] = value[k]
                used += 1
    out_first_sparse[first_feature.shape[0] - 1] = used
