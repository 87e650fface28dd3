# mypy: ignore-errors
"""Features of the blocks of rule applications that need no model: their classes and words, and distortion."""

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.reordering.feature_kernels import CLASS, GAP, span_of_block


@kernel
def distortion_kernel(batch, blocks, out_value):
    """The source words that are jumped over between consecutive blocks of rule applications.

    batch      EdgeBatch
    blocks     Blocks
    out_value  float64 [P]  written; the sum of distances from the end of a block to the start of the next one

    O(blocks of the applications).  Twin: tests/naive/reorder.py::distortion.
    """
    start, split = batch.start, batch.split
    for p in range(batch.rule.shape[0]):
        d = blocks.place[batch.rule[p]]
        out_value[p] = 0.0
        for n in range(blocks.first[d], blocks.first[d + 1]):
            _, end_before = span_of_block(start, split, p, blocks.before_block, n)
            low, _ = span_of_block(start, split, p, blocks.block, n)
            out_value[p] += abs(low - end_before)


@leaf
def add_item(out_item, out_count, begin, n, item):
    """Count an item among those from ``begin`` to ``n``; returns the end of them."""
    for k in range(begin, n):
        if out_item[k] == item:
            out_count[k] += 1.0
            return n
    out_item[n], out_count[n] = item, 1.0
    return n + 1


@kernel
def orientation_items_kernel(batch, blocks, rules, out_first, out_item, out_count):
    """The classes of the blocks of rule applications, each alone and with the words at the edges of a block.

    batch      EdgeBatch
    blocks     Blocks
    rules      Rules
    out_first  int64 [P + 1]  written
    out_item   int32 [.]      written, with room for five items a block: a class, plus 3 times the edge (first
                              source word, last one, first target word, last one), plus 12 times the word + 1;
                              of a class alone without the rest
    out_count  float64 [.]    written; how often the item occurs in the application

    Returns the number of items. Target words of a gap are not known.
    O(blocks of the applications * items of one).  Twin: tests/naive/reorder.py::orientation_items.
    """
    start, split, block, words, src = batch.start, batch.split, blocks.block, blocks.words, batch.src
    used = np.int64(0)
    out_first[0] = 0
    for p in range(batch.rule.shape[0]):
        begin, d = used, blocks.place[batch.rule[p]]
        for n in range(blocks.first[d], blocks.first[d + 1]):
            label = np.int64(block[n, CLASS])
            low, high = span_of_block(start, split, p, block, n)
            used = add_item(out_item, out_count, begin, used, label)
            used = add_item(out_item, out_count, begin, used, (np.int64(src[low]) + 1) * 12 + label)
            used = add_item(out_item, out_count, begin, used, (np.int64(src[high - 1]) + 1) * 12 + 3 + label)
            if block[n, GAP] == 0:
                tgt = rules.first_tgt[blocks.rule[n]]
                one, two = np.int64(rules.tgt[tgt + words[n, 0]]), np.int64(rules.tgt[tgt + words[n, 1] - 1])
                used = add_item(out_item, out_count, begin, used, (one + 1) * 12 + 6 + label)
                used = add_item(out_item, out_count, begin, used, (two + 1) * 12 + 9 + label)
        out_first[p + 1] = used
    return used
