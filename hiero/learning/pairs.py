# mypy: allow-untyped-calls
"""Selection of pairs of translations of a sentence, for pairwise ranking.

    multipartite  Simianer, Riezler and Dyer 2012, section 5.1: by the metric, the best tenth (HI), the middle
                  and the last tenth (LOW); pairs between the three levels, none within
    all           each translation with all worse ones
    pro           Hopkins and May 2011: random pairs, of which those with the largest differences are kept

A pair is (better, worse), two positions in the list of translations. Translations with equal scores are never
paired. Ties in sorting are broken by the model's order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hiero.core.errors import ConfigError
from hiero.core.symbols import read_only
from hiero.learning.learn_pairs_part_kernels import drawn_pairs_kernel, level_pairs_kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pairs = npt.NDArray[np.int32]  # [P, 2]

MOST_PAIRS = 20_000_000  # of one sentence; they take 160 MB
SMALLEST_DEVIATION = 2.0  # of lengths, in words; cdec's


class Pairing(Protocol):
    """Selects the pairs of a sentence."""

    def __call__(self, gold: Floats, length: Ints, epoch: int, number: int) -> Pairs:
        """Pairs of N translations.

        gold    float64 [N]  scores by the metric, in the model's order
        length  int64 [N]    in words
        epoch, number        epoch, and number of the sentence in the tuning set; they seed random pairs
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Multipartite:
    """HI x MID, then HI x LOW, then MID x LOW, each in the order of the metric.

    share  fraction of the list in HI, and in LOW; at least one translation, at most half of them
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.share <= 0.5:
            raise ConfigError(f"share: found {self.share}, expected more than 0 and at most 0.5")

    def __call__(self, gold: Floats, length: Ints, epoch: int, number: int) -> Pairs:
        size = min(max(1, int(self.share * len(gold) + 0.5)), len(gold) // 2)
        return _by_level(gold, [0, size, len(gold) - size, len(gold)])


@dataclass(frozen=True)
class AllPairs:
    """All pairs, in the order of the metric."""

    def __call__(self, gold: Floats, length: Ints, epoch: int, number: int) -> Pairs:
        return _by_level(gold, range(len(gold) + 1))


@dataclass(frozen=True, kw_only=True)
class SampledPairs:
    """Random pairs, those with the largest differences first.

    Other systems:              draws  keep  threshold
        Hopkins and May, Moses  5,000    50       0.05
        cdec                    5,000    50       0      soft, length_deviations 2
        Phrasal                   500    15       0.05   (times the length of the reference, if its metric is)
        Clark                   5,000    50       0      not largest

    draws              pairs drawn, with replacement (Γ)
    keep               largest number of accepted pairs to keep (Ξ)
    threshold          smallest difference in the metric to accept
    soft               accept at random, larger differences with a higher probability
    length_deviations  reject pairs whose lengths differ by more than this many standard deviations of the
                       lengths in the list (at least 2 words); 0 rejects none
    largest            keep the pairs with the largest differences, or else the first ones drawn
    seed               pairs only depend on it, the epoch and the number of the sentence
    """

    draws: int = 5000
    keep: int = 50
    threshold: float = 0.05
    soft: bool = False
    length_deviations: float = 0.0
    largest: bool = True
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("draws", "keep"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected at least 1")
        for name in ("threshold", "length_deviations", "seed"):
            if not 0 <= getattr(self, name) < 2**63:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected at least 0")

    def __call__(self, gold: Floats, length: Ints, epoch: int, number: int) -> Pairs:
        apart = np.inf
        if self.length_deviations:
            apart = self.length_deviations * max(float(np.std(length)), SMALLEST_DEVIATION)
        pair = np.empty((self.draws, 2), np.int32)
        difference = np.empty(self.draws)
        count = drawn_pairs_kernel(
            read_only(np.ascontiguousarray(gold, np.float64)),
            read_only(np.ascontiguousarray(length, np.int64)),
            np.int64(self.seed),
            np.int64(epoch),
            np.int64(number),
            np.int64(self.draws),
            np.float64(self.threshold),
            np.float64(apart),
            self.soft,
            pair,
            difference,
        )
        if self.largest:
            kept = np.argsort(-difference[:count], kind="stable")[: self.keep]
        else:
            kept = np.arange(min(count, self.keep))
        return read_only(pair[kept])


def _by_level(gold: Floats, first_of_level: range | list[int]) -> Pairs:
    gold = read_only(np.ascontiguousarray(gold, np.float64))
    order = read_only(np.argsort(-gold, kind="stable"))
    levels = read_only(np.array(first_of_level, np.int64))
    count = level_pairs_kernel(gold, order, levels, np.empty((0, 2), np.int32))
    if count > MOST_PAIRS:
        raise ConfigError(
            f"pairs: found {count:,} in {len(gold):,} translations of a sentence, expected at most"
            f" {MOST_PAIRS:,} (use a smaller kbest, or pairs: pro)"
        )
    pair = np.empty((count, 2), np.int32)
    level_pairs_kernel(gold, order, levels, pair)
    return read_only(pair)
