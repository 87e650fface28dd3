"""Derivations under constraints, by enumeration of all derivations."""

from __future__ import annotations

from collections.abc import Sequence

from tests.naive.search import (
    Cell,
    Derivation,
    Rule,
    World,
    derivations,
    gap_index,
    is_gap,
    parse,
    translation,
)

Words = tuple[str, ...]


def forced(world: World, goal: Cell, target: Sequence[str]) -> list[Derivation]:
    """The derivations that yield exactly the target words."""
    return [d for d in derivations(world, goal) if translation(d) == tuple(target)]


def places(target: Words, words: Words) -> list[int]:
    """Where words stand in the target."""
    return [k for k in range(len(target) - len(words) + 1) if target[k : k + len(words)] == words]


def pieces(world: World, target: Words) -> list[tuple[Derivation, int]]:
    """All parts of derivations that yield one target word or more, and where these begin."""
    found = [d for cell in parse(world) for d in derivations(world, cell)]
    return [(d, k) for d in found if translation(d) for k in places(target, translation(d))]


def longest(world: World, target: Words) -> int:
    """The most consecutive target words of any part."""
    return max((len(translation(d)) for d, _ in pieces(world, target)), default=0)


def missing(world: World, target: Words) -> set[int]:
    """Target words that are no word of the topmost rule of any part."""
    used = set()
    for d, at in pieces(world, target):
        for symbol in d.rule.tgt:
            if is_gap(symbol):
                at += len(translation(d.parts[gap_index(symbol) - 1]))
            else:
                used.add(at)
                at += 1
    return set(range(len(target))) - used


def completions(world: World, goal: Cell, prefix: Words, partial: bool) -> list[Derivation]:
    """The derivations whose words begin with a prefix; ``partial``: the last word of it may be incomplete."""
    return [d for d in derivations(world, goal) if begins(translation(d), prefix, partial)]


def begins(words: Words, prefix: Words, partial: bool) -> bool:
    if not partial:
        return words[: len(prefix)] == prefix
    size = len(prefix) - 1
    return len(words) > size and words[:size] == prefix[:-1] and words[size].startswith(prefix[-1])


def term_spans(words: Words, sources: Sequence[Words]) -> list[tuple[int, int]]:
    """Where terms stand: repeatedly the longest that overlaps none before, of equal ones the leftmost."""
    left = [
        (start, end)
        for size in range(len(words), 0, -1)
        for start, end in [(start, start + size) for start in range(len(words) - size + 1)]
        if words[start:end] in sources
    ]
    chosen: list[tuple[int, int]] = []
    while left:
        start, end = left[0]
        chosen.append((start, end))
        left = [other for other in left if other[1] <= start or other[0] >= end]
    return chosen


def has_terms(derivation: Derivation, spans: Sequence[tuple[int, int]], rules: Sequence[Rule]) -> bool:
    """Whether a derivation has one of the rules over each of the spans."""
    used = set()

    def visit(one: Derivation) -> None:
        if one.rule in rules:
            used.add(one.cell[1:])
        for part in one.parts:
            visit(part)

    visit(derivation)
    return used >= set(spans)
