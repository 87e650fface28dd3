"""AdaGrad with L1 over mini-batches of ranked pairs: the learner of Green, Wang, Cer and Manning (2013).

    G_t = G_{t-1} + g_t²        r_t = rate / (√G_t + epsilon)        w_t = soft(w_{t-1} - r_t g_t, r_t l1)

for each coordinate, with soft(w, b) = sign(w) max(0, |w| - b). A coordinate without a gradient in step t
still shrinks, by its current rate; one that never had a gradient has no rate, and keeps its weight. These
idle steps are applied when a weight is next needed, and to all weights at the end of an epoch: k steps of
r l1 equal one of k r l1, so this is exact. Only a decoder that runs between steps would see weights before
they shrink; use ``lazy=False`` (or ``settle``) for it, at the cost of a pass over all weights in each step.

Gradients are sums, not means, over pairs and sentences. A larger sum means a smaller threshold, as r falls
with it: Phrasal enters each pair twice, once in each order, which corresponds to half the ``l1`` here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hiero.core.arrays import Floats, Ids
from hiero.core.records import Checked, part, setting
from hiero.learning.adagrad_kernels import (
    Coordinates,
    Settings,
    adagrad_kernel,
    settle_kernel,
    settle_rows_kernel,
)
from hiero.learning.candidates import check_finite, not_finite
from hiero.learning.config import TuneSettings
from hiero.learning.learner import Example, Gradient, LearnerContext, UpdateReport, count_of
from hiero.learning.metric import Gold, SentenceGold
from hiero.learning.pairs import (
    Loss,
    Pairing,
    RankedPairs,
    SampledPairs,
    pairwise_parts,
    ranked_pairs,
)
from hiero.learning.rank_kernels import ROUNDING, gradient_kernel
from hiero.learning.regularize import Regulariser, terms_gradient


@dataclass(kw_only=True)
class AdaGradLearner(Checked):
    """AdaGrad with L1: a rate for each feature, and features that are not needed stay at 0.

    rate      the paper's η
    l1        the paper's λ; 0 for none
    epsilon   added to √G; 0 in the paper, 1e-3 in Phrasal
    adaptive  false: one rate for all features, i.e. stochastic gradient descent with L1
    lazy      whether idle steps are deferred until ``settle``
    terms     further terms of the objective, beside the loss of ``sentences`` sentences: each mini-batch
              takes its share of them

    For stale gradients, ``gradient`` may run in several threads, each with a ``snapshot`` of the weights,
    while one thread at a time applies the results. The metric must then have no memory (a fading background
    would depend on the order of the threads).
    """

    gold: Gold = field(default_factory=lambda: SentenceGold("lin"))
    pairing: Pairing = field(default_factory=lambda: SampledPairs(draws=500, keep=15))
    loss: Loss = field(default_factory=lambda: Loss(name="logistic"))
    rate: float = setting(0.02, above=0)
    l1: float = setting(0.1, least=0)
    epsilon: float = setting(0.0, least=0)
    adaptive: bool = True
    lazy: bool = True
    terms: Sequence[Regulariser] = ()
    sentences: int = 1
    epoch: int = field(default=0, init=False)
    steps: int = field(default=0, init=False)

    @classmethod
    def make(cls, settings: TuneSettings, context: LearnerContext) -> AdaGradLearner:
        return part(
            cls,
            settings,
            lazy=settings.stale,  # else the decoder must see settled weights
            **pairwise_parts(settings, context),
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settings = Settings(float(self.rate), float(self.l1), float(self.epsilon), bool(self.adaptive))
        self._coordinates = Coordinates(np.zeros(0), np.zeros(0, np.int32))

    def learn(self, batch: Sequence[Example], weight: Floats) -> UpdateReport:
        """Take one step down the gradient of a mini-batch."""
        self.grow(len(weight))
        report = UpdateReport()
        ranked = self._ranked(batch, report)
        for _, pairs in ranked:
            rows, pair = pairs.rows, pairs.pair
            settle_rows_kernel(rows, pair, np.int64(self.steps), self._settings, self._coordinates, weight)
        found = self._gradient(ranked, weight, report)
        ids, values = found.id, found.value
        if self.terms:
            self.settle(weight)
            slope = terms_gradient(self.terms, weight, len(batch) / self.sentences)
            ids, values = summed_gradient(np.concatenate([ids, slope[0]]), np.concatenate([values, slope[1]]))
        self.apply(ids, values, weight)
        return report

    def gradient(self, batch: Sequence[Example], weight: Floats) -> Gradient:
        report = UpdateReport()
        return self._gradient(self._ranked(batch, report), weight, report)

    def apply(self, ids: Ids, values: Floats, weight: Floats) -> None:
        """Take a step down a gradient; an empty one is a step of L1 alone."""
        self.grow(len(weight))
        self.steps += 1
        step = np.int64(self.steps)
        is_finite = adagrad_kernel(ids, values, step, self._settings, self._coordinates, weight)
        if not is_finite:
            check_finite(ids, weight)
        if not self.lazy:
            self.settle(weight)

    def settle(self, weight: Floats) -> None:
        """Apply the deferred idle steps to all weights."""
        self.grow(len(weight))
        settle_kernel(np.int64(self.steps), self._settings, self._coordinates, True, weight)

    def snapshot(self, weight: Floats) -> Floats:
        self.grow(len(weight))
        copy = weight.copy()
        settle_kernel(np.int64(self.steps), self._settings, self._coordinates, False, copy)
        return copy

    def grow(self, size: int) -> None:
        """Make room for ``size`` features; never shrinks."""
        missing = size - len(self._coordinates.square)
        if missing > 0:
            square = np.concatenate([self._coordinates.square, np.zeros(missing)])
            last = np.concatenate([self._coordinates.last, np.zeros(missing, np.int32)])
            self._coordinates = Coordinates(square, last)

    def end_epoch(self, weight: Floats) -> None:
        self.settle(weight)
        self.epoch += 1
        self.gold.end_epoch()

    def state(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "steps": self.steps,
            "square": self._coordinates.square.copy(),
            "idle": np.int32(self.steps) - self._coordinates.last,  # steps not applied; 0 after an epoch
            "gold": self.gold.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.epoch, self.steps = count_of(state, "epoch"), count_of(state, "steps")
        last = np.int32(self.steps) - np.array(state["idle"], np.int32)
        self._coordinates = Coordinates(np.array(state["square"], np.float64), last)
        self.gold.restore(state["gold"])

    def _ranked(self, batch: Sequence[Example], report: UpdateReport) -> list[tuple[Example, RankedPairs]]:
        """The sentences that have pairs, with their pairs."""
        found = []
        for example in batch:
            pairs = ranked_pairs(example, self.gold, self.pairing, self.loss, self.epoch, report)
            if pairs is not None:
                found.append((example, pairs))
        return found

    def _gradient(
        self, ranked: Sequence[tuple[Example, RankedPairs]], weight: Floats, report: UpdateReport
    ) -> Gradient:
        ids, values, total = [np.zeros(0, np.int32)], [np.zeros(0)], np.zeros(3)
        for example, pairs in ranked:
            is_finite, features, value = gradient_kernel(*pairs, self.loss.kind, weight, total)
            if not is_finite:
                raise not_finite(weight, example.candidates, example.number)
            ids.append(features)
            values.append(value)
        report.loss += float(total[0])
        report.errors += int(total[1])
        found = summed_gradient(np.concatenate(ids), np.concatenate(values))
        report.updates += len(found[0]) > 0
        return Gradient(*found, report)


def summed_gradient(ids: Ids, values: Floats) -> tuple[Ids, Floats]:
    """Sum gradients: the values of equal features, ascending, without sums that are 0 up to rounding."""
    distinct, place = np.unique(ids, return_inverse=True)
    total = np.asarray(np.bincount(place, values, len(distinct)), np.float64)
    size = np.bincount(place, np.abs(values), len(distinct))
    kept = np.abs(total) > ROUNDING * size
    return distinct[kept], total[kept]
