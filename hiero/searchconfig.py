"""How to search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.errors import ConfigError

MOST = 2**31 - 1  # for kernels, which count in 32 bits here and there


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """The ``search`` section of a configuration; its defaults are Simianer, Riezler and Dyer's (2012)."""

    span_limit: int = 15  # longest span of source words that a rule of a grammar may cover
    pop_limit: int = 200  # candidates popped per span and category; 0: all of them, which is exact and slow
    glue: bool = True  # glue rules that join partial translations from left to right, without span limit
    pass_through: Literal["all", "oov", "none"] = "all"  # words that may be translated by themselves
    oov: Literal["copy", "drop", "mark"] = "copy"  # how a word that no rule covers passes through
    kbest: int = 0  # translations to list of each sentence; 0: the best alone, as plain text
    unique: bool = True  # list each string once, with its best derivation
    goal: str = "S"  # category of a whole sentence
    category: str = "X"  # category that glue joins and passed-through words have
    max_edges: int = 50_000_000  # an exhaustive search gives up on a sentence with more

    def __post_init__(self) -> None:
        for name, least in (("span_limit", 1), ("pop_limit", 0), ("kbest", 0), ("max_edges", 1)):
            if not least <= getattr(self, name) <= MOST:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected {least} to {MOST}")
        for name, choices in (("pass_through", ("all", "oov", "none")), ("oov", ("copy", "drop", "mark"))):
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"{name}: found {getattr(self, name)!r}, expected one of {', '.join(choices)}"
                )
