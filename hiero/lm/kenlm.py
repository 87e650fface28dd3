"""KenLM's formats: binary models, and the output of its ``query``.

A binary file, all little-endian: a check of byte order and sizes; order, multiplier, type; one count per
order; and for type ``probing`` a hash table of words, not needed; unigrams; one hash table for every higher
order, whose buckets hold a key and a float32 probability and, unless it is of the longest, a back-off, with
keys and signs as in ``table_kernels.Ngrams``; the words. Tries are described below.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Bytes, Floats32, Hashes, Ints, is_finite, read_only
from hiero.core.errors import FormatError
from hiero.core.records import MAX_ORDER
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import find_all, word_table_of
from hiero.core.text import open_bytes
from hiero.lm.model import ReadModel, ScoredText
from hiero.lm.table_kernels import (
    OpenTable,
    insert_kernel,
    insert_level_kernel,
    open_table,
    unpack_level_kernel,
)

MAGIC = b"mmap lm http://kheafield.com/code"
WHAT = "a KenLM binary"
READ = "type probing, trie, or a variant of trie"
CHECK = struct.Struct("<56s3f3IQ")
CHECKED = (MAGIC + b" format version 5\n", 0.0, 1.0, -0.5, 1, 2**32 - 1, 0, 1)
FIXED = struct.Struct("<B3xfIB3xI")
TYPES = (
    "probing",
    "probing with rest costs",
    "trie",
    "quantised trie",
    "trie with compressed pointers",
    "quantised trie with compressed pointers",
)
PROBING, FIRST_TRIE = 0, 2
READ_TYPES = (PROBING, *range(FIRST_TRIE, len(TYPES)))
REBUILD = "rebuild it with: build_binary probing ARPA OUT, or give the ARPA file itself"
WORD_BUCKET, UNIGRAM, MIDDLE_BUCKET, LONGEST_BUCKET = 12, 8, 16, 12  # bytes
MOST_MULTIPLIER = 100  # buckets for each n-gram; the usual number is 1.5
PIECE = 1 << 18  # buckets copied at a time


class _Layout(NamedTuple):
    """Offsets of the sections of the file, in bytes."""

    kind: int
    counts: tuple[int, ...]
    words: int
    unigrams: int
    tables: tuple[tuple[int, int], ...]  # start and number of buckets, for orders 2, 3, ...
    strings: int


def read_kenlm(path: Path) -> ReadModel:
    """Read the model in a file."""
    with open_bytes(path, WHAT) as stream:
        num_bytes = stream.seek(0, 2)
        if num_bytes < CHECK.size + FIXED.size:
            raise _truncated(path, num_bytes)
        data = np.memmap(stream, np.uint8, "r")
    layout = _layout(path, data)
    if layout.kind >= FIRST_TRIE:
        quantised, compressed = bool((layout.kind - FIRST_TRIE) & 1), layout.kind - FIRST_TRIE >= 2
        read = read_trie(TrieFile(path, data, layout.counts, layout.words, quantised, compressed))
        words = _words(path, data[read.strings :].tobytes(), layout.counts[0])
        return _checked(path, read.table, read.unigram, layout, words)
    _, num_words = struct.unpack("<II", data[layout.words :][:8].tobytes())
    words = _words(path, data[layout.strings :].tobytes(), num_words)
    num_unigrams = min(num_words, layout.counts[0] + 1)
    if num_words > num_unigrams:
        found, hint = f"{num_words} words for {num_unigrams} probabilities", "the file is damaged"
        raise FormatError(path, 0, found=found, expected="one of each", hint=hint)
    unigram = data[layout.unigrams :][: num_unigrams * UNIGRAM].view(np.uint8).copy().view(np.float32)
    return _checked(path, _fill(path, data, layout), unigram.reshape(-1, 2), layout, words)


def _checked(path: Path, table: OpenTable, unigram: Floats32, layout: _Layout, words: WordTable) -> ReadModel:
    bos, eos = find_all(words, [b"<s>", b"</s>"]).tolist()
    if min(bos, eos) < 0:
        raise FormatError(path, 0, found="a vocabulary without <s> or </s>", expected="both")
    if not (is_finite(unigram) and is_finite(table.value.reshape(-1, 4)[:, 2:])):
        raise FormatError(path, 0, found="a probability that is not finite", expected=WHAT, hint=REBUILD)
    return ReadModel(table, unigram, len(layout.counts), bos, eos, words)


def kenlm_type(start: bytes) -> int | None:
    """The type of a binary (see ``TYPES``) by the beginning of the file; None if it is no binary of KenLM."""
    if not start.startswith(MAGIC) or len(start) < CHECK.size + FIXED.size:
        return None
    return int(FIXED.unpack(start[CHECK.size :][: FIXED.size])[2])


def _truncated(path: Path, num_bytes: int) -> FormatError:
    return FormatError(
        path, 0, found=f"{num_bytes} bytes", expected="more, as its header says", hint="the file is truncated"
    )


def _layout(path: Path, data: Bytes) -> _Layout:
    magic, *numbers = CHECK.unpack(data[: CHECK.size].tobytes())
    if (magic.rstrip(b"\0"), *numbers) != CHECKED:
        first = magic.split(b"\n")[0].decode("ascii", "replace")
        raise FormatError(path, 0, found=f"'{first}'", expected=f"{WHAT}, version 5, 64 bit", hint=REBUILD)
    order, multiplier, kind, has_words, version = FIXED.unpack(data[CHECK.size :][: FIXED.size].tobytes())
    is_trie = FIRST_TRIE <= kind < len(TYPES)
    usual = TRIE_VERSION if is_trie else 0
    if kind not in READ_TYPES or version != usual:
        name = TYPES[kind] if kind < len(TYPES) else f"unknown ({kind})"
        found = f"a KenLM binary of type {name}" + (f", version {version}" if version != usual else "")
        raise FormatError(path, 0, found=found, expected=READ, hint=REBUILD)
    if not has_words:
        raise FormatError(path, 0, found="a KenLM binary without its words", expected=WHAT, hint=REBUILD)
    if not 2 <= order <= MAX_ORDER:
        raise FormatError(path, 0, found=f"order {order}", expected=f"2 to {MAX_ORDER}")
    if not is_trie and not 1 <= multiplier <= MOST_MULTIPLIER:
        raise FormatError(
            path, 0, found=f"tables {multiplier:g} times too large", expected=WHAT, hint=REBUILD
        )
    start = CHECK.size + FIXED.size
    if len(data) < start + 8 * order:
        raise _truncated(path, len(data))
    counts = struct.unpack(f"<{order}Q", data[start:][: 8 * order].tobytes())
    start = (start + 8 * order + 7) // 8 * 8
    if is_trie:
        return _Layout(kind, counts, start, 0, (), 0)  # the rest is known to ``read_trie``
    return _sections(path, len(data), counts, np.float32(multiplier), start)


def _sections(
    path: Path, num_bytes: int, counts: tuple[int, ...], multiplier: np.float32, start: int
) -> _Layout:
    def buckets(entries: int) -> int:
        if entries > num_bytes:
            raise _truncated(path, num_bytes)
        # In single precision, as in KenLM.
        return max(entries + 1, int(multiplier * np.float32(entries)))

    unigrams = start + 8 + buckets(counts[0]) * WORD_BUCKET
    at = unigrams + (counts[0] + 1) * UNIGRAM
    tables = []
    for order, count in enumerate(counts[1:], 2):
        tables.append((at, buckets(count)))
        at += buckets(count) * (MIDDLE_BUCKET if order < len(counts) else LONGEST_BUCKET)
    if num_bytes < at + len(b"<unk>\0"):
        raise _truncated(path, num_bytes)
    return _Layout(PROBING, counts, start, unigrams, tuple(tables), at)


def _words(path: Path, text: bytes, num_words: int) -> WordTable:
    data = np.frombuffer(text, np.uint8)
    end = np.flatnonzero(data == 0)
    if not text.startswith(b"<unk>\0") or len(end) != num_words or text[-1]:
        found = f"{len(end)} words after the tables"
        raise FormatError(
            path,
            0,
            found=found,
            expected=f"{num_words}, <unk> first",
            hint="the file is truncated or damaged",
        )
    # Each word is followed by a zero byte, which is dropped.
    first = np.concatenate([np.zeros(1, np.int64), end - np.arange(num_words)])
    return word_table_of(read_only(data[data != 0]), read_only(first))


def _pieces(data: Bytes, layout: _Layout) -> Iterator[tuple[int, npt.NDArray[np.uint32]]]:
    """The buckets of all tables, with the length of their n-grams; copied because they may be unaligned."""
    for order, (start, buckets) in enumerate(layout.tables, 2):
        size = MIDDLE_BUCKET if order < len(layout.counts) else LONGEST_BUCKET
        for piece in range(0, buckets, PIECE):
            stop = min(piece + PIECE, buckets)
            raw = data[start + piece * size : start + stop * size].tobytes()
            yield order, np.frombuffer(raw, np.uint32).reshape(-1, size // 4)


def _fill(path: Path, data: Bytes, layout: _Layout) -> OpenTable:
    # The tables contain n-grams that KenLM added and its counts leave out, so buckets are counted.
    used = sum(int(np.count_nonzero(bucket[:, 0] | bucket[:, 1])) for _, bucket in _pieces(data, layout))
    table = open_table(used)
    for size, bucket in _pieces(data, layout):
        if not insert_kernel(bucket, bucket.view(np.float32), size, table):
            raise FormatError(
                path,
                0,
                found="more n-grams than were counted",
                expected=WHAT,
                hint="the file is being written",
            )
    return table


# ---- query


class KenlmQuerySummary:
    """Sums as in KenLM's query: totals of lines in single precision, of the corpus in double."""

    def __init__(self) -> None:
        self.total, self.unknown_total = 0.0, 0.0
        self.tokens, self.unknown = 0, 0

    def add(self, scored: ScoredText) -> None:
        self.unknown_total += float(np.sum(scored.prob[scored.word == 0], dtype=np.float64))
        self.unknown += int(np.count_nonzero(scored.word == 0))
        self.tokens += len(scored.word)

    def text(self) -> str:
        known = _perplexity(self.total - self.unknown_total, self.tokens - self.unknown)
        return (
            f"Perplexity including OOVs:\t{format_kenlm_number(_perplexity(self.total, self.tokens))}\n"
            f"Perplexity excluding OOVs:\t{format_kenlm_number(known)}\n"
            f"OOVs:\t{self.unknown}\nTokens:\t{self.tokens}\n"
        )


