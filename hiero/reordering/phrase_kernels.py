# mypy: ignore-errors
"""Orientation of phrase pairs towards the previous target phrase, and their features."""

import numpy as np

from hiero.bitext.alignments_kernels import SRC_END, SRC_START, TGT_END, TGT_START
from hiero.core.array_kernels import grown
from hiero.core.hash_kernels import hash_bytes, is_same, mix, probe_within, table_size
from hiero.core.jit import kernel, leaf
from hiero.reordering.table_kernels import (
    AROUND,
    BETWEEN_SIDES,
    BIAS,
    FIRST_WORD,
    LAST_WORD,
    MONOTONE,
    OTHER,
    PAIR,
    SOURCE_SEED,
    SWAP,
    feature_key,
    key_code,
)


@leaf
def corner(tgt, src, is_start):
    """Code of a corner of phrases: their target side ends before ``tgt``, their source side at ``src``."""
    return np.int64(tgt) << 32 | np.int64(src) << 1 | np.int64(is_start)


@leaf
def probe_corner(slot, mask, code):
    return probe_within(slot, mask, key_code(code), is_same, slot, code)


@leaf
def enter_corner(slot, mask, code):
    slot[probe_corner(slot, mask, code)] = code


@leaf
def has_corner(slot, mask, code):
    return slot[probe_corner(slot, mask, code)] >= 0


@kernel
def orientations_kernel(first, phrase, link_first, link, begin, by_word, out_label):
    """The orientation of every phrase pair towards the previous target phrase.

    first, phrase     of ``phrases_kernel``, from sentence pair ``begin`` on
    link_first, link  likewise
    by_word           whether a single link counts as the previous phrase (Moses' ``wbe``), not any phrase
                      pair that ends where this one begins
    out_label         int8 [P]  written

    Monotone: the source side of the previous phrase ends where that of this one begins; the beginning of the
    sentence counts as a phrase. Swap: it begins where this one ends. O(P + links).
    Twin: tests/naive/reorder.py::orientations.
    """
    slot = np.empty(1024, np.int64)
    for s in range(first.shape[0] - 1):
        links = link_first[begin + s + 1] - link_first[begin + s]
        entries = 2 * (links if by_word else first[s + 1] - first[s]) + 1
        size = table_size(entries)
        if size > slot.shape[0]:
            slot = np.empty(size, np.int64)
        mask = size - 1
        for k in range(size):
            slot[k] = -1
        enter_corner(slot, mask, corner(0, 0, False))
        if by_word:
            for k in range(link_first[begin + s], link_first[begin + s + 1]):
                i, j = link[k, 0], link[k, 1]
                enter_corner(slot, mask, corner(j + 1, i + 1, False))
                enter_corner(slot, mask, corner(j + 1, i, True))
        else:
            for p in range(first[s], first[s + 1]):
                enter_corner(slot, mask, corner(phrase[p, TGT_END], phrase[p, SRC_END], False))
                enter_corner(slot, mask, corner(phrase[p, TGT_END], phrase[p, SRC_START], True))
        for p in range(first[s], first[s + 1]):
            tgt = phrase[p, TGT_START]
            monotone = has_corner(slot, mask, corner(tgt, phrase[p, SRC_START], False))
            swap = has_corner(slot, mask, corner(tgt, phrase[p, SRC_END], True))
            # With several links to a word both may hold: then it is neither.
            out_label[p] = OTHER if monotone == swap else (MONOTONE if monotone else SWAP)


@leaf
def put_around(src, start, end, low, high, window, edges, bag, out_key, n):
    """Features of the source words at and around the block src[low:high] of the sentence src[start:end].

    Words count from 1 in the features and from 0 in ``src``. Returns the next row. ``bag``: the words around
    are features wherever they are, each once, and the edges of the sentence are none.
    """
    if edges:
        out_key[n] = feature_key(FIRST_WORD, src[low] + 1, 0)
        out_key[n + 1] = feature_key(LAST_WORD, src[high - 1] + 1, 0)
        n += 2
    begin = n
    for d in range(window if bag else 0):
        for at in (low - 1 - d, high + d):
            if at < start or at >= end:
                continue
            key = feature_key(AROUND, src[at] + 1, 0)
            fresh = True
            for q in range(begin, n):
                fresh = fresh and out_key[q] != key
            if fresh:
                out_key[n] = key
                n += 1
    for d in range(0 if bag else window):
        before, after = low - 1 - d, high + d
        out_key[n] = feature_key(AROUND + 2 * d, src[before] + 1 if before >= start else 0, 0)
        out_key[n + 1] = feature_key(AROUND + 2 * d + 1, src[after] + 1 if after < end else 0, 0)
        n += 2
    return n


