# mypy: ignore-errors
"""Derivations whose target words are given: all of them, or the first ones.

Target words are a *track* of positions, from one to the next by a word. A node of a forced parse is a cell
and the positions between which its words stand, so that the context of every word is known and language
models need no state. Parts without words stand nowhere and fit everywhere.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.array_kernels import with_free_row
from hiero.core.jit import kernel, leaf, scalar
from hiero.core.symbol_kernels import gap_index
from hiero.decoder.hypergraph import Chart
from hiero.decoder.lm_state_kernels import States, add_word, begin_sentence, copy_row, new_states
from hiero.features.template_kernels import BIGRAM, weight_of

NOWHERE = -1  # the position of a part without words
CELL, START, END, NEXT = 0, 1, 2, 3  # columns of a node; NEXT is another node of the cell with this START
HEAD, TAIL_1, TAIL_2, PAIR = 0, 1, 2, 3  # columns of an edge
SYMBOL, BEGIN, AT, PART_1, PART_2 = 0, 1, 2, 3, 4  # columns of a partial match


class Track(NamedTuple):
    """Target words to match, n of them.

    word  int32 [n - 1]  all but the last, ids in Symbols.words; -1 for words that no rule has
    last  int32 [K]      what the last word may be, ascending; empty for n = 0

    Positions are 0 ... n - 1, before each word, and an end n + k for each word k of ``last``.
    """

    word: np.ndarray
    last: np.ndarray


class TrackProbs(NamedTuple):
    """What language models say about P positions of a track.

    prob   float64 [P, M]  log10 probability of the word that leads to a position, 0 for the first
    stop   float64 [P, M]  and of </s> after it
    state  States, P rows  of the words up to it, from <s> on
    """

    prob: np.ndarray
    stop: np.ndarray
    state: States


class Forced(NamedTuple):
    """Parts of derivations that yield words of a track.

    node   int32 [V, 4]      CELL, START, END, NEXT; tails come before heads
    edge   int32 [E, 4]      HEAD, TAIL_1, TAIL_2 (nodes or -1), PAIR (place in Pairs)
    first  int32 [C, n + 1]  a node of each cell by START, -1 for none; the last column has those NOWHERE
    used   bool [n]          whether any edge yields the word
    """

    node: np.ndarray
    edge: np.ndarray
    first: np.ndarray
    used: np.ndarray


@leaf
def track_length(track):
    """The number of words."""
    return np.int64(track.word.shape[0] + (1 if track.last.shape[0] > 0 else 0))


@leaf
def follow(track, at, word):
    """The position after a word, or -1 if the track does not go on with it."""
    size = np.int64(track.word.shape[0])
    if at < size:
        return at + 1 if track.word[at] == word else np.int64(-1)
    if at > size:
        return np.int64(-1)
    low, high = np.int64(0), np.int64(track.last.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if track.last[middle] < word:
            low = middle + 1
        else:
            high = middle
    if low < track.last.shape[0] and track.last[low] == word:
        return size + 1 + low
    return np.int64(-1)


@kernel
def can_follow(first_tgt, tgt, track):
    """Which rules have only words of the track, bool [R]."""
    fits = np.ones(first_tgt.shape[0] - 1, np.bool_)
    size = track_length(track)
    for rule in range(fits.shape[0]):
        for k in range(first_tgt[rule], first_tgt[rule + 1]):
            if tgt[k] < 0:
                continue
            found = False
            for at in range(size):
                if follow(track, np.int64(at), tgt[k]) >= 0:
                    found = True
                    break
            if not found:
                fits[rule] = False
                break
    return fits


@scalar
def track_probs_kernel(track, word_id, lm, stride):
    """Score the words of a track with language models.

    track    Track
    word_id  int32 [M, W]  language model ids of words
    lm       Ngrams of M models
    stride   highest order minus one

    Returns TrackProbs. O(P * M).  Twin: tests/naive/chart.py::sentence.
    """
    num_models = word_id.shape[0]
    size = track_length(track)
    num_places = size + max(track.last.shape[0], 1)
    prob, stop = np.zeros((num_places, num_models)), np.zeros((num_places, num_models))
    state, aside = new_states(num_places, num_models, stride), new_states(np.int64(1), num_models, stride)
    scratch = np.empty(2 * stride + 2, np.float32)
    zero = np.int64(0)
    for m in range(num_models):
        begin_sentence(lm, m, state, zero)
        for at in range(1, num_places):
            before = np.int64(min(at, size) - 1)
            word = track.word[at - 1] if at < size else track.last[at - size]
            copy_row(state, before, state, np.int64(at), m)
            known = word_id[m, word] if word >= 0 else np.int32(0)
            prob[at, m] = add_word(lm, m, state, np.int64(at), known, scratch)
        for at in range(num_places):
            copy_row(state, np.int64(at), aside, zero, m)
            stop[at, m] = add_word(lm, m, aside, zero, np.int32(lm.eos[m]), scratch)
    return TrackProbs(prob, stop, state)


@leaf
def node_of(node, first, size, cell, start, end):
    """The node of a cell between two positions, or -1."""
    at = first[cell, size if start == NOWHERE else start]
    while at >= 0 and node[at, END] != end:
        at = node[at, NEXT]
    return np.int64(at)


@leaf
def _mark_used(track, first_tgt, tgt, rule, node, start, part_1, part_2, out_used):
    """Mark the words that an edge yields."""
    at = start
    for k in range(first_tgt[rule], first_tgt[rule + 1]):
        if tgt[k] >= 0:
            out_used[min(at, out_used.shape[0] - 1)] = True
            at = follow(track, at, tgt[k])
        else:
            part = part_1 if gap_index(tgt[k]) == 1 else part_2
            if node[part, END] != NOWHERE:
                at = np.int64(node[part, END])


@kernel
def force_kernel(parse, pairs, first_tgt, tgt, track, most_edges):
    """Find the parts of derivations that yield pieces of a track.

    parse           Parse, C cells
    pairs           Pairs
    first_tgt, tgt  int64 [R + 1], int32  target sides
    track           Track
    most_edges      stop when there are more

    Returns whether all parts were found, and Forced. O(edges * words of a rule), and for each bundle its
    rules with only words of the track.  Twin: tests/naive/constrain.py::pieces.
    """
    size = track_length(track)
    fits = can_follow(first_tgt, tgt, track)
    num_cells = parse.cell.shape[0]
    first = np.full((num_cells, size + 1), -1, np.int32)
    node = np.empty((256, 4), np.int32)
    edge = np.empty((256, 4), np.int32)
    num_nodes, num_edges = np.int64(0), np.int64(0)
    used = np.zeros(size, np.bool_)
    stack = np.empty((64, 5), np.int64)
    for c in range(num_cells):
        for b in range(parse.first_bundle[c], parse.first_bundle[c + 1]):
            for place in range(parse.rules[b, 1]):
                rule = parse.rules[b, 0] + place
                if not fits[rule]:
                    continue
                stack[0, SYMBOL], stack[0, BEGIN], stack[0, AT] = first_tgt[rule], NOWHERE, NOWHERE
                stack[0, PART_1], stack[0, PART_2] = -1, -1
                top = np.int64(1)
                while top > 0:
                    top -= 1
                    k, begin, at = stack[top, SYMBOL], stack[top, BEGIN], stack[top, AT]
                    part_1, part_2 = stack[top, PART_1], stack[top, PART_2]
                    if k == first_tgt[rule + 1]:
                        head = node_of(node, first, size, c, begin, at)
                        if head < 0:
                            head = num_nodes
                            node = with_free_row(node, num_nodes)
                            column = size if begin == NOWHERE else begin
                            node[head, CELL], node[head, START], node[head, END] = c, begin, at
                            node[head, NEXT] = first[c, column]
                            first[c, column] = head
                            num_nodes += 1
                        if num_edges == most_edges:
                            return False, Forced(node[:num_nodes], edge[:num_edges], first, used)
                        edge = with_free_row(edge, num_edges)
                        edge[num_edges, HEAD], edge[num_edges, PAIR] = head, pairs.first[b] + place
                        edge[num_edges, TAIL_1], edge[num_edges, TAIL_2] = part_1, part_2
                        num_edges += 1
                        if begin != NOWHERE:
                            _mark_used(track, first_tgt, tgt, rule, node, begin, part_1, part_2, used)
                        continue
                    symbol = tgt[k]
                    if symbol >= 0:
                        low, high = (at, at) if at != NOWHERE else (np.int64(0), size - 1)
                        for start in range(low, high + 1):
                            after = follow(track, np.int64(start), symbol)
                            if after >= 0:
                                stack = with_free_row(stack, top)
                                stack[top, SYMBOL], stack[top, AT] = k + 1, after
                                stack[top, BEGIN] = start if begin == NOWHERE else begin
                                stack[top, PART_1], stack[top, PART_2] = part_1, part_2
                                top += 1
                        continue
                    is_first = gap_index(symbol) == 1
                    tail = parse.tail[b, 0] if is_first else parse.tail[b, 1]
                    low, high = (at, at) if at != NOWHERE else (np.int64(0), size - 1)
                    # Parts from a position on, or anywhere if there is none yet; last, those without words.
                    for column in range(low, high + 2):
                        start = column if column <= high else size
                        if start > size or (column <= high and start == size):
                            continue  # an end of the track, after which there is nothing
                        part = np.int64(first[tail, start])
                        while part >= 0:
                            stack = with_free_row(stack, top)
                            stack[top, SYMBOL] = k + 1
                            is_empty = node[part, START] == NOWHERE
                            stack[top, AT] = at if is_empty else node[part, END]
                            stack[top, BEGIN] = (
                                begin if begin != NOWHERE or is_empty else np.int64(node[part, START])
                            )
                            stack[top, PART_1] = part if is_first else part_1
                            stack[top, PART_2] = part_2 if is_first else part
                            top += 1
                            part = np.int64(node[part, NEXT])
    return True, Forced(node[:num_nodes], edge[:num_edges], first, used)


@leaf
def add_probs(track, probs, first_tgt, tgt, rule, node, start, part_1, part_2, out_lm, row):
    """Write the log10 probability of the words of an edge of a forced parse, float32."""
    for m in range(out_lm.shape[1]):
        total, at = 0.0, start
        for k in range(first_tgt[rule], first_tgt[rule + 1]):
            if tgt[k] >= 0:
                at = follow(track, at, tgt[k])
                total += probs.prob[at, m]
            else:
                part = part_1 if gap_index(tgt[k]) == 1 else part_2
                if node[part, END] != NOWHERE:
                    at = np.int64(node[part, END])
        out_lm[row, m] = total


@kernel
def forced_chart_kernel(forced, pairs, first_tgt, tgt, track, probs, weight, goal):
    """The derivations of a whole track as a chart.

    forced          Forced
    pairs           Pairs
    first_tgt, tgt  target sides
    track           Track, with one last word
    probs           TrackProbs
    weight          float64 [M]
    goal            cell of the whole sentence

    Returns a Chart of the nodes and edges that are part of a derivation; an empty one if there is none.
    O(E * words of a rule).  Twin: tests/naive/constrain.py::forced.
    """
    node, edge = forced.node, forced.edge
    size, num_models = track_length(track), weight.shape[0]
    num_edges = edge.shape[0]
    start = np.int64(0) if size > 0 else np.int64(NOWHERE)
    top = node_of(node, forced.first, size, goal, start, size if size > 0 else np.int64(NOWHERE))
    number = np.full(node.shape[0] + 1, -1, np.int32)
    if top >= 0:
        number[top] = 0
    first_edge = np.zeros(node.shape[0] + 1, np.int64)
    for e in range(num_edges):
        first_edge[edge[e, HEAD] + 1] += 1
    for v in range(node.shape[0]):
        first_edge[v + 1] += first_edge[v]
    order, filled = np.empty(num_edges, np.int64), first_edge.copy()
    for e in range(num_edges):
        order[filled[edge[e, HEAD]]] = e
        filled[edge[e, HEAD]] += 1
    num_kept, kept_edges = np.int64(0), np.int64(0)
    for v in range(node.shape[0] - 1, -1, -1):
        if number[v] < 0:
            continue
        num_kept += 1
        kept_edges += first_edge[v + 1] - first_edge[v]
        for i in range(first_edge[v], first_edge[v + 1]):
            for t in (TAIL_1, TAIL_2):
                if edge[order[i], t] >= 0:
                    number[edge[order[i], t]] = 0
    whole = 1 if top >= 0 else 0
    chart = Chart(
        np.zeros(num_kept + whole + 1, np.int64),
        np.empty(num_kept + whole, np.int32),
        np.empty((kept_edges + whole, 2), np.int32),
        np.empty(kept_edges + whole, np.int32),
        np.empty(kept_edges + whole, np.float64),
        np.empty((kept_edges + whole, num_models), np.float32),
    )
    new_node, new_edge = np.int64(0), np.int64(0)
    for v in range(node.shape[0]):
        if number[v] < 0:
            continue
        number[v] = new_node
        chart.cell[new_node] = node[v, CELL]
        for i in range(first_edge[v], first_edge[v + 1]):
            e = order[i]
            pair = edge[e, PAIR]
            part_1, part_2 = np.int64(edge[e, TAIL_1]), np.int64(edge[e, TAIL_2])
            chart.tail[new_edge, 0] = number[part_1] if part_1 >= 0 else -1
            chart.tail[new_edge, 1] = number[part_2] if part_2 >= 0 else -1
            rule = pairs.rule[pair]
            chart.rule[new_edge] = rule
            add_probs(
                track,
                probs,
                first_tgt,
                tgt,
                rule,
                node,
                np.int64(node[v, START]),
                part_1,
                part_2,
                chart.lm,
                new_edge,
            )
            chart.local[new_edge] = pairs.score[pair]
            for m in range(num_models):
                # In the precision in which it is stored: features must add up to the score.
                chart.local[new_edge] += weight[m] * chart.lm[new_edge, m]
            new_edge += 1
        new_node += 1
        chart.first_edge[new_node] = new_edge
    if top >= 0:
        chart.cell[new_node] = -1
        chart.tail[new_edge, 0], chart.tail[new_edge, 1] = number[top], -1
        chart.rule[new_edge] = -1
        chart.local[new_edge] = 0.0
        for m in range(num_models):
            chart.lm[new_edge, m] = probs.stop[size, m]
            chart.local[new_edge] += weight[m] * chart.lm[new_edge, m]
        chart.first_edge[new_node + 1] = new_edge + 1
    return chart


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
