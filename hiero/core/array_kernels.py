# mypy: ignore-errors
"""Growth of arrays inside kernels."""

import numpy as np

from hiero.core.jit import kernel


@kernel
def longer_rows(array, size):
    """The same rows with room for ``size``."""
    larger = np.empty((size, array.shape[1]), array.dtype)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            larger[i, j] = array[i, j]
    return larger
