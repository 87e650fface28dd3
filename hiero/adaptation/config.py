"""Settings of learning while it translates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiero.core.records import Checked, PathKey, setting


@dataclass(frozen=True, kw_only=True)
class AdaptConfig(Checked):
    """What an adapter does with a sentence and its post-edit."""

    aligner: PathKey | None = setting(
        None, "word aligner of hiero align --save-model, which aligns post-edits", metavar="DIR"
    )
    state: PathKey | None = setting(
        None,
        "directory that keeps pairs and weights, and is continued if it exists",
        metavar="DIR",
        flag="adapt-state",
    )
    grow: bool = setting(True, "add post-edited sentences to the index of the model")
    learner: Literal["mira", "sgd", "none"] = setting(
        "mira", "learn weights from post-edits: 1-best MIRA, pairwise SGD, or not at all"
    )
    c: float = setting(0.001, "mira: largest step", above=0)
    rate: float = setting(1e-5, "sgd: learning rate", above=0)
    kbest: int = setting(100, "translations of a sentence to learn from", least=2)
    metric: str = setting("lin", "sentence-level BLEU to learn by: lin, liang, ...")
    max_words: int = setting(200, "longest source or post-edit that is learnt from", least=1, most=1000)
