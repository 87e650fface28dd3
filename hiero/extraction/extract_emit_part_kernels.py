"""Copy the rules of cached patterns to a table."""

import numpy as np

from hiero.core.jit import kernel
from hiero.extraction.table_kernels import GAP, LEADING, NUM_FEATURES, TRAILING


@kernel
def rule_room_kernel(patterns, store, found, out_room):
    """Count the room that the rules of some patterns take: rules, source symbols, target symbols, links.

    patterns  Patterns
    store     Store
    found     int32 [P]  patterns
    out_room  int64 [4]  written

    O(rules).  Twin: tests/naive/extract.py::extract.
    """
    for k in range(4):
        out_room[k] = 0
    for entry in found:
        first, last = patterns.rule[entry, 0], patterns.rule[entry, 1]
        if first == last:
            continue
        out_room[0] += last - first
        out_room[1] += (last - first) * patterns.shape[entry, 0]
        for rule in range(first, last):
            edge = store.edge[rule]
            out_room[1] += (edge & LEADING) // LEADING + (edge & TRAILING) // TRAILING
        out_room[2] += store.first_tgt[last] - store.first_tgt[first]
        out_room[3] += store.first_link[last] - store.first_link[first]


@kernel
def emit_rules_kernel(
    patterns,
    store,
    found,
    out_first_src,
    out_src,
    out_first_tgt,
    out_tgt,
    out_dense,
    out_first_link,
    out_link,
):
    """Write the rules of some patterns one after the other.

    patterns        Patterns
    store           Store
    found           int32 [P]      patterns
    out_first_src   int64 [R + 1]  written, as all that follows; lengths from rule_room_kernel
    out_src         int32 [.]      words stay numbered as in the bitext; gap g is -g
    out_first_tgt   int64 [R + 1]
    out_tgt         int32 [.]
    out_dense       float32 [R, 7]
    out_first_link  int64 [R + 1]
    out_link        int16 [., 2]

    O(output).  Twin: tests/naive/extract.py::extract.
    """
    rules, src, tgt, links = 0, 0, 0, 0
    out_first_src[0] = 0
    out_first_tgt[0] = 0
    out_first_link[0] = 0
    for entry in found:
        for rule in range(patterns.rule[entry, 0], patterns.rule[entry, 1]):
            edge, gaps = store.edge[rule], 0
            if edge & LEADING:
                gaps += 1
                out_src[src] = -gaps
                src += 1
            for k in range(patterns.shape[entry, 0]):
                symbol = patterns.symbol[entry, k]
                if symbol == GAP:
                    gaps += 1
                    symbol = np.int32(-gaps)
                out_src[src] = symbol
                src += 1
            if edge & TRAILING:
                out_src[src] = -gaps - 1
                src += 1
            for k in range(store.first_tgt[rule], store.first_tgt[rule + 1]):
                out_tgt[tgt] = store.tgt[k]
                tgt += 1
            for k in range(NUM_FEATURES):
                out_dense[rules, k] = store.feature[rule, k]
            for k in range(store.first_link[rule], store.first_link[rule + 1]):
                out_link[links, 0] = store.link[k, 0]
                out_link[links, 1] = store.link[k, 1]
                links += 1
            rules += 1
            out_first_src[rules] = src
            out_first_tgt[rules] = tgt
            out_first_link[rules] = links
