"""Given translations of terms: further rules for a sentence, or the only ones over their words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import offsets_of
from hiero.core.errors import FormatError, HieroError, show
from hiero.core.symbols import Symbols
from hiero.core.text import Segment, read_lines, split_words, utf8_line
from hiero.decoder.config import SearchConfig
from hiero.decoder.parse_kernels import Parse
from hiero.grammar.rules import RuleTable, frozen, rules_from_lists

TERM = "Term"  # feature: the weights of the terms used, each 1 unless given
LARGEST = float(np.finfo(np.float32).max)  # features are in single precision
COLUMNS = "the words of a term, a tab, and its translation (and perhaps a tab and a weight)"

GivenTerm = tuple[str, str] | tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class Term:
    """Source words with one of their translations. ``weight`` is the value of the feature ``Term``."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weight: float = 1.0


class TermSpan(NamedTuple):
    """Source words that stand for a term, and its number of translations."""

    start: int
    end: int
    num_rules: int


@dataclass(frozen=True, slots=True)
class FoundTerms:
    """The terms of a sentence.

    tables  their rules, which come first in the trie of the sentence
    only    where they are the only rules
    """

    tables: tuple[RuleTable, ...] = ()
    only: tuple[TermSpan, ...] = ()


class Terms:
    """Terms by their source words. Of equal ones, the last gives the weight.

    hard  whether their rules are the only ones over their words
    """

    def __init__(self, terms: Iterable[Term], *, hard: bool = False) -> None:
        self.hard = hard
        self._weights: dict[tuple[str, ...], dict[tuple[str, ...], float]] = {}
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

    def spans(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """All spans of words that are a term."""
        return [
            (start, start + size)
            for start, word in enumerate(words)
            for size in self._sizes.get(word, ())
            if start + size <= len(words) and tuple(words[start : start + size]) in self._weights
        ]

    def chosen(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """Spans of terms that do not overlap: the longest first, then those further left."""
        free = [True] * len(words)
        found = []
        for start, end in sorted(self.spans(words), key=lambda span: (span[0] - span[1], span[0])):
            if all(free[start:end]):
                free[start:end] = [False] * (end - start)
                found.append((start, end))
        return sorted(found)

    def found(self, segment: Segment, symbols: Symbols, search: SearchConfig) -> FoundTerms:
        """The rules of the terms of a sentence, and where they apply alone."""
        if segment.lattice is not None:
            raise HieroError(
                "terms: found a lattice, expected a sentence (its words are compared with terms)"
            )
        words = segment.words
        spans = self.chosen(words) if self.hard else self.spans(words)
        if not spans:
            return FoundTerms()
        sources = dict.fromkeys(tuple(words[start:end]) for start, end in spans)
        pairs = [(src, tgt, weight) for src in sources for tgt, weight in self._weights[src].items()]
        only = (TermSpan(*span, len(self._weights[tuple(words[slice(*span)])])) for span in spans)
        return FoundTerms((_table(pairs, symbols, search.category),), tuple(only) if self.hard else ())


def _table(
    pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...], float]], symbols: Symbols, category: str
) -> RuleTable:
    """Rules of terms; each word of one side is aligned to each of the other."""

    def ids(words: Iterable[str]) -> list[int]:
        return [symbols.words.intern(word.encode(errors="replace")) for word in words]

    rules = rules_from_lists(
        [symbols.labels.intern(category.encode())] * len(pairs),
        [ids(source) for source, _, _ in pairs],
        [ids(target) for _, target, _ in pairs],
        [[[i, j] for i in range(len(source)) for j in range(len(target))] for source, target, _ in pairs],
    )
    dense = np.array([[weight] for *_, weight in pairs], np.float32)
    return RuleTable(frozen(rules._replace(dense=dense)), (symbols.names.intern(TERM.encode()),))


def only_terms(parse: Parse, spans: Sequence[TermSpan], category: int) -> Parse:
    """A parse without the applications of other rules that touch the words of some terms.

    What remains has each term within one gap, or is disjoint from it, or is a rule of the term itself; these
    come first in their bundle.
    """
    num_cells = len(parse.cell)
    head = np.repeat(np.arange(num_cells), np.diff(parse.first_bundle))
    label, start, end = parse.cell[head].T
    tail, none = parse.tail, parse.tail < 0
    low, high = (np.where(none, 0, parse.cell[tail, column]) for column in (1, 2))
    kept, rules = np.ones(len(head), bool), parse.rules.copy()
    for first, last, num_rules in spans:
        own = (start == first) & (end == last) & (label == category) & none.all(axis=1)
        in_gap = ((low <= first) & (high >= last)).any(axis=1)
        kept &= own | in_gap | (end <= first) | (start >= last)
        rules[own, 1] = num_rules
    while True:
        size = np.bincount(head[kept], minlength=num_cells)
        fits = (none | (size[tail] > 0)).all(axis=1)
        if not (kept & ~fits).any():
            break
        kept &= fits
    place = np.cumsum(size > 0) - 1
    return Parse(
        parse.cell[size > 0],
        offsets_of(size[size > 0]),
        rules[kept],
        np.where(none, -1, place[tail]).astype(np.int32)[kept],
    )


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
            terms.append(_term(*fields))
        except _WrongTerm as error:
            raise FormatError(path, number, found=error.found, expected=error.expected) from None
    return terms


def terms_of(given: str | Path | Terms | Iterable[GivenTerm], *, hard: bool, span_limit: int) -> Terms:
    """Terms from a file, or from pairs of source words and their translation, with or without a weight."""
    if isinstance(given, Terms):
        made = given
    elif isinstance(given, str | Path):
        made = Terms(read_terms(given), hard=hard)
    else:
        made = Terms(map(_given, given), hard=hard)
    if len(made.longest) > span_limit:
        words = show(" ".join(made.longest))
        found, most = f"{len(made.longest)} words in {words}", f"{span_limit} (span_limit of the search)"
        if isinstance(given, str | Path):
            raise FormatError(given, 0, found=f"a term with {found}", expected=f"at most {most}")
        raise HieroError(f"terms: found {found}, expected at most {most}")
    return made


class _WrongTerm(Exception):
    """A mistake in a term; the caller adds the place."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found)
        self.found, self.expected = found, expected


def _term(source: str, target: str, weight: str | float = 1.0) -> Term:
    words, translation = split_words(source), split_words(target)
    for side, name in ((words, "source words"), (translation, "translation")):
        if not side:
            raise _WrongTerm(f"no {name}", COLUMNS)
    try:
        number = float(weight)
    except (TypeError, ValueError):
        number = math.nan
    if not abs(number) <= LARGEST:  # nor NaN
        raise _WrongTerm(f"the weight {show(str(weight))}", "a number")
    return Term(words, translation, number)


def _given(one: GivenTerm) -> Term:
    pair = not isinstance(one, str) and isinstance(one, Sequence) and len(one) in (2, 3)
    if not pair or not all(isinstance(side, str) for side in one[:2]):
        raise HieroError(f"terms: found {one!r}, expected source words, translation, and perhaps a weight")
    try:
        return _term(*one)
    except _WrongTerm as error:
        raise HieroError(f"terms: found {error.found} in {one!r}, expected {error.expected}") from None
