"""Mixing and averaging by definition, on the whole matrix."""

from __future__ import annotations

import math


def selected(rows: list[dict[str, float]], count: int, norm: str) -> set[str]:
    """The features whose columns have the largest norms; a missing feature counts as 0."""
    features = sorted({name for row in rows for name in row})
    columns = {name: [row.get(name, 0.0) for row in rows] for name in features}
    norms = {
        "l2": lambda c: math.sqrt(sum(v * v for v in c)),
        "l1": lambda c: sum(map(abs, c)),
        "linf": lambda c: max(map(abs, c)),
        "l0": lambda c: sum(v != 0 for v in c),
        "mean": lambda c: abs(sum(c) / len(c)),
    }
    size = {name: norms[norm](column) for name, column in columns.items()}
    present = [name for name in features if size[name] > 0]
    return set(sorted(present, key=lambda name: -size[name])[:count] if count else present)


def mean(rows: list[dict[str, float]], shares: list[float]) -> dict[str, float]:
    """The weighted mean of the rows."""
    total: dict[str, float] = {}
    for row, share in zip(rows, shares, strict=True):
        for name, value in row.items():
            total[name] = total.get(name, 0.0) + share * value / sum(shares)
    return total


def average(history: list[dict[int, float]]) -> dict[int, float]:
    """The mean of the weights after each sentence."""
    return {f: sum(row[f] for row in history) / len(history) for f in history[0]}
