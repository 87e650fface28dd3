# mypy: ignore-errors
"""k-best lists of many sentences, merged over iterations: new candidates, and scores of all.

The features of whole derivations are added up from those of their rules and rule applications.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Floats, Hashes, Ids, Ints
from hiero.core.hash_kernels import mix, probe, probe_new
from hiero.core.jit import kernel, leaf

MANY = 8  # features of a sentence for each of a candidate, from which on those are sorted
NEVER = 0.1  # matches of an order without a match, as in sacrebleu's smoothing "floor"


class ListStore(NamedTuple):
    """N candidates in order of arrival, with room for more; written.

    sentence    int64 [>= N]          the line each belongs to
    code        uint64 [>= N]         hash of sentence, features and words
    first       int64 [> N]           features of candidate c: first[c] ... first[c + 1] - 1 of id and value
    id          int32                 ascending in each row
    value       float64
    first_word  int64 [> N]           words of candidate c: first_word[c] ... first_word[c + 1] - 1 of word
    word        int32
    statistics  int64 [>= N, 2 + 2 * order]
    """

    sentence: Ints
    code: Hashes
    first: Ints
    id: Ids
    value: Floats
    first_word: Ints
    word: Ids
    statistics: Ints


class Lists(NamedTuple):
    """N candidates of S sentences as learners see them; read-only.

    number       int64 [S]      lines of the tuning set, ascending
    first_place  int64 [S + 1]  the candidates of sentence s: order[first_place[s]:first_place[s + 1]]
    order        int64 [N]      candidates by sentence; those of one in order of arrival
    first        int64 [N + 1]  features of candidate c: first[c] ... first[c + 1] - 1 of id and value
    id           int32          ascending in each row
    value        float64
    statistics   int64 [N, 2 + 2 * order]
    """

    number: Ints
    first_place: Ints
    order: Ints
    first: Ints
    id: Ids
    value: Floats
    statistics: Ints


@leaf
def _candidate_code(sentence, ids, bits, words, start, end, first_word, end_word):
    code = mix(np.uint64(end_word - first_word), sentence)
    for i in range(start, end):
        code = mix(mix(code, ids[i]), bits[i])
    for i in range(first_word, end_word):
        code = mix(code, np.int64(words[i]))
    return code


@leaf
def _is_candidate(store, c, key):
    """``equal`` of candidates: compares hashes first, then the whole."""
    code, sentence, ids, values, words, start, end, first_word, end_word = key
    at, word_at = store.first[c], store.first_word[c]
    if (
        store.code[c] != code
        or store.sentence[c] != sentence
        or store.first[c + 1] - at != end - start
        or store.first_word[c + 1] - word_at != end_word - first_word
    ):
        return False
    for i in range(end - start):
        if store.id[at + i] != ids[start + i] or store.value[at + i] != values[start + i]:
            return False
    for i in range(end_word - first_word):
        if store.word[word_at + i] != words[first_word + i]:
            return False
    return True


@kernel
def append_kernel(store, slot, size, sentence, first, ids, values, bits, first_word, words, statistics):
    """Append the new candidates of a sentence; return their number.

    store       ListStore             written; with room for all of them
    slot        int64 [2 ** k]        written; candidates, -1 empty; never over half full
    size        int                   candidates in the store
    sentence    int                   the sentence
    first       int64 [n + 1]         its new list: features ...
    ids         int32
    values      float64               no NaN
    bits        uint64                the same, as bits
    first_word  int64 [n + 1]         ... words ...
    words       int32
    statistics  int64 [n, .]          ... and statistics

    O(features and words of the list).  Twin: tests/naive/batch.py::merged.
    """
    count = size
    for h in range(first.shape[0] - 1):
        start, end, word_start, word_end = first[h], first[h + 1], first_word[h], first_word[h + 1]
        code = _candidate_code(sentence, ids, bits, words, start, end, word_start, word_end)
        key = (code, sentence, ids, values, words, start, end, word_start, word_end)
        at = probe(slot, code, _is_candidate, store, key)
        if slot[at] >= 0:
            continue
        slot[at] = count
        store.sentence[count] = sentence
        store.code[count] = code
        place = store.first[count]
        for i in range(start, end):
            store.id[place + i - start] = ids[i]
            store.value[place + i - start] = values[i]
        store.first[count + 1] = place + end - start
        place = store.first_word[count]
        for i in range(word_start, word_end):
            store.word[place + i - word_start] = words[i]
        store.first_word[count + 1] = place + word_end - word_start
        for i in range(statistics.shape[1]):
            store.statistics[count, i] = statistics[h, i]
        count += 1
    return count - size


@kernel
def refill_list_slots_kernel(code, size, out_slot):
    """Enter the first candidates of the lists, which are all different, into an empty table by their hashes.

    code      uint64 [>= size]
    size      int
    out_slot  int64 [2 ** k]    written; all -1 before

    O(size).  Twin: tests/naive/batch.py::merged, after loading.
    """
    for c in range(size):
        out_slot[probe_new(out_slot, code[c])] = c


@leaf
def row_score(first, ids, values, weight, c):
    """The score of candidate c."""
    total = 0.0
    for i in range(first[c], first[c + 1]):
        total += values[i] * weight[ids[i]]
    return total


@kernel
def list_scores_kernel(rows, weight, out_score):
    """The score of every candidate of the lists, or of any rows of features.

    rows       Lists or FeatureRows
    weight     float64 [F]  F larger than every id
    out_score  float64 [N]  written

    O(features).  Twin: tests/naive/batch.py::score.
    """
    for c in range(out_score.shape[0]):
        out_score[c] = row_score(rows.first, rows.id, rows.value, weight, c)


@kernel
def count_sentences_kernel(lists, out_count, last):
    """Count the sentences in whose candidates each feature occurs.

    lists      Lists
    out_count  int64 [F]  added to
    last       int64 [F]  zeros; written: one more than the last sentence with the feature

    O(features of the candidates).  Twin: tests/naive/batch.py::num_sentences.
    """
    for s in range(lists.number.shape[0]):
        for place in range(lists.first_place[s], lists.first_place[s + 1]):
            c = lists.order[place]
            for i in range(lists.first[c], lists.first[c + 1]):
                f = lists.id[i]
                if last[f] != s + 1:
                    last[f] = s + 1
                    out_count[f] += 1


@kernel
def best_kernel(lists, score, out_best):
    """The candidate of each sentence with the highest score; of equal ones, the first to arrive.

    lists     Lists
    score     float64 [N]  no NaN
    out_best  int64 [S]    written

    O(N).  Twin: tests/naive/batch.py::best.
    """
    for s in range(out_best.shape[0]):
        best = lists.order[lists.first_place[s]]
        for place in range(lists.first_place[s] + 1, lists.first_place[s + 1]):
            c = lists.order[place]
            if score[c] > score[best]:
                best = c
        out_best[s] = best


@leaf
def floor_bleu(stats):
    """BLEU of summed statistics, int64 or float64 [2 + 2 * order]; no match counts as a tenth of one.

    Equal to BLEU if every order has a match; otherwise a learner still sees improvements. Orders longer than
    the text are left out.
    """
    order = (stats.shape[0] - 2) // 2
    logarithm = 0.0
    used = 0
    matched = False
    for n in range(order):
        total = stats[2 + order + n]
        if total <= 0:
            break
        match = stats[2 + n]
        if match > 0:
            matched = True
            logarithm += np.log(match / total)
        else:
            logarithm += np.log(NEVER / total)
        used += 1
    if not matched:
        return 0.0
    brevity = min(0.0, 1.0 - stats[1] / stats[0])
    return np.exp(logarithm / used + brevity)


@kernel
def replay_candidates_kernel(first_step, part_of_step, first, local, value, num_local):
    """Add up rows of features for each of N candidates, given as derivations.

    first_step    int64 [N + 1]   steps of each derivation
    part_of_step  int32 [S, P]    rows that each step contributes, -1 for none
    first         int64 [R + 1]   rows of features
    local         int32           features of the rows, 0 ... num_local - 1
    value         float64

    Returns first int64 [N + 1], id int32 and value float64: ids ascend in a row, sums of 0 are left out.
    Summed step by step. O(entries + N * num_local), or O(entries * log) if that is less.
    Twin: tests/naive/candidates.py::replay.
    """
    num_derivations = first_step.shape[0] - 1
    total = np.zeros(num_local)
    met = np.zeros(num_local, np.bool_)
    touched = np.empty(num_local, np.int32)
    out_first = np.zeros(num_derivations + 1, np.int64)
    size = np.int64(1024)
    out_id = np.empty(size, np.int32)
    out_value = np.empty(size, np.float64)
    n = np.int64(0)
    for d in range(num_derivations):
        count = 0
        for s in range(first_step[d], first_step[d + 1]):
            for p in range(part_of_step.shape[1]):
                row = part_of_step[s, p]
                if row < 0:
                    continue
                for k in range(first[row], first[row + 1]):
                    f = local[k]
                    if not met[f]:
                        met[f] = True
                        touched[count] = f
                        count += 1
                    total[f] += value[k]
        if n + count > size:
            size = max(2 * size, n + count)
            more_id = np.empty(size, np.int32)
            more_value = np.empty(size, np.float64)
            # Item by item: an assignment of slices takes seconds to compile.
            for k in range(n):
                more_id[k] = out_id[k]
                more_value[k] = out_value[k]
            out_id, out_value = more_id, more_value
        # Nearly all candidates have many of the features: to pass over all is faster than to sort.
        in_order = num_local > MANY * count
        order = np.sort(touched[:count]) if in_order else touched[:0]
        for k in range(count if in_order else num_local):
            f = order[k] if in_order else np.int32(k)
            if total[f] != 0.0:
                out_id[n] = f
                out_value[n] = total[f]
                n += 1
            total[f] = 0.0
            met[f] = False
        out_first[d + 1] = n
    return out_first, out_id[:n].copy(), out_value[:n].copy()


@kernel
def dense_lists_kernel(lists, column, out_value):
    """The values of some features of all candidates of the lists, as a matrix.

    lists      Lists
    column     int32 [F]         of each feature its column, or -1
    out_value  float64 [N, D]    written; all zero before

    O(features).  Twin: tests/naive/batch.py::dense.
    """
    for c in range(out_value.shape[0]):
        for i in range(lists.first[c], lists.first[c + 1]):
            if column[lists.id[i]] >= 0:
                out_value[c, column[lists.id[i]]] = lists.value[i]
