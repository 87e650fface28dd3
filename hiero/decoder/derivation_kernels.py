# mypy: ignore-errors
"""Derivations as tables: the best one, drawn ones, and their words, steps and alignments."""

import numpy as np

from hiero.core.array_kernels import longer, longer_rows
from hiero.core.hash_kernels import GOLDEN, fraction, splitmix
from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap_index, is_gap
from hiero.decoder.hypergraph import Derivations

# Columns of a step, one edge of a derivation written out.
EDGE, NODE, DEPTH, END, TGT_START, TGT_END = 0, 1, 2, 3, 4, 5
STEP_COLUMNS = 6


@kernel
def new_derivations(count):
    """A table for ``count`` derivations, whose nodes, edges and parts are to be written."""
    return Derivations(
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.full((count, 2), -1, np.int32),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.empty(count, np.float64),
    )


@leaf
def write_sizes(rules, edge_rule, table, d):
    """Fill size and length of a derivation whose edge and parts are set."""
    size, length = 1, 0
    for k in range(2):
        part = table.part[d, k]
        if part >= 0:
            size += table.size[part]
            length += table.length[part]
    rule = edge_rule[table.edge[d]]
    if rule >= 0:
        for i in range(rules.first_tgt[rule], rules.first_tgt[rule + 1]):
            if not is_gap(rules.tgt[i]):
                length += 1
    table.size[d] = size
    table.length[d] = length


@kernel
def best_derivation_kernel(graph, edge_rule, rules, best, best_edge):
    """The best derivation of the goal, its last entry; empty if there is none.

    graph      Hypergraph
    edge_rule  int32 [E]
    rules      Rules
    best       float64 [V]   from ``viterbi_kernel``
    best_edge  int32 [V]     likewise

    O(V + words).  Twin: tests/naive/forest.py::best_derivation.
    """
    num_nodes = best.shape[0]
    place = np.full(num_nodes, -1, np.int32)
    count = 0
    if num_nodes > 0 and best_edge[num_nodes - 1] >= 0:
        place[num_nodes - 1] = 0
    for v in range(num_nodes - 1, -1, -1):
        if place[v] >= 0:
            count += 1
            for k in range(2):
                if graph.tail[best_edge[v], k] >= 0:
                    place[graph.tail[best_edge[v], k]] = 0
    table = new_derivations(count)
    d = np.int64(0)
    for v in range(num_nodes):
        if place[v] >= 0:
            edge = best_edge[v]
            place[v] = d
            table.node[d] = v
            table.edge[d] = edge
            table.score[d] = best[v]
            for k in range(2):
                if graph.tail[edge, k] >= 0:
                    table.part[d, k] = place[graph.tail[edge, k]]
            write_sizes(rules, edge_rule, table, d)
            d += 1
    return table


@kernel
def expand_derivations_kernel(graph, edge_rule, rules, table, roots):
    """Expand derivations: the target words and the steps of each, end to end.

    graph      Hypergraph
    edge_rule  int32 [E]
    rules      Rules
    table      Derivations
    roots      int32 [N]     derivations to expand

    Returns first_word int64 [N + 1], word int32, first_step int64 [N + 1], step int32 [., 6]. A step is an
    edge in pre-order, first tails first: the edge, its head, its depth, the step after its last descendant
    (counted within the derivation, as are the words), and the target words it covers.

    O(steps + words).  Twin: tests/naive/forest.py::expand.
    """
    count = roots.shape[0]
    first_word = np.zeros(count + 1, np.int64)
    first_step = np.zeros(count + 1, np.int64)
    deepest = 0
    for i in range(count):
        first_word[i + 1] = first_word[i] + table.length[roots[i]]
        first_step[i + 1] = first_step[i] + table.size[roots[i]]
        deepest = max(deepest, table.size[roots[i]])
    word = np.empty(first_word[count], np.int32)
    step = np.empty((first_step[count], STEP_COLUMNS), np.int32)
    # Derivations still to be written: which, its depth, where its words begin.
    waiting = np.empty((deepest + 1, 3), np.int64)
    for i in range(count):
        at = first_step[i]
        waiting[0, 0], waiting[0, 1], waiting[0, 2] = roots[i], 0, first_word[i]
        top = 1
        while top > 0:
            top -= 1
            d, depth, start = waiting[top, 0], waiting[top, 1], waiting[top, 2]
            step[at, EDGE] = table.edge[d]
            step[at, NODE] = table.node[d]
            step[at, DEPTH] = depth
            step[at, END] = at - first_step[i] + table.size[d]
            step[at, TGT_START] = start - first_word[i]
            step[at, TGT_END] = start - first_word[i] + table.length[d]
            at += 1
            rule = edge_rule[table.edge[d]]
            if rule < 0:
                waiting[top, 0], waiting[top, 1], waiting[top, 2] = table.part[d, 0], depth + 1, start
                top += 1
                continue
            # The second tail below the first, so that the first is taken first, whatever the target order.
            base = top
            top += int(table.part[d, 0] >= 0) + int(table.part[d, 1] >= 0)
            cursor = start
            for j in range(rules.first_tgt[rule], rules.first_tgt[rule + 1]):
                symbol = rules.tgt[j]
                if is_gap(symbol):
                    k = gap_index(symbol) - 1
                    place = base + (1 if k == 0 and table.part[d, 1] >= 0 else 0)
                    part = table.part[d, k]
                    waiting[place, 0], waiting[place, 1], waiting[place, 2] = part, depth + 1, cursor
                    cursor += table.length[part]
                else:
                    word[cursor] = symbol
                    cursor += 1
    return first_word, word, first_step, step


