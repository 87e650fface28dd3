# mypy: ignore-errors
"""Scan and format alignments in Pharaoh form."""

from __future__ import annotations

import numpy as np

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
