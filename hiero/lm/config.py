"""Discounts of modified Kneser-Ney smoothing."""

from __future__ import annotations

from typing import NamedTuple

Discounts = tuple[float, float, float]  # of adjusted counts 1, 2, 3 and more

FALLBACK: Discounts = (0.5, 1.0, 1.5)  # lmplz's, where none can be estimated


class OrderStatistics(NamedTuple):
    """The n-grams of one length."""

    listed: int  # distinct ones in the text
    kept: int  # not pruned
    discounts: Discounts
    problem: str  # why the discounts are those of the fallback; empty if they are estimated


def estimate_discounts(numbers: list[int]) -> tuple[Discounts, str]:
    """The discounts, or zeros and the reason if they cannot be estimated.

    ``numbers`` has the numbers of n-grams with adjusted counts 0 ... 4. Chen and Goodman (1998), equation 26.
    """
    for count in (1, 2, 3):
        if numbers[count] == 0:
            return (0.0, 0.0, 0.0), f"none with an adjusted count of {count}"
    share = numbers[1] / (numbers[1] + 2 * numbers[2])
    one, two, more = (j - (j + 1) * share * numbers[j + 1] / numbers[j] for j in (1, 2, 3))
    for count, discount in enumerate((one, two, more), 1):
        if not 0 <= discount <= count:
            return (0.0, 0.0, 0.0), f"an adjusted count of {count} would lose {discount:.3g}"
    return (one, two, more), ""
