# mypy: ignore-errors
"""Replace real-valued features of rules by indicators of bins."""

import numpy as np

from hiero.core.jit import kernel, leaf


@leaf
def find_bin(begin, first, end, value):
    """The last of the bins first ... end - 1 that does not begin above a value; the first begins at -inf."""
    low, high = first, end
    while high - low > 1:
        middle = (low + high) // 2
        if begin[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@kernel
def bins_kernel(value, bins, first_sparse, sparse_name, sparse_value, out_first, out_name, out_value):
    """Append the bins of the values of rules to the sparse features of the rules.

    value         float32 [K, R]  a row for each feature in bins
    bins          BinTable        of K features
    first_sparse  int64 [R + 1]   sparse features, as in Rules
    sparse_name   int32
    sparse_value  float32
    out_first     int64 [R + 1]   written
    out_name      int32           written; room for the features of the rules, and for each rule and feature
                                  2 * overlap + 1 bins more, or all bins
    out_value     float32         written; same length

    Returns k * R + r for the first NaN, where writing stops; or -1.
    O(S + K R log N) for N bins and S sparse features.  Twin: tests/naive/bins.py::fired.
    """
    num_rules = value.shape[1]
    out_first[0] = 0
    n = np.int64(0)
    for r in range(num_rules):
        for i in range(first_sparse[r], first_sparse[r + 1]):
            out_name[n] = sparse_name[i]
            out_value[n] = sparse_value[i]
            n += 1
        for k in range(value.shape[0]):
            x = value[k, r]
            if np.isnan(x):
                return np.int64(k * num_rules + r)
            first, end = bins.first[k], bins.first[k + 1]
            here = find_bin(bins.begin, first, end, x)
            for b in range(max(first, here - bins.overlap[k]), min(end, here + bins.overlap[k] + 1)):
                out_name[n] = bins.name[b]
                out_value[n] = 1
                n += 1
        out_first[r + 1] = n
    return np.int64(-1)
