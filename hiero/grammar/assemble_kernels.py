# mypy: ignore-errors
"""Gather rules of several tables into one grammar: enter their source sides into a trie, number its nodes,
order the rules by node, and copy each to its place."""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids
from hiero.core.hash_kernels import ONE, mix, probe, probe_new, table_size
from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import UNKNOWN, gap, gap_index, gap_label, is_gap


class IdMaps(NamedTuple):
    """The shared ids of a table with ids of its own, by these; an empty array if they are the same.

    src   int32  words, and gaps, which are negative, from the end
    tgt   int32
    lhs   int32  labels of left-hand sides
    name  int32  names of sparse features
    """

    src: Ids
    tgt: Ids
    lhs: Ids
    name: Ids


class Nodes(NamedTuple):
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


NODE, RANK = 0, 1  # columns of a key
SRC, TGT, SPARSE, LINK = 0, 1, 2, 3  # columns of sizes


@leaf
def _edge_code(parent, symbol):
    return mix(np.uint64(parent), symbol + (1 << 31))


@leaf
def _is_edge(nodes, node, edge):
    return nodes.parent[node] == edge[0] and nodes.symbol[node] == edge[1]


@kernel
def new_nodes(num_nodes):
    """A trie with only the root, and room for so many nodes or more."""
    slots = table_size(num_nodes)
    nodes = Nodes(
        np.full(slots, -1, np.int32),
        np.empty(slots // 2, np.int32),
        np.empty(slots // 2, np.int32),
        np.ones(1, np.int64),
    )
    nodes.parent[0], nodes.symbol[0] = -1, 0
    return nodes


@kernel
def larger_nodes(nodes):
    """The same trie with twice the room."""
    slots = 2 * nodes.slot.shape[0]
    slot = np.full(slots, -1, np.int32)
    larger = Nodes(slot, np.empty(slots // 2, np.int32), np.empty(slots // 2, np.int32), nodes.used)
    larger.parent[0], larger.symbol[0] = -1, 0
    for node in range(1, nodes.used[0]):
        parent, symbol = np.int64(nodes.parent[node]), np.int64(nodes.symbol[node])
        at = probe_new(larger.slot, _edge_code(parent, symbol))
        larger.slot[at], larger.parent[node], larger.symbol[node] = node, parent, symbol
    return larger


@leaf
def _shared(ids, own):
    return np.int64(ids[own]) if ids.shape[0] > 0 else np.int64(own)


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
def _column_of(names, name):
    """The place of a name among the columns, or -1. There are few columns."""
    for d in range(names.shape[0]):
        if names[d] == name:
            return np.int64(d)
    return np.int64(-1)


@leaf
def _plant_rows(rules, rows, ids, names, rank, nodes, out_key, out_size):
    """``plant_kernel``."""
    room = nodes.parent.shape[0]
    used = nodes.used[0]
    i = 0
    while i < rows.shape[0]:
        r = rows[i]
        start, end = rules.first_src[r], rules.first_src[r + 1]
        if i > 0 and _same_source(rules, r, rows[i - 1]):
            out_key[i, NODE] = out_key[i - 1, NODE]
        elif used + end - start > room:
            break
        else:
            node = np.int64(0)
            for k in range(start, end):
                symbol = _shared(ids.src, rules.src[k])
                if rank.shape[0] > 0 and is_gap(symbol):
                    symbol = np.int64(gap(rank[gap_label(symbol)], gap_index(symbol)))
                at = probe(nodes.slot, _edge_code(node, symbol), _is_edge, nodes, (node, symbol))
                child = np.int64(nodes.slot[at])
                if child < 0:
                    child = used
                    nodes.slot[at], nodes.parent[child], nodes.symbol[child] = child, node, symbol
                    used += 1
                node = child
            out_key[i, NODE] = node
        _measure(rules, r, ids, names, out_size, i)
        label = _shared(ids.lhs, rules.lhs[r])
        out_key[i, RANK] = rank[label] if rank.shape[0] > 0 else label
        i += 1
    nodes.used[0] = used
    return i


@kernel
def plant_kernel(rules, rows, ids, names, rank, nodes, out_key, out_size):
    """Enter the source sides of some rules into a trie.

    rules     Rules
    rows      int64 [R]     the rules
    ids       IdMaps
    names     int32 [D]     columns of the result; other features are sparse
    rank      int32 [L]     ranks of labels, which take their place in the trie; empty: labels stay
    nodes     Nodes         written
    out_key   int32 [R, 2]  written: node of the source side, rank or id of the left-hand side
    out_size  int32 [R, 4]  written: symbols of the source side, of the target side, sparse features, links

    Returns the number of rules entered; if that is not all, ``larger_nodes`` are needed for the others.
    O(N).  Twin: tests/naive/grammar.py::in_order.
    """
    return _plant_rows(rules, rows, ids, names, rank, nodes, out_key, out_size)


@leaf
def _measure(rules, r, ids, names, out_size, i):
    """The sizes of rule r, in row i."""
    begin, end = np.uint64(r), np.uint64(r) + ONE
    out_size[i, SRC] = rules.first_src[end] - rules.first_src[begin]
    out_size[i, TGT] = rules.first_tgt[end] - rules.first_tgt[begin]
    out_size[i, LINK] = rules.first_link[end] - rules.first_link[begin]
    num_sparse = 0
    for k in range(rules.first_sparse[begin], rules.first_sparse[end]):
        if _column_of(names, _shared(ids.name, rules.sparse_name[k])) < 0:
            num_sparse += 1
    out_size[i, SPARSE] = num_sparse


@kernel
def sizes_kernel(rules, rows, ids, names, out_size):
    """The sizes of some rules as ``plant_kernel`` returns them.

    O(N).  Twin: tests/naive/grammar.py::in_order.
    """
    for i in range(rows.shape[0]):
        _measure(rules, rows[i], ids, names, out_size, i)


@kernel
def offsets_kernel(size, place):
    """The offsets of rules of these sizes, each at its place; sizes int32 [R, 4], place int64 [R].

    Returns int64 first_src, first_tgt, first_sparse, first_link [R + 1]. O(R).
    Twin: tests/naive/grammar.py::in_order.
    """
    num_rules = place.shape[0]
    first_src, first_tgt = np.empty(num_rules + 1, np.int64), np.empty(num_rules + 1, np.int64)
    first_sparse, first_link = np.empty(num_rules + 1, np.int64), np.empty(num_rules + 1, np.int64)
    rule = np.empty(num_rules, np.uint64)  # at each place
    for r in range(num_rules):
        rule[np.uint64(place[r])] = r
    src, tgt, sparse, link = 0, 0, 0, 0
    for p in range(num_rules):
        first_src[p], first_tgt[p], first_sparse[p], first_link[p] = src, tgt, sparse, link
        r = rule[p]
        src += size[r, SRC]
        tgt += size[r, TGT]
        sparse += size[r, SPARSE]
        link += size[r, LINK]
    first_src[num_rules], first_tgt[num_rules] = src, tgt
    first_sparse[num_rules], first_link[num_rules] = sparse, link
    return first_src, first_tgt, first_sparse, first_link


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
def order_kernel(nodes, key, size):
    """Number the nodes of a trie breadth-first, siblings by symbol; order rules by node and by rank.

    nodes  Nodes         T nodes
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


@leaf
def _copy_symbols(symbol, begin, end, ids, out_symbol, at):
    """Copy a run of symbols, with shared ids."""
    # Unsigned, because numba tests a signed index for being negative in every iteration.
    size, source, target = np.uint64(end - begin), np.uint64(begin), np.uint64(at)
    if ids.shape[0] > 0:
        for k in range(size):
            out_symbol[target + k] = ids[symbol[source + k]]
    else:
        for k in range(size):
            out_symbol[target + k] = symbol[source + k]


@leaf
def _copy_links(link, begin, end, out_link, at):
    size, source, target = np.uint64(end - begin), np.uint64(begin), np.uint64(at)
    for k in range(size):
        out_link[target + k, 0] = link[source + k, 0]
        out_link[target + k, 1] = link[source + k, 1]


@leaf
def _copy_columns(dense, row, size, column, out_dense, at):
    source, target = np.uint64(row), np.uint64(at)
    for i in range(np.uint64(size)):
        for d in range(column.shape[0]):
            value = np.float32(0)
            if column[d] >= 0:
                value = dense[source + i, np.uint64(column[d])]
            out_dense[target + i, d] = value


@leaf
def _copy_run(rules, r, size, ids, names, column, p, out):
    """Copy the rules from r on to the places from p on."""
    _copy_symbols(rules.lhs, r, r + size, ids.lhs, out.lhs, p)
    begin, end = rules.first_src[r], rules.first_src[r + size]
    _copy_symbols(rules.src, begin, end, ids.src, out.src, out.first_src[p])
    begin, end = rules.first_tgt[r], rules.first_tgt[r + size]
    _copy_symbols(rules.tgt, begin, end, ids.tgt, out.tgt, out.first_tgt[p])
    _copy_links(rules.link, rules.first_link[r], rules.first_link[r + size], out.link, out.first_link[p])
    _copy_columns(rules.dense, r, size, column, out.dense, p)
    if rules.first_sparse[r] == rules.first_sparse[r + size]:
        return
    at = out.first_sparse[p]
    for i in range(size):
        for k in range(rules.first_sparse[r + i], rules.first_sparse[r + i + 1]):
            name = _shared(ids.name, rules.sparse_name[k])
            d = _column_of(names, name)
            if d >= 0:
                out.dense[p + i, d] = rules.sparse_value[k]
            else:
                out.sparse_name[at] = name
                out.sparse_value[at] = rules.sparse_value[k]
                at += 1


@kernel
def copy_rules_kernel(rules, rows, ids, names, column, place, out_rules):
    """Copy rules to their places, with shared ids.

    rules      Rules
    rows       int64 [R]  the rules
    ids        IdMaps
    names      int32 [D]  columns of the result; a sparse feature that is one of them moves there
    column     int64 [D]  column of ``rules`` for each of those, or -1
    place      int64 [R]
    out_rules  Rules      written, except for the offsets, which are given

    O(N).  Twin: tests/naive/grammar.py::in_order.
    """
    i = 0
    while i < rows.shape[0]:
        # Runs of rules that stay together are copied as a whole.
        end = i + 1
        while end < rows.shape[0] and rows[end] == rows[end - 1] + 1 and place[end] == place[end - 1] + 1:
            end += 1
        _copy_run(rules, rows[i], end - i, ids, names, column, place[i], out_rules)
        i = end


@leaf
def _find_unknown(first, symbol, rows, ids, out_symbol):
    """Write unknown symbols, as far as there is room; returns their number."""
    used = 0
    for i in range(rows.shape[0]):
        for k in range(first[rows[i]], first[rows[i] + 1]):
            if ids[symbol[k]] == UNKNOWN:
                if used < out_symbol.shape[0]:
                    out_symbol[used] = symbol[k]
                used += 1
    return used


@kernel
def unknown_ids_kernel(first, symbol, rows, ids):
    """The symbols of some rows of (first, symbol) whose shared id in int32 ``ids`` is UNKNOWN.

    Returns int32 symbols, with repetitions. O(N).  Twin: tests/naive/grammar.py::unknown.
    """
    out = np.empty(0, np.int32)
    used = _find_unknown(first, symbol, rows, ids, out)
    if used > 0:
        out = np.empty(used, np.int32)
        _find_unknown(first, symbol, rows, ids, out)
    return out
