"""The state of a lazy k-best search: its arrays, how they grow, and the heaps of candidates in them."""

from typing import NamedTuple

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.decoder.hypergraph import Derivations
from hiero.decoder.kbest_words_part_kernels import slot_of

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


class Search(NamedTuple):
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


def new_search(num_nodes: int, capacity: int = 256) -> Search:
    """An empty search with room for ``capacity`` (a power of two) derivations and as many candidates."""
    return Search(
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


def with_room(search: Search, derivations: int, candidates: int) -> Search:
    """The same search with room for the given totals."""

    def grown(array, size):
        larger = np.empty((size, *array.shape[1:]), array.dtype)
        larger[: len(array)] = array
        return larger

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
        move_slots_kernel(found.node, order.hash, old, slot)
    return Search(found, order, heap, nodes, slot, fill)


@kernel
def move_slots_kernel(node, code, old_slot, out_slot):
    """Copy a hash table of derivations to a larger one.

    node      int32 [D]
    code      uint64 [D]
    old_slot  int32 [2 ** m]
    out_slot  int32 [2 ** n]  written; -1 before

    O(2 ** m).  Twin: none; it changes no answer.
    """
    for i in range(old_slot.shape[0]):
        d = old_slot[i]
        if d >= 0:
            at = slot_of(out_slot, node[d], code[d])
            while out_slot[at] >= 0:
                at = (at + 1) & (out_slot.shape[0] - 1)
            out_slot[at] = d


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
