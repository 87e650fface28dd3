"""Settings of orientation examples and of learning models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.core.errors import ConfigError

MAX_LENGTH, MAX_WINDOW = 100, 8
CLASSES = ("monotone", "swap", "other")
ORIENTATIONS = ("phrase", "word")
LEARNERS = ("dual", "primal", "lexicalised")
# Settings that only some learners use.
USED_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("passes", "variance", "rate"), ("dual", "primal")),
    **dict.fromkeys(("shrink", "trials", "start"), ("dual",)),
    "smoothing": ("lexicalised",),
}


def check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name}: found {value}, expected {low} to {high}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name}: found {value!r}, expected one of {', '.join(choices)}")


@dataclass(frozen=True, kw_only=True)
class ExampleConfig:
    """Settings of examples: phrase pairs, features, definition of orientation."""

    max_length: int = 7  # words of a phrase, on either side
    # The previous target phrase is any phrase pair that ends where this one begins, or a single link, as in
    # Moses' wbe.
    orientation: Literal["phrase", "word"] = "phrase"
    window: int = 1  # source words before the phrase that are features, and as many after it
    edges: bool = False  # whether the first and the last source word of the phrase are features
    min_count: int = 10  # features of fewer examples are left out

    def __post_init__(self) -> None:
        check_choice("orientation", self.orientation, ORIENTATIONS)
        check_range("max_length", self.max_length, 1, MAX_LENGTH)
        check_range("window", self.window, 0, MAX_WINDOW)
        check_range("min_count", self.min_count, 1, 1_000_000_000)


@dataclass(frozen=True, kw_only=True)
class LearnConfig:
    """Settings of learning. ``variance`` is the paper's sigma squared: the prior of a weight."""

    learner: Literal["dual", "primal", "lexicalised"] = "dual"
    passes: int = 100  # over the examples, at most
    variance: float = 0.1
    shrink: float = 0.1  # dual: an example this near to its optimum is skipped from then on (shrinking)
    rate: float = 0.0  # of the first step; 0: 0.5 for dual, for primal the best of a sample
    trials: int = 20  # dual: how often a step that increases D is halved
    start: float = 1e-8  # dual: initial value of the wrong classes of an example
    smoothing: float = 0.5  # lexicalised: weight of the source phrase's distribution, and of the prior

    def __post_init__(self) -> None:
        check_choice("learner", self.learner, LEARNERS)
        check_range("passes", self.passes, 1, 1_000_000)
        check_range("variance", self.variance, 1e-9, 1e9)
        check_range("shrink", self.shrink, 0, 100)
        check_range("rate", self.rate, 0, 1000)
        check_range("trials", self.trials, 1, 60)
        check_range("start", self.start, 1e-30, 0.5)
        check_range("smoothing", self.smoothing, 1e-6, 1e6)
        for name, learners in USED_BY.items():
            value = getattr(self, name)
            if self.learner not in learners and value != getattr(LearnConfig, name):
                raise ConfigError(
                    f"{name} works with learner {' or '.join(learners)}, not with {self.learner}"
                )
