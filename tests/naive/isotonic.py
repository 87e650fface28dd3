"""Isotonic regression by definition."""

from __future__ import annotations

from collections.abc import Sequence


def nearest(value: Sequence[float], weight: Sequence[float]) -> list[float]:
    """The largest mean from any place before to the least mean from there to any place after."""

    def mean(a: int, b: int) -> float:
        mine = range(a, b + 1)
        return sum(weight[i] * value[i] for i in mine) / sum(weight[i] for i in mine)

    places = range(len(value))
    return [max(min(mean(a, b) for b in places if b >= i) for a in places if a <= i) for i in places]
