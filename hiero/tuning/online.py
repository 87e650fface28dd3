"""One epoch of an online algorithm on one shard: decode, learn, and write the weights to a file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.features.index import NAME
from hiero.features.names import Names
from hiero.learning.adagrad import AdaGradLearner
from hiero.learning.finite import NotFinite
from hiero.learning.learner import Example, Learner
from hiero.learning.metric import PreviousPass
from hiero.learning.presets import make_learner
from hiero.learning.regularize import further_terms
from hiero.learning.sgd import RankLearner
from hiero.tuning.average import Average
from hiero.tuning.shard import Decoding, ShardTask, is_done
from hiero.tuning.stale import StaleEpoch
from hiero.tuning.vectors import read_vectors, write_vectors

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
        self.learner: Learner = make_learner(self.config, self.task.session.seed)
        self.average = Average() if self.config.average == "sentences" else None
        self.read_start()
        if self.task.state is not None:
            ids, values = read_vectors(self.task.state, self.model.symbols, self.vector.index)
            self.vector.grow()
            self.learner.restore(_nested(ids, values, len(self.vector.value)))
            self.model.weights_changed()
        self._set_terms()
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

    def _set_terms(self) -> None:
        """Pass further terms of the objective to the learner, if there are any."""
        terms = further_terms(self.config, self.model.features.bins, self.vector.symbols, self.vector.index)
        self.vector.grow()
        of_terms = [np.zeros(0, np.int64), *(term.features() for term in terms)]
        self.features_of_terms = np.concatenate(of_terms).astype(np.int32)
        if terms:
            assert isinstance(self.learner, (AdaGradLearner, RankLearner))
            self.learner.terms, self.learner.sentences = terms, len(self.task.numbers)

    def _learn_in_order(self) -> None:
        size, numbers = self.config.batch or 1, self.task.numbers
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


def _nested(ids: npt.NDArray[np.int32], values: Mapping[str, Any], size: int) -> dict[str, Any]:
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
