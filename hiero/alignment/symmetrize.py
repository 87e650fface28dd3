"""Symmetrise directional alignments; compare alignments (AER)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hiero.alignment.config import METHODS
from hiero.alignment.symmetrize_kernels import symmetrize_kernel
from hiero.bitext.alignments import Alignment, alignment_of
from hiero.core.arrays import Ids, Ints, offsets_of, row_of_entry

if TYPE_CHECKING:
    from hiero.alignment.align import DirectionalLinks
    from hiero.bitext.corpus import Bitext


def combine(bitext: Bitext, links: DirectionalLinks, method: str) -> Alignment:
    """The alignment of a bitext by one of METHODS, or of one direction (``forward``, ``reverse``)."""
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


class Agreement(NamedTuple):
    """Agreement of an alignment with one made by hand (Och and Ney 2003)."""

    num_links: int
    num_gold: int
    num_sure: int  # of the gold links; the others are only possible
    num_in_sure: int
    num_in_possible: int  # sure links are also possible

    @property
    def precision(self) -> float:
        """The share of links that are possible in the gold alignment; 1 without links."""
        return self.num_in_possible / self.num_links if self.num_links else 1.0

    @property
    def recall(self) -> float:
        """The share of sure gold links that were found; 1 without sure links."""
        return self.num_in_sure / self.num_sure if self.num_sure else 1.0

    @property
    def error_rate(self) -> float:
        """The alignment error rate, AER; 0 if there are no links at all."""
        total = self.num_links + self.num_sure
        return 1.0 - (self.num_in_sure + self.num_in_possible) / total if total else 0.0


def score_alignment(hypothesis: Alignment, gold: Alignment) -> Agreement:
    """Compare alignments of the same sentence pairs.

    A link given twice counts once; it is sure if one of them is.
    """
    found, _ = _distinct(hypothesis)
    expected, possible = _distinct(gold)
    sure = {key for key, only_possible in zip(expected, possible, strict=True) if not only_possible}
    all_gold, all_found = set(expected), set(found)
    return Agreement(
        len(all_found), len(all_gold), len(sure), len(all_found & sure), len(all_found & all_gold)
    )


def _distinct(alignment: Alignment) -> tuple[list[tuple[int, int, int]], list[bool]]:
    """Links as (sentence pair, source, target), with whether each is only possible."""
    pair = row_of_entry(alignment.first)
    keys = zip(pair.tolist(), *alignment.link.T.tolist(), strict=True)
    return list(keys), alignment.possible.tolist()
