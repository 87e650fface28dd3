"""Tries, and the rules that match a sentence, against their twins."""

from __future__ import annotations

import gzip
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.errors import FormatError, HieroError
from hiero.core.symbol_kernels import gap_index, gap_label
from hiero.core.symbols import Symbols
from hiero.grammar.assemble import build_grammar, merge_tables
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.compiled import read_compiled, write_compiled
from hiero.grammar.rules import Grammar, GrammarSource, rule_lists
from hiero.grammar.sources import (
    PerSentence,
    RuleList,
    StaticGrammar,
    grammar_paths,
    open_grammar,
    read_grammar,
)
from hiero.grammar.trie_kernels import first_unsound_node_kernel, first_unsound_rule_kernel
from tests.naive import grammar as naive
from tests.naive import lattice as naive_lattice
from tests.worlds.grammars import rule_lines, rules_of, small_rules
from tests.worlds.lattice import lattices, naive_arcs


def sentence(symbols: Symbols, words: str) -> np.ndarray:  # type: ignore[type-arg]
    return symbols.words.intern_all(word.encode() for word in words.split())


def source_keys(grammar: Grammar) -> list[tuple[int, ...]]:
    first = grammar.rules.first_src
    return [tuple(grammar.rules.src[a:b].tolist()) for a, b in itertools.pairwise(first)]


def check_trie(grammar: Grammar) -> None:
    """Every node is in the position of the twin, and every rule at the node of its source side."""
    trie, sources = grammar.trie, source_keys(grammar)
    prefixes = naive.trie(sources)
    assert len(trie.symbol) == len(prefixes)
    assert len(trie.first_child) == len(trie.first_rule) == len(prefixes) + 1
    for v, prefix in enumerate(prefixes):
        assert prefix == () or trie.symbol[v] == prefix[-1]
        children = range(trie.first_child[v], trie.first_child[v + 1])
        assert [prefixes[child] for child in children] == [
            other for other in prefixes if other and other[:-1] == prefix
        ]
        assert all(source == prefix for source in sources[trie.first_rule[v] : trie.first_rule[v + 1]])
    assert trie.first_rule[-1] == len(sources)


@given(st.lists(small_rules() | rule_lines(), max_size=12), st.integers(0, 12))
def test_rules_of_tables_keep_their_order(lines, cut):
    symbols = Symbols()
    tables = [parse_cdec(lines[:cut], symbols), parse_cdec(lines[cut:], symbols)]
    grammar = build_grammar(tables)
    check_trie(grammar)
    read = [rule for table in tables for rule in rules_of(table, symbols)]
    planted = rules_of(merge_tables([grammar]), symbols)  # type: ignore[list-item]
    lhs_ids = {label: symbols.labels.find(label) for label, *_ in read}
    for v in range(len(grammar.trie.symbol)):
        here = planted[grammar.trie.first_rule[v] : grammar.trie.first_rule[v + 1]]
        if here:
            # Stable: order of reading within a source side and left-hand side.
            assert here == sorted((r for r in read if r[1] == here[0][1]), key=lambda r: lhs_ids[r[0]])
    assert len(planted) == len(read)


def test_merged_tables_share_their_columns():
    symbols = Symbols()
    one = parse_cdec(
        ["[X] ||| a ||| b ||| F=1", "[X] ||| a ||| b ||| F=2 G=3", "[X] ||| a ||| b ||| F=4"], symbols
    )
    two = parse_cdec(
        ["[X] ||| c ||| d ||| G=5 F=6", "[X] ||| c ||| d ||| G=7", "[X] ||| c ||| d ||| G=8"], symbols
    )
    assert (len(one.columns), len(two.columns)) == (1, 1)
    both = merge_tables([one, two, merge_tables([])])
    assert [symbols.names.text(name) for name in both.columns] == ["F", "G"]
    assert both.rules.dense.tolist() == [[1, 0], [2, 3], [4, 0], [6, 5], [0, 7], [0, 8]]
    assert len(both.rules.sparse_name) == 0


def test_arrays_of_a_grammar_are_read_only():
    grammar = RuleList(Symbols(), ["[X] ||| a ||| b ||| F=1 ||| 0-0"]).grammar
    for array in (*grammar.rules, *grammar.trie, *build_grammar([]).rules):
        assert array.flags.c_contiguous
    for array in (*grammar.rules, *grammar.trie):
        assert not array.flags.writeable


def matching(table, symbols, words, limit):
    """Which rules of a table match, by the twin."""
    return [
        rule
        for rule in rules_of(table, symbols)
        if naive.matches(tuple(None if isinstance(s, tuple) else s for s in rule[1]), words, limit)
    ]


