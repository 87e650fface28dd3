# mypy: ignore-errors
"""One step of 1-best MIRA, and batch MIRA over k-best lists (Cherry and Foster 2012)."""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Floats, Ints
from hiero.core.jit import kernel, leaf
from hiero.learning.list_kernels import floor_bleu, row_score
from hiero.learning.rank_kernels import shift_kernel


@leaf
def _difference(first, feature, value, better, worse, out_feature, out_value):
    """The features of one row less those of another, none 0; returns how many."""
    i, i_end = first[better], first[better + 1]
    j, j_end = first[worse], first[worse + 1]
    count = 0
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and feature[i] < feature[j]):
            which, here = feature[i], value[i]
            i += 1
        elif i == i_end or feature[j] < feature[i]:
            which, here = feature[j], -value[j]
            j += 1
        else:
            which, here = feature[i], value[i] - value[j]
            i += 1
            j += 1
        if here != 0:
            out_feature[count] = which
            out_value[count] = here
            count += 1
    return count


@kernel
def mira_kernel(rows, oracle, prediction, target_margin, most, weight, out_total):
    """Move the weights by the least that makes the oracle lead the prediction by the target margin.

    PA-I of Crammer et al. (2006), as in Algorithm 1 of Eidelman (2012). Returns whether all weights are
    finite.

    rows           FeatureRows  of N translations
    oracle         int          to learn towards
    prediction     int          to learn away from
    target_margin  float        how much better the oracle is
    most           float        C, the longest step
    weight         float64 [.]  written
    out_total      float64 [3]  added to: loss, 1 if there was one, 1 if the weights moved

    O(features of the two).  Twin: tests/naive/learn.py::mira.
    """
    room = rows.first[oracle + 1] - rows.first[oracle] + rows.first[prediction + 1] - rows.first[prediction]
    feature, value = np.empty(room, np.int32), np.empty(room)
    count = _difference(rows.first, rows.id, rows.value, oracle, prediction, feature, value)
    margin, square = 0.0, 0.0
    for m in range(count):
        margin += weight[feature[m]] * value[m]
        square += value[m] * value[m]
    loss = target_margin - margin
    if not np.isfinite(loss):
        return False
    if loss <= 0:
        return True
    out_total[0] += loss
    out_total[1] += 1
    if square == 0:
        return True
    out_total[2] += 1
    return shift_kernel(feature[:count], value[:count], min(most, loss / square), weight)


class MiraState(NamedTuple):
    """State carried from sentence to sentence; written.

    weight  float64 [F]
    late    float64 [F]  sum of all changes so far, each times the number of sentences before it: gives the
                         average of the weights after each sentence
    memory  float64 [.]  decaying statistics of the chosen candidates
    seen    int64 [1]    sentences so far
    """

    weight: Floats
    late: Floats
    memory: Floats
    seen: Ints


@leaf
def _gain(memory, statistics, c, together):
    """BLEU of the memory with candidate c, times the length of the references of both."""
    for i in range(memory.shape[0]):
        together[i] = memory[i] + statistics[c, i]
    return floor_bleu(together) * together[1]


@leaf
def _squared_distance(first, ids, values, a, b):
    i, last_i, j, last_j = first[a], first[a + 1], first[b], first[b + 1]
    total = 0.0
    while i < last_i or j < last_j:
        if j >= last_j or (i < last_i and ids[i] < ids[j]):
            total += values[i] ** 2
            i += 1
        elif i >= last_i or ids[j] < ids[i]:
            total += values[j] ** 2
            j += 1
        else:
            total += (values[i] - values[j]) ** 2
            i += 1
            j += 1
    return total


@leaf
def _move(first, ids, values, c, step, seen, weight, late):
    for i in range(first[c], first[c + 1]):
        weight[ids[i]] += step * values[i]
        late[ids[i]] += seen * (step * values[i])


@kernel
def kbmira_epoch_kernel(lists, visit, aggressiveness, decay, from_model, state):
    """One update for every sentence: towards the hope candidate, away from the fear candidate.

    lists           Lists
    visit           int64 [S]   the sentences in the order they are visited
    aggressiveness  float       the longest step (C)
    decay           float       factor on the memory for each sentence
    from_model      bool        remember the best candidate of the model, not the hope
    state           MiraState   written

    Returns the summed loss, the number of sentences with a loss, and the number of updates. Of equal
    candidates, the first to arrive is taken.

    O(features).  Twin: tests/naive/batch.py::kbmira.
    """
    together = np.empty(state.memory.shape[0])
    total = 0.0
    errors, updates = 0, 0
    for s in visit:
        hope, fear, best = np.int64(-1), np.int64(-1), np.int64(-1)
        hope_score, hope_gain, fear_score, fear_gain, best_score = 0.0, 0.0, 0.0, 0.0, 0.0
        for place in range(lists.first_place[s], lists.first_place[s + 1]):
            c = lists.order[place]
            score = row_score(lists.first, lists.id, lists.value, state.weight, c)
            gain = _gain(state.memory, lists.statistics, c, together)
            if hope < 0 or score + gain > hope_score + hope_gain:
                hope, hope_score, hope_gain = c, score, gain
            if fear < 0 or score - gain > fear_score - fear_gain:
                fear, fear_score, fear_gain = c, score, gain
            if best < 0 or score > best_score:
                best, best_score = c, score
        loss = hope_gain - fear_gain - (hope_score - fear_score)
        if hope_gain > fear_gain and loss > 0.0:
            total += loss
            errors += 1
            distance = _squared_distance(lists.first, lists.id, lists.value, hope, fear)
            if distance > 0.0:
                step = min(aggressiveness, loss / distance)
                seen = state.seen[0]
                _move(lists.first, lists.id, lists.value, hope, step, seen, state.weight, state.late)
                _move(lists.first, lists.id, lists.value, fear, -step, seen, state.weight, state.late)
                updates += 1
        chosen = best if from_model else hope
        for i in range(state.memory.shape[0]):
            state.memory[i] = decay * state.memory[i] + lists.statistics[chosen, i]
        state.seen[0] += 1
    return total, errors, updates