@leaf
def gap_step(step, at, index):
    """The step that fills a gap of the rule of another."""
    part = at + 1
    for _ in range(index - 1):
        part = np.int64(step[part, END])
    return part


@leaf
def source_position(rules, rule, node_start, node_end, step, at, place):
    """The word of the sentence at a place of the source side of a step's rule; -1 if a gap is there."""
    first = rules.first_src[rule]
    cursor = np.int64(node_start[step[at, NODE]])
    for i in range(first, first + place):
        symbol = rules.src[i]
        if is_gap(symbol):
            cursor = np.int64(node_end[step[gap_step(step, at, gap_index(symbol)), NODE]])
        else:
            cursor += 1
    return np.int64(-1) if is_gap(rules.src[first + place]) else cursor


@leaf
def target_position(rules, rule, step, at, place):
    """The word of the output at a place of the target side of a step's rule; -1 if a gap is there."""
    first = rules.first_tgt[rule]
    cursor = np.int64(step[at, TGT_START])
    for i in range(first, first + place):
        symbol = rules.tgt[i]
        if is_gap(symbol):
            part = gap_step(step, at, gap_index(symbol))
            cursor += step[part, TGT_END] - step[part, TGT_START]
        else:
            cursor += 1
    return np.int64(-1) if is_gap(rules.tgt[first + place]) else cursor


@kernel
def align_derivation_kernel(edge_rule, rules, node_start, node_end, step):
    """The word alignment of one derivation, composed of the links of its rules.

    edge_rule   int32 [E]
    rules       Rules, as read
    node_start  int32 [V]     first source word of a node, with node_end int32 [V] after its last
    step        int32 [n, 6]  one derivation of ``expand_derivations_kernel``, without parts of rules

    Returns int32 [., 2]: source word, target word, step by step. Links of gaps with gaps (some rule tables
    list them) are left out.

    O(steps + links * symbols of a rule).  Twin: tests/naive/forest.py::alignment.
    """
    count = 0
    for at in range(step.shape[0]):
        rule = edge_rule[step[at, EDGE]]
        if rule >= 0:
            count += rules.first_link[rule + 1] - rules.first_link[rule]
    pair = np.empty((count, 2), np.int32)
    count = 0
    for at in range(step.shape[0]):
        rule = edge_rule[step[at, EDGE]]
        if rule < 0:
            continue
        for i in range(rules.first_link[rule], rules.first_link[rule + 1]):
            src = source_position(rules, rule, node_start, node_end, step, at, rules.link[i, 0])
            tgt = target_position(rules, rule, step, at, rules.link[i, 1])
            if src >= 0 and tgt >= 0:
                pair[count, 0] = src
                pair[count, 1] = tgt
                count += 1
    return pair[:count].copy()


