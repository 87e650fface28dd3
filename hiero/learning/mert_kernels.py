"""Line search: the best translation at every point of a line through the space of weights (Och 2003).

On the line ``point + x * direction`` a translation's score is ``intercept + x * slope``. The best ones, from
x = -inf to inf, make the upper envelope of these lines: slopes ascend, and each is the best from its
``start`` to the start of the next.
"""

import numpy as np

from hiero.core.jit import kernel, leaf
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


@kernel
def dense_kernel(lists, column, out_value):
    """The values of some features as a matrix.

    lists      Lists
    column     int32 [F]         of each feature its column, or -1
    out_value  float64 [N, D]    written; all zero before

    O(features).  Twin: tests/naive/batch.py::dense.
    """
    for c in range(out_value.shape[0]):
        for i in range(lists.first[c], lists.first[c + 1]):
            if column[lists.id[i]] >= 0:
                out_value[c, column[lists.id[i]]] = lists.value[i]


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
            out_start = larger_floats(out_start, at + size)
            out_candidate = larger_ints(out_candidate, at + size)
        for i in range(size):
            out_start[at + i] = start[i]
            out_candidate[at + i] = label[i]
        out_first[s + 1] = at + size
    count = out_first[num_sentences]
    return out_first, out_start[:count].copy(), out_candidate[:count].copy()


@kernel
def larger_floats(array, needed):
    larger = np.empty(max(2 * array.shape[0], needed), np.float64)
    # Item by item: an assignment of slices takes seconds to compile.
    for i in range(array.shape[0]):
        larger[i] = array[i]
    return larger


@kernel
def larger_ints(array, needed):
    larger = np.empty(max(2 * array.shape[0], needed), np.int64)
    for i in range(array.shape[0]):
        larger[i] = array[i]
    return larger


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
