# mypy: ignore-errors
"""An HMM with fertilities whose links are sampled (Gal and Blunsom 2013; Östling and Tiedemann 2016).

A word comes from NULL or from a position of the other side, after a jump, as in the HMM. The words of each
position have a number, its fertility, whose distribution depends on the word there; so the links of a
sentence pair depend on each other, and are sampled one after the other, given all others.
"""

from typing import NamedTuple

import numpy as np

from hiero.alignment.hmm_kernels import jump_class
from hiero.alignment.pair_kernels import LEAST, SAME, largest_pair
from hiero.core.arrays import Floats, Floats32, Ids
from hiero.core.hash_kernels import GOLDEN, fraction, mix, splitmix
from hiero.core.jit import kernel, leaf


class Fertilities(NamedTuple):
    """Distributions of fertilities as p(k + 1) / p(k), k = 0 ... F - 1; the last one holds for larger k, too.

    src  float32 [V, F]  by source word: how many target words it generates
    tgt  float32 [W, F]  by target word
    """

    src: Floats32
    tgt: Floats32


class CountedLinks(NamedTuple):
    """The links of the sentence pairs that probabilities were estimated from; -1: none.

    fwd        int32 [M]    source position of each target word
    rev        int32 [N]    target position of each source word
    src_total  float64 [V]  links from each source word to target words, and the prior's
    tgt_total  float64 [W]
    """

    fwd: Ids
    rev: Ids
    src_total: Floats
    tgt_total: Floats


@leaf
def without(prob, total):
    """A probability estimated from ``total`` observations, if one of this outcome had not been made."""
    return max(prob * total - 1.0, LEAST) / max(total - 1.0, LEAST)


@leaf
def prepare_jumps(n, weights, direction, out_jump, out_inverse):
    """Write the weights of jumps by k - n, and 1 over the sum of those that a position admits."""
    for k in range(2 * n + 1):
        out_jump[k] = weights[direction, jump_class(k - n)]
    for p in range(n + 1):
        total = 0.0
        for k in range(n + 1 - p, 2 * n + 1 - p):
            total += out_jump[k]
        out_inverse[p] = 1.0 / total


@leaf
def resample(
    n, length, null, emit, from_null, jump, inverse, words, ratio, fertility, link, state, out_weight, out_sum
):
    """Sample the link of each of ``length`` words in turn; add its distribution to ``out_sum``.

    emit       float64 [T * N]  p(word | position)
    from_null  float64 [T]
    words      int32 [N]        the words of the positions
    ratio      float32 [., F]   as in Fertilities
    fertility  int64 [N]        overwritten
    link       int32 [T]        in: all links; written
    out_weight float64 [N + 1]  overwritten

    Returns the state of the random numbers (SplitMix64).
    """
    for i in range(n):
        fertility[i] = 0
    for t in range(length):
        if link[t] >= 0:
            fertility[link[t]] += 1
    before, ahead, last = 0, 0, ratio.shape[1] - 1
    for t in range(length):
        if link[t] >= 0:
            fertility[link[t]] -= 1
        if ahead <= t:
            ahead = t + 1
            while ahead < length and link[ahead] < 0:
                ahead += 1
        after = link[ahead] + 1 if ahead < length else 0
        total = 0.0
        for i in range(n):
            value = (1.0 - null) * emit[t * n + i] * jump[i + 1 - before + n] * inverse[before]
            if after > 0:
                value *= jump[after - i - 1 + n] * inverse[i + 1]
            value *= ratio[words[i], min(fertility[i], last)]
            out_weight[i] = value
            total += value
        value = null * from_null[t]
        if after > 0:
            value *= jump[after - before + n] * inverse[before]
        out_weight[n] = value
        total += value
        for i in range(n):
            out_sum[t * n + i] += out_weight[i] / total
        state += GOLDEN
        rest = fraction(splitmix(state)) * total
        chosen = 0
        while chosen < n and rest >= out_weight[chosen]:
            rest -= out_weight[chosen]
            chosen += 1
        link[t] = -1
        if chosen < n:
            link[t] = chosen
            fertility[chosen] += 1
            before = chosen + 1
    return state


