# mypy: allow-untyped-calls
"""Stale gradients (Langford et al. 2009, as in Green et al. 2013): threads that do not wait for each other.

A thread takes a mini-batch and the weights of the moment, decodes, and hands in a gradient, which is applied
when it arrives, while the weights may have moved on. Nobody waits before the end of an epoch, and the result
depends on who was faster: the only mode of tuning that does not repeat itself.

Each thread numbers features by itself, so that none is renumbered while another one decodes; what it hands in
is translated to the numbers of the shard.
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

from hiero.features import RULE_ID, FeatureIndex, FeatureTable, intern_keys_kernel
from hiero.symbols import read_only
from hiero.tune.adagrad import AdaGradLearner
from hiero.tune.decoding import Decoding, ShardTask
from hiero.weightvector import WeightVector


class StaleEpoch:
    """One epoch of a shard whose weights are ``vector``; ``learner`` applies what arrives."""

    def __init__(self, task: ShardTask, vector: WeightVector, learner: AdaGradLearner) -> None:
        self.task, self.vector, self.learner = task, vector, learner
        self.applying = threading.Lock()
        self.idle: SimpleQueue[_Clerk] = SimpleQueue()
        self.clerks = [_Clerk(task) for _ in range(task.threads)]
        for clerk in self.clerks:
            self.idle.put(clerk)
        self.learning = 0.0
        self.done = 0

    def run(self, shard: Decoding) -> None:
        """All mini-batches; what happened is added to the report of ``shard``."""
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
        for clerk in self.clerks:
            shard.decoding += clerk.decoding
            shard.report.failed += clerk.report.failed

    def _learn(self, batch: Sequence[int], shard: Decoding) -> None:
        clerk = self.idle.get()
        try:
            with self.applying:
                clerk.take_weights(self.vector, self.learner.snapshot(self.vector.value))
            examples = clerk.examples(batch)
            started = time.thread_time()
            gradient = self.learner.gradient(examples, clerk.vector.value)
            with self.applying:
                ids = clerk.numbers_in(self.vector)[gradient.id]
                order = np.argsort(ids)
                self.learner.apply(ids[order], gradient.value[order], self.vector.value)
                shard.report.add(gradient.report)
                self.done += len(batch)
                shard.beat(self.done)
                self.learning += time.thread_time() - started
        finally:
            self.idle.put(clerk)


class _Clerk(Decoding):
    """A thread's own numbers of features, and the weights it decodes with."""

    def __init__(self, task: ShardTask) -> None:
        super().__init__(dataclasses.replace(task, threads=1))
        self._of_shard = np.zeros(0, np.int32)  # the shard's number of each feature
        self._told = 0  # features of the shard that have a number here

    def take_weights(self, vector: WeightVector, weight: npt.NDArray[np.float64]) -> None:
        """Decode with the weights of the shard, whoever has met their features."""
        self.numbers_in(vector)
        if self._told < len(vector):
            _intern(self.vector.index, vector.index.table, self._told)
            self.vector.grow()
            self.numbers_in(vector)
        self._told = len(vector)
        self.vector.value[: len(self._of_shard)] = weight[self._of_shard]
        self.model.weights_changed()

    def numbers_in(self, vector: WeightVector) -> npt.NDArray[np.int32]:
        """The shard's numbers of all features met here; new ones are given their number."""
        known = len(self._of_shard)
        if known < len(self.vector):
            theirs = _intern(vector.index, self.vector.index.table, known)
            self._of_shard = np.concatenate([self._of_shard, theirs])
            vector.grow()
        return self._of_shard


def _intern(index: FeatureIndex, table: FeatureTable, first: int) -> npt.NDArray[np.int32]:
    """Number the features of another table, from one on, over the same symbols."""
    rows = read_only(table.key[first : table.size[0]])
    symbols = int(rows[rows[:, 0] == RULE_ID, 2].sum())
    ids = np.empty(len(rows), np.int32)
    with index.locked():
        intern_keys_kernel(index.reserve(len(rows), symbols), rows, table.pool, ids)
    return ids
