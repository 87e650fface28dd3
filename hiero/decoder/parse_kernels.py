# mypy: ignore-errors
"""Find every way the grammar's source sides cover the sentence: CKY over the trie, without scores.

The result is a forest of *bundles*. A bundle is one source pattern over one span with its gaps in given
cells, together with all rules that share the pattern: cube pruning explores it as one object, and features
of spans are computed on it. A cell is a category over a span.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.array_kernels import with_free_row
from hiero.core.jit import kernel
from hiero.core.symbol_kernels import gap, gap_label
from hiero.grammar.trie_kernels import find_child


class Parse(NamedTuple):
    """C cells, bottom-up: tails come before heads; B bundles in the order of their cells.

    cell          int32 [C, 3]  category, start, end
    first_bundle  int64 [C + 1] bundles of cell c: first_bundle[c] ... first_bundle[c + 1] - 1
    rules         int64 [B, 2]  first rule and number of rules; the rules of a bundle are consecutive
    tail          int32 [B, 2]  cells that fill gap 1 and gap 2; -1 for none
    """

    cell: np.ndarray
    first_bundle: np.ndarray
    rules: np.ndarray
    tail: np.ndarray


NODE, TAIL_1, TAIL_2 = 0, 1, 2  # columns of an item
FIRST, SIZE, NEXT = 0, 1, 4  # columns of a bundle that was found; its tails are columns 2 and 3
LHS, LEFT, RIGHT, RULE, COUNT = 0, 1, 2, 3, 4  # columns of a glue rule


@kernel
def _chain_bundle(found, at, chain, label, first, size, tail_1, tail_2):
    """Write row ``at`` of ``found`` and link it after the last bundle of its category."""
    found[at, FIRST] = first
    found[at, SIZE] = size
    found[at, 2] = tail_1
    found[at, 3] = tail_2
    found[at, NEXT] = -1
    if chain[label, 0] < 0:
        chain[label, 0] = at
    else:
        found[chain[label, 1], NEXT] = at
    chain[label, 1] = at


@kernel
def _scan_word(trie, word, item, num_items, first, last):
    """Append the items ``first`` ... ``last - 1`` advanced by a word."""
    for old in range(first, last):
        child = find_child(trie, np.int64(item[old, NODE]), word)
        if child >= 0:
            item = with_free_row(item, num_items)
            item[num_items, NODE] = child
            item[num_items, TAIL_1] = item[old, TAIL_1]
            item[num_items, TAIL_2] = item[old, TAIL_2]
            num_items += 1
    return item, num_items


@kernel
def _scan_gap(trie, cell_at, item, num_items, first, last):
    """Append the items ``first`` ... ``last - 1`` advanced by each gap that has a cell (by label)."""
    for old in range(first, last):
        node = item[old, NODE]
        for child in range(trie.first_child[node], trie.first_child[node + 1]):
            symbol = trie.symbol[child]
            if symbol >= 0:
                break  # gaps come first
            cell = cell_at[gap_label(symbol)]
            if cell >= 0:
                item = with_free_row(item, num_items)
                item[num_items, NODE] = child
                if item[old, TAIL_1] < 0:
                    item[num_items, TAIL_1] = cell
                    item[num_items, TAIL_2] = -1
                else:
                    item[num_items, TAIL_1] = item[old, TAIL_1]
                    item[num_items, TAIL_2] = cell
                num_items += 1
    return item, num_items


@kernel
def parse_kernel(src, trie, lhs, glue, label_order, span_limit):
    """Find all bundles of a sentence.

    src          int32 [n]
    trie, lhs    the rules' source sides, and their categories
    glue         int64 [G, 5]  rules that ignore the limit and start at word 0: category, category on the
                 left or -1, category on the right, first rule, number of rules
    label_order  int32 [L]     categories so that unary rules lead from earlier to later ones
    span_limit   longest span of a rule, 1 ... n

    Returns a Parse. Time and memory grow linearly with n for a fixed limit.
    Twin: tests/naive/search.py::parse.
    """
    num_words = src.shape[0]
    num_labels = label_order.shape[0]
    rank = np.empty(num_labels, np.int32)
    for r in range(num_labels):
        rank[label_order[r]] = r

    # Cells by start, length and label; those that start at word 0 also by end, beyond the limit.
    cell_at = np.full((num_words, span_limit + 1, num_labels), -1, np.int32)
    cell_from_0 = np.full((num_words + 1, num_labels), -1, np.int32)
    # Dotted items: trie node, cells of the gaps so far. Those of one span are adjacent.
    span_items = np.zeros((num_words, span_limit + 1, 2), np.int64)
    item = np.empty((1024, 3), np.int32)
    item[0, NODE] = 0
    item[0, TAIL_1] = -1
    item[0, TAIL_2] = -1
    root = np.int64(0)
    none = np.int64(-1)
    num_items = np.int64(1)  # item 0 is the root of the trie, over nothing

    cell = np.empty((256, 3), np.int32)
    first_bundle = np.zeros((257, 1), np.int64)
    num_cells = np.int64(0)
    rules = np.empty((1024, 2), np.int64)
    tails = np.empty((1024, 2), np.int32)
    num_bundles = np.int64(0)

    # Bundles found for the current span, chained by category, since cells are made category by category.
    found = np.empty((1024, 5), np.int64)
    chain = np.full((num_labels, 2), -1, np.int64)

    for end in range(1, num_words + 1):
        lowest = max(0, end - span_limit)
        # After the spans within the limit, only glue reaches back to word 0.
        num_spans = end - lowest + (1 if lowest > 0 and glue.shape[0] > 0 else 0)
        for step in range(num_spans):
            beyond = step == end - lowest
            start = 0 if beyond else end - 1 - step
            span = end - start
            begin = num_items
            num_found = np.int64(0)

            if not beyond:
                first, last = (
                    (0, 1) if span == 1 else (span_items[start, span - 1, 0], span_items[start, span - 1, 1])
                )
                item, num_items = _scan_word(trie, src[end - 1], item, num_items, first, last)
                for middle in range(start + 1, end):
                    first = span_items[start, middle - start, 0]
                    last = span_items[start, middle - start, 1]
                    item, num_items = _scan_gap(
                        trie, cell_at[middle, end - middle], item, num_items, first, last
                    )

            for at in range(begin, num_items):
                rule = trie.first_rule[item[at, NODE]]
                last_rule = trie.first_rule[item[at, NODE] + 1]
                while rule < last_rule:
                    label = np.int64(lhs[rule])
                    first_rule = rule
                    while rule < last_rule and lhs[rule] == label:
                        rule += 1
                    found = with_free_row(found, num_found)
                    _chain_bundle(
                        found,
                        num_found,
                        chain,
                        label,
                        first_rule,
                        rule - first_rule,
                        np.int64(item[at, TAIL_1]),
                        np.int64(item[at, TAIL_2]),
                    )
                    num_found += 1
            if start == 0:
                for g in range(glue.shape[0]):
                    for middle in range(max(1, lowest), end if glue[g, LEFT] >= 0 else 0):
                        left = np.int64(cell_from_0[middle, glue[g, LEFT]])
                        right = np.int64(cell_at[middle, end - middle, glue[g, RIGHT]])
                        if left >= 0 and right >= 0:
                            found = with_free_row(found, num_found)
                            _chain_bundle(
                                found,
                                num_found,
                                chain,
                                glue[g, LHS],
                                glue[g, RULE],
                                glue[g, COUNT],
                                left,
                                right,
                            )
                            num_found += 1

            # Category by category; a new cell is at once used by the unary rules that apply to it.
            for r in range(num_labels):
                label = np.int64(label_order[r])
                if chain[label, 0] < 0:
                    continue
                cell = with_free_row(cell, num_cells)
                cell[num_cells, 0] = label
                cell[num_cells, 1] = start
                cell[num_cells, 2] = end
                if start == 0:
                    cell_from_0[end, label] = num_cells
                if not beyond:
                    cell_at[start, span, label] = num_cells
                at = chain[label, 0]
                while at >= 0:
                    rules = with_free_row(rules, num_bundles)
                    tails = with_free_row(tails, num_bundles)
                    rules[num_bundles, 0] = found[at, FIRST]
                    rules[num_bundles, 1] = found[at, SIZE]
                    tails[num_bundles, 0] = found[at, 2]
                    tails[num_bundles, 1] = found[at, 3]
                    num_bundles += 1
                    at = found[at, NEXT]
                chain[label, 0] = -1

                if start == 0:
                    for g in range(glue.shape[0]):
                        if glue[g, LEFT] < 0 and glue[g, RIGHT] == label and rank[glue[g, LHS]] > r:
                            found = with_free_row(found, num_found)
                            _chain_bundle(
                                found,
                                num_found,
                                chain,
                                glue[g, LHS],
                                glue[g, RULE],
                                glue[g, COUNT],
                                num_cells,
                                none,
                            )
                            num_found += 1
                node = np.int64(-1) if beyond else find_child(trie, root, gap(label, 1))
                if node >= 0:
                    rule = trie.first_rule[node]
                    last_rule = trie.first_rule[node + 1]
                    while rule < last_rule:
                        parent = np.int64(lhs[rule])
                        first_rule = rule
                        while rule < last_rule and lhs[rule] == parent:
                            rule += 1
                        if rank[parent] > r:  # else there would be a cycle
                            found = with_free_row(found, num_found)
                            _chain_bundle(
                                found,
                                num_found,
                                chain,
                                parent,
                                first_rule,
                                rule - first_rule,
                                num_cells,
                                none,
                            )
                            num_found += 1
                    # Items that begin with a gap over the whole span.
                    item = with_free_row(item, num_items)
                    item[num_items, NODE] = node
                    item[num_items, TAIL_1] = num_cells
                    item[num_items, TAIL_2] = -1
                    num_items += 1
                num_cells += 1
                first_bundle = with_free_row(first_bundle, num_cells)
                first_bundle[num_cells, 0] = num_bundles
            if not beyond:
                span_items[start, span, 0] = begin
                span_items[start, span, 1] = num_items

    return Parse(
        cell[:num_cells].copy(),
        first_bundle[: num_cells + 1, 0].copy(),
        rules[:num_bundles].copy(),
        tails[:num_bundles].copy(),
    )


@kernel
def applications_kernel(parse, first, out_rule, out_start, out_end, out_split):
    """Write the applications of rules of a parse, P in all, bundle by bundle.

    parse               Parse
    first               int64 [B + 1]  the first application of each bundle
    out_rule            int32 [P]      written, as the rest: arrays of an EdgeBatch
    out_start, out_end  int32 [P]
    out_split           int32 [P, 4]

    O(P).  Twin: tests/naive/search.py::applications.
    """
    for c in range(parse.cell.shape[0]):
        start, end = parse.cell[c, 1], parse.cell[c, 2]
        for b in range(parse.first_bundle[c], parse.first_bundle[c + 1]):
            one, two = parse.tail[b, 0], parse.tail[b, 1]
            low_1, high_1, low_2, high_2 = np.int32(-1), np.int32(-1), np.int32(-1), np.int32(-1)
            if one >= 0:
                low_1, high_1 = parse.cell[one, 1], parse.cell[one, 2]
            if two >= 0:
                low_2, high_2 = parse.cell[two, 1], parse.cell[two, 2]
            for p in range(first[b], first[b + 1]):
                out_rule[p] = parse.rules[b, 0] + p - first[b]
                out_start[p], out_end[p] = start, end
                out_split[p, 0], out_split[p, 1], out_split[p, 2], out_split[p, 3] = (
                    low_1,
                    high_1,
                    low_2,
                    high_2,
                )


@kernel
def used_cells_kernel(parse, first_label, out_used):
    """Which cells to keep: those of parts only if they fill a gap of another cell that is kept.

    parse        Parse
    first_label  categories from here on are parts
    out_used     bool [C]  written

    A part matches without the words around it, so that most of its cells have no use. O(B).
    Twin: tests/naive/search.py::used_cells.
    """
    num_cells = parse.cell.shape[0]
    for c in range(num_cells):
        out_used[c] = parse.cell[c, 0] < first_label
    for c in range(num_cells - 1, -1, -1):
        if out_used[c]:
            for b in range(parse.first_bundle[c], parse.first_bundle[c + 1]):
                for t in range(2):
                    if parse.tail[b, t] >= 0:
                        out_used[parse.tail[b, t]] = True
