# mypy: ignore-errors
"""The HMM alignment model of Vogel, Ney and Tillmann (1996), both directions in one pass.

The words of one side are generated in turn from positions of the other: with a fixed probability from NULL,
which leaves the position where it is, else after a jump. A jump has a weight that depends on its distance,
all beyond JUMP_LIMIT being equal; its probability is its weight among those that stay in the sentence. The
first jump starts before the first word.

The two directions may be trained to agree (Liang, Taskar and Klein 2006): a link then counts as much as the
product of both posteriors.
"""

from typing import NamedTuple

import numpy as np

from hiero.alignment.ibm2_kernels import gather
from hiero.alignment.pair_kernels import SAME, in_units, largest_pair
from hiero.core.arrays import Floats, Ints
from hiero.core.jit import kernel, leaf

JUMP_LIMIT = 12
NUM_JUMPS = 2 * JUMP_LIMIT + 3  # the outermost two stand for everything farther away


class Windows(NamedTuple):
    """Starting points of jumps: a sentence length on the generating side and a position in it; read-only.

    length  int64 [Z, 2]  all lengths that occur, ascending, in the source (FWD) and in the target (REV);
                          the shorter column is padded with 0
    first   int64 [Y, 2]  a jump from position p (0: before the first word) of a sentence of length n is place
                          first[n, direction] + p; -1 if no sentence has this length
    """

    length: Ints
    first: Ints


def num_windows(windows: Windows) -> int:
    """The number of starting points of jumps of the HMM."""
    return int(np.sum(windows.length + (windows.length > 0)))


class Buffers(NamedTuple):
    """Working memory for sentences of at most N positions and T words to generate; all float64.

    emit [T * N], null [T]     in: p(word | position), p(word | NULL); out: posteriors
    before [(T + 1) * (N + 1)] forward probability of the position before each word, scaled
    arrive [T * N]             of reaching a position to generate the word there
    scale [T]
    jump, mirrored [2 N + 1]   weight of jumping by k - N, by N - k
    inverse [N + 1]            1 over the weights of all jumps possible from a position
    after, sent, landed [N + 1]
    crossed [2 N + 1]          expected number of jumps by k - N, but for the factor ``jump``
    mass [N + 1]               expected number of jumps from a position
    """

    emit: Floats
    null: Floats
    before: Floats
    arrive: Floats
    scale: Floats
    jump: Floats
    mirrored: Floats
    inverse: Floats
    after: Floats
    sent: Floats
    landed: Floats
    crossed: Floats
    mass: Floats


@kernel
def make_buffers(most_cells, most_words):
    wide = 2 * most_words + 1
    return Buffers(
        np.empty(most_cells),
        np.empty(most_words),
        np.empty(most_cells + 2 * most_words + 2),
        np.empty(most_cells),
        np.empty(most_words),
        np.empty(wide),
        np.empty(wide),
        np.empty(most_words + 1),
        np.empty(most_words + 1),
        np.empty(most_words + 1),
        np.empty(most_words + 1),
        np.empty(wide),
        np.empty(most_words + 1),
    )


@leaf
def jump_class(distance):
    return min(max(distance, -JUMP_LIMIT - 1), JUMP_LIMIT + 1) + JUMP_LIMIT + 1


@leaf
def add_scaled(out, out_start, factor, array, start, length):
    """out[out_start:] += factor * array[start:], ``length`` times.

    Indices are unsigned: with signed ones numba allows for negative values and compiles no vector
    instructions.
    """
    for k in range(length):
        out[np.uint64(out_start) + np.uint64(k)] += factor * array[np.uint64(start) + np.uint64(k)]


