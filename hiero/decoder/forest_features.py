"""Features of a decoded forest: those of its edges, recomputed from its rules, and the values of some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hiero.core.arrays import (
    Flags,
    Floats,
    Floats32,
    Ids,
    Ints,
    offsets_of,
    read_only,
    row_of_entry,
    take_rows,
)
from hiero.core.records import MAX_GAPS
from hiero.core.symbols import Symbols
from hiero.decoder.bigram_kernels import FIRST, KNOWN, LAST, Bigrams, edge_bigrams_kernel, edge_words_kernel
from hiero.decoder.hypergraph import Hypergraph
from hiero.features.index import EdgeBatch, FeatureIndex, Key
from hiero.features.index_kernels import NAME
from hiero.features.names import Names
from hiero.features.rows import (
    FeatureRows,
    merge_feature_rows,
    number_feature_rows,
    pick_feature_rows,
    with_empty_row,
)
from hiero.features.score import Replay, RuleScorer, edge_rows, rows_of_keys
from hiero.features.template_kernels import new_memo
from hiero.grammar.rules import NO_IDS, Grammar, RuleTable
from hiero.lm.table_kernels import Ngrams

if TYPE_CHECKING:
    from hiero.decoder.derivation import Derivation
    from hiero.decoder.forest import Forest


@dataclass(frozen=True)
class EdgeFeatures:
    """Feature values of edges: those of edge e are at first[e] ... first[e + 1] - 1.

    names    strings, to which ``feature`` refers
    first    int64 [E + 1]
    feature  int32
    value    float64
    """

    names: tuple[str, ...]
    first: Ints
    feature: Ids
    value: Floats

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, float]]) -> EdgeFeatures:
        """From a mapping for each edge."""
        rows, ids = list(rows), dict[str, int]()
        feature = np.array([ids.setdefault(name, len(ids)) for row in rows for name in row], np.int32)
        value = np.array([value for row in rows for value in row.values()], np.float64)
        return cls(tuple(ids), offsets_of(map(len, rows)), feature, value)

    def row(self, edge: int) -> dict[str, float]:
        """The features of one edge."""
        part = slice(self.first[edge], self.first[edge + 1])
        names = [self.names[i] for i in self.feature[part].tolist()]
        return dict(zip(names, self.value[part].tolist(), strict=True))

    def total(self, edges: Ids) -> dict[str, float]:
        """The summed features of some edges."""
        total: dict[str, float] = {}
        for edge in edges.tolist():
            for name, value in self.row(edge).items():
                total[name] = total.get(name, 0.0) + value
        return total

    def scores(self, weights: Mapping[str, float]) -> Floats:
        """The score of every edge with these weights, float64 [E]; other features have weight 0."""
        weight = np.array([weights.get(name, 0.0) for name in self.names], np.float64)
        edge = row_of_entry(self.first)
        found = np.bincount(edge, weight[self.feature] * self.value, len(self.first) - 1)
        return np.asarray(found, np.float64)

    def of(self, edges: Ids) -> EdgeFeatures:
        """The features of some edges, which are renumbered from 0."""
        first, place = take_rows(self.first, np.asarray(edges, np.int64))
        return EdgeFeatures(self.names, first, self.feature[place], self.value[place])


class ForestFeatures(Replay):
    """Features of the rules, edges and derivations of the forest of one sentence.

    kept  bool [3, W]  words of bigrams across rules, as ``kept_words`` says; None without these features
    """

    def __init__(
        self,
        scorer: RuleScorer,
        table: RuleTable | Grammar,
        lm_word: Ids,
        *,
        cdec_names: bool = False,
        kept: Flags | None = None,
    ) -> None:
        super().__init__(scorer, table, lm_word, cdec_names=cdec_names)
        self.kept = kept
        self._words: tuple[Hypergraph, Ids] | None = None

    def with_cdec_names(self) -> ForestFeatures:
        return ForestFeatures(self.scorer, self.table, self.lm_word, cdec_names=True, kept=self.kept)

    def of_derivation(self, derivation: Derivation) -> Mapping[str, float]:
        """The nonzero values by name."""
        forest, edges = derivation.forest, derivation.all_edges
        rules = forest.edge_rule[edges]
        total: dict[str, float] = {}
        parts = self.rules(rules[rules >= 0].tolist())
        if self.scorer.features.edge_features:
            parts = [*parts, *self.edges(_batch(forest, edges[rules >= 0], self.scorer.symbols))]
        if len(forest.gain_row):
            parts = [*parts, *self._mappings(self._gap_rows(forest, edges, self._index))]
        if self.kept is not None:
            parts = [*parts, *self._mappings(self._bigram_rows(forest, edges, self._index, self.kept))]
        for part in parts:
            for name, value in part.items():
                total[name] = total.get(name, 0.0) + value
        for name, value in zip(forest.lm_names, derivation.lm_scores.tolist(), strict=True):
            total[name] = total.get(name, 0.0) + value
        return {name: value for name, value in total.items() if value != 0.0}

    def of_edges(self, forest: Forest, edges: Ids) -> EdgeFeatures:
        """All features of some edges, apart from the model."""
        index = FeatureIndex()
        rules = forest.edge_rule[edges]
        used, place = np.unique(rules[rules >= 0], return_inverse=True)
        of_rule = self.rows(used.astype(np.int64), index)
        row = np.full(len(edges), len(used), np.int32)  # an empty one, appended
        row[rules >= 0] = place
        of_rule = pick_feature_rows(with_empty_row(of_rule), row)
        rows = merge_feature_rows([of_rule, self.edge_rows(forest, edges, index)])
        names = Names(self.scorer.symbols)
        return EdgeFeatures(tuple(map(names.name, index.all_keys())), *rows)

    def rows(self, rules: Ints, index: FeatureIndex) -> FeatureRows:
        """All features of some rules, numbered by ``index``."""
        return self.scorer.rows(self.table, self.lm_word, rules, index)

    def distinct_rows(self, rules: Ints, index: FeatureIndex) -> list[FeatureRows]:
        """As ``rows``, in parts, none of whose features are in another; ids in any order."""
        return self.scorer.distinct_rows(self.table, self.lm_word, rules, index)

    def edge_rows(self, forest: Forest, edges: Ids, index: FeatureIndex) -> FeatureRows:
        """Features of edges beyond those of their rules: language models, and of rule applications."""
        scorer, names = self.scorer, self.scorer.symbols.names
        models = [index.intern((NAME, names.intern(name.encode()), 0)) for name in forest.lm_names]
        scores = forest.edge_lm[edges].astype(np.float64)
        first = np.arange(len(edges) + 1, dtype=np.int64) * len(models)
        rows = FeatureRows(first, np.tile(np.array(models, np.int32), len(edges)), scores.reshape(-1))
        if self.kept is not None:
            rows = merge_feature_rows([rows, self._bigram_rows(forest, edges, index, self.kept)])
        if len(forest.gain_row):
            rows = merge_feature_rows([rows, self._gap_rows(forest, edges, index)])
        features = scorer.features.edge_features
        if not features:
            return rows
        ruled = np.flatnonzero(forest.edge_rule[edges] >= 0)
        batch = _batch(forest, edges[ruled], scorer.symbols)
        found = edge_rows(batch, forest.rules, features, index, names)
        lengths = np.zeros(len(edges), np.int64)
        lengths[ruled] = np.diff(found.first)
        return merge_feature_rows([rows, FeatureRows(offsets_of(lengths), found.id, found.value)])

    def _gap_rows(self, forest: Forest, edges: Ids, index: FeatureIndex) -> FeatureRows:
        """Changes of the features of orientation models where it is known how gaps are filled."""
        from hiero.reordering.feature import gap_rows

        tail, rule = forest.graph.tail[edges], forest.edge_rule[edges]
        gains = forest.gain_row, forest.gain
        rows = gap_rows(self.scorer.features.edge_features, tail, rule, forest.rules, *gains)
        return number_feature_rows(rows, index, self.scorer.symbols.names)

    def _bigram_rows(self, forest: Forest, edges: Ids, index: FeatureIndex, kept: Flags) -> FeatureRows:
        """Bigrams at the edges of the gaps of the rules of some edges."""
        graph, edge_rule, rules = forest.graph, forest.edge_rule, forest.rules
        if self._words is None or self._words[0] is not graph:
            word = np.empty((forest.num_nodes, 2), np.int32)
            edge_words_kernel(graph, edge_rule, rules, kept, word)
            self._words = graph, read_only(word)
        first, key = np.empty(len(edges) + 1, np.int64), np.empty((2 * MAX_GAPS * len(edges), 3), np.int32)
        chosen = read_only(graph.tail[edges]), read_only(edge_rule[edges])
        edge_bigrams_kernel(*chosen, rules, kept, self._words[1], first, key)
        return rows_of_keys((read_only(first), read_only(key), read_only(NO_IDS)), index)


def kept_words(lm: Ngrams, lm_word: Ids, shared: Flags | None) -> Flags:
    """Words that bigrams across rules may have: at all, as the first word of a gap, as its last one.

    lm_word  of ``LanguageModels.word_ids``
    shared   words to leave out, whose bigrams may share their names with others

    Returns bool [3, W].
    """
    ids = lm_word[0]
    kept = np.zeros((3, len(ids)), np.bool_)
    kept[KNOWN] = ids > 0
    if shared is not None:
        kept[KNOWN, : len(shared)] &= ~shared[: len(ids)]
    unigram = lm.unigram[ids]
    kept[FIRST] = kept[KNOWN] & ~np.signbit(unigram[:, 0])
    kept[LAST] = kept[KNOWN] & ~((unigram[:, 1] == 0) & np.signbit(unigram[:, 1]))
    return read_only(kept)


def new_bigrams(scorer: RuleScorer, lm_word: Ids, lm: Ngrams, kept: Flags) -> Bigrams:
    """The weights of bigrams for one search."""
    known = np.flatnonzero(kept[KNOWN])
    word = np.full(int(lm.first_word[1]), -1, np.int32)
    word[lm_word[0, known]] = known
    return Bigrams(read_only(word), *scorer.template_weights, new_memo(), read_only(NO_IDS))


def _batch(forest: Forest, edges: Ids, symbols: Symbols) -> EdgeBatch:
    """Edges of a forest as rule applications."""
    head = np.searchsorted(forest.graph.first_edge, edges, side="right") - 1
    tail = forest.graph.tail[edges]
    split = np.stack([forest.node_start[tail], forest.node_end[tail]], axis=2)
    split[tail < 0] = -1
    span = forest.node_start[head], forest.node_end[head]
    src = symbols.words.intern_all(word.encode() for word in forest.source)
    return EdgeBatch(forest.edge_rule[edges], *span, np.ascontiguousarray(split.reshape(-1, 4)), src)


def edge_values(forest: Forest, keys: Sequence[Key]) -> Floats32:
    """Return the values of D features on every edge of a decoded forest, float32 [E, D].

    The value of a derivation is the sum over its edges.
    """
    index = FeatureIndex()  # a temporary one, since other features are not needed
    columns = index.intern_all(keys)
    ruled = np.flatnonzero(forest.edge_rule >= 0)
    used, row_of_rule = np.unique(forest.edge_rule[ruled], return_inverse=True)
    rules = _columns(forest.features.rows(used.astype(np.int64), index), columns)
    every = np.arange(forest.num_edges, dtype=np.int32)
    values = _columns(forest.features.edge_rows(forest, every, index), columns)
    values[ruled] += rules[row_of_rule]
    return values


def _columns(rows: FeatureRows, columns: Ids) -> Floats32:
    """Return rows as a dense matrix of some features."""
    table = np.zeros((len(rows.first) - 1, len(columns)), np.float32)
    place = np.full(1 + max(int(columns.max(initial=-1)), int(rows.id.max(initial=-1))), -1)
    place[columns] = np.arange(len(columns))
    row, column = row_of_entry(rows.first), place[rows.id]
    np.add.at(table, (row[column >= 0], column[column >= 0]), rows.value[column >= 0])
    return table
