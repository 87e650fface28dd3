# mypy: ignore-errors
"""The reparameterised IBM model 2 of Dyer, Chahuneau and Smith (2013), both directions in one pass.

Target word j of m comes from NULL with a fixed probability, else from source word i of n with probability
exp(-tension |i/n - j/m|) / Z, and is then drawn from the lexical table of that word; the other direction
likewise. Positions count from 1 in this formula.
"""

from typing import NamedTuple

import numpy as np

from hiero.alignment.pair_kernels import SAME, in_units, largest_pair
from hiero.core.arrays import Ids, Ints
from hiero.core.jit import kernel, leaf

FWD, REV = 0, 1  # target given source, source given target


class Sizes(NamedTuple):
    """The different sizes of the sentence pairs in a bitext; read-only.

    of      int32 [S]        the size of a sentence pair, -1 if a side is empty
    length  int64 [Z, 2]     source and target words of size z
    first   int64 [Z + 1, 2] position k of the generated side of size z is place first[z, direction] + k:
                             target positions of all sizes (FWD), then the source positions (REV)
    """

    of: Ids
    length: Ints
    first: Ints


@leaf
def place_positions(length, tension, out, start):
    """exp(tension k / length) for k = 1 ... length, and the inverses of these, from ``start`` on.

    The weight of a pair of positions is then the smaller of two products: no exponential per cell.
    """
    for k in range(length):
        grown = np.exp(tension * (k + 1) / length)
        out[start + k, 0] = grown
        out[start + k, 1] = 1.0 / grown


@leaf
def weigh_cells(n, m, near, at, prob):
    """Multiply the lexical probabilities of a sentence pair, float64 [cells, 2], by unnormalised priors.

    near  float64 [., 2]  from place_positions: n source and m target positions under the tension of FWD,
                          then the same for REV
    at    float64 [., 2]  written: for each target position, then for each source position, the sum of the
                          prior and of its product with the probability
    """
    for k in range(n + m):
        at[k, 0] = 0.0
        at[k, 1] = 0.0
    cell = 0
    for i in range(n):
        fwd, fwd_inverse = near[i, 0], near[i, 1]
        rev, rev_inverse = near[n + m + i, 0], near[n + m + i, 1]
        sum_prior, sum_joint = 0.0, 0.0
        for j in range(m):
            prior = min(fwd * near[n + j, 1], fwd_inverse * near[n + j, 0])
            joint = prob[cell, 0] * prior
            at[j, 0] += prior
            at[j, 1] += joint
            prob[cell, 0] = joint
            prior = min(rev * near[n + m + n + j, 1], rev_inverse * near[n + m + n + j, 0])
            joint = prob[cell, 1] * prior
            sum_prior += prior
            sum_joint += joint
            prob[cell, 1] = joint
            cell += 1
        at[m + i, 0] = sum_prior
        at[m + i, 1] = sum_joint


@leaf
def gather(index, lexicon, s, out_prob):
    """The lexical probabilities of all cells of a sentence pair, float64 [cells, 2]."""
    start = index.first_cell[s]
    for cell in range(index.first_cell[s + 1] - start):
        p = index.pair[start + cell]
        out_prob[cell, 0] = lexicon.prob[p, 0]
        out_prob[cell, 1] = lexicon.prob[p, 1]


