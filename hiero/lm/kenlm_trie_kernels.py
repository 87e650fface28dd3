# mypy: ignore-errors
"""Read the bit-packed tables of KenLM's tries."""

from __future__ import annotations

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.lm.table_kernels import chain, locate, put


@leaf
def read_bits(data, at, bits):
    """The number in ``bits`` bits (at most 57) from bit ``at`` on, the lowest first."""
    byte, shift = at >> 3, at & 7
    value = np.uint64(0)
    for k in range((shift + bits + 7) >> 3):
        value |= np.uint64(data[byte + k]) << np.uint64(8 * k)
    return (value >> np.uint64(shift)) & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1))


@kernel
def unpack_level_kernel(data, first, widths, out_word, out_value, out_next):
    """Unpack entries of a table, from entry ``first`` on.

    data       uint8 [.]       the table
    widths     int64 [4]       bits of the word, of two numbers (perhaps 0), and of the pointer
    out_word   int64 [n]       written
    out_value  uint32 [n, 2]   written; the two numbers
    out_next   int64 [n]       written; the pointer

    O(n).  Twin: tests/naive/lm.py::unpack_level.
    """
    total = widths[0] + widths[1] + widths[2] + widths[3]
    for i in range(out_word.shape[0]):
        at = (first + i) * total
        out_word[i] = np.int64(read_bits(data, at, widths[0]))
        at += widths[0]
        out_value[i, 0] = np.uint32(read_bits(data, at, widths[1]))
        at += widths[1]
        out_value[i, 1] = np.uint32(read_bits(data, at, widths[2]))
        at += widths[2]
        out_next[i] = np.int64(read_bits(data, at, widths[3]))


@kernel
def insert_level_kernel(word, value, first, parent, first_child, parent_key, out_key, out_table):
    """Enter n-grams, given as children of their endings, into a table; returns the last parent.

    word         int64 [n]       the first word of each n-gram; they are entries ``first`` ... of their length
    value        float32 [n, 2]  stored probability and back-off
    parent       a parent not after that of the first entry
    first_child  int64 [P + 1]   children of parent p: first_child[p] ... first_child[p + 1] - 1
    parent_key   uint64 [P]      keys of the parents, as in ``Ngrams``
    out_key      uint64 [n]      written; keys of the entries
    out_table    OpenTable       written; there must be room

    O(n).  Twin: tests/naive/lm.py::trie_keys.
    """
    for i in range(word.shape[0]):
        while first_child[parent + 1] <= first + i:
            parent += 1
        key = chain(parent_key[parent], word[i])
        out_key[i] = key
        slot = locate(out_table, key)
        if out_table.key[2 * slot] == np.uint64(0):
            put(out_table, slot, key, value[i, 0], value[i, 1])
    return parent