def _perplexity(total: float, tokens: int) -> np.float64:
    with np.errstate(all="ignore"):
        return np.float64(10.0) ** -(np.float64(total) / np.float64(tokens))


def kenlm_query_lines(
    scored: ScoredText, text: bytes, levels: set[str], summary: KenlmQuerySummary
) -> Iterator[str]:
    """The lines of KenLM's query for words, sentences, or both (``levels``)."""
    summary.add(scored)
    words, lengths, probs = scored.word.tolist(), scored.length.tolist(), list(scored.prob)
    spans, first = scored.span.tolist(), scored.first.tolist()
    for begin, end in itertools.pairwise(first):
        if "word" in levels:
            for n in range(begin, end):
                start, stop = spans[n]
                surface = text[start:stop].decode("utf-8", "surrogateescape") if stop else "</s>"
                yield f"{surface}={words[n]} {lengths[n]} {format_kenlm_number(probs[n])}\t"
        # Added one by one in single precision, as in KenLM: np.sum adds in pairs.
        total = np.add.accumulate(scored.prob[begin:end])[-1] if end > begin else np.float32(0.0)
        summary.total += float(total)
        if "sentence" in levels:
            yield f"Total: {format_kenlm_number(total)} OOV: {words[begin:end].count(0)}\n"


