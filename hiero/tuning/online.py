"""One epoch of an online algorithm on one shard: decode, learn, and write the weights to a file.

The average is that of the weights after every sentence (Collins 2002), updated for changed weights only.

Stale gradients (Langford et al. 2009, as in Green et al. 2013): threads do not wait for each other. A thread
decodes a mini-batch with a copy of the current weights and computes the gradient, which is applied when it is
ready, even if the weights have changed by then. Threads only wait at the end of an epoch, and the result
depends on their timing: this is the only mode of tuning that is not reproducible.

Each thread numbers features by itself, so that none is numbered while another thread decodes; gradients are
mapped to the numbers of the shard.

Mixing of the shards' weights: the mean, and the ℓ1/ℓ2 selection of Simianer, Riezler and Dyer (2012). The
weights are the rows of a matrix of which only running sums over each column are kept, so that memory does not
grow with the number of shards. Shards are added in a fixed order, so that the result does not depend on the
order in which they finish.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.bins.bins import FeatureBins
from hiero.core.arrays import Floats, Ids, Ints, grown, read_only
from hiero.core.parallel import in_order
from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import NAME, RULE_ID, FeatureTable, intern_keys_kernel
from hiero.features.names import Names
from hiero.learning.adagrad import AdaGradLearner
from hiero.learning.candidates import NotFinite
from hiero.learning.config import TuneSettings
from hiero.learning.learner import Example, Learner, LearnerContext, make_learner
from hiero.learning.metric import PreviousPass
from hiero.learning.regularize import Neighbours, Regulariser, bin_features
from hiero.tuning.shard import Decoding, ShardTask, is_done
from hiero.tuning.vectors import WeightVector, read_vectors, write_vectors


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
        size, numbers = self.task.session.config.batch, self.task.numbers
        batches = [numbers[at : at + size] for at in range(0, len(numbers), size)]
        for _ in in_order(lambda batch: self._learn(batch, shard), batches, self.task.threads):
            pass
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

    def take_weights(self, vector: WeightVector, weight: Floats) -> None:
        """Copy the weights of the shard, adding the features that other threads found."""
        self.numbers_in(vector)
        if self._num_shared < len(vector):
            _intern(self.vector.index, vector.index.table, self._num_shared)
            self.vector.grow()
            self.numbers_in(vector)
        self._num_shared = len(vector)
        self.vector.value[: len(self._of_shard)] = weight[self._of_shard]
        self.model.weights_changed()

    def numbers_in(self, vector: WeightVector) -> Ids:
        """The shard's numbers of all features of this thread; new ones are added to the shard."""
        known = len(self._of_shard)
        if known < len(self.vector):
            theirs = _intern(vector.index, self.vector.index.table, known)
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


def further_terms(
    config: TuneSettings, bins: Sequence[FeatureBins], symbols: Symbols, index: FeatureIndex
) -> list[Regulariser]:
    """The structured terms of the settings. Features of bins are added to ``index``."""
    if config.neighbours == "none":
        return []
    gamma = config.gamma if config.neighbours == "monotone" else None
    groups = bin_features(bins, symbols, index)
    return [Neighbours(groups=groups, strength=config.beta, gamma=gamma, variant=config.variant)]


# Prefixes of the arrays of a learner's state in files: those with one value per feature, and others.
PER_FEATURE, OTHER = "feature.", "state."


def run_shard(task: ShardTask) -> str:
    """Learn from a shard, unless that was done; return the path of the output."""
    if not is_done(task.out):
        _Shard(task).run()
    return task.out


class _Shard(Decoding):
    def run(self) -> None:
        self.learning = 0.0  # seconds
        self.average = Average() if self.config.average == "sentences" else None
        self.read_start()
        state = None
        if self.task.state is not None:
            state = read_vectors(self.task.state, self.model.symbols, self.vector.index)
        terms = further_terms(self.config, self.model.bins, self.vector.symbols, self.vector.index)
        self.vector.grow()
        of_terms = [np.zeros(0, np.int64), *(term.features() for term in terms)]
        self.features_of_terms = np.concatenate(of_terms).astype(np.int32)
        seed, sentences = self.task.session.seed, len(self.task.numbers)
        context = LearnerContext(seed=seed, terms=terms, sentences=sentences)
        self.learner: Learner = make_learner(self.config, context)
        if state is not None:
            self.learner.restore(_nested(*state, len(self.vector.value)))
        self.model.weights_changed()
        gold = getattr(self.learner, "gold", None)
        if self.task.totals is not None and isinstance(gold, PreviousPass):
            total, sentences = self.task.totals
            gold.widen(np.array(total), sentences)
        started = time.perf_counter()
        if self.config.stale:
            assert isinstance(self.learner, AdaGradLearner)
            stale = StaleEpoch(self.task, self.vector, self.learner)
            stale.run(self)
            self.learning = stale.learning
        else:
            self._learn_in_order()
        self.learner.end_epoch(self.vector.value)
        self._write(time.perf_counter() - started)

    def _learn_in_order(self) -> None:
        size, numbers = self.config.batch, self.task.numbers
        for at in range(0, len(numbers), size):
            self._learn(self.examples(numbers[at : at + size]))
            self.write_progress(min(at + size, len(numbers)))

    def _learn(self, examples: Sequence[Example]) -> None:
        if not examples:
            return
        started = time.thread_time()
        if self.average is not None or self.config.freeze is not None:
            features = [example.candidates.id for example in examples]
            ids = np.unique(np.concatenate([self.features_of_terms, *features]))
            before = self.vector.value[ids]
        try:
            self.report.add(self.learner.learn(examples, self.vector.value))
        except NotFinite as error:
            key = self.vector.index.key(error.feature)
            raise error.named(Names(self.vector.symbols).name(key)) from None
        if self.config.freeze is not None:
            is_dense = self.vector.index.table.key[ids, 0] == NAME
            frozen = is_dense if self.config.freeze == "dense" else ~is_dense
            self.vector.value[ids[frozen]] = before[frozen]
        if self.average is not None:
            self.average.changed(ids, self.vector.value[ids] - before, len(examples))
        self.model.weights_changed()
        self.learning += time.thread_time() - started

    def _write(self, seconds: float) -> None:
        vector, count = self.vector, len(self.vector)
        keep = vector.value[:count] != 0
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, value in _flat(self.learner.state()):
            if isinstance(value, np.ndarray) and value.shape[:1] == vector.value.shape:
                arrays[PER_FEATURE + name] = value[:count]
                keep |= value[:count] != 0
            else:
                arrays[OTHER + name] = np.asarray(value)
        if self.average is not None:
            keep |= self.average.of(vector.value)[:count] != 0
        chosen = np.flatnonzero(keep)
        arrays = {n: a[chosen] if n.startswith(PER_FEATURE) else a for n, a in arrays.items()}
        weight = vector.value[chosen]
        if self.average is not None:
            arrays["average"] = self.average.of(vector.value)[chosen]
        path = f"{self.task.out}.npz"
        write_vectors(path, vector.symbols, vector.index, chosen, weight=weight, **arrays)
        self.write_report({"learn_s": self.learning, "wall_s": seconds})


