"""Lexical tables: how often words are linked, and what that says of one given the other."""

import math

import numpy as np

from hiero._jit import kernel
from hiero.kernels.extract_tables import find_pair


@kernel
def count_pairs_kernel(src, tgt, first_src, first_tgt, first_link, link, counted, pair_key, pair_count, used):
    """Add the links of sentences to a hash table of pairs of words; returns the first sentence not counted.

    src, first_src, tgt, first_tgt, first_link, link  as in Tables, of one alignment
    counted     sentences counted before
    pair_key    int64 [2 ** k]  written; source word << 32 | target word, -1 empty
    pair_count  int64 [2 ** k]  written
    used        int64 [1]       written; pairs in the table

    Words without a link are linked to 0. The table is left half empty: the caller makes a larger one and
    calls again. O(words + links).  Twin: tests/naive/extract.py::lexicon.
    """
    num_sentences = first_src.shape[0] - 1
    longest = 0
    for s in range(counted, num_sentences):
        longest = max(longest, first_tgt[s + 1] - first_tgt[s])
    linked = np.zeros(longest, np.bool_)
    for s in range(counted, num_sentences):
        begin, end = first_src[s], first_src[s + 1] - 1
        base, size = first_tgt[s], first_tgt[s + 1] - first_tgt[s] - 1
        room = first_link[end] - first_link[begin] + end - begin + size
        if 2 * (used[0] + room) > pair_key.shape[0]:
            return s
        for k in range(size):
            linked[k] = False
        for at in range(begin, end + size):
            # Source words, then target words without a link.
            first, last = np.int64(0), np.int64(1)
            src_word = tgt_word = np.int64(0)
            if at < end:
                src_word = np.int64(src[at])
                first, last = first_link[at], first_link[at + 1]
                alone = first == last
            else:
                tgt_word = np.int64(tgt[base + at - end])
                alone = True
                if linked[at - end]:
                    continue
            for k in range(first, last + 1 if alone and at < end else last):
                if not alone:
                    tgt_word = np.int64(tgt[base + link[k]])
                    linked[link[k]] = True
                place = find_pair(pair_key, src_word, tgt_word)
                if place < 0:
                    place = -1 - place
                    pair_key[place] = src_word << 32 | tgt_word
                    used[0] += 1
                pair_count[place] += 1
    return num_sentences


@kernel
def losses_kernel(pair_key, pair_count, src_total, tgt_total, out_loss):
    """Turn counts of pairs into -log10 p(source | target) and -log10 p(target | source).

    pair_key    int64 [H]
    pair_count  int64 [H]
    src_total   int64 [V]       written; links of each source word, zeros before
    tgt_total   int64 [W]       written; likewise
    out_loss    float32 [H, 2]  written where there is a pair

    O(H).  Twin: tests/naive/extract.py::lexicon.
    """
    for k in range(pair_key.shape[0]):
        if pair_key[k] >= 0:
            src_total[pair_key[k] >> 32] += pair_count[k]
            tgt_total[pair_key[k] & 0xFFFFFFFF] += pair_count[k]
    for k in range(pair_key.shape[0]):
        if pair_key[k] >= 0:
            out_loss[k, 0] = -math.log10(pair_count[k] / tgt_total[pair_key[k] & 0xFFFFFFFF])
            out_loss[k, 1] = -math.log10(pair_count[k] / src_total[pair_key[k] >> 32])


@kernel
def grow_pairs_kernel(pair_key, pair_count, out_key, out_count):
    """Move all pairs to a larger hash table, whose keys are -1 and counts 0. O(H)."""
    for k in range(pair_key.shape[0]):
        if pair_key[k] >= 0:
            place = -1 - find_pair(out_key, pair_key[k] >> 32, pair_key[k] & 0xFFFFFFFF)
            out_key[place] = pair_key[k]
            out_count[place] = pair_count[k]


@kernel
def spans_kernel(first_src, first_tgt, first_link, link, out_src_span, out_tgt_span):
    """Note of every word how far its links reach.

    first_src ... link  as in Tables, of one alignment
    out_src_span        int16 [N, 2]  written: first linked target word, the one after the last; -1 if none
    out_tgt_span        int16 [M, 2]  likewise; -1 before

    O(words + links).  Twin: tests/naive/extract.py::spans.
    """
    for s in range(first_src.shape[0] - 1):
        begin = first_src[s]
        for at in range(begin, first_src[s + 1]):
            first, last = first_link[at], first_link[at + 1]
            out_src_span[at, 0] = -1
            out_src_span[at, 1] = -1
            if first < last:
                out_src_span[at, 0] = link[first]
                out_src_span[at, 1] = link[last - 1] + 1
            for k in range(first, last):
                there = first_tgt[s] + link[k]
                # Source words ascend: the first one seen is the first one.
                if out_tgt_span[there, 0] < 0:
                    out_tgt_span[there, 0] = at - begin
                out_tgt_span[there, 1] = at - begin + 1
