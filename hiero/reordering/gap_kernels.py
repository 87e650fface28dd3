# mypy: ignore-errors
"""Orientations of gaps whose words are known: those of the best derivation of the node that fills the gap.

Before the search, a gap is scored as a block of unknown words. When a search has found the nodes of a cell,
it knows the best derivation of each: the sum of the weights of its word pairs, and its translation. Both are
passed from tails to heads, as those of a language model are. What knowing the words adds to log10 of the
probability of each class, the *gain*, depends on the node alone, since its span has the words around it.

The sum counts a word pair once for each rule that has it, a classifier once for a block. So the gain is that
of the model for a filler of one rule, and for others unless a pair recurs in it.
"""

import math
from typing import NamedTuple

import numpy as np

from hiero.core.array_kernels import longer, longer_rows
from hiero.core.hash_kernels import mix
from hiero.core.jit import kernel, leaf, routine
from hiero.core.symbol_kernels import gap_index
from hiero.reordering.feature_kernels import (
    CLASS,
    GAP,
    LN_10,
    LOW_RUN,
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

# Gains of a node, by class: those of a classifier, of a lexicalised model, and of the latter for the block
# that comes next.
CLASSIFIED, LOOKED_UP, LOOKED_AHEAD = 0, NUM_CLASSES, 2 * NUM_CLASSES
NUM_GAINS = 3 * NUM_CLASSES


class GapModels(NamedTuple):
    """Orientation models for the gaps of the rules of a sentence, R in all.

    label    int8 [R, 4]     classes of the blocks of gap 1 and of gap 2, and of the blocks after them; -1 for
                             none
    src      int32 [n]       the sentence
    longest  int64 [2]       most words of a block with known words, of the classifier and of the lexicalised
                             model; 0 without that model
    pair     float64 [R, 3]  written; sums of the weights of the pairs of words of each rule; nan before
    rules    Rules
    words    ClassifierArrays
    places   PlaceWeights
    lexical  LexicalArrays
    weight   float64 [9]     of the features that the gains add to
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
    """The nodes of a search as fillers of gaps, V of them; F are short enough to be known to a model.

    row     int32 [V]       rows of the nodes in the tables below, -1 for longer ones
    used    int64 [1]       F
    score   float64 [F, 6]  weighted gains by class: for the block itself, and for the one after it
    gain    float64 [F, 9]  gains of log10 probabilities
    pair    float64 [F, 3]  sums of the weights of the pairs of words of the best derivation
    length  int32 [F]       words of its translation; -1 if there are more than models know
    word    int32 [F, L]    these words
    best    int32 [F]       its topmost edge
    """

    row: np.ndarray
    used: np.ndarray
    score: np.ndarray
    gain: np.ndarray
    pair: np.ndarray
    length: np.ndarray
    word: np.ndarray
    best: np.ndarray


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


@kernel
def new_gap_nodes(gaps, size):
    """Tables for ``size`` nodes; None without ``gaps``."""
    if gaps is None:
        return None
    return GapNodes(
        np.empty(size, np.int32),
        np.zeros(1, np.int64),
        np.empty((size, 2 * NUM_CLASSES)),
        np.empty((size, NUM_GAINS)),
        np.empty((size, NUM_CLASSES)),
        np.empty(size, np.int32),
        np.empty((size, max(gaps.longest[0], gaps.longest[1])), np.int32),
        np.empty(size, np.int32),
    )


@kernel
def larger_gap_nodes(gaps, nodes, size, more):
    """The tables, or larger ones if they have no room for ``size`` nodes, ``more`` of which are new."""
    if gaps is None:
        return nodes
    row, rows = nodes.row, nodes.used[0] + more
    if size > row.shape[0]:
        row = longer(row, 2 * size)
    if rows <= nodes.length.shape[0]:
        return GapNodes(
            row, nodes.used, nodes.score, nodes.gain, nodes.pair, nodes.length, nodes.word, nodes.best
        )
    size = 2 * rows
    return GapNodes(
        row,
        nodes.used,
        longer_rows(nodes.score, size),
        longer_rows(nodes.gain, size),
        longer_rows(nodes.pair, size),
        longer(nodes.length, size),
        longer_rows(nodes.word, size),
        longer(nodes.best, size),
    )


@leaf
def _enter_words(gaps, nodes, row, rule, tail_1, tail_2):
    """Write the translation of a node whose best derivation begins with a rule; returns its length or -1.

    Nodes are given by their rows here and below.
    """
    most = nodes.word.shape[1]
    n = np.int64(0)
    for k in range(gaps.rules.first_tgt[rule], gaps.rules.first_tgt[rule + 1]):
        symbol = gaps.rules.tgt[k]
        if symbol >= 0:
            if n == most:
                return np.int64(-1)
            nodes.word[row, n] = symbol
            n += 1
            continue
        tail = tail_1 if gap_index(symbol) == 1 else tail_2
        length = np.int64(nodes.length[tail])
        if length < 0 or n + length > most:
            return np.int64(-1)
        for i in range(length):
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
    unknown               log10 probabilities of the classes before the words were known
    """
    for k in range(NUM_CLASSES):
        nodes.score[node, k] = 0.0
        nodes.score[node, NUM_CLASSES + k] = 0.0
        nodes.pair[node, k] = 0.0
    for k in range(NUM_GAINS):
        nodes.gain[node, k] = 0.0
    nodes.length[node] = -1
    length = _enter_words(gaps, nodes, node, rule, tail_1, tail_2)
    nodes.length[node] = length
    if gaps.longest[0] > 0 and math.isnan(gaps.pair[rule, 0]):
        size = np.int64(gaps.rules.first_tgt[rule + 1] - gaps.rules.first_tgt[rule])
        a, b, c = weigh_words(gaps.words, gaps.rules, rule, np.int64(0), size)
        gaps.pair[rule, 0], gaps.pair[rule, 1], gaps.pair[rule, 2] = a, b, c
    for k in range(NUM_CLASSES):
        nodes.pair[node, k] = gaps.pair[rule, k]
        if tail_1 >= 0:
            nodes.pair[node, k] += nodes.pair[tail_1, k]
        if tail_2 >= 0:
            nodes.pair[node, k] += nodes.pair[tail_2, k]
    if length <= 0:
        return  # no block, or a longer one than any example
    most = max(length, end - start)
    if most <= gaps.longest[0]:
        at = gaps.places
        a, b, c = nodes.pair[node, 0], nodes.pair[node, 1], nodes.pair[node, 2]
        a, b, c = place_scores(at.start, at.end, at.both, start, end, a, b, c)
        total = log_sum(a, b, c)
        nodes.gain[node, CLASSIFIED] = (a - total) / LN_10 - unknown[0]
        nodes.gain[node, CLASSIFIED + 1] = (b - total) / LN_10 - unknown[1]
        nodes.gain[node, CLASSIFIED + 2] = (c - total) / LN_10 - unknown[2]
    if most <= gaps.longest[1]:
        _look_up(gaps, nodes, node, start, end)
    for k in range(NUM_CLASSES):
        nodes.score[node, k] = (
            gaps.weight[CLASSIFIED + k] * nodes.gain[node, CLASSIFIED + k]
            + gaps.weight[LOOKED_UP + k] * nodes.gain[node, LOOKED_UP + k]
        )
        nodes.score[node, NUM_CLASSES + k] = (
            gaps.weight[LOOKED_AHEAD + k] * nodes.gain[node, LOOKED_AHEAD + k]
        )


@routine
def finish_gap_nodes(gaps, nodes, start, end, score, first_node, last_node, edges, first_edge, last_edge):
    """Write the rows of the nodes of a cell, which covers the words start ... end - 1, when all are found.

    score                   float64 [V]  of the best derivations
    first_node, last_node   the nodes of the cell
    edges                   Edges; those into the cell are first_edge ... last_edge - 1
    """
    is_long = end - start > nodes.word.shape[1]
    first_row = nodes.used[0] - first_node
    for v in range(first_node, last_node):
        nodes.row[v] = -1 if is_long else first_row + v
    if is_long:
        return
    nodes.used[0] += last_node - first_node
    for v in range(first_node, last_node):
        nodes.best[first_row + v] = -1
    for e in range(first_edge, last_edge):
        total = edges.local[e]
        for t in range(2):
            if edges.tail[e, t] >= 0:
                total += score[edges.tail[e, t]]
        head = first_row + edges.head[e]
        # The best total is kept in the row until that is written; of equal edges the first counts.
        if nodes.best[head] < 0 or total > nodes.gain[head, 0]:
            nodes.best[head] = e
            nodes.gain[head, 0] = total
    at, unknown = gaps.places, (0.0, 0.0, 0.0)
    if end - start <= gaps.longest[0]:
        a, b, c = place_scores(at.gap_start, at.gap_end, at.gap_both, start, end, 0.0, 0.0, 0.0)
        total = log_sum(a, b, c)
        unknown = (a - total) / LN_10, (b - total) / LN_10, (c - total) / LN_10
    for v in range(first_node, last_node):
        best = nodes.best[first_row + v]
        one, two = edges.tail[best, 0], edges.tail[best, 1]
        # The spans of tails are no longer than this one.
        row_1 = np.int64(nodes.row[one]) if one >= 0 else np.int64(-1)
        row_2 = np.int64(nodes.row[two]) if two >= 0 else np.int64(-1)
        rule = np.int64(edges.rule[best])
        finish_gap_node(gaps, nodes, first_row + v, start, end, rule, row_1, row_2, unknown)


@leaf
def score_gaps(gaps, nodes, rule, tail_1, tail_2):
    """The weighted gains of the gaps of a rule application."""
    score = 0.0
    one = nodes.row[tail_1] if tail_1 >= 0 else -1
    two = nodes.row[tail_2] if tail_2 >= 0 else -1
    if one >= 0 and gaps.label[rule, 0] >= 0:
        score += nodes.score[one, gaps.label[rule, 0]]
    if two >= 0 and gaps.label[rule, 1] >= 0:
        score += nodes.score[two, gaps.label[rule, 1]]
    if one >= 0 and gaps.label[rule, 2] >= 0:
        score += nodes.score[one, NUM_CLASSES + gaps.label[rule, 2]]
    if two >= 0 and gaps.label[rule, 3] >= 0:
        score += nodes.score[two, NUM_CLASSES + gaps.label[rule, 3]]
    return score


@kernel
def gap_rows_kernel(rule, tail, label, row, gain, names, out_first, out_id, out_value):
    """The gains of some edges as values of features.

    rule               int32 [N]       of the edges; -1 for none
    tail               int32 [N, 2]
    label              int8 [R, 4]     of ``gap_labels_kernel``
    row, gain          int32 [V], float64 [F, 9]  of GapNodes
    names              int32 [9]       ids of the features, -1 for those of no model
    out_first          int64 [N + 1]   written
    out_id, out_value  int32, float64 [6 * N]  written; their length is returned

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
            for model in range(
                LOOKED_AHEAD if ahead else 0, NUM_GAINS if ahead else LOOKED_AHEAD, NUM_CLASSES
            ):
                value = 0.0
                if at_row >= 0 and names[model + k] >= 0:
                    value = gain[at_row, model + k]
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
