"""Parses of inputs without language models: made, cut down, and the applications of rules in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiero.core.arrays import Flags, Ids, Ints, offsets_of, read_only
from hiero.core.lattice import Lattice
from hiero.core.symbols import Symbols
from hiero.decoder.config import SearchConfig
from hiero.decoder.parse_kernels import Parse, applications_kernel, parse_kernel, used_cells_kernel
from hiero.features.index import EdgeBatch
from hiero.grammar.assemble import Ranks, unary_order
from hiero.grammar.rules import Grammar


def bundle_heads(parse: Parse) -> Ints:
    """The cell of each bundle."""
    return np.repeat(np.arange(len(parse.cell)), np.diff(parse.first_bundle))


def some_bundles(parse: Parse, kept: Flags) -> Parse:
    """A parse with some of the bundles, and without the cells that have none, which no bundle uses."""
    size = np.bincount(bundle_heads(parse)[kept], minlength=len(parse.cell))
    place = np.cumsum(size > 0) - 1
    return Parse(
        parse.cell[size > 0],
        offsets_of(size[size > 0]),
        parse.rules[kept],
        np.where(parse.tail < 0, -1, place[parse.tail]).astype(np.int32)[kept],
    )


def used_cells(parse: Parse, first_label: int) -> Parse:
    """A parse without cells of parts, the categories from ``first_label`` on, that no other cell uses."""
    used = np.empty(len(parse.cell), np.bool_)
    used_cells_kernel(parse, first_label, used)
    return parse if used.all() else some_bundles(parse, used[bundle_heads(parse)])


def edge_batch(parse: Parse, src: Ids) -> tuple[EdgeBatch, Ints]:
    """Every application of a rule in a parse, and the first of each bundle."""
    first = offsets_of(parse.rules[:, 1])
    size = int(first[-1])
    rule, start, end = (np.empty(size, np.int32) for _ in range(3))
    split = np.empty((size, 4), np.int32)
    applications_kernel(parse, first, rule, start, end, split)
    return EdgeBatch(rule, start, end, split, src), first[:-1]


@dataclass(frozen=True, slots=True)
class SpanParser:
    """Finds where the rules of one input, a sentence or a lattice, apply.

    src         its words, or those of the arcs of a lattice
    first_glue  the first rule of glue, which is not in the trie
    end         where it ends: behind the last word, or the last node of a lattice
    """

    symbols: Symbols
    src: Ids
    grammar: Grammar
    first_glue: int
    ranks: Ranks
    search: SearchConfig
    goal: int
    category: int
    end: int

    def sentence(self) -> Parse:
        """The spans of every category, and the rules that apply there."""
        limit = min(self.search.span_limit, max(len(self.src), 1))
        return self._named(parse_kernel(self.src, self.grammar.trie, *self._parts(), limit))

    def lattice(self, lattice: Lattice) -> tuple[Grammar, Parse]:
        """As ``sentence``; also the grammar with the rules that have features of arcs."""
        from hiero.decoder.lattices import parse_lattice, with_arc_features

        arcs, limit = lattice.word_arcs.arcs, self.search.span_limit
        found = parse_lattice(self.src, arcs, self.grammar.trie, *self._parts(), limit)
        names = self.symbols.names.intern_all(name.encode() for name in lattice.names)
        grammar, parse = with_arc_features(self.grammar, found, names.tolist())
        return grammar, self._named(parse)

    def goal_cell(self, parse: Parse) -> int:
        """The cell of the whole input, -1 if there is none."""
        cell = parse.cell
        found = np.flatnonzero((cell[:, 0] == self.goal) & (cell[:, 1] == 0) & (cell[:, 2] == self.end))
        return int(found[0]) if len(found) else -1

    def _named(self, parse: Parse) -> Parse:
        """A parse by ranks, with labels instead, and without parts of divided rules that nothing uses."""
        if not self.ranks.as_ids:
            parse.cell[:, 0] = self.ranks.label[parse.cell[:, 0]]
        return used_cells(parse, self.ranks.first_part) if self.ranks.num_parts else parse

    def _parts(self) -> tuple[Ids, Ints, Ids]:
        """Categories of the rules, glue, and the order of categories, as the parser takes them."""
        ranks, lhs, goal, category = self.ranks, self.grammar.rules.lhs, self.goal, self.category
        if not ranks.as_ids:
            lhs = read_only(ranks.of_label[lhs])
            goal, category = int(ranks.of_label[goal]), int(ranks.of_label[category])
        # The sort begins at the category below glue, so that a cycle through glue is not cut at glue.
        unary_glue = [(category, goal)] if self.search.glue else []
        order = unary_order(self.grammar.trie, lhs, len(ranks.label), category, unary_glue)
        glue = np.zeros((0, 5), np.int64)
        if self.search.glue:
            both = [goal, goal, category, self.first_glue + 1, 1]
            glue = np.array([[goal, -1, category, self.first_glue, 1], both], np.int64)
        return lhs, glue, order
