# mypy: ignore-errors
"""Scores of the blocks of applied rules, by a classifier or a lexicalised model."""

import math
from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import mix
from hiero.core.jit import kernel, leaf
from hiero.reordering.block_kernels import CLASS, GAP, LOW_RUN, span_of_block
from hiero.reordering.table_kernels import (
    AROUND,
    BETWEEN_SIDES,
    BIAS,
    FIRST_WORD,
    LAST_WORD,
    MONOTONE,
    PAIR,
    SOURCE_SEED,
    SWAP,
    feature_key,
    find_key,
    shares_of_pair,
    shares_of_source,
)

UNKNOWN = -1  # word that the model does not know
LN_10 = math.log(10.0)
NUM_CLASSES = 3
FAR = 50.0  # difference of scores beyond which the lower class has no weight
TINY = 1e-200  # products below lose digits


class ClassifierArrays(NamedTuple):
    """A classifier over a shared vocabulary.

    key, slot   int64 [F], int32 [2 ** k]  the features, see ``find_key``
    weight      float32 [F, 3]  if bidirectional with three more columns, for the class of the block after
    gap_weight  float32         likewise, for blocks whose words are not known
    src, tgt    int32 [V]  words of the model by shared ids, from 1; -1 if unknown
    window      number of source words on either side of a block that are features
    edges       1 if its first and last words are features as well
    bag         1 if the words around it are features wherever they are, each once
    """

    key: np.ndarray
    slot: np.ndarray
    weight: np.ndarray
    gap_weight: np.ndarray
    src: np.ndarray
    tgt: np.ndarray
    window: int
    edges: int
    bag: int


class PlaceWeights(NamedTuple):
    """Weights of a block by its place in the sentence: of the bias, and of the source words around it.

    start, end          float64 [n + 1, K]  sums for a block that begins, or ends, there; K as in the model
    both                float64 [m, m, K]   what both have, of words that stand before and after a block that
                        begins and ends there and count once; m is 1 if that cannot be, otherwise n + 1
    gap_start, gap_end, gap_both            likewise, for one whose words are not known
    """

    start: np.ndarray
    end: np.ndarray
    both: np.ndarray
    gap_start: np.ndarray
    gap_end: np.ndarray
    gap_both: np.ndarray


class BlockScores(NamedTuple):
    """Scores of the classes of B blocks by their words.

    own    float64 [B, 3]  sums of the weights of their aligned words; 0 for gaps
    ahead  float64 [B, 3]  of the classes of a next block, for the block before; 0 unless bidirectional
    """

    own: np.ndarray
    ahead: np.ndarray


class PlaceOdds(NamedTuple):
    """``odds_kernel`` of ``PlaceWeights``, of words that are known."""

    start: np.ndarray
    end: np.ndarray
    both: np.ndarray


@leaf
def add_row(weight, f, at, a, b, c):
    if f < 0:
        return a, b, c
    return a + weight[f, at], b + weight[f, at + 1], c + weight[f, at + 2]


@leaf
def add_feature(model, key, at, a, b, c):
    return add_row(model.weight, find_key(model.key, model.slot, key), at, a, b, c)


@leaf
def weigh_words(model, rules, r, tgt_begin, tgt_end, at):
    """The weights of the aligned words of a block, summed by class; from column ``at`` on."""
    a, b, c = 0.0, 0.0, 0.0
    first_src, first_tgt = rules.first_src[r], rules.first_tgt[r]
    for k in range(rules.first_link[r], rules.first_link[r + 1]):
        i, j = rules.link[k, 0], rules.link[k, 1]
        s, t = rules.src[first_src + i], rules.tgt[first_tgt + j]
        if s < 0 or j < tgt_begin or j >= tgt_end:
            continue
        fresh = True
        for q in range(rules.first_link[r], k):
            x, y = rules.link[q, 0], rules.link[q, 1]
            # Each pair counts once, as in the examples.
            if y >= tgt_begin and y < tgt_end and rules.tgt[first_tgt + y] == t:
                fresh = fresh and rules.src[first_src + x] != s
        if fresh and model.src[s] != UNKNOWN and model.tgt[t] != UNKNOWN:
            a, b, c = add_feature(model, feature_key(PAIR, model.src[s], model.tgt[t]), at, a, b, c)
    return a, b, c