@kernel
def phrase_features_kernel(
    src_first, src, tgt_first, tgt, link_first, link, begin, first, phrase, window, edges, bag
):
    """The features of phrase pairs: a bias, aligned words, and source words around.

    src_first, src, tgt_first, tgt  a bitext, words from 0
    link_first, link                its links
    begin, first, phrase            of ``phrases_kernel``
    window                          number of words before and after
    edges                           whether the first and the last word of the phrase are features as well
    bag                             whether source words around are features wherever they are

    Returns first int64 [P + 1] and key int64: each feature once in a row. O(P * links of a sentence).
    Twin: tests/naive/reorder.py::features.
    """
    out_first = np.zeros(phrase.shape[0] + 1, np.int64)
    out_key = np.empty(1024, np.int64)
    n = np.int64(0)
    for s in range(first.shape[0] - 1):
        src_base, tgt_base = src_first[begin + s], tgt_first[begin + s]
        links = link_first[begin + s + 1] - link_first[begin + s]
        for p in range(first[s], first[s + 1]):
            out_key = grown(out_key, n + links + 3 + 2 * window)
            out_key[n] = feature_key(BIAS, 0, 0)
            n += 1
            pairs = n
            for k in range(link_first[begin + s], link_first[begin + s + 1]):
                i, j = link[k, 0], link[k, 1]
                # No link leaves a phrase pair: checking one end is enough.
                if j < phrase[p, TGT_START] or j >= phrase[p, TGT_END]:
                    continue
                key = feature_key(PAIR, src[src_base + i] + 1, tgt[tgt_base + j] + 1)
                fresh = True
                for q in range(pairs, n):
                    fresh = fresh and out_key[q] != key
                if fresh:
                    out_key[n] = key
                    n += 1
            low, high = src_base + phrase[p, SRC_START], src_base + phrase[p, SRC_END]
            n = put_around(src, src_base, src_first[begin + s + 1], low, high, window, edges, bag, out_key, n)
            out_first[p + 1] = n
    return out_first, out_key[:n].copy()


@kernel
def phrase_word_codes_kernel(pool, first, out_code):
    """The hashes of words, entries of (pool, first), for those of phrases; writes uint64 ``out_code`` [W].

    O(bytes).  Twin: tests/naive/reorder.py::fnv.
    """
    for w in range(first.shape[0] - 1):
        out_code[w] = hash_bytes(pool, first[w], first[w + 1])


@kernel
def phrase_codes_kernel(
    src_first, src, tgt_first, tgt, src_code, tgt_code, begin, first, phrase, out_pair, out_source
):
    """The hashes of phrase pairs, and those of their source sides.

    src_first, src, tgt_first, tgt  a bitext
    src_code, tgt_code              uint64 [W]  of ``phrase_word_codes_kernel``
    begin, first, phrase            of ``phrases_kernel``
    out_pair, out_source            uint64 [P]  written

    O(P * words of a phrase).  Twin: tests/naive/reorder.py::phrase_codes.
    """
    for s in range(first.shape[0] - 1):
        src_base, tgt_base = src_first[begin + s], tgt_first[begin + s]
        for p in range(first[s], first[s + 1]):
            code = SOURCE_SEED
            for i in range(src_base + phrase[p, SRC_START], src_base + phrase[p, SRC_END]):
                code = mix(code, src_code[src[i]])
            out_source[p] = code
            code = mix(code, BETWEEN_SIDES)
            for j in range(tgt_base + phrase[p, TGT_START], tgt_base + phrase[p, TGT_END]):
                code = mix(code, tgt_code[tgt[j]])
            out_pair[p] = code
