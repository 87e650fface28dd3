"""Bins of dense rule features: the parameters of the transform into indicators.

A rule has a real number for each column of its grammar. A ``FeatureBins`` describes the transform of one
column: the number may be turned back into the probability or the count whose logarithm it is; its bin fires
one indicator, or with overlapping bins several; the number itself may be kept as a feature or not. The
transform needs only the rule, so the search is unchanged (Clark, Dyer and Lavie 2014).

Applying bins is here and in ``binned.py``; learning them is ``tune/discretize.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import read_only

Of = Literal["given", "probability", "count"]
OF: tuple[Of, ...] = get_args(Of)
WORDS = "WordPenalty"  # not a column of a grammar: the number of words on the target side is put into bins

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class BinTable(NamedTuple):
    """The bins of K features as kernels read them; all arrays are read-only.

    first    int64 [K + 1]  bins of feature k: first[k] ... first[k + 1] - 1, at least one
    begin    float32        smallest value of each bin, ascending within a feature, the first one -inf
    overlap  int64 [K]      neighbouring bins on either side that a value fires too, fewer than bins
    name     int32          id in Symbols.names of each bin's indicator
    """

    first: Ints
    begin: Floats
    overlap: Ints
    name: npt.NDArray[np.int32]


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureBins:
    """The transform of one dense feature of rules.

    feature  name of the feature in the grammar, or WORDS
    of       the number put into bins: the value as given; the probability p if the value is -log10 p; or the
             count c if the value is log10(1 + c)
    begin    [N] lower bounds of the bins, ascending; the first is -inf, the last bin has no upper bound. If
             empty, the feature is only converted according to ``of``, or dropped
    overlap  neighbours on either side of a bin that count as parts of it
    keep     whether the real number stays a feature in addition to the bins
    low, high, values, rules  [N] statistics of each bin, or empty: smallest and largest value seen, numbers
             of distinct values and of rules
    """

    feature: str
    of: Of = "given"
    begin: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    overlap: int = 0
    keep: bool = False
    low: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    high: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    values: Ints = field(default_factory=_none)
    rules: Ints = field(default_factory=_none)

    def __len__(self) -> int:
        """The number of bins."""
        return len(self.begin)

    @property
    def names(self) -> list[str]:
        """Names of the indicators, in the order of bins: FEATURE_bin2_0.25 is the second, from 0.25 on.

        Names of overlapping bins include their width in bins: FEATURE_bin2x3_0.25.
        """
        width = f"x{2 * self.overlap + 1}" if self.overlap else ""
        return [f"{self.feature}_bin{j}{width}_{short(x)}" for j, x in enumerate(self.begin, 1)]

    @property
    def real_name(self) -> str:
        """Name of the real number if it is kept; converted numbers have a suffix."""
        return self.feature if self.of == "given" else f"{self.feature}_{self.of}"

    @property
    def replaces(self) -> bool:
        """Whether rules no longer have the feature under its own name."""
        return self.feature != WORDS and not (self.keep and self.of == "given")

    def misplaced(self) -> tuple[int, str, str] | None:
        """The first bin with an invalid lower bound, the text of what was found, and of what was expected."""
        if len(self) and self.begin[0] != -np.inf:
            return 0, f"a first bin that begins at {short(self.begin[0])}", "-inf"
        rising = self.begin[1:] > self.begin[:-1]
        if rising.all():
            return None
        j = int(np.argmin(rising)) + 1
        found = f"a bin at {short(self.begin[j])} after one at {short(self.begin[j - 1])}"
        return j, found, "bins in ascending order"


def short(value: float | np.floating[npt.NBitBase]) -> str:
    """The shortest text that reads back as the same float32."""
    return str(np.float32(value)).removesuffix(".0")


def raw_values(of: Of, column: npt.NDArray[np.float32]) -> Floats:
    """Convert a column of a grammar into the numbers that are put into bins.

    In float32, because the last bits of a power in float64 differ between machines.
    """
    if of == "given":
        return np.ascontiguousarray(column, np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if of == "probability":
            return np.power(10.0, -column.astype(np.float64)).astype(np.float32)
        return (np.rint(np.power(10.0, column.astype(np.float64))) - 1).astype(np.float32)


def bin_table(bins: Sequence[FeatureBins], names: Sequence[npt.NDArray[np.int32]]) -> BinTable:
    """Pack the bins of features that have at least one; ``names`` has the ids of their indicators."""
    first = np.cumsum([0, *map(len, bins)], dtype=np.int64)
    return BinTable(
        read_only(first),
        read_only(np.concatenate([np.zeros(0, np.float32), *(one.begin for one in bins)])),
        read_only(np.array([min(one.overlap, len(one) - 1) for one in bins], np.int64)),
        read_only(np.concatenate([np.zeros(0, np.int32), *names])),
    )
