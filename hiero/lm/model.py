# mypy: allow-untyped-defs, allow-untyped-calls
"""n-gram language models as arrays, with one hash table for all orders above one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hiero.core.jit import leaf
from hiero.core.symbols import Vocabulary, WordTable, find_all, read_only

MAX_ORDER = 6
CHAIN = np.uint64(8978948897894561157)
WORD = np.uint64(17894857484156487943)


class Ngrams(NamedTuple):
    """M language models side by side; each has its own word ids, 0 being <unk>. All arrays are read-only.

    An n-gram's key is KenLM's chain hash: start from the id of its *last* word, then for each earlier word w,
    nearest first, ``key = (key * 8978948897894561157) ^ ((1 + w) * 17894857484156487943)``, modulo 2^64.
    A table is open addressing with linear probing from ``key & mask``; an empty slot has key 0.

    key         uint64 [2 S]    the same bytes as ``value``: slot s has its key at key[2 s] ...
    value       float32 [4 S]   ... its log10 probability at value[4 s + 2], its back-off at value[4 s + 3],
                                so one cache line answers a query
    first_slot  int64 [M + 1]   slots of model m: first_slot[m] ... first_slot[m + 1] - 1, a power of two
    unigram     float32 [W, 2]  log10 probability and back-off
    first_word  int64 [M + 1]   unigrams of model m
    order       int64 [M]
    bos, eos    int64 [M]       ids of <s> and </s>

    Signs encode a bit each, as in KenLM: a probability is stored negative if the n-gram is *not* the end of a
    longer one (adding words on its left changes nothing), else as its absolute value; a back-off of -0.0
    means that no longer n-gram begins with this one. Longest n-grams are negative, with back-off -0.0.
    """

    key: npt.NDArray[np.uint64]
    value: npt.NDArray[np.float32]
    first_slot: npt.NDArray[np.int64]
    unigram: npt.NDArray[np.float32]
    first_word: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    bos: npt.NDArray[np.int64]
    eos: npt.NDArray[np.int64]


@leaf
def chain(key, word):
    """The key of an n-gram with one more word on its left."""
    return (key * CHAIN) ^ (np.uint64(1 + word) * WORD)


@leaf
def find_slot(lm, m, key):
    """The slot of an n-gram of two or more words in model m, or -1."""
    # Unsigned, because numba tests a signed index for being negative in every iteration.
    first = np.uint64(lm.first_slot[m])
    mask = np.uint64(lm.first_slot[m + 1]) - first - np.uint64(1)
    at = key & mask
    while True:
        slot = first + at
        found = lm.key[slot + slot]
        if found == key:
            return np.int64(slot)
        if found == np.uint64(0):
            return np.int64(-1)
        at = (at + np.uint64(1)) & mask


@leaf
def stored(lm, slot):
    """The log10 probability and back-off in a slot, with their signs."""
    at = np.uint64(4) * np.uint64(slot)
    return lm.value[at + np.uint64(2)], lm.value[at + np.uint64(3)]


@leaf
def extends_right(backoff):
    """Whether some longer n-gram begins with the one that has this back-off."""
    return backoff != 0.0 or np.copysign(np.float32(1.0), backoff) > 0.0


@leaf
def extends_left(prob):
    """Whether the n-gram that has this stored probability is the end of a longer one."""
    return np.copysign(np.float32(1.0), prob) > 0.0


def ngrams_of(
    slots: npt.NDArray[np.uint64], unigram: npt.NDArray[np.float32], order: int, bos: int, eos: int
) -> Ngrams:
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
        _column(0, *np.cumsum([len(model.key) // 2 for model in models])),
        read_only(unigram),
        _column(0, *np.cumsum([len(model.unigram) for model in models])),
        _column(*(int(order) for model in models for order in model.order)),
        _column(*(int(bos) for model in models for bos in model.bos)),
        _column(*(int(eos) for model in models for eos in model.eos)),
    )


def _column(*values: int) -> npt.NDArray[np.int64]:
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
    _known: WeakKeyDictionary[Vocabulary, tuple[int, npt.NDArray[np.int32]]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def word_ids(self, words: Vocabulary) -> npt.NDArray[np.int32]:
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
