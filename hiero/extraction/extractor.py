"""Extract the rules of sentences from a bitext index; the index as a grammar.

Each thread has a workspace: cached patterns, and scratch arrays that grow.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hiero.bitext.groups import PairGroups, read_groups, same_lines
from hiero.core.arrays import Ids, Ints, grown, offsets_by_row, read_only
from hiero.core.errors import HieroError
from hiero.core.hash_kernels import table_size
from hiero.core.lattice import Arcs
from hiero.core.symbol_kernels import gap, unknown_ids_kernel
from hiero.core.symbols import SharedIds, Symbols, find_all
from hiero.core.text import LEAVE_OUT
from hiero.extraction.config import ExtractConfig
from hiero.extraction.grown_kernels import Grown
from hiero.extraction.index import BitextIndex
from hiero.extraction.lexicon import LeftOutLexicon, whole_lexicon
from hiero.extraction.match_kernels import match_sentence_kernel
from hiero.extraction.rule_kernels import emit_rules_kernel, rule_room_kernel
from hiero.extraction.store import PackedRules, PackedTable, RuleStore
from hiero.extraction.store_kernels import SRC_WORD, TGT_WORD
from hiero.extraction.table_kernels import (
    MORE_MATCHES,
    MORE_PATTERNS,
    MORE_RULES,
    MORE_STATES,
    NUM_FEATURES,
    OK,
    Collocations,
    IndexedLinks,
    LatticePaths,
    Lexicon,
    Patterns,
    PatternScratch,
    PhraseLinks,
    SentenceScratch,
    Store,
    rehash_patterns_kernel,
)
from hiero.grammar.assemble_kernels import IdMaps
from hiero.grammar.rules import NO_IDS, Rules, RuleTable, take_rules
from hiero.grammar.trie_kernels import reach_kernel

NO_PAIRS = np.zeros(0, np.int64)
LOSS, SAMPLED, COUNT = 0, 1, 2  # columns: -log10 c/n, log10(1 + n), log10(1 + c); see FEATURES
FIRST_PATTERNS = FIRST_RULES = 1 << 14  # initial capacity


class TargetFeatures(Protocol):
    """What makes the features of target sides; that is ``target_counts.TargetCounts``."""

    def extended(
        self, rules: Rules, stands_for: Ints, left_out: tuple[tuple[Rules, Ints], tuple[Rules, Ints]] | None
    ) -> Rules:
        """The rules with more features; with sentences left out, given their rules with and without them."""
        ...


# ---- in one thread


class Workspace:
    """Extracts rules; for use by one thread at a time."""

    def __init__(self, index: BitextIndex, config: ExtractConfig, collocations: Collocations) -> None:
        self.config = config
        self.index, self.collocations = index, collocations
        self.links = phrase_links(index.links)
        self._whole = whole_lexicon(index.lexicon)
        self._left_out: LeftOutLexicon | None = None
        self.limits = limits_of(config)
        self.sentence_scratch = _new_sentence_scratch(config, len(index.src_words.first) - 1)
        self.pattern_scratch = new_pattern_scratch(config, len(index.links.src_span))
        self.generation = 0
        self._forget()

    def rules(
        self,
        src: Ids,
        left_out: Ints = NO_PAIRS,
        targets: TargetFeatures | None = None,
        lattice: Arcs | None = None,
    ) -> Rules:
        """The rules of a sentence of words as the index numbers them, 0 for unknown ones; gap g is -g.

        With a ``lattice``, whose arcs have these words, those of all its paths. Sentences ``left_out`` of the
        index, ascending, are ignored, except in lexical probabilities where ``leave_out_links`` is false.
        With counts of target sides, the rules have their features, too.
        """
        rules, stands_for = self.found(src, left_out, lattice)
        if targets is not None:
            of_pairs = None
            if len(left_out):
                text, first = self.index.text.src, self.index.text.first_src
                sides = np.concatenate([text[first[pair] : first[pair + 1]] for pair in left_out])
                of_pairs = self.found(sides), self.found(sides, left_out)
            rules = targets.extended(rules, stands_for, of_pairs)
        return counted_rules(rules, self.config.min_count)

    def found(self, src: Ids, left_out: Ints = NO_PAIRS, lattice: Arcs | None = None) -> tuple[Rules, Ints]:
        """All rules of a sentence, and how many occurrences of its source side the samples of each stand for.

        Sentences ``left_out`` of the index, ascending, are ignored, except in lexical probabilities where
        ``leave_out_links`` is false.
        """
        if sum(array.nbytes for array in (*self.patterns, *self.store)) > self.config.cache_mb << 20:
            self._forget()
        if len(left_out):
            self._forget_rules()
        with self._lexicon(left_out) as lexicon:
            self._collect(lexicon, src, left_out, lattice)
        entries = self.sentence_scratch.found[: self.sentence_scratch.round[4]]
        rules = emitted_rules(self.patterns, self.store, entries)
        of_pattern = self.patterns.rule[entries]
        if len(left_out):
            self._forget_rules()
        return rules, np.repeat(of_pattern[:, 2], of_pattern[:, 1] - of_pattern[:, 0])

    def _lexicon(self, left_out: Ints) -> AbstractContextManager[Lexicon]:
        index = self.index
        if not len(left_out) or not self.config.leave_out_links:
            return nullcontext(self._whole)
        if self._left_out is None:
            num_words = len(index.src_words.first) - 1, len(index.tgt_words.first) - 1
            self._left_out = LeftOutLexicon(index.text, index.links, index.lexicon, num_words)
        return self._left_out.without(left_out)

    def _collect(self, lexicon: Lexicon, src: Ids, left_out: Ints, lattice: Arcs | None) -> None:
        tables = self.index.text, self.links, lexicon, self.collocations
        first = self.index.text.first_src
        ranges = read_only(np.stack([first[left_out], first[left_out + 1]], axis=1))
        src, paths = (src, NO_LATTICE) if lattice is None else _paths_of(lattice, src, self.config.max_span)
        self.sentence_scratch.round[:3] = self.sentence_scratch.round[0] + 1, 0, self.generation
        while True:
            self.sentence_scratch.round[3] += 1
            known = self.patterns, self.store, self.sentence_scratch, self.pattern_scratch
            query = self.limits, read_only(src), paths, ranges
            status = match_sentence_kernel(*tables, *query, *known)
            if status == OK:
                break
            self._grow(status)

    def _forget(self) -> None:
        self.patterns, self.store = new_patterns(self.config), new_store()
        self.sentence_scratch = self.sentence_scratch._replace(
            found=np.empty(len(self.patterns.count), np.int32)
        )
        self._forget_rules()

    def _forget_rules(self) -> None:
        self.generation += 1
        self.store.used[0] = 0

    def _grow(self, status: int) -> None:
        if status == MORE_MATCHES:
            self.sentence_scratch = self.sentence_scratch._replace(
                match=longer_array(self.sentence_scratch.match)
            )
        elif status == MORE_STATES:
            scratch = self.sentence_scratch
            candidate, state = longer_array(scratch.candidate), longer_array(scratch.state)
            self.sentence_scratch = scratch._replace(candidate=candidate, state=state)
        elif status == MORE_RULES:
            self.store = longer_store(self.store)
        else:
            assert status == MORE_PATTERNS
            slot = np.full(2 * len(self.patterns.slot), -1, np.int32)
            names = (name for name in Patterns._fields if name not in ("slot", "used"))
            longer = {name: longer_array(getattr(self.patterns, name)) for name in names}
            self.patterns = self.patterns._replace(slot=slot, **longer)
            rehash_patterns_kernel(self.patterns)
            self.sentence_scratch = self.sentence_scratch._replace(
                found=longer_array(self.sentence_scratch.found)
            )


NO_LATTICE = LatticePaths(
    *(read_only(np.zeros(0, dtype)) for dtype in (np.int64, np.int32, np.int64, np.int32, np.int32))
)


def _paths_of(lattice: Arcs, src: Ids, max_span: int) -> tuple[Ids, LatticePaths]:
    """The words of a lattice, each once between the same nodes, and how they follow each other."""
    columns = np.stack([lattice.start, lattice.end, src], axis=1)
    kept = np.sort(np.unique(columns, axis=0, return_index=True)[1]) if len(src) else np.zeros(0, np.int64)
    first = read_only(offsets_by_row(lattice.start[kept], len(lattice.first) - 1))
    end = read_only(lattice.end[kept])
    reach = reach_kernel(first, end, read_only(np.ones(len(end), np.int32)), max_span)
    return src[kept], LatticePaths(first, end, *(read_only(array) for array in reach))


def limits_of(config: ExtractConfig) -> Ints:
    """``limits`` of kernels."""
    limits = [config.max_span, config.max_symbols, config.max_gaps, config.samples]
    return read_only(np.array(limits, np.int64))


def phrase_links(links: IndexedLinks) -> PhraseLinks:
    """The same arrays, the two ends of a span as one number."""
    src_span, tgt_span = (read_only(span.view(np.int32)[..., 0]) for span in (links.src_span, links.tgt_span))
    return PhraseLinks(src_span, tgt_span, links.first_link, links.link)


def longer_array(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of twice the length and one more, since offsets are one more than items."""
    return grown(array, 2 * len(array) + 1)