@given(
    st.lists(small_rules() | rule_lines(), max_size=12),
    st.lists(st.sampled_from(["a", "b", "c", "hat"]), max_size=8),
    st.integers(1, 9),
)
def test_matching_rules_equal_those_of_the_twin(tmp_path_factory, lines, words, limit):
    symbols = Symbols()
    grammar = build_grammar([parse_cdec(lines, symbols)])
    path = tmp_path_factory.mktemp("c") / "g"
    # Before the sentence is interned, so that the directory has no ids for words without rules.
    write_compiled(path, grammar, symbols)
    text = " ".join(words)
    whole = StaticGrammar(grammar, limit)
    expected = matching(whole.all_rules(), symbols, [w.encode() for w in words], limit)
    assert rules_of(whole.rules_for(sentence(symbols, text), {}), symbols) == expected

    # Another process has other ids: words are interned in another order, some not at all.
    others = Symbols()
    others.names.intern_all([b"zzz"])
    mapped = open_grammar(path, others, limit)
    assert rules_of(mapped.rules_for(sentence(others, text), {}), others) == expected
    assert rules_of(read_grammar(path, others), others) == rules_of(whole.all_rules(), symbols)


def test_no_limit_is_the_length_of_the_sentence():
    symbols = Symbols()
    words = sentence(symbols, "a " + "b " * 100 + "a")
    rules = ["[X] ||| a [X] a ||| [1] ||| ", "[X] ||| a [X] c ||| [1]"]
    assert RuleList(symbols, rules).rules_for(words, {}).num_rules == 1
    assert RuleList(symbols, rules, 101).rules_for(words, {}).num_rules == 0
    assert RuleList(symbols, rules, 102).rules_for(words, {}).num_rules == 1


def test_many_matches_grow_the_arrays():
    symbols = Symbols()
    names = [f"w{k}" for k in range(300)]
    words = sentence(symbols, " ".join(names))
    pairs = [f"[X] ||| {a} [X] {b} ||| [1]" for a in names[:30] for b in names[:30]]
    assert RuleList(symbols, pairs).rules_for(words, {}).num_rules == 28 * 29 // 2
    behind_gap = [f"[X] ||| [X] {a} ||| [1]" for a in names]
    assert RuleList(symbols, behind_gap).rules_for(words, {}).num_rules == 299
    many_labels = [f"[X] ||| [L{k}] ||| [1]" for k in range(600)]
    assert RuleList(symbols, many_labels).rules_for(words[:2], {}).num_rules == 600


def test_errors_in_rule_lists():
    with pytest.raises(FormatError, match=r"<rules>:2: found 'b'"):
        RuleList(Symbols(), ["[X] ||| a ||| b", "b"])
    with pytest.raises(FormatError, match=r"<rules>:1: "):
        RuleList(Symbols(), ["[X] ||| a ||| b\n[X] ||| c ||| d"])
    assert RuleList(Symbols(), []).rules_for(np.zeros(3, np.int32), {}).num_rules == 0


@given(st.data(), st.integers(0, 4))
@settings(max_examples=40)
def test_rules_along_the_paths_of_a_lattice(data, limit):
    """Those that match between two nodes that are near; without a limit, those of any path."""
    lattice = data.draw(lattices(["a", "b", "c"], empty=False))
    side = st.lists(st.sampled_from(["a", "b", "[X,1]"]), min_size=1, max_size=3).filter(
        lambda src: src.count("[X,1]") < 2
    )
    sides = data.draw(st.lists(side, min_size=1, max_size=6, unique_by=tuple))
    lines = [f"[X] ||| {' '.join(src)} ||| {'[X,1]' if '[X,1]' in src else 'u'}" for src in sides]
    symbols = Symbols()
    arcs = lattice.word_arcs
    source = RuleList(symbols, lines, limit)
    table = source.rules_for(sentence(symbols, " ".join(arcs.words)), {}, arcs.arcs)

    def text(code):
        return symbols.words.text(code) if code >= 0 else None

    found = {tuple(map(text, rule_lists(table.rules, rule)[0])) for rule in range(table.num_rules)}
    patterns = {tuple(None if one == "[X,1]" else one for one in src) for src in sides}
    near = limit or len(arcs.words)  # as without a limit
    assert found == {
        p for p in patterns if naive_lattice.matches(p, naive_arcs(lattice), lattice.words, near)
    }


