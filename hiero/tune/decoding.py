"""Sentences made into examples, on any executor: what all tasks of tuning have in common.

A task names files; what it reads of them is kept for the next task in the same process. Weights come from a
file and go to a file, wherever the task runs, so the answer is the same to the bit on every executor.
"""

from __future__ import annotations

import contextlib
import dataclasses
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
import numpy.typing as npt

from hiero.candidates import candidates
from hiero.decode import Model
from hiero.errors import HieroError
from hiero.features import NAME
from hiero.forest import Forest
from hiero.formats.text import open_output
from hiero.formats.vectors import read_vectors
from hiero.inorder import in_order
from hiero.language import load_language_models
from hiero.tune.data import SetFiles, TuningSet
from hiero.tune.example import Example, UpdateReport
from hiero.tune.jackknife import Specs
from hiero.tune.settings import TuneConfig
from hiero.weightvector import WeightVector

BEAT = 0.5  # seconds between notes of progress
MANY = 100  # features with a name of their own, more than a grammar has columns
TEMPORARY = "tmp."  # what names of files begin with that are not done


class Stopped(HieroError):
    """The run was interrupted, and the shard was left where it was."""


@dataclass(frozen=True)
class Session:
    """What all tasks of a run share. ``load`` and all else must survive pickling."""

    load: Callable[[], Model]
    files: SetFiles
    config: TuneConfig  # resolved
    seed: int
    key: str  # the same for equal sessions, and for no others
    language_models: Specs = ()  # names and paths of those that the model has


@dataclass(frozen=True)
class ShardTask:
    """Sentences ``numbers`` of the tuning set in their order, from the weights in ``start``.

    state    what the shard wrote in the last epoch, for the learner to go on from; None in the first
    out      where to write: OUT.npz, then OUT.json; the second says that the task is done
    threads  that may decode a mini-batch
    language_models  to decode with in place of the model's, or None
    others   summed BLEU statistics of the last epoch's best translations, of all shards, and their number
    """

    session: Session
    epoch: int
    shard: int
    numbers: tuple[int, ...]
    start: str
    state: str | None
    out: str
    threads: int = 1
    language_models: Specs | None = None
    others: tuple[tuple[float, ...], int] | None = None


_opened: dict[str, tuple[Model, TuningSet]] = {}
_others: dict[SetFiles, TuningSet] = {}  # of the same session
_opening = threading.Lock()
stop = threading.Event()  # set: tasks in threads of this process end at their next sentence


def opened(session: Session) -> tuple[Model, TuningSet]:
    """The model and the sentences of a session, loaded once a process."""
    with _opening:
        if session.key not in _opened:
            # Those of an earlier run in the same process go; models are large.
            _opened.clear()
            _others.clear()
            model = session.load()
            model.warm_up()
            _opened[session.key] = model, TuningSet(session.files, model.symbols)
        return _opened[session.key]


def opened_set(session: Session, files: SetFiles) -> TuningSet:
    """Another set of sentences for the model of a session, read once a process."""
    model, _ = opened(session)
    with _opening:
        if files not in _others:
            _others[files] = TuningSet(files, model.symbols)
        return _others[files]


def is_done(out: str) -> bool:
    return os.path.exists(f"{out}.json") and os.path.exists(f"{out}.npz")


class Place:
    """Where a task writes: OUT.npz, then OUT.json, both of them whole, or not at all.

    Two may be at one task, the first of them given up for dead: each writes under a name of its own.
    """

    def __init__(self, out: str) -> None:
        self.out = Path(out)
        self.own = str(self.out.with_name(f"{TEMPORARY}{uuid.uuid4().hex}.{self.out.name}"))
        self._last_beat = 0.0

    def beat(self, done: int) -> None:
        """Tell whoever waits how far this is; a file, because that works from everywhere."""
        now = time.perf_counter()
        if now - self._last_beat >= BEAT:
            self._last_beat = now
            # Nobody needs it: where it cannot be written, it is not.
            with contextlib.suppress(OSError), open(f"{self.out}.progress", "w", encoding="ascii") as stream:
                stream.write(f"{done}\n")

    def finish(self, report: Mapping[str, Any]) -> None:
        """Say what happened, after OWN.npz was written; the task is done when this is there."""
        with open_output(f"{self.own}.json") as stream:
            stream.write((json.dumps(report) + "\n").encode())
        for ending in (".npz", ".json"):
            os.replace(f"{self.own}{ending}", f"{self.out}{ending}")
        Path(f"{self.out}.progress").unlink(missing_ok=True)


