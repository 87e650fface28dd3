# mypy: allow-untyped-calls
"""Extract the rules of a sentence from a bitext index."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hiero.bitext.index import BitextIndex, RuleLimits
from hiero.errors import ConfigError
from hiero.grammar import Rules, RuleTable
from hiero.kernels.extract_emit import emit_rules_kernel, rule_room_kernel
from hiero.kernels.extract_match import collect_kernel, rehash_kernel
from hiero.kernels.extract_tables import (
    MORE_ENTRIES,
    MORE_MATCHES,
    MORE_RULES,
    MORE_STATES,
    NUM_FEATURES,
    OK,
    Memory,
    Paper,
)
from hiero.symbols import Symbols, Vocabulary, WordTable, find_all, gap, read_only, table_entry

FEATURES = (
    "EgivenFCoherent",
    "SampleCountF",
    "CountEF",
    "MaxLexFgivenE",
    "MaxLexEgivenF",
    "IsSingletonF",
    "IsSingletonFE",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractConfig(RuleLimits):
    """How rules are extracted."""

    samples: int = 300  # occurrences of a source phrase that are looked at, evenly spaced
    category: str = "X"
    cache_mb: int = 512  # memory for rules of phrases met before, in each thread

    def __post_init__(self) -> None:
        super(ExtractConfig, self).__post_init__()
        for name, low, high in (("samples", 1, 1_000_000), ("cache_mb", 0, 1 << 20)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name}: found {value}, expected {low} to {high}")

    @property
    def limits(self) -> RuleLimits:
        return RuleLimits(max_span=self.max_span, max_symbols=self.max_symbols, max_gaps=self.max_gaps)


class Extractor:
    """Extracts rules, and remembers those of phrases it has met; safe to share between threads.

    Every thread that extracts at the same time has a memory of its own, of ``cache_mb``.
    """

    def __init__(self, index: BitextIndex, config: ExtractConfig | None = None) -> None:
        self.index = index
        self.config = config or ExtractConfig()
        self.tables = index.collocations_for(self.config.limits)
        self._free: list[_Desk] = []
        self._lock = threading.Lock()

    def rules(self, src: npt.NDArray[np.int32], gaps: npt.NDArray[np.int32], left_out: int = -1) -> Rules:
        """The rules for a sentence of words as the index numbers them, 0 for unknown ones.

        Words of the rules are so numbered too; ``gaps`` are the codes of gaps 1 and 2, at these places.
        Nothing is taken from sentence pair ``left_out`` of the index, counted from 0.
        """
        with self._desk() as desk:
            return desk.rules(src, gaps, left_out)

    @contextmanager
    def _desk(self) -> Iterator[_Desk]:
        with self._lock:
            desk = self._free.pop() if self._free else None
        desk = desk or _Desk(self)
        try:
            yield desk
        finally:
            with self._lock:
                self._free.append(desk)


class _Desk:
    """The memory and scratch paper of one thread."""

    def __init__(self, extractor: Extractor) -> None:
        self.tables, self.config = extractor.tables, extractor.config
        config = self.config
        self.limits = np.array([config.max_span, config.max_symbols, config.max_gaps, config.samples], np.int64)
        self.paper = _new_paper(config, len(self.tables.src_span))
        self.generation = 0
        self._forget()

    def _forget(self) -> None:
        self.memory = _new_memory(self.config)
        self.paper = self.paper._replace(found=np.empty(len(self.memory.count), np.int32))
        self._new_generation()

    def _new_generation(self) -> None:
        self.generation += 1
        self.memory.used[1] = 0

    def rules(self, src: npt.NDArray[np.int32], gaps: npt.NDArray[np.int32], left_out: int) -> Rules:
        if sum(array.nbytes for array in self.memory) > self.config.cache_mb << 20:
            self._forget()
        if left_out >= 0:
            # What is left out is left out of this sentence alone.
            self._new_generation()
        paper = self.paper
        paper.round[0] += 1
        paper.round[1] = 0
        paper.round[2] = self.generation
        while True:
            self.paper.round[3] += 1
            status = collect_kernel(
                self.tables, self.limits, read_only(src), left_out, self.memory, self.paper
            )
            if status == OK:
                break
            self._grow(status)
        found = self.paper.found[: self.paper.round[4]]
        rules = _emit(self.memory, found, gaps)
        if left_out >= 0:
            self._new_generation()
        return rules

    def _grow(self, status: int) -> None:
        if status == MORE_MATCHES:
            self.paper = self.paper._replace(match=_longer(self.paper.match))
        elif status == MORE_STATES:
            self.paper = self.paper._replace(state=_longer(self.paper.state))
        elif status == MORE_ENTRIES:
            self.memory = _more_patterns(self.memory)
            self.paper = self.paper._replace(found=_longer(self.paper.found))
        elif status == MORE_RULES:
            self.memory = _more_rules(self.memory)


def _longer(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    new = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def _new_memory(config: ExtractConfig, patterns: int = 1 << 14, rules: int = 1 << 14) -> Memory:
    first = np.zeros(rules + 1, np.int64)
    return Memory(
        slot=np.full(2 * patterns, -1, np.int32),
        symbol=np.empty((patterns, config.max_symbols), np.int32),
        shape=np.empty((patterns, 4), np.int32),
        count=np.empty(patterns, np.int64),
        place=np.empty((patterns, 3), np.int64),
        stamp=np.empty((patterns, 3), np.int64),
        rule=np.empty((patterns, 2), np.int64),
        edge=np.empty(rules, np.uint8),
        feature=np.empty((rules, NUM_FEATURES), np.float32),
        first_tgt=first,
        tgt=np.empty(4 * rules, np.int32),
        first_link=first.copy(),
        link=np.empty((4 * rules, 2), np.int16),
        used=np.zeros(4, np.int64),
    )


def _more_patterns(memory: Memory) -> Memory:
    slot = np.full(2 * len(memory.slot), -1, np.int32)
    names = ("symbol", "shape", "count", "place", "stamp", "rule")
    memory = memory._replace(slot=slot, **{name: _longer(getattr(memory, name)) for name in names})
    rehash_kernel(memory)
    return memory


def _more_rules(memory: Memory) -> Memory:
    names = ("edge", "feature", "first_tgt", "tgt", "first_link", "link")
    return memory._replace(**{name: _longer(getattr(memory, name)) for name in names})


def _new_paper(config: ExtractConfig, num_alignments: int) -> Paper:
    yields = 4 * config.samples * num_alignments  # rules of a pattern, at most
    slots = 16
    while slots < 2 * yields:
        slots *= 2
    return Paper(
        match=np.empty(1 << 16, np.int64),
        state=np.empty((1 << 12, 3), np.int32),
        found=np.empty(0, np.int32),
        pattern=np.empty((1, config.max_symbols + 2), np.int32),
        round=np.zeros(5, np.int64),
        sample=np.empty(config.samples, np.int64),
        low=np.zeros(16, np.int64),
        high=np.zeros(16, np.int64),
        tally=np.zeros(4, np.int64),
        slot=np.empty((2, slots), np.int32),
        group=np.empty((yields, 4), np.int32),
        symbol=np.empty(yields * config.max_span + 1, np.int32),
        variant=np.empty((yields, 4), np.int32),
        link=np.empty((yields * config.max_symbols * config.max_span, 2), np.int16),
        best=np.empty(yields, np.int32),
        loss=np.empty(config.max_span + 1, np.float64),
    )


def _emit(memory: Memory, found: npt.NDArray[np.int32], gaps: npt.NDArray[np.int32]) -> Rules:
    room = np.zeros(4, np.int64)
    rule_room_kernel(memory, found, room)
    num_rules, num_src, num_tgt, num_links = room.tolist()
    first_src, first_tgt, first_link = (np.empty(num_rules + 1, np.int64) for _ in range(3))
    src, tgt = np.empty(num_src, np.int32), np.empty(num_tgt, np.int32)
    dense = np.empty((num_rules, NUM_FEATURES), np.float32)
    link = np.empty((num_links, 2), np.int16)
    emit_rules_kernel(memory, found, gaps, first_src, src, first_tgt, tgt, dense, first_link, link)
    return Rules(
        lhs=np.zeros(num_rules, np.int32),
        first_src=first_src,
        src=src,
        first_tgt=first_tgt,
        tgt=tgt,
        dense=dense,
        first_sparse=np.zeros(num_rules + 1, np.int64),
        sparse_name=np.zeros(0, np.int32),
        sparse_value=np.zeros(0, np.float32),
        first_link=first_link,
        link=link,
    )


class _Outward:
    """From the words of one side of an index to shared ids, each looked up when it is first needed."""

    def __init__(self, table: WordTable, vocabulary: Vocabulary) -> None:
        self.table, self.vocabulary = table, vocabulary
        size = len(table.first)
        self._shared = np.zeros(size, np.int32)
        self._known = np.zeros(size, np.bool_)

    def __call__(self, symbols: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The same with shared ids for words; gaps, which are negative, stay."""
        words = symbols > 0
        own = symbols[words]
        new = np.unique(own[~self._known[own]])
        if len(new):
            # Values before flags: a thread that sees the flag sees the value.
            entries = (table_entry(self.table, word - 1) for word in new.tolist())
            self._shared[new] = self.vocabulary.intern_all(entries)
            self._known[new] = True
        shared = symbols.copy()
        shared[words] = self._shared[own]
        return shared


