"""Look words and n-grams up and score sentences; layout and signs are described in ``hiero.lm.Ngrams``."""

import numpy as np

from hiero.core.jit import kernel, leaf
from hiero.core.symbols import find_bytes
from hiero.lm.model import MAX_ORDER, chain, extends_left, extends_right, find_slot, stored

__all__ = [
    "chain",
    "extends_left",
    "extends_right",
    "find_slot",
    "look_up_kernel",
    "score_sentences_kernel",
    "score_word",
    "stored",
]

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32


@leaf
def score_word(lm, m, line, at, context, backoff, old, new):
    """log10 p(line[at] | the ``context`` words before it), length of the n-gram found, next context.

    line     int64 [.]        word ids; those before ``at`` are the history
    context  number of words of the history that can matter, at most order - 1
    backoff  float32 [.]      read from ``old`` on: back-offs of the last 1 ... context words; written from
                              ``new`` on: the same for the words up to line[at]

    The context returned is minimal: without words that no longer n-gram and no back-off depends on.
    Single precision throughout, added up from the shortest context on, so the sums equal KenLM's.

    O(order) look-ups.  Twin: tests/naive/lm.py::score_word.
    """
    word = line[at]
    row = lm.first_word[m] + word
    prob, weight = lm.unigram[row, 0], lm.unigram[row, 1]
    backoff[new] = weight
    following = 1 if extends_right(weight) else 0
    length = 1
    key = np.uint64(word)
    while length <= context and extends_left(prob):
        key = chain(key, line[at - length])
        slot = find_slot(lm, m, key)
        if slot < 0:
            break
        prob, weight = stored(lm, slot)
        backoff[new + length] = weight
        length += 1
        if extends_right(weight):
            following = length
    score = -np.abs(prob)
    for shorter in range(length, context + 1):
        score += backoff[old + shorter - 1]
    return score, length, following


@kernel
def score_sentences_kernel(lm, m, first, word, markers, out_prob, out_length):
    """Score every word of S sentences with model m.

    lm          Ngrams
    first       int64 [S + 1]   sentence s is word[first[s]:first[s + 1]]
    word        int32 [.]       ids of the model
    markers     whether sentences stand between <s> and </s>; if so, each has one more score, that of </s>
    out_prob    float32 [N]     written; log10 probability of each word in turn; N = words, or words + S
    out_length  int32 [N]       written; words of the n-gram the score comes from, the word itself included

    O(order) look-ups a word.  Twin: tests/naive/lm.py::score_sentences.
    """
    longest = 0
    for s in range(first.shape[0] - 1):
        longest = max(longest, first[s + 1] - first[s])
    line = np.empty(longest + 2, np.int64)
    line[0] = lm.bos[m]
    # The back-offs of the contexts of the last word and of this word, alternating.
    backoff = np.zeros(2 * MAX_ORDER, np.float32)
    at_out = 0
    for s in range(first.shape[0] - 1):
        begin = 1 if markers else 0
        end = begin
        for w in range(first[s], first[s + 1]):
            line[end] = word[w]
            end += 1
        context = 0
        if markers:
            line[end] = lm.eos[m]
            end += 1
            context = min(1, lm.order[m] - 1)
            backoff[0] = lm.unigram[lm.first_word[m] + line[0], 1]
        old = 0
        for at in range(begin, end):
            prob, length, context = score_word(lm, m, line, at, context, backoff, old, MAX_ORDER - old)
            out_prob[at_out] = prob
            out_length[at_out] = length
            at_out += 1
            old = MAX_ORDER - old


@kernel
def look_up_kernel(table, text, out_first, out_word, out_span):
    """Split lines into words and look those up; returns the numbers of lines and words.

    table      WordTable
    text       uint8 [.]         lines end at LF (or CR LF), also the last; words at spaces and tabs
    out_first  int64 [S + 1]     written; words of line s: out_first[s] ... out_first[s + 1] - 1
    out_word   int32 [N]         written; ids in the table, 0 for an unknown word
    out_span   int64 [N, 2]      written; word n is text[out_span[n, 0]:out_span[n, 1]]

    N >= half of the bytes and S >= the number of line ends are always enough.

    O(bytes).  Twin: tests/naive/lm.py::look_up.
    """
    lines, words, start = 0, 0, 0
    out_first[0] = 0
    for at in range(text.shape[0]):
        byte = text[at]
        ends_line = byte == NEWLINE
        if not ends_line and byte != SPACE and byte != TAB:
            continue
        end = at
        if ends_line and end > start and text[end - 1] == RETURN:
            end -= 1
        if end > start:
            out_word[words] = max(find_bytes(table, text, start, end), 0)
            out_span[words, 0] = start
            out_span[words, 1] = end
            words += 1
        start = at + 1
        if ends_line:
            lines += 1
            out_first[lines] = words
    return lines, words
