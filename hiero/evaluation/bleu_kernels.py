# mypy: ignore-errors
"""Statistics for all kinds of BLEU: n-grams that translations share with their references."""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids, Ints
from hiero.core.hash_kernels import hash_number, is_same, probe_within, table_size
from hiero.core.jit import kernel, leaf


class ReferenceWords(NamedTuple):
    """References of S sentences, R in all; a sentence has at least one.

    first_ref   int64 [S + 1]   references of sentence s: first_ref[s] ... first_ref[s + 1] - 1
    first_word  int64 [R + 1]   words of reference r: word[first_word[r]:first_word[r + 1]]
    word        int32 [.]       ids; a negative one equals no other word, not even itself
    """

    first_ref: Ints
    first_word: Ints
    word: Ids


@leaf
def _place(key_at, mask, key):
    """The slot of a key among the first mask + 1, or the empty one where it belongs."""
    return probe_within(key_at, mask, hash_number(key), is_same, key_at, key)


@leaf
def _child(node, word):
    """The key of n-gram ``node`` with one more word: exact, so there are no collisions."""
    return (np.int64(node) << np.int64(32)) | np.int64(word)


@kernel
def _largest_table(refs, sentence, order):
    """Room for the n-grams of the longest of some sentences."""
    most = 0
    for s in sentence:
        words = refs.first_word[refs.first_ref[s + 1]] - refs.first_word[refs.first_ref[s]]
        most = max(most, words)
    return table_size(most * order)


@leaf
def _reference_length(first_ref, first_word, s, length, shortest):
    """Length of the shortest reference, or of the one closest to ``length``; of two, the shorter."""
    best = np.int64(-1)
    for r in range(first_ref[s], first_ref[s + 1]):
        here = first_word[r + 1] - first_word[r]
        if best < 0:
            best = here
        elif shortest:
            best = min(best, here)
        else:
            nearer = abs(here - length) - abs(best - length)
            if nearer < 0 or (nearer == 0 and here < best):
                best = here
    return best


@leaf
def _count_references(refs_first_ref, refs_first_word, refs_word, s, order, mask, key_at, limit, count, last):
    """Enter the n-grams of a sentence's references; limit[slot] becomes the largest count in one reference.

    An n-gram is identified by its slot; its key is the slot of the n-gram without its last word, counted from
    1, and that word. ``last`` is the reference counted last: ``count`` starts anew with each.
    """
    for r in range(refs_first_ref[s], refs_first_ref[s + 1]):
        end = refs_first_word[r + 1]
        for start in range(refs_first_word[r], end):
            node = 0
            for at in range(start, min(start + order, end)):
                if refs_word[at] < 0:
                    break
                key = _child(node, refs_word[at])
                slot = _place(key_at, mask, key)
                if key_at[slot] < 0:
                    key_at[slot] = key
                    limit[slot] = 0
                    last[slot] = -1
                if last[slot] != r:
                    last[slot] = r
                    count[slot] = 0
                count[slot] += 1
                limit[slot] = max(limit[slot], count[slot])
                node = slot + 1
    for slot in range(mask + 1):
        last[slot] = -1


@kernel
def bleu_statistics_kernel(refs, sentence, first_hyp, first_word, word, shortest, out_stats):
    """Statistics of translations, a list of them for each of some sentences.

    refs        ReferenceWords
    sentence    int64 [K]               sentence of list k
    first_hyp   int64 [K + 1]           its translations: first_hyp[k] ... first_hyp[k + 1] - 1, of H in all
    first_word  int64 [H + 1]           words of translation h: word[first_word[h]:first_word[h + 1]]
    word        int32 [.]               ids; negative: in no reference
    shortest    bool                    count the shortest reference's length, not the closest one
    out_stats   int64 [H, 2 + 2 * N]    written; length, length of the reference, matches of orders 1 ... N
                                        (clipped by the largest count in one reference), n-grams of
                                        orders 1 ... N

    O(N * words), of the references once a list.  Twin: tests/naive/bleu.py::statistics.
    """
    order = (out_stats.shape[1] - 2) // 2
    room = _largest_table(refs, sentence, order)
    key_at = np.empty(room, np.int64)
    limit, count, last = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    for k in range(sentence.shape[0]):
        s = sentence[k]
        words = refs.first_word[refs.first_ref[s + 1]] - refs.first_word[refs.first_ref[s]]
        mask = table_size(words * order) - 1
        for slot in range(mask + 1):
            key_at[slot] = -1
        _count_references(
            refs.first_ref, refs.first_word, refs.word, s, order, mask, key_at, limit, count, last
        )
        for h in range(first_hyp[k], first_hyp[k + 1]):
            end = first_word[h + 1]
            length = end - first_word[h]
            out_stats[h, 0] = length
            out_stats[h, 1] = _reference_length(refs.first_ref, refs.first_word, s, length, shortest)
            for n in range(order):
                out_stats[h, 2 + n] = 0
                out_stats[h, 2 + order + n] = max(length - n, 0)
            for start in range(first_word[h], end):
                node = 0
                for at in range(start, min(start + order, end)):
                    if word[at] < 0:
                        break
                    slot = _place(key_at, mask, _child(node, word[at]))
                    if key_at[slot] < 0:
                        break  # nor is a longer n-gram in any reference
                    if last[slot] != h:
                        last[slot] = h
                        count[slot] = 0
                    count[slot] += 1
                    if count[slot] <= limit[slot]:
                        out_stats[h, 2 + at - start] += 1
                    node = slot + 1