def new_patterns(config: ExtractConfig) -> Patterns:
    """An empty table of patterns."""
    return Patterns(
        slot=np.full(2 * FIRST_PATTERNS, -1, np.int32),
        symbol=np.empty((FIRST_PATTERNS, config.max_symbols), np.int32),
        shape=np.empty((FIRST_PATTERNS, 4), np.int32),
        count=np.empty(FIRST_PATTERNS, np.int64),
        place=np.empty((FIRST_PATTERNS, 3), np.int64),
        stamp=np.empty((FIRST_PATTERNS, 4), np.int64),
        chain=np.empty((FIRST_PATTERNS, 3), np.int64),
        rule=np.empty((FIRST_PATTERNS, 3), np.int64),
        used=np.zeros(1, np.int64),
    )


def new_store(num_rules: int = FIRST_RULES) -> Store:
    """Empty arrays with room for about so many rules."""
    return Store(
        edge=np.empty(num_rules, np.uint8),
        feature=np.empty((num_rules, NUM_FEATURES), np.float32),
        first_tgt=np.zeros(num_rules + 1, np.int64),
        tgt=np.empty(4 * num_rules, np.int32),
        first_link=np.zeros(num_rules + 1, np.int64),
        link=np.empty((4 * num_rules, 2), np.int16),
        used=np.zeros(1, np.int64),
    )


