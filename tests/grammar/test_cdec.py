"""Writing of rules in cdec's syntax, and Joshua's grammars."""

from __future__ import annotations

import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.symbols import Symbols
from hiero.grammar.cdec import JoshuaReader, parse_cdec, write_cdec
from tests.naive import grammar as naive
from tests.worlds.grammars import rule_lines, rules_of, write_rules


@given(st.lists(rule_lines(), max_size=6))
def test_round_trip(lines):
    symbols = Symbols()
    table = parse_cdec([line.replace("\r", "") for line in lines], symbols)
    file = io.BytesIO()
    write_cdec(table, symbols, file)
    again = parse_cdec(file.getvalue().decode().split("\n"), symbols)
    assert rules_of(again, symbols) == [
        (lhs, src, tuple(map(escaped, tgt)), *rest) for lhs, src, tgt, *rest in rules_of(table, symbols)
    ]


def escaped(symbol):
    """A word of a target side that would be a gap on a source side."""
    if isinstance(symbol, bytes) and naive.GAP.fullmatch(symbol):
        return b"&#91;" + symbol[1:-1] + b"&#93;"
    return symbol


def test_words_like_syntax_are_escaped_once():
    symbols = Symbols()
    table = parse_cdec(["[X] ||| one two ||| three four ||| F=1"], symbols)
    words = symbols.words.intern_all([b"[X,1]", b"|||", b"[foo]", b"[foo"])
    rules = table.rules._replace(src=read_only(words[:2]), tgt=read_only(words[2:]))
    file = io.BytesIO()
    assert write_cdec(type(table)(rules, table.columns), symbols, file) == 3
    text = "[X] ||| &#91;X,1&#93; &#124;&#124;&#124; ||| &#91;foo&#93; [foo ||| F=1\n"
    assert file.getvalue().decode() == text
    again = io.BytesIO()
    assert write_cdec(parse_cdec([text.rstrip()], symbols), symbols, again) == 0
    assert again.getvalue().decode() == text


def test_joshua_negates_and_numbers_unlabelled_values(tmp_path):
    path = write_rules(tmp_path, "[X] ||| # 44 ; [X,1] ||| , [X,1] ||| 0 1 svd=1 1.5 -2 ||| 0-0\n")
    symbols = Symbols()
    table = JoshuaReader(path, symbols).read()
    ((lhs, src, tgt, features, links),) = rules_of(table, symbols)
    assert (lhs, src, tgt, links) == (b"X", (b"#", b"44", b";", (b"X", 1)), (b",", (b"X", 1)), [(0, 0)])
    assert features == {b"tm_pt_1": -1, b"svd": 1, b"tm_pt_2": -1.5, b"tm_pt_3": 2}
    assert not np.signbit(table.rules.dense[0, 0])
    kept = rules_of(JoshuaReader(path, symbols, owner="glue", sign=1).read(), symbols)[0][3]
    assert kept == {b"tm_glue_1": 1, b"svd": 1, b"tm_glue_2": 1.5, b"tm_glue_3": -2}
