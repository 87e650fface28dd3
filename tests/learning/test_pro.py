"""PRO: the objective against its twin and finite differences, and conditions at its minimum."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hiero.core.errors import ConfigError
from hiero.evaluation.bleu import sentence_bleu
from hiero.learning.config import PEERS, TuneConfig
from hiero.learning.learner import LearnerContext, make_learner
from hiero.learning.lists import CandidateLists
from hiero.learning.newton import Curvature
from hiero.learning.pairs import SampledPairs
from hiero.learning.pro import Differences, ProLearner, Ranking, pro_differences
from hiero.learning.regularize import Neighbours, Ridge
from tests.naive import batch as naive
from tests.worlds.batch import NUM_FEATURES, candidate_lists, lists_of, quarters

weights = st.lists(quarters, min_size=NUM_FEATURES, max_size=NUM_FEATURES).map(np.array)
FEW = SampledPairs(draws=60, keep=10, threshold=0.0)


@st.composite
def paired(draw):
    """Lists, pairs of any of their candidates, and the differences computed by the twin."""
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
    rows = pro_differences(lists, pairs)
    found = [
        dict(zip(rows.id[a:b].tolist(), rows.value[a:b].tolist(), strict=True))
        for a, b in zip(rows.first[:-1], rows.first[1:], strict=True)
    ]
    assert found == expected
    assert [list(row) for row in found] == [sorted(row) for row in found]


@given(paired(), weights)
def test_loss_and_gradient(world, weight):
    lists, pairs, expected = world
    ranking = Ranking(pro_differences(lists, pairs), weight, [])
    value, gradient = ranking.value_and_gradient(weight[ranking.active])
    loss, slope, errors = naive.logistic_loss(expected, weight.tolist())
    assert value == pytest.approx(loss)
    everywhere = np.zeros(NUM_FEATURES)
    everywhere[ranking.active] = gradient
    assert everywhere == pytest.approx(np.array(slope))
    assert ranking.errors(weight) == errors


@given(paired(), weights, weights)
def test_gradient_equals_finite_differences(world, before, weight):
    lists, pairs, _ = world
    ranking = Ranking(pro_differences(lists, pairs), before, [Ridge(0.3), Ridge(0.7, before)])
    at = weight[ranking.active]
    _, gradient = ranking.value_and_gradient(at)
    numeric = scipy.optimize.approx_fprime(at, lambda x: ranking.value_and_gradient(x)[0], 1e-6)
    assert gradient == pytest.approx(numeric, abs=1e-4)


@given(paired(), weights, weights)
def test_second_derivatives(world, before, weight):
    """Without the l1 term: the explicit entries, and the product of the whole matrix and a vector."""
    lists, pairs, expected = world
    chain = np.array([4, 0, 2, 3])
    terms = [Ridge(0.3), Ridge(0.7, before), Neighbours(groups=[chain], strength=5.0)]
    ranking = Ranking(pro_differences(lists, pairs), before, terms)
    assert ranking.active[: len(chain)].tolist() == chain.tolist()
    matrix = np.array(naive.logistic_curvature(expected, weight.tolist())) + np.eye(NUM_FEATURES) * 2.0
    diagonal = np.diag(matrix).copy()
    for triple in (chain[:3], chain[1:]):
        bend = np.zeros(NUM_FEATURES)
        bend[triple] = 0.5, -1.0, 0.5
        matrix += 10.0 * np.outer(bend, bend)
        diagonal += 10.0 * bend * bend
    at = weight[ranking.active]
    model = ranking.model(at)
    here = matrix[np.ix_(ranking.active, ranking.active)]
    for vector in np.eye(len(at)):
        assert model.times(vector) == pytest.approx(here @ vector)
        assert vector @ model.known.times(vector) == pytest.approx(vector @ diagonal[ranking.active])


def test_second_derivatives_at_given_weights():
    """They are not those at the weights evaluated last."""
    made, random = curve(5, 10.0, 2.0), np.random.default_rng(0)
    first, second = random.normal(size=(2, 5))
    vector = random.normal(size=5)
    expected = made.model(first).times(vector)
    made.value_and_gradient(second)
    assert made.model(first).times(vector).tolist() == expected.tolist()
    assert made.model(second).times(vector).tolist() != expected.tolist()


def test_large_margins_do_not_overflow():
    stats = [1, 1, 1, 0, 0, 0, 1, 0, 0, 0]
    lists = candidate_lists([(0, [((0,), {0: 1.0}, stats), ((1,), {}, stats)])])
    for pair, weight, loss in (([0, 1], 1e4, 0.0), ([0, 1], -1e4, 1e4), ([1, 0], 1e4, 1e4)):
        ranking = Ranking(pro_differences(lists, np.array([pair])), np.array([weight]), [])
        value, gradient = ranking.value_and_gradient(np.array([weight]))
        assert value == loss
        assert abs(gradient[0]) == (1.0 if loss else 0.0)
        assert ranking.model(np.array([weight])).diagonal.tolist() == [0.0]
    with pytest.raises(IndexError, match="there are 2 candidates, not 2"):
        pro_differences(lists, np.array([[0, 2]]))


@settings(max_examples=30)
@given(paired(), weights, st.sampled_from([0.05, 0.5]))
def test_minimum_equals_that_of_another_method(world, before, pull):
    lists, pairs, expected = world
    assume(len(pairs))
    ranking = Ranking(pro_differences(lists, pairs), before, [Ridge(0.1), Ridge(pull, before)])
    learnt, happened = ranking.minimum(200, 10)

    def objective(w):
        ridge = 0.1 * sum(w**2) + pull * sum((w - before) ** 2)
        return naive.logistic_loss(expected, w.tolist())[0] + ridge

    oracle = scipy.optimize.minimize(objective, before, method="BFGS")
    assert objective(learnt) == pytest.approx(happened["objective"])
    assert objective(learnt) <= oracle.fun + 1e-6
    assert learnt == pytest.approx(oracle.x, abs=1e-2)


@settings(max_examples=30)
@given(paired(), weights, st.sampled_from([1.0, 1000.0]), st.sampled_from([None, 2.0]))
def test_minimum_with_neighbours_equals_that_of_another_method(world, before, beta, gamma):
    lists, pairs, _ = world
    term = Neighbours(groups=[np.array([1, 0, 3, 2])], strength=beta, gamma=gamma)
    ranking = Ranking(pro_differences(lists, pairs), before, [Ridge(0.1), term])
    learnt, happened = ranking.minimum(200, 10)
    assert happened["converged"]
    at = learnt[ranking.active]
    value, _ = ranking.value_and_gradient(at)
    assert value == happened["objective"]
    oracle = scipy.optimize.minimize(ranking.value_and_gradient, at, jac=True, method="BFGS")
    assert value <= oracle.fun + 1e-6
    if gamma is None:  # there is one minimum
        far = scipy.optimize.minimize(ranking.value_and_gradient, at + 1, jac=True, method="BFGS")
        assert value <= far.fun + 1e-6


def curve(number, beta, gamma=None):
    """Pairs whose optimum is a curve of weights over many bins, with much noise."""
    random = np.random.default_rng(3)
    bins = random.integers(0, number, (4000, 2))
    better = random.random(4000) < 1 / (1 + np.exp(-(np.log1p(bins[:, 0]) - np.log1p(bins[:, 1]))))
    bins[~better] = bins[~better, ::-1]
    bins = bins[bins[:, 0] != bins[:, 1]]
    ids = bins.ravel().astype(np.int32)
    value = np.tile([1.0, -1.0], len(bins))
    rows = Differences(np.arange(len(bins) + 1) * 2, ids, value)
    term = Neighbours(groups=[np.arange(number)], strength=beta, gamma=gamma)
    return Ranking(rows, np.zeros(number), [Ridge(0.1), term])


@pytest.mark.heavy
@pytest.mark.parametrize("beta", [1e3, 1e6, 1e9])
def test_convergence_with_many_neighbours(beta):
    """A straight line has no penalty, so that the minimum is no worse than the best line."""
    ranking = curve(100, beta)
    learnt, happened = ranking.minimum(30, 10)
    assert happened["converged"]
    line = scipy.optimize.minimize(
        lambda x: ranking.value_and_gradient(x[0] + x[1] * np.arange(100))[0], np.zeros(2)
    )
    assert happened["objective"] <= line.fun + 1e-6
    assert np.ptp(learnt) > 1.0


@pytest.mark.parametrize("steps", [1, 4, 10])
def test_steps_of_both_stages_are_counted(steps):
    """The convex relaxation, which comes first, and the term itself together take more than ten steps."""
    _, happened = curve(100, 1e9, 2.0).minimum(steps, 10)
    assert (happened["iterations"], happened["converged"]) == (steps, False)


@pytest.mark.heavy
def test_lbfgs_where_newton_does_not_apply():
    """An l1 term, which has no second derivatives, and a term whose gradient is not that of its value."""
    made = curve(10, 1.0)
    smooth, _ = made.minimum(200, 10)
    sparse, happened = Ranking(made.rows, np.zeros(10), made.terms, l1=1e4).minimum(200, 10)
    assert happened["converged"]
    assert smooth.all()
    assert not sparse.any()
    hard = curve(100, 1e9)
    line, _ = hard.minimum(200, 10)
    shrunk, happened = Ranking(hard.rows, np.zeros(100), hard.terms, l1=1.0).minimum(200, 10)
    assert 0.9 * np.ptp(line) < np.ptp(shrunk) <= np.ptp(line)
    assert happened["objective"] <= hard.value_and_gradient(line)[0] + np.abs(line).sum()
    released = Neighbours(groups=[np.arange(10)], strength=1.0, variant="released")
    pulled, _ = Ranking(made.rows, np.zeros(10), [*made.terms, released]).minimum(200, 10)
    assert 0 < np.ptp(pulled) < np.ptp(smooth)


def test_lbfgs_without_neighbours():
    made = curve(10, 1.0)
    for terms in ([Ridge(0.1)], [Ridge(0.1), Neighbours(groups=[np.arange(2)], strength=1.0)]):
        ranking = Ranking(made.rows, np.zeros(10), terms)
        assert (
            ranking.minimum(200, 10)[0][ranking.active].tolist()
            == ranking._by_lbfgs(np.zeros(10), 200, 10).x.tolist()
        )


@pytest.mark.heavy
def test_monotone_minima_hardly_depend_on_the_start():
    """There are many minima, but the convex relaxation that comes first has one."""
    zero = curve(40, 1e4, 2.0)
    _, happened = zero.minimum(200, 10)
    for seed in range(3):
        start = np.random.default_rng(seed).normal(size=40) * 3
        _, other = Ranking(zero.rows, start, zero.terms).minimum(200, 10)
        assert other["objective"] == pytest.approx(happened["objective"], rel=1e-9)


@settings(max_examples=30)
@given(paired(), weights, st.sampled_from([0.05, 0.5, 5.0]))
def test_l1_meets_the_conditions_of_its_minimum(world, before, l1):
    lists, pairs, _ = world
    assume(len(pairs))
    ranking = Ranking(pro_differences(lists, pairs), before, [Ridge(0.05)], l1)
    learnt, _ = ranking.minimum(1000, 10)
    at = learnt[ranking.active]
    _, gradient = ranking.value_and_gradient(at)
    zero = at == 0
    assert (np.abs(gradient[zero]) <= l1 + 1e-3).all()
    assert gradient[~zero] == pytest.approx(-l1 * np.sign(at[~zero]), abs=1e-3)


def test_l1_does_not_stop_early():
    """L-BFGS-B stops after a step without gain, before one weight is 0."""
    long = [-1.5, -1.5, -1.0, -2.25, -0.75]
    rows = [([0, 3], [-0.5, 1.0]), ([0, 3], [0.5, -1.0]), (range(5), long), (range(5), long)]
    ids = np.concatenate([np.array(ids, np.int32) for ids, _ in rows])
    value = np.concatenate([values for _, values in rows])
    before = np.array([0.75, 1.75, 1.25, 0.75, 0.5])
    ranking = Ranking(Differences(np.array([0, 2, 4, 9, 14]), ids, value), before, [Ridge(0.05)], 0.5)
    learnt, happened = ranking.minimum(1000, 10)
    assert happened["converged"]
    assert np.flatnonzero(learnt).tolist() == [0, 3]
    assert ranking.value_and_gradient(learnt)[1][[0, 3]] == pytest.approx(0.5, abs=1e-5)


@given(lists_of(), st.integers(1, 3), st.integers(0, 5))
def test_pairs_are_of_one_sentence_and_ranked_by_the_metric(found, iteration, seed):
    lists = candidate_lists(found)
    learner = ProLearner(metric="lin", pairs=FEW)
    pairs = learner.draw(lists, iteration, seed)
    view = lists.view()
    gold = sentence_bleu("lin")(view.statistics)
    assert (gold[pairs[:, 0]] > gold[pairs[:, 1]]).all()
    sentence = np.empty(len(lists), np.int64)
    sentence[view.order] = np.repeat(view.number, np.diff(view.first_place))
    assert (sentence[pairs[:, 0]] == sentence[pairs[:, 1]]).all()
    assert (np.diff(sentence[pairs[:, 0]]) >= 0).all()
    assert learner.draw(lists, iteration, seed).tolist() == pairs.tolist()


@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_nan_ends_the_search(l1):
    ranking = Ranking(
        Differences(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1)), np.full(1, np.nan), [], l1
    )
    _, happened = ranking.minimum(10, 5)
    assert (happened["iterations"], happened["converged"]) == (0, False)


def separable():
    """Feature 0 is good, 1 is bad, 2 is uninformative; 9 does not occur."""
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
    """The learner that a configuration describes."""
    return make_learner(TuneConfig(algorithm="pro", **keys).resolved(), LearnerContext())


@pytest.mark.parametrize("peer", [None, *(pytest.param(peer, marks=pytest.mark.heavy) for peer in PEERS)])
def test_peers_learn_good_and_bad_features(peer):
    lists, start = separable(), np.zeros(10)
    learnt, happened = configured(peer=peer).fit(lists, start, 1, 7)
    assert not start.any()
    assert learnt[0] > 0 > learnt[1]
    assert abs(learnt[2]) < learnt[0] / 2
    assert happened["errors_after"] == 0 < happened["errors"] == happened["pairs"]
    assert happened["predicted_bleu"] == lists.bleu(learnt) == lists.bleu(np.array([1.0, 0, 0]))
    again, _ = configured(peer=peer).fit(lists, start, 1, 7)
    assert again.tolist() == learnt.tolist()


def test_keys_set_the_attributes():
    cdec = configured(peer="cdec", buffers=7)
    sampler = SampledPairs(threshold=0.0, soft=True, length_deviations=2.0, seed=0)
    assert cdec == ProLearner(metric="cdec-ibm", pairs=sampler, l2=250.0, pull=2500.0, buffers=7)
    moses = configured(peer="moses", soft=True, keep=3)
    sampler = SampledPairs(soft=True, keep=3, seed=0)
    assert moses == ProLearner(metric="moses", pairs=sampler, l2=0.25, iterations=30)
    paper = configured(peer="hopkins-may", l2=0.5)
    assert paper == ProLearner(metric="lin", pairs=SampledPairs(seed=0), l2=0.5, interpolation=0.1)
    assert configured() == ProLearner(metric="lin", pairs=SampledPairs(seed=0), l2=25.0, min_count=3)
    lists, before = separable(), np.ones(10)
    few, happened = configured(iterations=1).fit(lists, before, 1, 1)
    many, _ = configured().fit(lists, before, 1, 1)
    assert (happened["iterations"], happened["converged"]) == (1, False)
    half, _ = configured(interpolation=0.5).fit(lists, before, 1, 1)
    assert half == pytest.approx(0.5 * many + 0.5 * before)
    assert few.tolist() != many.tolist()


def test_wrong_keys():
    with pytest.raises(ConfigError, match="peer works with pro, not with sgd"):
        TuneConfig(peer="cdec")
    with pytest.raises(ConfigError, match=r"interpolation: found 1\.5, expected more than 0 and at most 1"):
        TuneConfig(algorithm="pro", interpolation=1.5)
    with pytest.raises(ConfigError, match="buffers: found 0, expected at least 1"):
        TuneConfig(algorithm="pro", buffers=0)


def test_regularization_and_interpolation():
    lists, before = separable(), np.array([-1.0, 0, 0, 0, 0, 0, 0, 0, 0, 2.0])
    free = ProLearner(l2=0.01, pairs=FEW).fit(lists, before, 1, 1)[0]
    held = ProLearner(l2=0.01, pull=1e6, pairs=FEW).fit(lists, before, 1, 1)[0]
    assert held == pytest.approx(before, abs=1e-2)
    assert free[0] > 0
    assert free[9] == pytest.approx(0, abs=1e-3)  # does not occur: only the ridge applies
    tenth = ProLearner(l2=0.01, interpolation=0.1, pairs=FEW).fit(lists, before, 1, 1)[0]
    assert tenth == pytest.approx(0.1 * free + 0.9 * before)
    sparse, happened = ProLearner(l2=0.0, l1=3.0, pairs=FEW).fit(lists, before, 1, 1)
    assert sparse[2] == sparse[9] == 0
    assert happened["nonzero"] == np.count_nonzero(sparse) < 3
    lasting = ProLearner(l2=0.01, pairs=FEW, terms=[Tie()]).fit(lists, before, 1, 1)[0]
    assert lasting[8] == pytest.approx(lasting[0], abs=1e-2)


class Tie:
    """A structured term: feature 8, which does not occur, is drawn to the weight of feature 0."""

    def features(self):
        return np.array([8])

    def value_and_gradient(self, weight):
        gradient = np.zeros(len(weight))
        gradient[0], gradient[8] = 2e3 * (weight[0] - weight[8]), 2e3 * (weight[8] - weight[0])
        return 1e3 * (weight[0] - weight[8]) ** 2, gradient

    def curvature(self, weight):
        block = np.array([[2e3, -2e3, 0], [-2e3, 2e3, 0], [0, 0, 0]])
        return Curvature(np.zeros(len(weight)), np.array([[0, 8, 3]]), block[None])

    def relaxed(self):
        return self


def test_the_prior_of_the_preset_is_that_of_the_authors_program():
    """Their objective has each pair twice, once in each order, and a prior with standard deviation 0.1."""
    lists, weight = separable(), np.linspace(-0.1, 0.1, 10)
    learner = configured()
    pairs = learner.draw(lists, 1, 1)
    rows = pro_differences(lists, pairs)
    ranking = Ranking(rows, weight, [Ridge(learner.l2)])
    value, _ = ranking.value_and_gradient(weight[ranking.active])
    margins = np.add.reduceat(rows.value * weight[rows.id], rows.first[:-1])
    labels = np.concatenate([np.ones(len(margins)), -np.ones(len(margins))])
    logistic = np.log1p(np.exp(-labels * np.concatenate([margins, -margins]))).sum()
    assert 2 * value == pytest.approx(logistic + (weight**2 / (2 * 0.1**2)).sum())


def is_dense(size):
    return np.arange(size) == 1


def test_features_of_few_sentences_get_no_weight():
    """As if no translation had them; dense features and those of terms are kept."""
    rows = []
    for number in range(3):
        stats = [4, 4, 4, 3, 2, 1, 4, 3, 2, 1], [4, 4, 1, 0, 0, 0, 4, 3, 2, 1]
        rare = {1: 1.0, 2: 1.0, 3: 1.0} if number < 2 else {}
        rows.append((number, [((0,), {0: 1.0, **rare}, stats[0]), ((1,), {}, stats[1])]))
    lists, before = candidate_lists(rows), np.array([0.0, 0.0, 0.5, 0.0])
    learner = ProLearner(l2=0.1, min_count=3, pairs=FEW, is_dense=is_dense)
    learnt, _ = learner.fit(lists, before, 1, 1)
    assert learnt[2] == learnt[3] == 0 < learnt[1] < learnt[0]
    without = [(n, [(w, {f: v for f, v in x.items() if f < 2}, s) for w, x, s in mine]) for n, mine in rows]
    expected, _ = ProLearner(l2=0.1, pairs=FEW).fit(candidate_lists(without), np.zeros(2), 1, 1)
    assert learnt[:2] == pytest.approx(expected)
    few, _ = ProLearner(l2=0.1, min_count=2, pairs=FEW, is_dense=is_dense).fit(lists, before, 1, 1)
    assert (few > 0).all()
    tied = ProLearner(l2=0.1, min_count=3, pairs=FEW, is_dense=is_dense, terms=[Chain()])
    assert tied.fit(lists, before, 1, 1)[0][3] > 0


class Chain(Ridge):
    """A term of feature 3."""

    def __init__(self):
        super().__init__(0.0)

    def features(self):
        return np.array([3])


def test_sparse_features_have_an_l2_of_their_own():
    lists, before = separable(), np.zeros(10)
    both, _ = ProLearner(l2=0.1, pairs=FEW).fit(lists, before, 1, 1)
    same, _ = ProLearner(l2=0.1, l2_sparse=0.1, pairs=FEW, is_dense=is_dense).fit(lists, before, 1, 1)
    assert same.tolist() == both.tolist()
    learnt, _ = ProLearner(l2=0.1, l2_sparse=1e6, pairs=FEW, is_dense=is_dense).fit(lists, before, 1, 1)
    assert learnt[1] < both[1] < 0
    assert np.abs(np.delete(learnt, 1)).max() < 1e-3


def test_no_pairs():
    before = np.array([1.0, -1.0])
    stats = [1, 1, 1, 0, 0, 0, 1, 0, 0, 0]
    for lists in (CandidateLists(), candidate_lists([(0, [((0,), {0: 1.0}, stats), ((1,), {}, stats)])])):
        learnt, happened = ProLearner().fit(lists, before, 1, 1)
        assert learnt.tolist() == before.tolist()
        assert happened["pairs"] == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metric": "lian"}, "unknown sentence BLEU 'lian'; did you mean 'liang'"),
        ({"l2": -1.0}, "l2: found -1.0, expected at least 0"),
        ({"iterations": 0}, "iterations: found 0, expected at least 1"),
        ({"interpolation": 0.0}, "interpolation: found 0.0, expected more than 0"),
    ],
)
def test_wrong_settings(wrong, message):
    with pytest.raises(ConfigError, match=message):
        ProLearner(**wrong)
