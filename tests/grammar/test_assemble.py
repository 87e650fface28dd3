"""Rules of several tables under one trie, against the twin's order."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.symbol_kernels import gap
from hiero.core.symbols import Symbols
from hiero.grammar.assemble import Ranks, build_grammar, label_ranks, merge_tables
from hiero.grammar.assemble_kernels import IdMaps
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.rules import Grammar, RuleTable, source_words, take_rules
from tests.naive import grammar as naive
from tests.worlds.grammars import LABELS, rule_lines, rules_of, small_rules

lines = st.lists(small_rules() | rule_lines(), max_size=12)


@st.composite
def tables(draw: st.DrawFn, symbols: Symbols) -> RuleTable:
    """Rules with shared ids, or some rows of a table with its own."""
    if draw(st.booleans()):
        return parse_cdec(draw(lines), symbols)
    own = Symbols()
    own.names.intern_all([b"first"])
    table = parse_cdec(draw(lines), own)
    words = symbols.words.intern_all(own.words.entries())
    labels = symbols.labels.intern_all(own.labels.entries())
    names = symbols.names.intern_all(own.names.entries())
    codes = [int(gap(label, index)) for label in labels.tolist() for index in range(4)]
    sides = np.concatenate([words, np.array(codes[::-1], np.int32)])
    rows = draw(st.permutations(range(table.num_rules)))[: draw(st.integers(0, table.num_rules))]
    columns = tuple(names[list(table.columns)].tolist())
    return RuleTable(table.rules, columns, np.array(rows, np.int64), IdMaps(sides, sides, labels, names))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Symbols, list[RuleTable], int]:
    symbols = Symbols()
    symbols.labels.intern_all(label.encode() for label in draw(st.permutations(LABELS)))
    drawn = [draw(tables(symbols)) for _ in range(draw(st.integers(0, 4)))]
    return symbols, drawn, draw(st.integers(0, drawn[-1].num_rules if drawn else 0))


def check_order(grammar: Grammar, num_unindexed: int, read: RuleTable, ranks: Ranks) -> list[int]:
    """The trie and the order of rules are the twin's, which is returned."""
    sources = [tuple(side) for side in sides(read)]
    rank = ranks.of_label.tolist()
    indexed = len(sources) - num_unindexed
    order = naive.in_order(sources[:indexed], read.rules.lhs.tolist(), rank)
    prefixes = naive.trie([tuple(naive.ranked(source, rank)) for source in sources[:indexed]])
    trie = grammar.trie
    assert [0, *trie.symbol.tolist()[1:]] == [0, *(prefix[-1] for prefix in prefixes[1:])]
    for v, prefix in enumerate(prefixes):
        children = [child for child, other in enumerate(prefixes) if other and other[:-1] == prefix]
        assert list(range(trie.first_child[v], trie.first_child[v + 1])) == children
        here = order[trie.first_rule[v] : trie.first_rule[v + 1]]
        assert all(tuple(naive.ranked(sources[r], rank)) == prefix for r in here)
    assert trie.first_rule[-1] == indexed
    return [*order, *range(indexed, len(sources))]


def sides(table: RuleTable) -> list[list[int]]:
    first = table.rules.first_src
    return [table.rules.src[a:b].tolist() for a, b in itertools.pairwise(first)]


@given(worlds(), st.booleans())
def test_rules_are_in_the_order_of_nodes_ranks_and_tables(world, by_rank):
    symbols, drawn, num_unindexed = world
    ranks = label_ranks(symbols.labels)
    if not by_rank:
        ids = np.arange(len(ranks.label), dtype=np.int32)
        ranks = Ranks(ids, ids, True)
    read = merge_tables(drawn)
    grammar = build_grammar(drawn, num_unindexed, ranks if by_rank else None)
    order = check_order(grammar, num_unindexed, read, ranks)
    listed = [rule for table in drawn for rule in rules_of(table, symbols)]
    assert rules_of(read, symbols) == listed
    assert rules_of(grammar, symbols) == [listed[r] for r in order]
    for table in (read, grammar):
        assert table.columns == tuple(dict.fromkeys(name for one in drawn for name in one.columns))
        assert len(drawn) == 1 or not np.isin(table.rules.sparse_name, table.columns).any()
    words = {symbol for source in sides(read) for symbol in source}
    assert source_words(drawn).tolist() == sorted(words)
    for array in (*grammar.rules, *grammar.trie):
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_many_rules_grow_the_trie():
    symbols = Symbols()
    words = [f"w{k}" for k in range(40)]
    longs = parse_cdec([f"[X] ||| {' '.join(words[k:] + words[:k])} ||| x" for k in range(40)], symbols)
    many = parse_cdec([f"[X] ||| {a} {b} ||| x" for a in words for b in reversed(words)], symbols)
    ranks = label_ranks(symbols.labels)
    for drawn in ([longs, many], [many, longs]):
        check_order(build_grammar(drawn), 0, merge_tables(drawn), ranks)


@given(lines, st.data())
def test_rules_are_taken_in_any_order(rule_texts, data):
    symbols = Symbols()
    table = parse_cdec(rule_texts, symbols)
    if table.num_rules:
        order = data.draw(st.lists(st.integers(0, table.num_rules - 1)))
        taken = RuleTable(take_rules(table.rules, np.array(order, np.int64)), table.columns)
        listed = rules_of(table, symbols)
        assert rules_of(taken, symbols) == [listed[r] for r in order]
