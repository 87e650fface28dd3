# mypy: allow-untyped-defs, allow-untyped-calls
"""Fill the hash table of ``hiero.lm.Ngrams`` with n-grams from any format.

A pruned model may list ``a b c`` but not ``b c``. The search for the longest n-gram goes from short to long
and must not stop there, so such gaps are filled, as in KenLM, with n-grams that have the probability given by
backing off. A missing context (``a b``), for which KenLM refuses the model, is filled likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.jit import kernel, leaf
from hiero.lm.model import chain

# Load at which a table doubles. Measured on models of 0.8 and 1.8 million n-grams: fitting into the cache of
# the processor matters more than short probes (0.74 was faster than 0.37 by a quarter), up to a limit (0.85,
# where an absent n-gram takes 22 probes, was slower than 0.42 by 16 to 60 %).
MAX_LOAD = 0.75
MIN_SLOTS = 16
# Upper bound on the entries that one n-gram adds, with all shorter ones that are missing.
SPARE = 32


class NgramBlock(NamedTuple):
    """Some n-grams of one length.

    words    int32 [R, n]   in the order of the text
    prob     float32 [R]    log10 probability, <= 0
    backoff  float32 [R]    log10 back-off; 0 if there is none
    """

    words: npt.NDArray[np.int32]
    prob: npt.NDArray[np.float32]
    backoff: npt.NDArray[np.float32]


class OpenTable(NamedTuple):
    """A table being filled.

    key    uint64 [2 S]   as in ``Ngrams``
    value  float32 [4 S]  the same bytes
    used   int64 [1]      slots in use
    """

    key: npt.NDArray[np.uint64]
    value: npt.NDArray[np.float32]
    used: npt.NDArray[np.int64]


def open_table(num_ngrams: int) -> OpenTable:
    """An empty table with room for ``num_ngrams``."""
    slots = MIN_SLOTS
    while slots * MAX_LOAD < num_ngrams + SPARE:
        slots *= 2
    return _empty(slots)


def grown(table: OpenTable) -> OpenTable:
    """The same n-grams in twice as many slots."""
    larger = _empty(len(table.key))
    copy_ngrams_kernel(table, larger)
    return larger


def _empty(slots: int) -> OpenTable:
    key = np.zeros(2 * slots, np.uint64)
    return OpenTable(key, key.view(np.float32), np.zeros(1, np.int64))


@leaf
def has_room(table, num_ngrams):
    return table.used[0] + num_ngrams <= np.int64(table.key.shape[0] // 2 * MAX_LOAD)


@leaf
def locate(table, key):
    """The slot of a key, or the empty slot where it belongs."""
    mask = np.int64(table.key.shape[0] // 2 - 1)
    slot = np.int64(key & np.uint64(mask))
    while table.key[2 * slot] != key and table.key[2 * slot] != np.uint64(0):
        slot = (slot + 1) & mask
    return slot


@leaf
def put(table, slot, key, prob, backoff):
    """Enter a key into the empty slot that ``locate`` returned."""
    table.key[2 * slot] = key
    table.value[4 * slot + 2] = prob
    table.value[4 * slot + 3] = backoff
    table.used[0] += 1


@kernel
def copy_ngrams_kernel(table, out_table):
    """Copy one table into another, empty and larger. O(slots).  Twin: none; it changes no answer."""
    for slot in range(table.key.shape[0] // 2):
        key = table.key[2 * slot]
        if key != np.uint64(0):
            put(out_table, locate(out_table, key), key, table.value[4 * slot + 2], table.value[4 * slot + 3])


@leaf
def key_of(words, end, length):
    """The key of the ``length`` words before words[end]."""
    key = np.uint64(words[end - 1])
    for at in range(2, length + 1):
        key = chain(key, words[end - at])
    return key


@leaf
def is_listed(table, words, end, length):
    key = key_of(words, end, length)
    return length == 1 or table.key[2 * locate(table, key)] == key


@leaf
def mark_right_extension(table, unigram, words, end, length):
    """Mark listed words as the beginning of a longer n-gram; returns their back-off."""
    if length == 1:
        word = words[end - 1]
        if unigram[word, 1] == 0.0:
            unigram[word, 1] = 0.0  # no longer minus zero
        return unigram[word, 1]
    at = 4 * locate(table, key_of(words, end, length)) + 3
    if table.value[at] == 0.0:
        table.value[at] = 0.0
    return table.value[at]


@leaf
def mark_left_extension(table, unigram, words, end, length):
    """Mark listed words as the end of a longer n-gram; returns their log10 probability."""
    if length == 1:
        word = words[end - 1]
        unigram[word, 0] = np.abs(unigram[word, 0])
        return -unigram[word, 0]
    at = 4 * locate(table, key_of(words, end, length)) + 2
    table.value[at] = np.abs(table.value[at])
    return -table.value[at]


@leaf
def fill_gaps(table, unigram, words, end, length):
    """List the last 2, 3, ... ``length`` words where they are missing, with probabilities from backing off.

    Their contexts must be listed. All endings of a listed n-gram are listed, so one look-up is mostly enough.
    """
    if is_listed(table, words, end, length):
        return
    for shorter in range(2, length + 1):
        if not is_listed(table, words, end, shorter):
            backoff = mark_right_extension(table, unigram, words, end - 1, shorter - 1)
            prob = mark_left_extension(table, unigram, words, end, shorter - 1) + backoff
            key = key_of(words, end, shorter)
            # Minus zero: no longer n-gram that begins with this one is known.
            put(table, locate(table, key), key, -np.abs(prob), np.float32(-0.0))


@kernel
def add_ngram(table, unigram, words, length, prob, backoff):
    """Enter an n-gram of two or more words; False if it is already listed.

    table    OpenTable        written; there must be room for SPARE more
    unigram  float32 [W, 2]   as in ``Ngrams``; signs are written
    words    int64 [.]        ids, in the order of the text
    prob     float32          log10 probability, <= 0
    backoff  float32          minus zero if there is none

    Orders must be entered from short to long.  Twin: tests/naive/lm.py::signed_ngrams.
    """
    key = key_of(words, length, length)
    slot = locate(table, key)
    if table.key[2 * slot] == key:
        return False
    put(table, slot, key, -np.abs(prob), backoff if backoff != 0.0 else np.float32(-0.0))
    # Contexts before endings: filling a gap in the ending needs the back-off of its context.
    if not is_listed(table, words, length - 1, length - 1):
        for shorter in range(2, length):
            fill_gaps(table, unigram, words, shorter, shorter)
    mark_right_extension(table, unigram, words, length - 1, length - 1)
    if length > 2:
        fill_gaps(table, unigram, words, length, length - 1)
    mark_left_extension(table, unigram, words, length, length - 1)
    return True


@kernel
def add_ngrams_kernel(block, out_table, out_unigram):
    """Enter distinct n-grams of two or more words.

    block        NgramBlock
    out_table    OpenTable        written; there must be room
    out_unigram  float32 [W, 2]   as in ``Ngrams``; signs are written

    A few look-ups for each n-gram.  Twin: tests/naive/lm.py::signed_ngrams.
    """
    length = block.words.shape[1]
    words = np.empty(length, np.int64)
    for r in range(block.words.shape[0]):
        for w in range(length):
            words[w] = block.words[r, w]
        add_ngram(out_table, out_unigram, words, length, block.prob[r], block.backoff[r])


def table_of_blocks(
    counts: Sequence[int], blocks: Iterable[NgramBlock]
) -> tuple[OpenTable, npt.NDArray[np.float32]]:
    """The table and the 1-grams of a model. Blocks come in the order of their length.

    ``counts`` has the number of n-grams of each length. Words are numbered in the order of the 1-grams.
    """
    table = open_table(sum(counts[1:]))
    unigram = np.empty((0, 2), np.float32)
    for block in blocks:
        if block.words.shape[1] == 1:
            backoff = np.where(block.backoff == 0.0, np.float32(-0.0), block.backoff)
            unigram = np.concatenate([unigram, np.stack([-np.abs(block.prob), backoff], axis=1)])
        else:
            add_ngrams_kernel(block, table, unigram)
    return table, unigram
