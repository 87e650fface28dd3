# mypy: ignore-errors
"""Phrase pairs of a word-aligned bitext."""

import numpy as np

from hiero.core.array_kernels import longer_rows
from hiero.core.jit import kernel, leaf

SRC_START, SRC_END, TGT_START, TGT_END = 0, 1, 2, 3  # columns of a phrase
COLUMNS = 4
NOTHING = 1 << 30  # first source word of a target word without links


@leaf
def span_of_links(first, last, low, high):
    """The first and the last place that words first ... last - 1 are linked to."""
    least, greatest = np.int64(NOTHING), np.int64(-1)
    for i in range(first, last):
        least = min(least, np.int64(low[i]))
        greatest = max(greatest, np.int64(high[i]))
    return least, greatest


@kernel
def phrases_kernel(src_first, tgt_first, link_first, link, begin, end, max_length):
    """All phrase pairs of sentence pairs begin ... end - 1, of at most ``max_length`` words on either side.

    src_first, tgt_first  int64 [S + 1]
    link_first            int64 [S + 1]
    link                  int32 [L, 2]   source word, target word, counted in their sentence

    A phrase pair has a link, and no word of it is linked to a word outside it; words without links may stand
    at its edges. Returns first int64 [end - begin + 1] and phrase int32 [P, 4]: source start and end, target
    start and end; by target start, target end, source start, source end. O(words * max_length ** 3).
    Twin: tests/naive/reorder.py::phrases.
    """
    first = np.zeros(end - begin + 1, np.int64)
    phrase = np.empty((1024, COLUMNS), np.int32)
    used = np.int64(0)
    longest = 0
    for s in range(begin, end):
        longest = max(longest, src_first[s + 1] - src_first[s], tgt_first[s + 1] - tgt_first[s])
    src_low, src_high = np.empty(longest, np.int32), np.empty(longest, np.int32)
    tgt_low, tgt_high = np.empty(longest, np.int32), np.empty(longest, np.int32)
    for s in range(begin, end):
        num_src, num_tgt = src_first[s + 1] - src_first[s], tgt_first[s + 1] - tgt_first[s]
        for i in range(num_src):
            src_low[i], src_high[i] = NOTHING, -1
        for j in range(num_tgt):
            tgt_low[j], tgt_high[j] = NOTHING, -1
        for k in range(link_first[s], link_first[s + 1]):
            i, j = link[k, 0], link[k, 1]
            src_low[i], src_high[i] = min(src_low[i], j), max(src_high[i], j)
            tgt_low[j], tgt_high[j] = min(tgt_low[j], i), max(tgt_high[j], i)
        for tgt_start in range(num_tgt):
            for tgt_end in range(tgt_start + 1, min(tgt_start + max_length, num_tgt) + 1):
                low, high = span_of_links(tgt_start, tgt_end, tgt_low, tgt_high)
                if high < 0 or high + 1 - low > max_length:
                    continue
                back_low, back_high = span_of_links(low, high + 1, src_low, src_high)
                if back_low < tgt_start or back_high >= tgt_end:
                    continue
                # Up to the end of the words without links.
                least = low
                while least > 0 and src_high[least - 1] < 0 and high + 1 - (least - 1) <= max_length:
                    least -= 1
                for src_start in range(least, low + 1):
                    src_end = high + 1
                    while True:
                        if used == phrase.shape[0]:
                            phrase = longer_rows(phrase, 2 * used)
                        phrase[used, SRC_START], phrase[used, SRC_END] = src_start, src_end
                        phrase[used, TGT_START], phrase[used, TGT_END] = tgt_start, tgt_end
                        used += 1
                        if src_end == num_src or src_high[src_end] >= 0 or src_end - src_start == max_length:
                            break
                        src_end += 1
        first[s - begin + 1] = used
    return first, phrase[:used].copy()
