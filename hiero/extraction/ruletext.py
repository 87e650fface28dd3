# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Extracted rules as cdec's text, written by a kernel: the output of ``cdec.write_cdec``, much faster.

For rules of one label, without named features, whose words are numbered by one table for each side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.jit import kernel, leaf
from hiero.core.scanner import HYPHEN, NEWLINE, POINT, SMALL_E, SPACE, ZERO, put_whole
from hiero.core.symbols import WordTable, pack, read_only
from hiero.grammar.cdec import spell_word
from hiero.grammar.rules import Rules

DIGITS = 9  # enough to tell any two float32s apart
NUMBER_BYTES = DIGITS + 8  # sign, point, four zeros after the point; or an exponent
LINK_BYTES = 14
OPEN_BRACKET, BAR = 91, 124


class Pieces(NamedTuple):
    """Byte strings end to end: piece p is pool[first[p]:first[p + 1]]."""

    pool: npt.NDArray[np.uint8]
    first: npt.NDArray[np.int64]


def spellings(table: WordTable) -> tuple[Pieces, int]:
    """The written form of word w as piece w (there is no word 0), and the number of words escaped."""
    lead = table.pool[np.minimum(table.first[:-1], max(len(table.pool) - 1, 0))]
    odd = np.flatnonzero((lead == OPEN_BRACKET) | (lead == BAR)).tolist()
    pool, first = table.pool, table.first
    changed = 0
    entries = []
    for word in odd:
        entry = pool[first[word] : first[word + 1]].tobytes()
        spelt = spell_word(entry)
        changed += spelt != entry
        entries.append(spelt)
    if changed:
        words = [pool[a:b].tobytes() for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]
        for word, spelt in zip(odd, entries, strict=True):
            words[word] = spelt
        pool, first = pack(words)
    return Pieces(read_only(pool), read_only(np.concatenate([first[:1], first]))), changed


class RuleText:
    """Writes rules of one index as text."""

    def __init__(self, src: WordTable, tgt: WordTable, label: bytes, names: Sequence[bytes]) -> None:
        self.src, escaped_src = spellings(src)
        self.tgt, escaped_tgt = spellings(tgt)
        self.num_escaped = escaped_src + escaped_tgt
        fixed = [b"[%s] ||| " % label, b" ||| ", b" ||| ", b" ||| "]
        gaps = [b"[%s,1]" % label, b"[%s,2]" % label]
        # A blank and the name before each feature; no blank before the first, which follows the bars.
        features = [(b" " if k else b"") + name + b"=" for k, name in enumerate(names)]
        self.fixed = Pieces(*pack([*fixed, *gaps, *features]))
        self.powers = read_only(np.array([float(f"1e{k}") for k in range(-30, 31)]))

    def lines(self, rules: Rules) -> bytes:
        """A line per rule."""
        room = np.zeros(1, np.int64)
        rules = Rules(**{name: read_only(array) for name, array in rules._asdict().items()})
        sides = rules.first_src, rules.src, rules.first_tgt, rules.tgt
        text_room_kernel(self.src, self.tgt, self.fixed, *sides, rules.dense, rules.first_link, room)
        out = np.empty(int(room[0]), np.uint8)
        used = format_rules_kernel(
            self.src,
            self.tgt,
            self.fixed,
            self.powers,
            *sides,
            rules.dense,
            rules.first_link,
            rules.link,
            out,
        )
        return out[:used].tobytes()


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
