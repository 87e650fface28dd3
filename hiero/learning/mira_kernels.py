"""One step of 1-best MIRA."""

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.learning.rank_kernels import shift_kernel


@leaf
def _difference(first, feature, value, better, worse, out_feature, out_value):
    """The features of one row less those of another, none 0; returns how many."""
    i, i_end = first[better], first[better + 1]
    j, j_end = first[worse], first[worse + 1]
    count = 0
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and feature[i] < feature[j]):
            which, here = feature[i], value[i]
            i += 1
        elif i == i_end or feature[j] < feature[i]:
            which, here = feature[j], -value[j]
            j += 1
        else:
            which, here = feature[i], value[i] - value[j]
            i += 1
            j += 1
        if here != 0:
            out_feature[count] = which
            out_value[count] = here
            count += 1
    return count


@kernel
def mira_kernel(rows, oracle, prediction, target_margin, most, weight, out_total):
    """Move the weights by the least that makes the oracle lead the prediction by the target margin.

    PA-I of Crammer et al. (2006), as in Algorithm 1 of Eidelman (2012). Returns whether all weights are
    finite.

    rows           FeatureRows  of N translations
    oracle         int          to learn towards
    prediction     int          to learn away from
    target_margin  float        how much better the oracle is
    most           float        C, the longest step
    weight         float64 [.]  written
    out_total      float64 [3]  added to: loss, 1 if there was one, 1 if the weights moved

    O(features of the two).  Twin: tests/naive/learn.py::mira.
    """
    room = rows.first[oracle + 1] - rows.first[oracle] + rows.first[prediction + 1] - rows.first[prediction]
    feature, value = np.empty(room, np.int32), np.empty(room)
    count = _difference(rows.first, rows.id, rows.value, oracle, prediction, feature, value)
    margin, square = 0.0, 0.0
    for m in range(count):
        margin += weight[feature[m]] * value[m]
        square += value[m] * value[m]
    loss = target_margin - margin
    if not np.isfinite(loss):
        return False
    if loss <= 0:
        return True
    out_total[0] += loss
    out_total[1] += 1
    if square == 0:
        return True
    out_total[2] += 1
    return shift_kernel(feature[:count], value[:count], min(most, loss / square), weight)
