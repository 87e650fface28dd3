"""Settings of rule extraction."""

from __future__ import annotations

from dataclasses import dataclass

from hiero.core.errors import ConfigError
from hiero.core.records import MAX_GAPS

MAX_SPAN = 255  # distances in a match are one byte, see kernels.extract_tables
MAX_SYMBOLS = 20
NOT_IN_CATEGORIES = frozenset(" \t\r\n[],")  # a gap is written [LABEL,1], between spaces


@dataclass(frozen=True, kw_only=True)
class RuleLimits:
    """Limits on the rules that are extracted."""

    max_span: int = 15  # words that a rule may cover, on either side
    max_symbols: int = 5  # words and gaps of a source side
    max_gaps: int = 2

    def __post_init__(self) -> None:
        self._check("max_span", 1, MAX_SPAN)
        self._check("max_symbols", 1, MAX_SYMBOLS)
        self._check("max_gaps", 0, MAX_GAPS)

    def _check(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        if not low <= value <= high:
            raise ConfigError(f"{name}: found {value}, expected {low} to {high}")


@dataclass(frozen=True, kw_only=True)
class ExtractConfig(RuleLimits):
    """Settings of rule extraction from an index."""

    samples: int = 300  # occurrences of a source phrase that are used, evenly spaced
    category: str = "X"  # label of rules and gaps
    min_count: int = 1  # rules with fewer counts among the samples are left out, except those of a word
    # Whether the links of a sentence that is left out do not count for lexical probabilities either. cdec
    # leaves out rules only.
    leave_out_links: bool = False
    cache_mb: int = 512  # memory for cached phrases, in each thread
    store: str | None = None  # directory that stores the rules of each sentence for later runs

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("samples", 1, 1_000_000)
        self._check("min_count", 1, 1000)
        self._check("cache_mb", 0, 1 << 20)
        if not self.category or set(self.category) & NOT_IN_CATEGORIES:
            expected = "a label without spaces, brackets and commas"
            raise ConfigError(f"category: found {self.category!r}, expected {expected}")

    @property
    def limits(self) -> RuleLimits:
        return RuleLimits(max_span=self.max_span, max_symbols=self.max_symbols, max_gaps=self.max_gaps)


@dataclass(frozen=True, kw_only=True)
class FrequentSettings:
    """Which sequences of words are frequent, so that an index lists their collocations."""

    num_frequent: int = 100
    num_super_frequent: int = 10  # three sequences are listed if the middle one and another are among these
    min_frequency: int = 1000
    max_length: int = 4
