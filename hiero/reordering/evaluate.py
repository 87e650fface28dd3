"""Evaluate orientation models on held-out examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hiero.core.arrays import Floats, Ints
from hiero.core.errors import HieroError
from hiero.reordering.config import CLASSES
from hiero.reordering.examples import Examples
from hiero.reordering.learn import AT_ONCE
from hiero.reordering.model import Classifier, Lexicalised, OrientationModel

BINS = 10  # of probabilities, for calibration
NEXT, AS_GAPS = ", next phrases", ", as gaps"


@dataclass(frozen=True)
class Evaluation:
    """Results of a model, or of the majority class, on examples.

    name
    confusion  int64 [3, 3]  examples by true class and by predicted class
    loss       mean of -log2 of the probability of the true class: bits per example
    bins       float64 [B, 3] examples by the probability of the predicted class, a tenth each: their number,
               the sum of these probabilities, the number of correct predictions
    """

    name: str
    confusion: Ints
    loss: float
    bins: Floats

    @property
    def num_examples(self) -> int:
        return int(self.confusion.sum())

    @property
    def error(self) -> float:
        return 1.0 - float(np.trace(self.confusion)) / self.num_examples

    @property
    def class_errors(self) -> list[float | None]:
        """The error rate of each class; None without examples of it."""
        totals = self.confusion.sum(axis=1).tolist()
        right = np.diagonal(self.confusion).tolist()
        return [1.0 - r / total if total else None for r, total in zip(right, totals, strict=True)]

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: mean difference between predicted probability and accuracy."""
        return float(np.abs(self.bins[:, 1] - self.bins[:, 2]).sum()) / self.num_examples

    def as_dict(self) -> dict[str, Any]:
        """All results, for JSON."""
        return {
            "name": self.name,
            "examples": self.num_examples,
            "error": self.error,
            "class_errors": dict(zip(CLASSES, self.class_errors, strict=True)),
            "confusion": self.confusion.tolist(),
            "bits": self.loss,
            "calibration_error": self.calibration_error,
            "calibration": [
                {"examples": int(n), "probability": p / n, "right": r / n}
                for n, p, r in self.bins.tolist()
                if n
            ],
        }


def evaluate(
    model: Classifier | Lexicalised, examples: Examples, as_gaps: bool = False, ahead: bool = False
) -> Evaluation:
    """Classify examples by a model.

    as_gaps  as if their words were not known
    ahead    the phrases after them, by a bidirectional model
    """
    model.check(examples)
    if not examples.rows.size:
        raise HieroError(f"{examples.path}: there are no examples to evaluate")
    name = f"{model.path}{NEXT if ahead else ''}{AS_GAPS if as_gaps else ''}"
    log_probs = partial(model.log_probs, examples, as_gaps=as_gaps, ahead=ahead)
    return _evaluation(name, examples.of_next() if ahead else examples, log_probs)


def evaluations_of(model: Classifier | Lexicalised, examples: Examples) -> list[Evaluation]:
    """Of all directions that a model scores, each with known words and as gaps."""
    directions = (False, True) if model.bidirectional else (False,)
    return [evaluate(model, examples, as_gaps, ahead) for ahead in directions for as_gaps in (False, True)]


def evaluate_majority(model: OrientationModel, examples: Examples) -> Evaluation:
    """Predict the majority class of a model's training examples for all examples."""
    logs = np.log(model.prior)[None, :]
    return _evaluation("majority class", examples, lambda begin, end: np.repeat(logs, end - begin, axis=0))


def _evaluation(name: str, examples: Examples, log_probs: Callable[[int, int], Floats]) -> Evaluation:
    confusion, bins, loss = np.zeros((3, 3), np.int64), np.zeros((BINS, 3)), 0.0
    for begin in range(0, examples.rows.size, AT_ONCE):
        logs = log_probs(begin, min(begin + AT_ONCE, examples.rows.size))
        label = examples.rows.label[begin : begin + len(logs)].astype(np.int64)
        predicted = logs.argmax(axis=1)
        confusion += np.bincount(3 * label + predicted, minlength=9).reshape(3, 3)
        loss -= float(logs[np.arange(len(logs)), label].sum())
        prob = np.exp(logs.max(axis=1))
        place = np.minimum((prob * BINS).astype(np.int64), BINS - 1)
        for column, values in enumerate((np.ones(len(prob)), prob, (predicted == label).astype(float))):
            bins[:, column] += np.bincount(place, weights=values, minlength=BINS)
    return Evaluation(name, confusion, loss / np.log(2) / max(examples.rows.size, 1), bins)


# ---- as text


def report(evaluations: Sequence[Evaluation], top: dict[str, list[tuple[str, float]]] | None = None) -> str:
    """Tables for a terminal: all systems, then confusion, calibration and features of the first."""
    first = evaluations[0]
    width = max(len(one.name) for one in evaluations)
    head = "".join(f"{name:>11}" for name in ("error", *CLASSES, "bits", "calibr."))
    lines = [f"{first.num_examples:,} examples; per cent wrong, of all and by class", f"{'':{width}}{head}"]
    for one in evaluations:
        errors = [one.error, *one.class_errors]
        cells = "".join("          -" if e is None else f"{100 * e:11.2f}" for e in errors)
        lines.append(f"{one.name:{width}}{cells}{one.loss:11.4f}{100 * one.calibration_error:11.2f}")
    lines += ["", f"{first.name}: true class by predicted class"]
    lines.append(f"{'':11}" + "".join(f"{name:>12}" for name in CLASSES))
    for name, row in zip(CLASSES, first.confusion.tolist(), strict=True):
        lines.append(f"{name:11}" + "".join(f"{count:12,}" for count in row))
    lines += ["", f"{first.name}: probability of the predicted class, and accuracy"]
    lines.append(f"{'':11}{'examples':>12}{'probability':>12}{'right':>12}")
    for b, (count, prob, right) in enumerate(first.bins.tolist()):
        if count:
            span = f"{b / BINS:.1f} - {(b + 1) / BINS:.1f}"
            lines.append(f"{span:11}{int(count):12,}{prob / count:12.4f}{right / count:12.4f}")
    for name, features in (top or {}).items():
        lines += ["", f"for {name}"]
        lines += [f"{weight:9.3f}  {feature}" for feature, weight in features]
    return "\n".join(lines) + "\n"
