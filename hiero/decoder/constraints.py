"""Constraints on the derivations of a sentence: given translations, zones and walls.

Given translations are rules of their own, first in the trie. Everything else is a choice among the
applications of rules that the parser found: ``restricted`` leaves the others out before the search begins.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Flags, Ints, offsets_of
from hiero.core.errors import HieroError
from hiero.core.given import MARKUP, TERM, Given, MarkedSpan, Wall, Words, check_longest
from hiero.core.symbol_kernels import gap_index
from hiero.core.symbols import Symbols
from hiero.core.text import Segment
from hiero.decoder.config import COPIES, SearchConfig
from hiero.decoder.parse import bundle_heads, some_bundles
from hiero.decoder.parse_kernels import Parse
from hiero.decoder.terms import Span, Terms, disjoint
from hiero.features.index import EdgeBatch
from hiero.grammar.rules import Rules, RuleTable, frozen, rules_from_lists


class Row(NamedTuple):
    """A rule of a given translation. ``places``: the only spans that it applies to; None: all."""

    source: Words
    target: Words
    feature: str
    value: float
    places: frozenset[Span] | None = None


class Only(NamedTuple):
    """Words that other rules do not translate, unless all of them are within one of their gaps.

    rows    the rules of given translations that may
    within  target words; also rules that have all words of the span, and one of these in sequence
    """

    start: int
    end: int
    rows: tuple[int, ...]
    within: tuple[Words, ...] = ()


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints of a sentence. Rows of one source side are consecutive."""

    words: Words
    rows: tuple[Row, ...] = ()
    only: tuple[Only, ...] = ()
    zones: tuple[Span, ...] = ()
    walls: tuple[Wall, ...] = ()

    @property
    def restricts(self) -> bool:
        """Whether rules do not apply that would otherwise."""
        return bool(self.only or self.zones or self.walls or any(row.places for row in self.rows))

    def table(self, symbols: Symbols, category: str) -> RuleTable:
        """The rules; each word of one side is aligned to each of the other."""

        def ids(words: Iterable[str]) -> list[int]:
            return [symbols.words.intern(word.encode(errors="replace")) for word in words]

        rules = rules_from_lists(
            [symbols.labels.intern(category.encode())] * len(self.rows),
            [ids(row.source) for row in self.rows],
            [ids(row.target) for row in self.rows],
            [[[i, j] for i in range(len(row.source)) for j in range(len(row.target))] for row in self.rows],
        )
        names = list(dict.fromkeys(row.feature for row in self.rows))
        dense = np.array(
            [[row.value * (row.feature == name) for name in names] for row in self.rows], np.float32
        )
        columns = tuple(symbols.names.intern(name.encode()) for name in names)
        return RuleTable(frozen(rules._replace(dense=dense)), columns)


def constraints_of(segment: Segment, terms: Terms | None, search: SearchConfig) -> Constraints | None:
    """The constraints of a sentence, with the terms of a model beside its own; None without any."""
    if segment.lattice is not None:
        raise HieroError("terms: found a lattice, expected a sentence (its words are compared with terms)")
    words, given = segment.words, segment.given or Given()
    check_longest(given.longest, search.span_limit)
    tables = [table for table in (Terms(given.terms), terms) if table]
    hard = given.hard if given.hard is not None else terms is not None and terms.hard
    found: dict[Span, Mapping[Words, float]] = {}
    for table in reversed(tables):  # those of the sentence replace others of the same words
        found |= {span: table.translations(words[slice(*span)]) for span in table.spans(words)}
    strict = disjoint((one.start, one.end) for one in given.spans if one.mode != "inclusive")
    chosen = disjoint(found, strict) if hard else list(found)
    copied = [(at, at + 1) for at in _copied(words, tuple(search.copy)) if (at, at + 1) not in found]
    copied = disjoint(copied, [*strict, *(chosen if hard else ())])
    rows = _rows(words, {span: found[span] for span in chosen}, copied, given.spans)
    number = {row: at for at, row in enumerate(rows)}
    only = []
    for span in sorted({*strict, *copied, *(chosen if hard else ())}):
        source = words[slice(*span)]
        own = [number[row] for row in rows if row.places is not None and span in row.places]
        if span not in strict:
            own += [number[row] for row in rows if row.source == source and row.places is None]
        marked = [one for one in given.spans if (one.start, one.end) == span and one.mode != "inclusive"]
        within: tuple[Words, ...] = ()
        if marked and all(one.mode == "constraint" for one in marked):
            within = tuple(target for one in marked for target, _ in one.targets)
        only.append(Only(span[0], span[1], tuple(own), within))
    if not (rows or given.zones or given.walls):
        return None
    return Constraints(words, rows, tuple(only), given.zones, given.walls)


