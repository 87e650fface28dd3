"""Oracle and prediction strategies of MIRA: Eidelman (2012), section 2.2.

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
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.errors import ConfigError, did_you_mean

Floats = npt.NDArray[np.float64]

OracleName = Literal["lu", "hope"]
PredictionName = Literal["model", "cost", "fear"]
ORACLES = ("lu", "hope")
PREDICTIONS = ("model", "cost", "fear")


class Choice(NamedTuple):
    """Positions of oracle and prediction in the list, and their difference by the scaled metric (>= 0)."""

    oracle: int
    prediction: int
    cost: float


def check_names(oracle: str, prediction: str) -> None:
    """Raise an error for an unknown strategy."""
    for key, name, names in (("oracle", oracle, ORACLES), ("prediction", prediction, PREDICTIONS)):
        if name not in names:
            raise ConfigError(f"{key}: found {name!r}; {did_you_mean(name, names)}")


def choose(
    score: Floats, gold: Floats, oracle: OracleName, prediction: PredictionName, scale: float = 1.0
) -> Choice:
    """Choose oracle and prediction, given model scores and the metric in the order of the list."""
    scaled = scale * gold
    best = np.argmax(scaled if oracle == "lu" else score + scaled)
    wrong = np.argmax({"model": score, "cost": -scaled, "fear": score - scaled}[prediction])
    # The prediction cannot be better than the oracle except by rounding.
    return Choice(int(best), int(wrong), max(0.0, float(scaled[best] - scaled[wrong])))
