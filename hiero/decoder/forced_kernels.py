# mypy: ignore-errors
"""Derivations whose target words are given: all of them, or the first ones.

Target words are a *track* of positions, from one to the next by a word. A node of a forced parse is a cell
and the positions between which its words stand, so that the context of every word is known and language
models need no state. Parts without words stand nowhere and fit everywhere.

Of a translation that begins with a track, parts are of three kinds. Those within the track are nodes of a
forced parse. Those after its end are *free*: nodes of an ordinary search, which do not depend on the track.
Those that begin in the track and go on after its end *straddle* it: nodes with a beginning, and the language
model state of their last words, found by cube pruning for each cell and beginning.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.array_kernels import longer, with_free_row
from hiero.core.jit import kernel, leaf, scalar
from hiero.core.symbol_kernels import gap_index
from hiero.decoder.lm_state_kernels import (
    FULL,
    LEFT,
    add_tail,
    add_word,
    copy_row,
    follow,
    grown_states,
    hash_row,
    new_states,
    same_rows,
    track_length,
)
from hiero.decoder.search_table_kernels import (
    heap_pop,
    heap_push,
    larger_search_edges,
    larger_search_nodes,
    new_search_edges,
    new_search_nodes,
    order_by_score,
    pack_derivations,
)

NOWHERE = -1  # the position of a part without words
CELL, START, END, NEXT = 0, 1, 2, 3  # columns of a node; NEXT is another node of the cell with this START
HEAD, TAIL_1, TAIL_2, PAIR = 0, 1, 2, 3  # columns of an edge
SYMBOL, BEGIN, AT, PART_1, PART_2 = 0, 1, 2, 3, 4  # columns of a partial match


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


@kernel
def _can_follow(first_tgt, tgt, track, is_first):
    """Which rules have only words of the track, or begin with a gap or one of its words, bool [R]."""
    fits = np.ones(first_tgt.shape[0] - 1, np.bool_)
    size = track_length(track)
    for rule in range(fits.shape[0]):
        if is_first:
            fits[rule] = first_tgt[rule] < first_tgt[rule + 1]
        for k in range(first_tgt[rule], first_tgt[rule + 1]):
            found = tgt[k] < 0
            for at in range(size):
                found = found or follow(track, np.int64(at), tgt[k]) >= 0
            if not found:
                fits[rule] = False
            if is_first or not found:
                break
    return fits


@leaf
def _push(stack, top, symbol, begin, at, part_1, part_2):
    """Write a partial match."""
    stack[top, SYMBOL], stack[top, BEGIN], stack[top, AT] = symbol, begin, at
    stack[top, PART_1], stack[top, PART_2] = part_1, part_2


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
    fits = _can_follow(first_tgt, tgt, track, False)
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
                _push(stack, 0, first_tgt[rule], NOWHERE, NOWHERE, -1, -1)
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
                                own = start if begin == NOWHERE else begin
                                _push(stack, top, k + 1, own, after, part_1, part_2)
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
                            is_empty = node[part, START] == NOWHERE
                            after = at if is_empty else np.int64(node[part, END])
                            own = begin if begin != NOWHERE or is_empty else np.int64(node[part, START])
                            one, two = (part, part_2) if is_first else (part_1, part)
                            _push(stack, top, k + 1, own, after, one, two)
                            top += 1
                            part = np.int64(node[part, NEXT])
    return True, Forced(node[:num_nodes], edge[:num_edges], first, used)


@leaf
def probs_of_words(track, probs, first_tgt, tgt, rule, until, node, start, part_1, part_2, out_lm, row):
    """Write the log10 probability of the words of a rule up to a symbol, which stand in the track, float32.

    Returns the position after them.
    """
    at = start
    for m in range(out_lm.shape[1]):
        total, at = 0.0, start
        for k in range(first_tgt[rule], until):
            if tgt[k] >= 0:
                at = follow(track, at, tgt[k])
                total += probs.prob[at, m]
            else:
                part = part_1 if gap_index(tgt[k]) == 1 else part_2
                if node[part, END] != NOWHERE:
                    at = np.int64(node[part, END])
        out_lm[row, m] = total
    return at


@kernel
def forced_edges(forced, pairs, first_tgt, tgt, track, probs, weight, first_node):
    """Edges of a forced parse with their scores, and the score of the best derivation of each node.

    first_node  number of the first node
    """
    node, edge = forced.node, forced.edge
    num_edges = np.int64(edge.shape[0])
    edges = new_search_edges(num_edges + 1, weight.shape[0])
    best = np.full(node.shape[0], -np.inf)
    for e in range(num_edges):
        head, pair = np.int64(edge[e, HEAD]), edge[e, PAIR]
        part_1, part_2, rule = np.int64(edge[e, TAIL_1]), np.int64(edge[e, TAIL_2]), pairs.rule[pair]
        start, until = np.int64(node[head, START]), first_tgt[rule + 1]
        probs_of_words(
            track, probs, first_tgt, tgt, rule, until, node, start, part_1, part_2, edges.lm, np.int64(e)
        )
        local = pairs.score[pair]
        for m in range(weight.shape[0]):
            # In the precision in which it is stored: features must add up to the score.
            local += weight[m] * edges.lm[e, m]
        score = local
        if part_1 >= 0:
            score += best[part_1]
        if part_2 >= 0:
            score += best[part_2]
        best[head] = max(best[head], score)
        edges.head[e] = first_node + head
        edges.tail[e, 0] = first_node + part_1 if part_1 >= 0 else -1
        edges.tail[e, 1] = first_node + part_2 if part_2 >= 0 else -1
        edges.rule[e], edges.local[e] = rule, local
    return edges, best


@leaf
def add_goal_edge(track, probs, weight, at, goal, tail, edges, e):
    """Write the edge into the goal from a node that ends at a position of the track."""
    edges.head[e], edges.tail[e, 0], edges.tail[e, 1], edges.rule[e] = goal, tail, -1, -1
    edges.local[e] = 0.0
    for m in range(weight.shape[0]):
        edges.lm[e, m] = probs.stop[at, m]
        edges.local[e] += weight[m] * edges.lm[e, m]


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
    size, num_nodes = track_length(track), np.int64(forced.node.shape[0])
    edges, _ = forced_edges(forced, pairs, first_tgt, tgt, track, probs, weight, np.int64(0))
    num_edges = np.int64(forced.edge.shape[0])
    start, end = (np.int64(0), size) if size > 0 else (np.int64(NOWHERE), np.int64(NOWHERE))
    top = node_of(forced.node, forced.first, size, goal, start, end)
    if top >= 0:
        add_goal_edge(track, probs, weight, size, num_nodes, top, edges, num_edges)
        num_edges += 1
    cell = np.empty(num_nodes + 1, np.int32)
    for v in range(num_nodes):
        cell[v] = forced.node[v, CELL]
    cell[num_nodes] = -1
    chart, _ = pack_derivations(cell, edges, np.int64(0), edges, num_edges)
    return chart


# ---- beginnings

# Columns of an item: a rule whose first symbols, up to RESUME, yield words of the track from ITEM_BEGIN on.
# Gaps among them are filled by ITEM_PART_1 and ITEM_PART_2, nodes of the forced parse, or the last of them
# (OVER, 1 or 2; else 0) by a straddling part that begins at FROM.
ITEM_PAIR, ITEM_BEGIN, RESUME, ITEM_AT, ITEM_PART_1 = 0, 1, 2, 3, 4
ITEM_PART_2, OVER, FROM, NEXT_ITEM, BUNDLE = 5, 6, 7, 8, 9
ITEM_COLUMNS = 10


@leaf
def _write_item(item, i, pair, begin, resume, at, part_1, part_2, over, start, bundle):
    item[i, ITEM_PAIR], item[i, ITEM_BEGIN], item[i, RESUME], item[i, ITEM_AT] = pair, begin, resume, at
    item[i, ITEM_PART_1], item[i, ITEM_PART_2], item[i, OVER], item[i, FROM] = part_1, part_2, over, start
    item[i, NEXT_ITEM], item[i, BUNDLE] = -1, bundle


@kernel
def _find_items(cell, parse, pairs, first_tgt, tgt, track, begins, forced, group, item, stack):
    """The items of a cell; returns the tables, which may have grown, and the number of items."""
    size = track_length(track)
    node, num_items = forced.node, np.int64(0)
    for b in range(parse.first_bundle[cell], parse.first_bundle[cell + 1]):
        for place in range(parse.rules[b, 1]):
            rule = parse.rules[b, 0] + place
            if not begins[rule]:
                continue
            pair = pairs.first[b] + place
            _push(stack, 0, first_tgt[rule], NOWHERE, NOWHERE, -1, -1)
            top = np.int64(1)
            while top > 0:
                top -= 1
                k, begin, at = stack[top, SYMBOL], stack[top, BEGIN], stack[top, AT]
                part_1, part_2 = stack[top, PART_1], stack[top, PART_2]
                if k == first_tgt[rule + 1]:
                    continue  # within the track
                if at >= size:
                    item = with_free_row(item, num_items)
                    _write_item(item, num_items, pair, begin, k, at, part_1, part_2, 0, -1, b)
                    num_items += 1
                    continue
                low, high = (at, at) if at != NOWHERE else (np.int64(0), size - 1)
                symbol = tgt[k]
                if symbol >= 0:
                    for start in range(low, high + 1):
                        after = follow(track, np.int64(start), symbol)
                        if after >= 0:
                            stack = with_free_row(stack, top)
                            own = start if begin == NOWHERE else begin
                            _push(stack, top, k + 1, own, after, part_1, part_2)
                            top += 1
                    continue
                is_first = gap_index(symbol) == 1
                tail = parse.tail[b, 0] if is_first else parse.tail[b, 1]
                for start in range(low, high + 1):
                    if group[tail, start, 0] < group[tail, start, 1]:
                        item = with_free_row(item, num_items)
                        over = 1 if is_first else 2
                        own = start if begin == NOWHERE else begin
                        _write_item(item, num_items, pair, own, k + 1, -1, part_1, part_2, over, start, b)
                        num_items += 1
                for column in range(low, high + 2):
                    part = np.int64(forced.first[tail, column if column <= high else size])
                    while part >= 0:
                        is_empty = node[part, START] == NOWHERE
                        stack = with_free_row(stack, top)
                        after = at if is_empty else np.int64(node[part, END])
                        own = begin if begin != NOWHERE or is_empty else np.int64(node[part, START])
                        one, two = (part, part_2) if is_first else (part_1, part)
                        _push(stack, top, k + 1, own, after, one, two)
                        top += 1
                        part = np.int64(node[part, NEXT])
    return item, num_items, stack


@leaf
def _is_empty(states, row):
    """Whether a free part has no words, as far as a language model tells."""
    return (
        states.length.shape[1] > 0 and states.length[row, 0, LEFT] == 0 and states.length[row, 0, FULL] == 0
    )


@leaf
def _score_rest(
    rules,
    rule,
    resume,
    track_at,
    probs,
    over,
    over_node,
    across,
    part_1,
    part_2,
    free,
    lm,
    states,
    row,
    scratch,
    out_lm,
):
    """Score the symbols of a rule after the end of the track.

    track_at       position at which the track ends, if no straddling part is among the symbols before
    over_node      that part; ``across`` are their states
    part_1, part_2 free parts in the gaps that follow
    out_lm         float32 [., M]  row ``row`` is increased
    """
    last = rules.first_tgt[rule + 1]
    for m in range(out_lm.shape[1]):
        if over > 0:
            copy_row(across, over_node, states, row, m)
        else:
            copy_row(probs.state, track_at, states, row, m)
        total = np.float64(out_lm[row, m])
        for k in range(resume, last):
            symbol = rules.tgt[m, k]
            if symbol >= 0:
                total += add_word(lm, m, states, row, symbol, scratch)
            else:
                part = part_1 if gap_index(symbol) == 1 else part_2
                total += add_tail(lm, m, states, row, free, part, scratch)
        out_lm[row, m] = total


@leaf
def _tail(item, i, parse, cells, free, across, group, t, rank_1, rank_2, forced_base, base):
    """The node, of all, that fills gap t + 1 of an item at some ranks; -1 without such a gap, -2 at the end.

    Ranks count the lists of the gaps that have one: the first of them has rank_1.
    """
    tail = np.int64(parse.tail[item[i, BUNDLE], t])
    rank = rank_1
    if t == 1 and item[i, ITEM_PART_1] < 0:
        rank = rank_2
    if t == 0:
        # A rank that no gap has stays 0.
        num_lists = 0
        for g in range(2):
            if parse.tail[item[i, BUNDLE], g] >= 0 and item[i, ITEM_PART_1 + g] < 0:
                num_lists += 1
        if (num_lists == 0 and rank_1 > 0) or (num_lists < 2 and rank_2 > 0):
            return np.int64(-2)
    if tail < 0:
        return np.int64(-1)
    part = item[i, ITEM_PART_1 + t]
    if part >= 0:
        return forced_base + part
    if item[i, OVER] == t + 1:
        first = group[tail, item[i, FROM], 0]
        if first + rank >= group[tail, item[i, FROM], 1]:
            return np.int64(-2)
        return base + np.int64(across.rank[first + rank])
    first = cells[tail, 0]
    if first + rank >= cells[tail, 1]:
        return np.int64(-2)
    return np.int64(free.rank[first + rank])


@scalar
def complete_kernel(
    parse,
    pairs,
    rules,
    first_tgt,
    tgt,
    lm,
    weight,
    goal,
    pop_limit,
    track,
    probs,
    forced,
    free,
    num_free,
    free_edges,
    num_free_edges,
    cells,
):
    """Search for derivations that begin with a track and go on as they like.

    parse, pairs     Parse, Pairs
    rules            RuleStates
    first_tgt, tgt   target sides, in ids of Symbols.words
    lm, weight       Ngrams of M models, float64 [M]
    goal             cell of the whole sentence
    pop_limit        candidates popped for each cell and beginning in the track; 0 for all there are
    track, probs     Track, TrackProbs
    forced           Forced
    free, num_free, free_edges, num_free_edges, cells  of ``search_cells_kernel``

    Returns a Chart of what is part of a derivation, empty if there is none, and how many of its edges are
    into free nodes. O(items * log) language model scores of a rule.
    Twin: tests/naive/constrain.py::completions.
    """
    size, num_models = track_length(track), weight.shape[0]
    stride = probs.state.left_key.shape[2]
    num_cells = parse.cell.shape[0]
    num_forced, forced_base = np.int64(forced.node.shape[0]), np.int64(num_free)
    base = forced_base + num_forced
    edges, inside = forced_edges(forced, pairs, first_tgt, tgt, track, probs, weight, forced_base)
    num_edges = np.int64(forced.edge.shape[0])
    begins = _can_follow(first_tgt, tgt, track, True)
    across = new_search_nodes(np.int64(256), num_models, stride)
    num_across, zero = np.int64(0), np.int64(0)
    group = np.zeros((num_cells, size, 2), np.int64)
    item = np.empty((64, ITEM_COLUMNS), np.int64)
    stack = np.empty((64, 5), np.int64)
    candidate = np.empty((256, 3), np.int64)
    priority, entry = np.empty(256, np.float64), np.empty(256, np.int32)
    local, own_lm = np.empty(256, np.float64), np.empty((256, num_models), np.float32)
    states = new_states(np.int64(256), num_models, stride)
    has_words = np.empty(256, np.bool_)
    scratch = np.empty(2 * stride + 2, np.float32)
    first_item = np.empty(max(size, 1), np.int64)
    order = np.empty(256, np.int32)
    for c in range(num_cells):
        item, num_items, stack = _find_items(
            c, parse, pairs, first_tgt, tgt, track, begins, forced, group, item, stack
        )
        for s in range(size):
            first_item[s] = -1
        for i in range(num_items - 1, -1, -1):
            item[i, NEXT_ITEM] = first_item[item[i, ITEM_BEGIN]]
            first_item[item[i, ITEM_BEGIN]] = i
        for s in range(size):
            group[c, s, 0] = num_across
            group[c, s, 1] = num_across
            num_candidates, heap, pops = zero, zero, zero
            next_item = first_item[s]
            while next_item >= 0 or heap > 0:
                # First every item with the best parts in its gaps, then neighbours of those that are popped.
                if next_item >= 0:
                    i, rank_1, rank_2 = next_item, zero, zero
                    next_item = item[i, NEXT_ITEM]
                    num_new = 1
                else:
                    top = np.int64(entry[0])
                    score = priority[0]
                    heap_pop(priority, entry, heap)
                    heap -= 1
                    i, rank_1, rank_2 = candidate[top, 0], candidate[top, 1], candidate[top, 2]
                    num_new = 2
                    if has_words[top]:
                        pops += 1
                        pair = item[i, ITEM_PAIR]
                        across = larger_search_nodes(across, num_across + 1)
                        head, code = group[c, s, 0], hash_row(states, top)
                        while head < num_across and not (
                            across.hash[head] == code and same_rows(across.state, head, states, top)
                        ):
                            head += 1
                        if head == num_across:
                            for m in range(num_models):
                                copy_row(states, top, across.state, head, m)
                            across.hash[head], across.cell[head], across.score[head] = code, c, score
                            num_across += 1
                        across.score[head] = max(across.score[head], score)
                        edges = larger_search_edges(edges, num_edges + 1)
                        edges.head[num_edges] = base + head
                        edges.rule[num_edges], edges.local[num_edges] = pairs.rule[pair], local[top]
                        for m in range(num_models):
                            edges.lm[num_edges, m] = own_lm[top, m]
                        for t in range(2):
                            edges.tail[num_edges, t] = _tail(
                                item,
                                i,
                                parse,
                                cells,
                                free,
                                across,
                                group,
                                t,
                                rank_1,
                                rank_2,
                                forced_base,
                                base,
                            )
                        num_edges += 1
                        if pop_limit > 0 and pops >= pop_limit:
                            break
                for step in range(num_new):
                    one, two = rank_1, rank_2
                    if num_new == 2:
                        # Every candidate has one parent: its last rank above 0 less one.
                        if step == 0:
                            two += 1
                        elif rank_2 == 0:
                            one += 1
                        else:
                            continue
                    tail_1 = _tail(item, i, parse, cells, free, across, group, 0, one, two, forced_base, base)
                    tail_2 = _tail(item, i, parse, cells, free, across, group, 1, one, two, forced_base, base)
                    if tail_1 == -2 or tail_2 == -2:
                        continue
                    if num_candidates == candidate.shape[0]:
                        more = 2 * num_candidates
                        candidate = with_free_row(candidate, num_candidates)
                        own_lm = with_free_row(own_lm, num_candidates)
                        states = grown_states(states, more)
                        priority, entry = longer(priority, more), longer(entry, more)
                        local, has_words = longer(local, more), longer(has_words, more)
                    new = num_candidates
                    num_candidates += 1
                    candidate[new, 0], candidate[new, 1], candidate[new, 2] = i, one, two
                    pair, resume = item[i, ITEM_PAIR], item[i, RESUME]
                    rule = np.int64(pairs.rule[pair])
                    over = item[i, OVER]
                    over_node = zero
                    until = resume
                    if over > 0:
                        over_node = (tail_1 if over == 1 else tail_2) - base
                        until = resume - 1
                    probs_of_words(
                        track,
                        probs,
                        first_tgt,
                        tgt,
                        rule,
                        until,
                        forced.node,
                        s,
                        item[i, ITEM_PART_1],
                        item[i, ITEM_PART_2],
                        own_lm,
                        new,
                    )
                    has_words[new] = over > 0
                    for k in range(resume, first_tgt[rule + 1]):
                        if tgt[k] >= 0:
                            has_words[new] = True
                        else:
                            part = tail_1 if gap_index(tgt[k]) == 1 else tail_2
                            if not _is_empty(free.state, part):
                                has_words[new] = True
                    _score_rest(
                        rules,
                        rule,
                        resume,
                        max(item[i, ITEM_AT], zero),
                        probs,
                        over,
                        over_node,
                        across.state,
                        tail_1,
                        tail_2,
                        free.state,
                        lm,
                        states,
                        new,
                        scratch,
                        own_lm,
                    )
                    local[new] = pairs.score[pair]
                    for m in range(num_models):
                        local[new] += weight[m] * own_lm[new, m]
                    score = local[new]
                    for t in range(2):
                        tail = tail_1 if t == 0 else tail_2
                        if tail >= base:
                            score += across.score[tail - base]
                        elif tail >= forced_base:
                            score += inside[tail - forced_base]
                        elif tail >= 0:
                            score += free.score[tail]
                    heap_push(priority, entry, heap, score, new)
                    heap += 1
            group[c, s, 1] = num_across
            if order.shape[0] < num_across:
                order = np.empty(2 * num_across, np.int32)
            order_by_score(across.score, group[c, s, 0], num_across, across.rank, order)
    # The goal.
    cell = np.empty(base + num_across + 1, np.int32)
    for v in range(num_free):
        cell[v] = free.cell[v]
    for v in range(num_forced):
        cell[forced_base + v] = forced.node[v, CELL]
    for v in range(num_across):
        cell[base + v] = across.cell[v]
    top = base + num_across
    cell[top] = -1
    num_ends = max(track.last.shape[0], 1)
    edges = larger_search_edges(edges, num_edges + num_ends + group[goal, 0, 1] - group[goal, 0, 0])
    for at in range(size, size + num_ends):
        v = node_of(forced.node, forced.first, size, goal, zero, np.int64(at))
        if v >= 0:
            add_goal_edge(track, probs, weight, np.int64(at), top, forced_base + v, edges, num_edges)
            num_edges += 1
    for v in range(group[goal, 0, 0], group[goal, 0, 1]):
        edges.head[num_edges], edges.rule[num_edges] = top, -1
        edges.tail[num_edges, 0], edges.tail[num_edges, 1] = base + v, -1
        edges.local[num_edges] = 0.0
        for m in range(num_models):
            copy_row(across.state, np.int64(v), states, zero, m)
            edges.lm[num_edges, m] = add_word(lm, m, states, zero, np.int32(lm.eos[m]), scratch)
            edges.local[num_edges] += weight[m] * edges.lm[num_edges, m]
        num_edges += 1
    return pack_derivations(cell, free_edges, num_free_edges, edges, num_edges)
