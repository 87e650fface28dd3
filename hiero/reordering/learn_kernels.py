# mypy: ignore-errors
"""Train orientation classifiers: multinomial logistic regression over sparse binary features.

With the weights w_k of class k, features phi_i and class y_i of example i, and the variance s of the prior,
the primal problem is to minimise

    P(w) = 1 / (2 s) sum_k |w_k|^2 - sum_i log p(y_i | phi_i),    p(k | phi) ~ exp(w_k phi)

and the dual one to minimise, over distributions alpha_i on the classes,

    D(alpha) = 1 / (2 s) sum_k |w_k(alpha)|^2 + sum_ik alpha_ik log alpha_ik
    w_k(alpha) = s sum_i ([k = y_i] - alpha_ik) phi_i

P(w) + D(alpha) is never negative, and 0 at the optimum, where w = w(alpha) and alpha_i = p(. | phi_i)
(Alrajeh and Niranjan 2014, eq. 6 to 14). Three classes; loops over them are unrolled for speed: a row of
weights is three adjacent numbers.
"""

import math

import numpy as np

from hiero.core.hash_kernels import GOLDEN, HALF, splitmix
from hiero.core.jit import kernel, leaf

SMALL = 1e-30  # smallest share of a class: the logarithm of 0 is not defined
LEAST_SCALE = 1e-9

SCALE, STEPS = 0, 1  # entries of ``memory`` in ``sgd_kernel``
KEPT, CHANGE, UPDATES, HALVED, STUCK = 0, 1, 2, 3, 4  # entries of ``report`` in ``dual_kernel``


@leaf
def draw(state, below):
    """(The next state, a number 0 ... below - 1) by SplitMix64. ``below`` is less than 2 ** 32."""
    state += GOLDEN
    return state, np.int64(((splitmix(state) >> HALF) * np.uint64(below)) >> HALF)


@kernel
def shuffle_kernel(active, seed, block, pool, out_order):
    """Put examples in a random order with memory locality: blocks at random, then pools shuffled.

    active     int32 [A]  ascending
    seed       uint64
    block      examples of a block, which are neighbours in memory
    pool       examples of a pool, of blocks from anywhere
    out_order  int32 [A]  written

    O(A).  Twin: tests/naive/reorder.py::shuffle.
    """
    state = seed
    size = active.shape[0]
    num_blocks = (size + block - 1) // block
    which = np.arange(num_blocks)
    for b in range(num_blocks - 1, 0, -1):
        state, other = draw(state, b + 1)
        which[b], which[other] = which[other], which[b]
    used = np.int64(0)
    for b in range(num_blocks):
        begin = which[b] * block
        for n in range(begin, min(begin + block, size)):
            out_order[used] = active[n]
            used += 1
    for begin in range(0, size, pool):
        for n in range(min(pool, size - begin) - 1, 0, -1):
            state, other = draw(state, n + 1)
            here = out_order[begin + n]
            out_order[begin + n] = out_order[begin + other]
            out_order[begin + other] = here


@leaf
def class_scores(weight, feature, begin, end):
    """w_k phi for the three classes; a row of weights is contiguous."""
    a, b, c = 0.0, 0.0, 0.0
    for n in range(begin, end):
        f = feature[n]
        a += weight[f, 0]
        b += weight[f, 1]
        c += weight[f, 2]
    return a, b, c


@leaf
def add_to_weights(weight, feature, begin, end, a, b, c):
    for n in range(begin, end):
        f = feature[n]
        weight[f, 0] += a
        weight[f, 1] += b
        weight[f, 2] += c


@leaf
def log_sum(a, b, c):
    """log(exp a + exp b + exp c)."""
    most = max(a, b, c)
    return most + math.log(math.exp(a - most) + math.exp(b - most) + math.exp(c - most))


@kernel
def log_probs_kernel(first, feature, weight, begin, end, out):
    """Natural logarithms of the class probabilities of examples begin ... end - 1.

    first, feature  of Rows
    weight          float64 [F, 3]
    out             float64 [end - begin, 3]  written

    O(active features).  Twin: tests/naive/reorder.py::log_probs.
    """
    for n in range(begin, end):
        a, b, c = class_scores(weight, feature, first[n], first[n + 1])
        total = log_sum(a, b, c)
        out[n - begin, 0] = a - total
        out[n - begin, 1] = b - total
        out[n - begin, 2] = c - total


@kernel
def sgd_kernel(first, feature, label, order, rate, cooling, decay, memory, weight):
    """One pass of stochastic gradient descent for an orientation classifier, on P / N (eq. 8).

    A step costs O(features of the example).

    first, feature, label  of Rows
    order                  int32 [A]      examples, one step each
    rate, cooling          the first step's rate; that of step t is rate / (1 + cooling * t)
    decay                  1 / (variance * N)
    memory                 float64 [2]    written; the weights are memory[0] * weight; steps so far
    weight                 float64 [F, 3] written

    All weights shrink in every step, at no cost because their common factor is stored apart.
    O(active features of ``order``).  Twin: tests/naive/reorder.py::sgd.
    """
    scale, steps = memory[SCALE], memory[STEPS]
    for n in range(order.shape[0]):
        i = order[n]
        begin, end = first[i], first[i + 1]
        if scale < LEAST_SCALE:
            for f in range(weight.shape[0]):
                for k in range(3):
                    weight[f, k] *= scale
            scale = 1.0
        a, b, c = class_scores(weight, feature, begin, end)
        a, b, c = scale * a, scale * b, scale * c
        total = log_sum(a, b, c)
        # With few examples, weights must not shrink beyond 0.
        step = min(rate / (1.0 + cooling * steps), 0.5 / decay)
        scale *= 1.0 - step * decay
        grow = step / scale
        y = label[i]
        da = grow * ((1.0 if y == 0 else 0.0) - math.exp(a - total))
        db = grow * ((1.0 if y == 1 else 0.0) - math.exp(b - total))
        dc = grow * ((1.0 if y == 2 else 0.0) - math.exp(c - total))
        add_to_weights(weight, feature, begin, end, da, db, dc)
        steps += 1.0
    memory[SCALE], memory[STEPS] = scale, steps