class IndexSource:
    """A bitext index as a grammar: its rules are extracted when a sentence asks for them."""

    stage = "extract"  # under which decoding reports the time

    def __init__(self, extractor: Extractor, symbols: Symbols) -> None:
        self.extractor, self.symbols = extractor, symbols
        index, config = extractor.index, extractor.config
        self._src_words = index.src_words
        self._outward = _Outward(index.src_words, symbols.words), _Outward(index.tgt_words, symbols.words)
        self._label = symbols.labels.intern(config.category.encode())
        self._gaps = np.array([0, gap(self._label, 1), gap(self._label, 2)], np.int32)
        self._columns = tuple(symbols.names.intern(name.encode()) for name in FEATURES)

    def rules_for(self, src: npt.NDArray[np.int32], segment: Mapping[str, str]) -> RuleTable:
        return self.extract(src)

    def extract(self, src: npt.NDArray[np.int32], left_out: int = -1) -> RuleTable:
        """The rules of a sentence; nothing is taken from sentence pair ``left_out`` of the bitext."""
        entries = [self.symbols.words.entry(word) for word in src.tolist()]
        own = find_all(self._src_words, entries) + 1
        rules = self.extractor.rules(own.astype(np.int32), self._gaps, left_out)
        rules = rules._replace(
            lhs=np.full(len(rules.lhs), self._label, np.int32),
            src=self._outward[0](rules.src),
            tgt=self._outward[1](rules.tgt),
        )
        return RuleTable(Rules(*map(read_only, rules)), self._columns)
