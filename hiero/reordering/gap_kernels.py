# mypy: ignore-errors
"""Orientations of gaps whose words are known: those of the best derivation of the node that fills the gap.

Before the search, a gap is scored as a block of unknown words. When it is done, the nodes of its chart are
passed in their order: each has the sum of the weights of the word pairs of its best derivation, and its
translation, from the topmost rule and the tails. What knowing the words adds to log10 of the probability of
each class, the *gain*, depends on the node alone, since its span has the words around it.

The sum counts a word pair once for each rule that has it, a classifier once for a block. So the gain is that
of the model for a filler of one rule, and for others unless a pair recurs in it.
"""

import math
from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import mix
from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap_index
from hiero.reordering.block_kernels import CLASS, GAP, LOW_RUN
from hiero.reordering.feature_kernels import (
    LN_10,
    NUM_CLASSES,
    ClassifierArrays,
    PlaceWeights,
    place_scores,
    weigh_words,
)
from hiero.reordering.learn_kernels import log_sum
from hiero.reordering.table_kernels import (
    BETWEEN_SIDES,
    SOURCE_SEED,
    LexicalArrays,
    shares_of_pair,
    shares_of_source,
)

# Gains of a node, by class: those of a classifier for its own block and for the block that comes next, and
# those of a lexicalised model, likewise.
CLASSIFIED, LOOKED_UP, LOOKED_AHEAD = 0, 2 * NUM_CLASSES, 3 * NUM_CLASSES
NUM_GAINS = 4 * NUM_CLASSES


class GapModels(NamedTuple):
    """Orientation models for the gaps of the rules of a sentence, R in all.

    label    int8 [R, 4]     classes of the blocks of gap 1 and of gap 2, and of the blocks after them; -1 for
                             none
    src      int32 [n]       the sentence
    longest  int64 [2]       most words of a block with known words, of the classifier and of the lexicalised
                             model; 0 without that model
    pair     float64 [R, K]  written; sums of the weights of the pairs of words of each rule; nan before
    rules    Rules
    words    ClassifierArrays
    places   PlaceWeights
    lexical  LexicalArrays
    weight   float64 [12]    of the features that the gains add to
    """

    label: np.ndarray
    src: np.ndarray
    longest: np.ndarray
    pair: np.ndarray
    rules: tuple
    words: ClassifierArrays
    places: PlaceWeights
    lexical: LexicalArrays
    weight: np.ndarray


class GapNodes(NamedTuple):
    """The nodes of a chart as fillers of gaps, V of them; F are short enough to be known to a model.

    row     int32 [V]       rows of the nodes in the tables below, -1 for longer ones and the goal
    gain    float32 [F, K]  gains of log10 probabilities by class; [F, 12] with a lexicalised model
    pair    float32 [F, K]  sums of the weights of the pairs of words of the best derivation
    length  int32 [F]       words of its translation; -1 if there are more than models know
    word    int32 [F, L]    the first of these words, for a lexicalised model
    """

    row: np.ndarray
    gain: np.ndarray
    pair: np.ndarray
    length: np.ndarray
    word: np.ndarray


@kernel
def gap_labels_kernel(blocks, out_label):
    """The classes of the blocks of gaps, and of the blocks after them.

    blocks     Blocks
    out_label  int8 [R, 4]  written; -1 for none

    O(R + B).  Twin: tests/naive/reorder.py::gap_labels.
    """
    out_label[:] = -1
    for n in range(blocks.rule.shape[0]):
        if blocks.block[n, GAP] == 1:
            # Gaps are numbered by their order on the source side.
            out_label[blocks.rule[n], blocks.block[n, LOW_RUN]] = blocks.block[n, CLASS]
        if blocks.before_block[n, GAP] == 1:
            out_label[blocks.rule[n], 2 + blocks.before_block[n, LOW_RUN]] = blocks.block[n, CLASS]


@leaf
def _enter_words(gaps, nodes, row, rule, tail_1, tail_2):
    """Write the translation of a node whose best derivation begins with a rule; returns its length or -1.

    Nodes are given by their rows here and below.
    """
    most, kept = max(gaps.longest[0], gaps.longest[1]), nodes.word.shape[1]
    n = np.int64(0)
    for k in range(gaps.rules.first_tgt[rule], gaps.rules.first_tgt[rule + 1]):
        symbol = gaps.rules.tgt[k]
        if symbol >= 0:
            if n == most:
                return np.int64(-1)
            if n < kept:
                nodes.word[row, n] = symbol
            n += 1
            continue
        tail = tail_1 if gap_index(symbol) == 1 else tail_2
        length = np.int64(nodes.length[tail])
        if length < 0 or n + length > most:
            return np.int64(-1)
        for i in range(min(length, kept - n)):
            nodes.word[row, n + i] = nodes.word[tail, i]
        n += length
    return n


