"""The average of the weights after every sentence (Collins 2002), updated for changed weights only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Average:
    """Running average of weights.

    With w_t the weights after sentence t of T, their mean is w_T less the sum over t of
    (t - 1) / T * (w_t - w_{t-1}), so that an update only touches the weights that change.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._correction = np.zeros(0)  # sum of (t - 1) times the change of each feature

    def changed(self, ids: npt.NDArray[np.int32], change: Floats, sentences: int = 1) -> None:
        """Add the update after some sentences: distinct features and the change of their weights."""
        missing = int(ids.max(initial=-1)) + 1 - len(self._correction)
        if missing > 0:
            more = np.zeros(missing + len(self._correction) // 2)
            self._correction = np.concatenate([self._correction, more])
        self._correction[ids] += self.seen * change
        self.seen += sentences

    def of(self, weight: Floats) -> Floats:
        """Return the average, given the last weights."""
        average = weight.copy()
        size = min(len(self._correction), len(weight))
        average[:size] -= self._correction[:size] / max(self.seen, 1)
        return average
