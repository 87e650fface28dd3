# mypy: ignore-errors
"""The hash table of n-grams (``Ngrams``): fill it from any format, look n-grams up, score sentences.

A pruned model may list ``a b c`` but not ``b c``. The search for the longest n-gram goes from short to long
and must not stop there, so such gaps are filled, as in KenLM, with n-grams that have the probability given by
backing off. A missing context (``a b``), for which KenLM refuses the model, is filled likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Bytes, Floats32, Hashes, Ids, Ints
from hiero.core.jit import kernel, leaf, prefetch
from hiero.core.records import MAX_ORDER
from hiero.core.symbol_kernels import find_bytes

CHAIN = np.uint64(8978948897894561157)
WORD = np.uint64(17894857484156487943)


class Codes(NamedTuple):
    """The n-grams of two or more words of M models, quantised: a number of 64 bits for each.

    A key has its home in the S slots of its model: slot ``(high * S) >> 32``, for its high 32 bits. Keys are
    in ascending order, each at its home, or ``displacement`` slots behind it if that is taken. The home and
    the rest, ``((high * S) % 2^32) >> log2(S)`` followed by the low 32 bits of the key, determine the key, so
    that look-ups are exact. An entry has, from the highest bit on, this rest, the displacement plus one, and
    the codes of probability and back-off. An empty slot is 0.

    entry        uint64 [E]     slots of all models
    first_entry  int64 [M + 1]  of model m: first_entry[m] ... first_entry[m + 1] - 1; more than S, by the
                                greatest displacement
    layout       uint64 [M, 5]  S, or 0 for a model with slots in ``Ngrams``; log2(S), rounded down; bits of
                                displacements, of codes of probabilities with their signs, and of back-offs
    value        float32 [B]    values of codes with their signs: those of probabilities for each length from
                                2 on, then those of back-offs
    first_value  int64 [M, 2]   of model m: where these begin
    """

    entry: Hashes
    first_entry: Ints
    layout: Hashes
    value: Floats32
    first_value: Ints


HOMES, LOG_HOMES, DISPLACEMENT_BITS, PROB_BITS, BACKOFF_BITS = range(5)
LOW, HALF = np.uint64(2**32 - 1), np.uint64(32)
ONE = np.uint64(1)


class Ngrams(NamedTuple):
    """M language models side by side; each has its own word ids, 0 being <unk>. All arrays are read-only.

    An n-gram's key is KenLM's chain hash: start from the id of its *last* word, then for each earlier word w,
    nearest first, ``key = (key * 8978948897894561157) ^ ((1 + w) * 17894857484156487943)``, modulo 2^64.
    A table is open addressing with linear probing from ``key & mask``; an empty slot has key 0.

    key         uint64 [2 S]    the same bytes as ``value``: slot s has its key at key[2 s] ...
    value       float32 [4 S]   ... its log10 probability at value[4 s + 2], its back-off at value[4 s + 3],
                                so one cache line answers a query
    first_slot  int64 [M + 1]   slots of model m: first_slot[m] ... first_slot[m + 1] - 1, a power of two
    unigram     float32 [W, 2]  log10 probability and back-off
    first_word  int64 [M + 1]   unigrams of model m
    order       int64 [M]
    bos, eos    int64 [M]       ids of <s> and </s>
    codes       n-grams of quantised models, which have no slots; None if there is no such model. That is
                another type, and thus another kernel: other models are not slower for it

    Signs encode a bit each, as in KenLM: a probability is stored negative if the n-gram is *not* the end of a
    longer one (adding words on its left changes nothing), else as its absolute value; a back-off of -0.0
    means that no longer n-gram begins with this one. Longest n-grams are negative, with back-off -0.0.
    """

    key: Hashes
    value: Floats32
    first_slot: Ints
    unigram: Floats32
    first_word: Ints
    order: Ints
    bos: Ints
    eos: Ints
    codes: Codes | None


@leaf
def chain(key, word):
    """The key of an n-gram with one more word on its left."""
    return (key * CHAIN) ^ (np.uint64(1 + word) * WORD)


@leaf
def find_slot(lm, m, key):
    """The slot of an n-gram of two or more words in model m, or -1."""
    return _find_slot(lm.codes, lm, m, key)


@leaf
def _find_slot(codes, lm, m, key):
    # The condition is one on the type of an argument: numba leaves out what does not apply.
    if codes is not None:
        if codes.layout[m, HOMES] > np.uint64(0):
            return find_code(codes, m, key)
    # By hand: keys lie between values, and 0 is empty, as in KenLM's files. Sharing the loop with ``locate``
    # made scoring 5 % slower. Unsigned, because numba tests a signed index for being negative every time.
    first = np.uint64(lm.first_slot[m])
    mask = np.uint64(lm.first_slot[m + 1]) - first - np.uint64(1)
    at = key & mask
    while True:
        slot = first + at
        found = lm.key[slot + slot]
        if found == key:
            return np.int64(slot)
        if found == np.uint64(0):
            return np.int64(-1)
        at = (at + np.uint64(1)) & mask


@leaf
def find_code(codes, m, key):
    """The place of an n-gram among the entries of quantised model m, or -1."""
    at, wanted = home_of(codes.layout, m, key)
    at += np.uint64(codes.first_entry[m])
    code_bits = codes.layout[m, PROB_BITS] + codes.layout[m, BACKOFF_BITS]
    most = (ONE << codes.layout[m, DISPLACEMENT_BITS]) - ONE
    for _ in range(most):
        found = codes.entry[at] >> code_bits
        if found == wanted:
            return np.int64(at)
        if (found & most) < (wanted & most):  # empty, or an n-gram whose home is behind that of the key
            return np.int64(-1)
        at += ONE
        wanted += ONE
    return np.int64(-1)


@leaf
def home_of(layout, m, key):
    """The home of a key, and the entry that is there, without codes, if it is not displaced."""
    place = (key >> HALF) * layout[m, HOMES]
    rest = ((place & LOW) >> layout[m, LOG_HOMES] << HALF) | (key & LOW)
    return place >> HALF, (rest << layout[m, DISPLACEMENT_BITS]) | ONE


@kernel
def enter_codes_kernel(key, code, layout, out_entry):
    """Enter n-grams with their codes; False if one would stand too far from its home.

    key        uint64 [n]     ascending
    code       uint64 [n]     of probability and back-off
    layout     uint64 [1, 5]  as in ``Codes``
    out_entry  uint64 [E]     written; zeros before

    O(n).  Twin: tests/naive/lm.py::enter_codes.
    """
    code_bits = layout[0, PROB_BITS] + layout[0, BACKOFF_BITS]
    most = (ONE << layout[0, DISPLACEMENT_BITS]) - ONE
    free = np.uint64(0)
    for i in range(key.shape[0]):
        home, entry = home_of(layout, 0, key[i])
        at = max(home, free)
        if at - home >= most:
            return False
        out_entry[at] = ((entry + (at - home)) << code_bits) | code[i]
        free = at + ONE
    return True


@leaf
def stored(lm, m, slot, length):
    """The log10 probability and back-off, with their signs, of the n-gram of ``length`` words in a slot."""
    return stored_prob(lm, m, slot, length), stored_backoff(lm, m, slot, length)


@leaf
def stored_prob(lm, m, slot, length):
    return _stored_prob(lm.codes, lm, m, slot, length)


@leaf
def _stored_prob(codes, lm, m, slot, length):
    if codes is not None:
        bits = codes.layout[m, PROB_BITS]
        if bits > np.uint64(0):
            code = (codes.entry[slot] >> codes.layout[m, BACKOFF_BITS]) & ((ONE << bits) - ONE)
            return codes.value[codes.first_value[m, 0] + ((length - 2) << np.int64(bits)) + np.int64(code)]
    return lm.value[np.uint64(4) * np.uint64(slot) + np.uint64(2)]


@leaf
def stored_backoff(lm, m, slot, length):
    return _stored_backoff(lm.codes, lm, m, slot, length)


@leaf
def _stored_backoff(codes, lm, m, slot, length):
    if codes is not None:
        bits = codes.layout[m, BACKOFF_BITS]
        if bits > np.uint64(0):
            code = codes.entry[slot] & ((ONE << bits) - ONE)
            return codes.value[codes.first_value[m, 1] + ((length - 2) << np.int64(bits)) + np.int64(code)]
    return lm.value[np.uint64(4) * np.uint64(slot) + np.uint64(3)]


@leaf
def prefetch_ngram(lm, m, key):
    """Load in advance what ``find_slot`` looks at first."""
    _prefetch_ngram(lm.codes, lm, m, key)


@leaf
def _prefetch_ngram(codes, lm, m, key):
    is_slot = True
    if codes is not None:
        homes = codes.layout[m, HOMES]
        if homes > np.uint64(0):
            is_slot = False
            home = ((key >> HALF) * homes) >> HALF
            prefetch(codes.entry, np.int64(codes.first_entry[m] + np.int64(home)))
    if is_slot:
        first = np.uint64(lm.first_slot[m])
        mask = np.uint64(lm.first_slot[m + 1]) - first - ONE
        prefetch(lm.key, np.int64(2 * (first + (key & mask))))


@leaf
def extends_right(backoff):
    """Whether some longer n-gram begins with the one that has this back-off."""
    return backoff != 0.0 or np.copysign(np.float32(1.0), backoff) > 0.0


@leaf
def extends_left(prob):
    """Whether the n-gram that has this stored probability is the end of a longer one."""
    return np.copysign(np.float32(1.0), prob) > 0.0


# Load at which a table doubles. Measured on models of 0.8 and 1.8 million n-grams: fitting into the cache of
# the processor matters more than short probes (0.74 was faster than 0.37 by a quarter), up to a limit (0.85,
# where an absent n-gram takes 22 probes, was slower than 0.42 by 16 to 60 %).
MAX_LOAD = 0.75
MIN_SLOTS = 16
# Upper bound on the entries that one n-gram adds, with all shorter ones that are missing.
SPARE = 32


class NgramBlock(NamedTuple):
    """Some n-grams of one length.

    words    int32 [R, n]   in the order of the text
    prob     float32 [R]    log10 probability, <= 0
    backoff  float32 [R]    log10 back-off; 0 if there is none
    """

    words: Ids
    prob: Floats32
    backoff: Floats32


class OpenTable(NamedTuple):
    """A table being filled.

    key    uint64 [2 S]   as in ``Ngrams``
    value  float32 [4 S]  the same bytes
    size   uint8 [S]      words of the n-gram in a slot
    used   int64 [1]      slots in use
    """

    key: Hashes
    value: Floats32
    size: Bytes
    used: Ints


def open_table(num_ngrams: int) -> OpenTable:
    """An empty table with room for ``num_ngrams``."""
    slots = MIN_SLOTS
    while slots * MAX_LOAD < num_ngrams + SPARE:
        slots *= 2
    return _empty(slots)


def doubled(table: OpenTable) -> OpenTable:
    """The same n-grams in twice as many slots."""
    larger = _empty(len(table.key))
    copy_ngrams_kernel(table, larger)
    return larger


def _empty(slots: int) -> OpenTable:
    key = np.zeros(2 * slots, np.uint64)
    return OpenTable(key, key.view(np.float32), np.zeros(slots, np.uint8), np.zeros(1, np.int64))


@leaf
def has_room(table, num_ngrams):
    return table.used[0] + num_ngrams <= np.int64(table.key.shape[0] // 2 * MAX_LOAD)


@leaf
def locate(table, key):
    """The slot of a key, or the empty slot where it belongs."""
    mask = np.int64(table.key.shape[0] // 2 - 1)
    slot = np.int64(key & np.uint64(mask))
    while table.key[2 * slot] != key and table.key[2 * slot] != np.uint64(0):
        slot = (slot + 1) & mask
    return slot


@leaf
def put(table, slot, key, size, prob, backoff):
    """Enter the key of an n-gram of ``size`` words into the empty slot that ``locate`` returned."""
    table.key[2 * slot] = key
    table.size[slot] = size
    table.value[4 * slot + 2] = prob
    table.value[4 * slot + 3] = backoff
    table.used[0] += 1


@kernel
def copy_ngrams_kernel(table, out_table):
    """Copy one table into another, empty and larger. O(slots).  Twin: none; it changes no answer."""
    for slot in range(table.key.shape[0] // 2):
        key = table.key[2 * slot]
        if key != np.uint64(0):
            values = table.value[4 * slot + 2], table.value[4 * slot + 3]
            put(out_table, locate(out_table, key), key, table.size[slot], *values)


@leaf
def key_of(words, end, length):
    """The key of the ``length`` words before words[end]."""
    key = np.uint64(words[end - 1])
    for at in range(2, length + 1):
        key = chain(key, words[end - at])
    return key


@leaf
def is_listed(table, words, end, length):
    key = key_of(words, end, length)
    return length == 1 or table.key[2 * locate(table, key)] == key


@leaf
def mark_right_extension(table, unigram, words, end, length):
    """Mark listed words as the beginning of a longer n-gram; returns their back-off."""
    if length == 1:
        word = words[end - 1]
        if unigram[word, 1] == 0.0:
            unigram[word, 1] = 0.0  # no longer minus zero
        return unigram[word, 1]
    at = 4 * locate(table, key_of(words, end, length)) + 3
    if table.value[at] == 0.0:
        table.value[at] = 0.0
    return table.value[at]


@leaf
def mark_left_extension(table, unigram, words, end, length):
    """Mark listed words as the end of a longer n-gram; returns their log10 probability."""
    if length == 1:
        word = words[end - 1]
        unigram[word, 0] = np.abs(unigram[word, 0])
        return -unigram[word, 0]
    at = 4 * locate(table, key_of(words, end, length)) + 2
    table.value[at] = np.abs(table.value[at])
    return -table.value[at]


@leaf
def fill_gaps(table, unigram, words, end, length):
    """List the last 2, 3, ... ``length`` words where they are missing, with probabilities from backing off.

    Their contexts must be listed. All endings of a listed n-gram are listed, so one look-up is mostly enough.
    """
    if is_listed(table, words, end, length):
        return
    for shorter in range(2, length + 1):
        if not is_listed(table, words, end, shorter):
            backoff = mark_right_extension(table, unigram, words, end - 1, shorter - 1)
            prob = mark_left_extension(table, unigram, words, end, shorter - 1) + backoff
            key = key_of(words, end, shorter)
            # Minus zero: no longer n-gram that begins with this one is known.
            put(table, locate(table, key), key, shorter, -np.abs(prob), np.float32(-0.0))


@kernel
def add_ngram(table, unigram, words, length, prob, backoff):
    """Enter an n-gram of two or more words; False if it is already listed.

    table    OpenTable        written; there must be room for SPARE more
    unigram  float32 [W, 2]   as in ``Ngrams``; signs are written
    words    int64 [.]        ids, in the order of the text
    prob     float32          log10 probability, <= 0
    backoff  float32          minus zero if there is none

    Orders must be entered from short to long.  Twin: tests/naive/lm.py::signed_ngrams.
    """
    key = key_of(words, length, length)
    slot = locate(table, key)
    if table.key[2 * slot] == key:
        return False
    put(table, slot, key, length, -np.abs(prob), backoff if backoff != 0.0 else np.float32(-0.0))
    # Contexts before endings: filling a gap in the ending needs the back-off of its context.
    if not is_listed(table, words, length - 1, length - 1):
        for shorter in range(2, length):
            fill_gaps(table, unigram, words, shorter, shorter)
    mark_right_extension(table, unigram, words, length - 1, length - 1)
    if length > 2:
        fill_gaps(table, unigram, words, length, length - 1)
    mark_left_extension(table, unigram, words, length, length - 1)
    return True


@kernel
def add_ngrams_kernel(block, out_table, out_unigram):
    """Enter distinct n-grams of two or more words.

    block        NgramBlock
    out_table    OpenTable        written; there must be room
    out_unigram  float32 [W, 2]   as in ``Ngrams``; signs are written

    A few look-ups for each n-gram.  Twin: tests/naive/lm.py::signed_ngrams.
    """
    length = block.words.shape[1]
    words = np.empty(length, np.int64)
    for r in range(block.words.shape[0]):
        for w in range(length):
            words[w] = block.words[r, w]
        add_ngram(out_table, out_unigram, words, length, block.prob[r], block.backoff[r])


def ngram_table_of_blocks(counts: Sequence[int], blocks: Iterable[NgramBlock]) -> tuple[OpenTable, Floats32]:
    """The hash table of n-grams and the 1-grams of a model. Blocks come in the order of their length.

    ``counts`` has the number of n-grams of each length. Words are numbered in the order of the 1-grams.
    """
    table = open_table(sum(counts[1:]))
    unigram = np.empty((0, 2), np.float32)
    for block in blocks:
        if block.words.shape[1] == 1:
            backoff = np.where(block.backoff == 0.0, np.float32(-0.0), block.backoff)
            unigram = np.concatenate([unigram, np.stack([-np.abs(block.prob), backoff], axis=1)])
        else:
            add_ngrams_kernel(block, table, unigram)
    return table, unigram


__all__ = [
    "chain",
    "extends_left",
    "extends_right",
    "find_slot",
    "look_up_words_kernel",
    "prefetch_ngram",
    "score_sentences_kernel",
    "score_word",
    "stored",
    "stored_backoff",
    "stored_prob",
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
        length += 1
        prob, weight = stored(lm, m, slot, length)
        backoff[new + length - 1] = weight
        if extends_right(weight):
            following = length
    score = -np.abs(prob)
    for shorter in range(length, context + 1):
        score += backoff[old + shorter - 1]
    # In a file that lies about its order, the longest n-gram may claim to begin a longer one.
    return score, length, min(following, lm.order[m] - 1)


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
def look_up_words_kernel(table, text, out_first, out_word, out_span):
    """Split lines into words and look up their ids in a model; returns the numbers of lines and words.

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


