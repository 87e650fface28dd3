"""Structured regularisers: values by the definition, gradients, and limits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from hiero.core.errors import ConfigError
from hiero.learning.regularize import OFF_AND_RADIUS, Neighbours, Ridge, _nearest_semidefinite
from tests.naive import bins as naive
from tests.worlds.batch import dense

Floats = npt.NDArray[np.float64]

weights = st.floats(-3, 3).map(lambda w: round(w, 3))
groups = st.lists(st.lists(weights, min_size=1, max_size=6), min_size=1, max_size=3)
gammas = st.sampled_from([None, 1.0, 1.5, 2.0, 4.0])


def world(values: list[list[float]], **settings: Any) -> tuple[Neighbours, Floats]:
    """Features in random order, with one more that has no bins."""
    order = np.random.default_rng(5).permutation(sum(map(len, values)) + 1)
    ends = np.cumsum([0, *map(len, values)])
    numbered = [order[a:b].astype(np.int64) for a, b in itertools.pairwise(ends)]
    weight = np.zeros(len(order))
    for ids, mine in zip(numbered, values, strict=True):
        weight[ids] = mine
    weight[order[-1]] = 0.7
    return Neighbours(groups=numbered, **settings), weight


def slopes(term: Any, weight: Floats, step: float = 1e-6) -> Floats:
    """The gradient, by finite differences."""
    found = np.empty(len(weight))
    for f in range(len(weight)):
        up, down = weight.copy(), weight.copy()
        up[f] += step
        down[f] -= step
        found[f] = (term.value_and_gradient(up)[0] - term.value_and_gradient(down)[0]) / (2 * step)
    return found


@given(groups, gammas, st.sampled_from([0.5, 10.0]))
def test_value_equals_the_definition(values: list[list[float]], gamma: float | None, beta: float) -> None:
    term, weight = world(values, strength=beta, gamma=gamma)
    by_book = naive.linear(values, beta) if gamma is None else naive.monotone(values, beta, gamma)
    assert term.value_and_gradient(weight)[0] == pytest.approx(by_book, abs=1e-12)
    assert term.features().tolist() == np.concatenate(term.groups).tolist()


@given(groups, gammas)
def test_gradient_equals_finite_differences(values: list[list[float]], gamma: float | None) -> None:
    """The gradient of a bin's own penalty and of those of its neighbours."""
    # Not near equal neighbours, where D jumps to 1.
    values = [[w + 0.01 * j * j for j, w in enumerate(mine)] for mine in values]
    term, weight = world(values, strength=2.0, gamma=gamma)
    close = any(abs(a - c) < 1e-3 for mine in values for a, c in zip(mine, mine[2:], strict=False))
    if gamma is None or not close:
        _value, gradient = term.value_and_gradient(weight)
        assert gradient == pytest.approx(slopes(term, weight), rel=1e-4, abs=1e-5)
        assert gradient.shape == weight.shape


@pytest.mark.parametrize("strength", [0.0, 3.0])
@pytest.mark.parametrize("centre", [None, np.array([1.0, -2.0])])
def test_ridge(strength: float, centre: Floats | None) -> None:
    term, weight = Ridge(strength, centre), np.array([0.3, 0.5, -4.0])
    assert term.value_and_gradient(weight)[1] == pytest.approx(slopes(term, weight), abs=1e-6)


def test_equal_neighbours_are_fully_damped_without_a_slope_through_damping() -> None:
    term, weight = world([[0.5, -1.0, 0.5]], strength=1.0, gamma=2.0)
    value, gradient = term.value_and_gradient(weight)
    left, here, right = term.groups[0].tolist()
    assert value == 1.5**2
    assert (gradient[left], gradient[here], gradient[right]) == (1.5, -3.0, 1.5)
    assert np.isfinite(term.value_and_gradient(np.zeros(len(weight)))[1]).all()


