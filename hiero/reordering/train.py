"""Train orientation models, from examples to files."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from hiero.core.progress import Progress, SilentProgress
from hiero.reordering.config import LearnConfig
from hiero.reordering.dual import learn_dual
from hiero.reordering.examples import Examples, check_features, open_examples
from hiero.reordering.files import CLASSIFIER, LEXICALISED
from hiero.reordering.learn import learn_primal
from hiero.reordering.learning import Learned
from hiero.reordering.model import write_classifier, write_lexicalised


@dataclass(frozen=True)
class Trained:
    """Statistics of training; ``learned`` is None for a lexicalised model, which only counts."""

    num_examples: int
    cpu: float
    learned: Learned | None

    def __str__(self) -> str:
        text = f"{self.num_examples:,} examples, {self.cpu:.1f} s of CPU"
        if self.learned is None:
            return text
        last = self.learned.history[-1]
        text += f", {last.number} passes; P {self.learned.primal:.6g}"
        if self.learned.gap is not None:
            text += f", at most {self.learned.gap:.3g} above the least"
        if last.error is not None:
            text += f"; {100 * last.error:.2f} % of the held-out examples wrong"
        return text


def train_model(
    examples: str | Path,
    output: str | Path,
    config: LearnConfig | None = None,
    *,
    seed: int = 1,
    held_out: str | Path | None = None,
    watch: Progress | None = None,
) -> Trained:
    """Train a model on examples and write it; held-out examples are classified after each pass."""
    config, watch = config or LearnConfig(), watch or SilentProgress()
    (LEXICALISED if config.learner == "lexicalised" else CLASSIFIER).check_place(Path(output))
    train = open_examples(examples)
    held = _held_out(held_out, train)
    if config.learner == "lexicalised":
        started = time.process_time()
        write_lexicalised(Path(output), train, config, seed)
        return Trained(train.rows.size, time.process_time() - started, None)
    learn = learn_dual if config.learner == "dual" else learn_primal
    learned = learn(train, config, seed, held_out=held, watch=watch)
    write_classifier(Path(output), train, config, seed, learned)
    return Trained(train.rows.size, learned.history[-1].cpu, learned)


def _held_out(path: str | Path | None, train: Examples) -> Examples | None:
    if path is None:
        return None
    held = open_examples(path)
    check_features(held.digest, train.digest, held.path, train.path, held.settings, train.settings)
    return held
