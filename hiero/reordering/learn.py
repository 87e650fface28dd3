# mypy: allow-untyped-calls
"""The primal problem by stochastic gradient descent (Alrajeh and Niranjan 2014, eq. 6 to 8)."""

from __future__ import annotations

import numpy as np

from hiero.core.progress import Progress
from hiero.reordering.config import LearnConfig
from hiero.reordering.examples import Examples, Rows
from hiero.reordering.learn_kernels import sgd_kernel
from hiero.reordering.learning import Learned, LearningHistory, Weights, primal_objective, shuffled

SAMPLE = 10_000  # examples for choosing a rate
RATES = tuple(4.0 / 2**k for k in range(12))


def learn_primal(
    examples: Examples,
    config: LearnConfig,
    seed: int = 1,
    *,
    held_out: Examples | None = None,
    watch: Progress | None = None,
) -> Learned:
    """Minimise P by ``passes`` passes over the examples."""
    rows, history = examples.rows, LearningHistory(held_out, watch)
    decay = 1.0 / (config.variance * rows.size)
    weight = np.zeros((examples.num_features, 3))
    memory = np.array([1.0, 0.0])
    history.watch.begin(config.passes, "reorder train")
    history.add(0, rows.size, weight)
    with history.clock:
        rate = config.rate or best_rate(rows, examples.num_features, decay, seed)
        everything = np.arange(rows.size, dtype=np.int32)
    for number in range(1, config.passes + 1):
        with history.clock:
            order = shuffled(everything, seed, number)
            sgd_kernel(*rows, order, rate, cooling(rate, decay, rows.size), decay, memory, weight)
            weight *= memory[0]
            memory[0] = 1.0
        history.add(number, rows.size, weight)
    return Learned(
        weight, history.passes, primal_objective(rows, weight, config.variance), facts={"rate": rate}
    )


def cooling(rate: float, decay: float, num_examples: int) -> float:
    """The decrease of the rate: as in Bottou (2010), but at least to a half in the first pass.

    With a weak prior Bottou's schedule would keep it high for hundreds of passes.
    """
    return max(rate * decay, 1.0 / num_examples)


def best_rate(rows: Rows, num_features: int, decay: float, seed: int) -> float:
    """The rate with the least loss on a sample of the examples (Bottou 2010)."""
    # Evenly spaced, so that the sample comes from all of the text.
    chosen = np.linspace(0, rows.size - 1, min(SAMPLE, rows.size)).astype(np.int32)
    order = shuffled(np.unique(chosen), seed, 0)
    sample = _rows(rows, np.sort(order))
    losses = []
    for rate in RATES:
        weight: Weights = np.zeros((num_features, 3))
        memory = np.array([1.0, 0.0])
        sgd_kernel(*rows, order, rate, cooling(rate, decay, rows.size), decay, memory, weight)
        weight *= memory[0]
        losses.append(primal_objective(sample, weight, 1.0 / (decay * sample.size)))
    best: float = RATES[int(np.argmin(losses))]
    return best


def _rows(rows: Rows, chosen: np.ndarray) -> Rows:
    length = rows.first[chosen + 1] - rows.first[chosen]
    first = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(length, out=first[1:])
    place = np.arange(first[-1]) + np.repeat(rows.first[chosen] - first[:-1], length)
    feature, label = rows.feature[place], rows.label[chosen]
    for array in (first, feature, label):
        array.flags.writeable = False
    return Rows(first, feature, label)
