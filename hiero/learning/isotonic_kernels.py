# mypy: ignore-errors
"""Nearest monotone sequences."""

import numpy as np

from hiero.core.jit import kernel


@kernel
def pav_kernel(value, weight, out):
    """The sequence that never falls and is nearest to another: the sum of weight * (out - value)² is least.

    Adjacent values in the wrong order are pooled: replaced by their mean (Barlow et al. 1972).

    value   float64 [N]
    weight  float64 [N]  positive
    out     float64 [N]  written; equal within a pool

    O(N).  Twin: tests/naive/isotonic.py::nearest.
    """
    number = value.shape[0]
    mean, mass = np.empty(number), np.empty(number)
    end = np.empty(number, np.int64)
    pools = 0
    for i in range(number):
        here, heavy = value[i], weight[i]
        while pools > 0 and mean[pools - 1] >= here:
            pools -= 1
            both = mass[pools] + heavy
            here = (mean[pools] * mass[pools] + here * heavy) / both
            heavy = both
        mean[pools], mass[pools], end[pools] = here, heavy, i + 1
        pools += 1
    first = 0
    for p in range(pools):
        for i in range(first, end[p]):
            out[i] = mean[p]
        first = end[p]
