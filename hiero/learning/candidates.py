"""k-best translations of a forest with numbered features, the input of learners, checked to be finite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.core.array_kernels import distinct_kernel
from hiero.core.arrays import Floats, Ids, Ints, read_only
from hiero.core.errors import HieroError
from hiero.decoder.derivation_kernels import EDGE
from hiero.decoder.forest import Forest
from hiero.features.index import FeatureIndex
from hiero.features.rows import concat_feature_rows
from hiero.learning.list_kernels import replay_candidates_kernel


class Candidates(NamedTuple):
    """N translations of one sentence, best first; all arrays read-only.

    first       int64 [N + 1]   the features of translation i are first[i]:first[i + 1] of id and value
    id          int32           in the FeatureIndex of the learner, ascending in each row, no zeros
    value       float64
    score       float64 [N]     of the model, with the weights used for decoding
    first_word  int64 [N + 1]   the words of translation i are first_word[i]:first_word[i + 1] of word
    word        int32
    """

    first: Ints
    id: Ids
    value: Floats
    score: Floats
    first_word: Ints
    word: Ids

    @property
    def size(self) -> int:
        """N; len() is the number of fields."""
        return len(self.score)


def candidates(forest: Forest, k: int, index: FeatureIndex, unique: bool = True) -> Candidates:
    """Return the k best translations of a decoded sentence, with features numbered by ``index``.

    New features are added to it, in an order that only depends on the translations.
    """
    table, roots = forest.list_kbest(k, unique)
    first_word, word, first_step, step = forest.expand(table, roots)
    edges = step[:, EDGE]
    rules = forest.edge_rule[edges]

    used, row_of_rule = distinct_kernel(read_only(rules[rules >= 0]))
    parts = forest.features.distinct_rows(used.astype(np.int64), index)
    used_edges, row_of_edge = distinct_kernel(read_only(edges))
    parts.append(forest.features.edge_rows(forest, used_edges, index))
    rows = concat_feature_rows(parts)
    part = np.full((len(edges), len(parts)), -1, np.int32)
    for number in range(len(parts) - 1):
        part[rules >= 0, number] = row_of_rule + number * len(used)
    part[:, -1] = row_of_edge + (len(parts) - 1) * len(used)

    ids, place = distinct_kernel(read_only(rows.id))
    order = np.argsort(ids)
    rank = np.empty(len(ids), np.int32)
    rank[order] = np.arange(len(ids))
    first, features, value = replay_candidates_kernel(
        first_step, read_only(part), rows.first, rank[place], rows.value, np.int64(len(ids))
    )
    return Candidates(
        *map(read_only, (first, ids[order][features], value, table.score[roots], first_word, word))
    )


class NotFinite(HieroError):
    """A weight or the value of a feature is infinite or not a number.

    feature  number of the feature
    found    the weight or value
    where    "its weight" or "its value in sentence N"
    """

    def __init__(self, feature: int, found: float, where: str, hint: str, name: str = "") -> None:
        self.feature, self.found, self.where, self.hint = feature, found, where, hint
        shown = repr(name) if name else str(feature)
        super().__init__(f"feature {shown}: found {found} as {where}, expected a finite number ({hint})")

    def named(self, name: str) -> NotFinite:
        """The same error with the name of the feature instead of its number."""
        return NotFinite(self.feature, self.found, self.where, self.hint, name)


def not_finite(weight: Floats, candidates: Candidates, number: int) -> NotFinite:
    """Return the error for a sentence with a score that is not finite, naming the feature that caused it."""
    for feature, value in _first_not_finite(candidates.id, candidates.value):
        where = f"its value in sentence {number}"
        return NotFinite(feature, value, where, "check the grammar, or the code of the feature")
    hint = "the weights diverge: try a lower rate"
    for feature, value in _first_not_finite(candidates.id, weight[candidates.id]):
        return NotFinite(feature, value, "its weight", hint)
    # All are finite, but a score is not.
    feature = int(candidates.id[np.argmax(np.abs(weight[candidates.id]))])
    return NotFinite(feature, float(weight[feature]), "the largest of the weights", hint)


def check_finite(ids: Ids, weight: Floats) -> None:
    """Raise ``NotFinite`` unless the weights of these features are all finite."""
    for feature, value in _first_not_finite(ids, weight[ids]):
        raise NotFinite(feature, value, "its weight", "the weights diverge: try a lower rate")


def _first_not_finite(ids: Ids, values: Floats) -> list[tuple[int, float]]:
    """The first feature whose value is not finite, if there is one."""
    is_finite = np.isfinite(values)
    if is_finite.all():
        return []
    at = int(np.argmin(is_finite))
    return [(int(ids[at]), float(values[at]))]
