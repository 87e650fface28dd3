# mypy: ignore-errors
"""Hashing, look-up and interning of feature keys."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids, Ints
from hiero.core.hash_kernels import mix, probe, probe_new
from hiero.core.jit import kernel, leaf

NAME, RULE_ID = 0, 1  # kinds; those of templates are in template_kernels.py

RULE_START, RULE_END, SEPARATOR = -4, -8, -12  # gap(0, 3), gap(1, 3), gap(2, 3)

SEED = np.uint64(0x9E3779B97F4A7C15)
LOW_BITS = 0xFFFFFFFF
TAG = np.uint64(33)  # bits of a hash that are not in the tag


class FeatureTable(NamedTuple):
    """F numbered features and where to find them.

    slot   int64 [2 ** k]   -1 is empty, else the upper half is the highest 31 bits of the key's hash and the
                            lower half is the feature's number
    key    int32 [., 3]     row f is the key of feature f; of a rule id (RULE_ID, start in pool, length)
    pool   int32            the sequences of rule ids
    size   int64 [2]        features and pool entries in use
    """

    slot: Ints
    key: Ids
    pool: Ids
    size: Ints


@leaf
def mix_symbol(code, symbol):
    return mix(code, np.int64(symbol) & LOW_BITS)


@leaf
def key_code(kind, a, b, sequence):
    """The hash of a key; of a rule id that of sequence[a:a + b]."""
    code = mix_symbol(SEED, kind)
    if kind == RULE_ID:
        for i in range(a, a + b):
            code = mix_symbol(code, sequence[i])
        return mix_symbol(code, b)
    return mix_symbol(mix_symbol(code, a), b)


@leaf
def slot_entry(code, f):
    return np.int64(code >> TAG) << 32 | f


@leaf
def is_feature(table, entry, key):
    """``equal`` of feature tables."""
    code, kind, a, b, sequence = key
    if entry >> 32 != np.int64(code >> TAG):
        return False
    f = entry & LOW_BITS
    if table.key[f, 0] != kind or table.key[f, 2] != b:
        return False
    first = np.int64(table.key[f, 1])
    if kind != RULE_ID:
        return first == a
    for i in range(b):
        if table.pool[first + i] != sequence[a + i]:
            return False
    return True


@leaf
def probe_feature(table, code, kind, a, b, sequence):
    """The slot of the feature with this hash and this key, or the empty one where it belongs."""
    return probe(table.slot, code, is_feature, table, (code, kind, a, b, sequence))


@leaf
def find_feature(table, code, kind, a, b, sequence):
    """The number of the feature with this hash and this key, or -1."""
    entry = table.slot[probe_feature(table, code, kind, a, b, sequence)]
    return entry & LOW_BITS if entry >= 0 else np.int64(-1)


@kernel
def intern_feature(table, kind, a, b, sequence):
    """The number of a feature, which is added if it is new. The table must have room for it."""
    code = key_code(kind, a, b, sequence)
    at = probe_feature(table, code, kind, a, b, sequence)
    if table.slot[at] >= 0:
        return table.slot[at] & LOW_BITS
    f = table.size[0]
    table.slot[at] = slot_entry(code, f)
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
        code = key_code(key[f, 0], key[f, 1], key[f, 2], pool)
        out_slot[probe_new(out_slot, code)] = slot_entry(code, f)
