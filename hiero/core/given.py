"""What a sentence brings along for its translation: terms, translations of places, zones and walls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hiero.core.errors import HieroError, show
from hiero.core.text import split_words

LARGEST = 3e38  # of weights: features are in single precision
TERM = "Term"  # feature: the weights of the terms used, each 1 unless given
MARKUP = "Markup"  # feature: log10 of the probability of a translation in markup

GivenTerm = tuple[str, str] | tuple[str, str, float]
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """Source words with one of their translations. ``weight`` is the value of the feature ``Term``."""

    source: Words
    target: Words
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """Translations of the words ``start`` ... ``end - 1`` of a sentence.

    targets  each with the value of the feature ``Markup``
    mode     ``exclusive``, ``inclusive`` or ``constraint``: which other rules may translate these words
    """

    start: int
    end: int
    targets: tuple[tuple[Words, float], ...]
    mode: str


class Wall(NamedTuple):
    """Words ``start`` ... ``place - 1`` are translated before words ``place`` ... ``end - 1``."""

    start: int
    place: int
    end: int


@dataclass(frozen=True, slots=True)
class Given:
    """What a sentence brings along.

    terms  of its words, wherever they stand
    hard   whether all terms of the sentence are hard; None: as the model has it
    zones  words that are translated as a block: the first, and the one after the last
    """

    terms: tuple[Term, ...] = ()
    hard: bool | None = None
    spans: tuple[MarkedSpan, ...] = ()
    zones: tuple[tuple[int, int], ...] = ()
    walls: tuple[Wall, ...] = ()

    @property
    def num_translations(self) -> int:
        """Terms, and translations of places."""
        return len(self.terms) + sum(len(span.targets) for span in self.spans)

    @property
    def longest(self) -> Words | int:
        """The longest source side of a term, or the number of words of a longer place."""
        words = max((term.source for term in self.terms), key=len, default=())
        size = max((span.end - span.start for span in self.spans), default=0)
        return size if size > len(words) else words


class WrongTerm(Exception):
    """A mistake in a term; the caller adds the place."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found)
        self.found, self.expected = found, expected


def make_term(source: str, target: str, weight: str | float = 1.0) -> Term:
    """A term of two texts and perhaps a number; ``WrongTerm`` if it is none."""
    words, translation = split_words(source), split_words(target)
    for side, name in ((words, "source words"), (translation, "translation")):
        if not side:
            raise WrongTerm(f"no {name}", "source words and their translation")
    try:
        number = math.nan if isinstance(weight, bool) else float(weight)
    except (TypeError, ValueError):
        number = math.nan
    if not abs(number) <= LARGEST:  # nor NaN
        raise WrongTerm(f"the weight {show(str(weight))}", "a number")
    return Term(words, translation, number)


def terms_of_pairs(pairs: Any) -> tuple[Term, ...]:
    """Terms of pairs of source words and their translation, with or without a weight."""
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        found = show(pairs) if isinstance(pairs, str | bytes) else f"a value of type {type(pairs).__name__}"
        raise HieroError(f"terms: found {found}, expected a list of pairs")
    return tuple(map(_term_of_pair, pairs))


def _term_of_pair(one: Any) -> Term:
    pair = not isinstance(one, str) and isinstance(one, Sequence) and len(one) in (2, 3)
    if not pair or not all(isinstance(side, str) for side in one[:2]):
        shown = show(one) if isinstance(one, str) else _short(one)
        raise HieroError(f"terms: found {shown}, expected source words, translation, and perhaps a weight")
    try:
        return make_term(*one)
    except WrongTerm as error:
        raise HieroError(f"terms: found {error.found} in {_short(one)}, expected {error.expected}") from None


def _short(value: Any, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def check_longest(longest: Words | int, most: int) -> None:
    """Refuse terms and places of more words than rules can cover."""
    expected = f"expected at most {most} (span_limit of the search)"
    if isinstance(longest, int):
        if longest > most:
            raise HieroError(f"markup: found a translation of {longest} words, {expected}")
    elif len(longest) > most:
        raise HieroError(f"terms: found {len(longest)} words in {show(' '.join(longest))}, {expected}")
