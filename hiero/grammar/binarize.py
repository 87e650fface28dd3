"""Rules with more than two gaps, which searches apply in parts of two gaps each (``binarize_kernels.py``).

Grammars keep rules as they were read. Those that a sentence needs are divided when its grammar is made: so
rules are filtered as a whole, and grammars share parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Flags, Ids, Ints, read_only
from hiero.core.symbol_kernels import LOW_CODE
from hiero.grammar.assemble import merge_tables
from hiero.grammar.binarize_kernels import binarize_kernel, wide_rows_kernel
from hiero.grammar.rules import Rules, RuleTable, featureless_rules, frozen, take_rules

FIRST_WIDE = -1 - LOW_CODE  # codes of gaps after the second are below


class Binarized(NamedTuple):
    """Tables of rules with at most two gaps each.

    tables     as searched: those given without wide rules, then a table of what these were divided into
    whole      the same rules as read; in the last table, wide rules, and rules without symbols for parts
    num_parts  parts, which are the last rules; the labels of their left-hand sides follow all others
    """

    tables: list[RuleTable]
    whole: list[RuleTable]
    num_parts: int


def binarized(tables: Sequence[RuleTable], num_labels: int) -> Binarized | None:
    """Divide the rules with more than two gaps; None if there are none. Rules that cannot be are left out."""
    wide = [wide_rows(table) for table in tables]
    if not any(found.any() for found in wide):
        return None
    narrow = [_some(table, ~found) for table, found in zip(tables, wide, strict=True)]
    merged = merge_tables([_some(table, found) for table, found in zip(tables, wide, strict=True)])
    done, tops, num_parts, parts = binarize_kernel(_read_only(merged.rules), num_labels)
    rules = take_rules(merged.rules, np.flatnonzero(done))
    num_tops = len(rules.lhs)
    lhs = np.concatenate([rules.lhs, np.arange(num_labels, num_labels + num_parts, dtype=np.int32)])
    first_src, src = _joined(tops.first_src, tops.src, num_tops, parts.first_src, parts.src, num_parts)
    first_tgt, tgt = _joined(tops.first_tgt, tops.tgt, num_tops, parts.first_tgt, parts.tgt, num_parts)
    no_links = np.zeros(len(lhs) + 1, np.int64), np.zeros((0, 2), np.int16)
    searched = RuleTable(frozen(featureless_rules(lhs, first_src, src, first_tgt, tgt, *no_links)), ())
    whole = RuleTable(_with_parts(rules, lhs[num_tops:]), merged.columns)
    return Binarized([*narrow, searched], [*narrow, whole], num_parts)


def wide_rows(table: RuleTable) -> Flags:
    """Which rules of a table have more than two gaps."""
    found: Flags = wide_rows_kernel(
        read_only(table.origin.first_src), read_only(table.origin.src), read_only(table.rows)
    )
    return found


def indivisible_rows(rules: Rules) -> Ints:
    """The rules with more than two gaps that cannot be divided into rules with two."""
    wide: Ints = np.flatnonzero(wide_rows(RuleTable(rules, ())))
    if not len(wide):
        return wide
    done, *_ = binarize_kernel(_read_only(take_rules(rules, wide)), 0)
    return np.asarray(wide[~done], np.int64)


def has_wide_gaps(symbols: Ids) -> bool:
    """Whether there are gaps of rules with more than two gaps, after the second, among some symbols."""
    return int(symbols.min(initial=0)) < FIRST_WIDE


def _joined(
    first: Ints, symbol: Ids, count: int, other_first: Ints, other_symbol: Ids, other_count: int
) -> tuple[Ints, Ids]:
    """One side of some rules, followed by that of others."""
    end, other_end = first[count], other_first[other_count]
    offsets = np.concatenate([first[: count + 1], other_first[1 : other_count + 1] + end])
    return offsets, np.concatenate([symbol[:end], other_symbol[:other_end]])


def _with_parts(rules: Rules, labels: Ids) -> Rules:
    """Rules followed by one without symbols, features and links for each part."""
    count = len(labels)
    more = {
        name: np.concatenate([first := getattr(rules, name), np.full(count, first[-1])])
        for name in ("first_src", "first_tgt", "first_sparse", "first_link")
    }
    dense = np.concatenate([rules.dense, np.zeros((count, rules.dense.shape[1]), np.float32)])
    return frozen(rules._replace(lhs=np.concatenate([rules.lhs, labels]), dense=dense, **more))


def _some(table: RuleTable, chosen: Flags) -> RuleTable:
    """Some rules of a table."""
    if chosen.all():
        return table
    return RuleTable(table.origin, table.columns, table.rows[chosen], table.ids)


def _read_only(rules: Rules) -> Rules:
    return Rules._make(read_only(array) for array in rules)
