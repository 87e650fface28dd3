"""Weights under shared names, as arrays for the kernels that look them up."""

from __future__ import annotations

import threading

import numpy as np

from hiero.core.arrays import Bytes, Flags, Ints, grown, read_only
from hiero.core.symbols import Symbols, Vocabulary, pack
from hiero.features.index import KINDS, KeyKind, KeyPart
from hiero.features.names import CATEGORIES, END, RESERVED, START
from hiero.features.shared_names_kernels import INDEXED, PLAIN, Spelling, mark_shared_spellings_kernel
from hiero.features.weights import LinearWeights


class _Entries:
    """The bytes of the first ``known`` entries of a vocabulary, as arrays that can be extended."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.known = 0
        self.pool = np.empty(1 << 16, np.uint8)
        self.first = np.zeros(1 << 12, np.int64)
        self.special = np.zeros(1 << 12, np.bool_)

    def update(self) -> range:
        """Add new entries of the vocabulary; returns their ids."""
        fresh = self.vocabulary.entries(self.known)
        pool, first = pack(fresh)
        start, end = self.known, self.known + len(fresh)
        used = int(self.first[start])
        # New arrays, because other threads may be reading the old ones.
        self.pool = grown(self.pool, used + len(pool))
        self.first, self.special = grown(self.first, end + 1), grown(self.special, end + 1)
        self.pool[used : used + len(pool)] = pool
        self.first[start : end + 1] = first + used
        mark_shared_spellings_kernel(self.pool, self.first, start, end, self.special)
        self.known = end
        return range(start, end)


def _form(kind: KeyKind) -> tuple[int, int, int]:
    """How to spell the symbols a and b of a key, and the byte between them; zeros where there are none."""
    if not kind.has_symbols:
        return 0, 0, 0
    spelt = [INDEXED if part is KeyPart.TARGET else PLAIN for part in kind.parts]
    return (spelt[0], spelt[1], ord(kind.separator)) if len(spelt) == 2 else (spelt[0], 0, 0)


class SharedNames:
    """The shared names of some weights, and the spelling of all symbols; safe to share between threads."""

    def __init__(self, symbols: Symbols, weights: LinearWeights) -> None:
        self._words, self._labels = _Entries(symbols.words), _Entries(symbols.labels)
        kinds = [KINDS[number] for number in range(len(KINDS))]
        self._form = read_only(np.array([_form(kind) for kind in kinds], np.int64))
        self._marks = pack([*(kind.prefix for kind in kinds), START, END])
        self._table, self._weight = weights.shared_weights()
        self._lock = threading.Lock()

    def current(self) -> Spelling:
        """Arrays for all symbols interned so far."""
        with self._lock:
            fresh = self._words.update()
            for entry in RESERVED:
                word = self._words.vocabulary.find(entry)
                if word in fresh:
                    self._words.special[word] = True
            for label in self._labels.update():
                if self._labels.vocabulary.entry(label) not in CATEGORIES:
                    self._labels.special[label] = True
            words, labels = self._arrays(self._words), self._arrays(self._labels)
            return Spelling(*words, *labels, self._form, *self._marks, self._table, self._weight)

    @staticmethod
    def _arrays(entries: _Entries) -> tuple[Bytes, Ints, Flags]:
        return read_only(entries.pool), read_only(entries.first), read_only(entries.special)