def _nested(ids: Ids, values: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Restore the nested state of a learner from the arrays of a file."""
    state: dict[str, Any] = {}
    for name, array in values.items():
        if name.startswith(PER_FEATURE):
            whole = np.zeros(size, array.dtype)
            whole[ids] = array
            _put(state, name.removeprefix(PER_FEATURE), whole)
        elif name.startswith(OTHER):
            _put(state, name.removeprefix(OTHER), array if array.ndim else array.item())
    return state


def _flat(state: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Flatten nested mappings into pairs of dotted names and values."""
    pairs: list[tuple[str, Any]] = []
    for name, value in state.items():
        if isinstance(value, Mapping):
            pairs.append((f"{prefix}{name}.", 0))  # a marker, so that empty mappings are kept
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


class ColumnSums:
    """Sums over the columns of a matrix that is added row by row; features missing in a row are 0."""

    def __init__(self) -> None:
        self.rows = 0
        self.share = 0.0  # sum of the shares of the rows
        self.weighted, self.plain, self.size, self.square, self.largest, self.number = np.zeros((6, 0))

    def add(self, feature: Ints, weight: Floats, share: float = 1.0) -> None:
        """Add a row: distinct features and their weights. ``share`` is the weight of the row in the mean."""
        self._grow(int(feature.max(initial=-1)) + 1)
        self.rows += 1
        self.share += share
        self.weighted[feature] += share * weight
        self.plain[feature] += weight
        self.size[feature] += np.abs(weight)
        self.square[feature] += weight * weight
        self.largest[feature] = np.maximum(self.largest[feature], np.abs(weight))
        self.number[feature] += weight != 0

    def _grow(self, size: int) -> None:
        for name in ("weighted", "plain", "size", "square", "largest", "number"):
            setattr(self, name, grown(getattr(self, name), size))

    def mean(self) -> Floats:
        """The mean weight of each feature over all rows."""
        return self.weighted / self.share if self.share else self.weighted

    def norm(self, name: str) -> Floats:
        """A norm of each column."""
        if name == "mean":
            return np.abs(self.mean())
        norms = {"l2": np.sqrt(self.square), "l1": self.size, "linf": self.largest, "l0": self.number}
        return norms[name]


def strongest(norm: Floats, count: int) -> Ints:
    """The ``count`` features with the largest norms (0: all), in the order of their numbers.

    Features of norm 0 are left out; of equal norms, the first feature is selected.
    """
    present = np.flatnonzero(norm > 0)
    if count and count < len(present):
        order = np.argsort(-norm[present], kind="stable")[:count]
        present = np.sort(present[order])
    return present


def mix(
    paths: Sequence[str],
    shares: Sequence[float],
    out: str,
    *,
    select: int = 0,
    norm: str = "l2",
    values_of: str = "weight",
) -> tuple[int, int]:
    """Write the mean of the weights in some files, for the selected features.

    Return the number of features with a weight in any of the files, and the number selected.
    """
    symbols, index, columns = Symbols(), FeatureIndex(), ColumnSums()
    for path, share in zip(paths, shares, strict=True):
        ids, values = read_vectors(path, symbols, index)
        columns.add(ids.astype(np.int64), values[values_of], share)
    chosen = strongest(columns.norm(norm), select)
    write_vectors(out, symbols, index, chosen, weight=columns.mean()[chosen])
    return int(np.count_nonzero(columns.number)), len(chosen)


def weighted_sum(paths: Sequence[str], factors: Sequence[float], out: str) -> int:
    """Write the sum of the weights in some files, each times a factor; return the number of features."""
    symbols, index, total = Symbols(), FeatureIndex(), np.zeros(0)
    for path, factor in zip(paths, factors, strict=True):
        ids, values = read_vectors(path, symbols, index)
        total = np.concatenate([total, np.zeros(len(index) - len(total))])
        total[ids] += factor * values["weight"]
    chosen = np.flatnonzero(total)
    write_vectors(out, symbols, index, chosen, weight=total[chosen])
    return len(chosen)
