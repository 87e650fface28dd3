"""Scores and features of rules, and of rule applications.

For the search, ``RuleScorer.scores`` returns one number per rule; for k-best lists and learning, ``rows`` and
``Replay`` return the features behind that number. Language model scores are computed by the search; target
words unknown to a language model are counted here.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from hiero.core.arrays import Flags, Floats, Ids, Ints, read_only
from hiero.core.records import MOST_GAPS
from hiero.core.symbols import Symbols, Vocabulary
from hiero.features.feature_set import FeatureSet
from hiero.features.index import EdgeBatch, EdgeFeature, FeatureIndex, ScoringFeature
from hiero.features.index_kernels import FeatureTable, intern_rows_kernel
from hiero.features.names import Names
from hiero.features.rows import (
    FeatureRows,
    feature_row_scores,
    intern_names,
    merge_feature_rows,
    number_feature_rows,
    pick_feature_rows,
    with_empty_row,
)
from hiero.features.shared_names import SharedNames
from hiero.features.shared_names_kernels import shared_scores_kernel
from hiero.features.template_kernels import (
    keys_kernel,
    linear_scores_kernel,
    named_rows_kernel,
    room_kernel,
    template_scores_kernel,
)
from hiero.features.user import RuleCache
from hiero.features.weights import LinearWeights, Weights
from hiero.grammar.rules import Grammar, Rules, RuleTable

WORD_UNIT = -1 / math.log(10)  # cdec's value of a word penalty per word, and of an arity
RULES_AT_ONCE = 4096  # so that their keys fit in the processor's cache

WORD_PENALTY, SOURCE_WORD_PENALTY = "WordPenalty", "SourceWordPenalty"
ARITIES = tuple(f"Arity_{arity}" for arity in range(MOST_GAPS + 1))

# Weights of features that have one without being in the weights of a model.
DEFAULT_WEIGHTS = {"PrefixEdit": -10.0, "Term": 1.0, "Markup": 1.0}

Keys = tuple[Ints, Ids, Ids]


def template_keys(rules: Rules, chosen: Ints, templates: int) -> Keys:
    """The template features of the chosen rules, in the format of ``keys_kernel``; read-only."""
    room = np.zeros(3, np.int64)
    room_kernel(rules, chosen, templates, room)
    first = np.empty(len(chosen) + 1, np.int64)
    key, pool = np.empty((room[0], 3), np.int32), np.empty(room[1], np.int32)
    keys_kernel(rules, chosen, templates, room, first, key, pool)
    return read_only(first), read_only(key), read_only(pool)


def template_rows(rules: Rules, chosen: Ints, templates: int, index: FeatureIndex) -> FeatureRows:
    """The rows of features that templates fire on the chosen rules, numbered by ``index`` as they occur."""
    return rows_of_keys(template_keys(rules, chosen, templates), index)


def rows_of_keys(keys: Keys, index: FeatureIndex) -> FeatureRows:
    """Rows of features from keys in the format of ``keys_kernel``; repeated ones are counted."""
    num_keys, num_symbols = int(keys[0][-1]), len(keys[2])
    first = np.empty(len(keys[0]), np.int64)
    ids, value = np.empty(num_keys, np.int32), np.empty(num_keys, np.float64)
    with index.locked():
        table = index.reserve(num_keys, num_symbols)
        intern_rows_kernel(*keys, table, first, ids, value)
    return FeatureRows(first, ids[: first[-1]], value[: first[-1]])


class RuleScorer:
    """The linear model over rules; safe to share between threads.

    A rule without a source side is a part of others, and has no features but those that are given with it.
    Weights are read when it is made: after a change, which ``version`` of the weights tells, make a new one.
    """

    def __init__(
        self,
        symbols: Symbols,
        weights: LinearWeights,
        features: FeatureSet | None = None,
        language_models: Sequence[str] = (),
        cache: RuleCache | None = None,
    ) -> None:
        self.symbols = symbols
        self.weights, self.version = weights, weights.version
        self.features = FeatureSet() if features is None else features
        # The cache does not depend on weights, so scorers with other weights share it.
        self._cache = cache or RuleCache(self.features.rule_features, symbols)
        self._lock = threading.Lock()
        self._oov_names = [symbols.names.intern(f"{name}_OOV".encode()) for name in language_models]
        used = [True, self.features.source_word_penalty, *[self.features.arity] * len(ARITIES)]
        basic = zip([WORD_PENALTY, SOURCE_WORD_PENALTY, *ARITIES], used, strict=True)
        self._basic_names = [symbols.names.intern(name.encode()) if on else -1 for name, on in basic]
        self._name_weight = np.empty(0)
        self._table, self._weight = weights.template_weights()
        self._shared = SharedNames(symbols, weights) if weights.has_shared_names else None

    @property
    def template_weights(self) -> tuple[FeatureTable, Floats]:
        """The features of templates that have a weight of their own, and the weights."""
        return self._table, self._weight

    def shared_words(self) -> Flags | None:
        """Which words may be in names that features share; None if no weight is under a shared name."""
        return None if self._shared is None else self._shared.current().word_special

    def name_weights(self) -> Floats:
        """The weights of all named features interned so far, by id in Symbols.names; read-only."""
        if len(self._name_weight) < len(self.symbols.names):
            with self._lock:
                start = len(self._name_weight)
                more = self.weights.name_weights(start)
                for name, default in DEFAULT_WEIGHTS.items():
                    place = self.symbols.names.find(name.encode()) - start
                    if 0 <= place < len(more) and isinstance(self.weights, Weights):
                        more[place] = self.weights.get(name, default)
                self._name_weight = read_only(np.concatenate([self._name_weight, more]))
        return self._name_weight

    def scores(self, table: RuleTable | Grammar, lm_word: Ids, chosen: Ints | None = None) -> Floats:
        """The scores of all rules, or of the chosen ones.

        ``lm_word`` is the result of ``LanguageModels.word_ids``.
        """
        rules = self._rules(table)
        chosen = read_only(np.arange(table.num_rules) if chosen is None else chosen)
        of_whole, places = _whole(rules, chosen)
        user = self._cache.rows(table, of_whole) if self.features.rule_features else None
        weight = self.name_weights()
        dense_weight = read_only(weight[np.array(table.columns, np.int64)])
        basic_weight = np.array([WORD_UNIT * weight[i] if i >= 0 else 0.0 for i in self._basic_names])
        oov_weight = read_only(weight[np.array(self._oov_names, np.int64)])
        out = np.empty(len(chosen))
        linear_scores_kernel(
            rules, chosen, dense_weight, weight, read_only(basic_weight), read_only(lm_word), oov_weight, out
        )
        if places is None:
            if self.features.templates:
                self._add_template_scores(rules, chosen, out)
            if user is not None:
                out += feature_row_scores(user, weight)
            return out
        more = np.zeros(len(of_whole))
        if self.features.templates:
            self._add_template_scores(rules, of_whole, more)
        if user is not None:
            more += feature_row_scores(user, weight)
        return np.asarray(out + np.append(more, 0.0)[places])

    def _add_template_scores(self, rules: Rules, chosen: Ints, out: Floats) -> None:
        templates, room = self.features.templates, np.zeros(3, np.int64)
        room_kernel(rules, chosen, templates, room)
        template_scores_kernel(rules, chosen, templates, room, self._table, self._weight, out)
        if self._shared is None:
            return
        spelling = self._shared.current()
        for start in range(0, len(chosen), RULES_AT_ONCE):
            part = slice(start, start + RULES_AT_ONCE)
            keys = template_keys(rules, chosen[part], templates)
            shared_scores_kernel(*keys, self._table, spelling, out[part])

    def rows(
        self, table: RuleTable | Grammar, lm_word: Ids, chosen: Ints, index: FeatureIndex
    ) -> FeatureRows:
        """All features of the chosen rules, numbered by ``index``; ids ascend in each row.

        ``scores`` is their dot product with the weights.
        """
        return merge_feature_rows(self._parts(table, lm_word, chosen, index))

    def distinct_rows(
        self, table: RuleTable | Grammar, lm_word: Ids, chosen: Ints, index: FeatureIndex
    ) -> list[FeatureRows]:
        """As ``rows``, in parts, none of whose features are in another; ids in any order."""
        parts = self._parts(table, lm_word, chosen, index)
        basic = {*self._basic_names, *self._oov_names}
        if self.features.rule_features or len(table.rules.sparse_name) or not basic.isdisjoint(table.columns):
            return [merge_feature_rows(parts)]
        return parts

    def _parts(
        self, table: RuleTable | Grammar, lm_word: Ids, chosen: Ints, index: FeatureIndex
    ) -> list[FeatureRows]:
        chosen = read_only(chosen)
        parts = [self._named(table, lm_word, chosen, index)]
        more: list[FeatureRows] = []
        of_whole, places = _whole(self._rules(table), chosen)
        if self.features.rule_features:
            more.append(number_feature_rows(self._cache.rows(table, of_whole), index, self.symbols.names))
        if self.features.templates:
            more.append(template_rows(self._rules(table), of_whole, self.features.templates, index))
        if places is not None:
            more = [pick_feature_rows(with_empty_row(rows), places) for rows in more]
        return [*parts, *more]

    @staticmethod
    def _rules(table: RuleTable | Grammar) -> Rules:
        return Rules._make(read_only(array) for array in table.rules)

    def _named(
        self, table: RuleTable | Grammar, lm_word: Ids, chosen: Ints, index: FeatureIndex
    ) -> FeatureRows:
        rules, columns = self._rules(table), np.array(table.columns, np.int32)
        basic, oov = np.array(self._basic_names, np.int32), np.array(self._oov_names, np.int32)
        num_sparse = int((rules.first_sparse[chosen + 1] - rules.first_sparse[chosen]).sum())
        room = len(chosen) * (len(columns) + 3 + len(oov)) + num_sparse  # one of the arities
        first, name = np.empty(len(chosen) + 1, np.int64), np.empty(room, np.int32)
        value, part = np.empty(room), np.empty(room, np.int8)
        given = (read_only(columns), read_only(basic), WORD_UNIT, read_only(lm_word), read_only(oov))
        named_rows_kernel(rules, chosen, *given, first, name, value, part)
        used = slice(0, int(first[-1]))
        name, value, part = name[used], value[used], part[used]
        ids = index.find_names(name)
        if ids.min(initial=0) < 0:
            for number in range(3):
                intern_names(name[part == number], index, self.symbols.names)
            ids = index.find_names(name)
        return FeatureRows(first, ids, value)


def _whole(rules: Rules, chosen: Ints) -> tuple[Ints, Ids | None]:
    """The rules among the chosen ones that are no parts, and the place of each chosen one in them.

    Parts have the place after the last; there are no places if there are no parts.
    """
    is_whole = rules.first_src[chosen + 1] > rules.first_src[chosen]
    if is_whole.all():
        return chosen, None
    found = read_only(chosen[is_whole])
    return found, np.where(is_whole, np.cumsum(is_whole) - 1, len(found)).astype(np.int32)


def edge_scores(
    batch: EdgeBatch, rules: Rules, features: Sequence[EdgeFeature], scorer: RuleScorer
) -> Floats:
    """The sum of the weighted edge features of each rule application."""
    out = np.zeros(len(batch.rule))
    for feature in features:
        if isinstance(feature, ScoringFeature):
            out += feature.scores(batch, rules, scorer.name_weights())
            continue
        rows = feature.rows(batch, rules)  # before the weights, because it may intern new names
        out += feature_row_scores(rows, scorer.name_weights())
    return out


def edge_rows(
    batch: EdgeBatch, rules: Rules, features: Sequence[EdgeFeature], index: FeatureIndex, names: Vocabulary
) -> FeatureRows:
    """The edge features behind ``edge_scores``: a row per rule application, numbered by ``index``."""
    parts = [number_feature_rows(feature.rows(batch, rules), index, names) for feature in features]
    none = FeatureRows(np.zeros(len(batch.rule) + 1, np.int64), np.empty(0, np.int32), np.empty(0))
    return merge_feature_rows(parts or [none])


class Replay:
    """The features of the rules of one sentence as mappings from names to values, each computed once.

    With ``cdec_names``, names are spelled as in cdec, and values of features with the same name add up;
    ``merged`` then holds such names.
    """

    def __init__(
        self, scorer: RuleScorer, table: RuleTable | Grammar, lm_word: Ids, *, cdec_names: bool = False
    ) -> None:
        self.scorer, self.table, self.lm_word = scorer, table, lm_word
        self.merged: set[str] = set()
        self._index = FeatureIndex()
        self._cdec_names = cdec_names
        self._names: list[str] = []
        self._spelled: set[str] = set()
        self._of_rule: dict[int, dict[str, float]] = {}

    def rules(self, chosen: Sequence[int]) -> list[Mapping[str, float]]:
        """The features of each of the rules."""
        missing = [rule for rule in dict.fromkeys(chosen) if rule not in self._of_rule]
        if missing:
            rules = np.array(missing, np.int64)
            found = self.scorer.rows(self.table, self.lm_word, rules, self._index)
            self._of_rule.update(zip(missing, self._mappings(found), strict=True))
        return [self._of_rule[rule] for rule in chosen]

    def edges(self, batch: EdgeBatch) -> list[dict[str, float]]:
        """The edge features of each rule application."""
        features = self.scorer.features.edge_features
        return self._mappings(
            edge_rows(batch, self.table.rules, features, self._index, self.scorer.symbols.names)
        )

    def _mappings(self, rows: FeatureRows) -> list[dict[str, float]]:
        if len(self._names) < len(self._index):
            names = Names(self.scorer.symbols)
            spell = names.cdec_name if self._cdec_names else names.name
        for feature in range(len(self._names), len(self._index)):
            name = spell(self._index.key(feature))
            if name in self._spelled:
                self.merged.add(name)
            self._spelled.add(name)
            self._names.append(name)
        mappings: list[dict[str, float]] = []
        ids, values = rows.id.tolist(), rows.value.tolist()
        for start, end in pairwise(rows.first.tolist()):
            mapping: dict[str, float] = {}
            for i in range(start, end):
                name = self._names[ids[i]]
                mapping[name] = mapping.get(name, 0.0) + values[i]
            mappings.append(mapping)
        return mappings
