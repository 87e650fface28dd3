# mypy: ignore-errors
"""List the n-grams of ARPA files; back-off weights of given probabilities."""

from __future__ import annotations

import numpy as np

from hiero.core.jit import kernel
from hiero.core.scan_kernels import next_token
from hiero.core.symbol_kernels import find_bytes
from hiero.lm.arpa_kernels import BACKSLASH, arpa_line_end

ZERO, NINE = 48, 57


@kernel
def list_ngrams_kernel(data, words, section, out_length, out_word):
    """List the n-grams of two or more words in lines of an ARPA file that is known to be valid.

    data        uint8 [.]       whole lines
    words       WordTable
    section     length of the n-grams at the beginning; 0 outside of sections
    out_length  int32 [R]       written; words of each n-gram. R >= the number of lines is enough
    out_word    int32 [R, N]    written; their ids, 0 for <unk>

    Returns the number of n-grams, and the section at the end.
    O(bytes).  Twin: tests/naive/lm.py::read_arpa.
    """
    used, start = 0, 0
    while start < data.shape[0]:
        end, following = arpa_line_end(data, start)
        begin, stop = next_token(data, start, end)
        if begin < end and data[begin] == BACKSLASH:
            digit = data[begin + 1]
            section = np.int64(digit - ZERO) if ZERO < digit <= NINE else np.int64(0)
        elif begin < end and section > 1:
            out_length[used] = section
            for w in range(section):
                begin, stop = next_token(data, stop, end)
                out_word[used, w] = max(find_bytes(words, data, begin, stop), 0)
            used += 1
        start = following
    return used, section


@kernel
def backoffs_kernel(words, prob, lower, bos, out_context, out_backoff):
    """Back-off weights that make probabilities after each context add up to one.

    words        int32 [R, n]    n-grams, ordered by context
    prob         float64 [R]     probability of the last word in its context
    lower        float64 [R]     the same in the context without its first word
    bos          the word that is never predicted
    out_context  int64 [C]       written; a row with the context
    out_backoff  float64 [C]     written; 1 if the n-grams leave nothing to distribute in the shorter context

    Returns the number of contexts. O(R n).  Twin: tests/naive/lm.py::backoffs.
    """
    used, row = 0, 0
    length = words.shape[1]
    while row < words.shape[0]:
        first, left, left_lower = row, 1.0, 1.0
        same = True
        while same:
            if words[row, length - 1] != bos:
                left -= prob[row]
                left_lower -= lower[row]
            row += 1
            same = row < words.shape[0]
            for w in range(length - 1):
                same = same and words[row, w] == words[first, w]
        out_context[used] = first
        out_backoff[used] = max(left, 0.0) / left_lower if left_lower > 1e-9 else 1.0
        used += 1
    return used
