"""Feature vectors in files, for processes with other numbers of words and features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hiero
from hiero.core.errors import FormatError
from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.features.names import Names
from hiero.learning.candidates import candidates
from hiero.tuning.vectors import read_vectors, write_vectors
from tests.conftest import MODEL

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
    with pytest.raises(FormatError, match=r"a.npz: found a broken file, expected numbers of features"):
        read_vectors(path, Symbols(), FeatureIndex())
