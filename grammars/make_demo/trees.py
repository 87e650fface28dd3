"""Derivations of a synchronous grammar, and noise like that of real bitexts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

T = TypeVar("T")
Side = tuple[str | int, ...]  # words, and gaps as numbers from 1
Links = tuple[tuple[int, int], ...]


class Node(NamedTuple):
    """One rule and the nodes in its gaps: ``children[k - 1]`` in gap k. Links count gaps as positions."""

    src: Side
    tgt: Side
    links: Links
    children: tuple[Node, ...] = ()


class Pair(NamedTuple):
    src: list[str]
    tgt: list[str]
    links: list[tuple[int, int]]


class Rng:
    """Random choices by ``random()`` alone, whose sequence is the same in all versions of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def below(self, limit: int) -> int:
        return int(self._random() * limit)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def zipf(self, choices: Sequence[T]) -> T:
        """Draw from a Zipf distribution, the first most often."""
        return self.weighted(choices, [1 / (rank + 2) for rank in range(len(choices))])

    def weighted(self, choices: Sequence[T], weights: Sequence[float]) -> T:
        sums = list(accumulate(weights))
        at = self._random() * sums[-1]
        return next(choice for choice, top in zip(choices, sums, strict=True) if at < top)


def rule(src: str, tgt: str, *children: Node) -> Node:
    """A node from text: words, ``word:tags`` and gap numbers. Words that share a tag are linked.

    Source gaps must be in ascending order from 1, one for each child.
    """
    sides: list[list[str | int]] = [[], []]
    tags: list[list[str]] = [[], []]
    for side, text in enumerate((src, tgt)):
        for token in text.split():
            word, _, tag = token.partition(":") if len(token) > 1 else (token, "", "")
            sides[side].append(int(word) if word.isdigit() else word)
            tags[side].append(tag)
    gaps = [symbol for symbol in sides[0] if isinstance(symbol, int)]
    assert gaps == list(range(1, len(children) + 1)), (src, tgt)
    assert sorted(symbol for symbol in sides[1] if isinstance(symbol, int)) == gaps, (src, tgt)
    links = [
        (i, j)
        for i, mine in enumerate(tags[0])
        for j, theirs in enumerate(tags[1])
        if set(mine) & set(theirs)
    ]
    return Node(tuple(sides[0]), tuple(sides[1]), tuple(links), children)


def leaf(src: str, tgt: str) -> Node:
    """A phrase pair in which every word of one side is linked to every word of the other."""
    mine, theirs = src.split(), tgt.split()
    links = tuple((i, j) for i in range(len(mine)) for j in range(len(theirs)))
    return Node(tuple(mine), tuple(theirs), links)


def join(*children: Node) -> Node:
    """Concatenate the children, in the same order on both sides."""
    order = tuple(range(1, len(children) + 1))
    return Node(order, order, (), children)


def spell(node: Node) -> Pair:
    """Both strings of a derivation, and the links between their words."""
    parts = [spell(child) for child in node.children]
    strings: tuple[list[str], list[str]] = ([], [])
    starts: list[dict[int, int]] = [{}, {}]  # where a position of the rule begins in the string
    child_starts: list[dict[int, int]] = [{}, {}]
    for side, symbols in enumerate((node.src, node.tgt)):
        for position, symbol in enumerate(symbols):
            starts[side][position] = len(strings[side])
            if isinstance(symbol, int):
                child_starts[side][symbol] = len(strings[side])
                part = parts[symbol - 1]
                strings[side].extend(part.tgt if side else part.src)
            else:
                strings[side].append(symbol)
    links = [(starts[0][i], starts[1][j]) for i, j in node.links]
    for k, part in enumerate(parts, 1):
        links += [(i + child_starts[0][k], j + child_starts[1][k]) for i, j in part.links]
    return Pair(strings[0], strings[1], sorted(links))


def words(symbols: Side) -> tuple[str, ...]:
    return tuple(symbol for symbol in symbols if isinstance(symbol, str))


def num_leaves(node: Node) -> int:
    return sum(map(num_leaves, node.children)) if node.children else 1


def replace_leaf(node: Node, at: int, new: Node) -> Node:
    """The same derivation with another leaf number ``at`` in source order."""
    if not node.children:
        return new
    children = list(node.children)
    for k, child in enumerate(children):
        size = num_leaves(child)
        if at < size:
            children[k] = replace_leaf(child, at, new)
            break
        at -= size
    return node._replace(children=tuple(children))


def find_leaf(node: Node, at: int) -> Node:
    for child in node.children:
        size = num_leaves(child)
        if at < size:
            return find_leaf(child, at)
        at -= size
    return node


def add_noise(node: Node, rng: Rng, wrong_leaves: Sequence[Node]) -> Node:
    """Change one leaf of a derivation: a wrong translation, a missing word, or a missing link."""
    at = rng.below(num_leaves(node))
    old = find_leaf(node, at)
    if old.children:
        return node
    kind = rng.weighted(("wrong", "lost", "unlinked"), (4, 3, 3))
    if kind == "wrong":
        wrong = rng.pick(wrong_leaves)
        return replace_leaf(node, at, leaf(" ".join(words(old.src)), " ".join(words(wrong.tgt))))
    if kind == "unlinked" or len(old.tgt) == 1:
        return replace_leaf(node, at, old._replace(links=()))
    lost = old._replace(
        tgt=old.tgt[:-1], links=tuple(link for link in old.links if link[1] < len(old.tgt) - 1)
    )
    return replace_leaf(node, at, lost)
