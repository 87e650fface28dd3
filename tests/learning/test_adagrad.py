"""AdaGrad with L1: lazy equals eager, gradients equal finite differences, small problems are learnt."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.core.errors import ConfigError
from hiero.learning.adagrad import AdaGradLearner, summed_gradient
from hiero.learning.candidates import NotFinite
from hiero.learning.pairs import AllPairs, Loss, SampledPairs
from tests.naive import learn as naive
from tests.worlds.learn import (
    FEATURES,
    ROWS,
    WEIGHTS,
    FixedGold,
    as_dict,
    as_vector,
    example,
    sentences,
)

SETTINGS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([0.02, 0.5]),
        "l1": st.sampled_from([0.0, 0.1, 1.0]),
        "epsilon": st.sampled_from([0.0, 1e-3]),
        "adaptive": st.booleans(),
    }
)
TOY_ROWS = [{0: 1.0, 1: 0.5}, {0: 0.5, 2: 1.0}, {1: 1.0, 3: 1.0}, {2: 1.0, 3: 0.5}]


def as_gradient(step: naive.Sparse) -> tuple[np.ndarray, np.ndarray]:
    return np.array(list(step), np.int32), np.array(list(step.values()), np.float64)


@given(st.lists(ROWS, max_size=12), WEIGHTS, SETTINGS, st.booleans(), st.data())
def test_lazy_equals_eager(
    steps: list[naive.Sparse], start: list[float], chosen: dict, lazy: bool, data: st.DataObject
) -> None:
    learner, weight = AdaGradLearner(**chosen, lazy=lazy), np.array(start)
    eager = naive.Eager(dict(enumerate(start)), **chosen)
    for step in steps:
        learner.apply(*as_gradient(step), weight)
        eager.step(step)
        np.testing.assert_allclose(learner.snapshot(weight), as_vector(eager.weight), rtol=0, atol=1e-12)
        if not lazy:
            np.testing.assert_allclose(weight, as_vector(eager.weight), rtol=0, atol=1e-12)
        if data.draw(st.booleans()):
            learner.settle(weight)
            np.testing.assert_allclose(weight, as_vector(eager.weight), rtol=0, atol=1e-12)
    learner.end_epoch(weight)
    np.testing.assert_allclose(weight, as_vector(eager.weight), rtol=0, atol=1e-12)


def test_a_thousand_idle_steps_at_once() -> None:
    learner, weight = AdaGradLearner(rate=0.02, l1=1e-3), np.array([1.0, 0.0])
    eager = naive.Eager({0: 1.0, 1: 0.0}, 0.02, 1e-3, 0.0, True)
    for step in [{0: 0.5}, *[{1: 0.25}] * 1000, {0: 0.125}]:
        learner.apply(*as_gradient(step), weight)
        eager.step(step)
    learner.settle(weight)
    assert 0 < weight[0] < 0.95
    np.testing.assert_allclose(weight, list(eager.weight.values()), rtol=0, atol=1e-12)


@settings(max_examples=25)
@given(st.lists(st.lists(sentences(2, 6), min_size=1, max_size=3), max_size=4), WEIGHTS, SETTINGS)
def test_learning_equals_the_twin(
    epoch: list[list[tuple[list[naive.Sparse], list[float]]]], start: list[float], chosen: dict
) -> None:
    """Each sentence is ranked with the weights of eager application, also while updates are pending."""
    loss = Loss(name="logistic")
    eager, weight = naive.Eager(dict(enumerate(start)), **chosen), np.array(start)
    gold = FixedGold([])
    learner = AdaGradLearner(gold=gold, pairing=AllPairs(), loss=loss, **chosen)
    lost = twin_lost = 0.0
    for batch in epoch:
        scores = {number: score for number, (_, score) in enumerate(batch)}
        gold.scores = lambda one, scores=scores: np.array(scores[one.number])  # type: ignore[method-assign]
        lost += learner.learn([example(rows, number=i) for i, (rows, _) in enumerate(batch)], weight).loss
        total: naive.Sparse = {}
        for rows, score in batch:
            pairs = [(a, b) for a in range(len(rows)) for b in range(len(rows)) if score[a] > score[b]]
            ones = [1.0] * len(pairs)
            here, slope = naive.gradient(rows, pairs, ones, ones, "logistic", eager.weight)
            twin_lost += here
            naive.shift(total, slope, 1.0)
        eager.step({feature: value for feature, value in total.items() if abs(value) > 1e-10})
    learner.end_epoch(weight)
    # Sums in another order differ by rounding, to which AdaGrad's first step is not sensitive.
    np.testing.assert_allclose(weight, as_vector(eager.weight), rtol=0, atol=1e-8)
    assert lost == pytest.approx(twin_lost, abs=1e-6)


@given(st.lists(sentences(2), min_size=1, max_size=3), WEIGHTS)
def test_gradients_equal_finite_differences(
    batch: list[tuple[list[naive.Sparse], list[float]]], start: list[float]
) -> None:
    learner = AdaGradLearner(pairing=SampledPairs(threshold=0.0, draws=50, keep=15))
    examples = [example(rows, number=number) for number, (rows, _) in enumerate(batch)]
    weight = np.array(start)
    ids, values, report = learner.gradient(examples, weight)
    assert ids.tolist() == sorted(set(ids.tolist()))
    assert report.sentences == len(batch)
    analytic = np.zeros(FEATURES)
    analytic[ids] = values

    def lost(at: np.ndarray) -> float:
        return learner.gradient(examples, at).report.loss

    step = 1e-5
    numeric = [(lost(weight + step * e) - lost(weight - step * e)) / (2 * step) for e in np.eye(FEATURES)]
    np.testing.assert_allclose(analytic, numeric, rtol=1e-5, atol=1e-6)


def test_gradients_that_cancel_between_sentences_are_zero() -> None:
    """AdaGrad's first step is as long for 1e-17 as for 1."""
    ids, values = summed_gradient(np.array([5, 1, 5, 1, 5], np.int32), np.array([0.1, 2.0, 0.2, 3.0, -0.3]))
    assert (ids.tolist(), values.tolist()) == ([1], [5.0])
    assert ids.dtype == np.int32