def test_grammars_of_sentences(tmp_path):
    symbols = Symbols()
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "one.gz").write_bytes(gzip.compress(b"[X] ||| a ||| one ||| F=1\n"))
    (tmp_path / "two").write_bytes(b"a [X] ||| two [X] ||| 0.1\n")
    write_compiled(
        tmp_path / "three", RuleList(symbols, ["[X] ||| a ||| three", "[X] ||| b ||| b"]).grammar, symbols
    )
    source: GrammarSource = PerSentence(symbols, tmp_path)
    segment = {"id": "0", "grammar10": "three", "grammar": "g/one.gz", "grammar2": "two"}
    assert grammar_paths(segment) == ["g/one.gz", "two", "three"]
    rules = rules_of(source.rules_for(sentence(symbols, "a"), segment), symbols)
    assert [rule[2] for rule in rules] == [(b"one",), (b"two",), (b"three",)]
    assert source.rules_for(sentence(symbols, "a"), {"id": "1"}).num_rules == 0
    with pytest.raises(FormatError, match="no such file, expected a grammar"):
        source.rules_for(sentence(symbols, "a"), {"grammar": "none"})


@pytest.mark.parametrize("name", ["-", "./-", "x/../-", "../one", "a/../../one", "/etc/passwd", "", "."])
def test_grammars_outside_the_directory_are_not_read(tmp_path, name):
    symbols = Symbols()
    (tmp_path / "one").write_bytes(b"[X] ||| a ||| one ||| F=1\n")
    (tmp_path / "in").mkdir()
    source = PerSentence(symbols, tmp_path / "in" if "-" not in name else ".")
    with pytest.raises(
        HieroError, match=r"found the grammar .*, expected a path inside .*allow-grammar-paths"
    ):
        source.rules_for(sentence(symbols, "a"), {"grammar": name})
    if "one" in name:
        (tmp_path / "in" / "a").mkdir()
        source = PerSentence(symbols, tmp_path / "in", anywhere=True)
        assert source.rules_for(sentence(symbols, "a"), {"grammar": name}).num_rules == 1


def test_absolute_paths_inside_the_directory(tmp_path):
    symbols = Symbols()
    (tmp_path / "one").write_bytes(b"[X] ||| a ||| one ||| F=1\n")
    source = PerSentence(symbols, tmp_path)
    assert source.rules_for(sentence(symbols, "a"), {"grammar": str(tmp_path / "one")}).num_rules == 1


@pytest.mark.parametrize(
    "content", ["secret\n", "[X] ||| a ||| b ||| secret\n", "[X] ||| a ||| b ||| F=secret"]
)
def test_files_named_by_sentences_are_not_shown(tmp_path, content):
    symbols = Symbols()
    (tmp_path / "file").write_text(content)
    with pytest.raises(FormatError, match=r"file:1: found something else \(it is not shown") as error:
        PerSentence(symbols, tmp_path).rules_for(sentence(symbols, "a"), {"grammar": "file"})
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None


def test_gap_codes_survive_the_round_trip_through_a_directory(tmp_path):
    symbols = Symbols()
    symbols.labels.intern_all([b"Q", b"R"])
    write_compiled(tmp_path / "g", RuleList(symbols, ["[S] ||| [X] a [Y] ||| [2] b [1]"]).grammar, symbols)
    src = read_compiled(tmp_path / "g").grammar.rules.src
    assert [int(gap_index(code)) for code in src[[0, 2]].tolist()] == [1, 2]
    assert [int(gap_label(code)) for code in src[[0, 2]].tolist()] == [3, 4]


changes = st.lists(st.tuples(st.integers(0, 99), st.integers(-9, 9) | st.integers(-999, 999)), max_size=2)


def changed(array: np.ndarray, where: list[tuple[int, int]]) -> np.ndarray:  # type: ignore[type-arg]
    """A copy with some other entries."""
    array = np.array(array)
    for place, value in where if array.size else ():
        array.flat[place % array.size] = value
    return read_only(array)


@given(st.lists(small_rules() | rule_lines(), max_size=6), st.data())
def test_unsound_rules_and_nodes_are_found(lines, data):
    symbols = Symbols()
    rules, trie = (grammar := build_grammar([parse_cdec(lines, symbols)])).rules, grammar.trie
    num_words, num_labels = len(symbols.words), len(symbols.labels)
    assert first_unsound_rule_kernel(rules, num_words, num_labels) == len(rules.lhs)
    assert first_unsound_node_kernel(trie) == len(trie.symbol)
    rules = rules._replace(
        **{name: changed(getattr(rules, name), data.draw(changes)) for name in ("src", "tgt", "link")}
    )
    num_words -= data.draw(st.integers(0, 1))
    lists = [rule_lists(rules, rule) for rule in range(len(rules.lhs))]
    expected = naive.first_unsound_rule(lists, num_words, num_labels)
    assert first_unsound_rule_kernel(rules, num_words, num_labels) == expected
    trie = trie._replace(
        **{name: changed(getattr(trie, name), data.draw(changes)) for name in ("symbol", "first_child")}
    )
    expected = naive.first_unsound_node(trie.symbol.tolist(), trie.first_child.tolist())
    assert first_unsound_node_kernel(trie) == expected