@leaf
def shares_of(a, b, c):
    """The exact shares of three classes: the largest is 1 less the others.

    They are stored in single precision, which is too coarse near 1.
    """
    x, y, z = np.float64(a), np.float64(b), np.float64(c)
    if x >= y and x >= z:
        x = 1.0 - y - z
    elif y >= z:
        y = 1.0 - x - z
    else:
        z = 1.0 - x - y
    return x, y, z


@kernel
def dual_start_kernel(first, feature, label, start, variance, out_alpha, out_weight):
    """Start near the corners (eq. 15): the wrong classes of each example share ``start``; and w(alpha).

    first, feature, label  of Rows
    out_alpha              float32 [N, 3]  written
    out_weight             float64 [F, 3]  written; zeros before

    O(active features).  Twin: tests/naive/reorder.py::dual_start.
    """
    wrong = np.float32(start / 2.0)
    right = np.float32(1.0 - start)
    for n in range(label.shape[0]):
        for k in range(3):
            out_alpha[n, k] = right if label[n] == k else wrong
        # The weights are computed from the stored, rounded shares.
        a, b, c = shares_of(out_alpha[n, 0], out_alpha[n, 1], out_alpha[n, 2])
        a = variance * ((1.0 if label[n] == 0 else 0.0) - a)
        b = variance * ((1.0 if label[n] == 1 else 0.0) - b)
        c = variance * ((1.0 if label[n] == 2 else 0.0) - c)
        add_to_weights(out_weight, feature, first[n], first[n + 1], a, b, c)


@leaf
def entropy_term(x):
    return x * math.log(x)


@kernel
def dual_kernel(first, feature, order, variance, shrink, rate, trials, alpha, weight, report):
    """One pass of the shrinking exponentiated gradient (Algorithm 1) over the remaining examples.

    first, feature  of Rows
    order           int32 [A]       written: the examples that are kept come first afterwards
    shrink          the paper's epsilon: largest difference of the gradients of an example to skip
    rate, trials    first step of each example, and how often it may be halved if D would grow
    alpha           float32 [N, 3]  written
    weight          float64 [F, 3]  written; w(alpha) at all times (eq. 14)
    report          float64 [5]     written: examples kept, change of D, updates, halvings, examples for
                                    which no step lowered D

    O(active features of ``order``).  Twin: tests/naive/reorder.py::dual.
    """
    kept, change, updates, halved, stuck = np.int64(0), 0.0, 0, 0, 0
    for n in range(order.shape[0]):
        i = order[n]
        begin, end = first[i], first[i + 1]
        za, zb, zc = class_scores(weight, feature, begin, end)
        a, b, c = shares_of(alpha[i, 0], alpha[i, 1], alpha[i, 2])
        log_a, log_b, log_c = math.log(a), math.log(b), math.log(c)
        # The gradient (eq. 12) without terms common to all classes.
        ga, gb, gc = log_a - za, log_b - zb, log_c - zc
        if max(ga, gb, gc) - min(ga, gb, gc) <= shrink:
            continue
        order[kept] = i
        kept += 1
        old = a * log_a + b * log_b + c * log_c
        half_norm = 0.5 * variance * (end - begin)
        step = rate
        found = False
        for _trial in range(trials):
            # eq. 11; shares are stored in single precision, and the weights must be w of the stored shares.
            xa, xb, xc = log_a - step * ga, log_b - step * gb, log_c - step * gc
            total = log_sum(xa, xb, xc)
            fa = np.float32(max(math.exp(xa - total), SMALL))
            fb = np.float32(max(math.exp(xb - total), SMALL))
            fc = np.float32(max(math.exp(xc - total), SMALL))
            na, nb, nc = shares_of(fa, fb, fc)
            da, db, dc = na - a, nb - b, nc - c
            # eq. 13
            grown = entropy_term(na) + entropy_term(nb) + entropy_term(nc) - old
            grown += half_norm * (da * da + db * db + dc * dc) - (da * za + db * zb + dc * zc)
            if grown <= 0.0:
                found = True
                break
            step *= 0.5
            halved += 1
        if not found:
            stuck += 1
            continue
        alpha[i, 0], alpha[i, 1], alpha[i, 2] = fa, fb, fc
        add_to_weights(weight, feature, begin, end, -variance * da, -variance * db, -variance * dc)
        change += grown
        updates += 1
    report[KEPT], report[CHANGE], report[UPDATES], report[HALVED], report[STUCK] = (
        kept,
        change,
        updates,
        halved,
        stuck,
    )


@kernel
def entropy_kernel(alpha):
    """The sum of alpha log alpha over float32 ``alpha`` [N, 3].  Twin: tests/naive/reorder.py::entropy."""
    total = 0.0
    for n in range(alpha.shape[0]):
        a, b, c = shares_of(alpha[n, 0], alpha[n, 1], alpha[n, 2])
        total += entropy_term(a) + entropy_term(b) + entropy_term(c)
    return total
