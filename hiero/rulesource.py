# mypy: allow-untyped-calls
"""Where rules come from, and how they get under a trie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hiero.formats.table import joined_offsets, split_features
from hiero.grammar import Grammar, Rules, RuleTable, Trie
from hiero.kernels.trie import grow_trie_kernel
from hiero.symbols import read_only


def build_grammar(tables: Sequence[RuleTable]) -> Grammar:
    """All rules of some tables, in their order, under one trie."""
    table = merge_tables(tables)
    trie, order = _plant(table.rules)
    return Grammar(take_rules(table.rules, order), trie, table.columns)


def _plant(rules: Rules) -> tuple[Trie, npt.NDArray[np.int64]]:
    """The trie of the source sides, and the order of the rules along it."""
    most = len(rules.src) + 1
    slots = 16
    while slots < 2 * most:
        slots *= 2
    parent, symbol, depth = (np.empty(most, np.int32) for _ in range(3))
    node = np.empty(len(rules.lhs), np.int32)
    slot = np.full(slots, -1, np.int32)
    num_nodes = grow_trie_kernel(rules.first_src, rules.src, slot, parent, symbol, depth, node)
    parent, symbol, depth = parent[:num_nodes], symbol[:num_nodes], depth[:num_nodes]
    number = _breadth_first(parent, symbol, depth)
    first_child = np.ones(num_nodes + 1, np.int64)
    np.cumsum(np.bincount(number[parent[1:]], minlength=num_nodes), out=first_child[1:])
    first_child[1:] += 1
    first_rule = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(np.bincount(number[node], minlength=num_nodes), out=first_rule[1:])
    symbol_of = np.empty(num_nodes, np.int32)
    symbol_of[number] = symbol
    order = np.argsort((number[node] << 32) + rules.lhs, kind="stable")
    return Trie(read_only(symbol_of), read_only(first_child), read_only(first_rule)), order


def _breadth_first(
    parent: npt.NDArray[np.int32], symbol: npt.NDArray[np.int32], depth: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """New numbers for nodes: level by level, by parent and then by symbol."""
    number = np.zeros(len(parent), np.int64)
    by_depth = np.argsort(depth, kind="stable")
    level_end = np.cumsum(np.bincount(depth))
    for begin, end in zip(level_end[:-1], level_end[1:], strict=True):
        level = by_depth[begin:end]
        key = (number[parent[level]] << 32) + (symbol[level].astype(np.int64) + (1 << 31))
        number[level[np.argsort(key)]] = np.arange(begin, end)
    return number


def take_rows(
    first: npt.NDArray[np.int64], order: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """CSR rows in another order: their new offsets, and the old place of every item."""
    length = np.diff(first)[order]
    new_first = np.zeros(len(order) + 1, np.int64)
    np.cumsum(length, out=new_first[1:])
    place = np.arange(new_first[-1]) + np.repeat(first[:-1][order] - new_first[:-1], length)
    return new_first, place


def take_rules(rules: Rules, order: npt.NDArray[np.int64]) -> Rules:
    """Some rules, in the order asked for."""
    first_src, src_place = take_rows(rules.first_src, order)
    first_tgt, tgt_place = take_rows(rules.first_tgt, order)
    first_sparse, sparse_place = take_rows(rules.first_sparse, order)
    first_link, link_place = take_rows(rules.first_link, order)
    return Rules(
        lhs=read_only(rules.lhs[order]),
        first_src=read_only(first_src),
        src=read_only(rules.src[src_place]),
        first_tgt=read_only(first_tgt),
        tgt=read_only(rules.tgt[tgt_place]),
        dense=read_only(rules.dense[order]),
        first_sparse=read_only(first_sparse),
        sparse_name=read_only(rules.sparse_name[sparse_place]),
        sparse_value=read_only(rules.sparse_value[sparse_place]),
        first_link=read_only(first_link),
        link=read_only(rules.link[link_place]),
    )


def merge_tables(tables: Sequence[RuleTable]) -> RuleTable:
    """The rules of some tables one after the other. A name that is a column anywhere is one for all."""
    if len(tables) == 1:
        return tables[0]
    columns = tuple(dict.fromkeys(name for table in tables for name in table.columns))
    parts = [_with_columns(table, columns) for table in tables]
    rules = Rules(
        *(
            (joined_offsets if field.startswith("first_") else np.concatenate)(
                [getattr(part, field) for part in parts]
            )
            if parts
            else EMPTY[k]
            for k, field in enumerate(Rules._fields)
        )
    )
    return RuleTable(Rules(*(read_only(array) for array in rules)), columns)


def _with_columns(table: RuleTable, columns: tuple[int, ...]) -> Rules:
    rules = table.rules
    if table.columns == columns and not np.isin(rules.sparse_name, columns).any():
        return rules
    # Back to one list of features per rule, dense ones first, and apart again.
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
