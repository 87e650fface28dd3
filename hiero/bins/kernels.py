# mypy: ignore-errors
"""Replace real-valued features of rules by indicators of bins."""

import numpy as np

from hiero.core.jit import kernel, leaf

FAR = np.int64(2**62)


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


@kernel
def deviations_kernel(below, ideal, number, out_least):
    """For the first n values, each n: the least sum of the distances of populations from the ideal one.

    below      int64 [N + 1]  population of the first n values
    ideal      int64          population of a part
    number     int64          parts of the first n values, none of them empty
    out_least  int64 [N + 1]  written; FAR for fewer values than parts

    A part of values k ... n - 1 costs |below[n] - below[k] - ideal|. Of those at least as large as the ideal
    one, that with the least best[k] - below[k] is best, of the others that with the least best[k] + below[k].
    Where the others begin only grows with n: these are a running and a sliding minimum. O(N number).
    Twin: tests/naive/bins.py::least_deviations.
    """
    num_values = below.shape[0] - 1
    best = np.full(num_values + 1, FAR, np.int64)
    best[0] = 0
    window = np.empty(num_values + 1, np.int64)  # of smaller parts: k ascending, best[k] + below[k], too
    for j in range(1, number + 1):
        out_least[:] = FAR
        first, last = np.int64(0), np.int64(0)
        split = j - 1  # of the k below are parts at least as large as the ideal one
        larger = FAR
        for n in range(j, num_values + 1):
            value = best[n - 1] + below[n - 1]
            while last > first and best[window[last - 1]] + below[window[last - 1]] >= value:
                last -= 1
            window[last] = n - 1
            last += 1
            while split < n and below[n] - below[split] >= ideal:
                larger = min(larger, best[split] - below[split])
                split += 1
            while last > first and window[first] < split:
                first += 1
            if larger < FAR // 2:
                out_least[n] = larger + below[n] - ideal
            if last > first and best[window[first]] < FAR:
                k = window[first]
                out_least[n] = min(out_least[n], best[k] + below[k] + ideal - below[n])
        best[:] = out_least
