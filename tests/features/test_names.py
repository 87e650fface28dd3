"""Feature names are unique, and parsing a name gives the feature."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.symbols import Symbols
from hiero.features.feature_set import TEMPLATES
from hiero.features.index import KINDS, Key
from hiero.features.index_kernels import NAME
from hiero.features.names import Names
from tests.naive import features as naive
from tests.worlds.rules import NASTY, rule, symbols_of, words

ALL = set(TEMPLATES)


def test_kinds_are_numbered_and_their_prefixes_differ():
    assert list(KINDS) == list(range(len(KINDS)))
    prefixes = [kind.prefix for kind in KINDS.values() if kind.prefix]
    assert not any(one != other and one.startswith(other) for one in prefixes for other in prefixes)
    assert len(prefixes) == len(set(prefixes)) == len(KINDS) - 1


@given(st.lists(words, max_size=3), st.data())
def test_names_are_read_back(extra, data):
    symbols = symbols_of(extra)
    names = Names(symbols)
    keys = naive.keys(data.draw(rule(num_words=len(symbols.words))), ALL)
    for key in keys:
        name = names.name(key)
        assert names.parse(name) == key
        assert names.parse(name, add=False) == key


@given(st.lists(rule(), min_size=1, max_size=8))
def test_no_two_features_share_a_name(rules):
    names = Names(symbols_of())
    keys = {key for r in rules for key in naive.keys(r, ALL)}
    assert len({names.name(key) for key in keys}) == len(keys)


@given(words | st.sampled_from(["RBS:a_b", "R:X:a:b", "LT:", "Shape_S00000_T00000", "a b", "a\tb\n", "%~x"]))
def test_own_names_are_read_back(text):
    symbols = Symbols()
    key = (NAME, symbols.names.intern(text.encode()), 0)
    name = Names(symbols).name(key)
    assert Names(symbols).parse(name) == key
    assert not set(name) & set(" \t\n=;")
    assert not name.startswith(("#", "%~"))


@given(
    st.text(st.sampled_from("ab_:%=;<r>/NX1 3DR0|#"), max_size=8),
    st.sampled_from(["", "R:X:", "RBS:", "RBT:", "LT:", "LD:"]),
)
def test_accepted_names_are_those_written(text, prefix):
    names = Names(symbols_of())
    key = names.parse(prefix + text)
    assert key is None or names.name(key) == prefix + text


def test_names_of_invalid_utf8():
    symbols = Symbols()
    word = symbols.words.intern(b"a\xffb")
    assert Names(symbols).name((6, word, 0)) == "LD:a%FFb"
    assert Names(symbols).parse("LD:a%FFb") == (6, word, 0)


def word_key(symbols: Symbols, kind: int, *entries: str) -> Key:
    ids = [symbols.words.intern(entry.encode()) for entry in entries]
    return (kind, *ids, *[0] * (2 - len(ids)))


@pytest.mark.parametrize(
    ("kind", "entries", "name", "cdec"),
    [
        (2, ["a", "b"], "RBS:a_b", "RBS:a_b"),
        (2, ["a_b", "c"], "RBS:a%5Fb_c", "RBS:a_b_c"),
        (2, ["a", "b_c"], "RBS:a_b%5Fc", "RBS:a_b_c"),
        (2, ["a=b", "c"], "RBS:a%3Db_c", "RBS:a_b_c"),
        (2, ["X", "b"], "RBS:%58_b", "RBS:X_b"),
        (2, ["<r>", "b"], "RBS:%3Cr>_b", "RBS:<r>_b"),
        (2, ["_", "b"], "RBS:__b", "RBS:__b"),
        (2, ["&apos;s", "b"], "RBS:&apos%3Bs_b", "RBS:&apos_s_b"),
        (3, ["X1", "X"], "RBT:%581_X", "RBT:X1_X"),
        (3, ["NATO", "I"], "RBT:NATO_I", "RBT:NATO_I"),
        (3, ["10%", "%"], "RBT:10%_%", "RBT:10%_%"),
        (5, [":", "-"], "LT:::-", "LT:::-"),
        (5, ["12:30", "12:30"], "LT:12%3A30:12%3A30", "LT:12:30:12:30"),
        (5, ["a_b", "c"], "LT:a_b:c", "LT:a_b:c"),
        (6, ["a:b"], "LD:a:b", "LD:a:b"),
        (6, ["%3D"], "LD:%253D", "LD:%3D"),
        (7, ["|||"], "LI:%7C||", "LI:|||"),
    ],
)
def test_spelling(kind, entries, name, cdec):
    symbols = symbols_of()
    key = word_key(symbols, kind, *entries)
    assert Names(symbols).name(key) == name
    assert Names(symbols).cdec_name(key) == cdec


def test_rule_ids_whose_spelling_collides():
    symbols = symbols_of()
    names = Names(symbols)
    word = {entry: symbols.words.find(entry.encode()) for entry in NASTY}
    label = symbols.labels.find(b"X")
    gap, bare, first = naive.code((label, 1)), naive.code((label, 0)), naive.code((0, 1))
    assert gap != bare
    spelt = {
        (1, label, word["N1"], -12, word["N1"]): ("R:X:N1:%4E1", "R:X:N1:N1"),
        (1, label, bare, -12, first): ("R:X:NX:N1", "R:X:NX:N1"),
        (1, label, word["NX"], -12, word["N1"]): ("R:X:%4EX:%4E1", "R:X:NX:N1"),
        (1, label, word["a_b"], -12, word["a"]): ("R:X:a%5Fb:a", "R:X:a_b:a"),
        (1, label, word["a"], word["b"], -12, word["a"]): ("R:X:a_b:a", "R:X:a_b:a"),
        (1, label, word[":"], -12, word[":"]): ("R:X::::", "R:X::::"),
        (1, label, word["a:b"], -12, word["a:b"]): ("R:X:a%3Ab:a%3Ab", "R:X:a:b:a:b"),
        (1, label, word["a"], -12): ("R:X:a:%%", "R:X:a:"),
        (1, label, naive.code((symbols.labels.find(b"NP-SBJ"), 0)), -12, first): (
            "R:X:N%%NP-SBJ:N1",
            "R:X:NNP-SBJ:N1",
        ),
    }
    for key, (name, cdec) in spelt.items():
        assert (names.name(key), names.cdec_name(key)) == (name, cdec)
        assert names.parse(name) == key


@pytest.mark.parametrize(
    "name",
    ["RBS:a", "RBS:a_b_c", "RBS:</r>_a", "R:X:a", "R:X:NX:a", "LT:a", "LD:", "#a", "", "a b", "LD:%61"],
)
def test_names_of_no_feature(name):
    assert Names(symbols_of()).parse(name) is None


def test_parsing_without_add_adds_nothing():
    symbols = Symbols()
    assert Names(symbols).parse("RBS:a_b", add=False) is None
    assert len(symbols.words) == 0
