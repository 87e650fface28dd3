"""PRO: tuning as ranking (Hopkins and May 2011).

Pairs of translations that differ in the metric are drawn from the list of every sentence (``pairs.py``). A
logistic regression learns weights that rank them as the metric does. It minimises

    sum over pairs of log(1 + exp(-w * (better - worse)))
    + l2 * |w|² + pull * |w - previous w|² + l1 * |w|₁ + further terms

Each pair counts once. In cdec and Moses it counts twice, as (better, worse) and (worse, better), which
doubles the sum over pairs; so their settings (``config.PEERS``) have the other terms halved.

The optimiser is L-BFGS. With an l1 term, each weight is the difference of two that cannot be negative
(L-BFGS-B), so that the objective is smooth. The minimum is exact and so are its zeros, as with OWL-QN.

With terms between neighbours, on which L-BFGS does not converge, it is Newton's method (``newton.py``) for
all but the l1 term. It starts from the minimum of a convex relaxation, so that the result hardly depends on
the previous weights. Curves of bins that have to be monotone are found by a barrier method (``isotonic.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from hiero.core.arrays import Flags, Floats, Ids, Ints, offsets_of, read_only
from hiero.core.errors import ConfigError
from hiero.core.records import Checked, part, setting
from hiero.evaluation.bleu import sentence_bleu
from hiero.learning import isotonic, newton
from hiero.learning.config import TuneSettings
from hiero.learning.isotonic import Isotonic
from hiero.learning.learner import LearnerContext
from hiero.learning.lists import CandidateLists
from hiero.learning.newton import Curvature
from hiero.learning.pairs import SampledPairs, make_pairing
from hiero.learning.pro_kernels import (
    curved_kernel,
    logistic_kernel,
    pro_curvature_kernel,
    pro_differences_kernel,
)
from hiero.learning.regularize import Regulariser, Ridge, all_dense

SMALLEST_GAIN = 1e-10  # of a step of L-BFGS, relative to the value


class Differences(NamedTuple):
    """Feature differences, better minus worse, of P pairs of candidates.

    first  int64 [P + 1]  pair p has first[p] ... first[p + 1] - 1 of id and value
    id     int32
    value  float64
    """

    first: Ints
    id: Ids
    value: Floats


@dataclass(frozen=True, kw_only=True)
class ProLearner(Checked):
    """Batch learner; see the docstring of the module.

    metric         ranks the translations of a sentence: one of ``metrics.SENTENCE_BLEU``
    pairs          their selection; its seed is replaced
    l2, pull, l1   see above
    l2_sparse      l2 of sparse features; None: the same
    min_count      sentences in whose lists a sparse feature has to be; others get the weight 0, unless they
                   are of ``terms``
    interpolation  share of the new weights in the result; the rest are the previous weights
    iterations     largest number, of L-BFGS, or of Newton's method with its convex relaxation
    buffers        number of steps stored by L-BFGS
    terms          further terms
    is_dense       whether each of the first N features is dense, given N
    """

    metric: str = "lin"
    pairs: SampledPairs = field(default_factory=SampledPairs)
    l2: float = setting(0.25, least=0)
    l2_sparse: float | None = setting(None, least=0)
    min_count: int = setting(0, least=0)
    pull: float = setting(0.0, least=0)
    l1: float = setting(0.0, least=0)
    interpolation: float = setting(1.0, above=0, most=1)
    iterations: int = setting(200, least=1)
    buffers: int = setting(20, least=1)
    terms: Sequence[Regulariser] = field(default=())
    is_dense: Callable[[int], Flags] = all_dense

    @classmethod
    def make(cls, settings: TuneSettings, context: LearnerContext) -> ProLearner:
        pairs = make_pairing(settings, 0)
        if not isinstance(pairs, SampledPairs):
            raise ConfigError(f"pro works with pairs: pro, not with pairs: {settings.pairs}")
        of_context = {"terms": context.terms, "is_dense": context.is_dense}
        return part(cls, settings, pairs=pairs, pull=settings.l2_previous, **of_context)

    def __post_init__(self) -> None:
        sentence_bleu(self.metric)
        super().__post_init__()

    def fit(
        self, lists: CandidateLists, weight: Floats, iteration: int, seed: int
    ) -> tuple[Floats, dict[str, float]]:
        weight = np.array(lists.checked(weight))
        pair = self.draw(lists, iteration, seed)
        if not len(pair):
            return weight, {"pairs": 0.0, "predicted_bleu": lists.bleu(weight)}
        rows, dropped = pro_differences(lists, pair), self._dropped(lists, len(weight))
        if dropped.any():
            weight[dropped] = 0
            rows = _without(rows, dropped)
        ridges = [Ridge(self.l2, None, self.l2_sparse, self.is_dense), Ridge(self.pull, weight)]
        terms = [*(ridge for ridge in ridges if not ridge.is_zero), *self.terms]
        ranking = Ranking(rows, weight, terms, self.l1)
        learnt, figures = ranking.minimum(self.iterations, self.buffers)
        if self.interpolation < 1:
            learnt = self.interpolation * learnt + (1 - self.interpolation) * weight
        figures |= {"nonzero": float(np.count_nonzero(learnt)), "predicted_bleu": lists.bleu(learnt)}
        return learnt, figures

    def _dropped(self, lists: CandidateLists, size: int) -> Flags:
        """Which features are in the lists of too few sentences."""
        if self.min_count <= 1:
            return np.zeros(size, np.bool_)
        dropped = (lists.num_sentences(size) < self.min_count) & ~self.is_dense(size)
        for term in self.terms:
            dropped[term.features()] = False
        return dropped

    def draw(self, lists: CandidateLists, iteration: int, seed: int) -> Ints:
        """Draw pairs (better, worse) of candidates, int64 [P, 2], sentence by sentence."""
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


def pro_differences(lists: CandidateLists, pair: Ints) -> Differences:
    """Return the feature differences of some pairs (better, worse), from which PRO learns."""
    view, pair = lists.view(), read_only(np.asarray(pair, np.int64))
    if len(pair) and not 0 <= pair.min() <= pair.max() < len(lists):
        raise IndexError(f"there are {len(lists)} candidates, not {pair.max()}")
    first = np.zeros(len(pair) + 1, np.int64)
    pro_differences_kernel(view, pair, first, np.empty(0, np.int32), np.empty(0))
    ids, value = np.empty(first[-1], np.int32), np.empty(first[-1])
    pro_differences_kernel(view, pair, first, ids, value)
    return Differences(read_only(first), read_only(ids), read_only(value))


def _without(rows: Differences, dropped: Flags) -> Differences:
    """The same differences without some features."""
    kept = ~dropped[rows.id]
    first = offsets_of(kept)[rows.first]
    return Differences(read_only(first), read_only(rows.id[kept]), read_only(rows.value[kept]))


class RankingModel(NamedTuple):
    """Second derivatives of the objective: those of the pairs, and of the terms."""

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
    """The objective, over the active features: those of the pairs and of the terms."""

    def __init__(
        self, rows: Differences, weight: Floats, terms: Sequence[Regulariser], l1: float = 0.0
    ) -> None:
        self.terms, self.l1 = [term for term in terms if not isinstance(term, Isotonic)], l1
        self.active = _active_features(
            [term.features() for term in terms if not isinstance(term, Ridge)],
            [rows.id.astype(np.int64), np.flatnonzero(weight), *(term.features() for term in terms)],
        )
        place = np.zeros(len(weight), np.int32)
        place[self.active] = np.arange(len(self.active))
        self.rows = rows._replace(id=read_only(place[rows.id]))
        ordered = [group for term in terms if isinstance(term, Isotonic) for group in term.groups]
        self._ordered = [
            place[group].astype(np.int64) for group in ordered
        ]  # curves that have to be monotone
        self.start = weight
        self._weight, self._place, self._errors = weight.copy(), place, 0

    def value_and_gradient(self, active: Floats) -> tuple[float, Floats]:
        """Return all but the l1 term, and its gradient, given the weights of the active features."""
        gradient = np.empty(len(active))
        value, self._errors = logistic_kernel(*self.rows, read_only(active), gradient)
        self._weight[self.active] = active
        for term in self.terms:
            more, slope = term.value_and_gradient(self._weight)
            value += more
            gradient += slope[self.active]
        return float(value), gradient

    def model(self, active: Floats) -> RankingModel:
        """Return the second derivatives of the same, for Newton's method."""
        pair, diagonal = np.empty(len(self.rows.first) - 1), np.empty(len(active))
        pro_curvature_kernel(*self.rows, read_only(active), pair, diagonal)
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
        """Return the weights of all features, and figures for the log."""
        if not len(self.active):
            return self._unchanged()
        start = self.start[self.active]
        if self._ordered:
            found = isotonic.minimum(self, start, self._ordered, iterations)
        elif self._has_neighbours():
            found = self._by_newton(start, iterations)
            if self.l1:  # it has no second derivatives; L-BFGS starts near its minimum
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
        """Whether some term couples features, and all terms have second derivatives."""
        curvatures = [term.curvature(self.start) for term in self.terms]
        return None not in curvatures and any(c and len(c.triple) for c in curvatures)

    def _by_newton(self, start: Floats, iterations: int) -> newton.Found:
        """Find the minimum without the l1 term."""
        convex = copy(self)
        convex.terms = [term.relaxed() for term in self.terms]
        first = newton.minimum(convex, start, iterations)
        found = newton.minimum(self, first.x, iterations - first.steps)
        return found._replace(steps=first.steps + found.steps)

    def _by_lbfgs(self, start: Floats, iterations: int, buffers: int) -> newton.Found:
        """Find the minimum by L-BFGS, restarted until a restart gains nothing more."""
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

    def _unchanged(self) -> tuple[Floats, dict[str, float]]:
        """The result without active features, for which SciPy would return an objective of 0."""
        pairs = float(len(self.rows.first) - 1)
        value, _ = self.value_and_gradient(np.zeros(0))
        figures = {"errors": float(self._errors), "errors_after": float(self._errors), "objective": value}
        figures |= {"pairs": pairs, "features": 0.0, "iterations": 0.0, "converged": 1.0}
        return self.start.copy(), figures

    def _split(self, x: Floats) -> tuple[float, Floats]:
        plus, minus = np.split(x, 2)
        value, gradient = self.value_and_gradient(plus - minus)
        return value + self.l1 * float(x.sum()), np.concatenate([gradient + self.l1, self.l1 - gradient])

    def errors(self, weight: Floats) -> int:
        """The number of pairs that the weights do not rank as the metric does."""
        self.value_and_gradient(weight[self.active])
        return int(self._errors)


def _active_features(chains: Sequence[Ints], others: Sequence[Ints]) -> Ints:
    """All distinct features: chains in their order, so that neighbours stay adjacent, then the others."""
    chained = np.concatenate([np.zeros(0, np.int64), *chains])
    _, first = np.unique(chained, return_index=True)
    chained = chained[np.sort(first)]
    return np.concatenate([chained, np.setdiff1d(np.concatenate(others), chained)]).astype(np.int64)
