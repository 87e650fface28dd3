"""The features of whole derivations, added up from those of their rules and rule applications."""

import numpy as np

from hiero.core.jit import kernel


@kernel
def replay_kernel(first_step, part_of_step, first, local, value, num_local):
    """Add up rows of features for each of N derivations.

    first_step    int64 [N + 1]   steps of each derivation
    part_of_step  int32 [S, P]    rows that each step contributes, -1 for none
    first         int64 [R + 1]   rows of features
    local         int32           features of the rows, 0 ... num_local - 1
    value         float64

    Returns first int64 [N + 1], id int32 and value float64: ids ascend in a row, sums of 0 are left out.
    Summed step by step. O(entries * log).  Twin: tests/naive/candidates.py::replay.
    """
    num_derivations = first_step.shape[0] - 1
    total = np.zeros(num_local)
    met = np.zeros(num_local, np.bool_)
    touched = np.empty(num_local, np.int32)
    out_first = np.zeros(num_derivations + 1, np.int64)
    size = np.int64(1024)
    out_id = np.empty(size, np.int32)
    out_value = np.empty(size, np.float64)
    n = np.int64(0)
    for d in range(num_derivations):
        count = 0
        for s in range(first_step[d], first_step[d + 1]):
            for p in range(part_of_step.shape[1]):
                row = part_of_step[s, p]
                if row < 0:
                    continue
                for k in range(first[row], first[row + 1]):
                    f = local[k]
                    if not met[f]:
                        met[f] = True
                        touched[count] = f
                        count += 1
                    total[f] += value[k]
        if n + count > size:
            size = max(2 * size, n + count)
            more_id = np.empty(size, np.int32)
            more_value = np.empty(size, np.float64)
            # Item by item: an assignment of slices takes seconds to compile.
            for k in range(n):
                more_id[k] = out_id[k]
                more_value[k] = out_value[k]
            out_id, out_value = more_id, more_value
        order = np.sort(touched[:count])
        for k in range(count):
            f = order[k]
            if total[f] != 0.0:
                out_id[n] = f
                out_value[n] = total[f]
                n += 1
            total[f] = 0.0
            met[f] = False
        out_first[d + 1] = n
    return out_first, out_id[:n].copy(), out_value[:n].copy()
