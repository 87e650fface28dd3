"""What to learn towards and what to learn away from: the strategies of Eidelman (2012), section 2.2.

    oracle      lu     the best by the metric in the list: local update; with a list so long that it stands
                       for all that could be said (50,000 in the paper), it is max-BLEU
                hope   the best by model and metric together (M-C, cost-diminished)
    prediction  model  the best by the model (PB, prediction-based)
                cost   the worst by the metric (MC, maximal cost)
                fear   the best by the model less the metric (M+C, cost-augmented)

Of equals, the first in the model's list is taken.

``scale`` is what a metric of 1 weighs beside the model's scores. It enters hope, fear and the margin alike:
the loss that is made smaller is the difference of the very sums by which hope and fear were chosen. With 1,
as in the paper, a whole BLEU (1, not 100) is worth a score of 1. The magnitude of the weights follows it: the
margins that are asked for grow with it, and so does the model's share in hope and fear.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.errors import ConfigError, did_you_mean

Floats = npt.NDArray[np.float64]

OracleName = Literal["lu", "hope"]
PredictionName = Literal["model", "cost", "fear"]
ORACLES = ("lu", "hope")
PREDICTIONS = ("model", "cost", "fear")


class Choice(NamedTuple):
    """Two places in the list, and by how much the first is better than the second: scaled, never negative."""

    oracle: int
    prediction: int
    cost: float


def check_names(oracle: str, prediction: str) -> None:
    """Complain about a strategy that does not exist."""
    for key, name, names in (("oracle", oracle, ORACLES), ("prediction", prediction, PREDICTIONS)):
        if name not in names:
            raise ConfigError(f"{key}: found {name!r}; {did_you_mean(name, names)}")


def choose(
    score: Floats, gold: Floats, oracle: OracleName, prediction: PredictionName, scale: float = 1.0
) -> Choice:
    """Choose by the model's scores and the metric, both in the order of the list."""
    worth = scale * gold
    best = np.argmax(worth if oracle == "lu" else score + worth)
    wrong = np.argmax({"model": score, "cost": -worth, "fear": score - worth}[prediction])
    # Nothing that is chosen so can be better than its oracle, but for rounding.
    return Choice(int(best), int(wrong), max(0.0, float(worth[best] - worth[wrong])))
