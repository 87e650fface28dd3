# mypy: allow-untyped-calls
"""AdaGrad with L1 over mini-batches of ranked pairs: the learner of Green, Wang, Cer and Manning (2013).

    G_t = G_{t-1} + g_t²        r_t = rate / (√G_t + epsilon)        w_t = soft(w_{t-1} - r_t g_t, r_t l1)

for each coordinate, soft(w, b) being sign(w) max(0, |w| - b). A coordinate without a gradient in step t still
shrinks, by the rate it has; one that never had a gradient has no rate, and keeps its weight. These idle steps
are made up for when a weight is next needed, and for all weights at the end of an epoch: k steps of r l1 are
one of k r l1, so this is no approximation. Only the search would see idle weights unshrunk in between: what
decodes between steps takes ``lazy=False`` (or ``settle``), for the price of looking at all weights each time.

Sums, not means, over pairs and sentences. A larger sum means a smaller threshold, as r falls with it: that
Phrasal enters each pair twice, the other way round the second time, equals half the ``l1`` here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.errors import ConfigError
from hiero.kernels.learn_adagrad import (
    Coordinates,
    Settings,
    adagrad_kernel,
    settle_kernel,
    settle_rows_kernel,
)
from hiero.kernels.learn_rank import ROUNDING, gradient_kernel
from hiero.tune.example import Example, UpdateReport
from hiero.tune.finite import check_finite, not_finite
from hiero.tune.gold import Gold, SentenceGold
from hiero.tune.pairs import Pairing, SampledPairs
from hiero.tune.ranking import Loss, RankedPairs, compare
from hiero.tune.regularize import Regulariser, pulled

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]


class Gradient(NamedTuple):
    """Of the summed loss of a mini-batch: features, ascending, and values, none 0; and what was seen."""

    id: Ids
    value: Floats
    report: UpdateReport


@dataclass(kw_only=True)
class AdaGradLearner:
    """Steps whose length is adapted to each feature, and that leave unneeded features at 0.

    rate      the paper's η
    l1        the paper's λ; 0 for none
    epsilon   added to √G; 0 in the paper, 1e-3 in Phrasal
    adaptive  or one rate for all, which makes it stochastic gradient descent with L1
    lazy      whether idle weights wait to be settled
    others    further terms of what is minimised, beside the loss of so many ``sentences``: each mini-batch
              takes its share of them

    For stale gradients, ``gradient`` may run in several threads, each with a ``snapshot`` of the weights,
    while one thread applies what arrives; the metric must then be one that remembers nothing in between (a
    fading background would depend on who came first).
    """

    gold: Gold = field(default_factory=lambda: SentenceGold("lin"))
    pairing: Pairing = field(default_factory=lambda: SampledPairs(draws=500, keep=15))
    loss: Loss = field(default_factory=lambda: Loss(name="logistic"))
    rate: float = 0.02
    l1: float = 0.1
    epsilon: float = 0.0
    adaptive: bool = True
    lazy: bool = True
    others: Sequence[Regulariser] = ()
    sentences: int = 1
    epoch: int = field(default=0, init=False)
    steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf:
            raise ConfigError(f"rate: found {self.rate}, expected more than 0")
        for name in ("l1", "epsilon"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected at least 0")
        self._settings = Settings(float(self.rate), float(self.l1), float(self.epsilon), bool(self.adaptive))
        self._coordinates = Coordinates(np.zeros(0), np.zeros(0, np.int32))

    def learn(self, batch: Sequence[Example], weight: Floats) -> UpdateReport:
        """One step down the gradient of a mini-batch."""
        self.grow(len(weight))
        report = UpdateReport()
        comparisons = self._comparisons(batch, report)
        for _, comparison in comparisons:
            rows, pair = comparison.rows, comparison.pair
            settle_rows_kernel(rows, pair, np.int64(self.steps), self._settings, self._coordinates, weight)
        found = self._gradient(comparisons, weight, report)
        ids, values = found.id, found.value
        if self.others:
            self.settle(weight)
            slope = pulled(self.others, weight, len(batch) / self.sentences)
            ids, values = summed(np.concatenate([ids, slope[0]]), np.concatenate([values, slope[1]]))
        self.apply(ids, values, weight)
        return report

    def gradient(self, batch: Sequence[Example], weight: Floats) -> Gradient:
        """The gradient of a mini-batch at some weights, which are left as they are."""
        report = UpdateReport()
        return self._gradient(self._comparisons(batch, report), weight, report)

    def apply(self, ids: Ids, values: Floats, weight: Floats) -> None:
        """Make a step down a gradient; one without features is a step for L1 alone."""
        self.grow(len(weight))
        self.steps += 1
        step = np.int64(self.steps)
        fine = adagrad_kernel(ids, values, step, self._settings, self._coordinates, weight)
        if not fine:
            check_finite(ids, weight)
        if not self.lazy:
            self.settle(weight)

    def settle(self, weight: Floats) -> None:
        """Let all weights be what they would be if idle ones did not wait."""
        self.grow(len(weight))
        settle_kernel(np.int64(self.steps), self._settings, self._coordinates, True, weight)

    def snapshot(self, weight: Floats) -> Floats:
        """A settled copy of the weights."""
        self.grow(len(weight))
        copy = weight.copy()
        settle_kernel(np.int64(self.steps), self._settings, self._coordinates, False, copy)
        return copy

    def grow(self, size: int) -> None:
        """Make room for as many features; never gives room back."""
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
            "idle": np.int32(self.steps) - self._coordinates.last,  # all 0 after an epoch
            "gold": self.gold.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.epoch, self.steps = int(state["epoch"]), int(state["steps"])
        last = np.int32(self.steps) - np.array(state["idle"], np.int32)
        self._coordinates = Coordinates(np.array(state["square"], np.float64), last)
        self.gold.restore(state["gold"])

    def _comparisons(
        self, batch: Sequence[Example], report: UpdateReport
    ) -> list[tuple[Example, RankedPairs]]:
        """The sentences that have pairs, and these."""
        found = []
        for example in batch:
            comparison = compare(example, self.gold, self.pairing, self.loss, self.epoch, report)
            if comparison is not None:
                found.append((example, comparison))
        return found

    def _gradient(
        self, comparisons: Sequence[tuple[Example, RankedPairs]], weight: Floats, report: UpdateReport
    ) -> Gradient:
        ids, values, total = [np.zeros(0, np.int32)], [np.zeros(0)], np.zeros(3)
        for example, comparison in comparisons:
            fine, here, value = gradient_kernel(*comparison, self.loss.kind, weight, total)
            if not fine:
                raise not_finite(weight, example.candidates, example.number)
            ids.append(here)
            values.append(value)
        report.loss += float(total[0])
        report.errors += int(total[1])
        found = summed(np.concatenate(ids), np.concatenate(values))
        report.updates += len(found[0]) > 0
        return Gradient(*found, report)


def summed(ids: Ids, values: Floats) -> tuple[Ids, Floats]:
    """Equal features together, in ascending order; what cancels but for rounding is left out."""
    distinct, place = np.unique(ids, return_inverse=True)
    total = np.bincount(place, values, len(distinct))
    size = np.bincount(place, np.abs(values), len(distinct))
    kept = np.abs(total) > ROUNDING * size
    return distinct[kept], total[kept]
