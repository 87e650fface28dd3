"""The ``bins`` section of a configuration: which features are put into bins, and how."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from hiero.core.errors import ConfigError
from hiero.core.records import Checked, setting

Of = Literal["given", "probability", "count"]
OF: tuple[Of, ...] = get_args(Of)
Method = Literal["greedy", "exact"]
WORDS = "WordPenalty"  # not a column of a grammar: the number of words on the target side is put into bins


MOST_BITS = 16
MOST_OVERLAP = 1000


@dataclass(frozen=True, kw_only=True)
class FeatureConfig(Checked):
    """Settings of one feature; missing ones are those of the section."""

    of: Of = "given"  # bin the value, or the probability or count of which it is the logarithm
    bits: int | None = setting(None, least=1, most=MOST_BITS)
    overlap: int | None = setting(None, least=0, most=MOST_OVERLAP)
    keep: bool | None = None


@dataclass(frozen=True, kw_only=True)
class BinsConfig(Checked):
    """Bins to learn, populated as evenly as possible."""

    features: dict[str, FeatureConfig] = field(default_factory=dict)
    on: str = setting(
        "dev", "set of data whose rules are counted, once for each sentence they apply to", metavar="SET"
    )
    leave_one_out: bool = setting(
        False, "line N is pair N of the index: extract no rules from it (extract: {leave_out: ...})"
    )
    bits: int = setting(
        4, "2 ** N bins of each feature, or as many as it has values", least=1, most=MOST_BITS
    )
    method: Method = setting(
        "greedy", "how values are divided among bins: greedy, as in the paper; exact: as evenly as possible"
    )
    overlap: int = setting(0, "a value also counts for the N bins on either side", least=0, most=MOST_OVERLAP)
    keep: bool = setting(False, "keep the value itself beside its bins")

    def __post_init__(self) -> None:
        super().__post_init__()
        if "" in self.features:
            raise ConfigError("features: found an empty name, expected that of a feature of a grammar")
        if WORDS in self.features and self.features[WORDS].of != "given":
            found = f"found {self.features[WORDS].of}"
            raise ConfigError(f"features: {WORDS}: of: {found}, expected given (it is a number of words)")

    def settings_of(self, feature: str) -> FeatureConfig:
        """The complete settings of one feature."""
        own = self.features[feature]
        missing = [name for name in ("bits", "overlap", "keep") if getattr(own, name) is None]
        return replace(own, **{name: getattr(self, name) for name in missing})