@leaf
def prepare(buffers, n, weights, direction):
    """Compute the jump weights for a sentence of n positions."""
    for k in range(2 * n + 1):
        buffers.jump[k] = weights[direction, jump_class(k - n)]
        buffers.mirrored[2 * n - k] = buffers.jump[k]
        buffers.crossed[k] = 0.0
    total = 0.0
    for k in range(n + 1, 2 * n + 1):
        total += buffers.jump[k]
    for p in range(n + 1):
        # From p to 1 ... n: jumps by 1 - p ... n - p.
        if p > 0:
            total = 0.0
            for k in range(n + 1 - p, 2 * n + 1 - p):
                total += buffers.jump[k]
        buffers.inverse[p] = 1.0 / total
        buffers.mass[p] = 0.0


@leaf
def forward(buffers, n, length, null):
    """Fill ``before``, ``arrive`` and ``scale``; returns the log-likelihood."""
    before, arrive = buffers.before, buffers.arrive
    for p in range(n + 1):
        before[p] = 1.0 if p == 0 else 0.0
    likelihood = 0.0
    for t in range(length):
        old, new = t * (n + 1), (t + 1) * (n + 1)
        for p in range(n + 1):
            before[new + p] = 0.0
        for p in range(n + 1):
            start = before[old + p] * buffers.inverse[p]
            if start > 0.0:
                add_scaled(before, new + 1, start, buffers.jump, n + 1 - p, n)
        stay = null * buffers.null[t]
        before[new] = stay * before[old]
        total = before[new]
        for p in range(1, n + 1):
            reached = (1.0 - null) * buffers.emit[t * n + p - 1] * before[new + p]
            arrive[t * n + p - 1] = reached
            before[new + p] = reached + stay * before[old + p]
            total += before[new + p]
        scale = 1.0 / total
        for p in range(n + 1):
            before[new + p] *= scale
        for i in range(n):
            arrive[t * n + i] *= scale
        buffers.scale[t] = scale
        likelihood += np.log(total)
    return likelihood


@leaf
def backward(buffers, n, length, null):
    """Turn ``emit`` and ``null`` into posteriors; fill ``crossed`` and ``mass``."""
    before, after, sent, landed = buffers.before, buffers.after, buffers.sent, buffers.landed
    for p in range(n + 1):
        after[p] = 1.0
    for t in range(length - 1, -1, -1):
        old = t * (n + 1)
        stay = null * buffers.null[t] * buffers.scale[t]
        go = (1.0 - null) * buffers.scale[t]
        from_null = 0.0
        for p in range(n + 1):
            from_null += stay * before[old + p] * after[p]
            landed[p] = 0.0
        for i in range(n):
            sent[i] = go * buffers.emit[t * n + i] * after[i + 1]
            buffers.emit[t * n + i] = buffers.arrive[t * n + i] * after[i + 1]
        buffers.null[t] = from_null
        for i in range(n):
            add_scaled(landed, 0, sent[i], buffers.mirrored, n - 1 - i, n + 1)
        for p in range(n + 1):
            start = before[old + p] * buffers.inverse[p]
            if start > 0.0:
                add_scaled(buffers.crossed, n + 1 - p, start, sent, 0, n)
            buffers.mass[p] += start * landed[p]
            after[p] = stay * after[p] + buffers.inverse[p] * landed[p]


@kernel
def posteriors(buffers, n, length, weights, direction, null):
    """Put the posteriors of links in ``emit`` and of NULL in ``null``; returns the log-likelihood.

    weights  float64 [2, NUM_JUMPS]

    O(n * n * length).
    """
    prepare(buffers, n, weights, direction)
    likelihood = forward(buffers, n, length, null)
    backward(buffers, n, length, null)
    return likelihood


@kernel
def load(index, lexicon, s, direction, prob, buffers):
    """Load the emission probabilities of a sentence pair, by generated word; returns positions and words."""
    src, tgt = index.src_first[s], index.tgt_first[s]
    n, m = index.src_first[s + 1] - src, index.tgt_first[s + 1] - tgt
    if direction == 0:
        for i in range(n):
            for j in range(m):
                buffers.emit[j * n + i] = prob[i * m + j, 0]
        for j in range(m):
            buffers.null[j] = lexicon.null_tgt[index.tgt_word[tgt + j]]
        return n, m
    for cell in range(n * m):
        buffers.emit[cell] = prob[cell, 1]
    for i in range(n):
        buffers.null[i] = lexicon.null_src[index.src_word[src + i]]
    return m, n


