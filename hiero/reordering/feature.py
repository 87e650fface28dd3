"""Orientations as features of rule applications: models of them, and indicators."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.array_kernels import distinct_kernel
from hiero.core.arrays import Floats, Floats32, Ids, Ints, offsets_of, read_only
from hiero.core.errors import ConfigError, HieroError
from hiero.core.records import MAX_GAPS
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import Symbols, find_all, pack, table_entry
from hiero.extraction.extractor import IndexSource
from hiero.features.index import EdgeBatch, EdgeFeature
from hiero.features.rows import FeatureRows
from hiero.grammar.rules import GrammarSource, Rules
from hiero.grammar.sources import StaticGrammar
from hiero.reordering.block_kernels import (
    Blocks,
    cut_rules_kernel,
    distortion_kernel,
    orientation_items_kernel,
)
from hiero.reordering.config import CLASSES
from hiero.reordering.feature_kernels import (
    NUM_CLASSES,
    UNKNOWN,
    BlockScores,
    ClassifierArrays,
    PlaceOdds,
    PlaceWeights,
    classify_edges_kernel,
    look_up_blocks_kernel,
    look_up_edges_kernel,
    odds_kernel,
    weigh_blocks_kernel,
    weigh_places_kernel,
)
from hiero.reordering.gap_kernels import (
    CLASSIFIED,
    LOOKED_UP,
    NUM_GAINS,
    GapModels,
    gap_labels_kernel,
    gap_rows_kernel,
    rescore_gaps_kernel,
)
from hiero.reordering.model import Classifier, Lexicalised, OrientationModel, open_model
from hiero.reordering.phrase_kernels import phrase_word_codes_kernel
from hiero.reordering.table_kernels import LexicalArrays, OrientationCounts

# For gaps without a classifier, or without a lexicalised model.
_NO_FEATURES, _NO_WORDS = read_only(np.zeros((0, NUM_CLASSES), np.float32)), read_only(np.zeros(0, np.int32))
_NO_CLASSIFIER = ClassifierArrays(
    read_only(np.zeros(0, np.int64)),
    read_only(np.full(2, -1, np.int32)),
    _NO_FEATURES,
    _NO_FEATURES,
    _NO_WORDS,
    _NO_WORDS,
    0,
    0,
    0,
)
_NO_WEIGHTS = read_only(np.zeros((1, NUM_CLASSES))), read_only(np.zeros((1, 1, NUM_CLASSES)))
_NO_PLACES = PlaceWeights(*[_NO_WEIGHTS[0], _NO_WEIGHTS[0], _NO_WEIGHTS[1]] * 2)
_NO_COUNTS = OrientationCounts(
    read_only(np.zeros(0, np.uint64)),
    read_only(np.zeros(3, np.int64)),
    *[read_only(np.zeros((0, NUM_CLASSES), np.int32))] * 2,
)
_EQUAL = read_only(np.full(NUM_CLASSES, 1 / NUM_CLASSES))
_NO_LEXICAL = LexicalArrays(*_NO_COUNTS, *_NO_COUNTS, _NO_COUNTS.key, _EQUAL, _EQUAL, 1.0, 0)
EDGES = ("src.first", "src.last", "tgt.first", "tgt.last")  # of a block


class Reordering:
    """The ``EdgeFeature`` of an orientation model.

    For each class log10 of its probability, summed over the blocks that have it, and the number of these
    blocks, so that a preference for a class and the trust in the model have separate weights. A bidirectional
    model has three more: the log10 probabilities of a block by the one before it.
    """

    has_all_names = True
    scores_gaps = True

    def __init__(self, model: Classifier | Lexicalised, symbols: Symbols) -> None:
        self.model, self.symbols = model, symbols
        is_classifier = isinstance(model, Classifier)
        self.name = "reordering" if is_classifier else "lexical_reordering"
        stem = "Reordering" if is_classifier else "LexicalReordering"
        classes = [f"{stem}{name}" for name in ("Monotone", "Swap", "Other")]
        self._names = [*classes, *(f"{name}Blocks" for name in classes)]
        if model.bidirectional:
            self._names += [f"{stem}Next{name}" for name in ("Monotone", "Swap", "Other")]
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
        num_edges = len(batch.rule)
        first, most = np.empty(num_edges + 1, np.int64), len(self._names) * num_edges
        ids, value = np.empty(most, np.int32), np.empty(most)
        weight = read_only(np.zeros(len(self._ids)))
        used = self._judge(batch, rules, weight, None, first, ids, value)
        return FeatureRows(first, ids[:used], value[:used])

    def scores(self, batch: EdgeBatch, rules: Rules, name_weights: Floats) -> Floats:
        """The weighted sums of ``rows``."""
        score = np.empty(len(batch.rule))
        self._judge(batch, rules, read_only(name_weights[self._ids]), score, None, None, None)
        return score

    def _judge(self, batch: EdgeBatch, rules: Rules, weight: Floats, *out: Any) -> int:
        """Write scores, or rows; see ``classify_edges_kernel``."""
        batch = EdgeBatch._make(read_only(array) for array in batch)
        rules = Rules._make(read_only(array) for array in rules)
        blocks = _cut(batch.rule, rules)
        scores = BlockScores(*np.zeros((2, len(blocks.rule), NUM_CLASSES)))
        if isinstance(self.model, Classifier):
            arrays = self.classifier(self.model)
            weigh_blocks_kernel(arrays, rules, blocks, scores)
            ahead = _odds(scores.ahead) if len(self._ids) > 2 * NUM_CLASSES else read_only(scores.ahead)
            odds = BlockScores(_odds(scores.own), ahead)
            places = _places(arrays, batch.src)
            around = PlaceOdds(_odds(places.start), _odds(places.end), _odds(-places.both))
            given = scores, odds, places, around, self._ids, weight
            return int(classify_edges_kernel(batch, blocks, *given, *out))
        lexical = self.lexical(self.model)
        look_up_blocks_kernel(lexical, rules, blocks, scores)
        return int(look_up_edges_kernel(batch, blocks, scores, lexical, self._ids, weight, *out))

    @property
    def class_ids(self) -> Ids:
        """The ids of the features of log10 probabilities, by class; then those of next blocks, if any."""
        return np.delete(self._ids, slice(NUM_CLASSES, 2 * NUM_CLASSES))

    def classifier(self, model: Classifier) -> ClassifierArrays:
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
                model.gap_weight,
                self._src,
                self._tgt,
                settings.window,
                int(settings.edges),
                int(settings.context == "bag"),
            )

    def lexical(self, model: Lexicalised) -> LexicalArrays:
        """The model with hashes of all present words."""
        with self._lock:
            fresh = self.symbols.words.entries(len(self._code))
            if fresh:
                code = np.empty(len(fresh), np.uint64)
                phrase_word_codes_kernel(*pack(fresh), code)
                self._code = read_only(np.concatenate([self._code, code]))
            return model.arrays(self._code)


def gap_models(
    features: Sequence[EdgeFeature], src: Ids, applied: Ids, rules: Rules, name_weights: Floats
) -> GapModels | None:
    """The models of features, at most one of each kind, for the gaps of the applied rules of a sentence.

    None if there are none. Other features are left out.
    """
    found = _reorderings(features)
    if not found:
        return None
    rules = Rules._make(read_only(array) for array in rules)
    blocks = _cut(applied, rules)
    num_rules = len(rules.lhs)
    label = np.empty((num_rules, 2 * MAX_GAPS), np.int8)
    gap_labels_kernel(blocks, label)
    longest, words, places, lexical = np.zeros(2, np.int64), _NO_CLASSIFIER, _NO_PLACES, _NO_LEXICAL
    for feature in found:
        if isinstance(feature.model, Classifier):
            arrays = feature.classifier(feature.model)
            longest[0], places = feature.model.settings.max_length, _places(arrays, src)
            words = arrays
        else:
            longest[1], lexical = feature.model.settings.max_length, feature.lexical(feature.model)
    names = _gain_names(found)
    weight = np.where(names >= 0, name_weights[names], 0.0)
    return GapModels(
        read_only(label),
        read_only(src),
        read_only(longest),
        np.full((num_rules, words.weight.shape[1]), np.nan if longest[0] else 0.0),
        rules,
        words,
        places,
        lexical,
        read_only(weight),
    )


def rescore_gaps(
    features: Sequence[EdgeFeature],
    src: Ids,
    applied: Ids,
    rules: Rules,
    name_weights: Floats,
    chart: tuple[Ints, Ids, Ids, Ids],
    cells: Ids,
    local: Floats,
) -> tuple[Ids, Floats32] | None:
    """Add to the scores of edges what knowing the words in gaps changes; see ``rescore_gaps_kernel``.

    ``chart``: first_edge, cell, tail and rule. Returns the gains of nodes; None without models.
    """
    gaps = gap_models(features, src, applied, rules, name_weights)
    if gaps is None:
        return None
    first_edge, cell, tail, rule = chart
    edges = read_only(first_edge), read_only(cell), read_only(tail), read_only(rule)
    row, gain = rescore_gaps_kernel(gaps, *edges, read_only(cells), local)
    return row, gain


def gap_rows(
    features: Sequence[EdgeFeature], tail: Ids, rule: Ids, rules: Rules, row: Ids, gain: Floats32
) -> FeatureRows:
    """The changes of features on some edges of a forest with the gains of its nodes; ids in Symbols.names."""
    rules = Rules._make(read_only(array) for array in rules)
    tail, rule, row, gain = read_only(tail), read_only(rule), read_only(row), read_only(gain)
    applied = read_only(np.unique(rule[rule >= 0]))
    blocks = _cut(applied, rules)
    label = np.empty((len(rules.lhs), 2 * MAX_GAPS), np.int8)
    gap_labels_kernel(blocks, label)
    first, most = np.empty(len(rule) + 1, np.int64), 4 * MAX_GAPS * len(rule)
    ids, value = np.empty(most, np.int32), np.empty(most)
    names = _gain_names(_reorderings(features))
    used = gap_rows_kernel(rule, tail, read_only(label), row, gain, names, first, ids, value)
    return FeatureRows(first, ids[:used], value[:used])


def _reorderings(features: Sequence[EdgeFeature]) -> list[Reordering]:
    return [feature for feature in features if isinstance(feature, Reordering)]


def _gain_names(features: Sequence[Reordering]) -> Ids:
    """The ids of the features that gains of nodes add to, -1 for those of no model."""
    names = np.full(NUM_GAINS, -1, np.int32)
    for feature in features:
        begin = CLASSIFIED if isinstance(feature.model, Classifier) else LOOKED_UP
        names[begin : begin + len(feature.class_ids)] = feature.class_ids
    return read_only(names)


_LAST = threading.local()


def _cut(applied: Ids, rules: Rules) -> Blocks:
    """The blocks of rules; the last ones are kept, as several features of a sentence ask for them."""
    given = applied, rules.tgt, rules.link
    last = getattr(_LAST, "given", None)
    if last is None or not all(_is_same(given[k], last[k]) for k in range(len(given))):
        found = cut_rules_kernel(read_only(applied), rules)
        _LAST.given, _LAST.blocks = given, Blocks._make(read_only(array) for array in found)
    blocks: Blocks = _LAST.blocks
    return blocks


def _is_same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Whether two arrays are views of the same memory, which both keep."""
    return one.shape == other.shape and one.ctypes.data == other.ctypes.data


