"""Forest files: one sentence a file, as JSON (``.json``, ``.json.gz``) or as numpy arrays (``.npz``).

Both are self-contained: words and categories are strings, and the rules that the forest uses are included.
Nodes are in topological order with the goal last, edges in the order of their heads; both are referred to by
index, counting from 0. A JSON file, abridged::

    {"format": "hiero forest 1",
     "source": ["das", "haus"],
     "language_models": ["LanguageModel"],
     "rules": [
       {"lhs": "X", "src": ["das", 1], "tgt": ["the", 1], "gaps": ["X"], "links": [[0, 0]]}, ...],
     "nodes": [
       {"label": "X", "span": [1, 2]}, {"label": "X", "span": [0, 2]}, {"label": "Goal", "span": [0, 2]}],
     "edges": [
       {"head": 0, "tails": [], "rule": 1, "score": -0.75, "lm": [-1.5], "features": {"PhraseModel_0": 0.5}},
       {"head": 1, "tails": [0], "rule": 0, "score": -0.25, "lm": [-0.5], "features": {"Glue": 1.0}},
       {"head": 2, "tails": [1], "rule": null, "score": -1.0, "lm": [-2.0]}]}

rules     In ``src`` and ``tgt`` a string is a word and the integer k is the k-th gap, whose category is
          ``gaps[k - 1]``. ``links`` is the word alignment: positions in ``src`` and ``tgt``, gaps counted.
          A rule with more than two gaps is divided into rules with two. The topmost has ``whole``: the
          src, tgt, gaps and links of the rule as it was read; the others have ``"part": true``, and names
          like "part 1" for their categories.
nodes     ``span``: the first source word and the one after the last.
lattice   If the input was one: the nodes that each arc, a word of ``source``, leads from and to, and the
          values of features of arcs; spans are nodes of the lattice.
edges     Entry k of ``tails`` fills gap k + 1 of the rule. The rule ``null`` stands for an edge that passes
          its only tail on unchanged. The score of a derivation is the sum of those of its edges; ``null`` is
          minus infinity, an edge that no derivation may use. ``lm`` is what each language model adds (log10);
          ``features``, if present, all feature values of the edge, those of language models included.
          Numbers have nine significant digits.

An ``.npz`` file has the same as exact arrays: first_edge, tail, edge_score, edge_rule (-1 for ``null``),
edge_lm, node_label, node_start, node_end as in ``hiero.decoder.forest.Forest``; rule_lhs, rule_first_src,
rule_src, rule_first_tgt, rule_tgt, rule_first_link, rule_link as in ``hiero.grammar.rules.Rules`` (symbols
as in ``hiero.core.symbols``); if some rules were divided, the same with whole_ in place of rule_: the rules
as they were read, and parts without symbols; edge_first_feature, edge_feature, edge_value if the edges have
features; and lists of strings (words, labels, source, lm_names, feature_names), each as UTF-8 bytes end to
end in NAME and their offsets in first_NAME.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Floats, Floats32, Ids, are_offsets, is_finite, offsets_by_row
from hiero.core.directories import ArrayKind, check_kinds, read_npz
from hiero.core.errors import FormatError, HieroError, UsageError, show
from hiero.core.lattice import Lattice
from hiero.core.records import MAX_GAPS, MOST_GAPS
from hiero.core.symbol_kernels import gap, gap_index, gap_label, is_gap
from hiero.core.symbols import pack
from hiero.core.text import open_output, read_chunks
from hiero.decoder.forest_features import EdgeFeatures
from hiero.decoder.hypergraph import Hypergraph, heads, validate
from hiero.grammar.rules import Rules, featureless_rules, rule_lists, rules_from_lists

if TYPE_CHECKING:
    from hiero.decoder.forest import Forest

FORMAT = "hiero forest 1"
MOST_JSON = 256 << 20  # bytes; reading it takes several times as much memory
# The message of msgspec for a value of the wrong type.
WRONG_KIND = re.compile(r"Expected (?P<expected>.*), got (?P<found>.*) - at (?P<place>.*)")
HINT = "was it written by `hiero decode --forest`?"


@dataclass(frozen=True)
class StoredForest:
    """The content of a forest file; arrays as in ``Forest``, words and labels numbered within it."""

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
    lattice: Lattice | None = None
    whole: Rules | None = None


def stored_forest(forest: Forest) -> StoredForest:
    """A forest as its file has it: features of all edges, rules in use, words numbered by first use."""
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

    def stored(rules: Rules) -> Rules:
        lhs = [label(old) for old in rules.lhs[used[num_bare:]].tolist()]
        lists = [rule_lists(rules, rule) for rule in used[num_bare:].tolist()]
        src = [[symbol(old) for old in side] for side, _, _ in lists]
        tgt = [[symbol(old) for old in side] for _, side, _ in lists]
        return rules_from_lists(lhs, src, tgt, [links for _, _, links in lists])

    rules, whole = stored(forest.rules), stored(forest.whole) if forest.has_parts else None
    node_label = np.array([label(old) for old in forest.node_label.tolist()], np.int32)
    edges = forest.edge_score, (place.reshape(-1) - num_bare).astype(np.int32), forest.edge_lm
    nodes = node_label, forest.node_start, forest.node_end
    texts = list(map(forest.words.text, words)), list(map(forest.labels.text, labels))
    sentence = forest.source, forest.lm_names
    features = forest.features_of_edges(np.arange(forest.num_edges, dtype=np.int32))
    return StoredForest(
        forest.graph, *edges, *nodes, rules, *texts, *sentence, features, forest.lattice, whole
    )


class _Sides(msgspec.Struct):
    src: list[str | int]
    tgt: list[str | int]
    gaps: list[str] = []
    links: list[tuple[int, int]] = []


class _Rule(msgspec.Struct, omit_defaults=True):
    lhs: str
    src: list[str | int]
    tgt: list[str | int]
    # Written also if they are empty.
    gaps: list[str] | None = None
    links: list[tuple[int, int]] | None = None
    whole: _Sides | None = None
    part: bool = False

    @property
    def sides(self) -> _Sides:
        return _Sides(self.src, self.tgt, self.gaps or [], self.links or [])


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


class _Lattice(msgspec.Struct):
    arcs: list[tuple[int, int]]
    features: dict[str, list[float]] = {}


class _Forest(msgspec.Struct):
    format: str
    source: list[str]
    language_models: list[str]
    rules: list[_Rule]
    nodes: list[_Node]
    edges: list[_Edge]
    lattice: _Lattice | None = None


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
            b"" if forest.lattice is None else b',\n"lattice":' + encode(_json_lattice(forest.lattice)),
            b"}\n",
        ]
    )


def _json_rules(forest: StoredForest) -> Iterable[_Rule]:
    labels = forest.labels

    def items(symbols: list[int]) -> list[str | int]:
        return [gap_index(symbol) if is_gap(symbol) else forest.words[symbol] for symbol in symbols]

    def sides(rules: Rules, rule: int) -> _Sides:
        src, tgt, links = rule_lists(rules, rule)
        gaps = [labels[gap_label(symbol)] for symbol in src if is_gap(symbol)]
        return _Sides(items(src), items(tgt), gaps, [(i, j) for i, j in links])

    for rule, lhs in enumerate(forest.rules.lhs.tolist()):
        own = sides(forest.rules, rule)
        stored = _Rule(labels[lhs], own.src, own.tgt, own.gaps, own.links)
        if forest.whole is not None:
            whole = sides(forest.whole, rule)
            stored.part = not whole.src
            stored.whole = whole if len(whole.gaps) > len(own.gaps) else None
        yield stored


def _json_nodes(forest: StoredForest) -> Iterable[_Node]:
    columns = (forest.node_label.tolist(), forest.node_start.tolist(), forest.node_end.tolist())
    for label, start, end in zip(*columns, strict=True):
        yield _Node(forest.labels[label], (start, end))


def _json_edges(forest: StoredForest) -> Iterable[_Edge]:
    features = forest.edge_features
    graph, scores = forest.graph, (forest.edge_score.tolist(), forest.edge_lm.tolist())
    columns = heads(graph).tolist(), graph.tail.tolist(), forest.edge_rule.tolist(), *scores
    for edge, (head, tails, rule, score, lm) in enumerate(zip(*columns, strict=True)):
        yield _Edge(
            head,
            [tail for tail in tails if tail >= 0],
            rule if rule >= 0 else None,
            _nine(score) if score > -np.inf else None,
            [_nine(value) for value in lm],
            {name: _nine(value) for name, value in features.row(edge).items()} if features else {},
        )


def _json_lattice(lattice: Lattice) -> _Lattice:
    columns = zip(lattice.names, lattice.values.T.tolist(), strict=True)
    return _Lattice([(arc.start, arc.end) for arc in lattice.arcs], dict(columns))


def _lattice_of(
    nodes: list[list[int]], words: Sequence[str], features: Mapping[str, Sequence[float]]
) -> Lattice:
    """A lattice from the parts of a file; ValueError if they do not fit together."""
    columns = features.values()
    if any(len(column) != len(words) for column in [nodes, *columns]):
        raise ValueError(f"a lattice of other than {len(words)} arcs")
    rows = zip(*columns, strict=True) if features else itertools.repeat(())
    try:
        lattice = Lattice.make(
            (start, end, word, dict(zip(features, row, strict=True)))
            for (start, end), word, row in zip(nodes, words, rows, strict=False)
        )
    except HieroError as error:
        raise ValueError(str(error)) from None
    if lattice.words != tuple(words):
        raise ValueError("arcs that are not in the order of the nodes that they leave")
    return lattice


def _read_json(path: str | Path) -> StoredForest:
    """Read a file; the caller checks that its parts are consistent."""
    text = bytearray()
    for chunk in read_chunks(path, what="a forest"):
        text += chunk.data
        if len(text) > MOST_JSON:
            found, hint = f"more than {MOST_JSON >> 20} MB of JSON", "write large forests as .npz"
            raise FormatError(path, 0, found=found, expected="a forest", hint=hint)
    try:
        forest = msgspec.json.decode(text, type=_Forest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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

    def symbols(rule: _Sides, side: list[str | int]) -> list[int]:
        codes = []
        for item in side:
            if isinstance(item, str):
                codes.append(words.setdefault(item, len(words)))
            elif 1 <= item <= len(rule.gaps):
                codes.append(gap(labels.setdefault(rule.gaps[item - 1], len(labels)), item))
            else:
                raise ValueError(f"gap {item} of a rule with {len(rule.gaps)} gaps")
        return codes

    def read(rules: list[_Sides]) -> Rules:
        return rules_from_lists(
            [labels.setdefault(rule.lhs, len(labels)) for rule in forest.rules],
            [symbols(rule, rule.src) for rule in rules],
            [symbols(rule, rule.tgt) for rule in rules],
            [[list(link) for link in rule.links] for rule in rules],
        )

    rules, whole = read([rule.sides for rule in forest.rules]), None
    if any(rule.part or rule.whole for rule in forest.rules):
        whole = read([_Sides([], []) if rule.part else rule.whole or rule.sides for rule in forest.rules])
    nodes, edges = forest.nodes, forest.edges
    head = [edge.head for edge in edges]
    if head != sorted(head) or (head and not 0 <= head[0] <= head[-1] < len(nodes)):
        raise ValueError("heads of edges that do not ascend from node to node")
    first_edge = offsets_by_row(np.array(head, np.int64), len(nodes))
    for number, edge in enumerate(edges):
        if len(edge.tails) > 2 or len(edge.lm) != len(forest.language_models):
            raise ValueError(
                f"edge {number} with {len(edge.tails)} tails and {len(edge.lm)} language model scores"
            )
    tails = [[*edge.tails, -1, -1][:2] for edge in edges]
    with np.errstate(over="ignore"):
        lm = np.array([edge.lm for edge in edges], np.float32)
    if not is_finite(lm):
        raise ValueError("a language model score that is not finite")
    has_features = any(edge.features for edge in edges)
    stored, lattice = forest.lattice, None
    if stored is not None:
        lattice = _lattice_of([list(arc) for arc in stored.arcs], forest.source, stored.features)
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
        lattice,
        whole,
    )


RULE_ARRAYS = ("lhs", "first_src", "src", "first_tgt", "tgt", "first_link", "link")
EDGE_AND_NODE_ARRAYS = ("edge_score", "edge_rule", "edge_lm", "node_label", "node_start", "node_end")
WHOLE_ARRAYS: dict[str, ArrayKind] = {
    f"whole_{name}": (np.int16, 2) if name == "link" else (np.int64 if "first" in name else np.int32, 1)
    for name in RULE_ARRAYS
}
TEXTS = ("words", "labels", "source", "lm_names")


def _kinds(texts: Sequence[str], **scalars: str) -> dict[str, ArrayKind]:
    """The kinds of arrays: lists of strings, and arrays of one dimension by their scalars."""
    found: dict[str, ArrayKind] = {name: (np.dtype(scalar).type, 1) for name, scalar in scalars.items()}
    for name in texts:
        found |= {name: (np.uint8, 1), f"first_{name}": (np.int64, 1)}
    return found


FEATURE_ARRAYS = _kinds(["feature_names"], edge_first_feature="i8", edge_feature="i4", edge_value="f8")
LATTICE_ARRAYS: dict[str, ArrayKind] = {
    **_kinds(["lattice_names"]),
    "lattice_arc": (np.int32, 2),
    "lattice_value": (np.float64, 2),
}
FOREST_ARRAYS: dict[str, ArrayKind] = {
    **_kinds(TEXTS, first_edge="i8", edge_score="f8", edge_rule="i4"),
    **_kinds([], node_label="i4", node_start="i4", node_end="i4", rule_lhs="i4", rule_first_src="i8"),
    **_kinds([], rule_src="i4", rule_first_tgt="i8", rule_tgt="i4", rule_first_link="i8"),
    "tail": (np.int32, 2),
    "edge_lm": (np.float32, 2),
    "rule_link": (np.int16, 2),
}


def write_forest(forest: StoredForest, path: str | Path) -> None:
    """Write a complete file or none; the suffix of its name selects the format."""
    form = _form(path)
    with open_output(path) as stream:
        if form == "json":
            stream.write(to_json(forest))
        else:
            # In memory first: writing an archive needs seeking, which a pipe does not allow.
            packed = io.BytesIO()
            # In C order, which is the only one that is read.
            arrays: dict[str, Any] = {name: np.asarray(a, order="C") for name, a in _arrays(forest).items()}
            np.savez_compressed(packed, **arrays)
            stream.write(packed.getvalue())


def read_forest(path: str | Path) -> StoredForest:
    """Read a file of either format and check that it is a forest."""
    forest = _read_json(path) if _form(path) == "json" else _read_npz(path)
    try:
        _check(forest)
    except ValueError as error:
        raise FormatError(path, 0, found=str(error), expected="a forest", hint=HINT) from None
    return forest


def _form(path: str | Path) -> str:
    name = str(path)
    if name.endswith((".json", ".json.gz")):
        return "json"
    if name.endswith(".npz"):
        return "npz"
    raise UsageError(f"{name}: a forest file is named .json, .json.gz or .npz")


def _arrays(forest: StoredForest) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {"first_edge": forest.graph.first_edge, "tail": forest.graph.tail}
    for name in EDGE_AND_NODE_ARRAYS:
        arrays[name] = getattr(forest, name)
    for name in RULE_ARRAYS:
        arrays[f"rule_{name}"] = getattr(forest.rules, name)
        if forest.whole is not None:
            arrays[f"whole_{name}"] = getattr(forest.whole, name)
    texts: dict[str, Sequence[str]] = {name: getattr(forest, name) for name in TEXTS}
    features = forest.edge_features
    if features is not None:
        arrays["edge_first_feature"] = features.first
        arrays["edge_feature"], arrays["edge_value"] = features.feature, features.value
        texts["feature_names"] = features.names
    if forest.lattice is not None:
        nodes = [(arc.start, arc.end) for arc in forest.lattice.arcs]
        arrays["lattice_arc"] = np.array(nodes, np.int32).reshape(-1, 2)
        arrays["lattice_value"], texts["lattice_names"] = forest.lattice.values, forest.lattice.names
    for name, entries in texts.items():
        arrays[name], arrays[f"first_{name}"] = pack([entry.encode() for entry in entries])
    return arrays


def _read_npz(path: str | Path) -> StoredForest:
    """Read a file; the caller checks that its parts are consistent."""
    arrays = read_npz(path, "a forest", FOREST_ARRAYS)
    features, lattice, whole = None, None, None
    try:
        if "whole_lhs" in arrays:
            check_kinds(path, "a forest", arrays, WHOLE_ARRAYS)
            whole = featureless_rules(*(arrays[name] for name in WHOLE_ARRAYS))
        if "feature_names" in arrays:
            check_kinds(path, "a forest", arrays, FEATURE_ARRAYS)
            rows = arrays["edge_first_feature"], arrays["edge_feature"], arrays["edge_value"]
            features = EdgeFeatures(tuple(_texts(arrays, "feature_names")), *rows)
        texts = [_texts(arrays, name) for name in TEXTS]
        if "lattice_arc" in arrays:
            check_kinds(path, "a forest", arrays, LATTICE_ARRAYS)
            names, value = _texts(arrays, "lattice_names"), arrays["lattice_value"]
            if value.shape[1] != len(names) or arrays["lattice_arc"].shape[1] != 2:
                raise ValueError(f"a lattice with {value.shape[1]} values for {len(names)} names")
            columns = dict(zip(names, value.T.tolist(), strict=True))
            lattice = _lattice_of(arrays["lattice_arc"].tolist(), texts[TEXTS.index("source")], columns)
    except ValueError as error:
        raise FormatError(path, 0, found=str(error), expected="a forest as .npz", hint=HINT) from None
    rules = featureless_rules(*(arrays[f"rule_{name}"] for name in RULE_ARRAYS))
    edge_columns = [arrays[name] for name in EDGE_AND_NODE_ARRAYS]
    graph = Hypergraph(arrays["first_edge"], arrays["tail"])
    return StoredForest(graph, *edge_columns, rules, *texts, features, lattice, whole)  # type: ignore[call-arg, arg-type]


def _texts(arrays: dict[str, npt.NDArray[Any]], name: str) -> list[str]:
    pool, first = arrays[name], arrays[f"first_{name}"]
    if not are_offsets(first, len(pool)):
        raise ValueError(f"offsets of {name} that do not ascend from 0 to {len(pool)}")
    text, offsets = pool.tobytes(), first.tolist()
    return [text[start:end].decode() for start, end in itertools.pairwise(offsets)]


# ---- checks


def _check(forest: StoredForest) -> None:
    """Raise ValueError unless all parts are consistent; kernels read them unchecked."""
    validate(forest.graph)
    num_nodes, num_edges = len(forest.graph.first_edge) - 1, len(forest.graph.tail)
    _check_shapes(forest, num_nodes, num_edges)
    if not (forest.edge_score < np.inf).all():
        raise ValueError("a score that is not a number or infinite")
    if num_nodes and not ((forest.node_start >= 0) & (forest.node_end >= forest.node_start)).all():
        raise ValueError("a node that ends before it starts")
    if forest.lattice is not None and (forest.node_end >= forest.lattice.num_nodes).any():
        raise ValueError(f"a node that ends behind node {forest.lattice.num_nodes - 1} of the lattice")
    _check_ids("label", forest.node_label, len(forest.labels))
    _check_ids("label", forest.rules.lhs, len(forest.labels))
    _check_ids("rule", forest.edge_rule, len(forest.rules.lhs), lowest=-1)
    arity = [_check_rule(forest, forest.rules, rule, MAX_GAPS) for rule in range(len(forest.rules.lhs))]
    if forest.whole is not None:
        _check_whole(forest, forest.whole)
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
    num_rules = len(forest.rules.lhs)
    parts: list[tuple[str, npt.NDArray[Any], int, npt.NDArray[Any], str, tuple[int, ...]]] = []
    for name, rules in (("rule", forest.rules), ("whole", forest.whole)):
        if rules is not None:
            parts += [
                (f"{name}_src", rules.first_src, num_rules, rules.src, "int32", ()),
                (f"{name}_tgt", rules.first_tgt, num_rules, rules.tgt, "int32", ()),
                (f"{name}_link", rules.first_link, num_rules, rules.link, "int16", (2,)),
            ]
    if forest.edge_features:
        features = forest.edge_features
        parts.append(("edge_feature", features.first, num_edges, features.feature, "int32", ()))
        expected.append(("edge_value", features.value, "float64", features.feature.shape))
        _check_ids("feature", features.feature, len(features.names))
        if not is_finite(features.value):
            raise ValueError("a feature with a value that is not finite")
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


def _check_rule(forest: StoredForest, rules: Rules, rule: int, most: int) -> int:
    """The number of gaps of a rule; ValueError unless both sides have the same, and at most so many."""
    src, tgt, links = rule_lists(rules, rule)
    for symbol in src + tgt:
        if is_gap(symbol):
            _check_ids("label", np.array([gap_label(symbol)], np.int32), len(forest.labels))
        else:
            _check_ids("word", np.array([symbol], np.int32), len(forest.words))
    gaps = [gap_index(symbol) for symbol in src if is_gap(symbol)]
    expected = [*range(1, min(len(gaps), most) + 1)]
    if gaps != expected or sorted(gap_index(symbol) for symbol in tgt if is_gap(symbol)) != gaps:
        raise ValueError(f"rule {rule} with gaps other than 1, or 1 and 2 in this order, once on each side")
    for i, j in links:
        if not (0 <= i < len(src) and 0 <= j < len(tgt)):
            raise ValueError(f"rule {rule} with a link {i}-{j} outside its sides")
    return len(gaps)


def _check_whole(forest: StoredForest, whole: Rules) -> None:
    """Raise ValueError unless every derivation fills each gap of its whole rules.

    It does if each node has rules only, or parts only that all have the same number of gaps.
    """
    if not np.array_equal(whole.lhs, forest.rules.lhs):
        raise ValueError("other left-hand sides of whole rules")
    num_gaps = [_check_rule(forest, whole, rule, MOST_GAPS) for rule in range(len(forest.rules.lhs))]
    first, tails = forest.graph.first_edge.tolist(), forest.graph.tail.tolist()
    filled = np.ones(
        len(first) - 1, np.int64
    )  # by each node: gaps of the whole rule, 1 for a node that is no part
    for node in range(len(first) - 1):
        found = set()
        for edge in range(first[node], first[node + 1]):
            rule, gaps = (
                int(forest.edge_rule[edge]),
                sum(int(filled[tail]) for tail in tails[edge] if tail >= 0),
            )
            is_part = rule >= 0 and whole.first_src[rule] == whole.first_src[rule + 1]
            found.add((is_part, gaps if is_part else 0))
            if not is_part and gaps != (num_gaps[rule] if rule >= 0 else 1):
                raise ValueError(f"edge {edge} of node {node} with {gaps} parts for {num_gaps[rule]} gaps")
        if len(found) > 1 or (node == len(first) - 2 and any(part for part, _ in found)):
            raise ValueError(f"node {node} with parts of rules that do not fit together")
        filled[node] = next((gaps for is_part, gaps in found if is_part), 1)
