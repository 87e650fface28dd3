"""Settings of rule extraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.core.errors import ConfigError
from hiero.core.records import MAX_GAPS, Checked, PathKey, setting

MAX_SPAN = 255  # distances in a match are one byte, see kernels.extract_tables
MAX_SYMBOLS = 20
NOT_IN_CATEGORIES = frozenset(" \t\r\n[],")  # a gap is written [LABEL,1], between spaces


@dataclass(frozen=True, kw_only=True)
class RuleLimits(Checked):
    """Limits on the rules that are extracted."""

    max_span: int = setting(15, "most words that a rule covers, on either side", least=1, most=MAX_SPAN)
    max_symbols: int = setting(5, "most words and gaps of a source side", least=1, most=MAX_SYMBOLS)
    max_gaps: int = setting(2, "most gaps of a rule", least=0, most=MAX_GAPS)


@dataclass(frozen=True, kw_only=True)
class ExtractConfig(RuleLimits):
    """Settings of rule extraction from an index."""

    samples: int = setting(300, "most occurrences of a source phrase, evenly spaced", least=1, most=1_000_000)
    category: str = setting("X", "label of rules and gaps", metavar="LABEL")
    min_count: int = setting(
        1, "leave out rules from fewer occurrences, except translations of single words", least=1, most=1000
    )
    leave_out_links: bool = setting(
        False, "with --leave-one-out: leave its links out of lexical probabilities too (cdec counts them)"
    )
    leave_out: Literal["equal", "pair"] | PathKey = setting(
        "equal",
        "with --leave-one-out: also leave out pairs with the same source or the same target (equal), "
        "no others (pair, as in cdec), or those with the same label in a file with a line for each pair",
        metavar="GROUPS",
    )
    cache_mb: int = setting(512, "MB of cached phrases in each thread", least=0, most=1 << 20)
    store: PathKey | None = setting(
        None, "directory that keeps the rules of sentences in binary form for later runs", metavar="DIR"
    )

    target_counts: PathKey | None = setting(
        None,
        "add p(f|e) and singletons of e, with the counts of target sides in this directory, which is made if "
        "it is not there",
        metavar="DIR",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_counts is not None and self.store is not None:
            raise ConfigError("store works without target_counts")
        if not self.category or set(self.category) & NOT_IN_CATEGORIES:
            expected = "a label without spaces, brackets and commas"
            raise ConfigError(f"category: found {self.category!r}, expected {expected}")

    @property
    def limits(self) -> RuleLimits:
        return RuleLimits(max_span=self.max_span, max_symbols=self.max_symbols, max_gaps=self.max_gaps)

    @property
    def group_file(self) -> str | None:
        """The file of ``leave_out``, if it is one."""
        return None if self.leave_out in ("equal", "pair") else self.leave_out


MAX_PHRASE = 100  # positions of links in a phrase pair are a byte each


@dataclass(frozen=True, kw_only=True)
class PhraseConfig(Checked):
    """Settings of phrase tables.

    min_count  pairs that occur less often are left out, but for those of single words
    """

    max_length: int = setting(7, "most words of a phrase, on either side", least=1, most=MAX_PHRASE)
    translations: int = setting(0, "translations of a source phrase, most frequent first; 0: all", least=0)
    min_count: int = setting(1, least=1)


@dataclass(frozen=True, kw_only=True)
class LookupConfig(Checked):
    """Which phrases and translations are looked up."""

    max_words: int = setting(5, "words and gaps of a phrase, at most", least=1, most=MAX_SYMBOLS)
    gaps: bool = setting(False, "also phrases with one or two gaps, written [1] and [2]")
    longest: bool = setting(False, "leave out phrases inside longer ones that the index has")
    whole: bool = setting(False, "look up each line as one phrase")
    translations: int = setting(5, "translations of a phrase, most frequent first; 0: all", least=0)
    min_count: int = setting(1, "leave out translations seen less often", least=1)
    examples: int = setting(0, "pairs of the bitext for each translation, the shortest", least=0, most=1000)
    samples: int = setting(
        300, "occurrences of a phrase that are counted, evenly spaced", least=1, most=10**6
    )

    @property
    def extract(self) -> ExtractConfig:
        """Settings of an extractor that finds these phrases."""
        words = MAX_SYMBOLS if self.whole else self.max_words
        return ExtractConfig(
            max_symbols=words, max_span=max(words, 15), max_gaps=2 if self.gaps else 0, samples=self.samples
        )


@dataclass(frozen=True, kw_only=True)
class LexiconSettings(Checked):
    """Which pairs of words are written, and how."""

    format: Literal["tsv", "marian"] = setting(
        "tsv",
        "tsv: source, target, p(target | source), p(source | target); "
        "marian: target, source, p(target | source)",
    )
    reverse: bool = setting(
        False, "the opposite direction: sort and choose by p(source | target), and write that for marian"
    )
    top: int = setting(0, "translations of each word, at most; 0: all", least=0)
    min_prob: float = setting(0.0, "leave out less probable translations", least=0.0, most=1.0)


@dataclass(frozen=True, kw_only=True)
class FrequentSettings:
    """Which sequences of words are frequent, so that an index lists their collocations."""

    num_frequent: int = 100
    num_super_frequent: int = 10  # three sequences are listed if the middle one and another are among these
    min_frequency: int = 1000
    max_length: int = 4