def _rows(
    words: Words,
    terms: Mapping[Span, Mapping[Words, float]],
    copied: Sequence[Span],
    marked: Sequence[MarkedSpan],
) -> tuple[Row, ...]:
    """The rules of given translations, source by source."""
    by_source: dict[Words, list[Row]] = {}
    for span, translations in terms.items():
        source = words[slice(*span)]
        by_source.setdefault(source, [Row(source, *one) for one in _with_feature(translations)])
    for span in copied:
        word = words[slice(*span)]
        by_source.setdefault(word, [Row(word, word, TERM, 1.0)])
    places: dict[Row, set[Span]] = {}
    for one in marked:
        source = words[one.start : one.end]
        for target, value in one.targets:
            places.setdefault(Row(source, target, MARKUP, value), set()).add((one.start, one.end))
    for row, spans in places.items():
        by_source.setdefault(row.source, []).append(row._replace(places=frozenset(spans)))
    return tuple(row for rows in by_source.values() for row in rows)


def _with_feature(translations: Mapping[Words, float]) -> list[tuple[Words, str, float]]:
    return [(target, TERM, weight) for target, weight in translations.items()]


def _copied(words: Sequence[str], patterns: tuple[str, ...]) -> list[int]:
    """Places of words that one of the patterns describes."""
    compiled = _compiled(patterns)
    return [at for at, word in enumerate(words) if any(one.fullmatch(word) for one in compiled)]


@functools.lru_cache(maxsize=16)
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(COPIES.get(pattern, pattern)) for pattern in patterns)


# ---- applications of rules


def restrict(
    constraints: Constraints,
    parse: Parse,
    batch: EdgeBatch,
    rules: Rules,
    first_glue: int,
    category: int,
    symbols: Symbols,
) -> tuple[Parse, Parse]:
    """A parse with the given translations where they belong, and one that also meets all constraints.

    batch       the applications of the parse
    first_glue  the first rule of glue, which joins parts of zones and passes walls
    category    of given translations
    """
    row = _row_of_rule(constraints, parse, len(rules.lhs), category)[batch.rule]
    placed = np.ones(len(row), bool)
    for number, one in enumerate(constraints.rows):
        if one.places is not None:
            there = [(batch.start == start) & (batch.end == end) for start, end in one.places]
            placed &= (row != number) | np.logical_or.reduce(there)
    kept = placed.copy()
    for only in constraints.only:
        kept &= _allowed(only, batch, row, rules, symbols)
    if constraints.zones or constraints.walls:
        shape, glue = _Shape(rules, batch), batch.rule >= first_glue
        for zone in constraints.zones:
            kept &= glue | shape.keeps_zone(*zone)
        for wall in constraints.walls:
            kept &= shape.keeps_wall(wall)
    first = parse if placed.all() else restricted(parse, placed)
    return first, first if (kept == placed).all() else restricted(parse, kept)


