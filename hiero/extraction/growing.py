"""A bitext index in memory that grows pair by pair.

It has what an index of all pairs together has: the same words, text, links, lexical probabilities and matches
of every phrase. Two things differ. Occurrences of phrases that are equal up to the end of the sentence stand
in the suffix array in the order in which they were added, so that a sample of a phrase with more occurrences
than ``samples`` may be another one. And matches of frequent phrases with gaps are listed for those sequences
that were frequent in the original index.

Arrays are copied when the first pair is added. A pair then takes time in proportion to the size of the text,
for the suffix array, beside its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Ids, Ints, grown, offsets_of, read_only
from hiero.core.errors import HieroError
from hiero.core.lattice import Arcs
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import find_all, pack, word_table_of
from hiero.extraction.config import ExtractConfig
from hiero.extraction.extractor import Extractor, IndexSource
from hiero.extraction.index import BitextIndex
from hiero.extraction.lexicon import Side, count_pairs
from hiero.extraction.lexicon_kernels import count_lexicon_kernel, grow_lexicon_kernel, lexicon_losses_kernel
from hiero.extraction.phrase_kernels import link_spans_kernel
from hiero.extraction.suffix_kernels import (
    MAX_LENGTH,
    collocations_kernel,
    locate_frequent_kernel,
    merge_suffixes_kernel,
)
from hiero.extraction.table_kernels import Collocations, IndexedLinks, IndexedText, LexicalLosses
from hiero.grammar.rules import RuleTable


class LinkedPair(NamedTuple):
    """A sentence pair, and its links: positions of a source and a target word, from 0."""

    src: Sequence[bytes]
    tgt: Sequence[bytes]
    links: Sequence[tuple[int, int]]


class _Appended:
    """An array with room behind its entries."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array, self._size = array, len(array)

    def append(self, values: npt.NDArray[Any]) -> None:
        size = self._size + len(values)
        self._array = grown(self._array, size)
        self._array[self._size : size] = values
        self._size = size

    @property
    def entries(self) -> npt.NDArray[Any]:
        return read_only(self._array[: self._size])


