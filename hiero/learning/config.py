"""The ``tune`` section of a configuration, and the table of algorithms with their defaults."""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from hiero.core.errors import ConfigError
from hiero.core.plugins import load_plugin, plugins
from hiero.core.records import Checked, PathKey, setting

Filled = TypeVar("Filled", bound="TuneConfig")
Mix = Literal["none", "end", "epoch"]
Peer = Literal["cdec", "moses", "hopkins-may"]
Variant = Literal["printed", "released"]
Pull = Literal["none", "linear", "monotone", "isotonic"]  # what weights of neighbouring bins are drawn to
Per = Literal["bin", "curve"]

LARGEST_BETA = 1e15  # beyond it, the loss of the pairs is lost to rounding
LEARNERS = "hiero.learners"  # a group of entry points
STARTS = ("zero", "uniform")  # names of initial weights; anything else is the path of a file


@dataclass(frozen=True, kw_only=True)
class TuneConfig(Checked):
    """Settings of tuning. Missing ones are those of the algorithm: see ``ALGORITHMS``."""

    algorithm: str = setting("sgd", "learning algorithm", choices=lambda: algorithms(), group="data")
    variant: Variant | None = setting(
        None,
        "printed: defaults as in the paper; released: as in the authors' program (default: released; for "
        "--neighbours printed)",
    )
    on: str = setting("dev", "set of data to learn from; train: the bitext itself")
    sentences: int = setting(0, "learn from a random sample of N of them; 0: all", least=0)
    leave_one_out: bool = setting(
        False, "line N is pair N of the index: extract no rules from it (extract: {leave_out: ...})"
    )
    keep_rules: bool = setting(True, "keep the rules that an index gives for a sentence, for later epochs")
    held_out: str | None = setting(
        "devtest",
        "set of data, if there is one, whose odd lines choose the epoch; its even lines are for the report",
    )
    lm: Literal["given", "jackknife"] = setting(
        "given",
        "jackknife: the text of the first language model has the references of --on; decode each sentence "
        "with one estimated without those of its fold",
    )
    folds: int = setting(10, "parts of the sentences, and language models of --lm jackknife", least=2)
    epochs: int | None = setting(None, "passes over the data, or iterations", least=1, group="course")
    kbest: int | None = setting(None, "translations of each sentence", least=1)
    unique: bool = setting(True, "list every string once")
    order: Literal["file", "shuffle"] | None = setting(None, "of the sentences of a shard in each epoch")
    batch: int | None = setting(None, "sentences of a mini-batch", least=1)
    stale: bool = setting(False, "adagrad: threads do not wait for each other; not reproducible")
    start: Literal["zero", "uniform"] | PathKey | None = setting(
        None, "initial weights: zero, uniform, or a file", metavar="START"
    )
    freeze: Literal["dense", "sparse"] | None = setting(
        None,
        "keep the initial weights of dense features, or of all others, among them span sizes, bins and "
        "features in Python (needs --update sentence)",
    )
    seed: int | None = setting(None, "of the random numbers (default: that of CONFIG)", least=0)
    shards: int | None = setting(
        None,
        "parts of the data to learn from in parallel; 0: number that gives --shard-size",
        least=0,
        group="shards",
    )
    shard_size: int = setting(1000, "sentences of a shard, about", least=1)
    shuffle_shards: Literal["none", "once", "epoch"] = setting(
        "once", "assign sentences to shards at random: never, once, or in each epoch"
    )
    mix: Mix | None = setting(None, "average the weights of shards: never, in the end, or after each epoch")
    by_sentences: bool | None = setting(None, "weight shards by their numbers of sentences when mixing")
    select: int | None = setting(
        None, "features kept when mixing, by the norm of their weights over shards; 0: all", least=0
    )
    norm: Literal["l2", "l1", "linf", "mean", "l0"] = setting(
        "l2", "of a feature's weights over shards, by which it is selected"
    )
    average: Literal["none", "epochs", "sentences"] | None = setting(
        None, "result: the last weights, or an average over epochs, or over sentences"
    )
    mix_what: Literal["last", "average"] | None = setting(
        None,
        "--average sentences with --mix epoch: mix the last weights of shards, select features by them and "
        "start the next epoch from them, or do all this with their averages",
    )
    metric: str | None = setting(
        None,
        "sentence-level BLEU: liang, lin, ..., or previous: BLEU with the other sentences",
        group="learning",
    )
    pairs: Literal["multipartite", "all", "pro"] | None = setting(None, "pairs compared; pro: a sample")
    share: float = setting(0.1, "multipartite: part of the list that is good, or bad", above=0, most=0.5)
    draws: int | None = setting(None, "pro: pairs drawn for a sentence", least=1)
    keep: int | None = setting(None, "pro: pairs kept of them", least=1)
    threshold: float | None = setting(None, "pro: smallest difference in the metric of a pair", least=0)
    soft: bool | None = setting(None, "pro: accept drawn pairs at random, larger differences more often")
    length_deviations: float | None = setting(
        None, "pro: reject pairs whose lengths differ by more than X deviations; 0: none", least=0
    )
    largest: bool | None = setting(None, "pro: keep pairs with the largest differences, or those drawn first")
    loss: Literal["perceptron", "margin", "logistic"] | None = setting(None, "of a pair")
    margin: float = setting(1.0, "between the scores of a pair", above=0)
    by_gold: Literal["nothing", "margin", "loss"] = setting(
        "nothing", "scale the margin or the loss by the difference in the metric"
    )
    update: Literal["pair", "sentence"] | None = setting(None, "after each pair, or after each sentence")
    rate: float | None = setting(None, "of learning", above=0)
    decay: Literal["none", "sqrt", "linear"] = setting("none", "of the rate")
    decay_after: float = setting(1000.0, "sentences after which the rate falls", above=0)
    l1: float | None = setting(None, "adagrad, pro: strength of L1 regularisation", least=0)
    l2: float | None = setting(None, "sgd, adagrad, pro: strength of L2 regularisation", least=0)
    l2_sparse: float | None = setting(
        None, "the same for sparse features, all but the dense ones (default: that of --l2)", least=0
    )
    epsilon: float = setting(0.0, "adagrad: added to the root of the summed squares; Phrasal: 1e-3", least=0)
    neighbours: Pull = setting(
        "none",
        "penalise weights of neighbouring bins that are not linear, or not monotone; isotonic: admit only "
        "monotone ones, and penalise what is not linear",
        group="bins",
    )
    beta: float = setting(1.0, "strength of the penalty", least=0, most=LARGEST_BETA)
    beta_per: Per = setting(
        "bin", "strength for each bin, as in the paper, or for a curve, the same for any number of bins"
    )
    gamma: float = setting(2.0, "monotone: sharpness of the penalty where the order is violated", least=1)
    c: float | None = setting(None, "largest step", above=0, group="MIRA")
    oracle: Literal["lu", "hope"] | None = setting(
        None, "translation to learn towards: local update (max-BLEU, where kbest is large), or hope"
    )
    prediction: Literal["model", "cost", "fear"] | None = setting(None, "translation to learn away from")
    scale: float | None = setting(None, "factor of the metric beside the score of the model", above=0)
    history: int = setting(0, "lists of the last N iterations; 0: of all", least=0, group="batch learners")
    peer: Peer | None = setting(None, "pro: defaults as in cdec, Moses, or Hopkins and May 2011")
    min_count: int | None = setting(
        None, "pro: sparse features need translations of N sentences; others get no weight", least=0
    )
    l2_previous: float | None = setting(None, "pro: regularisation towards the previous weights", least=0)
    interpolation: float | None = setting(
        None, "pro: share of the new weights; the rest are the previous ones", above=0, most=1
    )
    iterations: int | None = setting(None, "pro: steps of L-BFGS, or of Newton's method, at most", least=1)
    buffers: int | None = setting(None, "pro: steps stored by L-BFGS", least=1)
    restarts: int | None = setting(None, "mert: random starts (default 20; 0 with --forest)", least=0)
    directions: int | None = setting(None, "mert: random directions", least=0)
    passes: int | None = setting(None, "kbmira: passes over the lists in an iteration", least=1)
    memory: float | None = setting(None, "kbmira: decay of statistics of earlier sentences", above=0, most=1)
    remembered: Literal["oracle", "model"] | None = setting(
        None, "kbmira: add the statistics of the hope (oracle), or of the model's best"
    )
    forest: bool = setting(False, "mert: over hypergraphs instead of lists")
    beam: float = setting(3.0, "mert --forest: keep derivations at most X below the best score", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_algorithm()
        if self.freeze is not None and (self.update or self._preset().get("update")) == "pair":
            raise ConfigError("freeze works with update: sentence, not with update: pair")
        if self.history and self.forest:
            raise ConfigError("history works with k-best lists, not with forest: true")
        if self.neighbours != "none" and self.stale:
            raise ConfigError("neighbours cannot be combined with stale: true")
        if (self.l2 or self.l2_sparse) and self.stale:
            raise ConfigError("l2 cannot be combined with stale: true")
        if self.neighbours != "none" and self.freeze is not None:
            raise ConfigError("neighbours cannot be combined with freeze")
        if self.beta_per == "curve" and self.variant == "released":
            raise ConfigError("beta_per: curve cannot be combined with variant: released")
        if self.neighbours == "isotonic":
            self._check_isotonic()

    def _check_isotonic(self) -> None:
        """Refuse settings with which the objective has no minimum, or its minimum is not found."""
        chosen = {**COMMON, "l2_sparse": None, **self._preset()}
        given = {name: getattr(self, name) for name in chosen}
        chosen |= {name: value for name, value in given.items() if value is not None}
        if self.variant == "released":
            raise ConfigError("neighbours: isotonic cannot be combined with variant: released")
        if chosen["l1"]:
            raise ConfigError("neighbours: isotonic cannot be combined with l1")
        if chosen["interpolation"] < 1:
            raise ConfigError("neighbours: isotonic cannot be combined with interpolation")
        if not (chosen["l2_previous"] or (chosen["l2"] and chosen["l2_sparse"] != 0)):
            raise ConfigError("neighbours: isotonic needs l2 or l2_previous above 0")

    def _check_algorithm(self) -> None:
        """Refuse settings that the algorithm does not work with."""
        for key, is_set, works in (
            ("peer", self.peer is not None, "peers"),
            ("stale", self.stale, "stale"),
            ("average: sentences", self.average == "sentences", "averages"),
            ("freeze", self.freeze is not None, "freezes"),
            ("neighbours", self.neighbours != "none", "terms"),
            ("neighbours: isotonic", self.neighbours == "isotonic", "orders"),
            ("forest", self.forest, "forests"),
            ("history", self.history > 0, "batch"),
        ):
            if is_set and not getattr(self.row, works):
                *names, last = [name for name, row in ALGORITHMS.items() if getattr(row, works)]
                listed = f"{', '.join(names)} and {last}" if names else last
                raise ConfigError(f"{key} works with {listed}, not with {self.algorithm}")

    @property
    def row(self) -> Algorithm:
        return ALGORITHMS[self.algorithm]

    def _preset(self) -> dict[str, Any]:
        printed = self.row.printed if self.variant == "printed" else {}
        return {**COMMON, **self.row.preset, **printed, **PEERS.get(self.peer or "", {})}

    def with_presets(self) -> TuneConfig:
        """Fill in the settings of the algorithm. Those that it does not use, and the seed, stay empty."""
        return self._filled(TuneConfig, self._preset())

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
    start: Literal["zero", "uniform"] | PathKey
    shards: int
    mix: Mix
    by_sentences: bool
    select: int
    average: Literal["none", "epochs", "sentences"]
    mix_what: Literal["last", "average"]
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
    min_count: int
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
    orders    works with ``neighbours: isotonic``: its learner can keep weights in order
    stale     works with ``stale``: its learner applies gradients of other threads
    peers     works with ``peer``
    forests   works with ``forest``
    oracles   reports BLEU of the translations learnt towards and learnt away from
    uses      the settings of its learner; None: unknown
    advice    settings to try if held-out BLEU ``falls``, if the weights ``diverge``, if translations are too
              ``short`` or too ``long``, or if a fit is ``unfinished``
    preset    defaults of its settings, beside ``COMMON``
    printed   those that differ with ``variant: printed``
    """

    learner: str
    online: bool
    freezes: bool = False
    averages: bool = False
    terms: bool = False
    orders: bool = False
    stale: bool = False
    peers: bool = False
    forests: bool = False
    oracles: bool = False
    uses: tuple[str, ...] | None = None
    advice: Mapping[str, str] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    printed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def batch(self) -> bool:
        return not self.online

    def learner_class(self) -> Any:
        return pkgutil.resolve_name(self.learner)

    def has_use_for(self, key: str) -> bool:
        """Whether a setting changes anything; those that no algorithm claims are for all."""
        if key in _ONLINE:
            return self.online
        if key in _TERMS:
            return self.terms
        if key == "variant":
            return self.terms or bool(self.printed)
        if self.uses is None or key in self.uses:
            return True
        return not any(key in (row.uses or ()) for row in ALGORITHMS.values())


_ONLINE = ("batch", "mix", "by_sentences", "select", "norm", "average", "mix_what")
_TERMS = ("beta", "beta_per", "gamma")
_SAMPLE = ("metric", "pairs", "draws", "keep", "threshold", "soft", "length_deviations", "largest")
_RIDGE = ("l2", "l2_sparse")
_PAIRWISE = (*_SAMPLE, *_RIDGE, "share", "loss", "margin", "by_gold")


def algorithms() -> dict[str, Algorithm]:
    """``ALGORITHMS``, with those of plug-ins: entry points of the group hiero.learners, each a row."""
    for name in plugins(LEARNERS):
        if name not in ALGORITHMS:
            row = load_plugin(LEARNERS, name)
            if not isinstance(row, Algorithm):
                raise ConfigError(f"plug-in {name!r} of {LEARNERS}: found {row!r}, expected an Algorithm")
            ALGORITHMS[name] = row
    return ALGORITHMS


def check_used(algorithm: str, keys: Iterable[str], names: Callable[[str], str] = str) -> None:
    """Refuse settings, given one by one, that the algorithm does not use. ``names`` names one in messages.

    Those of a file are not refused: it may have the settings of several algorithms.
    """
    for key in keys:
        if not ALGORITHMS[algorithm].has_use_for(key):
            users = ", ".join(name for name, row in ALGORITHMS.items() if row.has_use_for(key))
            raise ConfigError(
                f"{names(key)}: {algorithm} does not use it ({users} {'do' if ',' in users else 'does'})"
            )


COMMON: dict[str, Any] = {
    "order": "file",
    "batch": 1,
    "start": "zero",
    "shards": 1,
    "mix": "none",
    "by_sentences": False,
    "select": 0,
    "average": "none",
    "mix_what": "last",
    "draws": 5000,
    "keep": 50,
    "threshold": 0.05,
    "soft": False,
    "length_deviations": 0.0,
    "largest": True,
    "l1": 0.0,
    "l2": 0.0,
    "min_count": 0,
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
    "update": "sentence",
    "rate": 1e-4,
    "c": 0.01,
    "oracle": "hope",
    "prediction": "fear",
}

# Simianer, Riezler and Dyer 2012: their Algorithms 1 to 4. As printed, each pair is ranked with the
# weights that the pair before it has changed; in the authors' program, dtrain, all pairs of a sentence are
# ranked with the weights that it was decoded with, and change them together.
_SGD = Algorithm(
    learner="hiero.learning.sgd:RankLearner",
    online=True,
    freezes=True,
    averages=True,
    terms=True,
    uses=(*_PAIRWISE, "update", "rate", "decay", "decay_after"),
    advice={"falls": "a lower rate", "diverge": "a lower rate"},
    preset={
        "epochs": 10,
        "kbest": 100,
        "metric": "liang",
        "pairs": "multipartite",
        "loss": "perceptron",
        "update": "sentence",
        "rate": 1e-4,
    },
    printed={"update": "pair"},
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
        uses=("metric", "c", "oracle", "prediction", "scale"),
        advice={"falls": "a smaller c", "diverge": "a smaller c"},
        preset={
            "epochs": 15,
            "kbest": 500,
            "start": "uniform",
            "metric": "previous",
            "c": 0.01,
            "oracle": "hope",
            "prediction": "fear",
            "shards": 20,
            "mix": "epoch",
            "by_sentences": True,
        },
    ),
    # Green, Wang, Cer and Manning 2013. Their λ is 0.1, in a program (Phrasal) that enters each pair
    # twice, once in each order. This doubles every gradient g, and with it √(sum of g²): steps, rate g /
    # √(sum of g²), are the same, but the threshold, rate λ / √(sum of g²), is halved. Here, and in
    # equation 12 of the paper, each pair is entered once, so that half the λ has the same effect.
    "adagrad": Algorithm(
        learner="hiero.learning.adagrad:AdaGradLearner",
        online=True,
        terms=True,
        stale=True,
        uses=(*_PAIRWISE, "rate", "l1", "epsilon"),
        advice={"falls": "a lower rate or a larger l1", "diverge": "a lower rate"},
        preset={
            "epochs": 10,
            "kbest": 200,
            "start": "uniform",
            "order": "shuffle",
            "batch": 20,
            "metric": "lin",
            "pairs": "pro",
            "draws": 500,
            "keep": 15,
            "loss": "logistic",
            "rate": 0.02,
            "l1": 0.05,
        },
        printed={"l1": 0.1},
    ),
    # Hopkins and May 2011, as Green et al. 2013 compare with it (Phrasal). Its prior has the standard
    # deviation σ = 0.1, which makes the term w² / (2 σ²) = 50 w², beside the loss of pairs that are
    # entered twice, once in each order. Here each is entered once, so that l2 is half of that. Features in
    # the lists of fewer than three sentences are dropped.
    "pro": Algorithm(
        learner="hiero.learning.pro:ProLearner",
        online=False,
        terms=True,
        orders=True,
        peers=True,
        uses=(*_SAMPLE, *_RIDGE, "l1", "min_count", "l2_previous", "interpolation", "iterations", "buffers"),
        advice={
            "falls": "a larger l2",
            # BLEU + 1 prefers short translations, and nakov more than compensates for it.
            "short": "metric: liang or largest: false",
            "long": "metric: lin",
            "unfinished": "more iterations",
        },
        preset={
            "epochs": 25,
            "kbest": 100,
            "start": "uniform",
            "metric": "lin",
            "pairs": "pro",
            "l2": 25.0,
            "min_count": 3,
            "shards": 0,
        },
    ),
    # Cherry and Foster 2012, as in Moses.
    "kbmira": Algorithm(
        learner="hiero.learning.mira:KBMIRA",
        online=False,
        uses=("c", "passes", "memory", "remembered"),
        advice={"falls": "a smaller c", "diverge": "a smaller c"},
        preset={"epochs": 25, "kbest": 100, "start": "uniform", "metric": "kbmira", "c": 0.01, "shards": 0},
    ),
    # Och 2003; Kumar et al. 2009 over forests.
    "mert": Algorithm(
        learner="hiero.learning.mert:MERT",
        online=False,
        forests=True,
        uses=("restarts", "directions", "beam"),
        advice={"short": "more restarts", "long": "more restarts"},
        preset={"epochs": 15, "kbest": 100, "start": "uniform", "shards": 0},
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
        "min_count": 0,
        "l2_previous": 2500.0,
        "buffers": 100,
    },
    # mert-moses.pl --pairwise-ranked, with megam: -maxi 30, a Gaussian prior with precision 1.
    "moses": {"metric": "moses", "l2": 0.25, "min_count": 0, "iterations": 30},
    # The paper, section 4: BLEU + 1, megam, interpolation of the new weights with 0.1.
    "hopkins-may": {"epochs": 30, "kbest": 1500, "l2": 0.25, "min_count": 0, "interpolation": 0.1},
}
assert set(PEERS) == set(get_args(Peer))
