"""Gold scores of translations: by themselves, with a decaying background, and with the previous pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import ConfigError
from hiero.evaluation.bleu import bleu_background, sentence_bleu
from hiero.learning.learner import Example
from hiero.learning.metric import BackgroundGold, Gold, PreviousPass, SentenceGold, gold_metric
from tests.naive import bleu as naive
from tests.worlds.learn import example

TEXT = st.lists(st.integers(1, 8), min_size=1, max_size=9)
# Sentences, each with some translations, the model's best first.
CORPUS = st.lists(st.lists(TEXT, min_size=1, max_size=4), min_size=1, max_size=5)


def sentence(texts: list[list[int]], number: int) -> Example:
    return example([{0: 1.0}] * len(texts), texts, number)


def corpus(texts: list[list[list[int]]]) -> list[Example]:
    return [sentence(one, number) for number, one in enumerate(texts)]


def pass_over(gold: Gold, examples: list[Example], oracle: int = 0) -> list[np.ndarray]:
    """One epoch, and the gold scores of all translations."""
    scores = []
    for one in examples:
        scores.append(gold.scores(one))
        gold.remember(one, min(oracle, len(one.statistics) - 1))
    gold.end_epoch()
    return scores


@given(CORPUS)
def test_a_sentence_by_itself(texts: list[list[list[int]]]) -> None:
    for one, found in zip(corpus(texts), pass_over(SentenceGold("lin"), corpus(texts)), strict=True):
        assert found.tolist() == pytest.approx([naive.lin(row) for row in one.statistics.tolist()])


@given(CORPUS, CORPUS)
def test_previous_translations_of_the_other_sentences(
    first: list[list[list[int]]], second: list[list[list[int]]]
) -> None:
    gold = PreviousPass("nakov")
    before, now = corpus(first), corpus(second)
    for one, found in zip(before, pass_over(gold, before), strict=True):
        assert found.tolist() == pytest.approx([naive.nakov(row) for row in one.statistics.tolist()])
    for one, found in zip(now, pass_over(gold, now), strict=True):
        others = sum(other.statistics[0] for other in before if other.number != one.number)
        others = np.broadcast_to(others, 10)

        def bleu(*rows: np.ndarray) -> float:
            return naive.lin(sum(rows).tolist())  # type: ignore[union-attr]

        wanted = [(bleu(others, row) - bleu(others)) * len(before) for row in one.statistics]
        assert found.tolist() == pytest.approx(wanted, abs=1e-12)


def test_all_shards_together() -> None:
    """With the statistics of all shards, each scores like a single process."""
    texts = [[[1, 2, 3, 4], [1, 2, 3]], [[2, 3, 4, 5]], [[7, 8, 1], [1, 2]], [[3, 4, 5, 6, 7]]]
    whole, shards = PreviousPass(), [PreviousPass(), PreviousPass()]
    examples = corpus(texts)
    pass_over(whole, examples)
    for shard, part in zip(shards, (examples[:2], examples[2:]), strict=True):
        pass_over(shard, part)
        assert not np.allclose(shard.scores(part[0]), whole.scores(part[0]))
    total = sum(one.statistics[0] for one in examples)
    for shard, part in zip(shards, (examples[:2], examples[2:]), strict=True):
        shard.widen(total, len(examples))
        for one in part:
            np.testing.assert_array_equal(shard.scores(one), whole.scores(one))


def test_an_epoch_without_sentences_is_no_context() -> None:
    gold = PreviousPass()
    gold.end_epoch()
    one = sentence([[1, 2, 3]], 0)
    np.testing.assert_array_equal(gold.scores(one), sentence_bleu("lin")(one.statistics))


@pytest.mark.parametrize("chosen", ["model", "oracle"])
def test_a_decaying_background(chosen: str) -> None:
    examples = corpus([[[1, 2, 3, 4], [5, 6, 7]], [[2, 3, 4, 5], [1, 2]], [[7, 8, 1], [1, 2, 3, 4, 5]]])
    found = pass_over(BackgroundGold("chiang", chosen), examples, oracle=1)  # type: ignore[arg-type]
    memory = bleu_background("chiang")
    for one, scores in zip(examples, found, strict=True):
        np.testing.assert_array_equal(scores, memory.scores(one.statistics, 7))
        memory.add(one.statistics[1 if chosen == "oracle" else 0], 7)


@pytest.mark.parametrize("name", ["lin", "phrasal-smooth", "kbmira", "previous"])
@given(texts=CORPUS, more=CORPUS)
def test_restored_state_scores_the_same(
    name: str, texts: list[list[list[int]]], more: list[list[list[int]]]
) -> None:
    gold, again = gold_metric(name), gold_metric(name)
    pass_over(gold, corpus(texts))
    for one in corpus(more):  # half an epoch
        gold.remember(one, 0)
    state = gold.state()
    assert all(value.shape[0] == 1 for value in state.values() if isinstance(value, np.ndarray))
    again.restore(state)
    for one in corpus(texts):
        np.testing.assert_array_equal(gold.scores(one), again.scores(one))
    gold.end_epoch()
    again.end_epoch()
    for one in corpus(texts):
        np.testing.assert_array_equal(gold.scores(one), again.scores(one))


def test_names() -> None:
    assert isinstance(gold_metric("previous"), PreviousPass)
    assert isinstance(gold_metric("chiang"), BackgroundGold)
    assert isinstance(gold_metric("liang"), SentenceGold)
    with pytest.raises(ConfigError, match="unknown metric 'liagn'; did you mean 'liang'"):
        gold_metric("liagn")
    with pytest.raises(ConfigError, match="found 'hope', expected model or oracle"):
        gold_metric("chiang", chosen="hope")  # type: ignore[arg-type]
