"""Cube pruning with language models over the bundles of a parse.

A bundle spans a cube: its rules by estimated score, times the nodes of its first tail, times those of its
second. What a candidate costs before its language model meets its tails is a sum of three terms, so the cube
is explored in exactly that order, each candidate from one parent and never scored before it is popped. A pop
is a candidate scored in full; it either makes a node or joins the node of equal state.
"""

from typing import NamedTuple

import numpy as np

from hiero._jit import kernel, leaf
from hiero.kernels.chart import (
    add_tail,
    add_word,
    begin_sentence,
    close_row,
    copy_row,
    empty_row,
    grown_states,
    hash_row,
    new_states,
    same_rows,
    States,
)
from hiero.kernels.heap import heap_pop, heap_push
from hiero.kernels.parse import room
from hiero.symbols import gap_index


class RuleStates(NamedTuple):
    """What is known of each of R rules before its gaps are filled.

    first_tgt  int64 [R + 1]
    tgt        int32 [M, T]    target sides in each model's word ids; gaps as in symbols.py
    resume     int64 [R]       where in tgt the first gap stands, or the end
    prefix     States, R rows  the words before the first gap; closed where there is no gap
    prob       float64 [R, M]  their log10 probability
    estimate   float64 [R]     weighted score with all words, each run of them without context
    """

    first_tgt: np.ndarray
    tgt: np.ndarray
    resume: np.ndarray
    prefix: States
    prob: np.ndarray
    estimate: np.ndarray


class Chart(NamedTuple):
    """A searched forest: V nodes, the goal last if there is one, and E edges by head.

    first_edge  int64 [V + 1]
    cell        int32 [V]      of each node; -1 for the goal
    score       float64 [V]    of the best derivation
    tail        int32 [E, 2]   nodes, -1 for none
    rule        int32 [E]      -1 on edges into the goal
    local       float64 [E]    what the edge adds to the score
    lm          float32 [E, M] what it adds to each model's log10 probability
    """

    first_edge: np.ndarray
    cell: np.ndarray
    score: np.ndarray
    tail: np.ndarray
    rule: np.ndarray
    local: np.ndarray
    lm: np.ndarray


@kernel
def rule_states_kernel(first_tgt, tgt, word_id, lm, lm_weight, stride, rule_score):
    """Score the words of every rule as far as they need no context.

    first_tgt, tgt  target sides in the model's symbols
    word_id         int32 [M, W]  language model ids of words
    stride          highest order minus one
    rule_score      float64 [R]   weighted score without language models
    """
    num_rules = first_tgt.shape[0] - 1
    num_models = lm_weight.shape[0]
    ids = np.empty((num_models, tgt.shape[0]), np.int32)
    for m in range(num_models):
        for i in range(tgt.shape[0]):
            ids[m, i] = word_id[m, tgt[i]] if tgt[i] >= 0 else tgt[i]
    states = new_states(num_rules, num_models, stride)
    aside = new_states(1, num_models, stride)
    prob = np.zeros((num_rules, num_models))
    estimate = rule_score.copy()
    resume = np.empty(num_rules, np.int64)
    scratch = np.empty(2 * stride + 2, np.float32)
    for rule in range(num_rules):
        last = first_tgt[rule + 1]
        at = first_tgt[rule]
        while at < last and tgt[at] >= 0:
            at += 1
        resume[rule] = at
        for m in range(num_models):
            total = 0.0
            for i in range(first_tgt[rule], at):
                total += add_word(lm, m, states, rule, ids[m, i], scratch)
            prob[rule, m] = total
            if at == last:
                close_row(lm, m, states, rule)
            for i in range(at, last):
                if tgt[i] < 0:
                    empty_row(aside, 0, m)
                else:
                    total += add_word(lm, m, aside, 0, ids[m, i], scratch)
            estimate[rule] += lm_weight[m] * total
    return RuleStates(first_tgt, ids, resume, states, prob, estimate)


@kernel
def sort_pairs(first_pair, num_rules, estimate, out_rule):
    """Order the rules of every bundle by estimate, then by place; bundles may share a run."""
    done = np.zeros(estimate.shape[0], np.bool_)
    for b in range(first_pair.shape[0]):
        first = first_pair[b]
        if done[first]:
            continue
        done[first] = True
        size = num_rules[b]
        if size == 1:
            out_rule[first] = first
            continue
        order = np.argsort(-estimate[first : first + size], kind="mergesort")
        for k in range(size):
            out_rule[first + k] = first + order[k]


