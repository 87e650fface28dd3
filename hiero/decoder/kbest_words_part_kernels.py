"""Target strings of derivations in a k-best search: hashed from their parts, compared word by word."""

import numpy as np

from hiero.core.jit import leaf
from hiero.core.symbols import gap_index, is_gap

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that its powers never vanish
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
ZERO, ONE = np.uint64(0), np.uint64(1)

# Rows of a frame array. Typed, because a kernel is compiled once more for every literal it is called with.
ROW_A, ROW_B = np.int64(0), np.int64(2)


@leaf
def slot_of(slot, node, code):
    """The first slot to look at for a string of a node."""
    mixed = (code ^ (np.uint64(node) * MIX_1)) * MIX_2
    return np.int64(mixed >> np.uint64(32)) & (slot.shape[0] - 1)


@leaf
def hash_word(word):
    code = (np.uint64(word) + ONE) * MIX_1
    code = (code ^ (code >> np.uint64(29))) * MIX_2
    return code ^ (code >> np.uint64(32))


@leaf
def write_derivation(search, rules, edge_rule, v, c):
    """Write candidate c as derivation ``fill[0]``, not yet counted; there must be room."""
    found, order, heap = search.found, search.order, search.heap
    d = search.fill[0]
    edge = heap.edge[c]
    found.node[d] = v
    found.edge[d] = edge
    found.score[d] = heap.score[c]
    size = np.int64(1)
    for k in range(2):
        found.part[d, k] = heap.part[c, k]
        if heap.part[c, k] >= 0:
            size += found.size[heap.part[c, k]]
    found.size[d] = size
    order.next[d] = -1
    rule = edge_rule[edge]
    if rule < 0:
        part = heap.part[c, 0]
        found.length[d] = found.length[part]
        order.hash[d] = order.hash[part]
        order.power[d] = order.power[part]
        return d
    length, code, power = np.int64(0), ZERO, ONE
    for i in range(rules.first_tgt[rule], rules.first_tgt[rule + 1]):
        symbol = rules.tgt[i]
        if is_gap(symbol):
            part = heap.part[c, gap_index(symbol) - 1]
            length += found.length[part]
            code = code * order.power[part] + order.hash[part]
            power = power * order.power[part]
        else:
            length += 1
            code = code * BASE + hash_word(symbol)
            power = power * BASE
    found.length[d] = length
    order.hash[d] = code
    order.power[d] = power
    return d


@leaf
def next_item(found, rules, edge_rule, frame, row, depth):
    """The next item of a string (a word, -2 - d for derivation d, -1 at the end), and the new depth."""
    while depth > 0:
        d = frame[row, depth - 1]
        at = frame[row + 1, depth - 1]
        rule = edge_rule[found.edge[d]]
        if rule < 0:
            if at == 0:
                return -2 - np.int64(found.part[d, 0]), depth
        elif rules.first_tgt[rule] + at < rules.first_tgt[rule + 1]:
            symbol = rules.tgt[rules.first_tgt[rule] + at]
            if is_gap(symbol):
                return -2 - np.int64(found.part[d, gap_index(symbol) - 1]), depth
            return np.int64(symbol), depth
        depth -= 1
    return np.int64(-1), depth


@leaf
def descend(frame, row, depth, item):
    """Step past the current item, or into it if it is a derivation; returns the new depth."""
    if depth > 0:
        frame[row + 1, depth - 1] += 1
    if item <= -2:
        frame[row, depth] = -2 - item
        frame[row + 1, depth] = 0
        depth += 1
    return depth


@leaf
def same_words(found, rules, edge_rule, frame, a, b):
    """Whether two derivations have the same target words; shared parts are skipped."""
    depth_a = descend(frame, ROW_A, np.int64(0), -2 - np.int64(a))
    depth_b = descend(frame, ROW_B, np.int64(0), -2 - np.int64(b))
    while True:
        item_a, depth_a = next_item(found, rules, edge_rule, frame, ROW_A, depth_a)
        item_b, depth_b = next_item(found, rules, edge_rule, frame, ROW_B, depth_b)
        if item_a == item_b:
            if item_a == -1:
                return True
            frame[1, depth_a - 1] += 1
            frame[3, depth_b - 1] += 1
        elif item_a <= -2 and item_a <= item_b:
            # Parts come before wholes: opening the later derivation never opens a part that both share.
            depth_a = descend(frame, ROW_A, depth_a, item_a)
        elif item_b <= -2:
            depth_b = descend(frame, ROW_B, depth_b, item_b)
        else:
            return False


@leaf
def is_known(search, rules, edge_rule, d):
    """Whether the node of d has a derivation with the same words; if not, enter d."""
    found, order, slot = search.found, search.order, search.slot
    at = slot_of(slot, found.node[d], order.hash[d])
    while slot[at] >= 0:
        old = slot[at]
        if (
            order.hash[old] == order.hash[d]
            and found.node[old] == found.node[d]
            and found.length[old] == found.length[d]
            and same_words(found, rules, edge_rule, search.nodes.frame, old, d)
        ):
            return True
        at = (at + 1) & (slot.shape[0] - 1)
    slot[at] = d
    return False
