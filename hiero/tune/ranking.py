# mypy: allow-untyped-calls
"""What all pairwise learners share: the pairs of a sentence with their losses, as arrays for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.errors import ConfigError
from hiero.features import FeatureRows
from hiero.kernels.learn_rank import LOGISTIC, MARGIN, PERCEPTRON
from hiero.symbols import read_only
from hiero.tune.example import Example, UpdateReport
from hiero.tune.gold import Gold
from hiero.tune.pairs import Pairing

Floats = npt.NDArray[np.float64]

LossName = Literal["perceptron", "margin", "logistic"]
KINDS = {"perceptron": PERCEPTRON, "margin": MARGIN, "logistic": LOGISTIC}


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What is lost at w·x̄, x̄ being the features of the better translation less those of the worse.

    name    perceptron  max(0, -w·x̄), with a step at 0 too, or a start from zero would never leave it
            margin      max(0, margin - w·x̄), the hinge
            logistic    log(1 + exp(-w·x̄))
    margin  for the hinge
    by_gold what the difference of the two by the metric scales: nothing, the margin that is wanted, or the
            loss of the pair as a whole
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
            raise ConfigError(f"by_gold: found margin, expected nothing or loss with the {self.name} loss")

    @property
    def kind(self) -> np.int64:
        """Its number in the kernels."""
        return np.int64(KINDS[self.name])

    def weighed(self, gold: Floats, pair: npt.NDArray[np.int32]) -> tuple[Floats, Floats]:
        """For each pair, the margin that is wanted, and what its loss is multiplied with."""
        wanted, force = np.full(len(pair), self.margin), np.ones(len(pair))
        if self.by_gold != "nothing":
            difference = gold[pair[:, 0]] - gold[pair[:, 1]]
            if self.by_gold == "margin":
                wanted *= difference
            else:
                force = difference
        return read_only(wanted), read_only(force)


class RankedPairs(NamedTuple):
    """The pairs of some sentence, as kernels take them; see ``rank_kernel``."""

    rows: FeatureRows
    pair: npt.NDArray[np.int32]
    wanted: Floats
    force: Floats


def compare(
    example: Example, gold: Gold, pairing: Pairing, loss: Loss, epoch: int, report: UpdateReport
) -> RankedPairs | None:
    """The pairs of a sentence, counted in ``report``; None if there is none."""
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
    return RankedPairs(rows, pair, *loss.weighed(scores, pair))
