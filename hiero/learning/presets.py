"""Learners made from the settings."""

from __future__ import annotations

from hiero.learning.adagrad import AdaGradLearner
from hiero.learning.config import TuneConfig
from hiero.learning.learner import Learner
from hiero.learning.metric import Gold, gold_metric
from hiero.learning.mira import MiraLearner
from hiero.learning.pairs import AllPairs, Loss, Multipartite, Pairing, SampledPairs
from hiero.learning.sgd import RankLearner


def make_learner(config: TuneConfig, seed: int) -> Learner:
    """Make the learner of an online algorithm from a resolved ``config``."""
    gold = make_gold(config)
    if config.algorithm == "mira":
        return MiraLearner(
            gold=gold,
            oracle=config.oracle or "hope",
            prediction=config.prediction or "fear",
            c=config.c or 0.01,
            scale=config.scale or 1.0,
        )
    pairing = make_pairing(config, seed)
    loss = Loss(name=config.loss or "perceptron", margin=config.margin, by_gold=config.by_gold)
    if config.algorithm == "adagrad":
        return AdaGradLearner(
            gold=gold,
            pairing=pairing,
            loss=loss,
            rate=config.rate or 0.02,
            l1=config.l1 or 0.0,
            epsilon=config.epsilon,
            lazy=config.stale,  # else the decoder must see settled weights
        )
    return RankLearner(
        gold=gold,
        pairing=pairing,
        loss=loss,
        update=config.update or "pair",
        rate=config.rate or 1e-4,
        decay=config.decay,
        decay_after=config.decay_after,
    )


def make_gold(config: TuneConfig) -> Gold:
    return gold_metric(config.metric or "liang")


def make_pairing(config: TuneConfig, seed: int) -> Pairing:
    """Make the selection of pairs, also for batch learners, which replace the seed."""
    if config.pairs == "all":
        return AllPairs()
    if config.pairs == "multipartite":
        return Multipartite(share=config.share)
    return SampledPairs(
        draws=config.draws or 5000,
        keep=config.keep or 50,
        threshold=config.threshold or 0.0,
        soft=bool(config.soft),
        length_deviations=config.length_deviations or 0.0,
        largest=config.largest is not False,
        seed=seed,
    )
