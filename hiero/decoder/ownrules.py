# mypy: allow-untyped-calls
"""Pass-through and glue rules, which are in no grammar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import Symbols, gap, read_only
from hiero.decoder.config import SearchConfig
from hiero.grammar.rules import Rules, RuleTable
from hiero.grammar.sources import merge_tables

Ints = npt.NDArray[np.int32]


def pass_through_rules(
    symbols: Symbols, src: Ints, tables: Sequence[RuleTable], search: SearchConfig, category: int
) -> RuleTable:
    """Make rules that translate words by themselves, or unknown words according to ``search.oov``.

    A word is unknown if it is in no source side of the given tables.
    """
    words = np.unique(src)
    known = np.zeros(0, np.int32)
    if search.pass_through != "all" or search.oov != "copy":
        known = np.unique(np.concatenate([known, *(table.rules.src for table in tables)]))
    if search.pass_through == "none":
        words = words[:0]
    elif search.pass_through == "oov":
        words = np.setdiff1d(words, known)
    targets: list[list[int]] = [[word] for word in words.tolist()]
    if search.oov != "copy":
        for i in np.flatnonzero(~np.isin(words, known)).tolist():
            marked = symbols.words.entry(int(words[i])) + b"_OOV"
            targets[i] = [] if search.oov == "drop" else [symbols.words.intern(marked)]
    name = symbols.names.intern(b"PassThrough")
    return _table(category, [[word] for word in words.tolist()], targets, name, linked=True)


def glue_rules(symbols: Symbols, goal: int, category: int) -> RuleTable:
    """Make the rules goal -> category and goal -> goal category; the second has the feature ``Glue``."""
    name = symbols.names.intern(b"Glue")
    alone, both = [gap(category, 1)], [gap(goal, 1), gap(category, 2)]
    return merge_tables([_table(goal, [alone], [alone], name, value=0.0), _table(goal, [both], [both], name)])


def _table(
    lhs: int,
    sources: list[list[int]],
    targets: list[list[int]],
    name: int,
    *,
    value: float = 1.0,
    linked: bool = False,
) -> RuleTable:
    """Rules of one category with one feature; if ``linked``, the first words of both sides are aligned."""
    num_rules = len(sources)
    has_link = np.array([linked and bool(target) for target in targets], np.bool_)
    first_src, src = _sides(sources)
    first_tgt, tgt = _sides(targets)
    rules = Rules(
        lhs=np.full(num_rules, lhs, np.int32),
        first_src=first_src,
        src=src,
        first_tgt=first_tgt,
        tgt=tgt,
        dense=np.full((num_rules, 1), value, np.float32),
        first_sparse=np.zeros(num_rules + 1, np.int64),
        sparse_name=np.zeros(0, np.int32),
        sparse_value=np.zeros(0, np.float32),
        first_link=np.concatenate([[0], np.cumsum(has_link)]),
        link=np.zeros((int(has_link.sum()), 2), np.int16),
    )
    return RuleTable(Rules._make(read_only(array) for array in rules), (name,))


def _sides(sides: list[list[int]]) -> tuple[npt.NDArray[np.int64], Ints]:
    first = np.cumsum([0, *map(len, sides)], dtype=np.int64)
    return first, np.array([symbol for side in sides for symbol in side], np.int32)
