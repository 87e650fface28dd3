# mypy: ignore-errors
"""Rules cut into blocks with orientations, and the features that need no model of them.

``docs/reordering.md`` has drawings.

The target side of a rule is cut into blocks. A gap is one. Words between gaps are cut where the source words
they are linked to lie in another run of source words (those between gaps): a block of words has links into
the same first and last run. Words without links belong to the block before them, or else to the one after;
words between gaps none of which has a link are skipped. A block covers the places of the source side from the
first to the last that it is linked to; a gap covers its own place.

Seen from the block before it in the rule, a block is monotone if it follows, swapped if it precedes, with
nothing in between but source words without links; else it is other. The first block of a rule has none before
it, and no orientation. All this depends on the rule alone.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap_index
from hiero.reordering.table_kernels import MONOTONE, OTHER, SWAP

# Columns of an oriented block: its class; whether it is a gap; the run and the place in that run of its first
# source symbol; those of its last one. Of gap k both are runs k - 1 and k, between which it lies.
CLASS, GAP, LOW_RUN, LOW, HIGH_RUN, HIGH = 0, 1, 2, 3, 4, 5
COLUMNS = 6


class Blocks(NamedTuple):
    """The oriented blocks of rules, B in all.

    place  int32 [R]      rule r has the blocks first[place[r]] ... first[place[r] + 1] - 1; -1: not cut yet
    first  int64 [D + 1]
    rule   int32 [B]
    block  int32 [B, 6]   columns as above
    words  int32 [B, 4]   target symbols of the block, half-open; first and last source symbol
    before_block, before_words  the same of the block before it
    """

    place: np.ndarray
    first: np.ndarray
    rule: np.ndarray
    block: np.ndarray
    words: np.ndarray
    before_block: np.ndarray
    before_words: np.ndarray


@leaf
def lay_out_rule(src, first_src, end_src, out_run, out_offset):
    """For each source symbol its run, and its place in it; a gap has the run that it ends."""
    run, offset = 0, 0
    for i in range(end_src - first_src):
        out_run[i], out_offset[i] = run, offset
        if src[first_src + i] < 0:
            run += 1
            offset = 0
        else:
            offset += 1


@leaf
def class_between(src, first_src, linked, low_before, high_before, low, high):
    """The class of a block at source symbols low ... high, seen from the block before it."""
    if high_before < low:
        begin, end, found = high_before + 1, low, MONOTONE
    elif high < low_before:
        begin, end, found = high + 1, low_before, SWAP
    else:
        return OTHER
    for i in range(begin, end):
        if linked[i] or src[first_src + i] < 0:
            return OTHER
    return found


@leaf
def cut_rule(
    src,
    tgt,
    link,
    first_src,
    num_src,
    first_tgt,
    num_tgt,
    first_link,
    end_link,
    linked,
    span,
    run,
    offset,
    out_block,
    out_words,
):
    """Cut a rule into blocks, oriented or not; returns their number.

    linked     bool [.]      scratch; of source symbols
    span       int32 [., 2]  scratch; first and last source symbol that a target word is linked to
    run        int32 [.]     written; with offset int32 of ``lay_out_rule``
    out_block  int32 [., 6]  written; the class of the first block is -1
    out_words  int32 [., 4]  written; as in Blocks
    """
    lay_out_rule(src, first_src, first_src + num_src, run, offset)
    for i in range(num_src):
        linked[i] = False
    for j in range(num_tgt):
        span[j, 0], span[j, 1] = num_src, -1
    for k in range(first_link, end_link):
        i, j = link[k, 0], link[k, 1]
        if src[first_src + i] >= 0 and tgt[first_tgt + j] >= 0:
            linked[i] = True
            span[j, 0], span[j, 1] = min(span[j, 0], i), max(span[j, 1], i)
    n = 0
    is_open = False  # whether the last block consists of words and may grow
    begin = 0  # start of words without links that have no block yet
    for j in range(num_tgt):
        if tgt[first_tgt + j] < 0:
            place = 0
            index = gap_index(tgt[first_tgt + j])
            for i in range(num_src):
                if src[first_src + i] < 0 and gap_index(src[first_src + i]) == index:
                    place = i
            out_block[n, GAP] = 1
            out_words[n, 0], out_words[n, 1], out_words[n, 2], out_words[n, 3] = j, j + 1, place, place
            n += 1
            is_open = False
            begin = j + 1
            continue
        low, high = span[j, 0], span[j, 1]
        if high < 0:
            if is_open:
                out_words[n - 1, 1] = j + 1
            continue
        if is_open and run[low] == run[out_words[n - 1, 2]] and run[high] == run[out_words[n - 1, 3]]:
            out_words[n - 1, 1] = j + 1
            out_words[n - 1, 2] = min(out_words[n - 1, 2], low)
            out_words[n - 1, 3] = max(out_words[n - 1, 3], high)
            continue
        out_block[n, GAP] = 0
        out_words[n, 0], out_words[n, 1] = j if is_open else begin, j + 1
        out_words[n, 2], out_words[n, 3] = low, high
        n += 1
        is_open = True
    for b in range(n):
        low, high = out_words[b, 2], out_words[b, 3]
        out_block[b, LOW_RUN], out_block[b, LOW] = run[low], offset[low]
        out_block[b, HIGH_RUN], out_block[b, HIGH] = run[high], offset[high]
        out_block[b, CLASS] = -1
        if b > 0:
            out_block[b, CLASS] = class_between(
                src, first_src, linked, out_words[b - 1, 2], out_words[b - 1, 3], low, high
            )
    return n


@kernel
def cut_rules_kernel(batch_rule, rules):
    """Cut all rules that occur into oriented ``Blocks``.

    batch_rule  int32 [P]
    rules       Rules

    O(P + symbols of the rules ** 2).  Twin: tests/naive/reorder.py::blocks.
    """
    place = np.full(rules.lhs.shape[0], -1, np.int32)
    count, longest, symbols = np.int64(0), np.int64(1), np.int64(0)
    for p in range(batch_rule.shape[0]):
        r = batch_rule[p]
        if place[r] < 0:
            place[r] = count
            count += 1
            size = rules.first_tgt[r + 1] - rules.first_tgt[r]
            symbols += size
            longest = max(longest, size, rules.first_src[r + 1] - rules.first_src[r])
    first, rule = np.zeros(count + 1, np.int64), np.empty(symbols, np.int32)
    block, words = np.empty((symbols, COLUMNS), np.int32), np.empty((symbols, 4), np.int32)
    before_block, before_words = np.empty_like(block), np.empty_like(words)
    linked, span = np.empty(longest, np.bool_), np.empty((longest, 2), np.int32)
    run, offset = np.empty(longest, np.int32), np.empty(longest, np.int32)
    here, covered = np.empty((longest, COLUMNS), np.int32), np.empty((longest, 4), np.int32)
    src, tgt, link = rules.src, rules.tgt, rules.link
    first_src, first_tgt, first_link = rules.first_src, rules.first_tgt, rules.first_link
    n, done = np.int64(0), np.int64(0)
    for p in range(batch_rule.shape[0]):
        r = np.int64(batch_rule[p])
        if place[r] != done:
            continue
        num_blocks = cut_rule(
            src,
            tgt,
            link,
            first_src[r],
            first_src[r + 1] - first_src[r],
            first_tgt[r],
            first_tgt[r + 1] - first_tgt[r],
            first_link[r],
            first_link[r + 1],
            linked,
            span,
            run,
            offset,
            here,
            covered,
        )
        for b in range(1, num_blocks):
            rule[n] = r
            for column in range(COLUMNS):
                block[n, column] = here[b, column]
                before_block[n, column] = here[b - 1, column]
            for column in range(4):
                words[n, column] = covered[b, column]
                before_words[n, column] = covered[b - 1, column]
            n += 1
        done += 1
        first[done] = n
    return Blocks(
        place,
        first,
        rule[:n].copy(),
        block[:n].copy(),
        words[:n].copy(),
        before_block[:n].copy(),
        before_words[:n].copy(),
    )


@leaf
def place_in_sentence(rule_start, split_1, split_2, run, offset):
    """The place of a source symbol of a rule in the sentence: its run begins after the gap before it."""
    if run == 0:
        return rule_start + offset
    return (split_1 if run == 1 else split_2) + offset


@leaf
def span_of_block(start, split, p, block, n):
    """The span of the sentence that a block of a rule application covers."""
    if block[n, GAP] == 1:
        k = block[n, LOW_RUN]
        return np.int64(split[p, 2 * k]), np.int64(split[p, 2 * k + 1])
    low = place_in_sentence(start[p], split[p, 1], split[p, 3], block[n, LOW_RUN], block[n, LOW])
    high = place_in_sentence(start[p], split[p, 1], split[p, 3], block[n, HIGH_RUN], block[n, HIGH])
    return np.int64(low), np.int64(high) + 1


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