def _row_of_rule(constraints: Constraints, parse: Parse, num_rules: int, category: int) -> Ints:
    """The row of each rule that is a given translation, -1 of others."""
    row = np.full(num_rules, -1, np.int64)
    label, start, end = parse.cell[bundle_heads(parse)].T
    plain = (parse.tail < 0).all(axis=1) & (label == category)
    at = 0
    while at < len(constraints.rows):
        source = constraints.rows[at].source
        size = sum(one.source == source for one in constraints.rows[at:])
        place = _place(constraints.words, source)
        bundle = np.flatnonzero(plain & (start == place) & (end == place + len(source)))[0]
        rule = int(parse.rules[bundle, 0])  # they come first
        row[rule : rule + size] = np.arange(at, at + size)
        at += size
    return row


def _place(words: Words, part: Words) -> int:
    return next(at for at in range(len(words)) if words[at : at + len(part)] == part)


def _allowed(only: Only, batch: EdgeBatch, row: Ints, rules: Rules, symbols: Symbols) -> Flags:
    """Applications of rules that are among those of some words, or do not translate them."""
    start, end = only.start, only.end
    own = np.isin(row, only.rows) & (batch.start == start) & (batch.end == end)
    low, high = batch.split[:, ::2], batch.split[:, 1::2]
    in_gap = ((low >= 0) & (low <= start) & (high >= end)).any(axis=1)
    allowed: Flags = own | in_gap | (batch.end <= start) | (batch.start >= end)
    if only.within:
        whole = (batch.start <= start) & (batch.end >= end) & ((high <= start) | (low >= end)).all(axis=1)
        find = symbols.words.find
        targets = [[find(word.encode(errors="replace")) for word in one] for one in only.within]
        used = np.unique(batch.rule[whole & (row < 0)]).tolist()
        fits = [rule for rule in used if _yields(rules, rule, targets)]
        allowed |= whole & np.isin(batch.rule, fits)
    return allowed


def _yields(rules: Rules, rule: int, targets: Sequence[list[int]]) -> bool:
    """Whether a rule has one of some sequences of target words."""
    tgt = rules.tgt[rules.first_tgt[rule] : rules.first_tgt[rule + 1]].tolist()
    return any(tgt[at : at + len(one)] == one for one in targets for at in range(len(tgt) - len(one) + 1))


