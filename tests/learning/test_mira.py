"""1-best MIRA: strategies and steps against naive twins, and small problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import ConfigError
from hiero.features.rows import FeatureRows
from hiero.learning.candidates import NotFinite
from hiero.learning.learner import UpdateReport
from hiero.learning.list_kernels import list_scores_kernel
from hiero.learning.metric import PreviousPass, SentenceGold
from hiero.learning.mira import ORACLES, PREDICTIONS, MiraLearner, choose
from hiero.learning.mira_kernels import mira_kernel
from tests.naive import learn as naive
from tests.worlds.learn import (
    FEATURES,
    ROWS,
    WEIGHTS,
    FixedGold,
    as_dict,
    as_vector,
    candidates,
    example,
    sentences,
)

# The paper's mu and nu.
MU_NU = {"lu": (0, 1), "hope": (1, 1), "model": (1, 0), "cost": (0, -1), "fear": (1, -1)}
EVERY = [(oracle, prediction) for oracle in ORACLES for prediction in PREDICTIONS]
TOY_ROWS = [{0: 1.0, 1: 0.5}, {0: 0.5, 2: 1.0}, {1: 1.0, 3: 1.0}, {2: 1.0, 3: 0.5}]


def feature_rows(rows: list[naive.Sparse]) -> FeatureRows:
    listed = candidates(rows)
    return FeatureRows(listed.first, listed.id, listed.value)


@given(st.lists(ROWS, min_size=1, max_size=6), WEIGHTS)
def test_scores_equal_their_twin(rows: list[naive.Sparse], weight: list[float]) -> None:
    found = np.empty(len(rows))
    list_scores_kernel(feature_rows(rows), np.array(weight), found)
    assert found.tolist() == [naive.dot(dict(enumerate(weight)), row) for row in rows]


@given(
    st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 4)), min_size=1, max_size=8),
    st.sampled_from(EVERY),
    st.sampled_from([0.5, 1.0, 4.0]),
)
def test_choices_equal_their_twin(
    both: list[tuple[int, int]], strategies: tuple[str, str], scale: float
) -> None:
    score, gold = [float(s) for s, _ in both], [g / 4 for _, g in both]
    chosen = choose(np.array(score), np.array(gold), *strategies, scale)  # type: ignore[arg-type]
    wanted = [naive.strategy(score, gold, mu, scale * nu) for mu, nu in map(MU_NU.__getitem__, strategies)]
    assert list(chosen[:2]) == wanted
    assert chosen.cost == scale * (gold[wanted[0]] - gold[wanted[1]])
    assert chosen.cost >= 0


@given(ROWS, ROWS, WEIGHTS, st.sampled_from([0.0, 0.25, 2.0]), st.sampled_from([0.01, 1.0, 100.0]))
def test_steps_equal_their_twin(
    oracle: naive.Sparse, prediction: naive.Sparse, start: list[float], cost: float, longest: float
) -> None:
    weight, twin, total = np.array(start), as_dict(np.array(start)), np.zeros(3)
    rows = feature_rows([prediction, oracle])
    assert mira_kernel(rows, np.int64(1), np.int64(0), cost, longest, weight, total)
    lost = naive.mira(twin, oracle, prediction, cost, longest)
    np.testing.assert_allclose(weight, as_vector(twin), rtol=0, atol=1e-12)
    assert total[0] == pytest.approx(lost, abs=1e-12)
    assert total[1] == (lost > 0)
    assert total[2] == (lost > 0 and oracle != prediction)


@given(ROWS, ROWS, WEIGHTS, st.sampled_from([0.25, 2.0]))
def test_an_unlimited_step_reaches_the_margin(
    oracle: naive.Sparse, prediction: naive.Sparse, start: list[float], cost: float
) -> None:
    """It is the shortest such step, as a multiple of the difference."""
    weight, total = np.array(start), np.zeros(3)
    mira_kernel(feature_rows([oracle, prediction]), np.int64(0), np.int64(1), cost, 1e9, weight, total)
    if total[2]:
        ahead = naive.dot(as_dict(weight), naive.difference(oracle, prediction))
        assert ahead == pytest.approx(cost, abs=1e-9)


@given(sentences(), WEIGHTS, st.sampled_from(EVERY))
def test_the_learner_equals_the_twin(
    sentence: tuple[list[naive.Sparse], list[float]], start: list[float], strategies: tuple[str, str]
) -> None:
    rows, gold = sentence
    metric, weight = FixedGold(gold), np.array(start)
    learner = MiraLearner(gold=metric, oracle=strategies[0], prediction=strategies[1])  # type: ignore[arg-type]
    one = example(rows, number=5)
    report = learner.learn([one], weight)

    twin = as_dict(np.array(start))
    score = [naive.dot(twin, row) for row in rows]
    best, wrong = (naive.strategy(score, gold, *MU_NU[name]) for name in strategies)
    lost = naive.mira(twin, rows[best], rows[wrong], gold[best] - gold[wrong], 0.01)
    np.testing.assert_allclose(weight, as_vector(twin), rtol=0, atol=1e-12)
    assert metric.remembered == (5, best)
    np.testing.assert_array_equal(report.model, one.statistics[0])
    np.testing.assert_array_equal(report.oracle, one.statistics[best])
    np.testing.assert_array_equal(report.prediction, one.statistics[wrong])
    assert (report.sentences, report.pairs, report.unpaired) == (1, best != wrong, best == wrong)
    assert report.equal == (best == wrong and len(set(gold)) == 1)
    assert report.loss == pytest.approx(lost, abs=1e-12)
    assert report.errors == (lost > 0)


@pytest.mark.parametrize("strategies", EVERY)
@pytest.mark.parametrize("gold", [SentenceGold("lin"), PreviousPass()])
def test_separable_data_is_learnt(strategies: tuple[str, str], gold: SentenceGold) -> None:
    """The best translation becomes the model's choice with every choice of hope and fear."""
    learner = MiraLearner(gold=gold, oracle=strategies[0], prediction=strategies[1], c=0.1)  # type: ignore[arg-type]
    weight = np.zeros(FEATURES)
    weight[3] = 0.2  # the model begins with another
    for _ in range(100):
        report = UpdateReport()
        order = np.argsort([-naive.dot(as_dict(weight), row) for row in TOY_ROWS], kind="stable")
        texts = [[*range(1, 8 - place), *[0] * place] for place in order.tolist()]
        report.add(learner.learn([example([TOY_ROWS[place] for place in order], texts)], weight))
        learner.end_epoch(weight)
    scores = [naive.dot(as_dict(weight), row) for row in TOY_ROWS]
    assert scores[0] == max(scores)
    assert scores.count(max(scores)) == 1