def format_kenlm_number(value: np.floating) -> str:
    """The shortest digits that read back as the same number, written as KenLM (and JavaScript) write them."""
    text = str(value)
    if "e" not in text and "n" not in text:
        return text.removesuffix(".0")
    if np.isnan(value):
        return "NaN"
    if np.isinf(value) or 1e-6 <= abs(value) < 1e21:
        return np.format_float_positional(value, unique=True, trim="-") if np.isfinite(value) else text
    return np.format_float_scientific(value, unique=True, trim="-", exp_digits=1).replace("e+", "e")


# ---- tries
#
# After the header there are the sorted hashes of words, which are not needed; if quantised, a byte each with
# version 2 and the bits of probabilities and of back-offs, 5 bytes of padding, and for each length from 2 on
# the float32 values of the codes, of probabilities and, unless it is the longest, of back-offs; the words; a
# table for each other length; the words as text.
#
# A trie node is an n-gram, and its parent the n-gram without the first word: the children of ``b c`` are ``a
# b c``. Words are entries of 16 bytes: a probability, a back-off, and the number of the first child; a last
# entry has only the latter. Longer n-grams are packed into bits: the first word; the probability as float32
# without its sign, which is negative, and the back-off as float32, or the codes of back-off and probability;
# the number of the first child. The longest have the probability alone. A last entry closes the pointers.
# With compressed pointers, a list stands before each table but the last: for each value h of the high bits of
# pointers, the first entry with h or more; the entries have only the low bits. The list begins with a byte of
# its version, 0, and one with the greatest number of high bits.

WORD_ENTRY = np.dtype([("prob", "<f4"), ("backoff", "<f4"), ("next", "<i8")])
CODES_VERSION, POINTERS_VERSION = 2, 0
MOST_CODE_BITS = 25
PROB_BITS, BACKOFF_BITS = 31, 32  # of those that are not quantised
SPARE_BYTES = 8  # after a table, because KenLM reads 8 bytes at a time
SIGN = np.uint32(1 << 31)
TRIE_VERSION = 1


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
    words, levels, strings = _trie_sections(file)
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


def _trie_sections(file: TrieFile) -> tuple[npt.NDArray[np.void], list[_Level], int]:
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
    for first, word, bits, _ in _trie_pieces(file, level, count):
        if word.max() >= file.counts[0]:
            raise damaged(file.path)
        last = first + len(word)
        prob, backoff = _numbers(level, bits, is_longest)
        value = np.stack([_signed(prob, np.diff(own_first_child[first : last + 1])), backoff], axis=1)
        parent = insert_level_kernel(
            word, value, first, parent, first_child, parent_key, order, key[first:last], table
        )
    return key, own_first_child


def _trie_pieces(
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
    for first, _, _, pointer in _trie_pieces(file, level, len(out_pointer)):
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
