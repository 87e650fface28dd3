"""Lattices by brute force: every path, every span, every rule.

An arc is (start, end, word, cost); nodes are numbered so that arcs lead to later ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tests.naive.search import Cell, Rule, World, gap_label, gaps, is_gap

Arc = tuple[int, int, str, float]
Arcs = tuple[Arc, ...]
# Source side, cells of gaps, rules, cost of the arcs.
Bundle = tuple[tuple[str, ...], tuple[Cell, ...], tuple[Rule, ...], float]


def last_node(arcs: Arcs) -> int:
    return max(end for _, end, _, _ in arcs)


def distances(arcs: Arcs, lengths: Sequence[int]) -> dict[tuple[int, int], int]:
    """The length of the shortest path between any two nodes that have one."""
    nodes = range(last_node(arcs) + 1)
    found = {(node, node): 0 for node in nodes}
    for node in nodes:
        for (start, end, _, _), length in sorted(zip(arcs, lengths, strict=True)):
            if (node, start) in found:
                new = found[node, start] + length
                found[node, end] = min(new, found.get((node, end), new))
    return {pair: size for pair, size in found.items() if pair[0] < pair[1]}


def readings(arcs: Arcs, epsilon: str) -> list[tuple[tuple[str, ...], float]]:
    """The words and the cost of each path."""

    def paths(node: int) -> Iterator[tuple[Arc, ...]]:
        if node == last_node(arcs):
            yield ()
        for arc in arcs:
            if arc[0] == node:
                yield from ((arc, *rest) for rest in paths(arc[1]))

    return [
        (tuple(arc[2] for arc in path if arc[2] != epsilon), sum(arc[3] for arc in path)) for path in paths(0)
    ]


def matches(pattern: Sequence[object], arcs: Arcs, words: Sequence[object], limit: int) -> bool:
    """Whether a source side, None for a gap, matches along a path.

    Each of its beginnings, and each gap, is between nodes at most ``limit`` arcs apart. ``words``: of arcs.
    """
    near = {pair for pair, size in distances(arcs, [1] * len(arcs)).items() if size <= limit}

    def fits(first: int, at: int, rest: Sequence[object]) -> bool:
        if not rest:
            return True
        if rest[0] is None:
            steps = [end for start, end in near if start == at]
        else:
            steps = [
                arc[1] for arc, word in zip(arcs, words, strict=True) if arc[0] == at and word == rest[0]
            ]
        return any((first, node) in near and fits(first, node, rest[1:]) for node in steps)

    return any(fits(node, node, pattern) for node in range(last_node(arcs)))


def parse(world: World, arcs: Arcs, lengths: Sequence[int]) -> dict[Cell, list[Bundle]]:
    """Every cell of a lattice that exists, with its bundles; the words of ``world`` are not used."""
    near = distances(arcs, [min(length, world.span_limit) for length in lengths])

    def is_span(start: int, end: int) -> bool:
        return near.get((start, end), world.span_limit + 1) <= world.span_limit

    def fillings(first: int, at: int, src: Sequence[str], end: int, limited: bool) -> Iterator[tuple]:
        """All ways to match a source side between two nodes: the spans of gaps, and the cost of arcs."""
        if not src:
            if at == end:
                yield (), 0.0
            return
        if is_gap(src[0]):
            steps = [(node, ((at, node),), 0.0) for node in range(at + 1, end + 1) if (at, node) in near]
        else:
            steps = [
                (arc[1], (), arc[3]) for arc in arcs if arc[0] == at and arc[2] == src[0] and arc[1] <= end
            ]
        for node, span, cost in steps:
            if limited and not (is_span(first, node) and all(is_span(*one) for one in span)):
                continue
            for spans, more in fillings(first, node, src[1:], end, limited):
                yield (*span, *spans), cost + more

    @lru_cache(None)
    def bundles(cell: Cell) -> tuple[Bundle, ...]:
        label, start, end = cell
        found: list[Bundle] = []
        for rules, limited in ((world.rules, True), (world.glue if start == 0 else (), False)):
            if limited and not is_span(start, end):
                continue
            by_place: dict[tuple, list[Rule]] = {}
            for rule in rules:
                if rule.lhs != label:
                    continue
                labels = [gap_label(gap) for gap in gaps(rule.src)]
                if len(rule.src) == 1 and labels and world.order.index(labels[0]) >= world.order.index(label):
                    continue  # idle
                for number, (spans, cost) in enumerate(fillings(start, start, rule.src, end, limited)):
                    tails = tuple((tail, *span) for tail, span in zip(labels, spans, strict=True))
                    if not limited and len(tails) == 2 and not is_span(*tails[1][1:]):
                        continue
                    if all(bundles(tail) for tail in tails):
                        by_place.setdefault((rule.src, tails, cost, number), []).append(rule)
            found += [(src, tails, tuple(same), cost) for (src, tails, cost, _), same in by_place.items()]
        return tuple(found)

    nodes = range(last_node(arcs) + 1)
    cells = [(label, i, j) for label in world.order for i, j in itertools.combinations(nodes, 2)]
    return {cell: list(bundles(cell)) for cell in cells if bundles(cell)}
