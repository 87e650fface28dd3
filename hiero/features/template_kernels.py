# mypy: ignore-errors
"""Features that templates read off rules, counts of words, and linear scores.

Keys of features and their tables are described in ``index.py``.
"""

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap, gap_index, gap_label
from hiero.features.index_kernels import (
    RULE_END,
    RULE_ID,
    RULE_START,
    SEPARATOR,
)

# Kinds of features; index.py describes them in KINDS.
SOURCE_BIGRAM, TARGET_BIGRAM, SHAPE, WORD_PAIR, DELETION, INSERTION, INSERTION_PAIR = 2, 3, 4, 5, 6, 7, 8

# Bits of a set of templates.
WITH_RULE_ID = 1
WITH_SOURCE_BIGRAM = 2
WITH_TARGET_BIGRAM = 4
WITH_SHAPE = 8
WITH_LEXICAL = 16
WITH_INSERTION_PAIR = 32


@kernel
def room_kernel(rules, chosen, templates, out_room):
    """Bound the room that the keys of the chosen rules need; int64 ``out_room`` [3] is written.

    0  keys    1  symbols of all rule ids    2  the longest side of a rule

    O(N).  Twin: none; it is an upper bound on the output of ``keys_kernel``.
    """
    out_room[:] = 0
    for i in range(chosen.shape[0]):
        r = chosen[i]
        num_src = rules.first_src[r + 1] - rules.first_src[r]
        num_tgt = rules.first_tgt[r + 1] - rules.first_tgt[r]
        num_keys = np.int64(2)  # rule id and shape
        if templates & WITH_SOURCE_BIGRAM:
            num_keys += num_src + 1
        if templates & WITH_TARGET_BIGRAM:
            num_keys += num_tgt + 1
        if templates & WITH_LEXICAL:
            num_keys += rules.first_link[r + 1] - rules.first_link[r] + num_src + num_tgt
        if templates & WITH_INSERTION_PAIR:
            num_keys += num_src * num_tgt
        out_room[0] += num_keys
        out_room[1] += num_src + num_tgt + 2
        out_room[2] = max(out_room[2], num_src, num_tgt)


@leaf
def put_rule_id(lhs, src, first_src, end_src, tgt, first_tgt, end_tgt, out_pool, start):
    """Write the sequence of a rule id; returns its length."""
    out_pool[start] = lhs
    n = start + 1
    for i in range(first_src, end_src):
        symbol = src[i]
        out_pool[n] = symbol if symbol >= 0 else gap(gap_label(symbol), 0)
        n += 1
    out_pool[n] = SEPARATOR
    n += 1
    for j in range(first_tgt, end_tgt):
        symbol = tgt[j]
        out_pool[n] = symbol if symbol >= 0 else gap(0, gap_index(symbol))
        n += 1
    return n - start


@leaf
def side_shape(symbols, first, end):
    """The slots (words, gap, words, gap, words) that a side fills: five bits, the first one highest."""
    shape, slot = 0, -1
    for i in range(first, end):
        # Words belong into slots 0, 2, 4 and gaps into 1, 3.
        if symbols[i] < 0:
            slot += 1 if slot % 2 == 0 else 2
        elif slot % 2 != 0:
            slot += 1
        shape |= 16 >> slot
    return shape


