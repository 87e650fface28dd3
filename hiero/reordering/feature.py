"""Orientations as features of rule applications: models of them, and indicators."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hiero.core.array_kernels import distinct_kernel
from hiero.core.arrays import Hashes, Ids, read_only
from hiero.core.errors import ConfigError, HieroError
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import Symbols, find_all, pack, table_entry
from hiero.extraction.extractor import IndexSource
from hiero.features.index import EdgeBatch
from hiero.features.rows import FeatureRows
from hiero.grammar.rules import GrammarSource, Rules
from hiero.grammar.sources import StaticGrammar
from hiero.reordering.config import CLASSES
from hiero.reordering.feature_kernels import (
    NUM_CLASSES,
    UNKNOWN,
    ClassifierArrays,
    classify_edges_kernel,
    cut_rules_kernel,
    look_up_blocks_kernel,
    look_up_edges_kernel,
    orientation_items_kernel,
    weigh_blocks_kernel,
    weigh_places_kernel,
)
from hiero.reordering.model import Classifier, Lexicalised, OrientationModel, open_model
from hiero.reordering.phrase_kernels import phrase_word_codes_kernel

EDGES = ("src.first", "src.last", "tgt.first", "tgt.last")  # of a block


class Reordering:
    """The ``EdgeFeature`` of an orientation model.

    For each class log10 of its probability, summed over the blocks that have it, and the number of these
    blocks, so that a preference for a class and the trust in the model have separate weights.
    """

    has_all_names = True

    def __init__(self, model: Classifier | Lexicalised, symbols: Symbols) -> None:
        self.model, self.symbols = model, symbols
        is_classifier = isinstance(model, Classifier)
        self.name = "reordering" if is_classifier else "lexical_reordering"
        stem = "Reordering" if is_classifier else "LexicalReordering"
        classes = [f"{stem}{name}" for name in ("Monotone", "Swap", "Other")]
        self._names = [*classes, *(f"{name}Blocks" for name in classes)]
        self._ids = read_only(symbols.names.intern_all(name.encode() for name in self._names))
        self._src, self._tgt = read_only(np.empty(0, np.int32)), read_only(np.empty(0, np.int32))
        self._code = read_only(np.empty(0, np.uint64))
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: str | Path, symbols: Symbols) -> Reordering:
        """The feature of a model of ``hiero reorder train``."""
        return cls(open_model(path), symbols)

    def names(self) -> Sequence[str]:
        return list(self._names)

    def rows(self, batch: EdgeBatch, rules: Rules) -> FeatureRows:
        batch = EdgeBatch._make(read_only(array) for array in batch)
        rules = Rules._make(read_only(array) for array in rules)
        num_edges = len(batch.rule)
        first = np.empty(num_edges + 1, np.int64)
        most = len(self._names) * num_edges
        ids, value = np.empty(most, np.int32), np.empty(most)
        blocks = cut_rules_kernel(batch.rule, rules)
        base = np.zeros((len(blocks.rule), 3))
        if isinstance(self.model, Classifier):
            arrays = self._classifier(self.model)
            weigh_blocks_kernel(arrays, rules, blocks, base)
            at_start, at_end = (np.empty((len(batch.src) + 1, 3)) for _ in range(2))
            weigh_places_kernel(arrays, batch.src, at_start, at_end)
            used = classify_edges_kernel(batch, blocks, base, at_start, at_end, self._ids, first, ids, value)
        else:
            lexical = self.model.arrays(self._codes())
            look_up_blocks_kernel(lexical, rules, blocks, base)
            used = look_up_edges_kernel(batch, blocks, base, lexical, self._ids, first, ids, value)
        return FeatureRows(first, ids[:used], value[:used])

    def _classifier(self, model: Classifier) -> ClassifierArrays:
        """The model with tables of its words by shared ids, extended to all present words."""
        with self._lock:
            fresh = self.symbols.words.entries(len(self._src))
            if fresh:
                self._src = read_only(np.concatenate([self._src, _own_words(model.src, fresh)]))
                self._tgt = read_only(np.concatenate([self._tgt, _own_words(model.tgt, fresh)]))
            settings = model.settings
            return ClassifierArrays(
                model.key,
                model.slot,
                model.weight,
                self._src,
                self._tgt,
                settings.window,
                int(settings.edges),
            )

    def _codes(self) -> Hashes:
        with self._lock:
            fresh = self.symbols.words.entries(len(self._code))
            if fresh:
                code = np.empty(len(fresh), np.uint64)
                phrase_word_codes_kernel(*pack(fresh), code)
                self._code = read_only(np.concatenate([self._code, code]))
            return self._code


class Orientation:
    """The ``EdgeFeature`` called ``orientation``: indicators of the classes of blocks, without a model.

        LO:swap                  a block that changes places with the one before it
        LO:swap:src.first:hat    its first source word is "hat"; src.last, tgt.first and tgt.last likewise

    The target words of a gap are not known before the search: it has source words only.
    """

    name = "orientation"
    prefixes = ("LO:",)

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._ids: dict[int, int] = {}
        self._lock = threading.Lock()

    def names(self) -> Sequence[str]:
        """The names of the classes alone; those with words depend on the input."""
        return [f"LO:{name}" for name in CLASSES]

    def rows(self, batch: EdgeBatch, rules: Rules) -> FeatureRows:
        batch = EdgeBatch._make(read_only(array) for array in batch)
        rules = Rules._make(read_only(array) for array in rules)
        blocks = cut_rules_kernel(batch.rule, rules)
        place = blocks.place[batch.rule]
        most = 5 * int((blocks.first[place + 1] - blocks.first[place]).sum())
        first, items, count = (
            np.empty(len(batch.rule) + 1, np.int64),
            np.empty(most, np.int32),
            np.empty(most),
        )
        used = orientation_items_kernel(batch, blocks, rules, first, items, count)
        distinct, which = distinct_kernel(read_only(items[:used]))
        return FeatureRows(first, self._names_of(distinct)[which], count[:used])

    def _names_of(self, items: Ids) -> Ids:
        """Ids in Symbols.names."""
        with self._lock:
            for item in items.tolist():
                if item not in self._ids:
                    self._ids[item] = self.symbols.names.intern(self._name(item))
            return np.array([self._ids[item] for item in items.tolist()], np.int32)

    def _name(self, item: int) -> bytes:
        rest, label = divmod(item, NUM_CLASSES)
        word, edge = divmod(rest, len(EDGES))
        name = f"LO:{CLASSES[label]}"
        return (
            name.encode()
            if not word
            else f"{name}:{EDGES[edge]}:".encode() + self.symbols.words.entry(word - 1)
        )


SAMPLE = 100_000  # symbols of a grammar that are checked
LEAST_SHARE = 0.2  # of frequent words in any grammar of the same language
MANY_WORDS = 200  # in fewer words, frequent ones may be missing
MANY_FREQUENT = 20


def check_kinds(models: Sequence[tuple[str | Path, bool]]) -> None:
    """Refuse two orientation models whose features have equal names; models are (path, is_classifier)."""
    for kind, is_classifier in (("classifiers", True), ("lexicalised models", False)):
        alike = [str(path) for path, this in models if this == is_classifier]
        if len(alike) > 1:
            raise ConfigError(
                f"features: reordering: {alike[0]} and {alike[1]} are both {kind}; "
                "give at most one of each kind"
            )


def check_language(model: OrientationModel, side: str, known: set[bytes]) -> None:
    """Refuse a model whose frequent words are not in the grammars on the same side."""
    frequent = [word.encode() for word in model.frequent[side]]
    if len(frequent) < MANY_FREQUENT or len(known) < MANY_WORDS:
        return
    if sum(word in known for word in frequent) < LEAST_SHARE * len(frequent):
        words = ", ".join(model.frequent[side][:3])
        raise HieroError(
            f"{model.path}: found an orientation model of another {side} language ({words}, …), "
            f"expected one of the language of the grammar"
        )


def open_reorderings(
    paths: Sequence[str | Path], symbols: Symbols, sources: Sequence[GrammarSource]
) -> list[Reordering]:
    """Features of models, which must fit the languages of the grammars and be of different kinds."""
    features = [_open_reordering(path, symbols, sources) for path in paths]
    check_kinds([(one.model.path, isinstance(one.model, Classifier)) for one in features])
    return features


def _open_reordering(path: str | Path, symbols: Symbols, sources: Sequence[GrammarSource]) -> Reordering:
    feature = Reordering.load(path, symbols)
    for side, is_target in (("source", False), ("target", True)):
        known: set[bytes] = set()
        for source in sources:
            if isinstance(source, IndexSource):
                index = source.extractor.index
                table = index.tgt_words if is_target else index.src_words
                known |= {table_entry(table, word) for word in range(len(table.first) - 1)}
            elif isinstance(source, StaticGrammar):
                known |= source.some_words(symbols, target=is_target, most=SAMPLE)
        check_language(feature.model, side, known)
    return feature


def _own_words(table: WordTable, entries: list[bytes]) -> Ids:
    """Word ids in a model, which count from 1; UNKNOWN for words that it does not have."""
    found = find_all(table, entries)
    return np.where(found >= 0, found + 1, UNKNOWN).astype(np.int32)
