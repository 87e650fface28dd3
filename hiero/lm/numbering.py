# mypy: allow-untyped-calls
"""Word ids of a training text of any length; 0, 1, 2 are <unk>, <s>, </s>."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.core.errors import FormatError, show
from hiero.core.symbols import WordTable, fill_slots_kernel, read_only, word_table_of
from hiero.core.text import read_utf8_chunks
from hiero.lm.external_sort import Spool
from hiero.lm.ngram_part_kernels import NO_ROOM, NUM_SPECIAL, SPECIAL, number_words_kernel

SPECIAL_WORDS = b"<unk> <s> </s>\n"
CHUNK_BYTES = 1 << 20

Report = Callable[[str, int, "int | None"], None]


class Numbered(NamedTuple):
    """A text as word ids.

    ids        int32 [T]  of its words, </s> at the end of each line
    words      WordTable  all words of the text, or <unk> and the words of the vocabulary
    num_lines
    """

    ids: Spool
    words: WordTable
    num_lines: int


class WordNumbering:
    """A growing vocabulary of words."""

    def __init__(self) -> None:
        first = np.zeros(1 << 12, np.int64)
        self._table = WordTable(np.empty(1 << 16, np.uint8), first, np.full(1 << 13, -1, np.int32))
        self._size = 0
        self.number(SPECIAL_WORDS, is_open=True, skip=False)

    def __len__(self) -> int:
        return self._size

    def number(self, text: bytes, *, is_open: bool, skip: bool) -> tuple[np.ndarray, int | None]:
        """The ids of the words in whole lines, and the position of a special word unless they are skipped."""
        data = np.frombuffer(text, np.uint8)
        ids = np.empty(len(data), np.int32)
        state = np.array([0, self._size, 0], np.int64)
        while (status := number_words_kernel(data, self._table, is_open, skip, state, ids)) == NO_ROOM:
            self._size = int(state[1])
            self._grow(len(data) - int(state[0]))
        self._size = int(state[1])
        return ids[: state[2]], int(state[0]) if status == SPECIAL else None

    def freeze(self) -> WordTable:
        first = self._table.first[: self._size + 1].copy()
        return word_table_of(read_only(self._table.pool[: first[-1]].copy()), read_only(first))

    def _grow(self, num_bytes: int) -> None:
        """Double the capacity, with room for a word of ``num_bytes``."""
        table, used = self._table, self._table.first[self._size]
        pool = np.empty(2 * len(table.pool) + num_bytes, np.uint8)
        pool[:used] = table.pool[:used]
        first = np.zeros(2 * len(table.first), np.int64)
        first[: self._size + 1] = table.first[: self._size + 1]
        slot = np.full(2 * len(table.slot), -1, np.int32)
        fill_slots_kernel(read_only(pool), read_only(first[: self._size + 1]), slot)
        self._table = WordTable(pool, first, slot)


def read_vocabulary(path: str | Path) -> WordNumbering:
    """Read the words in a file, separated by white space."""
    numbering = WordNumbering()
    for chunk in read_utf8_chunks(path, CHUNK_BYTES, "a list of words"):
        numbering.number(chunk.data, is_open=True, skip=True)
    if len(numbering) == NUM_SPECIAL:
        raise FormatError(path, 0, found="no words", expected="the vocabulary of the model")
    return numbering


def read_numbered(
    path: str | Path,
    vocabulary: str | Path | None,
    *,
    skip_symbols: bool,
    memory: int,
    folder: Path,
    report: Report,
) -> Numbered:
    """Read a UTF-8 text, plain or gz. With a vocabulary, words not in it are <unk>."""
    numbering = WordNumbering() if vocabulary is None else read_vocabulary(vocabulary)
    ids = Spool(0, np.int32, memory, folder)
    num_lines = 0
    for chunk in read_utf8_chunks(path, CHUNK_BYTES, "text"):
        data = chunk.data
        fresh, stopped = numbering.number(data, is_open=vocabulary is None, skip=skip_symbols)
        if stopped is not None:
            raise FormatError(
                path,
                chunk.first_line + data.count(b"\n", 0, stopped),
                found=show(data[stopped:].split(None, 1)[0]),
                expected="words of the language",
                hint="this symbol is reserved by the model; --skip-symbols leaves it out",
            )
        ids.append(fresh)
        num_lines += data.count(b"\n")
        report("reading lines", num_lines, None)
    if not num_lines:
        raise FormatError(path, 0, found="an empty file", expected="text, a sentence on each line")
    return Numbered(ids, numbering.freeze(), num_lines)
