"""Derivations under constraints, by enumeration of all derivations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.naive.search import (
    Cell,
    Derivation,
    Rule,
    World,
    derivations,
    gap_index,
    is_gap,
    parse,
    steps,
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


# ---- zones and walls: where the words of the source end up


class Token(NamedTuple):
    """A target word by the rule that has it: the span of the rule, and its own source words."""

    cell: Cell
    own: tuple[int, ...]


def own_words(derivation: Derivation) -> tuple[int, ...]:
    """The places of the source words of the topmost rule."""
    inside = {at for part in derivation.parts for at in range(*part.cell[1:])}
    return tuple(at for at in range(*derivation.cell[1:]) if at not in inside)


def tokens(derivation: Derivation) -> list[Token]:
    """The target words in their order."""
    found: list[Token] = []
    for symbol in derivation.rule.tgt:
        if is_gap(symbol):
            found += tokens(derivation.parts[gap_index(symbol) - 1])
        else:
            found.append(Token(derivation.cell, own_words(derivation)))
    return found


def is_split(words: Sequence[int], start: int, end: int) -> bool:
    """Whether some words are in a span, and others are not."""
    return len({start <= at < end for at in words}) == 2


def crosses(cell: Cell, start: int, end: int) -> bool:
    """Whether a cell overlaps a span, and neither is within the other."""
    shared = cell[1] < end and cell[2] > start
    return shared and not (start <= cell[1] and cell[2] <= end) and not (cell[1] <= start and end <= cell[2])


def keeps_zone(derivation: Derivation, glue: Sequence[Rule], start: int, end: int) -> bool:
    """Whether a zone is a block: constituents do not cut it, rules do not mix, target words stand together.

    Glue may join parts of a zone.
    """
    for step in steps(derivation):
        if step.rule in glue:
            continue
        inside = start <= step.cell[1] and step.cell[2] <= end
        if crosses(step.cell, start, end) or any(crosses(part.cell, start, end) for part in step.parts):
            return False
        within_part = any(part.cell[1] <= start and end <= part.cell[2] for part in step.parts)
        if not inside and not within_part and is_split(own_words(step), start, end):
            return False
    places = [
        at
        for at, token in enumerate(tokens(derivation))
        if (start <= token.cell[1] and token.cell[2] <= end) or any(start <= word < end for word in token.own)
    ]
    return not places or places[-1] - places[0] + 1 == len(places)


def keeps_wall(derivation: Derivation, start: int, place: int, end: int) -> bool:
    """Whether target words of source words before a wall precede those of words after it."""
    for step in steps(derivation):
        own = own_words(step)
        if any(start <= at < place for at in own) and any(place <= at < end for at in own):
            return False

    def side(token: Token) -> int:
        _, low, high = token.cell
        if any(start <= at < place for at in token.own) or (not token.own and start <= low and high <= place):
            return -1
        if any(place <= at < end for at in token.own) or (not token.own and place <= low and high <= end):
            return 1
        return 0

    sides = [side(token) for token in tokens(derivation) if side(token)]
    return sides == sorted(sides)


def deletes(derivation: Derivation) -> bool:
    """Whether some rule has source words, and no target words."""
    return any(
        own_words(step) and not [s for s in step.rule.tgt if not is_gap(s)] for step in steps(derivation)
    )


# ---- translations of places


def uses(derivation: Derivation, rule: Rule, span: tuple[int, int]) -> bool:
    """Whether a rule is applied to a span."""
    return any(step.rule is rule and step.cell[1:] == span for step in steps(derivation))


def translates(derivation: Derivation, span: tuple[int, int]) -> list[Derivation]:
    """The steps that have words of a span as their own."""
    return [step for step in steps(derivation) if any(span[0] <= at < span[1] for at in own_words(step))]


def contains(words: Sequence[str], part: Words) -> bool:
    return bool(places(tuple(words), part))
