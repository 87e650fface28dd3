# mypy: ignore-errors
"""Tries of source sides: find children of a node and nodes that a sentence matches; build and check tries."""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids
from hiero.core.hash_kernels import ONE, hash_number, mix, probe, probe_new, probe_number, table_size
from hiero.core.jit import kernel, leaf
from hiero.core.records import MOST_GAPS
from hiero.core.symbol_kernels import gap, gap_index, gap_label, is_gap
from hiero.grammar.assemble_kernels import measure_rule, offsets_kernel, shared_id

NODE, RANK = 0, 1  # columns of a key of a rule: the node of its source side, the rank of its left-hand side


class GrowingTrie(NamedTuple):
    """A trie that grows: nodes in the order of creation, the root first.

    slot    int32 [2 ** k]  hash table from (parent, symbol) to nodes, -1 empty; at most half full
    parent  int32 [2 ** (k - 1)]
    symbol  int32 [2 ** (k - 1)]
    used    int64 [1]       number of nodes
    """

    slot: Ids
    parent: Ids
    symbol: Ids
    used: np.ndarray


@leaf
def find_child(trie, node, symbol):
    """The child of a node by a symbol, or -1. Siblings are sorted."""
    low, high = trie.first_child[node], trie.first_child[node + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if trie.symbol[middle] < symbol:
            low = middle + 1
        else:
            high = middle
    return low if low < end and trie.symbol[low] == symbol else np.int64(-1)


@kernel
def match_trie_kernel(trie, src, span_limit):
    """The trie nodes with rules whose source side matches a span of a sentence.

    trie        Trie
    src         int32 [n]  words; negative for words not in the trie
    span_limit  longest span

    Returns int64 nodes; one that matches in several ways is repeated.

    A source side matches if each of its gaps can stand for one word or more. For every start of a span the
    trie is walked depth first. A state is a node and the range of positions where its prefix may end: one
    position after a word, all later ones after a gap.
    O(n * nodes reached * span_limit).  Twin: tests/naive/grammar.py::matches.
    """
    out_node = np.empty(256, np.int64)
    used = 0
    stack = np.empty((256, 3), np.int64)
    for start in range(src.shape[0]):
        limit = min(src.shape[0], start + span_limit)
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, start
        top = 1
        while top > 0:
            top -= 1
            node, low, high = stack[top, 0], stack[top, 1], stack[top, 2]
            if trie.first_rule[node] < trie.first_rule[node + 1]:
                if used == out_node.shape[0]:
                    out_node = np.concatenate((out_node, np.empty(used, np.int64)))
                out_node[used] = node
                used += 1
            child, end_child = trie.first_child[node], trie.first_child[node + 1]
            if child == end_child or low == limit:
                continue
            # Gaps come first among siblings.
            while child < end_child and is_gap(trie.symbol[child]):
                if top == stack.shape[0]:
                    stack = np.concatenate((stack, np.empty((top, 3), np.int64)))
                stack[top, 0], stack[top, 1], stack[top, 2] = child, low + 1, limit
                top += 1
                child += 1
            for end in range(low, min(high, limit - 1) + 1):
                if src[end] < 0:
                    continue
                child = find_child(trie, node, src[end])
                if child >= 0:
                    if top == stack.shape[0]:
                        stack = np.concatenate((stack, np.empty((top, 3), np.int64)))
                    stack[top, 0], stack[top, 1], stack[top, 2] = child, end + 1, end + 1
                    top += 1
    return out_node[:used]


@kernel
def trie_rules_kernel(first_rule, node):
    """The rules of some nodes.

    first_rule  int64 [T + 1]  as in Trie
    node        int64 [N]      ascending, with repetitions

    Returns int64 rules, each once. O(N + rules).  Twin: tests/naive/grammar.py::matches.
    """
    num_rules = 0
    for i in range(node.shape[0]):
        if i == 0 or node[i] != node[i - 1]:
            num_rules += first_rule[node[i] + 1] - first_rule[node[i]]
    out = np.empty(num_rules, np.int64)
    used = 0
    for i in range(node.shape[0]):
        if i == 0 or node[i] != node[i - 1]:
            for r in range(first_rule[node[i]], first_rule[node[i] + 1]):
                out[used] = r
                used += 1
    return out


@leaf
def _edge_code(parent, symbol):
    return mix(np.uint64(parent), symbol + (1 << 31))


@leaf
def _is_edge(nodes, node, edge):
    return nodes.parent[node] == edge[0] and nodes.symbol[node] == edge[1]


@kernel
def new_trie(num_nodes):
    """A trie with only the root, and room for so many nodes or more."""
    slots = table_size(num_nodes)
    nodes = GrowingTrie(
        np.full(slots, -1, np.int32),
        np.empty(slots // 2, np.int32),
        np.empty(slots // 2, np.int32),
        np.ones(1, np.int64),
    )
    nodes.parent[0], nodes.symbol[0] = -1, 0
    return nodes


@kernel
def larger_trie(nodes):
    """The same trie with twice the room."""
    slots = 2 * nodes.slot.shape[0]
    slot = np.full(slots, -1, np.int32)
    larger = GrowingTrie(slot, np.empty(slots // 2, np.int32), np.empty(slots // 2, np.int32), nodes.used)
    larger.parent[0], larger.symbol[0] = -1, 0
    for node in range(1, nodes.used[0]):
        parent, symbol = np.int64(nodes.parent[node]), np.int64(nodes.symbol[node])
        at = probe_new(larger.slot, _edge_code(parent, symbol))
        larger.slot[at], larger.parent[node], larger.symbol[node] = node, parent, symbol
    return larger


@leaf
def _same_source(rules, one, two):
    """Whether two rules have the same source side."""
    start, end, other = rules.first_src[one], rules.first_src[one + 1], rules.first_src[two]
    if rules.first_src[two + 1] - other != end - start:
        return False
    # Unsigned, because numba tests a signed index for being negative in every iteration.
    source, target = np.uint64(start), np.uint64(other)
    for k in range(np.uint64(end - start)):
        if rules.src[source + k] != rules.src[target + k]:
            return False
    return True


@leaf
def plant_symbol(nodes, node, symbol, rank):
    """The child of a node by a shared symbol, which is made if it is missing; there must be room for it."""
    if rank.shape[0] > 0 and is_gap(symbol):
        symbol = np.int64(gap(rank[gap_label(symbol)], gap_index(symbol)))
    at = probe(nodes.slot, _edge_code(node, symbol), _is_edge, nodes, (node, symbol))
    child = np.int64(nodes.slot[at])
    if child < 0:
        child = nodes.used[0]
        nodes.slot[at], nodes.parent[child], nodes.symbol[child] = child, node, symbol
        nodes.used[0] = child + 1
    return child


@leaf
def _plant_rows(rules, rows, ids, names, rank, nodes, out_key, out_size):
    """``plant_sources_kernel``."""
    room = nodes.parent.shape[0]
    i = 0
    while i < rows.shape[0]:
        r = rows[i]
        start, end = rules.first_src[r], rules.first_src[r + 1]
        if i > 0 and _same_source(rules, r, rows[i - 1]):
            out_key[i, NODE] = out_key[i - 1, NODE]
        elif nodes.used[0] + end - start > room:
            break
        else:
            node = np.int64(0)
            for k in range(start, end):
                node = plant_symbol(nodes, node, shared_id(ids.src, rules.src[k]), rank)
            out_key[i, NODE] = node
        measure_rule(rules, r, ids, names, out_size, i)
        label = shared_id(ids.lhs, rules.lhs[r])
        out_key[i, RANK] = rank[label] if rank.shape[0] > 0 else label
        i += 1
    return i


@kernel
def plant_sources_kernel(rules, rows, ids, names, rank, nodes, out_key, out_size):
    """Enter the source sides of some rules into a trie.

    rules     Rules
    rows      int64 [R]     the rules
    ids       IdMaps
    names     int32 [D]     columns of the result; other features are sparse
    rank      int32 [L]     ranks of labels, which take their place in the trie; empty: labels stay
    nodes     GrowingTrie         written
    out_key   int32 [R, 2]  written: node of the source side, rank or id of the left-hand side
    out_size  int32 [R, 4]  written: symbols of the source side, of the target side, sparse features, links

    Returns the number of rules entered; if that is not all, a ``larger_trie`` is needed for the others.
    O(N).  Twin: tests/naive/grammar.py::in_order.
    """
    return _plant_rows(rules, rows, ids, names, rank, nodes, out_key, out_size)


@leaf
def _sort_by_symbol(symbol, node, begin, end):
    """Sort nodes by their symbols, in place; Shell's sort, since nearly all runs are short."""
    step = 1
    while 3 * step < end - begin:
        step = 3 * step + 1
    while step > 0:
        for i in range(begin + step, end):
            moved = node[i]
            j = i
            while j >= begin + step and symbol[node[j - step]] > symbol[moved]:
                node[j] = node[j - step]
                j -= step
            node[j] = moved
        step //= 3


@kernel
def _number_nodes(nodes, out_number, out_symbol, out_first_child):
    """Number nodes breadth-first, siblings by symbol."""
    num_nodes = nodes.used[0]
    first = np.zeros(num_nodes + 1, np.int64)  # children of each node, by order of creation
    for v in range(1, num_nodes):
        first[nodes.parent[v] + 1] += 1
    for v in range(num_nodes):
        first[v + 1] += first[v]
    child = np.empty(num_nodes, np.int64)
    filled = first.copy()
    for v in range(1, num_nodes):
        parent = nodes.parent[v]
        child[filled[parent]] = v
        filled[parent] += 1
    queue = np.empty(num_nodes, np.int64)
    queue[0] = 0
    used = 1
    for number in range(num_nodes):
        v = queue[number]
        out_number[v] = number
        out_symbol[number] = nodes.symbol[v]
        out_first_child[number] = used
        _sort_by_symbol(nodes.symbol, child, first[v], first[v + 1])
        for k in range(first[v], first[v + 1]):
            queue[used] = child[k]
            used += 1
    out_first_child[num_nodes] = used


@kernel
def _by_rank(key):
    """The rules in the order of their ranks; those of one rank stay in order."""
    num_rules = key.shape[0]
    highest, lowest = 0, key[0, RANK] if num_rules > 0 else 0
    for r in range(num_rules):
        highest = max(highest, key[r, RANK])
        lowest = min(lowest, key[r, RANK])
    if highest == lowest:
        return np.arange(num_rules)
    begin = np.zeros(highest + 2, np.int64)
    for r in range(num_rules):
        begin[key[r, RANK] + 1] += 1
    for k in range(highest + 1):
        begin[k + 1] += begin[k]
    order = np.empty(num_rules, np.int64)
    for r in range(num_rules):
        order[begin[key[r, RANK]]] = r
        begin[key[r, RANK]] += 1
    return order


@kernel
def order_trie_kernel(nodes, key, size):
    """Number the nodes of a trie breadth-first, siblings by symbol; order rules by node and by rank.

    nodes  GrowingTrie         T nodes
    key    int32 [K, 2]  node and rank of each rule in the trie
    size   int32 [R, 4]  sizes of all rules; those from K on are not in the trie, and stay at the end

    Returns symbol, first_child and first_rule of a Trie, int64 [R] the place of each rule, and what
    ``offsets_kernel`` returns. Rules of one node and rank stay in order. O(T + R), and sorting siblings.
    Twins: tests/naive/grammar.py::trie, tests/naive/grammar.py::in_order.
    """
    num_nodes = nodes.used[0]
    number = np.empty(num_nodes, np.int64)
    symbol, first_child = np.empty(num_nodes, np.int32), np.empty(num_nodes + 1, np.int64)
    _number_nodes(nodes, number, symbol, first_child)
    first_rule = np.zeros(num_nodes + 1, np.int64)
    node_of = np.empty(key.shape[0], np.uint64)
    for r in range(key.shape[0]):
        node_of[r] = number[np.uint64(key[r, NODE])]
        first_rule[node_of[r] + ONE] += 1
    for v in range(num_nodes):
        first_rule[v + 1] += first_rule[v]
    place = np.arange(size.shape[0])
    filled = first_rule.copy()
    order = _by_rank(key)
    for i in range(key.shape[0]):
        r = np.uint64(order[i])
        node = node_of[r]
        place[r] = filled[node]
        filled[node] += 1
    return symbol, first_child, first_rule, place, offsets_kernel(size, place)


# ---- checks of files


@kernel
def first_unsound_node_kernel(trie):
    """The first node whose children are not those of a tree in breadth-first order, siblings by symbol.

    trie  Trie  its arrays have fitting lengths

    Returns the node, or T. Without such a node, every walk down the trie ends.
    O(T).  Twin: tests/naive/grammar.py::first_unsound_node.
    """
    num_nodes = trie.symbol.shape[0]
    if trie.first_child[0] != 1:
        return 0
    for v in range(num_nodes):
        begin, end = trie.first_child[v], trie.first_child[v + 1]
        if begin <= v or end < begin or end > num_nodes:
            return v
        for child in range(begin + 1, end):
            if trie.symbol[child - 1] >= trie.symbol[child]:
                return v
    return num_nodes


@leaf
def _has_symbol(side, begin, end, symbol):
    for k in range(begin, end):
        if side[k] == symbol:
            return True
    return False


@leaf
def _is_rule(rules, r, num_words, num_labels):
    """Whether both sides of a rule have known words, the same gaps, and all of its links."""
    src, end_src = rules.first_src[r], rules.first_src[r + 1]
    tgt, end_tgt = rules.first_tgt[r], rules.first_tgt[r + 1]
    gaps = 0
    for k in range(src, end_src):
        symbol = np.int64(rules.src[k])
        if is_gap(symbol):
            gaps += 1
            if gaps > MOST_GAPS or gap_index(symbol) != gaps or gap_label(symbol) >= num_labels:
                return False
        elif symbol >= num_words:
            return False
    seen = 0
    for k in range(tgt, end_tgt):
        symbol = np.int64(rules.tgt[k])
        if is_gap(symbol):
            bit = np.int64(1) << gap_index(symbol)
            if seen & bit != 0 or not _has_symbol(rules.src, src, end_src, symbol):
                return False
            seen |= bit
            gaps -= 1
        elif symbol >= num_words:
            return False
    if gaps != 0 or end_src == src:
        return False
    for k in range(rules.first_link[r], rules.first_link[r + 1]):
        i, j = rules.link[k, 0], rules.link[k, 1]
        if i < 0 or src + i >= end_src or j < 0 or tgt + j >= end_tgt:
            return False
    return True


@kernel
def first_unsound_rule_kernel(rules, num_words, num_labels):
    """The first rule with an unknown word or label, other gaps on its sides, or a link outside of them.

    rules  Rules  its offsets are ascending

    Returns the rule, or R.  O(N).  Twin: tests/naive/grammar.py::first_unsound_rule.
    """
    num_rules = rules.lhs.shape[0]
    for r in range(num_rules):
        if not _is_rule(rules, r, num_words, num_labels):
            return r
    return num_rules


# ---- lattices


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
