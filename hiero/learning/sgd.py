"""Pairwise ranking by stochastic gradient descent: the learner of Simianer, Riezler and Dyer (2012)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hiero.core.arrays import Floats
from hiero.core.errors import ConfigError
from hiero.core.records import Checked, part, setting
from hiero.learning.candidates import not_finite
from hiero.learning.config import TuneSettings
from hiero.learning.learner import Example, LearnerContext, UpdateReport, count_of
from hiero.learning.metric import Gold, SentenceGold
from hiero.learning.pairs import (
    Loss,
    Multipartite,
    Pairing,
    RankedPairs,
    pairwise_parts,
    ranked_pairs,
)
from hiero.learning.rank_kernels import gradient_kernel, rank_kernel, shift_kernel
from hiero.learning.regularize import Regulariser, terms_gradient

MOST_COMPARED = 8000  # translations of a sentence; their inner products take 512 MB


@dataclass(kw_only=True)
class RankLearner(Checked):
    """SGD on a pairwise ranking loss.

    update  pair      a step after each pair (Algorithm 1 of the paper)
            sentence  one step for all pairs of a sentence, with the gradient at the weights it was decoded
                      with (as in dtrain, the program of the authors)
    rate    learning rate; with the perceptron loss and weights that start from 0, it only scales the weights
    decay   factor of the rate after t sentences: none 1, sqrt 1 / sqrt(1 + t / decay_after), or linear
            1 / (1 + t / decay_after)
    terms   further terms of the objective, beside the loss of ``sentences`` sentences: each sentence is
            followed by a step down its share of them
    """

    gold: Gold = field(default_factory=lambda: SentenceGold("liang"))
    pairing: Pairing = field(default_factory=Multipartite)
    loss: Loss = field(default_factory=Loss)
    update: Literal["pair", "sentence"] = "sentence"
    rate: float = setting(1e-4, above=0)
    decay: Literal["none", "sqrt", "linear"] = "none"
    decay_after: float = setting(1.0, above=0)
    terms: Sequence[Regulariser] = ()
    sentences: int = 1
    epoch: int = field(default=0, init=False)
    seen: int = field(default=0, init=False)

    @classmethod
    def make(cls, settings: TuneSettings, context: LearnerContext) -> RankLearner:
        return part(cls, settings, **pairwise_parts(settings, context))

    def rate_now(self) -> float:
        passed = 1 + self.seen / self.decay_after
        return self.rate / {"none": 1.0, "sqrt": math.sqrt(passed), "linear": passed}[self.decay]

    def learn(self, batch: Sequence[Example], weight: Floats) -> UpdateReport:
        """Take one step for each sentence, or for each of its pairs."""
        report = UpdateReport()
        decoded_with = weight.copy() if self.update == "sentence" and len(batch) > 1 else weight
        for example in batch:
            rate = self.rate_now()
            self.seen += 1
            pairs = ranked_pairs(example, self.gold, self.pairing, self.loss, self.epoch, report)
            if pairs is None:
                continue
            total = np.zeros(3)
            if self.update == "pair":
                _check_size(pairs)
                is_finite = rank_kernel(*pairs, self.loss.kind, np.float64(rate), weight, total)
            else:
                is_finite = self._step(pairs, decoded_with, rate, weight, total)
            if self.terms:
                ids, values = terms_gradient(self.terms, weight, 1 / self.sentences)
                is_finite &= bool(shift_kernel(ids, values, np.float64(-rate), weight))
            if not is_finite:
                raise not_finite(weight, example.candidates, example.number)
            report.loss += float(total[0])
            report.errors += int(total[1])
            report.updates += int(total[2])
        return report

    def _step(
        self, pairs: RankedPairs, decoded_with: Floats, rate: float, weight: Floats, total: Floats
    ) -> bool:
        """Take one step down the sum of the gradients of all pairs."""
        is_finite, ids, values = gradient_kernel(*pairs, self.loss.kind, decoded_with, total)
        total[2] = len(ids) > 0
        return bool(is_finite and shift_kernel(ids, values, np.float64(-rate), weight))

    def end_epoch(self, weight: Floats) -> None:
        self.epoch += 1
        self.gold.end_epoch()

    def state(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "seen": self.seen, "gold": self.gold.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.epoch, self.seen = count_of(state, "epoch"), count_of(state, "seen")
        self.gold.restore(state["gold"])


def _check_size(pairs: RankedPairs) -> None:
    """Refuse sentences whose matrix of inner products does not fit into memory."""
    if len(pairs.rows.first) > MOST_COMPARED:
        compared = len(np.unique(pairs.pair))
        if compared > MOST_COMPARED:
            raise ConfigError(
                f"update pair: found {compared:,} translations of a sentence in pairs, expected at most"
                f" {MOST_COMPARED:,} (use a smaller kbest, or update: sentence)"
            )
