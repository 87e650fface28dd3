"""Symmetrization of two alignments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.alignment.config import METHODS
from hiero.alignment.links import DirectionalLinks, combine, symmetrize
from hiero.bitext.alignments import Alignment, alignment_of
from tests.naive import align as naive
from tests.worlds.align import bitext_of

Lines = list[list[tuple[int, int]]]


def lines_of(alignment: Alignment) -> Lines:
    ends = alignment.first.tolist()
    links = [(i, j) for i, j in alignment.link.tolist()]
    return [links[begin:end] for begin, end in itertools.pairwise(ends)]


def alignment(lines: Lines, possible: list[bool] | None = None) -> Alignment:
    first = np.append(0, np.cumsum([len(line) for line in lines])).astype(np.int64)
    link = np.array([link for line in lines for link in line], np.int32).reshape(-1, 2)
    made = alignment_of(first, link)
    return made if possible is None else made._replace(possible=np.array(possible, np.bool_))


@st.composite
def directional(draw: st.DrawFn) -> tuple[int, int, list[int], list[int]]:
    """Words of both sides, and links in the format of kernels."""
    n, m = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    fwd = draw(st.lists(st.integers(-1, n - 1), min_size=m, max_size=m))
    rev = draw(st.lists(st.integers(-1, m - 1), min_size=n, max_size=n))
    return n, m, fwd, rev


@given(st.lists(directional(), max_size=4), st.sampled_from(METHODS))
def test_methods_against_their_definition(
    drawn: list[tuple[int, int, list[int], list[int]]], method: str
) -> None:
    src_first = np.append(0, np.cumsum([n for n, _, _, _ in drawn])).astype(np.int64)
    tgt_first = np.append(0, np.cumsum([m for _, m, _, _ in drawn])).astype(np.int64)
    fwd = np.array([i for _, _, links, _ in drawn for i in links], np.int32)
    rev = np.array([j for _, _, _, links in drawn for j in links], np.int32)
    expected = [
        naive.symmetrize(
            n,
            m,
            {(i, j) for j, i in enumerate(links) if i >= 0},
            {(i, j) for i, j in enumerate(back) if j >= 0},
            method,
        )
        for n, m, links, back in drawn
    ]
    assert lines_of(symmetrize(src_first, tgt_first, fwd, rev, method)) == expected


# Source positions of target words 0 ... 4, and target positions of source words 0 ... 4. Both agree on 0-0
# and 3-3; 1-0 and 0-1 touch 0-0; 4-1 stands alone and links two words without links but for 0-1.
FWD, REV = [0, 0, -1, 3, 4], [0, 0, -1, 3, 2]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("none", [(0, 0), (0, 1), (3, 3), (4, 4)]),
        ("forward", [(0, 0), (0, 1), (3, 3), (4, 4)]),
        ("reverse", [(0, 0), (1, 0), (3, 3), (4, 2)]),
        ("intersection", [(0, 0), (3, 3)]),
        ("union", [(0, 0), (0, 1), (1, 0), (3, 3), (4, 2), (4, 4)]),
        # 4-2 touches 3-3 across and comes first; 4-4 then still links target word 4.
        ("grow-diag", [(0, 0), (0, 1), (1, 0), (3, 3), (4, 2), (4, 4)]),
    ],
)
def test_small_example(method: str, expected: list[tuple[int, int]]) -> None:
    bitext = bitext_of([([0, 1, 2, 3, 0], [0, 1, 2, 3, 0])])
    links = DirectionalLinks(np.array(FWD, np.int32), np.array(REV, np.int32))
    assert lines_of(combine(bitext, links, method)) == [expected]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("grow-diag", [(0, 0)]),
        ("grow-diag-final-and", [(0, 0), (2, 2)]),
        ("grow-diag-final", [(0, 0), (0, 3), (2, 2)]),
        ("union", [(0, 0), (0, 3), (2, 2)]),
    ],
)
def test_isolated_links(method: str, expected: list[tuple[int, int]]) -> None:
    bitext = bitext_of([([0, 1, 2], [0, 1, 2, 3])])
    links = DirectionalLinks(np.array([0, -1, 2, 0], np.int32), np.array([0, -1, -1], np.int32))
    assert lines_of(combine(bitext, links, method)) == [expected]