@leaf
def look_up_words(model, rules, r, words, n, ahead):
    """The shares of the classes by the relative frequencies of the words of a block, row n of ``words``."""
    code = SOURCE_SEED
    for i in range(words[n, 2], words[n, 3] + 1):
        word = rules.src[rules.first_src[r] + i]
        if word < 0:  # a gap is part of no phrase
            if ahead:
                return model.next_prior[0], model.next_prior[1], model.next_prior[2]
            return model.prior[0], model.prior[1], model.prior[2]
        code = mix(code, model.code[word])
    a, b, c = shares_of_source(model, code, ahead)
    code = mix(code, BETWEEN_SIDES)
    for j in range(words[n, 0], words[n, 1]):
        code = mix(code, model.code[rules.tgt[rules.first_tgt[r] + j]])
    return shares_of_pair(model, code, ahead, a, b, c)


@kernel
def weigh_blocks_kernel(model, rules, blocks, out):
    """Sum the weights of the aligned words of each block, by class.

    model   ClassifierArrays
    rules   Rules
    blocks  Blocks
    out     BlockScores  written; ``ahead`` if bidirectional

    O(links of a rule ** 2 * B).  Twin: tests/naive/reorder.py::block_features.
    """
    for n in range(blocks.rule.shape[0]):
        r = np.int64(blocks.rule[n])
        begin, end = (blocks.words[n, 0], blocks.words[n, 1]) if blocks.block[n, GAP] == 0 else (0, 0)
        out.own[n, 0], out.own[n, 1], out.own[n, 2] = weigh_words(model, rules, r, begin, end, 0)
        if model.weight.shape[1] == NUM_CLASSES:
            continue
        is_gap = blocks.before_block[n, GAP] == 1
        begin, end = (0, 0) if is_gap else (blocks.before_words[n, 0], blocks.before_words[n, 1])
        a, b, c = weigh_words(model, rules, r, begin, end, NUM_CLASSES)
        out.ahead[n, 0], out.ahead[n, 1], out.ahead[n, 2] = a, b, c


@kernel
def look_up_blocks_kernel(model, rules, blocks, out):
    """log10 of the shares of the classes of each block of words, by relative frequency.

    model   LexicalArrays
    rules   Rules
    blocks  Blocks
    out     BlockScores  written; not for gaps

    O(words of the blocks).  Twin: tests/naive/reorder.py::block_shares.
    """
    for n in range(blocks.rule.shape[0]):
        if blocks.block[n, GAP] == 0:
            a, b, c = look_up_words(model, rules, np.int64(blocks.rule[n]), blocks.words, n, False)
            out.own[n, 0], out.own[n, 1], out.own[n, 2] = math.log10(a), math.log10(b), math.log10(c)
        if blocks.before_block[n, GAP] == 0:
            a, b, c = look_up_words(model, rules, np.int64(blocks.rule[n]), blocks.before_words, n, True)
            out.ahead[n, 0], out.ahead[n, 1], out.ahead[n, 2] = math.log10(a), math.log10(b), math.log10(c)


@leaf
def is_new(src, at, first, step):
    """Whether there is a place ``at``, and its word is at none from ``first`` on, in steps of 1 or -1."""
    if at < 0 or at >= src.shape[0]:
        return False
    place = first
    while place != at:
        if src[place] == src[at]:
            return False
        place += step
    return True


@leaf
def stands_in(src, word, begin, end):
    """Whether the word is one of src[begin:end]."""
    for place in range(begin, min(end, src.shape[0])):
        if src[place] == word:
            return True
    return False


