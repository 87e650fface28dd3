"""Sentences to learn from, and their decoding into examples, shared by all tasks of tuning, on any executor.

A task names files; what it reads is cached for the next task in the same process. Weights are read from a
file and written to a file, wherever the task runs, so the result is bit-identical on every executor.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiero.core.arrays import Ids
from hiero.core.errors import FormatError, HieroError
from hiero.core.input import parse_input
from hiero.core.parallel import in_order, stop
from hiero.core.renaming import rename_over
from hiero.core.symbols import Symbols
from hiero.core.text import (
    AUTO,
    LEAVE_OUT,
    InputForm,
    Segment,
    decode_line,
    read_lines,
    split_words,
    write_output,
)
from hiero.decoder.forest import Forest
from hiero.decoder.model import Model
from hiero.evaluation.bleu import References
from hiero.features.index_kernels import NAME
from hiero.learning.candidates import candidates
from hiero.learning.config import TuneSettings
from hiero.learning.learner import Example, UpdateReport
from hiero.lm.load import load_language_models, model_files
from hiero.lm.model import LanguageModels
from hiero.tuning.jackknife import Folds, Recipe, Specs
from hiero.tuning.vectors import WeightVector, read_vectors


@dataclass(frozen=True)
class SetFiles:
    """The files of a set.

    leave_one_out  line N, from 0, is pair N of the bitext index, whose own rules are left out
    base           directory for relative paths of grammars in the source; empty: the directory of the model
    anywhere       permit paths of grammars outside it
    """

    source: str
    references: tuple[str, ...]
    leave_one_out: bool = False
    base: str = ""
    anywhere: bool = False


def read_tuning_segments(files: SetFiles, form: InputForm = AUTO) -> list[Segment]:
    """Read a tuning set in the given form; paths of grammars are joined with ``files.base``."""
    segments = []
    for number, line in enumerate(read_lines(files.source, "text to translate"), 1):
        segment = parse_input(decode_line(line, number)[0], files.source, number, form)
        try:
            segment = segment.with_base(files.base, anywhere=files.anywhere)
        except HieroError as error:
            raise HieroError(f"{files.source}:{number}: {error}") from None
        if files.leave_one_out:
            attributes = {**segment.attributes, LEAVE_OUT: str(number - 1)}
            segment = dataclasses.replace(segment, attributes=attributes)
        segments.append(segment)
    return segments


class TuningSet:
    """A set in memory: ``segments``, and ``references`` in the same order."""

    def __init__(self, files: SetFiles, symbols: Symbols, form: InputForm = AUTO) -> None:
        self.files = files
        self.segments = read_tuning_segments(files, form)
        sides = [_words(path, symbols) for path in files.references]
        for path, side in zip(files.references, sides, strict=True):
            if len(side) != len(self.segments):
                expected = f"{len(self.segments)}, as in {files.source}"
                raise FormatError(path, 0, found=f"{len(side)} lines", expected=expected)
        # A blank line is a missing reference.
        rows = [[ref for ref in refs if len(ref)] for refs in zip(*sides, strict=True)]
        self.has_reference = np.array([len(row) > 0 for row in rows], np.bool_)
        blank = [np.empty(0, np.int32)]
        self.references = References([row or blank for row in rows])
        self.shortest = self.references.shortest()

    def __len__(self) -> int:
        return len(self.segments)


def _words(path: str, symbols: Symbols) -> list[Ids]:
    lines = enumerate(read_lines(path, "references"), 1)
    texts = (decode_line(line, number)[0] for number, line in lines)
    return [symbols.words.intern_all(word.encode() for word in split_words(text)) for text in texts]


def shuffled(numbers: Sequence[int], *seed: int) -> list[int]:
    """Return the numbers in an order that depends on the seed alone."""
    generator = np.random.Generator(np.random.PCG64([abs(part) for part in seed]))
    return [numbers[i] for i in generator.permutation(len(numbers)).tolist()]


def shards(numbers: Sequence[int], count: int) -> list[list[int]]:
    """Split into ``count`` consecutive parts of almost equal size."""
    ends = [len(numbers) * part // count for part in range(count + 1)]
    return [list(numbers[a:b]) for a, b in itertools.pairwise(ends)]


PROGRESS_INTERVAL = 0.5  # seconds between writes of the progress file
MAX_NAMED = 100  # features with a name of their own, more than a grammar has columns
TEMPORARY = "tmp."  # prefix of files that are not complete


class Stopped(HieroError):
    """The run was interrupted; the shard is not complete."""


@dataclass(frozen=True)
class Session:
    """Data shared by all tasks of a run. All of it, ``load`` too, must be picklable."""

    load: Callable[[], Model]
    files: SetFiles
    config: TuneSettings
    seed: int
    key: str  # equal for equal sessions only
    language_models: Specs = ()  # those of the model
    recipe: Recipe | None = None  # of the first of them


@dataclass(frozen=True)
class ShardTask:
    """Sentences ``numbers`` of the tuning set in their order, and the weights in ``start``.

    state    file that the shard wrote in the last epoch, with the learner's state; None in the first
    out      where to write: OUT.npz, then OUT.json; the task is done when the second exists
    threads  number that may decode a mini-batch
    folds    of the sentences, whose language models replace those of the model
    totals   summed BLEU statistics of the last epoch's best translations, of all shards, and their number
    """

    session: Session
    epoch: int
    shard: int
    numbers: tuple[int, ...]
    start: str
    state: str | None
    out: str
    threads: int = 1
    folds: Folds | None = None
    totals: tuple[tuple[float, ...], int] | None = None


class RunFiles:
    """Paths in the directory of a run; epochs count from 0, names of files from 1."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.start = str(self.epoch(0) / "start.npz")

    def epoch(self, epoch: int) -> Path:
        return self.directory / "epochs" / f"{epoch + 1:02d}"

    def answer(self, epoch: int) -> str:
        return str(self.epoch(epoch) / "answer.npz")

    def shard(self, epoch: int, shard: int) -> str:
        """Without a suffix, as in ``ShardTask.out``."""
        return str(self.epoch(epoch) / f"shard.{shard:03d}")

    def weights(self, epoch: int) -> Path:
        return self.directory / f"weights.{epoch + 1:02d}.gz"


