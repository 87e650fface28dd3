# mypy: ignore-errors
"""Spans of a lattice, and the rules of a trie that match along its paths."""

from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import hash_number, probe_number
from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import is_gap
from hiero.grammar.trie_kernels import find_child


class Reach(NamedTuple):
    """The nodes within some distance of each of N nodes of a lattice, P pairs in all.

    first  int64 [N + 1]  nodes within reach of node u: node[first[u]:first[u + 1]]
    node   int32 [P]      later nodes than u, ascending
    size   int32 [P]      their distances, 1 or more
    """

    first: np.ndarray
    node: np.ndarray
    size: np.ndarray


@kernel
def reach_kernel(first, end, length, limit):
    """The nodes within a distance of each other: along the shortest path.

    first   int64 [N + 1]  arcs that leave node v: first[v] ... first[v + 1] - 1
    end     int32 [A]      where they lead, to later nodes
    length  int32 [A]      1 or more
    limit   longest distance

    Returns a Reach. O(N * arcs within reach).  Twin: tests/naive/lattice.py::distances.
    """
    num_nodes = first.shape[0] - 1
    out_first = np.zeros(num_nodes + 1, np.int64)
    node, size = np.empty(1024, np.int32), np.empty(1024, np.int32)
    distance = np.full(num_nodes, -1, np.int64)
    used = 0
    for u in range(num_nodes):
        distance[u] = 0
        farthest, v = u, u
        while v <= farthest:
            if 0 <= distance[v] < limit:
                for a in range(first[v], first[v + 1]):
                    far, new = end[a], distance[v] + length[a]
                    if new <= limit and (distance[far] < 0 or new < distance[far]):
                        distance[far] = new
                        farthest = max(farthest, far)
            v += 1
        for v in range(u + 1, farthest + 1):
            if distance[v] >= 0:
                if used == node.shape[0]:
                    node = np.concatenate((node, np.empty(used, np.int32)))
                    size = np.concatenate((size, np.empty(used, np.int32)))
                node[used] = v
                size[used] = distance[v]
                used += 1
        for v in range(u, farthest + 1):
            distance[v] = -1
        out_first[u + 1] = used
    return Reach(out_first, node[:used].copy(), size[:used].copy())


@leaf
def find_reached(reach, start, node):
    """The pair of two nodes, or -1 if the second is not within reach of the first."""
    low, high = reach.first[start], reach.first[start + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if reach.node[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low if low < end and reach.node[low] == node else np.int64(-1)


@kernel
def match_lattice_kernel(trie, src, arcs, reach):
    """The trie nodes with rules whose source side matches along a path of a lattice.

    trie   Trie
    src    int32 [A]  words of arcs; negative for words not in the trie
    arcs   Arcs
    reach  Reach      pairs of nodes that a rule may span

    Returns int64 nodes; one that matches in several ways is repeated.

    As ``match_trie_kernel``, with every pair of a trie node and a node of the lattice visited once for each
    start. O(N * pairs visited * arcs within reach).  Twin: tests/naive/lattice.py::matches.
    """
    num_nodes = arcs.first.shape[0] - 1
    out_node = np.empty(256, np.int64)
    used = 0
    for start in range(num_nodes - 1):
        # Pairs of this start, as trie node << 16 | node, to be visited or visited; a list that is a set.
        todo, slot = np.empty(256, np.int64), np.full(512, -1, np.int64)
        todo[0] = start
        done, known = 0, 1
        while done < known:
            node, at = todo[done] >> 16, todo[done] & 0xFFFF
            done += 1
            if trie.first_rule[node] < trie.first_rule[node + 1]:
                if used == out_node.shape[0]:
                    out_node = np.concatenate((out_node, np.empty(used, np.int64)))
                out_node[used] = node
                used += 1
            child, end_child = trie.first_child[node], trie.first_child[node + 1]
            if child == end_child:
                continue
            # Gaps come first among siblings; then the words of the arcs that leave the node.
            last_gap = child
            while last_gap < end_child and is_gap(trie.symbol[last_gap]):
                last_gap += 1
            ways = reach.first[at + 1] - reach.first[at] if last_gap > child else 0
            arcs_here = arcs.first[at + 1] - arcs.first[at] if end_child > last_gap else 0
            for way in range(ways + arcs_here):
                if way < ways:
                    far = np.int64(reach.node[reach.first[at] + way])
                    low, high = child, last_gap
                else:
                    arc = arcs.first[at] + way - ways
                    far = np.int64(arcs.end[arc])
                    low = find_child(trie, node, src[arc]) if src[arc] >= 0 else np.int64(-1)
                    high = low + 1
                if low < 0 or find_reached(reach, start, far) < 0:
                    continue
                for new in range(low, high):
                    key = new << 16 | far
                    place = probe_number(slot, hash_number(key), key)
                    if slot[place] >= 0:
                        continue
                    slot[place] = key
                    if known == todo.shape[0]:
                        todo = np.concatenate((todo, np.empty(known, np.int64)))
                        slot = np.full(4 * known, -1, np.int64)
                        for k in range(1, known):
                            slot[probe_number(slot, hash_number(todo[k]), todo[k])] = todo[k]
                        slot[probe_number(slot, hash_number(key), key)] = key
                    todo[known] = key
                    known += 1
    return out_node[:used]