@kernel
def insert_kernel(bucket, value, size, out_table):
    """Enter the n-grams of ``size`` words of some buckets; False if there is no room.

    bucket     uint32 [B, 4 or 3]   key (low, high), and two numbers, or one in the table of the longest
    value      float32 [B, 4 or 3]  the same bytes
    out_table  OpenTable            written

    O(B).  Twin: tests/naive/lm.py::read_kenlm.
    """
    for i in range(bucket.shape[0]):
        key = np.uint64(bucket[i, 0]) | (np.uint64(bucket[i, 1]) << np.uint64(32))
        if key == np.uint64(0):
            continue
        if not has_room(out_table, 1):
            return False
        slot = locate(out_table, key)
        if out_table.key[2 * slot] == np.uint64(0):
            backoff = value[i, 3] if bucket.shape[1] > 3 else np.float32(-0.0)
            put(out_table, slot, key, size, value[i, 2], backoff)
    return True


# ---- tries of KenLM


@leaf
def read_bits(data, at, bits):
    """The number in ``bits`` bits (at most 57) from bit ``at`` on, the lowest first."""
    byte, shift = at >> 3, at & 7
    value = np.uint64(0)
    for k in range((shift + bits + 7) >> 3):
        value |= np.uint64(data[byte + k]) << np.uint64(8 * k)
    return (value >> np.uint64(shift)) & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1))


