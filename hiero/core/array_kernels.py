# mypy: ignore-errors
"""Growth of arrays inside kernels; distinct items."""

import numpy as np

from hiero.core.hash_kernels import hash_number, is_key_of, probe, table_size
from hiero.core.jit import kernel


@kernel
def longer(array, size):
    """A copy with room for ``size`` entries."""
    larger = np.empty(size, array.dtype)
    # Item by item: an assignment of slices takes seconds to compile.
    for i in range(array.shape[0]):
        larger[i] = array[i]
    return larger


@kernel
def longer_rows(array, size):
    """A copy with room for ``size`` rows."""
    larger = np.empty((size, array.shape[1]), array.dtype)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            larger[i, j] = array[i, j]
    return larger


@kernel
def grown(array, size):
    """The array, or if it has fewer than ``size`` entries a copy of at least twice the length."""
    return array if size <= array.shape[0] else longer(array, max(2 * array.shape[0], size))


@kernel
def with_free_row(array, used):
    """The array itself, or a copy with twice the rows if the first ``used`` fill it."""
    if used < array.shape[0]:
        return array
    larger = np.empty((2 * used, array.shape[1]), array.dtype)
    # As above.
    for i in range(used):
        for j in range(array.shape[1]):
            larger[i, j] = array[i, j]
    return larger


@kernel
def distinct_kernel(items):
    """The distinct items of int32 [N], in the order of first occurrence, and the place of each item in them.

    Returns int32 distinct [D] and place [N]. O(N).  Twin: tests/naive/tables.py::numbered.
    """
    slot, distinct = np.full(table_size(items.shape[0]), -1, np.int32), np.empty(items.shape[0], np.int32)
    place = np.empty(items.shape[0], np.int32)
    used = 0
    for i in range(items.shape[0]):
        at = probe(slot, hash_number(items[i]), is_key_of, distinct, items[i])
        if slot[at] < 0:
            slot[at] = used
            distinct[used] = items[i]
            used += 1
        place[i] = slot[at]
    return distinct[:used].copy(), place
