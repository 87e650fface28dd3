"""Trust-region Newton method, for ill-conditioned objectives on which L-BFGS does not converge.

Penalties on neighbouring weights (``regularize.Neighbours``) make an objective steep in directions that
change the curvature of a sequence of weights, and flat where all of them move together. With 256 bins the
condition number is some 10^8, and L-BFGS is still far from the minimum after thousands of steps. Newton's
method takes five to two hundred.

A step minimises a quadratic model of the objective within a trust region, by conjugate gradients (Steihaug
1983). They are preconditioned with the banded part of the model's matrix: the penalties' second derivatives
and the diagonal of the rest. The norm of steps, and of the trust region, is the one induced by this matrix.

The model's matrix is positive semidefinite: directions of negative curvature are treated as flat.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from hiero.core.arrays import Floats, Ints

SMALLEST_GAIN = 1e-11  # relative to the value; converged if the model predicts less
FORCING = 0.1  # largest relative residual of the linear system of a step
MAX_PRODUCTS = 1000  # with the model's matrix, in a step
JITTER = 1e-12  # relative to the largest diagonal entry, for weights without curvature
FIRST_RADIUS = 1000.0  # relative to the norm of the gradient
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75  # actual decrease divided by the predicted one
SHRINK, GROW = 0.25, 2.5


class Curvature(NamedTuple):
    """A positive semidefinite matrix of F features: a diagonal, and T blocks of three of them.

    diagonal  float64 [F]
    triple    int64 [T, 3]
    block     float64 [T, 3, 3]
    """

    diagonal: Floats
    triple: Ints
    block: Floats

    @classmethod
    def of_diagonal(cls, diagonal: Floats) -> Curvature:
        return cls(diagonal, np.zeros((0, 3), np.int64), np.zeros((0, 3, 3)))

    def times(self, vector: Floats) -> Floats:
        found = np.multiply(self.diagonal, vector)
        np.add.at(found, self.triple, np.einsum("tij,tj->ti", self.block, vector[self.triple]))
        return found


class QuadraticModel(Protocol):
    """Second derivatives of an objective at a point."""

    @property
    def known(self) -> Curvature:
        """The banded part of the matrix: at least its diagonal."""
        ...

    def times(self, vector: Floats) -> Floats:
        """The product of the whole matrix with a vector."""
        ...


class Objective(Protocol):
    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]: ...

    def model(self, x: Floats) -> QuadraticModel: ...


class Found(NamedTuple):
    x: Floats
    value: float
    steps: int
    converged: bool


def minimum(objective: Objective, start: Floats, steps: int) -> Found:
    """Minimise an objective that is bounded from below; a local minimum, if it is not convex."""
    x, radius, first_length = start, 0.0, 0.0
    value, gradient = objective.value_and_gradient(x)
    if not np.isfinite(value):
        return Found(x, value, 0, False)
    for step in range(steps):
        model = objective.model(x)
        measure = Banded(model.known)
        length = float(np.sqrt(np.maximum(gradient @ measure.solve(gradient), 0.0)))
        if not first_length:
            first_length, radius = length, FIRST_RADIUS * length
        smallest = SMALLEST_GAIN * (1 + abs(value))
        if length * length <= smallest:
            return Found(x, value, step, True)
        goal = min(FORCING, np.sqrt(length / first_length))
        while True:
            move, moved, predicted = _best_within(radius, model, measure, gradient, goal)
            if not 0.01 * smallest < predicted < np.inf:
                return Found(x, value, step, predicted < np.inf)
            new_value, new_gradient = objective.value_and_gradient(x + move)
            ratio = (value - new_value) / predicted
            if not ratio >= POOR:  # or not a number, after an overflow
                radius = SHRINK * moved
            elif ratio > GOOD:
                radius = max(radius, GROW * moved)
            if ratio > ACCEPT:
                break
        x, value, gradient = x + move, new_value, new_gradient
    return Found(x, value, steps, False)


def _best_within(
    radius: float, model: QuadraticModel, measure: Banded, gradient: Floats, goal: float
) -> tuple[Floats, float, float]:
    """Return a step, its norm, and the decrease of the model."""
    move, rest = np.zeros(len(gradient)), -gradient
    towards = measure.solve(rest)
    direction, left = towards, float(rest @ towards)
    enough = goal * goal * left
    # Inner products of move and direction in the norm of ``measure``, updated by recurrences.
    move_move, move_direction, direction_direction = 0.0, 0.0, left
    for _ in range(MAX_PRODUCTS):
        product = model.times(direction)
        curvature = float(direction @ product)
        share = left / curvature if curvature > 0 else np.inf
        reached = move_move + share * (2 * move_direction + share * direction_direction)
        if not reached < radius * radius:
            room = max(0.0, radius * radius - move_move)
            root = np.sqrt(move_direction * move_direction + direction_direction * room)
            share = (root - move_direction) / direction_direction
            move, rest, move_move = move + share * direction, rest - share * product, radius * radius
            break
        move, rest, move_move = move + share * direction, rest - share * product, reached
        towards = measure.solve(rest)
        now = float(rest @ towards)
        if now <= enough:
            break
        more, left = now / left, now
        move_direction = more * (move_direction + share * direction_direction)
        direction_direction = now + more * more * direction_direction
        direction = towards + more * direction
    # rest = -(gradient + matrix * move), so that this is -(gradient + ½ matrix * move) * move.
    return move, float(np.sqrt(move_move)), 0.5 * float((rest - gradient) @ move)


class Banded:
    """Cholesky factor of a curvature whose blocks are of adjacent features."""

    def __init__(self, curvature: Curvature) -> None:
        diagonal, triple, block = curvature
        width = int(np.ptp(triple, axis=1).max(initial=0))
        band = np.zeros((width + 1, len(diagonal)))
        band[0] = diagonal
        for i in range(3):
            for j in range(3):
                below = triple[:, i] - triple[:, j]
                of = below >= 0
                np.add.at(band, (below[of], triple[of, j]), block[of, i, j])
        band[0] += JITTER * float(band[0].max(initial=0.0)) + np.finfo(float).tiny
        self._factor = cholesky_banded(band, lower=True, overwrite_ab=True, check_finite=False)

    def solve(self, vector: Floats) -> Floats:
        found: Floats = cho_solve_banded((self._factor, True), vector, check_finite=False)
        return found
