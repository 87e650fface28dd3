"""Iterative mixing: means, feature selection, averages; k-best lists in files."""

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
from hiero.features.weights import Weights
from hiero.learning.candidates import candidates
from hiero.learning.learner import Example
from hiero.tuning.batch import read_examples, write_examples
from hiero.tuning.online import Average, mix, select_features, weighted_sum
from hiero.tuning.shard import shards, shuffled
from hiero.tuning.vectors import read_vectors, write_vectors
from tests.conftest import MODEL
from tests.naive import tuning as naive

NAMES = st.sampled_from(
    ["LanguageModel", "Glue", "RBS:a_b", "R:X:a:b", "R:X:NX_a:N1_b", "Shape_S01_T10", "LT:a:c"]
)
ROW = st.dictionaries(NAMES, st.sampled_from([-2.0, -1.0, 0.5, 0.75, 1.0, 3.0]), max_size=6)


def written(path: Path, row: dict[str, float]) -> str:
    weights = Weights(Symbols(), row)
    vector = weights.vector()
    chosen = np.flatnonzero(vector)[::-1].copy()
    write_vectors(path, weights.symbols, weights.index, chosen, weight=vector[chosen])
    return str(path)


def content(path: Path | str) -> dict[str, float]:
    symbols, index = Symbols(), FeatureIndex()
    ids, values = read_vectors(path, symbols, index)
    names = Names(symbols)
    return {names.name(index.key(f)): w for f, w in zip(ids.tolist(), values["weight"].tolist(), strict=True)}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(ROW, min_size=1, max_size=5),
    st.integers(0, 5),
    st.sampled_from(["l2", "l1", "linf", "l0", "mean"]),
)
def test_selection_equals_that_of_the_whole_matrix(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, float]], count: int, norm: str
) -> None:
    place = tmp_path_factory.mktemp("mix")
    paths = [written(place / f"{i}.npz", row) for i, row in enumerate(rows)]
    shares = [float(1 + i % 3) for i in range(len(rows))]
    # Of columns with equal norms either may be kept, so compare the norms themselves.
    seen, kept = mix(paths, [1.0] * len(rows), str(place / "out.npz"), select=count, norm=norm)
    found = content(place / "out.npz")
    expected = naive.selected(rows, count, norm)
    assert seen == len({name for row in rows for name in row})
    assert kept == len(found) == len(expected)
    columns = {name: [{name: row.get(name, 0.0)} for row in rows] for name in {*found, *expected}}
    size = {name: norm_of(column, norm) for name, column in columns.items()}
    assert sorted(size[n] for n in found) == pytest.approx(sorted(size[n] for n in expected))
    mean = naive.mean(rows, [1.0] * len(rows))
    assert found == pytest.approx({name: mean[name] for name in found})
    mix(paths, shares, str(place / "out.npz"))
    mean = naive.mean(rows, shares)
    assert content(place / "out.npz") == pytest.approx(mean)


def norm_of(column: list[dict[str, float]], norm: str) -> float:
    values = np.array([value for row in column for value in row.values()])
    if norm == "mean":
        return float(abs(values.mean()))
    order = {"l2": 2, "l1": 1, "linf": np.inf, "l0": 0}[norm]
    return float(np.linalg.norm(values, order))


def test_of_equal_columns_the_first_are_kept() -> None:
    norm = np.array([1.0, 0.0, 2.0, 1.0, 1.0])
    assert select_features(norm, 2).tolist() == [0, 2]
    assert select_features(norm, 3).tolist() == [0, 2, 3]
    assert select_features(norm, 0).tolist() == [0, 2, 3, 4]


def test_sums(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / "a.npz", {"Glue": 1.0, "A": 2.0}),
        written(tmp_path / "b.npz", {"A": -4.0, "B": 1.0}),
    ]
    assert weighted_sum(paths, [1.0, 0.5], str(tmp_path / "c.npz")) == 2
    assert content(tmp_path / "c.npz") == {"Glue": 1.0, "B": 0.5}


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
    write_examples(str(tmp_path / "a.npz"), model.symbols, index, examples)
    symbols, other = Symbols(), FeatureIndex()
    symbols.words.intern_all([b"x", b"promised"])
    other.intern((0, symbols.names.intern(b"Glue"), 0))
    back = list(read_examples(str(tmp_path / "a.npz"), symbols, other))
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
