"""Training of orientation models, and learners of classifiers (Alrajeh and Niranjan 2014).

The primal problem by stochastic gradient descent (eq. 6 to 8), the dual one by exponentiated gradient with
shrinking (Algorithm 1).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiero.core.arrays import Floats, Ids, offsets_of, read_only, take_rows
from hiero.core.progress import Progress, SilentProgress
from hiero.reordering.config import LearnConfig
from hiero.reordering.examples import Examples, Rows, check_features, open_examples
from hiero.reordering.learn_kernels import (
    CHANGE,
    HALVED,
    KEPT,
    STUCK,
    UPDATES,
    dual_kernel,
    dual_start_kernel,
    entropy_kernel,
    log_probs_kernel,
    sgd_kernel,
    shuffle_kernel,
)
from hiero.reordering.model import (
    CLASSIFIER,
    LEXICALISED,
    smoothed_prior,
    write_classifier,
    write_lexicalised,
)
from hiero.reordering.table_kernels import BIAS, KIND_SHIFT, PAIR

# Examples that stay neighbours, and examples that are shuffled together: a pool should fit into the cache,
# but come from so many sentences that consecutive updates do not undo each other.
BLOCK, POOL = 1 << 8, 1 << 16
AT_ONCE = 1 << 18
SEARCHES_FOR_TRUST = 20


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

    weight: Floats
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


def shuffled(active: Ids, seed: int, number: int) -> Ids:
    """The examples of a pass in an order that depends on the seed and on the number of the pass."""
    order = np.empty(len(active), np.int32)
    code = np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0]
    shuffle_kernel(active, code, np.int64(BLOCK), np.int64(POOL), order)
    return order


def log_probs(rows: Rows, weight: Floats) -> Iterator[tuple[int, Floats]]:
    """Natural logarithms of the class probabilities, as (first example, block)."""
    for begin in range(0, rows.size, AT_ONCE):
        end = min(begin + AT_ONCE, rows.size)
        out = np.empty((end - begin, 3))
        log_probs_kernel(rows.first, rows.feature, weight, begin, end, out)
        yield begin, out


def primal_objective(rows: Rows, weight: Floats, variance: float) -> float:
    """P of the weights."""
    loss = 0.0
    for begin, logs in log_probs(rows, weight):
        label = rows.label[begin : begin + len(logs)]
        loss -= float(logs[np.arange(len(logs)), label].sum())
    return loss + float(np.vdot(weight, weight)) / (2 * variance)


def orientation_error_rate(rows: Rows, weight: Floats) -> float:
    """The share of examples of orientations that a classifier with these weights gets wrong."""
    wrong = 0
    for begin, logs in log_probs(rows, weight):
        wrong += int(np.count_nonzero(logs.argmax(axis=1) != rows.label[begin : begin + len(logs)]))
    return wrong / max(rows.size, 1)


class LearningHistory:
    """Records passes and reports progress."""

    def __init__(self, held_out: Examples | None, progress: Progress | None) -> None:
        self.held_out = held_out.rows if held_out is not None else None
        self.progress: Progress = progress or SilentProgress()
        self.clock = Clock()
        self.passes: list[Pass] = []

    def add(self, number: int, active: int, weight: Floats, objective: float | None = None) -> None:
        error = orientation_error_rate(self.held_out, weight) if self.held_out is not None else None
        self.passes.append(Pass(number, self.clock.seconds, active, error, objective))
        note = f"{active} examples" + ("" if error is None else f", {100 * error:.2f} % wrong")
        if number:
            self.progress.advance(1, note)


SAMPLE = 10_000  # examples for choosing a rate
RATES = tuple(4.0 / 2**k for k in range(12))


def learn_primal(
    examples: Examples,
    config: LearnConfig,
    seed: int = 1,
    *,
    held_out: Examples | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Minimise P by ``passes`` passes over the examples."""
    rows, history = examples.rows, LearningHistory(held_out, progress)
    decay = 1.0 / (config.variance * rows.size)
    weight = np.zeros((examples.num_features, 3))
    memory = np.array([1.0, 0.0])
    history.progress.begin(config.passes, "reorder train")
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
    """How fast the rate of an orientation learner falls: as in Bottou (2010), or to a half in the first pass.

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
        weight: Floats = np.zeros((num_features, 3))
        memory = np.array([1.0, 0.0])
        sgd_kernel(*rows, order, rate, cooling(rate, decay, rows.size), decay, memory, weight)
        weight *= memory[0]
        losses.append(primal_objective(sample, weight, 1.0 / (decay * sample.size)))
    best: float = RATES[int(np.argmin(losses))]
    return best


def _rows(rows: Rows, chosen: np.ndarray) -> Rows:
    first, place = take_rows(rows.first, chosen)
    return Rows(read_only(first), read_only(rows.feature[place]), read_only(rows.label[chosen]))


FIRST_RATE = 0.5


def learn_dual(
    examples: Examples,
    config: LearnConfig,
    seed: int = 1,
    *,
    held_out: Examples | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Minimise D; stop after ``passes`` or when all examples are fitted.

    A pass visits each example that is not fitted yet once, in random order.
    """
    rows, history = examples.rows, LearningHistory(held_out, progress)
    history.progress.begin(config.passes, "reorder train")
    rate = config.rate or FIRST_RATE
    totals = np.zeros(5)
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
            limits = config.variance, config.shrink, rate, np.int64(config.trials)
            dual_kernel(rows.first, rows.feature, order, *limits, alpha, weight, report)
            # Sorted, so that neighbouring examples stay in one block.
            active = np.sort(order[: int(report[KEPT])])
        objective += report[CHANGE]
        totals += report
        history.add(number, before, weight, objective)
        if not len(active):
            break
    dual = float(np.vdot(weight, weight)) / (2 * config.variance) + entropy_kernel(alpha)
    count = totals.astype(int).tolist()
    facts = {"updates": count[UPDATES], "halved": count[HALVED], "stuck": count[STUCK], "left": len(active)}
    primal = primal_objective(rows, weight, config.variance)
    return Learned(weight, history.passes, primal, dual, facts)


