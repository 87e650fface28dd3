# mypy: allow-untyped-defs, allow-untyped-calls
"""Sparse features: their keys, the table that numbers them, and the protocols for new features.

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

Symbols are words and gaps as in ``symbols.py``; on the source side gaps are bare (index 0). Index 3, which
no gap has, makes the codes of the rule's boundaries. A rule id is the sequence ``lhs, source side with bare
gaps, SEPARATOR, target side with gaps of label 0``: the order of the source gaps gives the labels. In Python
a key is the tuple ``(kind, a, b)`` or ``(RULE_ID, *sequence)``. Features are equal if their keys are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hiero.core.jit import kernel, leaf
from hiero.core.symbols import read_only
from hiero.grammar.rules import Rules

if TYPE_CHECKING:
    from hiero.features.user import RuleBatch

Key = tuple[int, ...]

NAME, RULE_ID, SOURCE_BIGRAM, TARGET_BIGRAM, SHAPE = 0, 1, 2, 3, 4
WORD_PAIR, DELETION, INSERTION, INSERTION_PAIR = 5, 6, 7, 8

RULE_START, RULE_END, SEPARATOR = -4, -8, -12  # gap(0, 3), gap(1, 3), gap(2, 3)

SEED = np.uint64(0x9E3779B97F4A7C15)
STEP = np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
ONE = np.uint64(1)
LOW_BITS = np.uint64(0xFFFFFFFF)


class FeatureTable(NamedTuple):
    """F numbered features and where to find them.

    slot   uint64 [2 ** k]  open addressing with linear probing, at most half full; 0 is empty, else the upper
                            half is that of the key's hash and the lower half is 1 + the feature's number
    key    int32 [., 3]     row f is the key of feature f; of a rule id (RULE_ID, start in pool, length)
    pool   int32            the sequences of rule ids
    size   int64 [2]        features and pool entries in use
    """

    slot: npt.NDArray[np.uint64]
    key: npt.NDArray[np.int32]
    pool: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]


@leaf
def mix(code, symbol):
    """A hash with one more integer in it."""
    code = (code ^ np.uint64(np.int64(symbol) & np.int64(0xFFFFFFFF))) * STEP
    return code ^ (code >> HALF)


@leaf
def key_code(kind, a, b, sequence):
    """The hash of a key; of a rule id that of sequence[a:a + b]."""
    code = mix(SEED, kind)
    if kind == RULE_ID:
        for i in range(a, a + b):
            code = mix(code, sequence[i])
        return mix(code, b)
    return mix(mix(code, a), b)


@leaf
def find_feature(table, code, kind, a, b, sequence):
    """The number of the feature with this hash and this key, or -1."""
    mask = np.uint64(table.slot.shape[0] - 1)
    at = code & mask
    tag = code >> HALF
    while True:
        entry = table.slot[at]
        if entry == np.uint64(0):
            return np.int64(-1)
        if entry >> HALF == tag:
            f = np.int64(entry & LOW_BITS) - 1
            if table.key[f, 0] == kind and table.key[f, 2] == b:
                if kind != RULE_ID:
                    if table.key[f, 1] == a:
                        return f
                else:
                    first = np.int64(table.key[f, 1])
                    same = True
                    for i in range(b):
                        if table.pool[first + i] != sequence[a + i]:
                            same = False
                            break
                    if same:
                        return f
        at = (at + ONE) & mask


@kernel
def enter_slot(slot, code, f):
    """Enter feature f, which is not there yet, under its hash."""
    mask = np.uint64(slot.shape[0] - 1)
    at = code & mask
    while slot[at] != np.uint64(0):
        at = (at + ONE) & mask
    slot[at] = (code >> HALF << HALF) | np.uint64(f + 1)


@kernel
def intern_feature(table, kind, a, b, sequence):
    """The number of a feature, which is added if it is new. The table must have room for it."""
    code = key_code(kind, a, b, sequence)
    f = find_feature(table, code, kind, a, b, sequence)
    if f < 0:
        f = table.size[0]
        table.size[0] = f + 1
        table.key[f, 0] = kind
        table.key[f, 1] = a
        table.key[f, 2] = b
        if kind == RULE_ID:
            first = table.size[1]
            table.size[1] = first + b
            table.key[f, 1] = first
            for i in range(b):
                table.pool[first + i] = sequence[a + i]
        enter_slot(table.slot, code, f)
    return f


@kernel
def intern_keys_kernel(table, key, sequence, out_id):
    """Number features, new ones in the order of first appearance. The table must have room for them.

    table     FeatureTable  written
    key       int32 [K, 3]
    sequence  int32         the pool of ``key``
    out_id    int32 [K]     written

    O(K + symbols of rule ids).  Twin: tests/naive/tables.py::numbered.
    """
    for i in range(key.shape[0]):
        out_id[i] = intern_feature(table, key[i, 0], key[i, 1], key[i, 2], sequence)


@kernel
def find_keys_kernel(table, key, sequence, out_id):
    """Look features up; as ``intern_keys_kernel``, but a feature that is not in the table gets -1.

    Twin: tests/naive/tables.py::places.
    """
    for i in range(key.shape[0]):
        code = key_code(key[i, 0], key[i, 1], key[i, 2], sequence)
        out_id[i] = find_feature(table, code, key[i, 0], key[i, 1], key[i, 2], sequence)


@kernel
def rebuild_slots_kernel(key, pool, num_features, out_slot):
    """Enter the first features of a table into empty slots. O(F).  Twin: none; it changes no answer."""
    for f in range(num_features):
        enter_slot(out_slot, key_code(key[f, 0], key[f, 1], key[f, 2], pool), f)


def pack_keys(keys: Sequence[Key]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
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
        self._table = FeatureTable(
            np.zeros(64, np.uint64),
            np.empty((32, 3), np.int32),
            np.empty(64, np.int32),
            np.zeros(2, np.int64),
        )
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return int(self._table.size[0])

    @property
    def table(self) -> FeatureTable:
        """The features numbered so far, read-only."""
        slot, key, pool, size = self._table
        return FeatureTable(read_only(slot), read_only(key), read_only(pool), read_only(size))

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

    def find_all(self, keys: Sequence[Key]) -> npt.NDArray[np.int32]:
        rows, sequence = pack_keys(keys)
        ids = np.empty(len(rows), np.int32)
        with self._lock:
            find_keys_kernel(self.table, rows, sequence, ids)
        return ids

    def intern(self, key: Key) -> int:
        return int(self.intern_all([key])[0])

    def intern_all(self, keys: Sequence[Key]) -> npt.NDArray[np.int32]:
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
            key = _grown(key, int(size[0]) + num_features, int(size[0]))
        if size[1] + num_symbols > len(pool):
            pool = _grown(pool, int(size[1]) + num_symbols, int(size[1]))
        if len(slot) < 2 * len(key):
            num_slots = len(slot)
            while num_slots < 2 * len(key):
                num_slots *= 2
            slot = np.zeros(num_slots, np.uint64)
            rebuild_slots_kernel(key, pool, int(size[0]), slot)
        self._table = FeatureTable(slot, key, pool, size)
        return self._table


def _grown(array: npt.NDArray[np.int32], needed: int, used: int) -> npt.NDArray[np.int32]:
    length = max(needed, len(array) + len(array) // 2)
    grown = np.empty((length, *array.shape[1:]), np.int32)
    grown[:used] = array[:used]
    return grown


class FeatureRows(NamedTuple):
    """The features of N things, row by row.

    first  int64 [N + 1]  row i is first[i]:first[i + 1]
    id     int32          in Symbols.names, or of a FeatureIndex where that is said
    value  float64
    """

    first: npt.NDArray[np.int64]
    id: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]


class EdgeBatch(NamedTuple):
    """P applications of rules to spans of one sentence, before the search builds target sides.

    rule   int32 [P]
    start  int32 [P]     the rule covers the source words start ... end - 1
    end    int32 [P]
    split  int32 [P, 4]  start and end of the spans of gap 1 and gap 2; -1 where the rule has no such gap
    src    int32 [n]     the source sentence
    """

    rule: npt.NDArray[np.int32]
    start: npt.NDArray[np.int32]
    end: npt.NDArray[np.int32]
    split: npt.NDArray[np.int32]
    src: npt.NDArray[np.int32]


class RuleFeature(Protocol):
    """Features of rules alone; ``rulebatch.rule_feature`` makes one from a Python function."""

    @property
    def name(self) -> str:
        """The name in configurations."""
        ...

    def rows(self, batch: RuleBatch) -> FeatureRows:
        """One row per rule of the batch; ids in Symbols.names, at most once in a row.

        Must depend on nothing but the rule: results are cached, and each rule is passed only once.
        """
        ...


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
