# mypy: ignore-errors
"""Codes of words and gaps; look-up of byte strings in a word table; numbering by a local vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Bytes, Ids, Ints
from hiero.core.hash_kernels import hash_bytes, probe, probe_new
from hiero.core.jit import kernel, leaf

UNKNOWN = -(2**31)  # no id, and not the code of a gap


# Indices above 2 are a multiple of 3 in the highest bits, and the rest: gaps of rules with at most two, which
# are all that a search sees, have small codes. A rest of 3 is in no gap.
HIGH_INDEX = 27
LOW_CODE = (1 << HIGH_INDEX) - 1


@kernel
def gap(label, index):
    """The code of the gap ``[label,index]``."""
    return -(((index // 3) << HIGH_INDEX) + label * 4 + index % 3) - 1


@kernel
def is_gap(symbol):
    return symbol < 0


@kernel
def gap_label(symbol):
    return ((-symbol - 1) & LOW_CODE) >> 2


@kernel
def gap_index(symbol):
    """1, 2 ... in source order, 0 for a bare label."""
    return ((-symbol - 1) & 3) + 3 * ((-symbol - 1) >> HIGH_INDEX)


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
def fill_word_slots_kernel(pool, first, out_slot):
    """Enter the words of (pool, first), which must be distinct, into the empty slot array of a WordTable.

    O(bytes).  Twin: none; only look-ups see the slots.
    """
    for w in range(first.shape[0] - 1):
        out_slot[probe_new(out_slot, hash_bytes(pool, first[w], first[w + 1]))] = w


@kernel
def intern_tokens_kernel(data, token, from_token, pool, first, slot, after, used, out_id):
    """Number tokens as symbols of a local vocabulary until it is full; returns the number of tokens done.

    data        uint8 [N]
    token       int32 [K, 2]  first and last byte of a token
    pool ... used             the fields of a LocalVocabulary, written. They are loose and the loop is one
                              piece because a call with many arrays costs more than the look-up itself.
    out_id      int32 [K]     written from ``from_token`` on

    Tokens often recur in the same order, above all feature names, so the one that last followed is tried
    before hashing. O(bytes of tokens).  Twin: tests/naive/grammar.py::intern_tokens.
    """
    words = WordTable(pool, first, slot)
    num_entries = used[0]
    previous = np.int64(0)
    done = token.shape[0]
    for t in range(from_token, token.shape[0]):
        start, end = np.int64(token[t, 0]), np.int64(token[t, 1])
        entry = np.int64(after[previous]) if num_entries > 0 else np.int64(-1)
        if entry < 0 or not is_entry(words, entry, (data, start, end)):
            at = probe_bytes(words, data, start, end)
            entry = np.int64(slot[at])
            if entry < 0:
                begin = first[num_entries]
                if num_entries == after.shape[0] or begin + end - start > pool.shape[0]:
                    done = t
                    break
                entry = num_entries
                for k in range(end - start):
                    pool[begin + k] = data[start + k]
                first[entry + 1] = begin + end - start
                slot[at] = entry
                num_entries += 1
        out_id[t] = entry
        after[previous] = entry
        previous = entry
    used[0] = num_entries
    return done


@leaf
def _find_unknown(first, symbol, rows, ids, out_symbol):
    """Write unknown symbols, as far as there is room; returns their number."""
    used = 0
    for i in range(rows.shape[0]):
        for k in range(first[rows[i]], first[rows[i] + 1]):
            if ids[symbol[k]] == UNKNOWN:
                if used < out_symbol.shape[0]:
                    out_symbol[used] = symbol[k]
                used += 1
    return used


@kernel
def unknown_ids_kernel(first, symbol, rows, ids):
    """The symbols of some rows of (first, symbol) whose shared id in int32 ``ids`` is UNKNOWN.

    Returns int32 symbols, with repetitions. O(N).  Twin: tests/naive/grammar.py::unknown.
    """
    out = np.empty(0, np.int32)
    used = _find_unknown(first, symbol, rows, ids, out)
    if used > 0:
        out = np.empty(used, np.int32)
        # Another thread may have looked some up in between.
        used = _find_unknown(first, symbol, rows, ids, out)
    return out[:used]
