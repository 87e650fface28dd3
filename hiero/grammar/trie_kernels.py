# mypy: ignore-errors
"""Build a trie of source sides, and find the nodes that a sentence matches."""

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap, gap_index, gap_label, is_gap


@leaf
def edge_slot(parent, symbol, mask):
    """The first slot to look at for the child of a node by a symbol."""
    code = (np.uint64(parent) * np.uint64(0x9E3779B97F4A7C15)) ^ (
        np.uint64(symbol + (1 << 31)) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    return np.int64((code ^ (code >> np.uint64(31))) & np.uint64(mask))


@kernel
def grow_trie_kernel(first_src, src, slot, out_parent, out_symbol, out_depth, out_node):
    """Enter source sides into a trie, nodes numbered in the order of creation.

    first_src   int64 [R + 1]  source side of rule r: src[first_src[r]:first_src[r + 1]]
    src         int32 [N]
    slot        int32 [2 ** k] scratch, all -1, at least twice as long as the number of nodes
    out_parent  int32 [T]      written; T is at most N + 1
    out_symbol  int32 [T]      written
    out_depth   int32 [T]      written
    out_node    int32 [R]      written; node of the source side of each rule

    Returns the number of nodes. O(N).  Twin: tests/naive/grammar.py::trie.
    """
    mask = slot.shape[0] - 1
    out_parent[0], out_symbol[0], out_depth[0] = -1, 0, 0
    num_nodes = 1
    for r in range(first_src.shape[0] - 1):
        node = np.int64(0)
        for k in range(first_src[r], first_src[r + 1]):
            symbol = np.int64(src[k])
            at = edge_slot(node, symbol, mask)
            child = np.int64(slot[at])
            while child >= 0 and (out_parent[child] != node or out_symbol[child] != symbol):
                at = (at + 1) & mask
                child = np.int64(slot[at])
            if child < 0:
                child = num_nodes
                slot[at] = child
                out_parent[child] = node
                out_symbol[child] = symbol
                out_depth[child] = out_depth[node] + 1
                num_nodes += 1
            node = child
        out_node[r] = node
    return num_nodes


@kernel
def rank_gaps_kernel(src, rank):
    """Replace the labels of gaps by their ranks.

    src   int32 [N]  written
    rank  int32 [L]  of each label

    O(N).  Twin: tests/naive/grammar.py::ranked.
    """
    for k in range(src.shape[0]):
        if is_gap(src[k]):
            src[k] = gap(rank[gap_label(src[k])], gap_index(src[k]))


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
def match_kernel(trie, src, span_limit):
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
