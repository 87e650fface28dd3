# mypy: ignore-errors
"""Scan lines of text: tokens, gaps, numbers."""

from __future__ import annotations

import numpy as np

from hiero.core.arrays import Floats, read_only
from hiero.core.jit import kernel, leaf

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32


@kernel
def split_lines_kernel(text, out_token, out_last):
    """Find the tokens of lines; returns their number.

    text       uint8 [B]      whole lines, each ended by LF; a CR before it is part of the line end
    out_token  int32 [T, 2]   written; first and last byte of each token; T > B / 2 is always enough
    out_last   int64 [L]      written; tokens up to and with each line

    Tokens are separated by spaces and tabs only. O(B).
    Twin: tests/naive/align.py::split_lines.
    """
    tokens, lines, start = 0, 0, 0
    for at in range(text.shape[0]):
        byte = text[at]
        if byte != SPACE and byte != TAB and byte != NEWLINE:
            continue
        end = at
        if byte == NEWLINE and end > start and text[end - 1] == RETURN:
            end -= 1
        if end > start:
            out_token[tokens, 0] = start
            out_token[tokens, 1] = end
            tokens += 1
        start = at + 1
        if byte == NEWLINE:
            out_last[lines] = tokens
            lines += 1
    return tokens


BAR, OPEN, CLOSE, COMMA, EQUALS, SEMICOLON, HYPHEN = 124, 91, 93, 44, 61, 59, 45
PLUS, POINT, ZERO, NINE, SMALL_E, LARGE_E = 43, 46, 48, 57, 101, 69

MAX_EXACT = 1 << 53  # integers up to here are float64s
EXACT_POWER = 22  # and so are powers of ten up to here
SLACK = 1e-15  # bounds the relative error of the inexact path of scan_number
MAX_DIGITS = 18  # always fit in int64


@leaf
def next_token(data, at, end):
    """Start and end of the next token; equal at the end of the line."""
    while at < end and (data[at] == SPACE or data[at] == TAB):
        at += 1
    start = at
    while at < end and data[at] != SPACE and data[at] != TAB:
        at += 1
    return start, at


@leaf
def is_bars(data, start, end):
    return end - start == 3 and data[start] == BAR and data[start + 1] == BAR and data[start + 2] == BAR


@leaf
def small_number(data, start, end):
    """The value of one or two digits without a leading zero, else 0."""
    length = end - start
    if length < 1 or length > 2 or data[start] <= ZERO or data[start] > NINE:
        return 0
    if length == 1:
        return np.int64(data[start]) - ZERO
    if data[start + 1] < ZERO or data[start + 1] > NINE:
        return 0
    return 10 * (np.int64(data[start]) - ZERO) + np.int64(data[start + 1]) - ZERO


@leaf
def gap_shape(data, start, end):
    """(end of the label, index) of a token ``[LABEL]`` (index 0) or ``[LABEL,n]``; (-1, 0) for a word.

    As in cdec's lexer a label has no brackets and commas, and n is 1 to 99; any other token is a word.
    """
    if data[start] != OPEN or end - start < 3 or data[end - 1] != CLOSE:
        return -1, 0
    comma = -1
    for at in range(start + 1, end - 1):
        if data[at] == OPEN or data[at] == CLOSE or (data[at] == COMMA and comma >= 0):
            return -1, 0
        if data[at] == COMMA:
            comma = at
    if comma < 0:
        return end - 1, 0
    index = small_number(data, comma + 1, end - 1)
    if comma == start + 1 or index == 0:
        return -1, 0
    return comma, index


@leaf
def scan_digits(data, at, end, mantissa, digits):
    """Read decimal digits: (their end, mantissa so far, its significant digits, digits left out)."""
    left_out = 0
    while at < end and data[at] >= ZERO and data[at] <= NINE:
        if digits < MAX_DIGITS:
            mantissa = mantissa * 10 + np.int64(data[at]) - ZERO
            if mantissa > 0:
                digits += 1
        else:
            left_out += 1
        at += 1
    return at, mantissa, digits, left_out


@leaf
def scan_number(data, start, end, powers):
    """Read a decimal number: (its end, its value, whether the value is exact).

    powers  float64 [309]  10 ** k

    The end is ``start`` if there is no number. Exact means: the float64 nearest to the decimal number, or one
    that rounds to the same float32. The caller must read the few others again (with a mantissa too long for
    the exact path, and half-way between two float32s).
    """
    at = start
    negative = at < end and data[at] == HYPHEN
    if at < end and (data[at] == HYPHEN or data[at] == PLUS):
        at += 1
    whole = at
    at, mantissa, digits, exponent = scan_digits(data, at, end, np.int64(0), 0)
    seen = at - whole
    if at < end and data[at] == POINT:
        point = at + 1
        at, mantissa, digits, left_out = scan_digits(data, point, end, mantissa, digits)
        seen += at - point
        exponent -= at - point - left_out
    if seen == 0:
        return start, 0.0, True
    if at < end and (data[at] == SMALL_E or data[at] == LARGE_E):
        sign = at + 1
        minus = sign < end and data[sign] == HYPHEN
        if sign < end and (minus or data[sign] == PLUS):
            sign += 1
        stop, power, _, left_out = scan_digits(data, sign, end, np.int64(0), 0)
        if stop > sign:
            at = stop
            # With any larger power the value is zero or infinite, for mantissas of any length.
            power = min(power, 1 << 40) if left_out == 0 else np.int64(1 << 40)
            exponent += -power if minus else power
    value, exact = scale(mantissa, exponent, powers)
    return at, -value if negative else value, exact


@leaf
def scale(mantissa, exponent, powers):
    """mantissa * 10 ** exponent, and whether it is exact in the sense of ``scan_number``."""
    value = np.float64(mantissa)
    if mantissa == 0:
        return 0.0, True
    if exponent > 308:
        return np.inf, True
    if exponent >= 0:
        value *= powers[exponent]
    elif exponent >= -308:
        value /= powers[-exponent]
    elif exponent >= -616:
        value = value / powers[308] / powers[-exponent - 308]
    else:
        return 0.0, True
    if mantissa <= MAX_EXACT and exponent <= EXACT_POWER and exponent >= -EXACT_POWER:
        return value, True
    return value, np.float32(value * (1.0 - SLACK)) == np.float32(value * (1.0 + SLACK))


@leaf
def put_whole(value, out, at):
    """Write a whole number >= 0; returns where it ends."""
    size, power = 1, np.int64(10)
    while value >= power:
        size += 1
        power *= 10
    for k in range(size):
        out[at + size - 1 - k] = ZERO + value % 10
        value //= 10
    return at + size


def powers_of_ten() -> Floats:
    """10 ** 0 ... 10 ** 308, each correctly rounded, for scanning and writing numbers."""
    return read_only(np.array([float(f"1e{k}") for k in range(309)]))