def test_next_to_equal_neighbours_nothing_overflows() -> None:
    for tiny in (1e-300, 1e-160, 1e-20, 1e-9):
        term, weight = world([[tiny, -1.0, -tiny]], strength=1.0, gamma=2.0)
        value, gradient = term.value_and_gradient(weight)
        assert value == pytest.approx(1.0)
        assert gradient[term.groups[0]] == pytest.approx([1.0, -2.0, 1.0])


def test_too_few_bins_have_no_neighbours_on_both_sides() -> None:
    term, weight = world([[1.0], [2.0, -3.0]], strength=5.0)
    value, gradient = term.value_and_gradient(weight)
    assert value == 0
    assert not gradient.any()


# ---- second derivatives


def second_derivatives(term: Any, weight: Floats, step: float = 1e-6) -> Floats:
    """The second derivatives, by finite differences of the gradient."""
    rows = []
    for f in range(len(weight)):
        up, down = weight.copy(), weight.copy()
        up[f] += step
        down[f] -= step
        rows.append((term.value_and_gradient(up)[1] - term.value_and_gradient(down)[1]) / (2 * step))
    return np.array(rows)


@given(groups)
def test_curvature_of_convex_terms_equals_finite_differences(values: list[list[float]]) -> None:
    term, weight = world(values, strength=2.0)
    for one in (term, Ridge(3.0), Ridge(3.0, weight[:2])):
        curvature = one.curvature(weight)
        assert curvature is not None
        assert dense(curvature) == pytest.approx(second_derivatives(one, weight), abs=1e-4)
        assert one.relaxed() is one or one is term


@given(st.lists(weights, min_size=3, max_size=3), st.sampled_from([1.0, 1.5, 2.0, 4.0]))
def test_curvature_of_monotone_without_negative_eigenvalues(values: list[float], gamma: float) -> None:
    """For three bins: finite differences without the negative eigenvalues with respect to off and radius."""
    term, weight = world([values], strength=2.0, gamma=gamma)
    left, here, right = term.groups[0].tolist()
    radius = 0.5 * (weight[left] - weight[right])
    off = 0.5 * (weight[left] + weight[right]) - weight[here]
    # Not near equal neighbours, where D jumps, nor where gamma 1 has a kink in its second derivative.
    if abs(radius) > 0.05 and abs(off) > 0.01:
        back = np.linalg.pinv(OFF_AND_RADIUS)
        matrix = second_derivatives(term, weight)[np.ix_(term.groups[0], term.groups[0])]
        value, vector = np.linalg.eigh(back.T @ matrix @ back)
        expected = OFF_AND_RADIUS.T @ (vector * np.maximum(value, 0) @ vector.T) @ OFF_AND_RADIUS
        curvature = term.curvature(weight)
        assert curvature is not None
        assert curvature.block[0] == pytest.approx(expected, rel=1e-3, abs=1e-3)


@given(weights, weights, weights)
def test_nearest_semidefinite(a: float, b: float, c: float) -> None:
    value, vector = np.linalg.eigh([[a, b], [b, c]])
    found = _nearest_semidefinite(np.array([a]), np.array([b]), np.array([c]))
    expected = vector * np.maximum(value, 0) @ vector.T
    assert np.concatenate(found) == pytest.approx(expected[[0, 0, 1], [0, 1, 1]], abs=1e-9)


def test_curvature_with_equal_neighbours() -> None:
    term, weight = world([[0.5, -1.0, 0.5]], strength=1.0, gamma=2.0)
    straight, _ = world([[0.5, -1.0, 0.5]], strength=1.0)
    damped, full = term.curvature(weight), straight.curvature(weight)
    assert damped is not None
    assert full is not None
    assert damped.block == pytest.approx(full.block)
    assert term.relaxed().value_and_gradient(weight)[0] == straight.value_and_gradient(weight)[0]


def test_released_has_no_curvature() -> None:
    for gamma in (None, 2.0):
        term, weight = world([[1.0, 4.0, 2.0]], strength=3.0, gamma=gamma, variant="released")
        assert term.curvature(weight) is None