class _Shape:
    """Applications of rules by the places of what they have: gaps, and words.

    gap          [P, 2]  place of each gap on the target side, -1 for none
    first, last  [P]     places of the first and the last target word; -1 for none
    """

    def __init__(self, rules: Rules, batch: EdgeBatch) -> None:
        self.batch = batch
        self.low, self.high = batch.split[:, ::2], batch.split[:, 1::2]
        of_rule = np.repeat(np.arange(len(rules.lhs)), np.diff(rules.first_tgt))
        place = np.arange(len(rules.tgt)) - rules.first_tgt[of_rule]
        is_gap = rules.tgt < 0
        symbols, number = np.unique(rules.tgt[is_gap], return_inverse=True)
        index = np.array([int(gap_index(int(symbol))) for symbol in symbols], np.int64)[number]
        gap = np.full((len(rules.lhs), 2), -1, np.int64)
        gap[of_rule[is_gap], index - 1] = place[is_gap]
        last = np.full(len(rules.lhs), -1, np.int64)
        np.maximum.at(last, of_rule[~is_gap], place[~is_gap])
        first = np.full(len(rules.lhs), np.iinfo(np.int64).max)
        np.minimum.at(first, of_rule[~is_gap], place[~is_gap])
        self.gap, self.first, self.last = gap[batch.rule], first[batch.rule], last[batch.rule]

    def _common(self, start: int, end: int) -> tuple[Ints, Ints]:
        """Source words of each application among some words: those of the rule itself, and of each gap."""
        gaps = np.maximum(np.minimum(self.high, end) - np.maximum(self.low, start), 0)
        whole = np.minimum(self.batch.end, end) - np.maximum(self.batch.start, start)
        return np.maximum(whole, 0) - gaps.sum(axis=1), gaps

    def keeps_zone(self, start: int, end: int) -> Flags:
        """Whether the words of a zone stay together on the target side.

        That is so if they are within one gap, or if the application is within the zone or has no words of
        it. Else they are gaps and words of the rule, with nothing else between them on the target side; the
        words of a rule are all in the zone, or none is.
        """
        batch, gap = self.batch, self.gap
        own, gaps = self._common(start, end)
        has_gap = self.low >= 0
        inside = has_gap & (self.low >= start) & (self.high <= end)
        around = has_gap & (self.low <= start) & (self.high >= end)
        size = batch.end - batch.start - np.where(has_gap, self.high - self.low, 0).sum(axis=1)
        words_in = own > 0
        unmixed = ~words_in | (own == size)
        cut = (gaps > 0) & ~inside & ~around
        with_words = words_in & (self.last >= 0)
        large = np.iinfo(np.int64).max
        first = np.minimum(np.where(inside, gap, large).min(axis=1), np.where(with_words, self.first, large))
        last = np.maximum(np.where(inside, gap, -1).max(axis=1), np.where(with_words, self.last, -1))
        between = (has_gap & ~inside & (gap > first[:, None]) & (gap < last[:, None])).any(axis=1)
        between |= ~words_in & inside.all(axis=1) & (last - first > 1)
        together = (batch.start <= start) & (batch.end >= end) & ~cut.any(axis=1) & unmixed & ~between
        apart = (batch.end <= start) | (batch.start >= end)
        within = (batch.start >= start) & (batch.end <= end)
        kept: Flags = apart | within | around.any(axis=1) | together
        return kept

    def keeps_wall(self, wall: Wall) -> Flags:
        """Whether what is left of a wall precedes what is right of it, with a gap across it in between."""
        (left, left_gaps), (right, right_gaps) = (
            self._common(wall.start, wall.place),
            self._common(wall.place, wall.end),
        )
        # -1 left, 0 across, 1 right
        side = (right_gaps > 0).astype(np.int8) - (left_gaps > 0)
        counts = (right_gaps > 0) | (left_gaps > 0)
        one, two = self.gap.T
        wrong = (left > 0) & (right > 0)
        wrong |= counts.all(axis=1) & (side[:, 0] != side[:, 1]) & ((side[:, 0] < side[:, 1]) != (one < two))
        has_words = (self.last >= 0)[:, None]
        after = self.last[:, None] > self.gap
        wrong |= (counts & has_words & (left > 0)[:, None] & (side > -1) & after).any(axis=1)
        before = self.first[:, None] < self.gap
        wrong |= (counts & has_words & (right > 0)[:, None] & (side < 1) & before).any(axis=1)
        kept: Flags = ~wrong
        return kept


def restricted(parse: Parse, kept: Flags) -> Parse:
    """A parse with some of its applications only, and without those that are left without tails.

    kept  bool [P]  of each application, bundle by bundle

    Rules of a bundle that are no longer consecutive are several bundles.
    """
    size = parse.rules[:, 1]
    bundle = np.repeat(np.arange(len(size)), size)
    follows = np.zeros(len(kept), bool)
    follows[1:] = kept[:-1] & (bundle[1:] == bundle[:-1])
    begin = np.flatnonzero(kept & ~follows)
    run = np.cumsum(kept & ~follows)[kept] - 1
    first_of_bundle = offsets_of(size)[:-1]
    of = bundle[begin]
    rules = np.empty((len(begin), 2), np.int64)
    rules[:, 0] = parse.rules[of, 0] + begin - first_of_bundle[of]
    rules[:, 1] = np.bincount(run, minlength=len(begin))
    num_cells, head, tail = len(parse.cell), bundle_heads(parse)[of], parse.tail[of]
    none, left = tail < 0, np.ones(len(begin), bool)
    while True:
        filled = np.bincount(head[left], minlength=num_cells)
        fits = (none | (filled[tail] > 0)).all(axis=1)
        if not (left & ~fits).any():
            break
        left &= fits
    first_bundle = offsets_of(np.bincount(head, minlength=num_cells))
    return some_bundles(Parse(parse.cell, first_bundle, rules, tail), left)
