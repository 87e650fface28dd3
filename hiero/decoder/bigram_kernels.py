# mypy: ignore-errors
"""Bigrams of target words where the words of a rule meet those in its gaps, or the words of two gaps meet.

The first and the last word in a gap are known as far as the state of the first language model keeps them, so
that nodes need no further state: its unknown words are not, nor are first words that end no longer n-gram of
the model, and last words that begin none and have no back-off. This depends on the word alone.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap_index
from hiero.decoder.lm_state_kernels import FULL, LEFT, RIGHT
from hiero.features.index_kernels import FeatureTable
from hiero.features.template_kernels import BIGRAM, WeightMemo, weight_of

# Rows of ``kept``: words of the model, those kept as the first word in a gap, and as the last one.
KNOWN, FIRST, LAST = 0, 1, 2
UNKNOWN_WORD, NO_WORD = -1, -2  # instead of a word at an edge: one that is not kept; no words at all


class Bigrams(NamedTuple):
    """Weights of bigrams for a search.

    word      int32 [V]     ids in Symbols.words, or -1, of words by their ids in the first language model
    table     FeatureTable  the features that have a weight
    weight    float64 [F]
    memo      WeightMemo    written
    sequence  int32 [0]     bigrams have none
    """

    word: np.ndarray
    table: FeatureTable
    weight: np.ndarray
    memo: WeightMemo
    sequence: np.ndarray


@leaf
def _weight_of_bigram(bigrams, one, two):
    if one < 0 or two < 0:
        return 0.0
    return weight_of(
        bigrams.table, bigrams.weight, bigrams.memo, BIGRAM, np.int64(one), np.int64(two), bigrams.sequence
    )


@leaf
def score_bigrams(rules, rule, states, tail_1, tail_2, bigrams):
    """The weights of the bigrams at the edges of the gaps of a rule; ``rules`` are RuleStates."""
    at, last = rules.resume[rule], rules.first_tgt[rule + 1]
    before = np.int64(UNKNOWN_WORD)
    if at > rules.first_tgt[rule]:
        before = np.int64(bigrams.word[rules.tgt[0, at - 1]])
    score, is_behind_gap = 0.0, False
    for k in range(at, last):
        symbol = rules.tgt[0, k]
        if symbol >= 0:
            word = np.int64(bigrams.word[symbol])
            if is_behind_gap:
                score += _weight_of_bigram(bigrams, before, word)
            before, is_behind_gap = word, False
            continue
        tail = tail_1 if gap_index(symbol) == 1 else tail_2
        is_behind_gap = True
        if states.length[tail, 0, LEFT] > 0:
            # The key of one word is its id.
            word = np.int64(bigrams.word[np.int64(states.left_key[tail, 0, 0])])
            score += _weight_of_bigram(bigrams, before, word)
        elif states.length[tail, 0, FULL] == 0:
            continue  # no words
        before = np.int64(UNKNOWN_WORD)
        if states.length[tail, 0, RIGHT] > 0:
            before = np.int64(bigrams.word[states.right_word[tail, 0, 0]])
    return score


@kernel
def edge_words_kernel(graph, edge_rule, rules, kept, out_word):
    """The first and the last word of every node, which are the same in all its derivations.

    graph      Hypergraph
    edge_rule  int32 [E]
    rules      Rules
    kept       bool [3, W]   rows KNOWN, FIRST, LAST
    out_word   int32 [V, 2]  written; UNKNOWN_WORD, NO_WORD

    O(V * symbols of a rule).  Twin: tests/naive/search.py::edge_words.
    """
    first_tgt, tgt, first_edge, tails = rules.first_tgt, rules.tgt, graph.first_edge, graph.tail
    for v in range(out_word.shape[0]):
        out_word[v, 0], out_word[v, 1] = NO_WORD, NO_WORD
        e = first_edge[v]
        if e == first_edge[v + 1]:
            continue
        rule = edge_rule[e]
        if rule < 0:
            out_word[v, 0], out_word[v, 1] = out_word[tails[e, 0], 0], out_word[tails[e, 0], 1]
            continue
        for k in range(first_tgt[rule], first_tgt[rule + 1]):
            symbol = tgt[k]
            if symbol >= 0:
                one = symbol if kept[FIRST, symbol] else UNKNOWN_WORD
                two = symbol if kept[LAST, symbol] else UNKNOWN_WORD
            else:
                tail = tails[e, gap_index(symbol) - 1]
                one, two = out_word[tail, 0], out_word[tail, 1]
            if one != NO_WORD:
                if out_word[v, 0] == NO_WORD:
                    out_word[v, 0] = one
                out_word[v, 1] = two


@kernel
def edge_bigrams_kernel(tail, rule, rules, kept, word, out_first, out_key):
    """The bigrams at the edges of the gaps of some edges, as keys of features.

    tail       int32 [N, 2]   of the edges
    rule       int32 [N]
    rules      Rules
    kept       bool [3, W]
    word       int32 [V, 2]   of ``edge_words_kernel``
    out_first  int64 [N + 1]  written
    out_key    int32 [., 3]   written, with room for two rows a gap

    O(symbols).  Twin: tests/naive/search.py::bigrams_of_edge.
    """
    first_tgt, tgt = rules.first_tgt, rules.tgt
    n = np.int64(0)
    out_first[0] = 0
    for e in range(rule.shape[0]):
        before, is_behind_gap = np.int64(UNKNOWN_WORD), False
        r = rule[e]
        for k in range(first_tgt[r] if r >= 0 else 0, first_tgt[r + 1] if r >= 0 else 0):
            symbol = np.int64(tgt[k])
            is_gap = symbol < 0
            if is_gap:
                node = tail[e, gap_index(symbol) - 1]
                one, two = np.int64(word[node, 0]), np.int64(word[node, 1])
            else:
                one = symbol if kept[KNOWN, symbol] else np.int64(UNKNOWN_WORD)
                two = one
            if one != NO_WORD:
                if (is_gap or is_behind_gap) and before >= 0 and one >= 0:
                    out_key[n, 0], out_key[n, 1], out_key[n, 2] = BIGRAM, before, one
                    n += 1
                before, is_behind_gap = two, is_gap
            else:
                is_behind_gap = True
        out_first[e + 1] = n


@kernel
def add_bigrams_kernel(first, key, bigrams, out_score):
    """Add the weights of the bigrams of edges to their scores.

    first      int64 [E + 1]
    key        int32 [., 3]   of ``edge_bigrams_kernel``
    bigrams    Bigrams
    out_score  float64 [E]    written

    O(E + keys).  Twin: none; it looks up weights, as the search does.
    """
    for e in range(out_score.shape[0]):
        for i in range(first[e], first[e + 1]):
            out_score[e] += weight_of(
                bigrams.table,
                bigrams.weight,
                bigrams.memo,
                BIGRAM,
                np.int64(key[i, 1]),
                np.int64(key[i, 2]),
                bigrams.sequence,
            )
