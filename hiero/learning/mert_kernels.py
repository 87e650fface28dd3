# mypy: ignore-errors
"""Line search: the best translation at every point of a line through the space of weights (Och 2003).

On the line ``point + x * direction`` a translation's score is ``intercept + x * slope``. The best ones, from
x = -inf to inf, make the upper envelope of these lines: slopes ascend, and each is the best from its
``start`` to the start of the next.

All derivations of a forest are searched at once by the semiring of envelopes (Kumar, Macherey, Dyer and Och
2009): the sum of several derivations is the envelope of the lines of all, and the product of parts adds their
lines, interval by interval.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.array_kernels import grown
from hiero.core.arrays import Floats, Ints
from hiero.core.jit import kernel, leaf
from hiero.decoder.derivation_kernels import new_derivations, write_sizes
from hiero.learning.list_kernels import floor_bleu

MARGIN = 0.1  # how far beyond the outermost change a step goes, absolutely and relatively


@leaf
def _crossing(slope, intercept, i, b, a):
    """The x at which line i of an envelope meets the line ``a + x * b``, which has another slope."""
    return (intercept[i] - a) / (b - slope[i])


@leaf
def insert_line(slope, intercept, start, label, size, b, a, name):
    """Insert the line ``a + x * b`` into an envelope that has room for it; return the new size.

    slope      float64 [>= size + 1]  written; ascending
    intercept  float64 [>= size + 1]  written
    start      float64 [>= size + 1]  written; ascending, -inf first
    label      int64 [>= size + 1]    written; ``name`` of each line

    A line that is nowhere above all others is left out, and so is one equal to another, whatever its name.
    All decisions compare crossings: they are exact if the crossings are.
    """
    left, end = np.int64(0), np.int64(size)
    while left < end:
        middle = (left + end) // 2
        if slope[middle] < b:
            left = middle + 1
        else:
            end = middle
    # Lines before ``left`` and from ``right`` on stay, as far as is known.
    right = left
    if right < size and slope[right] == b:
        if a <= intercept[right]:
            return size
        right += 1
    elif left > 0 and right < size and _crossing(slope, intercept, left - 1, b, a) >= start[right]:
        return size
    while left > 0 and _crossing(slope, intercept, left - 1, b, a) <= start[left - 1]:
        left -= 1
    while right < size:
        lead_ends = start[right + 1] if right + 1 < size else np.inf
        if _crossing(slope, intercept, right, b, a) < lead_ends:
            break
        right += 1
    begins = _crossing(slope, intercept, left - 1, b, a) if left > 0 else -np.inf
    ends = _crossing(slope, intercept, right, b, a) if right < size else np.inf
    if begins >= ends:
        return size  # rounding: its interval is empty
    moved = left + 1 - right
    if moved > 0:
        for i in range(size - 1, right - 1, -1):
            slope[i + 1], intercept[i + 1], start[i + 1] = slope[i], intercept[i], start[i]
            label[i + 1] = label[i]
    elif moved < 0:
        for i in range(right, size):
            slope[i + moved], intercept[i + moved], start[i + moved] = slope[i], intercept[i], start[i]
            label[i + moved] = label[i]
    slope[left], intercept[left], start[left], label[left] = b, a, begins, name
    size += moved
    if left + 1 < size:
        start[left + 1] = ends
    return size


@leaf
def _line(value, row, fixed, point, direction):
    """Intercept and slope."""
    intercept, slope = fixed[row], 0.0
    for d in range(point.shape[0]):
        intercept += value[row, d] * point[d]
        slope += value[row, d] * direction[d]
    return intercept, slope


@kernel
def list_envelopes_kernel(lists, value, fixed, point, direction):
    """The envelope of every sentence's candidates.

    lists      Lists            N candidates of S sentences
    value      float64 [N, D]   features that move
    fixed      float64 [N]      score of all other features
    point      float64 [D]
    direction  float64 [D]

    Returns first int64 [S + 1], start float64 and candidate int64: the lines of sentence s are first[s] ...
    first[s + 1] - 1. Of candidates on the same line, the first to arrive.

    O(N * (D + log N)), more for envelopes of many lines.  Twin: tests/naive/batch.py::envelope.
    """
    num_sentences = lists.number.shape[0]
    largest = 0
    for s in range(num_sentences):
        largest = max(largest, lists.first_place[s + 1] - lists.first_place[s])
    slope, intercept, start = np.empty(largest), np.empty(largest), np.empty(largest)
    label = np.empty(largest, np.int64)
    out_first = np.zeros(num_sentences + 1, np.int64)
    out_start, out_candidate = np.empty(largest + 64), np.empty(largest + 64, np.int64)
    for s in range(num_sentences):
        size = np.int64(0)
        for place in range(lists.first_place[s], lists.first_place[s + 1]):
            c = lists.order[place]
            a, b = _line(value, c, fixed, point, direction)
            size = insert_line(slope, intercept, start, label, size, b, a, c)
        at = out_first[s]
        if at + size > out_start.shape[0]:
            out_start = grown(out_start, at + size)
            out_candidate = grown(out_candidate, at + size)
        for i in range(size):
            out_start[at + i] = start[i]
            out_candidate[at + i] = label[i]
        out_first[s + 1] = at + size
    count = out_first[num_sentences]
    return out_first, out_start[:count].copy(), out_candidate[:count].copy()


@kernel
def best_step_kernel(first, start, statistics, change, low, high, reach):
    """The step along the line that makes corpus BLEU largest.

    first       int64 [S + 1]    lines of each sentence's envelope; a sentence has one at least
    start       float64 [L]      start of the interval of each
    statistics  int64 [L, .]     of their translations
    change      int64 [.]        all lines but the first of each sentence, by their starts
    low, high   float            the step lies between, low < high; they may be infinite
    reach       float            if they are, changes farther out are ignored as rounding

    Returns the step and its BLEU. Neighbouring intervals with the same BLEU are merged; the result is the
    middle of the widest, of equally wide ones of the first. An unbounded interval counts as ending a little
    beyond the last change.

    O(L).  Twin: tests/naive/batch.py::best_step.
    """
    columns = statistics.shape[1]
    total = np.zeros(columns, np.int64)
    for s in range(first.shape[0] - 1):
        for i in range(columns):
            total[i] += statistics[first[s], i]
    lowest, highest = _ends(start, change, reach)
    if low == -np.inf:
        lowest = min(lowest, high)
        low = lowest - 2.0 * MARGIN * (1.0 + abs(lowest))
    if high == np.inf:
        highest = max(highest, low)
        high = highest + 2.0 * MARGIN * (1.0 + abs(highest))
    best, step, width = -1.0, 0.0, -1.0
    # The current interval: its start and its BLEU.
    begins, here = low, -1.0
    evaluated = low
    at = 0
    while evaluated < high:
        ends = min(start[change[at]], high) if at < change.shape[0] else high
        if ends > evaluated:
            bleu = floor_bleu(total)
            if bleu != here:
                begins, here = evaluated, bleu
            if here > best or (here == best and ends - begins > width):
                best, width = here, ends - begins
                step = 0.5 * (begins + ends)
            evaluated = ends
        if at < change.shape[0]:
            line = change[at]
            for i in range(columns):
                total[i] += statistics[line, i] - statistics[line - 1, i]
            at += 1
    return step, best


@leaf
def _ends(start, change, reach):
    """The first and the last change within reach of 0; 0 if there is none."""
    lowest, highest = np.inf, -np.inf
    for i in range(change.shape[0]):
        if -reach <= start[change[i]] <= reach:
            lowest = min(lowest, start[change[i]])
            highest = max(highest, start[change[i]])
    if lowest > highest:
        return 0.0, 0.0
    return lowest, highest


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

    first: Ints
    slope: Floats
    intercept: Floats
    start: Floats
    edge: Ints
    left: Ints
    right: Ints


@kernel
def _with_room(lines, needed):
    return Lines(
        lines.first,
        grown(lines.slope, needed),
        grown(lines.intercept, needed),
        grown(lines.start, needed),
        grown(lines.edge, needed),
        grown(lines.left, needed),
        grown(lines.right, needed),
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
                    slope, intercept = grown(slope, size + 1), grown(intercept, size + 1)
                    start, label = grown(start, size + 1), grown(label, size + 1)
                if made == pool_edge.shape[0]:
                    pool_edge = grown(pool_edge, made + 1)
                    pool_left, pool_right = (
                        grown(pool_left, made + 1),
                        grown(pool_right, made + 1),
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
    table = new_derivations(used)
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
