"""Pairs of translations of a sentence to compare: level by level, or sampled."""

import math

import numpy as np

from hiero.core.jit import kernel, leaf


@kernel
def level_pairs_kernel(gold, order, first_of_level, out_pair):
    """Pair each translation with all worse ones of lower levels; return the number of pairs.

    gold            float64 [N]      score by the metric
    order           int64 [N]        translations, best first
    first_of_level  int64 [L + 1]    level l is order[first_of_level[l]:first_of_level[l + 1]]
    out_pair        int32 [>= ., 2]  written; better and worse; by levels, then in order

    Without room, only counts. O(N ** 2).  Twin: tests/naive/learn.py::level_pairs.
    """
    room = out_pair.shape[0]
    num_levels = first_of_level.shape[0] - 1
    count = 0
    for high in range(num_levels):
        for low in range(high + 1, num_levels):
            for i in range(first_of_level[high], first_of_level[high + 1]):
                for j in range(first_of_level[low], first_of_level[low + 1]):
                    if gold[order[i]] > gold[order[j]]:
                        if count < room:
                            out_pair[count, 0] = order[i]
                            out_pair[count, 1] = order[j]
                        count += 1
    return count


@leaf
def _scrambled(number):
    """The finaliser of SplitMix64: turns consecutive numbers into pseudo-random ones."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@leaf
def _drawn(stream, number):
    """Number ``number`` (from 0) of a stream, in [0, 1)."""
    word = _scrambled(stream + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@kernel
def drawn_pairs_kernel(
    gold, length, seed, epoch, sentence, draws, threshold, most_apart, soft, out_pair, out_difference
):
    """Draw pairs as the sampler of Hopkins and May (2011) does; return the number accepted.

    gold            float64 [N]         score by the metric
    length          int64 [N]           in words
    seed, epoch, sentence               seed of the random numbers
    draws           int                 pairs drawn, with replacement
    threshold       float               accept differences of at least this, and above 0
    most_apart      float               refuse pairs whose lengths differ by more
    soft            bool                accept at random, with the logistic function of the difference and the
                                        mean difference of pairs not refused as probability (cdec)
    out_pair        int32 [draws, 2]    written; better and worse, as drawn
    out_difference  float64 [draws]     written; of their scores

    O(draws).  Twin: tests/naive/learn.py::drawn_pairs.
    """
    stream = _scrambled(np.uint64(seed))
    stream = _scrambled(stream ^ np.uint64(epoch))
    stream = _scrambled(stream ^ np.uint64(sentence))
    num = gold.shape[0]
    count = 0
    total = 0.0
    for draw in range(draws):
        a = np.int64(_drawn(stream, 2 * draw) * num)
        b = np.int64(_drawn(stream, 2 * draw + 1) * num)
        if gold[a] < gold[b]:
            a, b = b, a
        difference = gold[a] - gold[b]
        if difference <= 0 or difference < threshold or abs(length[a] - length[b]) > most_apart:
            continue
        out_pair[count, 0] = a
        out_pair[count, 1] = b
        out_difference[count] = difference
        total += difference
        count += 1
    if not soft:
        return count
    mean = total / max(count, 1)
    accepted = 0
    for i in range(count):
        chance = 1.0 / (1.0 + math.exp(-mean - out_difference[i]))
        if _drawn(stream, 2 * draws + i) < chance:
            out_pair[accepted, 0] = out_pair[i, 0]
            out_pair[accepted, 1] = out_pair[i, 1]
            out_difference[accepted] = out_difference[i]
            accepted += 1
    return accepted