@kernel
def ibm2_expect_kernel(index, sizes, lexicon, tension, null, begin, end, out_counts, out_sum):
    """E-step for sentence pairs begin ... end - 1, in both directions.

    index, sizes, lexicon   PairIndex, Sizes, LexicalProbs
    tension     float64 [2]     of the prior, by direction
    null        probability of NULL
    out_counts  ExpectedCounts  added to; ``place``: expected number of words not from NULL, see Sizes.first
    out_sum     float64 [2, 2]  written; by direction the log-likelihood, and the expected sum of |i/n - j/m|
                                over links. A sentence pair with an empty side counts nothing.

    O(cells).  Twin: tests/naive/align.py::ibm2_expect.
    """
    most_cells, most_words = largest_pair(index, begin, end)
    prob = np.empty((most_cells, 2))
    near, at = np.empty((2 * most_words, 2)), np.empty((most_words, 2))
    likelihood_fwd, likelihood_rev, distance_fwd, distance_rev = 0.0, 0.0, 0.0, 0.0
    for s in range(begin, end):
        n, m = index.src_first[s + 1] - index.src_first[s], index.tgt_first[s + 1] - index.tgt_first[s]
        if n == 0 or m == 0:
            continue
        for direction in range(2):
            place_positions(n, tension[direction], near, direction * (n + m))
            place_positions(m, tension[direction], near, direction * (n + m) + n)
        gather(index, lexicon, s, prob)
        weigh_cells(n, m, near, at, prob)
        # at[., 1] becomes the factor that turns a cell's joint weight into its posterior.
        z = sizes.of[s]
        for j in range(m):
            w = index.tgt_word[index.tgt_first[s] + j]
            from_null = null * np.float64(lexicon.null_tgt[w])
            total = from_null + (1.0 - null) / at[j, 0] * at[j, 1]
            likelihood_fwd += np.log(total)
            out_counts.null_tgt[w] += in_units(from_null / total)
            out_counts.place[sizes.first[z, 0] + j] += in_units(1.0 - from_null / total)
            at[j, 1] = (1.0 - null) / at[j, 0] / total
        for i in range(n):
            v = index.src_word[index.src_first[s] + i]
            from_null = null * np.float64(lexicon.null_src[v])
            total = from_null + (1.0 - null) / at[m + i, 0] * at[m + i, 1]
            likelihood_rev += np.log(total)
            out_counts.null_src[v] += in_units(from_null / total)
            out_counts.place[sizes.first[z, 1] + i] += in_units(1.0 - from_null / total)
            at[m + i, 1] = (1.0 - null) / at[m + i, 0] / total
        start, cell = index.first_cell[s], 0
        for i in range(n):
            factor = at[m + i, 1]
            for j in range(m):
                fwd, rev = prob[cell, 0] * at[j, 1], prob[cell, 1] * factor
                p = index.pair[start + cell]
                out_counts.pair[p, 0] += in_units(fwd)
                out_counts.pair[p, 1] += in_units(rev)
                distance = abs((i + 1) / n - (j + 1) / m)
                distance_fwd += fwd * distance
                distance_rev += rev * distance
                cell += 1
    out_sum[0, 0], out_sum[0, 1] = likelihood_fwd, distance_fwd
    out_sum[1, 0], out_sum[1, 1] = likelihood_rev, distance_rev


@kernel
def ibm2_decode_kernel(index, lexicon, tension, null, begin, end, out_fwd, out_rev):
    """The most probable link of every word of sentence pairs begin ... end - 1, in both directions.

    index, lexicon, tension, null   as in ibm2_expect_kernel
    out_fwd  int32 [M]  written; the source position a target word comes from, -1 for NULL
    out_rev  int32 [N]  written; the target position a source word comes from, -1 for NULL

    Ties go to NULL, then to the first position. O(cells).  Twin: tests/naive/align.py::ibm2_decode.
    """
    most_cells, most_words = largest_pair(index, begin, end)
    prob = np.empty((most_cells, 2))
    near, at = np.empty((2 * most_words, 2)), np.empty((most_words, 2))
    for s in range(begin, end):
        src, tgt = index.src_first[s], index.tgt_first[s]
        n, m = index.src_first[s + 1] - src, index.tgt_first[s + 1] - tgt
        if n > 0 and m > 0:
            for direction in range(2):
                place_positions(n, tension[direction], near, direction * (n + m))
                place_positions(m, tension[direction], near, direction * (n + m) + n)
            gather(index, lexicon, s, prob)
            weigh_cells(n, m, near, at, prob)
        for j in range(m):
            best, best_i = null * np.float64(lexicon.null_tgt[index.tgt_word[tgt + j]]), -1
            for i in range(n):
                score = prob[i * m + j, 0] * (1.0 - null) / at[j, 0]
                if score > best * SAME:
                    best, best_i = score, i
            out_fwd[tgt + j] = best_i
        for i in range(n):
            best, best_j = null * np.float64(lexicon.null_src[index.src_word[src + i]]), -1
            for j in range(m):
                score = prob[i * m + j, 1] * (1.0 - null) / at[m + i, 0]
                if score > best * SAME:
                    best, best_j = score, j
            out_rev[src + i] = best_j


