"""The Forest object and its dynamic programs against enumeration of all derivations."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hiero.core.errors import HieroError
from hiero.decoder.derivation import Tree
from hiero.decoder.forest import Forest, TextMap
from hiero.decoder.forest_features import EdgeFeatures
from hiero.decoder.forest_kernels import log_add
from hiero.decoder.hypergraph import Hypergraph, heads, validate
from tests.conftest import INTERPRETED
from tests.naive import forest as naive
from tests.worlds.strategies import World, count_quickly, enumerated, worlds


def logarithm(weight):
    return math.log(weight) if weight else -math.inf


@given(worlds())
def test_every_graph_is_valid(world):
    validate(world.forest.graph)
    assert heads(world.forest.graph).tolist() == [v for v, edges in enumerate(world.nodes) for _ in edges]


@given(worlds())
def test_best_of_every_node(world):
    best, edge = world.forest.best()
    expected = [naive.viterbi(world.nodes, world.edges, v) for v in range(len(world.nodes))]
    assert list(zip(best.tolist(), edge.tolist(), strict=True)) == expected


@given(worlds())
def test_viterbi_derivation(world):
    if not enumerated(world):
        with pytest.raises(HieroError, match="no derivation"):
            world.forest.viterbi()
        return
    derivation = naive.best_derivation(world.nodes, world.edges, len(world.nodes) - 1)
    found = world.forest.viterbi()
    assert found.edges.tolist() == naive.all_edges(derivation)
    assert found.score == naive.score(world.edges, derivation)
    assert found.words.tolist() == naive.words(world.tgt, world.edge_rule, derivation)


@given(worlds())
def test_inside_outside_and_counts(world):
    forest, nodes, edges = world.forest, world.nodes, world.edges
    for v in range(len(nodes)):
        assert forest.inside()[v] == pytest.approx(logarithm(naive.inside(nodes, edges, v)))
        if naive.inside(nodes, edges, v):  # else the twin would divide by zero
            assert forest.outside()[v] == pytest.approx(logarithm(naive.outside(nodes, edges, v)))
    assert forest.num_derivations == naive.num_derivations(world.nodes, world.edges, len(world.nodes) - 1)
    assert bool(forest) == bool(enumerated(world))


@given(worlds())
def test_posteriors_are_expected_counts(world):
    forest = world.forest
    if not enumerated(world):
        assert not forest.posteriors().any()
        assert not forest.node_posteriors().any()
        return
    expected = naive.edge_posteriors(world.nodes, world.edges)
    assert forest.posteriors() == pytest.approx(expected)
    assert forest.node_posteriors() == pytest.approx(naive.node_posteriors(world.nodes, world.edges))
    counts = [0.0] * len(world.src)
    for edge, rule in enumerate(world.edge_rule):
        if rule >= 0:
            counts[rule] += expected[edge]
    assert forest.expected_rule_counts() == pytest.approx(counts)


def test_an_edge_with_one_node_twice():
    # Weights 0.6 and 0.4 below, used twice: each is expected twice its weight. cdec's Outside errs here.
    world = World([[0, 1], [2]], [([], math.log(0.6)), ([], math.log(0.4)), ([0, 0], 0.0)], [0, 1, 2],
                  [[0], [0], [-1, -2]], [[0], [1], [-1, -2]], [[], [], []], [(0, 1), (0, 2)])  # fmt: skip
    assert world.forest.posteriors() == pytest.approx([1.2, 0.8, 1.0])
    assert world.forest.node_posteriors() == pytest.approx([2.0, 1.0])


@given(worlds())
def test_max_marginals(world):
    assert world.forest.max_marginals().tolist() == naive.max_marginals(world.nodes, world.edges)


@given(worlds(), st.integers(0, 12).map(lambda quarters: quarters / 4))
def test_prune_keeps_exactly_the_edges_within_the_beam(world, beam):
    forest = world.forest
    pruned = forest.prune(beam)
    edges, nodes = naive.prune(world.nodes, world.edges, beam)
    assert set(pruned.origin.edge.tolist()) == edges
    assert set(pruned.origin.node.tolist()) == nodes
    validate(pruned.graph)
    assert pruned.edge_lm[:, 0].tolist() == sorted(edges)
    assert pruned.node_start.tolist() == forest.node_start[pruned.origin.node].tolist()
    best = naive.kbest(world.nodes, world.edges, world.tgt, world.edge_rule, 100, unique=True)
    within = [s for s, _ in best if s >= best[0][0] - beam]
    found = pruned.kbest(len(within))
    assert [d.score for d in found] == within
    assert [d.words.tolist() for d in found] == [
        naive.words(world.tgt, world.edge_rule, d) for _, d in best[: len(within)]
    ]


@given(worlds(), st.lists(st.floats(-30, 30), min_size=15, max_size=15))
def test_prune_to_the_best_survives_rounding(world, scores):
    world.edges = [(tails, scores[i % 15]) for i, (tails, _) in enumerate(world.edges)]
    assume(enumerated(world))
    best = world.forest.viterbi()
    pruned = world.forest.prune(0.0)
    assert pruned.viterbi().score == best.score
    assert set(best.edges.tolist()) <= set(pruned.origin.edge.tolist())


def test_a_negative_beam_is_refused():
    with pytest.raises(ValueError, match="the beam is -1"):
        goal().prune(-1)
    with pytest.raises(ValueError, match="the beam is nan"):
        goal().prune(math.nan)


@given(worlds(dead=False, max_derivations=12), st.integers(0, 2**70))
def test_samples_follow_the_posterior(world, seed):
    found = enumerated(world)
    total = sum(naive.weight(world.edges, d) for d in found)
    expected = {tuple(naive.all_edges(d)): naive.weight(world.edges, d) / total for d in found}
    count = 500 if INTERPRETED else 2000
    samples = world.forest.sample(count, seed)
    frequency = dict.fromkeys(expected, 0)
    for d in samples:
        frequency[tuple(d.edges.tolist())] += 1
        assert d.score == sum(world.edges[edge][1] for edge in d.edges.tolist())
    statistic = sum((frequency[d] - count * p) ** 2 / (count * p) for d, p in expected.items())
    # Six standard deviations above the mean of chi-square.
    freedom = len(expected) - 1
    assert statistic <= freedom + 6 * math.sqrt(2 * freedom) + 30


def test_sampling_is_seeded():
    forest = goal()
    draws = [[d.text for d in forest.sample(20, seed)] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    with pytest.raises(HieroError, match="no derivation"):
        empty().sample(1, 0)


@given(worlds())
def test_steps_alignment_and_tree(world):
    head = [v for v, incoming in enumerate(world.nodes) for _ in incoming]
    best = naive.kbest(world.nodes, world.edges, world.tgt, world.edge_rule, 20, unique=False)
    for found, (_, derivation) in zip(world.forest.kbest(20, unique=False), best, strict=True):
        steps = naive.expand(world.tgt, world.edge_rule, derivation)
        assert [tuple(step) for step in found.steps[:, [0, 2, 4, 5]].tolist()] == steps
        assert found.nodes.tolist() == [head[edge] for edge, *_ in steps]
        assert found.rules.tolist() == [world.edge_rule[edge] for edge, *_ in steps]
        spans = [(*world.spans[head[edge]], start, end) for edge, _, start, end in steps]
        assert found.spans == spans
        aligned = naive.alignment(
            world.src, world.tgt, world.links, world.spans, world.edges, head, world.edge_rule, derivation
        )
        assert found.alignment == sorted(aligned)
        assert found.lm_scores.tolist() == [sum(edge for edge, *_ in steps)]
        assert (leaves(found.tree()), found.text) == (found.text.split(), found.text)
        assert len(found) == len(found.words)


def leaves(tree):
    return [w for child in tree.children for w in (leaves(child) if isinstance(child, Tree) else [child])]


def goal(**options):
    """Translations of ``s0 s1``: ``a b`` and, lower by one, ``b a``; then both from other nodes."""
    world = World(
        [[0], [1], [2, 3], [4]],
        [([], -1.0), ([], -0.5), ([0, 1], 0.0), ([0, 1], -1.0), ([2], 0.25)],
        [0, 1, 2, 3, -1],
        [[0], [1], [-1, -2], [-1, -2]],
        [[0], [1], [-1, -2], [-2, -1]],
        [[(0, 0)], [(0, 0)], [(0, 0)], []],
        [(0, 1), (1, 2), (0, 2), (0, 2)],
    )
    forest = world.forest
    for name, value in options.items():
        setattr(forest, name, value)
    return forest


def empty():
    """A goal without derivations."""
    return World([[]], [], [], [], [], [], [(0, 0)]).forest


def test_representation_of_a_derivation():
    first, second = goal().kbest(5)
    assert (first.text, second.text) == ("a b", "b a")
    assert str(second.tree()) == "(X (X (X b) (X a)))"
    assert repr(second) == "<Derivation -2.25: b a>"
    assert second.alignment == [(0, 1), (1, 0)]
    assert second.tree().children[0].span == (0, 2, 0, 2)
    assert [child.span for child in second.tree().children[0].children] == [(1, 2, 0, 1), (0, 1, 1, 2)]
    assert "<td>1–2</td><td>0–1</td>" in second._repr_html_()
    assert "[X] ||| a ||| a" in second._repr_html_()


def test_representation_of_a_forest():
    assert repr(goal()) == "<Forest: 9 words, 4 nodes, 5 edges, 2 derivations>"
    assert "<td style='text-align:left'>b a</td>" in goal()._repr_html_()


def test_brackets_that_are_words():
    tree = goal(words=TextMap(enumerate("()"))).viterbi().tree()
    assert str(tree) == "(X (X (X -LRB-) (X -RRB-)))"


def test_features():
    forest = goal()
    with pytest.raises(HieroError, match="without features"):
        _ = forest.viterbi().features
    with pytest.raises(HieroError, match="without features"):
        forest.with_weights({})
    calls = []

    class Features:
        def of_derivation(self, derivation):
            calls.append(derivation)
            return {"Edges": float(len(derivation.edges))}

    forest = goal(_features=Features())
    best = forest.viterbi()
    assert best.features == best.features == {"Edges": 4.0}
    assert len(calls) == 1, "the features of a derivation are computed once"
    assert forest.prune(0.0).viterbi().features == {"Edges": 4.0}


def test_features_of_edges():
    rows = [{"a": 1.0}, {"b": 2.0, "a": 0.5}, {}, {"c": 9.0}, {"b": 1.0}]
    forest = goal(edge_features=EdgeFeatures.from_rows(rows))
    assert forest.viterbi().features == {"a": 1.5, "b": 3.0}
    assert forest.prune(0.0).viterbi().features == {"a": 1.5, "b": 3.0}
    assert [forest.edge_features.row(edge) for edge in range(5)] == rows


@pytest.mark.parametrize(("weight", "found"), [(2.0, "inf"), (-2.0, "-inf"), (math.nan, "nan")])
def test_scores_that_are_too_large(weight, found):
    forest = goal(edge_features=EdgeFeatures.from_rows([{"a": 1e308}, {}, {}, {}, {}]))
    assert forest.with_weights({"a": 1.0}).edge_score.max() == 1e308
    with pytest.raises(HieroError, match=f"the score of an edge with these weights is {found} "):
        forest.with_weights({"a": weight})


def test_no_derivations():
    forest = empty()
    assert not forest
    assert forest.kbest(3) == []
    assert list(forest.derivations()) == []
    assert forest.num_derivations == 0
    assert forest.prune(1.0).num_nodes == 1
    assert forest.max_marginals().tolist() == []
    none = Forest(
        Hypergraph(np.zeros(1, np.int64), np.zeros((0, 2), np.int32)),
        *(np.zeros(0, dtype) for dtype in (np.float64, np.int32, np.int32, np.int32, np.int32)),
        forest.rules,
        words=forest.words,
        labels=forest.labels,
    )
    assert not none
    assert none.kbest(3) == []
    assert (none.num_derivations, none.prune(1.0).num_nodes, none.inside().tolist()) == (0, 0, [])
    assert repr(none) == "<Forest: 0 words, 0 nodes, 0 edges, 0 derivations>"


def test_arrays_are_read_only():
    forest = goal()
    for array in (*forest.graph, forest.edge_score, forest.edge_lm, forest.node_start, *forest.rules):
        assert not array.flags.writeable


def test_copies_are_equal():
    forest = goal()
    forest.kbest(1)
    for other in (copy.deepcopy(forest), pickle.loads(pickle.dumps(forest))):
        assert [d.text for d in other.kbest(2)] == ["a b", "b a"]
        assert not other.graph.tail.flags.writeable
        assert not other.rules.tgt.flags.writeable
        assert not other.edge_score.flags.writeable
    for derivation in forest.kbest(2):
        other = pickle.loads(pickle.dumps(derivation))
        assert (other.text, other.score) == (derivation.text, derivation.score)


@given(worlds())
def test_the_forest_of_one_derivation(world):
    forest = world.forest
    for derivation in forest.kbest(20, unique=False):
        only = forest.only(derivation)
        validate(only.graph)
        assert only.num_derivations == 1
        own = only.viterbi()
        assert (own.score, own.text, str(own.tree())) == (
            derivation.score,
            derivation.text,
            str(derivation.tree()),
        )
        assert (own.spans, own.alignment) == (derivation.spans, derivation.alignment)
        assert only.origin.edge[own.edges].tolist() == derivation.edges.tolist()
        assert only.origin.node[own.nodes].tolist() == derivation.nodes.tolist()


@given(worlds())
def test_results_do_not_depend_on_the_order_of_calls(world):
    one, other = world.forest, world.forest
    one.kbest(3, unique=False)
    one.kbest(7)
    assert [d.text for d in one.kbest(5)] == [d.text for d in other.kbest(5)]
    assert one.num_derivations <= count_quickly(world)


def test_log_add():
    infinity = math.inf
    assert log_add(-infinity, -infinity) == -infinity
    assert log_add(-infinity, 3.0) == log_add(3.0, -infinity) == 3.0
    assert log_add(1000.0, 1000.0) == pytest.approx(1000.0 + math.log(2))
    assert log_add(-2.0, 0.5) == pytest.approx(math.log(math.exp(-2.0) + math.exp(0.5)))


def test_counting_beyond_a_float():
    # 2 ** 1100 derivations, and a node without derivations.
    world = World([], [], [], [], [], [], [])
    world.nodes.append([])
    world.spans.append((0, 0))
    for v in range(1, 1101):
        tails = [v - 1] if v > 1 else []
        world.nodes.append([len(world.edges), len(world.edges) + 1, len(world.edges) + 2])
        world.edges += [(tails, -1.0), (tails, -2.0), ([0, v - 1] if v > 1 else [0], -3.0)]
        world.edge_rule += [0 if v > 1 else 1, 0 if v > 1 else 1, 2 if v > 1 else 0]
        world.spans.append((0, 0))
    world.src = world.tgt = [[-1], [0], [-1, -2]]
    world.links = [[], [], []]
    assert world.forest.num_derivations == math.inf
    assert world.forest.inside()[-1] == pytest.approx(1100 * math.log(math.exp(-1) + math.exp(-2)))


@pytest.mark.parametrize(
    ("first_edge", "tail", "message"),
    [
        ([], [], "first_edge must be an int64 vector"),
        ([0, 2], [[-1, -1]], "must ascend from 0 to the number of edges, 1"),
        ([1, 1], [[-1, -1]], "must ascend from 0"),
        ([0, 1, 0, 1], [[-1, -1]], "must ascend from 0"),
        ([0, 1], [[0, -1]], r"edge 0 of node 0 has a tail that does not come before its head: \[0, -1\]"),
        ([0, 0, 1], [[-2, -1]], "negative tail other than -1"),
        ([0, 0, 1], [[-1, 0]], "a second tail but no first"),
    ],
)
def test_invalid_hypergraphs(first_edge, tail, message):
    graph = Hypergraph(np.array(first_edge, np.int64), np.array(tail, np.int32).reshape(-1, 2))
    with pytest.raises(ValueError, match=message):
        validate(graph)


def test_hypergraphs_of_wrong_types():
    with pytest.raises(ValueError, match="tail must be int32 with two columns, not int64"):
        validate(Hypergraph(np.zeros(1, np.int64), np.zeros((0, 2), np.int64)))
