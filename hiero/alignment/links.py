"""Links of words by the probabilities of a model: the best of each direction, posteriors, symmetrisation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.alignment.config import METHODS
from hiero.alignment.pair_kernels import LexicalProbs, PairIndex
from hiero.alignment.parameters import PairBlock, Parameters
from hiero.alignment.symmetrize_kernels import symmetrize_kernel
from hiero.bitext.alignments import Alignment, alignment_of
from hiero.bitext.corpus import Bitext
from hiero.core.arrays import Floats, Ids, Ints, offsets_by_row, offsets_of, row_of_entry


class DirectionalLinks(NamedTuple):
    """Directional alignments.

    fwd  int32 [target words]  source position in its sentence that a target word is linked to, or -1
    rev  int32 [source words]  target position that a source word is linked to, or -1
    """

    fwd: Ids
    rev: Ids


class Fitted(NamedTuple):
    """A bitext, and the probabilities by which it is linked.

    parameters  those of its model
    null        probability of NULL
    """

    cells: PairIndex
    lexicon: LexicalProbs
    parameters: Parameters
    null: float

    def block(self, begin: int, end: int) -> PairBlock:
        return PairBlock(self.cells, self.lexicon, self.null, begin, end)


def decode(fitted: Fitted, begin: int, end: int, out: DirectionalLinks) -> None:
    """Write the best links of some sentence pairs."""
    fitted.parameters.decode(fitted.block(begin, end), out.fwd, out.rev)


def decoded(fitted: Fitted) -> DirectionalLinks:
    """The best links of all sentence pairs."""
    index = fitted.cells
    links = DirectionalLinks(np.empty(len(index.tgt_word), np.int32), np.empty(len(index.src_word), np.int32))
    decode(fitted, 0, len(index.src_first) - 1, links)
    return links


class Posteriors(NamedTuple):
    """Posteriors of the links of some sentence pairs.

    link      float64 [cells]  of the link of each cell: the geometric mean of both directions
    log_prob  float64 [S]      mean log-probability of a word, of both sides, given the other side; NaN if
                               a side is empty
    """

    link: Floats
    log_prob: Floats


def posteriors_of(fitted: Fitted, begin: int, end: int) -> Posteriors:
    """The posteriors of some sentence pairs."""
    index = fitted.cells
    prob = np.empty((int(index.first_cell[end] - index.first_cell[begin]), 2))
    log_prob = np.empty((end - begin, 2))
    fitted.parameters.posteriors(fitted.block(begin, end), prob, log_prob)
    words = np.diff(index.src_first[begin : end + 1]) + np.diff(index.tgt_first[begin : end + 1])
    full = np.diff(index.first_cell[begin : end + 1]) > 0
    mean = np.where(full, log_prob.sum(axis=1) / np.maximum(words, 1), np.nan)
    return Posteriors(np.sqrt(prob[:, 0] * prob[:, 1]), mean)


def links_above(fitted: Fitted, begin: int, end: int, threshold: float) -> Alignment:
    """The links of some sentence pairs whose posterior is at least ``threshold``."""
    index = fitted.cells
    cell = np.flatnonzero(posteriors_of(fitted, begin, end).link >= threshold)
    cell += index.first_cell[begin]
    # Of pairs with an empty side, which have no cells, the last one with the same offset is none of these.
    pair = np.searchsorted(index.first_cell[: end + 1], cell, side="right") - 1
    place, length = cell - index.first_cell[pair], np.diff(index.tgt_first)[pair]
    link = np.stack([place // np.maximum(length, 1), place % np.maximum(length, 1)], axis=1)
    return alignment_of(offsets_by_row(pair - begin, end - begin), link.astype(np.int32))


class LinkScores(NamedTuple):
    """Scores of the links of some sentence pairs.

    link      float64 [L]  posterior of each link
    log_prob  float64 [S]  as in Posteriors
    """

    link: Floats
    log_prob: Floats


def score_links(fitted: Fitted, begin: int, end: int, first: Ints, link: Ids) -> LinkScores:
    """The scores of sentence pairs begin ... end - 1 and of their links.

    first, link  as in Alignment, of all pairs
    """
    found = posteriors_of(fitted, begin, end)
    pair = begin + row_of_entry(first[begin : end + 1])
    chosen = link[first[begin] : first[end]].astype(np.int64)
    cell = fitted.cells.first_cell[pair] - fitted.cells.first_cell[begin]
    cell += chosen[:, 0] * np.diff(fitted.cells.tgt_first)[pair] + chosen[:, 1]
    return LinkScores(found.link[cell], found.log_prob)


# ---- symmetrisation


def combine(bitext: Bitext, links: DirectionalLinks, method: str) -> Alignment:
    """Symmetrise the links of both directions by one of METHODS, or take one (``forward``, ``reverse``)."""
    src_first, tgt_first = bitext.src.first, bitext.tgt.first
    if method == "reverse":
        return _reverse(src_first, links.rev)
    method = "none" if method == "forward" else method
    return symmetrize(src_first, tgt_first, links.fwd, links.rev, method)


def symmetrize(src_first: Ints, tgt_first: Ints, fwd: Ids, rev: Ids, method: str) -> Alignment:
    """Combine directional links by one of METHODS; ``none`` is ``fwd`` alone.

    ``fwd`` has the source position linked to each target word, ``rev`` the opposite; -1 is no link.
    """
    first = np.empty(len(src_first), np.int64)
    link = np.empty((len(fwd) + len(rev), 2), np.int32)
    used = symmetrize_kernel(src_first, tgt_first, fwd, rev, METHODS.index(method), first, link)
    return alignment_of(first, link[:used].copy())


def _reverse(src_first: Ints, rev: Ids) -> Alignment:
    linked = rev >= 0
    position = np.arange(len(rev)) - src_first[row_of_entry(src_first)]
    first = offsets_of(linked)[src_first]
    return alignment_of(first, np.stack([position[linked], rev[linked]], axis=1).astype(np.int32))
