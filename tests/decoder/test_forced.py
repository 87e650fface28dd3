"""Forced decoding against enumeration of all derivations; numbers are eighths, so scores are exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hiero
from hiero.core.errors import HieroError
from hiero.core.text import Segment
from hiero.decoder.hypergraph import validate
from hiero.decoder.statistics import Statistics
from tests.naive import constrain as naive_constrain
from tests.naive import search as naive
from tests.naive.search import Rule
from tests.worlds.search import System, enumerated, naive_steps, steps_of, systems, world_of

ALL = 10_000


@st.composite
def systems_with_targets(draw: st.DrawFn) -> tuple[System, tuple[str, ...]]:
    """A translation that the system has, or nearly, or any words."""
    system = draw(systems())
    found = sorted({naive.translation(d) for _, d in enumerated(system)})
    target = draw(st.sampled_from(found)) if found else ()
    if draw(st.integers(0, 3)) == 0:
        target = tuple(draw(st.lists(st.sampled_from(["u", "v", "w", "a", "new"]), max_size=4)))
    elif target and draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(target) - 1))
        target = (*target[:place], draw(st.sampled_from(["u", "w", "new"])), *target[place + 1 :])
    return system, target


@given(systems_with_targets())
def test_forced_decoding_equals_enumeration(case: tuple[System, tuple[str, ...]]) -> None:
    system, target = case
    expected = [(score, d) for score, d in enumerated(system) if naive.translation(d) == target]
    with system.opened(pop_limit=1) as model:
        found = model.force(" ".join(system.words), target)
        validate(found.forest.graph)
        assert found.reachable == bool(found) == bool(expected) == bool(found.forest)
        listed = found.forest.kbest(ALL, unique=False)
        assert sorted(d.score for d in listed) == sorted(score for score, _ in expected)
        assert sorted(map(steps_of, listed)) == sorted(naive_steps(d) for _, d in expected)
        assert {d.text for d in listed} <= {" ".join(target)}
        assert found.forest.num_derivations == len(expected)
        if expected:
            assert found.score == expected[0][0]
            # Only what is part of a derivation.
            assert (found.forest.max_marginals() > -np.inf).all()
        else:
            assert found.score == -math.inf
        if system.words:
            world = world_of(system)
            length = naive_constrain.longest(world, target)
            assert (found.longest.target[1] - found.longest.target[0] if found.longest else 0) == length
            assert set(found.missing) == naive_constrain.missing(world, target)
            if expected:
                assert naive_constrain.forced(world, ("S", 0, len(system.words)), target)


@pytest.mark.heavy
@settings(max_examples=30)
@given(systems())
def test_the_best_derivation_of_each_string(system: System) -> None:
    """With features of rules, of spans and across rules, the search without pruning gives the same."""
    assume(enumerated(system))
    features = ["bigram", "shape", "span_size", "rule_id"]
    names = ["%~RBT:u_v", "SpanSize_X_2", "Shape_S01000_T01000", "R:X:a:u", "RBT:u_v"]
    with system.opened(features=features) as model:
        forest = model.parse(Segment(system.words))
        for name in [*names, *forest.viterbi().features]:
            if name not in model.weights:
                model.weights[name] = 0.5 if len(name) % 2 else -0.25
        best = {d.text: d.score for d in model.parse(Segment(system.words)).kbest(ALL)}
        targets = list(best)[:5]
        for text, found in zip(targets, model.force_all(Segment(system.words), targets), strict=True):
            assert found.score == pytest.approx(best[text], abs=1e-5)
            for d in found.forest.kbest(3, unique=False):
                product = sum(model.weights.get(name, 0.0) * value for name, value in d.features.items())
                assert product == pytest.approx(d.score, abs=1e-5)


@pytest.mark.heavy
def test_our_translations_are_reachable_and_no_worse() -> None:
    model = hiero.load()
    for sentence in ("er hat mir ein buch versprochen .", "das haus ist klein ."):
        found = model.parse(sentence).kbest(20)
        for d, forced in zip(found, model.force_all(sentence, [d.text for d in found]), strict=True):
            assert forced.score >= d.score - 1e-6
            assert forced.best.text == d.text
            assert forced.best.alignment


def test_how_far_it_gets() -> None:
    rules = ["[X] ||| das ||| the", "[X] ||| haus ||| house", "[X] ||| [X,1] ist klein ||| [1] is small"]
    model = hiero.load(rules=rules, weights={"Glue": -1.0})
    statistics = Statistics()
    found, reached = model.force_all(
        "das haus ist klein", ["my house is small x x", "the house is small"], statistics
    )
    assert not found
    assert found.longest is not None
    assert (found.longest.source, found.longest.target) == ((1, 4), (1, 4))
    assert found.missing == (0, 4, 5)
    expected = (
        'no derivation; longest match "house is small" of "haus ist klein"; in no rule that applies: my x'
    )
    assert found.why() == expected
    assert reached.why() == ""
    assert reached.best.text == "the house is small"
    assert (statistics.sentences, statistics.failed) == (2, 1)
    assert model.force("das", "new").why() == "no derivation; none of the words is in a rule that applies"
    assert model.force("das", "").why() == "no derivation without words"
    assert model.force("", "the").why().startswith("no derivation; none")
    with pytest.raises(HieroError, match="expected several"):
        model.force_all("das", "the")


def test_a_limit_of_edges() -> None:
    system = System((Rule("X", ("[X,1]", "[X,2]"), ("[X,2]", "[X,1]")),), ("a",) * 5)
    with system.opened(max_edges=7) as model, pytest.raises(HieroError, match="needs over 7 edges"):
        model.force("a a a a a", "a a a a a")
