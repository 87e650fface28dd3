# mypy: allow-untyped-calls
"""1-best MIRA for translation: Algorithm 1 of Eidelman (2012)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.errors import ConfigError
from hiero.features.index import FeatureRows
from hiero.learning.finite import not_finite
from hiero.learning.learner import Example, UpdateReport
from hiero.learning.list_kernels import scores_kernel
from hiero.learning.metric import Gold, PreviousPass
from hiero.learning.mira_kernels import mira_kernel
from hiero.learning.oracle import OracleName, PredictionName, check_names, choose

Floats = npt.NDArray[np.float64]


@dataclass(kw_only=True)
class MiraLearner:
    """1-best MIRA: the smallest change of the weights that satisfies the margin of oracle over prediction.

    gold                metric; in the paper, BLEU + 1 in the first pass, then BLEU with the previous pass
    oracle, prediction  strategies, see ``hiero.tune.oracle``
    c                   largest step, C
    scale               factor of the metric beside the model's scores
    """

    gold: Gold = field(default_factory=PreviousPass)
    oracle: OracleName = "hope"
    prediction: PredictionName = "fear"
    c: float = 0.01
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_names(self.oracle, self.prediction)
        for name in ("c", "scale"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected more than 0")

    def learn(self, batch: Sequence[Example], weight: Floats) -> UpdateReport:
        """Take a step for each sentence, scored with the current weights."""
        report = UpdateReport()
        for example in batch:
            self._learn(example, weight, report)
        return report

    def _learn(self, example: Example, weight: Floats, report: UpdateReport) -> None:
        candidates = example.candidates
        rows = FeatureRows(candidates.first, candidates.id, candidates.value)
        score = np.empty(len(candidates.score))
        scores_kernel(rows, weight, score)
        if not np.isfinite(score).all():
            raise not_finite(weight, candidates, example.number)
        gold = self.gold.scores(example)
        chosen = choose(score, gold, self.oracle, self.prediction, self.scale)
        self.gold.remember(example, chosen.oracle)

        report.sentences += 1
        report.model = report.model + example.statistics[0]
        report.oracle = report.oracle + example.statistics[chosen.oracle]
        report.prediction = report.prediction + example.statistics[chosen.prediction]
        if chosen.oracle == chosen.prediction:
            report.unpaired += 1
            report.equal += bool((gold == gold[0]).all())
            return
        report.pairs += 1
        total = np.zeros(3)
        is_finite = mira_kernel(
            rows,
            np.int64(chosen.oracle),
            np.int64(chosen.prediction),
            np.float64(chosen.cost),
            np.float64(self.c),
            weight,
            total,
        )
        if not is_finite:
            raise not_finite(weight, candidates, example.number)
        report.loss += float(total[0])
        report.errors += int(total[1])
        report.updates += int(total[2])

    def end_epoch(self, weight: Floats) -> None:
        self.gold.end_epoch()

    def state(self) -> dict[str, Any]:
        return {"gold": self.gold.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.gold.restore(state["gold"])
