"""All derivations of one translation, without search: the highest score a decoder may give a string.

A rule is (lhs, source, target, score). A gap is a pair (label, index), whose label matters only on the source
side; a word is anything else. The forest has the form of the lists of ``tests/naive/forest.py``, with the
rule of every edge.
"""


def matches(pattern, src, start, end):
    """All ways to put one word or more of src[start:end] into each gap: lists of (label, start, end)."""
    if not pattern:
        return [[]] if start == end else []
    first, rest = pattern[0], pattern[1:]
    if not isinstance(first, tuple):
        return matches(rest, src, start + 1, end) if start < end and src[start] == first else []
    return [
        [(first[0], start, cut), *more]
        for cut in range(start + 1, end - len(rest) + 1)
        for more in matches(rest, src, cut, end)
    ]


def place(target, spans, tgt, start):
    """The end of a target side from ``start`` on, with these spans in its gaps; None if it does not fit."""
    at = start
    for symbol in target:
        if not isinstance(symbol, tuple):
            if at == len(tgt) or tgt[at] != symbol:
                return None
            at += 1
        else:
            first, last = spans[symbol[1] - 1]
            if first != at:
                return None
            at = last
    return at


def starts(target, spans, tgt):
    """Places where a target side may begin."""
    if target and isinstance(target[0], tuple):
        return [spans[target[0][1] - 1][0]]
    return [at for at in range(len(tgt) + 1) if not target or tgt[at : at + 1] == [target[0]]]


def derive(rules, glue, src, tgt, span_limit, goal):
    """The forest of all derivations of ``goal`` that turn src into tgt: nodes, edges, rule of each edge.

    Rules cover at most ``span_limit`` words, glue begins at the first word. Categories that glue makes may
    come from one that a rule makes over the same words, not the other way round.
    """
    nodes, edges, edge_rule = [], [], []
    chart = {}  # (label, start, end) -> {target span: node}
    known = set(tgt)
    numbered = [
        (number, rule, number >= len(rules))
        for number, rule in enumerate([*rules, *glue])
        if all(isinstance(symbol, tuple) or symbol in known for symbol in rule[2])
    ]
    for width in range(1, len(src) + 1):
        for start in range(len(src) - width + 1):
            end = start + width
            for number, (lhs, source, target, score), is_glue in numbered:
                if (start > 0) if is_glue else (width > span_limit):
                    continue
                for gaps in matches(source, src, start, end):
                    for tails, spans in choices([chart.get(gap, {}) for gap in gaps]):
                        for first in starts(target, spans, tgt):
                            last = place(target, spans, tgt, first)
                            if last is not None:
                                items = chart.setdefault((lhs, start, end), {})
                                if (first, last) not in items:
                                    items[first, last] = len(nodes)
                                    nodes.append([])
                                nodes[items[first, last]].append(len(edges))
                                edges.append((tails, score))
                                edge_rule.append(number)
    whole = chart.get((goal, 0, len(src)), {}).get((0, len(tgt)))
    # The goal has to be the last node.
    nodes.append([] if whole is None else [len(edges)])
    if whole is not None:
        edges.append(([whole], 0.0))
        edge_rule.append(-1)
    return nodes, edges, edge_rule


def choices(items):
    """All ways to take one (target span, node) for each gap: (nodes, spans)."""
    if not items:
        return [([], [])]
    return [
        ([node, *nodes], [span, *spans])
        for span, node in items[0].items()
        for nodes, spans in choices(items[1:])
    ]


def best_score(nodes, edges):
    """The score of the goal's best derivation, -inf if there is none."""
    best = []
    for incoming in nodes:
        scores = [edges[e][1] + sum(best[tail] for tail in edges[e][0]) for e in incoming]
        best.append(max(scores, default=float("-inf")))
    return best[-1]
