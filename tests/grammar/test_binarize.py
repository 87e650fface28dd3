"""Rules with more than two gaps as rules with two, against a twin on strings and the rules themselves."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiero.cli.main import main
from hiero.core.symbol_kernels import gap_index, gap_label, is_gap
from hiero.core.symbols import Symbols
from hiero.grammar.assemble import build_grammar
from hiero.grammar.binarize import binarized, indivisible_rows, wide_rows
from hiero.grammar.cdec import parse_cdec, write_cdec
from hiero.grammar.compiled import write_compiled
from hiero.grammar.rules import RuleTable, rule_lists
from hiero.grammar.sources import StaticGrammar, open_grammar, read_grammar
from tests.naive import binarize as naive
from tests.naive.search import Rule
from tests.worlds.search import rule_text, rules

WORDS = np.zeros(0, np.int32)


def sides_of(table: RuleTable, symbols: Symbols, rule: int, first_part: int = 1 << 20) -> naive.Part:
    """The sides of a rule as strings; parts are named in the order of their labels."""

    def text(symbol: int) -> str:
        if not is_gap(symbol):
            return symbols.words.text(symbol)
        label = int(gap_label(symbol))
        name = symbols.labels.text(label) if label < first_part else f"part {label - first_part + 1}"
        return f"[{name},{gap_index(symbol)}]"

    src, tgt, _ = rule_lists(table.rules, rule)
    return tuple(map(text, src)), tuple(map(text, tgt))


def table_of(grammar: list[Rule], symbols: Symbols) -> RuleTable:
    return parse_cdec([rule_text(rule) for rule in grammar], symbols)


def expanded(side: naive.Side, parts: dict[str, naive.Side]) -> naive.Side:
    """A side with parts written out; gaps as categories only."""
    found: list[str] = []
    for symbol in side:
        name = naive.gap_label(symbol) if naive.is_gap(symbol) else ""
        found += expanded(parts[name], parts) if name in parts else [f"[{name}]" if name else symbol]
    return tuple(found)


@given(st.lists(rules(most_gaps=6), max_size=8))
# The two orders of four gaps that no two neighbours are in, and parts that two rules share.
@example([Rule("X", ("a", *(f"[X,{k}]" for k in (1, 2, 3, 4))), tuple(f"[X,{k}]" for k in (2, 4, 1, 3)))])
@example(
    [
        Rule("X", ("[X,1]", "b", "[X,2]", "[X,3]"), ("[X,3]", "[X,2]", "u", "[X,1]")),
        Rule("Y", ("[X,1]", "b", "[X,2]", "[Y,3]", "a"), ("[Y,3]", "v", "[X,2]", "u", "[X,1]")),
    ]
)
def test_rules_are_divided_as_the_twin_divides_them(grammar: list[Rule]) -> None:
    symbols = Symbols()
    table = table_of(grammar, symbols)
    wide = [rule for rule in grammar if naive.num_gaps(rule.src) > 2]
    assert wide_rows(table).tolist() == [rule in wide for rule in grammar]
    parts: dict[naive.Part, str] = {}
    expected = [naive.binarized(rule.src, rule.tgt, parts) for rule in wide]
    assert [top is not None for top in expected] == [naive.is_divisible(rule.tgt) for rule in wide]
    left_out = [r for r, rule in enumerate(grammar) if not naive.is_divisible(rule.tgt)]
    assert indivisible_rows(table.rules).tolist() == left_out
    first = len(symbols.labels)
    found = binarized([table], first)
    if not wide:
        assert found is None
        return
    assert found is not None
    assert [table.num_rules for table in found.tables] == [table.num_rules for table in found.whole]
    searched, whole = found.tables[-1], found.whole[-1]
    tops = [top for top in expected if top is not None]
    listed = [sides_of(searched, symbols, r, first) for r in range(searched.num_rules)]
    # Parts of rules that cannot be divided are left over.
    assert listed == [*tops, *parts]
    assert found.num_parts == len(parts)
    assert all(naive.num_gaps(src) == 2 for src, _ in listed)
    kept = [rule for rule in wide if naive.is_divisible(rule.tgt)]
    assert [sides_of(whole, symbols, r) for r in range(len(kept))] == [(r.src, r.tgt) for r in kept]
    for side in range(2):
        named = {name: sides[side] for sides, name in parts.items()}
        for top, rule in zip(tops, kept, strict=True):
            assert expanded(top[side], named) == expanded((rule.src, rule.tgt)[side], {})
    for r in range(len(kept), whole.num_rules):
        assert sides_of(whole, symbols, r) == ((), ())
    for r, rule in enumerate(kept):
        column = whole.columns.index(symbols.names.find(b"F"))
        assert whole.rules.dense[r, column] == rule.score


WIDE = [
    "[S] ||| [NP,1] hat [NP,2] [PP,3] [VP,4] ||| [1] has [4] [2] [3] ||| p=0.5 s=1 ||| 1-1",
    "[S] ||| [NP,1] hat [NP,2] [VP,3] ||| [1] has [3] [2] ||| p=0.25 ||| 1-1",
    "[X] ||| das [X,1] ||| the [1] ||| p=0.125 ||| 0-0",
    "[X] ||| [X,1] a [X,2] [X,3] [X,4] ||| [2] [4] b [1] [3] ||| p=1 ||| 1-2",
]


def lines_of(table: RuleTable, symbols: Symbols, path: Path) -> list[str]:
    with path.open("wb") as file:
        write_cdec(table, symbols, file)
    return path.read_text().splitlines()


def test_files_have_the_rules_as_they_were_read(tmp_path: Path) -> None:
    """As text and compiled, also the one that cannot be divided."""
    text = tmp_path / "g.gz"
    text.write_bytes(gzip.compress(("\n".join(WIDE) + "\n").encode()))
    assert main(["grammar", "compile", str(text), str(tmp_path / "c")]) == 0
    assert main(["grammar", "convert", str(tmp_path / "c"), "-o", str(tmp_path / "back")]) == 0
    back = (tmp_path / "back").read_text().splitlines()
    symbols = Symbols()
    symbols.labels.intern_all([b"other", b"VP"])  # other ids than in the file
    expected = lines_of(read_grammar(text, symbols), symbols, tmp_path / "a")
    assert sorted(back) == sorted(expected)
    assert [line.split(" ||| ")[1] for line in expected] == [rule.split(" ||| ")[1] for rule in WIDE]
    for path in (text, tmp_path / "c"):
        grammar = open_grammar(path, Symbols())
        assert (grammar.has_wide_rules, grammar.num_indivisible) == (True, 1)


def test_rules_are_filtered_as_a_whole(tmp_path: Path) -> None:
    symbols = Symbols()
    plain = StaticGrammar(build_grammar([parse_cdec(WIDE, symbols)]))
    write_compiled(tmp_path / "c", plain.grammar, symbols)
    other = Symbols()
    other.words.intern_all([b"das", b"x", b"hat"])
    mapped = open_grammar(tmp_path / "c", other)
    for words, expected in (
        ("x hat x x", {2}),
        ("x hat x x x", {1, 2}),
        ("das x x", {3}),
        ("hat x x x", set()),
    ):
        for grammar, own in ((plain, symbols), (mapped, other)):
            src = own.words.intern_all(word.encode() for word in words.split())
            table = grammar.rules_for(src, {})
            found = {sides_of(table, own, r) for r in range(table.num_rules)}
            assert found == {sides_of(parse_cdec([WIDE[k - 1]], own), own, 0) for k in expected}


def test_moses_tables_and_joshuas(tmp_path: Path) -> None:
    moses = (
        "hat [NP][NP] [PP][PP] [V][V] [S] ||| [V][V] has [PP][PP] [NP][NP] [S] ||| 0.1 ||| 0-1 1-3 2-2 3-0"
    )
    (tmp_path / "m").write_text(moses + "\n")
    symbols = Symbols()
    table = read_grammar(tmp_path / "m", symbols)
    line = "[S] ||| hat [NP,1] [PP,2] [V,3] ||| [V,3] has [PP,2] [NP,1] ||| PhraseModel_0=1 ||| 0-1"
    assert lines_of(table, symbols, tmp_path / "a") == [line]


@pytest.mark.parametrize("number", [32, 33])
def test_a_rule_has_at_most_32_gaps(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    src, tgt = " ".join(["[X]"] * number), " ".join(f"[{k}]" for k in range(number, 0, -1))
    (tmp_path / "g").write_text(f"[X] ||| a {src} ||| {tgt} ||| 1\n")
    assert main(["grammar", "convert", str(tmp_path / "g")]) == (number > 32)
    output = capsys.readouterr()
    if number == 32:
        assert "[X,32] ||| [X,32]" in output.out
    else:
        assert "g:1: found '[X]', expected a word or '|||' (a rule has at most 32 gaps)" in output.err


def test_stats_count_gaps_and_rules_that_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "g").write_text("\n".join(WIDE) + "\n")
    assert main(["grammar", "stats", str(tmp_path / "g")]) == 0
    facts = dict(line.split("\t")[:2] for line in capsys.readouterr().out.splitlines())
    assert [facts[f"rules with {n} gaps"] for n in range(5)] == ["0", "1", "0", "1", "2"]
    assert facts["rules left out"] == "1"
