"""What to say when a weight is no number any more: which feature, and why it may have come to that."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hiero.candidates import Candidates
from hiero.errors import HieroError

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]


class NotFinite(HieroError):
    """A weight, or the value of a feature, is infinite or not a number.

    feature  its number
    found    what it is
    where    "its weight" or "its value in sentence N"
    """

    def __init__(self, feature: int, found: float, where: str, hint: str, name: str = "") -> None:
        self.feature, self.found, self.where, self.hint = feature, found, where, hint
        shown = repr(name) if name else str(feature)
        super().__init__(f"feature {shown}: found {found} as {where}, expected a finite number ({hint})")

    def named(self, name: str) -> NotFinite:
        """The same, with the name of the feature for its number."""
        return NotFinite(self.feature, self.found, self.where, self.hint, name)


def not_finite(weight: Floats, candidates: Candidates, number: int) -> NotFinite:
    """Find the feature of a sentence's translations that is to blame when a score is not finite."""
    for feature, value in _strange(candidates.id, candidates.value):
        where = f"its value in sentence {number}"
        return NotFinite(feature, value, where, "look at the grammar, or at the code of the feature")
    hint = "the weights explode: try a lower rate"
    for feature, value in _strange(candidates.id, weight[candidates.id]):
        return NotFinite(feature, value, "its weight", hint)
    # All are finite, but their sum is not.
    feature = int(candidates.id[np.argmax(np.abs(weight[candidates.id]))])
    return NotFinite(feature, float(weight[feature]), "the largest of the weights", hint)


def check_finite(ids: Ids, weight: Floats) -> None:
    """Raise ``NotFinite`` unless the weights of these features are all finite."""
    for feature, value in _strange(ids, weight[ids]):
        raise NotFinite(feature, value, "its weight", "the weights explode: try a lower rate")


def _strange(ids: Ids, values: Floats) -> list[tuple[int, float]]:
    """The first feature whose value is not finite, if there is one."""
    fine = np.isfinite(values)
    if fine.all():
        return []
    at = int(np.argmin(fine))
    return [(int(ids[at]), float(values[at]))]
