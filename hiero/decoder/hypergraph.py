"""Forests of derivations as arrays, and the arrays that a search reads and returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Floats, Floats32, Ids, Ints


class Hypergraph(NamedTuple):
    """V nodes in topological order, the goal last, and E edges.

    first_edge  int64 [V + 1]   incoming edges of node v: first_edge[v] ... first_edge[v + 1] - 1
    tail        int32 [E, 2]    tail nodes, all smaller than the head; -1 where an edge has fewer than two.
                                Column k fills gap k + 1 of the rule. One node may fill both.
    """

    first_edge: Ints
    tail: Ids


class Derivations(NamedTuple):
    """D derivations of nodes of one hypergraph, with shared parts; parts come before wholes.

    node    int32 [D]      the node derived
    edge    int32 [D]      the topmost edge
    part    int32 [D, 2]   the derivations of its tails, -1 where the edge has none
    size    int64 [D]      number of edges
    length  int64 [D]      number of target words
    score   float64 [D]
    """

    node: Ids
    edge: Ids
    part: Ids
    size: Ints
    length: Ints
    score: Floats


class Pairs(NamedTuple):
    """Applications of rules to the bundles of a parse, P in all.

    first     int64 [B]    first pair of each bundle; bundles may share theirs
    rule      int32 [P]
    score     float64 [P]  weighted score without language models
    estimate  float64 [P]  the same with the models' scores of the rule's words
    """

    first: Ints
    rule: Ids
    score: Floats
    estimate: Floats


class Chart(NamedTuple):
    """A searched forest: V nodes, the goal last if there is one, and E edges by head.

    first_edge  int64 [V + 1]
    cell        int32 [V]      of each node; -1 for the goal
    tail        int32 [E, 2]   nodes, -1 for none
    rule        int32 [E]      -1 on edges into the goal
    local       float64 [E]    score of the edge itself
    lm          float32 [E, M] its share of each model's log10 probability
    """

    first_edge: Ints
    cell: Ids
    tail: Ids
    rule: Ids
    local: Floats
    lm: Floats32


EMPTY_CHART = Chart(
    np.zeros(1, np.int64),
    np.zeros(0, np.int32),
    np.zeros((0, 2), np.int32),
    np.zeros(0, np.int32),
    np.zeros(0),
    np.zeros((0, 0), np.float32),
)


def validate(graph: Hypergraph) -> None:
    """Raise ValueError unless the arrays are a hypergraph; kernels read them unchecked."""
    first, tail = graph
    if first.ndim != 1 or not len(first) or first.dtype != np.int64:
        raise ValueError("first_edge must be an int64 vector with one entry more than there are nodes")
    if tail.ndim != 2 or tail.shape[1] != 2 or tail.dtype != np.int32:
        raise ValueError(f"tail must be int32 with two columns, not {tail.dtype} {tail.shape}")
    if first[0] != 0 or first[-1] != len(tail) or (np.diff(first) < 0).any():
        raise ValueError(f"first_edge must ascend from 0 to the number of edges, {len(tail)}")
    head = heads(graph)
    for message, wrong in (
        ("has a tail that does not come before its head", (tail >= head[:, None]).any(axis=1)),
        ("has a negative tail other than -1", (tail < -1).any(axis=1)),
        ("has a second tail but no first", (tail[:, 0] < 0) & (tail[:, 1] >= 0)),
    ):
        if wrong.any():
            edge = int(np.argmax(wrong))
            raise ValueError(f"edge {edge} of node {head[edge]} {message}: {tail[edge].tolist()}")


def heads(graph: Hypergraph) -> Ids:
    """The head of every edge, int32 [E]."""
    return np.repeat(np.arange(len(graph.first_edge) - 1, dtype=np.int32), np.diff(graph.first_edge))
