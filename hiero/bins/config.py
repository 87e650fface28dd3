"""The ``bins`` section of a configuration: which features are put into bins, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from hiero.core.errors import ConfigError

Of = Literal["given", "probability", "count"]
OF: tuple[Of, ...] = get_args(Of)
WORDS = "WordPenalty"  # not a column of a grammar: the number of words on the target side is put into bins


MOST_BITS = 16
MOST_OVERLAP = 1000


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """Settings of one feature; missing ones are those of the section."""

    of: Of = "given"  # bin the value, or the probability or count of which it is the logarithm
    bits: int | None = None
    overlap: int | None = None
    keep: bool | None = None

    def __post_init__(self) -> None:
        _check(self.bits, self.overlap)


@dataclass(frozen=True, kw_only=True)
class BinsConfig:
    """Bins to learn, populated as evenly as possible."""

    features: dict[str, FeatureConfig] = field(default_factory=dict)
    on: str = "dev"  # the set of data whose rules are counted, once for each sentence they apply to
    leave_one_out: bool = False  # line N is pair N of the index: leave out rules extracted only from it
    bits: int = 4  # 2 ** bits bins for each feature, or as many as it has values
    overlap: int = 0  # neighbours on either side that a value counts for as well
    keep: bool = False  # whether the real numbers stay features beside the bins

    def __post_init__(self) -> None:
        _check(self.bits, self.overlap)
        if "" in self.features:
            raise ConfigError("features: found an empty name, expected that of a feature of a grammar")
        if WORDS in self.features and self.features[WORDS].of != "given":
            found = f"found {self.features[WORDS].of}"
            raise ConfigError(f"features: {WORDS}: of: {found}, expected given (it is a number of words)")

    def settings_of(self, feature: str) -> FeatureConfig:
        """The complete settings of one feature."""
        own = self.features[feature]
        return FeatureConfig(
            of=own.of,
            bits=self.bits if own.bits is None else own.bits,
            overlap=self.overlap if own.overlap is None else own.overlap,
            keep=self.keep if own.keep is None else own.keep,
        )


def _check(bits: int | None, overlap: int | None) -> None:
    if bits is not None and not 1 <= bits <= MOST_BITS:
        raise ConfigError(f"bits: found {bits}, expected 1 to {MOST_BITS}")
    if overlap is not None and not 0 <= overlap <= MOST_OVERLAP:
        raise ConfigError(f"overlap: found {overlap}, expected 0 to {MOST_OVERLAP}")
