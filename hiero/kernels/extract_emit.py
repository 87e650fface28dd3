"""From remembered patterns to a table of rules."""

import numpy as np

from hiero._jit import kernel
from hiero.kernels.extract_tables import GAP, LEADING, NUM_FEATURES, TRAILING


@kernel
def rule_room_kernel(memory, found, out_room):
    """How much room the rules of some patterns take: rules, source symbols, target symbols, links.

    memory    Memory
    found     int32 [P]  patterns
    out_room  int64 [4]  written

    O(rules).  Twin: tests/naive/extract.py::extract.
    """
    out_room[:] = 0
    for entry in found:
        first, last = memory.rule[entry, 0], memory.rule[entry, 1]
        if first == last:
            continue
        out_room[0] += last - first
        out_room[1] += (last - first) * memory.shape[entry, 0]
        for rule in range(first, last):
            edge = memory.edge[rule]
            out_room[1] += (edge & LEADING) // LEADING + (edge & TRAILING) // TRAILING
        out_room[2] += memory.first_tgt[last] - memory.first_tgt[first]
        out_room[3] += memory.first_link[last] - memory.first_link[first]


@kernel
def emit_rules_kernel(memory, found, gap, out_first_src, out_src, out_first_tgt, out_tgt, out_dense,
                      out_first_link, out_link):
    """Write the rules of some patterns one after the other.

    memory          Memory
    found           int32 [P]      patterns
    gap             int32 [3]      the codes of gaps 1 and 2, at their places
    out_first_src   int64 [R + 1]  written, as all that follows; lengths as rule_room_kernel says
    out_src         int32 [.]      words stay numbered as in the bitext
    out_first_tgt   int64 [R + 1]
    out_tgt         int32 [.]
    out_dense       float32 [R, 7]
    out_first_link  int64 [R + 1]
    out_link        int16 [., 2]

    O(what is written).  Twin: tests/naive/extract.py::extract.
    """
    rules, src, tgt, links = 0, 0, 0, 0
    out_first_src[0] = 0
    out_first_tgt[0] = 0
    out_first_link[0] = 0
    for entry in found:
        for rule in range(memory.rule[entry, 0], memory.rule[entry, 1]):
            edge, gaps = memory.edge[rule], 0
            if edge & LEADING:
                gaps += 1
                out_src[src] = gap[gaps]
                src += 1
            for k in range(memory.shape[entry, 0]):
                symbol = memory.symbol[entry, k]
                if symbol == GAP:
                    gaps += 1
                    symbol = gap[gaps]
                out_src[src] = symbol
                src += 1
            if edge & TRAILING:
                out_src[src] = gap[gaps + 1]
                src += 1
            for k in range(memory.first_tgt[rule], memory.first_tgt[rule + 1]):
                symbol = memory.tgt[k]
                out_tgt[tgt] = gap[-symbol] if symbol < 0 else symbol
                tgt += 1
            for k in range(NUM_FEATURES):
                out_dense[rules, k] = memory.feature[rule, k]
            for k in range(memory.first_link[rule], memory.first_link[rule + 1]):
                out_link[links, 0] = memory.link[k, 0]
                out_link[links, 1] = memory.link[k, 1]
                links += 1
            rules += 1
            out_first_src[rules] = src
            out_first_tgt[rules] = tgt
            out_first_link[rules] = links
