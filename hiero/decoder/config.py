"""Settings of the search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from hiero.core.errors import ConfigError, show
from hiero.core.records import Checked, check, setting
from hiero.core.text import InputForm
from hiero.decoder.search import SEARCHES

MOST = 2**31 - 1  # some kernels count in 32 bits
# Words to copy, by names; other patterns are regular expressions.
COPIES = {
    "email": r"[^\s@<>]+@[^\s@<>]+\.[^\s@<>.]+",
    "placeholder": r"@[A-Za-z]\w*@|\{\w*\}|%\w",
    "tag": r"</?[A-Za-z][^<>]*>",
    "url": r"(?:https?|ftp)://\S+|www\.\S+",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig(Checked):
    """The ``search`` section of a configuration; its defaults are Simianer, Riezler and Dyer's (2012)."""

    algorithm: str = setting(
        "coarse_to_fine",
        "search algorithm: cube pruning, with as many pops for every span, or with more for spans of good"
        " translations, which is faster",
        choices=lambda: SEARCHES,
        flag="search",
    )
    span_limit: int = setting(
        15, "longest span of source words that a rule of a grammar covers", least=1, most=MOST
    )
    pop_limit: int = setting(
        200, "candidates popped per span and category; 0: all, which is exact and slow", least=0, most=MOST
    )
    glue: bool = setting(True, "join partial translations left to right, without span limit")
    brackets: bool = setting(
        False, "join adjacent spans in either order, so that a grammar without gaps reorders, as in a BTG"
    )
    pass_through: Literal["all", "oov", "none"] = setting(
        "all", "source words that may be copied to the translation"
    )
    oov: Literal["copy", "drop", "mark"] = setting("copy", "treatment of words without a rule")
    input_format: Literal["auto", "text", "plf", "json"] = setting(
        "auto",
        "text, lattices as PLF, or lattices and sentences as JSON; auto: what a line can only be",
    )
    markup: Literal["off", "exclusive", "inclusive", "constraint", "ignore"] = setting(
        "off",
        "read Moses' markup in sentences (translations, zones, walls): given translations are the only ones "
        "of their words (exclusive), or beside others (inclusive), of which those remain that contain them "
        "(constraint); ignore: leave tags out; off: tags are words",
    )
    copy: list[str] = setting(
        default_factory=list,
        help="copy words that match a regular expression as a whole, or that are a url, email, tag or "
        "placeholder; repeatable",
        metavar="PATTERN",
        repeatable=True,
    )
    kbest: int = setting(
        0,
        "list the K best translations of each sentence; 0: only the best, as plain text",
        least=0,
        most=MOST,
        metavar="K",
    )
    unique: bool = setting(True, "list every string once, with its best derivation")
    goal: str = setting("S", "category of a whole sentence", metavar="LABEL")
    category: str = setting("X", "category of pass-through rules, joined by glue", metavar="LABEL")
    max_edges: int = setting(50_000_000, "limit of edges in an exhaustive search", least=1, most=MOST)

    def __post_init__(self) -> None:
        check(self)
        for pattern in self.copy:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                found = f"found {show(pattern)}, expected a regular expression"
                raise ConfigError(f"copy: {found} ({error})") from None

    @property
    def form(self) -> InputForm:
        """How lines of input are read."""
        return InputForm(self.input_format, self.markup, self.span_limit)


MBR = Literal["none", "kbest", "forest", "consensus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusConfig(Checked):
    """The ``consensus`` section of a configuration: choosing among the translations of a sentence."""

    mbr: MBR = setting(
        "none",
        "choose the translation with the best expected BLEU: sentence BLEU against all others of a list "
        "(kbest), linear BLEU with the n-grams of the forest (forest), or in a list BLEU with the expected "
        "n-gram counts of the forest (consensus)",
    )
    alpha: float = setting(
        1.0, "factor of scores, whose exponentials are the posteriors", above=0, flag="mbr-alpha"
    )
    size: int = setting(
        200, "translations of the list of kbest and consensus", least=1, most=100_000, flag="mbr-size"
    )
    metric: str = setting(
        "lin",
        "sentence BLEU of kbest and consensus: lin, nakov, moses, sacrebleu, ..., as for tuning",
        flag="mbr-metric",
    )
    precision: float = setting(
        0.85,
        "forest: precision of unigrams that is expected of translations",
        above=0,
        most=1,
        flag="mbr-precision",
    )
    ratio: float = setting(
        0.72,
        "forest: ratio of the precisions of n + 1-grams and n-grams",
        above=0,
        most=1,
        flag="mbr-ratio",
    )
    confidence: bool = setting(False, "with --format json: the posterior of each word of the translations")
    beam: float = setting(
        10.0,
        "forest and consensus: leave out derivations whose scores, times the factor, are more than X below "
        "the best",
        least=0,
        flag="mbr-beam",
    )
