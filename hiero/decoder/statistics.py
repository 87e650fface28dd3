"""Statistics of decoding: counts, scores, times."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field

from hiero.core.jit import compile_timer
from hiero.core.usage import peak_mb

# The stages of decoding, and the names under which their times are reported.
STAGES = {"features": "features_cpu_s", "parse": "parse_cpu_s", "cube": "cube_cpu_s", "kbest": "kbest_cpu_s"}


class _Timer:
    """Adds the CPU time of a block of this thread to a stage, without the time to compile kernels.

    A class, since a sentence enters several and a generator costs twice as much.
    """

    __slots__ = ("seconds", "stage", "start")

    def __init__(self, seconds: dict[str, float], stage: str) -> None:
        self.seconds, self.stage = seconds, stage

    def __enter__(self) -> None:
        self.start = time.thread_time() - compile_timer.here()

    def __exit__(self, *_: object) -> None:
        self.seconds[self.stage] += time.thread_time() - compile_timer.here() - self.start


@dataclass(slots=True)
class Statistics:
    """Counts, scores and times. Times are CPU seconds, summed over threads, without compiling kernels.

    compiled_before  seconds that this process had spent compiling when these statistics began
    """

    sentences: int = 0
    words: int = 0
    failed: int = 0  # sentences without any derivation
    unmet: int = 0  # sentences with a derivation, but none with all hard terms
    rules: int = 0  # rules that could match
    pops: int = 0  # candidates that became an edge of the forest
    scored: int = 0  # candidates scored with language models
    nodes: int = 0
    edges: int = 0
    score: float = 0.0  # sum over the best derivations
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    compiled_before: float = field(default_factory=lambda: compile_timer.seconds, repr=False, compare=False)

    def timed(self, stage: str) -> _Timer:
        """A context that adds the CPU time of a block to a stage."""
        return _Timer(self.seconds, stage)

    def add(self, other: Statistics) -> None:
        """Add up counts, scores and times."""
        counts = "failed", "unmet", "rules", "pops", "scored", "nodes", "edges"
        for name in ("sentences", "words", *counts, "score"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for stage, seconds in other.seconds.items():
            self.seconds[stage] += seconds

    @property
    def mean_score(self) -> float:
        done = self.sentences - self.failed
        return self.score / done if done else 0.0

    def as_dict(self) -> dict[str, float | int]:
        return {
            "sentences": self.sentences,
            "words": self.words,
            "failed": self.failed,
            "mean_score": self.mean_score,
            "decode_cpu_s": sum(self.seconds[stage] for stage in STAGES),
            **{name: self.seconds[stage] for stage, name in STAGES.items()},
            "load_s": self.seconds["load"],
            "extract_s": self.seconds["extract"],
            "compile_s": compile_timer.seconds - self.compiled_before,
            "rules": self.rules,
            "pops": self.pops,
            "scored": self.scored,
            "nodes": self.nodes,
            "edges": self.edges,
            "peak_rss_mb": peak_mb(),
        }