@leaf
def _look_up(gaps, nodes, node, start, end):
    """Write the gains of a lexicalised model: log10 shares of a phrase pair less those of its source side."""
    model = gaps.lexical
    source = SOURCE_SEED
    for i in range(start, end):
        source = mix(source, model.code[gaps.src[i]])
    pair = mix(source, BETWEEN_SIDES)
    for i in range(nodes.length[node]):
        pair = mix(pair, model.code[nodes.word[node, i]])
    for at in (LOOKED_UP, LOOKED_AHEAD):
        ahead = at == LOOKED_AHEAD
        a, b, c = shares_of_source(model, source, ahead)
        x, y, z = shares_of_pair(model, pair, ahead, a, b, c)
        nodes.gain[node, at] = math.log10(x) - math.log10(a)
        nodes.gain[node, at + 1] = math.log10(y) - math.log10(b)
        nodes.gain[node, at + 2] = math.log10(z) - math.log10(c)


@leaf
def finish_gap_node(gaps, nodes, node, start, end, rule, tail_1, tail_2, unknown):
    """Write the row of a node that covers the words start ... end - 1; rule and tails of its best edge.

    node, tail_1, tail_2  rows
    unknown               float64 [K], log10 probabilities of the classes before the words were known
    """
    for k in range(nodes.gain.shape[1]):
        nodes.gain[node, k] = 0.0
    nodes.length[node] = -1
    length = _enter_words(gaps, nodes, node, rule, tail_1, tail_2)
    nodes.length[node] = length
    if gaps.longest[0] > 0 and math.isnan(gaps.pair[rule, 0]):
        size = np.int64(gaps.rules.first_tgt[rule + 1] - gaps.rules.first_tgt[rule])
        for k in range(0, gaps.pair.shape[1], NUM_CLASSES):
            a, b, c = weigh_words(gaps.words, gaps.rules, rule, np.int64(0), size, k)
            gaps.pair[rule, k], gaps.pair[rule, k + 1], gaps.pair[rule, k + 2] = a, b, c
    for k in range(nodes.pair.shape[1]):
        pairs = gaps.pair[rule, k]
        if tail_1 >= 0:
            pairs += nodes.pair[tail_1, k]
        if tail_2 >= 0:
            pairs += nodes.pair[tail_2, k]
        nodes.pair[node, k] = pairs
    if length <= 0:
        return  # no block, or a longer one than any example
    most = max(length, end - start)
    if most <= gaps.longest[0]:
        at, pair = gaps.places, nodes.pair
        for k in range(0, pair.shape[1], NUM_CLASSES):
            a, b, c = np.float64(pair[node, k]), np.float64(pair[node, k + 1]), np.float64(pair[node, k + 2])
            a, b, c = place_scores(at.start, at.end, at.both, start, end, k, a, b, c)
            total = log_sum(a, b, c)
            nodes.gain[node, CLASSIFIED + k] = (a - total) / LN_10 - unknown[k]
            nodes.gain[node, CLASSIFIED + k + 1] = (b - total) / LN_10 - unknown[k + 1]
            nodes.gain[node, CLASSIFIED + k + 2] = (c - total) / LN_10 - unknown[k + 2]
    if most <= gaps.longest[1]:
        _look_up(gaps, nodes, node, start, end)


@leaf
def score_gaps(gaps, nodes, rule, tail_1, tail_2):
    """The weighted gains of the gaps of a rule application."""
    score = 0.0
    one = nodes.row[tail_1] if tail_1 >= 0 else -1
    two = nodes.row[tail_2] if tail_2 >= 0 else -1
    for t in range(2):
        row = one if t == 0 else two
        if row < 0:
            continue
        for ahead in range(2):
            label = np.int64(gaps.label[rule, 2 * ahead + t])
            if label < 0:
                continue
            for k in range(ahead * NUM_CLASSES + label, nodes.gain.shape[1], LOOKED_UP):
                score += gaps.weight[k] * nodes.gain[row, k]
    return score


