"""Newton's method: matrices against dense ones, minima against known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.learning import newton
from hiero.learning.newton import Banded, Curvature, minimum
from tests.worlds.batch import dense

Floats = npt.NDArray[np.float64]

SIZE = 7


@st.composite
def curvatures(draw: Any) -> Curvature:
    """Random curvatures with a positive diagonal, and blocks of any three features."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    number = draw(st.integers(0, 6))
    triple = np.array([random.permutation(SIZE)[:3] for _ in range(number)], np.int64).reshape(-1, 3)
    root = random.normal(size=(number, 3, 2))
    return Curvature(random.uniform(0.1, 2.0, SIZE), triple, root @ root.swapaxes(1, 2))


vectors = st.integers(0, 10**6).map(lambda seed: np.random.default_rng(seed).normal(size=SIZE))


@given(curvatures(), vectors)
def test_curvature_is_a_matrix(curvature: Curvature, vector: Floats) -> None:
    matrix = dense(curvature)
    assert curvature.times(vector) == pytest.approx(matrix @ vector)
    assert Banded(curvature).solve(vector) == pytest.approx(np.linalg.solve(matrix, vector), rel=1e-6)


class Quadratic:
    """½ x A x - b x; only part of A is known entry by entry."""

    def __init__(self, known: Curvature, root: Floats, b: Floats) -> None:
        self.known, self.b, self.root = known, b, root
        self.matrix = dense(known) + root @ root.T

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        return float(0.5 * x @ self.matrix @ x - self.b @ x), self.matrix @ x - self.b

    def model(self, x: Floats) -> Quadratic:
        return self

    def times(self, vector: Floats) -> Floats:
        found: Floats = self.matrix @ vector
        return found


@given(curvatures(), vectors, vectors, vectors)
def test_minimum_of_a_quadratic(known: Curvature, root: Floats, b: Floats, start: Floats) -> None:
    quadratic = Quadratic(known, root[:, None], b)
    found = minimum(quadratic, start, 100)
    assert found.converged
    assert found.steps <= 8
    assert found.x == pytest.approx(np.linalg.solve(quadratic.matrix, b), abs=1e-4)
    assert found.value == quadratic.value_and_gradient(found.x)[0]


@given(curvatures(), vectors, vectors, st.floats(0.01, 3.0))
def test_steps_stay_within_the_radius(known: Curvature, root: Floats, b: Floats, radius: float) -> None:
    quadratic = Quadratic(known, root[:, None], b)
    measure = Banded(known)
    move, length, promised = newton._best_within(radius, quadratic, measure, -b, 1e-6)
    assert length <= radius + 1e-9
    assert length == pytest.approx(np.sqrt(move @ dense(known) @ move), rel=1e-5)
    assert promised == pytest.approx(-quadratic.value_and_gradient(move)[0], rel=1e-9)


@given(curvatures(), vectors, vectors, st.sampled_from([0.5, 0.1, 0.01]))
def test_steps_leave_no_more_of_the_gradient_than_asked(
    known: Curvature, root: Floats, b: Floats, goal: float
) -> None:
    quadratic = Quadratic(known, root[:, None], b)
    measure = Banded(known)
    move, _, _ = newton._best_within(1e6, quadratic, measure, -b, goal)
    rest = b - quadratic.matrix @ move
    assert np.sqrt(rest @ measure.solve(rest)) <= goal * np.sqrt(b @ measure.solve(b)) * (1 + 1e-9)


def test_steps_without_curvature_reach_the_radius() -> None:
    flat = Quadratic(Curvature.of_diagonal(np.zeros(2)), np.zeros((2, 1)), np.array([3.0, 4.0]))
    measure = Banded(Curvature.of_diagonal(np.ones(2)))
    move, length, promised = newton._best_within(10.0, flat, measure, -flat.b, 0.1)
    assert move == pytest.approx([6.0, 8.0])
    assert (length, promised) == pytest.approx((10.0, 50.0))


def test_singular_matrices_have_a_factor() -> None:
    second = np.array([0.5, -1.0, 0.5])
    triple = np.arange(98)[:, None] + np.arange(3)
    chain = Curvature(np.zeros(100), triple, np.ones((98, 1, 1)) * np.outer(second, second))
    for singular in (chain, Curvature.of_diagonal(np.zeros(100))):
        assert np.isfinite(Banded(singular).solve(np.zeros(100))).all()
    assert np.isfinite(Banded(chain).solve(np.ones(100))).all()


class Valley:
    """Rosenbrock's function, whose matrix is that of Gauss and Newton."""

    def __init__(self) -> None:
        self.looked = 0

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        self.looked += 1
        a, b = x
        off = b - a * a
        return 100 * off * off + (1 - a) ** 2, np.array([-400 * a * off - 2 * (1 - a), 200 * off])

    def model(self, x: Floats) -> Quadratic:
        slopes = np.array([[-2 * x[0], 1.0]]) * np.sqrt(200.0)
        return Quadratic(Curvature.of_diagonal(np.array([2.0, 1e-9])), slopes.T, np.zeros(2))


def test_minimum_of_a_function_that_is_not_quadratic() -> None:
    valley = Valley()
    found = minimum(valley, np.array([-1.2, 1.0]), 200)
    assert found.converged
    assert valley.looked < 1.5 * found.steps  # the radius is kept between steps
    assert found.x == pytest.approx([1.0, 1.0], abs=1e-4)
    few = minimum(Valley(), np.array([-1.2, 1.0]), 3)
    assert (few.steps, few.converged) == (3, False)
    assert few.value < Valley().value_and_gradient(np.array([-1.2, 1.0]))[0]


def test_start_at_the_minimum() -> None:
    found = minimum(Valley(), np.array([1.0, 1.0]), 10)
    assert (found.steps, found.converged, found.value) == (0, True, 0.0)


def test_weights_without_any_term_stay() -> None:
    """Without pairs and terms, the matrix is zero except for jitter."""
    known = Curvature.of_diagonal(np.array([2.0, 0.0]))
    found = minimum(Quadratic(known, np.zeros((2, 1)), np.array([4.0, 0.0])), np.array([0.0, 5.0]), 10)
    assert found.converged
    assert found.x == pytest.approx([2.0, 5.0])


class Barrier(Quadratic):
    """x - log x, which is not defined below 0."""

    def __init__(self, x: Floats) -> None:
        super().__init__(Curvature.of_diagonal(1 / (x * x)), np.zeros((1, 1)), np.zeros(1))

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        with np.errstate(all="ignore"):
            return float(x[0] - np.log(x[0])), 1 - 1 / x

    def model(self, x: Floats) -> Quadratic:
        return Barrier(x)


def test_steps_avoid_nan() -> None:
    for start in (0.3, 5.0, 100.0):
        found = minimum(Barrier(np.ones(1)), np.array([start]), 100)
        assert found.converged
        assert found.x == pytest.approx([1.0], abs=1e-4)
    with np.errstate(all="ignore"):
        lost = minimum(Barrier(np.ones(1)), np.array([-1.0]), 100)
        assert (lost.x.tolist(), lost.steps, lost.converged) == ([-1.0], 0, False)
        known = Curvature.of_diagonal(np.array([1e-300]))
        steep = minimum(Quadratic(known, np.zeros((1, 1)), np.array([1e300])), np.zeros(1), 100)
        assert (steep.x.tolist(), steep.converged) == ([0.0], False)