_opened: dict[str, tuple[Model, TuningSet]] = {}
_opened_sets: dict[SetFiles, TuningSet] = {}  # of the same session
_fold_models: dict[Specs, LanguageModels] = {}  # likewise
_dense: dict[str, frozenset[str]] = {}  # likewise
_opening = threading.Lock()


def opened(session: Session) -> tuple[Model, TuningSet]:
    """Return the model and the sentences of a session, loaded once per process."""
    with _opening:
        if session.key not in _opened:
            # Release those of an earlier run in the same process: models are large.
            _opened.clear()
            _opened_sets.clear()
            _fold_models.clear()
            _dense.clear()
            model = session.load()
            model.warm_up()
            _opened[session.key] = model, TuningSet(session.files, model.symbols, model.search.form)
        return _opened[session.key]


def opened_tuning_set(session: Session, files: SetFiles) -> TuningSet:
    """Return another set of sentences for the model of a session, beside those of its shards, read once."""
    model, _ = opened(session)
    with _opening:
        if files not in _opened_sets:
            _opened_sets[files] = TuningSet(files, model.symbols, model.search.form)
        return _opened_sets[files]


def dense_features(session: Session) -> frozenset[str]:
    """Return the names of the dense features of a session's model, the same in every process."""
    model, texts = opened(session)
    with _opening:
        if session.key not in _dense:
            _dense[session.key] = model.dense_features(texts.segments)
        return _dense[session.key]


def is_task_done(out: str) -> bool:
    """Whether a task, of a shard or of a held-out set, has written its output."""
    return os.path.exists(f"{out}.json") and os.path.exists(f"{out}.npz")


class TaskOutput:
    """The output files of a task: OUT.npz, then OUT.json, each written atomically.

    Two workers may run the same task, if the first was taken for dead: each writes to a ``temporary`` name.
    """

    def __init__(self, out: str) -> None:
        self.out = Path(out)
        self.temporary = str(self.out.with_name(f"{TEMPORARY}{uuid.uuid4().hex}.{self.out.name}"))
        self._last_write = 0.0

    def write_progress(self, done: int) -> None:
        """Write the number of sentences done to a file, which works on any executor."""
        now = time.perf_counter()
        if now - self._last_write >= PROGRESS_INTERVAL:
            self._last_write = now
            # Progress is optional: failures to write it are ignored.
            with contextlib.suppress(OSError), open(f"{self.out}.progress", "w", encoding="ascii") as stream:
                stream.write(f"{done}\n")

    def finish(self, report: Mapping[str, Any]) -> None:
        """Write the report, and rename both files; call it after the temporary .npz was written."""
        write_output(f"{self.temporary}.json", json.dumps(report) + "\n")
        for ending in (".npz", ".json"):
            rename_over(f"{self.temporary}{ending}", f"{self.out}{ending}")
        Path(f"{self.out}.progress").unlink(missing_ok=True)


