# mypy: allow-untyped-calls
"""The primal problem by stochastic gradient descent (Alrajeh and Niranjan 2014, eq. 6 to 8)."""

from __future__ import annotations

import numpy as np

from hiero.kernels.reorder_learn import sgd_kernel
from hiero.reorder.examples import Examples, Rows
from hiero.reorder.learning import Account, Learned, Weights, primal_objective, shuffled
from hiero.reorder.settings import LearnConfig
from hiero.watch import Progress

SAMPLE = 10_000  # examples on which rates are tried
RATES = tuple(4.0 / 2**k for k in range(12))


def learn_primal(
    examples: Examples,
    config: LearnConfig,
    seed: int = 1,
    *,
    held_out: Examples | None = None,
    watch: Progress | None = None,
) -> Learned:
    """Weights that minimise P, after so many passes."""
    rows, account = examples.rows, Account(held_out, watch)
    decay = 1.0 / (config.variance * rows.size)
    weight = np.zeros((examples.num_features, 3))
    memory = np.array([1.0, 0.0])
    account.watch.begin(config.passes, "reorder train")
    account.add(0, rows.size, weight)
    with account.clock:
        rate = config.rate or best_rate(rows, examples.num_features, decay, seed)
        everything = np.arange(rows.size, dtype=np.int32)
    for number in range(1, config.passes + 1):
        with account.clock:
            order = shuffled(everything, seed, number)
            sgd_kernel(*rows, order, rate, cooling(rate, decay, rows.size), decay, memory, weight)
            weight *= memory[0]
            memory[0] = 1.0
        account.add(number, rows.size, weight)
    return Learned(
        weight, account.history, primal_objective(rows, weight, config.variance), facts={"rate": rate}
    )


def cooling(rate: float, decay: float, num_examples: int) -> float:
    """How fast the rate falls: as Bottou (2010) proposes, but no slower than to a half in the first pass.

    With a weak prior his schedule would hold it up for hundreds of passes.
    """
    return max(rate * decay, 1.0 / num_examples)


def best_rate(rows: Rows, num_features: int, decay: float, seed: int) -> float:
    """The rate that comes furthest on a sample of the examples (as Bottou 2010 proposes)."""
    # Whole stretches of neighbours: so the sample has as many features in common as the examples have.
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
