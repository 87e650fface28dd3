# mypy: ignore-errors
"""Tables of orientation models: features by their keys, and counts of phrases by class.

A *block* is a run of target words with the source words it is aligned to: a phrase of a bitext, or a part of
a rule. Its orientation is the position of its source words relative to those of the block before it. A
feature is an int64: its kind, a source word, and a target word; words count from 1, and 0 is the edge of the
sentence.
"""

import math
from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import is_key_of, mix, probe, probe_new, probe_number
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
    next   int32 [M, 3]       by the class of the next phrase, seen from this one
    """

    key: np.ndarray
    first: np.ndarray
    count: np.ndarray
    next: np.ndarray


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
def orientation_key_slots_kernel(key, out_slot):
    """Enter the features of an orientation model into a hash table, which is then at most half full.

    key       int64 [F]
    out_slot  int32 [2 ** k]  written; -1 before

    O(F).  Twin: none; only look-ups see the slots.
    """
    for f in range(key.shape[0]):
        out_slot[probe_new(out_slot, key_code(key[f]))] = f


@kernel
def count_orientation_keys_kernel(key, done, key_of, count, used):
    """Count orientation features in a table until it is half full; returns how many of ``key`` are counted.

    key     int64 [N]       features; the first ``done`` were counted before
    key_of  int64 [2 ** k]  written; -1 empty
    count   int64 [2 ** k]  written
    used    int64 [1]       written; features in the table

    O(N).  Twin: tests/naive/reorder.py::count_keys.
    """
    for n in range(done, key.shape[0]):
        at = probe_number(key_of, key_code(key[n]), key[n])
        if key_of[at] < 0:
            if 2 * (used[0] + 1) > key_of.shape[0]:
                return n
            key_of[at] = key[n]
            used[0] += 1
        count[at] += 1
    return key.shape[0]


@kernel
def number_orientation_keys_kernel(first, key, key_of, slot, out_length, out_feature):
    """Map orientation features to their numbers, leaving out those that have none; returns how many have one.

    first        int64 [N + 1]   rows of ``key``
    key          int64
    key_of       int64 [F]       the features by their numbers
    slot         int32 [2 ** k]  of ``orientation_key_slots_kernel``
    out_length   int64 [N]       written; of each row
    out_feature  int32           written; as long as ``key`` is always enough

    O(keys).  Twin: tests/naive/reorder.py::number_keys.
    """
    used = np.int64(0)
    for n in range(first.shape[0] - 1):
        before = used
        for k in range(first[n], first[n + 1]):
            feature = find_key(key_of, slot, key[k])
            if feature >= 0:
                out_feature[used] = feature
                used += 1
        out_length[n] = used - before
    return used


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


@kernel
def gather_orientations_kernel(code, label, order, out_key, out_count):
    """Count the classes of items with equal hashes, for ``OrientationCounts``; returns the number of hashes.

    code       uint64 [N]
    label      int8 [N]
    order      int64 [N]     by hash
    out_key    uint64 [M]    written; N rows are always enough
    out_count  int32 [M, 3]  written; zeros before

    O(N).  Twin: tests/naive/reorder.py::gather_counts.
    """
    used = np.int64(0)
    for n in range(order.shape[0]):
        i = order[n]
        if n == 0 or code[i] != out_key[used - 1]:
            out_key[used] = code[i]
            used += 1
        out_count[used - 1, label[i]] += 1
    return used


class LexicalArrays(NamedTuple):
    """Relative frequencies: two ``OrientationCounts`` end on end, and the values used where there are none.

    code        uint64 [V]   hashes of shared words
    prior       float64 [3]  shares of the classes
    next_prior  float64 [3]  those of the next phrases
    smoothing   how many times the prior counts, see ``smoothed``
    max_length  words of a phrase
    """

    pair_key: np.ndarray
    pair_first: np.ndarray
    pair_count: np.ndarray
    pair_next: np.ndarray
    source_key: np.ndarray
    source_first: np.ndarray
    source_count: np.ndarray
    source_next: np.ndarray
    code: np.ndarray
    prior: np.ndarray
    next_prior: np.ndarray
    smoothing: float
    max_length: int


@leaf
def smoothed(key_of, first, count, code, smoothing, a, b, c):
    """The shares of the classes for this hash, with the shares a, b, c counted ``smoothing`` times."""
    at = find_counts(key_of, first, code)
    if at < 0:
        return a, b, c
    x, y, z = np.float64(count[at, 0]), np.float64(count[at, 1]), np.float64(count[at, 2])
    total = x + y + z + smoothing
    return (x + smoothing * a) / total, (y + smoothing * b) / total, (z + smoothing * c) / total


@leaf
def shares_of_source(model, code, ahead):
    """The shares of the classes by the hash of a source phrase; ``ahead``: of the classes of the next one."""
    if ahead:
        a, b, c = model.next_prior[0], model.next_prior[1], model.next_prior[2]
        return smoothed(
            model.source_key, model.source_first, model.source_next, code, model.smoothing, a, b, c
        )
    a, b, c = model.prior[0], model.prior[1], model.prior[2]
    return smoothed(model.source_key, model.source_first, model.source_count, code, model.smoothing, a, b, c)


@leaf
def shares_of_pair(model, code, ahead, a, b, c):
    """The shares by the hash of a phrase pair, given those by its source side."""
    if ahead:
        return smoothed(model.pair_key, model.pair_first, model.pair_next, code, model.smoothing, a, b, c)
    return smoothed(model.pair_key, model.pair_first, model.pair_count, code, model.smoothing, a, b, c)


@kernel
def lexical_log_probs_kernel(model, pair, source, ahead, begin, end, out):
    """Log probabilities of a lexicalised model for phrase pairs begin ... end - 1 (natural logarithm).

    model         LexicalArrays
    pair, source  uint64 [N]            hashes of ``phrase_codes_kernel``
    ahead         bool                  of the classes of next phrases
    out           float64 [end - begin, 3]  written

    The shares are those of the phrase pair, smoothed by those of its source side, smoothed by those of all
    (eq. 4 with smoothing near 0).  Twin: tests/naive/reorder.py::lexical_probs.
    """
    for n in range(begin, end):
        a, b, c = shares_of_source(model, source[n], ahead)
        a, b, c = shares_of_pair(model, pair[n], ahead, a, b, c)
        out[n - begin, 0], out[n - begin, 1], out[n - begin, 2] = math.log(a), math.log(b), math.log(c)
