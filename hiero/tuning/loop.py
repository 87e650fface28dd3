"""Loop over epochs: distribute the sentences, run the shards, mix their weights, score the held-out set.

    RUNDIR/epochs/NN/start.npz      initial weights of the shards, if they are the same
    RUNDIR/epochs/NN/shard.SSS.npz  final weights of a shard, and the state of its learner
    RUNDIR/epochs/NN/shard.SSS.json its report; the shard is done when this exists
    RUNDIR/epochs/NN/answer.npz     the weights of the epoch
    RUNDIR/epochs/NN/held.A-B.npz   BLEU statistics of lines A to B of the held-out set with these weights
    RUNDIR/weights.NN.gz            the same weights as text, as hiero decode reads them
    RUNDIR/log.jsonl                one line for each epoch that is done
    RUNDIR/weights.gz               weights of the epoch chosen on the held-out set

An epoch only depends on the files of the epoch before and on the seed, so that a run that was killed
continues with the shards that are not done, and ends with the same weights.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hiero.core.symbols import Symbols
from hiero.core.text import open_output
from hiero.decoder.model import Model
from hiero.features.index import FeatureIndex
from hiero.features.weights import Weights, read_weights, write_weights
from hiero.tuning.executors import run_all
from hiero.tuning.held_out import PartTask, halves, part_tasks, score, statistics_in, translate_part
from hiero.tuning.jackknife import Specs, fold_of, jackknifed
from hiero.tuning.online import mix, run_shard, weighted_sum
from hiero.tuning.shard import Session, SetFiles, ShardTask, opened, opened_set, shards, shuffled
from hiero.tuning.vectors import WeightVector, read_vectors, write_vectors

# As in the program of Green et al. 2013: 0.2 for every dense feature, 0.5 for the language model. There all
# features are log-probabilities; here some are negated, and a word is -1/ln 10, so that signs differ.
UNIFORM = {
    "EgivenFCoherent": -0.2,
    "SampleCountF": -0.2,
    "CountEF": 0.2,
    "MaxLexFgivenE": -0.2,
    "MaxLexEgivenF": -0.2,
    "IsSingletonF": -0.2,
    "IsSingletonFE": -0.2,
    "WordPenalty": -1.0,
    "PassThrough": -0.2,
    "Glue": -0.2,
}
LANGUAGE_MODEL = 0.5


def write_start(path: str, start: str, model: Model) -> None:
    """Write the initial weights: ``zero``, ``uniform``, or those of a file."""
    if start == "zero":
        weights = Weights(Symbols())
    elif start == "uniform":
        # Without features that are replaced by bins, or by transformed values.
        replaced = {one.feature for one in model.bins if one.replaces}
        dense = {name: weight for name, weight in UNIFORM.items() if name not in replaced}
        weights = Weights(Symbols(), dense | dict.fromkeys(model.language_models.names, LANGUAGE_MODEL))
    else:
        weights = read_weights(start, Symbols())
    value, index = weights.vector(), weights.index
    if weights.has_shared_names:
        value, index = _spelled(weights)
    chosen = np.flatnonzero(value)
    write_vectors(path, weights.symbols, index, chosen, weight=value[chosen])


def _spelled(weights: Weights) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], FeatureIndex]:
    """Weights under names that may match several features, each assigned to the feature of that name."""
    index = FeatureIndex()
    keys, values = [], []
    for name, value in weights.items():
        key = weights.names.parse(name.removeprefix("%~"))
        if key is not None:
            keys.append(key)
            values.append(value)
    ids = index.intern_all(keys)
    vector = np.zeros(len(index))
    vector[ids] = values
    return vector, index


PLAN, ORDER = 1, 2  # parts of seeds: for shuffling over shards, and within a shard


class LoopProgress(Protocol):
    """Display of the progress of a loop."""

    def begin(self, what: str, total: int) -> None: ...

    def reach(self, done: int) -> None:
        """Show that ``done`` items of the total are done."""
        ...

    def epoch(self, record: dict[str, Any]) -> None:
        """Show an epoch that is done; ``record`` is its line of the log."""
        ...


class Loop:
    """Loop of an online algorithm over shards; see ``batch.BatchLoop`` for batch algorithms."""

    def __init__(
        self,
        session: Session,
        held_out: SetFiles | None,
        run_dir: str,
        executor: Callable[[], Executor],
        workers: int,
        watch: LoopProgress,
    ) -> None:
        self.session, self.config = session, session.config
        self.dir, self.executor, self.workers, self.watch = Path(run_dir), executor, workers, watch
        self.model, self.set = opened(session)
        self.held_out = held_out
        if held_out is not None:
            opened_set(session, held_out)  # reports its errors before anything is learnt
        self.numbers = self._chosen_sentences()
        self.totals: tuple[tuple[float, ...], int] | None = None

    def run(self) -> list[dict[str, Any]]:
        """Run all epochs that are not done; return the log of all epochs."""
        log = read_log(self.dir)
        self.resume(len(log))
        self.folds = self._jackknife() if self.config.lm == "jackknife" else []
        for epoch in range(len(log), self.config.epochs):
            if log:
                self.totals = tuple(log[-1]["model_statistics"]), log[-1]["sentences"]
            if log and log[-1].get("converged"):
                break
            record = self._epoch(epoch)
            log.append(record)
            append_log(self.dir, record)
            self.forget(epoch - 1)
            self.watch.epoch(record)
        return log

    def resume(self, done: int) -> None:
        """Prepare for the first epoch to run, after ``done`` epochs of an earlier run."""

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

    def _jackknife(self) -> list[Specs]:
        config, files = self.config, self.session.files
        self.watch.begin("jackknifed language models", config.folds)
        return jackknifed(
            self.session.language_models,
            files.references[0],
            self._shards(0),
            config.folds,
            int(self.model.language_models.arrays.order[0]),
            self.dir / "jackknife",
            self.watch.reach,
        )

    # ---- an epoch

    def _epoch(self, epoch: int) -> dict[str, Any]:
        started, cpu = time.perf_counter(), time.process_time()
        here = self._dir(epoch)
        here.mkdir(parents=True, exist_ok=True)
        tasks = self._tasks(epoch, self._shards(epoch))
        if epoch == 0:
            write_start(str(here / "start.npz"), self.config.start, self.model)
        total = sum(len(task.numbers) for task in tasks)
        self.watch.begin(f"epoch {epoch + 1}: {self.verb}", total)
        run_all(self.executor, self.work, tasks, lambda: self.watch.reach(_progress(tasks)))
        self.watch.reach(total)
        record = {"epoch": epoch + 1, **_summed([f"{task.out}.json" for task in tasks])}
        record |= self.conclude(epoch, tasks)
        record["learn_wall_s"] = time.perf_counter() - started
        answer = str(here / "answer.npz")
        record |= self._score(answer, here)
        self._write_weights(answer, epoch)
        record |= {"wall_s": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}
        return record

    # Overridden for batch algorithms.

    verb = "learn"

    @property
    def work(self) -> Callable[[ShardTask], str]:
        """The function that runs a task."""
        return run_shard

    def conclude(self, epoch: int, tasks: Sequence[ShardTask]) -> dict[str, Any]:
        """Write ``answer.npz`` and the weights that the next epoch starts from."""
        shares = [float(len(task.numbers)) if self.config.by_sentences else 1.0 for task in tasks]
        outs = [f"{task.out}.npz" for task in tasks]
        config, here = self.config, self._dir(epoch)
        mixed = str(here / "mixed.npz")
        kept_as = "average" if config.average == "sentences" else "weight"
        seen, kept = mix(outs, shares, mixed, select=config.select, norm=config.norm, values_of=kept_as)
        if config.mix == "epoch":
            self.start_next(epoch, mixed)
        answer = str(here / "answer.npz")
        if config.average == "epochs" or (config.average == "sentences" and config.mix != "epoch"):
            done = epoch + 1
            paths = [mixed] if epoch == 0 else [str(self._dir(epoch - 1) / "answer.npz"), mixed]
            kept = weighted_sum(paths, [1.0] if epoch == 0 else [epoch / done, 1 / done], answer)
        else:
            _copy(mixed, Path(answer))
        return {"features_seen": seen, "features": kept}

    def goes_on(self, epoch: int) -> bool:
        """Whether each shard continues from its own weights."""
        return epoch > 0 and self.config.mix != "epoch"

    def start_next(self, epoch: int, weights: str) -> None:
        following = self._dir(epoch + 1)
        following.mkdir(parents=True, exist_ok=True)
        _copy(weights, following / "start.npz")

    def _tasks(self, epoch: int, parts: Sequence[Sequence[int]]) -> list[ShardTask]:
        common, before = self._dir(epoch) / "start.npz", self._dir(epoch - 1)
        tasks = []
        for shard, part in enumerate(parts):
            name = f"shard.{shard:03d}"
            own = None if epoch == 0 else str(before / f"{name}.npz")
            tasks.append(
                ShardTask(
                    self.session,
                    epoch,
                    shard,
                    tuple(part),
                    start=own if own and self.goes_on(epoch) else str(common),
                    state=own,
                    out=str(self._dir(epoch) / name),
                    threads=self.workers if len(parts) == 1 else 1,
                    language_models=self.folds[fold_of(shard, len(self.folds))] if self.folds else None,
                    totals=self.totals,
                )
            )
        return tasks

    def _score(self, answer: str, here: Path) -> dict[str, Any]:
        """Return BLEU of the held-out set."""
        if self.held_out is None:
            return {}
        size = len(opened_set(self.session, self.held_out))
        tasks = part_tasks(self.session, self.held_out, size, answer, str(here / "held"), self.workers)
        self.watch.begin("held-out set", size)
        run_all(self.executor, translate_part, tasks, lambda: self.watch.reach(_progress(tasks)))
        self.watch.reach(size)
        rows = statistics_in(tasks)
        odd, even = halves(rows)
        both = score(rows.sum(axis=0))
        return {
            "choose_bleu": odd.bleu,
            "choose_brevity": odd.brevity,
            "report_bleu": even.bleu,
            "report_brevity": even.brevity,
            "held_out_bleu": both.bleu,
            "held_out_brevity": both.brevity,
        }

    def _write_weights(self, answer: str, epoch: int) -> None:
        symbols = Symbols()
        vector = WeightVector(symbols)
        ids, values = read_vectors(answer, symbols, vector.index)
        vector.grow()
        vector.value[ids] = values["weight"]
        write_weights(self.dir / f"weights.{epoch + 1:02d}.gz", vector.as_weights())

    def _dir(self, epoch: int) -> Path:
        return self.dir / "epochs" / f"{epoch + 1:02d}"

    def forget(self, epoch: int) -> None:
        """Delete files that no later epoch needs."""
        if epoch >= 0:
            for path in self._dir(epoch).glob("*"):
                if path.name != "answer.npz":
                    path.unlink()


def _progress(tasks: Sequence[ShardTask] | Sequence[PartTask]) -> int:
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
        found = score(total.pop(name))
        if found.bleu:
            record |= {f"{name}_bleu": found.bleu, f"{name}_brevity": found.brevity}
    return {name: value.item() for name, value in total.items()} | record


def _copy(path: str, to: Path) -> None:
    with open_output(to) as stream, open(path, "rb") as source:
        shutil.copyfileobj(source, stream)


# ---- the log


def read_log(run_dir: str | Path) -> list[dict[str, Any]]:
    """Read the records of the epochs that are done, without an incomplete last line."""
    return list(_log_lines(Path(run_dir) / "log.jsonl"))


def _log_lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        for line in path.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)


def append_log(run_dir: str | Path, record: dict[str, Any]) -> None:
    """Append a line; the file is replaced as a whole, so that no line is ever incomplete."""
    path = Path(run_dir) / "log.jsonl"
    before = path.read_bytes() if path.exists() else b""
    with open_output(path) as stream:
        stream.write(before + json.dumps(record).encode() + b"\n")


def choose(log: Sequence[dict[str, Any]]) -> int:
    """The epoch, from 1, with the best BLEU on odd held-out lines, or the last without a held-out set.

    Of equal ones, the first.
    """
    if not log or "choose_bleu" not in log[0]:
        return len(log)
    return 1 + int(np.argmax([record["choose_bleu"] for record in log]))
