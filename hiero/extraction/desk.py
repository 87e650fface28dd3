# mypy: allow-untyped-calls
"""The workspace of a thread that extracts rules: cached patterns and scratch arrays, which grow."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import read_only
from hiero.extraction.config import ExtractConfig
from hiero.extraction.extract_emit_part_kernels import emit_rules_kernel, rule_room_kernel
from hiero.extraction.index import BitextIndex
from hiero.extraction.lexicon import LeftOutLexicon
from hiero.extraction.match_kernels import collect_kernel, rehash_kernel
from hiero.extraction.table_kernels import (
    MORE_MATCHES,
    MORE_PATTERNS,
    MORE_RULES,
    MORE_STATES,
    NUM_FEATURES,
    OK,
    Collocations,
    LexicalLosses,
    Patterns,
    PatternScratch,
    SentenceScratch,
    Store,
)
from hiero.grammar.rules import Rules, take_rules

COUNT = 2  # column of CountEF, which is log10(1 + count)
FIRST_PATTERNS = FIRST_RULES = 1 << 14  # initial capacity


class Workspace:
    """Extracts rules; for use by one thread at a time."""

    def __init__(self, index: BitextIndex, config: ExtractConfig, collocations: Collocations) -> None:
        self.config = config
        self.index, self.collocations = index, collocations
        self._left_out: LeftOutLexicon | None = None
        limits = [config.max_span, config.max_symbols, config.max_gaps, config.samples]
        self.limits = read_only(np.array(limits, np.int64))
        self.sentence_scratch = _new_sentence_scratch(config)
        self.pattern_scratch = _new_pattern_scratch(config, len(index.links.src_span))
        self.generation = 0
        self._forget()

    def rules(self, src: npt.NDArray[np.int32], left_out: int = -1, first_sentence: int = -1) -> Rules:
        """The rules of a sentence of words as the index numbers them, 0 for unknown ones; gap g is -g.

        Sentence ``left_out`` of the index is ignored, except in lexical probabilities where
        ``leave_out_links`` is false. If ``first_sentence`` is given, only the rules of phrases that occur in
        this sentence and in none before it.
        """
        if sum(array.nbytes for array in (*self.patterns, *self.store)) > self.config.cache_mb << 20:
            self._forget()
        is_temporary = left_out >= 0 or first_sentence >= 0
        if is_temporary:
            self._forget_rules()
        with self._lexicon(left_out) as lexicon:
            self._collect(lexicon, src, left_out, first_sentence)
        rules = _emit(
            self.patterns, self.store, self.sentence_scratch.found[: self.sentence_scratch.round[4]]
        )
        if is_temporary:
            self._forget_rules()
        return rules if self.config.min_count == 1 else _counted(rules, self.config.min_count)

    def _lexicon(self, left_out: int) -> AbstractContextManager[LexicalLosses]:
        index = self.index
        if left_out < 0 or not self.config.leave_out_links:
            return nullcontext(index.lexicon)
        if self._left_out is None:
            num_words = len(index.src_words.first) - 1, len(index.tgt_words.first) - 1
            self._left_out = LeftOutLexicon(index.text, index.links, index.lexicon, num_words)
        return self._left_out.without(left_out)

    def _collect(
        self, lexicon: LexicalLosses, src: npt.NDArray[np.int32], left_out: int, first_sentence: int
    ) -> None:
        tables = self.index.text, self.index.links, lexicon, self.collocations
        self.sentence_scratch.round[:3] = self.sentence_scratch.round[0] + 1, 0, self.generation
        while True:
            self.sentence_scratch.round[3] += 1
            known = self.patterns, self.store, self.sentence_scratch, self.pattern_scratch
            status = collect_kernel(*tables, self.limits, read_only(src), left_out, first_sentence, *known)
            if status == OK:
                break
            self._grow(status)

    def _forget(self) -> None:
        self.patterns, self.store = _new_patterns(self.config), _new_store()
        self.sentence_scratch = self.sentence_scratch._replace(
            found=np.empty(len(self.patterns.count), np.int32)
        )
        self._forget_rules()

    def _forget_rules(self) -> None:
        self.generation += 1
        self.store.used[0] = 0

    def _grow(self, status: int) -> None:
        if status == MORE_MATCHES:
            self.sentence_scratch = self.sentence_scratch._replace(match=_longer(self.sentence_scratch.match))
        elif status == MORE_STATES:
            self.sentence_scratch = self.sentence_scratch._replace(state=_longer(self.sentence_scratch.state))
        elif status == MORE_RULES:
            longer = {name: _longer(getattr(self.store, name)) for name in Store._fields if name != "used"}
            self.store = self.store._replace(**longer)
        else:
            assert status == MORE_PATTERNS
            slot = np.full(2 * len(self.patterns.slot), -1, np.int32)
            names = (name for name in Patterns._fields if name not in ("slot", "used"))
            longer = {name: _longer(getattr(self.patterns, name)) for name in names}
            self.patterns = self.patterns._replace(slot=slot, **longer)
            rehash_kernel(self.patterns)
            self.sentence_scratch = self.sentence_scratch._replace(found=_longer(self.sentence_scratch.found))


def _longer(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of twice the length and one more, since offsets are one more than items."""
    new = np.empty((2 * len(array) + 1, *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def _new_patterns(config: ExtractConfig) -> Patterns:
    return Patterns(
        slot=np.full(2 * FIRST_PATTERNS, -1, np.int32),
        symbol=np.empty((FIRST_PATTERNS, config.max_symbols), np.int32),
        shape=np.empty((FIRST_PATTERNS, 4), np.int32),
        count=np.empty(FIRST_PATTERNS, np.int64),
        place=np.empty((FIRST_PATTERNS, 3), np.int64),
        stamp=np.empty((FIRST_PATTERNS, 3), np.int64),
        rule=np.empty((FIRST_PATTERNS, 2), np.int64),
        first_sentence=np.empty(FIRST_PATTERNS, np.int64),
        used=np.zeros(1, np.int64),
    )


def _new_store() -> Store:
    return Store(
        edge=np.empty(FIRST_RULES, np.uint8),
        feature=np.empty((FIRST_RULES, NUM_FEATURES), np.float32),
        first_tgt=np.zeros(FIRST_RULES + 1, np.int64),
        tgt=np.empty(4 * FIRST_RULES, np.int32),
        first_link=np.zeros(FIRST_RULES + 1, np.int64),
        link=np.empty((4 * FIRST_RULES, 2), np.int16),
        used=np.zeros(1, np.int64),
    )


def _new_sentence_scratch(config: ExtractConfig) -> SentenceScratch:
    return SentenceScratch(
        match=np.empty(1 << 16, np.int64),
        state=np.empty((1 << 12, 3), np.int32),
        found=np.empty(0, np.int32),
        pattern=np.empty((1, config.max_symbols + 2), np.int32),
        wait=np.zeros(config.max_symbols + 2, np.int64),
        round=np.zeros(5, np.int64),
    )


def _new_pattern_scratch(config: ExtractConfig, num_alignments: int) -> PatternScratch:
    yields = 4 * config.samples * num_alignments  # rules of a pattern, at most
    slots = 16
    while slots < 2 * yields:
        slots *= 2
    return PatternScratch(
        sample=np.empty(config.samples, np.int64),
        low=np.zeros(16, np.int64),
        high=np.zeros(16, np.int64),
        tally=np.zeros(4, np.int64),
        used=np.zeros(4, np.int64),
        slot=np.empty((2, slots), np.int32),
        group=np.empty((yields, 4), np.int32),
        symbol=np.empty(yields * config.max_span, np.int32),
        variant=np.empty((yields, 4), np.int32),
        link=np.empty((yields * config.max_symbols * config.max_span, 2), np.int16),
        best=np.empty(yields, np.int32),
        loss=np.empty(config.max_span, np.float64),
    )


def _counted(rules: Rules, min_count: int) -> Rules:
    """The rules with this count at least, and all rules of single source words."""
    count = np.rint(10.0 ** rules.dense[:, COUNT].astype(np.float64)) - 1
    kept = np.flatnonzero((count >= min_count) | (np.diff(rules.first_src) == 1))
    return take_rules(rules, kept)


def _emit(patterns: Patterns, store: Store, found: npt.NDArray[np.int32]) -> Rules:
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
