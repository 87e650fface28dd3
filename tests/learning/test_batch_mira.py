"""Batch MIRA against its twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.core.errors import ConfigError, HieroError
from hiero.learning.config import TuneConfig
from hiero.learning.learner import LearnerContext, make_learner
from hiero.learning.lists import CandidateLists
from hiero.learning.mira import KBMIRA
from tests.naive import batch as naive
from tests.worlds.batch import NUM_FEATURES, candidate_lists, lists_of, quarters

weights = st.lists(quarters, min_size=NUM_FEATURES, max_size=NUM_FEATURES).map(np.array)


def orders(count, iteration, seed, epochs):
    for epoch in range(1, epochs + 1):
        visit = np.arange(count)
        np.random.default_rng([seed, iteration, epoch]).shuffle(visit)
        yield visit.tolist()


@settings(max_examples=40)
@given(lists_of(), weights, st.sampled_from([0.01, 1.0]), st.sampled_from(["oracle", "model"]), st.booleans())
def test_averages_equal_those_of_the_twin(found, start, aggressiveness, chosen, shuffle):
    # Not quarters, so that hope and fear do not depend on rounding in ties.
    start = start + np.array([0.013, 0.0171, -0.0123, 0.0197, 0.0089, -0.0149])
    lists, merged = candidate_lists(found), list(naive.merged(found).values())
    visits = list(orders(len(merged), 2, 5, 4)) if shuffle else [list(range(len(merged)))] * 4
    expected = naive.kbmira(merged, start, visits, aggressiveness, 0.9, chosen == "model")
    settings = {"C": aggressiveness, "decay": 0.9, "chosen": chosen, "shuffle": shuffle}
    best, best_bleu = 0, -1.0
    for epochs, average in enumerate(expected, start=1):
        bleu = lists.bleu(np.array(average))
        if bleu > best_bleu + 1e-12:
            best, best_bleu = epochs, bleu
        learnt, happened = KBMIRA(epochs=epochs, **settings).fit(lists, start, 2, 5)
        assert learnt == pytest.approx(np.array(expected[int(happened["epoch"]) - 1]), abs=1e-9)
        assert happened["predicted_bleu"] == pytest.approx(best_bleu)
        assert happened["epoch"] == best
    assert happened["nonzero"] == np.count_nonzero(learnt)


def learnable():
    """Feature 0 is good, 1 is bad, 2 is uninformative, and every translation has a feature of its own."""
    rows = []
    for sentence in range(20):
        mine = []
        for good in range(5):
            features = {0: float(good), 1: float(4 - good), 2: float((sentence + good) % 2)}
            features[3 + 5 * sentence + good] = 1.0
            stats = [4, 4, good, max(0, good - 1), max(0, good - 2), max(0, good - 3), 4, 3, 2, 1]
            mine.append(((sentence, good), {f: v for f, v in features.items() if v}, stats))
        rows.append((sentence, mine))
    return candidate_lists(rows)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_learns_good_and_bad_features(seed):
    lists, start = learnable(), np.zeros(103)
    start[1] = 0.5
    learnt, happened = KBMIRA().fit(lists, start, 1, seed)
    assert lists.bleu(start) < lists.bleu(learnt) == happened["predicted_bleu"] == 1.0
    assert learnt[0] > learnt[1]
    assert start.tolist() == [0, 0.5] + 101 * [0]
    again, _ = KBMIRA().fit(lists, start, 1, seed)
    assert again.tolist() == learnt.tolist()


def test_nothing_to_learn():
    before = np.array([1.0, -1.0])
    stats = [1, 1, 1, 0, 0, 0, 1, 0, 0, 0]
    for lists in (CandidateLists(), candidate_lists([(0, [((0,), {0: 1.0}, stats), ((1,), {}, stats)])])):
        learnt, _ = KBMIRA(epochs=3).fit(lists, before, 1, 1)
        assert learnt.tolist() == before.tolist()
    # Different words with equal features.
    worse = [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]
    lists = candidate_lists([(0, [((0,), {0: 1.0}, worse), ((1,), {0: 1.0}, stats)])])
    learnt, happened = KBMIRA(epochs=3).fit(lists, before, 1, 1)
    assert learnt.tolist() == before.tolist()
    assert (happened["errors"], happened["updates"]) == (1, 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"C": 0.0}, "C: found 0.0"),
        ({"decay": 0.0}, "decay: found 0.0"),
        ({"epochs": 0}, "epochs: found 0"),
        ({"chosen": "hope"}, "chosen: found 'hope', expected one of oracle, model"),
    ],
)
def test_wrong_settings(wrong, message):
    with pytest.raises(ConfigError, match=message):
        KBMIRA(**wrong)


def test_keys_set_the_attributes():
    keys = {"c": 0.2, "memory": 0.5, "remembered": "model", "passes": 3}
    for set_, expected in (({}, KBMIRA()), (keys, KBMIRA(C=0.2, decay=0.5, epochs=3, chosen="model"))):
        config = TuneConfig(algorithm="kbmira", **set_).resolved()
        assert make_learner(config, LearnerContext()) == expected


def test_weights_that_are_not_numbers():
    with pytest.raises(HieroError, match="feature 1: found nan as its weight"):
        KBMIRA().fit(CandidateLists(), np.array([0.0, np.nan]), 1, 1)
