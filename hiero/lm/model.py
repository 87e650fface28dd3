"""n-gram language models as arrays, with one hash table for all orders above one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from hiero.core.arrays import Floats32, Hashes, Ids, Ints, offsets_of, read_only
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import Vocabulary, find_all
from hiero.lm.table_kernels import Ngrams


def ngrams_of(slots: Hashes, unigram: Floats32, order: int, bos: int, eos: int) -> Ngrams:
    """Wrap the arrays of one model without copies; ``slots`` is its table as uint64 [2 S]."""
    slots = read_only(slots)
    return Ngrams(
        slots,
        slots.view(np.float32),
        _column(0, len(slots) // 2),
        read_only(unigram),
        _column(0, len(unigram)),
        _column(order),
        _column(bos),
        _column(eos),
    )


def side_by_side(models: Sequence[Ngrams]) -> Ngrams:
    """Concatenate several models. The arrays of a single model are not copied."""
    if len(models) == 1:
        return models[0]
    slots = read_only(np.concatenate([np.empty(0, np.uint64), *(model.key for model in models)]))
    unigram = np.concatenate([np.empty((0, 2), np.float32), *(model.unigram for model in models)])
    return Ngrams(
        slots,
        slots.view(np.float32),
        read_only(offsets_of(len(model.key) // 2 for model in models)),
        read_only(unigram),
        read_only(offsets_of(len(model.unigram) for model in models)),
        _column(*(int(order) for model in models for order in model.order)),
        _column(*(int(bos) for model in models for bos in model.bos)),
        _column(*(int(eos) for model in models for eos in model.eos)),
    )


def _column(*values: int) -> Ints:
    return read_only(np.array(values, np.int64))


@dataclass(frozen=True)
class LanguageModels:
    """The language models of one system, and their ids for the words of the system.

    arrays  all models, concatenated
    names   [M] name of the feature that holds the score of a model
    tables  [M] words of a model in the order of its ids; entry 0 is ``<unk>``
    """

    arrays: Ngrams
    names: tuple[str, ...]
    tables: tuple[WordTable, ...]
    _known: WeakKeyDictionary[Vocabulary, tuple[int, Ids]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def word_ids(self, words: Vocabulary) -> Ids:
        """The ids in each model (row) of the words of a vocabulary (column); 0 if unknown.

        Read-only. Each word is looked up once; spare columns are room for words that are interned later, so
        call this after all words of a sentence have been interned.
        """
        with self._lock:
            num_known, ids = self._known.get(words, (0, np.zeros((len(self.tables), 0), np.int32)))
            if num_known < len(words):
                fresh = words.entries(num_known)
                num_words = num_known + len(fresh)
                if num_words > ids.shape[1]:
                    ids, old = np.zeros((len(self.tables), max(2 * num_words, 1024)), np.int32), ids
                    ids[:, : old.shape[1]] = old
                for m, table in enumerate(self.tables):
                    ids[m, num_known:num_words] = np.maximum(find_all(table, fresh), 0)
                self._known[words] = num_words, ids
            return read_only(ids)