def longer_store(store: Store) -> Store:
    """The same rules, with twice the room."""
    longer = {name: longer_array(getattr(store, name)) for name in Store._fields if name != "used"}
    return store._replace(**longer)


def _new_sentence_scratch(config: ExtractConfig, num_words: int) -> SentenceScratch:
    return SentenceScratch(
        match=np.empty(1 << 16, np.int64),
        candidate=np.empty((1 << 12, 3), np.int32),
        state=np.empty((1 << 12, 3), np.int32),
        found=np.empty(0, np.int32),
        pattern=np.empty((1, config.max_symbols + 2), np.int32),
        mark=np.zeros(num_words + 1, np.uint8),
        slot=np.empty((256, 2), np.int64),
        wait=np.zeros(config.max_symbols + 2, np.int64),
        round=np.zeros(5, np.int64),
    )


def new_pattern_scratch(config: ExtractConfig, num_alignments: int) -> PatternScratch:
    """Arrays with room for the rules of any pattern."""
    yields = 4 * config.samples * num_alignments  # rules of a pattern, at most
    slots = table_size(yields)
    return PatternScratch(
        sample=np.empty(config.samples, np.int64),
        run=np.zeros(4, np.int64),
        phrase=np.empty((config.samples * num_alignments, 8), np.int64),
        low=np.zeros(16, np.int64),
        high=np.zeros(16, np.int64),
        tally=np.zeros(4, np.int64),
        used=np.zeros(4, np.int64),
        rule_slot=np.empty(slots, np.int32),
        variant_slot=np.empty(slots, np.int32),
        group=np.empty((yields, 4), np.int32),
        symbol=np.empty(yields * config.max_span, np.int32),
        variant=np.empty((yields, 4), np.int32),
        link=np.empty((yields * config.max_symbols * config.max_span, 2), np.int16),
        best=np.empty(yields, np.int32),
        loss=np.empty(config.max_span, np.float64),
    )


