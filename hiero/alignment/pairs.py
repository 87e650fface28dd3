# mypy: allow-untyped-calls
"""Make the arrays for word alignment from a bitext."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from hiero.alignment.hmm_kernels import Windows
from hiero.alignment.ibm2_kernels import Sizes
from hiero.alignment.pair_kernels import (
    ExpectedCounts,
    LexicalProbs,
    PairIndex,
    number_pairs_kernel,
    pair_targets_kernel,
)
from hiero.bitext.corpus import Bitext
from hiero.core.errors import HieroError
from hiero.core.symbols import read_only

MAX_PAIRS = 2147483647  # their ids are int32


def pair_index(bitext: Bitext) -> PairIndex:
    """Number the pairs of words that occur together, and list the pair of every cell."""
    src, tgt = bitext.src, bitext.tgt
    first_cell = np.zeros(bitext.num_pairs + 1, np.int64)
    np.cumsum(src.length * tgt.length, out=first_cell[1:])
    first_pair = np.empty(src.num_words + 1, np.int64)
    pair = np.empty(first_cell[-1], np.int32)
    num_pairs = number_pairs_kernel(
        src.first, src.word, tgt.first, tgt.word, first_cell, tgt.num_words, MAX_PAIRS, first_pair, pair
    )
    if num_pairs < 0:
        raise HieroError(f"the bitext has more than {MAX_PAIRS:,} distinct word pairs; align it in parts")
    pair_tgt, num_tgt = np.empty(num_pairs, np.int32), np.zeros(tgt.num_words, np.int64)
    pair_targets_kernel(tgt.first, tgt.word, first_cell, pair, pair_tgt, num_tgt)
    arrays = (first_cell, pair, first_pair, pair_tgt, num_tgt)
    return PairIndex(src.first, src.word, tgt.first, tgt.word, *(read_only(array) for array in arrays))


def sizes_of(index: PairIndex) -> Sizes:
    """The distinct sizes of sentence pairs, for the diagonal prior."""
    length = np.stack([np.diff(index.src_first), np.diff(index.tgt_first)], axis=1)
    full = np.flatnonzero(np.diff(index.first_cell) > 0)
    different, size = np.unique(length[full], axis=0, return_inverse=True)
    of = np.full(len(length), -1, np.int32)
    of[full] = size.reshape(-1)
    first = np.zeros((len(different) + 1, 2), np.int64)
    np.cumsum(different[:, ::-1], axis=0, out=first[1:])
    first[:, 1] += first[-1, 0]
    return Sizes(read_only(of), read_only(different.astype(np.int64)), read_only(first))


def windows_of(index: PairIndex) -> Windows:
    """The positions from which the HMM may jump, by sentence length."""
    full = np.diff(index.first_cell) > 0
    lengths = [np.unique(np.diff(first)[full]) for first in (index.src_first, index.tgt_first)]
    length = np.zeros((max(map(len, lengths)), 2), np.int64)
    first = np.full((int(max((each.max(initial=0) for each in lengths))) + 1, 2), -1, np.int64)
    used = 0
    for direction, each in enumerate(lengths):
        length[: len(each), direction] = each
        first[each, direction] = used + np.cumsum(each + 1) - (each + 1)
        used += int(np.sum(each + 1))
    return Windows(read_only(length), read_only(first))


def num_windows(windows: Windows) -> int:
    return int(np.sum(windows.length + (windows.length > 0)))


def blocks_of(first: npt.NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Divide items, where item k has size first[k + 1] - first[k], into runs of about ``size``.

    There is at least one run, so that sums over runs have a shape.
    """
    if len(first) == 1:
        return [(0, 0)]
    cuts = np.searchsorted(first, np.arange(0, first[-1], size), side="left")
    cuts = np.unique(np.append(cuts, [0, len(first) - 1]))
    return [(int(begin), int(end)) for begin, end in itertools.pairwise(cuts)]


def uniform_lexicon(num_pairs: int, num_src: int, num_tgt: int) -> LexicalProbs:
    prob = np.empty((num_pairs, 2), np.float32)
    prob[:] = 1.0 / max(num_tgt, 1), 1.0 / max(num_src, 1)
    null_tgt = np.full(num_tgt, 1.0 / max(num_tgt, 1), np.float32)
    return LexicalProbs(prob, null_tgt, np.full(num_src, 1.0 / max(num_src, 1), np.float32))


def no_counts(num_pairs: int, num_src: int, num_tgt: int, num_places: int) -> ExpectedCounts:
    pair = np.zeros((num_pairs, 2), np.int64)
    return ExpectedCounts(
        pair, np.zeros(num_tgt, np.int64), np.zeros(num_src, np.int64), np.zeros(num_places, np.int64)
    )
