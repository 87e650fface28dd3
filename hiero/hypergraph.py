"""Forests of derivations as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Hypergraph(NamedTuple):
    """V nodes in topological order, the goal last, and E edges.

    first_edge  int64 [V + 1]   incoming edges of node v: first_edge[v] ... first_edge[v + 1] - 1
    tail        int32 [E, 2]    tail nodes, all smaller than the head; -1 where an edge has fewer than two.
                                Column k is what fills gap k + 1 of the rule. One node may fill both.
    """

    first_edge: npt.NDArray[np.int64]
    tail: npt.NDArray[np.int32]
