"""Batch tuning: in each iteration decode all sentences, extend the k-best lists, and learn from all lists.

A task decodes one shard, and writes its candidates to a file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import (
    Floats,
    Floats32,
    Ints,
    is_finite,
    is_within,
    offsets_of,
    read_only,
    row_of_entry,
)
from hiero.core.directories import ArrayKind, check_kinds
from hiero.core.errors import ConfigError, FormatError
from hiero.core.parallel import in_order
from hiero.core.progress import Progress
from hiero.core.symbols import Symbols
from hiero.decoder.forest import Forest
from hiero.decoder.forest_features import edge_values
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import NAME
from hiero.learning.candidates import Candidates
from hiero.learning.learner import Example, LearnerContext, UpdateReport, make_learner
from hiero.learning.lists import CandidateLists
from hiero.learning.mert import ForestSurface
from hiero.learning.regularize import structured_terms
from hiero.tuning.shard import (
    ModelOfFolds,
    RunFiles,
    Session,
    ShardDecoder,
    ShardTask,
    TaskOutput,
    dense_features,
    is_task_done,
    opened,
)
from hiero.tuning.vectors import DenseFeatures, read_vector, read_vectors, write_vectors


def run_batch_shard(task: ShardTask) -> str:
    """Decode a shard for batch tuning, unless that was done; return the path of the output."""
    if is_task_done(task.out):
        return task.out
    started, output = time.perf_counter(), TaskOutput(task.out)
    decoder = ShardDecoder(task.session, task.threads, task.folds)
    decoder.read_weights(task.start)
    examples: list[Example] = []
    for done, number in enumerate(task.numbers, 1):
        examples += decoder.examples([number])
        output.write_progress(done)
    write_batch_examples(f"{output.temporary}.npz", decoder.model.symbols, decoder.vector.index, examples)
    report = UpdateReport(sentences=len(examples))
    for example in examples:
        report.model = report.model + example.statistics[0]
    output.finish(decoder.report(report) | {"wall_s": time.perf_counter() - started})
    return task.out


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


def write_batch_examples(
    path: str, symbols: Symbols, index: FeatureIndex, examples: Sequence[Example]
) -> None:
    """Write the k-best lists of some sentences for batch tuning, for any process to read."""
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


WHAT = "k-best lists"
MOST_SENTENCES = 10_000_000
ARRAYS: dict[str, ArrayKind] = {
    **dict.fromkeys(
        ("number", "source_length", "shortest", "size", "num_features", "num_words"), (np.int64, 1)
    ),
    **dict.fromkeys(("value", "score"), (np.float64, 1)),
    "id": (np.int32, 1),
    "statistics": (np.int64, 2),
}


def _are_lists(content: Mapping[str, npt.NDArray[Any]], num_features: int) -> bool:
    """Whether the arrays of k-best lists have the lengths that they say."""
    number, size = content["number"], content["size"]
    candidates, features = int(size.sum()), content["num_features"]
    most = 1 << 31
    return (
        len(number) == len(content["source_length"]) == len(content["shortest"]) == len(size)
        and is_within(number, 0, MOST_SENTENCES)
        and is_within(size, 1, most)
        and is_within(features, 0, most)
        and is_within(content["num_words"], 0, most)
        and candidates == len(features) == len(content["num_words"]) == len(content["score"])
        and content["statistics"].shape == (candidates, 10)
        and is_within(content["statistics"], 0, most)
        and int(features.sum()) == len(content["id"]) == len(content["value"])
        and int(content["num_words"].sum()) == len(content["text"])
        and is_within(content["id"], 0, num_features)
        and is_finite(content["value"])
        and is_finite(content["score"])
    )


def read_batch_examples(path: str, symbols: Symbols, index: FeatureIndex) -> Iterator[Example]:
    """Read the k-best lists of batch tuning from a file, with features numbered by ``index``."""
    to, content = read_vectors(path, symbols, index)
    check_kinds(path, WHAT, content, ARRAYS)
    if not _are_lists(content, len(to)):
        raise FormatError(path, 0, found="arrays that do not fit together", expected=WHAT, hint="delete it")
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


class BatchCourse:
    """Iterations of a batch algorithm, which are its epochs. Shard files keep the lists, for ``--resume``."""

    verb, keeps_shards = "decode", True
    work = staticmethod(run_batch_shard)

    def __init__(self, session: Session, files: RunFiles, workers: int, progress: Progress) -> None:
        self.session, self.config, self.files = session, session.config, files
        self.workers, self.progress = workers, progress
        self.passes = 2 if self.config.forest else 1
        self.model, self.set = opened(session)

    def resume(self, done: int) -> None:
        self.symbols, self.index, self.lists = Symbols(), FeatureIndex(), CandidateLists()
        # Features of bins come first, so that their numbers do not depend on where an earlier run was killed.
        self.terms = structured_terms(self.config, self.model.bins, self.symbols, self.index)
        needs_dense = self.config.l2_sparse is not None or self.config.min_count > 0
        dense = dense_features(self.session) if needs_dense else frozenset()
        self.is_dense = DenseFeatures(dense, self.symbols, self.index)
        for epoch in range(done):
            self._add_lists(epoch)

    def start(self, epoch: int, shard: int = 0) -> str:
        return self.files.answer(epoch - 1) if epoch else self.files.start

    def _add_lists(self, epoch: int) -> int:
        """Add the lists of an iteration; return the number of new candidates."""
        found = 0
        for path in sorted(self.files.epoch(epoch).glob("shard.*.npz")):
            found += sum(map(self.lists.add, read_batch_examples(str(path), self.symbols, self.index)))
        return found

    def _reload_lists(self, first: int, end: int) -> None:
        """Replace the lists by those of some iterations; features keep their numbers."""
        self.lists = CandidateLists()
        for epoch in range(first, end):
            self._add_lists(epoch)

    def look(self, tasks: Sequence[ShardTask]) -> None:
        pass

    def conclude(self, epoch: int, tasks: Sequence[ShardTask]) -> dict[str, Any]:
        if 0 < self.config.history <= epoch:
            self._reload_lists(epoch + 1 - self.config.history, epoch)
        new = self._add_lists(epoch)
        if not len(self.lists):
            raise ConfigError("tune: no sentence has both a translation and a reference")
        ids, values = read_vectors(self.start(epoch), self.symbols, self.index)
        weight = np.zeros(len(self.index))
        weight[ids] = values["weight"]
        named = [i for i, key in enumerate(self.index.all_keys()) if key[0] == NAME]
        context = LearnerContext(terms=self.terms, named=named, is_dense=self.is_dense, threads=self.workers)
        learner = make_learner(self.config, context)
        lists: CandidateLists | ForestSurface = self.lists
        if self.config.forest:
            lists = self._forests(self.start(epoch), tasks, named, weight)
        learnt, figures = learner.fit(lists, weight, epoch + 1, self.session.seed)
        change = float(np.abs(learnt - weight).max(initial=0.0))
        chosen = np.flatnonzero(learnt)
        write_vectors(self.files.answer(epoch), self.symbols, self.index, chosen, weight=learnt[chosen])
        return {
            "features": len(chosen),
            "features_seen": len(self.index),
            "new_candidates": new,
            "candidates": len(self.lists),
            "change": change,
            **{f"fit_{name}": value for name, value in figures.items()},
            "converged": bool(new == 0 or change < SMALLEST_CHANGE),
        }

    def _forests(
        self, start: str, tasks: Sequence[ShardTask], features: Sequence[int], weight: Floats
    ) -> ForestSurface:
        """The pruned forests of this iteration, used instead of its lists."""
        decoder = self.model.with_weights(read_vector(start, self.model.symbols))
        models = {
            number: of_folds.of(number)
            for task in tasks
            for of_folds in [ModelOfFolds(self.session, decoder, task.folds)]
            for number in task.numbers
        }
        names, ours = self.model.symbols.names, self.symbols.names
        keys = [(NAME, names.intern(ours.entry(self.index.key(feature)[1])), 0) for feature in features]
        surface = ForestSurface(self.set.references, len(keys))
        numbers = [number for number in sorted(models) if self.set.has_reference[number]]

        def decode(number: int) -> tuple[Forest, Floats32] | None:
            forest = models[number].parse(self.set.segments[number])
            if not forest:
                return None
            pruned = forest.prune(self.config.beam)
            return pruned, edge_values(pruned, keys)

        self.progress.part("forests")
        point = weight[np.asarray(features, np.int64)]
        for number, found in zip(numbers, in_order(decode, numbers, self.workers), strict=True):
            if found is not None:
                surface.add(number, *found, point)
            self.progress.advance(1)
        return surface
