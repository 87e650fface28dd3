"""Bundles of the parser against brute force: every span, every split, every rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.symbol_kernels import gap_index, gap_label
from hiero.core.symbols import Symbols
from hiero.decoder.parse import edge_batch
from hiero.decoder.parse_kernels import Parse, parse_kernel
from hiero.grammar.assemble import build_grammar
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.rules import Grammar
from hiero.grammar.trie_kernels import find_child
from tests.naive import search as naive
from tests.naive.search import Bundle, Cell, Rule, World
from tests.worlds.search import LABELS, SOURCE_WORDS, rule_text, rules

ALONE = Rule("S", ("[X,1]",), ("[X,1]",))
BOTH = Rule("S", ("[S,1]", "[X,2]"), ("[S,1]", "[X,2]"), 0.25)
REVERSED = Rule("S", ("[S,1]", "[X,2]"), ("[X,2]", "[S,1]"), 0.5)
OTHER = Rule("Y", ("[S,1]", "[Y,2]"), ("[S,1]", "[Y,2]"))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    glue = draw(st.sampled_from([(), (ALONE, BOTH), (ALONE, BOTH, REVERSED), (ALONE, BOTH, OTHER)]))
    return World(
        tuple(draw(st.lists(st.sampled_from(SOURCE_WORDS), min_size=1, max_size=6))),
        tuple(draw(st.lists(rules(), max_size=8))),
        glue,
        tuple(draw(st.permutations(LABELS))),
        draw(st.integers(1, 7)),
    )


@dataclass
class Setting:
    """A world in the format of the kernel. ``rules`` are those of the grammar in its order, then glue."""

    symbols: Symbols
    grammar: Grammar
    rules: list[Rule]
    parse: Parse


def parsed(world: World) -> Setting:
    symbols = Symbols()
    symbols.labels.intern_all(label.encode() for label in LABELS)
    grammar = build_grammar([parse_cdec([rule_text(rule) for rule in world.rules], symbols)])
    src = symbols.words.intern_all(word.encode() for word in world.words)
    label = symbols.labels.find
    glue, first = [], grammar.num_rules
    # Rules of one category and one source side follow each other in World.glue.
    for pattern in dict.fromkeys((rule.lhs, rule.src) for rule in world.glue):
        size = sum((rule.lhs, rule.src) == pattern for rule in world.glue)
        left, right = [-1, *(label(naive.gap_label(gap).encode()) for gap in pattern[1])][-2:]
        glue.append([label(pattern[0].encode()), left, right, first, size])
        first += size
    parse = parse_kernel(
        read_only(src),
        grammar.trie,
        grammar.rules.lhs,
        np.array(glue, np.int64).reshape(-1, 5),
        np.array([label(name.encode()) for name in world.order], np.int32),
        min(world.span_limit, len(src)),
    )
    return Setting(symbols, grammar, [*rules_in_order(grammar, symbols), *world.glue], parse)


def rules_in_order(grammar: Grammar, symbols: Symbols) -> list[Rule]:
    def text(symbol: int) -> str:
        if symbol >= 0:
            return symbols.words.text(symbol)
        return f"[{symbols.labels.text(int(gap_label(symbol)))},{gap_index(symbol)}]"

    rules, found = grammar.rules, []
    for r in range(grammar.num_rules):
        src = rules.src[rules.first_src[r] : rules.first_src[r + 1]].tolist()
        tgt = rules.tgt[rules.first_tgt[r] : rules.first_tgt[r + 1]].tolist()
        lhs = symbols.labels.text(int(rules.lhs[r]))
        found.append(Rule(lhs, tuple(map(text, src)), tuple(map(text, tgt)), float(rules.dense[r].sum())))
    return found


def cells_of(setting: Setting) -> list[Cell]:
    labels = setting.symbols.labels
    return [(labels.text(label), start, end) for label, start, end in setting.parse.cell.tolist()]


def bundles_of(setting: Setting) -> dict[Cell, list[Bundle]]:
    """The bundles of the kernel in the format of the twin; each is a run of rules with one source side."""
    cells, parse = cells_of(setting), setting.parse
    found: dict[Cell, list[Bundle]] = {}
    for c, cell in enumerate(cells):
        assert cell not in found, "a cell twice"
        found[cell] = []
        for b in range(parse.first_bundle[c], parse.first_bundle[c + 1]):
            first, size = parse.rules[b].tolist()
            rules = setting.rules[first : first + size]
            assert {(rule.lhs, rule.src) for rule in rules} == {(cell[0], rules[0].src)}
            tails = tuple(cells[tail] for tail in parse.tail[b].tolist() if tail >= 0)
            found[cell].append(Bundle(rules[0].src, tails, tuple(rules)))
    return found


UNARY_CIRCLE = (
    Rule("X", ("a",), ()),
    Rule("Y", ("[X,1]",), ("[X,1]",)),
    Rule("X", ("[Y,1]",), ("[Y,1]",)),
    Rule("Y", ("[Y,1]",), ("[Y,1]",)),
    Rule("Y", ("[Y,1]", "a"), ("[Y,1]",)),
)
ONLY_GAPS = (
    Rule("X", ("[X,1]", "[X,2]"), ("[X,2]", "[X,1]")),
    Rule("X", ("[X,1]", "a", "[X,2]"), ("[X,1]", "[X,2]")),
    Rule("X", ("a",), ("u",)),
    Rule("X", ("b",), ("u",)),
    Rule("X", ("b",), ("v",)),
)


@given(worlds())
@example(World(("a", "a"), UNARY_CIRCLE, (ALONE, BOTH), ("Y", "X", "S"), 2))
@example(World(("a", "b", "a", "b"), ONLY_GAPS, (ALONE, BOTH), ("X", "Y", "S"), 3))
def test_bundles_equal_brute_force(world: World) -> None:
    found, expected = bundles_of(parsed(world)), naive.parse(world)
    assert found.keys() == expected.keys()
    for cell, bundles in found.items():
        assert sorted(bundles) == sorted(expected[cell]), cell


@given(worlds())
def test_tails_come_before_heads(world: World) -> None:
    setting = parsed(world)
    parse = setting.parse
    assert parse.first_bundle[0] == 0
    assert parse.first_bundle[-1] == len(parse.rules) == len(parse.tail)
    assert (np.diff(parse.first_bundle) > 0).all(), "a cell without bundles"
    assert (parse.rules[:, 1] > 0).all()
    head = np.repeat(np.arange(len(parse.cell)), np.diff(parse.first_bundle))
    assert (parse.tail < head[:, None]).all()
    assert ((parse.tail[:, 0] >= 0) | (parse.tail[:, 1] < 0)).all()


def test_no_words_and_no_rules() -> None:
    for words, grammar in (((), (Rule("X", ("a",), ()),)), (("a",), ())):
        setting = parsed(World(("a",), grammar, (ALONE, BOTH), ("X", "Y", "S"), 1))
        src = np.zeros(len(words), np.int32)
        parse = parse_kernel(
            read_only(src),
            setting.grammar.trie,
            setting.grammar.rules.lhs,
            np.zeros((0, 5), np.int64),
            np.arange(3, dtype=np.int32),
            1,
        )
        assert [len(array) for array in parse] == [0, 1, 0, 0]


def test_tables_grow() -> None:
    """More items, cells, bundles and found bundles than the initial arrays have room for."""
    words = tuple("abcab" * 12)
    many = [Rule("X", ("[X,1]", "[X,2]"), ("[X,1]", "[X,2]"))]
    many += [Rule("Y", ("[X,1]", word, "[X,2]"), ("[X,1]", "[X,2]")) for word in "abc"]
    many += [Rule("X", (word,), (word,)) for word in "abc"] + [Rule("X", ("[Y,1]",), ("[Y,1]",))]
    world = World(words, tuple(many), (ALONE, BOTH), ("Y", "X", "S"), 12)
    found, expected = bundles_of(parsed(world)), naive.parse(world)
    assert sum(map(len, found.values())) > 4096
    assert {cell: sorted(bundles) for cell, bundles in found.items()} == {
        cell: sorted(bundles) for cell, bundles in expected.items()
    }


@pytest.mark.parametrize("words", [["a"], ["a", "b", "c", "d", "e"]])
def test_children_are_found_by_symbol(words: list[str]) -> None:
    symbols = Symbols()
    rules = [f"[X] ||| {word} ||| x" for word in words] + [
        "[X] ||| [X,1] a ||| [1]",
        "[X] ||| b [Y,1] ||| [1]",
    ]
    trie = build_grammar([parse_cdec(rules, symbols)]).trie
    for symbol in range(-20, len(symbols.words) + 2):
        child = [
            node for node in range(trie.first_child[0], trie.first_child[1]) if trie.symbol[node] == symbol
        ]
        assert find_child(trie, 0, symbol) == (child[0] if child else -1)


@given(worlds())
def test_applications_equal_their_twin(world: World) -> None:
    setting = parsed(world)
    batch, first = edge_batch(setting.parse, read_only(np.zeros(len(world.words), np.int32)))
    expected = naive.applications(cells_of(setting), bundles_of(setting))
    found = zip(batch.start.tolist(), batch.end.tolist(), map(tuple, batch.split.tolist()), strict=True)
    assert list(found) == expected
    rules = [range(rule, rule + size) for rule, size in setting.parse.rules.tolist()]
    assert batch.rule.tolist() == [rule for each in rules for rule in each]
    assert first.tolist() == [sum(map(len, rules[:b])) for b in range(len(rules))]
