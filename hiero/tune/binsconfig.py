"""The ``bins`` section of a configuration: which features are put into bins, and how."""

from __future__ import annotations

from dataclasses import dataclass, field

from hiero.bins import WORDS, Of
from hiero.errors import ConfigError

MOST_BITS = 16
MOST_OVERLAP = 1000


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """One feature; what is left out is as for all."""

    of: Of = "given"  # what is put into bins: its value, or the probability or count whose logarithm it is
    bits: int | None = None
    overlap: int | None = None
    keep: bool | None = None

    def __post_init__(self) -> None:
        _check(self.bits, self.overlap)


@dataclass(frozen=True, kw_only=True)
class BinsConfig:
    """Bins to be learnt, with as many rules in each as can be had."""

    features: dict[str, FeatureConfig] = field(default_factory=dict)
    on: str = "dev"  # the set of data whose rules have votes, one vote for each rule of each sentence
    leave_one_out: bool = False  # line N of it is pair N of the index: rules only it yields are left out
    bits: int = 4  # 2 ** bits bins for each feature, or as many as it has values
    overlap: int = 0  # neighbours on either side that a value counts for as well
    keep: bool = False  # whether the real numbers stay features beside the bins

    def __post_init__(self) -> None:
        _check(self.bits, self.overlap)
        if "" in self.features:
            raise ConfigError("features: found no name, expected one of a column of a grammar")
        if WORDS in self.features and self.features[WORDS].of != "given":
            found = f"found {self.features[WORDS].of}"
            raise ConfigError(f"features: {WORDS}: of: {found}, expected given: it is a number of words")

    def settings_of(self, feature: str) -> FeatureConfig:
        """Those of one feature, with nothing left out."""
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
