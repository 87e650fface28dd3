"""Weights: the mapping, exact and shared names, and files."""

from __future__ import annotations

import gzip
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import FormatError
from hiero.core.symbols import Symbols
from hiero.features.feature_set import TEMPLATES
from hiero.features.index_kernels import NAME
from hiero.features.weights import EXACT, Weights, read_weights, write_weights
from tests.naive import features as naive
from tests.worlds.rules import rule, symbols_of

finite = st.floats(allow_nan=False, allow_infinity=False)


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_mapping():
    weights = Weights(Symbols(), {"Glue": -0.1, "RBS:a_b": 2.0})
    assert weights["Glue"] == -0.1
    assert dict(weights) == {"Glue": -0.1, "RBS:a_b": 2.0}
    assert len(weights) == 2
    assert "Nix" not in weights
    assert weights.get("RBS:a_c", 7.0) == 7.0
    weights["Glue"] = 1
    del weights["RBS:a_b"]
    assert dict(weights) == {"Glue": 1.0}
    with pytest.raises(KeyError):
        del weights["RBS:a_b"]
    with pytest.raises(ValueError, match="not a finite number"):
        weights["Glue"] = math.nan


def test_changes_are_counted():
    weights = Weights(Symbols(), {"Glue": -0.1, "%~LD:a": 2.0})
    versions = [weights.version]
    weights["Glue"] = 2.0
    versions.append(weights.version)
    weights["%~LD:b"] = 2.0
    versions.append(weights.version)
    del weights["%~LD:a"]
    versions.append(weights.version)
    weights.assign(np.ones(1))
    versions.append(weights.version)
    weights.vector()
    assert len(set(versions)) == len(versions)
    assert weights.version == versions[-1]


def test_shared_names_apply_without_an_exact_one():
    symbols = symbols_of()
    weights = Weights(symbols, {"RBS:a_b_a": 0.5, "RBS:a%5Fb_a": 2.0, "RBS:a_b": 1.0})
    a, b, a_b, b_a = (symbols.words.intern(word) for word in (b"a", b"b", b"a_b", b"b_a"))
    assert weights.of((2, a_b, a)) == 2.0
    assert weights.of((2, a, b_a)) == 0.5
    assert weights.of((2, a, b)) == 1.0
    assert weights.of((2, b, a)) == 0.0
    assert dict(weights) == {"RBS:a%5Fb_a": 2.0, "RBS:a_b": 1.0, "%~RBS:a_b_a": 0.5}
    assert dict(Weights(symbols_of(), weights)) == dict(weights)


@given(
    st.lists(st.tuples(rule(), finite), max_size=5),
    st.dictionaries(st.sampled_from(["F", "G=H", "G_H", "%~a", "%~R:X:a_b:c"]), finite),
    st.booleans(),
    st.booleans(),
)
def test_files_round_trip(tmp_path_factory, rules, named, zeros, exact):
    path = tmp_path_factory.mktemp("weights") / "w.gz"
    weights = Weights(symbols_of(), named, exact=exact)
    for r, value in rules:
        keys = naive.keys(r, set(TEMPLATES))
        weights.set_all(keys, [value] * len(keys))
    pickled = pickle.loads(pickle.dumps(weights))
    assert (dict(pickled), pickled.exact) == (dict(weights), exact)
    write_weights(path, weights, zeros=zeros)
    symbols = symbols_of()
    again = read_weights(path, symbols)
    assert again.exact == exact
    assert {n: v for n, v in again.items() if v != 0 or zeros} == {
        n: v for n, v in weights.items() if v != 0 or zeros
    }
    for r, _ in rules:
        for key in naive.keys(r, set(TEMPLATES)):
            assert again.of(key) == weights.of(key)


def test_files_are_sorted_and_deterministic(tmp_path):
    weights = Weights(Symbols(), [("b", 0.1), ("RBT:a_b", 1e-300), ("a", -1), ("c", 0)])
    write_weights(tmp_path / "w", weights)
    expected = EXACT.decode() + "\nRBT:a_b 1.0000000000000000e-300\na -1\nb 0.10000000000000001\n"
    assert (tmp_path / "w").read_text() == expected.replace("1.0000000000000000e-300", f"{1e-300:.17g}")
    write_weights(tmp_path / "w.gz", weights)
    first = (tmp_path / "w.gz").read_bytes()
    write_weights(tmp_path / "w.gz", read_weights(tmp_path / "w.gz", Symbols()))
    assert (tmp_path / "w.gz").read_bytes() == first
    assert gzip.decompress(first).decode() == (tmp_path / "w").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w", "w.gz"]


def test_files_in_cdecs_syntax(tmp_path):
    text = "\ufeff# comment\n\nGlue -0.1\nWordPenalty=2\nA\t3e-2\r\nLM0= .5\nRBS:a_b 1.\nB = -7\n \t\nC +1 \n"
    weights = read_weights(written(tmp_path / "w", text), Symbols())
    assert dict(weights) == {
        **{"Glue": -0.1, "WordPenalty": 2.0, "A": 0.03, "LM0": 0.5, "RBS:a_b": 1.0, "B": -7.0, "C": 1.0},
    }


