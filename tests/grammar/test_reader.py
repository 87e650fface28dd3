"""Reading of rules: formats, cdec's syntax, and error messages."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.errors import ConfigError, FormatError
from hiero.core.progress import SilentProgress
from hiero.core.scan_kernels import powers_of_ten, scan_number
from hiero.core.symbols import Symbols, intern_tokens, local_entries, local_vocabulary
from hiero.core.text import read_chunks
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.config import GrammarFormat
from hiero.grammar.reader import MAX_COLUMNS, RuleReader, read_text_grammar, recognise, split_features
from tests.naive import grammar as naive
from tests.worlds.grammars import named, numbers, outcome, rule_lines, rules_of, write_rules


@given(st.lists(rule_lines() | st.sampled_from(["", " \t", "\r"]), max_size=8), st.integers(1, 200))
def test_rules_equal_those_of_the_twin(tmp_path_factory, lines, chunk_bytes):
    path = write_rules(tmp_path_factory.mktemp("g"), "\n".join(lines))
    symbols = Symbols()
    table = RuleReader(path, symbols).read(read_chunks(path, chunk_bytes))
    assert rules_of(table, symbols) == named(naive.read_rules(path.read_bytes()))


TOKENS = [
    "|||",
    "[X]",
    "[X,1]",
    "[X,2]",
    "[Y,1]",
    "[1]",
    "[2]",
    "[3]",
    "[X,3]",
    "a",
    "F=1",
    "F=",
    "=1",
    "1-1",
]
TOKENS += [
    "0-0",
    "x-1",
    "9-9",
    "1.5",
    "nan",
    "1e39",
    ";",
    "\r",
    "-",
    "[",
    "[foo]",
    "1..2",
    "1e",
    "e5",
    "--1",
    "0-0-0",
]


@given(rule_lines(), st.data())
def test_broken_lines_are_refused_where_the_twin_refuses_them(line, data):
    tokens = line.split(" ")
    place = data.draw(st.integers(0, len(tokens)))
    tokens[place : place + data.draw(st.integers(0, 1))] = data.draw(
        st.lists(st.sampled_from(TOKENS), max_size=1)
    )
    text = "[X] ||| fine ||| fine\n" + " ".join(tokens)
    symbols = Symbols()
    assert outcome(lambda: rules_of(parse_cdec(text.split("\n"), symbols), symbols)) == outcome(
        lambda: named(naive.read_rules(text.encode()))
    )


@given(
    numbers
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.from_regex(r"[+-]?\d{0,25}\.?\d{0,25}([eE][+-]?\d{1,3})?", fullmatch=True)
)
def test_numbers_are_exact(text):
    data = text.encode()
    stop, value, exact = scan_number(read_only(np.frombuffer(data, np.uint8)), 0, len(data), powers_of_ten())
    if not naive.NUMBER.fullmatch(data):
        assert stop < len(data) or not data
        return
    assert stop == len(data)
    with np.errstate(over="ignore"):
        if exact:
            assert np.float32(value) == np.float32(float(text))
        else:
            # Close enough to half-way between two numbers that the reader asks Python.
            assert value == pytest.approx(float(text), rel=1e-15)


def test_numbers_halfway_between_two_are_read_again():
    half, above, below = "1.000000059604644775390625", "1.00000005960464566", "1.00000005960464386"
    symbols = Symbols()
    table = parse_cdec([f"[X] ||| a ||| b ||| A={half} B={above} C={below}"], symbols)
    assert table.rules.dense[0].tolist() == [1.0, 1.0 + 2**-23, 1.0]


WRONG = [
    ("x", "'x'", "'[LABEL] |||'"),
    ("[X] a ||| b", "'[X] a'", "'[LABEL] |||'"),
    ("[X,1] ||| a ||| b", "'[X,1] |||'", "'[LABEL] |||'"),
    ("# a comment", "'# a'", "'[LABEL] |||'"),
    (" [X] ||| a ||| b", "'[X]'", "coarse-to-fine"),
    ("[X] ||| a", "the end of the line", "'|||' and a target side"),
    ("[X] ||| ||| b", "'|||'", "a source side"),
    ("[X] ||| " + "[Y] " * 32 + "[X,33] ||| b", "'[X,33]'", "(a rule has at most 32 gaps)"),
    ("[X] ||| [X,2] ||| b", "'[X,2]'", "numbered 1, 2"),
    ("[X] ||| [X,1] ||| b", "'b'", "each gap of the source side"),
    ("[X] ||| [X,1] |||", "the end of the line", "each gap of the source side"),
    ("[X] ||| [X,1] ||| [2]", "'[2]'", "a gap of the source side"),
    ("[X] ||| a ||| [X,1]", "'[X,1]'", "a gap of the source side"),
    ("[X] ||| [X] ||| [1] [X,1]", "'[X,1]'", "once"),
    ("[X] ||| [X,1] ||| [Y,1]", "'[Y,1]'", "the label"),
    ("[X] ||| a ||| b ||| F=x", "'x'", "a number"),
    ("[X] ||| a ||| b ||| F=", "the end of the line", "a number"),
    ("[X] ||| a ||| b ||| inf", "'inf'", "a number"),
    ("[X] ||| a ||| b ||| F=nan", "'nan'", "a number"),
    ("[X] ||| a ||| b ||| F=1=2", "'1=2'", "a number"),
    ("[X] ||| a ||| b ||| F=-1e39", "'-1e39'", "at most 3.4e38"),
    ("[X] ||| a ||| b ||| =1", "'=1'", "a name"),
    ("[X] ||| a ||| b ||| F=1 ||| 0-1", "'0-1'", "counted from 0"),
    ("[X] ||| a ||| b ||| F=1 ||| 0:0", "'0:0'", "i-j"),
    ("[X] ||| [X] a ||| b [1] ||| F=1 ||| 0-0", "'0-0'", "two words or between two gaps"),
    ("[X] ||| " + "a " * 201 + "||| b", "'a'", "at most 200 symbols"),
    ("[X] ||| a ||| " + "b " * 201, "'b'", "at most 200 symbols"),
    ("[X] ||| a ||| b ||| " + "1 " * 10_001, "'1'", "at most 10000 features"),
]


@pytest.mark.parametrize(("line", "found", "expected"), WRONG)
def test_error_messages(line, found, expected):
    with pytest.raises(FormatError) as caught:
        parse_cdec(["[X] ||| a ||| b", "", line], Symbols(), "g.txt")
    message = str(caught.value)
    assert message.startswith(f"g.txt:3: found {found}, expected ")
    assert expected in message
    assert "\n" not in message


def test_the_first_wrong_line_is_reported(tmp_path):
    lines = ["[X] ||| a ||| b ||| F=x", "[X] ||| [X,2] ||| b", "oh"]
    for k in range(3):
        with pytest.raises(FormatError) as caught:
            RuleReader(
                write_rules(tmp_path, "\n".join(["[X] ||| ok ||| ok"] * k + lines[k:])), Symbols()
            ).read()
        assert caught.value.line == k + 1


def test_links_between_gaps_are_left_out_and_fields_may_be_missing():
    symbols = Symbols()
    table = parse_cdec(
        ["[S] ||| [X] a [Y,2] ||| [2] b [X,1] ||| ||| 0-2 1-1 2-0 ||| (S b)", "[X] ||| a |||"], symbols
    )
    assert rules_of(table, symbols) == [
        (b"S", ((b"X", 1), b"a", (b"Y", 2)), ((b"Y", 2), b"b", (b"X", 1)), {}, [(1, 1)]),
        (b"X", (b"a",), (), {}, []),
    ]


def test_the_last_value_of_a_name_counts_as_in_cdec():
    symbols = Symbols()
    table = parse_cdec(["[X] ||| a ||| b ||| F=1 F=2", *["[X] ||| a ||| c ||| G=1"] * 3], symbols)
    assert [rule[3] for rule in rules_of(table, symbols)[:2]] == [{b"F": 2.0}, {b"G": 1.0}]


def test_broken_utf8_is_an_error_at_its_line(tmp_path):
    good = "[X] ||| ü ||| ü\n".encode()
    for bad in (
        b"[X] ||| a\xff ||| b\n",
        b"[X] ||| a ||| b \xc3\n",
        b"[\xff] ||| a ||| b\n",
        b"[X] ||| a ||| b ||| \xff=1\n",
    ):
        with pytest.raises(FormatError, match=r"rules\.txt:3: found '.*', expected UTF-8"):
            RuleReader(write_rules(tmp_path, good * 2 + bad + good + bad), Symbols()).read()


@pytest.mark.parametrize("word", ["\ud800", "b\udfff"])
def test_strings_without_utf8_are_errors(word):
    with pytest.raises(FormatError, match=r"<rules>:1: found '.*', expected UTF-8"):
        parse_cdec([f"[X] ||| a ||| {word}"], Symbols())


def test_ignored_fields_are_not_checked(tmp_path):
    assert (
        RuleReader(write_rules(tmp_path, b"[X] ||| a ||| b ||| ||| ||| \xff"), Symbols()).read().num_rules
        == 1
    )


@pytest.mark.parametrize("data", [bytes(range(256)) * 20, b"\x00" * 1000, b"\xff\xfe[\x00X\x00]\x00"])
def test_binary_files_are_refused_in_one_line(tmp_path, data):
    with pytest.raises(FormatError) as caught:
        RuleReader(write_rules(tmp_path, data), Symbols()).read()
    assert "expected '[LABEL] |||'" in str(caught.value)
    assert str(caught.value).isprintable()


def test_an_empty_file_is_an_empty_grammar(tmp_path):
    for text in ("", "\n", " \n\t\n"):
        assert RuleReader(write_rules(tmp_path, text), Symbols()).read().num_rules == 0


def test_byte_order_mark(tmp_path):
    table = RuleReader(
        write_rules(tmp_path, b"\xef\xbb\xbf[X] ||| a ||| b\r\n[X] ||| a ||| c\r\n"), Symbols()
    ).read()
    assert table.num_rules == 2


def test_missing_and_truncated_files(tmp_path):
    with pytest.raises(FormatError, match=r"none\.gz: found no such file, expected a grammar"):
        RuleReader(tmp_path / "none.gz", Symbols()).read()
    with pytest.raises(FormatError, match="found a directory, expected a grammar"):
        RuleReader(tmp_path, Symbols()).read()
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"[X] ||| a ||| b\n" * 1000)[:-4])
    with pytest.raises(
        FormatError, match=r"cut\.gz:1001: found the end of the file .* \(the file is truncated"
    ):
        RuleReader(path, Symbols()).read()


@given(st.lists(st.binary(max_size=6), max_size=40), st.integers(0, 39))
def test_tokens_are_numbered_by_first_use(tokens, cut):
    data = np.frombuffer(b"".join(tokens) + b"\n", np.uint8)
    ends = np.cumsum([0, *map(len, tokens)])
    token = np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int32)
    local = local_vocabulary(2, 4)
    local, first = intern_tokens(local, data, token[:cut])
    local, second = intern_tokens(local, data, token[cut:])
    assert [*first.tolist(), *second.tolist()] == naive.intern_tokens(tokens)
    assert local_entries(local) == list(dict.fromkeys(tokens))


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9).map(float)), max_size=5), max_size=6),
    st.none() | st.sets(st.integers(0, 5)),
)
def test_features_are_split_into_columns_and_rows(rows, columns):
    first = np.cumsum([0, *map(len, rows)])
    name = np.array([name for row in rows for name, _ in row], np.int32)
    value = np.array([value for row in rows for _, value in row], np.float32)
    wanted = None if columns is None else np.array(sorted(columns), np.int32)
    chosen, dense, first_sparse, sparse_name, sparse_value = split_features(first, name, value, wanted)
    if columns is None:
        often = [n for n in range(6) if sum(dict(row).get(n) is not None for row in rows) * 2 > len(rows)]
        assert set(often) <= set(chosen)
    sparse = [
        dict(zip(sparse_name[a:b].tolist(), sparse_value[a:b].tolist(), strict=True))
        for a, b in itertools.pairwise(first_sparse)
    ]
    assert (dense.tolist(), sparse) == naive.split_features(rows, list(chosen))


def test_the_number_of_columns_is_bounded():
    symbols = Symbols()
    line = "[X] ||| a ||| b ||| " + " ".join(f"F{k}={k}" for k in range(MAX_COLUMNS + 9))
    table = parse_cdec([line] * 3, symbols)
    assert len(table.columns) == MAX_COLUMNS
    assert rules_of(table, symbols)[2][3] == {f"F{k}".encode(): float(k) for k in range(1, MAX_COLUMNS + 9)}


def test_progress_counts_rules(tmp_path):
    path = write_rules(tmp_path, "[X] ||| a ||| b\n" * 10)
    steps: list[int] = []
    progress = SilentProgress()
    progress.advance = lambda rules, note="": steps.append(rules)
    RuleReader(path, Symbols()).read(read_chunks(path, 32), progress)
    assert sum(steps) == 10


def test_formats_are_recognised_by_the_first_rule(tmp_path):
    assert recognise(b"[X] ||| a ||| b") == "cdec"
    assert recognise(b"[X][X] a [X] ||| [X][X] b [X] ||| 1 ||| 0-0") == "moses"
    assert recognise(b"a [X] ||| b [X] ||| 1") == "moses"
    assert recognise(b"nothing like a rule") == "cdec"
    symbols = Symbols()
    path = tmp_path / "rules"
    path.write_text("\n\na [X] ||| b [X] ||| 0.1 ||| 0-0\n")
    assert rules_of(read_text_grammar(path, symbols), symbols)[0][3] == {b"PhraseModel_0": 1.0}
    path.write_text("[X] ||| a ||| b ||| 2\n")
    assert rules_of(read_text_grammar(path, symbols), symbols)[0][3] == {b"PhraseModel_0": 2.0}
    joshua = GrammarFormat(format="joshua", owner="me")
    assert rules_of(read_text_grammar(path, symbols, joshua), symbols)[0][3] == {b"tm_me_0": -2.0}
    path.write_text("")
    assert read_text_grammar(path, symbols).num_rules == 0


def test_owners_name_values_without_a_name_in_every_format(tmp_path):
    path, symbols = tmp_path / "rules", Symbols()
    for line, form, expected in (
        ("[X] ||| a ||| b ||| 2 named=1\n", "cdec", {b"tm_me_0": 2.0, b"named": 1.0}),
        ("[X] ||| a ||| b ||| 2 named=1\n", "joshua", {b"tm_me_0": -2.0, b"named": 1.0}),
        ("a [X] ||| b [X] ||| 0.1 0.01 ||| 0-0\n", "moses", {b"tm_me_0": 1.0, b"tm_me_1": 2.0}),
    ):
        path.write_text(line)
        how = GrammarFormat(format=form, owner="me")
        assert rules_of(read_text_grammar(path, symbols, how), symbols)[0][3] == expected
    for owner in ("", "a b", "a=b"):
        with pytest.raises(ConfigError, match="expected a name without spaces, = and ;"):
            GrammarFormat(owner=owner)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "cdek"}, "expected one of auto, cdec, joshua, moses"),
        ({"scale": "log"}, "one of"),
        ({"sign": 0}, "expected one of -1, 1"),
    ],
)
def test_invalid_settings(settings, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        GrammarFormat(**settings)


@pytest.mark.reference
def test_cdecs_own_grammars(reference: Path):
    """Every rule of a real file equals that of the twin."""
    path = reference / "ep" / "g" / "grammar.7.gz"
    symbols = Symbols()
    table = read_text_grammar(path, symbols)
    twin = naive.read_rules(gzip.decompress(path.read_bytes()))
    for (*mine, features, links), (*theirs, values, pairs) in zip(
        rules_of(table, symbols), twin, strict=True
    ):
        assert mine == theirs
        assert links == pairs
        assert features == {name: value for name, value in values.items() if value}
