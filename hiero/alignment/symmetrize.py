"""Symmetrise directional alignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hiero.alignment.config import METHODS
from hiero.alignment.symmetrize_kernels import symmetrize_kernel
from hiero.bitext.alignments import Alignment, alignment_of
from hiero.core.arrays import Ids, Ints, offsets_of, row_of_entry

if TYPE_CHECKING:
    from hiero.alignment.align import DirectionalLinks
    from hiero.bitext.corpus import Bitext


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
