"""Translations that begin with given words, against enumeration of all derivations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hiero
from hiero.core.errors import HieroError
from hiero.core.text import Segment
from hiero.decoder.hypergraph import validate
from tests.naive import constrain as naive_constrain
from tests.naive import search as naive
from tests.naive.search import Rule
from tests.worlds.search import System, enumerated, naive_steps, steps_of, systems, world_of

ALL = 10_000


@st.composite
def systems_with_prefixes(draw: st.DrawFn) -> tuple[System, tuple[str, ...], bool]:
    """The beginning of a translation that the system has, or nearly, or any words."""
    system = draw(systems())
    found = sorted({naive.translation(d) for _, d in enumerated(system)})
    words = draw(st.sampled_from(found)) if found else ()
    prefix = words[: draw(st.integers(0, len(words)))]
    if draw(st.integers(0, 4)) == 0:
        prefix = tuple(draw(st.lists(st.sampled_from(["u", "v", "w", "a", "new"]), max_size=4)))
    return system, prefix, False


@given(systems_with_prefixes())
def test_completions_equal_enumeration(case: tuple[System, tuple[str, ...], bool]) -> None:
    system, prefix, partial = case
    world = world_of(system)
    goal = ("S", 0, len(system.words))
    wanted_ones = naive_constrain.completions(world, goal, prefix, partial) if system.words else []
    expected = [(score, d) for score, d in enumerated(system) if d in wanted_ones]
    with system.opened() as model:
        found = model.completer(" ".join(system.words)).complete(prefix, partial=partial)
        validate(found.forest.graph)
        assert found.reachable == bool(expected) or not prefix
        if not found.reachable or not expected:
            return
        listed = found.forest.kbest(ALL, unique=False)
        scored = sorted((d.score, steps_of(d)) for d in listed)
        wanted = sorted((score, naive_steps(d)) for score, d in expected)
        if not system.models and prefix:
            # Parts with and without words are one node without a language model.
            scored = [one for k, one in enumerate(scored) if k == 0 or one != scored[k - 1]]
            wanted = [one for k, one in enumerate(wanted) if k == 0 or one != wanted[k - 1]]
        assert scored == wanted
        assert found.best.score == expected[0][0]
        assert found.edited(found.best) == []


@given(systems_with_prefixes(), st.integers(1, 4))
def test_a_pruned_search_begins_with_the_prefix(
    case: tuple[System, tuple[str, ...], bool], pop_limit: int
) -> None:
    system, prefix, _ = case
    assume(system.words)
    with system.opened(features=["bigram", "shape", "span_size"], pop_limit=pop_limit) as model:
        model.weights["RBT:u_v"] = 0.5
        completer = model.completer(Segment(system.words))
        found = completer.complete(prefix)
        assert found.best
        for d in found.forest.kbest(20, unique=False):
            assert tuple(d.text.split())[: len(prefix)] == prefix
            weights = {"PrefixEdit": -10.0} | dict(model.weights)
            product = sum(weights.get(name, 0.0) * value for name, value in d.features.items())
            assert product == pytest.approx(d.score, abs=1e-5)
            edited = found.edited(d)
            assert d.features.get("PrefixEdit", 0.0) == len(edited)
            assert bool(edited) != found.reachable or not prefix
        if prefix and prefix[-1] in "uvw":
            for cut in ("", prefix[-1]):
                begun = completer.complete(" ".join([*prefix[:-1], cut]), partial=True)
                assert begun.text.startswith(" ".join([*prefix[:-1], cut]).rstrip())


RULES = [
    "[X] ||| das ||| the ||| p=0.5",
    "[X] ||| das [X,1] ||| the [1] ||| p=0.5",
    "[X] ||| haus ||| house ||| p=0.25",
    "[X] ||| haus ||| home ||| p=2",
    "[X] ||| [X,1] ist klein ||| [1] is small ||| p=0",
    "[X] ||| [X,1] ist klein ||| small is [1] ||| p=9",
]


def test_what_is_typed() -> None:
    model = hiero.load(rules=RULES, weights={"p": -1.0, "PassThrough": -5.0, "Glue": -1.0})
    completer = model.completer("das haus ist klein")
    for typed, partial, expected, reachable in (
        ("", False, "the house is small", True),
        ("the home", False, "the home is small", True),
        ("the h", True, "the house is small", True),
        ("the ho", True, "the house is small", True),
        ("the hom", True, "the home is small", True),
        ("s", True, "small is the house", True),
        ("the house is small", False, "the house is small", True),
        ("the home ", True, "the home is small", True),
        ("the tiny", False, "the tiny is small", False),
        ("the hut", True, "the hut is small", False),
    ):
        found = completer.complete(typed, partial=partial)
        assert (found.text, found.reachable) == (expected, reachable), typed
        assert model.translate("das haus ist klein", typed, partial=partial).text == expected
        assert found.edited(found.best) == ([] if reachable else [1])
    long = "one two three four five six seven eight nine ten"
    found = completer.complete(long)
    assert found.text.startswith(long)
    assert found.best.features["PrefixEdit"] == 10
    assert found.best.score == pytest.approx(model.translate("das haus ist klein", long).score)


def test_weights_of_edits() -> None:
    weights = {"p": -1.0, "PassThrough": -5.0, "Glue": -1.0}
    scores = []
    for own in ({}, {"PrefixEdit": -2.0}, {"PrefixEdit": 0.0}):
        best = hiero.load(rules=RULES, weights=weights | own).translate("das haus ist klein", "a b")
        assert best.features["PrefixEdit"] == 2.0
        scores.append(best.score)
    assert np.diff(scores).tolist() == pytest.approx([16.0, 4.0])


def test_without_any_derivation() -> None:
    model = hiero.load(rules=RULES, weights={"p": -1.0}, glue=False, pass_through="none")
    found = model.completer("haus haus haus").complete("the house")
    assert (found.reachable, found.text, found.best.score) == (False, "the house", -math.inf)
    assert model.completer("").complete("the").text == "the"
    assert not model.translate("", "the")


def test_limits_of_edges() -> None:
    system = System((Rule("X", ("[X,1]", "[X,2]"), ("[X,2]", "[X,1]")),), ("a",) * 5)
    with system.opened(max_edges=7) as model, pytest.raises(HieroError, match="over 7 edges"):
        model.completer("a a a a a").complete("a a a")
    with system.opened(max_edges=7, pop_limit=1) as model, pytest.raises(HieroError, match="over 7 edges"):
        model.completer("a a a a a").complete("a a a")