@kernel
def unpack_level_kernel(data, first, widths, out_word, out_value, out_next):
    """Unpack entries of a table, from entry ``first`` on.

    data       uint8 [.]       the table
    widths     int64 [4]       bits of the word, of two numbers (perhaps 0), and of the pointer
    out_word   int64 [n]       written
    out_value  uint32 [n, 2]   written; the two numbers
    out_next   int64 [n]       written; the pointer

    O(n).  Twin: tests/naive/lm.py::unpack_level.
    """
    total = widths[0] + widths[1] + widths[2] + widths[3]
    for i in range(out_word.shape[0]):
        at = (first + i) * total
        out_word[i] = np.int64(read_bits(data, at, widths[0]))
        at += widths[0]
        out_value[i, 0] = np.uint32(read_bits(data, at, widths[1]))
        at += widths[1]
        out_value[i, 1] = np.uint32(read_bits(data, at, widths[2]))
        at += widths[2]
        out_next[i] = np.int64(read_bits(data, at, widths[3]))


@kernel
def insert_level_kernel(word, value, first, parent, first_child, parent_key, size, out_key, out_table):
    """Enter n-grams of ``size`` words, given as children of their endings; returns the last parent.

    word         int64 [n]       the first word of each n-gram; they are entries ``first`` ... of their length
    value        float32 [n, 2]  stored probability and back-off
    parent       a parent not after that of the first entry
    first_child  int64 [P + 1]   children of parent p: first_child[p] ... first_child[p + 1] - 1
    parent_key   uint64 [P]      keys of the parents, as in ``Ngrams``
    out_key      uint64 [n]      written; keys of the entries
    out_table    OpenTable       written; there must be room

    O(n).  Twin: tests/naive/lm.py::trie_keys.
    """
    for i in range(word.shape[0]):
        while first_child[parent + 1] <= first + i:
            parent += 1
        key = chain(parent_key[parent], word[i])
        out_key[i] = key
        slot = locate(out_table, key)
        if out_table.key[2 * slot] == np.uint64(0):
            put(out_table, slot, key, size, value[i, 0], value[i, 1])
    return parent
