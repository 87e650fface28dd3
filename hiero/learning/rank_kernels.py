# mypy: ignore-errors
"""Learn to rank one translation before another: pairs, losses, single steps, and sums of gradients.

Both kernels work on the columns of a sentence, the features in which its translations differ. Features with
the same value in all of them are left out: their weight cannot change, and they would only add rounding
errors.
"""

import math
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Floats, Ids, Ints
from hiero.core.hash_kernels import GOLDEN, hash_number, probe_number, splitmix, table_size
from hiero.core.jit import kernel, leaf

PERCEPTRON, MARGIN, LOGISTIC = 0, 1, 2

# A sum that cancels to less than this share of its terms is rounding, and becomes 0: a feature without weight
# must not be counted, sent to other processes or selected because of a weight of 1e-20, nor take AdaGrad's
# first step, which is as long for 1e-20 as for 1.
ROUNDING = 1e-10
# Scores with a smaller relative difference are equal: features count occurrences, so there are true ties, and
# finding them must not depend on the order of a sum.
TIE = 1e-12


class FeatureColumns(NamedTuple):
    """The features in which translations differ, column by column.

    place    int32 [N]        number of each translation among the U in pairs; -1 if in none
    feature  int32 [M]        in the order of first appearance
    first    int64 [M + 1]    column m: first[m]:first[m + 1] of row and value
    row      int32            places, ascending in each column
    value    float64
    """

    place: Ids
    feature: Ids
    first: Ints
    row: Ids
    value: Floats


@leaf
def _place_used(pair, place):
    """Number the translations in pairs, in their own order; returns how many there are."""
    for p in range(pair.shape[0]):
        place[pair[p, 0]] = 0
        place[pair[p, 1]] = 0
    used = 0
    for n in range(place.shape[0]):
        if place[n] == 0:
            place[n] = used
            used += 1
    return used


@kernel
def _columns(rows, pair):
    """The columns of the translations in pairs, and the number of these translations."""
    num = rows.first.shape[0] - 1
    place = np.full(num, -1, np.int32)
    used = _place_used(pair, place)
    room = 0
    for n in range(num):
        if place[n] >= 0:
            room += rows.first[n + 1] - rows.first[n]
    size = table_size(room)
    key_at, number_at = np.full(size, -1, np.int32), np.empty(size, np.int32)

    # A column that has every row with the same value is useless.
    column, feature = np.empty(room, np.int32), np.empty(room, np.int32)
    count, value, differs = np.zeros(room, np.int64), np.empty(room), np.zeros(room, np.bool_)
    seen, met = 0, 0
    for n in range(num):
        if place[n] < 0:
            continue
        for k in range(rows.first[n], rows.first[n + 1]):
            at = probe_number(key_at, hash_number(rows.id[k]), rows.id[k])
            if key_at[at] < 0:
                key_at[at] = rows.id[k]
                number_at[at] = seen
                feature[seen] = rows.id[k]
                value[seen] = rows.value[k]
                seen += 1
            m = number_at[at]
            column[met] = m
            count[m] += 1
            differs[m] |= rows.value[k] != value[m]
            met += 1

    kept, entries = 0, 0
    first = np.zeros(seen + 1, np.int64)
    number = np.full(seen, -1, np.int32)
    for m in range(seen):
        if differs[m] or count[m] < used:
            number[m] = kept
            feature[kept] = feature[m]
            first[kept] = entries
            entries += count[m]
            kept += 1
    first[kept] = entries
    row, row_value = np.empty(entries, np.int32), np.empty(entries)
    count[:kept] = first[:kept]
    met = 0
    for n in range(num):
        if place[n] < 0:
            continue
        for k in range(rows.first[n], rows.first[n + 1]):
            m = number[column[met]]
            if m >= 0:
                row[count[m]] = place[n]
                row_value[count[m]] = rows.value[k]
                count[m] += 1
            met += 1
    return FeatureColumns(place, feature[:kept], first[: kept + 1], row, row_value), used


@leaf
def _score(feature, first, row, value, weight, score):
    """Add weight times value of all columns to the score of each row."""
    for m in range(feature.shape[0]):
        here = weight[feature[m]]
        if here != 0:
            for k in range(first[m], first[m + 1]):
                score[row[k]] += here * value[k]


@leaf
def _products(first, row, value, product):
    """Add to ``product`` the scalar product of every two rows."""
    for m in range(first.shape[0] - 1):
        for k in range(first[m], first[m + 1]):
            i = row[k]
            for j in range(first[m], k + 1):
                product[i, row[j]] += value[k] * value[j]
    for i in range(product.shape[0]):
        for j in range(i):
            product[j, i] = product[i, j]


