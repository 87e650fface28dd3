"""Settings of evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.core.errors import ConfigError
from hiero.core.records import Checked, setting


@dataclass(frozen=True, kw_only=True)
class EvalConfig(Checked):
    """Settings of an evaluation."""

    metrics: list[str] = setting(
        help="any of bleu, chrf, chrf++, ter",
        default_factory=lambda: ["bleu", "chrf", "ter"],
        metavar="A,B,...",
    )
    test: Literal["ar", "bootstrap", "none"] = setting(
        "ar", "against the first system: approximate randomisation or paired bootstrap"
    )
    tokenize: str = setting("13a", "for BLEU, as in sacrebleu: none, 13a, ...", metavar="NAME")
    lowercase: bool = setting(False, "ignore case in BLEU and chrF; TER always does")
    trials: int = setting(10_000, "number of trials of test and intervals; 0: none", least=0)
    seed: int = setting(1, "random seed", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            found = ", ".join(self.metrics) or "none"
            raise ConfigError(f"metrics: found {found}, expected one or more different metrics")
