"""Lazy k-best derivations of a hypergraph.

Huang and Chiang, "Better k-best Parsing" (IWPT 2005), algorithm 3: the next best derivation of a node is
computed only when a node above needs it. Two additions: a node's best derivation is read off the Viterbi
edges, so a heap of candidates exists only where a second best was needed. With ``unique``, every node keeps
only the best derivation of each target string: strings are found by a hash that is composed from the hashes
of their parts, and merged only after a comparison word by word.

The order is total (score, then smaller edge, then smaller ranks of the parts), so no result depends on the
history of a heap. Recursion is an explicit stack: a glue derivation is as deep as its sentence is long.
"""

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.decoder.kbest_state_part_kernels import (
    BEST,
    EXHAUSTED,
    HEAP,
    UNTOUCHED,
    meld,
    with_room,
    without_top,
)
from hiero.decoder.kbest_words_part_kernels import is_known, write_derivation

NONE = np.int64(-1)  # typed, because a kernel is compiled once more for every literal it is called with


@leaf
def new_candidate(search, edge, left, right, score):
    """Write a candidate outside all heaps; there must be room."""
    heap = search.heap
    c = search.fill[1]
    search.fill[1] = c + 1
    heap.edge[c] = edge
    heap.part[c, 0] = left
    heap.part[c, 1] = right
    heap.score[c] = score
    heap.child[c] = -1
    heap.sibling[c] = -1
    return c


@leaf
def fill_heap(search, graph, edge_score, best, best_edge, v):
    """Enter the best candidate of each edge of v except that of its best derivation."""
    top = np.int64(-1)
    for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
        score = edge_score[edge]
        for k in range(2):
            if graph.tail[edge, k] >= 0:
                score += best[graph.tail[edge, k]]
        if edge != best_edge[v] and score > -np.inf:
            top = meld(search.heap, search.order.rank, top, new_candidate(search, edge, NONE, NONE, score))
    search.nodes.top[v] = top
    search.nodes.phase[v] = HEAP


@leaf
def unmade_part(graph, nodes, heap, c):
    """Set the best parts of a candidate; a tail whose best derivation must be made first, or -1."""
    for k in range(2):
        tail = graph.tail[heap.edge[c], k]
        if tail >= 0 and heap.part[c, k] < 0:
            if nodes.first[tail] < 0:
                return tail
            heap.part[c, k] = nodes.first[tail]
    return -1


@leaf
def advances(order, heap, c, k):
    """Whether the successor of c with the next part k is entered by c.

    The first part advances only while the second part is the best one, so each pair of ranks has one
    predecessor.
    """
    return heap.part[c, k] >= 0 and (k == 1 or heap.part[c, 1] < 0 or order.rank[heap.part[c, 1]] == 0)


@leaf
def unmade_successor(graph, order, nodes, heap, c):
    """A tail whose next derivation is needed before the successors of c are known, or -1."""
    for k in range(2):
        if advances(order, heap, c, k) and order.next[heap.part[c, k]] < 0:
            tail = graph.tail[heap.edge[c], k]
            if nodes.phase[tail] != EXHAUSTED:
                return tail
    return -1


@leaf
def enter_successors(search, edge_score, v, c):
    """Push the successors of a candidate that was taken from the heap of v."""
    found, order, heap = search.found, search.order, search.heap
    for k in range(2):
        if advances(order, heap, c, k) and order.next[heap.part[c, k]] >= 0:
            edge, left, right = np.int64(heap.edge[c]), np.int64(heap.part[c, 0]), np.int64(heap.part[c, 1])
            if k == 0:
                left = np.int64(order.next[left])
            else:
                right = np.int64(order.next[right])
            # Summed as in the Viterbi pass: equal derivations have equal scores to the last bit.
            score = edge_score[edge] + found.score[left]
            if right >= 0:
                score += found.score[right]
            new = new_candidate(search, edge, left, right, score)
            search.nodes.top[v] = meld(heap, order.rank, np.int64(search.nodes.top[v]), new)
    search.nodes.pending[v] = -1


@leaf
def derive(search, rules, edge_rule, unique, v, c):
    """Make candidate c the next derivation of v unless its string is known; returns whether it is new.

    Its successors stay pending until the derivation after it is needed.
    """
    nodes, order = search.nodes, search.order
    nodes.pending[v] = c
    d = write_derivation(search, rules, edge_rule, v, c)
    if unique and is_known(search, rules, edge_rule, d):
        return False
    search.fill[0] = d + 1
    if nodes.first[v] < 0:
        nodes.first[v] = d
        order.rank[d] = 0
    else:
        order.next[nodes.last[v]] = d
        order.rank[d] = order.rank[nodes.last[v]] + 1
    nodes.last[v] = d
    return True


