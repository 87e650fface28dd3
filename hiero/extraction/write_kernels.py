# mypy: ignore-errors
"""Format rules as text in cdec's syntax."""

from __future__ import annotations

import math

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.scan_kernels import HYPHEN, NEWLINE, POINT, SMALL_E, SPACE, ZERO, put_whole

DIGITS = 9  # enough to tell any two float32s apart
NUMBER_BYTES = DIGITS + 8  # sign, point, four zeros after the point; or an exponent
LINK_BYTES = 14


@kernel
def text_room_kernel(
    src_words, tgt_words, fixed, first_src, src, first_tgt, tgt, dense, first_link, out_room
):
    """An upper bound on the bytes that ``format_rules_kernel`` writes; int64 [1] ``out_room`` is written.

    O(symbols).  Twin: tests/naive/extract.py::rule_lines.
    """
    room = dense.shape[0] * (fixed.pool.shape[0] + dense.shape[1] * NUMBER_BYTES + 1)
    gap = fixed.first[6] - fixed.first[4]
    for symbol in src:
        room += 1 + (src_words.first[symbol + 1] - src_words.first[symbol] if symbol > 0 else gap)
    for symbol in tgt:
        room += 1 + (tgt_words.first[symbol + 1] - tgt_words.first[symbol] if symbol > 0 else gap)
    out_room[0] = room + first_link[first_link.shape[0] - 1] * LINK_BYTES


@leaf
def put_piece(pool, first, piece, out, at):
    """Copy a piece; returns where it ends."""
    for k in range(first[piece], first[piece + 1]):
        out[at] = pool[k]
        at += 1
    return at


@leaf
def put_float(value, powers, out, at):
    """Write a number as ``%.9g`` does; returns where it ends."""
    if value < 0.0:
        out[at] = HYPHEN
        at += 1
        value = -value
    if value == 0.0 or value < 1e-20 or value >= 1e20:
        out[at] = ZERO
        return at + 1
    exponent = np.int64(math.floor(math.log10(value)))
    whole = np.int64(np.rint(value * powers[30 + DIGITS - 1 - exponent]))
    # The logarithm may be off by one at a power of ten, and rounding may reach the next.
    if whole >= 1_000_000_000:
        exponent += 1
        whole = np.int64(np.rint(value * powers[30 + DIGITS - 1 - exponent]))
    elif whole < 100_000_000:
        exponent -= 1
        whole = np.int64(np.rint(value * powers[30 + DIGITS - 1 - exponent]))
    digits = DIGITS
    while digits > 1 and whole % 10 == 0:
        whole //= 10
        digits -= 1
    scientific = exponent < -4 or exponent >= DIGITS
    before = 1 if scientific else exponent + 1  # digits before the point
    if before <= 0:
        out[at] = ZERO
        out[at + 1] = POINT
        at += 2
        for _ in range(-before):
            out[at] = ZERO
            at += 1
    end = at + digits + (1 if 0 < before < digits else 0)
    place = end - 1
    for k in range(digits - 1, -1, -1):
        out[place] = ZERO + whole % 10
        whole //= 10
        place -= 1
        if k == before:
            out[place] = POINT
            place -= 1
    at = end
    for _ in range(before - digits):
        out[at] = ZERO
        at += 1
    if scientific:
        out[at] = SMALL_E
        out[at + 1] = HYPHEN if exponent < 0 else 43
        exponent = abs(exponent)
        out[at + 2] = ZERO + exponent // 10
        out[at + 3] = ZERO + exponent % 10
        at += 4
    return at


@leaf
def put_side(words, fixed, symbols, first, last, out, at):
    """Write one side of a rule; returns where it ends."""
    for k in range(first, last):
        if k > first:
            out[at] = SPACE
            at += 1
        symbol = symbols[k]
        if symbol > 0:
            at = put_piece(words.pool, words.first, symbol, out, at)
        else:
            at = put_piece(fixed.pool, fixed.first, 3 - symbol, out, at)
    return at


@kernel
def format_rules_kernel(
    src_words, tgt_words, fixed, powers, first_src, src, first_tgt, tgt, dense, first_link, link, out
):
    """Write rules as lines; returns the number of bytes.

    src_words, tgt_words      Pieces    of words 1, 2, ...
    fixed                     Pieces    left-hand side and bars, bars three times, gaps 1 and 2, features
    powers                    float64 [61]  10 ** -30 ... 10 ** 30
    first_src ... first_link  as in Rules; gap g is -g
    out                       uint8 [.]     written; its length is given by text_room_kernel

    O(bytes).  Twin: tests/naive/extract.py::rule_lines.
    """
    at = 0
    for r in range(dense.shape[0]):
        at = put_piece(fixed.pool, fixed.first, 0, out, at)
        at = put_side(src_words, fixed, src, first_src[r], first_src[r + 1], out, at)
        at = put_piece(fixed.pool, fixed.first, 1, out, at)
        at = put_side(tgt_words, fixed, tgt, first_tgt[r], first_tgt[r + 1], out, at)
        at = put_piece(fixed.pool, fixed.first, 2, out, at)
        for k in range(dense.shape[1]):
            at = put_piece(fixed.pool, fixed.first, 6 + k, out, at)
            at = put_float(np.float64(dense[r, k]), powers, out, at)
        for k in range(first_link[r], first_link[r + 1]):
            if k == first_link[r]:
                at = put_piece(fixed.pool, fixed.first, 3, out, at)
            else:
                out[at] = SPACE
                at += 1
            at = put_whole(np.int64(link[k, 0]), out, at)
            out[at] = HYPHEN
            at = put_whole(np.int64(link[k, 1]), out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at
