# mypy: allow-untyped-calls
"""Stale gradients (Langford et al. 2009, as in Green et al. 2013): threads that do not wait for each other.

A thread decodes a mini-batch with a copy of the current weights and computes the gradient, which is applied
when it is ready, even if the weights have changed by then. Threads only wait at the end of an epoch, and the
result depends on their timing: this is the only mode of tuning that is not reproducible.

Each thread numbers features by itself, so that none is numbered while another thread decodes; gradients are
mapped to the numbers of the shard.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import read_only
from hiero.features.index import RULE_ID, FeatureIndex, FeatureTable, intern_keys_kernel
from hiero.learning.adagrad import AdaGradLearner
from hiero.tuning.shard import Decoding, ShardTask
from hiero.tuning.weightvector import WeightVector


class StaleEpoch:
    """One epoch of a shard whose weights are ``vector``; ``learner`` applies the gradients."""

    def __init__(self, task: ShardTask, vector: WeightVector, learner: AdaGradLearner) -> None:
        self.task, self.vector, self.learner = task, vector, learner
        self.applying = threading.Lock()
        self.idle: SimpleQueue[_ThreadView] = SimpleQueue()
        self.views = [_ThreadView(task) for _ in range(task.threads)]
        for view in self.views:
            self.idle.put(view)
        self.learning = 0.0
        self.done = 0

    def run(self, shard: Decoding) -> None:
        """Learn from all mini-batches, and add to the report of ``shard``."""
        size, numbers = self.task.session.config.batch or 1, self.task.numbers
        batches = [numbers[at : at + size] for at in range(0, len(numbers), size)]
        with ThreadPoolExecutor(self.task.threads) as pool:
            futures = [pool.submit(self._learn, batch, shard) for batch in batches]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for view in self.views:
            shard.decoding += view.decoding
            shard.report.failed += view.report.failed

    def _learn(self, batch: Sequence[int], shard: Decoding) -> None:
        view = self.idle.get()
        try:
            with self.applying:
                view.take_weights(self.vector, self.learner.snapshot(self.vector.value))
            examples = view.examples(batch)
            started = time.thread_time()
            gradient = self.learner.gradient(examples, view.vector.value)
            with self.applying:
                ids = view.numbers_in(self.vector)[gradient.id]
                order = np.argsort(ids)
                self.learner.apply(ids[order], gradient.value[order], self.vector.value)
                shard.report.add(gradient.report)
                self.done += len(batch)
                shard.write_progress(self.done)
                self.learning += time.thread_time() - started
        finally:
            self.idle.put(view)


class _ThreadView(Decoding):
    """The numbers of features in one thread, and the weights it decodes with."""

    def __init__(self, task: ShardTask) -> None:
        super().__init__(dataclasses.replace(task, threads=1))
        self._of_shard = np.zeros(0, np.int32)  # the shard's number of each feature
        self._num_shared = 0  # features of the shard that have a number here

    def take_weights(self, vector: WeightVector, weight: npt.NDArray[np.float64]) -> None:
        """Copy the weights of the shard, adding the features that other threads found."""
        self.numbers_in(vector)
        if self._num_shared < len(vector):
            _intern(self.vector.index, vector.index.table, self._num_shared)
            self.vector.grow()
            self.numbers_in(vector)
        self._num_shared = len(vector)
        self.vector.value[: len(self._of_shard)] = weight[self._of_shard]
        self.model.weights_changed()

    def numbers_in(self, vector: WeightVector) -> npt.NDArray[np.int32]:
        """The shard's numbers of all features of this thread; new ones are added to the shard."""
        known = len(self._of_shard)
        if known < len(self.vector):
            theirs = _intern(vector.index, self.vector.index.table, known)
            self._of_shard = np.concatenate([self._of_shard, theirs])
            vector.grow()
        return self._of_shard


def _intern(index: FeatureIndex, table: FeatureTable, first: int) -> npt.NDArray[np.int32]:
    """Add the features of another table from ``first`` on, over the same symbols; return their numbers."""
    rows = read_only(table.key[first : table.size[0]])
    symbols = int(rows[rows[:, 0] == RULE_ID, 2].sum())
    ids = np.empty(len(rows), np.int32)
    with index.locked():
        intern_keys_kernel(index.reserve(len(rows), symbols), rows, table.pool, ids)
    return ids
