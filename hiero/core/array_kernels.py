# mypy: ignore-errors
"""Growth of arrays inside kernels."""

import numpy as np

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
