"""Derivations of a synchronous grammar, and the ways in which real bitexts spoil them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

T = TypeVar("T")
Side = tuple[str | int, ...]  # words, and gaps as numbers from 1
Links = tuple[tuple[int, int], ...]


class Node(NamedTuple):
    """One rule and what fills its gaps; gap k is filled by ``kids[k - 1]``. Links count gaps as positions."""

    src: Side
    tgt: Side
    links: Links
    kids: tuple[Node, ...] = ()


class Pair(NamedTuple):
    src: list[str]
    tgt: list[str]
    links: list[tuple[int, int]]


class Dice:
    """Random choices from ``random()`` only: the one method whose sequence never changes between Pythons."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def below(self, limit: int) -> int:
        return int(self._random() * limit)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def zipf(self, choices: Sequence[T]) -> T:
        """Earlier ones more often, as words are."""
        return self.weighted(choices, [1 / (rank + 2) for rank in range(len(choices))])

    def weighted(self, choices: Sequence[T], weights: Sequence[float]) -> T:
        sums = list(accumulate(weights))
        at = self._random() * sums[-1]
        return next(choice for choice, top in zip(choices, sums, strict=True) if at < top)


def rule(src: str, tgt: str, *kids: Node) -> Node:
    """A node from text: words, ``word:tags`` and gap numbers. Words that share a tag are linked.

    Source gaps must ascend from 1 and number as many as there are kids.
    """
    sides: list[list[str | int]] = [[], []]
    tags: list[list[str]] = [[], []]
    for side, text in enumerate((src, tgt)):
        for token in text.split():
            word, _, tag = token.partition(":") if len(token) > 1 else (token, "", "")
            sides[side].append(int(word) if word.isdigit() else word)
            tags[side].append(tag)
    gaps = [symbol for symbol in sides[0] if isinstance(symbol, int)]
    assert gaps == list(range(1, len(kids) + 1)), (src, tgt)
    assert sorted(symbol for symbol in sides[1] if isinstance(symbol, int)) == gaps, (src, tgt)
    links = [
        (i, j)
        for i, mine in enumerate(tags[0])
        for j, theirs in enumerate(tags[1])
        if set(mine) & set(theirs)
    ]
    return Node(tuple(sides[0]), tuple(sides[1]), tuple(links), kids)


def leaf(src: str, tgt: str) -> Node:
    """Words that translate as one: every word of one side is linked to every word of the other."""
    mine, theirs = src.split(), tgt.split()
    links = tuple((i, j) for i in range(len(mine)) for j in range(len(theirs)))
    return Node(tuple(mine), tuple(theirs), links)


def join(*kids: Node) -> Node:
    """The kids one after the other, in the same order on both sides."""
    order = tuple(range(1, len(kids) + 1))
    return Node(order, order, (), kids)


def spell(node: Node) -> Pair:
    """Both strings of a derivation, and the links between their words."""
    parts = [spell(kid) for kid in node.kids]
    strings: tuple[list[str], list[str]] = ([], [])
    starts: list[dict[int, int]] = [{}, {}]  # where a position of the rule begins in the string
    kid_starts: list[dict[int, int]] = [{}, {}]
    for side, symbols in enumerate((node.src, node.tgt)):
        for position, symbol in enumerate(symbols):
            starts[side][position] = len(strings[side])
            if isinstance(symbol, int):
                kid_starts[side][symbol] = len(strings[side])
                part = parts[symbol - 1]
                strings[side].extend(part.tgt if side else part.src)
            else:
                strings[side].append(symbol)
    links = [(starts[0][i], starts[1][j]) for i, j in node.links]
    for k, part in enumerate(parts, 1):
        links += [(i + kid_starts[0][k], j + kid_starts[1][k]) for i, j in part.links]
    return Pair(strings[0], strings[1], sorted(links))


def words(symbols: Side) -> tuple[str, ...]:
    return tuple(symbol for symbol in symbols if isinstance(symbol, str))


def num_leaves(node: Node) -> int:
    return sum(map(num_leaves, node.kids)) if node.kids else 1


def replace_leaf(node: Node, at: int, new: Node) -> Node:
    """The same derivation with another leaf at place ``at``, counted in source order."""
    if not node.kids:
        return new
    kids = list(node.kids)
    for k, kid in enumerate(kids):
        size = num_leaves(kid)
        if at < size:
            kids[k] = replace_leaf(kid, at, new)
            break
        at -= size
    return node._replace(kids=tuple(kids))


def find_leaf(node: Node, at: int) -> Node:
    for kid in node.kids:
        size = num_leaves(kid)
        if at < size:
            return find_leaf(kid, at)
        at -= size
    return node


def spoil(node: Node, dice: Dice, strangers: Sequence[Node]) -> Node:
    """Damage one leaf of a derivation: a wrong word, a lost word, or a lost link."""
    at = dice.below(num_leaves(node))
    old = find_leaf(node, at)
    if old.kids:
        return node
    kind = dice.weighted(("wrong", "lost", "unlinked"), (4, 3, 3))
    if kind == "wrong":
        stranger = dice.pick(strangers)
        return replace_leaf(node, at, leaf(" ".join(words(old.src)), " ".join(words(stranger.tgt))))
    if kind == "unlinked" or len(old.tgt) == 1:
        return replace_leaf(node, at, old._replace(links=()))
    lost = old._replace(
        tgt=old.tgt[:-1], links=tuple(link for link in old.links if link[1] < len(old.tgt) - 1)
    )
    return replace_leaf(node, at, lost)
