"""Lattices against brute force, against sentences, and against all of their paths decoded one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.errors import FormatError, HieroError
from hiero.core.lattice import COST, EPSILON, Lattice
from hiero.core.symbols import Symbols
from hiero.decoder.forest import Forest
from hiero.decoder.lattices import parse_lattice
from hiero.decoder.parse_kernels import parse_kernel
from hiero.features.span_size import SpanSize
from hiero.grammar.assemble import build_grammar
from hiero.grammar.cdec import parse_cdec
from hiero.grammar.trie_kernels import reach_kernel
from tests.decoder.test_parse import ALONE, BOTH, OTHER, REVERSED, rules_in_order
from tests.naive import lattice as naive
from tests.naive import search as naive_search
from tests.naive.search import World
from tests.worlds.lattice import lattices, naive_arcs
from tests.worlds.search import LABELS, SOURCE_WORDS, UNSEEN, System, grammars, rule_text, rules, systems

WORDS = [*SOURCE_WORDS, *SOURCE_WORDS, UNSEEN]
MOST = 500  # derivations that are listed


@given(lattices(WORDS), st.integers(1, 5), st.data())
def test_distances(lattice: Lattice, limit: int, data: Any) -> None:
    arcs = lattice.word_arcs.arcs
    lengths = np.array([data.draw(st.integers(1, 3)) for _ in arcs.end], np.int32)
    reach = reach_kernel(arcs.first, arcs.end, read_only(lengths), limit)
    found = {
        (u, int(reach.node[k])): int(reach.size[k])
        for u in range(len(arcs.first) - 1)
        for k in range(reach.first[u], reach.first[u + 1])
    }
    if len(lengths):
        nodes = zip(arcs.start.tolist(), arcs.end.tolist(), strict=True)
        expected = naive.distances(tuple((*pair, "", 0.0) for pair in nodes), lengths.tolist())
        assert found == {pair: size for pair, size in expected.items() if size <= limit}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    glue = draw(st.sampled_from([(), (ALONE, BOTH), (ALONE, BOTH, REVERSED), (ALONE, BOTH, OTHER)]))
    found = tuple(draw(st.lists(rules(), max_size=8)))
    return World((), found, glue, tuple(draw(st.permutations(LABELS))), draw(st.integers(1, 6)))


def kernel_arguments(world: World, symbols: Symbols) -> tuple[Any, ...]:
    """The grammar of a world as arguments of parsers, and its rules in their order."""
    symbols.labels.intern_all(label.encode() for label in LABELS)
    grammar = build_grammar([parse_cdec([rule_text(rule) for rule in world.rules], symbols)])
    label = symbols.labels.find
    glue, first = [], grammar.num_rules
    for pattern in dict.fromkeys((rule.lhs, rule.src) for rule in world.glue):
        size = sum((rule.lhs, rule.src) == pattern for rule in world.glue)
        left, right = [-1, *(label(naive_search.gap_label(gap).encode()) for gap in pattern[1])][-2:]
        glue.append([label(pattern[0].encode()), left, right, first, size])
        first += size
    order = np.array([label(name.encode()) for name in world.order], np.int32)
    arguments = grammar.trie, grammar.rules.lhs, np.array(glue, np.int64).reshape(-1, 5), order
    return arguments, [*rules_in_order(grammar, symbols), *world.glue]


@given(worlds(), lattices(WORDS, empty=False))
def test_bundles_equal_brute_force(world: World, lattice: Lattice) -> None:
    symbols = Symbols()
    arguments, rules = kernel_arguments(world, symbols)
    arcs = lattice.word_arcs
    src = symbols.words.intern_all(word.encode() for word in arcs.words)
    found, cost, total = parse_lattice(src, arcs.arcs, *arguments, world.span_limit)
    cells = [(symbols.labels.text(label), start, end) for label, start, end in found.cell.tolist()]
    assert len(set(cells)) == len(cells)
    by_cell = {}
    for c, cell in enumerate(cells):
        by_cell[cell] = bundles = Counter[Any]()
        for b in range(found.first_bundle[c], found.first_bundle[c + 1]):
            first, size = found.rules[b].tolist()
            same = rules[first : first + size]
            tails = tuple(cells[tail] for tail in found.tail[b].tolist() if tail >= 0)
            assert all(tail < c for tail in found.tail[b].tolist())
            bundles[same[0].src, tails, tuple(same), float(total[cost[b]].sum())] += 1
    expected = naive.parse(world, naive_arcs(lattice), [1] * len(lattice.arcs))
    assert by_cell == {cell: Counter(bundles) for cell, bundles in expected.items()}


@given(worlds(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=7))
def test_the_parse_of_a_sentence(world: World, words: list[str]) -> None:
    """Every array is that of the parser of sentences."""
    symbols = Symbols()
    (trie, lhs, glue, order), _ = kernel_arguments(world, symbols)
    src = read_only(symbols.words.intern_all(word.encode() for word in words))
    expected = parse_kernel(src, trie, lhs, glue, order, min(world.span_limit, len(src)))
    arcs = Lattice.from_words(words).word_arcs.arcs
    found, cost, total = parse_lattice(src, arcs, trie, lhs, glue, order, world.span_limit)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    assert not cost.any()
    assert total.shape == (1, 0)


def arrays_of(forest: Forest) -> list[Any]:
    arrays = [*forest.graph, forest.edge_score, forest.edge_rule, forest.edge_lm]
    arrays += [forest.node_label, forest.node_start, forest.node_end, *forest.rules]
    return [array.tolist() for array in arrays]


@given(systems())
@settings(max_examples=30)
def test_the_forest_of_a_sentence(system: System) -> None:
    """Bit for bit, with costs of 0 as well, also where the lattice is searched as a lattice."""
    with system.opened(pop_limit=3) as model, pytest.MonkeyPatch.context() as patch:
        expected = model.parse(" ".join(system.words))
        for cost in (None, 0.0):
            arcs = (
                (k, k + 1, word, {} if cost is None else {COST: cost}) for k, word in enumerate(system.words)
            )
            lattice = Lattice.make(arcs)
            assert arrays_of(model.parse(lattice)) == arrays_of(expected)
            patch.setattr(Lattice, "is_sentence", False)
            found = model.parse(lattice)
            patch.undo()
            assert found.lattice is lattice
            assert arrays_of(found) == arrays_of(expected)
            for one, other in zip(found.kbest(5), expected.kbest(5), strict=True):
                assert (one.text, one.alignment, one.features) == (
                    other.text,
                    other.alignment,
                    other.features,
                )


def reading_system(draw: st.DrawFn) -> System:
    system = draw(systems(max_models=1))
    weights = {COST: draw(st.sampled_from([-1.0, 0.5])), f"{COST}_more": 0.25}
    return replace(system, rules=draw(grammars()), span_limit=9, more_weights=weights)


@given(st.data())
@settings(max_examples=60)
def test_a_lattice_has_the_derivations_of_its_paths(data: Any) -> None:
    """Enumerated: each path as a sentence, its scores with the costs of its arcs."""
    system = data.draw(st.composite(reading_system)())
    lattice = data.draw(lattices(WORDS, max_nodes=4))
    with system.opened() as model:
        forest, expected = model.parse(lattice), list[tuple[str, float]]()
        best = -np.inf
        count = 0.0
        for path in lattice.paths():
            words = [lattice.words[k] for k in path if lattice.words[k] != EPSILON]
            values = lattice.values[list(path)].sum(axis=0)
            cost = sum(system.more_weights[n] * v for n, v in zip(lattice.names, values, strict=True))
            sentence = model.parse(" ".join(words))
            if sentence:
                count += sentence.num_derivations
                best = max(best, sentence.best()[0][-1] + cost)
                if sentence.num_derivations <= MOST:
                    expected += [
                        (one.text, round(one.score + cost, 9)) for one in sentence.kbest(MOST, False)
                    ]
        found = forest.best()[0][-1] if forest else -np.inf
        assert found == pytest.approx(best, abs=1e-9)
        if not forest or count > MOST or EPSILON in lattice.words:
            return
        listed = forest.kbest(MOST, unique=False)
        assert Counter((one.text, round(one.score, 9)) for one in listed) == Counter(expected)


@given(st.data())
@settings(max_examples=40)
def test_the_arcs_of_derivations(data: Any) -> None:
    """A path, whose words the rules have, with the values of its features; also when read from a file."""
    system = data.draw(st.composite(reading_system)())
    lattice = data.draw(lattices(WORDS, max_nodes=4))
    with system.opened() as model:
        forest = model.parse(lattice)
        stored = Forest.__new__(Forest)
        stored.__setstate__(forest.__getstate__())
        for one, again in zip(forest.kbest(8, False), stored.kbest(8, False), strict=True):
            arcs = [lattice.arcs[k] for k in one.arcs]
            assert [arc.start for arc in arcs] == [0, *(arc.end for arc in arcs[:-1])]
            assert arcs[-1].end == lattice.num_nodes - 1
            values = lattice.values[one.arcs].sum(axis=0)
            for name, value in zip(lattice.names, values, strict=True):
                assert one.features.get(name, 0.0) == pytest.approx(value, abs=1e-6)
            weighted = sum(model.weights.get(name, 0.0) * value for name, value in one.features.items())
            assert weighted == pytest.approx(one.score, abs=1e-5)
            assert again.arcs == one.arcs
            assert again.alignment == one.alignment
            for src, _ in one.alignment:
                assert src in one.arcs
                assert lattice.words[src] != EPSILON


LINKED = """\
[X] ||| a ||| u ||| F=1 ||| 0-0
[X] ||| b [X,1] c ||| v [1] w x ||| F=1 ||| 0-0 2-2 2-3
[X] ||| d ||| y ||| F=1 ||| 0-0
"""
PLF = "((('b',0,1),),(('a',1,1),('d',2,1),('a',3,2),),(('c',.5,1),('*EPS*',7,1),),(('c',0.25,1),),)"


def linked_model(tmp_path: Path, **more: Any) -> Any:
    import hiero

    (tmp_path / "grammar").write_text(LINKED)
    (tmp_path / "weights").write_text(f"F 1\n{COST} -1\nGlue -9\nPassThrough -99\n")
    return hiero.load(grammar=tmp_path / "grammar", weights=tmp_path / "weights", **more)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_alignment_and_files(tmp_path: Path, suffix: str) -> None:
    model = linked_model(tmp_path)
    lattice = Lattice.from_plf(PLF)
    forest = model.parse(lattice)
    best = forest.viterbi()
    assert (best.text, best.arcs) == ("v u w x", [0, 3, 6])
    assert best.alignment == [(0, 0), (3, 1), (6, 2), (6, 3)]
    assert best.features[COST] == 3.25
    assert [(d.text, d.arcs) for d in model.translate_all([PLF, lattice])] == [("v u w x", [0, 3, 6])] * 2
    forest.save(tmp_path / f"0{suffix}")
    again = Forest.load(tmp_path / f"0{suffix}")
    assert again.lattice == lattice
    assert again.source == ("b", "a", "d", "a", "c", EPSILON, "c")
    told = [(d.text, d.arcs, d.alignment) for d in again.kbest(9, False)]
    assert told == [(d.text, d.arcs, d.alignment) for d in forest.kbest(9, False)]


def test_damaged_lattices_in_files(tmp_path: Path) -> None:
    path = tmp_path / "0.json"
    linked_model(tmp_path).parse(PLF).save(path)
    text = path.read_text()
    for old, new, message in (
        ("[[0,1],", "[", "a lattice of other than 7 arcs"),
        ("[[0,1],[1,2],", "[[1,2],[0,1],", "arcs that are not in the order"),
        ("[[0,1],", "[[1,0],", "found an arc from 1 to 0"),
        (
            '"lattice":{"arcs":[[0,1],[1,2],[1,2],[1,3],[2,3],[2,3],[3,4]]',
            '"lattice":{"arcs":[[0,1],[1,2],[1,2],[1,2],[1,2],[1,2],[2,3]]',
            "a node that ends behind node 3",
        ),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(FormatError, match=message):
            Forest.load(path)


def test_features_of_sentences_are_refused(tmp_path: Path) -> None:
    model = linked_model(tmp_path, features=["span_size"])
    with pytest.raises(HieroError, match="feature span_size: found a lattice, expected a sentence"):
        model.parse(PLF)
    assert model.translate(Lattice.from_words(["b", "d", "c"])).text == "v y w x"
    assert SpanSize.name == "span_size"


def test_empty_lattices(tmp_path: Path) -> None:
    model = linked_model(tmp_path)
    assert not model.translate(Lattice.from_plf("()"))
    assert not model.translate(Lattice.from_slots([[(EPSILON, 0.5)]]))
    assert model.translate(Lattice.from_slots([[(EPSILON, 0.5)], [("d", 1), (EPSILON, 1)]])).text == "y"
