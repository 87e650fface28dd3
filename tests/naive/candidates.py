"""Features of derivations, added up by hand."""

from __future__ import annotations


def replay(steps: list[list[list[int]]], rows: list[dict[int, float]]) -> list[dict[int, float]]:
    """The features of each derivation: ``steps[d][s]`` lists the rows that step s contributes."""
    totals = []
    for derivation in steps:
        total: dict[int, float] = {}
        for step in derivation:
            for row in step:
                for feature, value in rows[row].items() if row >= 0 else ():
                    total[feature] = total.get(feature, 0.0) + value
        totals.append({feature: value for feature, value in sorted(total.items()) if value != 0.0})
    return totals
