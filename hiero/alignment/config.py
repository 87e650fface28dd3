"""Settings of word alignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.core.errors import ConfigError

MODELS = ("ibm2", "hmm")
METHODS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and", "none")
MIN_NULL = 1e-6
MIN_TENSION, MAX_TENSION = 0.1, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignConfig:
    """The ``align`` section of a configuration."""

    model: Literal["ibm2", "hmm"] = "ibm2"  # hmm is initialised by ibm2
    symmetrize: Literal[
        "intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and", "none"
    ] = "grow-diag-final-and"
    iterations: int = 5  # rounds of EM of ibm2
    null: float = 0.2  # probability that a word has no counterpart
    smoothing: float = 0.01  # of the lexical tables: the parameter of a symmetric Dirichlet prior; 0: none
    tension: float = 4.0  # of ibm2 at the start: how strongly links keep to the diagonal
    # Rounds in which the tension is fitted; the first has no lexical knowledge yet. With more rounds the
    # tension reinforces itself: it doubles, and the alignment gets worse.
    tension_rounds: int = 2
    hmm_iterations: int = 3  # rounds of EM of hmm
    hmm_agreement: bool = True  # whether the HMMs of both directions are trained to agree

    def __post_init__(self) -> None:
        for name, low, high in (
            ("iterations", 1, 1000),
            ("tension_rounds", 0, 1000),
            ("hmm_iterations", 1, 1000),
            ("null", MIN_NULL, 1 - MIN_NULL),
            ("smoothing", 0.0, 1000.0),
            ("tension", MIN_TENSION, MAX_TENSION),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"align: {name}: found {value}, expected {low} to {high}")
        choices: tuple[tuple[str, tuple[str, ...]], ...] = (("model", MODELS), ("symmetrize", METHODS))
        for name, possible in choices:
            if getattr(self, name) not in possible:
                raise ConfigError(
                    f"align: {name}: found {getattr(self, name)!r}, expected one of {', '.join(possible)}"
                )
