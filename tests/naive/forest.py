"""Forests by enumerating every derivation.

A graph is a list of nodes in topological order, the goal last; a node is a list of edge numbers; an edge is a
pair (tails, score). A derivation is a tuple (edge, part, part, ...).
"""

import itertools
import math


def enumerate_derivations(nodes, edges, v):
    """Every derivation of a node that uses no edge of score -inf."""
    found = []
    for edge in nodes[v]:
        tails, score = edges[edge]
        if score > -math.inf:
            for parts in itertools.product(*(enumerate_derivations(nodes, edges, tail) for tail in tails)):
                found.append((edge, *parts))
    return found


def all_edges(derivation):
    """The edges in pre-order, repeated as often as they occur."""
    edge, *parts = derivation
    return [edge] + [other for part in parts for other in all_edges(part)]


def score(edges, derivation):
    return sum(edges[edge][1] for edge in all_edges(derivation))


def weight(edges, derivation):
    return math.exp(score(edges, derivation))


def num_derivations(nodes, edges, v):
    return len(enumerate_derivations(nodes, edges, v))


def inside(nodes, edges, v):
    """The sum of the weights, not its logarithm."""
    return sum(weight(edges, d) for d in enumerate_derivations(nodes, edges, v))


def outside(nodes, edges, v):
    """The sum over every occurrence of v in a derivation of the goal of the weight of the rest."""
    head = {edge: u for u, incoming in enumerate(nodes) for edge in incoming}

    def weights_inside(derivation):
        """The weights of the parts that derive v, the whole included."""
        own = [weight(edges, derivation)] if head[derivation[0]] == v else []
        return own + [w for part in derivation[1:] for w in weights_inside(part)]

    # Each context is in as many derivations as v has; dividing by v's inside weight counts it once.
    total = sum(
        weight(edges, d) * len(weights_inside(d)) for d in enumerate_derivations(nodes, edges, len(nodes) - 1)
    )
    return total / inside(nodes, edges, v) if total else 0.0


def edge_posteriors(nodes, edges):
    """The expected count of each edge in a derivation of the goal."""
    found = enumerate_derivations(nodes, edges, len(nodes) - 1)
    total = sum(weight(edges, d) for d in found)
    expected = [0.0] * len(edges)
    for d in found:
        for edge in all_edges(d):
            expected[edge] += weight(edges, d) / total
    return expected


def node_posteriors(nodes, edges):
    """The expected count of each node in a derivation of the goal."""
    expected = edge_posteriors(nodes, edges)
    return [sum(expected[edge] for edge in incoming) for incoming in nodes]


def max_marginals(nodes, edges):
    """The score of the best derivation of the goal through each edge."""
    best = [-math.inf] * len(edges)
    for d in enumerate_derivations(nodes, edges, len(nodes) - 1):
        for edge in all_edges(d):
            best[edge] = max(best[edge], score(edges, d))
    return best


def prune(nodes, edges, beam):
    """The edges, and the nodes, of the derivations of the goal at most ``beam`` below the best."""
    found = enumerate_derivations(nodes, edges, len(nodes) - 1)
    best = max((score(edges, d) for d in found), default=0.0)
    kept = {edge for d in found if score(edges, d) >= best - beam for edge in all_edges(d)}
    return kept, {v for v, incoming in enumerate(nodes) if kept & set(incoming)} | {len(nodes) - 1}


def words(rules, edge_rule, derivation):
    """The target words. A rule is its target side: a list of words (>= 0) and gaps (-1 and -2)."""
    edge, *parts = derivation
    if edge_rule[edge] < 0:
        return words(rules, edge_rule, parts[0])
    found = []
    for symbol in rules[edge_rule[edge]]:
        found += [symbol] if symbol >= 0 else words(rules, edge_rule, parts[-symbol - 1])
    return found


