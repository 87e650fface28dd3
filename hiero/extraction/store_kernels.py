# mypy: ignore-errors
"""Pack the rules of a sentence into few bits, and unpack them.

Most of what rules consist of recurs: words, source sides, target sides without their gaps, alignments, values
of features and their combinations. Each is written once, and rules refer to it by number. Packed rules are
arrays of numbers below 2 ** 32, each in as many bits as its largest number needs. First comes a word for each
array, its length times 256 plus its bits; then the arrays, each from a new word on.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import FNV_START, mix, probe, table_size
from hiero.core.jit import kernel, leaf
from hiero.grammar.assemble_kernels import LINK, SPARSE, SRC, TGT
from hiero.grammar.trie_kernels import NODE, RANK, plant_symbol

# Arrays. Symbols of source sides: gap 1, gap 2, then words; values of features are the bits of a float32.
SRC_WORD, TGT_WORD = 0, 1  # distinct words
NODE_SIZE, NODE_SYMBOL = 2, 3  # distinct source sides
PHRASE_SIZE, PHRASE_WORD = 4, 5  # distinct target sides without gaps
LINKS_SIZE, LINK_SRC, LINK_TGT = 6, 7, 8  # distinct alignments
# Of each rule: 0 if its source side is the next new one, or 1 plus how many were new after it; its pair, the
# places of its gaps in the target side, counted from 1 (0: none), its core and its alignment.
RULE_NODE, RULE_PAIR, RULE_GAP_1, RULE_GAP_2, RULE_CORE, RULE_LINKS = 9, 10, 11, 12, 13, 14
PAIR_PHRASE, PAIR_F, PAIR_E = 15, 16, 17  # distinct target sides with their lexical features
CORE = 18  # ... distinct combinations of the other features, an array for each
NUM_FEATURES, LEX_F, LEX_E, NUM_CORE = 7, 3, 4, 5
VALUE = CORE + NUM_CORE  # distinct values of features
NUM_ARRAYS = VALUE + 1

MOST_BITS = 32
MOST_ITEMS = 1 << 28  # symbols and links of unpacked rules


class Distinct(NamedTuple):
    """Distinct rows of numbers, in the order of their first occurrence.

    slot   int32 [2 ** k]  hash table of rows
    first  int64 [N + 1]   row i is pool[first[i]:first[i + 1]]
    pool   int64
    used   int64 [1]       number of rows
    """

    slot: np.ndarray
    first: np.ndarray
    pool: np.ndarray
    used: np.ndarray


@kernel
def _distinct(rows, items):
    """No rows, and room for so many."""
    slot = np.full(table_size(rows), -1, np.int32)
    first = np.empty(rows + 1, np.int64)
    first[0] = 0
    return Distinct(slot, first, np.empty(items, np.int64), np.zeros(1, np.int64))


@leaf
def _is_row(rows, row, key):
    buffer, size = key
    begin = rows.first[row]
    if rows.first[row + 1] - begin != size:
        return False
    for k in range(size):
        if rows.pool[begin + k] != buffer[k]:
            return False
    return True


@leaf
def _number(rows, buffer, size):
    """The number of the row that a buffer begins with."""
    code = FNV_START
    for k in range(size):
        code = mix(code, buffer[k])
    at = probe(rows.slot, code, _is_row, rows, (buffer, size))
    if rows.slot[at] < 0:
        row = rows.used[0]
        begin = rows.first[row]
        for k in range(size):
            rows.pool[begin + k] = buffer[k]
        rows.first[row + 1] = begin + size
        rows.used[0] = row + 1
        rows.slot[at] = row
    return np.int64(rows.slot[at])


@kernel
def _sizes(rows):
    out = np.empty(rows.used[0], np.int64)
    for i in range(out.shape[0]):
        out[i] = rows.first[i + 1] - rows.first[i]
    return out


@kernel
def _items(rows):
    return rows.pool[: rows.first[rows.used[0]]].copy()


@leaf
def _only(rows, buffer, number):
    """The number of the row of one number."""
    buffer[0] = number
    return _number(rows, buffer, 1)


@kernel
def _column(rows, width, column):
    """A column of rows that all have the same size."""
    out = np.empty(rows.used[0], np.int64)
    for i in range(out.shape[0]):
        out[i] = rows.pool[i * width + column]
    return out


@kernel
def _value_column(rows, width, column, values):
    """As ``_column``, of numbers that are replaced by those of their rows."""
    out, buffer = _column(rows, width, column), np.empty(1, np.int64)
    for i in range(out.shape[0]):
        out[i] = _only(values, buffer, out[i])
    return out


@leaf
def _num_bits(array):
    most = np.int64(0)
    for i in range(array.shape[0]):
        most |= array[i]
    bits = 1
    while most >> bits > 0:
        bits += 1
    return bits


@kernel
def _pack(arrays):
    """The words of arrays of numbers."""
    num_words = NUM_ARRAYS
    for array in arrays:
        num_words += (array.shape[0] * _num_bits(array) + 63) >> 6
    out = np.zeros(num_words, np.uint64)
    begin = NUM_ARRAYS
    for k, array in enumerate(arrays):
        bits = _num_bits(array)
        out[k] = array.shape[0] << 8 | bits
        for i in range(array.shape[0]):
            place = i * bits
            word, shift = begin + (place >> 6), np.uint64(place & 63)
            out[word] |= np.uint64(array[i]) << shift
            if shift + np.uint64(bits) > np.uint64(64):
                out[word + 1] |= np.uint64(array[i]) >> (np.uint64(64) - shift)
        begin += (array.shape[0] * bits + 63) >> 6
    return out


@leaf
def _bits(dense, r, feature):
    return np.int64(dense[r, feature]) & 0xFFFFFFFF


@kernel
def pack_rules_kernel(rules, dense):
    """Pack rules as they are extracted: words as numbered in the index, gap g as -g, at most two gaps.

    rules  Rules
    dense  int32 [R, 7]  their features, as bits

    Returns uint64 words. O(N).  Twin: tests/naive/extract.py::unpacked, of the result.
    """
    num_rules, src_size, tgt_size = dense.shape[0], rules.src.shape[0], rules.tgt.shape[0]
    src_words, tgt_words = _distinct(src_size, src_size), _distinct(tgt_size, tgt_size)
    nodes, phrases = _distinct(num_rules, src_size), _distinct(num_rules, tgt_size)
    links = _distinct(num_rules, rules.link.shape[0])
    pairs, cores = _distinct(num_rules, 3 * num_rules), _distinct(num_rules, NUM_CORE * num_rules)
    rule = np.zeros((RULE_LINKS + 1 - RULE_NODE, num_rules), np.int64)
    longest = NUM_CORE
    for r in range(num_rules):
        longest = max(longest, rules.first_src[r + 1] - rules.first_src[r])
        longest = max(longest, rules.first_tgt[r + 1] - rules.first_tgt[r])
        longest = max(longest, rules.first_link[r + 1] - rules.first_link[r])
    buffer, one = np.empty(longest, np.int64), np.empty(1, np.int64)
    for r in range(num_rules):
        begin, end = rules.first_src[r], rules.first_src[r + 1]
        for k in range(begin, end):
            symbol = np.int64(rules.src[k])
            buffer[k - begin] = -1 - symbol if symbol < 0 else 2 + _only(src_words, one, symbol)
        newest = nodes.used[0]
        rule[RULE_NODE - RULE_NODE, r] = newest - _number(nodes, buffer, end - begin)
        begin, size = rules.first_tgt[r], 0
        for k in range(begin, rules.first_tgt[r + 1]):
            symbol = np.int64(rules.tgt[k])
            if symbol < 0:
                rule[RULE_GAP_1 - RULE_NODE - 1 - symbol, r] = k - begin + 1
            else:
                buffer[size] = _only(tgt_words, one, symbol)
                size += 1
        buffer[0] = _number(phrases, buffer, size)
        buffer[1], buffer[2] = _bits(dense, r, LEX_F), _bits(dense, r, LEX_E)
        rule[RULE_PAIR - RULE_NODE, r] = _number(pairs, buffer, 3)
        for d in range(NUM_CORE):
            buffer[d] = _bits(dense, r, d if d < LEX_F else d + 2)
        rule[RULE_CORE - RULE_NODE, r] = _number(cores, buffer, NUM_CORE)
        begin, end = rules.first_link[r], rules.first_link[r + 1]
        for k in range(begin, end):
            buffer[k - begin] = np.int64(rules.link[k, 0]) << 16 | np.int64(rules.link[k, 1])
        rule[RULE_LINKS - RULE_NODE, r] = _number(links, buffer, end - begin)
    most_values = 2 * pairs.used[0] + NUM_CORE * cores.used[0]
    link, values = _items(links), _distinct(most_values, most_values)
    return _pack(
        (
            _items(src_words),
            _items(tgt_words),
            _sizes(nodes),
            _items(nodes),
            _sizes(phrases),
            _items(phrases),
            _sizes(links),
            link >> 16,
            link & 0xFFFF,
            rule[0],
            rule[1],
            rule[2],
            rule[3],
            rule[4],
            rule[5],
            _column(pairs, 3, 0),
            _value_column(pairs, 3, 1, values),
            _value_column(pairs, 3, 2, values),
            _value_column(cores, NUM_CORE, 0, values),
            _value_column(cores, NUM_CORE, 1, values),
            _value_column(cores, NUM_CORE, 2, values),
            _value_column(cores, NUM_CORE, 3, values),
            _value_column(cores, NUM_CORE, 4, values),
            _items(values),
        )
    )


@leaf
def _is_header(words):
    """Whether arrays of these lengths and bits fill the words."""
    if words.shape[0] < NUM_ARRAYS:
        return False
    end = NUM_ARRAYS
    for k in range(NUM_ARRAYS):
        bits, size = np.int64(words[k] & np.uint64(255)), np.int64(words[k] >> np.uint64(8))
        if bits < 1 or bits > MOST_BITS or size > 64 * words.shape[0]:
            return False
        end += (size * bits + 63) >> 6
    return end == words.shape[0]


@kernel
def _unpack(words, out_first):
    """The numbers of all arrays end to end, as int32 with the same bits, and where each begins."""
    out_first[0] = 0
    for k in range(NUM_ARRAYS):
        out_first[k + 1] = out_first[k] + np.int64(words[k] >> np.uint64(8))
    out = np.empty(out_first[NUM_ARRAYS], np.int32)
    begin = np.uint64(NUM_ARRAYS)
    for k in range(NUM_ARRAYS):
        bits = words[k] & np.uint64(255)
        size, at = words[k] >> np.uint64(8), np.uint64(out_first[k])
        mask = (np.uint64(1) << bits) - np.uint64(1)
        place = np.uint64(0)
        for i in range(size):
            word, shift = begin + (place >> np.uint64(6)), place & np.uint64(63)
            number = words[word] >> shift
            if shift + bits > np.uint64(64):
                number |= words[word + np.uint64(1)] << (np.uint64(64) - shift)
            out[at + np.uint64(i)] = np.int32(np.int64(number & mask))
            place += bits
        begin += (size * bits + np.uint64(63)) >> np.uint64(6)
    return out


@leaf
def _are_below(item, first, k, limit):
    """Whether all numbers of array k are below a limit; one from 2 ** 31 on is negative here."""
    for i in range(first[k], first[k + 1]):
        if item[i] < 0 or item[i] >= limit:
            return False
    return True


@leaf
def _length(first, k):
    return first[k + 1] - first[k]


@leaf
def _offsets(item, first, sizes, out_offset):
    """Where each row begins, in absolute places; whether rows of these sizes fill the next array."""
    at = first[sizes + 1]
    for i in range(out_offset.shape[0] - 1):
        out_offset[i] = at
        size = item[first[sizes] + i]
        if size < 0 or size > first[sizes + 2] - at:
            return False
        at += size
    out_offset[out_offset.shape[0] - 1] = at
    return at == first[sizes + 2]


@leaf
def _are_sound(item, first, num_words):
    """Whether all numbers of arrays that refer to others, or are places, are small enough."""
    num_rules = _length(first, RULE_NODE)
    for k in range(RULE_NODE, RULE_LINKS + 1):
        if _length(first, k) != num_rules:
            return False
    for k in range(PAIR_PHRASE, PAIR_E + 1):
        if _length(first, k) != _length(first, PAIR_PHRASE):
            return False
    for k in range(CORE, CORE + NUM_CORE):
        if _length(first, k) != _length(first, CORE):
            return False
        if not _are_below(item, first, k, _length(first, VALUE)):
            return False
    return (
        _length(first, LINK_SRC) == _length(first, LINK_TGT)
        and _are_below(item, first, SRC_WORD, num_words[0])
        and _are_below(item, first, TGT_WORD, num_words[1])
        and _are_below(item, first, NODE_SYMBOL, 2 + _length(first, SRC_WORD))
        and _are_below(item, first, PHRASE_WORD, _length(first, TGT_WORD))
        and _are_below(item, first, LINK_SRC, 1 << 15)
        and _are_below(item, first, LINK_TGT, 1 << 15)
        and _are_below(item, first, RULE_PAIR, _length(first, PAIR_PHRASE))
        and _are_below(item, first, RULE_CORE, _length(first, CORE))
        and _are_below(item, first, RULE_LINKS, _length(first, LINKS_SIZE))
        and _are_below(item, first, PAIR_PHRASE, _length(first, PHRASE_SIZE))
        and _are_below(item, first, PAIR_F, _length(first, VALUE))
        and _are_below(item, first, PAIR_E, _length(first, VALUE))
    )


class Packed(NamedTuple):
    """Packed rules, checked, and what is needed to find the parts of a rule.

    item       int32             all arrays end to end, with the same bits
    first      int64 [K + 1]     where each array begins
    node_at    int64 [N + 1]     where each source side begins in ``item``
    phrase_at  int64 [P + 1]     likewise, target sides without gaps
    link_at    int64 [A + 1]     likewise, alignments, of which the source places
    node_of    int32 [R]         source side of each rule
    """

    item: np.ndarray
    first: np.ndarray
    node_at: np.ndarray
    phrase_at: np.ndarray
    link_at: np.ndarray
    node_of: np.ndarray


@leaf
def _find_nodes(packed):
    """The source side of each rule; whether there are so many, and the places of gaps are in target sides."""
    item, first = packed.item, packed.first
    newest, num_items = np.int64(-1), np.int64(0)
    for r in range(packed.node_of.shape[0]):
        back = np.int64(item[first[RULE_NODE] + r])
        node = newest + 1 - back
        newest += back == 0
        if back < 0 or node < 0 or newest + 1 >= packed.node_at.shape[0]:
            return False
        packed.node_of[r] = node
        size, one, two = _target_size(packed, r)
        if one < 0 or one > size or two < 0 or two > size or (one == two and one > 0):
            return False
        links = item[first[RULE_LINKS] + r]
        num_items += size + packed.node_at[node + 1] - packed.node_at[node]
        num_items += packed.link_at[links + 1] - packed.link_at[links]
    return num_items <= MOST_ITEMS


@leaf
def _target_size(packed, r):
    """The length of the target side of a rule, and the places of its gaps."""
    item, first = packed.item, packed.first
    phrase = item[first[PAIR_PHRASE] + item[first[RULE_PAIR] + r]]
    one, two = item[first[RULE_GAP_1] + r], item[first[RULE_GAP_2] + r]
    return packed.phrase_at[phrase + 1] - packed.phrase_at[phrase] + (one != 0) + (two != 0), one, two


@kernel
def open_packed_kernel(words, num_words):
    """Check packed rules, and find their parts.

    words      uint64     as ``pack_rules_kernel`` returns them, or anything else
    num_words  int64 [2]  words of the source and of the target side of the index, with the unknown one

    Returns whether the words are those of rules, and Packed, which is only used if they are.
    O(N).  Twin: tests/naive/extract.py::unpacked, with ``unpack_rules_kernel``.
    """
    first, is_sound = np.zeros(NUM_ARRAYS + 1, np.int64), _is_header(words)
    item = _unpack(words, first) if is_sound else np.empty(0, np.int32)
    packed = Packed(
        item,
        first,
        np.empty(_length(first, NODE_SIZE) + 1, np.int64),
        np.empty(_length(first, PHRASE_SIZE) + 1, np.int64),
        np.empty(_length(first, LINKS_SIZE) + 1, np.int64),
        np.empty(_length(first, RULE_NODE), np.int32),
    )
    is_sound = (
        is_sound
        and _are_sound(item, first, num_words)
        and _offsets(item, first, NODE_SIZE, packed.node_at)
        and _offsets(item, first, PHRASE_SIZE, packed.phrase_at)
        and _offsets(item, first, LINKS_SIZE, packed.link_at)
        and _find_nodes(packed)
    )
    return is_sound, packed


@leaf
def _src_symbol(packed, k):
    """A symbol of a source side as in the index."""
    symbol = np.int64(packed.item[k])
    return -1 - symbol if symbol < 2 else np.int64(packed.item[packed.first[SRC_WORD] + symbol - 2])


@kernel
def packed_sizes_kernel(packed, out_size):
    """The sizes of packed rules as ``sizes_kernel`` returns them; int32 ``out_size`` [R, 4] is written.

    O(R).  Twin: tests/naive/extract.py::unpacked.
    """
    for r in range(packed.node_of.shape[0]):
        node, links = packed.node_of[r], packed.item[packed.first[RULE_LINKS] + r]
        size, _, _ = _target_size(packed, r)
        out_size[r, SRC] = packed.node_at[node + 1] - packed.node_at[node]
        out_size[r, TGT] = size
        out_size[r, SPARSE] = 0
        out_size[r, LINK] = packed.link_at[links + 1] - packed.link_at[links]


@kernel
def plant_packed_kernel(packed, ids, rank, nodes, out_key):
    """Enter the source sides of packed rules into a trie, which must have room for all of their symbols.

    packed   Packed
    ids      IdMaps
    rank     int32 [L]     as in ``plant_sources_kernel``
    nodes    GrowingTrie   written
    out_key  int32 [R, 2]  written, likewise

    O(R + symbols of source sides).  Twin: tests/naive/extract.py::unpacked.
    """
    planted = np.empty(packed.node_at.shape[0] - 1, np.int64)
    for n in range(planted.shape[0]):
        node = np.int64(0)
        for k in range(packed.node_at[n], packed.node_at[n + 1]):
            node = plant_symbol(nodes, node, np.int64(ids.src[_src_symbol(packed, k)]), rank)
        planted[n] = node
    label = np.int64(ids.lhs[0])
    for r in range(packed.node_of.shape[0]):
        out_key[r, NODE] = planted[packed.node_of[r]]
        out_key[r, RANK] = rank[label] if rank.shape[0] > 0 else label


@kernel
def copy_packed_kernel(packed, ids, column, place, dense, out_rules):
    """Copy packed rules to their places, with shared ids.

    packed     Packed
    ids        IdMaps       of words, gaps -1 and -2, and the label 0
    column     int64 [D]    the feature of each column of the result, or -1
    place      int64 [R]
    dense      int32 [., D] written: the features, as bits
    out_rules  Rules        written, except for the features, and for the offsets, which are given

    O(N).  Twin: tests/naive/extract.py::unpacked.
    """
    item, first = packed.item, packed.first
    src, tgt, link = out_rules.src, out_rules.tgt, out_rules.link
    # What several rules share is mapped once.
    first_node, first_phrase = first[NODE_SYMBOL], first[PHRASE_WORD]
    node_symbol = np.empty(_length(first, NODE_SYMBOL), np.int32)
    for k in range(node_symbol.shape[0]):
        node_symbol[k] = ids.src[_src_symbol(packed, first_node + k)]
    phrase_word = np.empty(_length(first, PHRASE_WORD), np.int32)
    for k in range(phrase_word.shape[0]):
        phrase_word[k] = ids.tgt[item[first[TGT_WORD] + item[first_phrase + k]]]
    core_value = np.empty((_length(first, CORE), NUM_CORE), np.int32)
    for c in range(core_value.shape[0]):
        for d in range(NUM_CORE):
            core_value[c, d] = item[first[VALUE] + item[first[CORE + d] + c]]
    label, shift = ids.lhs[0], first[LINK_TGT] - first[LINK_SRC]
    one_id, two_id = ids.tgt[-1], ids.tgt[-2]
    value = np.empty(NUM_FEATURES, np.int32)
    for r in range(place.shape[0]):
        p = place[r]
        out_rules.lhs[p] = label
        at, node = out_rules.first_src[p], np.int64(packed.node_of[r])
        for k in range(packed.node_at[node] - first_node, packed.node_at[node + 1] - first_node):
            src[at] = node_symbol[k]
            at += 1
        pair = np.int64(item[first[RULE_PAIR] + r])
        phrase = item[first[PAIR_PHRASE] + pair]
        word, end = packed.phrase_at[phrase] - first_phrase, packed.phrase_at[phrase + 1] - first_phrase
        one, two = np.int64(item[first[RULE_GAP_1] + r]), np.int64(item[first[RULE_GAP_2] + r])
        at = out_rules.first_tgt[p]
        one, two = at + one - 1, at + two - 1
        last = at + end - word + (one >= at) + (two >= at)
        while at < last:
            if at == one:
                tgt[at] = one_id
            elif at == two:
                tgt[at] = two_id
            else:
                tgt[at] = phrase_word[word]
                word += 1
            at += 1
        core = np.int64(item[first[RULE_CORE] + r])
        for d in range(NUM_CORE):
            value[d if d < LEX_F else d + 2] = core_value[core, d]
        value[LEX_F] = item[first[VALUE] + item[first[PAIR_F] + pair]]
        value[LEX_E] = item[first[VALUE] + item[first[PAIR_E] + pair]]
        for d in range(column.shape[0]):
            dense[p, d] = value[column[d]] if column[d] >= 0 else np.int32(0)
        links, at = item[first[RULE_LINKS] + r], out_rules.first_link[p]
        for k in range(packed.link_at[links], packed.link_at[links + 1]):
            link[at, 0], link[at, 1] = item[k], item[k + shift]
            at += 1
