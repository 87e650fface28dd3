"""Synchronous grammars as arrays.

Rules come from text files, compiled directories, bitext indexes or Python code; the search needs the rules of
one sentence in one trie. Each origin is a ``GrammarSource``, which returns the rules that can match a given
sentence, and ``build_grammar`` builds a trie over these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Floats32, Ids, Ints, offsets_of, read_only, take_rows
from hiero.core.lattice import Arcs
from hiero.grammar.assemble_kernels import IdMaps, copy_rules_kernel, offsets_kernel, sizes_kernel
from hiero.grammar.trie_kernels import GrowingTrie, larger_trie, plant_sources_kernel


class Rules(NamedTuple):
    """R rules as a structure of arrays; all are read-only.

    lhs           int32 [R]      label of the left-hand side
    first_src     int64 [R + 1]  source side of rule r: src[first_src[r]:first_src[r + 1]]
    src           int32          words >= 0; gaps as in core/symbols.py, indices ascending 1, 2 ...
    first_tgt     int64 [R + 1]
    tgt           int32          words, and each gap of the source side exactly once, with its index
    dense         float32 [R, D] one column per feature that most rules have
    first_sparse  int64 [R + 1]  further named features of a rule
    sparse_name   int32          id in Symbols.names
    sparse_value  float32
    first_link    int64 [R + 1]  word alignment of a rule
    link          int16 [., 2]   source and target position, counting gaps as positions
    """

    lhs: Ids
    first_src: Ints
    src: Ids
    first_tgt: Ints
    tgt: Ids
    dense: Floats32
    first_sparse: Ints
    sparse_name: Ids
    sparse_value: Floats32
    first_link: Ints
    link: npt.NDArray[np.int16]


NO_IDS = np.zeros(0, np.int32)
SAME_IDS = IdMaps(NO_IDS, NO_IDS, NO_IDS, NO_IDS)


def take_rules(rules: Rules, order: Ints, ids: IdMaps = SAME_IDS) -> Rules:
    """Copy rules in the given order, with shared ids if the rules have ids of their own."""
    rules = Rules._make(read_only(array) for array in rules)
    rows, place = np.array(order, np.int64), np.arange(len(order))
    size = np.empty((len(rows), 4), np.int32)
    sizes_kernel(rules, rows, ids, NO_IDS, size)
    out = new_rules(offsets_kernel(size, place), rules.dense.shape[1])
    copy_rules_kernel(rules, rows, ids, NO_IDS, np.arange(rules.dense.shape[1]), place, out)
    return frozen(out)


def rule_lists(rules: Rules, rule: int) -> tuple[list[int], list[int], list[list[int]]]:
    """The source side, the target side and the links of one rule."""
    src = rules.src[rules.first_src[rule] : rules.first_src[rule + 1]].tolist()
    tgt = rules.tgt[rules.first_tgt[rule] : rules.first_tgt[rule + 1]].tolist()
    return src, tgt, rules.link[rules.first_link[rule] : rules.first_link[rule + 1]].tolist()


def rules_from_lists(
    lhs: list[int], src: list[list[int]], tgt: list[list[int]], links: list[list[list[int]]]
) -> Rules:
    """Rules without features, from lists."""

    def rows(lists: Sequence[Sequence[Any]], dtype: npt.DTypeLike) -> tuple[Ints, npt.NDArray[Any]]:
        return offsets_of(map(len, lists)), np.array([item for row in lists for item in row], dtype)

    sides = *rows(src, np.int32), *rows(tgt, np.int32)
    first_link, link = rows(links, np.int16)
    return featureless_rules(np.array(lhs, np.int32), *sides, first_link, link.reshape(-1, 2))


def featureless_rules(
    lhs: Ids, first_src: Ints, src: Ids, first_tgt: Ints, tgt: Ids, first_link: Ints, link: npt.NDArray[Any]
) -> Rules:
    """Rules of these sides and links, without features."""
    dense, first_sparse = np.zeros((len(lhs), 0), np.float32), np.zeros(len(lhs) + 1, np.int64)
    none = dense, first_sparse, np.zeros(0, np.int32), np.zeros(0, np.float32)
    return Rules(lhs, first_src, src, first_tgt, tgt, *none, first_link, link)


def new_rules(offsets: tuple[Ints, Ints, Ints, Ints], num_columns: int) -> Rules:
    """Rules to be filled in, with these offsets of source and target sides, sparse features and links."""
    first_src, first_tgt, first_sparse, first_link = offsets
    num_rules, num_sparse = len(first_src) - 1, first_sparse[-1]
    src, tgt = np.empty(first_src[-1], np.int32), np.empty(first_tgt[-1], np.int32)
    dense = np.empty((num_rules, num_columns), np.float32)
    sparse = first_sparse, np.empty(num_sparse, np.int32), np.empty(num_sparse, np.float32)
    links = first_link, np.empty((first_link[-1], 2), np.int16)
    return Rules(np.empty(num_rules, np.int32), first_src, src, first_tgt, tgt, dense, *sparse, *links)


def frozen(rules: Rules) -> Rules:
    """The same new arrays, read-only from now on."""
    for array in rules:
        array.flags.writeable = False
    return rules


class Trie(NamedTuple):
    """Source sides as a trie over T nodes, numbered breadth-first from the root 0; all are read-only.

    Breadth-first numbers make the children of a node consecutive nodes, so no child list is stored.

    symbol       int32 [T]      the symbol that leads to a node; ascending among siblings, so gaps come first
    first_child  int64 [T + 1]  children of v are the nodes first_child[v] ... first_child[v + 1] - 1
    first_rule   int64 [T + 1]  rules whose source side ends at v; ordered by (lhs, order of reading)
    """

    symbol: Ids
    first_child: Ints
    first_rule: Ints


class RuleTable:
    """Rules in any order, and the names (ids in Symbols.names) of their dense columns.

    They may be some ``rows`` of ``origin``, a larger table, which may have ids of its own; ``ids`` are then
    the shared ones. A grammar is built from the origin; ``rules`` are copied from there on first use.
    """

    __slots__ = ("_origin", "_rules", "columns", "ids", "num_rules", "rows")

    def __init__(
        self, rules: Rules, columns: tuple[int, ...], rows: Ints | None = None, ids: IdMaps = SAME_IDS
    ) -> None:
        self._origin: Rules | None = rules
        self.columns, self.ids = columns, ids
        self.rows = np.arange(len(rules.lhs)) if rows is None else rows
        self.num_rules = len(self.rows)
        self._rules: Rules | None = rules if rows is None and ids is SAME_IDS else None

    @property
    def origin(self) -> Rules:
        assert self._origin is not None
        return self._origin

    @property
    def rules(self) -> Rules:
        if self._rules is None:
            self._rules = take_rules(self.origin, self.rows, self.ids)
        return self._rules

    # ---- steps of ``assemble.py``

    def measure(self, names: Ids, out_size: Ids) -> None:
        """The sizes of the rules."""
        sizes_kernel(self.origin, self.rows, self.ids, names, out_size)

    def plant(self, names: Ids, rank: Ids, nodes: GrowingTrie, key: Ids, size: Ids) -> GrowingTrie:
        """Enter the first rules, as many as there are keys, into a trie."""
        done = 0
        while True:
            rows = self.rows[done : len(key)]
            out = key[done:], size[done:]
            done += plant_sources_kernel(self.origin, rows, self.ids, names, rank, nodes, *out)
            if done == len(key):
                return nodes
            nodes = larger_trie(nodes)

    def copy(self, names: Ids, column: Ints, place: Ints, out: Rules) -> None:
        """Copy the rules to their places among others."""
        copy_rules_kernel(self.origin, self.rows, self.ids, names, column, place, out)


def source_words(tables: Sequence[RuleTable]) -> Ids:
    """The distinct words, and gaps, of the source sides in tables of rules."""
    sides = [np.zeros(0, np.int32)]
    for table in tables:
        _, place = take_rows(table.origin.first_src, table.rows)
        own = np.unique(table.origin.src[place])
        sides.append(table.ids.src[own] if len(table.ids.src) else own)
    return np.unique(np.concatenate(sides))


@dataclass(frozen=True, slots=True)
class Grammar:
    """Rules in the order of their trie nodes, so that a node's rules are a contiguous run.

    whole  if rules with more than two gaps were divided, the same rules as read, with all features; a rule
           without a source side is a part of others
    """

    rules: Rules
    trie: Trie
    columns: tuple[int, ...]
    whole: Rules | None = None

    @property
    def as_read(self) -> Grammar:
        """The grammar with ``whole`` for its rules."""
        return self if self.whole is None else Grammar(self.whole, self.trie, self.columns)

    @property
    def num_rules(self) -> int:
        return len(self.rules.lhs)


class GrammarSource(Protocol):
    """An origin of rules."""

    @property
    def stage(self) -> str:
        """The stage that ``rules_for`` is in the statistics of decoding: load or extract."""
        ...

    def feature_names(self) -> frozenset[int] | None:
        """Ids in Symbols.names of all features that a rule may have; None if unknown."""
        ...

    def dense_names(self) -> Sequence[int]:
        """Ids in Symbols.names of the dense features that rules have, as far as they are known."""
        ...

    def rules_for(self, src: Ids, segment: Mapping[str, str], lattice: Arcs | None = None) -> RuleTable:
        """All rules that can match somewhere in a sentence, or along the paths of a lattice.

        ``segment`` holds the attributes of the sentence's ``<seg>`` tag, empty for plain lines. ``src`` has
        the words of the arcs of a ``lattice``.
        """
        ...
