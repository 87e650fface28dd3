"""Scanning of text shared by file formats: tokens, gaps, numbers, a local vocabulary.

Kernels work on a buffer of whole lines. A scanner does not use ``Symbols``: it numbers strings by a local
vocabulary, which the caller maps to shared ids once per file. So several threads can read files at once, and
a string costs Python work once per file, not once per rule.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Bytes, Floats, Ids, Ints, grown, read_only
from hiero.core.hash_kernels import table_size
from hiero.core.scan_kernels import intern_tokens_kernel
from hiero.core.symbol_kernels import fill_slots_kernel


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
    fill_slots_kernel(read_only(pool), read_only(first[: count + 1]), slot)
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


def powers_of_ten() -> Floats:
    """10 ** 0 ... 10 ** 308, each correctly rounded."""
    return read_only(np.array([float(f"1e{k}") for k in range(309)]))