@leaf
def put_lexical(
    templates,
    src,
    first_src,
    end_src,
    tgt,
    first_tgt,
    end_tgt,
    link,
    first_link,
    end_link,
    linked,
    out_key,
    n,
):
    """Word pairs, deletions, insertions and insertion pairs of a rule, from row n on; returns the next row.

    ``linked`` bool [2, .] is scratch, as long as the longest side.
    """
    for i in range(end_src - first_src):
        linked[0, i] = False
    for j in range(end_tgt - first_tgt):
        linked[1, j] = False
    lexical = templates & WITH_LEXICAL != 0
    for i in range(first_link, end_link):
        s, t = link[i, 0], link[i, 1]
        linked[0, s] = True
        linked[1, t] = True
        # Some systems link gaps as well; those are not pairs of words.
        if lexical and src[first_src + s] >= 0 and tgt[first_tgt + t] >= 0:
            out_key[n, 0] = WORD_PAIR
            out_key[n, 1] = src[first_src + s]
            out_key[n, 2] = tgt[first_tgt + t]
            n += 1
    if lexical:
        for i in range(first_src, end_src):
            if src[i] >= 0 and not linked[0, i - first_src]:
                out_key[n, 0] = DELETION
                out_key[n, 1] = src[i]
                out_key[n, 2] = 0
                n += 1
    for j in range(first_tgt, end_tgt):
        if tgt[j] >= 0 and not linked[1, j - first_tgt]:
            if lexical:
                out_key[n, 0] = INSERTION
                out_key[n, 1] = tgt[j]
                out_key[n, 2] = 0
                n += 1
            if templates & WITH_INSERTION_PAIR:
                for i in range(first_src, end_src):
                    if src[i] >= 0:
                        out_key[n, 0] = INSERTION_PAIR
                        out_key[n, 1] = src[i]
                        out_key[n, 2] = tgt[j]
                        n += 1
    return n


@kernel
def keys_kernel(rules, chosen, templates, room, out_first, out_key, out_pool):
    """The features that the templates fire on the chosen rules, repeated as often as they fire, with value 1.

    rules      Rules
    chosen     int64 [N]      rules, in any order
    templates  bits WITH_...
    room       int64 [3]      from room_kernel: out_key has room[0] rows, out_pool room[1] entries
    out_first  int64 [N + 1]  written: rule chosen[i] fires the keys out_first[i]:out_first[i + 1]
    out_key    int32 [., 3]   written; of a rule id (RULE_ID, start in out_pool, length)
    out_pool   int32          written

    O(keys).  Twin: tests/naive/features.py::keys.
    """
    # Passing the whole structure to a function costs more than computing the features of a rule.
    src, tgt, link = rules.src, rules.tgt, rules.link
    linked = np.empty((2, room[2]), np.bool_)
    n, used = np.int64(0), np.int64(0)
    out_first[0] = 0
    for i in range(chosen.shape[0]):
        r = chosen[i]
        first_src, end_src = rules.first_src[r], rules.first_src[r + 1]
        first_tgt, end_tgt = rules.first_tgt[r], rules.first_tgt[r + 1]
        if templates & WITH_RULE_ID:
            length = put_rule_id(
                rules.lhs[r], src, first_src, end_src, tgt, first_tgt, end_tgt, out_pool, used
            )
            out_key[n, 0] = RULE_ID
            out_key[n, 1] = used
            out_key[n, 2] = length
            used += length
            n += 1
        if templates & WITH_SOURCE_BIGRAM:
            before = np.int64(RULE_START)
            for j in range(first_src, end_src):
                symbol = np.int64(src[j])
                if symbol < 0:
                    symbol = gap(gap_label(symbol), 0)
                out_key[n, 0] = SOURCE_BIGRAM
                out_key[n, 1] = before
                out_key[n, 2] = symbol
                before = symbol
                n += 1
            out_key[n, 0] = SOURCE_BIGRAM
            out_key[n, 1] = before
            out_key[n, 2] = RULE_END
            n += 1
        if templates & WITH_TARGET_BIGRAM:
            before = np.int64(RULE_START)
            for j in range(first_tgt, end_tgt):
                out_key[n, 0] = TARGET_BIGRAM
                out_key[n, 1] = before
                out_key[n, 2] = tgt[j]
                before = np.int64(tgt[j])
                n += 1
            out_key[n, 0] = TARGET_BIGRAM
            out_key[n, 1] = before
            out_key[n, 2] = RULE_END
            n += 1
        if templates & WITH_SHAPE:
            out_key[n, 0] = SHAPE
            out_key[n, 1] = side_shape(src, first_src, end_src) * 32 + side_shape(tgt, first_tgt, end_tgt)
            out_key[n, 2] = 0
            n += 1
        if templates & (WITH_LEXICAL | WITH_INSERTION_PAIR):
            first_link, end_link = rules.first_link[r], rules.first_link[r + 1]
            n = put_lexical(
                templates, src, first_src, end_src, tgt, first_tgt, end_tgt, link, first_link, end_link,
                linked, out_key, n,
            )  # fmt: skip
        out_first[i + 1] = n