@kernel
def whole_steps_kernel(step, is_part):
    """The steps of one derivation without those of parts of rules.

    step     int32 [n, 6]  of ``expand_derivations_kernel``
    is_part  bool [n]      steps that are part of the rule of the step that they are below

    Returns int32 [m, 6], with depths and ends that do not count parts, and int32 [n], the step among them
    that each step belongs to.  O(n).  Twin: tests/naive/forest.py::whole_steps.
    """
    num_steps = step.shape[0]
    before = np.zeros(num_steps + 1, np.int32)
    for at in range(num_steps):
        before[at + 1] = before[at] + (not is_part[at])
    whole = np.empty((before[num_steps], STEP_COLUMNS), np.int32)
    owner = np.empty(num_steps, np.int32)
    hidden = np.empty(num_steps, np.int32)  # parts among the steps above, and the step itself
    above = np.empty(num_steps, np.int64)
    top = 0
    for at in range(num_steps):
        while top > 0 and step[above[top - 1], END] <= at:
            top -= 1
        parent = above[top - 1] if top > 0 else np.int64(-1)
        hidden[at] = (hidden[parent] if parent >= 0 else 0) + is_part[at]
        owner[at] = owner[parent] if is_part[at] and parent >= 0 else before[at]
        above[top] = at
        top += 1
        if not is_part[at]:
            row = before[at]
            for column in range(STEP_COLUMNS):
                whole[row, column] = step[at, column]
            whole[row, DEPTH] -= hidden[at]
            whole[row, END] = before[step[at, END]]
    return whole, owner


@leaf
def next_uniform(state):
    """A float64 in [0, 1) from SplitMix64, the same with and without JIT; state uint64 [1]."""
    state[0] = state[0] + GOLDEN
    return fraction(splitmix(state[0]))


@leaf
def draw_edge(graph, edge_score, inside, v, state):
    """An edge of v with probability proportional to the weight of the derivations through it."""
    left = next_uniform(state)
    edge = np.int64(-1)
    for e in range(graph.first_edge[v], graph.first_edge[v + 1]):
        score = edge_score[e] - inside[v]
        for k in range(2):
            if graph.tail[e, k] >= 0:
                score += inside[graph.tail[e, k]]
        if score > -np.inf:
            # The last possible edge, if rounding leaves some probability over.
            edge = e
            left -= np.exp(score)
            if left < 0.0:
                break
    return edge


@kernel
def _roomier(node, edge, part, needed):
    """The same arrays with room for at least ``needed`` entries."""
    size = node.shape[0]
    if needed <= size:
        return node, edge, part
    size = max(2 * size, needed)
    return longer(node, size), longer(edge, size), longer_rows(part, size)


@kernel
def sample_derivations_kernel(graph, edge_score, edge_rule, rules, inside, count, state):
    """Draw derivations of the goal independently, with probability proportional to exp(score).

    graph       Hypergraph
    edge_score  float64 [E]
    edge_rule   int32 [E]
    rules       Rules
    inside      float64 [V]   from ``inside_kernel``; the goal must have a derivation
    count       int
    state       uint64 [1]    seed; updated for the next call

    Returns Derivations and int32 [count], the drawn ones among them.

    O(count * edges of the nodes visited).  Twin: tests/naive/forest.py::enumerate_derivations, by frequency.
    """
    goal = inside.shape[0] - 1
    size = 64
    node, edge = np.empty(size, np.int32), np.empty(size, np.int32)
    part = np.empty((size, 2), np.int32)
    made = 0
    first = np.zeros(count + 1, np.int64)
    for i in range(count):
        # Breadth-first from the goal; wholes come before parts here, and the order is reversed below.
        node, edge, part = _roomier(node, edge, part, made + 1)
        node[made] = goal
        at = made
        made += 1
        while at < made:
            node, edge, part = _roomier(node, edge, part, made + 2)
            edge[at] = draw_edge(graph, edge_score, inside, np.int64(node[at]), state)
            for k in range(2):
                part[at, k] = -1
                if graph.tail[edge[at], k] >= 0:
                    node[made] = graph.tail[edge[at], k]
                    part[at, k] = made
                    made += 1
            at += 1
        first[i + 1] = made
    table = new_derivations(made)
    roots = np.empty(count, np.int32)
    for i in range(count):
        turned = first[i] + first[i + 1] - 1
        for at in range(first[i + 1] - 1, first[i] - 1, -1):
            d = turned - at
            table.node[d] = node[at]
            table.edge[d] = edge[at]
            table.score[d] = edge_score[edge[at]]
            for k in range(2):
                if part[at, k] >= 0:
                    table.part[d, k] = turned - part[at, k]
                    table.score[d] += table.score[table.part[d, k]]
            write_sizes(rules, edge_rule, table, d)
        roots[i] = first[i + 1] - 1
    return table, roots