# ---- limits


def fitted(term: Neighbours, target: Floats) -> Floats:
    """The minimum of the term plus the squared distance to given weights."""

    def objective(w: Floats) -> tuple[float, Floats]:
        value, gradient = term.value_and_gradient(w)
        off = w - target
        return value + float(off @ off), gradient + 2 * off

    found = minimize(
        objective, target, jac=True, method="L-BFGS-B", options={"maxiter": 20000, "maxfun": 10**6}
    )
    return np.asarray(found.x)


def test_strong_linear_regularization_gives_a_line() -> None:
    target = np.array([0.0, 2.0, -1.0, 3.0, 1.0, 5.0, 2.0])
    off_line = []
    for beta in (0.0, 1.0, 100.0, 1e6):
        w = fitted(Neighbours(groups=[np.arange(7)], strength=beta), target)
        off_line.append(np.abs(np.diff(w, 2)).max())
    assert off_line == sorted(off_line, reverse=True)
    assert off_line[-1] < 1e-3
    assert np.polyfit(np.arange(7), target, 1)[0] == pytest.approx(np.diff(w).mean(), abs=1e-3)


@pytest.mark.parametrize("gamma", [None, 2.0])
def test_strength_of_a_curve_does_not_depend_on_the_number_of_bins(gamma: float | None) -> None:
    """A curve with a turning point, in 32 and in 512 bins; each bin alone costs far less in the latter."""
    value: dict[str, list[float]] = {"bin": [], "curve": []}
    for number in (32, 512):
        curve = (np.linspace(0, 1, number) - 0.4) ** 2
        for per, found in value.items():
            term = Neighbours(groups=[np.arange(number)], strength=2.0, gamma=gamma, per=per)  # type: ignore[arg-type]
            found.append(term.value_and_gradient(curve)[0])
    assert value["curve"][1] == pytest.approx(value["curve"][0], rel=0.35)
    assert value["bin"][1] < 1e-3 * value["bin"][0]
    if gamma is None:  # 2 * ¼ * the integral of w''², which is 4
        assert value["curve"][1] == pytest.approx(2.0, rel=0.01)


def test_strength_of_curves_is_that_of_their_bins_times_a_power() -> None:
    """Curves of different lengths, and the convex relaxation, which has the same strength of each bin."""
    groups = [np.arange(4), np.arange(4, 10), np.arange(10, 12)]
    weight = np.random.default_rng(1).normal(size=12)
    for gamma, power in ((None, 3), (2.0, 4)):
        whole = Neighbours(groups=groups, strength=0.5, gamma=gamma, per="curve")
        for one in (whole, whole.relaxed()):
            parts = [
                Neighbours(groups=[g], strength=0.5 * (len(g) - 1) ** power, gamma=gamma) for g in groups
            ]
            parts = parts if one is whole else [part.relaxed() for part in parts]  # type: ignore[misc]
            value, gradient = one.value_and_gradient(weight)
            assert gradient == pytest.approx(slopes(one, weight), rel=1e-4, abs=1e-3)
            assert value == pytest.approx(sum(part.value_and_gradient(weight)[0] for part in parts))
            assert gradient == pytest.approx(sum(part.value_and_gradient(weight)[1] for part in parts))
            curvature = one.curvature(weight)
            assert curvature is not None
            assert dense(curvature) == pytest.approx(sum(dense(part.curvature(weight)) for part in parts))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_strong_monotone_regularization_leaves_no_violations(seed: int) -> None:
    """Weights that rise already do not change."""
    target = np.sort(np.random.default_rng(seed).normal(size=8)) * 2
    target[3], target[4] = target[4] + 0.4, target[3] - 0.4
    violation = []
    for beta in (0.0, 1.0, 10.0, 1e4):
        w = fitted(Neighbours(groups=[np.arange(8)], strength=beta, gamma=2.0), target)
        violation.append(max(0.0, -np.diff(w).min()))
    assert violation[0] > 0.5
    assert violation[-1] < 0.02 * violation[0]
    rising = np.cumsum([0.0, 0.1, 3.0, 0.2, 0.1, 5.0])
    value, _ = Neighbours(groups=[np.arange(6)], strength=1.0, gamma=8.0).value_and_gradient(rising)
    straight, _ = Neighbours(groups=[np.arange(6)], strength=1.0).value_and_gradient(rising)
    assert value < 0.25 * straight


