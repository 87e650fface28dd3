"""n-grams as rows of numbers: packing from text, and unpacking.

A row is uint64 [C], so that equal columns are equal words and a comparison of rows is one of
numbers. The *last* word comes first ("suffix order"): all n-grams with the same ending are adjacent, in
the order of that ending among the shorter n-grams. Word ids 0, 1 and 2 are <unk>, <s> and </s>.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.jit import kernel, leaf
from hiero.core.symbols import find_bytes, hash_bytes

UNK, BOS, EOS = 0, 1, 2
NUM_SPECIAL = 3
NUL, TAB, NEWLINE, RETURN, SPACE = 0, 9, 10, 13, 32

DONE, NO_ROOM, SPECIAL = range(3)  # why a kernel returned


class Packing(NamedTuple):
    """Layout of the words of an n-gram in the columns of a row; word s is the s-th from the end.

    column  int64 [N]     of word s
    shift   uint64 [N]    number of bits to its right in that column
    mask    uint64 [1]    the bits of one word
    ending  uint64 [N]    the bits of words 0 ... s in column[s]
    """

    column: npt.NDArray[np.int64]
    shift: npt.NDArray[np.uint64]
    mask: npt.NDArray[np.uint64]
    ending: npt.NDArray[np.uint64]


def packing_of(order: int, num_words: int) -> Packing:
    """Put as many words as fit into each column, from its highest bit on."""
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
    """Turn lines into word ids, each line ended by that of </s>; returns DONE, NO_ROOM or SPECIAL.

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
    status = DONE
    start = at
    mask = np.int64(words.slot.shape[0] - 1)
    while at < data.shape[0]:
        byte = data[at]
        if byte > SPACE or (
            byte != SPACE and byte != NEWLINE and byte != TAB and byte != RETURN and byte != NUL
        ):
            at += 1
            continue
        if at > start:
            word = find_bytes(words, data, start, at)
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
                    if known + 2 > words.first.shape[0] or 2 * known + 1 > mask or end > words.pool.shape[0]:
                        status = NO_ROOM
                        break
                    slot = np.int64(hash_bytes(data, start, at) & np.uint64(mask))
                    while words.slot[slot] >= 0:
                        slot = (slot + 1) & mask
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
def unpack_kernel(packing, number, key, out_words):
    """Read the words from rows, in the order of the text.

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