class GrowingIndex:
    """An index that pairs can be added to; ``index`` is the present one, which later pairs do not change.

    config  of extraction: collocations are listed within its limits
    """

    def __init__(self, base: BitextIndex, config: ExtractConfig | None = None) -> None:
        self.config = config or ExtractConfig()
        self.index = dataclasses.replace(
            base, collocations=base.collocations_for(self.config.limits), limits=self.config.limits
        )
        self._digest = hashlib.sha256(base.digest.encode())
        self._is_open = False

    def _open(self) -> None:
        """Copy what grows, and count the links."""
        text, links = self.index.text, self.index.links
        names = ("src", "sentence", "first_src", "tgt", "first_tgt")
        self._text = {name: _Appended(getattr(text, name)) for name in names}
        self._first_suffix = np.array(text.first_suffix)
        num_alignments = len(links.first_link)
        self._spans = [
            (_Appended(links.src_span[a]), _Appended(links.tgt_span[a])) for a in range(num_alignments)
        ]
        ends = [(int(first[0]), int(first[-1])) for first in links.first_link]
        self._links = [
            (_Appended(first - start), _Appended(links.link[start:end]))
            for first, (start, end) in zip(links.first_link, ends, strict=True)
        ]
        num_words = [len(table.first) - 1 for table in (self.index.src_words, self.index.tgt_words)]
        sides = (Side(text.src, text.first_src, num_words[0]), Side(text.tgt, text.first_tgt, num_words[1]))
        self._key, self._count = count_pairs(*sides, [(first, links.link) for first in links.first_link])
        self._used = np.array([np.count_nonzero(self._key >= 0)])
        listed = self.index.collocations
        frequent = [
            tuple(text.src[text.suffix[low] : text.suffix[low] + length].tolist())
            for _, low, length in listed.frequent.tolist()
        ]
        self._frequent = {words: k for k, words in enumerate(frequent)}
        longest = max(map(len, frequent), default=1)
        self._frequent_words = np.zeros((len(frequent), longest), np.int32)
        for k, words in enumerate(frequent):
            self._frequent_words[k, : len(words)] = words
        self._is_open = True

    def add(self, pairs: Sequence[LinkedPair]) -> None:
        """Add sentence pairs, which must have words on both sides."""
        if not pairs:
            return
        for pair in pairs:
            if not all(0 < len(side) <= MAX_LENGTH for side in (pair.src, pair.tgt)):
                raise HieroError(
                    f"pair: found {len(pair.src)} and {len(pair.tgt)} words, expected 1 to {MAX_LENGTH}"
                )
        if not self._is_open:
            self._open()
        for pair in pairs:
            self._digest.update(repr(tuple(map(tuple, pair))).encode())
        src_words, src = _numbered(self.index.src_words, [pair.src for pair in pairs])
        tgt_words, tgt = _numbered(self.index.tgt_words, [pair.tgt for pair in pairs])
        links = _links_of(src, pairs)
        old_size = len(self.index.text.src)
        lexicon = self._lexicon(src, tgt, links)
        text = self._grown_text(src, tgt)
        self.index = dataclasses.replace(
            self.index,
            text=text,
            links=self._grown_links(src, tgt, links),
            lexicon=lexicon,
            collocations=self._grown_collocations(src, text, old_size),
            src_words=src_words,
            tgt_words=tgt_words,
            digest=self._digest.hexdigest(),
        )

    def _grown_text(self, src: Side, tgt: Side) -> IndexedText:
        base = self.index.text
        num_old = len(base.first_src) - 1
        row = np.repeat(np.arange(len(src.first) - 1), np.diff(src.first))
        self._text["src"].append(src.text)
        self._text["sentence"].append(row + num_old)
        self._text["first_src"].append(src.first[1:] + len(base.src))
        self._text["tgt"].append(tgt.text)
        self._text["first_tgt"].append(tgt.first[1:] + len(base.tgt))
        arrays = {name: one.entries for name, one in self._text.items()}
        first = self._first_suffix
        more = src.num_words + 2 - len(first)
        old_first = read_only(np.concatenate([first, np.full(more, first[-1])]))
        suffix = np.empty(len(arrays["src"]), np.int32)
        merge_suffixes_kernel(arrays["src"], base.suffix, old_first, suffix)
        self._first_suffix = old_first + offsets_of(np.bincount(src.text, minlength=src.num_words + 1))
        return IndexedText(**arrays, suffix=read_only(suffix), first_suffix=read_only(self._first_suffix))

    def _grown_links(self, src: Side, tgt: Side, links: tuple[Ints, Any]) -> IndexedLinks:
        src_span = np.empty((len(src.text), 2), np.int16)
        tgt_span = np.full((len(tgt.text), 2), -1, np.int16)
        link_spans_kernel(src.first, tgt.first, *links, src_span, tgt_span)
        for of_src, of_tgt in self._spans:
            of_src.append(src_span)
            of_tgt.append(tgt_span)
        for first, link in self._links:
            first.append(links[0][1:] + first.entries[-1])
            link.append(links[1])
        before = offsets_of(len(link.entries) for _, link in self._links)
        if len(self._links) == 1:
            first, link = self._links[0]
            all_first, all_links = first.entries[None], link.entries
        else:
            all_first = np.stack([one.entries + before[a] for a, (one, _) in enumerate(self._links)])
            all_links = np.concatenate([link.entries for _, link in self._links])
        return IndexedLinks(
            read_only(_stacked([one.entries for one, _ in self._spans])),
            read_only(_stacked([one.entries for _, one in self._spans])),
            read_only(all_first),
            read_only(all_links),
        )

    def _lexicon(self, src: Side, tgt: Side, links: tuple[Ints, Any]) -> LexicalLosses:
        for _ in self._links:
            counted = 0
            while True:
                counted = count_lexicon_kernel(
                    src.text,
                    tgt.text,
                    src.first,
                    tgt.first,
                    *links,
                    counted,
                    self._key,
                    self._count,
                    self._used,
                )
                if counted == len(src.first) - 1:
                    break
                key, count = self._key, self._count
                self._key = np.full(2 * len(key), -1, np.int64)
                self._count = np.zeros(2 * len(key), np.int64)
                grow_lexicon_kernel(key, count, self._key, self._count)
        loss = np.zeros((len(self._key), 2), np.float32)
        totals = np.zeros(src.num_words + 1, np.int64), np.zeros(tgt.num_words + 1, np.int64)
        lexicon_losses_kernel(self._key, self._count, *totals, loss)
        return LexicalLosses(read_only(self._key.copy()), read_only(loss))

    def _grown_collocations(self, src: Side, text: IndexedText, old_size: int) -> Collocations:
        listed = self.index.collocations
        if not len(self._frequent):
            return listed
        frequent = np.array(listed.frequent)
        locate_frequent_kernel(
            text.src, text.suffix, text.first_suffix, read_only(self._frequent_words), frequent
        )
        numbers = np.full((len(src.text), self._frequent_words.shape[1]), -1, np.int16)
        words = src.text.tolist()
        for at, length in itertools.product(range(len(words)), range(1, numbers.shape[1] + 1)):
            numbers[at, length - 1] = self._frequent.get(tuple(words[at : at + length]), -1)
        first_pair, first_triple = np.zeros_like(listed.first_pair), np.zeros_like(listed.first_triple)
        limits, settings = self.index.limits, self.index.frequent
        bounds = np.array(
            [limits.max_span, limits.max_symbols, limits.max_gaps, settings.num_super_frequent], np.int64
        )
        given = src.text, numbers, bounds, first_pair, first_triple
        total = collocations_kernel(*given, np.empty(0, np.int64))
        if not total:
            return listed._replace(frequent=read_only(frequent))
        match = np.empty(total, np.int64)
        collocations_kernel(*given, match)
        # The new matches of each list come after its old ones.
        old_ends = np.concatenate([listed.first_pair[1:], listed.first_triple[1:]])
        counts = np.concatenate([np.diff(first_pair), np.diff(first_triple)])
        some = np.flatnonzero(counts)
        places = np.repeat(old_ends[some], counts[some])
        return Collocations(
            read_only(frequent),
            read_only(listed.first_pair + first_pair),
            read_only(listed.first_triple + first_triple),
            read_only(np.insert(listed.match, places, match + (old_size << 16))),
        )


