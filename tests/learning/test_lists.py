"""Merged k-best lists against their twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mutants import reseal
from hiero.core.errors import FormatError, HieroError
from hiero.evaluation.bleu import corpus_bleu
from hiero.learning.list_kernels import floor_bleu
from hiero.learning.lists import CandidateLists
from tests.naive import batch as naive
from tests.worlds.batch import NUM_FEATURES, candidate_lists, example, lists_of, quarters

weights = st.lists(quarters, min_size=NUM_FEATURES, max_size=NUM_FEATURES).map(np.array)


def contents(lists):
    """(words, features, statistics) of each sentence, in the format of the twin."""
    view, store = lists.view(), lists._store
    found = {}
    for s, number in enumerate(view.number.tolist()):
        rows = found.setdefault(number, [])
        for c in view.order[view.first_place[s] : view.first_place[s + 1]]:
            words = store.word[store.first_word[c] : store.first_word[c + 1]]
            row = slice(view.first[c], view.first[c + 1])
            features = dict(zip(view.id[row].tolist(), view.value[row].tolist(), strict=True))
            rows.append((tuple(words.tolist()), features, view.statistics[c].tolist()))
    return found


@given(lists_of())
def test_new_candidates_are_appended_once(found):
    lists, before = CandidateLists(), 0
    for i, (sentence, candidates) in enumerate(found):
        added = lists.add(example(sentence, candidates))
        expected = naive.merged(found[: i + 1])
        assert contents(lists) == expected
        assert len(lists) == sum(map(len, expected.values())) == before + added
        assert lists.add(example(sentence, candidates)) == 0
        before = len(lists)


@given(lists_of(), weights)
def test_scores_and_the_best(found, weight):
    lists, expected = candidate_lists(found), naive.merged(found)
    view, scores, best = lists.view(), lists.scores(weight), lists.best(weight)
    for s, candidates in enumerate(expected.values()):
        mine = view.order[view.first_place[s] : view.first_place[s + 1]]
        assert scores[mine].tolist() == [naive.score(candidate, weight) for candidate in candidates]
        assert best[s] == mine[naive.best(candidates, weight)]
    assert lists.bleu(weight) == pytest.approx(naive.corpus_floor_bleu(list(expected.values()), weight))


@given(lists_of())
def test_sentences_with_a_feature(found):
    lists, merged = candidate_lists(found), naive.merged(found)
    expected = [naive.num_sentences(merged.values(), feature) for feature in range(NUM_FEATURES)]
    assert lists.num_sentences(NUM_FEATURES).tolist() == expected
    assert lists.num_sentences(2).tolist() == expected[:2]


@given(lists_of(), lists_of())
def test_saved_lists_continue_identically(tmp_path_factory, found, more):
    path = tmp_path_factory.mktemp("lists") / "lists"
    lists = candidate_lists(found)
    lists.save(path)
    again = CandidateLists.load(path)
    assert contents(again) == contents(lists)
    assert again.num_features == lists.num_features
    assert [a.tolist() for a in again.lengths()] == [a.tolist() for a in lists.lengths()]
    for sentence, candidates in more:
        assert again.add(example(sentence, candidates)) == lists.add(example(sentence, candidates))
    assert contents(again) == contents(lists) == naive.merged([*found, *more])
    again.save(path)
    assert contents(CandidateLists.load(path)) == contents(lists)


def test_empty_lists(tmp_path):
    lists = CandidateLists()
    assert (len(lists), lists.num_features, len(lists.view().number)) == (0, 0, 0)
    lists.save(tmp_path / "lists")
    assert len(CandidateLists.load(tmp_path / "lists")) == 0


def test_many_candidates_of_many_sentences():
    lists, count = CandidateLists(), 0
    for sentence in range(40):
        mine = [((i,), {0: i + 0.5}, [1, 1, 1, 0, 0, 0, 1, 0, 0, 0]) for i in range(sentence, 60)]
        count += len(mine)
        assert lists.add(example(sentence, mine)) == len(mine)
    assert len(lists) == count
    for sentence in range(40):
        assert lists.add(example(sentence, contents(lists)[sentence][::-1])) == 0


def test_lengths_of_sentences():
    lists = candidate_lists([(5, [((1,), {}, [1, 7, 1, 0, 0, 0, 1, 0, 0, 0])])])
    assert [a.tolist() for a in lists.lengths()] == [[6], [7]]


def test_values_that_are_not_numbers_are_refused():
    stats = [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]
    lists = CandidateLists()
    with pytest.raises(HieroError, match="feature 2: found nan as its value in sentence 3"):
        lists.add(example(3, [((1,), {1: 1.0, 2: np.nan}, stats)]))
    assert len(lists) == 0
    lists.add(example(3, [((1,), {1: 1.0, 2: 2.0}, stats)]))
    with pytest.raises(HieroError, match="feature 1: found inf as its weight"):
        lists.scores(np.array([0.0, np.inf, 0.0]))
    with pytest.raises(ValueError, match="2 weights for 3 features"):
        lists.scores(np.zeros(2))
    with pytest.raises(ValueError, match="statistics"):
        lists.add(example(3, [((1,), {1: 1.0}, stats[:-2])]))


def test_damaged_lists_are_refused(tmp_path):
    lists = candidate_lists([(0, [((1,), {0: 1.0}, [1, 1, 1, 0, 0, 0, 1, 0, 0, 0])])])
    lists.save(tmp_path / "lists")
    np.save(tmp_path / "lists" / "first.npy", np.array([0, 9]))
    with pytest.raises(FormatError, match=r"first\.npy: found other content"):
        CandidateLists.load(tmp_path / "lists")
    reseal(tmp_path / "lists")
    with pytest.raises(FormatError, match="arrays that do not fit together"):
        CandidateLists.load(tmp_path / "lists")


@given(lists_of(num_sentences=1))
def test_floor_bleu_equals_sacrebleu(found):
    for _, _, stats in found[0][1]:
        expected = corpus_bleu(np.array(stats), smooth="floor", effective_order=True)[0]
        assert floor_bleu(np.array(stats)) == pytest.approx(expected)
        assert naive.floor_bleu(stats) == pytest.approx(expected)
