"""What a learner is given, and what it is: the contract between decoding and learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hiero.candidates import Candidates

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Example(NamedTuple):
    """A sentence, decoded with the weights of the moment. There is at least one candidate.

    number         its line in the tuning set, from 0
    source_length  words
    candidates     N translations, best first
    statistics     int64 [N, 2 + 2 * order], of BLEU (``hiero.metrics``)
    shortest       words of its shortest reference
    """

    number: int
    source_length: int
    candidates: Candidates
    statistics: Ints
    shortest: int


@dataclass
class UpdateReport:
    """What happened while learning; reports add up."""

    sentences: int = 0
    failed: int = 0  # not learnt from: there is no derivation, or no reference
    unpaired: int = 0  # of these, those that taught nothing: no two translations to tell apart ...
    equal: int = 0  # ... and of those, the ones whose translations are all equally good (or there is but one)
    pairs: int = 0  # compared; for MIRA, sentences
    errors: int = 0  # of these, how many were ranked wrongly, or violated their margin
    updates: int = 0  # changes of the weights
    loss: float = 0.0
    model: Floats = field(default_factory=lambda: np.zeros(10))  # statistics of the best by the model
    oracle: Floats = field(default_factory=lambda: np.zeros(10))  # of those learnt towards ...
    prediction: Floats = field(default_factory=lambda: np.zeros(10))  # ... and of those learnt away from

    def add(self, other: UpdateReport) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Learner(Protocol):
    """Changes weights after looking at examples. One belongs to one shard, and to one thread at a time."""

    def learn(self, batch: Sequence[Example], weight: Floats) -> UpdateReport:
        """Take one step (a mini-batch; of one example, if the algorithm is strictly online).

        ``weight`` is changed in place; it has room for every feature of the batch, and more.
        """
        ...

    def end_epoch(self, weight: Floats) -> None:
        """Called after the last example of an epoch, before weights are kept or mixed."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is remembered from one epoch to the next, as arrays and numbers, for ``restore``.

        Arrays over features are as long as the weights were at last, by the same numbers.
        """
        ...

    def restore(self, state: Mapping[str, Any]) -> None: ...
