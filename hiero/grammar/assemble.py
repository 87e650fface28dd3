"""The rules of several grammars under one trie, and the order of categories.

Ids of labels depend on the order of reading and on threads. So that the result of a search does not, the
parser identifies labels by their ranks in the order of their names.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids, Ints, joined_columns, read_only
from hiero.core.symbol_kernels import gap_label
from hiero.core.symbols import Vocabulary
from hiero.grammar.reader import split_features
from hiero.grammar.rules import Grammar, Rules, RuleTable, Trie, take_rules
from hiero.grammar.trie_kernels import grow_trie_kernel, rank_gaps_kernel


class Ranks(NamedTuple):
    """L labels in the order of their names.

    of_label  int32 [L]  rank of each label
    label     int32 [L]  label of each rank
    as_ids    bool       whether ranks and ids are the same
    """

    of_label: Ids
    label: Ids
    as_ids: bool


def label_ranks(labels: Vocabulary) -> Ranks:
    """Rank labels by their names."""
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


EMPTY = Rules(
    lhs=np.zeros(0, np.int32),
    first_src=np.zeros(1, np.int64),
    src=np.zeros(0, np.int32),
    first_tgt=np.zeros(1, np.int64),
    tgt=np.zeros(0, np.int32),
    dense=np.zeros((0, 0), np.float32),
    first_sparse=np.zeros(1, np.int64),
    sparse_name=np.zeros(0, np.int32),
    sparse_value=np.zeros(0, np.float32),
    first_link=np.zeros(1, np.int64),
    link=np.zeros((0, 2), np.int16),
)


def build_grammar(
    tables: Sequence[RuleTable], unindexed: RuleTable | None = None, ranks: Ranks | None = None
) -> Grammar:
    """Build one trie over the rules of all tables; rules of ``unindexed`` follow, and are not in the trie.

    With ``ranks``, gaps in the trie have the ranks of their labels instead of the labels.
    """
    table = merge_tables(tables if unindexed is None else [*tables, unindexed])
    num_indexed = table.num_rules - (0 if unindexed is None else unindexed.num_rules)
    trie, order = _build_trie(table.rules, num_indexed, None if ranks is None or ranks.as_ids else ranks)
    return Grammar(take_rules(table.rules, order), trie, table.columns)


def _build_trie(rules: Rules, num_indexed: int, ranks: Ranks | None) -> tuple[Trie, Ints]:
    """The trie of the first ``num_indexed`` source sides, and the order of all rules, the others last."""
    first_src = read_only(rules.first_src[: num_indexed + 1])
    src, lhs = rules.src[: first_src[-1]], rules.lhs[:num_indexed]
    if ranks is not None:
        src, lhs = src.copy(), ranks.of_label[lhs]
        rank_gaps_kernel(src, ranks.of_label)
    most = len(src) + 1
    slots = 16
    while slots < 2 * most:
        slots *= 2
    parent, symbol, depth = (np.empty(most, np.int32) for _ in range(3))
    node = np.empty(num_indexed, np.int32)
    slot = np.full(slots, -1, np.int32)
    num_nodes = grow_trie_kernel(first_src, read_only(src), slot, parent, symbol, depth, node)
    parent, symbol, depth = parent[:num_nodes], symbol[:num_nodes], depth[:num_nodes]
    number = _breadth_first(parent, symbol, depth)
    first_child = np.ones(num_nodes + 1, np.int64)
    np.cumsum(np.bincount(number[parent[1:]], minlength=num_nodes), out=first_child[1:])
    first_child[1:] += 1
    first_rule = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(np.bincount(number[node], minlength=num_nodes), out=first_rule[1:])
    symbol_of = np.empty(num_nodes, np.int32)
    symbol_of[number] = symbol
    order = np.argsort((number[node] << 32) + lhs, kind="stable")
    order = np.concatenate([order, np.arange(num_indexed, len(rules.lhs))])
    return Trie(read_only(symbol_of), read_only(first_child), read_only(first_rule)), order


def _breadth_first(parent: Ids, symbol: Ids, depth: Ids) -> Ints:
    """Number nodes level by level, by parent and then by symbol."""
    number = np.zeros(len(parent), np.int64)
    by_depth = np.argsort(depth, kind="stable")
    level_end = np.cumsum(np.bincount(depth))
    for begin, end in itertools.pairwise(level_end):
        level = by_depth[begin:end]
        key = (number[parent[level]] << 32) + (symbol[level].astype(np.int64) + (1 << 31))
        number[level[np.argsort(key)]] = np.arange(begin, end)
    return number


def merge_tables(tables: Sequence[RuleTable]) -> RuleTable:
    """Concatenate tables. A feature that is a column of one table becomes a column of the result."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return RuleTable(EMPTY, ())
    columns = tuple(dict.fromkeys(name for table in tables for name in table.columns))
    arrays = joined_columns(Rules._fields, [_with_columns(table, columns) for table in tables])
    return RuleTable(Rules(*map(read_only, arrays)), columns)


def _with_columns(table: RuleTable, columns: tuple[int, ...]) -> Rules:
    rules = table.rules
    if not len(rules.sparse_name) or not np.isin(rules.sparse_name, columns).any():
        if table.columns == columns:
            return rules
        dense = np.zeros((table.num_rules, len(columns)), np.float32)
        dense[:, [columns.index(name) for name in table.columns]] = rules.dense
        return rules._replace(dense=read_only(dense))
    # Merge dense and sparse features into one list per rule, and split them by the new columns.
    num_rules, width = rules.dense.shape
    num_sparse = np.diff(rules.first_sparse)
    first = np.zeros(num_rules + 1, np.int64)
    np.cumsum(num_sparse + width, out=first[1:])
    name = np.empty(first[-1], np.int32)
    value = np.empty(first[-1], np.float32)
    dense_place = first[:-1, None] + np.arange(width)
    name[dense_place], value[dense_place] = table.columns, rules.dense
    sparse_place = np.arange(len(rules.sparse_name)) + np.repeat(
        first[:-1] + width - rules.first_sparse[:-1], num_sparse
    )
    name[sparse_place], value[sparse_place] = rules.sparse_name, rules.sparse_value
    _, dense, first_sparse, sparse_name, sparse_value = split_features(
        first, name, value, np.array(columns, np.int32)
    )
    return rules._replace(
        dense=dense, first_sparse=first_sparse, sparse_name=sparse_name, sparse_value=sparse_value
    )
