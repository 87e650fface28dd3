# mypy: allow-untyped-calls
"""Newton's method, for minima that L-BFGS does not reach.

Penalties on neighbouring weights (``regularize.Neighbours``) make an objective steep wherever a curve gets a
bend and leave it flat where the whole curve moves. With 256 bins the one is some 10^8 times the other, and
L-BFGS is still far from the minimum after thousands of steps. Newton's method takes five to two hundred.

A step minimises a quadratic model of the objective within a trust region, by conjugate gradients (Steihaug
1983). They are preconditioned with the matrix that makes the trouble, which is banded: the penalties' own
part of the model and the diagonal of the rest. Lengths, that of the trust region too, are measured by this
matrix, so that a step is long or short by what it does to the penalty.

The model's matrix is positive semidefinite: where the objective bends the other way, it is taken for flat.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve_banded, cholesky_banded

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SMALLEST_GAIN = 1e-11  # of the value; the end is where the model promises less
FORCING = 0.1  # how much of the gradient may be left by a step, at most
MOST_PRODUCTS = 1000  # with the model's matrix, in a step
JITTER = 1e-12  # of the largest diagonal entry: weights that nothing holds
FIRST_RADIUS = 1000.0  # times the length of the gradient
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75  # decreases, by those that the model promises
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
    """An objective next to some point."""

    @property
    def known(self) -> Curvature:
        """What is known of the matrix entry by entry: at least its diagonal."""
        ...

    def times(self, vector: Floats) -> Floats:
        """The whole matrix, times a vector."""
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
    """A minimum of an objective that is bounded from below; the only one, if it is convex."""
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
            move, moved, promised = _best_within(radius, model, measure, gradient, goal)
            if not 0.01 * smallest < promised < np.inf:
                return Found(x, value, step, promised < np.inf)
            new_value, new_gradient = objective.value_and_gradient(x + move)
            kept = (value - new_value) / promised
            if not kept >= POOR:  # or there is no number, far away
                radius = SHRINK * moved
            elif kept > GOOD:
                radius = max(radius, GROW * moved)
            if kept > ACCEPT:
                break
        x, value, gradient = x + move, new_value, new_gradient
    return Found(x, value, steps, False)


def _best_within(
    radius: float, model: QuadraticModel, measure: Banded, gradient: Floats, goal: float
) -> tuple[Floats, float, float]:
    """A step, its length, and by how much it makes the model smaller."""
    move, rest = np.zeros(len(gradient)), -gradient
    towards = measure.solve(rest)
    direction, left = towards, float(rest @ towards)
    enough = goal * goal * left
    # Inner products by the measure, kept up to date without multiplying: of move and direction.
    move_move, move_direction, direction_direction = 0.0, 0.0, left
    for _ in range(MOST_PRODUCTS):
        bent = model.times(direction)
        bend = float(direction @ bent)
        share = left / bend if bend > 0 else np.inf
        reached = move_move + share * (2 * move_direction + share * direction_direction)
        if not reached < radius * radius:
            room = max(0.0, radius * radius - move_move)
            root = np.sqrt(move_direction * move_direction + direction_direction * room)
            share = (root - move_direction) / direction_direction
            move, rest, move_move = move + share * direction, rest - share * bent, radius * radius
            break
        move, rest, move_move = move + share * direction, rest - share * bent, reached
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
    """A curvature whose blocks are of features that stand side by side, factored (Cholesky)."""

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
