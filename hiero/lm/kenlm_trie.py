"""KenLM's tries: binary models of type ``trie``, also quantised and with compressed pointers.

After the header there are the sorted hashes of words, which are not needed; if quantised, a byte each with
version 2 and the bits of probabilities and of back-offs, 5 bytes of padding, and for each length from 2 on
the float32 values of the codes, of probabilities and, unless it is the longest, of back-offs; the words; a
table for each other length; the words as text.

A trie node is an n-gram, and its parent the n-gram without the first word: the children of ``b c`` are ``a
b c``. Words are entries of 16 bytes: a probability, a back-off, and the number of the first child; a last
entry has only the latter. Longer n-grams are packed into bits: the first word; the probability as float32
without its sign, which is negative, and the back-off as float32, or the codes of back-off and probability;
the number of the first child. The longest have the probability alone. A last entry closes the pointers.
With compressed pointers, a list stands before each table but the last: for each value h of the high bits of
pointers, the first entry with h or more; the entries have only the low bits. The list begins with a byte of
its version, 0, and one with the greatest number of high bits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Bytes, Floats32, Hashes, Ints, read_only
from hiero.core.errors import FormatError
from hiero.lm.kenlm_trie_kernels import insert_level_kernel, unpack_level_kernel
from hiero.lm.table_kernels import OpenTable, open_table

WORD_ENTRY = np.dtype([("prob", "<f4"), ("backoff", "<f4"), ("next", "<i8")])
CODES_VERSION, POINTERS_VERSION = 2, 0
MOST_CODE_BITS = 25
PROB_BITS, BACKOFF_BITS = 31, 32  # of those that are not quantised
SPARE_BYTES = 8  # after a table, because KenLM reads 8 bytes at a time
SIGN = np.uint32(1 << 31)
PIECE = 1 << 18  # entries at a time
VERSION = 1


class TrieFile(NamedTuple):
    """A file, and what its header says of it.

    counts    n-grams of each length, those that KenLM added included
    start     offset of the section of words
    """

    path: Path
    data: Bytes
    counts: tuple[int, ...]
    start: int
    quantised: bool
    compressed: bool


class _Level(NamedTuple):
    """The table of one length.

    begin     offset of the packed entries
    widths    bits of word, two numbers, and pointer
    high      offset and number of the entries of a list of high bits, or (0, 0)
    codes     values of codes: probabilities, back-offs; none if not quantised
    """

    begin: int
    widths: tuple[int, int, int, int]
    high: tuple[int, int]
    codes: tuple[Floats32, ...]


class TrieTables(NamedTuple):
    """The n-grams of a trie in the form of ``Ngrams``, and the offset of the words as text."""

    table: OpenTable
    unigram: Floats32
    strings: int


def read_trie(file: TrieFile) -> TrieTables:
    """Read all n-grams."""
    words, levels, strings = _sections(file)
    first_child = words["next"].copy()
    if not _are_children(first_child, file.counts[1]):
        raise damaged(file.path)
    unigram = np.stack([_signed(words["prob"][:-1].copy(), np.diff(first_child)), words["backoff"][:-1]], 1)
    table = open_table(sum(file.counts[1:]))
    parent_key: Hashes = np.arange(file.counts[0], dtype=np.uint64)
    for order, level in enumerate(levels, 2):
        parent_key, first_child = _add_level(file, order, level, parent_key, first_child, table)
    return TrieTables(table, np.ascontiguousarray(unigram, np.float32), strings)


def damaged(path: Path) -> FormatError:
    return FormatError(
        path,
        0,
        found="a trie whose parts do not fit together",
        expected="n-grams below their endings",
        hint="the file is damaged",
    )


def _too_short(file: TrieFile) -> FormatError:
    num_bytes = f"{len(file.data)} bytes"
    return FormatError(
        file.path, 0, found=num_bytes, expected="more, as its header says", hint="the file is truncated"
    )


def _sections(file: TrieFile) -> tuple[npt.NDArray[np.void], list[_Level], int]:
    """The entries of words, the tables of longer n-grams, and where the text of words begins."""
    counts, order = file.counts, len(file.counts)
    if max(counts) > 8 * len(file.data):
        raise _too_short(file)
    at = file.start + 8 * (counts[0] + 1)
    prob_bits, backoff_bits = PROB_BITS, BACKOFF_BITS
    codes: list[tuple[Floats32, ...]] = [()] * (order - 1)
    if file.quantised:
        (prob_bits, backoff_bits), codes, at = _codes(file, at)
    unigrams = at
    at += WORD_ENTRY.itemsize * (counts[0] + 2)
    high_bits = 0
    if file.compressed and order > 2:
        version, high_bits = _bytes(file, at, 2)
        if version != POINTERS_VERSION or high_bits > 64:
            found = f"compressed pointers of version {version}"
            raise FormatError(file.path, 0, found=found, expected=f"version {POINTERS_VERSION}")
    levels = []
    word_bits = counts[0].bit_length()
    values = (backoff_bits, prob_bits) if file.quantised else (prob_bits, backoff_bits)
    for length in range(2, order):
        count, following = counts[length - 1], counts[length]
        bits, high, at = following.bit_length(), (0, 0), at
        if file.compressed:
            chopped = _chopped(count + 1, following, high_bits)
            size = (following >> (bits - chopped)) + 1
            high = ((at + 7) // 8 * 8 + 8, size)
            bits -= chopped
            at += 8 * (1 + size) + 7
        widths = word_bits, *values, bits
        levels.append(_Level(at, widths, high, codes[length - 2]))
        at += _packed(count, sum(widths))
    widths = word_bits, prob_bits, 0, 0
    levels.append(_Level(at, widths, (0, 0), codes[-1]))
    at += _packed(counts[-1], sum(widths))
    if len(file.data) < at + len(b"<unk>\0"):
        raise _too_short(file)
    words = file.data[unigrams:][: WORD_ENTRY.itemsize * (counts[0] + 1)].tobytes()
    return np.frombuffer(words, WORD_ENTRY), levels, at


def _bytes(file: TrieFile, at: int, size: int) -> tuple[int, ...]:
    if len(file.data) < at + size:
        raise _too_short(file)
    return struct.unpack(f"<{size}B", file.data[at : at + size].tobytes())


def _codes(file: TrieFile, at: int) -> tuple[tuple[int, int], list[tuple[Floats32, ...]], int]:
    """The bits of codes, their values for each length from 2 on, and the offset after them."""
    version, prob_bits, backoff_bits = _bytes(file, at, 3)
    if version != CODES_VERSION:
        found = f"quantised numbers of version {version}"
        raise FormatError(file.path, 0, found=found, expected=f"version {CODES_VERSION}")
    if not (min(prob_bits, backoff_bits) >= 1 and max(prob_bits, backoff_bits) <= MOST_CODE_BITS):
        found = f"codes of {prob_bits} and {backoff_bits} bits"
        raise FormatError(file.path, 0, found=found, expected=f"1 to {MOST_CODE_BITS}")
    at += 8
    codes: list[tuple[Floats32, ...]] = []
    for length in range(2, len(file.counts) + 1):
        bits = (prob_bits, backoff_bits)[: 2 if length < len(file.counts) else 1]
        values: list[Floats32] = []
        for width in bits:
            raw = file.data[at : at + (4 << width)]
            if len(raw) < 4 << width:
                raise _too_short(file)
            values.append(np.frombuffer(raw.tobytes(), "<f4"))
            at += 4 << width
        codes.append(tuple(values))
    return (prob_bits, backoff_bits), codes, at


def _chopped(num_entries: int, largest: int, most: int) -> int:
    """The number of high bits in the list, which KenLM chooses by the size of the file."""
    required = largest.bit_length()
    cost = [(largest >> (required - k)) * 64 - num_entries * k for k in range(min(required, most) + 1)]
    return cost.index(min(cost))


def _packed(count: int, bits: int) -> int:
    """Bytes of a packed table."""
    return ((1 + count) * bits + 7) // 8 + SPARE_BYTES


def _are_children(first_child: Ints, count: int) -> bool:
    return bool(
        first_child[0] == 0 and first_child[-1] == count and (first_child[:-1] <= first_child[1:]).all()
    )


def _signed(prob: Floats32, num_children: Ints) -> Floats32:
    """Stored probabilities: positive where a longer n-gram ends with this one, see ``Ngrams``."""
    return np.where(num_children > 0, np.abs(prob), -np.abs(prob)).astype(np.float32)


def _add_level(
    file: TrieFile, order: int, level: _Level, parent_key: Hashes, first_child: Ints, table: OpenTable
) -> tuple[Hashes, Ints]:
    """Enter the n-grams of one length; returns their keys and the offsets of their children."""
    count, is_longest = file.counts[order - 1], order == len(file.counts)
    key: Hashes = np.empty(count, np.uint64)
    own_first_child = np.zeros(count + 1, np.int64)
    if not is_longest:
        _fill_pointers(file, level, own_first_child)
        if not _are_children(own_first_child, file.counts[order]):
            raise damaged(file.path)
    parent = 0
    for first, word, bits, _ in _pieces(file, level, count):
        if word.max() >= file.counts[0]:
            raise damaged(file.path)
        last = first + len(word)
        prob, backoff = _numbers(level, bits, is_longest)
        value = np.stack([_signed(prob, np.diff(own_first_child[first : last + 1])), backoff], axis=1)
        parent = insert_level_kernel(
            word, value, first, parent, first_child, parent_key, key[first:last], table
        )
    return key, own_first_child


def _pieces(
    file: TrieFile, level: _Level, count: int
) -> Iterator[tuple[int, Ints, npt.NDArray[np.uint32], Ints]]:
    """The first entry, words, numbers and pointers of pieces of ``count`` entries."""
    data = read_only(file.data[level.begin : level.begin + _packed(count, sum(level.widths))])
    widths = np.array(level.widths, np.int64)
    for first in range(0, count, PIECE):
        size = min(PIECE, count - first)
        word, pointer = np.empty(size, np.int64), np.empty(size, np.int64)
        bits = np.empty((size, 2), np.uint32)
        unpack_level_kernel(data, first, widths, word, bits, pointer)
        yield first, word, bits, pointer


def _fill_pointers(file: TrieFile, level: _Level, out_pointer: Ints) -> None:
    begin, size = level.high
    high = file.data[begin : begin + 8 * size].tobytes()
    limits = np.frombuffer(high, "<u8").astype(np.int64)
    low_bits = level.widths[3]
    for first, _, _, pointer in _pieces(file, level, len(out_pointer)):
        out = out_pointer[first : first + len(pointer)]
        out[:] = pointer
        if size:
            entry = np.arange(first, first + len(pointer))
            out += (np.searchsorted(limits, entry, side="right") - 1) << low_bits


def _numbers(level: _Level, bits: npt.NDArray[np.uint32], is_longest: bool) -> tuple[Floats32, Floats32]:
    """Probabilities and back-offs of entries; a longest n-gram has none, which is -0.0."""
    none = np.full(len(bits), -0.0, np.float32)
    if not level.codes:
        prob = (bits[:, 0] | SIGN).view(np.float32)
        return prob, none if is_longest else bits[:, 1].copy().view(np.float32)
    if is_longest:
        return level.codes[0][bits[:, 0]], none
    return level.codes[0][bits[:, 1]], level.codes[1][bits[:, 0]]
