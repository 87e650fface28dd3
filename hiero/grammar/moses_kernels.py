# mypy: ignore-errors
"""Scanners of the fields of Moses' rule tables."""

from __future__ import annotations

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.records import MOST_GAPS
from hiero.core.scan_kernels import CLOSE, OPEN, gap_shape, is_bars, next_token, scan_number
from hiero.core.symbol_kernels import gap, gap_index, gap_label, is_gap
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
    scan_link,
)


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
                if num_gaps > MOST_GAPS:
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


@kernel
def scan_phrase_kernel(data, num_rules, source, end, at, num_words, out_first, out_symbol, out_word_token):
    """Read one side of phrases, words only, up to and including ``|||``.

    data            uint8 [N]
    source          whether it is the source side, which must not be empty
    end, at         int32 [R]      ``at`` is written
    out_first       int64 [R + 1]  written
    out_symbol      int32          written
    out_word_token  int32 [., 2]   written from ``num_words`` on

    Returns (status, rules, first byte, last byte, words). O(N).
    Twin: tests/naive/grammar.py::read_phrases.
    """
    used = 0
    for r in range(num_rules):
        stop, last = np.int64(at[r]), np.int64(end[r])
        while True:
            first, stop = next_token(data, stop, last)
            if first == stop:
                return NO_TARGET, r, first, stop, num_words
            if is_bars(data, first, stop):
                break
            if used - out_first[r] == MAX_SYMBOLS:
                return TOO_MANY_SYMBOLS, r, first, stop, num_words
            out_word_token[num_words, 0] = first
            out_word_token[num_words, 1] = stop
            out_symbol[used] = num_words
            num_words += 1
            used += 1
        if source and used == out_first[r]:
            return EMPTY_SOURCE, r, first, stop, num_words
        out_first[r + 1] = used
        at[r] = stop
    return OK, num_rules, np.int64(0), np.int64(0), num_words


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
