# mypy: allow-untyped-calls
"""PRO: tuning as ranking (Hopkins and May 2011).

From the list of every sentence, pairs of translations are drawn that the metric tells apart
(``tune.pairs``). The weights shall rank them as the metric does: minimised is

    sum over pairs of log(1 + exp(-w * (better - worse)))
    + l2 * |w|² + pull * |w - w before|² + l1 * |w|₁ + whatever other terms there are

Each pair counts once. cdec and Moses count it twice, as better and worse and as worse and better, which is
the same function with the pairs' part doubled; so their settings (``settings.PEERS``) have the other terms
halved.

It is done by L-BFGS, with an l1 term too: each weight is then the difference of two that cannot be negative
(L-BFGS-B), whose sum is smooth. The minimum is exact and so are its zeros, as with OWL-QN.

Terms between neighbours are too much for it: with them Newton's method does it, all but the l1 term
(``tune.newton``). It begins with their convex relatives, which have one minimum, so that it matters little
which weights there were before.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from hiero.errors import ConfigError
from hiero.kernels.learn_pro import curvature_kernel, curved_kernel, differences_kernel, logistic_kernel
from hiero.metrics import sentence_bleu
from hiero.symbols import read_only
from hiero.tune import newton
from hiero.tune.lists import CandidateLists
from hiero.tune.newton import Curvature
from hiero.tune.pairs import SampledPairs
from hiero.tune.regularize import Regulariser, Ridge

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SMALLEST_GAIN = 1e-10  # of the value, by a step of L-BFGS


class Differences(NamedTuple):
    """What the better candidate of each of P pairs has more than the worse one.

    first  int64 [P + 1]  that of pair p: first[p] ... first[p + 1] - 1 of id and value
    id     int32
    value  float64
    """

    first: Ints
    id: npt.NDArray[np.int32]
    value: Floats


@dataclass(frozen=True, kw_only=True)
class ProLearner:
    """A batch learner; see the head of the module.

    metric         ranks the translations of a sentence: one of ``metrics.SENTENCE_BLEU``
    pairs          how they are drawn; its seed is replaced
    l2, pull, l1   see above
    interpolation  how much of the result is new; the rest is the weights before
    iterations     of L-BFGS, at most, or of Newton's method, for the convex relative and again for the rest
    buffers        what L-BFGS remembers: steps
    others         further terms
    """

    metric: str = "lin"
    pairs: SampledPairs = field(default_factory=SampledPairs)
    l2: float = 0.25
    pull: float = 0.0
    l1: float = 0.0
    interpolation: float = 1.0
    iterations: int = 200
    buffers: int = 20
    others: Sequence[Regulariser] = field(default=())

    def __post_init__(self) -> None:
        sentence_bleu(self.metric)
        for name in ("l2", "pull", "l1"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected 0 or more")
        for name in ("iterations", "buffers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected at least 1")
        if not 0 < self.interpolation <= 1:
            raise ConfigError(
                f"interpolation: found {self.interpolation}, expected more than 0 and at most 1"
            )

    def fit(
        self, lists: CandidateLists, weight: Floats, iteration: int, seed: int
    ) -> tuple[Floats, dict[str, float]]:
        weight = np.array(lists.checked(weight))
        pair = self.draw(lists, iteration, seed)
        if not len(pair):
            return weight, {"pairs": 0.0, "predicted_bleu": lists.bleu(weight)}
        terms = [Ridge(self.l2), Ridge(self.pull, weight), *self.others]
        ranking = Ranking(differences(lists, pair), weight, [t for t in terms if not _is_nothing(t)], self.l1)
        learnt, happened = ranking.minimum(self.iterations, self.buffers)
        if self.interpolation < 1:
            learnt = self.interpolation * learnt + (1 - self.interpolation) * weight
        happened |= {"nonzero": float(np.count_nonzero(learnt)), "predicted_bleu": lists.bleu(learnt)}
        return learnt, happened

    def draw(self, lists: CandidateLists, iteration: int, seed: int) -> Ints:
        """Pairs (better, worse) of candidates, int64 [P, 2], sentence by sentence."""
        view, score = lists.view(), sentence_bleu(self.metric)
        sampler = replace(self.pairs, seed=seed)
        found = [np.zeros((0, 2), np.int64)]
        _, shortest = lists.lengths()
        for s, number in enumerate(view.number.tolist()):
            mine = view.order[view.first_place[s] : view.first_place[s + 1]]
            statistics = view.statistics[mine]
            gold = score(statistics, shortest[s])
            found.append(mine[sampler(gold, statistics[:, 0], iteration, number)])
        return np.concatenate(found)


def differences(lists: CandidateLists, pair: Ints) -> Differences:
    """What the candidates of each pair (better, worse) differ in."""
    view, pair = lists.view(), read_only(np.asarray(pair, np.int64))
    if len(pair) and not 0 <= pair.min() <= pair.max() < len(lists):
        raise IndexError(f"there are {len(lists)} candidates, not {pair.max()}")
    first = np.zeros(len(pair) + 1, np.int64)
    differences_kernel(view, pair, first, np.empty(0, np.int32), np.empty(0))
    ids, value = np.empty(first[-1], np.int32), np.empty(first[-1])
    differences_kernel(view, pair, first, ids, value)
    return Differences(read_only(first), read_only(ids), read_only(value))


class RankingModel(NamedTuple):
    """The objective's second derivatives: those of the pairs, and of the terms."""

    rows: Differences
    pair: Floats
    diagonal: Floats
    terms: Curvature

    @property
    def known(self) -> Curvature:
        return self.terms._replace(diagonal=self.terms.diagonal + self.diagonal)

    def times(self, vector: Floats) -> Floats:
        found = np.empty(len(vector))
        curved_kernel(*self.rows, self.pair, read_only(vector), found)
        return found + self.terms.times(vector)


