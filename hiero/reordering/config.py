"""Settings of orientation examples and of learning models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.core.errors import ConfigError
from hiero.core.records import Checked, setting

MAX_LENGTH, MAX_WINDOW = 100, 8
CLASSES = ("monotone", "swap", "other")
LEARNERS = ("dual", "primal", "lexicalised")
# Settings that only some learners use.
USED_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("passes", "variance", "rate", "calibrate"), ("dual", "primal")),
    **dict.fromkeys(("shrink", "trials", "start"), ("dual",)),
    "smoothing": ("lexicalised",),
}


@dataclass(frozen=True, kw_only=True)
class ExampleConfig(Checked):
    """Settings of examples: phrase pairs, features, definition of orientation."""

    max_length: int = setting(7, "most words of a phrase, on either side", least=1, most=MAX_LENGTH)
    orientation: Literal["phrase", "word"] = setting(
        "phrase",
        "the previous target phrase: any phrase pair that ends there, or a single link, as in Moses' wbe",
    )
    window: int = setting(1, "context words before and after a source phrase", least=0, most=MAX_WINDOW)
    context: Literal["places", "bag"] = setting(
        "places", "context words: each by its side and distance, or all alike, as in the paper's Table 1"
    )
    edges: bool = setting(False, "use the first and last source word of a phrase as features")
    min_count: int = setting(10, "ignore features of fewer examples", least=1, most=1_000_000_000)


@dataclass(frozen=True, kw_only=True)
class LearnConfig(Checked):
    """Settings of learning. ``variance`` is the paper's sigma squared."""

    learner: Literal["dual", "primal", "lexicalised"] = setting("dual", "learning algorithm")
    passes: int = setting(100, "most passes over the examples", least=1, most=1_000_000)
    variance: float = setting(
        0.1,
        "variance of the prior of weights; larger means less regularisation",
        least=1e-9,
        most=1e9,
        metavar="V",
    )
    shrink: float = setting(
        0.1, "dual: skip an example once its gradients are within E", least=0, most=100, metavar="E"
    )
    rate: float = setting(
        0.0, "initial rate; 0: 0.5 for dual, best of a sample for primal", least=0, most=1000, metavar="R"
    )
    trials: int = setting(20, "dual: most halvings of a step that increases D", least=1, most=60)
    start: float = setting(
        1e-8, "dual: initial value of the wrong classes of an example", least=1e-30, most=0.5, metavar="P"
    )
    calibrate: bool = setting(
        True, "with held-out examples: mix a classifier with the frequencies of classes as fits these best"
    )
    smoothing: float = setting(
        0.5,
        "lexicalised: weight of the source phrase's distribution, and of the prior",
        least=1e-6,
        most=1e6,
        metavar="S",
    )
    bidirectional: bool = setting(False, "score the orientation of the next phrase as well, as in Moses")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, learners in USED_BY.items():
            value = getattr(self, name)
            if self.learner not in learners and value != getattr(LearnConfig, name):
                raise ConfigError(
                    f"{name} works with learner {' or '.join(learners)}, not with {self.learner}"
                )
