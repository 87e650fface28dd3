"""Settings of the estimation of models."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hiero.core.errors import ConfigError
from hiero.core.records import MAX_ORDER, Checked, setting

Discounts = tuple[float, float, float]  # of adjusted counts 1, 2, 3 and more

FALLBACK: Discounts = (0.5, 1.0, 1.5)  # lmplz's, where none can be estimated
TEMPORARY = Path(tempfile.gettempdir())


@dataclass(frozen=True, kw_only=True)
class EstimateConfig(Checked):
    """Settings of the estimation of a model.

    prune       n-grams that occur no more often are left out; the last number is for all longer ones
    discount_fallback  for counts of 1, 2, 3, where none can be estimated
    vocabulary  all words that are not in this file are <unk>
    classes     classes of words, of which the model is made; words without one are <unk>
    memory      bytes for n-grams; 0: a quarter of the machine's
    """

    order: int = setting(5, "longest n-gram", least=1, most=MAX_ORDER)
    prune: tuple[int, ...] = ()
    discount_fallback: tuple[float, ...] | None = None
    vocabulary: Path | None = None
    classes: Path | None = None
    skip_symbols: bool = setting(False, "ignore <s>, </s> and <unk> in the text; otherwise they are an error")
    memory: int = setting(0, least=0)
    temp: Path = TEMPORARY
    threads: int = setting(1, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vocabulary is not None and self.classes is not None:
            raise ConfigError("vocabulary: cannot be combined with classes, whose file has the vocabulary")
        if len(self.prune) > self.order:
            raise ConfigError(f"prune: found {len(self.prune)} thresholds, expected at most {self.order}")
        if list(self.prune) != sorted(self.prune) or min(self.prune, default=0) < 0:
            found = " ".join(map(str, self.prune))
            raise ConfigError(f"prune: found {found}, expected thresholds from 0 on, in ascending order")
        fallback = self.discount_fallback
        if fallback is not None and not 1 <= len(fallback) <= 3:
            raise ConfigError(f"discount_fallback: found {len(fallback)} values, expected 1 to 3")
        for count, value in enumerate(fallback or (), 1):
            if not 0 <= value <= count:
                expected = f"expected 0 to {count} for count {count}"
                raise ConfigError(f"discount_fallback: found {value}, {expected}")

    def thresholds(self) -> list[int]:
        """Thresholds of orders from 1; entry 0 is not used."""
        given = [0, *self.prune]
        return given + given[-1:] * (self.order + 1 - len(given))

    def fallback(self) -> Discounts | None:
        given = self.discount_fallback
        if given is None:
            return None
        one, two, more = (*given, given[-1], given[-1])[:3]
        return one, two, more


@dataclass(frozen=True, kw_only=True)
class ClassConfig(Checked):
    """Settings of learning classes of words."""

    classes: int = setting(50, "number of classes", least=1, most=10_000)
    passes: int = setting(20, "passes over the words, at most; learning ends when none moves", least=1)
    temp: Path = TEMPORARY


@dataclass(frozen=True, kw_only=True)
class InterpolateConfig(Checked):
    """Settings of the interpolation of models.

    weights  of the models; normalised; none: equal ones, or those that fit ``tune``
    tune     a text to learn the weights from
    """

    weights: tuple[float, ...] = ()
    tune: Path | None = None
    iterations: int = setting(100, "steps of learning the weights, at most", least=1)
    precision: float = setting(1e-7, "relative gain in perplexity below which learning ends", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights and not (min(self.weights) >= 0 and 0 < sum(self.weights) < float("inf")):
            found = " ".join(map(str, self.weights))
            raise ConfigError(f"weights: found {found}, expected numbers from 0 on, one of them above 0")
        if self.weights and self.tune is not None:
            raise ConfigError("weights are either given or learnt from a text (tune), not both")
