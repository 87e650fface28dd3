# mypy: allow-untyped-calls
"""Batch MIRA: hope and fear, for several epochs over fixed k-best lists.

Cherry and Foster 2012, Algorithm 2, as in Moses (kbmira), whose settings are the defaults: BLEU of a
translation is computed with a decaying sum of the statistics of those chosen for the sentences before, and
multiplied by the length of their references. The result is the average of the weights after every sentence
so far, of the epoch after which the average has the best BLEU on the lists.

Moses differs from the paper in two points, which are as in the paper here: its average is over updates and
not over sentences, so that a sentence without an update does not count; and its sum only decays and grows
where hope is better than fear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hiero.core.errors import ConfigError
from hiero.core.symbols import read_only
from hiero.learning.finite import check_finite
from hiero.learning.learn_kbmira_part_kernels import MiraState, kbmira_epoch_kernel
from hiero.learning.lists import CandidateLists

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class KBMIRA:
    """Batch learner.

    C        largest step
    decay    factor of the sum of statistics after each sentence; every count in it starts as 1
    epochs   over the lists
    chosen   the translation of a sentence that is added: the hope ("oracle"), or the model's best
    shuffle  visit the sentences in a new order in every epoch
    """

    C: float = 0.01
    decay: float = 0.999
    epochs: int = 60
    chosen: Literal["oracle", "model"] = "oracle"
    shuffle: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.C < np.inf:
            raise ConfigError(f"C: found {self.C}, expected more than 0")
        if not 0 < self.decay <= 1:
            raise ConfigError(f"decay: found {self.decay}, expected more than 0 and at most 1")
        if self.epochs < 1:
            raise ConfigError(f"epochs: found {self.epochs}, expected at least 1")
        if self.chosen not in ("oracle", "model"):
            raise ConfigError(f"chosen: found {self.chosen!r}, expected oracle or model")

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
            loss, errors, updates = kbmira_epoch_kernel(
                view,
                read_only(visit),
                np.float64(self.C),
                np.float64(self.decay),
                self.chosen == "model",
                state,
            )
            average = state.weight - state.late / state.seen[0]
            check_finite(np.arange(len(average), dtype=np.int32), average)
            bleu = lists.bleu(average)
            if bleu > best_bleu:
                best, best_bleu = average, bleu
                figures = {"epoch": float(epoch), "loss": float(loss) / len(visit)}
                figures |= {"errors": float(errors), "updates": float(updates)}
        figures |= {"nonzero": float(np.count_nonzero(best)), "predicted_bleu": best_bleu}
        return best, figures