@kernel
def linear_scores_kernel(
    rules, chosen, dense_weight, name_weight, basic_weight, lm_word, oov_weight, out_score
):
    """The scores of the chosen rules from columns, named features, word counts and unknown words.

    rules         Rules
    chosen        int64 [N]    rules to score
    dense_weight  float64 [D]  of the columns
    name_weight   float64 [.]  of named features, by id in Symbols.names
    basic_weight  float64 [5]  per target word, per source word, per rule with 0, 1, 2 gaps
    lm_word       int32 [M, .] the id of each word in each language model, 0 if unknown
    oov_weight    float64 [M]  per target word that model m does not know
    out_score     float64 [N]  written

    O(numbers read).  Twin: tests/naive/features.py::linear_score.
    """
    for i in range(chosen.shape[0]):
        r = chosen[i]
        score = 0.0
        for d in range(dense_weight.shape[0]):
            score += dense_weight[d] * rules.dense[r, d]
        for j in range(rules.first_sparse[r], rules.first_sparse[r + 1]):
            score += name_weight[rules.sparse_name[j]] * rules.sparse_value[j]
        arity = 0
        for j in range(rules.first_src[r], rules.first_src[r + 1]):
            if rules.src[j] < 0:
                arity += 1
            else:
                score += basic_weight[1]
        for j in range(rules.first_tgt[r], rules.first_tgt[r + 1]):
            word = rules.tgt[j]
            if word >= 0:
                score += basic_weight[0]
                for m in range(oov_weight.shape[0]):
                    if lm_word[m, word] == 0:
                        score += oov_weight[m]
        out_score[i] = score + basic_weight[2 + arity]


@kernel
def count_words_kernel(rules, chosen, out_count):
    """Count target words, source words and gaps of rules; int64 ``out_count`` [N, 3] is written.

    Twin: tests/naive/features.py::words.
    """
    out_count[:] = 0
    for i in range(chosen.shape[0]):
        for j in range(rules.first_tgt[chosen[i]], rules.first_tgt[chosen[i] + 1]):
            if rules.tgt[j] >= 0:
                out_count[i, 0] += 1
        for j in range(rules.first_src[chosen[i]], rules.first_src[chosen[i] + 1]):
            out_count[i, 1 if rules.src[j] >= 0 else 2] += 1


@kernel
def count_oovs_kernel(rules, chosen, lm_word, out_count):
    """Count OOVs for features of rules: target words that each model does not know.

    rules      Rules
    chosen     int64 [N]
    lm_word    int32 [M, .]  as in ``linear_scores_kernel``
    out_count  int64 [N, M]  written

    Twin: tests/naive/features.py::oovs.
    """
    out_count[:] = 0
    for i in range(chosen.shape[0]):
        for j in range(rules.first_tgt[chosen[i]], rules.first_tgt[chosen[i] + 1]):
            word = rules.tgt[j]
            if word >= 0:
                for m in range(out_count.shape[1]):
                    if lm_word[m, word] == 0:
                        out_count[i, m] += 1


@kernel
def span_sizes_kernel(batch, rules, bucket, name, out_id):
    """The features of span sizes: the bucket of every rule's span and of those of its gaps, as names.

    batch   EdgeBatch
    rules   Rules
    bucket  int64 [B]        bucket of each size; larger sizes are in the last one
    name    int32 [L, 3, .]  id in Symbols.names by label, kind (span, gap 1, gap 2) and bucket
    out_id  int32 [P, 3]     written; -1 where there is no such gap

    Twin: tests/naive/features.py::span_sizes.
    """
    largest = bucket.shape[0] - 1
    for p in range(batch.rule.shape[0]):
        r = batch.rule[p]
        size = batch.end[p] - batch.start[p]
        out_id[p, 0] = name[rules.lhs[r], 0, bucket[min(size, largest)]]
        out_id[p, 1] = -1
        out_id[p, 2] = -1
        for i in range(rules.first_src[r], rules.first_src[r + 1]):
            symbol = rules.src[i]
            if symbol < 0:
                g = gap_index(symbol)
                size = batch.split[p, 2 * g - 1] - batch.split[p, 2 * g - 2]
                out_id[p, g] = name[gap_label(symbol), g, bucket[min(size, largest)]]
