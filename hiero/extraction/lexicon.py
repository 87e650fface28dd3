"""Lexical tables: p(source word | target word) and the reverse, from the links of an alignment."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Ids, Ints, read_only
from hiero.core.errors import HieroError
from hiero.core.symbol_kernels import WordTable
from hiero.extraction.config import LexiconSettings
from hiero.extraction.lexicon_kernels import (
    count_lexicon_kernel,
    grow_lexicon_kernel,
    lexicon_losses_kernel,
    recount_lexicon_kernel,
)
from hiero.extraction.table_kernels import IndexedLinks, IndexedText, LexicalLosses, Lexicon

if TYPE_CHECKING:
    from hiero.extraction.index import BitextIndex

FIRST_SIZE = 1 << 16


class Side(NamedTuple):
    """One side of a bitext.

    text      int32 [N]      words from 1 on; a 0 ends every sentence
    first     int64 [S + 1]  sentence s: text[first[s]:first[s + 1] - 1]
    num_words  number of distinct words
    """

    text: Ids
    first: Ints
    num_words: int


def make_lexicon(
    src: Side, tgt: Side, alignments: Sequence[tuple[Ints, npt.NDArray[np.int16]]]
) -> LexicalLosses:
    """Count the links of all alignments, given as (first link of each source place, target words).

    A word without a link counts as linked to the null word of the other side.
    """
    key, count = count_pairs(src, tgt, alignments)
    loss = np.zeros((len(key), 2), np.float32)
    lexicon_losses_kernel(
        key, count, np.zeros(src.num_words + 1, np.int64), np.zeros(tgt.num_words + 1, np.int64), loss
    )
    return LexicalLosses(read_only(key), read_only(loss))


def count_pairs(
    src: Side, tgt: Side, alignments: Sequence[tuple[Ints, npt.NDArray[np.int16]]]
) -> tuple[Ints, Ints]:
    """A hash table of linked pairs of words, and their counts; equal for equal links."""
    key = np.full(FIRST_SIZE, -1, np.int64)
    count = np.zeros(len(key), np.int64)
    used = np.zeros(1, np.int64)
    for first_link, link in alignments:
        counted = 0
        while True:
            counted = count_lexicon_kernel(
                src.text, tgt.text, src.first, tgt.first, first_link, link, counted, key, count, used
            )
            if counted == len(src.first) - 1:
                break
            old_key, old_count = key, count
            key, count = np.full(2 * len(key), -1, np.int64), np.zeros(2 * len(key), np.int64)
            grow_lexicon_kernel(old_key, old_count, key, count)
    return key, count


class LeftOutLexicon:
    """The lexicon of an index as it would be without some sentences; for one thread at a time.

    A word whose only links are in them has its translations from there, so with these sentences every other
    translation of it looks worse than without.
    """

    def __init__(
        self, text: IndexedText, links: IndexedLinks, lexicon: LexicalLosses, num_words: tuple[int, int]
    ) -> None:
        self.text, self.links, self.key = text, links, lexicon.pair_key
        sides = (Side(text.src, text.first_src, num_words[0]), Side(text.tgt, text.first_tgt, num_words[1]))
        alignments = [(first, links.link) for first in links.first_link]
        key, pair = count_pairs(*sides, alignments)
        if not np.array_equal(key, lexicon.pair_key):
            raise HieroError(
                "the lexicon of the index is not that of its links (make it again with hiero index)"
            )
        slot = np.flatnonzero(key >= 0)
        src_total = _links_of(key[slot] >> 32, pair[slot], num_words[0])
        tgt_total = _links_of(key[slot] & 0xFFFFFFFF, pair[slot], num_words[1])
        own_loss, computed = np.empty((len(key), 2), np.float32), np.zeros(len(key), np.int32)
        counts = own_loss, computed, pair, src_total, tgt_total, np.zeros(1, np.int32)
        self.lexicon = Lexicon(*lexicon, *counts)
        self._num_rounds = 0

    @contextmanager
    def without(self, sentences: Ints) -> Iterator[Lexicon]:
        """Probabilities without distinct sentences of the index, valid inside the block."""
        self._num_rounds += 1
        self.lexicon.round[0] = self._num_rounds
        self._recount(sentences, -1)
        try:
            yield self.lexicon
        finally:
            self._recount(sentences, 1)

    def _recount(self, sentences: Ints, step: int) -> None:
        recount_lexicon_kernel(self.text, self.links, self.lexicon, read_only(sentences), np.int64(step))


def _links_of(word: Ints, count: Ints, num_words: int) -> Ints:
    """The links of each word."""
    total = np.zeros(num_words + 1, np.int64)
    np.add.at(total, word, count)
    return total


def whole_lexicon(lexicon: LexicalLosses) -> Lexicon:
    """The lexicon with all sentences."""
    floats, ints = np.empty((0, 2), np.float32), np.empty(0, np.int64)
    counts = floats, np.empty(0, np.int32), ints, ints, ints, np.zeros(1, np.int32)
    return Lexicon(read_only(lexicon.pair_key), read_only(lexicon.pair_loss), *counts)


def lexicon_lines(index: BitextIndex, settings: LexiconSettings) -> Iterator[str]:
    """The pairs of words of an index that are linked, as text; see ``LexiconSettings``."""
    slot = np.flatnonzero(index.lexicon.pair_key >= 0)
    key = index.lexicon.pair_key[slot]
    src, tgt = key >> 32, key & 0xFFFFFFFF
    # p(target | source), p(source | target)
    prob = 10.0 ** -index.lexicon.pair_loss[slot].astype(np.float64)[:, ::-1]
    is_marian = settings.format == "marian"
    given, found = (tgt, src) if settings.reverse else (src, tgt)
    main = prob[:, 1] if settings.reverse else prob[:, 0]
    order = np.lexsort((found, -main, given))
    kept = order[main[order] >= settings.min_prob * (1 - 1e-6)]  # losses are of single precision
    if is_marian:
        kept = kept[(src[kept] > 0) & (tgt[kept] > 0)]
    if settings.top:
        first = np.searchsorted(given[kept], given[kept])  # of the pairs of each word
        kept = kept[np.arange(len(kept)) - first < settings.top]
    names = [_names(table) for table in (index.src_words, index.tgt_words)]
    for row in kept.tolist():
        one, other = names[0][src[row]], names[1][tgt[row]]
        if is_marian:
            pair = (one, other) if settings.reverse else (other, one)
            yield f"{pair[0]} {pair[1]} {main[row]:.7f}\n"
        else:
            yield f"{one}\t{other}\t{prob[row, 0]:.6g}\t{prob[row, 1]:.6g}\n"


def _names(table: WordTable) -> list[str]:
    """The words of a side by number; 0 is that of words without links."""
    pool, first = table.pool.tobytes(), table.first.tolist()
    return ["NULL", *(pool[a:b].decode() for a, b in itertools.pairwise(first))]
