"""Sparse features: their kinds and keys, the table that numbers them, and the protocols for new features.

A feature that a template reads off a rule is known by its *key*, three integers ``(kind, a, b)``:

    kind              a                        b
    NAME              id in Symbols.names      0
    RULE_ID           the whole rule, as a sequence (see below)
    SOURCE_BIGRAM     symbol                   the next one
    TARGET_BIGRAM     symbol                   the next one
    SHAPE             ten bits                 0
    WORD_PAIR         source word              target word it is linked to
    DELETION          source word              0
    INSERTION         target word              0
    INSERTION_PAIR    source word              unlinked target word
    BIGRAM            target word              the next one, of the same rule or not

Symbols are words and gaps as in ``core/symbols.py``; on the source side gaps are bare (index 0). Index 3,
which no gap has, makes the codes of the rule's boundaries. A rule id is the sequence ``lhs, source side with
bare gaps, SEPARATOR, target side with gaps of label 0``: the order of the source gaps gives the labels. In
Python a key is the tuple ``(kind, a, b)`` or ``(RULE_ID, *sequence)``. Features are equal if their keys are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from hiero.core.arrays import (
    Floats,
    Ids,
    grown,
    read_only,
)
from hiero.core.hash_kernels import table_size
from hiero.features.index_kernels import (
    NAME,
    RULE_ID,
    FeatureTable,
    find_keys_kernel,
    intern_keys_kernel,
    rebuild_slots_kernel,
)
from hiero.features.rows import FeatureRows
from hiero.features.template_kernels import (
    BIGRAM,
    DELETION,
    INSERTION,
    INSERTION_PAIR,
    SHAPE,
    SOURCE_BIGRAM,
    TARGET_BIGRAM,
    WORD_PAIR,
)
from hiero.grammar.rules import Rules

if TYPE_CHECKING:
    from hiero.features.user import RuleBatch


Key = tuple[int, ...]


class KeyPart(Enum):
    """The contents of a or b in a key, or of a whole rule id. Symbols may be combined, other parts not."""

    WORD = auto()
    SOURCE = auto()  # a symbol of a source side: a word, a bare gap, or a boundary of the rule
    TARGET = auto()  # a symbol of a target side: a word, a gap with its index, or a boundary of the rule
    NAME = auto()
    RULE = auto()
    SHAPE = auto()

    @property
    def is_symbol(self) -> bool:
        return self in (KeyPart.WORD, KeyPart.SOURCE, KeyPart.TARGET)


class KeyKind(NamedTuple):
    """A kind of features: how their keys are written as names, and what is in them.

    prefix     of their names; no name of another kind begins with it
    parts      of their keys: one, where b is 0, or two
    separator  between the names of two parts: ``_`` or ``:``
    """

    prefix: bytes
    parts: tuple[KeyPart, ...]
    separator: bytes = b""

    @property
    def has_symbols(self) -> bool:
        """Whether a, and b, are symbols; a rule id is a sequence of them instead."""
        return self.parts[0].is_symbol


# Kinds by their numbers, 0, 1, ... A new template of rules is a row here (its names, files of weights and
# cdec's spelling follow), a part of room_kernel and keys_kernel, and a row of TEMPLATES in feature_set.py.
KINDS = {
    NAME: KeyKind(b"", (KeyPart.NAME,)),
    RULE_ID: KeyKind(b"R:", (KeyPart.RULE,)),
    SOURCE_BIGRAM: KeyKind(b"RBS:", (KeyPart.SOURCE, KeyPart.SOURCE), b"_"),
    TARGET_BIGRAM: KeyKind(b"RBT:", (KeyPart.TARGET, KeyPart.TARGET), b"_"),
    SHAPE: KeyKind(b"Shape_S", (KeyPart.SHAPE,)),
    WORD_PAIR: KeyKind(b"LT:", (KeyPart.WORD, KeyPart.WORD), b":"),
    DELETION: KeyKind(b"LD:", (KeyPart.WORD,)),
    INSERTION: KeyKind(b"LI:", (KeyPart.WORD,)),
    INSERTION_PAIR: KeyKind(b"IP:", (KeyPart.WORD, KeyPart.WORD), b":"),
    BIGRAM: KeyKind(b"B:", (KeyPart.WORD, KeyPart.WORD), b"_"),
}


# ---- the index


def pack_keys(keys: Sequence[Key]) -> tuple[Ids, Ids]:
    """Keys as rows (kind, a, b) and the sequences of the rule ids among them."""
    rows: list[tuple[int, ...]] = []
    sequence: list[int] = []
    for key in keys:
        if key[0] == RULE_ID:
            rows.append((RULE_ID, len(sequence), len(key) - 1))
            sequence.extend(key[1:])
        else:
            rows.append(key)
    return read_only(np.array(rows, np.int32).reshape(-1, 3)), read_only(np.array(sequence, np.int32))


class FeatureIndex:
    """Features numbered from 0 in the order in which they are first seen; grows, never shrinks.

    ``intern...`` may be called from several threads. ``table`` is a view: it must not be read by one thread
    while another one interns.
    """

    def __init__(self) -> None:
        slot, key = np.full(64, -1, np.int64), np.empty((32, 3), np.int32)
        self._table = FeatureTable(slot, key, np.empty(64, np.int32), np.zeros(2, np.int64))
        self._of_name, self._num_noted = np.zeros(0, np.int32), 0  # feature of each name, -1 for none
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return int(self._table.size[0])

    @property
    def table(self) -> FeatureTable:
        """The features numbered so far, read-only."""
        return FeatureTable._make(read_only(array) for array in self._table)

    def key(self, feature: int) -> Key:
        kind, a, b = self._table.key[feature].tolist()
        return (RULE_ID, *self._table.pool[a : a + b].tolist()) if kind == RULE_ID else (kind, a, b)

    def all_keys(self) -> list[Key]:
        """All keys, in the order of their numbers."""
        pool = self._table.pool[: self._table.size[1]].tolist()
        rows = self._table.key[: len(self)].tolist()
        return [(RULE_ID, *pool[a : a + b]) if kind == RULE_ID else (kind, a, b) for kind, a, b in rows]

    def find(self, key: Key) -> int:
        """The number of a feature, or -1."""
        return int(self.find_all([key])[0])

    def find_all(self, keys: Sequence[Key]) -> Ids:
        rows, sequence = pack_keys(keys)
        ids = np.empty(len(rows), np.int32)
        with self._lock:
            find_keys_kernel(self.table, rows, sequence, ids)
        return ids

    def find_names(self, names: Ids) -> Ids:
        """The numbers of named features, by ids in Symbols.names; -1 for those that have none."""
        with self._lock:
            noted, self._num_noted = self._num_noted, len(self)
            rows = self._table.key[noted : self._num_noted]
            named = np.flatnonzero(rows[:, 0] == NAME)
            largest = max(int(names.max(initial=-1)), int(rows[named, 1].max(initial=-1)))
            missing = largest + 1 - len(self._of_name)
            if missing > 0:
                self._of_name = np.concatenate([self._of_name, np.full(missing, -1, np.int32)])
            self._of_name[rows[named, 1]] = noted + named
            return self._of_name[names]

    def intern(self, key: Key) -> int:
        return int(self.intern_all([key])[0])

    def intern_all(self, keys: Sequence[Key]) -> Ids:
        rows, sequence = pack_keys(keys)
        ids = np.empty(len(rows), np.int32)
        with self._lock:
            intern_keys_kernel(self.reserve(len(rows), len(sequence)), rows, sequence, ids)
        return ids

    def locked(self) -> threading.RLock:
        """The lock to hold around ``reserve`` and the kernel that fills the reserved space."""
        return self._lock

    def reserve(self, num_features: int, num_symbols: int) -> FeatureTable:
        """The table, writable, with room for so many more features and pool entries."""
        slot, key, pool, size = self._table
        if size[0] + num_features > 2**31 - 2 or size[1] + num_symbols > 2**31 - 1:
            raise OverflowError("more than 2^31 features or symbols of rule ids")
        if size[0] + num_features > len(key):
            key = grown(key, int(size[0]) + num_features)
        if size[1] + num_symbols > len(pool):
            pool = grown(pool, int(size[1]) + num_symbols)
        if len(slot) < 2 * len(key):
            slot = np.full(table_size(len(key)), -1, np.int64)
            rebuild_slots_kernel(key, pool, int(size[0]), slot)
        self._table = FeatureTable(slot, key, pool, size)
        return self._table


# ---- features in Python


@runtime_checkable
class RuleFeature(Protocol):
    """Features of rules alone; ``hiero.rule_feature`` makes one from a Python function."""

    @property
    def name(self) -> str:
        """The name in configurations."""
        ...

    def rows(self, batch: RuleBatch) -> FeatureRows:
        """One row per rule of the batch; ids in Symbols.names, at most once in a row.

        Must depend on nothing but the rule: results are cached, and each rule is passed only once.
        """
        ...


class EdgeBatch(NamedTuple):
    """P applications of rules to spans of one sentence, before the search builds target sides.

    rule   int32 [P]
    start  int32 [P]     the rule covers the source words start ... end - 1
    end    int32 [P]
    split  int32 [P, 4]  start and end of the spans of gap 1 and gap 2; -1 where the rule has no such gap
    src    int32 [n]     the source sentence
    """

    rule: Ids
    start: Ids
    end: Ids
    split: Ids
    src: Ids


@runtime_checkable
class EdgeFeature(Protocol):
    """Features of a rule application: of the rule, its span and splits, and the source sentence.

    The target side is not available. ``rows`` is called once a sentence before the search, for all
    applications, and again for those in a derivation whose features are requested; results must agree.
    """

    @property
    def name(self) -> str:
        """The name in configurations."""
        ...

    def names(self) -> Sequence[str]:
        """The names known in advance; more may depend on the input."""
        ...

    def rows(self, batch: EdgeBatch, rules: Rules) -> FeatureRows:
        """One row per application; ids in Symbols.names, at most once in a row."""
        ...


@runtime_checkable
class ScoringFeature(EdgeFeature, Protocol):
    """An ``EdgeFeature`` that weighs itself, faster than by its rows; all its names are known before."""

    def scores(self, batch: EdgeBatch, rules: Rules, name_weights: Floats) -> Floats:
        """The dot product of each row with the weights, by id in Symbols.names."""
        ...


def prefixes_of(feature: EdgeFeature) -> tuple[str, ...]:
    """The beginnings of all names of a built-in feature: its attribute ``prefixes``; empty for others."""
    prefixes: tuple[str, ...] = getattr(feature, "prefixes", ())
    return prefixes


def has_all_names(feature: EdgeFeature) -> bool:
    """Whether no input adds to the names of a feature: it has a true attribute ``has_all_names``."""
    return bool(getattr(feature, "has_all_names", False))


def scores_gaps(feature: EdgeFeature) -> bool:
    """Whether a feature is one of an orientation model, which scores gaps again when they are filled."""
    return bool(getattr(feature, "scores_gaps", False))
