# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Moses' rule tables: ``[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0``.

A gap is a pair of a source and a target label, of which the second is its category here; the left-hand side
is the last symbol of the target side. The alignment tells which gaps of both sides belong together. Scores
are probabilities, by default converted to cdec's -log10 p. Sparse features, the sixth field, are pairs ``name
value``, read unchanged; counts and properties are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from hiero.core.errors import FormatError
from hiero.core.jit import kernel, leaf
from hiero.core.scanner import CLOSE, OPEN, gap_shape, is_bars, next_token, scan_number
from hiero.core.symbols import MAX_GAPS, Symbols, gap, gap_index, gap_label, is_gap
from hiero.core.text import Chunk, read_chunks
from hiero.grammar.reader import RuleReader, Scan
from hiero.grammar.reader_kernels import (
    BAD_LINK,
    BAD_VALUE,
    EMPTY_SOURCE,
    GAP_MISSING,
    GAP_TWICE,
    LABEL_DIFFERS,
    LINK_RANGE,
    LINK_TO_GAP,
    MAX_SYMBOLS,
    NO_MOSES_LHS,
    NO_TARGET,
    NO_VALUE,
    NOT_FINITE,
    NOT_LINKED,
    OK,
    TOO_MANY_GAPS,
    TOO_MANY_SYMBOLS,
)
from hiero.grammar.rules import RuleTable
from hiero.grammar.tailscan import scan_link

ZERO_COST = 99.0  # for -log10 0, as written by cdec's extractor
LOWEST_SCORE = -100.0  # for ln 0, as in Moses


@leaf
def pair_shape(data, start, end):
    """The start of the target label in ``[SOURCE][TARGET]``, or -1 for any other token."""
    if data[start] != OPEN or data[end - 1] != CLOSE:
        return -1
    middle = start + 1
    while middle < end and data[middle] != CLOSE:
        middle += 1
    if middle == start + 1 or middle + 2 >= end - 1 or data[middle + 1] != OPEN:
        return -1
    return middle + 2 if gap_shape(data, middle + 1, end)[0] == end - 1 else -1


@kernel
def scan_side_kernel(
    data,
    num_rules,
    source,
    end,
    at,
    num_words,
    num_labels,
    out_first,
    out_symbol,
    out_word_token,
    out_label_token,
):
    """Read one side of the rules, up to and including ``|||``, and the left-hand side at its end.

    data             uint8 [N]
    source           whether it is the source side: gaps get their indices, left-hand sides are dropped.
                     On the target side gaps get index 0, and left-hand sides are label tokens 0 ... R - 1.
    end, at          int32 [R]      ``at`` is written
    out_first        int64 [R + 1]  written
    out_symbol       int32          written
    out_word_token   int32 [., 2]   written from ``num_words`` on
    out_label_token  int32 [., 2]   written from ``num_labels`` on

    Returns (status, rules, first byte, last byte, words, labels). O(N).
    Twin: tests/naive/grammar.py::read_moses.
    """
    used = 0
    for r in range(num_rules):
        stop, last = np.int64(at[r]), np.int64(end[r])
        num_gaps = 0
        label_end = -1
        while True:
            first, stop = next_token(data, stop, last)
            if first == stop:
                return NO_TARGET, r, first, stop, num_words, num_labels
            if is_bars(data, first, stop):
                break
            if used - out_first[r] > MAX_SYMBOLS:
                return TOO_MANY_SYMBOLS, r, first, stop, num_words, num_labels
            label = pair_shape(data, first, stop)
            label_end = -1
            if label >= 0:
                num_gaps += 1
                if num_gaps > MAX_GAPS:
                    return TOO_MANY_GAPS, r, first, stop, num_words, num_labels
                out_label_token[num_labels, 0] = label
                out_label_token[num_labels, 1] = stop - 1
                out_symbol[used] = gap(num_labels, num_gaps if source else 0)
                num_labels += 1
            else:
                # The last word may be the left-hand side.
                label_end, index = gap_shape(data, first, stop)
                if index > 0:
                    label_end = -1
                out_word_token[num_words, 0] = first
                out_word_token[num_words, 1] = stop
                out_symbol[used] = num_words
                num_words += 1
            used += 1
        if label_end < 0:
            return NO_MOSES_LHS, r, np.int64(at[r]), first, num_words, num_labels
        used -= 1
        num_words -= 1
        if source:
            if used == out_first[r]:
                return EMPTY_SOURCE, r, first, stop, num_words, num_labels
        else:
            out_label_token[r, 0] = out_word_token[num_words, 0] + 1
            out_label_token[r, 1] = label_end
        out_first[r + 1] = used
        at[r] = stop
    return OK, num_rules, np.int64(0), np.int64(0), num_words, num_labels


