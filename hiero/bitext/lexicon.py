# mypy: allow-untyped-calls
"""Lexical tables: p(source word | target word) and back, from the links of an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.kernels.extract_lexicon import count_pairs_kernel, grow_pairs_kernel, losses_kernel
from hiero.kernels.extract_tables import Lexicon
from hiero.symbols import read_only

FIRST_SIZE = 1 << 16


class Side(NamedTuple):
    """One side of a bitext.

    text      int32 [N]      words from 1 on; a 0 ends every sentence
    first     int64 [S + 1]  sentence s: text[first[s]:first[s + 1] - 1]
    num_words  different ones
    """

    text: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]
    num_words: int


def make_lexicon(
    src: Side, tgt: Side, alignments: Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int16]]]
) -> Lexicon:
    """Count the links of all alignments, given as (first link of each source place, target words).

    A word without a link is linked to nothing, which counts as a word of the other side.
    """
    key = np.full(FIRST_SIZE, -1, np.int64)
    count = np.zeros(len(key), np.int64)
    used = np.zeros(1, np.int64)
    for first_link, link in alignments:
        counted = 0
        while True:
            counted = count_pairs_kernel(
                src.text, tgt.text, src.first, tgt.first, first_link, link, counted, key, count, used
            )
            if counted == len(src.first) - 1:
                break
            old_key, old_count = key, count
            key, count = np.full(2 * len(key), -1, np.int64), np.zeros(2 * len(key), np.int64)
            grow_pairs_kernel(old_key, old_count, key, count)
    loss = np.zeros((len(key), 2), np.float32)
    losses_kernel(
        key, count, np.zeros(src.num_words + 1, np.int64), np.zeros(tgt.num_words + 1, np.int64), loss
    )
    return Lexicon(read_only(key), read_only(loss))
