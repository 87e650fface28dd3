# mypy: ignore-errors
"""Parts of orientation models: classes, codes of features, and hash tables.

A *block* is a run of target words with the source words it is aligned to: a phrase of a bitext, or a part of
a rule. Its orientation is the position of its source words relative to those of the block before it. A
feature is an int64: its kind, a source word, and a target word; words count from 1, and 0 is the edge of the
sentence.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import hash_bytes, is_key_of, mix, probe, probe_new
from hiero.core.jit import kernel, leaf

MONOTONE, SWAP, OTHER = 0, 1, 2

# Kinds. From AROUND on: the word before a block, the word after it, the one before that, and so on.
BIAS, PAIR, FIRST_WORD, LAST_WORD, AROUND = 0, 1, 2, 3, 4
KIND_SHIFT, WORD_BITS = 56, 28
WORD_MASK = (1 << WORD_BITS) - 1

ZERO = np.uint64(0)
SOURCE_SEED = np.uint64(0x243F6A8885A308D3)
BETWEEN_SIDES = np.uint64(0x13198A2E03707344)


class OrientationCounts(NamedTuple):
    """Counts of M items by class; an item is given by its hash.

    key    uint64 [M]         ascending
    first  int64 [2 ** b + 1] items whose hash begins with the b bits of i: first[i] ... first[i + 1] - 1
    count  int32 [M, 3]
    """

    key: np.ndarray
    first: np.ndarray
    count: np.ndarray


@leaf
def feature_key(kind, src, tgt):
    return np.int64(kind) << KIND_SHIFT | np.int64(src) << WORD_BITS | np.int64(tgt)


@leaf
def key_code(key):
    """The hash of a feature."""
    return mix(mix(ZERO, key), ZERO)


@leaf
def find_key(key_of, slot, key):
    """The number of a feature, -1 if it has none; ``slot`` int32 [2 ** k] has numbers, -1 for empty."""
    return np.int64(slot[probe(slot, key_code(key), is_key_of, key_of, key)])


@kernel
def key_slots_kernel(key, out_slot):
    """Enter all features, int64 ``key`` [F], into int32 ``out_slot`` [2 ** k] of -1, at most half full.

    O(F).  Twin: none; only look-ups see the slots.
    """
    for f in range(key.shape[0]):
        out_slot[probe_new(out_slot, key_code(key[f]))] = f


@kernel
def word_codes_kernel(pool, first, out_code):
    """The hash of each entry of (pool, first); uint64 ``out_code`` [W] is written.

    O(bytes).  Twin: tests/naive/reorder.py::fnv.
    """
    for w in range(first.shape[0] - 1):
        out_code[w] = hash_bytes(pool, first[w], first[w + 1])


@leaf
def find_counts(key_of, first, key):
    """The place of a hash in ``OrientationCounts``, or -1."""
    # Shifts by 64 are undefined: a table has at least two buckets.
    num_buckets = first.shape[0] - 1
    bits = np.uint64(0)
    while num_buckets > 1:
        num_buckets >>= 1
        bits += np.uint64(1)
    bucket = np.int64(key >> (np.uint64(64) - bits))
    for at in range(first[bucket], first[bucket + 1]):
        if key_of[at] == key:
            return np.int64(at)
    return np.int64(-1)