class Ranking:
    """The objective, over those features alone that can move: the pairs', and the terms'."""

    def __init__(
        self, rows: Differences, weight: Floats, terms: Sequence[Regulariser], l1: float = 0.0
    ) -> None:
        self.terms, self.l1 = terms, l1
        self.active = _in_order(
            [term.features() for term in terms if not isinstance(term, Ridge)],
            [rows.id.astype(np.int64), np.flatnonzero(weight), *(term.features() for term in terms)],
        )
        place = np.zeros(len(weight), np.int32)
        place[self.active] = np.arange(len(self.active))
        self.rows = rows._replace(id=read_only(place[rows.id]))
        self.start = weight
        self._weight, self._place, self._errors = weight.copy(), place, 0

    def value_and_gradient(self, active: Floats) -> tuple[float, Floats]:
        """All but the l1 term, at the weights of the active features."""
        gradient = np.empty(len(active))
        value, self._errors = logistic_kernel(*self.rows, read_only(active), gradient)
        self._weight[self.active] = active
        for term in self.terms:
            more, slope = term.value_and_gradient(self._weight)
            value += more
            gradient += slope[self.active]
        return float(value), gradient

    def model(self, active: Floats) -> RankingModel:
        """The same for Newton's method."""
        pair, diagonal = np.empty(len(self.rows.first) - 1), np.empty(len(active))
        curvature_kernel(*self.rows, read_only(active), pair, diagonal)
        self._weight[self.active] = active
        terms = Curvature.of_diagonal(np.zeros(len(active)))
        for term in self.terms:
            one = term.curvature(self._weight)
            assert one is not None
            terms = Curvature(
                terms.diagonal + one.diagonal[self.active],
                np.concatenate([terms.triple, self._place[one.triple].astype(np.int64)]),
                np.concatenate([terms.block, one.block]),
            )
        return RankingModel(self.rows, read_only(pair), diagonal, terms)

    def minimum(self, iterations: int, buffers: int) -> tuple[Floats, dict[str, float]]:
        """The weights of all features, and how they were found."""
        if not len(self.active):
            return self._as_it_was()
        start = self.start[self.active]
        if self._has_neighbours():
            found = self._by_newton(start, iterations)
            if self.l1:  # has no second derivatives, but its minimum is not far
                found = self._by_lbfgs(found.x, iterations, buffers)
        else:
            found = self._by_lbfgs(start, iterations, buffers)
        weight = self.start.copy()
        weight[self.active] = found.x
        pairs = len(self.rows.first) - 1
        return weight, {
            "pairs": float(pairs),
            "errors": float(self.errors(self.start)),
            "errors_after": float(self.errors(weight)),
            "features": float(len(self.active)),
            "objective": found.value,
            "iterations": float(found.steps),
            "converged": float(found.converged),
        }

    def _has_neighbours(self) -> bool:
        """Whether some term ties features to each other, in a way that Newton's method can make use of."""
        bends = [term.curvature(self.start) for term in self.terms]
        return None not in bends and any(bend and len(bend.triple) for bend in bends)

    def _by_newton(self, start: Floats, iterations: int) -> newton.Found:
        """The minimum without the l1 term."""
        convex = copy(self)
        convex.terms = [term.relaxed() for term in self.terms]
        first = newton.minimum(convex, start, iterations)
        found = newton.minimum(self, first.x, iterations - first.steps)
        return found._replace(steps=first.steps + found.steps)

    def _by_lbfgs(self, start: Floats, iterations: int, buffers: int) -> newton.Found:
        """L-BFGS may stop where a single step gains nothing; then it is begun anew from there."""
        x, before, steps = start, np.inf, 0
        if self.l1:
            x = np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)])
        while True:
            found = minimize(
                self._split if self.l1 else self.value_and_gradient,
                x,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * len(x) if self.l1 else None,
                options={
                    "maxiter": iterations - steps,
                    "maxfun": 20 * iterations,
                    "maxcor": buffers,
                    "ftol": SMALLEST_GAIN,
                    "gtol": 1e-6,
                },
            )
            x, value, steps = found.x, float(found.fun), steps + int(found.nit)
            if not before - value > SMALLEST_GAIN * max(1.0, abs(value)) or steps >= iterations:
                break
            before = value
        if self.l1:
            x = x[: len(self.active)] - x[len(self.active) :]
        return newton.Found(x, value, steps, bool(found.success))

    def _as_it_was(self) -> tuple[Floats, dict[str, float]]:
        """Nothing can be learnt: no two translations of a pair differ in a feature. SciPy would say 0."""
        pairs = float(len(self.rows.first) - 1)
        value, _ = self.value_and_gradient(np.zeros(0))
        same = {"errors": float(self._errors), "errors_after": float(self._errors), "objective": value}
        return self.start.copy(), same | {
            "pairs": pairs,
            "features": 0.0,
            "iterations": 0.0,
            "converged": 1.0,
        }

    def _split(self, x: Floats) -> tuple[float, Floats]:
        plus, minus = np.split(x, 2)
        value, gradient = self.value_and_gradient(plus - minus)
        return value + self.l1 * float(x.sum()), np.concatenate([gradient + self.l1, self.l1 - gradient])

    def errors(self, weight: Floats) -> int:
        """Pairs that the weights do not rank as the metric does."""
        self.value_and_gradient(weight[self.active])
        return int(self._errors)


def _in_order(chains: Sequence[Ints], others: Sequence[Ints]) -> Ints:
    """All features, each once: chains as they are, so that neighbours stay side by side, then the others."""
    chained = np.concatenate([np.zeros(0, np.int64), *chains])
    _, first = np.unique(chained, return_index=True)
    chained = chained[np.sort(first)]
    return np.concatenate([chained, np.setdiff1d(np.concatenate(others), chained)]).astype(np.int64)


def _is_nothing(term: Regulariser) -> bool:
    return isinstance(term, Ridge) and term.strength == 0
