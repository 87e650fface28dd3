"""Monotone curves: the nearest ones, minima against those of other methods, and their conditions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.learning import isotonic
from hiero.learning.isotonic import Barrier, Isotonic, Ordering, Pooled, better_direction, nearest_monotone
from hiero.learning.pro import Differences, ProLearner, Ranking
from hiero.learning.regularize import Neighbours, Ridge
from tests.naive import isotonic as naive

Floats = npt.NDArray[np.float64]

numbers = st.integers(-8, 8).map(lambda n: n / 4)
masses = st.integers(1, 8).map(lambda n: n / 2)
rows = st.lists(st.tuples(numbers, masses), min_size=1, max_size=8)


@given(rows)
def test_nearest_sequence_equals_its_twin(found: list[tuple[float, float]]) -> None:
    value, weight = np.array(found).T
    up = nearest_monotone(value, weight, 1)
    assert up == pytest.approx(naive.nearest(value.tolist(), weight.tolist()))
    assert (np.diff(up) >= 0).all()
    down = nearest_monotone(value, weight, -1)
    assert down == pytest.approx(nearest_monotone(value[::-1], weight[::-1], 1)[::-1])
    assert nearest_monotone(up, weight, 1) == pytest.approx(up)
    nearer = weight @ (up - value) ** 2 <= weight @ (down - value) ** 2
    assert better_direction(value, weight) == (1 if nearer else -1)


def pairs_of(curves: Sequence[Floats], number: int, seed: int = 3) -> Differences:
    """Pairs of translations by two rules each, that the sums of the curves rank, with noise."""
    random = np.random.default_rng(seed)
    bins = np.concatenate([random.integers(0, len(c), (number, 2, 2, 1)) for c in curves], axis=3)
    first = np.cumsum([0, *map(len, curves)])[:-1]
    score = np.concatenate(curves)[bins + first].sum(axis=(2, 3))
    swap = random.random(number) > 1 / (1 + np.exp(-(score[:, 0] - score[:, 1])))
    bins[swap] = bins[swap, ::-1]
    rows = []
    for better, worse in bins + first:
        value = np.zeros(sum(map(len, curves)))
        np.add.at(value, better.ravel(), 1.0)
        np.add.at(value, worse.ravel(), -1.0)
        rows.append(value)
    matrix = np.array(rows)
    size = np.count_nonzero(matrix, axis=1)
    return Differences(
        np.concatenate([[0], np.cumsum(size)]), np.nonzero(matrix)[1].astype(np.int32), matrix[matrix != 0]
    )


def problem(
    sizes: Sequence[int],
    number: int = 200,
    beta: float = 0.0,
    seed: int = 3,
    height: float = 2.0,
    **more: Any,
) -> tuple[Ranking, list[npt.NDArray[np.int64]]]:
    """Curves of bins: the first rises like a logarithm, the second falls, and so on."""
    curves = [height * (-1.0) ** k * np.log(np.arange(1, size + 1)) for k, size in enumerate(sizes)]
    ends = np.cumsum([0, *sizes])
    groups = [np.arange(a, b) for a, b in itertools.pairwise(ends)]
    terms: list[Any] = [Ridge(0.5), Isotonic(groups)]
    if beta:
        terms.append(Neighbours(groups=groups, strength=beta, **more))
    return Ranking(pairs_of(curves, number, seed), np.zeros(ends[-1]), terms), groups


def by_another_method(
    ranking: Ranking, groups: Sequence[npt.NDArray[np.int64]], ways: Sequence[int]
) -> float:
    """The least value for given directions: first weights, and steps that are not negative."""
    size = sum(map(len, groups))
    back = np.zeros((size, size))
    for group, way in zip(groups, ways, strict=True):
        for j in group:
            back[j, group[0]] = 1.0
            back[j, group[1] : j + 1] = way
    bounds = [(None, None) if j in {g[0] for g in groups} else (0.0, None) for j in range(size)]

    def objective(x: Floats) -> tuple[float, Floats]:
        value, gradient = ranking.value_and_gradient(back @ x)
        return value, back.T @ gradient

    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    found = scipy.optimize.minimize(
        objective, np.zeros(size), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return float(found.fun)


def assert_optimal(ranking: Ranking, learnt: Floats, group: npt.NDArray[np.int64]) -> None:
    """Monotone, and no step should be smaller, or larger unless it is 0: the sums of the gradient from the
    left are 0 after the last bin and before steps, and of the sign of the direction elsewhere."""
    step = np.diff(learnt[group])
    way = 1 if step.sum() >= 0 else -1
    assert (way * step >= 0).all()
    force = -way * np.cumsum(ranking.value_and_gradient(learnt)[1][group])
    assert force[-1] == pytest.approx(0, abs=1e-3)
    assert (force >= -1e-3).all()
    assert force[:-1][step != 0] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(("beta", "seed"), [(0.0, 4), (0.1, 4), (0.1, 5)])
def test_minimum_equals_that_of_another_method(beta: float, seed: int) -> None:
    ranking, groups = problem([5, 4], 60, beta, seed, height=0.3)
    learnt, happened = ranking.minimum(400, 10)
    assert happened["converged"]
    least = min(by_another_method(ranking, groups, ways) for ways in itertools.product((1, -1), repeat=2))
    assert happened["objective"] == pytest.approx(least, rel=1e-7)
    assert happened["objective"] == ranking.value_and_gradient(learnt)[0]
    for group in groups:
        assert_optimal(ranking, learnt, group)
    free = Ranking(ranking.rows, ranking.start, ranking.terms).minimum(400, 10)[1]["objective"]
    assert free < happened["objective"] - 1e-3  # the constraint holds some bins


@pytest.mark.heavy
@pytest.mark.parametrize(("beta", "per"), [(0.0, "bin"), (1e3, "bin"), (1.0, "curve")])
def test_many_bins(beta: float, per: str) -> None:
    ranking, groups = problem([64, 100], 1500, beta, per=per) if beta else problem([64, 100], 1500)
    learnt, happened = ranking.minimum(400, 10)
    assert happened["converged"]
    for group in groups:
        assert_optimal(ranking, learnt, group)
    assert learnt[groups[0]][-1] > learnt[groups[0]][0]
    assert learnt[groups[1]][-1] < learnt[groups[1]][0]


@settings(max_examples=10)
@given(st.integers(0, 1000), st.integers(1, 40), st.sampled_from([0.0, 1.0]))
def test_curves_are_monotone_whatever_the_pairs(seed: int, number: int, beta: float) -> None:
    """Pairs without a trend, and bins without pairs."""
    random = np.random.default_rng(seed)
    value = random.normal(size=(number, 2))
    ids = np.array([np.sort(random.choice(7, 2, replace=False)) for _ in range(number)], np.int32)
    groups = [np.array([4, 1, 0]), np.array([3, 5, 6, 2])]
    terms = [Ridge(0.1), Neighbours(groups=groups, strength=beta), Isotonic(groups)]
    made = Differences(2 * np.arange(number + 1), ids.ravel(), value.ravel())
    learnt, happened = Ranking(made, random.normal(size=8), terms).minimum(400, 10)
    assert happened["converged"]
    for group in groups:
        step = np.diff(learnt[group])
        assert (step >= 0).all() or (step <= 0).all()


def test_a_flat_curve_gets_the_other_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever direction is tried first."""
    ranking, groups = problem([6])
    expected, wrong = ranking.minimum(400, 10)[1]["objective"], []

    def backwards(value: Floats, weight: Floats) -> int:
        wrong.append(-better_direction(value, weight))
        return wrong[-1]

    monkeypatch.setattr(isotonic, "better_direction", backwards)
    learnt, happened = ranking.minimum(400, 10)
    assert wrong == [-1]
    assert happened["objective"] == pytest.approx(expected, rel=1e-9)
    assert_optimal(ranking, learnt, groups[0])


