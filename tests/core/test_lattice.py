"""Lattices: what PLF and JSON may contain, errors with their place, and arcs without words."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core import lattice as module
from hiero.core.errors import FormatError, HieroError
from hiero.core.input import looks_like_json, parse_input
from hiero.core.lattice import COST, EPSILON, Lattice, looks_like_plf
from hiero.core.text import InputForm
from tests.naive import lattice as naive
from tests.worlds.lattice import lattices, naive_arcs

ODD_WORDS = ["a", "'", "\\", '"', "(", ")", ",", "((('", "ü", "\\'", "1"]


@given(lattices(ODD_WORDS))
def test_formats_round_trip(lattice: Lattice) -> None:
    again = Lattice.from_plf(lattice.to_plf())
    assert (again.arcs, again.values.tolist()) == (lattice.arcs, lattice.values.tolist())
    again = Lattice.from_json(lattice.to_json())
    assert again.arcs == lattice.arcs
    for name, column in zip(lattice.names, lattice.values.T, strict=True):
        found = again.values[:, again.names.index(name)] if name in again.names else np.zeros(len(column))
        assert found.tolist() == column.tolist()
    for text in (lattice.to_plf(), lattice.to_json()):
        if not lattice.is_sentence:
            assert parse_input(text).lattice is not None


def test_plf_of_moses_and_cdec() -> None:
    """Spaces, missing commas at the ends of lists, a network without distances, several costs, escapes."""
    text = r"""((('it\'s',1,.5,2), ( "a\\b" , -1e-1 , 3 , 1 ) ), (('*EPS*',0,1)))"""
    lattice = Lattice.from_plf(text)
    assert lattice.arcs == ((0, 2, "it's"), (0, 1, "a\\b"), (1, 2, EPSILON))
    assert lattice.names == (COST, f"{COST}_1")
    assert lattice.values.tolist() == [[1, 0.5], [-0.1, 3], [0, 0]]
    network = Lattice.from_plf("((('a',0.5),('b',1),),(('c',0),),)")
    assert network.arcs == ((0, 1, "a"), (0, 1, "b"), (1, 2, "c"))
    assert network == Lattice.from_slots([[("a", 0.5), ("b", 1)], [("c", 0)]])
    assert network.num_paths == 2
    assert Lattice.from_plf("()").arcs == ()


BAD = {
    "": "found the end of the line in column 1, expected a lattice (((…",
    "((('a',1,1),)": "found the end of the line in column 14, expected ( before the arcs of a node",
    "((('a,1,1),),)": 'found "\'a,1,1),),)" in column 4, expected a word in quotation marks',
    "((('a',1,2),),)": "found the word 'a' from node 0 to node 2 of 1, "
    "expected a distance within the lattice",
    "((('a',1,99999999999),),)": "found the distance '99999999999' in column 10, "
    "expected a whole number, 1 or more",
    "((('a',1,-1),),)": "found the distance '-1' in column 10, expected a whole number, 1 or more",
    "((('a',1,1.5),),)": "found the distance '1.5' in column 10, expected a whole number, 1 or more",
    "((('a',nan,1),),)": "found the cost 'nan' in column 8, expected a finite number",
    "((('a',1e999,1),),)": "found the cost '1e999' in column 8, expected a finite number",
    "((('a',1_0,1),),)": "found the cost '1_0' in column 8, expected a finite number",
    "((('a b',1,1),),)": "lattice: arc 0: found the word 'a b', expected one without spaces, or *EPS*",
    "((('',1,1),),)": "found an empty word in column 6, expected a word, or *EPS* for none",
    "((('a'),),)": "found no cost of 'a' in column 8, expected ('word', cost, distance)",
    "(('a',1,1),)": "found \"'a',1,1),)\" in column 3, expected ( before an arc",
    "((('a',1,1),),) b": "found 'b' in column 17, expected the end of the line behind the lattice",
    "((),)": "found node 0 without arcs in column 2, expected at least one arc from every node",
    "((('a',1,2),),(('c',1,1),),)": "lattice: found no arc to node 1, expected every node to be on a path",
}


@pytest.mark.parametrize("text", BAD)
def test_errors_in_plf_have_their_place(text: str) -> None:
    with pytest.raises(HieroError) as error:
        Lattice.from_plf(text, "input", 7)
    place, _, message = str(error.value).partition(": ")
    assert place == "input:7"
    assert message == BAD[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Input data was truncated"),
        ('{"arcs": [{"from": 0, "to": 1}]}', "missing required field `word`"),
        ('{"arcs": [{"from": 0, "to": 1, "word": "a", "cots": 1}]}', "unknown field `cots`"),
        ('{"arcs": [{"from": 0, "to": 1, "word": "a", "cost": 1e400}]}', "out of range"),
        ('{"arcs": [{"from": 0, "to": 1, "word": "a", "cost": NaN}]}', "invalid character"),
        ('{"arcs": [{"from": 1, "to": 0, "word": "a"}]}', "found an arc from 1 to 0"),
        ('{"arcs": [{"from": -1, "to": 0, "word": "a"}]}', "found an arc from -1 to 0"),
        ('{"arcs": [{"from": 0, "to": 5000, "word": "a"}]}', "found 5,001 nodes, expected at most 4,096"),
        ('{"arcs": [{"from": 0, "to": 2, "word": "a"}]}', "found no arc to node 1"),
        (
            '{"arcs": [{"from": 0, "to": 2, "word": "a"}, {"from": 0, "to": 1, "word": "a"}]}',
            "no arc from node 1",
        ),
        ('{"arcs": [{"from": 0, "to": 1, "word": "a", "features": {"x y": 1}}]}', "the feature 'x y'"),
    ],
)
def test_errors_in_json(text: str, message: str) -> None:
    with pytest.raises(HieroError) as error:
        Lattice.from_json(text, "input", 7)
    assert str(error.value).startswith("input:7: ")
    assert message in str(error.value)


def test_sizes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match="more than 4,096 nodes"):
        Lattice.from_plf("(" + "(('a',0,1),)," * 5000 + ")")
    monkeypatch.setattr(module, "MOST_ARCS", 100)
    with pytest.raises(FormatError, match="more than 100 arcs"):
        Lattice.from_plf("((" + "('a',0,1)," * 101 + "),)")
    slots = [[(EPSILON, float(2**k)), (EPSILON, 0.0), ("a", 0.0)] for k in range(20)]
    with pytest.raises(HieroError, match="paths of"):
        _ = Lattice.from_slots(slots).word_arcs
    with pytest.raises(HieroError, match="more than 100 words behind"):
        _ = Lattice.from_slots([[("a", 0), ("b", 0), ("c", 0), ("d", 0), (EPSILON, 0)]] * 8).word_arcs


def test_what_is_a_lattice() -> None:
    """What may be text is text, unless a format is asked for."""
    for text in ("", "a b", "( ( ( ' a", "((( a )))", "(((\u201ca", "{", '{"a": 1}', "((('a',1", '{ "arcs"'):
        assert not looks_like_plf(text), text
        assert not looks_like_json(text), text
        assert parse_input(text).words == tuple(text.split())
    plf = "((('a',0,1),('b',1,1),),)"
    assert parse_input(plf).words == ("a", "b")
    text = InputForm("text")
    assert parse_input(plf, form=text) == parse_input(f"<seg>{plf}</seg>", form=text)
    assert parse_input(plf, form=text).words == (plf,)
    segment = parse_input(f'<seg id="4" grammar="g"> {plf} </seg> ||| x y')
    assert (segment.name, segment.reference) == ("4", ("x", "y"))
    assert segment.lattice == Lattice.from_plf(plf)
    segment = parse_input(
        '{"id": 3, "arcs": [{"from": 0, "to": 1, "word": "a", "cost": 1}], "reference": "x"}'
    )
    assert (segment.name, segment.reference, segment.words) == ("3", ("x",), ("a",))
    assert segment.lattice is not None
    for form in ("plf", "json"):
        assert parse_input(" ", form=InputForm(form)).words == ()
        with pytest.raises(FormatError):
            parse_input("a b", form=InputForm(form))
    # One path without costs is a sentence.
    assert parse_input("((('a',0,1),),(('b',0,1),),)").lattice is None
    assert parse_input("((('a',0,1),),(('*EPS*',0,1),),)").lattice is not None


@given(lattices(["a", "b"], max_nodes=5))
def test_arcs_without_words_are_joined_to_words(lattice: Lattice) -> None:
    """The same words at the same cost, but for the empty reading."""
    joined = lattice.word_arcs
    assert all(np.diff(joined.arcs.start) >= 0)
    rows = joined.arcs.value.sum(axis=1).tolist()
    columns = joined.arcs.start.tolist(), joined.arcs.end.tolist(), joined.words, rows
    arcs = tuple(zip(*columns, strict=True))
    expected = Counter(reading for reading in naive.readings(naive_arcs(lattice), EPSILON) if reading[0])
    if lattice.num_nodes - 1 in joined.arcs.end:
        found = Counter(naive.readings(arcs, EPSILON))
    else:
        found = Counter()
    # Paths with equal words and equal values may be one.
    assert set(found) == set(expected)
    if EPSILON not in lattice.words:
        assert found == expected
    for path, word, length in zip(joined.paths, joined.words, joined.arcs.length.tolist(), strict=True):
        assert [lattice.arcs[k].word for k in path if lattice.arcs[k].word != EPSILON] == [word]
        assert len(path) == length
        assert all(lattice.arcs[a].end == lattice.arcs[b].start for a, b in itertools.pairwise(path))


@given(lattices(["a", "b"]))
def test_paths(lattice: Lattice) -> None:
    found = list(lattice.paths())
    assert len(found) == len(set(found)) == lattice.num_paths
    readings = [
        (
            tuple(lattice.words[k] for k in path if lattice.words[k] != EPSILON),
            lattice.values[list(path)].sum(),
        )
        for path in found
    ]
    assert Counter(readings) == Counter(naive.readings(naive_arcs(lattice), EPSILON))


@given(st.lists(st.sampled_from("ab"), max_size=4))
def test_a_sentence_is_a_lattice(words: list[str]) -> None:
    lattice = Lattice.from_words(words)
    assert lattice.is_sentence
    assert lattice.words == tuple(words)
    assert lattice.arcs == Lattice.from_plf(lattice.to_plf()).arcs
    assert math.isclose(lattice.num_paths, 1)
