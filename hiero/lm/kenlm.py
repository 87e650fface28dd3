"""KenLM's formats: binary models, and the output of its ``query``.

A binary file, all little-endian: a check of byte order and sizes; order, multiplier, type; one count per
order; and for type ``probing`` a hash table of words, not needed; unigrams; one hash table for every higher
order, whose buckets hold a key and a float32 probability and, unless it is of the longest, a back-off, with
keys and signs as in ``table_kernels.Ngrams``; the words. Types of tries are in ``kenlm_trie.py``.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Bytes, Floats32, is_finite, read_only
from hiero.core.errors import FormatError
from hiero.core.records import MAX_ORDER
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import find_all, word_table_of
from hiero.core.text import open_bytes
from hiero.lm.kenlm_trie import VERSION as TRIE_VERSION
from hiero.lm.kenlm_trie import TrieFile, read_trie
from hiero.lm.model import ScoredText, ngrams_of
from hiero.lm.table_kernels import Ngrams, OpenTable, insert_kernel, open_table

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


def read_kenlm(path: Path) -> tuple[Ngrams, WordTable]:
    """The model in a file and its words in the order of their ids."""
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
        return _checked(path, read.table, read.unigram, layout, words), words
    _, num_words = struct.unpack("<II", data[layout.words :][:8].tobytes())
    words = _words(path, data[layout.strings :].tobytes(), num_words)
    num_unigrams = min(num_words, layout.counts[0] + 1)
    if num_words > num_unigrams:
        found, hint = f"{num_words} words for {num_unigrams} probabilities", "the file is damaged"
        raise FormatError(path, 0, found=found, expected="one of each", hint=hint)
    unigram = data[layout.unigrams :][: num_unigrams * UNIGRAM].view(np.uint8).copy().view(np.float32)
    return _checked(path, _fill(path, data, layout), unigram.reshape(-1, 2), layout, words), words


def _checked(path: Path, table: OpenTable, unigram: Floats32, layout: _Layout, words: WordTable) -> Ngrams:
    markers = find_all(words, [b"<s>", b"</s>"]).tolist()
    if min(markers) < 0:
        raise FormatError(path, 0, found="a vocabulary without <s> or </s>", expected="both")
    if not (is_finite(unigram) and is_finite(table.value.reshape(-1, 4)[:, 2:])):
        raise FormatError(path, 0, found="a probability that is not finite", expected=WHAT, hint=REBUILD)
    return ngrams_of(table.key, unigram, len(layout.counts), *markers)


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
        return _Layout(kind, counts, start, 0, (), 0)  # the rest is known to ``kenlm_trie.py``
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


def _pieces(data: Bytes, layout: _Layout) -> Iterator[npt.NDArray[np.uint32]]:
    """The buckets of all tables, copied because they may be unaligned in the file."""
    for order, (start, buckets) in enumerate(layout.tables, 2):
        size = MIDDLE_BUCKET if order < len(layout.counts) else LONGEST_BUCKET
        for piece in range(0, buckets, PIECE):
            stop = min(piece + PIECE, buckets)
            raw = data[start + piece * size : start + stop * size].tobytes()
            yield np.frombuffer(raw, np.uint32).reshape(-1, size // 4)


def _fill(path: Path, data: Bytes, layout: _Layout) -> OpenTable:
    # The tables contain n-grams that KenLM added and its counts leave out, so buckets are counted.
    used = sum(int(np.count_nonzero(bucket[:, 0] | bucket[:, 1])) for bucket in _pieces(data, layout))
    table = open_table(used)
    for bucket in _pieces(data, layout):
        if not insert_kernel(bucket, bucket.view(np.float32), table):
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
