# mypy: ignore-errors
"""Scan and format alignments in Pharaoh form; phrase pairs of an alignment."""

from __future__ import annotations

import numpy as np

from hiero.core.array_kernels import longer_rows
from hiero.core.jit import kernel, leaf
from hiero.core.scan_kernels import HYPHEN, MAX_DIGITS, NEWLINE, NINE, RETURN, SPACE, TAB, ZERO, put_whole

QUESTION, COLON = 63, 58
SURE, POSSIBLE = (83, 115), (80, 112)  # S s, P p
LARGEST = 2147483647


@leaf
def scan_position(text, at):
    """Read a number from ``at`` on: (its end, or ``at`` if there is none; its value)."""
    start, value = at, np.int64(0)
    while text[at] >= ZERO and text[at] <= NINE:
        if at - start == MAX_DIGITS:
            return start, value
        value = value * 10 + np.int64(text[at]) - ZERO
        at += 1
    return (at, value) if value <= LARGEST else (start, value)


@kernel
def scan_alignments_kernel(text, marks, out_last, out_link, out_possible):
    """Read links of lines.

    text          uint8 [B]     whole lines, each ended by LF
    marks         whether a link may be marked as sure or possible
    out_last      int64 [S]     written; number of links up to the end of each line
    out_link      int32 [L, 2]  written; L > B / 4 is always enough
    out_possible  bool [L]      written

    Returns the numbers of links and of lines read, and -1 or the start of an invalid link. O(B).
    Twin: tests/naive/align.py::scan_links.
    """
    at, links, lines = 0, 0, 0
    while at < text.shape[0]:
        byte = text[at]
        if byte == NEWLINE:
            out_last[lines] = links
            lines += 1
        if byte in (NEWLINE, SPACE, TAB) or (byte == RETURN and text[at + 1] == NEWLINE):
            at += 1
            continue
        start = at
        at, src = scan_position(text, start)
        joint = text[at]
        if at == start or not (joint == HYPHEN or (marks and joint == QUESTION)):
            return links, lines, start
        middle = at + 1
        at, tgt = scan_position(text, middle)
        if at == middle:
            return links, lines, start
        possible = joint == QUESTION
        if marks and joint == HYPHEN and text[at] == COLON:
            if text[at + 1] not in SURE and text[at + 1] not in POSSIBLE:
                return links, lines, start
            possible = text[at + 1] in POSSIBLE
            at += 2
        byte = text[at]
        if not (byte in (NEWLINE, SPACE, TAB) or (byte == RETURN and text[at + 1] == NEWLINE)):
            return links, lines, start
        out_link[links, 0] = src
        out_link[links, 1] = tgt
        out_possible[links] = possible
        links += 1
    return links, lines, -1


@kernel
def format_links_kernel(first, link, begin, end, out):
    """Write the links of sentence pairs begin ... end - 1 as lines; returns the number of bytes.

    first  int64 [S + 1]  as in Alignment
    link   int32 [L, 2]
    out    uint8 [B]      written; B = LINK_BYTES a link and one a line is always enough

    O(L).  Twin: tests/naive/align.py::format_links.
    """
    at = 0
    for s in range(begin, end):
        for k in range(first[s], first[s + 1]):
            if k > first[s]:
                out[at] = SPACE
                at += 1
            at = put_whole(np.int64(link[k, 0]), out, at)
            out[at] = HYPHEN
            at = put_whole(np.int64(link[k, 1]), out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at


# ---- phrase pairs

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
