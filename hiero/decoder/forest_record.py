"""The content of a forest file of either format, and its checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Floats, Floats32, Ids, Ints, offsets_of
from hiero.core.symbol_kernels import gap, gap_index, gap_label, is_gap
from hiero.decoder.hypergraph import Hypergraph, heads, validate
from hiero.grammar.rules import Rules, rule_lists, rules_from_lists

if TYPE_CHECKING:
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

    def of(self, edges: Ids) -> EdgeFeatures:
        """The features of some edges, which are renumbered from 0."""
        return EdgeFeatures.from_rows(self.row(edge) for edge in edges.tolist())


@dataclass(frozen=True)
class StoredForest:
    """The content of a file; arrays as in ``Forest``, words and labels numbered within it."""

    graph: Hypergraph
    edge_score: Floats
    edge_rule: Ids
    edge_lm: Floats32
    node_label: Ids
    node_start: Ids
    node_end: Ids
    rules: Rules
    words: Sequence[str]
    labels: Sequence[str]
    source: Sequence[str]
    lm_names: Sequence[str]
    edge_features: EdgeFeatures | None


def stored_forest(forest: Forest) -> StoredForest:
    """Keep the rules in use, and number words and labels from 0 in the order of their first use."""
    words: dict[int, int] = {}
    labels: dict[int, int] = {}

    def label(old: int) -> int:
        return labels.setdefault(old, len(labels))

    def symbol(old: int) -> int:
        if is_gap(old):
            return int(gap(label(gap_label(old)), gap_index(old)))
        return words.setdefault(old, len(words))

    used, place = np.unique(forest.edge_rule, return_inverse=True)
    num_bare = int(np.count_nonzero(used < 0))
    lhs = [label(old) for old in forest.rules.lhs[used[num_bare:]].tolist()]
    lists = [rule_lists(forest.rules, rule) for rule in used[num_bare:].tolist()]
    src = [[symbol(old) for old in side] for side, _, _ in lists]
    tgt = [[symbol(old) for old in side] for _, side, _ in lists]
    rules = rules_from_lists(lhs, src, tgt, [links for _, _, links in lists])
    node_label = np.array([label(old) for old in forest.node_label.tolist()], np.int32)
    edges = forest.edge_score, (place.reshape(-1) - num_bare).astype(np.int32), forest.edge_lm
    nodes = node_label, forest.node_start, forest.node_end
    texts = list(map(forest.words.text, words)), list(map(forest.labels.text, labels))
    sentence = forest.source, forest.lm_names
    return StoredForest(forest.graph, *edges, *nodes, rules, *texts, *sentence, forest.edge_features)


def check(forest: StoredForest) -> None:
    """Raise ValueError unless all parts are consistent; kernels read them unchecked."""
    validate(forest.graph)
    num_nodes, num_edges = len(forest.graph.first_edge) - 1, len(forest.graph.tail)
    _check_shapes(forest, num_nodes, num_edges)
    if not (forest.edge_score < np.inf).all():
        raise ValueError("a score that is not a number or infinite")
    if num_nodes and not ((forest.node_start >= 0) & (forest.node_end >= forest.node_start)).all():
        raise ValueError("a node that ends before it starts")
    _check_ids("label", forest.node_label, len(forest.labels))
    _check_ids("label", forest.rules.lhs, len(forest.labels))
    _check_ids("rule", forest.edge_rule, len(forest.rules.lhs), lowest=-1)
    arity = [_check_rule(forest, rule) for rule in range(len(forest.rules.lhs))]
    arity.append(1)  # of rule -1
    tails = (forest.graph.tail >= 0).sum(axis=1)
    wrong = np.flatnonzero(np.array(arity)[forest.edge_rule] != tails)
    if len(wrong):
        edge = int(wrong[0])
        head, rule = heads(forest.graph)[edge], forest.edge_rule[edge]
        raise ValueError(f"edge {edge} of node {head} with {tails[edge]} tails for {arity[rule]} gaps")


def _check_shapes(forest: StoredForest, num_nodes: int, num_edges: int) -> None:
    expected: list[tuple[str, npt.NDArray[Any], str, tuple[int, ...]]] = [
        ("edge_score", forest.edge_score, "float64", (num_edges,)),
        ("edge_rule", forest.edge_rule, "int32", (num_edges,)),
        ("edge_lm", forest.edge_lm, "float32", (num_edges, len(forest.lm_names))),
        ("node_label", forest.node_label, "int32", (num_nodes,)),
        ("node_start", forest.node_start, "int32", (num_nodes,)),
        ("node_end", forest.node_end, "int32", (num_nodes,)),
    ]
    rules, num_rules = forest.rules, len(forest.rules.lhs)
    parts: list[tuple[str, npt.NDArray[Any], int, npt.NDArray[Any], str, tuple[int, ...]]] = [
        ("rule_src", rules.first_src, num_rules, rules.src, "int32", ()),
        ("rule_tgt", rules.first_tgt, num_rules, rules.tgt, "int32", ()),
        ("rule_link", rules.first_link, num_rules, rules.link, "int16", (2,)),
    ]
    if forest.edge_features:
        features = forest.edge_features
        parts.append(("edge_feature", features.first, num_edges, features.feature, "int32", ()))
        expected.append(("edge_value", features.value, "float64", features.feature.shape))
        _check_ids("feature", features.feature, len(features.names))
    for name, first, count, values, dtype, width in parts:
        expected.append((name, values, dtype, (len(values), *width)))
        expected.append((f"offsets of {name}", first, "int64", (count + 1,)))
    for name, array, dtype, shape in expected:
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(f"{name} as {array.dtype} {array.shape} instead of {dtype} {shape}")
    for name, first, _, values, _, _ in parts:
        if first[0] != 0 or first[-1] != len(values) or (np.diff(first) < 0).any():
            raise ValueError(f"offsets of {name} that do not ascend from 0 to {len(values)}")


def _check_ids(what: str, ids: Ids, count: int, lowest: int = 0) -> None:
    wrong = (ids < lowest) | (ids >= count)
    if wrong.any():
        raise ValueError(f"{what} {ids[wrong][0]} of {count}")


def _check_rule(forest: StoredForest, rule: int) -> int:
    """The number of gaps of a rule; ValueError unless both sides have the same."""
    src, tgt, links = rule_lists(forest.rules, rule)
    for symbol in src + tgt:
        if is_gap(symbol):
            _check_ids("label", np.array([gap_label(symbol)], np.int32), len(forest.labels))
        else:
            _check_ids("word", np.array([symbol], np.int32), len(forest.words))
    gaps = [gap_index(symbol) for symbol in src if is_gap(symbol)]
    if gaps != [1, 2][: len(gaps)] or sorted(gap_index(symbol) for symbol in tgt if is_gap(symbol)) != gaps:
        raise ValueError(f"rule {rule} with gaps other than 1, or 1 and 2 in this order, once on each side")
    for i, j in links:
        if not (0 <= i < len(src) and 0 <= j < len(tgt)):
            raise ValueError(f"rule {rule} with a link {i}-{j} outside its sides")
    return len(gaps)
