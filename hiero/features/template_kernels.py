# mypy: ignore-errors
"""Features that templates read off rules, counts of words, and linear scores.

Keys of features and their tables are described in ``index.py``.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import GOLDEN, ONE
from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap, gap_index, gap_label
from hiero.features.index_kernels import (
    LOW_BITS,
    RULE_END,
    RULE_ID,
    RULE_START,
    SEED,
    SEPARATOR,
    TAG,
    find_feature,
    key_code,
    mix_symbol,
)

# Kinds of features; index.py describes them in KINDS.
SOURCE_BIGRAM, TARGET_BIGRAM, SHAPE, WORD_PAIR, DELETION, INSERTION, INSERTION_PAIR = 2, 3, 4, 5, 6, 7, 8
BIGRAM = 9

# Bits of a set of templates.
WITH_RULE_ID = 1
WITH_SOURCE_BIGRAM = 2
WITH_TARGET_BIGRAM = 4
WITH_SHAPE = 8
WITH_WORD_PAIR = 16
WITH_INSERTION_PAIR = 32
WITH_DELETION = 64
WITH_INSERTION = 128
WITH_BIGRAM = 256
WITH_LEXICAL = WITH_WORD_PAIR | WITH_DELETION | WITH_INSERTION


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
        if templates & WITH_BIGRAM:
            num_keys += num_tgt
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
    pairs, deletions = templates & WITH_WORD_PAIR != 0, templates & WITH_DELETION != 0
    for i in range(first_link, end_link):
        s, t = link[i, 0], link[i, 1]
        linked[0, s] = True
        linked[1, t] = True
        # Some systems link gaps as well; those are not pairs of words.
        if pairs and src[first_src + s] >= 0 and tgt[first_tgt + t] >= 0:
            out_key[n, 0] = WORD_PAIR
            out_key[n, 1] = src[first_src + s]
            out_key[n, 2] = tgt[first_tgt + t]
            n += 1
    if deletions:
        for i in range(first_src, end_src):
            if src[i] >= 0 and not linked[0, i - first_src]:
                out_key[n, 0] = DELETION
                out_key[n, 1] = src[i]
                out_key[n, 2] = 0
                n += 1
    for j in range(first_tgt, end_tgt):
        if tgt[j] >= 0 and not linked[1, j - first_tgt]:
            if templates & WITH_INSERTION:
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
        if templates & WITH_BIGRAM:
            for j in range(first_tgt + 1, end_tgt):
                if tgt[j - 1] >= 0 and tgt[j] >= 0:
                    out_key[n, 0], out_key[n, 1], out_key[n, 2] = BIGRAM, tgt[j - 1], tgt[j]
                    n += 1
        out_first[i + 1] = n


MEMO_BITS = 13
TO_MEMO = np.uint64(64 - MEMO_BITS)


class WeightMemo(NamedTuple):
    """The weights of features that were looked up last, by hashes; a new one replaces that in its place.

    kind    int8 [2 ** MEMO_BITS]  kind of feature; 0 is empty
    pair    uint64                 its two numbers
    weight  float64                0 if it has none
    """

    kind: np.ndarray
    pair: np.ndarray
    weight: np.ndarray


@kernel
def new_memo():
    """An empty memo."""
    places = 1 << MEMO_BITS
    return WeightMemo(np.zeros(places, np.int8), np.empty(places, np.uint64), np.empty(places))


@leaf
def weight_of(table, weight, memo, kind, a, b, sequence):
    """The weight of a feature of two numbers; most occur in many rules of a sentence."""
    pair = np.uint64(np.int64(a) & LOW_BITS) << np.uint64(32) | np.uint64(np.int64(b) & LOW_BITS)
    at = ((pair ^ np.uint64(kind)) * GOLDEN) >> TO_MEMO
    if memo.kind[at] == kind and memo.pair[at] == pair:
        return memo.weight[at]
    f = find_feature(table, key_code(kind, a, b, sequence), kind, a, b, sequence)
    value = weight[f] if f >= 0 else 0.0
    memo.kind[at], memo.pair[at], memo.weight[at] = kind, pair, value
    return value


@leaf
def _same_source(rules, one, two):
    """Whether two rules have the same left-hand and source side."""
    start, end, other = rules.first_src[one], rules.first_src[one + 1], rules.first_src[two]
    if rules.first_src[two + 1] - other != end - start or rules.lhs[one] != rules.lhs[two]:
        return False
    for k in range(end - start):
        if rules.src[start + k] != rules.src[other + k]:
            return False
    return True


@leaf
def _symbol_code(code, symbols, begin, end, is_source):
    """The hash of a rule id with the symbols of a side."""
    for k in range(begin, end):
        symbol = np.int64(symbols[k])
        if symbol < 0:
            symbol = gap(gap_label(symbol), 0) if is_source else gap(0, gap_index(symbol))
        code = mix_symbol(code, symbol)
    return code


@leaf
def _find_rule_id(rules, r, code, table, sequence):
    """The number of the id of a rule, by its hash, or -1."""
    mask = np.uint64(table.slot.shape[0] - 1)
    at = code & mask
    while table.slot[at] >= 0:
        if table.slot[at] >> 32 == np.int64(code >> TAG):
            src, tgt, lhs = rules.src, rules.tgt, rules.lhs[r]
            first_src, end_src = rules.first_src[r], rules.first_src[r + 1]
            first_tgt, end_tgt = rules.first_tgt[r], rules.first_tgt[r + 1]
            length = put_rule_id(lhs, src, first_src, end_src, tgt, first_tgt, end_tgt, sequence, np.int64(0))
            return find_feature(table, code, RULE_ID, np.int64(0), length, sequence)
        at = (at + ONE) & mask
    return np.int64(-1)


@kernel
def _find_rule_ids(rules, chosen, table, weight, sequence, out_weight):
    """The weights of the ids of rules; those without a weight are left out."""
    code = np.empty(chosen.shape[0], np.uint64)
    source_code = SEED
    for i in range(chosen.shape[0]):
        r = chosen[i]
        begin, end = rules.first_src[r], rules.first_src[r + 1]
        if i == 0 or not _same_source(rules, r, chosen[i - 1]):
            source_code = mix_symbol(mix_symbol(SEED, RULE_ID), rules.lhs[r])
            source_code = mix_symbol(_symbol_code(source_code, rules.src, begin, end, True), SEPARATOR)
        first, last = rules.first_tgt[r], rules.first_tgt[r + 1]
        code[i] = _symbol_code(source_code, rules.tgt, first, last, False)
        code[i] = mix_symbol(code[i], end - begin + last - first + 2)
    # All slots at once: the processor waits for many of them at a time.
    mask = np.uint64(table.slot.shape[0] - 1)
    is_used = np.empty(chosen.shape[0], np.bool_)
    for i in range(chosen.shape[0]):
        is_used[i] = table.slot[code[i] & mask] >= 0
    for i in range(chosen.shape[0]):
        if is_used[i]:
            f = _find_rule_id(rules, chosen[i], code[i], table, sequence)
            if f >= 0:
                out_weight[i] = weight[f]


@kernel
def template_scores_kernel(rules, chosen, templates, room, table, weight, out_score):
    """Add up the weights of the features that the templates fire on each of the chosen rules.

    rules      Rules
    chosen     int64 [N]      rules, in any order; faster if those of a source side follow each other
    templates  bits WITH_...
    room       int64 [3]      from room_kernel
    table      FeatureTable   the features that have a weight; all others have weight 0
    weight     float64 [F]
    out_score  float64 [N]    added to

    Weights are added in the order of ``keys_kernel``. O(keys).
    Twin: tests/naive/features.py::template_score.
    """
    longest = room[2]
    most_links = 0
    for i in range(chosen.shape[0]):
        most_links = max(most_links, rules.first_link[chosen[i] + 1] - rules.first_link[chosen[i]])
    key = np.empty((most_links + 2 * longest + longest * longest, 3), np.int32)
    linked = np.empty((2, longest), np.bool_)
    sequence, of_source = np.empty(2 * longest + 2, np.int32), np.empty(longest + 1)
    memo = new_memo()
    src, tgt, link = rules.src, rules.tgt, rules.link
    num_source, source_shape = 0, 0
    of_rule = np.zeros(chosen.shape[0])  # weights of rule ids
    if templates & WITH_RULE_ID:
        _find_rule_ids(rules, chosen, table, weight, sequence, of_rule)
    for i in range(chosen.shape[0]):
        r = chosen[i]
        first_src, end_src = rules.first_src[r], rules.first_src[r + 1]
        first_tgt, end_tgt = rules.first_tgt[r], rules.first_tgt[r + 1]
        is_new = i == 0 or not _same_source(rules, r, chosen[i - 1])
        score = 0.0 + of_rule[i]
        if templates & WITH_SOURCE_BIGRAM:
            if is_new:
                num_source = end_src - first_src + 1
                before = np.int64(RULE_START)
                for j in range(num_source):
                    symbol = np.int64(RULE_END)
                    if j + 1 < num_source:
                        symbol = np.int64(src[first_src + j])
                        if symbol < 0:
                            symbol = gap(gap_label(symbol), 0)
                    of_source[j] = weight_of(table, weight, memo, SOURCE_BIGRAM, before, symbol, sequence)
                    before = symbol
            for j in range(num_source):
                score += of_source[j]
        if templates & WITH_TARGET_BIGRAM:
            before = np.int64(RULE_START)
            for j in range(first_tgt, end_tgt):
                symbol = np.int64(tgt[j])
                score += weight_of(table, weight, memo, TARGET_BIGRAM, before, symbol, sequence)
                before = symbol
            score += weight_of(table, weight, memo, TARGET_BIGRAM, before, np.int64(RULE_END), sequence)
        if templates & WITH_SHAPE:
            if is_new:
                source_shape = 32 * side_shape(src, first_src, end_src)
            shape = source_shape + side_shape(tgt, first_tgt, end_tgt)
            score += weight_of(table, weight, memo, SHAPE, np.int64(shape), np.int64(0), sequence)
        if templates & (WITH_LEXICAL | WITH_INSERTION_PAIR):
            first_link, end_link = rules.first_link[r], rules.first_link[r + 1]
            num_keys = put_lexical(
                templates, src, first_src, end_src, tgt, first_tgt, end_tgt, link, first_link, end_link,
                linked, key, np.int64(0),
            )  # fmt: skip
            for k in range(num_keys):
                one, two = np.int64(key[k, 1]), np.int64(key[k, 2])
                score += weight_of(table, weight, memo, np.int64(key[k, 0]), one, two, sequence)
        if templates & WITH_BIGRAM:
            for j in range(first_tgt + 1, end_tgt):
                if tgt[j - 1] >= 0 and tgt[j] >= 0:
                    one, two = np.int64(tgt[j - 1]), np.int64(tgt[j])
                    score += weight_of(table, weight, memo, BIGRAM, one, two, sequence)
        out_score[i] += score


@kernel
def linear_scores_kernel(
    rules, chosen, dense_weight, name_weight, basic_weight, lm_word, oov_weight, out_score
):
    """The scores of the chosen rules from columns, named features, word counts and unknown words.

    rules         Rules
    chosen        int64 [N]    rules to score
    dense_weight  float64 [D]  of the columns
    name_weight   float64 [.]  of named features, by id in Symbols.names
    basic_weight  float64 [.]  per target word, per source word, per rule with 0, 1, 2 ... gaps
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
        if rules.first_src[r] < rules.first_src[r + 1]:
            score += basic_weight[2 + arity]
        out_score[i] = score


