# mypy: ignore-errors
"""One rule a line, ``[LHS] ||| source ||| target ||| features ||| alignment``: cdec's syntax, and Joshua's.

Each kernel reads one field of all rules of a buffer; a cursor per rule is the position reached so far. (A
kernel per rule would be more obvious, but numba counts references to every array at every call, which took
four times as long as the reading.) Each returns ``(status, rules, first byte, last byte, ...)``: the number
of rules read, and, unless the status is OK, the error and the bytes of the next rule that have it. Later
kernels then read only the rules before that one, so that the error reported is the first of the file. Strings
are left as tokens, that is, pairs of byte positions, for ``scan_kernels.intern_tokens``. Messages are in
``reader.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Floats, Ids, Ints
from hiero.core.jit import kernel, leaf
from hiero.core.records import MOST_GAPS
from hiero.core.scan_kernels import (
    BAR,
    EQUALS,
    HYPHEN,
    OPEN,
    RETURN,
    SEMICOLON,
    SPACE,
    TAB,
    gap_shape,
    is_bars,
    next_token,
    scan_digits,
    scan_number,
    small_number,
)
from hiero.core.symbol_kernels import gap, gap_index, gap_label, is_gap

MAX_SYMBOLS = 200  # on one side, as in cdec
MAX_FEATURES = 10_000  # of one rule, as in cdec

OK = 0
BAD_LHS, INDENTED, NO_TARGET, EMPTY_SOURCE = 1, 2, 3, 4
TOO_MANY_GAPS, INDEX_ORDER, TOO_MANY_SYMBOLS = 5, 6, 7
NO_SUCH_GAP, GAP_TWICE, LABEL_DIFFERS, GAP_MISSING = 8, 9, 10, 11
BAD_VALUE, NOT_FINITE, NO_NAME, TOO_MANY_FEATURES = 12, 13, 14, 15
BAD_LINK, LINK_RANGE, LINK_TO_GAP = 16, 17, 18
NO_VALUE, NO_MOSES_LHS, NOT_LINKED = 19, 20, 21


class ScannedRules(NamedTuple):
    """The rules of one buffer as scanned. All arrays are written by the kernels, some longer than needed.

    line           int32 [R]       its number in the buffer, from 0
    at             int32 [R]       first byte not yet read
    end            int32 [R]       end of the line
    lhs            int32 [R]       a label token
    first_src      int64 [R + 1]
    src            int32           word tokens >= 0, and gaps as in ``Rules`` with a label token as the label
    first_tgt      int64 [R + 1]
    tgt            int32
    first_feature  int64 [R + 1]
    name           int32           a name token, or -1 - k for the k-th unlabelled value
    value          float64
    unsure         int32 [., 3]    features to read again: position, first and last byte of the number
    first_link     int64 [R + 1]
    link           int16 [., 2]    links between words
    word_token, label_token, name_token   int32 [., 2]
    """

    line: Ids
    at: Ids
    end: Ids
    lhs: Ids
    first_src: Ints
    src: Ids
    first_tgt: Ints
    tgt: Ids
    first_feature: Ints
    name: Ids
    value: Floats
    unsure: Ids
    first_link: Ints
    link: npt.NDArray[np.int16]
    word_token: Ids
    label_token: Ids
    name_token: Ids


def new_scanned_rules(num_lines: int, num_bytes: int) -> ScannedRules:
    """Empty ``ScannedRules``, large enough for any such lines; memory that is not written costs nothing."""
    most = num_bytes // 2 + 2

    def rows() -> Ids:
        return np.empty(num_lines, np.int32)

    def offsets() -> Ints:
        return np.zeros(num_lines + 1, np.int64)

    def tokens() -> Ids:
        return np.empty((most, 2), np.int32)

    return ScannedRules(
        line=rows(),
        at=rows(),
        end=rows(),
        lhs=rows(),
        first_src=offsets(),
        src=np.empty(most, np.int32),
        first_tgt=offsets(),
        tgt=np.empty(most, np.int32),
        first_feature=offsets(),
        name=np.empty(most, np.int32),
        value=np.empty(most, np.float64),
        unsure=np.empty((most, 3), np.int32),
        first_link=offsets(),
        link=np.empty((most, 2), np.int16),
        word_token=tokens(),
        label_token=tokens(),
        name_token=tokens(),
    )


@kernel
def scan_lines_kernel(data, line_end, out_line, out_at, out_end):
    """Find the lines that hold a rule: all except blank ones.

    data      uint8 [N]  whole lines
    line_end  int64 [L]  positions of the newlines
    out_line  int32 [L]  written; number of the line that holds a rule
    out_at    int32 [L]  written; its first byte
    out_end   int32 [L]  written; its end

    Returns the number of rules. O(N).  Twin: tests/naive/grammar.py::read_rules.
    """
    num_rules = 0
    end = np.int64(-1)
    for k in range(line_end.shape[0]):
        start = end + 1
        end = np.int64(line_end[k])
        # Files written on Windows: the carriage return belongs to the line end.
        last = end - 1 if end > start and data[end - 1] == RETURN else end
        first, stop = next_token(data, start, last)
        if first < stop:
            out_line[num_rules] = k
            out_at[num_rules] = start
            out_end[num_rules] = last
            num_rules += 1
    return num_rules


@kernel
def scan_lhs_kernel(data, num_rules, end, at, out_lhs, out_label_token):
    """Read ``[LABEL] |||``.

    data             uint8 [N]
    num_rules        rules to read
    end, at          int32 [R]     ``at`` is written
    out_lhs          int32 [R]     written: label token r for rule r
    out_label_token  int32 [., 2]  written from 0 on

    Returns (status, rules, first byte, last byte). O(N).  Twin: tests/naive/grammar.py::read_rules.
    """
    for r in range(num_rules):
        start, last = np.int64(at[r]), np.int64(end[r])
        first, stop = next_token(data, start, last)
        label_end, index = gap_shape(data, first, stop)
        next_first, next_stop = next_token(data, stop, last)
        if first > start:
            return INDENTED, r, first, stop
        if label_end < 0 or index > 0 or not is_bars(data, next_first, next_stop):
            return BAD_LHS, r, first, next_stop
        out_label_token[r, 0] = first + 1
        out_label_token[r, 1] = label_end
        out_lhs[r] = r
        at[r] = next_stop
    return OK, num_rules, np.int64(0), np.int64(0)


@kernel
def scan_source_kernel(data, num_rules, end, at, out_first_src, out_src, out_word_token, out_label_token):
    """Read source sides, up to and including ``|||``.

    data             uint8 [N]
    num_rules        rules to read; as many label tokens are there already
    end, at          int32 [R]      ``at`` is written
    out_first_src    int64 [R + 1]  written
    out_src          int32          written
    out_word_token   int32 [., 2]   written from 0 on
    out_label_token  int32 [., 2]   written from ``num_rules`` on

    Returns (status, rules, first byte, last byte, words, labels). O(N).
    Twin: tests/naive/grammar.py::read_rules.
    """
    used, num_words, num_labels = 0, 0, num_rules
    for r in range(num_rules):
        stop, last = np.int64(at[r]), np.int64(end[r])
        num_gaps = 0
        while True:
            first, stop = next_token(data, stop, last)
            if first == stop:
                return NO_TARGET, r, first, stop, num_words, num_labels
            if is_bars(data, first, stop):
                break
            if used - out_first_src[r] == MAX_SYMBOLS:
                return TOO_MANY_SYMBOLS, r, first, stop, num_words, num_labels
            label_end, index = gap_shape(data, first, stop)
            if label_end < 0:
                out_word_token[num_words, 0] = first
                out_word_token[num_words, 1] = stop
                out_src[used] = num_words
                num_words += 1
            else:
                num_gaps += 1
                if num_gaps > MOST_GAPS:
                    return TOO_MANY_GAPS, r, first, stop, num_words, num_labels
                if index > 0 and index != num_gaps:
                    return INDEX_ORDER, r, first, stop, num_words, num_labels
                out_label_token[num_labels, 0] = first + 1
                out_label_token[num_labels, 1] = label_end
                out_src[used] = gap(num_labels, num_gaps)
                num_labels += 1
            used += 1
        if used == out_first_src[r]:
            return EMPTY_SOURCE, r, first, stop, num_words, num_labels
        out_first_src[r + 1] = used
        at[r] = stop
    return OK, num_rules, np.int64(0), np.int64(0), num_words, num_labels


@leaf
def target_gap(data, first, stop, gaps, num_gaps, label_token):
    """Resolve a target token that starts with a bracket: (status, source gap; 0 for a word).

    gaps  int64 [.]  those of the source side, gap k at place k; 0 where it is on the target side already
    """
    label_end, index = gap_shape(data, first, stop)
    if label_end < 0:
        return OK, 0
    labelled = index > 0
    if not labelled:
        index = small_number(data, first + 1, label_end)
        # As in cdec, [foo] on a target side is a word.
        if index == 0:
            return OK, 0
    if index > num_gaps:
        return NO_SUCH_GAP, 0
    symbol = gaps[index]
    if symbol == 0:
        return GAP_TWICE, 0
    if labelled:
        start, length = label_token[gap_label(symbol), 0], label_end - first - 1
        if label_token[gap_label(symbol), 1] - start != length:
            return LABEL_DIFFERS, 0
        for k in range(length):
            if data[start + k] != data[first + 1 + k]:
                return LABEL_DIFFERS, 0
    return OK, symbol


@kernel
def scan_target_kernel(
    data, num_rules, end, at, first_src, src, label_token, num_words, out_first_tgt, out_tgt, out_word_token
):
    """Read target sides, up to and including ``|||`` or to the end of the line. They may be empty.

    data            uint8 [N]
    end, at         int32 [R]      ``at`` is written
    first_src, src, label_token    as ``scan_source_kernel`` left them
    out_first_tgt   int64 [R + 1]  written
    out_tgt         int32          written
    out_word_token  int32 [., 2]   written from ``num_words`` on

    Returns (status, rules, first byte, last byte, words). O(N).  Twin: tests/naive/grammar.py::read_rules.
    """
    used = 0
    gaps = np.zeros(MOST_GAPS + 1, np.int64)
    for r in range(num_rules):
        start, last = np.int64(at[r]), np.int64(end[r])
        num_gaps = 0
        for k in range(first_src[r], first_src[r + 1]):
            if is_gap(src[k]):
                num_gaps += 1
                gaps[num_gaps] = src[k]
        missing = num_gaps
        stop = start
        while True:
            first, stop = next_token(data, stop, last)
            if first == stop or is_bars(data, first, stop):
                break
            if used - out_first_tgt[r] == MAX_SYMBOLS:
                return TOO_MANY_SYMBOLS, r, first, stop, num_words
            status, symbol = OK, 0
            if data[first] == OPEN:
                status, symbol = target_gap(data, first, stop, gaps, num_gaps, label_token)
            if status != OK:
                return status, r, first, stop, num_words
            if symbol < 0:
                gaps[gap_index(symbol)] = 0
                missing -= 1
            else:
                out_word_token[num_words, 0] = first
                out_word_token[num_words, 1] = stop
                symbol = num_words
                num_words += 1
            out_tgt[used] = symbol
            used += 1
        if missing > 0:
            return GAP_MISSING, r, start, first, num_words
        out_first_tgt[r + 1] = used
        at[r] = stop
    return OK, num_rules, np.int64(0), np.int64(0), num_words


@kernel
def share_ids_kernel(out_symbol, words, labels):
    """Replace tokens by shared ids, in place.

    out_symbol  int32 [N]  word tokens >= 0, and gaps whose label is a label token; written
    words       int32 [W]  id of a word token in Symbols.words
    labels      int32 [L]  id of a label token in Symbols.labels

    O(N).  Twin: tests/naive/grammar.py::read_rules, where a symbol is a string.
    """
    for k in range(out_symbol.shape[0]):
        symbol = out_symbol[k]
        if is_gap(symbol):
            out_symbol[k] = gap(labels[gap_label(symbol)], gap_index(symbol))
        else:
            out_symbol[k] = words[symbol]


@leaf
def ends_value(data, at, end):
    return at == end or data[at] == SPACE or data[at] == TAB or data[at] == SEMICOLON


@kernel
def scan_features_kernel(
    data,
    num_rules,
    count_all,
    end,
    at,
    powers,
    out_first_feature,
    out_name,
    out_value,
    out_name_token,
    out_unsure,
):
    """Read feature values, up to and including ``|||`` or to the end of the line.

    data               uint8 [N]
    count_all          whether k of an unlabelled value also counts the labelled values before it
    end, at            int32 [R]      ``at`` is written
    powers             float64 [309]  10 ** k
    out_first_feature  int64 [R + 1]  written
    out_name           int32 [F]      written: name tokens, or -1 - k for the k-th unlabelled value
    out_value          float64 [F]    written
    out_name_token     int32 [., 2]   written
    out_unsure         int32 [., 3]   written: values that ``scan_number`` could not read exactly

    Returns (status, rules, first byte, last byte, names, unsure). O(N).
    Twin: tests/naive/grammar.py::read_rules.
    """
    used, num_names, num_unsure = 0, 0, 0
    for r in range(num_rules):
        here, last = np.int64(at[r]), np.int64(end[r])
        num_unlabelled = 0
        while True:
            while here < last and ends_value(data, here, last):
                here += 1
            if here == last:
                break
            if data[here] == BAR:
                first, stop = next_token(data, here, last)
                if is_bars(data, first, stop):
                    here = stop
                    break
            start = here
            while not ends_value(data, here, last) and data[here] != EQUALS:
                here += 1
            labelled = here < last and data[here] == EQUALS
            first = here + 1 if labelled else start
            stop, value, exact = scan_number(data, first, last, powers)
            status = OK
            if used - out_first_feature[r] == MAX_FEATURES:
                status = TOO_MANY_FEATURES
            elif labelled and here == start:
                first, status = start, NO_NAME
            elif stop == first or not ends_value(data, stop, last):
                status = BAD_VALUE
            elif np.isinf(np.float32(value)):
                status = NOT_FINITE
            if status != OK:
                return status, r, first, next_token(data, first, last)[1], num_names, num_unsure
            if not labelled:
                out_name[used] = -1 - (used - out_first_feature[r] if count_all else num_unlabelled)
                num_unlabelled += 1
            else:
                out_name[used] = num_names
                out_name_token[num_names, 0] = start
                out_name_token[num_names, 1] = here
                num_names += 1
            if not exact:
                out_unsure[num_unsure, 0] = used
                out_unsure[num_unsure, 1] = first
                out_unsure[num_unsure, 2] = stop
                num_unsure += 1
            out_value[used] = value
            used += 1
            here = stop
        out_first_feature[r + 1] = used
        at[r] = here
    return OK, num_rules, np.int64(0), np.int64(0), num_names, num_unsure


@leaf
def scan_link(data, start, end):
    """``i-j``: (whether it is valid, i, j). Positions with too many digits for an int64 are invalid."""
    middle, i, _, more = scan_digits(data, start, end, np.int64(0), 0)
    if more > 0 or middle in (start, end) or data[middle] != HYPHEN:
        return False, np.int64(0), np.int64(0)
    stop, j, _, more = scan_digits(data, middle + 1, end, np.int64(0), 0)
    return more == 0 and stop == end and stop > middle + 1, i, j


@kernel
def scan_rule_links_kernel(
    data, num_rules, end, at, first_src, src, first_tgt, tgt, out_first_link, out_link
):
    """Read ``i-j`` alignment links, up to ``|||`` or to the end of the line. Positions count gaps.

    data            uint8 [N]
    end, at         int32 [R]
    first_src, src, first_tgt, tgt   the sides of the rules
    out_first_link  int64 [R + 1]  written
    out_link        int16 [., 2]   written; links between gaps, which are redundant, are left out

    Returns (status, rules, first byte, last byte). O(N).  Twin: tests/naive/grammar.py::read_rules.
    """
    used = 0
    for r in range(num_rules):
        stop, last = np.int64(at[r]), np.int64(end[r])
        num_src = first_src[r + 1] - first_src[r]
        num_tgt = first_tgt[r + 1] - first_tgt[r]
        while True:
            first, stop = next_token(data, stop, last)
            if first == stop or is_bars(data, first, stop):
                break
            fine, i, j = scan_link(data, first, stop)
            if not fine:
                return BAD_LINK, r, first, stop
            if i >= num_src or j >= num_tgt:
                return LINK_RANGE, r, first, stop
            from_gap = is_gap(src[first_src[r] + i])
            if from_gap != is_gap(tgt[first_tgt[r] + j]):
                return LINK_TO_GAP, r, first, stop
            if not from_gap:
                out_link[used, 0] = i
                out_link[used, 1] = j
                used += 1
        out_first_link[r + 1] = used
    return OK, num_rules, np.int64(0), np.int64(0)


@kernel
def split_features_kernel(
    first_feature,
    name,
    value,
    column_of,
    place_of,
    out_dense,
    out_first_sparse,
    out_sparse_name,
    out_sparse_value,
):
    """Write features as dense rows and sparse rows.

    first_feature     int64 [R + 1]  features of rule r: name[first_feature[r]:first_feature[r + 1]]
    name              int32 [F]
    value             float32 [F]
    column_of         int64 [N]      dense column of a name, or -1
    place_of          int64 [N]      scratch, all -1: position of a name of the current rule in the output
    out_dense         float32 [R, D] all 0; written
    out_first_sparse  int64 [R + 1]  written
    out_sparse_name   int32 [S]      written
    out_sparse_value  float32 [S]    written

    O(F).  Twin: tests/naive/grammar.py::split_features.
    """
    used = 0
    for r in range(first_feature.shape[0] - 1):
        out_first_sparse[r] = used
        for k in range(first_feature[r], first_feature[r + 1]):
            column = column_of[name[k]]
            if column >= 0:
                out_dense[r, column] = value[k]
            elif place_of[name[k]] >= out_first_sparse[r]:
                out_sparse_value[place_of[name[k]]] = value[k]
            else:
                place_of[name[k]] = used
                out_sparse_name[used] = name[k]
                out_sparse_value[used] = value[k]
                used += 1
    out_first_sparse[first_feature.shape[0] - 1] = used
