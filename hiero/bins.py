"""Dense features of rules as indicators of bins: the data that a transform of them goes by.

A rule has a real number for each column of its grammar. A ``FeatureBins`` says what becomes of one column:
the number may be turned back into the probability or the count whose logarithm it is; its place among the
bins fires one indicator, or with overlapping bins several; the number itself may be kept beside them or not.
This happens to each rule by itself, so it asks nothing of the search (Clark, Dyer and Lavie 2014).

Applying bins is here and in ``binned.py``; learning them is ``tune/discretize.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from hiero.symbols import read_only

Of = Literal["given", "probability", "count"]
OF: tuple[Of, ...] = get_args(Of)
WORDS = "WordPenalty"  # no column of a grammar; in bins it is the number of words of the target side

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class BinTable(NamedTuple):
    """The bins of K features as kernels read them; all arrays are read-only.

    first    int64 [K + 1]  bins of feature k: first[k] ... first[k + 1] - 1, at least one
    begin    float32        smallest value of each bin, ascending within a feature, the first one -inf
    overlap  int64 [K]      neighbours on either side that a value fires beside its own bin, fewer than bins
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
    """What becomes of one dense feature of rules.

    feature  its name, as the grammar has it; or WORDS
    of       what is put into bins: its value; the probability p if that is -log10 p; or the whole number c if
             that is log10(1 + c)
    begin    [N] where bins begin, ascending; the first one is -inf, the last one has no end. No bins at all:
             then the feature is only turned into what ``of`` says, or left out
    overlap  neighbours on either side of a bin that count as parts of it
    keep     whether the real number stays a feature beside the bins
    low, high, values, rules  [N] of each bin, what it was made of: smallest and largest value seen, different
             values, and rules, or nothing of the kind
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
        """Of the indicators, in the order of bins: FEATURE_bin2_0.25 is the second, which begins at 0.25.

        Those of overlapping bins tell how many bins wide they are: FEATURE_bin2x3_0.25.
        """
        width = f"x{2 * self.overlap + 1}" if self.overlap else ""
        return [f"{self.feature}_bin{j}{width}_{short(x)}" for j, x in enumerate(self.begin, 1)]

    @property
    def real_name(self) -> str:
        """Of the real number, if it is kept: another one where it is another number."""
        return self.feature if self.of == "given" else f"{self.feature}_{self.of}"

    @property
    def replaces(self) -> bool:
        """Whether rules no longer have the feature under its own name."""
        return self.feature != WORDS and not (self.keep and self.of == "given")

    def misplaced(self) -> tuple[int, str, str] | None:
        """The first bin that does not begin where it may, what is found there, and what is expected."""
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
    """A column of a grammar as what is put into bins.

    In float32, so that the last bits of a power, which differ between machines, make no difference.
    """
    if of == "given":
        return np.ascontiguousarray(column, np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if of == "probability":
            return np.power(10.0, -column.astype(np.float64)).astype(np.float32)
        return (np.rint(np.power(10.0, column.astype(np.float64))) - 1).astype(np.float32)


def bin_table(bins: Sequence[FeatureBins], names: Sequence[npt.NDArray[np.int32]]) -> BinTable:
    """The bins of some features, each with at least one; ``names`` has the ids of their indicators."""
    first = np.cumsum([0, *map(len, bins)], dtype=np.int64)
    return BinTable(
        read_only(first),
        read_only(np.concatenate([np.zeros(0, np.float32), *(one.begin for one in bins)])),
        read_only(np.array([min(one.overlap, len(one) - 1) for one in bins], np.int64)),
        read_only(np.concatenate([np.zeros(0, np.int32), *names])),
    )
