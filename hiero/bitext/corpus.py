"""Read text and parallel text as word ids."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids, Ints, read_only
from hiero.core.errors import FormatError
from hiero.core.scan_kernels import split_lines_kernel
from hiero.core.symbol_kernels import WordTable, find_all_kernel
from hiero.core.symbols import intern_tokens, local_vocabulary, word_table_of
from hiero.core.text import read_utf8_chunks


class Text(NamedTuple):
    """Lines of words; read-only.

    first  int64 [S + 1]  words of line s: word[first[s]:first[s + 1]]
    word   int32 [N]      ids in ``words``, in the order of first occurrence
    words  WordTable
    """

    first: Ints
    word: Ids
    words: WordTable

    @property
    def num_lines(self) -> int:
        return len(self.first) - 1

    @property
    def num_words(self) -> int:
        """The number of distinct words."""
        return len(self.words.first) - 1

    @property
    def length(self) -> Ints:
        """Words of each line."""
        return np.diff(self.first)


class Bitext(NamedTuple):
    """Two texts of equal length; line s of one is the translation of line s of the other."""

    src: Text
    tgt: Text

    @property
    def num_pairs(self) -> int:
        return self.src.num_lines


def read_bitext(src: str | Path, tgt: str | Path) -> Bitext:
    """Read two parallel files, plain or gz. Either side of a pair may be empty, but there must be a pair."""
    return check_bitext(Bitext(read_text(src, "source text"), read_text(tgt, "target text")), src, tgt)


def check_bitext(bitext: Bitext, src: str | Path, tgt: str | Path) -> Bitext:
    """Refuse texts of different lengths, and empty ones; ``src`` and ``tgt`` are their names in messages."""
    if bitext.src.num_lines != bitext.tgt.num_lines:
        (short, short_path), (long, long_path) = sorted(
            [(bitext.src.num_lines, src), (bitext.tgt.num_lines, tgt)], key=lambda side: side[0]
        )
        expected = f"a line, as there are {long} in {long_path}"
        hint = "line n of one file must be the translation of line n of the other"
        raise FormatError(short_path, short + 1, found="the end of the file", expected=expected, hint=hint)
    if not bitext.num_pairs:
        raise FormatError(src, 0, found="no line", expected="sentences, one a line")
    return bitext


def read_text(path: str | Path, what: str = "text") -> Text:
    """Read a UTF-8 text. Lines end at ``\\n`` only, words are separated by spaces and tabs."""
    return text_of(chunk.data for chunk in read_utf8_chunks(path, what=what))


def text_of(chunks: Iterable[bytes]) -> Text:
    """The text in chunks of whole lines, each ended by ``\\n``."""
    vocabulary = local_vocabulary()
    first: list[Ints] = [np.zeros(1, np.int64)]
    word: list[Ids] = []
    num_words = 0
    for chunk in chunks:
        text = np.frombuffer(chunk, np.uint8)
        token = np.empty((len(text) // 2 + 1, 2), np.int32)
        last = np.empty(chunk.count(b"\n"), np.int64)
        num_tokens = split_lines_kernel(text, token, last)
        vocabulary, ids = intern_tokens(vocabulary, text, token[:num_tokens])
        first.append(last + num_words)
        word.append(ids)
        num_words += num_tokens
    used = int(vocabulary.used[0])
    pool = vocabulary.pool[: vocabulary.first[used]].copy()
    return Text(
        read_only(np.concatenate(first)),
        read_only(np.concatenate(word) if word else np.zeros(0, np.int32)),
        word_table_of(read_only(pool), read_only(vocabulary.first[: used + 1].copy())),
    )


def appended(text: Text, more: Text) -> Text:
    """The lines of a text, then those of another, with the words of both; the ids of the first stay."""
    ids = np.empty(more.num_words, np.int32)
    find_all_kernel(text.words, more.words.pool, more.words.first, ids)
    unknown = np.flatnonzero(ids < 0)
    ids[unknown] = text.num_words + np.arange(len(unknown))
    begin, end = more.words.first[unknown], more.words.first[unknown + 1]
    pieces = [more.words.pool[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
    first = np.concatenate([text.words.first, text.words.first[-1] + np.cumsum(end - begin)])
    return Text(
        read_only(np.concatenate([text.first, text.first[-1] + more.first[1:]])),
        read_only(np.concatenate([text.word, ids[more.word]])),
        word_table_of(read_only(np.concatenate([text.words.pool, *pieces])), read_only(first)),
    )


def bitext_parts(src: str | Path, tgt: str | Path, pairs: int) -> Iterator[Bitext]:
    """Read two parallel files piece by piece: so many pairs each, with vocabularies of their own."""
    sides = _lines(src, "source text"), _lines(tgt, "target text")
    done = 0
    while True:
        one, other = (list(itertools.islice(side, pairs)) for side in sides)
        if len(one) != len(other):
            short, long = (src, tgt) if len(one) < len(other) else (tgt, src)
            line = done + min(len(one), len(other)) + 1
            expected = f"a line, as there are more in {long}"
            hint = "line n of one file must be the translation of line n of the other"
            raise FormatError(short, line, found="the end of the file", expected=expected, hint=hint)
        if not one:
            return
        yield Bitext(*(text_of([b"\n".join(lines) + b"\n"]) for lines in (one, other)))
        done += len(one)


def _lines(path: str | Path, what: str) -> Iterator[bytes]:
    for chunk in read_utf8_chunks(path, what=what):
        yield from chunk.data[:-1].split(b"\n")
