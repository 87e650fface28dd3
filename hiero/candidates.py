# mypy: allow-untyped-calls
"""The translations of a sentence with their features as numbers: what a learner sees of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.decode import DerivationFeatures
from hiero.features import NAME, FeatureIndex, FeatureRows, Key
from hiero.forest import Forest
from hiero.kernels.derivations import EDGE
from hiero.kernels.replay import replay_kernel
from hiero.rulecache import concat_rows, merge_rows
from hiero.scoring import edge_rows
from hiero.symbols import read_only

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Candidates(NamedTuple):
    """N translations of one sentence, best first; all arrays read-only.

    first       int64 [N + 1]   the features of translation i are first[i]:first[i + 1] of id and value
    id          int32           in the FeatureIndex of the learner, ascending in each row, no zeros
    value       float64
    score       float64 [N]     of the model, with the weights of then
    first_word  int64 [N + 1]   the words of translation i are first_word[i]:first_word[i + 1] of word
    word        int32
    """

    first: Ints
    id: npt.NDArray[np.int32]
    value: Floats
    score: Floats
    first_word: Ints
    word: npt.NDArray[np.int32]

    @property
    def size(self) -> int:
        """N. (The length of a tuple is that of its fields.)"""
        return len(self.score)


def candidates(forest: Forest, k: int, index: FeatureIndex, unique: bool = True) -> Candidates:
    """The k best translations of a sentence that a model has decoded, features numbered by ``index``.

    New features get the next numbers, in an order that depends on the translations alone.
    """
    source = forest.feature_source
    assert isinstance(source, DerivationFeatures)
    table, roots = forest.list_kbest(k, unique)
    first_word, word, first_step, step = forest.expand(table, roots)
    edges = step[:, EDGE]
    rules = forest.edge_rule[edges]

    used, row_of_rule = _in_order_of_sight(rules[rules >= 0])
    rows = source.rule_rows(used.astype(np.int64), index)
    part = np.full((len(edges), 1), -1, np.int32)
    part[rules >= 0, 0] = row_of_rule

    met, row_of_edge = _in_order_of_sight(edges)
    beyond = _edge_rows(forest, source, met, index)
    part = np.concatenate([part, (row_of_edge + len(used))[:, None].astype(np.int32)], axis=1)
    rows = concat_rows(rows, beyond)

    ids, local = np.unique(rows.id, return_inverse=True)
    first, features, value = replay_kernel(
        first_step, read_only(part), rows.first, local.astype(np.int32), rows.value, np.int64(len(ids))
    )
    return Candidates(
        *map(
            read_only,
            (first, ids.astype(np.int32)[features], value, table.score[roots], first_word, word),
        )
    )


def _in_order_of_sight(items: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], Ints]:
    """The distinct items as they first occur, and the place of each item among them."""
    distinct, first, place = np.unique(items, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[place]


def _edge_rows(
    forest: Forest, source: DerivationFeatures, edges: npt.NDArray[np.int32], index: FeatureIndex
) -> FeatureRows:
    """What each edge adds beyond its rule: language models, and features of rule applications."""
    names = source.model.symbols.names
    models = [index.intern((NAME, names.intern(name.encode()), 0)) for name in forest.lm_names]
    scores = forest.edge_lm[edges].astype(np.float64)
    rows = FeatureRows(
        np.arange(len(edges) + 1, dtype=np.int64) * len(models),
        np.tile(np.array(models, np.int32), len(edges)),
        scores.reshape(-1),
    )
    features = source.model.features.edge_features
    if not features:
        return rows
    ruled = np.flatnonzero(forest.edge_rule[edges] >= 0)
    found = edge_rows(source.batch(forest, edges[ruled]), forest.rules, features, index, names)
    lengths = np.zeros(len(edges), np.int64)
    lengths[ruled] = np.diff(found.first)
    first = np.concatenate([[0], np.cumsum(lengths)])
    return merge_rows([rows, FeatureRows(first, found.id, found.value)])


def edge_values(forest: Forest, keys: Sequence[Key]) -> npt.NDArray[np.float32]:
    """The values of some features on every edge of a forest that a model has decoded, float32 [E, D].

    A derivation has what its edges have together.
    """
    source = forest.feature_source
    assert isinstance(source, DerivationFeatures)
    index = FeatureIndex()  # of its own: what the rules have beside these is of no interest
    columns = index.intern_all(keys)
    ruled = np.flatnonzero(forest.edge_rule >= 0)
    used, row_of_rule = _in_order_of_sight(forest.edge_rule[ruled])
    rules = _columns(source.rule_rows(used.astype(np.int64), index), columns)
    values = _columns(_edge_rows(forest, source, np.arange(forest.num_edges, dtype=np.int32), index), columns)
    values[ruled] += rules[row_of_rule]
    return values


def _columns(rows: FeatureRows, columns: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """Rows as a matrix of those features alone."""
    table = np.zeros((len(rows.first) - 1, len(columns)), np.float32)
    place = np.full(1 + max(int(columns.max(initial=-1)), int(rows.id.max(initial=-1))), -1)
    place[columns] = np.arange(len(columns))
    row, column = np.repeat(np.arange(len(table)), np.diff(rows.first)), place[rows.id]
    np.add.at(table, (row[column >= 0], column[column >= 0]), rows.value[column >= 0])
    return table
