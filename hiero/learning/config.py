"""The ``tune`` section of a configuration, and the table of algorithms with their defaults."""

from __future__ import annotations

import dataclasses
import math
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from hiero.core.errors import ConfigError

Filled = TypeVar("Filled", bound="TuneConfig")
Mix = Literal["none", "end", "epoch"]
Peer = Literal["cdec", "moses", "hopkins-may"]
Pull = Literal["none", "linear", "monotone"]  # penalty on the weights of neighbouring bins

LARGEST_BETA = 1e15  # beyond it, the loss of the pairs is lost to rounding
STARTS = ("zero", "uniform")  # names of initial weights; anything else is the path of a file


@dataclass(frozen=True, kw_only=True)
class TuneConfig:
    """Settings of tuning. Missing ones are those of the algorithm: see ``ALGORITHMS``."""

    algorithm: str = "sgd"
    # Data
    on: str = "dev"  # the set of ``data`` to learn from; train: the bitext itself
    sentences: int = 0  # number to learn from, a random sample; 0: all
    leave_one_out: bool = False  # line N is pair N of the index: leave out rules extracted only from it
    held_out: str | None = "devtest"  # its odd lines choose the epoch, its even lines are for the report
    # jackknife: the first language model was estimated from the references of ``on``; decode each shard with
    # one estimated without those of its fold.
    lm: Literal["given", "jackknife"] = "given"
    folds: int = 10
    # Course
    epochs: int | None = None
    kbest: int | None = None
    unique: bool = True
    order: Literal["file", "shuffle"] | None = None  # of sentences in a shard, in each epoch
    batch: int | None = None  # sentences of a mini-batch
    stale: bool = False  # adagrad: threads do not wait for each other; the result is not reproducible
    start: str = "zero"  # zero, uniform, or a file of weights
    freeze: Literal["dense", "sparse"] | None = None  # features whose weights stay as they were at the start
    seed: int | None = None  # None: the seed of the whole configuration
    # Shards
    shards: int | None = None  # 0: number that gives shard_size
    shard_size: int = 1000
    shuffle_shards: Literal["none", "once", "epoch"] = "once"
    mix: Mix | None = None  # average the shards' weights never, in the end, or after each epoch
    by_sentences: bool | None = None  # weight shards by their numbers of sentences when mixing
    select: int | None = None  # features kept when mixing, by the norm of their weights over shards; 0: all
    norm: Literal["l2", "l1", "linf", "mean", "l0"] = "l2"
    # The result: the last weights; the average over epochs; or the average over sentences, then also mixed.
    average: Literal["none", "epochs", "sentences"] | None = None
    # Learning
    metric: str | None = None  # a variant of sentence BLEU, a background, or previous
    pairs: Literal["multipartite", "all", "pro"] | None = None
    share: float = 0.1  # fraction of the list in HI, and in LOW (multipartite)
    draws: int | None = None  # pairs drawn (pro), Γ
    keep: int | None = None  # pairs kept (pro), Ξ
    threshold: float | None = None  # smallest difference in the metric of a pair (pro)
    soft: bool | None = None  # accept pairs at random, larger differences more often (pro in cdec)
    length_deviations: float | None = None  # reject pairs whose lengths differ more (cdec: 2); 0: none
    largest: bool | None = None  # keep the pairs with the largest differences, or those drawn first (pro)
    loss: Literal["perceptron", "margin", "logistic"] | None = None
    margin: float = 1.0
    by_gold: Literal["nothing", "margin", "loss"] = "nothing"  # scale this by the difference in the metric
    update: Literal["pair", "sentence"] | None = None
    rate: float | None = None
    decay: Literal["none", "sqrt", "linear"] = "none"  # of the rate
    decay_after: float = 1000.0  # sentences
    l1: float | None = None
    epsilon: float = 0.0  # of adagrad, added to the root of the summed squares; Phrasal: 1e-3
    # Bins of discretised features (features: bins): penalty on the weights of neighbouring bins
    neighbours: Pull = "none"
    beta: float = 1.0  # its strength
    gamma: float = 2.0  # monotone: how sharply the penalty sets in where the order is violated
    variant: Literal["paper", "released"] = "paper"  # released: as in the program of the paper's authors
    # MIRA
    c: float | None = None
    oracle: Literal["lu", "hope"] | None = None  # LU (max-BLEU, where kbest is large), or M-C
    prediction: Literal["model", "cost", "fear"] | None = None  # PB, MC, M+C
    scale: float | None = None  # factor of the metric beside the model's score
    # Batch learners
    history: int = 0  # number of last iterations whose lists are learnt from; 0: all
    peer: Peer | None = None  # pro: missing settings are those of another system, see PEERS
    l2: float | None = None
    l2_previous: float | None = None
    interpolation: float | None = None  # of pro: share of the new weights; the rest are the previous ones
    iterations: int | None = None  # of pro: steps of L-BFGS or Newton's method in each iteration, at most
    buffers: int | None = None  # of pro: steps stored by L-BFGS
    restarts: int | None = None  # of mert: 20, and over hypergraphs none
    directions: int | None = None
    passes: int | None = None  # of kbmira over the lists in each iteration
    memory: float | None = None  # of kbmira: decay of the statistics of earlier sentences
    remembered: Literal["oracle", "model"] | None = None  # of kbmira: the hope of a sentence, or its best
    forest: bool = False  # mert: over hypergraphs, not k-best lists
    beam: float = 3.0  # of hypergraphs: keep derivations with a score at most this much below the best one

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            expected = f"one of {', '.join(ALGORITHMS)}"
            raise ConfigError(f"algorithm: found {self.algorithm!r}, expected {expected}")
        for name in ("epochs", "kbest", "batch", "shard_size", "draws", "keep", "passes", "folds"):
            self._at_least(name, 1)
        for name in ("iterations", "buffers"):
            self._at_least(name, 1)
        for name in ("interpolation", "memory"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise ConfigError(f"{name}: found {value}, expected more than 0 and at most 1")
        for name in ("rate", "c", "scale", "share", "decay_after", "beam"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{name}: found {value}, expected a number above 0")
        for name in (
            "sentences",
            "shards",
            "select",
            "seed",
            "l1",
            "l2",
            "l2_previous",
            "restarts",
            "history",
        ):
            self._at_least(name, 0)
        self._check_algorithm()
        if self.freeze is not None and (self.update or self.row.preset.get("update")) == "pair":
            raise ConfigError("freeze works with update: sentence, not with update: pair")
        if self.lm == "jackknife" and self.shuffle_shards == "epoch":
            raise ConfigError("lm: jackknife works with shuffle_shards: once, not with shuffle_shards: epoch")
        if self.history and self.forest:
            raise ConfigError("history works with k-best lists, not with forest: true")
        self._check_neighbours()

    def _check_algorithm(self) -> None:
        """Refuse settings that the algorithm does not work with."""
        for key, is_set, works in (
            ("peer", self.peer is not None, "peers"),
            ("stale", self.stale, "stale"),
            ("average: sentences", self.average == "sentences", "averages"),
            ("freeze", self.freeze is not None, "freezes"),
            ("neighbours", self.neighbours != "none", "terms"),
            ("forest", self.forest, "forests"),
            ("history", self.history > 0, "batch"),
        ):
            if is_set and not getattr(self.row, works):
                *names, last = [name for name, row in ALGORITHMS.items() if getattr(row, works)]
                listed = f"{', '.join(names)} and {last}" if names else last
                raise ConfigError(f"{key} works with {listed}, not with {self.algorithm}")

    def _check_neighbours(self) -> None:
        if not 0 <= self.beta <= LARGEST_BETA:
            raise ConfigError(f"beta: found {self.beta}, expected 0 to {LARGEST_BETA:g}")
        if not 1 <= self.gamma < math.inf:
            raise ConfigError(f"gamma: found {self.gamma}, expected 1 or more")
        if self.neighbours == "none":
            return
        if self.stale:
            raise ConfigError("neighbours cannot be combined with stale: true")
        if self.freeze is not None:
            raise ConfigError("neighbours cannot be combined with freeze")

    def _at_least(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if value is not None and value < least:
            raise ConfigError(f"{name}: found {value}, expected at least {least}")

    @property
    def row(self) -> Algorithm:
        return ALGORITHMS[self.algorithm]

    def with_presets(self) -> TuneConfig:
        """Fill in the settings of the algorithm. Those that it does not use, and the seed, stay empty."""
        preset = {**COMMON, **self.row.preset, **PEERS.get(self.peer or "", {})}
        return self._filled(TuneConfig, preset)

    def resolved(self) -> TuneSettings:
        """Fill in all settings."""
        return self.with_presets()._filled(TuneSettings, {**UNUSED, "restarts": 0 if self.forest else 20})

    def _filled(self, kind: type[Filled], values: Mapping[str, Any]) -> Filled:
        filled: dict[str, Any] = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        filled |= {name: value for name, value in values.items() if filled[name] is None}
        return kind(**filled)


class TuneSettings(TuneConfig):
    """Complete settings: these keys, which a configuration may leave empty, are not."""

    epochs: int
    kbest: int
    order: Literal["file", "shuffle"]
    batch: int
    shards: int
    mix: Mix
    by_sentences: bool
    select: int
    average: Literal["none", "epochs", "sentences"]
    metric: str
    pairs: Literal["multipartite", "all", "pro"]
    draws: int
    keep: int
    threshold: float
    soft: bool
    length_deviations: float
    largest: bool
    loss: Literal["perceptron", "margin", "logistic"]
    update: Literal["pair", "sentence"]
    rate: float
    l1: float
    c: float
    oracle: Literal["lu", "hope"]
    prediction: Literal["model", "cost", "fear"]
    scale: float
    l2: float
    l2_previous: float
    interpolation: float
    iterations: int
    buffers: int
    restarts: int
    directions: int
    passes: int
    memory: float
    remembered: Literal["oracle", "model"]


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """A row of ``ALGORITHMS``.

    learner   MODULE:CLASS, imported when needed. ``CLASS.make(settings, context)`` makes a ``Learner`` if the
              algorithm is online, or else a ``BatchLearner`` (``learning.learner``, ``learning.lists``).
    online    learns while it decodes, with a learner for each shard; or else from the k-best lists of all
    freezes   works with ``freeze``: updates of features do not depend on each other
    averages  works with ``average: sentences``
    terms     works with ``neighbours``: its learner takes further terms of the objective
    stale     works with ``stale``: its learner applies gradients of other threads
    peers     works with ``peer``
    forests   works with ``forest``
    oracles   reports BLEU of the translations learnt towards and learnt away from
    advice    settings to try if held-out BLEU ``falls``, if the weights ``diverge``, if translations are too
              ``short`` or too ``long``, or if a fit is ``unfinished``
    preset    defaults of its settings, beside ``COMMON``
    """

    learner: str
    online: bool
    freezes: bool = False
    averages: bool = False
    terms: bool = False
    stale: bool = False
    peers: bool = False
    forests: bool = False
    oracles: bool = False
    advice: Mapping[str, str] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)

    @property
    def batch(self) -> bool:
        return not self.online

    def learner_class(self) -> Any:
        return pkgutil.resolve_name(self.learner)


COMMON: dict[str, Any] = {
    "order": "file",
    "batch": 1,
    "shards": 1,
    "mix": "none",
    "by_sentences": False,
    "select": 0,
    "average": "none",
    "draws": 5000,
    "keep": 50,
    "threshold": 0.05,
    "soft": False,
    "length_deviations": 0.0,
    "largest": True,
    "l1": 0.0,
    "l2": 0.0,
    "l2_previous": 0.0,
    "interpolation": 1.0,
    "iterations": 200,
    "buffers": 20,
    "directions": 15,
    "passes": 60,
    "memory": 0.999,
    "remembered": "oracle",
    "scale": 1.0,
}

# Settings that only some algorithms use, which have them in their presets.
UNUSED: dict[str, Any] = {
    "metric": "lin",
    "pairs": "pro",
    "loss": "perceptron",
    "update": "pair",
    "rate": 1e-4,
    "c": 0.01,
    "oracle": "hope",
    "prediction": "fear",
}

# Simianer, Riezler and Dyer 2012: their Algorithms 1 to 4.
_SGD = Algorithm(
    learner="hiero.learning.sgd:RankLearner",
    online=True,
    freezes=True,
    averages=True,
    terms=True,
    advice={"falls": "a lower rate", "diverge": "a lower rate"},
    preset={
        "epochs": 10,
        "kbest": 100,
        "metric": "liang",
        "pairs": "multipartite",
        "loss": "perceptron",
        "update": "pair",
        "rate": 1e-4,
    },
)


def _sgd(**preset: Any) -> Algorithm:
    return dataclasses.replace(_SGD, preset={**_SGD.preset, **preset})


ALGORITHMS: dict[str, Algorithm] = {
    "sgd": _sgd(average="epochs"),
    "mixsgd": _sgd(shards=0, mix="end", average="epochs"),
    "itermixsgd": _sgd(shards=0, mix="epoch"),
    "iterselsgd": _sgd(shards=0, mix="epoch", select=100_000),
    # Eidelman 2012.
    "mira": Algorithm(
        learner="hiero.learning.mira:MiraLearner",
        online=True,
        averages=True,
        oracles=True,
        advice={"falls": "a smaller c", "diverge": "a smaller c"},
        preset={
            "epochs": 15,
            "kbest": 500,
            "metric": "previous",
            "c": 0.01,
            "oracle": "hope",
            "prediction": "fear",
            "shards": 20,
            "mix": "epoch",
            "by_sentences": True,
        },
    ),
    # Green, Wang, Cer and Manning 2013.
    "adagrad": Algorithm(
        learner="hiero.learning.adagrad:AdaGradLearner",
        online=True,
        terms=True,
        stale=True,
        advice={"falls": "a lower rate or a larger l1", "diverge": "a lower rate"},
        preset={
            "epochs": 10,
            "kbest": 200,
            "order": "shuffle",
            "batch": 20,
            "metric": "lin",
            "pairs": "pro",
            "draws": 500,
            "keep": 15,
            "loss": "logistic",
            "rate": 0.02,
            "l1": 0.1,
        },
    ),
    # Hopkins and May 2011, as Green et al. 2013 compare with it (Phrasal).
    "pro": Algorithm(
        learner="hiero.learning.pro:ProLearner",
        online=False,
        terms=True,
        peers=True,
        advice={
            "falls": "a larger l2",
            # BLEU + 1 prefers short translations, and nakov more than compensates for it.
            "short": "metric: liang or largest: false",
            "long": "metric: lin",
            "unfinished": "more iterations",
        },
        preset={"epochs": 25, "kbest": 100, "metric": "lin", "pairs": "pro", "l2": 0.1, "shards": 0},
    ),
    # Cherry and Foster 2012, as in Moses.
    "kbmira": Algorithm(
        learner="hiero.learning.mira:KBMIRA",
        online=False,
        advice={"falls": "a smaller c", "diverge": "a smaller c"},
        preset={"epochs": 25, "kbest": 100, "metric": "kbmira", "c": 0.01, "shards": 0},
    ),
    # Och 2003; Kumar et al. 2009 over forests.
    "mert": Algorithm(
        learner="hiero.learning.mert:MERT",
        online=False,
        forests=True,
        advice={"short": "more restarts", "long": "more restarts"},
        preset={"epochs": 15, "kbest": 100, "shards": 0},
    ),
}

# PRO of other systems. There each pair counts twice, once in each order, which doubles the sum over pairs; so
# the other terms are halved here.
PEERS: dict[str, dict[str, Any]] = {
    # pro.pl: IBM BLEU, random acceptance, pairs of similar length, L-BFGS with C = 500 and T = 5000.
    "cdec": {
        "epochs": 30,
        "kbest": 1500,
        "metric": "cdec-ibm",
        "threshold": 0.0,
        "soft": True,
        "length_deviations": 2.0,
        "l2": 250.0,
        "l2_previous": 2500.0,
        "buffers": 100,
    },
    # mert-moses.pl --pairwise-ranked, with megam: -maxi 30, a Gaussian prior with precision 1.
    "moses": {"metric": "moses", "l2": 0.25, "iterations": 30},
    # The paper, section 4: BLEU + 1, megam, interpolation of the new weights with 0.1.
    "hopkins-may": {"epochs": 30, "kbest": 1500, "l2": 0.25, "interpolation": 0.1},
}
assert set(PEERS) == set(get_args(Peer))
