"""Selection of pairs of translations of a sentence, for pairwise ranking.

    multipartite  Simianer, Riezler and Dyer 2012, section 5.1: by the metric, the best tenth (HI), the middle
                  and the last tenth (LOW); pairs between the three levels, none within
    all           each translation with all worse ones
    pro           Hopkins and May 2011: random pairs, of which those with the largest differences are kept

A pair is (better, worse), two positions in the list of translations. Translations with equal scores are never
paired. Ties in sorting are broken by the model's order. All pairwise learners share the arrays of pairs and
losses that kernels take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from hiero.core.arrays import Floats, Ids, Ints, read_only
from hiero.core.errors import ConfigError
from hiero.core.records import Checked, part, setting
from hiero.features.rows import FeatureRows
from hiero.learning.config import TuneSettings
from hiero.learning.learner import Example, LearnerContext, UpdateReport
from hiero.learning.metric import Gold, gold_metric
from hiero.learning.rank_kernels import LOGISTIC, MARGIN, PERCEPTRON, drawn_pairs_kernel, level_pairs_kernel
from hiero.learning.regularize import Ridge

MOST_PAIRS = 20_000_000  # of one sentence; they take 160 MB
SMALLEST_DEVIATION = 2.0  # of lengths, in words; cdec's


class Pairing(Protocol):
    """Selects the pairs of a sentence."""

    def __call__(self, gold: Floats, length: Ints, epoch: int, number: int) -> Ids:
        """Pairs of N translations.

        gold    float64 [N]  scores by the metric, in the model's order
        length  int64 [N]    in words
        epoch, number        epoch, and number of the sentence in the tuning set; they seed random pairs
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Multipartite(Checked):
    """HI x MID, then HI x LOW, then MID x LOW, each in the order of the metric.

    share  fraction of the list in HI, and in LOW; at least one translation, at most half of them
    """

    share: float = setting(0.1, above=0, most=0.5)

    def __call__(self, gold: Floats, length: Ints, epoch: int, number: int) -> Ids:
        size = min(max(1, int(self.share * len(gold) + 0.5)), len(gold) // 2)
        return _by_level(gold, [0, size, len(gold) - size, len(gold)])


@dataclass(frozen=True)
class AllPairs:
    """All pairs, in the order of the metric."""

    def __call__(self, gold: Floats, length: Ints, epoch: int, number: int) -> Ids:
        return _by_level(gold, range(len(gold) + 1))


@dataclass(frozen=True, kw_only=True)
class SampledPairs(Checked):
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

    draws: int = setting(5000, least=1)
    keep: int = setting(50, least=1)
    threshold: float = setting(0.05, least=0)
    soft: bool = False
    length_deviations: float = setting(0.0, least=0)
    largest: bool = True
    seed: int = setting(1, least=0, most=2**63 - 1)

    def __call__(self, gold: Floats, length: Ints, epoch: int, number: int) -> Ids:
        apart = np.inf
        if self.length_deviations:
            apart = self.length_deviations * max(float(np.std(length)), SMALLEST_DEVIATION)
        pair = np.empty((self.draws, 2), np.int32)
        difference = np.empty(self.draws)
        gold = read_only(np.ascontiguousarray(gold, np.float64))
        length = read_only(np.ascontiguousarray(length, np.int64))
        whole = np.int64(self.seed), np.int64(epoch), np.int64(number), np.int64(self.draws)
        limits = np.float64(self.threshold), np.float64(apart), self.soft
        count = drawn_pairs_kernel(gold, length, *whole, *limits, pair, difference)
        if self.largest:
            kept = np.argsort(-difference[:count], kind="stable")[: self.keep]
        else:
            kept = np.arange(min(count, self.keep))
        return read_only(pair[kept])


def make_pairing(settings: TuneSettings, seed: int) -> Pairing:
    if settings.pairs == "all":
        return AllPairs()
    if settings.pairs == "multipartite":
        return Multipartite(share=settings.share)
    return part(SampledPairs, settings, seed=seed)


def _by_level(gold: Floats, first_of_level: range | list[int]) -> Ids:
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


LossName = Literal["perceptron", "margin", "logistic"]
KINDS = {"perceptron": PERCEPTRON, "margin": MARGIN, "logistic": LOGISTIC}


@dataclass(frozen=True, kw_only=True)
class Loss(Checked):
    """Loss of a pair at margin w·x̄, where x̄ are the features of the better translation minus the worse.

    name     perceptron  max(0, -w·x̄), with an update at 0 too, since weights may start from 0
             margin      max(0, margin - w·x̄), the hinge loss
             logistic    log(1 + exp(-w·x̄))
    margin   of the hinge loss
    by_gold  the difference of the two translations by the metric scales nothing, the margin, or the loss
    """

    name: LossName = "perceptron"
    margin: float = setting(1.0, above=0)
    by_gold: Literal["nothing", "margin", "loss"] = "nothing"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by_gold == "margin" and self.name != "margin":
            raise ConfigError(f"by_gold: margin works with loss: margin, not with loss: {self.name}")

    @property
    def kind(self) -> np.int64:
        return np.int64(KINDS[self.name])

    def margins_and_weights(self, gold: Floats, pair: Ids) -> tuple[Floats, Floats]:
        """For each pair, its margin, and the factor of its loss."""
        margins, pair_weights = np.full(len(pair), self.margin), np.ones(len(pair))
        if self.by_gold != "nothing":
            difference = gold[pair[:, 0]] - gold[pair[:, 1]]
            if self.by_gold == "margin":
                margins *= difference
            else:
                pair_weights = difference
        return read_only(margins), read_only(pair_weights)


def make_loss(settings: TuneSettings) -> Loss:
    """Return the loss of ranked pairs that the settings ask for."""
    return Loss(name=settings.loss, margin=settings.margin, by_gold=settings.by_gold)


def pairwise_parts(settings: TuneSettings, context: LearnerContext) -> dict[str, Any]:
    """What online learners from pairs have in common, for ``part``."""
    ridge = Ridge(settings.l2, sparse=settings.l2_sparse, is_dense=context.is_dense)
    return {
        "gold": gold_metric(settings.metric),
        "pairing": make_pairing(settings, context.seed),
        "loss": make_loss(settings),
        "terms": [*context.terms, *([] if ridge.is_zero else [ridge])],
        "sentences": context.sentences,
    }


class RankedPairs(NamedTuple):
    """The pairs of a sentence, as arguments of the kernels; see ``rank_kernel``."""

    rows: FeatureRows
    pair: Ids
    margins: Floats
    pair_weights: Floats


def ranked_pairs(
    example: Example, gold: Gold, pairing: Pairing, loss: Loss, epoch: int, report: UpdateReport
) -> RankedPairs | None:
    """Return the pairs of a sentence, or None if there are none; count them in ``report``."""
    scores = gold.scores(example)
    pair = pairing(scores, example.statistics[:, 0], epoch, example.number)
    report.sentences += 1
    report.model = report.model + example.statistics[0]
    report.pairs += len(pair)
    gold.remember(example, int(np.argmax(scores)))
    if not len(pair):
        report.unpaired += 1
        report.equal += bool((scores == scores[0]).all())
        return None
    candidates = example.candidates
    rows = FeatureRows(candidates.first, candidates.id, candidates.value)
    return RankedPairs(rows, pair, *loss.margins_and_weights(scores, pair))
