"""The search by brute force: every span, every split, every rule, every derivation.

A rule is (lhs, src, tgt, score) with strings for words and categories; a gap is a string like ``[X,1]``. A
cell is (category, start, end), a derivation (rule, cell, parts), where part k fills gap k + 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Cell = tuple[str, int, int]


class Rule(NamedTuple):
    lhs: str
    src: tuple[str, ...]
    tgt: tuple[str, ...]
    score: float = 0.0


class Bundle(NamedTuple):
    """One source side over one span with its gaps in given cells, and all rules that share it."""

    src: tuple[str, ...]
    tails: tuple[Cell, ...]
    rules: tuple[Rule, ...]


class Derivation(NamedTuple):
    rule: Rule
    cell: Cell
    parts: tuple[Derivation, ...]


def is_gap(symbol: str) -> bool:
    return symbol.startswith("[")


def gap_label(symbol: str) -> str:
    return symbol[1 : symbol.index(",")]


def gap_index(symbol: str) -> int:
    return int(symbol[symbol.index(",") + 1 : -1])


def gaps(side: Sequence[str]) -> list[str]:
    return [symbol for symbol in side if is_gap(symbol)]


@dataclass(frozen=True)
class World:
    """A sentence with its grammar.

    glue   rules without a span limit, which apply only from the beginning of the sentence
    order  categories; a rule that is only one gap leads from an earlier to a later one, or is idle
    """

    words: tuple[str, ...]
    rules: tuple[Rule, ...]
    glue: tuple[Rule, ...]
    order: tuple[str, ...]
    span_limit: int

    @cached_property
    def found(self) -> dict[Cell, list[Bundle]]:
        return {}


def label_order(rules: Sequence[Rule], labels: Sequence[str], first: str) -> tuple[str, ...]:
    """Categories so that unary rules lead from earlier to later ones, except those that close a cycle.

    Depth first from one category, then from the others; the last of several successors goes first.
    """
    done: list[str] = []
    entered: set[str] = set()

    def visit(label: str) -> None:
        if label not in entered:
            entered.add(label)
            for parent in reversed(labels):
                if any(
                    rule.lhs == parent and len(rule.src) == 1 and gaps(rule.src) == [f"[{label},1]"]
                    for rule in rules
                ):
                    visit(parent)
            done.append(label)

    for root in (first, *labels):
        visit(root)
    return tuple(reversed(done))


def fillings(words: Sequence[str], src: Sequence[str], start: int, end: int) -> list[list[tuple[int, int]]]:
    """All ways to match a source side with words[start:end]: the spans of its gaps."""
    if not src:
        return [[]] if start == end else []
    if not is_gap(src[0]):
        fits = start < end and words[start] == src[0]
        return fillings(words, src[1:], start + 1, end) if fits else []
    return [
        [(start, middle), *others]
        for middle in range(start + 1, end + 1)
        for others in fillings(words, src[1:], middle, end)
    ]


def bundles(world: World, cell: Cell) -> list[Bundle]:
    """All bundles of a cell, those of the grammar before those of glue; a cell without any does not exist."""
    if cell not in world.found:
        world.found[cell] = [
            *_bundles(world, cell, world.rules if cell[2] - cell[1] <= world.span_limit else ()),
            *_bundles(world, cell, world.glue if cell[1] == 0 else ()),
        ]
    return world.found[cell]


def _bundles(world: World, cell: Cell, rules: Sequence[Rule]) -> list[Bundle]:
    label, start, end = cell
    by_place: dict[tuple[tuple[str, ...], tuple[Cell, ...]], list[Rule]] = {}
    for rule in rules:
        if rule.lhs != label:
            continue
        labels = [gap_label(gap) for gap in gaps(rule.src)]
        if len(rule.src) == 1 and labels and world.order.index(labels[0]) >= world.order.index(label):
            continue  # idle
        for spans in fillings(world.words, rule.src, start, end):
            tails = tuple((tail, *span) for tail, span in zip(labels, spans, strict=True))
            if all(bundles(world, tail) for tail in tails):
                by_place.setdefault((rule.src, tails), []).append(rule)
    return [Bundle(src, tails, tuple(found)) for (src, tails), found in by_place.items()]


def parse(world: World) -> dict[Cell, list[Bundle]]:
    """Every cell of the sentence that exists, with its bundles."""
    size = len(world.words)
    cells = [(label, i, j) for label in world.order for i in range(size) for j in range(i + 1, size + 1)]
    return {cell: bundles(world, cell) for cell in cells if bundles(world, cell)}


def count(world: World, cell: Cell) -> int:
    """The number of derivations of a cell."""
    return sum(
        len(bundle.rules) * math.prod(count(world, tail) for tail in bundle.tails)
        for bundle in bundles(world, cell)
    )


def derivations(world: World, cell: Cell) -> list[Derivation]:
    """Every derivation of a cell."""
    return [
        Derivation(rule, cell, parts)
        for bundle in bundles(world, cell)
        for rule in bundle.rules
        for parts in itertools.product(*(derivations(world, tail) for tail in bundle.tails))
    ]


def translation(derivation: Derivation) -> tuple[str, ...]:
    """The target words."""
    found: list[str] = []
    for symbol in derivation.rule.tgt:
        found += translation(derivation.parts[gap_index(symbol) - 1]) if is_gap(symbol) else [symbol]
    return tuple(found)


def steps(derivation: Derivation) -> list[Derivation]:
    """The derivation and all its parts, in pre-order, a rule's first gap before its second."""
    return [derivation, *(step for part in derivation.parts for step in steps(part))]