def test_derivatives_of_the_barrier_and_of_pools_equal_finite_differences() -> None:
    ranking, groups = problem([4, 3], 30, 2.0)
    x = np.array([0.1, 0.4, 0.5, 1.5, 0.3, 0.1, -0.7])
    pool = np.array([0, 0, 1, 2, 2, 3, 3])
    for made, at in (
        (Barrier(ranking, Ordering.of(groups, [1, -1]), 0.3), x),
        (Pooled(ranking, pool), x[:4]),
    ):
        numeric = scipy.optimize.approx_fprime(at, lambda y, m=made: m.value_and_gradient(y)[0], 1e-7)
        assert made.value_and_gradient(at)[1] == pytest.approx(numeric, abs=1e-4)
        model = made.model(at)
        for vector in np.eye(len(at)):
            up, down = (made.value_and_gradient(at + s * 1e-6 * vector)[1] for s in (1, -1))
            assert model.times(vector) == pytest.approx((up - down) / 2e-6, abs=1e-3)
            assert vector @ model.known.times(vector) > 0
    assert Barrier(ranking, Ordering.of(groups, [1, 1]), 0.3).value_and_gradient(x)[0] == np.inf


def test_groups_of_one_bin_have_no_order() -> None:
    ranking, _ = problem([4], 30)
    free = Ranking(ranking.rows, ranking.start, [Ridge(0.5)]).minimum(400, 10)[1]["objective"]
    alone = Ranking(ranking.rows, ranking.start, [Ridge(0.5), Isotonic([np.array([1])])])
    assert alone.minimum(400, 10)[1]["objective"] == pytest.approx(free)


def test_few_steps_are_not_enough() -> None:
    ranking, groups = problem([6, 5])
    learnt, happened = ranking.minimum(3, 10)
    assert not happened["converged"]
    for group in groups:
        step = np.diff(learnt[group])
        assert (step >= 0).all() or (step <= 0).all()


def test_the_term_itself_is_zero() -> None:
    term, weight = Isotonic([np.array([2, 0])]), np.ones(3)
    assert term.value_and_gradient(weight)[0] == 0
    assert not term.value_and_gradient(weight)[1].any()
    curvature = term.curvature(weight)
    assert curvature is not None
    assert not curvature.diagonal.any()
    assert term.relaxed() is term
    assert term.features().tolist() == [2, 0]
    assert ProLearner(terms=[term]).terms == [term]
