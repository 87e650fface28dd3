# mypy: ignore-errors
"""The tables that a search fills, how they grow, and its heaps of candidates.

All memory of a search is allocated here: the search itself allocates nothing, so it needs no reference
counts. A heap has four children a node, of (priority, id): highest priority first, of equals the smallest id.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.array_kernels import longer, longer_rows
from hiero.core.jit import kernel, leaf
from hiero.decoder.hypergraph import Chart
from hiero.decoder.lm_state_kernels import States, grown_states, new_states

SHORT_RUN = 16  # scores that are sorted by insertion


class ArenaNodes(NamedTuple):
    """Nodes in the order in which they are found; the first rows are in use.

    state  States
    cell   int32 [.]    -1 for the goal
    score  float64 [.]  of the best derivation
    hash   uint64 [.]   of the state
    rank   int32 [.]    nodes of a cell by score, best first; the nodes themselves are numbered as found
    """

    state: States
    cell: np.ndarray
    score: np.ndarray
    hash: np.ndarray
    rank: np.ndarray


class Edges(NamedTuple):
    """Edges in the order in which they are found.

    head   int32 [.]
    tail   int32 [., 2]    nodes, -1 for none
    rule   int32 [.]       -1 on edges into the goal
    local  float64 [.]     score of the edge itself
    lm     float32 [., M]  its share of each model's log10 probability
    """

    head: np.ndarray
    tail: np.ndarray
    rule: np.ndarray
    local: np.ndarray
    lm: np.ndarray


class Agenda(NamedTuple):
    """Working memory for filling one cell.

    candidate  int32 [., 5]    bundle, place of the rule, ranks of the tails, row of its score or -1
    priority   float64 [.]     of the heap
    entry      int32 [.]       candidates in the heap
    slot       int32 [2 ** k]  nodes of the cell by hash of their state, -1 empty
    state      States          of candidates that were scored
    local      float64 [.]     score of their rule
    lm         float32 [., M]  its share of each model's log10 probability, in the precision of edges
    scratch    float32 [.]     for the language model
    """

    candidate: np.ndarray
    priority: np.ndarray
    entry: np.ndarray
    slot: np.ndarray
    state: States
    local: np.ndarray
    lm: np.ndarray
    scratch: np.ndarray


@kernel
def new_search_nodes(size, num_models, stride):
    """Tables of a search for ``size`` nodes."""
    return ArenaNodes(
        new_states(size, num_models, stride),
        np.empty(size, np.int32),
        np.empty(size, np.float64),
        np.empty(size, np.uint64),
        np.empty(size, np.int32),
    )


@kernel
def larger_search_nodes(nodes, size):
    """The nodes of a search, in larger tables if these have no room for ``size``."""
    if size <= nodes.cell.shape[0]:
        return nodes
    size *= 2
    return ArenaNodes(
        grown_states(nodes.state, size),
        longer(nodes.cell, size),
        longer(nodes.score, size),
        longer(nodes.hash, size),
        longer(nodes.rank, size),
    )


@kernel
def new_search_edges(size, num_models):
    """Tables of a search for ``size`` edges."""
    return Edges(
        np.empty(size, np.int32),
        np.empty((size, 2), np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.float64),
        np.empty((size, num_models), np.float32),
    )


@kernel
def larger_search_edges(edges, size):
    """The edges of a search, in larger tables if these have no room for ``size``."""
    if size <= edges.head.shape[0]:
        return edges
    size *= 2
    return Edges(
        longer(edges.head, size),
        longer_rows(edges.tail, size),
        longer(edges.rule, size),
        longer(edges.local, size),
        longer_rows(edges.lm, size),
    )


@kernel
def new_agenda(num_candidates, num_scored, num_pops, num_models, stride):
    """The empty agenda table of a search, with room for numbers of candidates, scored ones, and pops."""
    num_slots = 1024
    while num_slots < 2 * num_pops:
        num_slots *= 2
    return Agenda(
        np.empty((num_candidates, 5), np.int32),
        np.empty(num_candidates, np.float64),
        np.empty(num_candidates, np.int32),
        np.empty(num_slots, np.int32),
        new_states(num_scored, num_models, stride),
        np.empty(num_scored, np.float64),
        np.empty((num_scored, num_models), np.float32),
        np.empty(2 * stride + 2, np.float32),
    )


@kernel
def larger_agenda(agenda, num_candidates, num_scored, num_pops):
    """The agenda, or an empty larger one if it has no room for a cell."""
    fits = num_candidates <= agenda.entry.shape[0] and num_scored <= agenda.local.shape[0]
    if fits and 2 * num_pops <= agenda.slot.shape[0]:
        return agenda
    return new_agenda(
        2 * num_candidates, 2 * num_scored, num_pops, agenda.lm.shape[1], agenda.state.left_key.shape[2]
    )


@kernel
def pack_derivations(cell, free, num_free, edges, num_edges):
    """The nodes and edges that are part of a derivation of the last node, as a Chart; empty without any.

    Returns also how many of its edges are free.

    cell             int32 [V]  of each node, -1 for the goal, which is the last one
    free, num_free   Edges      into nodes that come first, and their number
    edges, num_edges Edges      into the others
    """
    num_nodes = cell.shape[0]
    first = np.zeros(num_nodes + 1, np.int64)
    for e in range(num_free):
        first[free.head[e] + 1] += 1
    for e in range(num_edges):
        first[edges.head[e] + 1] += 1
    for v in range(num_nodes):
        first[v + 1] += first[v]
    order, filled = np.empty(num_free + num_edges, np.int64), first.copy()
    for e in range(num_free + num_edges):
        head = free.head[e] if e < num_free else edges.head[e - num_free]
        order[filled[head]] = e
        filled[head] += 1
    number = np.full(num_nodes, -1, np.int32)
    if num_nodes > 0 and first[num_nodes] > first[num_nodes - 1]:
        number[num_nodes - 1] = 0
    kept_nodes, kept_edges, kept_free = 0, 0, 0
    for v in range(num_nodes - 1, -1, -1):
        if number[v] < 0:
            continue
        kept_nodes += 1
        kept_edges += first[v + 1] - first[v]
        for i in range(first[v], first[v + 1]):
            e = order[i]
            kept_free += 1 if e < num_free else 0
            for t in range(2):
                tail = free.tail[e, t] if e < num_free else edges.tail[e - num_free, t]
                if tail >= 0:
                    number[tail] = 0
    chart = Chart(
        np.zeros(kept_nodes + 1, np.int64),
        np.empty(kept_nodes, np.int32),
        np.empty((kept_edges, 2), np.int32),
        np.empty(kept_edges, np.int32),
        np.empty(kept_edges, np.float64),
        np.empty((kept_edges, edges.lm.shape[1]), np.float32),
    )
    new_node, new_edge = 0, 0
    for v in range(num_nodes):
        if number[v] < 0:
            continue
        number[v] = new_node
        chart.cell[new_node] = cell[v]
        for i in range(first[v], first[v + 1]):
            is_free = order[i] < num_free
            source = free if is_free else edges
            e = order[i] if is_free else order[i] - num_free
            for t in range(2):
                tail = source.tail[e, t]
                chart.tail[new_edge, t] = number[tail] if tail >= 0 else -1
            chart.rule[new_edge] = source.rule[e]
            chart.local[new_edge] = source.local[e]
            for m in range(edges.lm.shape[1]):
                chart.lm[new_edge, m] = source.lm[e, m]
            new_edge += 1
        new_node += 1
        chart.first_edge[new_node] = new_edge
    return chart, kept_free


@leaf
def order_by_score(score, first, last, out_order, scratch):
    """Write first ... last - 1 into ``out_order[first:last]``, the best score first, of equals the smallest.

    scratch  int32 [last - first or more]  overwritten
    """
    # By hand: numba takes a second to compile its own sort. Which of two is better is no branch, because it
    # cannot be predicted.
    for begin in range(first, last, SHORT_RUN):
        for i in range(begin, min(begin + SHORT_RUN, last)):
            at = i
            while at > begin and score[out_order[at - 1]] < score[i]:
                out_order[at] = out_order[at - 1]
                at -= 1
            out_order[at] = i
    width = SHORT_RUN
    while width < last - first:
        for begin in range(first, last - width, 2 * width):
            left, middle, end = begin, begin + width, min(begin + 2 * width, last)
            right, used = middle, 0
            while left < middle and right < end:
                one, two = out_order[left], out_order[right]
                is_left = score[one] >= score[two]
                scratch[used] = one if is_left else two
                used += 1
                left += is_left
                right += not is_left
            for i in range(left, middle):
                scratch[used] = out_order[i]
                used += 1
            # What is left on the right is in its place.
            for i in range(used):
                out_order[begin + i] = scratch[i]
        width *= 2


@leaf
def heap_push(priority, entry, size, new_priority, new_entry):
    """Add an entry to the heap in ``priority[:size]``, ``entry[:size]``; there must be room for one more."""
    at = np.uint64(size)
    while at > np.uint64(0):
        parent = (at - np.uint64(1)) >> np.uint64(2)
        if priority[parent] > new_priority or (
            priority[parent] == new_priority and entry[parent] < new_entry
        ):
            break
        priority[at] = priority[parent]
        entry[at] = entry[parent]
        at = parent
    priority[at] = new_priority
    entry[at] = new_entry


@leaf
def heap_pop(priority, entry, size):
    """Remove the top of a heap of ``size`` entries; ``size - 1`` remain. The caller reads the top before."""
    last = np.uint64(size - 1)
    moved_priority = priority[last]
    moved_entry = entry[last]
    at = np.uint64(0)
    while True:
        child = (at << np.uint64(2)) + np.uint64(1)
        if child >= last:
            break
        # Which child is best cannot be predicted: no branch depends on it unless priorities are equal.
        best = child
        best_priority = priority[child]
        for other in range(child + np.uint64(1), min(child + np.uint64(4), last)):
            this = priority[other]
            is_better = this > best_priority
            if this == best_priority:
                is_better = entry[other] < entry[best]
            best = other if is_better else best
            best_priority = max(this, best_priority)
        if best_priority < moved_priority or (best_priority == moved_priority and moved_entry < entry[best]):
            break
        priority[at] = best_priority
        entry[at] = entry[best]
        at = best
    priority[at] = moved_priority
    entry[at] = moved_entry
