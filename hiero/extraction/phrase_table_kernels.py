# mypy: ignore-errors
"""Phrase tables: numbers of sequences of words and of links, and lexical weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.bitext.phrase_pair_kernels import SRC_END, SRC_START, TGT_END, TGT_START
from hiero.core.hash_kernels import FNV_START, mix, probe, probe_new
from hiero.core.jit import kernel, leaf
from hiero.extraction.table_kernels import find_pair

LINK_SHIFT = 8  # a link in a phrase pair is source position << LINK_SHIFT | target position


class SequenceTable(NamedTuple):
    """Sequences of numbers, numbered from 0 in the order of first occurrence; written and growing.

    pool   int32 [.]      entries end to end
    first  int64 [E + 1]  entry e: pool[first[e]:first[e + 1]]
    code   uint64 [E]     hashes
    slot   int32 [2 ** k]
    used   int64 [1]      entries in use
    """

    pool: np.ndarray
    first: np.ndarray
    code: np.ndarray
    slot: np.ndarray
    used: np.ndarray


@leaf
def is_sequence(table, entry, key):
    """``equal`` of sequences; a key is (text, start, end)."""
    text, start, end = key
    first = table.first[entry]
    if table.first[entry + 1] - first != end - start:
        return False
    for k in range(end - start):
        if table.pool[first + k] != text[start + k]:
            return False
    return True


@kernel
def number_sequences_kernel(text, start, end, begin, table, out_id):
    """Number sequences of ``text`` from the ``begin``-th on until the table is full; returns the number done.

    text        int32 [.]
    start, end  int64 [P]      sequence p: text[start[p]:end[p]]
    table       SequenceTable  written
    out_id      int32 [P]      written

    O(length).  Twin: tests/naive/tables.py::numbered.
    """
    for p in range(begin, start.shape[0]):
        code = FNV_START
        for k in range(start[p], end[p]):
            code = mix(code, text[k])
        at = probe(table.slot, code, is_sequence, table, (text, start[p], end[p]))
        if table.slot[at] < 0:
            entry = table.used[0]
            pool_end = table.first[entry] + end[p] - start[p]
            if entry == table.code.shape[0] or pool_end > table.pool.shape[0]:
                return p
            for k in range(end[p] - start[p]):
                table.pool[table.first[entry] + k] = text[start[p] + k]
            table.first[entry + 1] = pool_end
            table.code[entry] = code
            table.slot[at] = entry
            table.used[0] += 1
        out_id[p] = table.slot[at]
    return start.shape[0]


@kernel
def fill_sequence_slots_kernel(code, used, out_slot):
    """Enter so many distinct sequences, by their hashes, into empty slots.

    O(used).  Twin: none; only look-ups see the slots.
    """
    for entry in range(used):
        out_slot[probe_new(out_slot, code[entry])] = entry


@kernel
def phrase_links_kernel(first, phrase, begin, link_first, link, out_first, out_code):
    """The links of phrase pairs, as positions in them, in the order of source and target positions.

    first, phrase     of ``phrases_kernel``, from sentence pair ``begin`` on
    link_first, link  int64 [S + 1], int32 [L, 2] the links of sentence pairs, in this order, each once
    out_first         int64 [P + 1]  written
    out_code          int32 [.]      written, as far as there is room

    Returns the number of links. O(P * links of a sentence).  Twin: tests/naive/phrases.py::phrase_pairs.
    """
    used = 0
    for s in range(first.shape[0] - 1):
        for p in range(first[s], first[s + 1]):
            for k in range(link_first[begin + s], link_first[begin + s + 1]):
                i, j = link[k, 0] - phrase[p, SRC_START], link[k, 1] - phrase[p, TGT_START]
                # No link leaves a phrase pair: checking one end is enough.
                if i >= 0 and link[k, 0] < phrase[p, SRC_END] and j >= 0 and link[k, 1] < phrase[p, TGT_END]:
                    if used < out_code.shape[0]:
                        out_code[used] = i << LINK_SHIFT | j
                    used += 1
            out_first[p + 1] = used
    return used


@leaf
def word_weight(
    pair_key, loss, column, words, begin, others, other_begin, code, code_begin, code_end, k, shift
):
    """The mean probability of word k of a phrase given the words that it is linked to, or no word."""
    total, num = 0.0, 0
    for c in range(code_begin, code_end):
        i, j = code[c] >> LINK_SHIFT, code[c] & ((1 << LINK_SHIFT) - 1)
        if (i if shift else j) != k:
            continue
        src = words[begin + k] if shift else others[other_begin + i]
        tgt = others[other_begin + j] if shift else words[begin + k]
        place = find_pair(pair_key, src, tgt)
        if place >= 0:
            total += 10.0 ** -np.float64(loss[place, column])
        num += 1
    if num > 0:
        return total / num
    word = words[begin + k]
    place = find_pair(pair_key, word, 0) if shift else find_pair(pair_key, 0, word)
    return 10.0 ** -np.float64(loss[place, column]) if place >= 0 else 0.0


@kernel
def lexical_weights_kernel(pair_key, pair_loss, pair, src, tgt, links, out_weight):
    """Lexical weights of phrase pairs (Koehn, Och and Marcu 2003), in both directions.

    pair_key, pair_loss  LexicalLosses
    pair                 int32 [R, 3]    source phrase, target phrase, links
    src, tgt, links      SequenceTable   of these
    out_weight           float64 [R, 2]  written; of the source side given the target side, and the reverse

    A weight is the product over words of the mean probability given each word that it is linked to, or given
    none. O(words * links).  Twin: tests/naive/phrases.py::lexical_weight.
    """
    for r in range(pair.shape[0]):
        f, e, a = pair[r, 0], pair[r, 1], pair[r, 2]
        out_weight[r, 0] = 1.0
        for k in range(src.first[f + 1] - src.first[f]):
            out_weight[r, 0] *= word_weight(
                pair_key,
                pair_loss,
                0,
                src.pool,
                src.first[f],
                tgt.pool,
                tgt.first[e],
                links.pool,
                links.first[a],
                links.first[a + 1],
                k,
                True,
            )
        out_weight[r, 1] = 1.0
        for k in range(tgt.first[e + 1] - tgt.first[e]):
            out_weight[r, 1] *= word_weight(
                pair_key,
                pair_loss,
                1,
                tgt.pool,
                tgt.first[e],
                src.pool,
                src.first[f],
                links.pool,
                links.first[a],
                links.first[a + 1],
                k,
                False,
            )
