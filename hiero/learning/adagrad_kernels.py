# mypy: ignore-errors
"""AdaGrad with a threshold (FOBOS, L1), with lazy updates: idle coordinates are settled when needed."""

import math
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Floats, Ids
from hiero.core.jit import kernel, leaf


class Coordinates(NamedTuple):
    """State of each coordinate; owned by the learner, written by the kernels.

    square  float64 [F]   sum of its squared gradients
    last    int32 [F]     step up to which it is settled
    """

    square: Floats
    last: Ids


class Settings(NamedTuple):
    """Settings as numbers.

    rate      of a step
    strength  of L1
    epsilon   added to the root of the sum of squares
    adaptive  bool; whether each coordinate has its own rate
    """

    rate: float
    strength: float
    epsilon: float
    adaptive: bool


@leaf
def _rate(settings, square):
    """The rate of a coordinate; 0 before its first gradient."""
    if not settings.adaptive:
        return settings.rate
    return settings.rate / (math.sqrt(square) + settings.epsilon) if square > 0 else 0.0


@leaf
def _shrunk(weight, by):
    """A weight after the threshold."""
    if weight > 0:
        return max(0.0, weight - by)
    return min(0.0, weight + by)


@leaf
def _settled(settings, square, idle, weight):
    """A weight after some idle steps: k thresholds in a row are one of k times the size."""
    if weight == 0 or idle == 0:
        return weight
    return _shrunk(weight, idle * _rate(settings, square) * settings.strength)


@kernel
def settle_rows_kernel(rows, pair, step, settings, coordinates, weight):
    """Settle the features of translations in pairs up to a step, so that their scores are right.

    rows         FeatureRows     of N translations
    pair         int32 [P, 2]
    step         int             the last step taken
    settings     Settings
    coordinates  Coordinates     ``last`` is written
    weight       float64 [F]     written

    O(features of the pairs).  Twin: tests/naive/learn.py::Eager.
    """
    for p in range(pair.shape[0]):
        for side in range(2):
            n = pair[p, side]
            for k in range(rows.first[n], rows.first[n + 1]):
                f = rows.id[k]
                idle = step - coordinates.last[f]
                weight[f] = _settled(settings, coordinates.square[f], idle, weight[f])
                coordinates.last[f] = step


@kernel
def settle_kernel(step, settings, coordinates, keep, weight):
    """Settle all coordinates up to a step.

    step         int           the last step taken
    settings     Settings
    coordinates  Coordinates   ``last`` is written if ``keep``
    keep         bool          whether to record that they are settled; not if ``weight`` is a copy
    weight       float64 [F]   written

    O(F).  Twin: tests/naive/learn.py::Eager.
    """
    for f in range(weight.shape[0]):
        if weight[f] != 0:
            idle = step - coordinates.last[f]
            weight[f] = _settled(settings, coordinates.square[f], idle, weight[f])
    if keep:
        coordinates.last[: weight.shape[0]] = step


@kernel
def adagrad_kernel(feature, value, step, settings, coordinates, weight):
    """Take a step down a gradient, then apply the threshold; returns whether all weights are finite.

    feature      int32 [M]     those with a gradient, each once
    value        float64 [M]
    step         int           the number of this step, from 1
    settings     Settings
    coordinates  Coordinates   written
    weight       float64 [F]   written

    O(M).  Twin: tests/naive/learn.py::Eager.
    """
    fine = True
    for m in range(feature.shape[0]):
        f = feature[m]
        here = _settled(settings, coordinates.square[f], step - 1 - coordinates.last[f], weight[f])
        coordinates.square[f] += value[m] * value[m]
        rate = _rate(settings, coordinates.square[f])
        new = here - rate * value[m]
        # NaN and infinity are kept, so that they can be found.
        fine &= np.isfinite(new)
        weight[f] = _shrunk(new, rate * settings.strength) if np.isfinite(new) else new
        coordinates.last[f] = step
    return fine