def _odds(score: Floats) -> Floats:
    """``odds_kernel`` of the last axis, read-only."""
    out = np.empty(score.shape)
    rows = -1, score.shape[-1]
    odds_kernel(read_only(score.reshape(rows)), out.reshape(rows))
    return read_only(out)


def _places(model: ClassifierArrays, src: Ids) -> PlaceWeights:
    """The weights of blocks by their places in a sentence, read-only."""
    size, most = len(src) + 1, len(src) + 1 if model.bag else 1
    width = model.weight.shape[1]
    shapes = [(size, width), (size, width), (most, most, width)] * 2
    places = PlaceWeights(*map(np.empty, shapes))
    weigh_places_kernel(model, src, places)
    return PlaceWeights._make(read_only(array) for array in places)


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


class Distortion:
    """The ``EdgeFeature`` called ``distortion``: source words jumped over between consecutive blocks.

    As in phrase-based systems, but between the blocks of a rule: those of two gaps that change places jump
    over as many words as the rule covers.
    """

    name = "distortion"
    has_all_names = True

    def __init__(self, symbols: Symbols) -> None:
        self._id = symbols.names.intern(b"Distortion")

    def names(self) -> Sequence[str]:
        return ["Distortion"]

    def rows(self, batch: EdgeBatch, rules: Rules) -> FeatureRows:
        batch = EdgeBatch._make(read_only(array) for array in batch)
        rules = Rules._make(read_only(array) for array in rules)
        value = np.empty(len(batch.rule))
        distortion_kernel(batch, cut_rules_kernel(batch.rule, rules), value)
        present = value != 0
        ids = np.full(int(present.sum()), self._id, np.int32)
        return FeatureRows(offsets_of(present), ids, value[present])


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
