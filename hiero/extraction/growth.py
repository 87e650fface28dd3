"""Find the rules of all sentences of a bitext, in linear time and bounded memory.

Patterns are grown word by word (``growth_kernels``), so all rules of a source side are found together, but
those of a sentence are not. They are written to temporary files without names, sorted by where their source
sides occur first, and merged by sentences.
"""

from __future__ import annotations

import functools
import itertools
import mmap
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Ints, joined_columns, offsets_of, read_only, take_rows
from hiero.core.hash_kernels import table_size
from hiero.core.parallel import in_order
from hiero.core.progress import Progress
from hiero.extraction.extractor import (
    Extractor,
    emitted_rules,
    limits_of,
    longer_array,
    longer_store,
    new_pattern_scratch,
    new_store,
    phrase_links,
)
from hiero.extraction.grown_kernels import (
    Grown,
    PatternCounts,
    count_patterns_kernel,
    grow_rules_kernel,
)
from hiero.extraction.growth_kernels import NUM_COLUMNS, Growth, Places, places_kernel
from hiero.extraction.lexicon import whole_lexicon
from hiero.extraction.table_kernels import (
    MORE_MATCHES,
    MORE_PATTERNS,
    MORE_RULES,
    MORE_STATES,
    NUM_FEATURES,
    OK,
    Store,
    rehash_patterns_kernel,
)
from hiero.grammar.rules import Rules, take_rules

Result = TypeVar("Result")
UNITS = 64  # parts of the vocabulary, of about equally many occurrences
PIECE = 1 << 19  # rules that are sorted in memory
FIRST_MATCHES, FIRST_GROUPS, FIRST_COUNTS = 1 << 16, 1 << 12, 1 << 12
# Arrays of a piece: name, scalar, last axis of arrays with two. Larger items first, so that all are aligned.
_ARRAYS: tuple[tuple[str, type[np.generic], int], ...] = (
    ("first_src", np.int64, 0),
    ("first_tgt", np.int64, 0),
    ("first_link", np.int64, 0),
    ("src", np.int32, 0),
    ("tgt", np.int32, 0),
    ("dense", np.float32, NUM_FEATURES),
    ("link", np.int16, 2),
)


class Piece(NamedTuple):
    """Rules in a mapped file, by where their source sides occur first."""

    first: Ints  # of each pattern: its first match and the lengths of its runs, as in Grown
    first_rule: Ints  # rules of pattern p: first_rule[p] ... first_rule[p + 1] - 1
    stands_for: Ints  # of each pattern: how many matches its samples stand for
    rules: Rules


