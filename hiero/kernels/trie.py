"""Source sides under a trie, and which of its nodes a sentence can reach."""

import numpy as np

from hiero._jit import kernel
from hiero.symbols import is_gap


@kernel
def edge_slot(parent, symbol, mask):
    """Where to look first for the child of a node by a symbol."""
    code = (np.uint64(parent) * np.uint64(0x9E3779B97F4A7C15)) ^ (
        np.uint64(symbol + (1 << 31)) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    return np.int64((code ^ (code >> np.uint64(31))) & np.uint64(mask))


@kernel
def grow_trie_kernel(first_src, src, slot, out_parent, out_symbol, out_depth, out_node):
    """Enter source sides into a trie, nodes numbered as they come.

    first_src   int64 [R + 1]  source side of rule r: src[first_src[r]:first_src[r + 1]]
    src         int32 [N]
    slot        int32 [2 ** k] scratch, all -1, at least twice as long as there are nodes
    out_parent  int32 [T]      written; T is at most N + 1
    out_symbol  int32 [T]      written
    out_depth   int32 [T]      written
    out_node    int32 [R]      written; where the source side of a rule ends

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
