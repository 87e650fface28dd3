# mypy: ignore-errors
"""cdec's spelling of features, for weights under names that several features share (``weights.py``)."""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Bytes, Flags, Floats, Ints
from hiero.core.jit import kernel, leaf
from hiero.core.records import MAX_GAPS
from hiero.core.symbol_kernels import WordTable, find_bytes, gap_index, gap_label
from hiero.features.index_kernels import (
    RULE_END,
    RULE_ID,
    RULE_START,
    SEPARATOR,
    find_feature,
    key_code,
)

UNDERSCORE, COLON, EQUALS, SEMICOLON, PERCENT, BAR = 95, 58, 61, 59, 37, 124
LETTER_N, DIGIT_0, SPACE, DELETE = 78, 48, 32, 127

PLAIN, INDEXED = 1, 2  # spelling of a symbol: gaps as their category, or followed by their index


class Spelling(NamedTuple):
    """Spelling of symbols, and the shared names; read-only.

    word, label    bytes of entry i: pool[first[i]:first[i + 1]]; there may be more rows than entries
    word_special   bool [.]  whether a feature with this word may have the same spelling as another one
    label_special  bool [.]  likewise
    form           int64 [K, 3]  for each kind: PLAIN, INDEXED or 0 for a and for b, the byte between them
    mark_pool      uint8     the prefix of feature kind k is mark_pool[mark_first[k]:mark_first[k + 1]], and
    mark_first     int64     after the last kind follow ``<r>`` and ``</r>``
    table          WordTable the shared names
    weight         float64   their weights
    """

    word_pool: Bytes
    word_first: Ints
    word_special: Flags
    label_pool: Bytes
    label_first: Ints
    label_special: Flags
    form: Ints
    mark_pool: Bytes
    mark_first: Ints
    table: WordTable
    weight: Floats


@kernel
def mark_shared_spellings_kernel(pool, first, start, end, out_special):
    """Mark entries start ... end - 1 with a byte that makes names shared; bool ``out_special`` is written.

    O(bytes).  Twin: tests/naive/tables.py::special.
    """
    for w in range(start, end):
        out_special[w] = False
        for i in range(first[w], first[w + 1]):
            byte = pool[i]
            if (
                byte in (UNDERSCORE, COLON, EQUALS, SEMICOLON, PERCENT, BAR, DELETE) or byte <= SPACE
            ):  # fmt: skip
                out_special[w] = True
                break


@leaf
def put_bytes(pool, start, end, out, n):
    """Append bytes as cdec writes them; bytes beyond the end of ``out`` are counted but not written."""
    for i in range(start, end):
        if n < out.shape[0]:
            byte = pool[i]
            out[n] = UNDERSCORE if byte in (EQUALS, SEMICOLON) else byte
        n += 1
    return n


@leaf
def put_byte(byte, out, n):
    if n < out.shape[0]:
        out[n] = byte
    return n + 1


