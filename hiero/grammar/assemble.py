"""The rules of several grammars under one trie, and the order of categories.

Ids of labels depend on the order of reading and on threads. So that the result of a search does not, the
parser identifies labels by their ranks in the order of their names.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids, Ints, read_only
from hiero.core.symbol_kernels import gap_label
from hiero.core.symbols import Vocabulary
from hiero.grammar.assemble_kernels import offsets_kernel, sizes_kernel
from hiero.grammar.rules import NO_IDS, Grammar, Rules, RuleTable, Trie, frozen, new_rules
from hiero.grammar.trie_kernels import new_trie, order_trie_kernel


class Ranks(NamedTuple):
    """L labels in the order of their names.

    of_label   int32 [L]  rank of each label
    label      int32 [L]  label of each rank
    as_ids     bool       whether ranks and ids are the same
    num_parts  labels without names, of parts of rules, which are the last
    """

    of_label: Ids
    label: Ids
    as_ids: bool
    num_parts: int = 0

    @property
    def first_part(self) -> int:
        """The label of the first part of rules."""
        return len(self.label) - self.num_parts

    def with_parts(self, count: int) -> Ranks:
        """These labels, and those of parts."""
        parts = np.arange(len(self.label), len(self.label) + count, dtype=np.int32)
        of_label, label = (read_only(np.concatenate([ids, parts])) for ids in (self.of_label, self.label))
        return Ranks(of_label, label, self.as_ids, count)


def label_ranks(labels: Vocabulary) -> Ranks:
    """Rank labels, by which gaps enter the trie of a grammar, by their names."""
    entries = labels.entries()
    label = np.array(sorted(range(len(entries)), key=entries.__getitem__), np.int32)
    of_label = np.empty(len(label), np.int32)
    of_label[label] = np.arange(len(label))
    return Ranks(of_label, label, bool((np.diff(label) > 0).all()))


def unary_order(trie: Trie, lhs: Ids, num_labels: int, first: int, more: list[tuple[int, int]]) -> Ids:
    """Sort categories so that unary rules lead from earlier to later ones, except those that close a cycle.

    ``more`` are unary rules outside of the trie, as pairs (child, parent). The sort is a depth-first search
    that starts at ``first``; in a cycle, the rule back to the category entered first is not used.
    """
    parents: list[set[int]] = [set() for _ in range(num_labels)]
    for child, parent in more:
        parents[child].add(parent)
    for node in range(int(trie.first_child[0]), int(trie.first_child[1])):
        if trie.symbol[node] >= 0:
            break
        rules = lhs[trie.first_rule[node] : trie.first_rule[node + 1]]
        parents[gap_label(int(trie.symbol[node]))].update(rules.tolist())
    order: list[int] = []
    state = [0] * num_labels  # 1: entered, 2: done
    for root in (first, *range(num_labels)):
        stack = [root]
        while stack:
            label = stack[-1]
            if state[label] == 0:
                state[label] = 1
                stack += [parent for parent in sorted(parents[label]) if state[parent] == 0]
            else:
                stack.pop()
                if state[label] == 1:
                    state[label] = 2
                    order.append(label)
    return np.array(order[::-1], np.int32)


def build_grammar(
    tables: Sequence[RuleTable],
    num_unindexed: int = 0,
    ranks: Ranks | None = None,
    whole: Sequence[RuleTable] = (),
) -> Grammar:
    """Gather the rules of all tables under one trie.

    The last ``num_unindexed`` rules of the last table follow all others, and are not in the trie. With
    ``ranks``, gaps in the trie have the ranks of their labels instead of the labels. ``whole`` are the same
    rules as read, if some were divided.
    """
    width = _joined_columns(tuple(table.columns for table in (*tables, *whole)))
    tables = [table for table in tables if table.num_rules]
    num_rules = sum(table.num_rules for table in tables)
    num_indexed = num_rules - num_unindexed
    rank = NO_IDS if ranks is None or ranks.as_ids else ranks.of_label
    key, size = np.empty((num_indexed, 2), np.int32), np.empty((num_rules, 4), np.int32)
    # Mostly, several rules share a source side; a smaller table stays in the processor's cache.
    nodes, start = new_trie(num_indexed // 4), 0
    for table in tables:
        stop = start + min(table.num_rules, num_indexed - start)
        if start < stop:
            nodes = table.plant(width.names, rank, nodes, key[start:stop], size[start:stop])
        start += table.num_rules
    if num_unindexed:
        last = tables[-1]
        rows = last.rows[-num_unindexed:]
        sizes_kernel(last.origin, rows, last.ids, width.names, size[num_indexed:])
    symbol, first_child, first_rule, place, offsets = order_trie_kernel(nodes, key, size)
    trie = Trie(read_only(symbol), read_only(first_child), read_only(first_rule))
    rules = _copied(tables, width, offsets, place)
    whole = [table for table in whole if table.num_rules]
    as_read = (
        _copied(whole, width, offsets_kernel(_sizes(whole, width.names), place), place) if whole else None
    )
    return Grammar(rules, trie, width.columns, as_read)


_NO_OFFSETS = np.zeros(1, np.int64)
_NO_RULES = RuleTable(frozen(new_rules((_NO_OFFSETS, _NO_OFFSETS, _NO_OFFSETS, _NO_OFFSETS), 0)), ())


def merge_tables(tables: Sequence[RuleTable]) -> RuleTable:
    """Concatenate tables. A feature that is a column of one table becomes a column of the result."""
    if not tables:
        return _NO_RULES
    if len(tables) == 1:
        return tables[0]
    width = _joined_columns(tuple(table.columns for table in tables))
    size = _sizes(tables, width.names)
    place = np.arange(len(size))
    return RuleTable(_copied(tables, width, offsets_kernel(size, place), place), width.columns)


def _sizes(tables: Sequence[RuleTable], names: Ids) -> Ids:
    """The sizes of the rules of all tables, one after the other."""
    size = np.empty((sum(table.num_rules for table in tables), 4), np.int32)
    start = 0
    for table in tables:
        table.measure(names, size[start:])
        start += table.num_rules
    return size


class _Columns(NamedTuple):
    """The columns of several tables together: as ids, as an array, and as columns of each table, or -1."""

    columns: tuple[int, ...]
    names: Ids
    own: Mapping[tuple[int, ...], Ints]


@functools.lru_cache(maxsize=64)
def _joined_columns(parts: tuple[tuple[int, ...], ...]) -> _Columns:
    columns = tuple(dict.fromkeys(name for part in parts for name in part))
    own = {part: np.array([part.index(n) if n in part else -1 for n in columns], np.int64) for part in parts}
    return _Columns(columns, np.array(columns, np.int32), own)


def _copied(
    tables: Sequence[RuleTable], width: _Columns, offsets: tuple[Ints, Ints, Ints, Ints], place: Ints
) -> Rules:
    """Copy the rules of all tables, one after the other, to these places."""
    out, end = new_rules(offsets, len(width.columns)), 0
    for table in tables:
        start, end = end, end + table.num_rules
        table.copy(width.names, width.own[table.columns], place[start:end], out)
    return frozen(out)
