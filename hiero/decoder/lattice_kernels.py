# mypy: ignore-errors
"""Parse a lattice: as ``parse_kernel``, over the nodes of a graph instead of places between words.

An item has, beside its trie node and its tails, the sum of the features of the arcs that it went along; a
bundle has it, too, so that the same rules over the same span are several bundles if arcs differ in features.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.array_kernels import with_free_row
from hiero.core.hash_kernels import FNV_START, fnv_step
from hiero.core.jit import kernel, leaf
from hiero.core.symbol_kernels import gap, gap_label
from hiero.decoder.parse_kernels import (
    COUNT,
    FIRST,
    LEFT,
    LHS,
    NEXT,
    NODE,
    RIGHT,
    RULE,
    SIZE,
    TAIL_1,
    TAIL_2,
    Parse,
    _chain_bundle,
)
from hiero.grammar.trie_kernels import find_child, find_reached

COST = 3  # column of an item
BUNDLE_COST = 5  # column of a bundle that was found


class LatticeParse(NamedTuple):
    """A parse, and what the arcs of its bundles add up to; row 0 of ``total`` is 0.

    parse  Parse
    cost   int32 [B]       row of ``total``
    total  float64 [C, F]  sums of the features of arcs
    """

    parse: Parse
    cost: np.ndarray
    total: np.ndarray


@leaf
def _hash_row(bits, row):
    code = FNV_START
    for k in range(bits.shape[1]):
        code = fnv_step(code, bits[row, k])
    return code ^ (code >> np.uint64(29))


@kernel
def _larger_slots(bits, num_rows):
    """A hash table of rows with room for as many again."""
    size = 64
    while size < 4 * num_rows:
        size *= 2
    slot = np.full(size, -1, np.int64)
    for row in range(num_rows):
        at = _hash_row(bits, row) & np.uint64(size - 1)
        while slot[at] >= 0:
            at = (at + np.uint64(1)) & np.uint64(size - 1)
        slot[at] = row
    return slot


@kernel
def _add_arc(value, arc, total, slot, num_totals, old):
    """The row of ``total[old] + value[arc]``, which is added if there is none; returns the tables, too."""
    width = total.shape[1]
    plain = True
    for k in range(width):
        plain = plain and value[arc, k] == 0.0
    if plain:
        return total, slot, num_totals, old
    total = with_free_row(total, num_totals)
    for k in range(width):
        total[num_totals, k] = total[old, k] + value[arc, k] + 0.0
    bits = total.view(np.int64)
    if 2 * num_totals + 2 > slot.shape[0]:
        slot = _larger_slots(bits, num_totals)
    mask = np.uint64(slot.shape[0] - 1)
    at = _hash_row(bits, num_totals) & mask
    while slot[at] >= 0:
        row = slot[at]
        same = True
        for k in range(width):
            same = same and total[row, k] == total[num_totals, k]
        if same:
            return total, slot, num_totals, row
        at = (at + np.uint64(1)) & mask
    slot[at] = num_totals
    return total, slot, num_totals + 1, num_totals


@kernel
def _scan_lattice_gap(trie, cell_at, item, num_items, first, last):
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
                item[num_items, COST] = item[old, COST]
                if item[old, TAIL_1] < 0:
                    item[num_items, TAIL_1] = cell
                    item[num_items, TAIL_2] = -1
                else:
                    item[num_items, TAIL_1] = item[old, TAIL_1]
                    item[num_items, TAIL_2] = cell
                num_items += 1
    return item, num_items


@kernel
def _entering(reach, num_nodes):
    """Pairs by their later node: offsets, the earlier nodes, which ascend, and the pairs."""
    first = np.zeros(num_nodes + 1, np.int64)
    for pair in range(reach.node.shape[0]):
        first[reach.node[pair] + 1] += 1
    for v in range(num_nodes):
        first[v + 1] += first[v]
    free = first[:num_nodes].copy()
    start, entry = np.empty(reach.node.shape[0], np.int64), np.empty(reach.node.shape[0], np.int64)
    for u in range(num_nodes):
        for pair in range(reach.first[u], reach.first[u + 1]):
            at = free[reach.node[pair]]
            start[at] = u
            entry[at] = pair
            free[reach.node[pair]] += 1
    return first, start, entry


@kernel
def parse_lattice_kernel(src, arcs, reach, trie, lhs, glue, label_order):
    """Find all bundles of a lattice.

    src          int32 [A]     the words of its arcs
    arcs         Arcs, of N nodes
    reach        Reach         pairs of nodes that a rule may span, those of each arc among them
    trie, lhs    the rules' source sides, and their categories
    glue         int64 [G, 5]  as for ``parse_kernel``; glue starts at node 0
    label_order  int32 [L]     categories so that unary rules lead from earlier to later ones

    Returns a LatticeParse. Cells are from node to node. The parse of a lattice that is a sentence is that of
    ``parse_kernel``. Time grows with pairs, arcs and the rules that match along paths.
    Twin: tests/naive/lattice.py::parse.
    """
    num_nodes, num_pairs = arcs.first.shape[0] - 1, reach.node.shape[0]
    num_labels = label_order.shape[0]
    rank = np.empty(num_labels, np.int32)
    for r in range(num_labels):
        rank[label_order[r]] = r
    first_in, in_start, in_pair = _entering(reach, num_nodes)
    # Arcs by the node that they enter.
    first_arc = np.zeros(num_nodes + 1, np.int64)
    for a in range(arcs.end.shape[0]):
        first_arc[arcs.end[a] + 1] += 1
    for v in range(num_nodes):
        first_arc[v + 1] += first_arc[v]
    free, arc_in = first_arc[:num_nodes].copy(), np.empty(arcs.end.shape[0], np.int64)
    for a in range(arcs.end.shape[0]):
        arc_in[free[arcs.end[a]]] = a
        free[arcs.end[a]] += 1

    cell_at = np.full((num_pairs, num_labels), -1, np.int32)
    cell_from_0 = np.full((num_nodes, num_labels), -1, np.int32)
    here = np.full(num_nodes, -1, np.int64)  # the pair of each node with the end of the spans at hand
    pair_items = np.zeros((num_pairs, 2), np.int64)
    item = np.empty((1024, 4), np.int32)
    item[0, NODE] = 0
    item[0, TAIL_1] = -1
    item[0, TAIL_2] = -1
    item[0, COST] = 0
    root = np.int64(0)
    none = np.int64(-1)
    num_items = np.int64(1)

    total = np.zeros((16, arcs.value.shape[1]), np.float64)
    num_totals = np.int64(1)
    slot = _larger_slots(total.view(np.int64), num_totals)

    cell = np.empty((256, 3), np.int32)
    first_bundle = np.zeros((257, 1), np.int64)
    num_cells = np.int64(0)
    rules = np.empty((1024, 2), np.int64)
    tails = np.empty((1024, 3), np.int32)  # and the row of ``total``
    num_bundles = np.int64(0)
    found = np.empty((1024, 6), np.int64)
    chain = np.full((num_labels, 2), -1, np.int64)

    for end in range(1, num_nodes):
        low, high = first_in[end], first_in[end + 1]
        for k in range(low, high):
            here[in_start[k]] = in_pair[k]
        # After the spans within the limit, only glue reaches back to node 0.
        more = 1 if here[0] < 0 and glue.shape[0] > 0 else 0
        for step in range(high - low + more):
            beyond = step == high - low
            start = np.int64(0) if beyond else in_start[high - 1 - step]
            pair = none if beyond else in_pair[high - 1 - step]
            begin = num_items
            num_found = np.int64(0)

            if not beyond:
                for k in range(first_arc[end], first_arc[end + 1]):
                    arc = arc_in[k]
                    middle = np.int64(arcs.start[arc])
                    if middle < start:
                        continue
                    first, last = np.int64(0), np.int64(1)
                    if middle > start:
                        before = find_reached(reach, start, middle)
                        if before < 0:
                            continue
                        first, last = pair_items[before, 0], pair_items[before, 1]
                    for old in range(first, last):
                        child = find_child(trie, np.int64(item[old, NODE]), src[arc])
                        if child >= 0:
                            item = with_free_row(item, num_items)
                            total, slot, num_totals, cost = _add_arc(
                                arcs.value, arc, total, slot, num_totals, np.int64(item[old, COST])
                            )
                            item[num_items, NODE] = child
                            item[num_items, TAIL_1] = item[old, TAIL_1]
                            item[num_items, TAIL_2] = item[old, TAIL_2]
                            item[num_items, COST] = cost
                            num_items += 1
                for before in range(reach.first[start], reach.first[start + 1]):
                    middle = np.int64(reach.node[before])
                    if middle >= end:
                        break
                    if here[middle] >= 0:
                        first, last = pair_items[before, 0], pair_items[before, 1]
                        item, num_items = _scan_lattice_gap(
                            trie, cell_at[here[middle]], item, num_items, first, last
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
                    found[num_found, BUNDLE_COST] = item[at, COST]
                    num_found += 1
            if start == 0:
                for g in range(glue.shape[0]):
                    if glue[g, LEFT] < 0:
                        continue
                    for k in range(low, high):
                        if in_start[k] == 0:
                            continue
                        left = np.int64(cell_from_0[in_start[k], glue[g, LEFT]])
                        right = np.int64(cell_at[in_pair[k], glue[g, RIGHT]])
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
                            found[num_found, BUNDLE_COST] = 0
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
                    cell_at[pair, label] = num_cells
                at = chain[label, 0]
                while at >= 0:
                    rules = with_free_row(rules, num_bundles)
                    tails = with_free_row(tails, num_bundles)
                    rules[num_bundles, 0] = found[at, FIRST]
                    rules[num_bundles, 1] = found[at, SIZE]
                    tails[num_bundles, 0] = found[at, 2]
                    tails[num_bundles, 1] = found[at, 3]
                    tails[num_bundles, 2] = found[at, BUNDLE_COST]
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
                            found[num_found, BUNDLE_COST] = 0
                            num_found += 1
                node = none if beyond else find_child(trie, root, gap(label, 1))
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
                            found[num_found, BUNDLE_COST] = 0
                            num_found += 1
                    # Items that begin with a gap over the whole span.
                    item = with_free_row(item, num_items)
                    item[num_items, NODE] = node
                    item[num_items, TAIL_1] = num_cells
                    item[num_items, TAIL_2] = -1
                    item[num_items, COST] = 0
                    num_items += 1
                num_cells += 1
                first_bundle = with_free_row(first_bundle, num_cells)
                first_bundle[num_cells, 0] = num_bundles
            if not beyond:
                pair_items[pair, 0] = begin
                pair_items[pair, 1] = num_items
        for k in range(low, high):
            here[in_start[k]] = -1

    return LatticeParse(
        Parse(
            cell[:num_cells].copy(),
            first_bundle[: num_cells + 1, 0].copy(),
            rules[:num_bundles].copy(),
            tails[:num_bundles, :2].copy(),
        ),
        tails[:num_bundles, 2].copy(),
        total[:num_totals].copy(),
    )
