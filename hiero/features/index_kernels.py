# mypy: ignore-errors
"""Hashing, look-up and interning of feature keys, and of whole rules for features in Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids, Ints
from hiero.core.hash_kernels import hash_number, is_key_of, mix, probe, probe_new, table_size
from hiero.core.jit import kernel, leaf

NAME, RULE_ID = 0, 1  # kinds; those of templates are in template_kernels.py

RULE_START, RULE_END, SEPARATOR = -4, -8, -12  # codes of no gap

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


@kernel
def intern_rows_kernel(first, key, pool, table, out_first, out_id, out_value):
    """Number the features of each rule, new ones in the order of first appearance.

    first, key, pool          from keys_kernel: N rules, K keys
    table      FeatureTable   written; must have room for K features and all of ``pool``
    out_first  int64 [N + 1]  written
    out_id     int32 [K]      written: row i is out_first[i]:out_first[i + 1], each feature once
    out_value  float64 [K]    written: how often it fires

    O(K).  Twin: tests/naive/features.py::rows.
    """
    longest = np.int64(0)
    for i in range(first.shape[0] - 1):
        longest = max(longest, first[i + 1] - first[i])
    slot = np.full(table_size(longest), -1, np.int64)  # places of the features of a row
    met = np.empty(longest, np.int64)
    n = 0
    out_first[0] = 0
    for i in range(first.shape[0] - 1):
        start = n
        for k in range(first[i], first[i + 1]):
            f = intern_feature(table, key[k, 0], key[k, 1], key[k, 2], pool)
            at = probe(slot, hash_number(f), is_key_of, out_id, f)
            if slot[at] < 0:
                slot[at] = n
                met[n - start] = at
                out_id[n] = f
                out_value[n] = 0.0
                n += 1
            out_value[slot[at]] += 1.0
        for j in range(n - start):
            slot[met[j]] = -1
        out_first[i + 1] = n


@kernel
def _content_length(rules, r):
    num_src = rules.first_src[r + 1] - rules.first_src[r]
    num_tgt = rules.first_tgt[r + 1] - rules.first_tgt[r]
    num_links = rules.first_link[r + 1] - rules.first_link[r]
    num_sparse = rules.first_sparse[r + 1] - rules.first_sparse[r]
    return 5 + num_src + num_tgt + 2 * num_links + 2 * num_sparse + 2 * rules.dense.shape[1]


@kernel
def intern_rules_room_kernel(rules, chosen, out_room):
    """Add up in int64 ``out_room`` [1] the integers that ``intern_rules_kernel`` needs for the chosen rules.

    O(N).  Twin: tests/naive/features.py::content_room.
    """
    for i in range(chosen.shape[0]):
        out_room[0] += _content_length(rules, chosen[i])


@kernel
def intern_rules_kernel(rules, chosen, columns, dense, sparse, table, out_pool, out_id):
    """Number the chosen rules by their whole content, new ones in the order of first appearance.

    rules     Rules
    chosen    int64 [N]
    columns   int32 [D]      names of the dense columns
    dense     int32 [R, D]   the bits of rules.dense
    sparse    int32          the bits of rules.sparse_value
    table     FeatureTable   written; must have room for N sequences
    out_pool  int32          scratch, length from intern_rules_room_kernel
    out_id    int32 [N]      written

    Equal rules get one number. Each list is preceded by its length, so different rules have different
    sequences.
    Twin: tests/naive/features.py::contents.
    """
    n = 0
    for i in range(chosen.shape[0]):
        r = chosen[i]
        start = n
        out_pool[n] = rules.lhs[r]
        out_pool[n + 1] = rules.first_src[r + 1] - rules.first_src[r]
        out_pool[n + 2] = rules.first_tgt[r + 1] - rules.first_tgt[r]
        out_pool[n + 3] = rules.first_link[r + 1] - rules.first_link[r]
        out_pool[n + 4] = columns.shape[0]
        n += 5
        for j in range(rules.first_src[r], rules.first_src[r + 1]):
            out_pool[n] = rules.src[j]
            n += 1
        for j in range(rules.first_tgt[r], rules.first_tgt[r + 1]):
            out_pool[n] = rules.tgt[j]
            n += 1
        for j in range(rules.first_link[r], rules.first_link[r + 1]):
            out_pool[n] = rules.link[j, 0]
            out_pool[n + 1] = rules.link[j, 1]
            n += 2
        for d in range(columns.shape[0]):
            out_pool[n] = columns[d]
            out_pool[n + 1] = dense[r, d]
            n += 2
        for j in range(rules.first_sparse[r], rules.first_sparse[r + 1]):
            out_pool[n] = rules.sparse_name[j]
            out_pool[n + 1] = sparse[j]
            n += 2
        out_id[i] = intern_feature(table, RULE_ID, start, n - start, out_pool)
