"""1-best MIRA for translation, Algorithm 1 of Eidelman (2012), and batch MIRA.

Oracle and prediction strategies of MIRA: Eidelman (2012), section 2.2.

    oracle      lu     the best by the metric in the list: local update; with very long lists (50,000 in the
                       paper), it approximates max-BLEU
                hope   the best by model and metric together (M-C, cost-diminished)
    prediction  model  the best by the model (PB, prediction-based)
                cost   the worst by the metric (MC, maximal cost)
                fear   the best by the model less the metric (M+C, cost-augmented)

Of equals, the first in the model's list is chosen.

``scale`` is the factor of the metric beside the model's scores, in hope, fear and the margin alike: the loss
is the difference of the sums by which hope and fear were chosen. With 1, as in the paper, BLEU (from 0 to 1)
counts like a score of the same value. The magnitude of the weights grows with ``scale``, as the margins do.

Batch MIRA takes hope and fear from fixed k-best lists, for several epochs: Cherry and Foster 2012, Algorithm
2, as in Moses (kbmira), whose settings are the defaults. BLEU of a translation is computed with a decaying
sum of the statistics of those chosen for the sentences before, and multiplied by the length of their
references. The result is the average of the weights after every sentence so far, of the epoch after which the
average has the best BLEU on the lists.

Moses differs from the paper in two points, which are as in the paper here: its average is over updates and
not over sentences, so that a sentence without an update does not count; and its sum only decays and grows
where hope is better than fear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from hiero.core.arrays import Floats, read_only
from hiero.core.records import Checked, part, setting
from hiero.features.rows import FeatureRows
from hiero.learning.candidates import check_finite, not_finite
from hiero.learning.config import TuneSettings
from hiero.learning.learner import Example, LearnerContext, UpdateReport
from hiero.learning.list_kernels import list_scores_kernel
from hiero.learning.lists import CandidateLists
from hiero.learning.metric import Gold, PreviousPass, gold_metric
from hiero.learning.mira_kernels import MiraState, kbmira_epoch_kernel, mira_kernel

OracleName = Literal["lu", "hope"]
PredictionName = Literal["model", "cost", "fear"]
ORACLES: tuple[OracleName, ...] = get_args(OracleName)
PREDICTIONS: tuple[PredictionName, ...] = get_args(PredictionName)


class Choice(NamedTuple):
    """Positions of oracle and prediction in the list, and their difference by the scaled metric (>= 0)."""

    oracle: int
    prediction: int
    cost: float


def choose(
    score: Floats, gold: Floats, oracle: OracleName, prediction: PredictionName, scale: float = 1.0
) -> Choice:
    """Choose oracle and prediction, given model scores and the metric in the order of the list."""
    scaled = scale * gold
    best = np.argmax(scaled if oracle == "lu" else score + scaled)
    wrong = np.argmax({"model": score, "cost": -scaled, "fear": score - scaled}[prediction])
    # The prediction cannot be better than the oracle except by rounding.
    return Choice(int(best), int(wrong), max(0.0, float(scaled[best] - scaled[wrong])))


@dataclass(kw_only=True)
class MiraLearner(Checked):
    """1-best MIRA: the smallest change of the weights that satisfies the margin of oracle over prediction.

    gold                metric; in the paper, BLEU + 1 in the first pass, then BLEU with the previous pass
    oracle, prediction  strategies, see the module
    c                   largest step, C
    scale               factor of the metric beside the model's scores
    """

    gold: Gold = field(default_factory=PreviousPass)
    oracle: OracleName = "hope"
    prediction: PredictionName = "fear"
    c: float = setting(0.01, above=0)
    scale: float = setting(1.0, above=0)

    @classmethod
    def make(cls, settings: TuneSettings, context: LearnerContext) -> MiraLearner:
        return part(cls, settings, gold=gold_metric(settings.metric))

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
        list_scores_kernel(rows, weight, score)
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
        step = np.int64(chosen.oracle), np.int64(chosen.prediction), np.float64(chosen.cost)
        is_finite = mira_kernel(rows, *step, np.float64(self.c), weight, total)
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


@dataclass(frozen=True, kw_only=True)
class KBMIRA(Checked):
    """Batch learner.

    C        largest step
    decay    factor of the sum of statistics after each sentence; every count in it starts as 1
    epochs   over the lists
    chosen   the translation of a sentence that is added: the hope ("oracle"), or the model's best
    shuffle  visit the sentences in a new order in every epoch
    """

    C: float = setting(0.01, above=0)
    decay: float = setting(0.999, above=0, most=1)
    epochs: int = setting(60, least=1)
    chosen: Literal["oracle", "model"] = "oracle"
    shuffle: bool = True

    @classmethod
    def make(cls, settings: TuneSettings, context: LearnerContext) -> KBMIRA:
        return cls(C=settings.c, decay=settings.memory, epochs=settings.passes, chosen=settings.remembered)

    def fit(
        self, lists: CandidateLists, weight: Floats, iteration: int, seed: int
    ) -> tuple[Floats, dict[str, float]]:
        view = lists.view()
        best, best_bleu, figures = np.array(lists.checked(weight)), -1.0, {"epoch": 0.0}
        if not len(view.number):
            return best, {"epoch": 0.0, "predicted_bleu": 0.0}
        state = MiraState(
            best.copy(), np.zeros(len(best)), np.ones(view.statistics.shape[1]), np.zeros(1, np.int64)
        )
        for epoch in range(1, self.epochs + 1):
            visit = np.arange(len(view.number))
            if self.shuffle:
                np.random.default_rng([seed, iteration, epoch]).shuffle(visit)
            step = np.float64(self.C), np.float64(self.decay), self.chosen == "model"
            loss, errors, updates = kbmira_epoch_kernel(view, read_only(visit), *step, state)
            average = state.weight - state.late / state.seen[0]
            check_finite(np.arange(len(average), dtype=np.int32), average)
            bleu = lists.bleu(average)
            if bleu > best_bleu:
                best, best_bleu = average, bleu
                figures = {"epoch": float(epoch), "loss": float(loss) / len(visit)}
                figures |= {"errors": float(errors), "updates": float(updates)}
        figures |= {"nonzero": float(np.count_nonzero(best)), "predicted_bleu": best_bleu}
        return best, figures
