"""Words, categories and feature names as integers; the only module that encodes and decodes gaps.

A word is an int32 >= 0: its id in ``Symbols.words``. A gap is negative and carries its label (an id in
``Symbols.labels``) and its index: 1, 2 ... number the gaps of a rule in source order, 0 is a bare label.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Bytes, Ids, Ints, are_offsets, grown, offsets_of, read_only
from hiero.core.hash_kernels import table_size
from hiero.core.symbol_kernels import (
    UNKNOWN,
    WordTable,
    fill_word_slots_kernel,
    find_all_kernel,
    intern_tokens_kernel,
)


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

    def intern_all(self, entries: Iterable[bytes]) -> Ids:
        entries = list(entries)
        ids = list(map(self._ids.get, entries))  # nearly all are known, and this is fast
        if None in ids:
            pairs = zip(ids, entries, strict=True)
            ids = [self.intern(entry) if known is None else known for known, entry in pairs]
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


# ---- word tables


def pack(entries: Sequence[bytes]) -> tuple[Bytes, Ints]:
    """Byte strings end to end, and where each begins."""
    return read_only(np.frombuffer(b"".join(entries), np.uint8)), read_only(offsets_of(map(len, entries)))


def word_table(entries: Sequence[bytes]) -> WordTable:
    """Freeze distinct byte strings into a table; ids are their positions in the sequence."""
    return word_table_of(*pack(entries))


def word_table_of(pool: Bytes, first: Ints) -> WordTable:
    slot = np.full(table_size(len(first)), -1, np.int32)
    fill_word_slots_kernel(pool, first, slot)
    return WordTable(pool, first, read_only(slot))


def find_all(table: WordTable, entries: Sequence[bytes]) -> Ids:
    """The ids of many byte strings in a table, -1 where unknown."""
    pool, first = pack(entries)
    ids = np.empty(len(entries), np.int32)
    find_all_kernel(table, pool, first, ids)
    return ids


def table_entry(table: WordTable, index: int) -> bytes:
    return table.pool[table.first[index] : table.first[index + 1]].tobytes()


# ---- ids of a table as shared ones


class SharedIds:
    """Map from the entries of a word table to ids in a vocabulary, each looked up on first use.

    ``ids`` has them by own id, UNKNOWN until they are looked up. Entries are numbered from ``start``;
    ``gaps`` are the shared codes of -1, -2, ... Threads may share it, since an id is set in one step.
    """

    def __init__(
        self, table: WordTable, vocabulary: Vocabulary, start: int = 0, gaps: Sequence[int] = ()
    ) -> None:
        self.table, self.vocabulary, self._start = table, vocabulary, start
        entries = np.full(start + len(table.first) - 1, UNKNOWN, np.int32)
        self.ids = np.concatenate([entries, np.array(gaps[::-1], np.int32)])

    def to_own(self, shared: Ids) -> Ids:
        """The places in the table of shared ids; -1 for entries that it does not have."""
        return find_all(self.table, [self.vocabulary.entry(index) for index in shared.tolist()])

    def to_shared(self, own: Ids) -> Ids:
        """``ids``, which are valid for these entries at least."""
        self.look_up(own[self.ids[own] == UNKNOWN])
        return self.ids

    def look_up(self, own: Ids) -> None:
        """Set the ids of entries."""
        if len(own):
            new = np.unique(own)
            entries = (table_entry(self.table, k - self._start) for k in new.tolist())
            self.ids[new] = self.vocabulary.intern_all(entries)


# ---- word tables in directories of arrays

_FIELDS: dict[str, tuple[type[np.generic], int]] = {
    "pool": (np.uint8, 1),
    "first": (np.int64, 1),
    "slot": (np.int32, 1),
}


def word_table_files(*names: str) -> dict[str, tuple[type[np.generic], int]]:
    """The arrays of word tables, for ``directories.Kind``."""
    return {f"{name}_{field}": shape for name in names for field, shape in _FIELDS.items()}


def word_table_arrays(tables: Mapping[str, WordTable]) -> dict[str, npt.NDArray[Any]]:
    return {f"{name}_{field}": getattr(table, field) for name, table in tables.items() for field in _FIELDS}


def word_table_from(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> WordTable:
    return WordTable(*(arrays[f"{name}_{field}"] for field in _FIELDS))


def is_sound(table: WordTable) -> bool:
    """Whether the arrays of a table fit together, since kernels do not check."""
    return are_offsets(table.first, len(table.pool)) and are_slots(table.slot, len(table.first) - 1)


def are_slots(slot: Ids, num_entries: int) -> bool:
    """Whether a hash table of entries has slots of them, and an empty one, where probing ends."""
    size = len(slot)
    return size > 0 and size & (size - 1) == 0 and int(slot.min()) == -1 and int(slot.max()) < num_entries


# ---- numbers of the strings of one file
#
# A scanner of text does not use ``Symbols``: it numbers strings by a local vocabulary, which the caller maps
# to shared ids once per file. So several threads can read files at once, and a string costs Python work once
# per file, not once per rule.


class LocalVocabulary(NamedTuple):
    """The byte strings so far, numbered from 0; a hash table as in ``symbols.WordTable``, but writable.

    pool   uint8 [bytes]   entries end to end
    first  int64 [W + 1]   entry w is pool[first[w]:first[w + 1]]
    slot   int32 [2 ** k]  open addressing, linear probing, -1 empty
    after  int32 [W]       the entry that last followed this one, or 0
    used   int64 [1]       entries in use
    """

    pool: Bytes
    first: Ints
    slot: Ids
    after: Ids
    used: Ints


def local_vocabulary(entries: int = 1 << 13, num_bytes: int = 1 << 17) -> LocalVocabulary:
    return LocalVocabulary(
        np.empty(num_bytes, np.uint8),
        np.zeros(entries + 1, np.int64),
        np.full(table_size(entries), -1, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(1, np.int64),
    )


def _with_room(old: LocalVocabulary, num_bytes: int) -> LocalVocabulary:
    """The vocabulary with room for more entries, one of them of ``num_bytes``."""
    count, entries = int(old.used[0]), 2 * len(old.after)
    pool = grown(old.pool, 2 * len(old.pool) + num_bytes)
    first, after = grown(old.first, entries + 1), grown(old.after, entries)
    slot = np.full(table_size(entries), -1, np.int32)
    fill_word_slots_kernel(read_only(pool), read_only(first[: count + 1]), slot)
    return LocalVocabulary(pool, first, slot, after, old.used)


def intern_tokens(local: LocalVocabulary, data: Bytes, token: Ids) -> tuple[LocalVocabulary, Ids]:
    """Ids of tokens (first and last byte in ``data``), and the vocabulary extended by them."""
    ids = np.empty(len(token), np.int32)
    done = 0
    while True:
        done = intern_tokens_kernel(data, token, done, *local, ids)
        if done == len(token):
            return local, ids
        local = _with_room(local, int(token[done, 1] - token[done, 0]))


def local_entries(local: LocalVocabulary, start: int = 0) -> list[bytes]:
    """Entries from ``start`` on."""
    first = local.first[start : int(local.used[0]) + 1].tolist()
    pool = local.pool[first[0] : first[-1]].tobytes()
    return [pool[a - first[0] : b - first[0]] for a, b in itertools.pairwise(first)]