def fold_model(session: Session, model: Model, specs: Specs) -> Model:
    """A copy of a session's model with other language models, loaded once per process."""
    other = copy.copy(model)
    with _opening:
        if specs not in _fold_models:
            _fold_models[specs] = load_language_models([model_files(*spec) for spec in specs])
        other.language_models = _fold_models[specs]
    return other


class ModelOfFolds:
    """Models of the folds of sentences, which share their weights; without folds, the model itself."""

    def __init__(self, session: Session, model: Model, folds: Folds | None) -> None:
        self._session, self._model, self._folds = session, model, folds
        self._made: dict[int, Model] = {}

    def of(self, number: int) -> Model:
        """The model for a sentence. It is made by one thread, before others use it."""
        if self._folds is None:
            return self._model
        fold = self._folds.fold[number]
        if fold not in self._made:
            self._made[fold] = fold_model(self._session, self._model, self._folds.models[fold])
        return self._made[fold]

    def weights_changed(self) -> None:
        for model in (self._model, *self._made.values()):
            model.weights_changed()


class ShardDecoder:
    """A model with weights of its own, ``vector``, which decodes sentences of a session into examples.

    threads  number that may decode a mini-batch
    folds    of the sentences, whose language models replace those of the model
    """

    def __init__(self, session: Session, threads: int = 1, folds: Folds | None = None) -> None:
        self.config, self.threads = session.config, threads
        model, self.set = opened(session)
        self.vector = WeightVector(model.symbols)
        self.model = model.with_weights(self.vector)
        self._models = ModelOfFolds(session, self.model, folds)
        self.weights_changed = self._models.weights_changed
        self.failed = 0  # sentences without an example
        self.seconds = 0.0
        self._fired = np.zeros(0, np.bool_)  # features that any translation had

    def read_weights(self, path: str) -> None:
        ids, values = read_vectors(path, self.model.symbols, self.vector.index)
        self.vector.grow()
        self.vector.value[ids] = values["weight"]
        self.weights_changed()

    def examples(self, numbers: Sequence[int]) -> list[Example]:
        """Decode with the current weights. Features are numbered in the order of the sentences."""
        if stop.is_set():
            raise Stopped("interrupted")
        started = time.thread_time()
        threads = min(self.threads, len(numbers))
        for number in numbers:
            self._models.of(number)  # made before others decode
        if threads == 1:
            forests = [self._parse(number) for number in numbers]
        else:
            # Decode all before any is made an example: features must not be numbered while others decode.
            forests = list(in_order(self._parse, numbers, threads))
        examples, known = [], len(self.vector)
        for number, forest in zip(numbers, forests, strict=True):
            example = self._example(number, forest)
            if example is None:
                self.failed += 1
            else:
                examples.append(example)
        if len(self.vector) > known:
            self.weights_changed()  # a model reads the tables that it found, which may be too short now
        self.seconds += time.thread_time() - started
        return examples

    def _parse(self, number: int) -> Forest:
        forest = self._models.of(number).parse(self.set.segments[number])
        if forest:
            forest.list_kbest(self.config.kbest, self.config.unique)  # here it runs in parallel
        return forest

    def _example(self, number: int, forest: Forest) -> Example | None:
        words = len(self.set.segments[number].words)
        if not forest or not self.set.has_reference[number] or not words:
            return None
        found = candidates(forest, self.config.kbest, self.vector.index, self.config.unique)
        self.vector.grow()
        self._note_fired(found.id)
        statistics = self.set.references.batch_statistics(
            np.array([number]), np.array([0, found.size]), found.first_word, found.word
        )
        return Example(number, words, found, statistics, int(self.set.shortest[number]))

    def _note_fired(self, features: Ids) -> None:
        missing = len(self.vector) - len(self._fired)
        if missing > 0:
            self._fired = np.concatenate([self._fired, np.zeros(missing + len(self._fired), np.bool_)])
        self._fired[features] = True

    def _fired_names(self) -> list[str] | None:
        """Names of named features that fired; None if there are none, or more than ``MAX_NAMED``."""
        key, fired = self.vector.index.table.key, np.flatnonzero(self._fired)
        ids = key[fired[key[fired, 0] == NAME], 1]
        if not 0 < len(ids) <= MAX_NAMED:
            return None
        return sorted(self.vector.symbols.names.text(i) for i in ids.tolist())

    def report(self, learnt: UpdateReport) -> dict[str, Any]:
        """The report of a shard, as JSON: of learning and decoding."""
        numbers = dataclasses.asdict(dataclasses.replace(learnt, failed=self.failed))
        numbers = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in numbers.items()
        }
        return numbers | {"fired": self._fired_names(), "decode_s": self.seconds}
