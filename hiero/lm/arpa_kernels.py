# mypy: ignore-errors
"""Scan the lines of an ARPA file into the arrays of a model."""

from __future__ import annotations

import numpy as np

from hiero.core.jit import kernel
from hiero.core.records import MAX_ORDER
from hiero.core.scan_kernels import RETURN, next_token, scan_number
from hiero.core.symbol_kernels import find_bytes
from hiero.lm.table_kernels import SPARE, add_ngram, has_room

BACKSLASH, LINE_END = 92, 10

# Why a kernel stopped.
END_OF_DATA, END_OF_SECTION, NO_ROOM, NOT_A_NUMBER, NOT_FINITE, POSITIVE, TOO_FEW_WORDS, TOO_MANY_WORDS = (
    range(8)
)
UNKNOWN_WORD, LISTED_TWICE, LONGEST_BACKOFF = range(8, 11)

# Position of a kernel: the first byte of a line, lines and n-grams so far, and the invalid token.
AT, LINES, COUNT, BAD_START, BAD_END = range(5)


@kernel
def scan_arpa_weight(data, start, end, powers):
    """A number of an ARPA file that fills the whole token, as float32; and 0 or an error status."""
    stop, value, _ = scan_number(data, start, end, powers)
    weight = np.float32(value)
    if stop != end or start == end:
        return weight, NOT_A_NUMBER
    return weight, 0 if np.isfinite(weight) else NOT_FINITE


@kernel
def scan_entry(data, start, end, length, is_longest, powers, state, out_span):
    """Scan a line: (status, 0 if valid; log10 probability; back-off). Words: out_span int64 [., 2]."""
    backoff = np.float32(-0.0)
    begin, stop = next_token(data, start, end)
    prob, status = scan_arpa_weight(data, begin, stop, powers)
    if status == 0 and prob > 0.0:
        status = POSITIVE
    for w in range(length):
        if status == 0:
            begin, stop = next_token(data, stop, end)
            out_span[w, 0], out_span[w, 1] = begin, stop
            if begin == stop:
                begin, status = start, TOO_FEW_WORDS
    if status == 0:
        begin, stop = next_token(data, stop, end)
        if begin < stop:
            backoff, status = scan_arpa_weight(data, begin, stop, powers)
            # A word in the place of the back-off is one word too many.
            if status == NOT_A_NUMBER or next_token(data, stop, end)[0] < end:
                begin, stop, status = start, end, TOO_MANY_WORDS
            elif status == 0 and is_longest and backoff != 0.0:
                status = LONGEST_BACKOFF
    state[BAD_START], state[BAD_END] = begin, stop
    return status, prob, backoff


@kernel
def arpa_line_end(data, start):
    """The end of the text of a line of an ARPA file, without LF or CR LF, and the start of the next line."""
    at = start
    while data[at] != LINE_END:
        at += 1
    if at > start and data[at - 1] == RETURN:
        return at - 1, at + 1
    return at, at + 1


@kernel
def is_unknown(data, start, end):
    """Whether a word is ``<unk>`` or, as some toolkits write, ``<UNK>``."""
    if end - start != 5 or data[start] != 60 or data[start + 4] != 62:
        return False
    small = data[start + 1] == 117 and data[start + 2] == 110 and data[start + 3] == 107
    large = data[start + 1] == 85 and data[start + 2] == 78 and data[start + 3] == 75
    return small or large


@kernel
def read_unigrams_kernel(
    data, is_longest, powers, state, out_pool, out_end, out_line, out_weight, out_unknown
):
    """Read lines of 1-grams from state[AT] on; returns (why it stopped, number of words written).

    data         uint8 [.]       whole lines
    is_longest   whether there are no 2-grams
    powers       float64 [309]   see ``scan_number``
    state        int64 [5]       read and written
    out_pool     uint8 [.]       written; the words except <unk> end to end; as long as the data is enough
    out_end      int64 [.]       written; end of word w in it; a quarter of the bytes is enough
    out_line     int64 [.]       written; its line in ``data``, from 0
    out_weight   float32 [., 2]  written; its log10 probability and back-off
    out_unknown  float32 [2]     written; those of <unk>, if it is met

    O(bytes).  Twin: tests/naive/lm.py::read_arpa.
    """
    span = np.zeros((1, 2), np.int64)
    words, num_bytes = 0, 0
    while state[AT] < data.shape[0]:
        start = state[AT]
        if data[start] == BACKSLASH:
            return END_OF_SECTION, words
        end, following = arpa_line_end(data, start)
        if next_token(data, start, end)[0] < end:
            status, prob, backoff = scan_entry(data, start, end, 1, is_longest, powers, state, span)
            if status != 0:
                return status, words
            state[COUNT] += 1
            if is_unknown(data, span[0, 0], span[0, 1]):
                out_unknown[0] = -np.abs(prob)
                out_unknown[1] = backoff if backoff != 0.0 else np.float32(-0.0)
            else:
                for at in range(span[0, 0], span[0, 1]):
                    out_pool[num_bytes] = data[at]
                    num_bytes += 1
                out_end[words] = num_bytes
                out_line[words] = state[LINES]
                out_weight[words, 0] = -np.abs(prob)
                out_weight[words, 1] = backoff if backoff != 0.0 else np.float32(-0.0)
                words += 1
        state[AT] = following
        state[LINES] += 1
    return END_OF_DATA, words


