"""Pairwise ranking: kernels against naive twins and finite differences, and small problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.errors import ConfigError
from hiero.features.rows import FeatureRows
from hiero.learning.candidates import NotFinite
from hiero.learning.metric import SentenceGold
from hiero.learning.pairs import KINDS, AllPairs, Loss, Multipartite, SampledPairs
from hiero.learning.rank_kernels import gradient_kernel, rank_kernel, shift_kernel
from hiero.learning.sgd import RankLearner
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

LOSSES = [
    Loss(name="perceptron"),
    Loss(name="perceptron", by_gold="loss"),
    Loss(name="margin", margin=0.75),
    Loss(name="margin", margin=4.0, by_gold="margin"),
    Loss(name="logistic"),
    Loss(name="logistic", by_gold="loss"),
]
EVERY_LOSS = st.sampled_from(LOSSES)


def arrays(rows: list[naive.Sparse], gold: list[float], loss: Loss) -> tuple:
    """All pairs of some translations in the format of the kernels."""
    listed = candidates(rows)
    pair = AllPairs()(np.array(gold), np.zeros(len(gold), np.int64), 0, 0)
    rows_of_list = FeatureRows(listed.first, listed.id, listed.value)
    return rows_of_list, pair, *loss.margins_and_weights(np.array(gold), pair)


def plain(pair: np.ndarray, wanted: np.ndarray, force: np.ndarray) -> tuple[list, list, list]:
    return [tuple(row) for row in pair.tolist()], wanted.tolist(), force.tolist()


@given(sentences(), WEIGHTS, EVERY_LOSS, st.sampled_from([0.125, 0.5]))
def test_one_pair_after_the_other_equals_the_twin(
    sentence: tuple[list[naive.Sparse], list[float]], start: list[float], loss: Loss, rate: float
) -> None:
    rows, gold = sentence
    args = arrays(rows, gold, loss)
    weight, total = np.array(start), np.zeros(3)
    assert rank_kernel(*args, loss.kind, rate, weight, total)
    twin = as_dict(np.array(start))
    lost, steps = naive.rank(rows, *plain(*args[1:]), loss.name, rate, twin)
    np.testing.assert_allclose(weight, as_vector(twin), rtol=0, atol=1e-11)
    assert total[0] == pytest.approx(lost, abs=1e-10)
    assert total[2] == steps


@given(sentences(), WEIGHTS, EVERY_LOSS)
def test_summed_gradients_equal_the_twin(
    sentence: tuple[list[naive.Sparse], list[float]], start: list[float], loss: Loss
) -> None:
    rows, gold = sentence
    args = arrays(rows, gold, loss)
    total = np.zeros(3)
    fine, ids, values = gradient_kernel(*args, loss.kind, np.array(start), total)
    assert fine
    assert len(set(ids.tolist())) == len(ids)
    assert (values != 0).all()
    lost, twin = naive.gradient(rows, *plain(*args[1:]), loss.name, as_dict(np.array(start)))
    found = np.zeros(FEATURES)
    found[ids] = values
    np.testing.assert_allclose(found, as_vector(twin), rtol=0, atol=1e-11)
    assert total[0] == pytest.approx(lost, abs=1e-10)


@given(sentences(), WEIGHTS, EVERY_LOSS)
def test_gradients_equal_finite_differences(
    sentence: tuple[list[naive.Sparse], list[float]], start: list[float], loss: Loss
) -> None:
    """Weights are moved away from multiples of a quarter, where the loss may have kinks."""
    rows, gold = sentence
    args = arrays(rows, gold, loss)
    weight = np.array(start) + 1e-3 * np.sqrt(np.arange(2, 2 + FEATURES))

    def lost(at: np.ndarray) -> float:
        total = np.zeros(3)
        gradient_kernel(*args, loss.kind, at, total)
        return float(total[0])

    _, ids, values = gradient_kernel(*args, loss.kind, weight, np.zeros(3))
    analytic = np.zeros(FEATURES)
    analytic[ids] = values
    step = 1e-6
    numeric = [(lost(weight + step * e) - lost(weight - step * e)) / (2 * step) for e in np.eye(FEATURES)]
    np.testing.assert_allclose(analytic, numeric, rtol=1e-5, atol=1e-6)


@given(WEIGHTS, ROWS, st.sampled_from([-0.5, 2.0]))
def test_shifts_equal_their_twin(start: list[float], step: naive.Sparse, factor: float) -> None:
    weight, twin = np.array(start), as_dict(np.array(start))
    shift_kernel(np.array(list(step), np.int32), np.array(list(step.values()), np.float64), factor, weight)
    naive.shift(twin, step, factor)
    np.testing.assert_array_equal(weight, as_vector(twin))


def test_gradients_that_cancel_are_zero() -> None:
    """In the third sentence the weight of feature 1 returns to its former value."""
    weight = np.zeros(FEATURES)
    step = np.array([1], np.int32), np.array([1.0])
    for factor in (0.1, 0.2, -0.3):
        shift_kernel(*step, factor, weight)
    assert 0.1 + 0.2 - 0.3 != 0
    assert weight[1] == 0

    # 0 beats 1 beats 2, and the logistic loss pushes all: feature 1 is the same in all three.
    rows = [{0: 1.0, 1: 0.1}, {1: 0.1, 2: 0.3}, {1: 0.1, 3: 0.7}]
    args = arrays(rows, [0.75, 0.5, 0.25], Loss(name="logistic"))
    weight[0] = 0.5
    _, ids, _ = gradient_kernel(*args, np.int64(KINDS["logistic"]), weight, np.zeros(3))
    assert sorted(ids.tolist()) == [0, 2, 3]

    # Three times 0.1 less 0.3, the steps of pairs of four translations.
    rows = [{0: 1.0, 1: 0.1}, {1: -0.3, 2: 1.0}, {3: 1.0}, {4: 1.0}]
    args = arrays(rows, [0.75, 0.5, 0.25, 0.0], Loss())
    _, ids, _ = gradient_kernel(*args, np.int64(KINDS["perceptron"]), np.zeros(FEATURES), np.zeros(3))
    assert sorted(ids.tolist()) == [0, 2, 3, 4]


def test_scores_that_differ_by_rounding_are_equal() -> None:
    learner = RankLearner(gold=FixedGold([0.75, 0.5]))
    weight = np.array([0.1, 0.2, 0.3])
    report = learner.learn([example([{0: 1.0, 1: 1.0}, {2: 1.0}])], weight)
    assert 0.1 + 0.2 > 0.3
    assert (report.errors, report.updates) == (1, 1)


def test_the_logistic_loss_does_not_overflow() -> None:
    args = arrays([{0: 1.0}, {1: 1.0}], [0.5, 0.25], Loss(name="logistic"))
    for size, slope in ((1e4, 0.0), (-1e4, 1.0)):
        total = np.zeros(3)
        weight = np.array([size, 0.0])
        fine, _, values = gradient_kernel(*args, np.int64(KINDS["logistic"]), weight, total)
        assert fine
        assert total[0] == pytest.approx(max(0, -size))
        assert np.abs(values).max(initial=0.0) == pytest.approx(slope)


# ---- the learner


@given(sentences(), WEIGHTS, EVERY_LOSS)
def test_a_step_for_a_sentence_is_one_step_down_its_gradient(
    sentence: tuple[list[naive.Sparse], list[float]], start: list[float], loss: Loss
) -> None:
    rows, gold = sentence
    learner = RankLearner(gold=FixedGold(gold), loss=loss, update="sentence", rate=0.5)
    weight = np.array(start)
    report = learner.learn([example(rows)], weight)
    pair = Multipartite()(np.array(gold), np.zeros(len(gold), np.int64), 0, 0)
    lost, twin = naive.gradient(
        rows,
        *plain(pair, *loss.margins_and_weights(np.array(gold), pair)),
        loss.name,
        as_dict(np.array(start)),
    )
    np.testing.assert_allclose(weight, np.array(start) - 0.5 * as_vector(twin), rtol=0, atol=1e-11)
    assert report.loss == pytest.approx(lost, abs=1e-10)
    assert report.updates == bool(as_vector(twin).any())
    assert (report.sentences, report.pairs, report.unpaired) == (1, len(pair), len(pair) == 0)


def test_a_batch_is_ranked_with_the_weights_it_was_decoded_with() -> None:
    rows = [{0: 1.0}, {1: 1.0}]
    batch = [example(rows, number=0), example(rows, number=1)]
    settings = {"gold": FixedGold([0.75, 0.5]), "rate": 0.5}
    together, apart = np.zeros(2), np.zeros(2)
    RankLearner(update="sentence", **settings).learn(batch, together)
    RankLearner(update="pair", **settings).learn(batch, apart)
    assert together.tolist() == [1.0, -1.0]
    assert apart.tolist() == [0.5, -0.5]


def test_sentences_without_updates_are_counted() -> None:
    learner, weight = RankLearner(), np.zeros(FEATURES)
    rows = [{0: 1.0}, {1: 1.0}]
    report = learner.learn([example(rows[:1])], weight)
    assert (report.sentences, report.unpaired, report.equal, report.pairs) == (1, 1, 1, 0)
    report = learner.learn([example(rows, [[9, 8], [8, 9]])], weight)
    assert (report.sentences, report.unpaired, report.equal, report.pairs) == (1, 1, 1, 0)
    # All different, but no sampled pair differs enough.
    strict = RankLearner(pairing=SampledPairs(threshold=0.99))
    report = strict.learn([example(rows)], weight)
    assert (report.sentences, report.unpaired, report.equal) == (1, 1, 0)
    assert not weight.any()


def test_the_report_adds_up_the_translations_of_the_model() -> None:
    batch = [example([{0: 1.0}, {1: 1.0}], number=i) for i in range(3)]
    report = RankLearner().learn(batch, np.zeros(2))
    np.testing.assert_array_equal(report.model, sum(one.statistics[0] for one in batch))


@pytest.mark.parametrize(
    ("decay", "rates"), [("none", [1, 1, 1]), ("sqrt", [1, 2**-0.5, 3**-0.5]), ("linear", [1, 1 / 2, 1 / 3])]
)
def test_learning_rates(decay: str, rates: list[float]) -> None:
    loss = Loss(name="margin", margin=99)
    learner = RankLearner(gold=FixedGold([0.75, 0.5]), loss=loss, rate=1, decay=decay)
    weight, lengths = np.zeros(2), []
    for number in range(3):
        before = weight[0]
        learner.learn([example([{0: 1.0}, {1: 1.0}], number=number)], weight)
        lengths.append(weight[0] - before)
    assert lengths == pytest.approx(rates)
    slower = RankLearner(rate=1, decay="linear", decay_after=10)
    slower.seen = 5
    assert slower.rate_now() == pytest.approx(1 / 1.5)


def test_infinite_weights_are_reported() -> None:
    learner = RankLearner(gold=FixedGold([0.75, 0.5]), loss=Loss(name="margin"), rate=1e308)
    weight = np.zeros(4)
    with pytest.raises(NotFinite, match=r"^feature 3: found inf as its weight, .* rate\)$") as caught:
        learner.learn([example([{3: -2.0}, {3: -4.0, 1: 1e-5}])], weight)
    assert caught.value.feature == 3
    assert str(caught.value.named("Glue")).startswith("feature 'Glue': found inf")


def test_infinite_scores_are_reported() -> None:
    learner = RankLearner(gold=FixedGold([0.75, 0.5]))
    with pytest.raises(NotFinite, match="feature 0: found 1e\\+308 as the largest of the weights"):
        learner.learn([example([{0: 1.0, 1: 1.0}, {0: 2.5, 1: 2.5}])], np.array([1e308, 1e308]))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("update", ["pair", "sentence"])
def test_values_that_are_not_numbers_are_reported(value: float, update: str) -> None:
    learner = RankLearner(gold=FixedGold([0.75, 0.5]), update=update)
    with pytest.raises(NotFinite, match=f"^feature 2: found {value} as its value in sentence 7, "):
        learner.learn([example([{2: value}, {1: 1.0}], number=7)], np.zeros(4))


TOY_ROWS = [{0: 1.0, 1: 0.5}, {0: 0.5, 2: 1.0}, {1: 1.0, 3: 1.0}, {2: 1.0, 3: 0.5}]


@pytest.mark.parametrize("update", ["pair", "sentence"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("pairing", [Multipartite(), AllPairs(), SampledPairs(threshold=0.0, draws=12)])
def test_separable_data_is_learnt(update: str, loss: Loss, pairing: AllPairs) -> None:
    """Gold scores fall from the first translation to the last, and some weights rank them so."""
    learner = RankLearner(gold=SentenceGold("liang"), pairing=pairing, loss=loss, update=update, rate=0.1)
    weight = np.zeros(FEATURES)
    sentence = example(TOY_ROWS)
    for _ in range(60):
        learner.learn([sentence], weight)
        learner.end_epoch(weight)
    scores = [naive.dot(as_dict(weight), row) for row in TOY_ROWS]
    gold = learner.gold.scores(sentence)
    taught = pairing(gold, sentence.statistics[:, 0], 0, 0)
    assert len(taught)
    assert all(scores[better] > scores[worse] for better, worse in taught)


def test_a_restored_learner_continues_identically() -> None:
    def fresh() -> RankLearner:
        return RankLearner(pairing=SampledPairs(draws=20, keep=3, threshold=0), rate=0.1, decay="sqrt")

    def epoch(learner: RankLearner, weight: np.ndarray) -> None:
        for number in range(4):
            learner.learn([example(TOY_ROWS, number=number)], weight)
        learner.end_epoch(weight)

    straight, weight = fresh(), np.zeros(FEATURES)
    for _ in range(4):
        epoch(straight, weight)
    first, broken = fresh(), np.zeros(FEATURES)
    epoch(first, broken)
    epoch(first, broken)
    second = fresh()
    second.restore(first.state())
    epoch(second, broken)
    epoch(second, broken)
    np.testing.assert_array_equal(weight, broken)
    assert (second.epoch, second.seen) == (4, 16)


def test_more_translations_than_memory_can_hold() -> None:
    gold = np.arange(8002.0)
    many = example([{0: 1.0}] * 8002, [[1]] * 8002)
    pairing = Multipartite(share=1e-4)
    learner = RankLearner(gold=FixedGold(gold.tolist()), pairing=pairing, update="pair")
    with pytest.raises(
        ConfigError, match="found 8,002 translations of a sentence in pairs, expected at most"
    ):
        learner.learn([many], np.zeros(1))
    learner.update = "sentence"
    assert learner.learn([many], np.zeros(1)).pairs == 16_001


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Loss(name="hinge"),  # type: ignore[arg-type]
        lambda: Loss(name="margin", margin=0),
        lambda: Loss(name="perceptron", by_gold="margin"),
        lambda: RankLearner(rate=0),
        lambda: RankLearner(update="epoch"),  # type: ignore[arg-type]
        lambda: RankLearner(decay="log"),  # type: ignore[arg-type]
        lambda: RankLearner(decay_after=0.0),
    ],
)
def test_invalid_settings(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"expected|works with"):
        wrong()  # type: ignore[operator]


def test_kernels_take_read_only_rows() -> None:
    """As in candidates; writable rows would compile each kernel again."""
    args = arrays([{0: 1.0}, {1: 1.0}], [0.5, 0.25], Loss())
    assert not any(array.flags.writeable for array in (*args[0], *args[1:]))
    assert read_only(args[1]) is args[1] or not read_only(args[1]).flags.writeable
