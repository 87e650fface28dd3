"""The average of the weights after every sentence (Collins 2002), at the price of those that changed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Average:
    """With w_t the weights after sentence t of T, their mean is w_T less the sum over t of
    (t - 1) / T * (w_t - w_{t-1}): of each change it is enough to know when it came.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._missed = np.zeros(0)  # sum of (t - 1) times the change of each feature

    def changed(self, ids: npt.NDArray[np.int32], change: Floats, sentences: int = 1) -> None:
        """So many sentences were learnt from together; only these features, each once, have changed."""
        missing = int(ids.max(initial=-1)) + 1 - len(self._missed)
        if missing > 0:
            self._missed = np.concatenate([self._missed, np.zeros(missing + len(self._missed) // 2)])
        self._missed[ids] += self.seen * change
        self.seen += sentences

    def of(self, weight: Floats) -> Floats:
        """The average, given the last weights."""
        average = weight.copy()
        size = min(len(self._missed), len(weight))
        average[:size] -= self._missed[:size] / max(self.seen, 1)
        return average
