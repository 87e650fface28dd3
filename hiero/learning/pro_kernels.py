# mypy: ignore-errors
"""Pairwise ranking over accumulated k-best lists: differences of pairs, and the loss on all of them."""

import numpy as np

from hiero.core.jit import kernel, leaf


@leaf
def _write_difference(first, ids, values, better, worse, at, out_id, out_value):
    """Write the features of ``better`` less those of ``worse`` if there is room; return where they end."""
    i, last_i = first[better], first[better + 1]
    j, last_j = first[worse], first[worse + 1]
    while i < last_i or j < last_j:
        if j >= last_j or (i < last_i and ids[i] < ids[j]):
            feature, value = ids[i], values[i]
            i += 1
        elif i >= last_i or ids[j] < ids[i]:
            feature, value = ids[j], -values[j]
            j += 1
        else:
            feature, value = ids[i], values[i] - values[j]
            i += 1
            j += 1
        if value != 0.0:
            if at < out_id.shape[0]:
                out_id[at] = feature
                out_value[at] = value
            at += 1
    return at


@kernel
def pro_differences_kernel(lists, pair, out_first, out_id, out_value):
    """The features of the better candidate of each pair of PRO less those of the worse one.

    lists      Lists
    pair       int64 [P, 2]   candidates
    out_first  int64 [P + 1]  always written: the last entry is the room needed
    out_id     int32          written as far as it has room
    out_value  float64        likewise; no zeros

    O(features of the pairs).  Twin: tests/naive/batch.py::difference.
    """
    out_first[0] = 0
    for p in range(pair.shape[0]):
        out_first[p + 1] = _write_difference(
            lists.first, lists.id, lists.value, pair[p, 0], pair[p, 1], out_first[p], out_id, out_value
        )


@leaf
def _product(first, ids, values, vector, p):
    """The difference of pair p times a vector."""
    product = 0.0
    for i in range(first[p], first[p + 1]):
        product += values[i] * vector[ids[i]]
    return product


@kernel
def logistic_kernel(first, ids, values, weight, out_gradient):
    """The logistic loss of P pairs, log(1 + exp(-weight * difference)) summed, and its gradient.

    Returns the loss, and the number of pairs in the wrong order.

    first         int64 [P + 1]  the difference of pair p is first[p]:first[p + 1] of ids and values
    ids           int32
    values        float64
    weight        float64 [A]
    out_gradient  float64 [A]    written

    O(features of the pairs).  Twin: tests/naive/batch.py::logistic_loss.
    """
    for a in range(out_gradient.shape[0]):
        out_gradient[a] = 0.0
    loss = 0.0
    errors = 0
    for p in range(first.shape[0] - 1):
        margin = _product(first, ids, values, weight, p)
        # exp of a negative number: no overflow.
        small = np.exp(-abs(margin))
        loss += np.log1p(small) + max(-margin, 0.0)
        errors += margin <= 0.0
        slope = -(small if margin > 0.0 else 1.0) / (1.0 + small)
        for i in range(first[p], first[p + 1]):
            out_gradient[ids[i]] += slope * values[i]
    return loss, errors


@kernel
def pro_curvature_kernel(first, ids, values, weight, out_pair, out_diagonal):
    """The second derivative of PRO's loss, the logistic one, of each pair by its margin: the matrix of second
    derivatives by the weights is differences' * diag(out_pair) * differences.

    first         int64 [P + 1]  as for ``logistic_kernel``
    ids           int32
    values        float64
    weight        float64 [A]
    out_pair      float64 [P]    written
    out_diagonal  float64 [A]    written: the diagonal of the matrix

    O(features of the pairs).  Twin: tests/naive/batch.py::logistic_curvature.
    """
    for a in range(out_diagonal.shape[0]):
        out_diagonal[a] = 0.0
    for p in range(first.shape[0] - 1):
        margin = _product(first, ids, values, weight, p)
        small = np.exp(-abs(margin))
        bend = small / ((1.0 + small) * (1.0 + small))
        out_pair[p] = bend
        for i in range(first[p], first[p + 1]):
            out_diagonal[ids[i]] += bend * values[i] * values[i]


@kernel
def curved_kernel(first, ids, values, pair, vector, out):
    """The matrix of ``pro_curvature_kernel`` times a vector.

    pair    float64 [P]  its out_pair
    vector  float64 [A]
    out     float64 [A]  written

    O(features of the pairs).  Twin: tests/naive/batch.py::logistic_curvature.
    """
    for a in range(out.shape[0]):
        out[a] = 0.0
    for p in range(first.shape[0] - 1):
        product = pair[p] * _product(first, ids, values, vector, p)
        for i in range(first[p], first[p + 1]):
            out[ids[i]] += product * values[i]