class Decoding:
    """A model with the weights of a task, and sentences made into examples."""

    def __init__(self, task: ShardTask) -> None:
        self.place = Place(task.out)
        self.task, self.config = dataclasses.replace(task, out=self.place.own), task.session.config
        model, self.set = opened(task.session)
        self.vector = WeightVector(model.symbols)
        self.model = model.with_weights(self.vector)
        if task.language_models is not None:
            specs = [(name, Path(path)) for name, path in task.language_models]
            self.model.language_models = load_language_models(specs)
        self.report = UpdateReport()
        self.decoding = 0.0  # seconds
        self.fired = np.zeros(0, np.bool_)  # features that any translation has had

    def read_start(self) -> None:
        ids, values = read_vectors(self.task.start, self.model.symbols, self.vector.index)
        self.vector.grow()
        self.vector.value[ids] = values["weight"]
        self.model.weights_changed()

    def examples(self, numbers: Sequence[int]) -> list[Example]:
        """Decode with the weights of now. Features are numbered in the order of sentences."""
        if stop.is_set():
            raise Stopped("interrupted")
        started = time.thread_time()
        threads = min(self.task.threads, len(numbers))
        if threads == 1:
            forests = [self._parse(number) for number in numbers]
        else:
            # All of them before any is looked at: new features must not be numbered while others decode.
            forests = list(in_order(self._parse, numbers, threads))
        examples = []
        for number, forest in zip(numbers, forests, strict=True):
            example = self._example(number, forest)
            if example is None:
                self.report.failed += 1
            else:
                examples.append(example)
        self.decoding += time.thread_time() - started
        return examples

    def _parse(self, number: int) -> Forest:
        forest = self.model.parse(self.set.segments[number])
        if forest:
            forest.list_kbest(self.config.kbest or 1, self.config.unique)  # here, where threads help
        return forest

    def _example(self, number: int, forest: Forest) -> Example | None:
        words = len(self.set.segments[number].words)
        if not forest or not self.set.has_reference[number] or not words:
            return None
        found = candidates(forest, self.config.kbest or 1, self.vector.index, self.config.unique)
        self.vector.grow()
        self._note_fired(found.id)
        statistics = self.set.references.batch_statistics(
            np.array([number]), np.array([0, found.size]), found.first_word, found.word
        )
        return Example(number, words, found, statistics, int(self.set.shortest[number]))

    def _note_fired(self, features: npt.NDArray[np.int32]) -> None:
        missing = len(self.vector) - len(self.fired)
        if missing > 0:
            self.fired = np.concatenate([self.fired, np.zeros(missing + len(self.fired), np.bool_)])
        self.fired[features] = True

    def _fired_names(self) -> list[str] | None:
        """Features that go by a name and were met; None if they are more than anybody looks at."""
        key, fired = self.vector.index.table.key, np.flatnonzero(self.fired)
        ids = key[fired[key[fired, 0] == NAME], 1]
        if not 0 < len(ids) <= MANY:
            return None
        return sorted(self.vector.symbols.names.text(i) for i in ids.tolist())

    def beat(self, done: int) -> None:
        self.place.beat(done)

    def write_report(self, more: Mapping[str, float]) -> None:
        """Say what happened; the task is done when this is there."""
        numbers: dict[str, Any] = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in dataclasses.asdict(self.report).items()
        }
        numbers |= {"fired": self._fired_names(), "decode_s": self.decoding}
        self.place.finish(numbers | dict(more))
