"""Errors for weights and feature values that are not finite."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiero.core.errors import HieroError
from hiero.learning.candidates import Candidates

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]


class NotFinite(HieroError):
    """A weight or the value of a feature is infinite or not a number.

    feature  number of the feature
    found    the weight or value
    where    "its weight" or "its value in sentence N"
    """

    def __init__(self, feature: int, found: float, where: str, hint: str, name: str = "") -> None:
        self.feature, self.found, self.where, self.hint = feature, found, where, hint
        shown = repr(name) if name else str(feature)
        super().__init__(f"feature {shown}: found {found} as {where}, expected a finite number ({hint})")

    def named(self, name: str) -> NotFinite:
        """The same error with the name of the feature instead of its number."""
        return NotFinite(self.feature, self.found, self.where, self.hint, name)


def not_finite(weight: Floats, candidates: Candidates, number: int) -> NotFinite:
    """Return the error for a sentence with a score that is not finite, naming the feature that caused it."""
    for feature, value in _first_not_finite(candidates.id, candidates.value):
        where = f"its value in sentence {number}"
        return NotFinite(feature, value, where, "check the grammar, or the code of the feature")
    hint = "the weights diverge: try a lower rate"
    for feature, value in _first_not_finite(candidates.id, weight[candidates.id]):
        return NotFinite(feature, value, "its weight", hint)
    # All are finite, but a score is not.
    feature = int(candidates.id[np.argmax(np.abs(weight[candidates.id]))])
    return NotFinite(feature, float(weight[feature]), "the largest of the weights", hint)


def check_finite(ids: Ids, weight: Floats) -> None:
    """Raise ``NotFinite`` unless the weights of these features are all finite."""
    for feature, value in _first_not_finite(ids, weight[ids]):
        raise NotFinite(feature, value, "its weight", "the weights diverge: try a lower rate")


def _first_not_finite(ids: Ids, values: Floats) -> list[tuple[int, float]]:
    """The first feature whose value is not finite, if there is one."""
    is_finite = np.isfinite(values)
    if is_finite.all():
        return []
    at = int(np.argmin(is_finite))
    return [(int(ids[at]), float(values[at]))]
