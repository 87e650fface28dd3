"""Minima among monotone curves: the weights of a feature's bins never fall, or never rise, from bin to bin.

Of an objective that is convex, as PRO's is with linear neighbours, by the barrier method (Boyd and
Vandenberghe 2004, section 11.3). The logarithms of all steps from one bin to the next, times a strength, are
subtracted from the objective, and the strength is reduced until the value is within ``GAP`` of the minimum:
it is above it by at most the strength times the number of steps. The logarithms couple neighbours only, as
penalties do, so that ``newton.minimum`` finds each minimum. Then bins that only the barrier keeps apart are
pooled, as in isotonic regression, and the weights of the pools are those of the minimum without a barrier.

A curve rises if the nearest rising curve is at least as near to the minimum without constraints as the
nearest falling one, by squared differences times the second derivatives of the objective; or else it falls. A
curve that then comes out flat gets the other direction: flat curves both rise and fall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Flags, Floats, Ints, read_only
from hiero.learning import newton
from hiero.learning.isotonic_kernels import pav_kernel
from hiero.learning.newton import Curvature, Found, Objective, QuadraticModel

GAP = 1e-8  # of the value from the minimum, relative
FIRST_GAP = 0.1
SHRINK = 0.1  # factor of the strength from one minimum to the next
APART = 0.1  # first distance of equal bins, of the mean distance of bins
LEAST_RANGE = 1e-3  # of a curve, for the same
FLAT = 1e-4  # range of a curve to try in the other direction, relative to that without constraints
MOST_POOLINGS = 20


@dataclass(frozen=True, eq=False)
class Isotonic:
    """The constraint that the curves of groups of bins are monotone; as a term, 0.

    groups  for each discretised feature, the numbers of its bins' features, in the order of the bins
    """

    groups: Sequence[Ints]

    def features(self) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *self.groups])

    def value_and_gradient(self, weight: Floats) -> tuple[float, Floats]:
        return 0.0, np.zeros(len(weight))

    def curvature(self, weight: Floats) -> Curvature | None:
        return Curvature.of_diagonal(np.zeros(len(weight)))

    def relaxed(self) -> Isotonic:
        return self


def nearest_monotone(value: Floats, weight: Floats, direction: int) -> Floats:
    """The nearest sequence that never falls (direction 1) or never rises (-1); weights are positive."""
    found = np.empty(len(value))
    pav_kernel(read_only(direction * value), read_only(np.ascontiguousarray(weight)), found)
    return direction * found


def better_direction(value: Floats, weight: Floats) -> int:
    """1 if the nearest rising sequence is at least as near as the nearest falling one, otherwise -1."""
    up, down = (weight @ (nearest_monotone(value, weight, way) - value) ** 2 for way in (1, -1))
    return 1 if up <= down else -1


class Ordering(NamedTuple):
    """M constraints that the step from x[left] to x[right], times way, is not negative.

    left, right  int64 [M]    neighbours, from left to right within each curve
    way          float64 [M]  1 or -1
    """

    left: Ints
    right: Ints
    way: Floats

    @classmethod
    def of(cls, groups: Sequence[Ints], directions: Sequence[int]) -> Ordering:
        left = np.concatenate([group[:-1] for group in groups])
        right = np.concatenate([group[1:] for group in groups])
        return cls(left, right, np.repeat(np.array(directions, np.float64), [len(g) - 1 for g in groups]))

    def steps(self, x: Floats) -> Floats:
        difference: Floats = self.way * (x[self.right] - x[self.left])
        return difference


class SumModel(NamedTuple):
    """A quadratic model plus a banded matrix."""

    inner: QuadraticModel
    more: Curvature

    @property
    def known(self) -> Curvature:
        one, other = self.inner.known, self.more
        triple = np.concatenate([one.triple, other.triple])
        return Curvature(one.diagonal + other.diagonal, triple, np.concatenate([one.block, other.block]))

    def times(self, vector: Floats) -> Floats:
        return self.inner.times(vector) + self.more.times(vector)


@dataclass(frozen=True)
class Barrier:
    """An objective less the logarithms of all steps, times a strength; infinite unless all are positive."""

    inner: Objective
    order: Ordering
    strength: float

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        step = self.order.steps(x)
        if not (step > 0).all():
            return np.inf, np.zeros(len(x))
        value, gradient = self.inner.value_and_gradient(x)
        force = self.strength / step
        np.add.at(gradient, self.order.left, self.order.way * force)
        np.add.at(gradient, self.order.right, -self.order.way * force)
        return value - self.strength * float(np.log(step).sum()), gradient

    def model(self, x: Floats) -> SumModel:
        step, pair = self.order.steps(x), np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
        # The third feature of a block is the second once more, with zeros.
        triple = np.stack([self.order.left, self.order.right, self.order.right], axis=1)
        block = (self.strength / step**2)[:, None, None] * pair
        return SumModel(self.inner.model(x), Curvature(np.zeros(len(x)), triple, block))


def _sums(pool: Ints, value: Floats, number: int) -> Floats:
    """The sums of the values of each pool."""
    return np.asarray(np.bincount(pool, value, number), np.float64)


class PooledModel(NamedTuple):
    inner: QuadraticModel
    pool: Ints
    number: int

    @property
    def known(self) -> Curvature:
        diagonal, triple, block = self.inner.known
        return Curvature(_sums(self.pool, diagonal, self.number), self.pool[triple], block)

    def times(self, vector: Floats) -> Floats:
        return _sums(self.pool, self.inner.times(vector[self.pool]), self.number)


@dataclass(frozen=True)
class Pooled:
    """An objective whose variables of a pool are equal; pool: int64, from 0 without gaps."""

    inner: Objective
    pool: Ints

    @property
    def number(self) -> int:
        return int(self.pool.max(initial=-1)) + 1

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        value, gradient = self.inner.value_and_gradient(x[self.pool])
        return value, _sums(self.pool, gradient, self.number)

    def model(self, x: Floats) -> PooledModel:
        return PooledModel(self.inner.model(x[self.pool]), self.pool, self.number)


def minimum(objective: Objective, start: Floats, groups: Sequence[Ints], steps: int) -> Found:
    """Minimise a convex objective whose variables of each group never fall or never rise."""
    groups = [group for group in groups if len(group) > 1]
    free = newton.minimum(objective, start, steps)
    if not groups:
        return free
    weight = _positive(objective.model(free.x).known.diagonal)
    directions = [better_direction(free.x[group], weight[group]) for group in groups]
    if (Ordering.of(groups, directions).steps(free.x) >= 0).all():
        return free
    found, spent = None, free.steps
    while True:
        tried = _ordered(objective, free.x, weight, groups, directions, steps - spent)
        spent += tried.steps
        if found is not None and tried.value >= found.value:
            break
        flat = [np.ptp(tried.x[group]) <= FLAT * np.ptp(free.x[group]) for group in groups]
        turned = [-way if is_flat else way for way, is_flat in zip(directions, flat, strict=True)]
        if not any(flat) or found is not None or spent >= steps:
            found = tried
            break
        found, directions = tried, turned
    return found._replace(steps=spent)


def _ordered(
    objective: Objective,
    near: Floats,
    weight: Floats,
    groups: Sequence[Ints],
    directions: Sequence[int],
    steps: int,
) -> Found:
    """Minimise with given directions; ``near`` is the minimum without constraints."""
    order, x = Ordering.of(groups, directions), near.copy()
    for group, way in zip(groups, directions, strict=True):
        rising = np.arange(len(group)) - (len(group) - 1) / 2
        slope = APART * max(float(np.ptp(near[group])), LEAST_RANGE) / len(group)
        x[group] = nearest_monotone(near[group], weight[group], way) + way * slope * rising
    size = 1 + abs(objective.value_and_gradient(x)[0])
    gap, spent = FIRST_GAP * size, 0
    while True:
        barrier = Barrier(objective, order, gap / len(order.left))
        found = newton.minimum(barrier, x, steps - spent)
        x, spent = found.x, spent + found.steps
        if gap <= GAP * size or spent >= steps:
            break
        gap *= SHRINK
    pooled = _pooled(objective, x, order, barrier.strength, steps)
    return Found(pooled.x, pooled.value, spent + pooled.steps, found.converged and pooled.converged)


def _pooled(objective: Objective, x: Floats, order: Ordering, strength: float, steps: int) -> Found:
    """Minimise without the barrier, with bins pooled that it keeps apart; or return ``x``, if that fails."""
    value, _ = objective.value_and_gradient(x)
    diagonal = _positive(objective.model(x).known.diagonal)
    # The barrier's force is strength / step; that of the objective, if it is free, changes with the step.
    equal = order.steps(x) ** 2 * np.minimum(diagonal[order.left], diagonal[order.right]) <= strength
    spent = 0
    for _ in range(MOST_POOLINGS):
        pool = _pools(len(x), order, equal)
        mean = np.bincount(pool, x) / np.bincount(pool)
        found = newton.minimum(Pooled(objective, pool), mean, steps)
        spent += found.steps
        wrong = order.steps(found.x[pool]) < 0
        if not wrong.any():
            if found.value <= value:
                return Found(found.x[pool], found.value, spent, found.converged)
            break
        equal |= wrong
    return Found(x, value, spent, True)


def _pools(size: int, order: Ordering, equal: Flags) -> Ints:
    """The pool of each variable, numbered in the order of their first members."""
    first = np.arange(size)
    for a, b in zip(order.left[equal].tolist(), order.right[equal].tolist(), strict=True):
        first[b] = first[a]
    return np.unique(first, return_inverse=True)[1].astype(np.int64)


def _positive(diagonal: Floats) -> Floats:
    return np.maximum(diagonal, newton.JITTER * float(diagonal.max(initial=0.0)) + np.finfo(float).tiny)
