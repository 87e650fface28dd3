# mypy: allow-untyped-calls
"""Shared parts of the learners: order of examples, objective, history of passes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.progress import Progress, SilentProgress
from hiero.reordering.examples import Examples, Rows
from hiero.reordering.learn_kernels import log_probs_kernel, shuffle_kernel

# Examples that stay neighbours, and examples that are shuffled together: a pool should fit into the cache,
# but come from so many sentences that consecutive updates do not undo each other.
BLOCK, POOL = 1 << 8, 1 << 16
AT_ONCE = 1 << 18
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pass:
    """A pass over the examples, numbered from 1; 0 is the state before the first.

    cpu        seconds of learning up to its end
    active     examples left at its beginning
    error      error rate on the held-out examples; None without any
    objective  P of the primal problem, or D of the dual one, where it is known without further work
    """

    number: int
    cpu: float
    active: int
    error: float | None = None
    objective: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Learned:
    """Weights of a classifier, and the history of learning them."""

    weight: Weights
    history: list[Pass]
    primal: float  # P of the weights
    dual: float | None = None  # D of the dual variables
    facts: Mapping[str, float] | None = None  # statistics of this learner

    @property
    def gap(self) -> float | None:
        """The duality gap: an upper bound on the distance of P from its minimum."""
        return None if self.dual is None else self.primal + self.dual


class Clock:
    """CPU seconds of the process within ``with`` blocks."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *error: object) -> None:
        self.seconds += time.process_time() - self._start


def shuffled(active: npt.NDArray[np.int32], seed: int, number: int) -> npt.NDArray[np.int32]:
    """The examples of a pass in an order that depends on the seed and on the number of the pass."""
    order = np.empty(len(active), np.int32)
    code = np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0]
    shuffle_kernel(active, code, np.int64(BLOCK), np.int64(POOL), order)
    return order


def log_probs(rows: Rows, weight: Weights) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
    """Natural logarithms of the class probabilities, as (first example, block)."""
    for begin in range(0, rows.size, AT_ONCE):
        end = min(begin + AT_ONCE, rows.size)
        out = np.empty((end - begin, 3))
        log_probs_kernel(rows.first, rows.feature, weight, begin, end, out)
        yield begin, out


def primal_objective(rows: Rows, weight: Weights, variance: float) -> float:
    """P of the weights."""
    loss = 0.0
    for begin, logs in log_probs(rows, weight):
        label = rows.label[begin : begin + len(logs)]
        loss -= float(logs[np.arange(len(logs)), label].sum())
    return loss + float(np.vdot(weight, weight)) / (2 * variance)


def error_rate(rows: Rows, weight: Weights) -> float:
    """The error rate of the classifier."""
    wrong = 0
    for begin, logs in log_probs(rows, weight):
        wrong += int(np.count_nonzero(logs.argmax(axis=1) != rows.label[begin : begin + len(logs)]))
    return wrong / max(rows.size, 1)


class LearningHistory:
    """Records passes and reports progress."""

    def __init__(self, held_out: Examples | None, watch: Progress | None) -> None:
        self.held_out = held_out.rows if held_out is not None else None
        self.watch: Progress = watch or SilentProgress()
        self.clock = Clock()
        self.passes: list[Pass] = []

    def add(self, number: int, active: int, weight: Weights, objective: float | None = None) -> None:
        error = error_rate(self.held_out, weight) if self.held_out is not None else None
        self.passes.append(Pass(number, self.clock.seconds, active, error, objective))
        note = f"{active} examples" + ("" if error is None else f", {100 * error:.2f} % wrong")
        if number:
            self.watch.advance(1, note)
