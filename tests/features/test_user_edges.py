"""User-defined features of rule applications: their values, scores, checks and messages."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hiero
from hiero import HieroError, edge_feature
from hiero.core.errors import ConfigError
from hiero.core.symbols import Symbols
from hiero.core.text import Segment
from hiero.features.feature_set import feature_set
from hiero.features.index import EdgeFeature
from hiero.features.user_edges import Applications
from tests.decoder.test_model import weight_of
from tests.naive import search as naive
from tests.worlds.search import System, enumerated, steps_of, systems

RULES = [
    "[X] ||| er ||| he ||| p=1",
    "[X] ||| das haus ||| the house ||| p=1",
    "[X] ||| hat [X,1] gesehen ||| saw [X,1] ||| p=1",
    "[X] ||| gesehen ||| ||| p=1",
]
SENTENCE = "er hat das haus gesehen"


@edge_feature
def context(edges):
    yield edges.sparse("Left_{}_{}", edges.left, edges.first_tgt)
    yield {"Length": edges.length, "Gaps": edges.gap_length.sum(axis=1)}
    starts_with_a = edges.first_src == "a"
    yield edges.sparse("Rule_{}_{}_{}", edges.lhs, edges.num_gaps, starts_with_a, values=edges.length / 2)


@edge_feature("slow", per_edge=True)
def context_of_one(edge):
    """The same, written in plain Python."""
    tgt, length = edge.rule.tgt, edge.end - edge.start
    yield f"Left_{edge.left}_{tgt[0] if tgt else '<none>'}", 1.0
    yield "Length", length
    yield "Gaps", sum(end - start for start, end in edge.gaps)
    first = int(edge.rule.src[0] == "a")
    yield f"Rule_{edge.rule.lhs}_{len(edge.gaps)}_{first}", length / 2


def naive_context(derivation: naive.Derivation, words: tuple[str, ...]) -> dict[str, float]:
    total: dict[str, float] = {}
    for step in naive.steps(derivation):
        lhs, src, tgt = step.rule[:3]
        _, start, end = step.cell
        gaps = [part.cell[2] - part.cell[1] for part in step.parts]
        left = words[start - 1] if start else "<s>"
        found = {
            f"Left_{left}_{tgt[0] if tgt else '<none>'}": 1.0,
            "Length": end - start,
            "Gaps": sum(gaps),
            f"Rule_{lhs}_{len(gaps)}_{int(src[0] == 'a')}": (end - start) / 2,
        }
        for name, value in found.items():
            total[name] = total.get(name, 0.0) + value
    return {name: value for name, value in total.items() if value}


@given(systems())
def test_features_are_those_of_finished_derivations(system: System) -> None:
    """Scores, listed features, forests and the same function in plain Python agree with an enumeration."""
    found = enumerated(system)
    names = {name for _, d in found for name in naive_context(d, system.words)}
    system = replace(system, more_weights={name: weight_of(name) for name in names})
    expected = [
        (score + sum(weight_of(name) * value for name, value in naive_context(d, system.words).items()), d)
        for score, d in found
    ]
    listed = []
    for feature in (context, context_of_one):
        with system.opened(features=[feature]) as model:
            forest = model.parse(Segment(system.words))
            best = forest.kbest(10_000, unique=False)
            assert sorted(d.score for d in best) == pytest.approx(sorted(score for score, _ in expected))
            listed.append([(d.text, d.score, steps_of(d), d.features) for d in best])
            by_steps = {
                tuple((*step.rule[:3], *step.cell[1:]) for step in naive.steps(d)): d for _, d in expected
            }
            for d in best[:20]:
                twin = by_steps.get(tuple(steps_of(d)))
                if twin is not None:
                    own = {name: value for name, value in d.features.items() if name in names}
                    assert own == pytest.approx(naive_context(twin, system.words))
                product = sum(model.weights.get(name, 0.0) * value for name, value in d.features.items())
                assert product == pytest.approx(d.score, abs=1e-9)
            for d in forest.prune(1.0).kbest(5) if forest else []:
                product = sum(model.weights.get(name, 0.0) * value for name, value in d.features.items())
                assert product == pytest.approx(d.score, abs=1e-9)
    assert listed[0] == listed[1]


def model_with(*features: Any, **weights: float) -> hiero.Model:
    return hiero.load(rules=RULES, weights={"p": 1.0, "Glue": -1.0, **weights}, features=list(features))


def test_columns() -> None:
    seen: dict[str, list[Any]] = {}

    @edge_feature
    def look(edges):
        assert isinstance(edges, Applications)
        assert edges.sentence == tuple(SENTENCE.split())
        tags = edges.take(["P", "V", "D", "N", "V"], edges.end - 1)
        columns = [edges.lhs, edges.left, edges.right, edges.first_src, edges.last_src]
        columns += [
            edges.first_tgt,
            edges.last_tgt,
            tags,
            edges.of_rules([repr(rule) for rule in edges.rules]),
        ]
        for row in zip(
            *columns, edges.start.tolist(), edges.gap.tolist(), edges.num_gaps.tolist(), strict=True
        ):
            seen[row[8]] = list(row)
        assert (edges.left == "das").tolist() == [edge.left == "das" for edge in edges]
        assert (edges.left != "das").tolist() == [edge.left != "das" for edge in edges]
        assert edges.right.isin(["das", "</s>"]).tolist() == [e.right in ("das", "</s>") for e in edges]
        assert (edges.first_src == edges.last_src).tolist() == [
            a == b for a, b in zip(edges.first_src, edges.last_src, strict=True)
        ]
        assert edges[1:3][0].batch is edges
        assert repr(edges[-1]).startswith("[")
        with pytest.raises(IndexError):
            edges[len(edges)]

    model_with(look).parse(SENTENCE)
    rule = "[X] ||| hat [X,1] gesehen ||| saw [X,1]"
    gap = [[2, 4], [-1, -1]]
    expected = ["X", "er", "</s>", "hat", "gesehen", "saw", "[X,1]", "V", rule, 1, gap, 1]
    assert seen[rule] == expected
    empty = seen["[X] ||| gesehen ||| "]
    assert empty[5:8] == ["<none>", "<none>", "V"]


def test_values_are_looked_up_by_sentence() -> None:
    """One call for the search; k-best lists, forests and other weights make no further ones."""
    calls = []

    @edge_feature
    def spy(edges):
        calls.append(edges.sentence)
        return {"Length": edges.length}

    model = model_with(spy, Length=0.5)
    forest = model.parse(SENTENCE)
    lists = [d.features for d in forest.kbest(10)]
    assert lists[0]["Length"] > 0
    forest.features_of_edges(np.arange(forest.num_edges, dtype=np.int32))
    assert calls == [tuple(SENTENCE.split())]
    other = model.parse("er")
    assert calls[1:] == [("er",)]
    # A forest that is no longer that of the last sentence computes the values of its edges again.
    assert forest.kbest(1)[0].features == lists[0]
    assert len(calls) == 3
    assert other.viterbi().features["Length"] == 2.0


def test_pickling_and_names() -> None:
    assert pickle.loads(pickle.dumps(context)) is context
    named = edge_feature("named", per_edge=True)(pytest.approx)
    other = pickle.loads(pickle.dumps(named))
    assert (other.name, other.per_edge, other.function) == ("named", True, pytest.approx)
    model = model_with(context)
    again = pickle.loads(pickle.dumps(model))
    assert again.features.names == ["context"]
    (feature,) = feature_set([f"{__name__}:context"], Symbols()).edge_features
    assert isinstance(feature, EdgeFeature)
    assert (feature.name, repr(feature), list(feature.names())) == ("context", "<edge feature 'context'>", [])


def boom(edges):
    raise KeyError("mine")


def ragged(edges):
    return {"F": [[1], [1, 2]]}


WRONG = {
    "exception": (boom, r"feature 'boom': \S+test_user_edges.py:\d+: KeyError: 'mine'"),
    "shape": (
        lambda edges: {"F": [1.0]},
        r"array of shape \(1,\) for 'F', expected one value per application",
    ),
    "dtype": (lambda edges: {"F": ["x"] * len(edges)}, r"values of dtype <U1 for 'F', expected numbers"),
    "complex": (lambda edges: {"F": np.ones(len(edges), complex)}, "values of dtype complex128 for 'F'"),
    "ragged": (ragged, "values of dtype object for 'F', expected numbers"),
    "infinite": (
        lambda edges: {"F": np.full(len(edges), np.inf)},
        r"F=inf for the rule \[X\] \|\|\| er \|\|\| he at words 0 to 1, expected a finite number",
    ),
    "name": (lambda edges: {"a b": edges.length}, "returned 'a b', expected the name of a feature, without"),
    "sparse name": (lambda edges: edges.sparse("L {}", edges.left), "returned 'L .*', expected the name"),
    "answer": (lambda edges: 3, r"returned 3, expected a mapping, edges.sparse\(...\) or triples"),
    "text": (lambda edges: "Name", r"returned 'Name', expected a mapping"),
    "item": (lambda edges: [("F", 1.0)], r"returned \('F', 1.0\), expected a mapping"),
    "place": (lambda edges: [(1000, "F", 1.0)], "returned application 1000, expected 0 to"),
    "value": (lambda edges: [(0, "F", "x")], "returned 'x' for 'F', expected a number"),
    "places": (
        lambda edges: edges.sparse("L_{}", edges.left, edges.right),
        r"user_edges.py:\d+: ValueError: sparse: found 1 places {} in 'L_{}', expected one for each of 2",
    ),
    "column": (lambda edges: edges.sparse("{}", edges.length / 2), "column of type ndarray of float64"),
    "column shape": (lambda edges: edges.sparse("{}", np.ones(1, int)), r"column of shape \(1,\), expected"),
    "take": (lambda edges: edges.take(["a"], [0]), r"take: found indices of shape \(1,\)"),
    "taken": (lambda edges: edges.take([3], edges.start), "take: found a value of type int, expected str"),
    "of_rules": (lambda edges: edges.of_rules(["a"]), "of_rules: found 1 values, expected"),
    "compare": (lambda edges: edges.left == 3, "TypeError: compared with a value of type int"),
    "isin": (lambda edges: edges.left.isin("das"), "isin: found one str, expected several"),
}


@pytest.mark.parametrize("case", WRONG)
def test_messages(case: str) -> None:
    """One line, with the place of the function or of the exception in it."""
    function, message = WRONG[case]
    with pytest.raises(ConfigError, match=message) as raised:
        model_with(edge_feature(function.__name__)(function)).parse(SENTENCE)
    text = str(raised.value)
    assert "\n" not in text
    assert re.search(r"test_user_edges\.py:\d+: ", text)


def test_messages_of_functions_of_one_application() -> None:
    with pytest.raises(ConfigError, match=r"returned 'F', expected pairs \(name, value\)"):
        model_with(edge_feature("f", per_edge=True)(lambda edge: ["F"])).parse(SENTENCE)


def test_sums_of_equal_names_and_zeros() -> None:
    @edge_feature
    def several(edges):
        return [
            {"Sum": edges.length, "Zero": 0 * edges.length},
            {"Sum": edges.length, "Flag": edges.left == "er"},
            edges.sparse("Bias", values=0.5),
            (0, "First", True),
        ]

    forest = model_with(several).parse("er")
    total = forest.viterbi().features
    assert total["Sum"] == 4.0  # of the rule and of glue
    assert total["Bias"] == 1.0
    assert not total.keys() & {"Zero", "Flag"}


def test_many_distinct_columns() -> None:
    """Numbers of combinations beyond those of 64 bits."""
    wide = [{"Wide": 1.0}]

    @edge_feature
    def large(edges):
        columns = [edges.take([f"{i}w{n}" for n in range(1 << 16)], edges.start) for i in range(5)]
        found = edges.sparse("{}" + "_{}" * 4, *columns)
        wide.append(dict.fromkeys(found.names, 1.0))
        return found

    model_with(large).parse(SENTENCE)
    assert set(wide[1]) == {"_".join(f"{i}w{n}" for i in range(5)) for n in range(5)}


def test_an_empty_sentence_and_errors_are_of_the_package() -> None:
    assert model_with(context).translate("").text == ""
    assert issubclass(ConfigError, HieroError)