def _stacked(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return parts[0][None] if len(parts) == 1 else np.stack(parts)


def _numbered(table: WordTable, lines: Sequence[Sequence[bytes]]) -> tuple[WordTable, Side]:
    """Sentences as numbers from 1, with new words after the known ones."""
    distinct = dict.fromkeys(itertools.chain.from_iterable(lines))
    number = dict(zip(distinct, (find_all(table, list(distinct)) + 1).tolist(), strict=True))
    new = [word for word in distinct if not number[word]]
    if new:
        num_known = len(table.first) - 1
        number.update({word: num_known + 1 + k for k, word in enumerate(new)})
        pool, first = pack(new)
        table = word_table_of(
            read_only(np.concatenate([table.pool, pool])),
            read_only(np.concatenate([table.first, table.first[-1] + first[1:]])),
        )
    text = np.array([n for line in lines for n in (*(number[word] for word in line), 0)], np.int32)
    first_line = offsets_of(len(line) + 1 for line in lines)
    return table, Side(read_only(text), read_only(first_line), len(table.first) - 1)


def _links_of(src: Side, pairs: Sequence[LinkedPair]) -> tuple[Ints, npt.NDArray[np.int16]]:
    """Distinct links by source position: (offsets of the links of each position, target positions)."""
    links = sorted({(int(src.first[k]) + s, t) for k, pair in enumerate(pairs) for s, t in pair.links})
    for k, pair in enumerate(pairs):
        for s, t in pair.links:
            if not (0 <= s < len(pair.src) and 0 <= t < len(pair.tgt)):
                raise HieroError(f"pair {k}: found the link {s}-{t} outside of its sentences")
    position = np.array([s for s, _ in links], np.int64)
    first = offsets_of(np.bincount(position, minlength=len(src.text)))
    return read_only(first), read_only(np.array([t for _, t in links], np.int16))


class GrowingSource:
    """A growing index as a grammar: rules are extracted for each sentence from all pairs so far."""

    stage = "extract"

    def __init__(self, source: IndexSource) -> None:
        extractor, self.symbols = source.extractor, source.symbols
        if extractor.config.target_counts is not None:
            raise HieroError(f"{extractor.index.path}: an index with target_counts cannot grow")
        # Stored rules are those of one index, and leaving pairs out needs the numbers of its pairs.
        self.config = dataclasses.replace(extractor.config, store=None)
        self.growing = GrowingIndex(extractor.index, self.config)
        self._source = source

    def add(self, pairs: Sequence[LinkedPair]) -> None:
        """Add sentence pairs, whose rules the next sentence can have."""
        self.growing.add(pairs)
        self._source = IndexSource(Extractor(self.growing.index, self.config), self.symbols)

    def rules_for(self, src: Ids, segment: Mapping[str, str], lattice: Arcs | None = None) -> RuleTable:
        return self._source.rules_for(src, segment, lattice)

    def __repr__(self) -> str:
        return repr(self._source)

    def feature_names(self) -> frozenset[int]:
        return self._source.feature_names()

    def dense_names(self) -> Sequence[int]:
        return self._source.dense_names()
