# mypy: allow-untyped-calls
"""Pairwise ranking by stochastic gradient descent: the learner of Simianer, Riezler and Dyer (2012)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hiero.errors import ConfigError
from hiero.kernels.learn_rank import gradient_kernel, rank_kernel, shift_kernel
from hiero.tune.example import Example, UpdateReport
from hiero.tune.finite import not_finite
from hiero.tune.gold import Gold, SentenceGold
from hiero.tune.pairs import Multipartite, Pairing
from hiero.tune.ranking import Loss, RankedPairs, compare
from hiero.tune.regularize import Regulariser, pulled

Floats = npt.NDArray[np.float64]

MOST_COMPARED = 8000  # translations of a sentence, whose products with each other take 512 MB


@dataclass(kw_only=True)
class RankLearner:
    """Learns to rank the better of two translations first.

    update  pair      each pair sees the weights that the one before left (Algorithm 1 of the paper)
            sentence  all pairs of a sentence are ranked with the weights it was decoded with, and make one
                      step together (what dtrain, the program of its authors, does)
    rate    length of a step; from zero, with the perceptron's loss, it only scales the weights
    decay   how the rate falls with t, the sentences seen so far: not, as 1 / sqrt(1 + t / decay_after), or as
            1 / (1 + t / decay_after)
    others  further terms of what is minimised, beside the loss of so many ``sentences``: after each sentence,
            a step is made down its share of them
    """

    gold: Gold = field(default_factory=lambda: SentenceGold("liang"))
    pairing: Pairing = field(default_factory=Multipartite)
    loss: Loss = field(default_factory=Loss)
    update: Literal["pair", "sentence"] = "pair"
    rate: float = 1e-4
    decay: Literal["none", "sqrt", "linear"] = "none"
    decay_after: float = 1.0
    others: Sequence[Regulariser] = ()
    sentences: int = 1
    epoch: int = field(default=0, init=False)
    seen: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.update not in ("pair", "sentence"):
            raise ConfigError(f"update: found {self.update!r}, expected pair or sentence")
        if self.decay not in ("none", "sqrt", "linear"):
            raise ConfigError(f"decay: found {self.decay!r}, expected none, sqrt or linear")
        for name in ("rate", "decay_after"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected more than 0")

    def rate_now(self) -> float:
        """The rate for the next sentence."""
        passed = 1 + self.seen / self.decay_after
        return self.rate / {"none": 1.0, "sqrt": math.sqrt(passed), "linear": passed}[self.decay]

    def learn(self, batch: Sequence[Example], weight: Floats) -> UpdateReport:
        """Take a step, or one for each pair, for each sentence in turn."""
        report = UpdateReport()
        decoded_with = weight.copy() if self.update == "sentence" and len(batch) > 1 else weight
        for example in batch:
            rate = self.rate_now()
            self.seen += 1
            comparison = compare(example, self.gold, self.pairing, self.loss, self.epoch, report)
            if comparison is None:
                continue
            total = np.zeros(3)
            if self.update == "pair":
                _check_size(comparison)
                fine = rank_kernel(*comparison, self.loss.kind, np.float64(rate), weight, total)
            else:
                fine = self._step(comparison, decoded_with, rate, weight, total)
            if self.others:
                ids, values = pulled(self.others, weight, 1 / self.sentences)
                fine &= bool(shift_kernel(ids, values, np.float64(-rate), weight))
            if not fine:
                raise not_finite(weight, example.candidates, example.number)
            report.loss += float(total[0])
            report.errors += int(total[1])
            report.updates += int(total[2])
        return report

    def _step(
        self, comparison: RankedPairs, decoded_with: Floats, rate: float, weight: Floats, total: Floats
    ) -> bool:
        """One step with the gradients of all pairs together."""
        fine, ids, values = gradient_kernel(*comparison, self.loss.kind, decoded_with, total)
        total[2] = len(ids) > 0
        return bool(fine and shift_kernel(ids, values, np.float64(-rate), weight))

    def end_epoch(self, weight: Floats) -> None:
        self.epoch += 1
        self.gold.end_epoch()

    def state(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "seen": self.seen, "gold": self.gold.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.epoch, self.seen = int(state["epoch"]), int(state["seen"])
        self.gold.restore(state["gold"])


def _check_size(comparison: RankedPairs) -> None:
    """Refuse what would not fit into memory."""
    if len(comparison.rows.first) > MOST_COMPARED:
        compared = len(np.unique(comparison.pair))
        if compared > MOST_COMPARED:
            raise ConfigError(
                f"update pair: found {compared:,} translations of a sentence in pairs, expected at most"
                f" {MOST_COMPARED:,} (take fewer translations, or update by sentence)"
            )
