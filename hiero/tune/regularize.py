"""What keeps weights small, close to what they were, or, structured, close to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Regulariser(Protocol):
    """A smooth term of an objective that is minimised."""

    def features(self) -> Ints:
        """Those to be learnt even if no translation has them, because others pull at them."""
        ...

    def value_and_gradient(self, weight: Floats) -> tuple[float, Floats]:
        """The term and its gradient, which is as long as ``weight``: of all features, by number."""
        ...


@dataclass(frozen=True)
class Ridge:
    """strength * |weight - centre|²; the centre is 0 if there is none, and beyond its end."""

    strength: float
    centre: Floats | None = None

    def features(self) -> Ints:
        return np.zeros(0, np.int64) if self.centre is None else np.flatnonzero(self.centre)

    def value_and_gradient(self, weight: Floats) -> tuple[float, Floats]:
        difference = weight.copy()
        if self.centre is not None:
            difference[: len(self.centre)] -= self.centre
        return self.strength * float(difference @ difference), 2 * self.strength * difference