@leaf
def _score(rules, rule, lm, states, row, tail_1, tail_2, scratch, out_lm):
    """Put a rule and its tails together in a row; what that adds to each model is written to ``out_lm``."""
    last = rules.first_tgt[rule + 1]
    for m in range(out_lm.shape[0]):
        copy_row(rules.prefix, rule, states, row, m)
        total = rules.prob[rule, m]
        for i in range(rules.resume[rule], last):
            symbol = rules.tgt[m, i]
            if symbol >= 0:
                total += add_word(lm, m, states, row, symbol, scratch)
            elif gap_index(symbol) == 1:
                total += add_tail(lm, m, states, row, states, tail_1, scratch)
            else:
                total += add_tail(lm, m, states, row, states, tail_2, scratch)
        close_row(lm, m, states, row)
        out_lm[m] = total


class Nodes(NamedTuple):
    """Nodes as they are found; the first ``num_nodes`` rows are in use.

    state  States
    cell   int32 [.]
    score  float64 [.]  of the best derivation
    hash   uint64 [.]   of the state
    rank   int32 [.]    nodes of a cell by score, best first, where the nodes themselves are numbered as found
    """

    state: States
    cell: np.ndarray
    score: np.ndarray
    hash: np.ndarray
    rank: np.ndarray


class Edges(NamedTuple):
    """Edges as they are found; columns as in Chart, and the head of each."""

    head: np.ndarray
    tail: np.ndarray
    rule: np.ndarray
    local: np.ndarray
    lm: np.ndarray


class Agenda(NamedTuple):
    """Candidates of the cell at hand, and a heap over them.

    candidate  int32 [., 4]  bundle, place of the rule, ranks of the tails
    priority   float64 [.]   of the heap
    entry      int32 [.]     candidate ids in the heap
    slot       int32 [2^k]   nodes of the cell by hash of their state, -1 empty
    """

    candidate: np.ndarray
    priority: np.ndarray
    entry: np.ndarray
    slot: np.ndarray


@kernel
def _new_nodes(capacity, num_models, stride):
    return Nodes(
        new_states(capacity, num_models, stride),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.float64),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.int32),
    )


@kernel
def _grown_nodes(nodes, capacity):
    return Nodes(
        grown_states(nodes.state, capacity),
        grown(nodes.cell, capacity),
        grown(nodes.score, capacity),
        grown(nodes.hash, capacity),
        grown(nodes.rank, capacity),
    )


@kernel
def _new_edges(capacity, num_models):
    return Edges(
        np.empty(capacity, np.int32),
        np.empty((capacity, 2), np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.float64),
        np.empty((capacity, num_models), np.float32),
    )


@kernel
def _grown_edges(edges, capacity):
    tail = np.empty((capacity, 2), np.int32)
    tail[: edges.tail.shape[0]] = edges.tail
    lm = np.empty((capacity, edges.lm.shape[1]), np.float32)
    lm[: edges.lm.shape[0]] = edges.lm
    return Edges(
        grown(edges.head, capacity),
        tail,
        grown(edges.rule, capacity),
        grown(edges.local, capacity),
        lm,
    )


@kernel
def _new_agenda(capacity, num_slots):
    return Agenda(
        np.empty((capacity, 4), np.int32),
        np.empty(capacity, np.float64),
        np.empty(capacity, np.int32),
        np.empty(num_slots, np.int32),
    )


@kernel
def grown(array, size):
    larger = np.empty(size, array.dtype)
    larger[: array.shape[0]] = array
    return larger


@kernel
def _num_candidates(parse, cell_first, cell):
    """All rules of a cell's bundles with all nodes of their tails."""
    total = 0.0
    for b in range(parse.first_bundle[cell], parse.first_bundle[cell + 1]):
        here = float(parse.rules[b, 1])
        for t in range(2):
            if parse.tail[b, t] >= 0:
                here *= cell_first[parse.tail[b, t] + 1] - cell_first[parse.tail[b, t]]
        total += here
    return total


@leaf
def _push(candidate, priority, entry, num_candidates, size, value, bundle, k, i, j):
    candidate[num_candidates, 0] = bundle
    candidate[num_candidates, 1] = k
    candidate[num_candidates, 2] = i
    candidate[num_candidates, 3] = j
    heap_push(priority, entry, size, value, num_candidates)


