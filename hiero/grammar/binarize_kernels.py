# mypy: ignore-errors
"""Rules with more than two gaps as rules with two gaps.

A rule is a permutation of its gaps. Two gaps that are neighbours on both sides become one, whose category
is a *part*: a new one that has a single rule, with these gaps and the words between them. Repeated, this
leaves two gaps, if the permutation allows it (Zhang et al. 2006, Synchronous Binarization for Machine
Translation). Gaps are joined from left to right, as soon as possible (Huang et al. 2009, Binarization of
Synchronous Context-Free Grammars), so that rules that begin alike share parts. The words before the first
gap and after the last belong to the topmost rule: thus words that stand together stay together.
"""

from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import mix, probe, table_size
from hiero.core.jit import kernel, leaf
from hiero.core.records import MAX_GAPS, MOST_GAPS
from hiero.core.symbol_kernels import gap, gap_index, gap_label, is_gap


class Sides(NamedTuple):
    """The source and target sides of some rules, which are in use up to a number that the caller has.

    first_src, first_tgt  int64 [. + 1]
    src, tgt              int32
    """

    first_src: np.ndarray
    src: np.ndarray
    first_tgt: np.ndarray
    tgt: np.ndarray


@kernel
def wide_rows_kernel(first_src, src, rows):
    """Whether each of some rules has more than two gaps; bool [N].

    first_src, src  of Rules
    rows            int64 [N]

    O(symbols).  Twin: tests/naive/binarize.py::num_gaps.
    """
    wide = np.zeros(rows.shape[0], np.bool_)
    for i in range(rows.shape[0]):
        gaps = 0
        for k in range(first_src[rows[i]], first_src[rows[i] + 1]):
            gaps += src[k] < 0
        wide[i] = gaps > MAX_GAPS
    return wide


@kernel
def _new_sides(count, num_src, num_tgt):
    return Sides(
        np.zeros(count + 1, np.int64),
        np.empty(num_src, np.int32),
        np.zeros(count + 1, np.int64),
        np.empty(num_tgt, np.int32),
    )


@leaf
def _copy_words(side, begin, end, out, at):
    """Append a run of a side; returns the place after it."""
    for k in range(begin, end):
        out[at] = side[k]
        at += 1
    return at


@leaf
def _is_part(parts, part, other):
    """``equal`` of parts: whether they have the same sides."""
    for first, side in ((parts.first_src, parts.src), (parts.first_tgt, parts.tgt)):
        begin, start = first[part], first[other]
        if first[part + 1] - begin != first[other + 1] - start:
            return False
        for k in range(first[part + 1] - begin):
            if side[begin + k] != side[start + k]:
                return False
    return True


@leaf
def _part_code(parts, part):
    """A hash of the sides of a part."""
    code = np.uint64(0)
    for k in range(parts.first_src[part], parts.first_src[part + 1]):
        code = mix(code, np.int64(parts.src[k]) + (1 << 31))
    for k in range(parts.first_tgt[part], parts.first_tgt[part + 1]):
        code = mix(code, np.int64(parts.tgt[k]) + (1 << 31))
    return code


@kernel
def binarize_kernel(rules, first_label):
    """Divide rules with more than two gaps into rules with two.

    rules        Rules
    first_label  label of part 0; part p has the label ``first_label`` + p

    Returns bool [R], whether each rule can be divided; Sides [T] of the topmost rules of these; the number of
    parts, P; and the Sides [P or more] of these. A part comes after the parts that it uses.
    O(symbols).  Twin: tests/naive/binarize.py::binarized.
    """
    num_rules = rules.lhs.shape[0]
    num_src, num_tgt = rules.src.shape[0], rules.tgt.shape[0]
    done = np.zeros(num_rules, np.bool_)
    # The rules that a rule becomes share its words, and have two gaps each: fewer than twice its own.
    tops = _new_sides(num_rules, 2 * num_src, 2 * num_tgt)
    parts = _new_sides(num_src + 1, 2 * num_src + 2, 2 * num_tgt + 2)
    slot = np.full(table_size(num_src + 1), -1, np.int32)
    num_tops, num_parts = 0, 0
    src_place, tgt_place = np.empty(MOST_GAPS, np.int64), np.empty(MOST_GAPS, np.int64)  # of gaps, in order
    rank = np.empty(MOST_GAPS + 1, np.int64)  # by index: place among the gaps of the target side
    # Blocks of gaps: the first and the last on the source side, on the target side, and the label.
    block = np.empty((MOST_GAPS, 5), np.int64)
    for r in range(num_rules):
        num_gaps, seen = 0, 0
        for k in range(rules.first_src[r], rules.first_src[r + 1]):
            if is_gap(rules.src[k]):
                src_place[num_gaps] = k
                num_gaps += 1
        for k in range(rules.first_tgt[r], rules.first_tgt[r + 1]):
            if is_gap(rules.tgt[k]):
                tgt_place[seen] = k
                rank[gap_index(np.int64(rules.tgt[k]))] = seen
                seen += 1
        size = 0
        for g in range(num_gaps):
            block[size, 0], block[size, 1] = g, g
            block[size, 2], block[size, 3] = rank[g + 1], rank[g + 1]
            block[size, 4] = gap_label(np.int64(rules.src[src_place[g]]))
            size += 1
            while size > 1:
                one, two = size - 2, size - 1
                straight = block[one, 3] + 1 == block[two, 2]
                if not straight and block[two, 3] + 1 != block[one, 2]:
                    break
                is_top = block[one, 0] == 0 and g == num_gaps - 1
                out, row = (tops, num_tops) if is_top else (parts, num_parts)
                gap_1, gap_2 = gap(block[one, 4], 1), gap(block[two, 4], 2)
                at = out.first_src[row]
                if is_top:
                    at = _copy_words(rules.src, rules.first_src[r], src_place[0], out.src, at)
                out.src[at] = gap_1
                between, after = src_place[block[one, 1]] + 1, src_place[block[two, 0]]
                at = _copy_words(rules.src, between, after, out.src, at + 1)
                out.src[at] = gap_2
                at += 1
                if is_top:
                    last = src_place[num_gaps - 1] + 1
                    at = _copy_words(rules.src, last, rules.first_src[r + 1], out.src, at)
                out.first_src[row + 1] = at
                left, right = (one, two) if straight else (two, one)
                at = out.first_tgt[row]
                if is_top:
                    at = _copy_words(rules.tgt, rules.first_tgt[r], tgt_place[0], out.tgt, at)
                out.tgt[at] = gap_1 if straight else gap_2
                between, after = tgt_place[block[left, 3]] + 1, tgt_place[block[right, 2]]
                at = _copy_words(rules.tgt, between, after, out.tgt, at + 1)
                out.tgt[at] = gap_2 if straight else gap_1
                at += 1
                if is_top:
                    last = tgt_place[num_gaps - 1] + 1
                    at = _copy_words(rules.tgt, last, rules.first_tgt[r + 1], out.tgt, at)
                out.first_tgt[row + 1] = at
                if is_top:
                    done[r] = True
                    num_tops += 1
                else:
                    place = probe(slot, _part_code(parts, row), _is_part, parts, row)
                    if slot[place] < 0:
                        slot[place] = num_parts
                        num_parts += 1
                    block[one, 4] = first_label + slot[place]
                block[one, 1] = block[two, 1]
                block[one, 2], block[one, 3] = block[left, 2], block[right, 3]
                size -= 1
    return done, tops, num_parts, parts
