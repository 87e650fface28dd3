# mypy: ignore-errors
"""Modified Kneser-Ney smoothing of sorted n-grams.

Definition: Chen and Goodman (1998). Estimation by sorting: Heafield et al. (2013). Pruning as in KenLM.

An n-gram is packed as a row, uint64 [C], so that equal columns are equal words and a comparison of rows is
one of numbers. The *last* word comes first ("suffix order"): all n-grams with the same ending are adjacent,
in the order of that ending among the shorter n-grams. Word ids 0, 1 and 2 are <unk>, <s> and </s>.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Hashes, Ints
from hiero.core.jit import kernel, leaf
from hiero.core.scan_kernels import next_token
from hiero.core.symbol_kernels import find_bytes, probe_bytes
from hiero.lm.arpa_kernels import BACKSLASH, arpa_line_end

UNK, BOS, EOS = 0, 1, 2
NUM_SPECIAL = 3
NUL, TAB, NEWLINE, RETURN, SPACE = 0, 9, 10, 13, 32

PACKED, NO_ROOM, SPECIAL = range(3)  # why a kernel returned


class Packing(NamedTuple):
    """Layout of the words of an n-gram in the columns of a row; word s is the s-th from the end.

    column  int64 [N]     of word s
    shift   uint64 [N]    number of bits to its right in that column
    mask    uint64 [1]    the bits of one word
    ending  uint64 [N]    the bits of words 0 ... s in column[s]
    """

    column: Ints
    shift: Hashes
    mask: Hashes
    ending: Hashes


def ngram_packing(order: int, num_words: int) -> Packing:
    """The packing of n-grams in estimation: as many words as fit into a column, from its highest bit on."""
    bits = max(1, (num_words - 1).bit_length())
    share = 64 // bits
    place = np.arange(order)
    shift = (64 - bits * (place % share + 1)).astype(np.uint64)
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    return Packing(place // share, shift, np.array([(1 << bits) - 1], np.uint64), (ones >> shift) << shift)


@leaf
def word_at(packing, rows, r, s):
    """Word s, from the end, of row r."""
    return np.int64((rows[r, packing.column[s]] >> packing.shift[s]) & packing.mask[0])


@leaf
def put_word(packing, out_rows, r, s, word):
    """Enter word s into row r, where its bits must be zero."""
    out_rows[r, packing.column[s]] |= np.uint64(word) << packing.shift[s]


@leaf
def is_upper_unknown(data, start, end):
    """``<UNK>``: readers of models treat it as <unk>."""
    return (
        end - start == 5
        and data[start] == 60
        and data[start + 1] == 85
        and data[start + 2] == 78
        and data[start + 3] == 75
        and data[start + 4] == 62
    )


@kernel
def number_words_kernel(data, words, is_open, skip, state, out_ids):
    """Turn lines into word ids, each line ended by that of </s>; returns PACKED, NO_ROOM or SPECIAL.

    data      uint8 [.]    whole lines; words end at spaces, tabs, CR and NUL
    words     WordTable    arrays with room to grow; if open, new words are added, else they are <unk>
    is_open   whether new words may be added
    skip      whether to skip <s>, </s> and <unk> instead of stopping there
    state     int64 [3]    byte to continue from, number of words known, number of ids written; all updated
    out_ids   int32 [.]    written; one per byte is always enough

    At NO_ROOM and SPECIAL state[0] is the first byte of the word in question.

    O(bytes).  Twin: tests/naive/estimate.py::number_words.
    """
    at, known, num_ids = state[0], state[1], state[2]
    status = PACKED
    start = at
    while at < data.shape[0]:
        byte = data[at]
        if byte > SPACE or (
            byte != SPACE and byte != NEWLINE and byte != TAB and byte != RETURN and byte != NUL
        ):
            at += 1
            continue
        if at > start:
            slot = probe_bytes(words, data, start, at)
            word = np.int64(words.slot[slot])
            if word < 0 and is_upper_unknown(data, start, at):
                word = UNK
            elif word < 0 and not is_open:
                word = NUM_SPECIAL + 2**31  # any id that is not special
            if 0 <= word < NUM_SPECIAL:
                if not skip:
                    status = SPECIAL
                    break
            else:
                if word < 0:
                    end = words.first[known] + at - start
                    is_full = 2 * known + 1 > words.slot.shape[0] - 1
                    if is_full or known + 2 > words.first.shape[0] or end > words.pool.shape[0]:
                        status = NO_ROOM
                        break
                    for b in range(start, at):
                        words.pool[words.first[known] + b - start] = data[b]
                    words.slot[slot] = known
                    words.first[known + 1] = end
                    word = known
                    known += 1
                out_ids[num_ids] = word if word < 2**31 else UNK
                num_ids += 1
        if byte == NEWLINE:
            out_ids[num_ids] = EOS
            num_ids += 1
        at += 1
        start = at
    state[0], state[1], state[2] = start, known, num_ids
    return status


@kernel
def windows_kernel(packing, ids, context, out_rows):
    """Write the n-gram that ends at each word, with a count of one; sentences begin with <s>, repeated.

    packing   Packing         N words
    ids       int32 [T]
    context   int64 [N - 1]   words before the first, nearest first; updated
    out_rows  uint64 [T, C]   written; the n-gram, and in the last column 1

    O(T N).  Twin: tests/naive/estimate.py::windows.
    """
    order = packing.column.shape[0]
    columns = out_rows.shape[1]
    for t in range(ids.shape[0]):
        word = np.int64(ids[t])
        for c in range(columns - 1):
            out_rows[t, c] = np.uint64(0)
        out_rows[t, columns - 1] = np.uint64(1)
        put_word(packing, out_rows, t, 0, word)
        for s in range(1, order):
            put_word(packing, out_rows, t, s, context[s - 1])
        for s in range(order - 2, 0, -1):
            context[s] = BOS if word == EOS else context[s - 1]
        if order > 1:
            context[0] = BOS if word == EOS else word


@kernel
def unpack_ngrams_kernel(packing, number, key, out_words):
    """Read the words of n-grams that are packed in rows, in the order of the text.

    packing    Packing
    number     int32 [V]     number to write for each word
    key        uint64 [R, K]
    out_words  int32 [R, n]  written

    O(R n).  Twin: tests/naive/estimate.py::unpack.
    """
    length = out_words.shape[1]
    for r in range(key.shape[0]):
        for s in range(length):
            out_words[r, length - 1 - s] = number[word_at(packing, key, r, s)]


DONE, NEED_PARENTS, NEED_BACKOFFS = range(3)  # why a kernel returned

# Columns of a tally, behind the numbers of n-grams whose adjusted count is 0 ... 4.
LISTED, KEPT = 5, 6
PRUNED = np.uint64(0xFFFFFFFFFFFFFFFF)  # instead of an n-gram's place


class Adjusting(NamedTuple):
    """Open n-grams of lower order: the endings of the last row, while longer n-grams are read.

    previous  int64 [N]      words of the last row, the last word first
    adjusted  int64 [N + 1]  adjusted count, so far, of the ending of n words
    actual    int64 [N + 1]  its plain count
    depth     int64 [1]      words of the longest of these endings
    """

    previous: Ints
    adjusted: Ints
    actual: Ints
    depth: Ints


class Adjusted(NamedTuple):
    """The n-grams of each order n with adjusted counts.

    key      uint64 [N + 1, B, K]      those that are kept, in suffix order
    context  uint64 [N + 1, B, K + 2]  all: the words before the last; the place among those that are kept, or
                                       PRUNED; the adjusted count. In the first columns, as order n needs them
    num      int64 [N + 1, 2]          rows used of either
    unigram  int64 [V, 2]              adjusted and plain count of words
    tally    int64 [N + 1, 7]          numbers with adjusted count 0 ... 4; of all; of those that are kept
    """

    key: Hashes
    context: Hashes
    num: Ints
    unigram: Ints
    tally: Ints


@leaf
def put_adjusted(packing, length, words, adjusted, actual, tallied, threshold, out):
    """Write an n-gram, the last ``length`` words, with its counts."""
    is_special = length == 1 and words[0] < NUM_SPECIAL
    is_kept = threshold == 0 or actual > threshold or is_special
    if tallied < LISTED:
        out.tally[length, tallied] += 1
    out.tally[length, LISTED] += 1
    if length == 1:
        out.unigram[words[0], 0] = adjusted
        out.unigram[words[0], 1] = actual
        out.tally[length, KEPT] += is_kept
        return
    r = out.num[length, 1]
    out.num[length, 1] += 1
    width = packing.column[length - 2] + 1
    for c in range(width):
        out.context[length, r, c] = np.uint64(0)
    for s in range(1, length):
        out.context[length, r, packing.column[s - 1]] |= np.uint64(words[s]) << packing.shift[s - 1]
    out.context[length, r, width] = np.uint64(out.tally[length, KEPT]) if is_kept else PRUNED
    out.context[length, r, width + 1] = np.uint64(adjusted)
    if is_kept:
        out.tally[length, KEPT] += 1
        r = out.num[length, 0]
        out.num[length, 0] += 1
        for c in range(packing.column[length - 1] + 1):
            out.key[length, r, c] = np.uint64(0)
        for s in range(length):
            out.key[length, r, packing.column[s]] |= np.uint64(words[s]) << packing.shift[s]


@kernel
def adjust_kernel(packing, rows, threshold, state, out):
    """Turn counts of n-grams of the highest order N into adjusted counts of all orders.

    packing    Packing         N words
    rows       uint64 [R, C]   a piece of a sorted list of distinct n-grams, begun with repeated <s> where a
                               sentence begins; their counts are in the last column
    threshold  int64 [N + 1]   n-grams that occur no more often than threshold[n] are pruned
    state      Adjusting       read and written
    out        Adjusted        written from row 0 on; R rows of each are enough

    The adjusted count is the plain count at order N and for n-grams that begin with <s>, otherwise the number
    of different words to the left (Heafield et al. 2013, section 3.2).

    O(R N).  Twin: tests/naive/estimate.py::adjusted_counts.
    """
    order = packing.column.shape[0]
    words = state.previous
    out.num[:, :] = 0
    for r in range(rows.shape[0]):
        count = np.int64(rows[r, rows.shape[1] - 1])
        depth = state.depth[0]
        same = 0
        while same < depth and word_at(packing, rows, r, same) == words[same]:
            same += 1
        for length in range(depth, same, -1):
            adjusted = state.adjusted[length]
            put_adjusted(
                packing, length, words, adjusted, state.actual[length], adjusted, threshold[length], out
            )
        for length in range(1, same + 1):
            state.actual[length] += count
        if same > 0:
            state.adjusted[same] += 1
        for s in range(same, order):
            words[s] = word_at(packing, rows, r, s)
        length = same + 1
        while length < order and words[length - 1] != BOS:
            state.adjusted[length] = 1
            state.actual[length] = count
            length += 1
        state.depth[0] = min(length, order - 1)
        if length < order:
            # It begins with <s>; words to the left of that only pad the row.
            state.adjusted[length] = count
            state.actual[length] = count
        else:
            put_adjusted(packing, order, words, count, count, count, threshold[order], out)


@kernel
def adjust_last_kernel(packing, threshold, state, out):
    """Write the n-grams that are still open behind the last row; arguments as in ``adjust_kernel``.

    As in KenLM, these few are tallied by their plain count instead of the adjusted one, so that discounts and
    probabilities are the same.

    O(N).  Twin: tests/naive/estimate.py::adjusted_counts.
    """
    out.num[:, :] = 0
    for length in range(1, state.depth[0] + 1):
        actual = state.actual[length]
        put_adjusted(
            packing, length, state.previous, state.adjusted[length], actual, actual, threshold[length], out
        )
    state.depth[0] = 0


@kernel
def discount_kernel(rows, num_keys, discount, is_last, out_weight, out_share, out_backoff, out_backoff_value):
    """Discount the counts in each context; returns rows done, weights written, contexts written.

    rows               uint64 [R, num_keys + 2]  sorted by context; see ``Adjusted.context``
    num_keys           columns of a context
    discount           float64 [4]               for an adjusted count of 1, 2, and 3 or more, from 1 on
    is_last            whether no rows follow; otherwise the last context is left for the next call
    out_weight         uint64 [R, 2]             written; column 0: place of an n-gram that is kept
    out_share          float32 [R, 4]            the same bytes, written; column 2: its discounted share,
                                                 column 3: mass its context leaves to lower orders
    out_backoff        uint64 [R, num_keys + 1]  written; a context
    out_backoff_value  float64 [R, num_keys + 1] the same bytes, written; last column: that mass

    Pruned n-grams leave their whole count (as in KenLM; Chen and Goodman do not prune).

    O(R).  Twin: tests/naive/estimate.py::discounted.
    """
    num_rows = rows.shape[0]
    begin, num_weights, num_contexts = 0, 0, 0
    while begin < num_rows:
        end = begin
        total, pruned = 0, 0
        one, two, more = 0, 0, 0
        while end < num_rows and compare(rows, end, rows, begin, num_keys) == 0:
            count = np.int64(rows[end, num_keys + 1])
            total += count
            if rows[end, num_keys] == PRUNED:
                pruned += count
            elif count == 1:
                one += 1
            elif count == 2:
                two += 1
            else:
                more += 1
            end += 1
        if end == num_rows and not is_last:
            break
        left = discount[1] * one + discount[2] * two + discount[3] * more + pruned
        for c in range(num_keys):
            out_backoff[num_contexts, c] = rows[begin, c]
        out_backoff_value[num_contexts, num_keys] = left / total
        num_contexts += 1
        for r in range(begin, end):
            if rows[r, num_keys] != PRUNED:
                count = np.int64(rows[r, num_keys + 1])
                out_weight[num_weights, 0] = rows[r, num_keys]
                out_share[num_weights, 2] = (count - discount[min(count, 3)]) / total
                out_share[num_weights, 3] = left / total
                num_weights += 1
        begin = end
    return begin, num_weights, num_contexts


@kernel
def interpolate_kernel(
    packing,
    length,
    key,
    share,
    parent,
    parent_prob,
    backoff,
    backoff_value,
    more,
    state,
    out_prob,
    out_backoff,
):
    """Probabilities of n-grams from those of one word less; returns DONE, NEED_PARENTS or NEED_BACKOFFS.

    packing        Packing
    length         words of the n-grams
    key            uint64 [R, K]      the n-grams, in suffix order
    share          float32 [R, 4]     see ``discount_kernel``
    parent         uint64 [P, K' + 1] n-grams without their first word, in suffix order
    parent_prob    float64 [P, K' + 1] the same bytes; last column: probability
    backoff        uint64 [G, K + 1]  contexts, in suffix order
    backoff_value  float64 [G, K + 1] the same bytes; last column: mass left to lower orders
    more           whether contexts follow behind these
    state          int64 [3]          rows of key, parent and backoff that are done; updated
    out_prob       float64 [R]        written
    out_backoff    float64 [R]        written; 1 for n-grams that are no context

    O(R + P + G).  Twin: tests/naive/estimate.py::probabilities.
    """
    r, p, g = state[0], state[1], state[2]
    status = DONE
    num_keys = key.shape[1]
    num_parent_keys = parent.shape[1] - 1
    last = packing.column[length - 2]
    ending = packing.ending[length - 2]
    while r < key.shape[0]:
        while p < parent.shape[0]:
            same = (key[r, last] & ending) == parent[p, last]
            for c in range(last):
                same = same and key[r, c] == parent[p, c]
            if same:
                break
            p += 1
        if p == parent.shape[0]:
            status = NEED_PARENTS
            break
        order = 1
        while g < backoff.shape[0]:
            order = compare(backoff, g, key, r, num_keys)
            if order >= 0:
                break
            g += 1
        if g == backoff.shape[0] and more:
            status = NEED_BACKOFFS
            break
        is_context = g < backoff.shape[0] and order == 0
        out_prob[r] = share[r, 2] + share[r, 3] * parent_prob[p, num_parent_keys]
        out_backoff[r] = backoff_value[g, num_keys] if is_context else 1.0
        r += 1
    state[0], state[1], state[2] = r, p, g
    return status


# ---- rows: sorting by their first columns, and merging sorted ones
#
# A row is uint64 [C]; its first columns are its key, the first of them the most significant.


@leaf
def compare(a, i, b, j, num_keys):
    """-1, 0 or 1: the key of row i of ``a`` is less than, equal to or more than that of row j of ``b``."""
    for c in range(num_keys):
        if a[i, c] != b[j, c]:
            return -1 if a[i, c] < b[j, c] else 1
    return 0


@kernel
def sort_kernel(rows, spare, num_keys):
    """Sort rows by radix 256, least digit first; returns whether the result is in ``spare``.

    rows      uint64 [R, C]   written
    spare     uint64 [R, C]   written
    num_keys  columns to compare

    Stable. O(R) for each digit in which rows differ.  Twin: tests/naive/estimate.py::sort.
    """
    num_rows, columns = rows.shape
    count = np.zeros((num_keys * 8, 256), np.int64)
    low = np.uint64(255)
    for r in range(num_rows):
        for c in range(num_keys):
            key = rows[r, c]
            for d in range(8):
                count[8 * c + d, np.int64(key & low)] += 1
                key >>= np.uint64(8)
    source, target = rows, spare
    swapped = False
    for c in range(num_keys - 1, -1, -1):
        for d in range(8):
            digit = 8 * c + d
            shift = np.uint64(8 * d)
            if num_rows == 0 or count[digit, np.int64((rows[0, c] >> shift) & low)] == num_rows:
                continue  # all rows have the same digit
            place = 0
            for b in range(256):
                here = count[digit, b]
                count[digit, b] = place
                place += here
            for r in range(num_rows):
                b = np.int64((source[r, c] >> shift) & low)
                to = count[digit, b]
                count[digit, b] = to + 1
                for k in range(columns):
                    target[to, k] = source[r, k]
            source, target = target, source
            swapped = not swapped
    return swapped


@kernel
def combine_kernel(rows, num_keys):
    """Add up the last column of equal rows, which are adjacent; returns the number of rows left, in front.

    rows      uint64 [R, C]   written
    num_keys  columns to compare

    O(R).  Twin: tests/naive/estimate.py::combine.
    """
    num_rows, columns = rows.shape
    if num_rows == 0:
        return 0
    last = 0
    for r in range(1, num_rows):
        if compare(rows, r, rows, last, num_keys) == 0:
            rows[last, columns - 1] += rows[r, columns - 1]
            continue
        last += 1
        for c in range(columns):
            rows[last, c] = rows[r, c]
    return last + 1


@kernel
def end_kernel(rows, cut, num_keys):
    """The number of sorted rows that are not beyond ``cut`` (uint64 [1, .]), by bisection.

    O(log R).  Twin: tests/naive/estimate.py::end.
    """
    low, high = 0, rows.shape[0]
    while low < high:
        middle = (low + high) // 2
        if compare(rows, middle, cut, 0, num_keys) <= 0:
            low = middle + 1
        else:
            high = middle
    return low


# ---- mixtures: n-grams of ARPA files, back-off weights of given probabilities

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
