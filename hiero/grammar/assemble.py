# mypy: allow-untyped-calls
"""The order of categories.

Ids of labels depend on the order of reading and on threads. So that the result of a search does not, the
parser identifies labels by their ranks in the order of their names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import Vocabulary, gap_label
from hiero.grammar.rules import Trie

Ints = npt.NDArray[np.int32]


class Ranks(NamedTuple):
    """L labels in the order of their names.

    of_label  int32 [L]  rank of each label
    label     int32 [L]  label of each rank
    as_ids    bool       whether ranks and ids are the same
    """

    of_label: Ints
    label: Ints
    as_ids: bool


def label_ranks(labels: Vocabulary) -> Ranks:
    """Rank labels by their names."""
    entries = labels.entries()
    label = np.array(sorted(range(len(entries)), key=entries.__getitem__), np.int32)
    of_label = np.empty(len(label), np.int32)
    of_label[label] = np.arange(len(label))
    return Ranks(of_label, label, bool((np.diff(label) > 0).all()))


def unary_order(trie: Trie, lhs: Ints, num_labels: int, first: int, more: list[tuple[int, int]]) -> Ints:
    """Sort categories so that unary rules lead from earlier to later ones, except those that close a cycle.

    ``more`` are unary rules outside of the trie, as pairs (child, parent). The sort is a depth-first search
    that starts at ``first``; in a cycle, the rule back to the category entered first is not used.
    """
    parents: list[set[int]] = [set() for _ in range(num_labels)]
    for child, parent in more:
        parents[child].add(parent)
    for node in range(int(trie.first_child[0]), int(trie.first_child[1])):
        if trie.symbol[node] >= 0:
            break
        rules = lhs[trie.first_rule[node] : trie.first_rule[node + 1]]
        parents[gap_label(int(trie.symbol[node]))].update(rules.tolist())
    order: list[int] = []
    state = [0] * num_labels  # 1: entered, 2: done
    for root in (first, *range(num_labels)):
        stack = [root]
        while stack:
            label = stack[-1]
            if state[label] == 0:
                state[label] = 1
                stack += [parent for parent in sorted(parents[label]) if state[parent] == 0]
            else:
                stack.pop()
                if state[label] == 1:
                    state[label] = 2
                    order.append(label)
    return np.array(order[::-1], np.int32)
