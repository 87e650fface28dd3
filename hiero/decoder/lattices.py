"""Parse lattices with the rules of a grammar, and give the features of arcs to copies of rules.

After the parse, a lattice is searched as a sentence is: an application of a rule along arcs with features is
one of a copy of the rule that has these features as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hiero.core.arrays import Floats, Ids, Ints, read_only
from hiero.core.lattice import EPSILON, Arcs, Lattice
from hiero.core.symbol_kernels import gap_index, is_gap
from hiero.decoder.lattice_kernels import LatticeParse, parse_lattice_kernel
from hiero.decoder.parse_kernels import Parse
from hiero.grammar.rules import Grammar, Trie, frozen, rule_lists, take_rules
from hiero.grammar.trie_kernels import reach_kernel

if TYPE_CHECKING:
    from hiero.decoder.forest import Forest


def parse_lattice(
    src: Ids, arcs: Arcs, trie: Trie, lhs: Ids, glue: Ints, order: Ids, span_limit: int
) -> LatticeParse:
    """Find the bundles of a lattice. A span is as long as the shortest path, arcs without words included."""
    length = read_only(np.minimum(arcs.length, np.int32(span_limit)))  # a single word has no limit
    reach = reach_kernel(arcs.first, arcs.end, length, span_limit)
    parse: LatticeParse = parse_lattice_kernel(read_only(src), arcs, reach, trie, lhs, glue, order)
    return parse


def with_arc_features(grammar: Grammar, found: LatticeParse, names: Sequence[int]) -> tuple[Grammar, Parse]:
    """The grammar with copies of rules that have the features of arcs, and the parse with these copies.

    names  of the features of arcs, ids in Symbols.names

    The copies follow the other rules and are not in the trie.
    """
    parse = found.parse
    chosen = np.flatnonzero(found.cost)
    if not len(chosen):
        return grammar, parse
    keys = np.column_stack([parse.rules[chosen], found.cost[chosen]])
    kept, place = np.unique(keys, axis=0, return_inverse=True)
    size = kept[:, 1]
    first = np.cumsum(size) - size
    row = np.repeat(kept[:, 0] - first, size) + np.arange(size.sum())
    copies = take_rules(grammar.rules, np.concatenate([np.arange(grammar.num_rules), row]))
    columns = list(grammar.columns) + [name for name in names if name not in grammar.columns]
    dense = np.zeros((len(copies.lhs), len(columns)), np.float32)
    dense[:, : len(grammar.columns)] = copies.dense
    value = np.repeat(found.total[kept[:, 2]], size, axis=0)
    dense[grammar.num_rules :, [columns.index(name) for name in names]] += value.astype(np.float32)
    new = parse.rules.copy()
    new[chosen, 0] = grammar.num_rules + first[place.reshape(-1)]
    extended = Grammar(frozen(copies._replace(dense=dense)), grammar.trie, tuple(columns))
    return extended, parse._replace(rules=new)


# ---- the arcs of a derivation


def edge_arcs(forest: Forest, edges: Sequence[int], nodes: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """For each word of the source sides of the rules of some edges, the arcs that it stands for.

    nodes  the heads of the edges

    Between several paths with the same words, the features of the edge decide.
    """
    lattice = forest.lattice
    assert lattice is not None
    finder = _PathFinder(lattice)
    found: list[list[tuple[int, ...]]] = []
    for edge, node in zip(edges, nodes, strict=True):
        rule = int(forest.edge_rule[edge])
        if rule < 0:
            found.append([])
            continue
        at, last = int(forest.node_start[node]), int(forest.node_end[node])
        runs: list[tuple[int, list[str]]] = [(at, [])]
        ends: list[int] = []
        for symbol in rule_lists(forest.rules, rule)[0]:
            if is_gap(symbol):
                tail = forest.graph.tail[edge, gap_index(symbol) - 1]
                ends.append(int(forest.node_start[tail]))
                runs.append((int(forest.node_end[tail]), []))
            else:
                runs[-1][1].append(forest.words.text(symbol))
        ways = [
            finder.ways(start, end, words) for (start, words), end in zip(runs, [*ends, last], strict=True)
        ]
        choices = list(itertools.islice(itertools.product(*ways), MOST_WAYS))
        if not choices:
            found.append([])
            continue
        best = choices[0]
        if len(choices) > 1:
            values = forest.features_of_edges(np.array([edge], np.int32))
            row = {} if values is None else values.row(0)
            given = np.array([row.get(name, 0.0) for name in lattice.names])
            best = min(choices, key=lambda way: float(np.abs(finder.total(way) - given).sum()))
        found.append([finder.paths[arc] for run in best for arc in run])
    return found


def word_arc(lattice: Lattice, path: Sequence[int]) -> int:
    """The arc of a path that has a word."""
    return next(arc for arc in path if lattice.arcs[arc].word != EPSILON)


MOST_WAYS = 1000


class _PathFinder:
    """Paths of a lattice by their words."""

    def __init__(self, lattice: Lattice) -> None:
        (first, _, end, _, self._value), words, self.paths = lattice.word_arcs
        self._first, self._end = first.tolist(), end.tolist()
        self._words = [word.encode(errors="replace").decode() for word in words]

    def ways(self, start: int, end: int, words: Sequence[str]) -> list[tuple[int, ...]]:
        """All ways to spell words from one node to another."""
        ways: list[tuple[int, tuple[int, ...]]] = [(start, ())]
        for word in words:
            ways = [
                (self._end[arc], (*way, arc))
                for node, way in ways[:MOST_WAYS]
                for arc in range(self._first[node], self._first[node + 1])
                if self._words[arc] == word
            ]
        return [way for node, way in ways if node == end]

    def total(self, way: Sequence[Sequence[int]]) -> Floats:
        """What the arcs of several runs add up to."""
        arcs = [arc for run in way for arc in run]
        return np.asarray(self._value[arcs].sum(axis=0))