@kernel
def read_ngrams_kernel(data, length, is_longest, powers, words, state, out_table, out_unigram):
    """Read lines of n-grams of two or more words from state[AT] on; returns why it stopped.

    data         uint8 [.]       whole lines
    length       words of each n-gram
    is_longest   whether this is the highest order
    powers       float64 [309]   see ``scan_number``
    words        WordTable
    state        int64 [5]       read and written
    out_table    OpenTable       written
    out_unigram  float32 [W, 2]  signs are written

    O(bytes) and a few look-ups for each n-gram.  Twin: tests/naive/lm.py::read_arpa.
    """
    span = np.zeros((MAX_ORDER, 2), np.int64)
    ids = np.zeros(MAX_ORDER, np.int64)
    while state[AT] < data.shape[0]:
        start = state[AT]
        if data[start] == BACKSLASH:
            return END_OF_SECTION
        if not has_room(out_table, SPARE):
            return NO_ROOM
        end, following = arpa_line_end(data, start)
        if next_token(data, start, end)[0] < end:
            status, prob, backoff = scan_entry(data, start, end, length, is_longest, powers, state, span)
            if status != 0:
                return status
            for w in range(length):
                ids[w] = find_bytes(words, data, span[w, 0], span[w, 1])
                if ids[w] < 0:
                    if not is_unknown(data, span[w, 0], span[w, 1]):
                        state[BAD_START], state[BAD_END] = span[w, 0], span[w, 1]
                        return UNKNOWN_WORD
                    ids[w] = 0
            if not add_ngram(out_table, out_unigram, ids, length, prob, backoff):
                state[BAD_START], state[BAD_END] = span[0, 0], span[length - 1, 1]
                return LISTED_TWICE
            state[COUNT] += 1
        state[AT] = following
        state[LINES] += 1
    return END_OF_DATA


NEWLINE, TAB, SPACE, MINUS, POINT, ZERO = 10, 9, 32, 45, 46, 48
MAX_DIGITS = 22  # after the point; that many powers of ten are exact


@kernel
def put_arpa_number(value, powers, out, at):
    """Write a number of an ARPA file: the fewest digits that read back as the float32; returns their end.

    For finite numbers below 10 ** 9. At most 22 digits after the point are written.
    """
    if value < 0.0:
        out[at] = MINUS
        at += 1
    size = np.float64(abs(value))
    digits = 0
    scaled = np.rint(size)
    while np.float32(scaled / powers[digits]) != np.float32(size) and digits < MAX_DIGITS:
        digits += 1
        scaled = np.rint(size * powers[digits])
    number = np.int64(scaled)
    length = 1
    while length <= digits or (length < 19 and number >= np.int64(powers[length])):
        length += 1
    end = at + length + (1 if digits > 0 else 0)
    for place in range(length):
        if place == digits and digits > 0:
            out[end - 1 - place] = POINT
        out[end - 1 - place - (1 if place >= digits and digits > 0 else 0)] = ZERO + number % 10
        number //= 10
    return end


@kernel
def write_entries_kernel(table, words, prob, backoff, has_backoff, powers, out):
    """Write lines of n-grams; returns how many bytes they have.

    table        WordTable
    words        int32 [R, n]   ids in the table
    prob         float32 [R]
    backoff      float32 [R]
    has_backoff  whether to write the back-offs
    powers       float64 [23]   of ten
    out          uint8 [.]      written; the bytes of all words, two numbers and n + 2 bytes a line are enough

    O(bytes).  Twin: tests/naive/estimate.py::entries.
    """
    at = 0
    length = words.shape[1]
    for r in range(words.shape[0]):
        at = put_arpa_number(prob[r], powers, out, at)
        for w in range(length):
            out[at] = TAB if w == 0 else SPACE
            at += 1
            word = words[r, w]
            for b in range(table.first[word], table.first[word + 1]):
                out[at] = table.pool[b]
                at += 1
        if has_backoff:
            out[at] = TAB
            at = put_arpa_number(backoff[r], powers, out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at