def test_equal_rows_are_not_updated() -> None:
    learner, weight = MiraLearner(gold=FixedGold([0.25, 0.75])), np.zeros(2)
    report = learner.learn([example([{0: 1.0}, {0: 1.0}])], weight)
    assert (report.pairs, report.errors, report.updates, report.loss) == (1, 1, 0, 0.5)
    assert not weight.any()


def test_values_that_are_not_numbers_are_reported() -> None:
    learner = MiraLearner(gold=FixedGold([0.25, 0.75]))
    with pytest.raises(NotFinite, match="feature 1: found nan as its value in sentence 3"):
        learner.learn([example([{0: 1.0}, {1: math.nan}], number=3)], np.zeros(2))
    with pytest.raises(NotFinite, match="feature 0: found inf as its weight"):
        learner.learn([example([{0: 1.0}, {1: 1.0}])], np.array([math.inf, 0.0]))


def test_a_restored_learner_continues_identically() -> None:
    def epoch(learner: MiraLearner, weight: np.ndarray) -> None:
        for number in range(3):
            rows = TOY_ROWS[number:] + TOY_ROWS[:number]
            learner.learn([example(rows, number=number)], weight)
        learner.end_epoch(weight)

    straight, weight = MiraLearner(), np.zeros(FEATURES)
    first, second, broken = MiraLearner(), MiraLearner(), np.zeros(FEATURES)
    for _ in range(3):
        epoch(straight, weight)
    epoch(first, broken)
    second.restore(first.state())
    assert second.state()["gold"]["sentences"] == 3
    epoch(second, broken)
    epoch(second, broken)
    assert weight.any()
    np.testing.assert_array_equal(weight, broken)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"oracle": "hop"}, "oracle: found 'hop', expected one of lu, hope"),
        ({"prediction": "PB"}, "prediction: found 'PB', expected one of model, cost, fear"),
        ({"c": 0.0}, "c: found 0.0, expected more than 0"),
        ({"scale": -1.0}, "scale: found -1.0, expected more than 0"),
    ],
)
def test_invalid_settings(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MiraLearner(**wrong)
