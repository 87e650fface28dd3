"""Settings of the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.core.records import Checked, setting
from hiero.decoder.search import SEARCHES

MOST = 2**31 - 1  # some kernels count in 32 bits


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