def ranked(nodes, edges, rules, edge_rule, unique):
    """Every node's derivations, best first: (score, edge, ranks of the parts); then by edge and ranks.

    With ``unique``, a node keeps the first of each string. Returns, by node, lists of (score, derivation).
    """
    lists = []
    for incoming in nodes:
        found = []
        for edge in incoming:
            tails, edge_score = edges[edge]
            for ranks in itertools.product(*(range(len(lists[tail])) for tail in tails)):
                parts = [lists[tail][rank] for tail, rank in zip(tails, ranks, strict=True)]
                total = edge_score + sum(part[0] for part in parts)
                if total > -math.inf:
                    found.append((-total, edge, ranks, (edge, *(part[1] for part in parts))))
        kept, seen = [], set()
        for negative, _, _, derivation in sorted(found):
            string = tuple(words(rules, edge_rule, derivation))
            if not unique or string not in seen:
                kept.append((-negative, derivation))
                seen.add(string)
        lists.append(kept)
    return lists


def kbest(nodes, edges, rules, edge_rule, k, unique):
    """The first k (score, derivation) of the goal."""
    return ranked(nodes, edges, rules, edge_rule, unique)[-1][:k]


def viterbi(nodes, edges, v):
    """The best score of a node and the smallest topmost edge that reaches it, or (-inf, -1)."""
    found = [(-score(edges, d), d[0]) for d in enumerate_derivations(nodes, edges, v)]
    best = min(found, default=(math.inf, -1))
    return -best[0], best[1]


def best_derivation(nodes, edges, v):
    """Follow ``viterbi`` down."""
    _, edge = viterbi(nodes, edges, v)
    return (edge, *(best_derivation(nodes, edges, tail) for tail in edges[edge][0]))


def expand(rules, edge_rule, derivation, start=0, depth=0):
    """The steps in pre-order, first gaps first: (edge, depth, first target word, the one after the last)."""
    edge, *parts = derivation
    if edge_rule[edge] < 0:
        return [
            (edge, depth, start, start + len(words(rules, edge_rule, derivation))),
            *expand(rules, edge_rule, parts[0], start, depth + 1),
        ]
    starts, cursor = {}, start
    for symbol in rules[edge_rule[edge]]:
        if symbol < 0:
            starts[-symbol - 1] = cursor
            cursor += len(words(rules, edge_rule, parts[-symbol - 1]))
        else:
            cursor += 1
    steps = [(edge, depth, start, cursor)]
    for k, part in enumerate(parts):
        steps += expand(rules, edge_rule, part, starts[k], depth + 1)
    return steps


def alignment(src, tgt, links, spans, edges, head, edge_rule, derivation, start=0):
    """The set of (source word, target word) of all links between words.

    ``src``, ``tgt`` and ``links`` hold the sides and links of each rule, ``spans`` the source spans of nodes.
    """
    edge, *parts = derivation
    rule = edge_rule[edge]
    if rule < 0:
        return alignment(src, tgt, links, spans, edges, head, edge_rule, parts[0], start)
    found = set()
    src_place, cursor = [], spans[head[edge]][0]
    for symbol in src[rule]:
        src_place.append(cursor if symbol >= 0 else None)
        cursor = cursor + 1 if symbol >= 0 else spans[edges[edge][0][-symbol - 1]][1]
    tgt_place, cursor = [], start
    for symbol in tgt[rule]:
        tgt_place.append(cursor if symbol >= 0 else None)
        if symbol >= 0:
            cursor += 1
        else:
            part = parts[-symbol - 1]
            found |= alignment(src, tgt, links, spans, edges, head, edge_rule, part, cursor)
            cursor += len(words(tgt, edge_rule, part))
    for i, j in links[rule]:
        if src_place[i] is not None and tgt_place[j] is not None:
            found.add((src_place[i], tgt_place[j]))
    return found


def whole_steps(steps, is_part):
    """The steps of a tree in pre-order, (depth, end), without parts: (number, depth, end); and owners of all.

    The owner of a part is that of the step above; numbers of owners do not count parts.
    """
    above = [[j for j in range(i) if steps[j][1] > i] for i in range(len(steps))]
    kept = [i for i in range(len(steps)) if not is_part[i]]
    whole = [(i, sum(not is_part[j] for j in above[i]), sum(j < steps[i][1] for j in kept)) for i in kept]

    def owner(i):
        return owner(above[i][-1]) if is_part[i] else kept.index(i)

    return whole, [owner(i) for i in range(len(steps))]
