"""n-gram language models as arrays, with one hash table for all orders above one; score text with them.

A compiled model is a directory of memory-mapped arrays, those of ``table_kernels.Ngrams`` and ``core``'s
``WordTable``. Its ``meta.json`` holds ``format``, ``version``, ``order``, ``bos``, ``eos``, ``ngrams`` (the
number of those of two or more words) and ``source`` with the name and SHA-256 of the source file (null:
standard input).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from hiero.core.arrays import Floats32, Hashes, Ids, Ints, is_finite, offsets_of, read_only
from hiero.core.directories import Arrays, Kind, digest_of
from hiero.core.records import MAX_ORDER
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import (
    Vocabulary,
    find_all,
    is_sound,
    word_table_arrays,
    word_table_files,
    word_table_from,
)
from hiero.lm.table_kernels import Codes, Ngrams, OpenTable, look_up_words_kernel, score_sentences_kernel


def ngrams_of(
    slots: Hashes, unigram: Floats32, order: int, bos: int, eos: int, codes: Codes | None = None
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
        codes,
    )


class ReadModel(NamedTuple):
    """A model that was read from a file.

    table    OpenTable
    unigram  float32 [W, 2]  as in ``Ngrams``
    words    WordTable       in the order of their ids
    """

    table: OpenTable
    unigram: Floats32
    order: int
    bos: int
    eos: int
    words: WordTable

    def ngrams(self) -> tuple[Ngrams, WordTable]:
        """The model without copies, and its words."""
        return ngrams_of(self.table.key, self.unigram, self.order, self.bos, self.eos), self.words


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
        _codes_side_by_side([model.codes for model in models]),
    )


def _codes_side_by_side(parts: Sequence[Codes | None]) -> Codes | None:
    """Concatenate the codes of several models, some of which may have none."""
    if not any(parts):
        return None
    found = [NO_CODES if part is None else part for part in parts]
    first_value = offsets_of(len(part.value) for part in found)[:-1, np.newaxis]
    return Codes(
        read_only(np.concatenate([part.entry for part in found])),
        read_only(offsets_of(len(part.entry) for part in found)),
        read_only(np.concatenate([part.layout for part in found])),
        read_only(np.concatenate([part.value for part in found])),
        read_only(first_value + np.concatenate([part.first_value for part in found])),
    )


# Of a model that is not quantised.
NO_CODES = Codes(
    np.empty(0, np.uint64),
    np.zeros(2, np.int64),
    np.zeros((1, 5), np.uint64),
    np.empty(0, np.float32),
    np.zeros((1, 2), np.int64),
)


def _column(*values: int) -> Ints:
    return read_only(np.array(values, np.int64))


@dataclass(frozen=True)
class LanguageModels:
    """The language models of one system, and their ids for the words of the system.

    arrays  all models, concatenated
    names   [M] name of the feature that holds the score of a model
    tables  [M] words of a model in the order of its ids, or those that have classes; entry 0 is ``<unk>``
    class_ids  [M] of a model of classes: the id of the class of each word of its table, in the model
    """

    arrays: Ngrams
    names: tuple[str, ...]
    tables: tuple[WordTable, ...]
    class_ids: tuple[Ids | None, ...]
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
                    ids[m, num_known:num_words] = self.own_ids(m, np.maximum(find_all(table, fresh), 0))
                self._known[words] = num_words, ids
            return read_only(ids)

    def own_ids(self, m: int, places: Ids) -> Ids:
        """The ids in model m of words, given by their places in its table."""
        class_ids = self.class_ids[m]
        return places if class_ids is None else class_ids[places]


# ---- compiled models


def _is_sound(meta: Mapping[str, Any], arrays: Arrays) -> bool:
    slots, num_ngrams = arrays["slots"], meta.get("ngrams")
    num_slots = len(slots) // 2
    return (
        type(num_ngrams) is int
        and are_unigrams(meta, arrays)
        and len(slots) == 2 * num_slots > 0
        and num_slots & (num_slots - 1) == 0
        and 0 <= num_ngrams < num_slots  # an empty slot is where probing ends
        and int(np.count_nonzero(slots[::2])) == num_ngrams
        # Keys of n-grams are not numbers, but values are.
        and is_finite(slots.view(np.float32).reshape(-1, 4)[:, 2:])
    )


def are_unigrams(meta: Mapping[str, Any], arrays: Arrays) -> bool:
    """Whether the words, 1-grams and order of a model fit together."""
    unigram, words = arrays["unigram"], word_table_from(arrays, "word")
    numbers: list[Any] = [meta.get(name) for name in ("order", "bos", "eos")]
    order, bos, eos = numbers
    num_words = len(unigram)
    return (
        all(type(number) is int for number in numbers)
        and unigram.shape == (num_words, 2)
        and len(words.first) == num_words + 1
        and is_sound(words)
        and 1 <= order <= MAX_ORDER
        and 0 <= min(bos, eos) <= max(bos, eos) < num_words
        and is_finite(unigram)
        # Words of a model of order 1 are no context: -0.0, see ``Ngrams``.
        and (order > 1 or bool(((unigram[:, 1] == 0) & np.signbit(unigram[:, 1])).all()))
    )


MODEL = Kind(
    "hiero language model",
    2,
    "make it again with hiero lm compile",
    {"slots": (np.uint64, 1), "unigram": (np.float32, 2), **word_table_files("word")},
    _is_sound,
)


def write_ngrams(path: Path, model: Ngrams, words: WordTable, source: Path | None) -> None:
    """Write a compiled model, made from a file or from standard input (None)."""
    meta = meta_of(model, int(np.count_nonzero(model.key[::2])), source)
    arrays = word_table_arrays({"word": words})
    MODEL.write(path, meta, {"slots": model.key, "unigram": model.unigram, **arrays})


def meta_of(model: Ngrams, num_ngrams: int, source: Path | None) -> dict[str, Any]:
    """What ``meta.json`` says of one model."""
    return {
        "order": int(model.order[0]),
        "bos": int(model.bos[0]),
        "eos": int(model.eos[0]),
        "ngrams": num_ngrams,
        "source": {"name": source.name, "sha256": digest_of(source)} if source else None,
    }


def read_ngrams(path: Path) -> tuple[Ngrams, WordTable]:
    """Map and check a compiled model."""
    meta, arrays = MODEL.read(path)
    words = word_table_from(arrays, "word")
    return ngrams_of(arrays["slots"], arrays["unigram"], meta["order"], meta["bos"], meta["eos"]), words


# ---- text


class ScoredText(NamedTuple):
    """Lines of text, scored word by word.

    first     int64 [S + 1]   words of line s: first[s] ... first[s + 1] - 1
    word      int32 [N]       ids in the model, 0 if unknown; with markers, </s> ends every line
    span      int64 [N, 2]    word n is text[span[n, 0]:span[n, 1]]; empty for </s>
    prob      float32 [N]     log10 probability
    length    int32 [N]       length of the longest n-gram found
    """

    first: Ints
    word: Ids
    span: Ints
    prob: Floats32
    length: Ids


def score_text(models: LanguageModels, m: int, text: bytes, markers: bool = True) -> ScoredText:
    """Score lines of text, each ended by ``\\n``, with model m; ``markers``: between <s> and </s>."""
    data = np.frombuffer(text, np.uint8)
    first = np.zeros(text.count(b"\n") + 1, np.int64)
    word = np.zeros(len(data) // 2 + 1, np.int32)
    span = np.zeros((len(data) // 2 + 1, 2), np.int64)
    num_lines, num_words = look_up_words_kernel(models.tables[m], data, first, word, span)
    word, span = models.own_ids(m, word[:num_words]), span[:num_words]
    num_scores = num_words + num_lines * markers
    prob, length = np.empty(num_scores, np.float32), np.empty(num_scores, np.int32)
    score_sentences_kernel(models.arrays, m, first, word, markers, prob, length)
    if markers:
        word = np.insert(word, first[1:], models.arrays.eos[m])
        span = np.insert(span, first[1:], 0, axis=0)
        first = first + np.arange(len(first))
    return ScoredText(first, word, span, prob, length)
