"""Feature vectors in files, for processes with other numbers of words and features; their means and sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hiero
from hiero.core.errors import FormatError
from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import RULE_ID
from hiero.features.names import Names
from hiero.features.weights import Weights
from hiero.learning.candidates import candidates
from hiero.tuning.vectors import (
    Mixture,
    read_vector,
    read_vectors,
    select_features,
    sum_weights,
    write_vectors,
)
from tests.conftest import MODEL
from tests.naive import tuning as naive

FEATURES = ["rule_id", "source_bigram", "target_bigram", "shape", "lexical", "insertion_pair", "span_size"]


@pytest.fixture(scope="module")
def known() -> tuple[Symbols, FeatureIndex]:
    model, index = hiero.load(MODEL, features=FEATURES), FeatureIndex()
    for sentence in ("er hat mir ein buch versprochen .", "sie hat das buch", "unbekannt"):
        candidates(model.parse(sentence), 50, index)
    return model.symbols, index


def test_round_trip(known: tuple[Symbols, FeatureIndex], tmp_path: Path) -> None:
    symbols, index = known
    chosen = np.flatnonzero(np.arange(len(index)) % 3 != 1)[::-1].copy()
    weight, count = np.linspace(-1, 1, len(chosen)), np.arange(len(chosen))
    text = symbols.words.intern_all(b"a word , and a word".split())
    write_vectors(tmp_path / "a.npz", symbols, index, chosen, text=text, weight=weight, count=count)
    write_vectors(tmp_path / "b.npz", symbols, index, chosen, text=text, weight=weight, count=count)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    other = Symbols()
    other.words.intern_all(b"%d" % i for i in range(1000))
    other.labels.intern_all([b"Q", b"X", b"S", b"Y"])
    other.names.intern_all([b"Glue", b"no such"])
    theirs = FeatureIndex()
    theirs.intern((1, 3, 4))
    ids, values = read_vectors(tmp_path / "a.npz", other, theirs)
    assert values["weight"].tolist() == weight.tolist()
    assert values["count"].tolist() == count.tolist()
    assert b" ".join(map(other.words.entry, values["text"].tolist())) == b"a word , and a word"
    before = [Names(symbols).name(index.key(f)) for f in chosen.tolist()]
    assert [Names(other).name(theirs.key(f)) for f in ids.tolist()] == before
    assert len(set(before)) == len(before) > 100
    assert len(theirs) == len(before) + 1


def test_empty_vectors(tmp_path: Path) -> None:
    symbols, index = Symbols(), FeatureIndex()
    write_vectors(tmp_path / "a.npz", symbols, index, np.empty(0, np.int64), weight=np.empty(0))
    ids, values = read_vectors(tmp_path / "a.npz", symbols, index)
    assert len(ids) == len(values["weight"]) == len(index) == 0


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x00" * 100, "half"])
def test_broken_files(known: tuple[Symbols, FeatureIndex], tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "a.npz"
    if isinstance(content, str):
        write_vectors(path, *known, np.arange(100), weight=np.zeros(100))
        content = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"a.npz: found damage .*, expected numbers of features"):
        read_vectors(path, Symbols(), FeatureIndex())


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("key", lambda key: key.astype(np.int64), "key with 2 dimensions of int64, expected 2 of int32"),
        ("key", lambda key: key + 1000, "a broken file"),
        (
            "key",
            lambda key: np.where(key[:, :1] == RULE_ID, [RULE_ID, 5, 10**6], key).astype(np.int32),
            "broken",
        ),
        ("word_first", lambda first: np.append(first, 0), "a broken file"),
        ("word_first", lambda first: np.array(0), "word_first with 0 dimensions"),
        ("text", lambda text: np.array([10**6], np.int32), "a broken file"),
        ("value_weight", lambda weight: weight * np.nan, "a finite number for each feature"),
        ("value_weight", lambda weight: weight[1:], "a finite number for each feature"),
        ("value_weight", lambda weight: weight.astype(np.float32), "weight with 1 dimensions of float32"),
    ],
)
def test_vectors_that_deceive(
    known: tuple[Symbols, FeatureIndex], tmp_path: Path, name: str, change: Any, message: str
) -> None:
    path = tmp_path / "a.npz"
    write_vectors(path, *known, np.arange(100), weight=np.ones(100))
    with np.load(path) as file:
        arrays = {**file}
    np.savez(path, **(arrays | {name: change(arrays[name])}))
    with pytest.raises(FormatError, match=message) as caught:
        read_vector(str(path), Symbols())
    assert "\n" not in str(caught.value)


# ---- mixing

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
    mixture = mixture_of(paths, [1.0] * len(rows))
    seen, kept = mixture.write(str(place / "out.npz"), select=count, norm=norm)
    found = content(place / "out.npz")
    expected = naive.selected(rows, count, norm)
    assert seen == len({name for row in rows for name in row})
    assert kept == len(found) == len(expected)
    columns = {name: [{name: row.get(name, 0.0)} for row in rows] for name in {*found, *expected}}
    size = {name: norm_of(column, norm) for name, column in columns.items()}
    assert sorted(size[n] for n in found) == pytest.approx(sorted(size[n] for n in expected))
    mean = naive.mean(rows, [1.0] * len(rows))
    assert found == pytest.approx({name: mean[name] for name in found})
    mixture_of(paths, shares).write(str(place / "out.npz"))
    mean = naive.mean(rows, shares)
    assert content(place / "out.npz") == pytest.approx(mean)


def mixture_of(paths: list[str], shares: list[float]) -> Mixture:
    mixture = Mixture()
    for path, share in zip(paths, shares, strict=True):
        mixture.add(path, share)
    return mixture


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
    assert sum_weights(paths, [1.0, 0.5], str(tmp_path / "c.npz")) == 2
    assert content(tmp_path / "c.npz") == {"Glue": 1.0, "B": 0.5}


def test_means_of_features_in_another_file(tmp_path: Path) -> None:
    paths = [written(tmp_path / "a.npz", {"Glue": 1.0, "A": 2.0}), written(tmp_path / "b.npz", {"B": 1.0})]
    chosen = written(tmp_path / "c.npz", {"C": 1.0, "B": -1.0, "Glue": 1.0})
    mixture = mixture_of(paths, [1.0, 3.0])
    assert mixture.write(str(tmp_path / "d.npz"), within=chosen) == (3, 2)
    assert content(tmp_path / "d.npz") == {"Glue": 0.25, "B": 0.75}