@leaf
def same_label(data, label_token, one, other):
    length = label_token[one, 1] - label_token[one, 0]
    if label_token[other, 1] - label_token[other, 0] != length:
        return False
    k = 0
    while k < length and data[label_token[one, 0] + k] == data[label_token[other, 0] + k]:
        k += 1
    return k == length


@leaf
def join_gaps(data, src, tgt, from_src, from_tgt, label_token):
    """Identify target gap tgt[from_tgt] with source gap src[from_src]; returns a status."""
    symbol = src[from_src]
    if gap_index(tgt[from_tgt]) > 0:
        return OK if tgt[from_tgt] == symbol else GAP_TWICE
    if not same_label(data, label_token, gap_label(symbol), gap_label(tgt[from_tgt])):
        return LABEL_DIFFERS
    tgt[from_tgt] = symbol
    return OK


@leaf
def check_gaps(src, tgt, first_src, end_src, first_tgt, end_tgt):
    """Check that target gaps and source gaps are linked one to one; returns a status."""
    num_gaps = 0
    for k in range(first_src, end_src):
        num_gaps += is_gap(src[k])
    seen = 0
    for k in range(first_tgt, end_tgt):
        if is_gap(tgt[k]):
            index = gap_index(tgt[k])
            if index == 0:
                return NOT_LINKED
            if seen & (1 << index):
                return GAP_TWICE
            seen |= 1 << index
            num_gaps -= 1
    return OK if num_gaps == 0 else GAP_MISSING


@kernel
def scan_moses_links_kernel(
    data, num_rules, end, at, first_src, src, first_tgt, tgt, label_token, out_first_link, out_link
):
    """Read alignments, up to and including ``|||`` or to the end of the line; give target gaps their indices.

    data            uint8 [N]
    end, at         int32 [R]      ``at`` is written
    first_src, src, first_tgt, tgt, label_token   the sides; gaps in ``tgt`` are written
    out_first_link  int64 [R + 1]  written
    out_link        int16 [., 2]   written; links between words

    Returns (status, rules, first byte, last byte). O(N).  Twin: tests/naive/grammar.py::read_moses.
    """
    used = 0
    for r in range(num_rules):
        start, last = np.int64(at[r]), np.int64(end[r])
        stop = start
        while True:
            first, stop = next_token(data, stop, last)
            if first == stop or is_bars(data, first, stop):
                break
            fine, i, j = scan_link(data, first, stop)
            status = OK
            if not fine:
                status = BAD_LINK
            elif i >= first_src[r + 1] - first_src[r] or j >= first_tgt[r + 1] - first_tgt[r]:
                status = LINK_RANGE
            elif is_gap(src[first_src[r] + i]) != is_gap(tgt[first_tgt[r] + j]):
                status = LINK_TO_GAP
            elif is_gap(src[first_src[r] + i]):
                status = join_gaps(data, src, tgt, first_src[r] + i, first_tgt[r] + j, label_token)
            else:
                out_link[used, 0] = i
                out_link[used, 1] = j
                used += 1
            if status != OK:
                return status, r, first, stop
        status = check_gaps(src, tgt, first_src[r], first_src[r + 1], first_tgt[r], first_tgt[r + 1])
        if status != OK:
            return status, r, start, first
        out_first_link[r + 1] = used
        at[r] = stop
    return OK, num_rules, np.int64(0), np.int64(0)


@kernel
def scan_sparse_kernel(data, num_rules, end, at, powers, out_count, out_name_token, out_value, out_unsure):
    """Skip the counts and read ``name value`` pairs, up to ``|||`` or to the end of the line.

    data            uint8 [N]
    end, at         int32 [R]
    powers          float64 [309]  10 ** k
    out_count       int64 [R]      written: pairs of a rule
    out_name_token  int32 [., 2]   written: names, in order
    out_value       float64        written: values, in order
    out_unsure      int32 [., 3]   written: values that ``scan_number`` could not read exactly

    Returns (status, rules, first byte, last byte, pairs, unsure). O(N).
    Twin: tests/naive/grammar.py::read_moses.
    """
    used, num_unsure = 0, 0
    for r in range(num_rules):
        stop, last = np.int64(at[r]), np.int64(end[r])
        before = used
        while True:
            first, stop = next_token(data, stop, last)
            if first == stop or is_bars(data, first, stop):
                break
        while True:
            first, stop = next_token(data, stop, last)
            if first == stop or is_bars(data, first, stop):
                break
            out_name_token[used, 0] = first
            out_name_token[used, 1] = stop
            first, stop = next_token(data, stop, last)
            if first == stop or is_bars(data, first, stop):
                return NO_VALUE, r, first, stop, used, num_unsure
            at_end, value, exact = scan_number(data, first, stop, powers)
            if at_end < stop:
                return BAD_VALUE, r, first, stop, used, num_unsure
            if np.isinf(np.float32(value)):
                return NOT_FINITE, r, first, stop, used, num_unsure
            if not exact:
                out_unsure[num_unsure, 0] = used
                out_unsure[num_unsure, 1] = first
                out_unsure[num_unsure, 2] = stop
                num_unsure += 1
            out_value[used] = value
            used += 1
        out_count[r] = used - before
    return OK, num_rules, np.int64(0), np.int64(0), used, num_unsure


