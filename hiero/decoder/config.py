"""Settings of the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.core.errors import ConfigError

MOST = 2**31 - 1  # some kernels count in 32 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """The ``search`` section of a configuration; its defaults are Simianer, Riezler and Dyer's (2012)."""

    span_limit: int = 15  # longest span of source words that a rule of a grammar may cover
    pop_limit: int = 200  # candidates popped per span and category; 0: all of them, which is exact and slow
    glue: bool = True  # glue rules that join partial translations from left to right, without span limit
    pass_through: Literal["all", "oov", "none"] = "all"  # words that may be translated by themselves
    oov: Literal["copy", "drop", "mark"] = "copy"  # translation of a word that is in no rule
    kbest: int = 0  # number of translations per sentence; 0: only the best, as plain text
    unique: bool = True  # list each string once, with its best derivation
    goal: str = "S"  # category of a whole sentence
    category: str = "X"  # category of pass-through rules, joined by glue
    max_edges: int = 50_000_000  # an exhaustive search with more fails

    def __post_init__(self) -> None:
        for name, least in (("span_limit", 1), ("pop_limit", 0), ("kbest", 0), ("max_edges", 1)):
            if not least <= getattr(self, name) <= MOST:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected {least} to {MOST}")
        for name, choices in (("pass_through", ("all", "oov", "none")), ("oov", ("copy", "drop", "mark"))):
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"{name}: found {getattr(self, name)!r}, expected one of {', '.join(choices)}"
                )
