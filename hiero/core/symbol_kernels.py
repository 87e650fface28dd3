# mypy: ignore-errors
"""Codes of words and gaps, and look-up of byte strings in a word table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Bytes, Ids, Ints
from hiero.core.hash_kernels import hash_bytes, probe, probe_new
from hiero.core.jit import kernel, leaf

UNKNOWN = -(2**31)  # no id, and not the code of a gap


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


class WordTable(NamedTuple):
    """A frozen vocabulary as arrays, for look-ups by kernels and for mapping from disk.

    pool   uint8 [bytes]    all entries end to end
    first  int64 [W + 1]    entry w is pool[first[w]:first[w + 1]]
    slot   int32 [2 ** k]   open addressing with linear probing, -1 empty; at most half full
    """

    pool: Bytes
    first: Ints
    slot: Ids


@leaf
def is_entry(table, word, key):
    """``equal`` of word tables; a key is (pool, start, end)."""
    pool, start, end = key
    first = table.first[word]
    if table.first[word + 1] - first != end - start:
        return False
    for i in range(end - start):
        if table.pool[first + i] != pool[start + i]:
            return False
    return True


@leaf
def probe_bytes(table, pool, start, end):
    """The slot of ``pool[start:end]`` in a WordTable, or the empty one where it belongs."""
    return probe(table.slot, hash_bytes(pool, start, end), is_entry, table, (pool, start, end))


@leaf
def find_bytes(table, pool, start, end):
    """The id of ``pool[start:end]`` in a WordTable, or -1."""
    return np.int64(table.slot[probe_bytes(table, pool, start, end)])


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
    for w in range(first.shape[0] - 1):
        out_slot[probe_new(out_slot, hash_bytes(pool, first[w], first[w + 1]))] = w