class MosesReader(RuleReader):
    def __init__(self, path: str | Path, symbols: Symbols, scale: str, prefix: str) -> None:
        super().__init__(path, symbols)
        self.scale = scale
        self.prefix = prefix.encode()

    def unlabelled(self, k: int) -> bytes:
        return self.prefix + b"%d" % k

    def scan_sides(self, scan: Scan) -> None:
        b = scan.batch
        # The first label tokens are reserved for the left-hand sides, which are read with the target sides.
        b.lhs[:] = np.arange(len(b.lhs))
        num_words, num_labels = 0, scan.num_rules
        for source, first, symbol in ((True, b.first_src, b.src), (False, b.first_tgt, b.tgt)):
            out = first, symbol, b.word_token, b.label_token
            num_words, num_labels = scan.take(
                *scan_side_kernel(scan.data, scan.num_rules, source, b.end, b.at, num_words, num_labels, *out)
            )
        scan.num_words, scan.num_labels = num_words, num_labels

    def scan_rest(self, scan: Scan) -> None:
        b = scan.batch
        self.scan_features(scan)
        sides = b.first_src, b.src, b.first_tgt, b.tgt, b.label_token
        scan.take(
            *scan_moses_links_kernel(scan.data, scan.num_rules, b.end, b.at, *sides, b.first_link, b.link)
        )
        self._scan_sparse(scan)

    def _scan_sparse(self, scan: Scan) -> None:
        b, num_rules = scan.batch, scan.num_rules
        most = len(b.value)
        count = np.zeros(num_rules, np.int64)
        value, unsure = np.empty(most, np.float64), np.empty((most, 3), np.int32)
        out = count, b.name_token[scan.num_names :], value, unsure
        num_pairs, num_unsure = scan.take(
            *scan_sparse_kernel(scan.data, num_rules, b.end, b.at, self.powers, *out)
        )
        if scan.fault is not None or num_pairs == 0:
            return
        for at, first, last in unsure[:num_unsure].tolist():
            value[at] = float(scan.chunk.data[first:last])
        # Scores and sparse features of a rule, one after the other.
        first_score = b.first_feature[: num_rules + 1]
        pairs_before = np.cumsum(count) - count
        score_at = np.arange(first_score[-1]) + np.repeat(pairs_before, np.diff(first_score))
        pair_at = np.arange(num_pairs) + np.repeat(first_score[1:], count)
        name, all_value = (
            np.empty(first_score[-1] + num_pairs, np.int32),
            np.empty(first_score[-1] + num_pairs),
        )
        name[score_at], name[pair_at] = b.name[: first_score[-1]], scan.num_names + np.arange(num_pairs)
        all_value[score_at], all_value[pair_at] = b.value[: first_score[-1]], value[:num_pairs]
        b.first_feature[1 : num_rules + 1] += np.cumsum(count)
        scan.batch = b._replace(name=name, value=all_value)
        scan.num_names += num_pairs

    def convert(self, scan: Scan) -> None:
        if self.scale == "keep":
            return
        b = scan.batch
        used = b.first_feature[scan.num_rules]
        score = np.flatnonzero(b.name[:used] < 0)
        value = b.value[score]
        if (value < 0).any():
            bad = score[np.argmax(value < 0)]
            rule = np.searchsorted(b.first_feature[: scan.num_rules + 1], bad, side="right") - 1
            line = scan.chunk.first_line + int(b.line[rule])
            hint = "use the scale 'keep' for scores that are no probabilities"
            found = f"{b.value[bad]:g}"
            raise FormatError(self.path, line, found=found, expected="a probability", hint=hint)
        with np.errstate(divide="ignore"):
            if self.scale == "cdec":
                b.value[score] = np.minimum(-np.log10(value), ZERO_COST)
            else:
                b.value[score] = np.maximum(np.log(value), LOWEST_SCORE)


def read_moses(
    path: str | Path,
    symbols: Symbols,
    scale: str = "cdec",
    prefix: str = "PhraseModel_",
    progress: Callable[[int], None] | None = None,
    chunks: Iterable[Chunk] | None = None,
) -> RuleTable:
    """Read a rule table, plain or gz.

    ``scale`` is the conversion of a score p: to -log10 p, at most 99 (``cdec``), to ln p, at least -100
    (``moses``), or none (``keep``). The k-th score is called ``prefix`` and k. ``chunks`` are those of
    the file, if it is open already.
    """
    reader = MosesReader(path, symbols, scale, prefix)
    return reader.read(read_chunks(path, what="a rule table") if chunks is None else chunks, progress)