@leaf
def _loss(kind, margin, target_margin):
    """The loss at a margin, minus its slope, and whether the pair counts as wrong."""
    if kind == PERCEPTRON:
        wrong = margin <= 0
        return max(0.0, -margin), 1.0 if wrong else 0.0, wrong
    if kind == MARGIN:
        wrong = margin < target_margin
        return max(0.0, target_margin - margin), 1.0 if wrong else 0.0, wrong
    # In a form that cannot overflow.
    small = math.exp(-abs(margin))
    loss = math.log1p(small) + max(0.0, -margin)
    slope = small / (1 + small) if margin > 0 else 1 / (1 + small)
    return loss, slope, margin <= 0


@leaf
def _margin(score, better, worse):
    margin = score[better] - score[worse]
    return 0.0 if abs(margin) <= TIE * (abs(score[better]) + abs(score[worse])) else margin


@leaf
def _shift(weight, feature, step):
    """Change a weight; returns whether it is finite."""
    new = weight[feature] + step
    weight[feature] = 0.0 if abs(new) < ROUNDING * abs(step) else new
    return np.isfinite(new)


@leaf
def _column_sum(first, row, value, m, push):
    """The sum of a column, each row times its push; 0 if the rest is only rounding."""
    total, size = 0.0, 0.0
    for k in range(first[m], first[m + 1]):
        term = push[row[k]] * value[k]
        total += term
        size += abs(term)
    return 0.0 if abs(total) < ROUNDING * size else total


@kernel
def rank_kernel(rows, pair, margins, pair_weights, kind, rate, weight, out_total):
    """Pass over pairs one after the other, each ranked with the weights updated by those before.

    Algorithm 1 of Simianer, Riezler and Dyer (2012), for one sentence. A step towards one translation and
    away from another changes every score by products of rows, which are precomputed: the weights themselves
    are written once, at the end. Returns whether all weights and values are finite.

    rows          FeatureRows   of N translations
    pair          int32 [P, 2]  better and worse
    margins       float64 [P]   target margin of each pair, for the loss MARGIN
    pair_weights  float64 [P]   factor on the loss of each pair
    kind          int           kind of loss
    rate          float
    weight        float64 [.]   written
    out_total     float64 [3]   added to: loss, wrong pairs, steps

    O(U * features + U * steps + P), U being the translations in pairs.  Twin: tests/naive/learn.py::rank.
    """
    columns, used = _columns(rows, pair)
    score, push = np.zeros(used), np.zeros(used)
    product = np.zeros((used, used))
    _score(columns.feature, columns.first, columns.row, columns.value, weight, score)
    _products(columns.first, columns.row, columns.value, product)
    for p in range(pair.shape[0]):
        better, worse = columns.place[pair[p, 0]], columns.place[pair[p, 1]]
        margin = _margin(score, better, worse)
        if not np.isfinite(margin):
            return False
        loss, slope, wrong = _loss(kind, margin, margins[p])
        out_total[0] += pair_weights[p] * loss
        out_total[1] += wrong
        if slope > 0:
            out_total[2] += 1
            here = pair_weights[p] * slope
            push[better] += here
            push[worse] -= here
            for u in range(used):
                score[u] += rate * here * (product[better, u] - product[worse, u])
    fine = True
    for m in range(columns.feature.shape[0]):
        step = rate * _column_sum(columns.first, columns.row, columns.value, m, push)
        if step != 0:
            fine &= _shift(weight, columns.feature[m], step)
    return fine


@kernel
def gradient_kernel(rows, pair, margins, pair_weights, kind, weight, out_total):
    """The sum of the gradients of all pairs, all ranked with the same weights.

    Returns whether all weights and values are finite, and the gradient of the loss: features (int32 [G], in
    the order of first appearance) and values (float64 [G]), none 0.

    rows          FeatureRows   of N translations
    pair          int32 [P, 2]  better and worse
    margins       float64 [P]   target margin of each pair, for the loss MARGIN
    pair_weights  float64 [P]   factor on the loss of each pair
    kind          int           kind of loss
    weight        float64 [.]
    out_total     float64 [3]   added to: loss, wrong pairs, pairs with a gradient

    O(P + features of the translations in pairs).  Twin: tests/naive/learn.py::gradient.
    """
    columns, used = _columns(rows, pair)
    score, push = np.zeros(used), np.zeros(used)
    _score(columns.feature, columns.first, columns.row, columns.value, weight, score)
    fine = True
    for p in range(pair.shape[0]):
        better, worse = columns.place[pair[p, 0]], columns.place[pair[p, 1]]
        margin = _margin(score, better, worse)
        fine &= np.isfinite(margin)
        loss, slope, wrong = _loss(kind, margin, margins[p])
        out_total[0] += pair_weights[p] * loss
        out_total[1] += wrong
        if slope > 0:
            out_total[2] += 1
            push[better] -= pair_weights[p] * slope
            push[worse] += pair_weights[p] * slope
    total = np.empty(columns.feature.shape[0])
    feature = np.empty(columns.feature.shape[0], np.int32)
    count = 0
    for m in range(columns.feature.shape[0]):
        here = _column_sum(columns.first, columns.row, columns.value, m, push)
        fine &= np.isfinite(here)
        if here != 0:
            feature[count] = columns.feature[m]
            total[count] = here
            count += 1
    return fine, feature[:count].copy(), total[:count].copy()