def test_stale_gradients_without_delay_equal_learning() -> None:
    """Threads may compute gradients at the same time."""
    examples = [example(TOY_ROWS, number=number) for number in range(6)]
    batches = [examples[:2], examples[2:4], examples[4:]]
    straight, weight = AdaGradLearner(l1=0.01), np.zeros(FEATURES)
    apart, other = AdaGradLearner(l1=0.01), np.zeros(FEATURES)
    for batch in batches * 3:
        straight.learn(batch, weight)
        found = apart.gradient(batch, apart.snapshot(other))
        apart.apply(found.id, found.value, other)
    straight.end_epoch(weight)
    apart.end_epoch(other)
    assert weight.any()
    np.testing.assert_allclose(weight, other, rtol=0, atol=1e-12)

    snapshot = apart.snapshot(other)
    with ThreadPoolExecutor(3) as threads:
        stale = list(threads.map(lambda batch: apart.gradient(batch, snapshot), batches))
    for batch, found in zip(batches, stale, strict=True):
        again = apart.gradient(batch, snapshot)
        np.testing.assert_array_equal(found.id, again.id)
        np.testing.assert_array_equal(found.value, again.value)


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_separable_data_is_learnt_and_noise_stays_at_zero(adaptive: bool, l1: float) -> None:
    """Feature 4 is noise: its sign varies."""
    learner = AdaGradLearner(pairing=AllPairs(), rate=0.1 if adaptive else 0.02, l1=l1, adaptive=adaptive)
    weight = np.zeros(5)
    for number in range(60):
        noisy = [{**row, 4: 0.05 if (number + place) % 2 else -0.05} for place, row in enumerate(TOY_ROWS)]
        learner.learn([example(noisy, number=number)], weight)
    learner.end_epoch(weight)
    scores = [naive.dot(as_dict(weight), row) for row in TOY_ROWS]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 4
    if l1 and adaptive:
        assert weight[4] == 0


def test_room_for_new_features() -> None:
    """Appending features does not change the weights."""
    learner, weight = AdaGradLearner(l1=0.01), np.zeros(4)
    roomy, wide = AdaGradLearner(l1=0.01), np.zeros(20)
    later = [{**TOY_ROWS[0], 17: 1.0}, *TOY_ROWS[1:]]
    for rows in (TOY_ROWS, later, TOY_ROWS):
        if rows is later:
            weight = np.concatenate([weight, np.zeros(16)])
        learner.learn([example(rows)], weight)
        roomy.learn([example(rows)], wide)
    np.testing.assert_array_equal(weight, wide)
    assert weight[17] != 0
    assert len(learner.state()["square"]) == len(learner.state()["idle"]) == 20


def test_a_restored_learner_continues_identically() -> None:
    def epoch(learner: AdaGradLearner, weight: np.ndarray) -> None:
        for number in range(4):
            learner.learn([example(TOY_ROWS, number=number)], weight)
        learner.end_epoch(weight)

    straight, weight = AdaGradLearner(l1=0.01), np.zeros(FEATURES)
    first, broken = AdaGradLearner(l1=0.01), np.zeros(FEATURES)
    for _ in range(3):
        epoch(straight, weight)
    epoch(first, broken)
    kept = first.state()
    first.learn([example(TOY_ROWS)], broken.copy())  # the saved state must not change
    second = AdaGradLearner(l1=0.01)
    second.restore(kept)
    epoch(second, broken)
    epoch(second, broken)
    np.testing.assert_array_equal(weight, broken)
    assert (second.epoch, second.steps) == (3, 12)


def test_batches_without_pairs_apply_l1() -> None:
    learner, weight = AdaGradLearner(rate=0.1, l1=0.1), np.zeros(FEATURES)
    learner.learn([example(TOY_ROWS)], weight)
    learner.settle(weight)
    before = np.abs(weight).sum()
    report = learner.learn([example(TOY_ROWS[:1]), example(TOY_ROWS[:2], [[9], [8]])], weight)
    learner.settle(weight)
    assert (report.sentences, report.unpaired, report.equal, report.updates) == (2, 2, 2, 0)
    assert 0 < np.abs(weight).sum() < before


def test_infinite_weights_are_reported() -> None:
    learner = AdaGradLearner(gold=FixedGold([0.75, 0.5]), pairing=AllPairs(), adaptive=False, rate=1e308)
    with pytest.raises(NotFinite, match="feature 3: found inf as its weight"):
        learner.learn([example([{3: 8.0}, {1: 1.0}])], np.zeros(4))
    with pytest.raises(NotFinite, match="feature 1: found nan as its value in sentence 9"):
        learner.learn([example([{3: 2.0}, {1: math.nan}], number=9)], np.zeros(4))


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"rate": math.inf}, {"l1": -0.1}, {"epsilon": -1.0}])
def test_invalid_settings(wrong: dict) -> None:
    with pytest.raises(ConfigError, match="expected"):
        AdaGradLearner(**wrong)
