"""Jackknifed language models, which have not seen the references they score.

A model estimated from the training text overfits the references of the sentences to learn from, so that its
weight becomes too large for other text. Therefore shards are assigned to folds, and each shard is decoded
with a model estimated without the references of its fold.

    RUNDIR/jackknife/fold.FF   the model without fold FF, compiled
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from hiero.core.errors import ConfigError
from hiero.core.progress import Progress
from hiero.core.text import open_output, read_lines
from hiero.lm.config import FALLBACK, EstimateConfig
from hiero.lm.estimate import estimate_language_model

Specs = tuple[tuple[str, str], ...]  # names and paths of language models


def fold_of(shard: int, folds: int) -> int:
    return shard % folds


def jackknifed(
    specs: Specs,
    references: str,
    parts: Sequence[Sequence[int]],
    folds: int,
    order: int,
    directory: Path,
    progress: Progress,
) -> list[Specs]:
    """Return the language models for each fold, with the first one estimated without the fold.

    references  file of the references, from which the first model was estimated
    parts       lines of each shard; lines of no shard are in all models
    order       of the models
    """
    if not specs:
        raise ConfigError("lm: jackknife needs a language model to replace")
    if len(parts) < 2:
        raise ConfigError("lm: jackknife needs several shards (set shards)")
    folds = min(folds, len(parts))
    progress.begin(folds, "jackknifed language models")
    found: list[Specs] = []
    for fold in range(folds):
        left_out = {
            line for shard, part in enumerate(parts) if fold_of(shard, folds) == fold for line in part
        }
        path = directory / f"fold.{fold:02d}"
        if not path.exists():
            _estimate_without(references, left_out, order, path)
        found.append(((specs[0][0], str(path)), *specs[1:]))
        progress.advance(1)
    return found


def _estimate_without(references: str, left_out: set[int], order: int, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text, part = path.with_suffix(".txt"), path.with_suffix(".new")
    with open_output(text) as stream:
        for number, line in enumerate(read_lines(references, "references")):
            if number not in left_out:
                stream.write(line + b"\n")
    if part.exists():
        shutil.rmtree(part)
    config = EstimateConfig(order=order, discount_fallback=FALLBACK, skip_symbols=True, temp=path.parent)
    estimate_language_model(text, part, config, compiled=True)
    part.rename(path)
    text.unlink()
