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
from hiero.learning.sgd import RankLearner
from hiero.tuning.batch import read_batch_examples, write_batch_examples
from hiero.tuning.loop import Loop
from hiero.tuning.online import Average, OnlineCourse
from hiero.tuning.shard import shards, shuffled
from hiero.tuning.vectors import read_vectors
from tests.conftest import MODEL
from tests.naive import tuning as naive
from tests.worlds.tune import Tuning


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


SENTENCES = {"algorithm": "iterselsgd", "average": "sentences", "shards": 2, "select": 3, "held_out": None}


def values_of(path: Path, name: str = "weight") -> dict[str, float]:
    symbols, index = Symbols(), FeatureIndex()
    ids, values = read_vectors(path, symbols, index)
    names = (Names(symbols).name(index.key(f)) for f in ids.tolist())
    return {key: value for key, value in zip(names, values[name].tolist(), strict=True) if value}


@pytest.mark.parametrize("what", ["last", "average"])
def test_what_is_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """It is selected on and started from; the answer is an average, over all epochs if the last are mixed."""
    world, starts = Tuning(tmp_path), {}
    start = OnlineCourse.start

    def noted(course: OnlineCourse, epoch: int, shard: int) -> str:
        path = start(course, epoch, shard)
        starts[epoch] = values_of(Path(path))
        return path

    monkeypatch.setattr(OnlineCourse, "start", noted)
    monkeypatch.setattr(Loop, "_forget", lambda loop, epoch: None)
    world.set(features={"templates": ["rule_id"]}, tune=SENTENCES | {"mix_what": what, "epochs": 2})
    assert world.run("-q") == 0
    answers, mixed = [], []
    for folder in sorted((world.out / "epochs").iterdir()):
        shards = [folder / f"shard.{number:03d}.npz" for number in range(2)]
        rows = [values_of(path, "average" if what == "average" else "weight") for path in shards]
        chosen = naive.selected(rows, 3, "l2")
        mean = {
            name: naive.mean([values_of(path, name) for path in shards], [1.0, 1.0])
            for name in ("weight", "average")
        }
        mixed.append({name: mean["weight"].get(name, 0.0) for name in chosen})
        answers.append({name: mean["average"].get(name, 0.0) for name in chosen})
    if what == "average":
        assert starts[1] == pytest.approx(answers[0])
        expected = answers[1]
    else:
        assert starts[1] == pytest.approx(mixed[0])
        expected = naive.mean(answers, [1.0, 1.0])
    found = values_of(world.out / "epochs" / "02" / "answer.npz")
    assert found == pytest.approx({name: value for name, value in expected.items() if value})
    assert len(starts[1]) == 3


@pytest.mark.parametrize("update", ["sentence", "pair"])
def test_l2_moves_weights_of_features_that_do_not_occur(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: str
) -> None:
    """The average over sentences counts all changes; the strength for sparse features is their own."""
    world, history = Tuning(tmp_path), []
    start = world.file("start", ["Glue 8", "R:X:z:Z 8", "R:X:z:ZZ -8"])
    learn = RankLearner.learn

    def noted(learner, batch, weight):  # type: ignore[no-untyped-def]
        found = learn(learner, batch, weight)
        history.append(weight.copy())
        return found

    monkeypatch.setattr(RankLearner, "learn", noted)
    world.set(
        features={"templates": ["rule_id"]},
        tune={"average": "sentences", "held_out": None, "epochs": 1, "start": str(start)},
    )
    keys = ("--update", update, "--l2", "0.5", "--l2-sparse", "2")
    assert world.run("-q", *keys) == 0
    rate, sentences = 0.1, len(world.lines("dev.src"))
    weight = values_of(world.out / "epochs" / "01" / "shard.000.npz")
    average = values_of(world.out / "epochs" / "01" / "answer.npz")
    shrunk = [(1 - 2 * 2 * rate / sentences) ** n * 8 for n in range(1, sentences + 1)]
    assert weight["R:X:z:Z"] == pytest.approx(shrunk[-1])
    assert average["R:X:z:Z"] == pytest.approx(np.mean(shrunk))
    assert average["R:X:z:ZZ"] == pytest.approx(-np.mean(shrunk))
    # Every derivation has as many glue rules: nothing but L2 moves it.
    assert weight["Glue"] == pytest.approx(8 * (1 - 2 * 0.5 * rate / sentences) ** sentences)
    size = max(map(len, history))
    mean = np.mean([np.pad(w, (0, size - len(w))) for w in history], axis=0)
    assert sorted(average.values()) == pytest.approx(sorted(mean[mean != 0]))
