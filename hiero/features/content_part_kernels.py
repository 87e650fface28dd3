"""Number rules by their whole content."""

from hiero.core.jit import kernel
from hiero.features.index import RULE_ID, intern_feature


@kernel
def content_length(rules, r):
    num_src = rules.first_src[r + 1] - rules.first_src[r]
    num_tgt = rules.first_tgt[r + 1] - rules.first_tgt[r]
    num_links = rules.first_link[r + 1] - rules.first_link[r]
    num_sparse = rules.first_sparse[r + 1] - rules.first_sparse[r]
    return 5 + num_src + num_tgt + 2 * num_links + 2 * num_sparse + 2 * rules.dense.shape[1]


@kernel
def content_room_kernel(rules, chosen, out_room):
    """Add up in int64 ``out_room`` [1] the integers that ``content_kernel`` needs for the chosen rules.

    O(N).  Twin: tests/naive/features.py::content_room.
    """
    for i in range(chosen.shape[0]):
        out_room[0] += content_length(rules, chosen[i])


@kernel
def content_kernel(rules, chosen, columns, dense, sparse, table, out_pool, out_id):
    """Number the chosen rules, equal rules alike, new ones in the order of first appearance.

    rules     Rules
    chosen    int64 [N]
    columns   int32 [D]      names of the dense columns
    dense     int32 [R, D]   the bits of rules.dense
    sparse    int32          the bits of rules.sparse_value
    table     FeatureTable   written; must have room for N sequences
    out_pool  int32          scratch, length from content_room_kernel
    out_id    int32 [N]      written

    Each list is preceded by its length, so different rules have different sequences.
    Twin: tests/naive/features.py::contents.
    """
    n = 0
    for i in range(chosen.shape[0]):
        r = chosen[i]
        start = n
        out_pool[n] = rules.lhs[r]
        out_pool[n + 1] = rules.first_src[r + 1] - rules.first_src[r]
        out_pool[n + 2] = rules.first_tgt[r + 1] - rules.first_tgt[r]
        out_pool[n + 3] = rules.first_link[r + 1] - rules.first_link[r]
        out_pool[n + 4] = columns.shape[0]
        n += 5
        for j in range(rules.first_src[r], rules.first_src[r + 1]):
            out_pool[n] = rules.src[j]
            n += 1
        for j in range(rules.first_tgt[r], rules.first_tgt[r + 1]):
            out_pool[n] = rules.tgt[j]
            n += 1
        for j in range(rules.first_link[r], rules.first_link[r + 1]):
            out_pool[n] = rules.link[j, 0]
            out_pool[n + 1] = rules.link[j, 1]
            n += 2
        for d in range(columns.shape[0]):
            out_pool[n] = columns[d]
            out_pool[n + 1] = dense[r, d]
            n += 2
        for j in range(rules.first_sparse[r], rules.first_sparse[r + 1]):
            out_pool[n] = rules.sparse_name[j]
            out_pool[n + 1] = sparse[j]
            n += 2
        out_id[i] = intern_feature(table, RULE_ID, start, n - start, out_pool)