@leaf
def add_place(model, key, row, gap_row):
    """Add the weights of a feature to two rows, of words that are known and of gaps."""
    f = find_key(model.key, model.slot, key)
    for k in range(row.shape[0] if f >= 0 else 0):
        row[k] += model.weight[f, k]
        gap_row[k] += model.gap_weight[f, k]


@kernel
def weigh_places_kernel(model, src, places):
    """Sum the weights of the bias and of the source words around a block, by its start and by its end.

    model   ClassifierArrays
    src     int32 [n]  the sentence
    places  PlaceWeights     written

    O(n * window), with a bag of words O((n * window) ** 2).  Twin: tests/naive/reorder.py::block_features.
    """
    num_words = src.shape[0]
    for low in range(places.both.shape[0]):
        for high in range(places.both.shape[1]):
            both, gap_both = places.both[low, high], places.gap_both[low, high]
            both[:] = 0.0
            gap_both[:] = 0.0
            for d in range(model.window if model.bag else 0):
                at = low - 1 - d
                if is_new(src, at, low - 1, -1) and stands_in(src, src[at], high, high + model.window):
                    add_place(model, feature_key(AROUND, model.src[src[at]], 0), both, gap_both)
    for at in range(num_words + 1):
        start, end = places.start[at], places.end[at]
        gap_start, gap_end = places.gap_start[at], places.gap_end[at]
        for row in (start, end, gap_start, gap_end):
            row[:] = 0.0
        add_place(model, feature_key(BIAS, 0, 0), start, gap_start)
        if model.edges and at < num_words and model.src[src[at]] != UNKNOWN:
            add_place(model, feature_key(FIRST_WORD, model.src[src[at]], 0), start, gap_start)
        if model.edges and at > 0 and model.src[src[at - 1]] != UNKNOWN:
            add_place(model, feature_key(LAST_WORD, model.src[src[at - 1]], 0), end, gap_end)
        for d in range(model.window):
            before, after = at - 1 - d, at + d
            if model.bag:
                if is_new(src, before, at - 1, -1):
                    add_place(model, feature_key(AROUND, model.src[src[before]], 0), start, gap_start)
                if is_new(src, after, at, 1):
                    add_place(model, feature_key(AROUND, model.src[src[after]], 0), end, gap_end)
                continue
            word = np.int32(0) if before < 0 else model.src[src[before]]
            if word != UNKNOWN:
                add_place(model, feature_key(AROUND + 2 * d, word, 0), start, gap_start)
            word = np.int32(0) if after >= num_words else model.src[src[after]]
            if word != UNKNOWN:
                add_place(model, feature_key(AROUND + 2 * d + 1, word, 0), end, gap_end)


@leaf
def put_totals(names, total, out_id, out_value, n):
    """Write the totals that are not 0; returns the next row."""
    for k in range(total.shape[0]):
        if total[k] != 0.0:
            out_id[n], out_value[n] = names[k], total[k]
            n += 1
    return n


@leaf
def weighted(total, weight):
    score = 0.0
    for k in range(total.shape[0]):
        score += weight[k] * total[k]
    return score


@leaf
def log10_share(label, a, b, c):
    """log10 of the probability of a class whose score is a, b or c."""
    if label == SWAP:
        a, b = b, a
    elif label != MONOTONE:
        a, c = c, a
    most = max(b, c) - a
    if most > FAR:
        return -(most + math.log(math.exp(b - a - most) + math.exp(c - a - most))) / LN_10
    return -math.log(1.0 + math.exp(b - a) + math.exp(c - a)) / LN_10


@leaf
def place_scores(start, end, both, low, high, at, a, b, c):
    """The scores of the classes for a block; a, b and c are the sums of its pairs of words.

    at  the first column: 0 for its own class, NUM_CLASSES for that of the next block
    """
    a += start[low, at] + end[high, at]
    b += start[low, at + 1] + end[high, at + 1]
    c += start[low, at + 2] + end[high, at + 2]
    if both.shape[0] > 1:
        a -= both[low, high, at]
        b -= both[low, high, at + 1]
        c -= both[low, high, at + 2]
    return a, b, c


