"""Loop over the epochs of a course: distribute the sentences, run the shards, score the held-out set.

    RUNDIR/epochs/01/start.npz      initial weights
    RUNDIR/epochs/NN/shard.SSS.npz  final weights of a shard, and the state of its learner
    RUNDIR/epochs/NN/shard.SSS.json its report; the shard is done when this exists
    RUNDIR/epochs/NN/mixed.npz      the mean of the shards' weights, if the answer is another mean
    RUNDIR/epochs/NN/average.npz    the mean of their averages over sentences, if it is not that
    RUNDIR/epochs/NN/answer.npz     the weights of the epoch
    RUNDIR/epochs/NN/held.A-B.npz   BLEU statistics of lines A to B of the held-out set with these weights
    RUNDIR/weights.NN.gz            the same weights as text, as hiero decode reads them
    RUNDIR/log.jsonl                one line for each epoch that is done
    RUNDIR/weights.gz               weights of the epoch chosen on the held-out set

Shards start from their own weights, or from ``mixed.npz`` or ``answer.npz`` of the epoch before. An epoch
only depends on the files of earlier epochs and on the seed, so that a run that was killed continues with the
shards that are not done, and ends with the same weights. Files that no later epoch needs are deleted.

The weights of an epoch become text, and its line is logged, while the next epoch runs.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from hiero.bins.bins import Binned
from hiero.bitext.groups import PairGroups, same_lines
from hiero.core.arrays import Floats, Ints
from hiero.core.progress import Progress
from hiero.core.symbols import Symbols
from hiero.core.usage import peak_mb
from hiero.extraction.extractor import IndexSource
from hiero.features.names import Names
from hiero.features.weights import write_weights
from hiero.lm.config import EstimateConfig
from hiero.tuning.executors import run_all
from hiero.tuning.held_out import (
    PartTask,
    halves,
    held_out_score,
    part_tasks,
    statistics_in,
    translate_held_out,
)
from hiero.tuning.jackknife import Folds, Recipe, assign_folds, jackknifed, read_words
from hiero.tuning.report import Health, Table, append_log, read_log
from hiero.tuning.shard import (
    RunFiles,
    Session,
    SetFiles,
    ShardTask,
    opened,
    opened_tuning_set,
    shards,
    shuffled,
)
from hiero.tuning.vectors import WeightVector, read_vectors, write_start

PLAN, ORDER = 1, 2  # parts of seeds: for shuffling over shards, and within a shard


class Course(Protocol):
    """The part of a loop that differs between online and batch algorithms.

    verb          the work on a shard, for the display
    passes        how many times an epoch translates its sentences
    keeps_shards  whether later epochs need the files of the shards, and not only the answer
    """

    verb: str
    passes: int
    keeps_shards: bool

    @property
    def work(self) -> Callable[[ShardTask], str]:
        """Runs a task, in any process; returns the name of its output."""
        ...

    def resume(self, done: int) -> None:
        """Prepare for the first epoch to run, after ``done`` epochs of an earlier run."""
        ...

    def start(self, epoch: int, shard: int) -> str:
        """The file of the weights that a shard starts from."""
        ...

    def look(self, tasks: Sequence[ShardTask]) -> None:
        """Use the tasks of an epoch that are done, while others run."""
        ...

    def conclude(self, epoch: int, tasks: Sequence[ShardTask]) -> dict[str, Any]:
        """Write the answer of an epoch, whose tasks are done; return figures for the log."""
        ...


class Loop:
    """Loop over the epochs of a course, in a directory from which it can be resumed."""

    def __init__(
        self,
        session: Session,
        course: Course,
        files: RunFiles,
        held_out: SetFiles | None,
        executor: Callable[[], Executor],
        workers: int,
        progress: Progress,
    ) -> None:
        self.session, self.config, self.course, self.files = session, session.config, course, files
        self.executor, self.workers, self.progress = executor, workers, progress
        self.model, self.set = opened(session)
        self.held_out = held_out
        if held_out is not None:
            opened_tuning_set(session, held_out)  # reports its errors before anything is learnt
        self.numbers = self._chosen_sentences()
        self.health = Health(self.config)
        self.table = Table(self.config, held_out=held_out is not None)
        self.totals: tuple[tuple[float, ...], int] | None = None
        self.log = read_log(files.directory)
        self.unlogged: tuple[dict[str, Any], Future[Answer]] | None = None  # the last epoch that ran
        self.text_s = 0.0  # CPU of writing weights as text

    def run(self) -> list[dict[str, Any]]:
        """Run all epochs that are not done; return the log of all epochs."""
        done = len(self.log)
        for epoch, record in enumerate(self.log):
            self._show(record, self._answer(epoch))  # without the warnings
        self.course.resume(done)
        self.folds = self._jackknife() if self.config.lm == "jackknife" else None
        self.progress.begin((self.config.epochs - done) * self._steps_of_epoch())
        with ThreadPoolExecutor(1, thread_name_prefix="hiero-answer") as background:
            last = self.log[-1] if self.log else {}
            try:
                for epoch in range(done, self.config.epochs):
                    if last:
                        self.totals = tuple(last["model_statistics"]), last["sentences"]
                    if last.get("converged"):
                        break
                    last = self._epoch(epoch, background)
            finally:
                self._log_last()
        return self.log

    def _log_last(self) -> None:
        """Log the last epoch that ran, when its weights are written, and show it."""
        if self.unlogged is None:
            return
        (record, writing), self.unlogged = self.unlogged, None
        answer = writing.result()
        record["cpu_s"] += answer.cpu_s
        self.log.append(record)
        append_log(self.files.directory, record)
        if not self.course.keeps_shards:
            self._forget(record["epoch"] - 2)
        for note in self._show(record, answer):
            self.progress.say(note)

    def _show(self, record: dict[str, Any], answer: Answer) -> list[str]:
        """Show an epoch that is done; return warnings."""
        self.progress.record(self.table.row(record))
        return self.health.look(record, answer.value, answer.largest)

    # ---- sentences and shards

    def _chosen_sentences(self) -> list[int]:
        numbers = list(range(len(self.set)))
        if 0 < self.config.sentences < len(numbers):
            return sorted(shuffled(numbers, self.session.seed, 0)[: self.config.sentences])
        return numbers

    def _shards(self, epoch: int) -> list[list[int]]:
        """The sentences of each shard, in the order of learning."""
        config, seed, numbers = self.config, self.session.seed, self.numbers
        count = config.shards or -(-len(numbers) // config.shard_size)
        count = max(1, min(count, len(numbers)))
        if config.shuffle_shards != "none" and count > 1:
            numbers = shuffled(numbers, seed, PLAN, epoch if config.shuffle_shards == "epoch" else 0)
        parts = [sorted(part) for part in shards(numbers, count)]
        if config.order == "shuffle":
            parts = [shuffled(part, seed, ORDER, epoch, shard) for shard, part in enumerate(parts)]
        return parts

    def _jackknife(self) -> Folds:
        session, group_of = self.session, self._groups()
        models = self.model.language_models.arrays.order.tolist()
        given = session.recipe or Recipe(None, EstimateConfig())
        order = {"order": models[0]} if models else {}
        recipe = Recipe(given.text, dataclasses.replace(given.config, threads=self.workers, **order))
        return jackknifed(
            session.language_models,
            recipe,
            session.files.references,
            assign_folds(self.numbers, group_of, self.config.folds),
            group_of,
            self.files.directory / "jackknife",
            self.progress,
        )

    def _groups(self) -> Callable[[int], Ints]:
        """The sentences that are left out with one: those of an index, or those with an equal side."""
        opened = (one.source if isinstance(one, Binned) else one for one in self.model.sources)
        extractor = next((one.extractor for one in opened if isinstance(one, IndexSource)), None)
        if extractor is not None and self.session.files.leave_one_out:
            return extractor.left_out_with
        sources = [" ".join(segment.words).encode() for segment in self.set.segments]
        return PairGroups(*map(same_lines, [sources, *map(read_words, self.session.files.references)])).of

    # ---- an epoch

    def _steps_of_epoch(self) -> int:
        """The number of sentences translated in an epoch."""
        held_out = 0 if self.held_out is None else len(opened_tuning_set(self.session, self.held_out))
        return self.course.passes * len(self.numbers) + held_out

    def _epoch(self, epoch: int, background: Executor) -> dict[str, Any]:
        """Run an epoch, and begin to write its weights; return its line of the log."""
        started, cpu = time.perf_counter(), time.process_time() - self.text_s
        self.files.epoch(epoch).mkdir(parents=True, exist_ok=True)
        if epoch == 0:
            write_start(self.files.start, self.config.start, self.model)
        tasks = self._tasks(epoch)
        name = f"epoch {epoch + 1} of {self.config.epochs}"
        look = functools.partial(self.course.look, tasks)
        self._run(self.course.work, tasks, f"{name}: {self.course.verb}", look)
        record = {"epoch": epoch + 1, **_summed([f"{task.out}.json" for task in tasks])}
        record |= self.course.conclude(epoch, tasks)
        record["learn_wall_s"] = time.perf_counter() - started
        self._log_last()
        writing = background.submit(self._write_answer, epoch)
        if self.held_out is not None:
            record |= self._score(epoch, name)
            wait([writing])
        cpu = time.process_time() - self.text_s - cpu
        record |= {"wall_s": time.perf_counter() - started, "cpu_s": cpu, "peak_mb": round(peak_mb(), 1)}
        self.unlogged = record, writing
        return record

    def _tasks(self, epoch: int) -> list[ShardTask]:
        parts = self._shards(epoch)
        return [
            ShardTask(
                self.session,
                epoch,
                shard,
                tuple(part),
                start=self.course.start(epoch, shard),
                state=f"{self.files.shard(epoch - 1, shard)}.npz" if epoch else None,
                out=self.files.shard(epoch, shard),
                threads=self.workers if len(parts) == 1 else 1,
                folds=self.folds.part(part) if self.folds else None,
                totals=self.totals,
            )
            for shard, part in enumerate(parts)
        ]

    def _run(
        self,
        work: Callable[[Any], str],
        tasks: Sequence[ShardTask | PartTask],
        what: str,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """Run tasks, showing the sentences done; ``look`` is called at short intervals."""
        self.progress.part(what)
        done = 0

        def show() -> None:
            nonlocal done
            if self.unlogged is not None and self.unlogged[1].done():
                self._log_last()
            look()
            steps = _sentences_done(tasks) - done
            if steps > 0:
                self.progress.advance(steps)
                done += steps

        run_all(self.executor, work, tasks, show)
        show()

    def _score(self, epoch: int, name: str) -> dict[str, Any]:
        if self.held_out is None:
            return {}
        size = len(opened_tuning_set(self.session, self.held_out))
        answer, out = self.files.answer(epoch), str(self.files.epoch(epoch) / "held")
        tasks = part_tasks(self.session, self.held_out, size, answer, out, self.workers)
        self._run(translate_held_out, tasks, f"{name}: held-out set")
        rows = statistics_in(tasks)
        odd, even = halves(rows)
        both = held_out_score(rows.sum(axis=0))
        return {
            "choose_bleu": odd.bleu,
            "choose_brevity": odd.brevity,
            "report_bleu": even.bleu,
            "report_brevity": even.brevity,
            "held_out_bleu": both.bleu,
            "held_out_brevity": both.brevity,
        }

    def _write_answer(self, epoch: int) -> Answer:
        cpu, answer = time.thread_time(), self._answer(epoch)
        write_weights(self.files.weights(epoch), answer.vector.as_weights())
        answer = answer._replace(cpu_s=time.thread_time() - cpu)
        self.text_s += answer.cpu_s
        return answer

    def _answer(self, epoch: int) -> Answer:
        symbols = Symbols()
        vector = WeightVector(symbols)
        ids, values = read_vectors(self.files.answer(epoch), symbols, vector.index)
        vector.grow()
        value = vector.value[ids] = values["weight"]
        largest = int(ids[np.argmax(np.abs(value))]) if len(ids) else -1
        name = Names(symbols).name(vector.index.key(largest)) if len(ids) else ""
        return Answer(vector, value, name)

    def _forget(self, epoch: int) -> None:
        """Delete files that no later epoch needs."""
        if epoch >= 0:
            for path in self.files.epoch(epoch).glob("*"):
                if path.name != Path(self.files.answer(epoch)).name:
                    path.unlink()


class Answer(NamedTuple):
    """The weights of an epoch: for all uses, as they are in the file, and the name of the largest.

    cpu_s  CPU seconds of reading them, and of writing them as text
    """

    vector: WeightVector
    value: Floats
    largest: str
    cpu_s: float = 0.0


def _sentences_done(tasks: Sequence[ShardTask | PartTask]) -> int:
    """The number of sentences done, from the progress files of tasks that are not done."""
    done = 0
    for task in tasks:
        if os.path.exists(f"{task.out}.json"):
            done += len(task.numbers)
        else:
            try:
                with open(f"{task.out}.progress", encoding="ascii") as stream:
                    done += int(stream.read() or 0)
            except (OSError, ValueError):
                continue
    return done


def _summed(paths: Sequence[str]) -> dict[str, Any]:
    """The sum of the shards' reports, and BLEU of their summed statistics."""
    total: dict[str, Any] = {}
    fired: list[list[str] | None] = []
    for path in paths:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
        fired.append(content.pop("fired"))
        for name, value in content.items():
            value = np.asarray(value)
            total[name] = total[name] + value if name in total else value
    record: dict[str, Any] = {"fired": None}
    if None not in fired:
        record["fired"] = sorted({name for names in fired for name in names or ()})
    record["model_statistics"] = total["model"].tolist()
    for name in ("model", "oracle", "prediction"):
        found = held_out_score(total.pop(name))
        if found.bleu:
            record |= {f"{name}_bleu": found.bleu, f"{name}_brevity": found.brevity}
    return {name: value.item() for name, value in total.items()} | record


# ---- the log
