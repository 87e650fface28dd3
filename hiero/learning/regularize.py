"""Regularisers: L2 around 0 or the previous weights, and penalties on weights of neighbouring bins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from hiero.bins.bins import FeatureBins, bin_features
from hiero.core.arrays import Flags, Floats, Ids, Ints
from hiero.core.errors import ConfigError
from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.learning.config import LARGEST_BETA, Per, TuneSettings, Variant
from hiero.learning.isotonic import Isotonic
from hiero.learning.newton import Curvature

SATURATED = 20.0  # from here on tanh is 1, and its slope 0, in double precision
RELEASED_SATURATED = 10.0  # the same in the program of the paper's authors

# Maps the weights of a left neighbour, a bin and a right neighbour to ``off``, the distance of the bin from
# the midpoint of its neighbours, and ``radius``, half of the difference of the neighbours.
OFF_AND_RADIUS = np.array([[0.5, -1.0, 0.5], [0.5, 0.0, -0.5]])


class Regulariser(Protocol):
    """A smooth term of an objective to minimise."""

    def features(self) -> Ints:
        """Features whose weights can change even if no translation has them."""
        ...

    def value_and_gradient(self, weight: Floats) -> tuple[float, Floats]:
        """Return the term and its gradient with respect to ``weight``."""
        ...

    def curvature(self, weight: Floats) -> Curvature | None:
        """Return its second derivatives, with negative curvature replaced by 0.

        None: the gradient is not that of the value, so that Newton's method does not apply.
        """
        ...

    def relaxed(self) -> Regulariser:
        """Return a convex relaxation, or the term itself."""
        ...


def all_dense(size: int) -> Flags:
    """Whether each of the first features is dense, where all are."""
    return np.ones(size, np.bool_)


@dataclass(frozen=True)
class Ridge:
    """strength * |weight - centre|²; a missing centre, and missing entries of it, are 0.

    sparse    the strength for sparse features; None: the same
    is_dense  whether each of the first N features is dense, given N
    """

    strength: float
    centre: Floats | None = None
    sparse: float | None = None
    is_dense: Callable[[int], Flags] = all_dense

    @property
    def is_zero(self) -> bool:
        return self.strength == 0 and not self.sparse

    def _strengths(self, size: int) -> float | Floats:
        """The strength for all features, or for each."""
        if self.sparse is None or self.sparse == self.strength:
            return self.strength
        return np.where(self.is_dense(size), self.strength, self.sparse)

    def features(self) -> Ints:
        return np.zeros(0, np.int64) if self.centre is None else np.flatnonzero(self.centre)

    def value_and_gradient(self, weight: Floats) -> tuple[float, Floats]:
        difference = weight.copy()
        if self.centre is not None:
            difference[: len(self.centre)] -= self.centre
        strength = self._strengths(len(weight))
        if isinstance(strength, np.ndarray):
            return float(difference @ (strength * difference)), 2 * strength * difference
        return strength * float(difference @ difference), 2 * strength * difference

    def curvature(self, weight: Floats) -> Curvature | None:
        strength = 2 * np.asarray(self._strengths(len(weight)), np.float64)
        return Curvature.of_diagonal(np.broadcast_to(strength, (len(weight),)).copy())

    def relaxed(self) -> Regulariser:
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbours:
    """Penalty that makes weights of neighbouring bins linear, or monotone (Clark, Dyer and Lavie 2014).

        strength * sum over bins j that have two neighbours of D(j) * (½ (w[j-1] + w[j+1]) - w[j])²

    Linear neighbour regularisation (equations 9 and 10) has D = 1. The monotone one (12 and 13) has

        D(j) = tanh((½ (w[j-1] + w[j+1]) - w[j]) / (½ (w[j-1] - w[j+1])))^(2 gamma)

    which is almost 0 while w[j] is between its neighbours, and almost 1 beyond; it is 1, with slope 0, where
    these are equal. The gradient is that of the whole term: a bin's penalty moves its neighbours, too.

    groups   for each discretised feature, the numbers of its bins' features, in the order of the bins
    gamma    None: linear
    per      curve: the strength is multiplied by N³ if linear, by N⁴ if monotone, for a curve of N steps from
             one bin to the next. A curve w(t), t from 0 to 1, has off = -½ w''(t) / N², so that the linear
             penalty is a quarter of the integral of w''², and a turning point of the monotone one costs in
             proportion to w''² there, whatever the number of bins. bin: the strength is that of each bin, as
             in the paper
    variant  released: as in the program of the paper's authors, in which a bin's penalty has no gradient for
             its neighbours. If linear, it moves bins at the ends towards half of their only neighbour, and
             all features without neighbours towards 0; if monotone, D is 1 with slope 0 where the quotient
             is 10 or more
    """

    groups: Sequence[Ints]
    strength: float
    gamma: float | None = None
    per: Per = "bin"
    variant: Variant = "printed"
    _triples: Ints = field(init=False, repr=False)  # [T, 3] left neighbour, bin, right neighbour
    _scale: Floats = field(init=False, repr=False)  # [T] factor of the strength

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= LARGEST_BETA:
            raise ConfigError(f"beta: found {self.strength}, expected 0 to {LARGEST_BETA:g}")
        if self.gamma is not None and not 1 <= self.gamma < np.inf:
            raise ConfigError(f"gamma: found {self.gamma}, expected 1 or more")
        rows = [np.stack([g[:-2], g[1:-1], g[2:]], axis=1) for g in self.groups if len(g) > 2]
        triples = np.concatenate([np.zeros((0, 3), np.int64), *rows]).astype(np.int64)
        object.__setattr__(self, "_triples", triples)
        power = 0 if self.per == "bin" else 3 if self.gamma is None else 4
        steps = np.array([len(g) - 1 for g in self.groups if len(g) > 2], np.float64)
        scale = steps**power
        most = LARGEST_BETA / float(scale.max(initial=1.0))
        if self.strength > most:
            number = f"{steps.max() + 1:,.0f} bins"
            raise ConfigError(
                f"beta: found {self.strength:g} per curve of {number}, expected 0 to {most:.3g}"
            )
        object.__setattr__(self, "_scale", np.repeat(scale, [len(row) for row in rows]))

    def features(self) -> Ints:
        """The features of all bins, neighbours adjacent."""
        return np.concatenate([np.zeros(0, np.int64), *self.groups])

    def value_and_gradient(self, weight: Floats) -> tuple[float, Floats]:
        if self.gamma is None and self.variant == "released":
            return self._released_linear(weight)
        left, here, right = self._triples.T
        off, radius = OFF_AND_RADIUS @ weight[self._triples].T
        value, by_off, by_radius = off * off, 2 * off, np.zeros(len(off))
        if self.gamma is not None:
            value, by_off, by_radius = self._damped(off, radius)
        gradient, scale = np.zeros(len(weight)), self._scale
        np.add.at(gradient, here, -scale * by_off)
        if self.variant == "printed":
            np.add.at(gradient, left, 0.5 * scale * (by_off + by_radius))
            np.add.at(gradient, right, 0.5 * scale * (by_off - by_radius))
        return self.strength * float((scale * value).sum()), self.strength * gradient

    def _damping(self, off: Floats, radius: Floats) -> tuple[Flags, Floats, Floats, Floats]:
        """Where D is not saturated; there q = off / radius, D = tanh(q)^(2 gamma), and its derivative by q.

        Elsewhere D is 1, and q and the derivative are 0.
        """
        assert self.gamma is not None
        limit = SATURATED if self.variant == "printed" else RELEASED_SATURATED
        inside = np.abs(off) < limit * np.abs(radius)
        quotient = np.divide(off, radius, out=np.zeros(len(off)), where=inside)
        tanh = np.tanh(quotient)
        damping = np.where(inside, np.abs(tanh) ** (2 * self.gamma), 1.0)
        slope = 2 * self.gamma * np.abs(tanh) ** (2 * self.gamma - 1) * np.sign(tanh) * (1 - tanh * tanh)
        return inside, quotient, damping, slope

    def _damped(self, off: Floats, radius: Floats) -> tuple[Floats, Floats, Floats]:
        """D off² and its derivatives by off and by radius."""
        _, quotient, damping, slope = self._damping(off, radius)
        # Written with off² / radius and off³ / radius², but without dividing by a radius close to 0.
        by_off = 2 * damping * off + slope * quotient**2 * radius
        return damping * off * off, by_off, -slope * quotient**3 * radius

    def curvature(self, weight: Floats) -> Curvature | None:
        if self.variant == "released":
            return None
        by_off_off = np.full(len(self._triples), 2.0)
        by_off_radius, by_radius_radius = np.zeros((2, len(self._triples)))
        if self.gamma is not None:
            off, radius = OFF_AND_RADIUS @ weight[self._triples].T
            second = self._second_derivatives(off, radius)
            by_off_off, by_off_radius, by_radius_radius = _nearest_semidefinite(*second)
        hessian = np.stack([by_off_off, by_off_radius, by_off_radius, by_radius_radius], axis=-1)
        block = OFF_AND_RADIUS.T @ hessian.reshape(-1, 2, 2) @ OFF_AND_RADIUS
        return Curvature(
            np.zeros(len(weight)), self._triples, self.strength * self._scale[:, None, None] * block
        )

    def _second_derivatives(self, off: Floats, radius: Floats) -> tuple[Floats, Floats, Floats]:
        """The second derivatives of D off²: by off twice, by off and radius, by radius twice.

        D off² = radius² f(q) with q = off / radius and f(q) = D(q) q².
        """
        assert self.gamma is not None
        inside, q, damping, slope = self._damping(off, radius)
        tanh, power = np.abs(np.tanh(q)), 2 * self.gamma
        rest = 1 - tanh * tanh
        slope2 = power * ((power - 1) * tanh ** (power - 2) * rest - 2 * damping) * rest
        f, f1, f2 = damping * q * q, (slope * q + 2 * damping) * q, (slope2 * q + 4 * slope) * q + 2 * damping
        by_off_off = np.where(inside, f2, 2.0)
        by_off_radius = np.where(inside, f1 - q * f2, 0.0)
        by_radius_radius = np.where(inside, 2 * f - 2 * q * f1 + q * q * f2, 0.0)
        return by_off_off, by_off_radius, by_radius_radius

    def relaxed(self) -> Regulariser:
        linear = replace(self, gamma=None)
        object.__setattr__(linear, "_scale", self._scale)  # the same strength of each bin
        return linear

    def _released_linear(self, weight: Floats) -> tuple[float, Floats]:
        """Squared distance of each weight from half the sum of its neighbours, taken as constants."""
        off = weight.copy()
        for group in self.groups:
            off[group[1:]] -= 0.5 * weight[group[:-1]]
            off[group[:-1]] -= 0.5 * weight[group[1:]]
        return self.strength * float(off @ off), 2 * self.strength * off


def _nearest_semidefinite(a: Floats, b: Floats, c: Floats) -> tuple[Floats, Floats, Floats]:
    """Symmetric matrices [[a, b], [b, c]] with negative eigenvalues replaced by 0."""
    middle, half = 0.5 * (a + c), 0.5 * (a - c)
    apart = np.hypot(half, b)
    large, small = np.maximum(middle + apart, 0), np.maximum(middle - apart, 0)
    angle = 0.5 * np.arctan2(b, half)  # of the eigenvector of the larger eigenvalue
    cos, sin = np.cos(angle), np.sin(angle)
    return large * cos**2 + small * sin**2, (large - small) * cos * sin, large * sin**2 + small * cos**2


def terms_gradient(terms: Sequence[Regulariser], weight: Floats, share: float) -> tuple[Ids, Floats]:
    """Return a share of the gradient of the sum of terms: features, and values other than 0."""
    gradient = np.zeros(len(weight))
    for term in terms:
        gradient += term.value_and_gradient(weight)[1]
    ids = np.flatnonzero(gradient)
    return ids.astype(np.int32), share * gradient[ids]


def structured_terms(
    config: TuneSettings, bins: Sequence[FeatureBins], symbols: Symbols, index: FeatureIndex
) -> list[Regulariser]:
    """The regularisers of neighbouring bins in the settings. Features of bins are added to ``index``."""
    if config.neighbours == "none":
        return []
    gamma = config.gamma if config.neighbours == "monotone" else None
    groups = bin_features(bins, symbols, index)
    variant = config.variant or "printed"
    smooth = Neighbours(
        groups=groups, strength=config.beta, gamma=gamma, per=config.beta_per, variant=variant
    )
    return [smooth, Isotonic(groups)] if config.neighbours == "isotonic" else [smooth]