# ---- terms of the authors' program


def test_released_linear_also_regularizes_the_ends() -> None:
    term, weight = world([[1.0, 4.0, 2.0]], strength=3.0, variant="released")
    value, gradient = term.value_and_gradient(weight)
    off = {0: 1.0 - 0.5 * 4.0, 1: 4.0 - 0.5 * (1.0 + 2.0), 2: 2.0 - 0.5 * 4.0}
    assert value == pytest.approx(3 * (sum(x * x for x in off.values()) + 0.7**2))
    assert gradient[term.groups[0]] == pytest.approx([6 * off[j] for j in range(3)])
    (other,) = set(range(4)) - set(term.groups[0].tolist())
    assert gradient[other] == pytest.approx(6 * 0.7)


@given(st.lists(weights, min_size=3, max_size=3), st.sampled_from([1.0, 2.0]))
def test_released_monotone_moves_only_the_bin_itself(values: list[float], gamma: float) -> None:
    full, weight = world([values], strength=1.0, gamma=gamma)
    own, _ = world([values], strength=1.0, gamma=gamma, variant="released")
    (value, slope), (same, mine) = full.value_and_gradient(weight), own.value_and_gradient(weight)
    left, here, right = full.groups[0].tolist()
    assert mine[[left, right]].tolist() == [0, 0]
    assert same == pytest.approx(value, abs=1e-6)  # tanh(10) is 1 but for 4e-9
    assert mine[here] == pytest.approx(slope[here], abs=1e-5)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"strength": -1.0}, r"beta: found -1\.0, expected 0 to 1e\+15"),
        ({"strength": 1e15 + 1}, r"beta: found 1000000000000001\.0, expected 0 to 1e\+15"),
        ({"strength": 10**400}, r"beta: found 10{400}, expected 0 to 1e\+15"),
        ({"strength": 1.0, "gamma": 0.5}, "gamma: found 0.5, expected 1 or more"),
    ],
)
def test_invalid_settings(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Neighbours(groups=[], **keys)


def test_strongest_penalty_of_a_curve() -> None:
    groups = [np.arange(3), np.arange(3, 1004)]
    Neighbours(groups=groups, strength=1e6, per="curve")
    with pytest.raises(
        ConfigError, match=r"beta: found 2e\+06 per curve of 1,001 bins, expected 0 to 1e\+06"
    ):
        Neighbours(groups=groups, strength=2e6, per="curve")


@given(st.lists(weights, min_size=4, max_size=4), st.sampled_from([0.0, 0.5, 7.0]))
def test_ridge_of_sparse_features(values: list[float], sparse: float) -> None:
    def is_dense(size: int) -> npt.NDArray[np.bool_]:
        return np.arange(size) < 2

    weight, centre = np.array(values), np.array([0.5, 0.0, -0.5])
    term = Ridge(3.0, centre, sparse, is_dense)
    value, gradient = term.value_and_gradient(weight)
    parts = [(weight[f] - (*centre, 0.0)[f]) ** 2 * (3.0 if f < 2 else sparse) for f in range(4)]
    assert value == pytest.approx(sum(parts))
    assert gradient == pytest.approx(slopes(term, weight), abs=1e-6)
    curvature = term.curvature(weight)
    assert curvature is not None
    assert curvature.diagonal.tolist() == [6.0, 6.0, 2 * sparse, 2 * sparse]
    assert not term.is_zero
    assert Ridge(0.0).is_zero
    assert Ridge(0.0, sparse=sparse).is_zero == (sparse == 0)
