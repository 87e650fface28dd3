"""n-grams, expected counts and choices among translations by enumerating every derivation.

Graphs, edges, rules and derivations are those of ``tests.naive.forest``; a choice maps strings to gains.
"""

import math
from collections import Counter

from tests.naive import forest


def ngrams(words, order):
    """The n-grams up to an order with their counts."""
    return Counter(
        tuple(words[start : start + n]) for n in range(1, order + 1) for start in range(len(words) - n + 1)
    )


def outer_words(words, width):
    """The first and the last words of a string; all of a short one."""
    return tuple(words[:width]), tuple(words[max(0, len(words) - width) :])


def split_nodes(nodes, edges, rules, edge_rule, width):
    """The pairs of a node and the outer words of its derivations; the goal has none."""
    found = set()
    for v in range(len(nodes) - 1):
        for derivation in forest.enumerate_derivations(nodes, edges, v):
            found.add((v, *outer_words(forest.words(rules, edge_rule, derivation), width)))
    return found


def edge_ngrams(rules, edge_rule, derivation, order):
    """The n-grams that the topmost edge of a derivation creates."""
    created = ngrams(forest.words(rules, edge_rule, derivation), order)
    for part in derivation[1:]:
        created.subtract(ngrams(forest.words(rules, edge_rule, part), order))
    return +created


def distribution(nodes, edges, rules, edge_rule, alpha=1.0):
    """The probability of every string."""
    found = forest.enumerate_derivations(nodes, edges, len(nodes) - 1)
    weights = [math.exp(alpha * forest.score(edges, d)) for d in found]
    strings = Counter()
    for d, weight in zip(found, weights, strict=True):
        strings[tuple(forest.words(rules, edge_rule, d))] += weight / sum(weights)
    return strings


def expected_ngrams(strings, order):
    """The expected count of each n-gram in a string."""
    expected = Counter()
    for words, share in strings.items():
        for ngram, count in ngrams(words, order).items():
            expected[ngram] += share * count
    return expected


def expected_matches(words, expected, order):
    """For each order the sum of the smaller of the counts in a string and the expected ones."""
    counts = ngrams(words, order)
    return [
        sum(min(count, expected[ngram]) for ngram, count in counts.items() if len(ngram) == n)
        for n in range(1, order + 1)
    ]


def linear_bleu(words, expected, precision, ratio):
    """The linear BLEU of a string, with n-grams as probable as expected, at most 1."""
    gain = -float(len(words))
    for ngram, count in ngrams(words, 4).items():
        gain += count * min(1.0, expected[ngram]) / (4 * precision * ratio ** (len(ngram) - 1))
    return gain


def best_gain(nodes, edges, gain, v):
    """The largest gain of a derivation of a node, and the best score of one that has it; or None."""
    totals = [
        (sum(gain[edge] for edge in forest.all_edges(d)), forest.score(edges, d))
        for d in forest.enumerate_derivations(nodes, edges, v)
    ]
    return max(totals, default=None)
