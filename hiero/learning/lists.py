"""k-best lists that grow over iterations, and the protocol of batch learners.

An iteration decodes, adds the new candidates, and learns weights from all candidates so far, until decoding
finds no new ones. A ``BatchLearner`` learns the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hiero.core.arrays import (
    Floats,
    Ints,
    are_offsets,
    grown,
    is_finite,
    is_within,
    offsets_of,
    read_only,
)
from hiero.core.directories import Arrays, Kind
from hiero.core.hash_kernels import table_size
from hiero.evaluation.bleu import MAX_ORDER, corpus_bleu
from hiero.learning.candidates import check_finite, not_finite
from hiero.learning.learner import Example
from hiero.learning.list_kernels import (
    Lists,
    ListStore,
    append_kernel,
    best_kernel,
    count_sentences_kernel,
    list_scores_kernel,
    refill_list_slots_kernel,
)


def _is_sound(_meta: Mapping[str, Any], arrays: Arrays) -> bool:
    size, number = len(arrays["sentence"]), len(arrays["shortest"])
    return (
        len(arrays["first"]) == len(arrays["first_word"]) == size + 1
        and len(arrays["code"]) == len(arrays["statistics"]) == size
        and len(arrays["source_length"]) == number
        and are_offsets(arrays["first"], len(arrays["id"]))
        and are_offsets(arrays["first"], len(arrays["value"]))
        and are_offsets(arrays["first_word"], len(arrays["word"]))
        and is_within(arrays["sentence"], 0, number)
        and is_within(arrays["id"], 0, (1 << 31) - 1)
        and is_finite(arrays["value"])
        and is_within(arrays["statistics"], 0, 1 << 31)
    )


KIND = Kind(
    "hiero k-best lists",
    2,
    "start tuning again without --resume",
    {
        "sentence": (np.int64, 1),
        "code": (np.uint64, 1),
        "first": (np.int64, 1),
        "id": (np.int32, 1),
        "value": (np.float64, 1),
        "first_word": (np.int64, 1),
        "word": (np.int32, 1),
        "statistics": (np.int64, 2),
        "source_length": (np.int64, 1),
        "shortest": (np.int64, 1),
    },
    _is_sound,
)


class BatchLearner(Protocol):
    """A learner of weights from all candidates so far."""

    def fit(
        self, lists: CandidateLists, weight: Floats, iteration: int, seed: int
    ) -> tuple[Floats, dict[str, float]]:
        """Return weights learnt from ``lists``, starting from ``weight``, and figures for the log.

        ``weight`` is not changed; it must have an entry for every feature of the lists. ``iteration`` counts
        from 1. The same arguments give the same weights.
        """
        ...


class CandidateLists:
    """The distinct candidates of all sentences, in the order they were added.

    Candidates of a sentence are equal if they have the same words and features.
    """

    def __init__(self, order: int = MAX_ORDER) -> None:
        self._size = 0
        self._store = ListStore(
            np.zeros(0, np.int64),
            np.zeros(0, np.uint64),
            np.zeros(1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float64),
            np.zeros(1, np.int64),
            np.zeros(0, np.int32),
            np.zeros((0, 2 + 2 * order), np.int64),
        )
        self._slot = np.full(16, -1, np.int64)
        self._source_length, self._shortest = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._num_features = 0
        self._lists: Lists | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def num_features(self) -> int:
        """One more than the largest feature; weights must be at least as long."""
        return self._num_features

    # ---- growing

    def add(self, example: Example) -> int:
        """Add the new ones of a sentence's candidates; return their number."""
        candidates = example.candidates
        if not np.isfinite(candidates.value).all():
            raise not_finite(np.zeros(1 + int(candidates.id.max())), candidates, example.number)
        if example.statistics.shape != (candidates.size, self._store.statistics.shape[1]):
            raise ValueError(f"statistics {example.statistics.shape} for {candidates.size} candidates")
        self._reserve(candidates.size, len(candidates.id), len(candidates.word))
        added = append_kernel(
            self._store,
            self._slot,
            np.int64(self._size),
            np.int64(example.number),
            read_only(candidates.first),
            read_only(candidates.id),
            read_only(candidates.value),
            read_only(candidates.value.view(np.uint64)),
            read_only(candidates.first_word),
            read_only(candidates.word),
            read_only(example.statistics),
        )
        self._size += int(added)
        if len(candidates.id):
            self._num_features = max(self._num_features, 1 + int(candidates.id.max()))
        self._source_length = grown(self._source_length, example.number + 1)
        self._shortest = grown(self._shortest, example.number + 1)
        self._source_length[example.number] = example.source_length
        self._shortest[example.number] = example.shortest
        if added:
            self._lists = None
        return int(added)

    def _reserve(self, candidates: int, features: int, words: int) -> None:
        size, store = self._size + candidates, self._store
        first, first_word = store.first[self._size], store.first_word[self._size]
        self._store = ListStore(
            grown(store.sentence, size),
            grown(store.code, size),
            grown(store.first, size + 1),
            grown(store.id, int(first) + features),
            grown(store.value, int(first) + features),
            grown(store.first_word, size + 1),
            grown(store.word, int(first_word) + words),
            grown(store.statistics, size),
        )
        if 2 * size > len(self._slot):
            self._slot = np.full(table_size(2 * size), -1, np.int64)
            refill_list_slots_kernel(self._store.code, np.int64(self._size), self._slot)

    # ---- looking

    def view(self) -> Lists:
        """All candidates by sentence, valid until more are added."""
        if self._lists is None:
            store, size = self._store, self._size
            sentence = store.sentence[:size]
            number, count = np.unique(sentence, return_counts=True)
            first_place = offsets_of(count)
            end = store.first[size]
            arrays = (
                number,
                first_place,
                np.argsort(sentence, kind="stable"),
                store.first[: size + 1],
                store.id[:end],
                store.value[:end],
                store.statistics[:size],
            )
            self._lists = Lists._make(read_only(array) for array in arrays)
        return self._lists

    def lengths(self) -> tuple[Ints, Ints]:
        """For every sentence of ``view``, the lengths of its source and of its shortest reference."""
        number = self.view().number
        return self._source_length[number], self._shortest[number]

    def num_sentences(self, size: int) -> Ints:
        """For each of the first ``size`` features, the number of sentences with a candidate that has it."""
        found, last = np.zeros((2, max(size, self._num_features)), np.int64)
        count_sentences_kernel(self.view(), found, last)
        return found[:size]

    def scores(self, weight: Floats) -> Floats:
        """The model score of every candidate."""
        score = np.empty(len(self))
        list_scores_kernel(self.view(), self.checked(weight), score)
        return score

    def best(self, weight: Floats) -> Ints:
        """The best candidate of every sentence of ``view``; of equal ones, the first added."""
        lists = self.view()
        best = np.empty(len(lists.number), np.int64)
        best_kernel(lists, self.scores(weight), best)
        return best

    def bleu(self, weight: Floats) -> float:
        """Corpus BLEU of the best candidates. An order without a match counts as a tenth of one."""
        chosen = self.view().statistics[self.best(weight)].sum(axis=0)
        return float(corpus_bleu(chosen, smooth="floor", effective_order=True)[0])

    def checked(self, weight: Floats) -> Floats:
        """Check weights for use in kernels: long enough, finite, contiguous."""
        if len(weight) < self._num_features:
            raise ValueError(f"{len(weight)} weights for {self._num_features} features")
        check_finite(np.arange(len(weight), dtype=np.int32), weight)
        return read_only(np.asarray(weight, np.float64))

    # ---- keeping

    def save(self, path: Path) -> None:
        """Write to a directory. Features are numbers; their index is saved separately by the caller."""
        store, size = self._store, self._size
        end, end_word = store.first[size], store.first_word[size]
        sizes = {"id": end, "value": end, "word": end_word, "first": size + 1, "first_word": size + 1}
        arrays = {name: array[: sizes.get(name, size)] for name, array in store._asdict().items()}
        arrays |= {"source_length": self._source_length, "shortest": self._shortest}
        KIND.write(path, {"candidates": size}, arrays)

    @classmethod
    def load(cls, path: Path) -> CandidateLists:
        """Read what ``save`` wrote; arrays stay memory-mapped until candidates are added."""
        _, arrays = KIND.read(path)
        lists = cls()
        lists._source_length, lists._shortest = arrays.pop("source_length"), arrays.pop("shortest")
        lists._store = ListStore(**arrays)
        lists._size = len(arrays["sentence"])
        lists._num_features = 1 + int(arrays["id"].max()) if len(arrays["id"]) else 0
        lists._slot = np.full(table_size(2 * lists._size), -1, np.int64)
        refill_list_slots_kernel(np.array(arrays["code"]), np.int64(lists._size), lists._slot)
        return lists
