"""Bins by definition: one value at a time, one bin after the other, all partitions of the values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction


def bin_of(begins: Sequence[float], value: float) -> int:
    """The last bin that does not begin above a value."""
    return max(j for j, begin in enumerate(begins) if begin <= value)


def fired(
    values: Sequence[Sequence[float]],
    begins: Sequence[Sequence[float]],
    overlap: Sequence[int],
    names: Sequence[Sequence[int]],
    sparse: Sequence[Sequence[tuple[int, float]]],
) -> list[list[tuple[int, float]]] | tuple[int, int]:
    """The sparse features of each rule, then those of its bins; or (feature, rule) of a NaN."""
    rows = []
    for r, row in enumerate(sparse):
        out = list(row)
        for k, begin in enumerate(begins):
            if math.isnan(values[k][r]):
                return k, r
            here = bin_of(begin, values[k][r])
            out += [(names[k][j], 1.0) for j in range(len(begin)) if abs(j - here) <= overlap[k]]
        rows.append(out)
    return rows


# ---- learning


def adjusted(counts: Sequence[int], number: int) -> Fraction:
    """The ideal population: the paper's iteration, until convergence."""
    frequency = [Fraction(count) for count in counts]
    while True:
        ideal = sum(frequency, Fraction(0)) / number
        if all(f <= ideal for f in frequency):
            return ideal
        cut = [min(f, ideal) for f in frequency]
        if sum(frequency) - sum(cut) < Fraction(1, 10**12):
            return ideal
        # Rounded, or numerators would grow without end.
        frequency = [f.limit_denominator(10**15) for f in cut]


def populated(mass: Sequence[Fraction], ideal: Fraction, number: int) -> list[int]:
    """Algorithm 1, line by line, with R(j) = |X| - (N - j): the start of each bin."""
    bins: list[list[int]] = [[] for _ in range(number)]
    i = 1
    for j in range(1, number + 1):

        def room(j: int = j) -> Fraction:
            return j * ideal - sum((mass[x - 1] for one in bins[:j] for x in one), Fraction(0))

        last = len(mass) - (number - j)
        while i <= last and mass[i - 1] <= room():
            bins[j - 1].append(i)
            i += 1
        if i <= last and (mass[i - 1] - room()) / mass[i - 1] < Fraction(1, 2):
            bins[j - 1].append(i)
            i += 1
    return [one[0] - 1 for one in bins]


def partitions(num_values: int, number: int) -> Iterator[list[int]]:
    """The starts of bins, for all partitions without empty bins."""
    for cuts in itertools.combinations(range(1, num_values), number - 1):
        yield [0, *cuts]


def objective(mass: Sequence[Fraction], ideal: Fraction, begins: Sequence[int]) -> Fraction:
    """Equation 7: the mean distance of populations from the ideal."""
    ends = [*begins[1:], len(mass)]
    off = [abs(sum(mass[a:b], Fraction(0)) - ideal) for a, b in zip(begins, ends, strict=True)]
    return sum(off, Fraction(0)) / len(begins)


def least_deviations(mass: Sequence[int], ideal: int, number: int) -> list[int | None]:
    """For the first 0, 1, ... values: the least sum of |population - ideal| over all partitions."""
    best: list[int | None] = [0, *[None] * len(mass)]
    for _ in range(number):
        longer: list[int | None] = [None]
        for n in range(1, len(mass) + 1):
            ways = [(before, sum(mass[k:n])) for k in range(n) if (before := best[k]) is not None]
            longer.append(min((before + abs(part - ideal) for before, part in ways), default=None))
        best = longer
    return best


# ---- regularising


def linear(weights: Sequence[Sequence[float]], beta: float) -> float:
    """Equation 10, for each feature's bins."""
    total = 0.0
    for w in weights:
        for j in range(1, len(w) - 1):
            total += ((w[j - 1] + w[j + 1]) / 2 - w[j]) ** 2
    return beta * total


def monotone(weights: Sequence[Sequence[float]], beta: float, gamma: float) -> float:
    """Equation 13."""
    total = 0.0
    for w in weights:
        for j in range(1, len(w) - 1):
            off, radius = (w[j - 1] + w[j + 1]) / 2 - w[j], (w[j - 1] - w[j + 1]) / 2
            damping = 1.0 if radius == 0 else (math.tanh(off / radius) ** 2) ** gamma
            total += damping * off**2
    return beta * total