def counted_rules(rules: Rules, min_count: int) -> Rules:
    """The rules with this count at least, and all rules of single source words."""
    if min_count == 1:
        return rules
    count = counts_of(rules.dense[:, COUNT])
    kept = np.flatnonzero((count >= min_count) | (np.diff(rules.first_src) == 1))
    return take_rules(rules, kept)


def counts_of(column: npt.NDArray[np.float32]) -> Ints:
    """The numbers n of log10(1 + n)."""
    return np.rint(10.0 ** column.astype(np.float64) - 1).astype(np.int64)


def emitted_rules(patterns: Patterns | Grown, store: Store, found: Ids) -> Rules:
    """The rules of some patterns one after the other."""
    room = np.zeros(4, np.int64)
    rule_room_kernel(patterns, store, found, room)
    num_rules, num_src, num_tgt, num_links = room.tolist()
    rules = Rules(
        lhs=np.zeros(num_rules, np.int32),
        first_src=np.empty(num_rules + 1, np.int64),
        src=np.empty(num_src, np.int32),
        first_tgt=np.empty(num_rules + 1, np.int64),
        tgt=np.empty(num_tgt, np.int32),
        dense=np.empty((num_rules, NUM_FEATURES), np.float32),
        first_sparse=np.zeros(num_rules + 1, np.int64),
        sparse_name=np.zeros(0, np.int32),
        sparse_value=np.zeros(0, np.float32),
        first_link=np.empty(num_rules + 1, np.int64),
        link=np.empty((num_links, 2), np.int16),
    )
    emit_rules_kernel(
        patterns,
        store,
        found,
        rules.first_src,
        rules.src,
        rules.first_tgt,
        rules.tgt,
        rules.dense,
        rules.first_link,
        rules.link,
    )
    return rules


# ---- of an index

# Names and order as in cdec. n: sampled occurrences of the source side; c: those with this target side.
FEATURES = (
    "EgivenFCoherent",  # -log10 c/n
    "SampleCountF",  # log10(1 + n)
    "CountEF",  # log10(1 + c)
    "MaxLexFgivenE",  # sum over source words of -log10 p given the best of the target words, or no word
    "MaxLexEgivenF",  # likewise in the other direction
    "IsSingletonF",  # 1 if the source side, with its gaps, occurs once
    "IsSingletonFE",  # 1 if c is 1
)
# With the counts of target sides, of all rules of the bitext.
TARGET_FEATURES = (
    "FgivenE",  # -log10 of the share of the source side in the rules with this target side
    "IsSingletonE",  # 1 if the target side, with its gaps, occurs once
)


def equal_pairs(index: BitextIndex) -> PairGroups:
    """The pairs of an index with the same source or the same target."""
    text = index.text

    def lines(words: Ids, first: Ints) -> Iterator[bytes]:
        data = words.tobytes()
        return (data[4 * a : 4 * b] for a, b in itertools.pairwise(first.tolist()))

    return PairGroups(
        same_lines(lines(text.src, text.first_src)), same_lines(lines(text.tgt, text.first_tgt))
    )


