"""Lazy k-best against enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.decoder.kbest_kernels import larger_kbest_search, new_kbest_search, same_words
from tests.conftest import INTERPRETED
from tests.naive import forest as naive
from tests.worlds.strategies import World, enumerated, worlds


def pre_order(found):
    return [(d.score, d.edges.tolist(), d.words.tolist()) for d in found]


def expected(world, k, unique):
    kbest = naive.kbest(world.nodes, world.edges, world.tgt, world.edge_rule, k, unique)
    return [(s, naive.all_edges(d), naive.words(world.tgt, world.edge_rule, d)) for s, d in kbest]


@given(worlds(), st.integers(0, 60), st.booleans())
def test_kbest_equals_its_twin(world, k, unique):
    assert pre_order(world.forest.kbest(k, unique)) == expected(world, k, unique)


@given(worlds(), st.integers(1, 60))
def test_kbest_is_enumeration_sorted(world, k):
    scores = sorted((naive.score(world.edges, d) for d in enumerated(world)), reverse=True)
    assert [d.score for d in world.forest.kbest(k, unique=False)] == scores[:k]


@given(worlds())
def test_unique_kbest_has_the_best_score_of_each_string(world):
    best = {}
    for d in enumerated(world):
        string = tuple(naive.words(world.tgt, world.edge_rule, d))
        best[string] = max(best.get(string, -np.inf), naive.score(world.edges, d))
    assert {tuple(d.words.tolist()): d.score for d in world.forest.kbest(10_000)} == best


@given(worlds(), st.lists(st.integers(0, 40), max_size=5), st.booleans())
def test_continued_search_equals_one_search(world, ks, unique):
    forest = world.forest
    for k in ks:
        assert pre_order(forest.kbest(k, unique)) == expected(world, k, unique)
    assert pre_order(forest.derivations(unique)) == expected(world, 10_000, unique)


def leaf(words):
    """A forest whose goal joins nodes that have these strings to choose from."""
    world = World([], [], [], [], [], [], [])
    world.nodes.append([])
    for score, string in enumerate(words):
        world.nodes[0].append(len(world.edges))
        world.edges.append(([], -float(score)))
        world.edge_rule.append(score)
        world.src.append([])
        world.tgt.append(list(string))
        world.links.append([])
    world.spans.append((0, 1))
    return world


def test_equal_hashes_do_not_merge_different_strings():
    # The Thue-Morse string and its complement have one polynomial hash modulo 2 ** 64, whatever the base.
    string = [bin(i).count("1") % 2 for i in range(1024)]
    world = leaf([string, [1 - word for word in string], string])
    forest = world.forest
    assert [d.edges.tolist() for d in forest.kbest(3)] == [[0], [1]]
    search = forest._search[True]
    assert search.order.hash[0] == search.order.hash[1], "the strings were chosen to collide"
    arguments = (search.found, forest.rules, forest.edge_rule, search.nodes.frame)
    assert not same_words(*arguments, np.int64(0), np.int64(1))
    assert same_words(*arguments, np.int64(1), np.int64(1))


def chain(length, choices=2):
    """Left-branching glue: node i joins node i - 1 and a word."""
    world = World([], [], [], [], [], [], [])
    for i in range(length):
        incoming = []
        for choice in range(choices):
            incoming.append(len(world.edges))
            world.edges.append(([i - 1] if i else [], -0.25 * choice * (1 + i % 3)))
            world.edge_rule.append(len(world.src))
            world.src.append([-1, 0] if i else [0])
            world.tgt.append([-1, choice] if i else [choice])
            world.links.append([(1, 1)] if i else [(0, 0)])
        world.nodes.append(incoming)
        world.spans.append((0, i + 1))
    return world


def test_deep_chains_need_no_recursion():
    length = 1100  # more than Python's recursion limit
    forest = chain(length).forest
    size = 5 if INTERPRETED else 50
    found = forest.kbest(size)
    assert len({d.text for d in found}) == size
    assert [d.score for d in found] == sorted((d.score for d in found), reverse=True)
    assert found[-1].alignment == [(i, i) for i in range(length)]
    assert str(found[0].tree()).startswith("(X (X (X ")
    assert found[0].tree().span == (0, length, 0, length)


def test_many_derivations_grow_the_search():
    # 2 ** 12 strings, all different: every array grows several times.
    world = chain(12)
    found = world.forest.kbest(10_000)
    assert pre_order(found) == expected(world, 10_000, True)
    assert len(found) == 2**12


def test_growing_keeps_everything():
    search = new_kbest_search(3, 4)
    search.found.edge[:] = [5, 6, 7, 8]
    search.found.node[:] = 1
    search.order.hash[:] = np.array([1, 2, 3, 4], np.uint64)
    search.slot[:3] = [0, 1, 2]
    larger = larger_kbest_search(search, 9, 5)
    assert len(larger.found.edge) == 16
    assert len(larger.heap.edge) == 8
    assert larger.found.edge[:4].tolist() == [5, 6, 7, 8]
    assert sorted(larger.slot[larger.slot >= 0].tolist()) == [0, 1, 2]


def test_a_negative_k_is_refused():
    with pytest.raises(ValueError, match="k is -1"):
        chain(2).forest.kbest(-1)
