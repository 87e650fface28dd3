"""The interface between decoding and learning: examples, the protocol of online learners, making learners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from hiero.core.arrays import Flags, Floats, Ids, Ints
from hiero.learning.candidates import Candidates
from hiero.learning.config import TuneSettings
from hiero.learning.regularize import Regulariser, all_dense


class Example(NamedTuple):
    """A sentence decoded with the current weights, and at least one candidate.

    number         its line in the tuning set, from 0
    source_length  in words
    candidates     N translations, best first
    statistics     int64 [N, 2 + 2 * order], of BLEU (``hiero.evaluation.bleu``)
    shortest       length of its shortest reference in words
    """

    number: int
    source_length: int
    candidates: Candidates
    statistics: Ints
    shortest: int


@dataclass
class UpdateReport:
    """Counts of what a learner did; reports can be added."""

    sentences: int = 0  # learnt from
    failed: int = 0  # not learnt from: without a derivation or a reference
    unpaired: int = 0  # of ``sentences``, those without a pair of translations to compare
    equal: int = 0  # of ``unpaired``, those whose translations all have the same score by the metric
    pairs: int = 0  # compared; for MIRA, sentences
    errors: int = 0  # of ``pairs``, those ranked wrongly, or that violate their margin
    updates: int = 0  # changes of the weights
    loss: float = 0.0
    # Summed BLEU statistics of translations: best by the model, learnt towards, and learnt away from.
    model: Floats = field(default_factory=lambda: np.zeros(10))
    oracle: Floats = field(default_factory=lambda: np.zeros(10))
    prediction: Floats = field(default_factory=lambda: np.zeros(10))

    def add(self, other: UpdateReport) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Learner(Protocol):
    """An online learner. Each shard has its own, used by one thread at a time."""

    def learn(self, batch: Sequence[Example], weight: Floats) -> UpdateReport:
        """Learn from a mini-batch, or from one example if the algorithm is strictly online.

        ``weight`` is changed in place; it has room for at least every feature of the batch.
        """
        ...

    def end_epoch(self, weight: Floats) -> None:
        """Finish an epoch; called after its last example, before weights are written or mixed."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the memory kept from one epoch to the next, as arrays and numbers, for ``restore``.

        Arrays over features are as long as the last weights and numbered like them.
        """
        ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


class Gradient(NamedTuple):
    """Gradient of the summed loss of a mini-batch: ascending features, values other than 0; and a report."""

    id: Ids
    value: Floats
    report: UpdateReport


class StaleLearner(Learner, Protocol):
    """An online learner for stale gradients: several threads compute them, one at a time applies its own."""

    def snapshot(self, weight: Floats) -> Floats:
        """Return a copy of the weights to decode with."""
        ...

    def gradient(self, batch: Sequence[Example], weight: Floats) -> Gradient:
        """Return the gradient of a mini-batch; ``weight`` is not changed."""
        ...

    def apply(self, ids: Ids, values: Floats, weight: Floats) -> None:
        """Take a step down a gradient."""
        ...


@dataclass(frozen=True, kw_only=True)
class LearnerContext:
    """Data of a run that a learner is made with, beside the settings.

    seed       of random numbers
    terms      further terms of the objective
    sentences  number to learn from in an epoch, over which an online learner distributes the terms
    named      numbers of the features with a name of their own, for learners of few weights
    is_dense   whether each of the first N features is dense, given N
    threads    number of threads to use
    """

    seed: int = 0
    terms: Sequence[Regulariser] = ()
    sentences: int = 1
    named: Sequence[int] = ()
    is_dense: Callable[[int], Flags] = all_dense
    threads: int = 1


def make_learner(settings: TuneSettings, context: LearnerContext) -> Any:
    """Make the learner of the algorithm: a ``Learner`` if it is online, or else a ``BatchLearner``."""
    return settings.row.learner_class().make(settings, context)


def count_of(state: Mapping[str, Any], name: str) -> int:
    """A count of a saved state; one below 0 raises a ValueError."""
    count = int(state[name])
    if count < 0:
        raise ValueError(f"{name}: found {count}, expected 0 or more")
    return count
