"""Word alignments as text: a line per sentence pair, ``i-j`` per link, positions from 0, source first.

Alignments are compared by their agreement with one made by hand, which may distinguish sure from possible
links: ``i-j`` or ``i-j:s`` is sure, ``i?j`` or ``i-j:p`` is possible.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from hiero.bitext.alignments_kernels import format_links_kernel, scan_alignments_kernel
from hiero.core.arrays import Flags, Ids, Ints, read_only, row_of_entry
from hiero.core.errors import FormatError, show
from hiero.core.text import read_chunks

SHOWN_BYTES = 300  # of an invalid link in a message
LINKS_AT_ONCE = 1 << 18
LINK_BYTES = 22  # two numbers of ten digits, a hyphen, a space


class Alignment(NamedTuple):
    """Links of many sentence pairs; read-only.

    first     int64 [S + 1]  links of pair s: first[s] ... first[s + 1] - 1, in the order of the file
    link      int32 [L, 2]   source and target position
    possible  bool [L]       False for sure links
    """

    first: Ints
    link: Ids
    possible: Flags

    @property
    def num_pairs(self) -> int:
        return len(self.first) - 1


def alignment_of(first: Ints, link: Ids) -> Alignment:
    """An alignment of sure links only."""
    return Alignment(read_only(first), read_only(link), read_only(np.zeros(len(link), np.bool_)))


def read_alignment(path: str | Path, *, possible: bool = False) -> Alignment:
    """Read a file of links, plain or gz; ``possible``: whether links may be marked as sure or possible."""
    expected = "i-j, i-j:s, i-j:p or i?j" if possible else "i-j"
    first: list[Ints] = [np.zeros(1, np.int64)]
    link: list[Ids] = [np.zeros((0, 2), np.int32)]
    marked: list[Flags] = [np.zeros(0, np.bool_)]
    num_links = 0
    for chunk in read_chunks(path, what="an alignment"):
        text = np.frombuffer(chunk.data, np.uint8)
        last = np.empty(chunk.data.count(b"\n"), np.int64)
        links = np.empty((len(text) // 4 + 1, 2), np.int32)
        marks = np.empty(len(links), np.bool_)
        found, lines, wrong = scan_alignments_kernel(text, possible, last, links, marks)
        if wrong >= 0:
            token = re.split(rb"[ \t\n]", chunk.data[wrong : wrong + SHOWN_BYTES])[0]
            line = chunk.first_line + lines
            hint = "positions of a source and a target word, from 0"
            raise FormatError(path, line, found=show(token), expected=expected, hint=hint)
        first.append(last + num_links)
        link.append(links[:found].copy())
        marked.append(marks[:found].copy())
        num_links += found
    return Alignment(
        read_only(np.concatenate(first)), read_only(np.concatenate(link)), read_only(np.concatenate(marked))
    )


def check_alignment(alignment: Alignment, src_length: Ints, tgt_length: Ints, path: str | Path) -> None:
    """Refuse an alignment that does not fit a bitext with sentences of these lengths."""
    if alignment.num_pairs != len(src_length):
        line = min(alignment.num_pairs, len(src_length)) + 1
        found = "the end of the file" if alignment.num_pairs < len(src_length) else "another line"
        expected = f"{len(src_length)} lines, one for each sentence pair"
        raise FormatError(path, line, found=found, expected=expected)
    pair = row_of_entry(alignment.first)
    outside = (alignment.link[:, 0] >= src_length[pair]) | (alignment.link[:, 1] >= tgt_length[pair])
    if outside.any():
        k = int(np.argmax(outside))
        s = int(pair[k])
        found = f"link {alignment.link[k, 0]}-{alignment.link[k, 1]}"
        expected = f"positions in {src_length[s]} source words and {tgt_length[s]} target words"
        hint = "positions count from 0, source before target; does the alignment belong to this bitext?"
        raise FormatError(path, s + 1, found=found, expected=expected, hint=hint)


def write_alignment(stream: IO[bytes], first: Ints, link: Ids, begin: int = 0) -> None:
    """Write links, a line per sentence pair, from pair ``begin`` on."""
    num_pairs = len(first) - 1
    while begin < num_pairs:
        # At least one line, and more as long as their links are few enough.
        end = int(np.searchsorted(first, first[begin] + LINKS_AT_ONCE, side="right")) - 1
        end = min(max(end, begin + 1), begin + LINKS_AT_ONCE, num_pairs)
        out = np.empty(int(first[end] - first[begin]) * LINK_BYTES + end - begin, np.uint8)
        used = format_links_kernel(first, link, begin, end, out)
        stream.write(out[:used].tobytes())
        begin = end


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
