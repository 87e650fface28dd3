# mypy: ignore-errors
"""Find nodes of a trie of source sides: children, and nodes that a sentence matches."""

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import is_gap


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


@kernel
def rows_kernel(first_rule, node):
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