@leaf
def _search_cell(
    c, parse, pairs, rules, lm, lm_weight, pop_limit, cell_first, nodes, num_nodes, edges, num_edges, agenda, scratch, out_lm
):
    """Fill one cell; every table has room for all that can come. Returns the new numbers of nodes and edges."""
    states = nodes.state
    node_hash = nodes.hash
    candidate = agenda.candidate
    priority = agenda.priority
    entry = agenda.entry
    slot = agenda.slot
    first_pair = pairs.first
    estimate = pairs.estimate
    bundle_tail = parse.tail
    bundle_rules = parse.rules
    rank = nodes.rank
    node_score = nodes.score
    order = pairs.order
    num_candidates = 0
    size = 0
    for b in range(parse.first_bundle[c], parse.first_bundle[c + 1]):
        best = estimate[order[first_pair[b]]]
        for t in range(2):
            if bundle_tail[b, t] >= 0:
                best += node_score[rank[cell_first[bundle_tail[b, t]]]]
        _push(candidate, priority, entry, num_candidates, size, best, b, 0, 0, 0)
        num_candidates += 1
        size += 1

    for at in range(slot.shape[0]):
        slot[at] = -1
    mask = slot.shape[0] - 1
    pops = 0
    while size > 0 and (pops < pop_limit or pop_limit == 0):
        best = priority[0]
        top = entry[0]
        heap_pop(priority, entry, size)
        size -= 1
        pops += 1
        b = candidate[top, 0]
        k = candidate[top, 1]
        i = candidate[top, 2]
        j = candidate[top, 3]
        pair = order[first_pair[b] + k]
        cell_1 = bundle_tail[b, 0]
        cell_2 = bundle_tail[b, 1]
        tail_1 = np.int32(-1)
        tail_2 = np.int32(-1)
        rule = pairs.rule[pair]
        if cell_1 >= 0:
            tail_1 = rank[cell_first[cell_1] + i]
        if cell_2 >= 0:
            tail_2 = rank[cell_first[cell_2] + j]

        _score(rules, rule, lm, states, num_nodes, tail_1, tail_2, scratch, out_lm)
        local = pairs.score[pair]
        for m in range(lm_weight.shape[0]):
            local += lm_weight[m] * out_lm[m]
            edges.lm[num_edges, m] = out_lm[m]
        score = local
        if tail_1 >= 0:
            score += node_score[tail_1]
        if tail_2 >= 0:
            score += node_score[tail_2]

        # Each candidate has one parent: its last rank that is not 0, less one. Neighbours that differ in a
        # tail alone meet much the same words, so they inherit what the language model made of their parent.
        if cell_2 >= 0 and cell_first[cell_2] + j + 1 < cell_first[cell_2 + 1]:
            step = node_score[rank[cell_first[cell_2] + j + 1]] - node_score[tail_2]
            _push(candidate, priority, entry, num_candidates, size, score + step, b, k, i, j + 1)
            num_candidates += 1
            size += 1
        if j == 0:
            if cell_1 >= 0 and cell_first[cell_1] + i + 1 < cell_first[cell_1 + 1]:
                step = node_score[rank[cell_first[cell_1] + i + 1]] - node_score[tail_1]
                _push(candidate, priority, entry, num_candidates, size, score + step, b, k, i + 1, 0)
                num_candidates += 1
                size += 1
            if i == 0 and k + 1 < bundle_rules[b, 1]:
                step = estimate[order[first_pair[b] + k + 1]] - estimate[pair]
                _push(candidate, priority, entry, num_candidates, size, best + step, b, k + 1, 0, 0)
                num_candidates += 1
                size += 1

        code = hash_row(states, num_nodes)
        at = np.int64(code & np.uint64(mask))
        while slot[at] >= 0 and not (node_hash[slot[at]] == code and same_rows(states, slot[at], num_nodes)):
            at = (at + 1) & mask
        if slot[at] < 0:
            slot[at] = num_nodes
            node_hash[num_nodes] = code
            nodes.cell[num_nodes] = c
            node_score[num_nodes] = score
            num_nodes += 1
        elif score > node_score[slot[at]]:
            node_score[slot[at]] = score
        edges.head[num_edges] = slot[at]
        edges.tail[num_edges, 0] = tail_1
        edges.tail[num_edges, 1] = tail_2
        edges.rule[num_edges] = rule
        edges.local[num_edges] = local
        num_edges += 1
    return num_nodes, num_edges


class Pairs(NamedTuple):
    """Applications of rules to the bundles of a parse, P in all.

    first     int64 [B]    first pair of each bundle; bundles may share theirs
    rule      int32 [P]
    score     float64 [P]  weighted score without language models
    estimate  float64 [P]  the same with the models' scores of the rule's words
    order     int64 [P]    pairs of each bundle, best estimate first
    """

    first: np.ndarray
    rule: np.ndarray
    score: np.ndarray
    estimate: np.ndarray
    order: np.ndarray


