"""Averages over sentences, distribution over shards, k-best lists in files."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hiero
from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.features.names import Names
from hiero.learning.candidates import candidates
from hiero.learning.learner import Example
from hiero.tuning.batch import read_batch_examples, write_batch_examples
from hiero.tuning.online import Average
from hiero.tuning.shard import shards, shuffled
from tests.conftest import MODEL
from tests.naive import tuning as naive


@settings(deadline=None, max_examples=60)
@given(st.lists(st.dictionaries(st.integers(0, 4), st.floats(-2, 2), max_size=3), min_size=1, max_size=6))
def test_the_average_over_sentences(changes: list[dict[int, float]]) -> None:
    weight, average, history = np.zeros(5), Average(), []
    for change in changes:
        ids = np.array(sorted(change), np.int32)
        values = np.array([change[i] for i in sorted(change)])
        weight[ids] += values
        average.changed(ids, values)
        history.append(dict(enumerate(weight.tolist())))
    assert average.of(weight).tolist() == pytest.approx(list(naive.average(history).values()), abs=1e-12)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 5))
def test_every_sentence_is_in_one_shard(count: int, parts: int, seed: int) -> None:
    numbers = shuffled(range(count), seed, 1)
    assert sorted(numbers) == list(range(count))
    assert numbers == shuffled(range(count), seed, 1)
    cut = shards(numbers, parts)
    assert list(itertools.chain(*cut)) == numbers
    assert max(map(len, cut)) - min(map(len, cut)) <= 1


def test_lists_round_trip_through_files(tmp_path: Path) -> None:
    model, index = hiero.load(MODEL, features=["rule_id", "lexical"]), FeatureIndex()
    examples = []
    for number, sentence in enumerate(["er hat mir ein buch versprochen .", "das haus", "unbekannt"]):
        found = candidates(model.parse(sentence), 20, index)
        examples.append(Example(2 * number, 3, found, np.full((found.size, 10), number), 5))
    write_batch_examples(str(tmp_path / "a.npz"), model.symbols, index, examples)
    symbols, other = Symbols(), FeatureIndex()
    symbols.words.intern_all([b"x", b"promised"])
    other.intern((0, symbols.names.intern(b"Glue"), 0))
    back = list(read_batch_examples(str(tmp_path / "a.npz"), symbols, other))
    assert [e.number for e in back] == [0, 2, 4]
    mine, theirs = Names(model.symbols), Names(symbols)
    for before, after in zip(examples, back, strict=True):
        assert (before.source_length, before.shortest) == (after.source_length, after.shortest)
        assert np.array_equal(before.statistics, after.statistics)
        a, b = before.candidates, after.candidates
        assert np.array_equal(a.score, b.score)
        assert np.array_equal(a.first, b.first)
        assert np.array_equal(a.first_word, b.first_word)
        words = [model.symbols.words.text(i) for i in a.word.tolist()]
        assert words == [symbols.words.text(i) for i in b.word.tolist()]
        for i in range(a.size):
            here = slice(a.first[i], a.first[i + 1])
            assert np.all(np.diff(b.id[here]) > 0)
            old = {
                mine.name(index.key(f)): v for f, v in zip(a.id[here].tolist(), a.value[here], strict=True)
            }
            new = {
                theirs.name(other.key(f)): v for f, v in zip(b.id[here].tolist(), b.value[here], strict=True)
            }
            assert old == new
