# mypy: ignore-errors
"""Lazy k-best derivations of a hypergraph.

Huang and Chiang, "Better k-best Parsing" (IWPT 2005), algorithm 3: the next best derivation of a node is
computed only when a node above needs it. Two additions: a node's best derivation is read off the Viterbi
edges, so a heap of candidates exists only where a second best was needed. With ``unique``, every node keeps
only the best derivation of each target string: strings are found by a hash that is composed from the hashes
of their parts, and merged only after a comparison word by word.

The order is total (score, then smaller edge, then smaller ranks of the parts), so no result depends on the
history of a heap. Recursion is an explicit stack: a glue derivation is as deep as its sentence is long.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import grown
from hiero.core.hash_kernels import GOLDEN, HALF, MIX_1, MIX_2, probe, probe_new
from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap_index, is_gap
from hiero.decoder.hypergraph import Derivations

BASE = GOLDEN  # odd, so that its powers never vanish
ZERO, ONE = np.uint64(0), np.uint64(1)

# Rows of a frame array. Typed, because a kernel is compiled once more for every literal it is called with.
ROW_A, ROW_B = np.int64(0), np.int64(2)


@leaf
def string_code(node, code):
    """The hash of a node and a string."""
    return ((code ^ (np.uint64(node) * MIX_1)) * MIX_2) >> HALF


@leaf
def hash_word(word):
    code = (np.uint64(word) + ONE) * MIX_1
    code = (code ^ (code >> np.uint64(29))) * MIX_2
    return code ^ (code >> np.uint64(32))


@leaf
def write_derivation(search, rules, edge_rule, v, c):
    """Write candidate c as derivation ``fill[0]``, not yet counted; there must be room."""
    found, order, heap = search.found, search.order, search.heap
    d = search.fill[0]
    edge = heap.edge[c]
    found.node[d] = v
    found.edge[d] = edge
    found.score[d] = heap.score[c]
    size = np.int64(1)
    for k in range(2):
        found.part[d, k] = heap.part[c, k]
        if heap.part[c, k] >= 0:
            size += found.size[heap.part[c, k]]
    found.size[d] = size
    order.next[d] = -1
    rule = edge_rule[edge]
    if rule < 0:
        part = heap.part[c, 0]
        found.length[d] = found.length[part]
        order.hash[d] = order.hash[part]
        order.power[d] = order.power[part]
        return d
    length, code, power = np.int64(0), ZERO, ONE
    for i in range(rules.first_tgt[rule], rules.first_tgt[rule + 1]):
        symbol = rules.tgt[i]
        if is_gap(symbol):
            part = heap.part[c, gap_index(symbol) - 1]
            length += found.length[part]
            code = code * order.power[part] + order.hash[part]
            power = power * order.power[part]
        else:
            length += 1
            code = code * BASE + hash_word(symbol)
            power = power * BASE
    found.length[d] = length
    order.hash[d] = code
    order.power[d] = power
    return d


@leaf
def next_item(found, rules, edge_rule, frame, row, depth):
    """The next item of a string (a word, -2 - d for derivation d, -1 at the end), and the new depth."""
    while depth > 0:
        d = frame[row, depth - 1]
        at = frame[row + 1, depth - 1]
        rule = edge_rule[found.edge[d]]
        if rule < 0:
            if at == 0:
                return -2 - np.int64(found.part[d, 0]), depth
        elif rules.first_tgt[rule] + at < rules.first_tgt[rule + 1]:
            symbol = rules.tgt[rules.first_tgt[rule] + at]
            if is_gap(symbol):
                return -2 - np.int64(found.part[d, gap_index(symbol) - 1]), depth
            return np.int64(symbol), depth
        depth -= 1
    return np.int64(-1), depth


@leaf
def descend(frame, row, depth, item):
    """Step past the current item, or into it if it is a derivation; returns the new depth."""
    if depth > 0:
        frame[row + 1, depth - 1] += 1
    if item <= -2:
        frame[row, depth] = -2 - item
        frame[row + 1, depth] = 0
        depth += 1
    return depth


@leaf
def same_words(found, rules, edge_rule, frame, a, b):
    """Whether two derivations have the same target words; shared parts are skipped."""
    depth_a = descend(frame, ROW_A, np.int64(0), -2 - np.int64(a))
    depth_b = descend(frame, ROW_B, np.int64(0), -2 - np.int64(b))
    while True:
        item_a, depth_a = next_item(found, rules, edge_rule, frame, ROW_A, depth_a)
        item_b, depth_b = next_item(found, rules, edge_rule, frame, ROW_B, depth_b)
        if item_a == item_b:
            if item_a == -1:
                return True
            frame[1, depth_a - 1] += 1
            frame[3, depth_b - 1] += 1
        elif item_a <= -2 and item_a <= item_b:
            # Parts come before wholes: opening the later derivation never opens a part that both share.
            depth_a = descend(frame, ROW_A, depth_a, item_a)
        elif item_b <= -2:
            depth_b = descend(frame, ROW_B, depth_b, item_b)
        else:
            return False


@leaf
def is_string(table, old, d):
    """``equal`` of strings: whether two derivations of a node have the same words."""
    search, rules, edge_rule = table
    found, order = search.found, search.order
    return (
        order.hash[old] == order.hash[d]
        and found.node[old] == found.node[d]
        and found.length[old] == found.length[d]
        and same_words(found, rules, edge_rule, search.nodes.frame, old, d)
    )


@leaf
def is_known(search, rules, edge_rule, d):
    """Whether the node of d has a derivation with the same words; if not, enter d."""
    slot, code = search.slot, string_code(search.found.node[d], search.order.hash[d])
    at = probe(slot, code, is_string, (search, rules, edge_rule), d)
    if slot[at] >= 0:
        return True
    slot[at] = d
    return False


# Phases of a node: nothing yet; best derivation known; heap of candidates for the next; exhausted.
UNTOUCHED, BEST, HEAP, EXHAUSTED = 0, 1, 2, 3


class Order(NamedTuple):
    """Data of the search for each of its D derivations.

    next   int32 [D]    the next best derivation of the same node, -1 if unknown or none
    rank   int32 [D]    how many derivations of the node are better
    hash   uint64 [D]   of the target words: sum of mix(word i) * BASE ** (length - 1 - i), modulo 2 ** 64
    power  uint64 [D]   BASE ** length
    """

    next: np.ndarray
    rank: np.ndarray
    hash: np.ndarray
    power: np.ndarray


class KBestCandidates(NamedTuple):
    """C candidates in pairing heaps, one heap a node.

    edge     int32 [C]
    part     int32 [C, 2]   derivations of its tails; -1 if there is no tail, or its best one is not yet made
    score    float64 [C]
    child    int32 [C]      first child in the heap, -1 for none
    sibling  int32 [C]      next sibling, -1 for none
    """

    edge: np.ndarray
    part: np.ndarray
    score: np.ndarray
    child: np.ndarray
    sibling: np.ndarray


class KBestNodes(NamedTuple):
    """The state of V nodes.

    phase    int8 [V]
    first    int32 [V]      best derivation, -1 if not yet made
    last     int32 [V]      the one made last
    top      int32 [V]      best candidate, -1 if the heap is empty
    pending  int32 [V]      candidate taken from the heap whose successors are not in it yet, -1 for none
    stack    int32 [V + 1]  nodes whose next derivation is in progress, each needed by the one before
    frame    int32 [4, V + 1]  comparison of two strings: derivation and place in its rule, for each
    """

    phase: np.ndarray
    first: np.ndarray
    last: np.ndarray
    top: np.ndarray
    pending: np.ndarray
    stack: np.ndarray
    frame: np.ndarray


class KBestSearch(NamedTuple):
    """A k-best search with all its state, so that it can be resumed; vectors grow on demand.

    found  Derivations      the first ``fill[0]`` entries
    order  Order
    heap   KBestCandidates  the first ``fill[1]`` entries
    nodes  KBestNodes
    slot   int32 [2 ** n]   derivations hashed by node and target words, -1 empty; at most half full
    fill   int64 [3]        used lengths of ``found`` and ``heap``, and of ``nodes.stack``
    """

    found: Derivations
    order: Order
    heap: KBestCandidates
    nodes: KBestNodes
    slot: np.ndarray
    fill: np.ndarray


def kbest_capacity(k: int) -> int:
    """Room to begin with: a list has about 20 derivations of all nodes for each of the goal."""
    return min(1 << 14, max(256, 1 << int(32 * k).bit_length()))


def new_kbest_search(num_nodes: int, capacity: int = 256) -> KBestSearch:
    """An empty k-best search for up to ``capacity`` (a power of two) derivations and as many candidates."""
    return KBestSearch(
        Derivations(
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
            np.empty((capacity, 2), np.int32),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.float64),
        ),
        Order(
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
            np.empty(capacity, np.uint64),
            np.empty(capacity, np.uint64),
        ),
        KBestCandidates(
            np.empty(capacity, np.int32),
            np.empty((capacity, 2), np.int32),
            np.empty(capacity, np.float64),
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
        ),
        KBestNodes(
            np.zeros(num_nodes, np.int8),
            np.full(num_nodes, -1, np.int32),
            np.full(num_nodes, -1, np.int32),
            np.full(num_nodes, -1, np.int32),
            np.full(num_nodes, -1, np.int32),
            np.empty(num_nodes + 1, np.int32),
            np.empty((4, num_nodes + 1), np.int32),
        ),
        np.full(2 * capacity, -1, np.int32),
        np.zeros(3, np.int64),
    )


def larger_kbest_search(search: KBestSearch, derivations: int, candidates: int) -> KBestSearch:
    """The same k-best search with room for the given totals."""

    found, order, heap, nodes, slot, fill = search
    size = len(heap.edge)
    if candidates > size:
        while size < candidates:
            size *= 2
        heap = KBestCandidates(*(grown(array, size) for array in heap))
    size = len(found.edge)
    if derivations > size:
        while size < derivations:
            size *= 2
        found = Derivations(*(grown(array, size) for array in found))
        order = Order(*(grown(array, size) for array in order))
        old, slot = slot, np.full(2 * size, -1, np.int32)
        move_kbest_slots_kernel(found.node, order.hash, old, slot)
    return KBestSearch(found, order, heap, nodes, slot, fill)


@kernel
def move_kbest_slots_kernel(node, code, old_slot, out_slot):
    """Copy the hash table of derivations of a k-best search to a larger one.

    node      int32 [D]
    code      uint64 [D]
    old_slot  int32 [2 ** m]
    out_slot  int32 [2 ** n]  written; -1 before

    O(2 ** m).  Twin: none; it changes no answer.
    """
    for i in range(old_slot.shape[0]):
        d = old_slot[i]
        if d >= 0:
            out_slot[probe_new(out_slot, string_code(node[d], code[d]))] = d


@leaf
def before(heap, rank, a, b):
    """Whether candidate a of a node comes before candidate b."""
    if heap.score[a] != heap.score[b]:
        return heap.score[a] > heap.score[b]
    if heap.edge[a] != heap.edge[b]:
        return heap.edge[a] < heap.edge[b]
    for k in range(2):
        # The best part of a tail may be missing yet; its rank is known anyway.
        rank_a = rank[heap.part[a, k]] if heap.part[a, k] >= 0 else 0
        rank_b = rank[heap.part[b, k]] if heap.part[b, k] >= 0 else 0
        if rank_a != rank_b:
            return rank_a < rank_b
    return False


@leaf
def meld(heap, rank, a, b):
    """Meld two pairing heaps; -1 is the empty one."""
    if a < 0:
        return b
    if b < 0:
        return a
    if before(heap, rank, b, a):
        a, b = b, a
    heap.sibling[b] = heap.child[a]
    heap.child[a] = b
    return a


@leaf
def without_top(heap, rank, top):
    """The pairing heap without its top: its children are melded in pairs, then from the right."""
    pairs = np.int64(-1)
    a = np.int64(heap.child[top])
    while a >= 0:
        b = np.int64(heap.sibling[a])
        after = np.int64(heap.sibling[b]) if b >= 0 else np.int64(-1)
        heap.sibling[a] = -1
        pair = meld(heap, rank, a, b)
        heap.sibling[pair] = pairs
        pairs = pair
        a = after
    rest = np.int64(-1)
    while pairs >= 0:
        after = np.int64(heap.sibling[pairs])
        heap.sibling[pairs] = -1
        rest = meld(heap, rank, rest, pairs)
        pairs = after
    heap.child[top] = -1
    return rest


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
    search      KBestSearch        written
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
        search = larger_kbest_search(search, derivations, candidates)


@kernel
def chain_kernel(next_of, first, k):
    """The first k derivations, at most, of the linked list of a node, which ends at -1.

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
