"""One shard of a batch algorithm: decode it, and write its candidates to a file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import Symbols, read_only
from hiero.features.index import FeatureIndex
from hiero.learning.candidates import Candidates
from hiero.learning.learner import Example
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

    def lengths(self, name: str) -> npt.NDArray[np.int64]:
        rows = [np.diff(getattr(example.candidates, name)) for example in self.examples]
        return np.concatenate([np.zeros(0, np.int64), *rows])

    def of_sentence(self, values: Iterator[int]) -> npt.NDArray[np.int64]:
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
    first, first_word = _ends(content["num_features"]), _ends(content["num_words"])
    row = np.repeat(np.arange(len(first) - 1), content["num_features"])
    ids = to[content["id"]]
    order = np.lexsort((ids, row))  # rows are sorted by the numbers of this index
    ids, values = ids[order], content["value"][order]
    ends = _ends(content["size"]).tolist()
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


def _ends(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