class Extractor:
    """Extracts rules, and caches those of phrases; safe to share between threads.

    ``target_counts.open_extractor`` makes one with features of target sides, where they are configured.
    Each thread that extracts at the same time has its own cache of ``cache_mb``.

    spare_store  the directory of a store where the configuration has none, which is used as far as it can be
                 written
    """

    def __init__(
        self,
        index: BitextIndex,
        config: ExtractConfig | None = None,
        spare_store: str | Path | None = None,
    ) -> None:
        self.index = index
        self.config = config or ExtractConfig()
        self.collocations = index.collocations_for(self.config.limits)
        self._store: RuleStore | None = None
        store = spare_store if self.config.store is None else self.config.store
        # A store has no room for further features.
        if store is not None and self.config.target_counts is None:
            num_words = len(index.src_words.first), len(index.tgt_words.first)
            self._store = RuleStore(store, num_words, optional=self.config.store is None)
        self.targets: TargetFeatures | None = None
        self._groups: PairGroups | None = None
        if self.config.group_file is not None:
            self._groups = read_groups(self.config.group_file, index.num_sentences, index.path)
        self._free: list[Workspace] = []
        self._lock = threading.Lock()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features of rules."""
        return FEATURES if self.targets is None else FEATURES + TARGET_FEATURES

    def extended(self, rules: Rules, stands_for: Ints) -> Rules:
        """Rules as ``Workspace.found`` returns them, with the features of target sides if there are any."""
        return rules if self.targets is None else self.targets.extended(rules, stands_for, None)

    def word_ids(self, words: Sequence[bytes]) -> Ids:
        """The ids of source words in the index, 0 for unknown ones."""
        return find_all(self.index.src_words, words) + np.int32(1)

    def is_sentence(self, number: int, words: Sequence[str]) -> bool:
        """Whether this is the source side of a pair of the bitext, counted from 0."""
        text = self.index.text
        if number >= self.index.num_sentences:
            return False
        known = text.src[text.first_src[number] : text.first_src[number + 1] - 1]
        return bool(np.array_equal(known, self.word_ids([word.encode() for word in words])))

    def rules(self, src: Ids, left_out: int = -1, lattice: Arcs | None = None) -> Rules:
        """The rules of a sentence, in which words are numbered as in the index and gap g is -g.

        Sentence pair ``left_out`` of the index, counted from 0, is ignored, and those that belong to it. With
        a ``lattice``, ``src`` has the words of its arcs, and the rules are those of all paths.
        """
        found = self.find(src, left_out, lattice)
        return found if isinstance(found, Rules) else found.unpacked()

    def find(self, src: Ids, left_out: int = -1, lattice: Arcs | None = None) -> Rules | PackedRules:
        """As ``rules``, but stored rules are not unpacked."""
        if not -1 <= left_out < self.index.num_sentences:
            expected = f"a sentence of {self.index.path}, 0 to {self.index.num_sentences - 1}"
            raise HieroError(f"sentence to leave out: found {left_out}, expected {expected}")
        pairs = NO_PAIRS if left_out < 0 else self.left_out_with(left_out)
        if self._store is None:
            with self.workspace() as workspace:
                return workspace.rules(src, pairs, self.targets, lattice)
        key = self._key(src, pairs, lattice)
        stored = self._store.get(key)
        if stored is not None:
            return stored
        with self.workspace() as workspace:
            rules = workspace.rules(src, pairs, lattice=lattice)
        self._store.put(key, rules)
        return rules

    def left_out_with(self, pair: int) -> Ints:
        """The pairs that are left out where this one is, ascending; see ``ExtractConfig.leave_out``."""
        if self.config.leave_out == "pair":
            return np.array([pair], np.int64)
        with self._lock:
            if self._groups is None:
                self._groups = equal_pairs(self.index)
        return self._groups.of(pair)

    def _key(self, src: Ids, left_out: Ints, lattice: Arcs | None) -> bytes:
        """A digest of everything that rules depend on; the pairs left out count, and not why they are."""
        config, pairs = self.config, left_out.tolist()
        numbers = [config.max_span, config.max_symbols, config.max_gaps, config.samples, *(pairs[:1] or [-1])]
        if config.min_count > 1:
            numbers.append(config.min_count)
        if config.leave_out_links and pairs:
            numbers.append(-1)
        if len(pairs) > 1:
            numbers += [-2, *pairs]
        digest = hashlib.sha256(f"{self.index.digest} {tuple(numbers)}\n".encode())
        digest.update(np.ascontiguousarray(src, "<i4").tobytes())
        if lattice is not None:
            nodes = np.stack([lattice.start, lattice.end])
            digest.update(b"\nlattice " + np.ascontiguousarray(nodes, "<i4").tobytes())
        return digest.digest()

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """A workspace for a thread: an idle one, or a new one."""
        with self._lock:
            workspace = self._free.pop() if self._free else None
        workspace = workspace or Workspace(self.index, self.config, self.collocations)
        try:
            yield workspace
        finally:
            with self._lock:
                self._free.append(workspace)


class IndexSource:
    """A bitext index as a grammar: rules are extracted for each sentence to translate."""

    stage = "extract"

    def __init__(self, extractor: Extractor, symbols: Symbols) -> None:
        self.extractor, self.symbols = extractor, symbols
        index = extractor.index
        self._label = symbols.labels.intern(extractor.config.category.encode())
        gaps = int(gap(self._label, 1)), int(gap(self._label, 2))
        self._src = SharedIds(index.src_words, symbols.words, 1, gaps)
        self._tgt = SharedIds(index.tgt_words, symbols.words, 1, gaps)
        self._ids = IdMaps(self._src.ids, self._tgt.ids, np.array([self._label], np.int32), NO_IDS)
        self._columns = tuple(symbols.names.intern(name.encode()) for name in extractor.features)

    def rules_for(self, src: Ids, segment: Mapping[str, str], lattice: Arcs | None = None) -> RuleTable:
        """The rules of a sentence; with ``<seg leave_out="N">``, without pair N of the bitext."""
        left_out = segment.get(LEAVE_OUT)
        if left_out is None:
            return self.extract(src, lattice=lattice)
        if not (left_out.isascii() and left_out.isdigit()):
            raise HieroError(
                f"<seg {LEAVE_OUT}=…>: found {left_out!r}, expected the number of a sentence pair"
            )
        return self.extract(src, int(left_out), lattice)

    def __repr__(self) -> str:
        index = self.extractor.index
        return f"{index.path} (an index of {index.num_sentences:,} sentence pairs)"

    def feature_names(self) -> frozenset[int]:
        """Ids in Symbols.names of the features that rules have."""
        return frozenset(self._columns)

    def dense_names(self) -> Sequence[int]:
        return self._columns

    def extract(self, src: Ids, left_out: int = -1, lattice: Arcs | None = None) -> RuleTable:
        """The rules of a sentence; pair ``left_out`` of the bitext, and what belongs to it, is ignored."""
        own = self.extractor.word_ids([self.symbols.words.entry(word) for word in src.tolist()])
        found = self.extractor.find(own, left_out, lattice)
        if isinstance(found, Rules):
            return self.shared(found)
        self._src.to_shared(found.words(SRC_WORD))
        self._tgt.to_shared(found.words(TGT_WORD))
        return PackedTable(found, self._columns, self._ids)

    def shared(self, rules: Rules) -> RuleTable:
        """Rules with shared ids."""
        rules = Rules._make(read_only(array) for array in rules)
        table = RuleTable(rules, self._columns, None, self._ids)
        for words, first, side in (
            (self._src, rules.first_src, rules.src),
            (self._tgt, rules.first_tgt, rules.tgt),
        ):
            words.look_up(unknown_ids_kernel(first, side, table.rows, words.ids))
        return table
