"""Batch tuning: in each iteration decode all sentences, extend the k-best lists, and learn from all lists.

A task decodes one shard, and writes its candidates to a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Floats, Floats32, Ints, offsets_of, read_only, row_of_entry
from hiero.core.errors import ConfigError
from hiero.core.parallel import in_order
from hiero.core.symbols import Symbols
from hiero.decoder.forest import Forest
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import NAME
from hiero.learning.candidates import Candidates, edge_values
from hiero.learning.learner import Example, LearnerContext, make_learner
from hiero.learning.lists import BatchLearner, CandidateLists
from hiero.learning.mert import MERT, ForestSurface
from hiero.tuning.held_out import read_vector
from hiero.tuning.loop import Loop
from hiero.tuning.online import further_terms
from hiero.tuning.shard import Decoding, ShardTask, is_done
from hiero.tuning.vectors import read_vectors, write_vectors


def list_shard(task: ShardTask) -> str:
    """Decode a shard, unless that was done; return the path of the output."""
    if not is_done(task.out):
        _Listing(task).run()
    return task.out


class _Listing(Decoding):
    def run(self) -> None:
        started = time.perf_counter()
        self.read_start()
        examples = []
        for done, number in enumerate(self.task.numbers, 1):
            examples += self.examples([number])
            self.write_progress(done)
        write_examples(f"{self.task.out}.npz", self.model.symbols, self.vector.index, examples)
        self.report.sentences = len(examples)
        for example in examples:
            self.report.model = self.report.model + example.statistics[0]
        self.write_report({"wall_s": time.perf_counter() - started})


@dataclass
class _Flat:
    """Concatenated arrays of many sentences."""

    examples: Sequence[Example]

    def joined(self, name: str) -> npt.NDArray[Any]:
        rows = [getattr(example.candidates, name) for example in self.examples]
        return np.concatenate([np.zeros(0, np.int32 if name in ("id", "word") else np.float64), *rows])

    def lengths(self, name: str) -> Ints:
        rows = [np.diff(getattr(example.candidates, name)) for example in self.examples]
        return np.concatenate([np.zeros(0, np.int64), *rows])

    def of_sentence(self, values: Iterator[int]) -> Ints:
        return np.fromiter(values, np.int64)


def write_examples(path: str, symbols: Symbols, index: FeatureIndex, examples: Sequence[Example]) -> None:
    """Write the candidates of some sentences, for any process to read."""
    flat = _Flat(examples)
    write_vectors(
        path,
        symbols,
        index,
        np.arange(len(index)),
        text=flat.joined("word").astype(np.int32),
        number=flat.of_sentence(e.number for e in examples),
        source_length=flat.of_sentence(e.source_length for e in examples),
        shortest=flat.of_sentence(e.shortest for e in examples),
        size=flat.of_sentence(e.candidates.size for e in examples),
        num_features=flat.lengths("first"),
        num_words=flat.lengths("first_word"),
        id=flat.joined("id"),
        value=flat.joined("value"),
        score=flat.joined("score"),
        statistics=np.concatenate([np.zeros((0, 10), np.int64), *(e.statistics for e in examples)]),
    )


def read_examples(path: str, symbols: Symbols, index: FeatureIndex) -> Iterator[Example]:
    """Read the candidates of each sentence from a file, with features numbered by ``index``."""
    to, content = read_vectors(path, symbols, index)
    first, first_word = offsets_of(content["num_features"]), offsets_of(content["num_words"])
    row = row_of_entry(first)
    ids = to[content["id"]]
    order = np.lexsort((ids, row))  # rows are sorted by the numbers of this index
    ids, values = ids[order], content["value"][order]
    ends = offsets_of(content["size"]).tolist()
    for i, number in enumerate(content["number"].tolist()):
        a, b = ends[i], ends[i + 1]
        here, words = slice(first[a], first[b]), slice(first_word[a], first_word[b])
        arrays = (
            first[a : b + 1] - first[a],
            ids[here],
            values[here],
            content["score"][a:b],
            first_word[a : b + 1] - first_word[a],
            content["text"][words],
        )
        yield Example(
            number,
            int(content["source_length"][i]),
            Candidates(*map(read_only, arrays)),
            content["statistics"][a:b],
            int(content["shortest"][i]),
        )


SMALLEST_CHANGE = 1e-5  # of any weight; tuning has converged when all change by less


class BatchLoop(Loop):
    """Loop of a batch algorithm; an epoch is an iteration. Shard files keep the lists, for ``--resume``."""

    verb = "decode"

    @property
    def work(self) -> Callable[[ShardTask], str]:
        return list_shard

    def resume(self, done: int) -> None:
        self.symbols, self.index, self.lists = Symbols(), FeatureIndex(), CandidateLists()
        # Features of bins come first, so that their numbers do not depend on where an earlier run was killed.
        self.terms = further_terms(self.config, self.model.bins, self.symbols, self.index)
        for epoch in range(done):
            self._add_lists(epoch)

    def _add_lists(self, epoch: int) -> int:
        """Add the lists of an iteration; return the number of new candidates."""
        found = 0
        for path in sorted(self._dir(epoch).glob("shard.*.npz")):
            found += sum(map(self.lists.add, read_examples(str(path), self.symbols, self.index)))
        return found

    def _reload_lists(self, first: int, end: int) -> None:
        """Replace the lists by those of some iterations; features keep their numbers."""
        self.lists = CandidateLists()
        for epoch in range(first, end):
            self._add_lists(epoch)

    def conclude(self, epoch: int, tasks: Sequence[ShardTask]) -> dict[str, Any]:
        if 0 < self.config.history <= epoch:
            self._reload_lists(epoch + 1 - self.config.history, epoch)
        new = self._add_lists(epoch)
        if not len(self.lists):
            raise ConfigError("tune: no sentence has both a translation and a reference")
        here = self._dir(epoch)
        ids, values = read_vectors(here / "start.npz", self.symbols, self.index)
        weight = np.zeros(len(self.index))
        weight[ids] = values["weight"]
        dense = [i for i, key in enumerate(self.index.all_keys()) if key[0] == NAME]
        context = LearnerContext(terms=self.terms, dense=dense, threads=self.workers)
        learner: BatchLearner = make_learner(self.config, context)
        if self.config.forest:
            assert isinstance(learner, MERT)
            surface = self._forests(str(here / "start.npz"), dense, weight)
            learnt, figures = learner.fit(surface, weight, epoch + 1, self.session.seed)
        else:
            learnt, figures = learner.fit(self.lists, weight, epoch + 1, self.session.seed)
        change = float(np.abs(learnt - weight).max(initial=0.0))
        chosen = np.flatnonzero(learnt)
        answer = str(here / "answer.npz")
        write_vectors(answer, self.symbols, self.index, chosen, weight=learnt[chosen])
        self.start_next(epoch, answer)
        return {
            "features": len(chosen),
            "features_seen": len(self.index),
            "new_candidates": new,
            "candidates": len(self.lists),
            "change": change,
            **{f"fit_{name}": value for name, value in figures.items()},
            "converged": bool(new == 0 or change < SMALLEST_CHANGE),
        }

    def _forests(self, start: str, features: Sequence[int], weight: Floats) -> ForestSurface:
        """The pruned forests of this iteration, used instead of its lists."""
        decoder = self.model.with_weights(read_vector(start, self.model.symbols))
        names, ours = self.model.symbols.names, self.symbols.names
        keys = [(NAME, names.intern(ours.entry(self.index.key(feature)[1])), 0) for feature in features]
        surface = ForestSurface(self.set.references, len(keys))
        numbers = [number for number in self.numbers if self.set.has_reference[number]]

        def decode(number: int) -> tuple[Forest, Floats32] | None:
            forest = decoder.parse(self.set.segments[number])
            if not forest:
                return None
            pruned = forest.prune(self.config.beam)
            return pruned, edge_values(pruned, keys)

        self.watch.begin("forests", len(numbers))
        point = weight[np.asarray(features, np.int64)]
        results = in_order(decode, numbers, self.workers)
        for done, (number, found) in enumerate(zip(numbers, results, strict=True), 1):
            if found is not None:
                surface.add(number, *found, point)
            self.watch.reach(done)
        return surface

    def goes_on(self, epoch: int) -> bool:
        return False

    def forget(self, epoch: int) -> None:
        """Keep all files: the lists of all iterations are needed."""