@kernel
def _new_gap_nodes(gaps, cell, span):
    """Tables for the nodes of a chart, with their rows."""
    longest, used = max(gaps.longest[0], gaps.longest[1]), np.int64(0)
    row = np.full(cell.shape[0], -1, np.int32)
    for v in range(cell.shape[0]):
        if cell[v] >= 0 and span[cell[v], 2] - span[cell[v], 1] <= longest:
            row[v] = used
            used += 1
    width = gaps.pair.shape[1]
    return GapNodes(
        row,
        np.empty((used, NUM_GAINS if gaps.longest[1] > 0 else width), np.float32),
        np.empty((used, width), np.float32),
        np.empty(used, np.int32),
        np.empty((used, gaps.longest[1]), np.int32),
    )


@kernel
def rescore_gaps_kernel(gaps, first_edge, cell, tail, rule, span, local):
    """Add the weighted gains of gaps to the scores of the edges of a chart.

    gaps                           GapModels
    first_edge, cell, tail, rule   of Chart
    span                           int32 [C, 3]  category, start and end of each cell
    local                          float64 [E]   scores of edges, written

    A node is complete before the edges that it is a tail of. Returns ``row`` and ``gain`` of GapNodes.
    O(E + words of short nodes).  Twin: tests/naive/reorder.py::filler.
    """
    nodes = _new_gap_nodes(gaps, cell, span)
    score = np.empty(cell.shape[0])
    at, last, unknown = gaps.places, -1, np.zeros(gaps.pair.shape[1])
    for v in range(cell.shape[0]):
        best = np.int64(-1)
        for e in range(first_edge[v], first_edge[v + 1]):
            one, two = np.int64(tail[e, 0]), np.int64(tail[e, 1])
            if rule[e] >= 0:
                local[e] += score_gaps(gaps, nodes, np.int64(rule[e]), one, two)
            total = local[e]
            if one >= 0:
                total += score[one]
            if two >= 0:
                total += score[two]
            # Of equal edges the first counts.
            if best < 0 or total > score[v]:
                best, score[v] = e, total
        if nodes.row[v] < 0 or best < 0:
            continue
        start, end = np.int64(span[cell[v], 1]), np.int64(span[cell[v], 2])
        if cell[v] != last and end - start <= gaps.longest[0]:
            for k in range(0, unknown.shape[0], NUM_CLASSES):
                a, b, c = place_scores(at.gap_start, at.gap_end, at.gap_both, start, end, k, 0.0, 0.0, 0.0)
                total = log_sum(a, b, c)
                unknown[k], unknown[k + 1] = (a - total) / LN_10, (b - total) / LN_10
                unknown[k + 2] = (c - total) / LN_10
        last = cell[v]
        one, two = np.int64(tail[best, 0]), np.int64(tail[best, 1])
        # The spans of tails are no longer than this one.
        row_1 = np.int64(nodes.row[one]) if one >= 0 else np.int64(-1)
        row_2 = np.int64(nodes.row[two]) if two >= 0 else np.int64(-1)
        node = np.int64(nodes.row[v])
        finish_gap_node(gaps, nodes, node, start, end, np.int64(rule[best]), row_1, row_2, unknown)
    return nodes.row, nodes.gain


@kernel
def gap_rows_kernel(rule, tail, label, row, gain, names, out_first, out_id, out_value):
    """The gains of some edges as values of features.

    rule               int32 [N]       of the edges; -1 for none
    tail               int32 [N, 2]
    label              int8 [R, 4]     of ``gap_labels_kernel``
    row, gain          int32 [V], float32 [F, .]  of GapNodes
    names              int32 [12]      ids of the features, -1 for those of no model
    out_first          int64 [N + 1]   written
    out_id, out_value  int32, float64 [8 * N]  written; their length is returned

    O(N).  Twin: tests/naive/reorder.py::gap_rows.
    """
    n = np.int64(0)
    out_first[0] = 0
    for e in range(rule.shape[0]):
        begin = n
        for t in range(4 if rule[e] >= 0 else 0):
            k, ahead = np.int64(label[rule[e], t]), t >= 2
            node = tail[e, t - 2 if ahead else t]
            at_row = row[node] if k >= 0 else -1
            for model in range(NUM_CLASSES if ahead else 0, NUM_GAINS, LOOKED_UP):
                value = 0.0
                if at_row >= 0 and names[model + k] >= 0 and model < gain.shape[1]:
                    value = np.float64(gain[at_row, model + k])
                if value == 0.0:
                    continue
                at = begin
                while at < n and out_id[at] != names[model + k]:
                    at += 1
                if at == n:
                    out_id[n], out_value[n] = names[model + k], 0.0
                    n += 1
                out_value[at] += value
        out_first[e + 1] = n
    return n
