# mypy: ignore-errors
"""Lexical tables: counts of linked words, and probabilities of one given the other."""

import math

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.extraction.table_kernels import UNSEEN, find_pair


@leaf
def pairs_of_sentence(src, tgt, first_src, first_tgt, first_link, link, s, linked, out_pair):
    """Write the links of a sentence as pairs of words, those without a link with 0; returns their number."""
    begin, end = first_src[s], first_src[s + 1] - 1
    base, size = first_tgt[s], first_tgt[s + 1] - first_tgt[s] - 1
    for k in range(size):
        linked[k] = False
    used = 0
    for at in range(begin, end):
        first, last = first_link[at], first_link[at + 1]
        for k in range(first, last):
            linked[link[k]] = True
            out_pair[used, 0], out_pair[used, 1] = src[at], tgt[base + link[k]]
            used += 1
        if first == last:
            out_pair[used, 0], out_pair[used, 1] = src[at], 0
            used += 1
    for k in range(size):
        if not linked[k]:
            out_pair[used, 0], out_pair[used, 1] = 0, tgt[base + k]
            used += 1
    return used


@leaf
def pair_room(first_src, first_tgt, first_link, s):
    """An upper bound on the number of pairs of a sentence."""
    begin, end = first_src[s], first_src[s + 1] - 1
    return first_link[end] - first_link[begin] + end - begin + first_tgt[s + 1] - first_tgt[s] - 1


@kernel
def count_lexicon_kernel(
    src, tgt, first_src, first_tgt, first_link, link, counted, pair_key, pair_count, used
):
    """Count linked words of sentences for lexical tables; returns the first sentence not counted.

    src, first_src, tgt, first_tgt, first_link, link  as in Tables, of one alignment
    counted     sentences counted before
    pair_key    int64 [2 ** k]  written; source word << 32 | target word, -1 empty
    pair_count  int64 [2 ** k]  written
    used        int64 [1]       written; pairs in the table

    Words without a link are linked to 0. At most half of the slots are used: if they are, the caller passes
    a larger table and calls again. O(words + links).  Twin: tests/naive/extract.py::lexicon.
    """
    num_sentences = first_src.shape[0] - 1
    longest, most = np.int64(0), np.int64(0)
    for s in range(counted, num_sentences):
        longest = max(longest, first_tgt[s + 1] - first_tgt[s])
        most = max(most, pair_room(first_src, first_tgt, first_link, s))
    linked, pair = np.zeros(longest, np.bool_), np.empty((most, 2), np.int64)
    for s in range(counted, num_sentences):
        if 2 * (used[0] + pair_room(first_src, first_tgt, first_link, s)) > pair_key.shape[0]:
            return s
        for k in range(pairs_of_sentence(src, tgt, first_src, first_tgt, first_link, link, s, linked, pair)):
            place = find_pair(pair_key, pair[k, 0], pair[k, 1])
            if place < 0:
                place = -1 - place
                pair_key[place] = pair[k, 0] << 32 | pair[k, 1]
                used[0] += 1
            pair_count[place] += 1
    return num_sentences


@leaf
def note_losses(pair_key, slot, pair_count, src_total, tgt_total, out_loss):
    """Write -log10 of the probability of each word of a pair given the other."""
    count = pair_count[slot]
    if count > 0:
        out_loss[slot, 0] = -math.log10(count / tgt_total[pair_key[slot] & 0xFFFFFFFF])
        out_loss[slot, 1] = -math.log10(count / src_total[pair_key[slot] >> 32])
    else:
        out_loss[slot, 0] = out_loss[slot, 1] = UNSEEN


@kernel
def lexicon_losses_kernel(pair_key, pair_count, src_total, tgt_total, out_loss):
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
            note_losses(pair_key, k, pair_count, src_total, tgt_total, out_loss)


@leaf
def loss_of(lexicon, slot, side):
    """A loss of the pair in a slot: column ``side`` of ``pair_loss``."""
    now = lexicon.round[0]
    if now == 0:
        return np.float64(lexicon.pair_loss[slot, side])
    if lexicon.computed[slot] != now:
        lexicon.computed[slot] = now
        note_losses(lexicon.pair_key, slot, lexicon.count, lexicon.src, lexicon.tgt, lexicon.own_loss)
    return np.float64(lexicon.own_loss[slot, side])


@kernel
def recount_lexicon_kernel(text, links, lexicon, sentences, step):
    """Count the links of sentences ``step`` times more.

    text, links  IndexedText, IndexedLinks
    lexicon      Lexicon    written
    sentences    int64 [G]

    O(words and links of the sentences).  Twin: tests/naive/extract.py::lexicon.
    """
    first_src, first_tgt = text.first_src, text.first_tgt
    longest, most, num_alignments = np.int64(0), np.int64(0), links.first_link.shape[0]
    for s in sentences:
        longest = max(longest, first_tgt[s + 1] - first_tgt[s])
        for a in range(num_alignments):
            most = max(most, pair_room(first_src, first_tgt, links.first_link[a], s))
    linked, pair = np.zeros(longest, np.bool_), np.empty((most, 2), np.int64)
    for s in sentences:
        for a in range(num_alignments):
            first_link = links.first_link[a]
            for k in range(
                pairs_of_sentence(
                    text.src, text.tgt, first_src, first_tgt, first_link, links.link, s, linked, pair
                )
            ):
                lexicon.count[find_pair(lexicon.pair_key, pair[k, 0], pair[k, 1])] += step
                lexicon.src[pair[k, 0]] += step
                lexicon.tgt[pair[k, 1]] += step


@kernel
def grow_lexicon_kernel(pair_key, pair_count, out_key, out_count):
    """Copy counts of pairs to a larger hash table, whose keys are -1 and counts 0.

    O(H).  Twin: none; it changes no answer.
    """
    for k in range(pair_key.shape[0]):
        if pair_key[k] >= 0:
            place = -1 - find_pair(out_key, pair_key[k] >> 32, pair_key[k] & 0xFFFFFFFF)
            out_key[place] = pair_key[k]
            out_count[place] = pair_count[k]