@kernel
def sample_links_kernel(
    index,
    lexicon,
    weights,
    fertilities,
    null,
    counted,
    rounds,
    skipped,
    seed,
    number,
    begin,
    end,
    out_fwd,
    out_rev,
    out_prob,
):
    """Sample the links of sentence pairs begin ... end - 1, in both directions.

    index, lexicon   PairIndex, LexicalProbs
    weights      float64 [2, NUM_JUMPS]
    fertilities  Fertilities
    null         probability of NULL
    counted      CountedLinks  each link is sampled as if it had not been counted
    rounds       how often each link is sampled, and after how many (``skipped``) probabilities are collected
    seed         of the random numbers, with the number of the sentence pair: ``number`` for the first of
                 ``index``, ascending; if that is negative, all pairs have the same
    out_fwd      int32 [M]     in: the links to start from; written
    out_rev      int32 [N]
    out_prob     float64 [cells, 2]  written, unless it is empty: the mean probability of each link given
                               the others, from the first cell of pair ``begin`` on

    O(rounds * cells).  Twin: tests/naive/align.py::sample_links.
    """
    most_cells, most_words = largest_pair(index, begin, end)
    emit, sums = np.empty(most_cells), np.empty(most_cells)
    from_null, weight, inverse = np.empty(most_words), np.empty(most_words + 1), np.empty(most_words + 1)
    jump, fertility = np.empty(2 * most_words + 1), np.empty(most_words, np.int64)
    keeps = out_prob.shape[0] > 0
    for s in range(begin, end):
        src, tgt, start = index.src_first[s], index.tgt_first[s], index.first_cell[s]
        n, m = index.src_first[s + 1] - src, index.tgt_first[s + 1] - tgt
        if n == 0 or m == 0:
            out_fwd[tgt : tgt + m] = -1
            out_rev[src : src + n] = -1
            continue
        for direction in range(2):
            state = mix(mix(np.uint64(seed), number + s if number >= 0 else 0), direction)
            if direction == 0:
                positions, length, link = n, m, out_fwd[tgt : tgt + m]
                words, ratio = index.src_word[src : src + n], fertilities.src
            else:
                positions, length, link = m, n, out_rev[src : src + n]
                words, ratio = index.tgt_word[tgt : tgt + m], fertilities.tgt
            for t in range(length):
                for i in range(positions):
                    cell = i * m + t if direction == 0 else t * m + i
                    emit[t * positions + i] = lexicon.prob[index.pair[start + cell], direction]
                if direction == 0:
                    own, from_null[t] = counted.fwd[tgt + t], lexicon.null_tgt[index.tgt_word[tgt + t]]
                else:
                    own, from_null[t] = counted.rev[src + t], lexicon.null_src[index.src_word[src + t]]
                if own >= 0:
                    total = (counted.src_total if direction == 0 else counted.tgt_total)[words[own]]
                    emit[t * positions + own] = without(emit[t * positions + own], total)
            prepare_jumps(positions, weights, direction, jump, inverse)
            for k in range(rounds):
                if k <= skipped:
                    sums[: n * m] = 0.0
                state = resample(
                    positions,
                    length,
                    null,
                    emit,
                    from_null,
                    jump,
                    inverse,
                    words,
                    ratio,
                    fertility,
                    link,
                    state,
                    weight,
                    sums,
                )
            if keeps:
                first = start - index.first_cell[begin]
                for t in range(length):
                    for i in range(positions):
                        cell = i * m + t if direction == 0 else t * m + i
                        out_prob[first + cell, direction] = sums[t * positions + i] / (rounds - skipped)


@kernel
def most_probable_links_kernel(index, prob, begin, end, out_fwd, out_rev):
    """The link of highest probability for every word of sentence pairs begin ... end - 1, in both directions.

    index    PairIndex
    prob     float64 [cells, 2]  probabilities of FWD and REV, from the first cell of pair ``begin`` on
    out_fwd  int32 [M]  written; the source position a target word comes from, -1 for NULL
    out_rev  int32 [N]  written; the target position a source word comes from, -1 for NULL

    What is missing to 1 is NULL's. Ties go to NULL, then to the first position. O(cells).
    Twin: tests/naive/align.py::best_links.
    """
    for s in range(begin, end):
        src, tgt = index.src_first[s], index.tgt_first[s]
        n, m = index.src_first[s + 1] - src, index.tgt_first[s + 1] - tgt
        start = index.first_cell[s] - index.first_cell[begin]
        for direction in range(2):
            positions, length = (n, m) if direction == 0 else (m, n)
            for t in range(length):
                best, best_i = 1.0, -1
                for i in range(positions):
                    best -= prob[start + (i * m + t if direction == 0 else t * m + i), direction]
                best = max(best, 0.0)
                for i in range(positions):
                    value = prob[start + (i * m + t if direction == 0 else t * m + i), direction]
                    if value > best * SAME:
                        best, best_i = value, i
                if direction == 0:
                    out_fwd[tgt + t] = best_i
                else:
                    out_rev[src + t] = best_i
