# mypy: ignore-errors
"""Hashing, look-up and interning of feature keys."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Hashes, Ids, Ints
from hiero.core.jit import kernel, leaf

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

    slot: Hashes
    key: Ids
    pool: Ids
    size: Ints


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
