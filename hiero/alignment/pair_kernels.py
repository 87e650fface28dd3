# mypy: ignore-errors
"""Pairs of words that occur opposite each other in a bitext, and their lexical probabilities.

The lexical tables of both directions are arrays over the pairs of words that occur together in some sentence
pair, and every cell of every sentence pair (a source and a target position) has the number of its pair. So
neither training nor decoding looks words up.

Expected counts are integers, units of 2 ** -32: their sum does not depend on the order in which threads add.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Floats32, Ids, Ints
from hiero.core.jit import kernel, leaf

UNIT = 4294967296.0  # counts are multiples of its inverse
SAME = 1.0 + 1e-9  # probabilities closer than that are a tie: rounding must not choose between equal words
LEAST = 1e-37  # the smallest probability: denormal float32 values would be slow and inexact


class PairIndex(NamedTuple):
    """A bitext by cells; read-only.

    S sentence pairs, N and M words, V and W different ones, P pairs of different words.

    src_first   int64 [S + 1]  as in ``bitext.corpus.Text``
    src_word    int32 [N]
    tgt_first   int64 [S + 1]
    tgt_word    int32 [M]
    first_cell  int64 [S + 1]  source position i and target position j of sentence pair s are cell
                               first_cell[s] + i * (target words of s) + j
    pair        int32 [cells]
    first_pair  int64 [V + 1]  pairs of source word v: first_pair[v] ... first_pair[v + 1] - 1
    pair_tgt    int32 [P]      their target words, as they first appear
    num_tgt     int64 [W]      pairs of each target word
    """

    src_first: Ints
    src_word: Ids
    tgt_first: Ints
    tgt_word: Ids
    first_cell: Ints
    pair: Ids
    first_pair: Ints
    pair_tgt: Ids
    num_tgt: Ints


class LexicalProbs(NamedTuple):
    """Lexical probabilities of both directions, side by side since a cell needs both.

    prob      float32 [P, 2]  p(target word | source word), p(source word | target word)
    null_tgt  float32 [W]     p(target word | NULL)
    null_src  float32 [V]     p(source word | NULL)
    """

    prob: Floats32
    null_tgt: Floats32
    null_src: Floats32


class StoredProbs(NamedTuple):
    """Lexical probabilities of a trained model; read-only.

    V source and W target words, P pairs of them. Pairs that were never aligned are not stored.

    first_pair  int64 [V + 1]   pairs of source word v: first_pair[v] ... first_pair[v + 1] - 1
    pair_tgt    int32 [P]       their target words, ascending
    prob        float32 [P, 2]  as in LexicalProbs
    null_tgt    float32 [W]
    null_src    float32 [V]
    rest_src    float32 [V]     p(target word | source word) of all other pairs of a source word
    rest_tgt    float32 [W]     p(source word | target word) of all other pairs of a target word
    """

    first_pair: Ints
    pair_tgt: Ids
    prob: Floats32
    null_tgt: Floats32
    null_src: Floats32
    rest_src: Floats32
    rest_tgt: Floats32


class ExpectedCounts(NamedTuple):
    """Expected counts in units of 2 ** -32; ``place`` depends on the model.

    pair      int64 [P, 2]
    null_tgt  int64 [W]
    null_src  int64 [V]
    place     int64 [.]     by sentence length and position, see the E-steps
    """

    pair: Ints
    null_tgt: Ints
    null_src: Ints
    place: Ints


@kernel
def number_pairs_kernel(
    src_first, src_word, tgt_first, tgt_word, first_cell, num_tgt, most, out_first_pair, out_pair
):
    """Number the pairs of words that occur together, by source word, and write the pair of every cell.

    src_first ... first_cell   as in PairIndex
    num_tgt         number of different target words
    most            most pairs that may be numbered, at most the largest int32
    out_first_pair  int64 [V + 1]  written
    out_pair        int32 [cells]  written

    Returns the number of pairs, or -1 if there might be more than ``most`` before the next word. O(cells).
    Twin: tests/naive/align.py::number_pairs.
    """
    num_src = out_first_pair.shape[0] - 1
    num_tokens = src_word.shape[0]
    # All places of each word, by counting sort.
    first_place = np.zeros(num_src + 1, np.int64)
    for t in range(num_tokens):
        first_place[src_word[t] + 1] += 1
    for v in range(num_src):
        first_place[v + 1] += first_place[v]
    place = np.empty(num_tokens, np.int64)
    sentence = np.empty(num_tokens, np.int32)
    filled = first_place[:-1].copy()
    for s in range(src_first.shape[0] - 1):
        for t in range(src_first[s], src_first[s + 1]):
            sentence[t] = s
            place[filled[src_word[t]]] = t
            filled[src_word[t]] += 1
    # For every target word the last source word it was seen with, and the number of that pair.
    seen = np.full((num_tgt, 2), -1, np.int32)
    pairs = 0
    for v in range(num_src):
        out_first_pair[v] = pairs
        for k in range(first_place[v], first_place[v + 1]):
            s = sentence[place[k]]
            begin, end = tgt_first[s], tgt_first[s + 1]
            cell = first_cell[s] + (place[k] - src_first[s]) * (end - begin)
            for t in range(begin, end):
                w = tgt_word[t]
                if seen[w, 0] != v:
                    seen[w, 0] = v
                    seen[w, 1] = pairs
                    pairs += 1
                out_pair[cell] = seen[w, 1]
                cell += 1
        if pairs > most - num_tgt:
            return -1
    out_first_pair[num_src] = pairs
    return pairs


@kernel
def pair_targets_kernel(tgt_first, tgt_word, first_cell, pair, out_pair_tgt, out_num_tgt):
    """Write the target word of every pair.

    tgt_first ... pair   as in PairIndex
    out_pair_tgt  int32 [P]  written
    out_num_tgt   int64 [W]  all 0; written: pairs of each target word

    O(cells).  Twin: tests/naive/align.py::number_pairs.
    """
    for s in range(tgt_first.shape[0] - 1):
        t = tgt_first[s]
        for cell in range(first_cell[s], first_cell[s + 1]):
            out_pair_tgt[pair[cell]] = tgt_word[t]
            t += 1
            if t == tgt_first[s + 1]:
                t = tgt_first[s]
    for p in range(out_pair_tgt.shape[0]):
        out_num_tgt[out_pair_tgt[p]] += 1


@leaf
def in_units(expected):
    """An expected count as an integer."""
    return np.int64(expected * UNIT + 0.5)


@leaf
def exp_digamma(x):
    """exp of the digamma function, to nine digits.

    psi(x) = psi(x + 6) - 1/x - ... - 1/(x + 5), and exp(psi(x + 6)) by its asymptotic series around x + 5.5.
    """
    if x > 6.0:
        y, less = x - 0.5, 0.0
    else:
        # The six fractions in pairs: (2x + 5) (1/u + 1/(u + 4) + 1/(u + 6)) with u = x (x + 5).
        u = x * (x + 5.0)
        v, w = u + 4.0, u + 6.0
        y, less = x + 5.5, (2.0 * x + 5.0) * (v * w + u * w + u * v) / (u * v * w)
    z = 1.0 / (y * y)
    series = y * (
        1.0
        + z * (1.0 / 24.0 + z * (-37.0 / 5760.0 + z * (10313.0 / 2903040.0 - z * 5509121.0 / 1393459200.0)))
    )
    return series * np.exp(-less) if less > 0.0 else series


@leaf
def weight(count, smoothing):
    """The value of a count, of one outcome or of all, before normalising.

    The mean-field update under a symmetric Dirichlet prior; without a prior, the count itself.
    """
    if smoothing > 0.0:
        return exp_digamma(count)
    return count


@kernel
def pair_totals_kernel(pair_tgt, count, out_total):
    """Add up the expected counts of word pairs, for p(source word | target word), by target word.

    pair_tgt   int32 [P]
    count      int64 [P, 2]
    out_total  int64 [W]     all 0; written

    O(P).  Twin: tests/naive/align.py::normalize.
    """
    for p in range(pair_tgt.shape[0]):
        out_total[pair_tgt[p]] += count[p, 1]


@kernel
def normalize_pairs_kernel(first_pair, pair_tgt, num_tgt, count, tgt_total, smoothing, begin, end, out_prob):
    """M-step for the word pairs of source words begin ... end - 1.

    first_pair, pair_tgt, num_tgt   as in PairIndex
    count      int64 [P, 2]
    tgt_total  int64 [W]        from pair_totals_kernel
    smoothing  of the Dirichlet prior; 0: maximum likelihood
    out_prob   float32 [P, 2]   written

    O(pairs).  Twin: tests/naive/align.py::normalize.
    """
    unseen = weight(smoothing, smoothing) if smoothing > 0.0 else 0.0
    scale = np.empty(num_tgt.shape[0])
    for w in range(num_tgt.shape[0]):
        scale[w] = 1.0 / max(weight(tgt_total[w] / UNIT + smoothing * num_tgt[w], smoothing), LEAST)
    for v in range(begin, end):
        total = np.int64(0)
        for p in range(first_pair[v], first_pair[v + 1]):
            total += count[p, 0]
        num = first_pair[v + 1] - first_pair[v]
        if num == 0:
            continue
        src_scale = 1.0 / max(weight(total / UNIT + smoothing * num, smoothing), LEAST)
        for p in range(first_pair[v], first_pair[v + 1]):
            # Most pairs never align: no exponential function for them.
            fwd = weight(count[p, 0] / UNIT + smoothing, smoothing) if count[p, 0] > 0 else unseen
            rev = weight(count[p, 1] / UNIT + smoothing, smoothing) if count[p, 1] > 0 else unseen
            out_prob[p, 0] = max(fwd * src_scale, LEAST)
            out_prob[p, 1] = max(rev * scale[pair_tgt[p]], LEAST)


@kernel
def unaligned_probs_kernel(first_pair, pair_tgt, num_tgt, count, smoothing, out_src, out_tgt):
    """The probabilities that the M-step gives a pair without expected counts.

    first_pair, pair_tgt, num_tgt   as in PairIndex
    count      int64 [P, 2]
    smoothing  of the Dirichlet prior; 0: maximum likelihood
    out_src    float32 [V]   written; p(target word | source word), by source word
    out_tgt    float32 [W]   written; p(source word | target word), by target word

    A word without pairs has the uniform probability. O(pairs).  Twin: tests/naive/align.py::unaligned.
    """
    unseen = weight(smoothing, smoothing) if smoothing > 0.0 else 0.0
    num_src, total_tgt = out_src.shape[0], np.zeros(num_tgt.shape[0], np.int64)
    for v in range(num_src):
        total, num = np.int64(0), first_pair[v + 1] - first_pair[v]
        for p in range(first_pair[v], first_pair[v + 1]):
            total += count[p, 0]
            total_tgt[pair_tgt[p]] += count[p, 1]
        out_src[v] = 1.0 / max(num_tgt.shape[0], 1)
        if num > 0:
            scale = 1.0 / max(weight(total / UNIT + smoothing * num, smoothing), LEAST)
            out_src[v] = max(unseen * scale, LEAST)
    for w in range(num_tgt.shape[0]):
        out_tgt[w] = 1.0 / max(num_src, 1)
        if num_tgt[w] > 0:
            scale = 1.0 / max(weight(total_tgt[w] / UNIT + smoothing * num_tgt[w], smoothing), LEAST)
            out_tgt[w] = max(unseen * scale, LEAST)


@leaf
def find_pair(first_pair, pair_tgt, v, w):
    """The place of a pair of words in a table whose target words ascend, or -1."""
    low, high = first_pair[v], first_pair[v + 1]
    while low < high:
        middle = (low + high) >> 1
        if pair_tgt[middle] < w:
            low = middle + 1
        else:
            high = middle
    return low if low < first_pair[v + 1] and pair_tgt[low] == w else np.int64(-1)


@kernel
def find_pairs_kernel(first_pair, pair_tgt, own_first_pair, own_pair_tgt, out_place):
    """The places of the pairs of a part of a bitext among those of the whole, which has them all.

    first_pair      int64 [V + 1]  of the whole, as in StoredProbs
    pair_tgt        int32 [P]
    own_first_pair  int64 [V + 1]  of the part, as in PairIndex
    own_pair_tgt    int32 [P']
    out_place       int64 [P']     written

    O(P' log(P / V)).  Twin: tests/naive/align.py::find_pairs.
    """
    for v in range(own_first_pair.shape[0] - 1):
        for p in range(own_first_pair[v], own_first_pair[v + 1]):
            out_place[p] = find_pair(first_pair, pair_tgt, v, own_pair_tgt[p])


@kernel
def look_up_pairs_kernel(stored, src_id, tgt_id, first_pair, pair_tgt, out_prob):
    """The probabilities that a trained model has for the pairs of another bitext.

    stored      StoredProbs
    src_id      int32 [V']      word of the model, or -1, of each source word of the bitext
    tgt_id      int32 [W']
    first_pair  int64 [V' + 1]  of the bitext, as in PairIndex
    pair_tgt    int32 [P']
    out_prob    float32 [P', 2] written

    An unknown word is as probable as any other, given an unknown one; given a known one, it is as probable as
    a word that this one was never aligned to. O(P' log(P / V)).  Twin: tests/naive/align.py::look_up_pairs.
    """
    uniform_tgt = 1.0 / max(stored.rest_tgt.shape[0], 1)
    uniform_src = 1.0 / max(stored.rest_src.shape[0], 1)
    for k in range(first_pair.shape[0] - 1):
        v = np.int64(src_id[k])
        for p in range(first_pair[k], first_pair[k + 1]):
            w = np.int64(tgt_id[pair_tgt[p]])
            out_prob[p, 0] = stored.rest_src[v] if v >= 0 else uniform_tgt
            out_prob[p, 1] = stored.rest_tgt[w] if w >= 0 else uniform_src
            place = find_pair(stored.first_pair, stored.pair_tgt, v, w) if v >= 0 and w >= 0 else np.int64(-1)
            if place >= 0:
                out_prob[p, 0] = stored.prob[place, 0]
                out_prob[p, 1] = stored.prob[place, 1]


@kernel
def normalize_null_pairs_kernel(count, smoothing, out_prob):
    """M-step for the pairs of NULL and the words that it generates.

    count     int64 [W]
    out_prob  float32 [W]  written

    O(W).  Twin: tests/naive/align.py::normalize_null.
    """
    total = np.int64(0)
    for w in range(count.shape[0]):
        total += count[w]
    scale = 1.0 / max(weight(total / UNIT + smoothing * count.shape[0], smoothing), LEAST)
    for w in range(count.shape[0]):
        out_prob[w] = max(weight(count[w] / UNIT + smoothing, smoothing) * scale, LEAST)


@kernel
def largest_pair(index, begin, end):
    """The most cells and the most words on both sides together that a sentence pair has."""
    cells, words = np.int64(0), np.int64(0)
    for s in range(begin, end):
        cells = max(cells, index.first_cell[s + 1] - index.first_cell[s])
        n, m = index.src_first[s + 1] - index.src_first[s], index.tgt_first[s + 1] - index.tgt_first[s]
        words = max(words, n + m)
    return cells, words