def test_files_with_cdecs_names_give_cdecs_weights(tmp_path):
    symbols = symbols_of()
    path = written(tmp_path / "w", "RBS:&apos_s_b 1\nRBS:X_b 2\nR:X:a_b:a 3\nLT:a_b:a 4\nLD:a 5\nG_H 6\n")
    weights = read_weights(path, symbols)
    word = {
        entry: symbols.words.intern(entry.encode())
        for entry in ("&apos;s", "&apos_s", "b", "X", "a", "a_b", "a=b")
    }
    label = symbols.labels.find(b"X")
    assert weights.of((2, word["&apos;s"], word["b"])) == 1
    assert weights.of((2, word["&apos_s"], word["b"])) == 1
    assert weights.of((2, naive.code((label, 0)), word["b"])) == 2
    assert weights.of((2, word["X"], word["b"])) == 2
    for src in ([word["a"], word["b"]], [word["a_b"]], [word["a=b"]]):
        assert weights.of((1, label, *src, -12, word["a"])) == 3
    assert weights.of((5, word["a_b"], word["a"])) == weights.of((5, word["a=b"], word["a"])) == 4
    assert weights.of((6, word["a"], 0)) == 5
    assert weights.of((NAME, symbols.names.find(b"G_H"), 0)) == 6
    # Written by us and read again, all of that is still so.
    write_weights(tmp_path / "again", weights)
    again = read_weights(tmp_path / "again", symbols)
    assert dict(again) == dict(weights)
    assert again.of((2, word["X"], word["b"])) == 2


def test_exact_files_give_a_weight_to_one_feature_only(tmp_path):
    symbols = symbols_of()
    write_weights(tmp_path / "w", Weights(symbols, {"RBS:X_b": 2.0}))
    again = read_weights(tmp_path / "w", symbols)
    x, b = symbols.words.find(b"X"), symbols.words.find(b"b")
    assert again.of((2, x, b)) == 0
    assert again["RBS:X_b"] == 2


def test_zeros_that_override_shared_weights_are_written(tmp_path):
    weights = Weights(symbols_of(), {"%~LD:a_b": 2.0, "LD:a%3Db": 0.0, "LD:a": 0.0})
    write_weights(tmp_path / "w", weights)
    again = read_weights(tmp_path / "w", Symbols())
    assert dict(again) == {"%~LD:a_b": 2.0, "LD:a%3Db": 0.0}


def test_names_that_cdec_merges(tmp_path):
    weights = Weights(
        symbols_of(), {"RBS:X_b": 2.0, "RBS:%58_b": 3.0, "LD:a%3Db": 1.0, "LD:a%3Bb": 1.0, "Z": 4}
    )
    assert write_weights(tmp_path / "w", weights, cdec_names=True) == [b"RBS:X_b"]
    assert (tmp_path / "w").read_text() == "LD:a_b 1\nRBS:X_b 2\nZ 4\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1\nb x\n", ":2: found the weight 'x', expected a finite number"),
        ("a nan\n", ":1: found the weight 'nan', expected a finite number"),
        ("a -inf\n", ":1: found the weight '-inf', expected a finite number"),
        ("a 1e999\n", ":1: found the weight '1e999', expected a finite number"),
        ("a 1_0\n", ":1: found the weight '1_0', expected a finite number"),
        ("a\n", ":1: found 'a', expected a name, a space and a number"),
        ("a 1 2\n", ":1: found 'a 1 2', expected a name, a space and a number"),
        (" a 1\n", ":1: found a space before the name, expected a line that begins with the name"),
        (
            "a 1\n\nb 1\na 2\n",
            ":4: found a second weight of 'a', expected one line a feature (its first weight is in line 1)",
        ),
        (b"a 1\nb\xff 2\n", ":2: found byte 0xff at position 2 of the line, expected UTF-8"),
        (EXACT + b"\nRBS:a_b_c 1\n", ":2: found the name 'RBS:a_b_c', expected the exact name of a feature"),
    ],
)
def test_errors_in_files(tmp_path, text, message):
    path = written(tmp_path / "w", text)
    with pytest.raises(FormatError) as error:
        read_weights(path, Symbols())
    assert str(error.value).startswith(f"{path}{message}")


def test_truncated_files(tmp_path):
    write_weights(tmp_path / "w.gz", Weights(Symbols(), {f"F{i}": i for i in range(1000)}))
    path = written(tmp_path / "cut.gz", (tmp_path / "w.gz").read_bytes()[:-900])
    with pytest.raises(FormatError, match="expected a whole gz file"):
        read_weights(path, Symbols())
    with pytest.raises(FormatError, match="no such file"):
        read_weights(tmp_path / "nix", Symbols())


def test_vector_and_assign():
    weights = Weights(symbols_of(), {"A": 1.0, "%~LD:a_b": 2.0, "LD:b": 3.0})
    new = weights.index.intern_all([(6, weights.symbols.words.find(b"a=b"), 0), (7, 0, 0)])
    vector = weights.vector()
    assert vector[new].tolist() == [2.0, 0.0]
    assert sorted(vector.tolist()) == [0.0, 1.0, 2.0, 3.0]
    vector[new[0]] = 0.0
    vector[weights.index.find((NAME, weights.symbols.names.find(b"A"), 0))] = 0.0
    weights.assign(vector)
    assert dict(weights) == {"LD:b": 3.0, "LD:a%3Db": 0.0, "%~LD:a_b": 2.0}
    vector[0] = np.inf
    with pytest.raises(ValueError, match="not a finite number"):
        weights.assign(vector)


@pytest.mark.reference
def test_weights_of_cdec_round_trip(reference, tmp_path):
    weights = read_weights(reference / "m30k" / "weights.sparse.gz", Symbols())
    assert len(weights) == 2440
    write_weights(tmp_path / "w.gz", weights, cdec_names=True)
    assert dict(read_weights(tmp_path / "w.gz", Symbols())) == dict(weights)