@kernel
def shift_kernel(feature, value, factor, weight):
    """Take a step of a learner that ranks pairs: add ``factor`` times a sparse vector to the weights.

    Returns whether all of them are finite.

    feature  int32 [M]     each once
    value    float64 [M]
    factor   float
    weight   float64 [.]   written

    O(M).  Twin: tests/naive/learn.py::shift.
    """
    fine = True
    for m in range(feature.shape[0]):
        fine &= _shift(weight, feature[m], factor * value[m])
    return fine


@kernel
def level_pairs_kernel(gold, order, first_of_level, out_pair):
    """Pair each translation with all worse ones of lower levels; return the number of pairs.

    gold            float64 [N]      score by the metric
    order           int64 [N]        translations, best first
    first_of_level  int64 [L + 1]    level l is order[first_of_level[l]:first_of_level[l + 1]]
    out_pair        int32 [>= ., 2]  written; better and worse; by levels, then in order

    Without room, only counts. O(N ** 2).  Twin: tests/naive/learn.py::level_pairs.
    """
    room = out_pair.shape[0]
    num_levels = first_of_level.shape[0] - 1
    count = 0
    for high in range(num_levels):
        for low in range(high + 1, num_levels):
            for i in range(first_of_level[high], first_of_level[high + 1]):
                for j in range(first_of_level[low], first_of_level[low + 1]):
                    if gold[order[i]] > gold[order[j]]:
                        if count < room:
                            out_pair[count, 0] = order[i]
                            out_pair[count, 1] = order[j]
                        count += 1
    return count


@leaf
def _drawn(stream, number):
    """Number ``number`` (from 0) of a stream, in [0, 1)."""
    word = splitmix(stream + np.uint64(number + 1) * GOLDEN)
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@kernel
def drawn_pairs_kernel(
    gold, length, seed, epoch, sentence, draws, threshold, most_apart, soft, out_pair, out_difference
):
    """Draw pairs to rank, as the sampler of Hopkins and May (2011) does; return the number accepted.

    gold            float64 [N]         score by the metric
    length          int64 [N]           in words
    seed, epoch, sentence               seed of the random numbers
    draws           int                 pairs drawn, with replacement
    threshold       float               accept differences of at least this, and above 0
    most_apart      float               refuse pairs whose lengths differ by more
    soft            bool                accept at random, with the logistic function of the difference and the
                                        mean difference of pairs not refused as probability (cdec)
    out_pair        int32 [draws, 2]    written; better and worse, as drawn
    out_difference  float64 [draws]     written; of their scores

    O(draws).  Twin: tests/naive/learn.py::drawn_pairs.
    """
    stream = splitmix(np.uint64(seed))
    stream = splitmix(stream ^ np.uint64(epoch))
    stream = splitmix(stream ^ np.uint64(sentence))
    num = gold.shape[0]
    count = 0
    total = 0.0
    for draw in range(draws):
        a = np.int64(_drawn(stream, 2 * draw) * num)
        b = np.int64(_drawn(stream, 2 * draw + 1) * num)
        if gold[a] < gold[b]:
            a, b = b, a
        difference = gold[a] - gold[b]
        if difference <= 0 or difference < threshold or abs(length[a] - length[b]) > most_apart:
            continue
        out_pair[count, 0] = a
        out_pair[count, 1] = b
        out_difference[count] = difference
        total += difference
        count += 1
    if not soft:
        return count
    mean = total / max(count, 1)
    accepted = 0
    for i in range(count):
        chance = 1.0 / (1.0 + math.exp(-mean - out_difference[i]))
        if _drawn(stream, 2 * draws + i) < chance:
            out_pair[accepted, 0] = out_pair[i, 0]
            out_pair[accepted, 1] = out_pair[i, 1]
            out_difference[accepted] = out_difference[i]
            accepted += 1
    return accepted
