# mypy: allow-untyped-calls, allow-untyped-defs
"""Words, categories and feature names as integers; the only module that encodes and decodes gaps.

A word is an int32 >= 0: its id in ``Symbols.words``. A gap is negative and carries its label (an id in
``Symbols.labels``) and its index: 1 and 2 number the gaps of a rule in source order, 0 is a bare label.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hiero.core.jit import kernel, leaf

Scalar = TypeVar("Scalar", bound=np.generic)

MAX_GAPS = 2


@kernel
def gap(label, index):
    """The code of the gap ``[label,index]``."""
    return -(label * 4 + index) - 1


@kernel
def is_gap(symbol):
    return symbol < 0


@kernel
def gap_label(symbol):
    return (-symbol - 1) >> 2


@kernel
def gap_index(symbol):
    """1 or 2 in source order, 0 for a bare label."""
    return (-symbol - 1) & 3


class Vocabulary:
    """Mapping between byte strings and consecutive ids; only grows; safe to share between threads."""

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._ids: dict[bytes, int] = {}
        self._entries: list[bytes] = []
        self._lock = threading.Lock()
        self.intern_all(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, entry: bytes) -> int:
        """The id, or -1."""
        return self._ids.get(entry, -1)

    def intern(self, entry: bytes) -> int:
        """The id; a new entry gets the next one."""
        known = self._ids.get(entry)
        if known is not None:
            return known
        with self._lock:
            known = self._ids.get(entry)
            if known is None:
                known = len(self._entries)
                # The entry before its id: a reader without the lock never sees an id that has no entry yet.
                self._entries.append(entry)
                self._ids[entry] = known
            return known

    def intern_all(self, entries: Iterable[bytes]) -> npt.NDArray[np.int32]:
        entries = list(entries)
        ids = list(map(self._ids.get, entries))  # nearly all are known, and this is fast
        if None in ids:
            ids = [self.intern(entry) for entry in entries]
        return np.array(ids, np.int32)

    def entry(self, index: int) -> bytes:
        return self._entries[index]

    def text(self, index: int) -> str:
        return self._entries[index].decode("utf-8", errors="replace")

    def entries(self, start: int = 0) -> list[bytes]:
        """A copy of all entries from ``start`` on."""
        return self._entries[start:]


class Symbols:
    """The three vocabularies that all parts of a model share."""

    __slots__ = ("labels", "names", "words")

    def __init__(self) -> None:
        self.words = Vocabulary()
        self.labels = Vocabulary()
        self.names = Vocabulary()  # of features that have a name in a file: grammar columns, Glue, ...


class WordTable(NamedTuple):
    """A frozen vocabulary as arrays, for look-ups by kernels and for mapping from disk.

    pool   uint8 [bytes]    all entries end to end
    first  int64 [W + 1]    entry w is pool[first[w]:first[w + 1]]
    slot   int32 [2 ** k]   open addressing with linear probing, -1 empty; at most half full
    """

    pool: npt.NDArray[np.uint8]
    first: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int32]


@leaf
def hash_bytes(pool, start, end):
    """FNV-1a over a run of bytes, with a final mix because tables use the low bits."""
    code = np.uint64(14695981039346656037)
    for i in range(start, end):
        code = (code ^ np.uint64(pool[i])) * np.uint64(1099511628211)
    return code ^ (code >> np.uint64(29))


@leaf
def find_bytes(table, pool, start, end):
    """The id of ``pool[start:end]`` in a WordTable, or -1."""
    mask = np.uint64(table.slot.shape[0] - 1)
    at = np.int64(hash_bytes(pool, start, end) & mask)
    while True:
        word = table.slot[at]
        if word < 0:
            return np.int64(-1)
        first = table.first[word]
        if table.first[word + 1] - first == end - start:
            same = True
            for i in range(end - start):
                if table.pool[first + i] != pool[start + i]:
                    same = False
                    break
            if same:
                return np.int64(word)
        at = (at + 1) & np.int64(mask)


@kernel
def find_all_kernel(table, pool, first, out_ids):
    """Look up every entry of (pool, first) in a WordTable; int32 ``out_ids`` is written, -1 where unknown.

    O(bytes).  Twin: tests/naive/tables.py::places.
    """
    for w in range(first.shape[0] - 1):
        out_ids[w] = find_bytes(table, pool, first[w], first[w + 1])


@kernel
def fill_slots_kernel(pool, first, out_slot):
    """Enter all entries of (pool, first), which must be distinct, into an empty slot array.

    O(bytes).  Twin: none; only look-ups see the slots.
    """
    mask = np.int64(out_slot.shape[0] - 1)
    for w in range(first.shape[0] - 1):
        at = np.int64(hash_bytes(pool, first[w], first[w + 1]) & np.uint64(mask))
        while out_slot[at] >= 0:
            at = (at + 1) & mask
        out_slot[at] = w


def pack(entries: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Byte strings end to end, and where each begins."""
    first = np.zeros(len(entries) + 1, np.int64)
    np.cumsum(np.fromiter((len(entry) for entry in entries), np.int64, len(entries)), out=first[1:])
    return read_only(np.frombuffer(b"".join(entries), np.uint8)), read_only(first)


def word_table(entries: Sequence[bytes]) -> WordTable:
    """Freeze distinct byte strings into a table; ids are their positions in the sequence."""
    return word_table_of(*pack(entries))


def word_table_of(pool: npt.NDArray[np.uint8], first: npt.NDArray[np.int64]) -> WordTable:
    size = 16
    while size < 2 * len(first):
        size *= 2
    slot = np.full(size, -1, np.int32)
    fill_slots_kernel(pool, first, slot)
    return WordTable(pool, first, read_only(slot))


def find_all(table: WordTable, entries: Sequence[bytes]) -> npt.NDArray[np.int32]:
    """The ids of many byte strings in a table, -1 where unknown."""
    pool, first = pack(entries)
    ids = np.empty(len(entries), np.int32)
    find_all_kernel(table, pool, first, ids)
    return ids


def table_entry(table: WordTable, index: int) -> bytes:
    return table.pool[table.first[index] : table.first[index + 1]].tobytes()


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """A read-only, contiguous, plain view.

    Kernels compile once per array type, and a mapped file is read-only, so all arrays of models are.
    """
    if type(array) is np.ndarray and array.flags.c_contiguous and not array.flags.writeable:
        return array
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view
