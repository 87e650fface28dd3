"""Moses' rule tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import FormatError
from hiero.core.symbols import Symbols
from hiero.grammar.moses import MosesReader, PhraseTableReader
from hiero.grammar.reader import recognise
from hiero.grammar.sources import read_grammar
from tests.naive import grammar as naive
from tests.worlds.grammars import NAMES, named, numbers, outcome, rules_of, write_rules

MOSES = """[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0 ||| |||
[X][X] of [X][X] [X] ||| [X][X] de [X][X] [X] ||| 0.5 0 1e-3 ||| 0-2 2-0 1-1 ||| 1 2 3 ||| dlm_a 0.25 q 3
a b [X] ||| c [X] ||| 0.1 ||| 0-0 1-0
"""


def test_moses_tables(tmp_path):
    symbols = Symbols()
    rules = rules_of(MosesReader(write_rules(tmp_path, MOSES), symbols).read(), symbols)
    assert [rule[:3] for rule in rules] == [
        (b"S", ((b"S", 1), (b"X", 2)), ((b"S", 1), (b"X", 2))),
        (b"X", ((b"X", 1), b"of", (b"X", 2)), ((b"X", 2), b"de", (b"X", 1))),
        (b"X", (b"a", b"b"), (b"c",)),
    ]
    assert [rule[4] for rule in rules] == [[], [(1, 1)], [(0, 0), (1, 0)]]
    log = math.log10
    assert rules[0][3] == {b"PhraseModel_0": pytest.approx(-log(2.718))}
    assert rules[1][3] == pytest.approx(
        {b"PhraseModel_0": -log(0.5), b"PhraseModel_1": 99, b"PhraseModel_2": 3, b"dlm_a": 0.25, b"q": 3}
    )
    natural = rules_of(MosesReader(write_rules(tmp_path, MOSES), symbols, scale="moses").read(), symbols)
    assert natural[1][3] == pytest.approx(
        {
            b"PhraseModel_0": math.log(0.5),
            b"PhraseModel_1": -100,
            b"PhraseModel_2": math.log(1e-3),
            b"dlm_a": 0.25,
            b"q": 3,
        }
    )


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        ("a [X][X] [X] ||| [X][X] b [X] ||| 1", "the end of the line", "for every gap"),
        ("a [X][X] [X] ||| [X][X] b [X] ||| 1 ||| 0-1", "'0-1'", "for every gap"),
        ("a [X][X] [X] ||| [X][X] b [X] ||| 1 ||| 0-0", "'0-0'", "between two words or between two gaps"),
        ("a [X][X] [X] ||| [X][S] b [X] ||| 1 ||| 1-0", "'1-0'", "the label"),
        ("a [X][X] [X] ||| b [X] ||| 1 ||| 0-0", "'0-0'", "each gap of the source side on the target side"),
        ("[X][X] [X][X] [X] ||| [X][X] [X][X] [X] ||| 1 ||| 0-0 0-1", "'0-0 0-1'", "once"),
        ("[X][X] [X][X] [X] ||| [X][X] [X][X] [X] ||| 1 ||| 0-0 1-0 1-1", "'1-0'", "once"),
        ("a ||| b [X] ||| 1", "'a'", "a left-hand side"),
        ("a [X] ||| b ||| 1", "'b'", "a left-hand side"),
        ("[X] ||| b [X] ||| 1", "'|||'", "a source side"),
        ("a [X] ||| b [X]", "the end of the line", "'|||'"),
        ("a [X] ||| b [X] ||| -1", "-1", "a probability"),
        ("a [X] ||| b [X] ||| 1 ||| ||| ||| x", "the end of the line", "a number after the name"),
        ("a [X] ||| b [X] ||| 1 ||| ||| ||| x y", "'y'", "a number"),
        ("[X][X] " * 33 + "[X] ||| b [X] ||| 1", "'[X][X]'", "a rule has at most 32 gaps"),
    ],
)
def test_moses_errors(tmp_path, line, found, expected):
    with pytest.raises(FormatError) as caught:
        MosesReader(write_rules(tmp_path, f"a [X] ||| b [X] ||| 1\n{line}\n"), Symbols()).read()
    assert str(caught.value).startswith(f"{tmp_path / 'rules.txt'}:2: found {found}, expected ")
    assert expected in str(caught.value)


@st.composite
def moses_lines(draw):
    """Moses tables, mostly valid."""
    labels = draw(st.lists(st.sampled_from(["[X][X]", "[X][S]"]), max_size=2))
    src = draw(st.permutations([*labels, *draw(st.lists(st.sampled_from(["a", "[b", "[X]"]), max_size=3))]))
    tgt = draw(st.permutations([*labels, *draw(st.lists(st.sampled_from(["c", "[X]"]), max_size=3))]))
    place = {
        side: [k for k, token in enumerate(tokens) if "][" in token] for side, tokens in ((0, src), (1, tgt))
    }
    links = [f"{i}-{j}" for i, j in zip(place[0], draw(st.permutations(place[1])), strict=True)]
    links += draw(st.lists(st.builds("{}-{}".format, st.integers(0, 4), st.integers(0, 4)), max_size=1))
    scores = draw(st.lists(numbers, max_size=3))
    sparse = draw(st.lists(st.builds("{} {}".format, st.sampled_from(NAMES), numbers), max_size=2))
    fields = [
        [*src, "[X]"],
        [*tgt, draw(st.sampled_from(["[X]", "[S]", "x"]))],
        scores,
        links,
        ["1", "2"],
        sparse,
    ]
    return " ||| ".join(" ".join(field) for field in fields)


@given(st.lists(moses_lines(), max_size=4))
def test_moses_tables_equal_those_of_the_twin(tmp_path_factory, lines):
    path = write_rules(tmp_path_factory.mktemp("m"), "\n".join(lines))
    symbols = Symbols()
    assert outcome(lambda: rules_of(MosesReader(path, symbols, scale="keep").read(), symbols)) == outcome(
        lambda: named(naive.read_moses(path.read_bytes()))
    )


# ---- phrase tables


def test_phrase_tables(tmp_path):
    lines = "ein haus ||| a house ||| 0.5 0.1 0.01 1e-3 ||| 0-0 1-1 ||| 2 2 1 ||| dlm 2 |||\n"
    lines += "[X,1] [x] ||| ||| 1\n"
    symbols = Symbols()
    rules = rules_of(read_grammar(write_rules(tmp_path, lines), symbols), symbols)
    assert [rule[:3] for rule in rules] == [
        (b"X", (b"ein", b"haus"), (b"a", b"house")),
        (b"X", (b"[X,1]", b"[x]"), ()),
    ]
    assert rules[0][4] == [(0, 0), (1, 1)]
    values = {
        b"PhraseModel_0": -math.log10(0.5),
        b"PhraseModel_1": 1,
        b"PhraseModel_2": 2,
        b"PhraseModel_3": 3,
    }
    assert rules[0][3] == pytest.approx(values | {b"dlm": 2})


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"ein haus ||| a house ||| 0.5 0.1 1 1e-3 ||| 0-0", "phrases"),
        (b"ein ||| a ||| 1", "phrases"),
        (b"ein [X] ||| a [X] ||| 1", "moses"),
        (b"[X] ||| ein ||| a ||| 1", "cdec"),
        (b"ein ||| a ||| Glue=1", "cdec"),
        (b"ein ||| a", "cdec"),
        (b"||| a ||| 1", "cdec"),
    ],
)
def test_phrase_tables_are_recognised(line, name):
    assert recognise(line) == name


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        ("||| b ||| 1", "'|||'", "a source side"),
        ("a", "the end of the line", "'|||' and a target side"),
        ("a ||| b", "the end of the line", "'|||'"),
        ("a ||| b ||| x", "'x'", "a number"),
        ("a ||| b ||| -1", "-1", "a probability"),
        ("a ||| b ||| 1 ||| 0-1", "'0-1'", "a link between positions"),
        (" ".join("a" * 201) + " ||| b ||| 1", "'a'", "after at most 200 symbols"),
    ],
)
def test_errors_of_phrase_tables(tmp_path, line, found, expected):
    with pytest.raises(FormatError) as caught:
        PhraseTableReader(write_rules(tmp_path, f"a ||| b ||| 1\n{line}\n"), Symbols()).read()
    assert str(caught.value).startswith(f"{tmp_path / 'rules.txt'}:2: found {found}, expected ")
    assert expected in str(caught.value)


@st.composite
def phrase_lines(draw):
    """Phrase tables, mostly valid."""
    words = st.lists(st.sampled_from(["a", "[X]", "[X,1]", "ä", "||", "0"]), max_size=3)
    links = st.lists(st.builds("{}-{}".format, st.integers(0, 2), st.integers(0, 2)), max_size=2)
    sparse = st.lists(st.builds("{} {}".format, st.sampled_from(NAMES), numbers), max_size=2)
    fields = [
        draw(words),
        draw(words),
        draw(st.lists(numbers, max_size=4)),
        draw(links),
        ["1", "2", "1"],
        draw(sparse),
    ]
    return " ||| ".join(" ".join(field) for field in fields[: draw(st.integers(2, 6))])


@given(st.lists(phrase_lines(), max_size=4))
def test_phrase_tables_equal_those_of_the_twin(tmp_path_factory, lines):
    path = write_rules(tmp_path_factory.mktemp("m"), "\n".join(lines))
    symbols = Symbols()
    assert outcome(
        lambda: rules_of(PhraseTableReader(path, symbols, scale="keep").read(), symbols)
    ) == outcome(lambda: named(naive.read_phrases(path.read_bytes())))