@kernel
def named_rows_kernel(
    rules, chosen, columns, basic, unit, lm_word, oov, out_first, out_name, out_value, out_part
):
    """The named features of the chosen rules that are not 0: columns, sparse ones, counts of words.

    rules      Rules
    chosen     int64 [N]
    columns    int32 [D]      names of the columns
    basic      int32 [.]      names of target words, source words, rules with 0, 1, 2 ... gaps; -1 if not used
    unit       float          the value of one of those
    lm_word    int32 [M, .]   as in ``linear_scores_kernel``
    oov        int32 [M]      names of target words that each model does not know
    out_first  int64 [N + 1]  written: row i is out_first[i]:out_first[i + 1]
    out_name   int32          written, as the two below, with room for all columns and names of all rules
    out_value  float64
    out_part   int8           0 for columns, 1 for sparse ones, 2 for the others

    O(numbers read).  Twin: tests/naive/features.py::named.
    """
    n = np.int64(0)
    out_first[0] = 0
    count = np.empty(basic.shape[0] + oov.shape[0])
    for i in range(chosen.shape[0]):
        r = chosen[i]
        for d in range(columns.shape[0]):
            if rules.dense[r, d] != 0:
                out_name[n], out_value[n], out_part[n] = columns[d], rules.dense[r, d], 0
                n += 1
        for k in range(rules.first_sparse[r], rules.first_sparse[r + 1]):
            if rules.sparse_value[k] != 0:
                out_name[n], out_value[n], out_part[n] = rules.sparse_name[k], rules.sparse_value[k], 1
                n += 1
        count[:2] = 0.0
        count[basic.shape[0] :] = 0.0
        arity = 0
        for j in range(rules.first_src[r], rules.first_src[r + 1]):
            if rules.src[j] < 0:
                arity += 1
            else:
                count[1] += 1
        count[2 + arity] = rules.first_src[r] < rules.first_src[r + 1]
        for j in range(rules.first_tgt[r], rules.first_tgt[r + 1]):
            word = rules.tgt[j]
            if word >= 0:
                count[0] += 1
                for m in range(oov.shape[0]):
                    if lm_word[m, word] == 0:
                        count[basic.shape[0] + m] += 1
        for k in range(count.shape[0]):
            is_basic = k < basic.shape[0]
            if is_basic and k > 1 and k != 2 + arity:
                continue
            name = basic[k] if is_basic else oov[k - basic.shape[0]]
            if count[k] != 0 and name >= 0:
                out_name[n], out_value[n], out_part[n] = name, count[k] * unit if is_basic else count[k], 2
                n += 1
        out_first[i + 1] = n


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
