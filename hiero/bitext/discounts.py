"""How much of the counts of n-grams goes to n-grams that were not seen."""

from __future__ import annotations

from typing import NamedTuple

Discounts = tuple[float, float, float]  # of adjusted counts 1, 2, 3 and more

FALLBACK: Discounts = (0.5, 1.0, 1.5)  # lmplz's, where none can be estimated


class OrderStatistics(NamedTuple):
    """The n-grams of one length."""

    listed: int  # different ones in the text
    kept: int  # not pruned
    discounts: Discounts
    problem: str  # why these were set by hand; empty if they could be estimated


def estimate_discounts(numbers: list[int]) -> tuple[Discounts, str]:
    """Discounts, and why they are none, if so.

    ``numbers`` tells how many n-grams have an adjusted count of 0 ... 4. Equation 26 of Chen and Goodman
    (1998).
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
