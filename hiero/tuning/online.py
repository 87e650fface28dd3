"""Online tuning: in each epoch every shard decodes, learns and writes its weights to a file; they are mixed.

The average is that of the weights after every sentence (Collins 2002), updated for changed weights only.
After each epoch either the last weights of the shards are mixed, and the answer is the average over all
epochs so far; or their averages are mixed, which are the answer and the start of the next epoch
(``mix_what``).

Stale gradients (Langford et al. 2009, as in Green et al. 2013): threads do not wait for each other. A thread
decodes a mini-batch with a copy of the current weights and computes the gradient, which is applied when it is
ready, even if the weights have changed by then. Threads only wait at the end of an epoch, and the result
depends on their timing: this is the only mode of tuning that is not reproducible.

Each thread numbers features by itself, so that none is numbered while another thread decodes; gradients are
mapped to the numbers of the shard.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Floats, Ids, read_only
from hiero.core.parallel import in_order
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import RULE_ID, FeatureTable, intern_keys_kernel
from hiero.features.names import Names
from hiero.learning.candidates import NotFinite
from hiero.learning.learner import Example, Learner, LearnerContext, StaleLearner, UpdateReport, make_learner
from hiero.learning.metric import PreviousPass
from hiero.learning.regularize import structured_terms
from hiero.tuning.shard import (
    RunFiles,
    Session,
    ShardDecoder,
    ShardTask,
    TaskOutput,
    dense_features,
    is_task_done,
)
from hiero.tuning.vectors import (
    OTHER,
    PER_FEATURE,
    DenseFeatures,
    Mixture,
    WeightVector,
    flat_state,
    nested_state,
    read_vectors,
    sum_weights,
    write_vectors,
)


class Average:
    """Running average of weights.

    With w_t the weights after sentence t of T, their mean is w_T less the sum over t of
    (t - 1) / T * (w_t - w_{t-1}), so that an update only touches the weights that change.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._correction = np.zeros(0)  # sum of (t - 1) times the change of each feature

    def changed(self, ids: Ids, change: Floats, sentences: int = 1) -> None:
        """Add the update after some sentences: distinct features and the change of their weights."""
        missing = int(ids.max(initial=-1)) + 1 - len(self._correction)
        if missing > 0:
            more = np.zeros(missing + len(self._correction) // 2)
            self._correction = np.concatenate([self._correction, more])
        self._correction[ids] += self.seen * change
        self.seen += sentences

    def of(self, weight: Floats) -> Floats:
        """Return the average, given the last weights."""
        average = weight.copy()
        size = min(len(self._correction), len(weight))
        average[:size] -= self._correction[:size] / max(self.seen, 1)
        return average


class StaleEpoch:
    """One epoch of ``shard``, whose learner applies the gradients of several threads."""

    def __init__(self, shard: OnlineShard) -> None:
        self.shard = shard
        self.learner = cast(StaleLearner, shard.learner)
        self.applying = threading.Lock()
        self.idle: SimpleQueue[_ThreadView] = SimpleQueue()
        self.views = [_ThreadView(shard.task) for _ in range(shard.task.threads)]
        for view in self.views:
            self.idle.put(view)
        self.done = 0

    def run(self) -> None:
        task, decoder = self.shard.task, self.shard.decoder
        size, numbers = task.session.config.batch, task.numbers
        batches = [numbers[at : at + size] for at in range(0, len(numbers), size)]
        for _ in in_order(self._learn, batches, task.threads):
            pass
        for view in self.views:
            decoder.seconds += view.decoder.seconds
            decoder.failed += view.decoder.failed

    def _learn(self, batch: Sequence[int]) -> None:
        view, shard = self.idle.get(), self.shard
        vector = shard.decoder.vector
        try:
            with self.applying:
                view.take_weights(vector, self.learner.snapshot(vector.value))
            examples = view.decoder.examples(batch)
            started = time.thread_time()
            gradient = self.learner.gradient(examples, view.decoder.vector.value)
            with self.applying:
                ids = view.numbers_in(vector)[gradient.id]
                order = np.argsort(ids)
                self.learner.apply(ids[order], gradient.value[order], vector.value)
                shard.report.add(gradient.report)
                self.done += len(batch)
                shard.output.write_progress(self.done)
                shard.seconds += time.thread_time() - started
        finally:
            self.idle.put(view)


class _ThreadView:
    """The numbers of features in one thread, and the weights it decodes with."""

    def __init__(self, task: ShardTask) -> None:
        self.decoder = ShardDecoder(task.session, folds=task.folds)
        self._of_shard = np.zeros(0, np.int32)  # the shard's number of each feature
        self._num_shared = 0  # features of the shard that have a number here

    def take_weights(self, vector: WeightVector, weight: Floats) -> None:
        """Copy the weights of the shard, adding the features that other threads found."""
        self.numbers_in(vector)
        mine = self.decoder.vector
        if self._num_shared < len(vector):
            _intern(mine.index, vector.index.table, self._num_shared)
            mine.grow()
            self.numbers_in(vector)
        self._num_shared = len(vector)
        mine.value[: len(self._of_shard)] = weight[self._of_shard]
        self.decoder.weights_changed()

    def numbers_in(self, vector: WeightVector) -> Ids:
        """The shard's numbers of all features of this thread; new ones are added to the shard."""
        known, mine = len(self._of_shard), self.decoder.vector
        if known < len(mine):
            theirs = _intern(vector.index, mine.index.table, known)
            self._of_shard = np.concatenate([self._of_shard, theirs])
            vector.grow()
        return self._of_shard


def _intern(index: FeatureIndex, table: FeatureTable, first: int) -> Ids:
    """Add the features of another table from ``first`` on, over the same symbols; return their numbers."""
    rows = read_only(table.key[first : table.size[0]])
    symbols = int(rows[rows[:, 0] == RULE_ID, 2].sum())
    ids = np.empty(len(rows), np.int32)
    with index.locked():
        intern_keys_kernel(index.reserve(len(rows), symbols), rows, table.pool, ids)
    return ids


def run_online_shard(task: ShardTask) -> str:
    """Learn from a shard online, unless that was done; return the path of the output."""
    if not is_task_done(task.out):
        OnlineShard(task).run()
    return task.out


class OnlineShard:
    """One epoch of an online algorithm on a shard."""

    def __init__(self, task: ShardTask) -> None:
        self.task, self.config, self.output = task, task.session.config, TaskOutput(task.out)
        self.decoder = ShardDecoder(task.session, task.threads, task.folds)
        self.average = Average() if self.config.average == "sentences" else None
        self.report = UpdateReport()
        self.seconds = 0.0  # of learning
        model, vector = self.decoder.model, self.decoder.vector
        self.decoder.read_weights(task.start)
        state = read_vectors(task.state, model.symbols, vector.index) if task.state is not None else None
        terms = structured_terms(self.config, model.bins, vector.symbols, vector.index)
        vector.grow()
        self.is_dense = DenseFeatures(self._dense_names(), vector.symbols, vector.index)
        of_terms = [np.zeros(0, np.int64), *(term.features() for term in terms)]
        self.features_of_terms = np.concatenate(of_terms).astype(np.int32)
        context = LearnerContext(
            seed=task.session.seed, terms=terms, sentences=len(task.numbers), is_dense=self.is_dense
        )
        self.learner: Learner = make_learner(self.config, context)
        if state is not None:
            self.learner.restore(nested_state(*state, len(vector.value)))
        self.decoder.weights_changed()
        gold = getattr(self.learner, "gold", None)
        if task.totals is not None and isinstance(gold, PreviousPass):
            total, sentences = task.totals
            gold.widen(np.array(total), sentences)

    def _dense_names(self) -> frozenset[str]:
        """The names of the dense features, which are not looked up unless a setting asks for them."""
        needed = self.config.freeze is not None or self.config.l2_sparse is not None
        return dense_features(self.task.session) if needed else frozenset()

    def run(self) -> None:
        """Learn from all sentences, and write weights, the learner's state and a report."""
        started = time.perf_counter()
        if self.config.stale:
            StaleEpoch(self).run()
        else:
            size, numbers = self.config.batch, self.task.numbers
            for at in range(0, len(numbers), size):
                self._learn(self.decoder.examples(numbers[at : at + size]))
                self.output.write_progress(min(at + size, len(numbers)))
        self.learner.end_epoch(self.decoder.vector.value)
        seconds = time.perf_counter() - started
        self._write_vectors()
        self.output.finish(self.decoder.report(self.report) | {"learn_s": self.seconds, "wall_s": seconds})

    def _learn(self, examples: Sequence[Example]) -> None:
        if not examples:
            return
        started, vector = time.thread_time(), self.decoder.vector
        if self.average is not None or self.config.freeze is not None:
            features = [example.candidates.id for example in examples]
            if self.config.l2 or self.config.l2_sparse:  # it moves all weights
                features.append(np.flatnonzero(vector.value).astype(np.int32))
            ids = np.unique(np.concatenate([self.features_of_terms, *features]))
            before = vector.value[ids]
        try:
            self.report.add(self.learner.learn(examples, vector.value))
        except NotFinite as error:
            key = vector.index.key(error.feature)
            raise error.named(Names(vector.symbols).name(key)) from None
        if self.config.freeze is not None:
            is_dense = self.is_dense(len(vector))[ids]
            frozen = is_dense if self.config.freeze == "dense" else ~is_dense
            vector.value[ids[frozen]] = before[frozen]
        if self.average is not None:
            self.average.changed(ids, vector.value[ids] - before, len(examples))
        self.decoder.weights_changed()
        self.seconds += time.thread_time() - started

    def _write_vectors(self) -> None:
        vector = self.decoder.vector
        count = len(vector)
        keep = vector.value[:count] != 0
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, value in flat_state(self.learner.state()):
            if isinstance(value, np.ndarray) and value.shape[:1] == vector.value.shape:
                arrays[PER_FEATURE + name] = value[:count]
                keep |= value[:count] != 0
            else:
                arrays[OTHER + name] = np.asarray(value)
        average = None if self.average is None else self.average.of(vector.value)[:count]
        if average is not None:
            keep |= average != 0
        chosen = np.flatnonzero(keep)
        arrays = {n: a[chosen] if n.startswith(PER_FEATURE) else a for n, a in arrays.items()}
        weight = vector.value[chosen]
        if average is not None:
            arrays["average"] = average[chosen]
        path = f"{self.output.temporary}.npz"
        write_vectors(path, vector.symbols, vector.index, chosen, weight=weight, **arrays)


class OnlineCourse:
    """Epochs of an online algorithm: each shard learns by itself, then their weights are mixed."""

    verb, passes, keeps_shards = "learn", 1, False
    work = staticmethod(run_online_shard)

    def __init__(self, session: Session, files: RunFiles) -> None:
        self.config, self.files = session.config, files
        by_sentence = self.config.average == "sentences"
        # Whether the shards' averages over sentences are the answer only, and their last weights are mixed.
        self.mixes_last = by_sentence and self.config.mix == "epoch" and self.config.mix_what == "last"
        # Whether the weights of an epoch are the mean over all epochs so far, of those of the mixed shards.
        self.averages = self.config.average == "epochs" or (
            by_sentence and (self.mixes_last or self.config.mix != "epoch")
        )
        self._begin_mixture()

    def _begin_mixture(self) -> None:
        by_sentence = self.config.average == "sentences"
        self.mixture = Mixture("average" if by_sentence and not self.mixes_last else "weight")
        self.averaged = Mixture("average")  # used if ``mixes_last``
        self.num_mixed = 0

    def resume(self, done: int) -> None:
        pass

    def start(self, epoch: int, shard: int) -> str:
        if epoch == 0:
            return self.files.start
        if self.config.mix == "epoch":
            return self._mixed(epoch - 1)
        return f"{self.files.shard(epoch - 1, shard)}.npz"

    def _mixed(self, epoch: int) -> str:
        return str(self.files.epoch(epoch) / "mixed.npz") if self.averages else self.files.answer(epoch)

    def look(self, tasks: Sequence[ShardTask]) -> None:
        """Mix the shards that are done, in their order."""
        for task in tasks[self.num_mixed :]:
            if not is_task_done(task.out):
                break
            share = len(task.numbers) if self.config.by_sentences else 1.0
            self.mixture.add(f"{task.out}.npz", share)
            if self.mixes_last:
                self.averaged.add(f"{task.out}.npz", share)
            self.num_mixed += 1

    def conclude(self, epoch: int, tasks: Sequence[ShardTask]) -> dict[str, Any]:
        config, mixed, answer = self.config, self._mixed(epoch), self.files.answer(epoch)
        self.look(tasks)
        seen, kept = self.mixture.write(mixed, select=config.select, norm=config.norm)
        latest = mixed
        if self.mixes_last:
            latest = str(self.files.epoch(epoch) / "average.npz")
            self.averaged.write(latest, within=mixed if config.select else None)
        self._begin_mixture()
        if self.averages:
            paths = [latest] if epoch == 0 else [self.files.answer(epoch - 1), latest]
            factors = [1.0] if epoch == 0 else [epoch / (epoch + 1), 1 / (epoch + 1)]
            kept = sum_weights(paths, factors, answer)
        return {"features_seen": seen, "features": kept}
