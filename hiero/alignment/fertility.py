"""Counts of sampled links, and distributions of fertilities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.alignment.fertility_kernels import Fertilities
from hiero.alignment.hmm_kernels import JUMP_LIMIT, NUM_JUMPS, Windows
from hiero.alignment.links import DirectionalLinks
from hiero.alignment.pair_kernels import PairIndex
from hiero.alignment.parameters import MAX_FERTILITY
from hiero.core.arrays import Floats, Floats32, Ids, Ints, row_of_entry

# Parameters of Dirichlet priors: of the fertilities of a word, together, whose means are those of all words;
# of the fertilities of all words, each; and of the classes of jumps, each.
OWN_FERTILITY, ANY_FERTILITY, JUMP = 1.0, 0.5, 0.5


class Sampled(NamedTuple):
    """The state of sampling: the links, and what was estimated from them.

    src_total, tgt_total  float64 [V], [W]  as in CountedLinks
    """

    links: DirectionalLinks
    src_total: Floats
    tgt_total: Floats
    fertilities: Fertilities


class LinkCounts(NamedTuple):
    """Counts of the links of one direction: of W different words to V others.

    null       int64 [W]      words without a link; those opposite an empty side are left out
    given      int64 [V]      links to each word
    fertility  int64 [V, MAX_FERTILITY + 1]  occurrences of each word with so many links; the last: or more
    jump       float64 [NUM_JUMPS]  jumps by distance, and the prior's
    place      int64 [.]      jumps by starting point; see ``Windows``
    """

    null: Ints
    given: Ints
    fertility: Ints
    jump: Floats
    place: Ints


class _Side(NamedTuple):
    """A side of a bitext, with the number of its different words."""

    first: Ints
    word: Ids
    num_words: int


def count_links(
    index: PairIndex, links: DirectionalLinks, windows: Windows, num_places: int
) -> tuple[LinkCounts, LinkCounts]:
    """Count the links of target words to source words, and the opposite."""
    src = _Side(index.src_first, index.src_word, len(index.first_pair) - 1)
    tgt = _Side(index.tgt_first, index.tgt_word, len(index.num_tgt))
    return (
        _counts(tgt, src, links.fwd, windows.first[:, 0], num_places),
        _counts(src, tgt, links.rev, windows.first[:, 1], num_places),
    )


def _counts(own: _Side, other: _Side, link: Ids, window: Ints, num_places: int) -> LinkCounts:
    """Count the links of one side's words to the other side's."""
    length, other_length = np.diff(own.first), np.diff(other.first)
    null = own.word[(link < 0) & (other_length[row_of_entry(own.first)] > 0)]
    linked = np.flatnonzero(link >= 0)
    row, position = row_of_entry(own.first)[linked], link[linked].astype(np.int64)
    at = other.first[row] + position
    used = length[row_of_entry(other.first)] > 0
    number = np.minimum(np.bincount(at, minlength=len(other.word))[used], MAX_FERTILITY)
    width = MAX_FERTILITY + 1
    fertility = np.bincount(other.word[used] * np.int64(width) + number, minlength=other.num_words * width)
    # A jump starts from the link before it, the first one from 0.
    before = np.zeros(len(row), np.int64)
    before[1:] = np.where(row[1:] == row[:-1], position[:-1] + 1, 0)
    distance = np.clip(position + 1 - before, -JUMP_LIMIT - 1, JUMP_LIMIT + 1)
    return LinkCounts(
        np.bincount(null, minlength=own.num_words),
        np.bincount(other.word[at], minlength=other.num_words),
        fertility.reshape(other.num_words, width),
        (np.bincount(distance + JUMP_LIMIT + 1, minlength=NUM_JUMPS) + JUMP).astype(np.float64),
        np.bincount(window[other_length[row]] + before, minlength=num_places),
    )


def count_pairs(index: PairIndex, links: DirectionalLinks) -> Ints:
    """The number of links of each word pair in both directions, int64 [P, 2].

    The links may be followed by those of other sentence pairs.
    """
    found: list[Ints] = []
    for first, link in ((index.tgt_first, links.fwd), (index.src_first, links.rev)):
        linked = np.flatnonzero(link[: first[-1]] >= 0)
        row = row_of_entry(first)[linked]
        ends = link[linked], linked - first[row]
        i, j = ends if not found else ends[::-1]
        cell = index.first_cell[row] + i * np.diff(index.tgt_first)[row] + j
        found.append(np.bincount(index.pair[cell], minlength=len(index.pair_tgt)))
    return np.stack(found, axis=1)


def fertility_ratios(count: Ints) -> Floats32:
    """The distribution of fertilities of each word, and of unknown ones, as in ``Fertilities``."""
    anyone = count.sum(axis=0) + ANY_FERTILITY
    rows = np.append(count, np.zeros((1, count.shape[1]), np.int64), axis=0)
    prob = rows + OWN_FERTILITY * anyone / anyone.sum()
    ratio: Floats32 = (prob[:, 1:] / prob[:, :-1]).astype(np.float32)
    return ratio