@kernel
def put_index(index, out, n):
    if index > 9:
        n = put_byte(DIGIT_0 + index // 10, out, n)
    return put_byte(DIGIT_0 + index % 10, out, n)


@kernel
def spell_symbol(spelling, symbol, indexed, num_kinds, out, n):
    """Append cdec's spelling of a word, a boundary, or a category, followed by its index if ``indexed``."""
    if symbol >= 0:
        return put_bytes(
            spelling.word_pool, spelling.word_first[symbol], spelling.word_first[symbol + 1], out, n
        )
    if symbol in (RULE_START, RULE_END):
        mark = num_kinds if symbol == RULE_START else num_kinds + 1
        return put_bytes(spelling.mark_pool, spelling.mark_first[mark], spelling.mark_first[mark + 1], out, n)
    label = gap_label(symbol)
    n = put_bytes(spelling.label_pool, spelling.label_first[label], spelling.label_first[label + 1], out, n)
    return put_index(gap_index(symbol), out, n) if indexed else n


@kernel
def spell_rule(spelling, sequence, start, length, num_kinds, out, n):
    """Append cdec's spelling of a rule id, ``lhs:source:target``."""
    label = sequence[start]
    n = put_bytes(spelling.label_pool, spelling.label_first[label], spelling.label_first[label + 1], out, n)
    n = put_byte(COLON, out, n)
    source, begun = True, False
    for i in range(start + 1, start + length):
        symbol = sequence[i]
        if symbol == SEPARATOR:
            n = put_byte(COLON, out, n)
            source, begun = False, False
            continue
        if begun:
            n = put_byte(UNDERSCORE, out, n)
        begun = True
        if symbol < 0:
            n = put_byte(LETTER_N, out, n)
        if symbol < 0 and not source:
            n = put_index(gap_index(symbol), out, n)
        else:
            n = spell_symbol(spelling, symbol, False, num_kinds, out, n)
    return n


@kernel
def spell_feature(spelling, kind, a, b, pool, out):
    """Write cdec's name of a rule id or a feature of symbols; returns its length, even if ``out`` is shorter.

    Twin: hiero.features.names.Names.cdec_name.
    """
    form = spelling.form
    num_kinds = form.shape[0]
    n = put_bytes(spelling.mark_pool, spelling.mark_first[kind], spelling.mark_first[kind + 1], out, 0)
    if kind == RULE_ID:
        return spell_rule(spelling, pool, a, b, num_kinds, out, n)
    n = spell_symbol(spelling, a, form[kind, 0] == INDEXED, num_kinds, out, n)
    if form[kind, 1] == 0:
        return n
    n = put_byte(form[kind, 2], out, n)
    return spell_symbol(spelling, b, form[kind, 1] == INDEXED, num_kinds, out, n)


@leaf
def symbol_special(word_special, label_special, symbol):
    if symbol >= 0:
        return word_special[symbol]
    if symbol in (RULE_START, RULE_END, SEPARATOR):
        return False
    return label_special[gap_label(symbol)] or gap_index(symbol) > MAX_GAPS


@leaf
def is_special_key(word_special, label_special, form, kind, a, b, pool):
    """Whether cdec's spelling of a feature may differ from its exact name."""
    if kind != RULE_ID:
        return (form[kind, 0] != 0 and symbol_special(word_special, label_special, a)) or (
            form[kind, 1] != 0 and symbol_special(word_special, label_special, b)
        )
    if label_special[pool[a]] or pool[a + b - 1] == SEPARATOR:  # an empty target side has a mark
        return True
    separated = False
    for i in range(a + 1, a + b):
        symbol = pool[i]
        separated = separated or symbol == SEPARATOR
        # Gaps of the target side have no label.
        if symbol >= 0 or not separated:
            if symbol_special(word_special, label_special, symbol):
                return True
        elif symbol != SEPARATOR and gap_index(symbol) > MAX_GAPS:
            return True
    return False


@kernel
def shared_scores_kernel(first, key, pool, table, spelling, out_score):
    """Add the weights of shared names, for features that have no weight of their own.

    first, key, pool          from keys_kernel
    table      FeatureTable   the features that have a weight of their own
    spelling   Spelling
    out_score  float64 [N]    added to

    Twin: tests/naive/features.py::shared_score.
    """
    name = np.empty(256, np.uint8)
    word_special, label_special = spelling.word_special, spelling.label_special
    for i in range(first.shape[0] - 1):
        for k in range(first[i], first[i + 1]):
            kind, a, b = key[k, 0], key[k, 1], key[k, 2]
            if not is_special_key(word_special, label_special, spelling.form, kind, a, b, pool):
                continue
            if find_feature(table, key_code(kind, a, b, pool), kind, a, b, pool) >= 0:
                continue
            length = spell_feature(spelling, kind, a, b, pool, name)
            if length > name.shape[0]:
                name = np.empty(2 * length, np.uint8)
                spell_feature(spelling, kind, a, b, pool, name)
            found = find_bytes(spelling.table, name, 0, length)
            if found >= 0:
                out_score[i] += spelling.weight[found]