@kernel
def odds_kernel(score, out):
    """exp of the scores of the classes, divided by that of the best class; rows may have several triples.

    score, out  float64 [., K]

    O(size).  Twin: none; tests/reordering/test_feature.py compares with numpy.
    """
    for n in range(score.shape[0]):
        for at in range(0, score.shape[1], NUM_CLASSES):
            most = max(score[n, at], score[n, at + 1], score[n, at + 2])
            for k in range(at, at + NUM_CLASSES):
                out[n, k] = math.exp(score[n, k] - most)


@leaf
def block_share(score, odds, n, places, place_odds, low, high, label, at):
    """log10 of the probability of a class for a block of known words.

    score, odds  of its words, row n; odds are multiplied, which takes no exponentials
    at           as in ``place_scores``
    """
    start, end, both = place_odds.start, place_odds.end, place_odds.both
    x = odds[n, 0] * start[low, at] * end[high, at]
    y = odds[n, 1] * start[low, at + 1] * end[high, at + 1]
    z = odds[n, 2] * start[low, at + 2] * end[high, at + 2]
    if both.shape[0] > 1:
        x *= both[low, high, at]
        y *= both[low, high, at + 1]
        z *= both[low, high, at + 2]
    found = x if label == MONOTONE else (y if label == SWAP else z)
    if found > TINY:
        return math.log(found / (x + y + z)) / LN_10
    a, b, c = score[n, 0], score[n, 1], score[n, 2]
    a, b, c = place_scores(places.start, places.end, places.both, low, high, at, a, b, c)
    return log10_share(label, a, b, c)


@leaf
def gap_share(places, low, high, label, at):
    """log10 of the probability of a class for a gap, by its place."""
    a, b, c = place_scores(places.gap_start, places.gap_end, places.gap_both, low, high, at, 0.0, 0.0, 0.0)
    return log10_share(label, a, b, c)


@leaf
def source_share(model, src, low, high, label, ahead):
    """log10 of the share of a class for some source words, for all translations together."""
    if high - low > model.max_length:
        return math.log10(model.next_prior[label] if ahead else model.prior[label])
    code = SOURCE_SEED
    for i in range(low, high):
        code = mix(code, model.code[src[i]])
    a, b, c = shares_of_source(model, code, ahead)
    return math.log10(a if label == MONOTONE else (b if label == SWAP else c))


