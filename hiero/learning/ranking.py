# mypy: allow-untyped-calls
"""Losses and pairs of a sentence as arrays for the kernels, shared by all pairwise learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.errors import ConfigError
from hiero.core.symbols import read_only
from hiero.features.index import FeatureRows
from hiero.learning.learner import Example, UpdateReport
from hiero.learning.metric import Gold
from hiero.learning.pairs import Pairing
from hiero.learning.rank_kernels import LOGISTIC, MARGIN, PERCEPTRON

Floats = npt.NDArray[np.float64]

LossName = Literal["perceptron", "margin", "logistic"]
KINDS = {"perceptron": PERCEPTRON, "margin": MARGIN, "logistic": LOGISTIC}


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Loss of a pair at margin w·x̄, where x̄ are the features of the better translation minus the worse.

    name     perceptron  max(0, -w·x̄), with an update at 0 too, since weights may start from 0
             margin      max(0, margin - w·x̄), the hinge loss
             logistic    log(1 + exp(-w·x̄))
    margin   of the hinge loss
    by_gold  the difference of the two translations by the metric scales nothing, the margin, or the loss
    """

    name: LossName = "perceptron"
    margin: float = 1.0
    by_gold: Literal["nothing", "margin", "loss"] = "nothing"

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise ConfigError(f"loss: found {self.name!r}, expected perceptron, margin or logistic")
        if self.by_gold not in ("nothing", "margin", "loss"):
            raise ConfigError(f"by_gold: found {self.by_gold!r}, expected nothing, margin or loss")
        if self.name == "margin" and not 0 < self.margin < np.inf:
            raise ConfigError(f"margin: found {self.margin}, expected more than 0")
        if self.by_gold == "margin" and self.name != "margin":
            raise ConfigError(f"by_gold: margin works with loss: margin, not with loss: {self.name}")

    @property
    def kind(self) -> np.int64:
        """The number of the loss in the kernels."""
        return np.int64(KINDS[self.name])

    def margins_and_weights(self, gold: Floats, pair: npt.NDArray[np.int32]) -> tuple[Floats, Floats]:
        """For each pair, its margin, and the factor of its loss."""
        margins, pair_weights = np.full(len(pair), self.margin), np.ones(len(pair))
        if self.by_gold != "nothing":
            difference = gold[pair[:, 0]] - gold[pair[:, 1]]
            if self.by_gold == "margin":
                margins *= difference
            else:
                pair_weights = difference
        return read_only(margins), read_only(pair_weights)


class RankedPairs(NamedTuple):
    """The pairs of a sentence, as arguments of the kernels; see ``rank_kernel``."""

    rows: FeatureRows
    pair: npt.NDArray[np.int32]
    margins: Floats
    pair_weights: Floats


def ranked_pairs(
    example: Example, gold: Gold, pairing: Pairing, loss: Loss, epoch: int, report: UpdateReport
) -> RankedPairs | None:
    """Return the pairs of a sentence, or None if there are none; count them in ``report``."""
    scores = gold.scores(example)
    pair = pairing(scores, example.statistics[:, 0], epoch, example.number)
    report.sentences += 1
    report.model = report.model + example.statistics[0]
    report.pairs += len(pair)
    gold.remember(example, int(np.argmax(scores)))
    if not len(pair):
        report.unpaired += 1
        report.equal += bool((scores == scores[0]).all())
        return None
    candidates = example.candidates
    rows = FeatureRows(candidates.first, candidates.id, candidates.value)
    return RankedPairs(rows, pair, *loss.margins_and_weights(scores, pair))
