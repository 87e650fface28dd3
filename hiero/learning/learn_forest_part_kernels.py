"""Line search over all derivations of a forest at once (Kumar, Macherey, Dyer and Och 2009).

The semiring is that of envelopes (``kernels.learn_mert``): the sum of several derivations is the envelope of
the lines of all, and the product of parts adds their lines, interval by interval.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.jit import kernel, leaf
from hiero.decoder.derivations_part_kernels import empty_derivations, write_sizes
from hiero.learning.mert_kernels import insert_line, larger_floats, larger_ints


class Lines(NamedTuple):
    """The envelopes of V nodes: L lines, those of each node by slope. A line is a derivation.

    first      int64 [V + 1]  lines of node v: first[v] ... first[v + 1] - 1
    slope      float64 [L]
    intercept  float64 [L]
    start      float64 [L]    start of the interval where it is the best
    edge       int64 [L]      the topmost edge of the derivation
    left       int64 [L]      the line of its first tail, -1 for none
    right      int64 [L]      likewise
    """

    first: npt.NDArray[np.int64]
    slope: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64]
    start: npt.NDArray[np.float64]
    edge: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]


@kernel
def _with_room(lines, needed):
    return Lines(
        lines.first,
        larger_floats(lines.slope, needed),
        larger_floats(lines.intercept, needed),
        larger_floats(lines.start, needed),
        larger_ints(lines.edge, needed),
        larger_ints(lines.left, needed),
        larger_ints(lines.right, needed),
    )


@kernel
def _empty_lines(num_nodes, room):
    return Lines(
        np.zeros(num_nodes + 1, np.int64),
        np.empty(room, np.float64),
        np.empty(room, np.float64),
        np.empty(room, np.float64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )


@leaf
def _edge_line(value, row, fixed, point, direction):
    """Intercept and slope of an edge without its tails."""
    intercept, slope = fixed[row], 0.0
    for d in range(point.shape[0]):
        intercept += value[row, d] * point[d]
        slope += value[row, d] * direction[d]
    return intercept, slope


@leaf
def _copy_lines(slope, intercept, start, label, size, pool_edge, pool_left, pool_right, at, lines):
    """Append the envelope of a node."""
    for i in range(size):
        lines.slope[at + i] = slope[i]
        lines.intercept[at + i] = intercept[i]
        lines.start[at + i] = start[i]
        lines.edge[at + i] = pool_edge[label[i]]
        lines.left[at + i] = pool_left[label[i]]
        lines.right[at + i] = pool_right[label[i]]


@leaf
def _next_start(lines, at, end):
    """The start of the next line of an envelope; inf after the last, and if there is none."""
    return lines.start[at + 1] if at >= 0 and at + 1 < end else np.inf


@kernel
def forest_lines_kernel(graph, value, fixed, point, direction):
    """The envelopes of all nodes along a line through the space of weights.

    graph      Hypergraph
    value      float32 [E, D]  features that move
    fixed      float64 [E]     score of the others; -inf for an edge in no derivation
    point      float64 [D]
    direction  float64 [D]

    Returns Lines. A node without derivations has none. Of derivations on the same line, one stays.

    O(E * lines * (D + log lines)).  Twin: tests/naive/batch.py::envelope, of all derivations.
    """
    num_nodes = graph.first_edge.shape[0] - 1
    lines = _empty_lines(num_nodes, 4 * num_nodes + 64)
    slope, intercept, start = np.empty(64), np.empty(64), np.empty(64)
    label = np.empty(64, np.int64)
    # The meaning of the labels of the current node.
    pool_edge, pool_left, pool_right = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    for v in range(num_nodes):
        size, made = np.int64(0), np.int64(0)
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            own_a, own_b = _edge_line(value, edge, fixed, point, direction)
            if own_a == -np.inf:
                continue
            i, last_i, j, last_j = np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1)
            if graph.tail[edge, 0] >= 0:
                i, last_i = lines.first[graph.tail[edge, 0]], lines.first[graph.tail[edge, 0] + 1]
                if i == last_i:
                    continue
            if graph.tail[edge, 1] >= 0:
                j, last_j = lines.first[graph.tail[edge, 1]], lines.first[graph.tail[edge, 1] + 1]
                if j == last_j:
                    continue
            while True:
                a, b = own_a, own_b
                if i >= 0:
                    a, b = a + lines.intercept[i], b + lines.slope[i]
                if j >= 0:
                    a, b = a + lines.intercept[j], b + lines.slope[j]
                if size == slope.shape[0]:
                    slope, intercept = larger_floats(slope, size + 1), larger_floats(intercept, size + 1)
                    start, label = larger_floats(start, size + 1), larger_ints(label, size + 1)
                if made == pool_edge.shape[0]:
                    pool_edge = larger_ints(pool_edge, made + 1)
                    pool_left, pool_right = (
                        larger_ints(pool_left, made + 1),
                        larger_ints(pool_right, made + 1),
                    )
                pool_edge[made], pool_left[made], pool_right[made] = edge, i, j
                size = insert_line(slope, intercept, start, label, size, b, a, made)
                made += 1
                after_i, after_j = _next_start(lines, i, last_i), _next_start(lines, j, last_j)
                if after_i == np.inf and after_j == np.inf:
                    break
                # If both change at once, there is no interval in between.
                if after_i <= after_j:
                    i += 1
                if after_j <= after_i:
                    j += 1
        at = lines.first[v]
        if at + size > lines.slope.shape[0]:
            lines = _with_room(lines, at + size)
        _copy_lines(slope, intercept, start, label, size, pool_edge, pool_left, pool_right, at, lines)
        lines.first[v + 1] = at + size
    return lines


@kernel
def union_kernel(first, slope, intercept):
    """The envelope of the lines of several forests of one sentence.

    first      int64 [N + 1]  lines of forest n: first[n] ... first[n + 1] - 1
    slope      float64
    intercept  float64

    Returns start float64 and line int64: the leading lines, from -inf on; of equal lines, the first.

    O(lines * log lines).  Twin: tests/naive/batch.py::envelope.
    """
    count = first[-1]
    hull_slope, hull_intercept, start = np.empty(count), np.empty(count), np.empty(count)
    label, size = np.empty(count, np.int64), np.int64(0)
    for line in range(count):
        size = insert_line(
            hull_slope, hull_intercept, start, label, size, slope[line], intercept[line], np.int64(line)
        )
    return start[:size].copy(), label[:size].copy()


@kernel
def lines_as_derivations_kernel(edge_rule, rules, lines, roots):
    """The derivations of lines, with their parts.

    edge_rule  int32 [E]
    rules      Rules
    lines      Lines
    roots      int64 [N]   lines

    Returns Derivations and int32 [N], the places of the roots. Scores are intercepts.

    O(lines).  Twin: tests/naive/forest.py::enumerate_derivations.
    """
    count = lines.first[-1]
    place = np.full(count, -1, np.int32)
    for root in roots:
        place[root] = 0
    used = 0
    # Parts come before what they are part of.
    for line in range(count - 1, -1, -1):
        if place[line] == 0:
            used += 1
            if lines.left[line] >= 0:
                place[lines.left[line]] = 0
            if lines.right[line] >= 0:
                place[lines.right[line]] = 0
    table = empty_derivations(used)
    d = np.int64(0)
    for v in range(lines.first.shape[0] - 1):
        for line in range(lines.first[v], lines.first[v + 1]):
            if place[line] < 0:
                continue
            place[line] = d
            table.node[d] = v
            table.edge[d] = lines.edge[line]
            table.score[d] = lines.intercept[line]
            if lines.left[line] >= 0:
                table.part[d, 0] = place[lines.left[line]]
            if lines.right[line] >= 0:
                table.part[d, 1] = place[lines.right[line]]
            write_sizes(rules, edge_rule, table, d)
            d += 1
    found = np.empty(roots.shape[0], np.int32)
    for i in range(roots.shape[0]):
        found[i] = place[roots[i]]
    return table, found