@kernel
def search_kernel(parse, first_pair, pair_rule, pair_score, pair_estimate, rules, lm, lm_weight, goal, pop_limit):
    """Search a parse with language models.

    parse          Parse
    first_pair     int64 [B]    pairs (rule applications) of a bundle; several bundles may share theirs
    pair_rule      int32 [P]    rule of each pair
    pair_score     float64 [P]  weighted score without language models
    pair_estimate  float64 [P]  the same with the models' scores of the rule's words
    rules          RuleStates
    goal           cell to finish with <s> and </s>, or -1
    pop_limit      candidates scored per cell; 0 for all of them

    Twin: tests/naive/search.py::derivations.
    """
    num_models = lm_weight.shape[0]
    num_cells = parse.cell.shape[0]
    order = np.empty(pair_rule.shape[0], np.int64)
    sort_pairs(first_pair, parse.rules[:, 1], pair_estimate, order)
    pairs = Pairs(first_pair, pair_rule, pair_score, pair_estimate, order)
    stride = rules.prefix.left_key.shape[2]
    scratch = np.empty(2 * stride + 2, np.float32)
    out_lm = np.zeros(num_models)

    nodes = _new_nodes(1024, num_models, stride)
    edges = _new_edges(1024, num_models)
    agenda = _new_agenda(1024, 1024)
    cell_first = np.zeros(num_cells + 1, np.int64)
    num_nodes = np.int64(0)
    num_edges = np.int64(0)
    for c in range(num_cells):
        most = _num_candidates(parse, cell_first, c)
        if pop_limit > 0:
            most = min(most, float(pop_limit))
        if most > 2.0**31 - num_nodes - 2:
            return c, _packed(nodes, num_nodes, edges, num_edges)
        pops = np.int64(most)
        num_bundles = parse.first_bundle[c + 1] - parse.first_bundle[c]
        if num_nodes + pops + 2 > nodes.cell.shape[0]:
            nodes = _grown_nodes(nodes, 2 * (num_nodes + pops + 2))
        if num_edges + pops > edges.head.shape[0]:
            edges = _grown_edges(edges, 2 * (num_edges + pops))
        if num_bundles + 3 * pops > agenda.entry.shape[0] or 2 * pops > agenda.slot.shape[0]:
            num_slots = agenda.slot.shape[0]
            while num_slots < 2 * pops:
                num_slots *= 2
            agenda = _new_agenda(2 * (num_bundles + 3 * pops), num_slots)
        num_nodes, num_edges = _search_cell(
            c, parse, pairs, rules, lm, lm_weight, pop_limit, cell_first, nodes, num_nodes, edges, num_edges, agenda, scratch, out_lm
        )
        first = cell_first[c]
        cell_first[c + 1] = num_nodes
        by_score = np.argsort(-nodes.score[first:num_nodes], kind="mergesort")
        for r in range(num_nodes - first):
            nodes.rank[first + r] = first + by_score[r]

    if goal >= 0:
        num_tails = cell_first[goal + 1] - cell_first[goal]
        if num_edges + num_tails > edges.head.shape[0]:
            edges = _grown_edges(edges, num_edges + num_tails)
        if num_nodes + 2 > nodes.cell.shape[0]:
            nodes = _grown_nodes(nodes, num_nodes + 2)
        num_nodes, num_edges = _finish(
            lm, lm_weight, nodes, num_nodes, edges, num_edges, cell_first[goal], cell_first[goal + 1], scratch
        )
    return num_cells, _packed(nodes, num_nodes, edges, num_edges)


@kernel
def _finish(lm, lm_weight, nodes, num_nodes, edges, num_edges, first, last, scratch):
    """Make the goal node, with an edge from every node of the goal's cell that adds <s> and </s>."""
    goal = num_nodes
    nodes.score[goal] = -np.inf
    nodes.cell[goal] = -1
    for tail in range(first, last):
        local = 0.0
        for m in range(lm_weight.shape[0]):
            begin_sentence(lm, m, nodes.state, goal)
            change = add_tail(lm, m, nodes.state, goal, nodes.state, tail, scratch)
            change += add_word(lm, m, nodes.state, goal, np.int32(lm.eos[m]), scratch)
            edges.lm[num_edges, m] = change
            local += lm_weight[m] * change
        nodes.score[goal] = max(nodes.score[goal], local + nodes.score[tail])
        edges.head[num_edges] = goal
        edges.tail[num_edges, 0] = tail
        edges.tail[num_edges, 1] = -1
        edges.rule[num_edges] = -1
        edges.local[num_edges] = local
        num_edges += 1
    return num_nodes + 1, num_edges


@kernel
def _packed(nodes, num_nodes, edges, num_edges):
    """The chart: exact sizes, edges by head."""
    first_edge = np.zeros(num_nodes + 1, np.int64)
    for e in range(num_edges):
        first_edge[edges.head[e] + 1] += 1
    for v in range(num_nodes):
        first_edge[v + 1] += first_edge[v]
    by_head = np.empty(num_edges, np.int64)
    filled = first_edge[:num_nodes].copy()
    for e in range(num_edges):
        by_head[filled[edges.head[e]]] = e
        filled[edges.head[e]] += 1
    return Chart(
        first_edge,
        nodes.cell[:num_nodes].copy(),
        nodes.score[:num_nodes].copy(),
        edges.tail[by_head],
        edges.rule[by_head],
        edges.local[by_head],
        edges.lm[by_head],
    )
