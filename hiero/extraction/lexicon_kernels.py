# mypy: ignore-errors
"""Lexical tables: counts of linked words, and probabilities of one given the other; scores of phrases."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hiero.bitext.alignments_kernels import SRC_END, SRC_START, TGT_END, TGT_START
from hiero.core.hash_kernels import FNV_START, mix, probe, probe_new
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


# ---- phrase tables

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
