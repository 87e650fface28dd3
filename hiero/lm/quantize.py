"""Quantised models: codes of a few bits instead of probabilities and back-offs, in a table of half the size.

A compiled quantised model is a directory of memory-mapped arrays, those of ``table_kernels.Codes`` for one
model, its 1-grams, which are not quantised, and its words. ``meta.json`` is that of ``model.MODEL`` with
``slots``, ``prob_bits`` and ``backoff_bits`` as in ``Codes.layout``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hiero.core.arrays import Floats32, Hashes, Ints, is_finite, read_only
from hiero.core.directories import Arrays, Kind
from hiero.core.errors import FormatError
from hiero.core.records import MAX_ORDER
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import word_table_arrays, word_table_files, word_table_from
from hiero.lm.model import ReadModel, are_unigrams, meta_of, ngrams_of
from hiero.lm.table_kernels import Codes, Ngrams, enter_codes_kernel

LEAST_BITS, MOST_BITS = 2, 8
# Of the slots. With 10.5 million n-grams, scoring a word took 140 ns at 0.5, 157 at 0.7, 170 at 0.77, 202 at
# 0.85; 136 without quantisation.
MOST_LOAD = 0.7
LEAST_DISPLACEMENT_BITS = 3
MOST_LOG_SLOTS = 31
GROWTH = 1.05  # of the slots, if n-grams would stand too far from their homes
RESERVED = 2  # codes of back-offs: -0.0, 0.0


def make_codebook(values: Floats32, size: int) -> Floats32:
    """``size`` values, ascending, that stand for given ones.

    As in KenLM: means of bins with equal numbers of values, by their order. But where there are no more
    different values than codes, it has these, so that a model that was quantised before does not change.
    """
    values = np.sort(values)
    different = np.unique(values)
    if len(different) <= size:
        last = different[-1:] if len(different) else np.zeros(1, np.float32)
        return np.concatenate([different, np.repeat(last, size - len(different))])
    bounds = len(values) * np.arange(size + 1) // size
    centers: Floats32 = (np.add.reduceat(values.astype(np.float64), bounds[:-1]) / np.diff(bounds)).astype(
        np.float32
    )
    return centers


def nearest_codes(values: Floats32, codebook: Floats32) -> Ints:
    """The place of the nearest value of a codebook; of two as near, that above, as in KenLM."""
    above = np.searchsorted(codebook, values)
    place = np.clip(above, 1, len(codebook) - 1)
    is_below = values - codebook[place - 1] < codebook[place] - values
    return np.where(above == 0, 0, np.where(above == len(codebook), above - 1, place - is_below))


def quantise(model: ReadModel, prob_bits: int, backoff_bits: int) -> Ngrams:
    """The model with codes of so many bits for the n-grams of two or more words."""
    table = model.table
    used = np.flatnonzero(table.key[::2])
    used = used[np.argsort(table.key[2 * used])]
    prob, backoff, size = table.value[4 * used + 2], table.value[4 * used + 3], table.size[used]
    prob_code, backoff_code = np.zeros(len(used), np.int64), np.zeros(len(used), np.int64)
    prob_values, backoff_values = [], []
    for length in range(2, model.order + 1):
        mine = np.flatnonzero(size == length)
        book = make_codebook(-np.abs(prob[mine]), 1 << prob_bits)
        # The sign, which is not part of the value, is the highest bit.
        extends = ~np.signbit(prob[mine])
        prob_code[mine] = nearest_codes(-np.abs(prob[mine]), book) + (extends << np.int64(prob_bits))
        prob_values += [-np.abs(book), np.abs(book)]
        with_value = mine[backoff[mine] != 0]
        book = make_codebook(backoff[with_value], (1 << backoff_bits) - RESERVED)
        backoff_code[mine] = ~np.signbit(backoff[mine])
        backoff_code[with_value] = RESERVED + nearest_codes(backoff[with_value], book)
        backoff_values += [np.array([-0.0, 0.0], np.float32), book + np.float32(0.0)]
    key = np.ascontiguousarray(table.key[2 * used])
    code = ((prob_code << backoff_bits) | backoff_code).astype(np.uint64)
    layout, entry = _entered(key, code, prob_bits + 1, backoff_bits)
    return _quantised(
        entry,
        np.concatenate([*prob_values, *backoff_values]),
        layout,
        model.unigram,
        model.order,
        model.bos,
        model.eos,
    )


def _layout_of(slots: int, prob_bits: int, backoff_bits: int) -> list[int]:
    """The columns of ``Codes.layout``."""
    log_slots = slots.bit_length() - 1
    return [slots, log_slots, log_slots - prob_bits - backoff_bits, prob_bits, backoff_bits]


def _entered(key: Hashes, code: Hashes, prob_bits: int, backoff_bits: int) -> tuple[list[int], Hashes]:
    """The layout of a table in which ascending keys with their codes fit, and its entries."""
    slots = max(int(len(key) / MOST_LOAD), 1 << (prob_bits + backoff_bits + LEAST_DISPLACEMENT_BITS))
    while True:
        layout = _layout_of(slots, prob_bits, backoff_bits)
        entry: Hashes = np.zeros(slots + (1 << layout[2]), np.uint64)
        if enter_codes_kernel(key, code, np.array([layout], np.uint64), entry):
            return layout, entry
        slots = int(slots * GROWTH)


def _quantised(
    entry: Hashes, value: Floats32, layout: list[int], unigram: Floats32, order: int, bos: int, eos: int
) -> Ngrams:
    first_value = np.array([[0, (order - 1) << layout[3]]], np.int64)
    codes = Codes(
        read_only(entry),
        read_only(np.array([0, len(entry)], np.int64)),
        read_only(np.array([layout], np.uint64)),
        read_only(value),
        read_only(first_value),
    )
    return ngrams_of(np.empty(0, np.uint64), unigram, order, bos, eos, codes)


# ---- compiled models


def _is_sound(meta: Mapping[str, Any], arrays: Arrays) -> bool:
    numbers: list[Any] = [meta.get(name) for name in ("slots", "prob_bits", "backoff_bits", "ngrams")]
    if not all(type(number) is int for number in numbers) or not are_unigrams(meta, arrays):
        return False
    slots, prob_bits, backoff_bits, num_ngrams = numbers
    if not (0 < slots < 1 << (MOST_LOG_SLOTS + 1) and LEAST_BITS < prob_bits <= MOST_BITS + 1):
        return False
    _, _, displacement_bits, _, _ = _layout_of(slots, prob_bits, backoff_bits)
    entry, value, order = arrays["entry"], arrays["value"], int(meta["order"])
    return (
        LEAST_BITS <= backoff_bits <= MOST_BITS
        and displacement_bits > 0
        and len(entry) == slots + (1 << displacement_bits)
        and int(np.count_nonzero(entry)) == num_ngrams
        and 2 <= order <= MAX_ORDER
        and len(value) == (order - 1) * ((1 << prob_bits) + (1 << backoff_bits))
        and is_finite(value)
    )


QUANTISED = Kind(
    "hiero quantised language model",
    1,
    "make it again with hiero lm compile --quantize",
    {
        "entry": (np.uint64, 1),
        "value": (np.float32, 1),
        "unigram": (np.float32, 2),
        **word_table_files("word"),
    },
    _is_sound,
)


def write_quantised(path: Path, source: Path, model: ReadModel, prob_bits: int, backoff_bits: int) -> Ngrams:
    """Quantise a model that was read from a file, and write it."""
    if model.order < 2:
        raise FormatError(source, 0, found="a model of order 1", expected="n-grams to quantise")
    ngrams = quantise(model, prob_bits, backoff_bits)
    assert ngrams.codes is not None
    slots, _, _, *bits = ngrams.codes.layout[0].tolist()
    meta = meta_of(ngrams, int(np.count_nonzero(ngrams.codes.entry)), source)
    meta |= {"slots": slots, "prob_bits": bits[0], "backoff_bits": bits[1]}
    arrays: Arrays = {"entry": ngrams.codes.entry, "value": ngrams.codes.value, "unigram": ngrams.unigram}
    QUANTISED.write(path, meta, {**arrays, **word_table_arrays({"word": model.words})})
    return ngrams


def read_quantised(path: Path) -> tuple[Ngrams, WordTable]:
    """Map and check a compiled quantised model."""
    meta, arrays = QUANTISED.read(path)
    layout = _layout_of(meta["slots"], meta["prob_bits"], meta["backoff_bits"])
    words = word_table_from(arrays, "word")
    markers = meta["order"], meta["bos"], meta["eos"]
    return _quantised(arrays["entry"], arrays["value"], layout, arrays["unigram"], *markers), words
