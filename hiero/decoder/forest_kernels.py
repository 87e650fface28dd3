# mypy: ignore-errors
"""Dynamic programs over a hypergraph.

A score is the logarithm of a weight. An edge of score -inf is in no derivation; no score is +inf or NaN.
Tails count by position, not by node: one node may fill both.
"""

import numpy as np

from hiero.core.jit import kernel, leaf


@leaf
def log_add(a, b):
    """log(exp(a) + exp(b)); -inf if both are."""
    if a < b:
        a, b = b, a
    if b == -np.inf:
        return a
    return a + np.log1p(np.exp(b - a))


@leaf
def edge_total(graph, edge_score, node_score, edge):
    """The score of an edge with those of its tails, summed in one fixed order."""
    score = edge_score[edge]
    for k in range(2):
        if graph.tail[edge, k] >= 0:
            score += node_score[graph.tail[edge, k]]
    return score


@kernel
def viterbi_kernel(graph, edge_score, out_best, out_edge):
    """The best derivation of every node; of equal ones, that with the smaller edge.

    graph       Hypergraph
    edge_score  float64 [E]
    out_best    float64 [V]  written; -inf for a node with no derivation
    out_edge    int32 [V]    written; its topmost edge, or -1

    O(E).  Twin: tests/naive/forest.py::viterbi.
    """
    for v in range(out_best.shape[0]):
        best, best_edge = -np.inf, np.int64(-1)
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            score = edge_total(graph, edge_score, out_best, edge)
            if score > best:
                best, best_edge = score, edge
        out_best[v] = best
        out_edge[v] = best_edge


@kernel
def inside_kernel(graph, edge_score, out_inside):
    """The log of the summed weights of the derivations of every node.

    graph       Hypergraph
    edge_score  float64 [E]
    out_inside  float64 [V]  written; -inf for a node with no derivation

    O(E).  Twin: tests/naive/forest.py::inside.
    """
    for v in range(out_inside.shape[0]):
        best = -np.inf
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            best = max(best, edge_total(graph, edge_score, out_inside, edge))
        total = 0.0
        if best > -np.inf:
            for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
                total += np.exp(edge_total(graph, edge_score, out_inside, edge) - best)
        out_inside[v] = best + np.log(total) if total > 0.0 else -np.inf


@leaf
def _larger(a, b):
    return max(a, b)


@leaf
def _outside(graph, edge_score, inside, combine, out_outside):
    """The total of the contexts of every node; ``combine`` is the addition of a semiring."""
    num_nodes = out_outside.shape[0]
    for v in range(num_nodes):
        out_outside[v] = 0.0 if v == num_nodes - 1 else -np.inf
    for v in range(num_nodes - 1, -1, -1):
        if out_outside[v] == -np.inf:
            continue
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            around = out_outside[v] + edge_score[edge]
            left, right = graph.tail[edge, 0], graph.tail[edge, 1]
            # Positions, not nodes: with tails (u, u) each of the two is the other's sibling.
            if left >= 0:
                sibling = inside[right] if right >= 0 else 0.0
                out_outside[left] = combine(out_outside[left], around + sibling)
            if right >= 0:
                out_outside[right] = combine(out_outside[right], around + inside[left])


@kernel
def outside_kernel(graph, edge_score, inside, out_outside):
    """The log of the summed weights of all contexts of a node in derivations of the goal.

    graph        Hypergraph
    edge_score   float64 [E]
    inside       float64 [V]  from ``inside_kernel``
    out_outside  float64 [V]  written; 0 for the goal, -inf for a node in no derivation of it

    O(E).  Twin: tests/naive/forest.py::outside.
    """
    _outside(graph, edge_score, inside, log_add, out_outside)


@kernel
def best_outside_kernel(graph, edge_score, best, out_outside):
    """The score of the best context of a node in a derivation of the goal.

    graph        Hypergraph
    edge_score   float64 [E]
    best         float64 [V]  from ``viterbi_kernel``
    out_outside  float64 [V]  written; 0 for the goal, -inf for a node in no derivation of it

    O(E).  Twin: tests/naive/forest.py::max_marginals, through ``edge_marginals_kernel``.
    """
    _outside(graph, edge_score, best, _larger, out_outside)


@kernel
def edge_marginals_kernel(graph, edge_score, inside, outside, out_marginal):
    """The total of the derivations of the goal through every edge, in the semiring of the arguments.

    graph         Hypergraph
    edge_score    float64 [E]
    inside        float64 [V]  log inside scores, or best scores
    outside       float64 [V]  log outside scores, or best outside scores
    out_marginal  float64 [E]  written; -inf for an edge in no derivation

    With sums, exp(marginal - inside of the goal) is the expected count of the edge in a derivation. With
    maxima, it is the score of the best derivation that uses the edge.

    O(E).  Twins: tests/naive/forest.py::edge_posteriors, max_marginals.
    """
    for v in range(inside.shape[0]):
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            if outside[v] == -np.inf:
                out_marginal[edge] = -np.inf
            else:
                out_marginal[edge] = outside[v] + edge_total(graph, edge_score, inside, edge)


@kernel
def count_kernel(graph, edge_score, out_count):
    """The number of derivations of every node.

    graph       Hypergraph
    edge_score  float64 [E]  only used to skip edges of -inf
    out_count   float64 [V]  written; inf beyond 1.8e308

    O(E).  Twin: tests/naive/forest.py::num_derivations.
    """
    for v in range(out_count.shape[0]):
        total = 0.0
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            if edge_score[edge] > -np.inf:
                product = 1.0
                for k in range(2):
                    if graph.tail[edge, k] >= 0:
                        # Without the test, a dead tail next to an overflown one would make a NaN.
                        factor = out_count[graph.tail[edge, k]]
                        product = product * factor if product > 0.0 and factor > 0.0 else 0.0
                total += product
        out_count[v] = total


@kernel
def prune_kernel(graph, marginal, threshold, out_node, out_edge):
    """Number the edges that reach a threshold and that a derivation of kept edges uses, and their nodes.

    graph      Hypergraph
    marginal   float64 [E]  best score of a derivation through an edge
    threshold  float        edges below it are dropped
    out_node   int32 [V]    written; new number of a node, -1 if dropped; the goal is always kept
    out_edge   int32 [E]    written; new number of an edge, -1 if dropped

    O(E).  Twin: tests/naive/forest.py::prune.
    """
    num_nodes = out_node.shape[0]
    # Bottom-up: rounding at the threshold may have dropped all edges of a tail of a kept edge.
    for v in range(num_nodes):
        out_node[v] = -1
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            kept = marginal[edge] >= threshold and marginal[edge] > -np.inf
            for k in range(2):
                if graph.tail[edge, k] >= 0 and out_node[graph.tail[edge, k]] < 0:
                    kept = False
            out_edge[edge] = 0 if kept else -1
            if kept:
                out_node[v] = 0
    reached = np.zeros(num_nodes, np.bool_)
    if num_nodes > 0:
        reached[num_nodes - 1] = True
    for v in range(num_nodes - 1, -1, -1):
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            if not reached[v]:
                out_edge[edge] = -1
            elif out_edge[edge] == 0:
                for k in range(2):
                    if graph.tail[edge, k] >= 0:
                        reached[graph.tail[edge, k]] = True
    nodes, edges = 0, 0
    for v in range(num_nodes):
        out_node[v] = nodes if reached[v] else -1
        nodes += reached[v]
        for edge in range(graph.first_edge[v], graph.first_edge[v + 1]):
            if out_edge[edge] == 0:
                out_edge[edge] = edges
                edges += 1
