"""Slow twins of what the server computes."""

from __future__ import annotations

from collections.abc import Sequence


def edit_distance(one: Sequence[int], other: Sequence[int]) -> int:
    """Insertions, deletions and replacements that turn one list into the other, by recursion."""
    if not one or not other:
        return len(one) + len(other)
    replaced = edit_distance(one[1:], other[1:]) + (one[0] != other[0])
    return min(replaced, edit_distance(one[1:], other) + 1, edit_distance(one, other[1:]) + 1)
