"""n-gram language models as arrays: one hash table for all orders above one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


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

    Signs carry a bit each, as in KenLM: a probability is stored negative if the n-gram is *not* the end of a
    longer one (adding words on its left changes nothing), else as its absolute value; a back-off of -0.0 says
    that no longer n-gram begins with this one. Longest n-grams are stored negative, with back-off -0.0.
    """

    key: npt.NDArray[np.uint64]
    value: npt.NDArray[np.float32]
    first_slot: npt.NDArray[np.int64]
    unigram: npt.NDArray[np.float32]
    first_word: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    bos: npt.NDArray[np.int64]
    eos: npt.NDArray[np.int64]