class BitextRules:
    """The rules of a bitext, by sentence."""

    def __init__(self, extractor: Extractor, folder: Path | None) -> None:
        """Temporary files are written to ``folder``, or where the system has them."""
        self.extractor, self.folder = extractor, folder
        self.index, self.config = extractor.index, extractor.config
        self.limits, self.links = limits_of(self.config), phrase_links(self.index.links)
        self.places = self._find_places()
        self.counts = self._count_patterns()
        self._free: list[_Grower] = []
        self._pieces: list[Piece] = []

    def find(self, threads: int, progress: Progress) -> None:
        """Find all rules."""
        self._pieces = list(self.each(functools.partial(_write_piece, self.folder), threads, progress))

    def each(
        self, use: Callable[[Grown, Store], Result], threads: int, progress: Progress
    ) -> Iterator[Result]:
        """The results of a function of all rules in turn, some patterns at a time."""
        first = self.index.text.first_suffix
        total = int(first[-1] - first[1])
        cuts = np.searchsorted(first[1:], first[1] + np.arange(1, UNITS) * (total / UNITS)) + 1
        bounds = np.unique(np.concatenate([[1], cuts, [len(first) - 1]])).tolist()
        units = list(itertools.pairwise(bounds))
        progress.begin(total, "finding rules")
        num_rules = 0
        with closing(in_order(functools.partial(self._find_unit, use), units, threads)) as results:
            for (low, high), found in zip(units, results, strict=True):
                num_rules += sum(number for number, _ in found)
                progress.advance(int(first[high] - first[low]), f"{num_rules} rules")
                yield from (result for _, result in found)

    def rules(self, first_sentence: int, end: int) -> tuple[Rules, Ints]:
        """The rules whose source sides occur first in some sentences, by where they do.

        Also returns how many occurrences of its source side the samples of each stand for.
        """
        first_src = self.index.text.first_src
        low, high = int(first_src[first_sentence]) << 16, int(first_src[end]) << 16
        firsts, counts, totals, parts = [], [], [], []
        for piece in self._pieces:
            a, b = np.searchsorted(piece.first[:, 0], [low, high]).tolist()
            if a < b:
                firsts.append(piece.first[a:b])
                counts.append(np.diff(piece.first_rule[a : b + 1]))
                totals.append(piece.stands_for[a:b])
                parts.append(_slice(piece.rules, int(piece.first_rule[a]), int(piece.first_rule[b])))
        if not parts:
            return _no_rules(), np.zeros(0, np.int64)
        rules = Rules(*joined_columns(Rules._fields, parts))
        first = np.concatenate(firsts)
        order = np.lexsort((first[:, 1], first[:, 0]))
        count = np.concatenate(counts)
        _, rows = take_rows(offsets_of(count), order)
        return take_rules(rules, rows), np.repeat(np.concatenate(totals)[order], count[order])

    def _find_places(self) -> Places:
        size = len(self.index.text.src)
        arrays = [np.empty(size, np.int32) for _ in Places._fields]
        places_kernel(self.index.text, self.links, self.limits, *arrays)
        return Places(*map(read_only, arrays))

    def _count_patterns(self) -> PatternCounts:
        """Counts of those patterns on which the choice of samples depends.

        A match of the part of a pattern without a word behind a gap is one of at most span - 2 matches of the
        pattern. So parts of patterns that are sampled have this many matches, and parts of parts are either
        such, too, or without gaps.
        """
        width = self.config.max_symbols
        least = -(-(self.config.samples + 1) // max(self.config.max_span - 2, 1))
        counts = new_pattern_counts(width)
        growth = _new_growth(self.extractor, 1)
        listed = self.extractor.collocations
        while True:
            status = count_patterns_kernel(
                self.index.text, self.places, listed, self.limits, least, growth, counts
            )
            if status == OK:
                return counts
            if status == MORE_PATTERNS:
                names = ("symbol", "shape", "count")
                longer = {name: longer_array(getattr(counts, name)) for name in names}
                slot = np.full(2 * len(counts.slot), -1, np.int32)
                counts = counts._replace(slot=slot, **longer)
                rehash_patterns_kernel(counts)
            else:
                growth = _longer_growth(growth, status)

    def _find_unit(
        self, use: Callable[[Grown, Store], Result], words: tuple[int, int]
    ) -> list[tuple[int, Result]]:
        """The results for the patterns that begin with some words, with the numbers of their rules."""
        try:
            grower = self._free.pop()
        except IndexError:
            grower = _Grower(self)
        results = [(int(store.used[0]), use(patterns, store)) for patterns, store in grower.grow(*words)]
        self._free.append(grower)
        return results


class _Grower:
    """Finds the rules of patterns that begin with some words; for use by one thread at a time."""

    def __init__(self, found: BitextRules) -> None:
        self.found = found
        self.growth = _new_growth(found.extractor, 1)
        width = found.config.max_symbols
        self.patterns = Grown(
            symbol=np.empty((PIECE, width), np.int32),
            shape=np.empty((PIECE, 1), np.int32),
            rule=np.empty((PIECE, 3), np.int64),
            first=np.empty((PIECE, 2), np.int64),
            used=np.zeros(1, np.int64),
        )
        self.store = new_store(PIECE)
        self.scratch = new_pattern_scratch(found.config, len(found.index.links.src_span))

    def grow(self, first_word: int, last_word: int) -> Iterator[tuple[Grown, Store]]:
        """The patterns and their rules; valid until the next ones."""
        found = self.found
        index = found.index
        self.growth.used[:] = -1, first_word, 0, 0
        while True:
            status = grow_rules_kernel(
                index.text,
                found.places,
                found.links,
                whole_lexicon(index.lexicon),
                found.extractor.collocations,
                found.counts,
                found.limits,
                last_word,
                self.growth,
                self.patterns,
                self.store,
                self.scratch,
            )
            if status == OK or (status == MORE_RULES and self.store.used[0] > 0):
                if self.store.used[0] > 0:
                    yield self.patterns, self.store
                self.patterns.used[0] = self.store.used[0] = 0
                if status == OK:
                    return
            elif status == MORE_RULES:
                self.store = longer_store(self.store)
            else:
                self.growth = _longer_growth(self.growth, status)


def new_pattern_counts(width: int) -> PatternCounts:
    """An empty table of patterns of up to ``width`` symbols."""
    return PatternCounts(
        slot=np.full(table_size(FIRST_COUNTS), -1, np.int32),
        symbol=np.empty((FIRST_COUNTS, width), np.int32),
        shape=np.empty((FIRST_COUNTS, 2), np.int32),
        count=np.empty(FIRST_COUNTS, np.int64),
        used=np.zeros(1, np.int64),
    )


def _new_growth(extractor: Extractor, first_word: int) -> Growth:
    width, num_words = extractor.config.max_symbols, len(extractor.index.text.first_suffix) - 1
    return Growth(
        used=np.array([-1, first_word, 0, 0], np.int64),
        pattern=np.empty((1, width), np.int32),
        frame=np.zeros((width, NUM_COLUMNS), np.int64),
        group=np.empty((FIRST_GROUPS, 4), np.int64),
        match=np.empty(FIRST_MATCHES, np.int64),
        key=np.empty(FIRST_MATCHES, np.int64),
        tally=np.zeros((num_words, 2), np.int32),
        touched=np.empty(num_words, np.int32),
        stack=np.empty(128, np.int64),
        step=np.empty((width, 2), np.int64),
    )


def _longer_growth(growth: Growth, status: int) -> Growth:
    if status == MORE_MATCHES:
        return growth._replace(match=longer_array(growth.match), key=longer_array(growth.key))
    assert status == MORE_STATES
    return growth._replace(group=longer_array(growth.group))


# ---- files


def _write_piece(folder: Path | None, patterns: Grown, store: Store) -> Piece:
    first = patterns.first[: patterns.used[0]]
    order = np.lexsort((first[:, 1], first[:, 0]))
    rules = emitted_rules(patterns, store, order.astype(np.int32))
    first_rule = offsets_of(np.diff(patterns.rule)[order, 0])
    stands_for = patterns.rule[order, 2]
    written = [first[order], first_rule, stands_for, *(getattr(rules, name) for name, _, _ in _ARRAYS)]
    with tempfile.TemporaryFile(dir=folder) as stream:
        for array in written:
            array.tofile(stream)
        stream.flush()
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    arrays, at = [], 0
    for array in written:
        mapped = np.frombuffer(data, array.dtype, array.size, at).reshape(array.shape)
        at += array.nbytes
        arrays.append(mapped)
    names = [name for name, _, _ in _ARRAYS]
    return Piece(arrays[0], arrays[1], arrays[2], _with_rest(dict(zip(names, arrays[3:], strict=True))))


def _slice(rules: Rules, low: int, high: int) -> Rules:
    """Rules low ... high - 1."""
    arrays = {"dense": rules.dense[low:high]}
    for first, flat in (("first_src", "src"), ("first_tgt", "tgt"), ("first_link", "link")):
        offsets = getattr(rules, first)[low : high + 1]
        arrays[first] = offsets - offsets[0]
        arrays[flat] = getattr(rules, flat)[offsets[0] : offsets[-1]]
    return _with_rest(arrays)


def _no_rules() -> Rules:
    arrays = {name: np.zeros((0, width) if width else 0, kind) for name, kind, width in _ARRAYS}
    return _with_rest(
        arrays | {name: np.zeros(1, np.int64) for name in ("first_src", "first_tgt", "first_link")}
    )


def _with_rest(arrays: dict[str, npt.NDArray[Any]]) -> Rules:
    """Rules of one label without named features."""
    num_rules = len(arrays["dense"])
    return Rules(
        lhs=np.zeros(num_rules, np.int32),
        first_sparse=np.zeros(num_rules + 1, np.int64),
        sparse_name=np.zeros(0, np.int32),
        sparse_value=np.zeros(0, np.float32),
        **arrays,
    )