@leaf
def step(search, graph, edge_score, edge_rule, rules, best, best_edge, unique, v):
    """One step towards the next derivation of v: returns a node needed first, v to continue, -1 when done."""
    nodes = search.nodes
    if nodes.phase[v] == UNTOUCHED:
        if best_edge[v] < 0:
            nodes.phase[v] = EXHAUSTED
            return -1
        if nodes.pending[v] < 0:
            nodes.pending[v] = new_candidate(search, np.int64(best_edge[v]), NONE, NONE, best[v])
        missing = unmade_part(graph, nodes, search.heap, nodes.pending[v])
        if missing >= 0:
            return missing
        nodes.phase[v] = BEST
        derive(search, rules, edge_rule, unique, v, nodes.pending[v])
        return -1
    if nodes.phase[v] == BEST:
        fill_heap(search, graph, edge_score, best, best_edge, v)
    if nodes.pending[v] >= 0:
        missing = unmade_successor(graph, search.order, nodes, search.heap, nodes.pending[v])
        if missing >= 0:
            return missing
        enter_successors(search, edge_score, v, nodes.pending[v])
    top = nodes.top[v]
    if top < 0:
        nodes.phase[v] = EXHAUSTED
        return -1
    missing = unmade_part(graph, nodes, search.heap, top)
    if missing >= 0:
        return missing
    nodes.top[v] = without_top(search.heap, search.order.rank, top)
    return -1 if derive(search, rules, edge_rule, unique, v, top) else v


@kernel
def kbest_kernel(graph, edge_score, edge_rule, rules, best, best_edge, search, k, unique):
    """Continue a search until the goal has k derivations, or no more, or there is no room for another step.

    graph       Hypergraph
    edge_score  float64 [E]   -inf for an edge in no derivation
    edge_rule   int32 [E]     -1: the target side is that of the first tail
    rules       Rules
    best        float64 [V]   from ``viterbi_kernel``, with best_edge int32 [V]
    search      Search        written
    k           int           at least 1; the graph has a node
    unique      bool          the same in all calls for one search

    Returns the room needed for the next step, (derivations, candidates), or (0, 0) when done. About
    O(edges of the nodes visited + D log D + words compared).  Twin: tests/naive/forest.py::kbest.
    """
    goal = graph.first_edge.shape[0] - 2
    nodes, fill = search.nodes, search.fill
    depth = fill[2]
    while True:
        if depth == 0:
            last = nodes.last[goal]
            if nodes.phase[goal] == EXHAUSTED or (last >= 0 and search.order.rank[last] + 1 >= k):
                fill[2] = 0
                return 0, 0
            nodes.stack[0] = goal
            depth = 1
        v = nodes.stack[depth - 1]
        # Upper bound for one step: a heap of all edges, and two successors.
        more = fill[1] + graph.first_edge[v + 1] - graph.first_edge[v] + 2
        if fill[0] >= search.found.edge.shape[0] or more > search.heap.edge.shape[0]:
            fill[2] = depth
            return fill[0] + 1, more
        other = step(search, graph, edge_score, edge_rule, rules, best, best_edge, unique, v)
        if other < 0:
            depth -= 1
        elif other != v:
            nodes.stack[depth] = other
            depth += 1


def kbest(graph, edge_score, edge_rule, rules, best, best_edge, search, k, unique):
    """Continue a search until the goal has k derivations or no more: the search, and their ids in order."""
    if k <= 0 or not len(best):
        return search, np.empty(0, np.int32)
    while True:
        derivations, candidates = kbest_kernel(
            graph, edge_score, edge_rule, rules, best, best_edge, search, k, unique
        )
        if not derivations:
            return search, chain_kernel(search.order.next, np.int64(search.nodes.first[-1]), k)
        search = with_room(search, derivations, candidates)


@kernel
def chain_kernel(next_of, first, k):
    """The first k entries, at most, of a linked list that ends at -1.

    next_of  int32 [D]  the entry after each, or -1
    first    int        entry or -1

    Returns int32 [at most k]. O(k).  Twin: tests/naive/tables.py::chained.
    """
    ids = np.empty(k, np.int32)
    count = 0
    while first >= 0 and count < k:
        ids[count] = first
        first = np.int64(next_of[first])
        count += 1
    return ids[:count].copy()
