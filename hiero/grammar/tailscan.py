# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The fields after the sides of a rule: features and alignment. Conventions as in ``rulescan``."""

from __future__ import annotations

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.scanner import (
    BAR,
    EQUALS,
    HYPHEN,
    SEMICOLON,
    SPACE,
    TAB,
    is_bars,
    next_token,
    scan_digits,
    scan_number,
)
from hiero.core.symbols import is_gap
from hiero.grammar.reader_kernels import (
    BAD_LINK,
    BAD_VALUE,
    LINK_RANGE,
    LINK_TO_GAP,
    MAX_FEATURES,
    NO_NAME,
    NOT_FINITE,
    OK,
    TOO_MANY_FEATURES,
)


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
