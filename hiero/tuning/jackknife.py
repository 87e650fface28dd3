"""Jackknifed language models, which have not seen the references they score.

A model estimated from the training text overfits the references of the sentences to learn from, so that its
weight becomes too large for other text. Therefore sentences are assigned to folds, and each is decoded with a
model that was estimated as the given one, but without the references of its fold.

    RUNDIR/jackknife/fold.FF   the model without fold FF, compiled
"""

from __future__ import annotations

import dataclasses
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hiero.bitext.groups import words_of
from hiero.core.arrays import Ints
from hiero.core.errors import ConfigError, FormatError
from hiero.core.progress import Progress
from hiero.core.renaming import rename_over
from hiero.core.text import open_output, read_lines, utf8_line
from hiero.lm.config import EstimateConfig
from hiero.lm.estimate import estimate_language_model

Specs = tuple[tuple[str, str, str | None], ...]  # language models, as ``lm.load.model_files`` takes them


@dataclass(frozen=True)
class Recipe:
    """How the first language model of a system was estimated.

    text  its text, which may have more than the references; None: the first references
    """

    text: str | None
    config: EstimateConfig


@dataclass(frozen=True)
class Folds:
    """The language models of each fold, and the folds of sentences by their numbers."""

    models: tuple[Specs, ...]
    fold: dict[int, int]

    def part(self, numbers: Sequence[int]) -> Folds:
        """The folds of some sentences."""
        return Folds(self.models, {number: self.fold[number] for number in numbers})


def assign_folds(numbers: Sequence[int], group_of: Callable[[int], Ints], count: int) -> dict[int, int]:
    """The fold of each sentence, from 0: consecutive parts of almost equal size, at most ``count``.

    A sentence follows the first one of its group, so that few folds leave out the same references.
    """
    leader: dict[int, int] = {}
    for number in numbers:
        before = (leader[other] for other in group_of(number).tolist() if other in leader)
        leader[number] = next(before, number)
    sizes = Counter(leader.values())
    part_of: dict[int, int] = {}
    done = 0
    for first, size in sizes.items():
        part_of[first] = done * count // len(numbers)
        done += size
    renumbered = {part: fold for fold, part in enumerate(dict.fromkeys(part_of.values()))}
    return {number: renumbered[part_of[first]] for number, first in leader.items()}


def jackknifed(
    specs: Specs,
    recipe: Recipe,
    references: Sequence[str],
    fold: dict[int, int],
    group_of: Callable[[int], Ints],
    directory: Path,
    progress: Progress,
) -> Folds:
    """Return the language models for each fold, with the first one estimated without the fold.

    references  files of the references of all sentences
    fold        of the sentences to learn from, by their numbers
    group_of    a sentence, and those whose references are left out with its own
    """
    if not specs:
        raise ConfigError("lm: jackknife needs a language model to replace")
    count = max(fold.values(), default=-1) + 1
    if count < 2:
        raise ConfigError("lm: jackknife needs sentences of several groups, and several folds")
    sides = [list(read_words(path)) for path in references]
    progress.begin(count, "jackknifed language models")
    models: list[Specs] = []
    for number in range(count):
        path = directory / f"fold.{number:02d}"
        if not path.exists():
            mine = (sentence for sentence, own in fold.items() if own == number)
            left_out = {other for sentence in mine for other in group_of(sentence).tolist()}
            unseen = {side[other] for other in left_out for side in sides if other < len(side)}
            _estimate_without(unseen, recipe, references[0], path)
        name, _, classes = specs[0]
        models.append(((name, str(path), classes), *specs[1:]))
        progress.advance(1)
    return Folds(tuple(models), fold)


def read_words(path: str) -> Iterator[bytes]:
    """The lines of a file as words with single spaces between them."""
    lines = enumerate(read_lines(path, "references"), 1)
    return (words_of(utf8_line(path, number, line)) for number, line in lines)


def _estimate_without(unseen: Collection[bytes], recipe: Recipe, references: str, path: Path) -> None:
    """Estimate a model without the lines of these words, wherever they are in the text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text, part = path.with_suffix(".txt"), path.with_suffix(".new")
    given, kept = recipe.text or references, 0
    with open_output(text) as stream:
        for words in read_words(given):
            if words not in unseen:
                stream.write(words + b"\n")
                kept += 1
    if not kept:
        expected = "lines that are left for lm: jackknife without the references of a fold"
        raise FormatError(given, 0, found="none", expected=expected)
    if part.exists():
        shutil.rmtree(part)
    config = dataclasses.replace(recipe.config, temp=path.parent)
    estimate_language_model(text, part, config, compiled=True)
    rename_over(part, path)
    text.unlink()