@leaf
def agree(n, m, prob, null):
    """Replace both posteriors of every link by their product, and those of NULL by the rest to 1.

    prob  float64 [cells, 2]  of n source and m target words
    null  float64 [m + n]     of the target words, then of the source words
    """
    for k in range(m + n):
        null[k] = 1.0
    for i in range(n):
        for j in range(m):
            both = prob[i * m + j, 0] * prob[i * m + j, 1]
            prob[i * m + j, 0] = both
            prob[i * m + j, 1] = both
            null[j] -= both
            null[m + i] -= both
    for k in range(m + n):
        null[k] = max(null[k], 0.0)


@kernel
def hmm_expect_kernel(
    index, windows, lexicon, weights, null, agreement, begin, end, out_counts, out_sum, out_jump
):
    """E-step for sentence pairs begin ... end - 1, in both directions.

    index, windows, lexicon   PairIndex, Windows, LexicalProbs
    weights     float64 [2, NUM_JUMPS]
    null        probability of NULL
    agreement   whether lexical counts are of links that both directions agree on; jumps never are
    out_counts  ExpectedCounts          added to; ``place``: expected number of jumps, see Windows.first
    out_sum     float64 [2, 2]          written; the log-likelihood by direction, and 0
    out_jump    float64 [2, NUM_JUMPS]  written; expected number of jumps by distance

    O(words of both sides) for each cell.  Twin: tests/naive/align.py::hmm_expect.
    """
    most_cells, most_words = largest_pair(index, begin, end)
    prob, from_null = np.empty((most_cells, 2)), np.empty(most_words)
    buffers = make_buffers(most_cells, most_words)
    out_sum[:] = 0.0
    out_jump[:] = 0.0
    for s in range(begin, end):
        src, tgt, start = index.src_first[s], index.tgt_first[s], index.first_cell[s]
        n, m = index.src_first[s + 1] - src, index.tgt_first[s + 1] - tgt
        if n == 0 or m == 0:
            continue
        gather(index, lexicon, s, prob)
        for direction in range(2):
            positions, length = load(index, lexicon, s, direction, prob, buffers)
            out_sum[direction, 0] += posteriors(buffers, positions, length, weights, direction, null)
            for t in range(length):
                from_null[t + m * direction] = buffers.null[t]
                for i in range(positions):
                    cell = i * m + t if direction == 0 else t * m + i
                    prob[cell, direction] = buffers.emit[t * positions + i]
            for k in range(2 * positions + 1):
                out_jump[direction, jump_class(k - positions)] += buffers.crossed[k] * buffers.jump[k]
            for p in range(positions + 1):
                out_counts.place[windows.first[positions, direction] + p] += in_units(buffers.mass[p])
        if agreement:
            agree(n, m, prob, from_null)
        for j in range(m):
            out_counts.null_tgt[index.tgt_word[tgt + j]] += in_units(from_null[j])
        for i in range(n):
            out_counts.null_src[index.src_word[src + i]] += in_units(from_null[m + i])
        for cell in range(n * m):
            p = index.pair[start + cell]
            out_counts.pair[p, 0] += in_units(prob[cell, 0])
            out_counts.pair[p, 1] += in_units(prob[cell, 1])


