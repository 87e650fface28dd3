# mypy: allow-untyped-calls
"""The dual problem by exponentiated gradient with shrinking (Alrajeh and Niranjan 2014, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from hiero.core.progress import Progress
from hiero.reordering.config import LearnConfig
from hiero.reordering.examples import Examples
from hiero.reordering.learn_kernels import (
    CHANGE,
    HALVED,
    KEPT,
    STUCK,
    UPDATES,
    dual_kernel,
    dual_start_kernel,
    entropy_kernel,
)
from hiero.reordering.learning import Learned, LearningHistory, primal_objective, shuffled

FIRST_RATE = 0.5


def learn_dual(
    examples: Examples,
    config: LearnConfig,
    seed: int = 1,
    *,
    held_out: Examples | None = None,
    watch: Progress | None = None,
) -> Learned:
    """Minimise D; stop after ``passes`` or when all examples are fitted.

    A pass visits each example that is not fitted yet once, in random order.
    """
    rows, history = examples.rows, LearningHistory(held_out, watch)
    history.watch.begin(config.passes, "reorder train")
    rate = config.rate or FIRST_RATE
    updates = halved = stuck = 0
    with history.clock:
        alpha = np.empty((rows.size, 3), np.float32)
        weight = np.zeros((examples.num_features, 3))
        dual_start_kernel(*rows, config.start, config.variance, alpha, weight)
        active = np.arange(rows.size, dtype=np.int32)
    objective = float(np.vdot(weight, weight)) / (2 * config.variance) + entropy_kernel(alpha)
    history.add(0, rows.size, weight, objective)
    for number in range(1, config.passes + 1):
        report = np.zeros(5)
        before = len(active)
        with history.clock:
            order = shuffled(active, seed, number)
            dual_kernel(
                rows.first,
                rows.feature,
                order,
                config.variance,
                config.shrink,
                rate,
                np.int64(config.trials),
                alpha,
                weight,
                report,
            )
            # Sorted, so that neighbouring examples stay in one block.
            active = np.sort(order[: int(report[KEPT])])
        objective += report[CHANGE]
        updates, halved, stuck = (
            total + int(report[column])
            for total, column in ((updates, UPDATES), (halved, HALVED), (stuck, STUCK))
        )
        history.add(number, before, weight, objective)
        if not len(active):
            break
    dual = float(np.vdot(weight, weight)) / (2 * config.variance) + entropy_kernel(alpha)
    facts = {"updates": updates, "halved": halved, "stuck": stuck, "left": len(active)}
    primal = primal_objective(rows, weight, config.variance)
    return Learned(weight, history.passes, primal, dual, facts)
