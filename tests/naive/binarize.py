"""Rules with more than two gaps as rules with two, on strings: sides as in ``tests/naive/search.py``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tests.naive.search import gap_index, gap_label, gaps, is_gap

Side = tuple[str, ...]
Part = tuple[Side, Side]


def num_gaps(side: Sequence[str]) -> int:
    return len(gaps(side))


def is_divisible(tgt: Sequence[str]) -> bool:
    """Whether no four gaps are in the order 2 4 1 3 or 3 1 4 2, which no two neighbours are in."""
    order = [gap_index(symbol) for symbol in gaps(tgt)]
    for four in itertools.combinations(order, 4):
        places = [sorted(four).index(index) for index in four]
        if places in ([1, 3, 0, 2], [2, 0, 3, 1]):
            return False
    return True


def binarized(src: Side, tgt: Side, parts: dict[Part, str]) -> Part | None:
    """The topmost rule. ``parts`` are names of parts by their sides, to which new ones are added.

    Read from left to right, two gaps become one as soon as they are neighbours on both sides.
    """
    while num_gaps(src) > 2:
        pairs = list(itertools.pairwise(gaps(src)))
        # Pairs that end at the first gaps come first: those to their right are not read yet.
        found = next((pair for pair in pairs if _joined(tgt, *pair)), None)
        if found is None:
            return None
        src, tgt = _with_part(src, tgt, *found, parts)
    order = [gap_index(symbol) for symbol in gaps(src)]
    return _renumbered(src, order), _renumbered(tgt, order)


def _between(side: Side, one: str, two: str) -> Side:
    """The part of a side from one gap to another, whichever is first."""
    first, last = sorted((side.index(one), side.index(two)))
    return side[first : last + 1]


def _joined(tgt: Side, one: str, two: str) -> bool:
    """Whether no other gap is between two on the target side."""
    return num_gaps(_between(tgt, one, two)) == 2


def _with_part(src: Side, tgt: Side, one: str, two: str, parts: dict[Part, str]) -> Part:
    """The sides of a rule in which two gaps are one, with the index of the first."""
    order = [gap_index(one), gap_index(two)]
    inner = [_between(side, one, two) for side in (src, tgt)]
    name = parts.setdefault(
        (_renumbered(inner[0], order), _renumbered(inner[1], order)), f"part {len(parts) + 1}"
    )
    new = f"[{name},{gap_index(one)}]"
    whole = []
    for side, part in zip((src, tgt), inner, strict=True):
        at = next(i for i in range(len(side)) if side[i : i + len(part)] == part)
        whole.append((*side[:at], new, *side[at + len(part) :]))
    return whole[0], whole[1]


def _renumbered(side: Side, order: list[int]) -> Side:
    return tuple(
        f"[{gap_label(symbol)},{order.index(gap_index(symbol)) + 1}]" if is_gap(symbol) else symbol
        for symbol in side
    )
