"""PRO: the objective against its twin and finite differences, its minimum against what must hold there."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hiero.errors import ConfigError
from hiero.features import FeatureIndex
from hiero.metrics import sentence_bleu
from hiero.tune.batch import make_batch_learner
from hiero.tune.lists import CandidateLists
from hiero.tune.pairs import Pro as PairSampler
from hiero.tune.pro import PRO, Ranking, differences
from hiero.tune.regularize import Ridge
from hiero.tune.settings import PEERS, TuneConfig
from tests.batch_worlds import NUM_FEATURES, candidate_lists, lists_of, quarters
from tests.naive import batch as naive

weights = st.lists(quarters, min_size=NUM_FEATURES, max_size=NUM_FEATURES).map(np.array)
FEW = PairSampler(draws=60, keep=10, threshold=0.0)


@st.composite
def paired(draw):
    """Lists, pairs of any of their candidates, and what the twin says they differ in."""
    found = draw(lists_of())
    lists, merged = candidate_lists(found), naive.merged(found)
    flat = [candidate for candidates in merged.values() for candidate in candidates]
    place = st.integers(0, len(flat) - 1)
    pairs = draw(st.lists(st.tuples(place, place), max_size=8))
    order = lists.view().order
    expected = [naive.difference(flat[a], flat[b]) for a, b in pairs]
    return lists, order[np.array(pairs, np.int64).reshape(-1, 2)], expected


@given(paired())
def test_differences(world):
    lists, pairs, expected = world
    rows = differences(lists, pairs)
    found = [
        dict(zip(rows.id[a:b].tolist(), rows.value[a:b].tolist(), strict=True))
        for a, b in zip(rows.first[:-1], rows.first[1:], strict=True)
    ]
    assert found == expected
    assert [list(row) for row in found] == [sorted(row) for row in found]


@given(paired(), weights)
def test_loss_and_gradient(world, weight):
    lists, pairs, expected = world
    ranking = Ranking(differences(lists, pairs), weight, [])
    value, gradient = ranking.value_and_gradient(weight[ranking.active])
    loss, slope, errors = naive.logistic_loss(expected, weight.tolist())
    assert value == pytest.approx(loss)
    everywhere = np.zeros(NUM_FEATURES)
    everywhere[ranking.active] = gradient
    assert everywhere == pytest.approx(np.array(slope))
    assert ranking.errors(weight) == errors


@given(paired(), weights, weights)
def test_gradient_is_what_the_value_does(world, before, weight):
    lists, pairs, _ = world
    ranking = Ranking(differences(lists, pairs), before, [Ridge(0.3), Ridge(0.7, before)])
    at = weight[ranking.active]
    _, gradient = ranking.value_and_gradient(at)
    numeric = scipy.optimize.approx_fprime(at, lambda x: ranking.value_and_gradient(x)[0], 1e-6)
    assert gradient == pytest.approx(numeric, abs=1e-4)


def test_large_margins_do_not_overflow():
    stats = [1, 1, 1, 0, 0, 0, 1, 0, 0, 0]
    lists = candidate_lists([(0, [((0,), {0: 1.0}, stats), ((1,), {}, stats)])])
    for pair, weight, loss in (([0, 1], 1e4, 0.0), ([0, 1], -1e4, 1e4), ([1, 0], 1e4, 1e4)):
        ranking = Ranking(differences(lists, np.array([pair])), np.array([weight]), [])
        value, gradient = ranking.value_and_gradient(np.array([weight]))
        assert value == loss
        assert abs(gradient[0]) == (1.0 if loss else 0.0)
    with pytest.raises(IndexError, match="there are 2 candidates, not 2"):
        differences(lists, np.array([[0, 2]]))


@settings(max_examples=30)
@given(paired(), weights, st.sampled_from([0.05, 0.5]))
def test_minimum_is_that_of_another_method(world, before, pull):
    lists, pairs, expected = world
    assume(len(pairs))
    ranking = Ranking(differences(lists, pairs), before, [Ridge(0.1), Ridge(pull, before)])
    learnt, happened = ranking.minimum(200, 10)

    def objective(w):
        ridge = 0.1 * sum(w**2) + pull * sum((w - before) ** 2)
        return naive.logistic_loss(expected, w.tolist())[0] + ridge

    oracle = scipy.optimize.minimize(objective, before, method="BFGS")
    assert objective(learnt) == pytest.approx(happened["objective"])
    assert objective(learnt) <= oracle.fun + 1e-6
    assert learnt == pytest.approx(oracle.x, abs=1e-2)


@settings(max_examples=30)
@given(paired(), weights, st.sampled_from([0.05, 0.5, 5.0]))
def test_l1_meets_the_conditions_of_its_minimum(world, before, l1):
    lists, pairs, _ = world
    assume(len(pairs))
    ranking = Ranking(differences(lists, pairs), before, [Ridge(0.05)], l1)
    learnt, _ = ranking.minimum(1000, 10)
    at = learnt[ranking.active]
    _, gradient = ranking.value_and_gradient(at)
    zero = at == 0
    assert (np.abs(gradient[zero]) <= l1 + 1e-3).all()
    assert gradient[~zero] == pytest.approx(-l1 * np.sign(at[~zero]), abs=1e-3)


@given(lists_of(), st.integers(1, 3), st.integers(0, 5))
def test_pairs_are_of_one_sentence_and_ranked_by_the_metric(found, iteration, seed):
    lists = candidate_lists(found)
    learner = PRO(metric="lin", pairs=FEW)
    pairs = learner.draw(lists, iteration, seed)
    view = lists.view()
    gold = sentence_bleu("lin")(view.statistics)
    assert (gold[pairs[:, 0]] > gold[pairs[:, 1]]).all()
    sentence = np.empty(len(lists), np.int64)
    sentence[view.order] = np.repeat(view.number, np.diff(view.first_place))
    assert (sentence[pairs[:, 0]] == sentence[pairs[:, 1]]).all()
    assert (np.diff(sentence[pairs[:, 0]]) >= 0).all()
    assert learner.draw(lists, iteration, seed).tolist() == pairs.tolist()


def separable():
    """Feature 0 is good, 1 is bad, 2 says nothing; 9 is met nowhere."""
    rows = []
    for sentence in range(12):
        mine = []
        for good in range(5):
            features = {0: float(good), 1: float(4 - good), 2: float((sentence + good) % 2)}
            stats = [4, 4, good, max(0, good - 1), max(0, good - 2), max(0, good - 3), 4, 3, 2, 1]
            mine.append(((sentence, good), {f: v for f, v in features.items() if v}, stats))
        rows.append((sentence, mine))
    return candidate_lists(rows)


def configured(**keys):
    """What a configuration makes."""
    return make_batch_learner(TuneConfig(algorithm="pro", **keys).resolved(), FeatureIndex(), 1)


@pytest.mark.parametrize("peer", [None, *PEERS])
def test_peers_learn_what_is_good(peer):
    lists, start = separable(), np.zeros(10)
    learnt, happened = configured(peer=peer).fit(lists, start, 1, 7)
    assert not start.any()
    assert learnt[0] > 0 > learnt[1]
    assert abs(learnt[2]) < learnt[0] / 2
    assert happened["errors_after"] == 0 < happened["errors"] == happened["pairs"]
    assert happened["predicted_bleu"] == lists.bleu(learnt) == lists.bleu(np.array([1.0, 0, 0]))
    again, _ = configured(peer=peer).fit(lists, start, 1, 7)
    assert again.tolist() == learnt.tolist()


def test_keys_reach_what_they_say():
    cdec = configured(peer="cdec", buffers=7)
    sampler = PairSampler(threshold=0.0, soft=True, length_deviations=2.0, seed=0)
    assert cdec == PRO(metric="cdec-ibm", pairs=sampler, l2=250.0, pull=2500.0, buffers=7)
    moses = configured(peer="moses", soft=True, keep=3)
    sampler = PairSampler(soft=True, keep=3, seed=0)
    assert moses == PRO(metric="moses", pairs=sampler, l2=0.25, iterations=30)
    paper = configured(peer="hopkins-may", l2=0.5)
    assert paper == PRO(metric="lin", pairs=PairSampler(seed=0), l2=0.5, interpolation=0.1)
    assert configured() == PRO(metric="lin", pairs=PairSampler(seed=0), l2=0.1)
    lists, before = separable(), np.ones(10)
    few, happened = configured(iterations=1).fit(lists, before, 1, 1)
    many, _ = configured().fit(lists, before, 1, 1)
    assert happened["iterations"] == 1
    half, _ = configured(interpolation=0.5).fit(lists, before, 1, 1)
    assert half == pytest.approx(0.5 * many + 0.5 * before)
    assert few.tolist() != many.tolist()


def test_wrong_keys():
    with pytest.raises(ConfigError, match="peer: found cdec with sgd, expected pro"):
        TuneConfig(peer="cdec")
    with pytest.raises(ConfigError, match=r"interpolation: found 1\.5, expected more than 0 and at most 1"):
        TuneConfig(algorithm="pro", interpolation=1.5)
    with pytest.raises(ConfigError, match="buffers: found 0, expected at least 1"):
        TuneConfig(algorithm="pro", buffers=0)


def test_what_keeps_weights():
    lists, before = separable(), np.array([-1.0, 0, 0, 0, 0, 0, 0, 0, 0, 2.0])
    free = PRO(l2=0.01, pairs=FEW).fit(lists, before, 1, 1)[0]
    held = PRO(l2=0.01, pull=1e6, pairs=FEW).fit(lists, before, 1, 1)[0]
    assert held == pytest.approx(before, abs=1e-2)
    assert free[0] > 0
    assert free[9] == pytest.approx(0, abs=1e-3)  # met nowhere: only the ridge has a say
    tenth = PRO(l2=0.01, interpolation=0.1, pairs=FEW).fit(lists, before, 1, 1)[0]
    assert tenth == pytest.approx(0.1 * free + 0.9 * before)
    sparse, happened = PRO(l2=0.0, l1=3.0, pairs=FEW).fit(lists, before, 1, 1)
    assert sparse[2] == sparse[9] == 0
    assert happened["nonzero"] == np.count_nonzero(sparse) < 3
    lasting = PRO(l2=0.01, pairs=FEW, others=[Tie()]).fit(lists, before, 1, 1)[0]
    assert lasting[8] == pytest.approx(lasting[0], abs=1e-2)


class Tie:
    """A structured term: feature 8, which is met nowhere, shall weigh as much as feature 0."""

    def features(self):
        return np.array([8])

    def value_and_gradient(self, weight):
        gradient = np.zeros(len(weight))
        gradient[0], gradient[8] = 2e3 * (weight[0] - weight[8]), 2e3 * (weight[8] - weight[0])
        return 1e3 * (weight[0] - weight[8]) ** 2, gradient


def test_nothing_to_compare():
    before = np.array([1.0, -1.0])
    stats = [1, 1, 1, 0, 0, 0, 1, 0, 0, 0]
    for lists in (CandidateLists(), candidate_lists([(0, [((0,), {0: 1.0}, stats), ((1,), {}, stats)])])):
        learnt, happened = PRO().fit(lists, before, 1, 1)
        assert learnt.tolist() == before.tolist()
        assert happened["pairs"] == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metric": "lian"}, "unknown sentence BLEU 'lian'; did you mean 'liang'"),
        ({"l2": -1.0}, "l2: found -1.0, expected 0 or more"),
        ({"iterations": 0}, "iterations: found 0, expected at least 1"),
        ({"interpolation": 0.0}, "interpolation: found 0.0, expected more than 0"),
    ],
)
def test_wrong_settings(wrong, message):
    with pytest.raises(ConfigError, match=message):
        PRO(**wrong)
