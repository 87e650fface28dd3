"""Word lattices and word confidence of forests, against enumeration of all derivations."""

import ast
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import HieroError
from hiero.decoder.lattices import lattice_of
from tests.naive import consensus as naive
from tests.naive import forest as naive_forest
from tests.worlds.strategies import enumerated, worlds


def strings_of(world, alpha=1.0):
    found = naive.distribution(world.nodes, world.edges, world.tgt, world.edge_rule, alpha)
    return {" ".join("abcdefgh"[word] for word in words): share for words, share in found.items()}


def summed(lattice):
    total = Counter()
    for text, log_prob in lattice.paths():
        total[text] += math.exp(log_prob)
    return total


@given(worlds(), st.sampled_from([0.5, 1.0, 2.0]))
def test_paths_are_the_translations_with_their_posteriors(world, alpha):
    lattice = world.forest.word_lattice(alpha=alpha)
    if not enumerated(world):
        assert (lattice.num_states, lattice.openfst(), list(lattice.paths())) == (0, "", [])
        return
    assert summed(lattice) == pytest.approx(strings_of(world, alpha))
    assert (lattice.source < lattice.target).all()
    used = set(lattice.source.tolist()) | {lattice.num_states - 1}
    assert used == set(range(lattice.num_states))
    # The arcs that leave a state share a probability of 1.
    leaving = np.bincount(lattice.source, np.exp(lattice.log_prob), lattice.num_states)
    assert leaving[:-1].tolist() == pytest.approx([1.0] * (lattice.num_states - 1))


def read_openfst(text, symbols):
    """The strings and probabilities of a lattice in OpenFst's text form."""
    names = dict(line.split("\t") for line in symbols.splitlines())
    arcs, final = {}, None
    lines = [line.split("\t") for line in text.splitlines()]
    for fields in lines:
        if len(fields) == 1:
            final = fields[0]
            continue
        source, target, word, output, weight = fields
        assert word == output
        assert word in names
        arcs.setdefault(source, []).append((target, word, float(weight)))
    assert names["<eps>"] == "0"
    total, stack = Counter(), [(lines[0][0], [], 0.0)]
    while stack:
        state, words, cost = stack.pop()
        if state == final:
            total[" ".join(words)] += math.exp(-cost)
            continue
        for target, word, weight in arcs[state]:
            stack.append((target, words if word == "<eps>" else [*words, word], cost + weight))
    return total


def read_plf(text):
    """The strings and probabilities of a lattice in PLF, which is a Python literal."""
    columns = ast.literal_eval(text)
    total, stack = Counter(), [(0, [], 0.0)]
    while stack:
        state, words, log_prob = stack.pop()
        if state == len(columns):
            total[" ".join(words)] += math.exp(log_prob)
            continue
        for word, value, distance in columns[state]:
            stack.append((state + distance, words if word == "*EPS*" else [*words, word], log_prob + value))
    return total


@given(worlds(dead=False))
def test_files(world):
    lattice, expected = world.forest.word_lattice(), strings_of(world)
    assert read_openfst(lattice.openfst(), lattice.symbols()) == pytest.approx(expected, abs=1e-7)
    assert read_plf(lattice.plf()) == pytest.approx(expected, abs=1e-7)
    assert lattice.plf().count("\n") == 1


@given(worlds(dead=False), st.integers(0, 12).map(lambda quarters: quarters / 4))
def test_a_beam_leaves_out_derivations(world, beam):
    kept = {one.text for one in world.forest.prune(beam).kbest(1000)}
    assert {text for text, _ in world.forest.word_lattice(beam=beam).paths()} == kept


@given(worlds(dead=False), st.sampled_from([0.01, 0.2, 0.6]))
def test_arcs_with_small_posteriors_are_left_out(world, least):
    whole, part = world.forest.word_lattice(), world.forest.word_lattice(least=least)
    strings = strings_of(world)
    found = {text for text, _ in part.paths()}
    assert found <= strings.keys()
    assert sum(summed(part).values()) == pytest.approx(1.0)
    likely = max(path for _, path in whole.paths())
    assert any(text in found for text, path in whole.paths() if path > likely - 1e-9)
    # What is left out does not contain a path that is more probable than the limit.
    assert all(text in found for text, path in whole.paths() if math.exp(path) > least + 1e-9)


def test_states_with_the_same_continuations_are_one():
    from tests.worlds.strategies import World

    side = [[0, 2], [1, 2]]
    world = World([[0, 1]], [([], 0.0), ([], -1.0)], [0, 1], [[0], [0]], side, [[], []], [(0, 1)])
    lattice = world.forest.word_lattice()
    assert (lattice.num_states, lattice.word) == (3, ["a", "b", "c"])
    assert summed(lattice) == pytest.approx(strings_of(world))


def test_limits():
    from tests.worlds.strategies import World

    side = [[0], [1], [-1, -2]]
    world = World(
        [[0, 1], [2]], [([], 0.0), ([], -1.0), ([0, 0], 0.0)], [0, 1, 2], side, side, [[]] * 3, [(0, 1)] * 2
    )
    assert len(list(world.forest.word_lattice().paths())) == 4
    with pytest.raises(HieroError, match="more than 2 arcs"):
        lattice_of(world.forest, 10.0, 1.0, 0.0, max_arcs=2)


@given(worlds(), st.sampled_from([0.5, 1.0]))
def test_confidence_is_the_expected_count_of_a_word_with_its_links(world, alpha):
    found = enumerated(world)
    if not found:
        return
    head = {edge: v for v, incoming in enumerate(world.nodes) for edge in incoming}
    expected, weights = Counter(), [math.exp(alpha * naive_forest.score(world.edges, one)) for one in found]
    events = []
    for derivation, weight in zip(found, weights, strict=True):
        words = naive_forest.words(world.tgt, world.edge_rule, derivation)
        links = naive_forest.alignment(
            world.src, world.tgt, world.links, world.spans, world.edges, head, world.edge_rule, derivation
        )
        own = [(word, frozenset(i for i, j in links if j == at)) for at, word in enumerate(words)]
        events.append(own)
        for event in own:
            expected[event] += weight / sum(weights)
    by_edges = {tuple(naive_forest.all_edges(one)): own for one, own in zip(found, events, strict=True)}
    for one in world.forest.kbest(5, unique=False):
        own = by_edges[tuple(one.edges.tolist())]
        confidence = world.forest.confidence(one, alpha=alpha)
        assert confidence == pytest.approx([min(1.0, expected[event]) for event in own])
        if alpha == 1.0:
            assert one.confidence == confidence
