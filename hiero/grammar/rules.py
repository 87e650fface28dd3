"""Synchronous grammars as arrays.

Rules come from text files, compiled directories, bitext indexes or Python code; the search needs the rules of
one sentence in one trie. Each origin is a ``GrammarSource``, which returns the rules that can match a given
sentence, and ``build_grammar`` builds a trie over these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Floats32, Ids, Ints, read_only, take_rows


class Rules(NamedTuple):
    """R rules as a structure of arrays; all are read-only.

    lhs           int32 [R]      label of the left-hand side
    first_src     int64 [R + 1]  source side of rule r: src[first_src[r]:first_src[r + 1]]
    src           int32          words >= 0; gaps as in core/symbols.py, indices ascending 1, 2
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


def take_rules(rules: Rules, order: Ints) -> Rules:
    """Select rules, in the given order."""
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


@dataclass(frozen=True, slots=True)
class RuleTable:
    """Rules in any order, and the names (ids in Symbols.names) of their dense columns."""

    rules: Rules
    columns: tuple[int, ...]

    @property
    def num_rules(self) -> int:
        return len(self.rules.lhs)


@dataclass(frozen=True, slots=True)
class Grammar:
    """Rules in the order of their trie nodes, so that a node's rules are a contiguous run."""

    rules: Rules
    trie: Trie
    columns: tuple[int, ...]

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

    def rules_for(self, src: Ids, segment: Mapping[str, str]) -> RuleTable:
        """All rules that can match somewhere in a sentence.

        ``segment`` holds the attributes of the sentence's ``<seg>`` tag, empty for plain lines.
        """
        ...
