"""Expected n-grams and the choice among translations, against enumeration of all derivations."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import ConfigError, HieroError
from hiero.decoder.config import ConsensusConfig
from hiero.decoder.consensus import choose, expected_bleu, split_forest
from hiero.decoder.ngram_kernels import best_gain_kernel, expected_matches_kernel
from hiero.evaluation.bleu import References, sentence_bleu
from tests.naive import bleu as naive_bleu
from tests.naive import consensus as naive
from tests.naive import forest as naive_forest
from tests.worlds.strategies import enumerated, worlds


def graph_of(world):
    return world.nodes, world.edges, world.tgt, world.edge_rule


def texts(words):
    return tuple("abcdefgh"[word] for word in words)


orders = st.integers(1, 5)


@given(worlds(), orders)
def test_nodes_are_split_by_their_outer_words(world, order):
    split = split_forest(world.forest, order)
    inner = split.forest
    expected = naive.split_nodes(*graph_of(world), order - 1)
    goal = len(world.nodes) - 1
    if enumerated(world):
        found = Counter(v for v in inner.origin.node.tolist() if v != goal)
        assert found == Counter(v for v, *_ in expected)
    else:
        assert inner.num_nodes == 0
    assert inner.num_derivations == world.forest.num_derivations
    if enumerated(world):
        assert inner.origin.node[-1] == goal
        found = inner.kbest(1000, unique=False)
        edges = sorted(tuple(inner.origin.edge[one.edges].tolist()) for one in found)
        assert edges == sorted(map(tuple, map(naive_forest.all_edges, enumerated(world))))
        assert found[0].score == world.forest.viterbi().score


@given(worlds(), orders)
def test_every_derivation_has_the_ngrams_of_its_edges(world, order):
    split = split_forest(world.forest, order)
    words = list(split.words())
    assert len(set(words)) == len(words)
    assert split.lengths.tolist() == list(map(len, words))
    per_edge = [
        Counter(words[g] for g in split.ngram[split.first[e] : split.first[e + 1]].tolist())
        for e in range(split.forest.num_edges)
    ]
    found = {}
    if split.forest:
        for one in split.forest.kbest(1000, unique=False):
            total = sum((per_edge[edge] for edge in one.edges.tolist()), Counter())
            assert total == naive.ngrams(tuple(one.words.tolist()), order)
            top = one.edges[0]
            found[tuple(split.forest.origin.edge[one.edges].tolist())] = per_edge[top]
    for derivation in enumerated(world):
        created = naive.edge_ngrams(world.tgt, world.edge_rule, derivation, order)
        assert found[tuple(naive_forest.all_edges(derivation))] == created


@given(worlds(), orders, st.sampled_from([0.5, 1.0, 2.0]))
def test_expected_counts(world, order, alpha):
    found = world.forest.expected_ngrams(order, alpha=alpha)
    strings = naive.distribution(*graph_of(world), alpha) if enumerated(world) else {}
    expected = naive.expected_ngrams(strings, order)
    assert found.keys() == {texts(ngram) for ngram in expected}
    for ngram, count in expected.items():
        assert found[texts(ngram)] == pytest.approx(count)
    assert list(found.values()) == sorted(found.values(), reverse=True)


@given(worlds(dead=False), st.sampled_from([0.5, 1.0, 2.0]), st.integers(1, 5))
def test_linear_bleu_is_the_largest_of_all_strings(world, alpha, k):
    strings = naive.distribution(*graph_of(world), alpha)
    expected = naive.expected_ngrams(strings, 4)
    gains = {words: naive.linear_bleu(words, expected, 0.7, 0.6) for words in strings}
    settings = {"alpha": alpha, "precision": 0.7, "ratio": 0.6, "beam": 1e6}
    choices = world.forest.mbr_list(k, **settings)
    assert len(choices) == min(k, len(strings))
    best = {}
    for derivation in enumerated(world):
        string = tuple(naive_forest.words(world.tgt, world.edge_rule, derivation))
        best[string] = max(best.get(string, -math.inf), naive_forest.score(world.edges, derivation))
    chosen = [tuple(one.derivation.words.tolist()) for one in choices]
    assert len(set(chosen)) == len(chosen)
    top = sorted(gains.values(), reverse=True)
    # Those after the first are in the order of a sum with a millionth of the score.
    assert [one.gain for one in choices] == pytest.approx(top[: len(choices)], abs=1e-4)
    assert choices[0].gain == pytest.approx(top[0], abs=1e-9)
    for string, one in zip(chosen, choices, strict=True):
        assert one.gain == pytest.approx(gains[string], abs=1e-9)
        assert one.derivation.score == best[string]
    # Never worse than the best translation of the model, by the metric that is expected.
    assert choices[0].gain >= gains[tuple(world.forest.viterbi().words.tolist())] - 1e-9


@given(worlds(), st.data())
def test_best_gain(world, data):
    forest = world.forest
    eighths = st.integers(-8, 8).map(lambda eighth: eighth / 8)
    gain = np.array([data.draw(eighths) for _ in world.edges], np.float64)
    best, score = np.empty(len(world.nodes)), np.empty(len(world.nodes))
    edge = np.empty(len(world.nodes), np.int32)
    gain.flags.writeable = False
    best_gain_kernel(forest.graph, gain, forest.edge_score, best, score, edge)
    for v in range(len(world.nodes)):
        expected = naive.best_gain(world.nodes, world.edges, gain.tolist(), v)
        assert (best[v], score[v]) == (expected or (-math.inf, -math.inf))
        assert (edge[v] < 0) == (expected is None)


@given(worlds(dead=False), st.sampled_from(["lin", "nakov-all", "sacrebleu"]), st.sampled_from([0.5, 1.0]))
def test_expected_sentence_bleu_of_a_list(world, metric, alpha):
    config = ConsensusConfig(mbr="kbest", alpha=alpha, metric=metric, size=7)
    found = world.forest.kbest(7)
    weights = [math.exp(alpha * one.score) for one in found]
    strings = [one.words.tolist() for one in found]
    gains = []
    for words in strings:
        rows = [naive_bleu.statistics(words, [other], 4, False) for other in strings]
        scores = sentence_bleu(metric)(np.array(rows)).tolist()
        gains.append(sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights))
    choices = choose(world.forest, config, 3)
    assert [one.gain for one in choices] == pytest.approx(sorted(gains, reverse=True)[:3])
    # The best translation of the model is in the list, and has no larger gain.
    assert choices[0].gain >= gains[0] - 1e-12
    # A string that is listed twice counts with both posteriors.
    doubled = expected_bleu([one.words for one in found] * 2, [one.score for one in found] * 2, config)
    assert doubled.tolist() == pytest.approx(gains * 2)


@given(worlds(dead=False), st.sampled_from([0.5, 1.0]))
def test_bleu_against_expected_counts(world, alpha):
    strings = naive.distribution(*graph_of(world), alpha)
    expected = naive.expected_ngrams(strings, 4)
    length = sum(share * len(words) for words, share in strings.items())
    choices = world.forest.mbr_list(4, "consensus", alpha=alpha, size=9, beam=1e6, metric="nakov-all")
    gains = []
    for one in world.forest.kbest(9):
        words = tuple(one.words.tolist())
        totals = [max(0, len(words) - n) for n in range(4)]
        row = [len(words), length, *naive.expected_matches(words, expected, 4), *totals]
        gains.append(float(sentence_bleu("nakov-all")(np.array([row]))[0]))
    assert [one.gain for one in choices] == pytest.approx(sorted(gains, reverse=True)[:4])


def test_matches_with_expected_counts_are_clipped():
    # "a a b" with 1.5 expected a, 0.25 expected b, and no other n-grams.
    split = split_forest(_list_forest([[0, 0, 1]]), 2)
    names = list(split.words())
    counts = {(0,): 1.5, (1,): 0.25, (0, 0): 0.5, (0, 1): 0.0}
    expected = np.array([counts[one] for one in names])
    match = np.empty((1, 2))
    words = np.array([0, 0, 1], np.int32), np.array([0, 3], np.int64)
    for array in (*words, expected):
        array.flags.writeable = False
    expected_matches_kernel(words[1], words[0], split.key, split.slot, expected, match)
    assert match.tolist() == [naive.expected_matches((0, 0, 1), Counter(counts), 2)] == [[1.75, 0.5]]


def _list_forest(strings):
    """A forest of one node, with an edge for each string."""
    from tests.worlds.strategies import World

    edges = [([], -0.5 * i) for i in range(len(strings))]
    places = list(range(len(strings)))
    world = World([places], edges, places, [[0] for _ in strings], strings, [[] for _ in strings], [(0, 1)])
    return world.forest


def test_the_centre_of_a_list_beats_its_best():
    # The best alone has nothing in common with the others, which agree: 0.39 against 0.24 + 0.21 + 0.16.
    forest = _list_forest([[3, 4, 5, 6], [0, 1, 2, 0], [0, 1, 2, 1], [0, 1, 2]])
    assert forest.viterbi().words.tolist() == [3, 4, 5, 6]
    for rule in ("kbest", "forest", "consensus"):
        assert forest.mbr(rule, alpha=0.5, precision=0.5).words.tolist()[:3] == [0, 1, 2]
    assert forest.mbr("kbest", alpha=100.0).words.tolist() == [3, 4, 5, 6]


def test_errors():
    forest = _list_forest([[0, 1], [1, 0]])
    with pytest.raises(ConfigError, match="mbr: mbr: found 'best', expected one of none, kbest"):
        forest.mbr("best")
    with pytest.raises(ConfigError, match="mbr: found none, expected kbest, forest, consensus"):
        forest.mbr("none")
    with pytest.raises(ConfigError, match="unknown sentence BLEU 'linn'"):
        forest.mbr("kbest", metric="linn")
    with pytest.raises(ValueError, match="order is 0"):
        forest.expected_ngrams(0)
    with pytest.raises(HieroError, match="more than 1 edges"):
        split_forest(forest, 4, max_edges=1)
    empty = _list_forest([])
    assert choose(empty, ConsensusConfig(mbr="forest")) == []
    assert empty.expected_ngrams() == {}
    with pytest.raises(HieroError, match="no derivation"):
        empty.mbr()


def test_references_are_the_list_itself():
    """As with the metric's own functions, one pair at a time."""
    strings = [np.array(one, np.int32) for one in ([0, 1, 2], [0, 1], [2, 1, 0])]
    config = ConsensusConfig(metric="lin")
    found = expected_bleu(strings, [0.0, 0.0, 0.0], config)
    for words, gain in zip(strings, found.tolist(), strict=True):
        pairs = [sentence_bleu("lin")(References([[one]]).statistics(0, [words]))[0] for one in strings]
        assert gain == pytest.approx(sum(pairs) / 3)