@kernel
def ibm2_posteriors_kernel(index, lexicon, tension, null, begin, end, out_prob, out_log):
    """Posteriors of all links of sentence pairs begin ... end - 1, in both directions.

    index, lexicon, tension, null   as in ibm2_expect_kernel
    out_prob  float64 [cells, 2]  written; posteriors of FWD and REV, from the first cell of pair ``begin`` on
    out_log   float64 [S, 2]      written; log-likelihood of each pair; 0 if a side is empty

    O(cells).  Twin: tests/naive/align.py::ibm2_posteriors.
    """
    most_cells, most_words = largest_pair(index, begin, end)
    prob = np.empty((most_cells, 2))
    near, at = np.empty((2 * most_words, 2)), np.empty((most_words, 2))
    for s in range(begin, end):
        src, tgt = index.src_first[s], index.tgt_first[s]
        n, m = index.src_first[s + 1] - src, index.tgt_first[s + 1] - tgt
        out_log[s - begin, 0], out_log[s - begin, 1] = 0.0, 0.0
        if n == 0 or m == 0:
            continue
        for direction in range(2):
            place_positions(n, tension[direction], near, direction * (n + m))
            place_positions(m, tension[direction], near, direction * (n + m) + n)
        gather(index, lexicon, s, prob)
        weigh_cells(n, m, near, at, prob)
        # at[., 1] becomes the factor that turns a cell's joint weight into its posterior.
        for k in range(m + n):
            if k < m:
                from_null = null * np.float64(lexicon.null_tgt[index.tgt_word[tgt + k]])
            else:
                from_null = null * np.float64(lexicon.null_src[index.src_word[src + k - m]])
            total = from_null + (1.0 - null) / at[k, 0] * at[k, 1]
            out_log[s - begin, 0 if k < m else 1] += np.log(total)
            at[k, 1] = (1.0 - null) / at[k, 0] / total
        start, cell = index.first_cell[s] - index.first_cell[begin], 0
        for i in range(n):
            for j in range(m):
                out_prob[start + cell, 0] = prob[cell, 0] * at[j, 1]
                out_prob[start + cell, 1] = prob[cell, 1] * at[m + i, 1]
                cell += 1


@kernel
def tension_kernel(length, first, mass, direction, tension):
    """Log-partition of the diagonal prior over a whole bitext, and its derivatives.

    length     int64 [Z, 2]      as in Sizes
    first      int64 [Z + 1, 2]  likewise
    mass       int64 [.]         ExpectedCounts.place
    direction  FWD or REV

    Returns sum w log Z, sum w E|i/n - j/m|, sum w Var|i/n - j/m| over all places with their mass w. The
    expected log-prior -tension * distance - sum w log Z is concave in the tension; its gradient is the second
    sum less the distance of the E-step.

    O(cells of all sizes).  Twin: tests/naive/align.py::tension_sums.
    """
    total, total_mean, total_variance = 0.0, 0.0, 0.0
    for z in range(length.shape[0]):
        m, n = length[z, 1 - direction], length[z, direction]  # m positions are generated from n
        for j in range(m):
            w = mass[first[z, direction] + j]
            if w == 0:
                continue
            partition, mean, square = 0.0, 0.0, 0.0
            for i in range(n):
                distance = abs((i + 1) / n - (j + 1) / m)
                weight = np.exp(-tension * distance)
                partition += weight
                mean += weight * distance
                square += weight * distance * distance
            mean /= partition
            total += w * np.log(partition)
            total_mean += w * mean
            total_variance += w * max(square / partition - mean * mean, 0.0)
    unit = 1.0 / in_units(1.0)
    return total * unit, total_mean * unit, total_variance * unit
