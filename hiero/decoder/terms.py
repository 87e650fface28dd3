"""Given translations of terms: tables of them, and where they stand in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hiero.core.errors import FormatError, HieroError
from hiero.core.given import GivenTerm, Term, Words, WrongTerm, check_longest, make_term, terms_of_pairs
from hiero.core.text import read_lines, utf8_line

COLUMNS = "the words of a term, a tab, and its translation (and perhaps a tab and a weight)"

Span = tuple[int, int]


class Terms:
    """Terms by their source words. Of equal ones, the last gives the weight.

    hard  whether their rules are the only ones over their words
    """

    def __init__(self, terms: Iterable[Term], *, hard: bool = False) -> None:
        self.hard = hard
        self._weights: dict[Words, dict[Words, float]] = {}
        for term in terms:
            self._weights.setdefault(term.source, {})[term.target] = term.weight
        self.longest = max(self._weights, key=len, default=())
        self._sizes: dict[str, list[int]] = {}  # of the terms with a first word
        for source in self._weights:
            sizes = self._sizes.setdefault(source[0], [])
            if len(source) not in sizes:
                sizes.append(len(source))

    def __len__(self) -> int:
        return sum(map(len, self._weights.values()))

    def __contains__(self, source: object) -> bool:
        return source in self._weights

    def translations(self, source: Words) -> Mapping[Words, float]:
        """The translations of the source words of a term, with their weights."""
        return self._weights[source]

    def spans(self, words: Sequence[str]) -> list[Span]:
        """All spans of words that are a term."""
        return [
            (start, start + size)
            for start, word in enumerate(words)
            for size in self._sizes.get(word, ())
            if start + size <= len(words) and tuple(words[start : start + size]) in self._weights
        ]


def disjoint(spans: Iterable[Span], taken: Iterable[Span] = ()) -> list[Span]:
    """Spans that overlap none of those taken, nor each other: the longest first, then those further left."""
    found = list(taken)
    chosen: list[Span] = []
    for start, end in sorted(set(spans), key=lambda span: (span[0] - span[1], span[0])):
        if all(end <= first or start >= last for first, last in found):
            found.append((start, end))
            chosen.append((start, end))
    return sorted(chosen)


def read_terms(path: str | Path) -> list[Term]:
    """Read terms, a line each, as ``COLUMNS`` says; empty lines are skipped."""
    terms = []
    for number, line in enumerate(read_lines(path, COLUMNS), 1):
        text = utf8_line(path, number, line)
        if not text.strip():
            continue
        fields = text.split("\t")
        if not 2 <= len(fields) <= 3:
            found = "no tab" if len(fields) == 1 else f"{len(fields) - 1} tabs"
            raise FormatError(path, number, found=found, expected=COLUMNS)
        try:
            terms.append(make_term(*fields))
        except WrongTerm as error:
            raise FormatError(path, number, found=error.found, expected=error.expected) from None
    return terms


def terms_of(given: str | Path | Terms | Iterable[GivenTerm], *, hard: bool, span_limit: int) -> Terms:
    """Terms from a file, or from pairs of source words and their translation, with or without a weight."""
    if isinstance(given, Terms):
        made = given
    elif isinstance(given, str | Path):
        made = Terms(read_terms(given), hard=hard)
    else:
        made = Terms(terms_of_pairs(given), hard=hard)
    try:
        check_longest(made.longest, span_limit)
    except HieroError as error:
        if isinstance(given, str | Path):
            raise HieroError(f"{given}: {error}") from None
        raise
    return made
