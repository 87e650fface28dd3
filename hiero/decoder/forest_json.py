# mypy: allow-untyped-calls
"""Forests as JSON; ``hiero.formats.forest`` describes the format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np

from hiero.core.errors import FormatError, show
from hiero.core.symbols import gap, gap_index, gap_label, is_gap
from hiero.core.text import read_chunks
from hiero.decoder.forest_record import EdgeFeatures, Ints, Offsets, StoredForest, rules_of
from hiero.decoder.hypergraph import Hypergraph, heads

FORMAT = "hiero forest 1"
# The message of msgspec for a value of the wrong type.
WRONG_KIND = re.compile(r"Expected (?P<expected>.*), got (?P<found>.*) - at (?P<place>.*)")
HINT = "was it written by `hiero decode --forest`?"


class _Rule(msgspec.Struct):
    lhs: str
    src: list[str | int]
    tgt: list[str | int]
    gaps: list[str] = []
    links: list[tuple[int, int]] = []


class _Node(msgspec.Struct):
    label: str
    span: tuple[int, int]


class _Edge(msgspec.Struct, omit_defaults=True):
    head: int
    tails: list[int]
    rule: int | None
    score: float | None
    lm: list[float] = []
    features: dict[str, float] = {}


class _Forest(msgspec.Struct):
    format: str
    source: list[str]
    language_models: list[str]
    rules: list[_Rule]
    nodes: list[_Node]
    edges: list[_Edge]


def _nine(number: float) -> float:
    """The nearest number of nine significant digits."""
    return float(f"{number:.9g}")


def to_json(forest: StoredForest) -> bytes:
    """JSON with a line for each rule, node and edge."""
    encode = msgspec.json.encode

    def lines(items: Iterable[msgspec.Struct]) -> bytes:
        return b"[\n" + b",\n".join(map(encode, items)) + b"]"

    return b"".join(
        [
            b'{"format":' + encode(FORMAT),
            b',\n"source":' + encode(list(forest.source)),
            b',\n"language_models":' + encode(list(forest.lm_names)),
            b',\n"rules":' + lines(_json_rules(forest)),
            b',\n"nodes":' + lines(_json_nodes(forest)),
            b',\n"edges":' + lines(_json_edges(forest)),
            b"}\n",
        ]
    )


def _json_rules(forest: StoredForest) -> Iterable[_Rule]:
    rules, labels = forest.rules, forest.labels

    def side(first: Offsets, symbols: Ints, rule: int) -> list[int]:
        part: list[int] = symbols[first[rule] : first[rule + 1]].tolist()
        return part

    def items(symbols: list[int]) -> list[str | int]:
        return [gap_index(symbol) if is_gap(symbol) else forest.words[symbol] for symbol in symbols]

    for rule, lhs in enumerate(rules.lhs.tolist()):
        src, tgt = side(rules.first_src, rules.src, rule), side(rules.first_tgt, rules.tgt, rule)
        gaps = [labels[gap_label(symbol)] for symbol in src if is_gap(symbol)]
        links = rules.link[rules.first_link[rule] : rules.first_link[rule + 1]].tolist()
        yield _Rule(labels[lhs], items(src), items(tgt), gaps, links)


def _json_nodes(forest: StoredForest) -> Iterable[_Node]:
    columns = (forest.node_label.tolist(), forest.node_start.tolist(), forest.node_end.tolist())
    for label, start, end in zip(*columns, strict=True):
        yield _Node(forest.labels[label], (start, end))


def _json_edges(forest: StoredForest) -> Iterable[_Edge]:
    features = forest.edge_features
    columns = (
        heads(forest.graph).tolist(),
        forest.graph.tail.tolist(),
        forest.edge_rule.tolist(),
        forest.edge_score.tolist(),
        forest.edge_lm.tolist(),
    )
    for edge, (head, tails, rule, score, lm) in enumerate(zip(*columns, strict=True)):
        yield _Edge(
            head,
            [tail for tail in tails if tail >= 0],
            rule if rule >= 0 else None,
            _nine(score) if score > -np.inf else None,
            [_nine(value) for value in lm],
            {name: _nine(value) for name, value in features.row(edge).items()} if features else {},
        )


def read_json(path: str | Path) -> StoredForest:
    """Read a file; the caller checks that its parts are consistent."""
    text = b"".join(chunk.data for chunk in read_chunks(path, what="a forest"))
    try:
        forest = msgspec.json.decode(text, type=_Forest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found, expected = str(error), "a forest as JSON"
        kinds = WRONG_KIND.fullmatch(found)
        if kinds:
            expected, found = kinds["expected"], f"{kinds['found']} at {kinds['place']}"
        raise FormatError(path, 0, found=found, expected=expected, hint=HINT) from None
    if forest.format != FORMAT:
        raise FormatError(path, 0, found=f"format {show(forest.format)}", expected=repr(FORMAT), hint=HINT)
    try:
        return _from_json(forest)
    except (ValueError, OverflowError) as error:
        raise FormatError(path, 0, found=str(error), expected="a forest", hint=HINT) from None


def _from_json(forest: _Forest) -> StoredForest:
    words: dict[str, int] = {}
    labels: dict[str, int] = {}

    def symbols(rule: _Rule, side: list[str | int]) -> list[int]:
        codes = []
        for item in side:
            if isinstance(item, str):
                codes.append(words.setdefault(item, len(words)))
            elif 1 <= item <= len(rule.gaps):
                codes.append(gap(labels.setdefault(rule.gaps[item - 1], len(labels)), item))
            else:
                raise ValueError(f"gap {item} of a rule with {len(rule.gaps)} gaps")
        return codes

    rules = rules_of(
        [labels.setdefault(rule.lhs, len(labels)) for rule in forest.rules],
        [symbols(rule, rule.src) for rule in forest.rules],
        [symbols(rule, rule.tgt) for rule in forest.rules],
        [[list(link) for link in rule.links] for rule in forest.rules],
    )
    nodes, edges = forest.nodes, forest.edges
    head = [edge.head for edge in edges]
    if head != sorted(head) or (head and not 0 <= head[0] <= head[-1] < len(nodes)):
        raise ValueError("heads of edges that do not ascend from node to node")
    first_edge = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.bincount(np.array(head, np.int64), minlength=len(nodes)), out=first_edge[1:])
    for number, edge in enumerate(edges):
        if len(edge.tails) > 2 or len(edge.lm) != len(forest.language_models):
            raise ValueError(
                f"edge {number} with {len(edge.tails)} tails and {len(edge.lm)} language model scores"
            )
    tails = [[*edge.tails, -1, -1][:2] for edge in edges]
    lm = np.array([edge.lm for edge in edges], np.float32)
    has_features = any(edge.features for edge in edges)
    return StoredForest(
        Hypergraph(first_edge, np.array(tails, np.int32).reshape(-1, 2)),
        np.array([-np.inf if edge.score is None else edge.score for edge in edges], np.float64),
        np.array([-1 if edge.rule is None else edge.rule for edge in edges], np.int32),
        lm.reshape(len(edges), len(forest.language_models)),
        np.array([labels.setdefault(node.label, len(labels)) for node in nodes], np.int32),
        np.array([node.span[0] for node in nodes], np.int32),
        np.array([node.span[1] for node in nodes], np.int32),
        rules,
        list(words),
        list(labels),
        forest.source,
        forest.language_models,
        EdgeFeatures.from_rows(edge.features for edge in edges) if has_features else None,
    )
