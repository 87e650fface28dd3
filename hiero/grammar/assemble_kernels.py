# mypy: ignore-errors
"""Copy rules of several tables into one grammar, with shared ids: their sizes, offsets and contents."""

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Ids
from hiero.core.hash_kernels import ONE
from hiero.core.jit import kernel, leaf


class IdMaps(NamedTuple):
    """The shared ids of a table with ids of its own, by these; an empty array if they are the same.

    src   int32  words, and gaps, which are negative, from the end
    tgt   int32
    lhs   int32  labels of left-hand sides
    name  int32  names of sparse features
    """

    src: Ids
    tgt: Ids
    lhs: Ids
    name: Ids


SRC, TGT, SPARSE, LINK = 0, 1, 2, 3  # columns of sizes


@leaf
def shared_id(ids, own):
    return np.int64(ids[own]) if ids.shape[0] > 0 else np.int64(own)


@leaf
def _column_of(names, name):
    """The place of a name among the columns, or -1. There are few columns."""
    for d in range(names.shape[0]):
        if names[d] == name:
            return np.int64(d)
    return np.int64(-1)


@leaf
def measure_rule(rules, r, ids, names, out_size, i):
    """The sizes of rule r, in row i."""
    begin, end = np.uint64(r), np.uint64(r) + ONE
    out_size[i, SRC] = rules.first_src[end] - rules.first_src[begin]
    out_size[i, TGT] = rules.first_tgt[end] - rules.first_tgt[begin]
    out_size[i, LINK] = rules.first_link[end] - rules.first_link[begin]
    num_sparse = 0
    for k in range(rules.first_sparse[begin], rules.first_sparse[end]):
        if _column_of(names, shared_id(ids.name, rules.sparse_name[k])) < 0:
            num_sparse += 1
    out_size[i, SPARSE] = num_sparse


@kernel
def sizes_kernel(rules, rows, ids, names, out_size):
    """The sizes of some rules as ``plant_sources_kernel`` returns them.

    O(N).  Twin: tests/naive/grammar.py::in_order.
    """
    for i in range(rows.shape[0]):
        measure_rule(rules, rows[i], ids, names, out_size, i)


@kernel
def offsets_kernel(size, place):
    """The offsets of rules of these sizes, each at its place; sizes int32 [R, 4], place int64 [R].

    Returns int64 first_src, first_tgt, first_sparse, first_link [R + 1]. O(R).
    Twin: tests/naive/grammar.py::in_order.
    """
    num_rules = place.shape[0]
    first_src, first_tgt = np.empty(num_rules + 1, np.int64), np.empty(num_rules + 1, np.int64)
    first_sparse, first_link = np.empty(num_rules + 1, np.int64), np.empty(num_rules + 1, np.int64)
    rule = np.empty(num_rules, np.uint64)  # at each place
    for r in range(num_rules):
        rule[np.uint64(place[r])] = r
    src, tgt, sparse, link = 0, 0, 0, 0
    for p in range(num_rules):
        first_src[p], first_tgt[p], first_sparse[p], first_link[p] = src, tgt, sparse, link
        r = rule[p]
        src += size[r, SRC]
        tgt += size[r, TGT]
        sparse += size[r, SPARSE]
        link += size[r, LINK]
    first_src[num_rules], first_tgt[num_rules] = src, tgt
    first_sparse[num_rules], first_link[num_rules] = sparse, link
    return first_src, first_tgt, first_sparse, first_link


@leaf
def _copy_symbols(symbol, begin, end, ids, out_symbol, at):
    """Copy a run of symbols, with shared ids."""
    # Unsigned, because numba tests a signed index for being negative in every iteration.
    size, source, target = np.uint64(end - begin), np.uint64(begin), np.uint64(at)
    if ids.shape[0] > 0:
        for k in range(size):
            out_symbol[target + k] = ids[symbol[source + k]]
    else:
        for k in range(size):
            out_symbol[target + k] = symbol[source + k]


@leaf
def _copy_links(link, begin, end, out_link, at):
    size, source, target = np.uint64(end - begin), np.uint64(begin), np.uint64(at)
    for k in range(size):
        out_link[target + k, 0] = link[source + k, 0]
        out_link[target + k, 1] = link[source + k, 1]


@leaf
def _copy_columns(dense, row, size, column, out_dense, at):
    source, target = np.uint64(row), np.uint64(at)
    for i in range(np.uint64(size)):
        for d in range(column.shape[0]):
            value = np.float32(0)
            if column[d] >= 0:
                value = dense[source + i, np.uint64(column[d])]
            out_dense[target + i, d] = value


@leaf
def _copy_run(rules, r, size, ids, names, column, p, out):
    """Copy the rules from r on to the places from p on."""
    _copy_symbols(rules.lhs, r, r + size, ids.lhs, out.lhs, p)
    begin, end = rules.first_src[r], rules.first_src[r + size]
    _copy_symbols(rules.src, begin, end, ids.src, out.src, out.first_src[p])
    begin, end = rules.first_tgt[r], rules.first_tgt[r + size]
    _copy_symbols(rules.tgt, begin, end, ids.tgt, out.tgt, out.first_tgt[p])
    _copy_links(rules.link, rules.first_link[r], rules.first_link[r + size], out.link, out.first_link[p])
    _copy_columns(rules.dense, r, size, column, out.dense, p)
    if rules.first_sparse[r] == rules.first_sparse[r + size]:
        return
    at = out.first_sparse[p]
    for i in range(size):
        for k in range(rules.first_sparse[r + i], rules.first_sparse[r + i + 1]):
            name = shared_id(ids.name, rules.sparse_name[k])
            d = _column_of(names, name)
            if d >= 0:
                out.dense[p + i, d] = rules.sparse_value[k]
            else:
                out.sparse_name[at] = name
                out.sparse_value[at] = rules.sparse_value[k]
                at += 1


@kernel
def copy_rules_kernel(rules, rows, ids, names, column, place, out_rules):
    """Copy rules to their places, with shared ids.

    rules      Rules
    rows       int64 [R]  the rules
    ids        IdMaps
    names      int32 [D]  columns of the result; a sparse feature that is one of them moves there
    column     int64 [D]  column of ``rules`` for each of those, or -1
    place      int64 [R]
    out_rules  Rules      written, except for the offsets, which are given

    O(N).  Twin: tests/naive/grammar.py::in_order.
    """
    i = 0
    while i < rows.shape[0]:
        # Runs of rules that stay together are copied as a whole.
        end = i + 1
        while end < rows.shape[0] and rows[end] == rows[end - 1] + 1 and place[end] == place[end - 1] + 1:
            end += 1
        _copy_run(rules, rows[i], end - i, ids, names, column, place[i], out_rules)
        i = end