def without_pairs(examples: Examples) -> Examples:
    """The same examples without their word pairs: what is known of a block of unknown words."""
    rows, is_kept = examples.rows, (examples.features.key >> KIND_SHIFT) != PAIR
    length, feature = np.zeros(rows.size, np.int64), [np.empty(0, np.int32)]
    for begin in range(0, rows.size, AT_ONCE):
        first = rows.first[begin : begin + AT_ONCE + 1]
        part = rows.feature[first[0] : first[-1]]
        keep = is_kept[part]
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
        length[begin : begin + len(first) - 1] = np.diff(before[first - first[0]])
        feature.append(part[keep])
    plain = Rows(read_only(offsets_of(length)), read_only(np.concatenate(feature)), rows.label)
    return dataclasses.replace(examples, rows=plain)


def calibrated(weight: Floats, examples: Examples, prior: Floats, held_out: Examples) -> tuple[Floats, float]:
    """Weights that trust a classifier as far as held-out examples justify it, and the trust, from 0 to 1.

    A score is mixed with the logarithm of the prior, so that the loss on these examples is least, and never
    more than that of the prior: phrases overlap, and a classifier is too sure of what it has counted often.
    """
    logs = np.concatenate([one for _, one in log_probs(held_out.rows, weight)])
    label = held_out.rows.label.astype(np.int64)
    rest = np.log(prior)

    def loss(trust: float) -> float:
        mixed = trust * logs + (1.0 - trust) * rest
        return float((np.logaddexp.reduce(mixed, axis=1) - mixed[np.arange(len(label)), label]).mean())

    low, high = 0.0, 1.0
    for _ in range(SEARCHES_FOR_TRUST):  # the loss is convex
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if loss(one) < loss(two) else (one, high)
    trust = min((0.0, (low + high) / 2, 1.0), key=loss)
    mixed = trust * weight
    mixed[np.flatnonzero(examples.features.key >> KIND_SHIFT == BIAS)] += (1.0 - trust) * rest
    return mixed, trust


# ---- models


@dataclass(frozen=True)
class Trained:
    """Statistics of training; ``learned`` is None for a lexicalised model, which only counts.

    learned  of the class of a phrase itself, with word pairs
    cpu      seconds of all learning
    """

    num_examples: int
    cpu: float
    learned: Learned | None

    def __str__(self) -> str:
        text = f"{self.num_examples:,} examples, {self.cpu:.1f} s of CPU"
        if self.learned is None:
            return text
        last = self.learned.history[-1]
        text += f", {last.number} passes; P {self.learned.primal:.6g}"
        if self.learned.gap is not None:
            text += f", at most {self.learned.gap:.3g} above the least"
        if "trust" in (facts := self.learned.facts or {}):
            text += f", trust {facts['trust']:.2f}"
        if last.error is not None:
            text += f"; {100 * last.error:.2f} % of the held-out examples wrong"
        return text


def train_model(
    examples: str | Path,
    output: str | Path,
    config: LearnConfig | None = None,
    *,
    seed: int = 1,
    held_out: str | Path | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Learn an orientation model from examples and write it; after each pass, classify held-out examples."""
    config, progress = config or LearnConfig(), progress or SilentProgress()
    (LEXICALISED if config.learner == "lexicalised" else CLASSIFIER).check_place(Path(output))
    train = open_examples(examples)
    held = _held_out(held_out, train)
    if config.learner == "lexicalised":
        started = time.process_time()
        write_lexicalised(Path(output), train, config, seed)
        return Trained(train.rows.size, time.process_time() - started, None)
    learn = learn_dual if config.learner == "dual" else learn_primal
    given = [(train, held)]
    if config.bidirectional:
        given.append((train.of_next(), None if held is None else held.of_next()))
    learned = []
    for examples_of, held_of in given:
        known = learn(examples_of, config, seed, held_out=held_of, progress=progress)
        of_gaps = learn(without_pairs(examples_of), config, seed, progress=progress)
        if held_of is not None and config.calibrate:
            prior = smoothed_prior(examples_of.classes)
            known = _trusted(known, examples_of, prior, held_of)
            of_gaps = _trusted(of_gaps, examples_of, prior, without_pairs(held_of))
        learned.append((known, of_gaps))
    write_classifier(Path(output), train, config, seed, learned)
    cpu = sum(one.history[-1].cpu for both in learned for one in both)
    return Trained(train.rows.size, cpu, learned[0][0])


def _trusted(learned: Learned, examples: Examples, prior: Floats, held_out: Examples) -> Learned:
    weight, trust = calibrated(learned.weight, examples, prior, held_out)
    return dataclasses.replace(learned, weight=weight, facts=dict(learned.facts or {}) | {"trust": trust})


def _held_out(path: str | Path | None, train: Examples) -> Examples | None:
    if path is None:
        return None
    held = open_examples(path)
    check_features(held.digest, train.digest, held.path, train.path, held.settings, train.settings)
    return held
