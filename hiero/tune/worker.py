"""One shard, one epoch: decode, learn, and leave the weights in a file. What an executor runs.

A task names files; what it reads of them is kept for the next task in the same process. Weights come from a
file and go to a file, wherever the task runs, so the answer is the same to the bit on every executor.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.candidates import candidates
from hiero.decode import Model
from hiero.errors import HieroError
from hiero.forest import Forest
from hiero.formats.segments import Segment
from hiero.formats.text import open_output
from hiero.formats.vectors import read_vectors, write_vectors
from hiero.inorder import in_order
from hiero.names import Names
from hiero.tune.data import SetFiles, TuningSet
from hiero.tune.example import Example, Learner, Report
from hiero.tune.finite import NotFinite
from hiero.tune.presets import make_learner
from hiero.tune.settings import TuneConfig
from hiero.weightvector import WeightVector

PER_FEATURE, OTHER = "feature.", "state."
BEAT = 0.5  # seconds between notes of progress


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


@dataclass(frozen=True)
class ShardTask:
    """Sentences ``numbers`` of the tuning set in their order, from the weights in ``start``.

    state    what the shard wrote in the last epoch, for the learner to go on from; None in the first
    out      where to write: OUT.npz, then OUT.json; the second says that the task is done
    threads  that may decode a mini-batch
    """

    session: Session
    epoch: int
    shard: int
    numbers: tuple[int, ...]
    start: str
    state: str | None
    out: str
    threads: int = 1


_opened: dict[str, tuple[Model, TuningSet]] = {}
_opening = threading.Lock()
stop = threading.Event()  # set: tasks in threads of this process end at their next sentence


def opened(session: Session) -> tuple[Model, TuningSet]:
    """The model and the sentences of a session, loaded once a process."""
    with _opening:
        if session.key not in _opened:
            _opened.clear()  # of an earlier run in the same process; models are large
            model = session.load()
            model.warm_up()
            _opened[session.key] = model, TuningSet(session.files, model.symbols)
        return _opened[session.key]


def is_done(out: str) -> bool:
    return os.path.exists(f"{out}.json") and os.path.exists(f"{out}.npz")


def run_shard(task: ShardTask) -> str:
    """Learn from a shard, unless that was done; where the result is."""
    if not is_done(task.out):
        _Shard(task).run()
    return task.out


class _Shard:
    def __init__(self, task: ShardTask) -> None:
        self.task, self.config = task, task.session.config
        model, self.set = opened(task.session)
        self.vector = WeightVector(model.symbols)
        self.model = model.with_weights(self.vector)
        self.learner: Learner = make_learner(self.config, task.session.seed)
        self.report = Report()
        self.decoding = self.learning = 0.0
        self.last_beat = 0.0

    def run(self) -> None:
        task = self.task
        self._start()
        started = time.perf_counter()
        size = self.config.batch or 1
        for at in range(0, len(task.numbers), size):
            if stop.is_set():
                raise Stopped("interrupted")
            self._learn(self._examples(task.numbers[at : at + size]))
            self._beat(min(at + size, len(task.numbers)))
        self.learner.end_epoch(self.vector.value)
        self._write(time.perf_counter() - started)

    # ---- before and after

    def _start(self) -> None:
        ids, values = read_vectors(self.task.start, self.model.symbols, self.vector.index)
        self.vector.grow()
        self.vector.value[ids] = values["weight"]
        if self.task.state is not None:
            ids, values = read_vectors(self.task.state, self.model.symbols, self.vector.index)
            self.vector.grow()
            self.learner.restore(self._state(ids, values))
        self.model.weights_changed()

    def _state(self, ids: npt.NDArray[np.int32], values: Mapping[str, Any]) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for name, array in values.items():
            if name.startswith(PER_FEATURE):
                whole = np.zeros(len(self.vector.value), array.dtype)
                whole[ids] = array
                _put(state, name.removeprefix(PER_FEATURE), whole)
            elif name.startswith(OTHER):
                _put(state, name.removeprefix(OTHER), array if array.ndim else array.item())
        return state

    def _write(self, seconds: float) -> None:
        vector, out = self.vector, self.task.out
        count = len(vector)
        keep = vector.value[:count] != 0
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, value in _flat(self.learner.state()):
            if isinstance(value, np.ndarray) and value.shape[:1] == vector.value.shape:
                arrays[PER_FEATURE + name] = value[:count]
                keep |= value[:count] != 0
            else:
                arrays[OTHER + name] = np.asarray(value)
        chosen = np.flatnonzero(keep)
        arrays = {n: a[chosen] if n.startswith(PER_FEATURE) else a for n, a in arrays.items()}
        weight = vector.value[chosen]
        write_vectors(f"{out}.npz", vector.symbols, vector.index, chosen, weight=weight, **arrays)
        numbers: dict[str, Any] = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in dataclasses.asdict(self.report).items()
        }
        numbers |= {
            "features": int(np.count_nonzero(weight)),
            "seen": count,
            "decode_s": self.decoding,
            "learn_s": self.learning,
            "wall_s": seconds,
        }
        with open_output(f"{out}.json") as stream:
            stream.write((json.dumps(numbers) + "\n").encode())
        Path(f"{out}.progress").unlink(missing_ok=True)

    def _beat(self, done: int) -> None:
        """Tell whoever waits how far this is; a file, because that works from everywhere."""
        now = time.perf_counter()
        if now - self.last_beat >= BEAT:
            self.last_beat = now
            with open(f"{self.task.out}.progress", "w", encoding="ascii") as stream:
                stream.write(f"{done}\n")

    # ---- a sentence, or a batch of them

    def _examples(self, numbers: Sequence[int]) -> list[Example]:
        """Decode with the weights of now. Features are numbered in the order of sentences."""
        started = time.thread_time()
        threads = min(self.task.threads, len(numbers))
        one = threads == 1
        forests = map(self._parse, numbers) if one else in_order(self._parse, numbers, threads)
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
        forest = self.model.parse(self._segment(number))
        if forest:
            forest.list_kbest(self.config.kbest or 1, self.config.unique)  # here, where threads help
        return forest

    def _segment(self, number: int) -> Segment:
        return self.set.segments[number]

    def _example(self, number: int, forest: Forest) -> Example | None:
        if not forest or not self.set.has_reference[number] or not self._segment(number).words:
            return None
        found = candidates(forest, self.config.kbest or 1, self.vector.index, self.config.unique)
        self.vector.grow()
        statistics = self.set.references.batch_statistics(
            np.array([number]), np.array([0, found.size]), found.first_word, found.word
        )
        words = len(self._segment(number).words)
        return Example(number, words, found, statistics, int(self.set.shortest[number]))

    def _learn(self, examples: Sequence[Example]) -> None:
        if not examples:
            return
        started = time.thread_time()
        try:
            self.report.add(self.learner.learn(examples, self.vector.value))
        except NotFinite as error:
            key = self.vector.index.key(error.feature)
            raise error.named(Names(self.vector.symbols).name(key)) from None
        self.model.weights_changed()
        self.learning += time.thread_time() - started


def _flat(state: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested mappings as pairs of dotted names and values."""
    pairs: list[tuple[str, Any]] = []
    for name, value in state.items():
        if isinstance(value, Mapping):
            pairs.append((f"{prefix}{name}.", 0))  # also of one that is empty, something is left
            pairs += _flat(value, f"{prefix}{name}.")
        else:
            pairs.append((prefix + name, value))
    return pairs


def _put(state: dict[str, Any], name: str, value: Any) -> None:
    *path, last = name.split(".")
    for part in path:
        state = state.setdefault(part, {})
    if last:
        state[last] = value