@kernel
def hmm_decode_kernel(index, lexicon, weights, null, begin, end, out_fwd, out_rev):
    """The link of highest posterior for every word of sentence pairs begin ... end - 1, in both directions.

    index, lexicon, weights, null   as in hmm_expect_kernel
    out_fwd  int32 [M]  written; the source position a target word comes from, -1 for NULL
    out_rev  int32 [N]  written; the target position a source word comes from, -1 for NULL

    Ties go to NULL, then to the first position.  Twin: tests/naive/align.py::hmm_decode.
    """
    most_cells, most_words = largest_pair(index, begin, end)
    prob = np.empty((most_cells, 2))
    buffers = make_buffers(most_cells, most_words)
    for s in range(begin, end):
        src, tgt = index.src_first[s], index.tgt_first[s]
        if index.first_cell[s + 1] == index.first_cell[s]:
            out_fwd[tgt : index.tgt_first[s + 1]] = -1
            out_rev[src : index.src_first[s + 1]] = -1
            continue
        gather(index, lexicon, s, prob)
        for direction in range(2):
            positions, length = load(index, lexicon, s, direction, prob, buffers)
            posteriors(buffers, positions, length, weights, direction, null)
            for t in range(length):
                best, best_i = buffers.null[t], -1
                for i in range(positions):
                    if buffers.emit[t * positions + i] > best * SAME:
                        best, best_i = buffers.emit[t * positions + i], i
                if direction == 0:
                    out_fwd[tgt + t] = best_i
                else:
                    out_rev[src + t] = best_i


@kernel
def hmm_posteriors_kernel(index, lexicon, weights, null, begin, end, out_prob, out_log):
    """Posteriors of all links of sentence pairs begin ... end - 1, in both directions.

    index, lexicon, weights, null   as in hmm_expect_kernel
    out_prob  float64 [cells, 2]  written; posteriors of FWD and REV, from the first cell of pair ``begin`` on
    out_log   float64 [S, 2]      written; log-likelihood of each pair; 0 if a side is empty

    O(words of both sides) for each cell.  Twin: tests/naive/align.py::hmm_posteriors.
    """
    most_cells, most_words = largest_pair(index, begin, end)
    prob = np.empty((most_cells, 2))
    buffers = make_buffers(most_cells, most_words)
    for s in range(begin, end):
        out_log[s - begin, 0], out_log[s - begin, 1] = 0.0, 0.0
        if index.first_cell[s + 1] == index.first_cell[s]:
            continue
        m = index.tgt_first[s + 1] - index.tgt_first[s]
        start = index.first_cell[s] - index.first_cell[begin]
        gather(index, lexicon, s, prob)
        for direction in range(2):
            positions, length = load(index, lexicon, s, direction, prob, buffers)
            out_log[s - begin, direction] = posteriors(buffers, positions, length, weights, direction, null)
            for t in range(length):
                for i in range(positions):
                    cell = i * m + t if direction == 0 else t * m + i
                    out_prob[start + cell, direction] = buffers.emit[t * positions + i]


@kernel
def fit_jumps_kernel(windows, mass, count, direction, rounds, out_weights):
    """M-step for the jump weights of one direction.

    windows      Windows
    mass         int64 [.]               ExpectedCounts.place
    count        float64 [2, NUM_JUMPS]  expected number of jumps by distance
    out_weights  float64 [2, NUM_JUMPS]  in: the weights so far; written

    The weights are those of a choice among the jumps that a window admits, so relative frequencies are not
    the maximum. The minorise-maximise update of Hunter (2004, for Bradley-Terry models) never lowers the
    likelihood.

    O(rounds * places * sentence length).  Twin: tests/naive/align.py::fit_jumps.
    """
    share = np.empty(NUM_JUMPS)
    for _ in range(rounds):
        share[:] = 0.0
        for z in range(windows.length.shape[0]):
            n = windows.length[z, direction]
            for p in range(n + 1 if n > 0 else 0):
                total = 0.0
                for i in range(1, n + 1):
                    total += out_weights[direction, jump_class(i - p)]
                part = mass[windows.first[n, direction] + p] / in_units(1.0) / total
                for i in range(1, n + 1):
                    share[jump_class(i - p)] += part
        total = 0.0
        for k in range(NUM_JUMPS):
            if share[k] > 0.0:
                out_weights[direction, k] = max(count[direction, k] / share[k], 1e-12)
            total += out_weights[direction, k]
        for k in range(NUM_JUMPS):
            out_weights[direction, k] /= total