def rule_score(derivation: Derivation) -> float:
    """The scores of all rules, without language models."""
    return sum(step.rule.score for step in steps(derivation))


def features(derivation: Derivation) -> dict[str, float]:
    """The sizes of spans as ``hiero.features.span_size`` names them."""
    total: dict[str, float] = {}
    for step in steps(derivation):
        label, start, end = step.cell
        names = [f"SpanSize_{label}_{_bucket(end - start)}"]
        for number, (gap, part) in enumerate(zip(gaps(step.rule.src), step.parts, strict=True), 1):
            size = part.cell[2] - part.cell[1]
            names.append(f"GapSize_{gap_label(gap)}{number}_{_bucket(size)}")
        for name in names:
            total[name] = total.get(name, 0.0) + 1.0
    return total


def _bucket(size: int) -> str:
    for first, last in ((6, 7), (8, 10), (11, 15)):
        if first <= size <= last:
            return f"{first}-{last}"
    return str(size) if size < 6 else "16+"


class Forest(NamedTuple):
    """For every cell, its bundles: the estimate of the best rule, and the tails, which are earlier cells."""

    bundles: Sequence[Sequence[tuple[float, tuple[int, ...]]]]

    def derivations(self, cell: int) -> list[tuple[float, frozenset[int]]]:
        """The estimate of every derivation of a cell, and the cells in it."""
        found = []
        for estimate, tails in self.bundles[cell]:
            for parts in itertools.product(*map(self.derivations, tails)):
                total = estimate + sum(part for part, _ in parts)
                found.append((total, frozenset([cell]).union(*(cells for _, cells in parts))))
        return found


def losses(forest: Forest, goal: int) -> list[float]:
    """How much worse than the best derivation of the goal the best one through each cell is."""
    found = forest.derivations(goal)
    best = max(score for score, _ in found)
    through: dict[int, float] = {}
    for score, cells in found:
        for cell in cells:
            through[cell] = max(through.get(cell, -math.inf), score)
    return [best - through.get(cell, -math.inf) for cell in range(len(forest.bundles))]


# ---- bigrams


class Kept(NamedTuple):
    """Words of bigrams across rules: all, and those that may be the first or the last word in a gap."""

    known: frozenset[str]
    first: frozenset[str]
    last: frozenset[str]


def kept_words(ngrams: Mapping[tuple[str, ...], tuple[float, float]]) -> Kept:
    """Those of a language model, given by n-grams with log10 probability and back-off."""
    known = frozenset(word for words in ngrams for word in words) - {"<unk>"}
    ends = frozenset(word for words in ngrams for word in words[1:])
    begins = frozenset(word for words in ngrams for word in words[:-1])
    one_word = {words[0]: backoff for words, (_, backoff) in ngrams.items() if len(words) == 1}
    backs_off = frozenset(word for word, backoff in one_word.items() if backoff != 0)
    return Kept(known, ends & known, (begins | backs_off) & known)


def edge_words(derivation: Derivation, kept: Kept) -> tuple[str, str] | None:
    """The first and the last word of a part, "" for one that is not kept; None if it has no words."""
    words = translation(derivation)
    if not words:
        return None
    return words[0] if words[0] in kept.first else "", words[-1] if words[-1] in kept.last else ""


def bigrams_of_edge(derivation: Derivation, kept: Kept) -> list[tuple[str, str]]:
    """Bigrams at the edges of the gaps of the topmost rule."""
    pieces: list[
        tuple[str, str, bool]
    ] = []  # first word, last word, whether of a gap; a gap without words is none
    places: list[int] = []
    for place, symbol in enumerate(derivation.rule.tgt):
        if is_gap(symbol):
            words = edge_words(derivation.parts[gap_index(symbol) - 1], kept)
            if words is not None:
                pieces.append((*words, True))
                places.append(place)
        else:
            word = symbol if symbol in kept.known else ""
            pieces.append((word, word, False))
            places.append(place)
    return [
        (one[1], two[0])
        for (i, one), (j, two) in itertools.pairwise(zip(places, pieces, strict=True))
        if (one[2] or two[2] or j > i + 1) and one[1] and two[0]
    ]


def bigrams(derivation: Derivation, kept: Kept) -> list[tuple[str, str]]:
    """Bigrams of words that stand together in a rule, and at the edges of gaps."""
    found = []
    for step in steps(derivation):
        found += [pair for pair in itertools.pairwise(step.rule.tgt) if not any(map(is_gap, pair))]
        found += bigrams_of_edge(step, kept)
    return found


def applications(
    cells: list[Cell], bundles: Mapping[Cell, list[Bundle]]
) -> list[tuple[int, int, tuple[int, ...]]]:
    """For each application of a rule, cell by cell: its start and end, and those of its gaps, or -1."""
    found = []
    for cell in cells:
        for bundle in bundles[cell]:
            spans = [place for tail in bundle.tails for place in tail[1:]]
            found += [(*cell[1:], (*spans, *[-1] * (4 - len(spans))))] * len(bundle.rules)
    return found


def used_cells(cells: list[Cell], bundles: Mapping[Cell, list[Bundle]], parts: frozenset[str]) -> set[Cell]:
    """The cells to keep: those of other categories than parts, and all that their bundles lead to."""
    used = {cell for cell in cells if cell[0] not in parts}
    while True:
        more = {tail for cell in used for bundle in bundles[cell] for tail in bundle.tails} - used
        if not more:
            return used
        used |= more