@kernel
def classify_edges_kernel(
    batch, blocks, scores, odds, places, place_odds, names, weight, out_score, out_first, out_id, out_value
):
    """The features of rule applications: by class, the log10 probabilities of their blocks and the number of
    blocks.

    batch                  EdgeBatch
    blocks                 Blocks
    scores, odds           BlockScores, of ``weigh_blocks_kernel``, and their odds
    places, place_odds     PlaceWeights, of ``weigh_places_kernel``, and PlaceOdds
    names                  int32 [6]      ids of the features: log10 probabilities, and numbers; with three
                           more, the classes of blocks as next ones are scored, too
    weight                 float64 [6]    of these features, or [9]
    out_score              float64 [P]    written; the weighted sums of the features. None: they are returned
    out_first              int64 [P + 1]  written; None with scores
    out_id, out_value      int32, float64 [9 * P]  written; their length is returned. None with scores

    O(blocks of the applications).  Twin: tests/naive/reorder.py::edge_features.
    """
    start, split, block, before = batch.start, batch.split, blocks.block, blocks.before_block
    total = np.zeros(names.shape[0])
    # The last result for each gap: rules with the same source side are applied to the same place in a row.
    last, said = np.full((4, 3), -1, np.int64), np.zeros(4)
    used = np.int64(0)
    if out_first is not None:
        out_first[0] = 0
    for p in range(batch.rule.shape[0]):
        d = blocks.place[batch.rule[p]]
        score = 0.0
        for n in range(blocks.first[d], blocks.first[d + 1]):
            low, high = span_of_block(start, split, p, block, n)
            label = np.int64(block[n, CLASS])
            if block[n, GAP] == 0:
                share = block_share(scores.own, odds.own, n, places, place_odds, low, high, label, 0)
            else:
                at = np.int64(block[n, LOW_RUN])
                if last[at, 0] != low or last[at, 1] != high or last[at, 2] != label:
                    last[at, 0], last[at, 1], last[at, 2] = low, high, label
                    said[at] = gap_share(places, low, high, label, 0)
                share = said[at]
            if out_score is not None:
                score += weight[label] * share + weight[NUM_CLASSES + label]
            if out_first is not None:
                total[label] += share
                total[NUM_CLASSES + label] += 1.0
            if names.shape[0] == 2 * NUM_CLASSES:
                continue
            low, high = span_of_block(start, split, p, before, n)
            if before[n, GAP] == 0:
                share = block_share(
                    scores.ahead, odds.ahead, n, places, place_odds, low, high, label, NUM_CLASSES
                )
            else:
                at = 2 + np.int64(before[n, LOW_RUN])
                if last[at, 0] != low or last[at, 1] != high or last[at, 2] != label:
                    last[at, 0], last[at, 1], last[at, 2] = low, high, label
                    said[at] = gap_share(places, low, high, label, NUM_CLASSES)
                share = said[at]
            if out_score is not None:
                score += weight[2 * NUM_CLASSES + label] * share
            if out_first is not None:
                total[2 * NUM_CLASSES + label] += share
        if out_score is not None:
            out_score[p] = score
        if out_first is not None:
            used = put_totals(names, total, out_id, out_value, used)
            out_first[p + 1] = used
            total[:] = 0.0
    return used


@kernel
def look_up_edges_kernel(
    batch, blocks, scores, model, names, weight, out_score, out_first, out_id, out_value
):
    """As ``classify_edges_kernel``, by relative frequencies.

    blocks              Blocks
    scores              BlockScores, of ``look_up_blocks_kernel``
    model               LexicalArrays

    A gap has the shares of its source words, since its target words are not known.
    O(blocks of the applications).  Twin: tests/naive/reorder.py::edge_features.
    """
    start, split, block, before, src = batch.start, batch.split, blocks.block, blocks.before_block, batch.src
    total = np.zeros(names.shape[0])
    last, said = np.full((4, 3), -1, np.int64), np.zeros(4)
    used = np.int64(0)
    if out_first is not None:
        out_first[0] = 0
    for p in range(batch.rule.shape[0]):
        d = blocks.place[batch.rule[p]]
        total[:] = 0.0
        for n in range(blocks.first[d], blocks.first[d + 1]):
            label = np.int64(block[n, CLASS])
            total[NUM_CLASSES + label] += 1.0
            if block[n, GAP] == 0:
                total[label] += scores.own[n, label]
            else:
                low, high = span_of_block(start, split, p, block, n)
                at = np.int64(block[n, LOW_RUN])
                if last[at, 0] != low or last[at, 1] != high or last[at, 2] != label:
                    last[at, 0], last[at, 1], last[at, 2] = low, high, label
                    said[at] = source_share(model, src, low, high, label, False)
                total[label] += said[at]
            if names.shape[0] == 2 * NUM_CLASSES:
                continue
            if before[n, GAP] == 0:
                total[2 * NUM_CLASSES + label] += scores.ahead[n, label]
            else:
                low, high = span_of_block(start, split, p, before, n)
                at = 2 + np.int64(before[n, LOW_RUN])
                if last[at, 0] != low or last[at, 1] != high or last[at, 2] != label:
                    last[at, 0], last[at, 1], last[at, 2] = low, high, label
                    said[at] = source_share(model, src, low, high, label, True)
                total[2 * NUM_CLASSES + label] += said[at]
        if out_score is not None:
            out_score[p] = weighted(total, weight)
        if out_first is not None:
            used = put_totals(names, total, out_id, out_value, used)
            out_first[p + 1] = used
    return used
