"""Choosing among the translations of a forest by their expected BLEU, and expected counts of n-grams.

The posterior of a derivation is proportional to exp(alpha * score). Three rules of choice:

kbest      the translation of a k-best list with the largest expected sentence BLEU, where every translation
           of the list is a reference with its posterior in the list (Kumar and Byrne 2004)
forest     the translation of the forest with the largest linear BLEU (Tromble et al. 2008): a sum over its
           words and n-grams, an n-gram counting as much as it is probable
consensus  the translation of a k-best list with the best BLEU against the expected n-gram counts of the
           forest (DeNero, Chiang and Knight 2009)

Expected counts are exact for the derivations within the beam: nodes of the forest are split until all
derivations of a node have the same outer words (``ngram_kernels``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from hiero.core.arrays import Floats, Ids, Ints, offsets_by_row, offsets_of, read_only, row_of_entry
from hiero.core.errors import ConfigError, HieroError
from hiero.core.symbol_kernels import gap_index, is_gap
from hiero.decoder.config import ConsensusConfig, SearchConfig
from hiero.decoder.derivation_kernels import EDGE, best_derivation_kernel
from hiero.decoder.forest_kernels import (
    edge_marginals_kernel,
    inside_kernel,
    outside_kernel,
    viterbi_kernel,
)
from hiero.decoder.hypergraph import Hypergraph
from hiero.decoder.kbest_kernels import kbest, kbest_capacity, new_kbest_search
from hiero.decoder.lattices import PathFinder, word_arc
from hiero.decoder.ngram_kernels import (
    best_gain_kernel,
    edge_ngrams_kernel,
    expected_matches_kernel,
    split_nodes_kernel,
)
from hiero.evaluation.bleu import MAX_ORDER, References, sentence_bleu
from hiero.grammar.rules import rule_lists

if TYPE_CHECKING:
    from hiero.decoder.derivation import Derivation
    from hiero.decoder.forest import Forest

MAX_EDGES = 20_000_000
GRID = 2.0**40  # gains of n-grams are rounded to multiples of 1 / GRID, so that sums are exact
BY_SCORE = 2.0**-20  # share of the score in the order of further translations


class Chosen(NamedTuple):
    """A translation and what it was chosen by: its expected BLEU, or its linear BLEU."""

    derivation: Derivation
    gain: float


@dataclass(frozen=True, eq=False)
class SplitForest:
    """A forest whose derivations of a node have the same outer words, with its n-grams.

    forest    the same derivations, with the same scores
    first     int64 [F + 1]  of the n-grams that an edge creates,
    ngram     int32          an entry for each occurrence
    key       int64 [G]      of ``ngram_key``
    slot      int32          a table of n-grams by their keys
    """

    forest: Forest
    order: int
    first: Ints
    ngram: Ids
    key: Ints
    slot: Ids

    @property
    def lengths(self) -> Ids:
        """The order of every n-gram."""
        length = np.ones(len(self.key), np.int32)
        prefix = (self.key >> 32) - 1
        for _ in range(self.order - 1):  # a prefix is entered before what it begins
            length = np.where(prefix >= 0, length[prefix] + 1, 1).astype(np.int32)
        return length

    def words(self) -> Iterator[tuple[int, ...]]:
        """The words of every n-gram, as ids."""
        found: list[tuple[int, ...]] = []
        for key in self.key.tolist():
            prefix, word = (key >> 32) - 1, key & 0xFFFFFFFF
            found.append((*(found[prefix] if prefix >= 0 else ()), word))
        return iter(found)

    def expected(self, alpha: float) -> Floats:
        """The expected count of every n-gram in a translation."""
        posterior = posteriors(self.forest, alpha)
        weight = posterior[row_of_entry(self.first)]
        return np.bincount(self.ngram, weight, len(self.key)).astype(np.float64)

    def gains(self, of_ngram: Floats, of_word: float) -> Floats:
        """For each edge the sum of the gains of its n-grams and its words."""
        exact = np.round(of_ngram * GRID) / GRID
        edges = len(self.first) - 1
        found = np.bincount(row_of_entry(self.first), exact[self.ngram], edges)
        rules, edge_rule = self.forest.rules, self.forest.edge_rule
        words = np.diff(offsets_of(~is_gap(rules.tgt))[rules.first_tgt])
        count = np.where(edge_rule >= 0, np.append(words, 0)[edge_rule], 0)
        return read_only(found + count * (round(of_word * GRID) / GRID))


def split_forest(forest: Forest, order: int, max_edges: int = MAX_EDGES) -> SplitForest:
    """Split the nodes of a forest by the ``order`` - 1 first and last words of their derivations."""
    if not 1 <= order <= 9:
        raise ValueError(f"order is {order}, must be 1 to 9")
    arrays = forest.graph, forest.edge_score, forest.edge_rule, forest.rules
    states, edges = split_nodes_kernel(*arrays, np.int64(order - 1), np.int64(max_edges))
    head, edge, tail = edges
    if len(head) > max_edges:
        found = f"more than {max_edges:,} edges with the outer words of their nodes"
        raise HieroError(f"the forest has {found} (a smaller beam, or a lower pop limit, leaves fewer)")
    node, length, left, right = states
    if not len(node) or node[-1] != forest.num_nodes - 1:  # the goal has no derivation
        node, length, left, right, head, edge, tail = (array[:0] for array in (*states, *edges))
    by_head = np.argsort(head, kind="stable")
    graph = Hypergraph(offsets_by_row(head, len(node)), tail[by_head])
    split = forest.part(graph, node, edge[by_head])
    outer = (read_only(array) for array in (length, left, right))
    found = edge_ngrams_kernel(split.graph.tail, split.edge_rule, split.rules, np.int64(order), *outer)
    return SplitForest(split, order, *map(read_only, found))


def posteriors(forest: Forest, alpha: float) -> Floats:
    """The expected count of each edge under p(derivation) ∝ exp(alpha * score)."""
    inside, outside = np.empty(forest.num_nodes), np.empty(forest.num_nodes)
    marginal = np.empty(forest.num_edges)
    score = read_only(forest.edge_score * alpha)
    inside_kernel(forest.graph, score, inside)
    if not forest.num_nodes or inside[-1] == -np.inf:
        return np.zeros(forest.num_edges)
    outside_kernel(forest.graph, score, inside, outside)
    edge_marginals_kernel(forest.graph, score, inside, outside, marginal)
    return np.asarray(np.exp(marginal - inside[-1]))


def expected_ngrams(forest: Forest, order: int, alpha: float, beam: float) -> dict[tuple[str, ...], float]:
    """The expected count of each n-gram up to an order in a translation, the most frequent first."""
    split = split_forest(forest.prune(beam / alpha), order)
    text = forest.words.text
    counts = zip(split.words(), split.expected(alpha).tolist(), strict=True)
    found = {tuple(map(text, words)): count for words, count in counts if count > 0}
    return dict(sorted(found.items(), key=lambda one: (-one[1], len(one[0]), one[0])))


# ---- rules of choice


def by_list(forest: Forest, config: ConsensusConfig, k: int) -> list[Chosen]:
    """Translations of a k-best list by their expected sentence BLEU."""
    found = forest.kbest(max(config.size, k))
    gain = expected_bleu([one.words for one in found], [one.score for one in found], config)
    return _best_of(found, gain, k)


def expected_bleu(
    translations: Sequence[Ids], scores: Sequence[float] | Floats, config: ConsensusConfig
) -> Floats:
    """The expected sentence BLEU of each translation of a list, with the posteriors of the list."""
    bleu = sentence_bleu(config.metric)
    posterior = _softmax(config.alpha * np.asarray(scores, np.float64))
    # The same string, with different derivations, is one reference.
    strings: dict[bytes, int] = {}
    of = np.array([strings.setdefault(words.tobytes(), len(strings)) for words in translations], np.int64)
    weight = np.bincount(of, posterior, len(strings))
    distinct = [np.frombuffer(string, np.int32) for string in strings]
    references = References([one] for one in distinct)
    first_word = offsets_of(map(len, distinct))
    word = np.concatenate([np.empty(0, np.int32), *distinct])
    whole = np.array([0, len(distinct)], np.int64)
    gain = np.zeros(len(distinct))
    for number, share in enumerate(weight.tolist()):
        if share > 0:
            place = np.array([number], np.int64)
            gain += share * bleu(references.batch_statistics(place, whole, first_word, word))
    return gain[of]


def _softmax(scores: Floats) -> Floats:
    weight = np.exp(scores - scores.max(initial=-np.inf))
    return np.asarray(weight / weight.sum())


def by_expected_counts(forest: Forest, config: ConsensusConfig, k: int) -> list[Chosen]:
    """Translations of a k-best list by BLEU against the expected n-gram counts of the forest."""
    split = split_forest(forest.prune(config.beam / config.alpha), MAX_ORDER)
    expected = split.expected(config.alpha)
    found = forest.kbest(max(config.size, k))
    lists = [one.words for one in found]
    first_word, word = offsets_of(map(len, lists)), np.concatenate([np.empty(0, np.int32), *lists])
    match = np.empty((len(lists), MAX_ORDER))
    table = split.key, split.slot, read_only(expected)
    expected_matches_kernel(read_only(first_word), read_only(word.astype(np.int32)), *table, match)
    length = np.diff(first_word)[:, None].astype(np.float64)
    expected_length = np.full_like(length, expected[split.lengths == 1].sum())
    total = np.maximum(length - np.arange(MAX_ORDER), 0)
    stats = np.concatenate([length, expected_length, match, total], axis=1)
    return _best_of(found, sentence_bleu(config.metric)(stats), k)


def _best_of(found: list[Derivation], gain: Floats, k: int) -> list[Chosen]:
    """The first k by gain; of equal ones, those with better scores."""
    order = sorted(range(len(found)), key=lambda i: (-gain[i], i))
    return [Chosen(found[i], float(gain[i])) for i in order[:k]]


def by_forest(forest: Forest, config: ConsensusConfig, k: int) -> list[Chosen]:
    """Translations of a forest by their linear BLEU: theta_0 a word, and theta_n p(w) an n-gram w.

    With precision p and ratio r, theta_0 is -1 and theta_n is 1 / (4 p r^(n - 1)); p(w) is the expected count
    of w, at most 1. Exact for one translation; more are ordered by gain, up to about a millionth of the
    difference of their scores.
    """
    split = split_forest(forest.prune(config.beam / config.alpha), MAX_ORDER)
    probable = np.minimum(split.expected(config.alpha), 1.0)
    theta = 1 / (MAX_ORDER * config.precision * config.ratio ** np.arange(MAX_ORDER))
    return best_gains(split, split.gains(theta[split.lengths - 1] * probable, -1.0), k)


def best_gains(split: SplitForest, gain: Floats, k: int) -> list[Chosen]:
    """The k translations with the largest sums of gains of edges; with equal ones, better scores first."""
    inner = split.forest
    best, score = np.empty(inner.num_nodes), np.empty(inner.num_nodes)
    edge = np.empty(inner.num_nodes, np.int32)
    best_gain_kernel(inner.graph, gain, inner.edge_score, best, score, edge)
    if not inner.num_nodes or edge[-1] < 0:
        return []
    table = best_derivation_kernel(inner.graph, inner.edge_rule, inner.rules, score, edge)
    (first,) = inner.listed(table, np.full(1, len(table.edge) - 1, np.int32))
    choices = [Chosen(first, float(best[-1]))]
    return choices if k == 1 else _further(inner, gain, choices, k)


def _further(inner: Forest, gain: Floats, choices: list[Chosen], k: int) -> list[Chosen]:
    """``choices`` with the next best translations, k in all."""
    mixed = read_only(gain + BY_SCORE * inner.edge_score)
    best, edge = np.empty(inner.num_nodes), np.empty(inner.num_nodes, np.int32)
    viterbi_kernel(inner.graph, mixed, best, edge)
    search = new_kbest_search(inner.num_nodes, kbest_capacity(k))
    search, roots = kbest(inner.graph, mixed, inner.edge_rule, inner.rules, best, edge, search, k, True)
    _, _, first_step, step = inner.expand(search.found, roots)
    row, edges = row_of_entry(first_step), step[:, EDGE]
    score = search.found.score.copy()
    score[roots] = np.bincount(row, inner.edge_score[edges], len(roots))
    gains = np.bincount(row, gain[edges], len(roots)).tolist()
    found = inner.listed(search.found._replace(score=score), roots)
    seen = {one.derivation.words.tobytes() for one in choices}
    others = [Chosen(one, value) for one, value in zip(found, gains, strict=True)]
    others = [one for one in others if one.derivation.words.tobytes() not in seen]
    return choices + sorted(others, key=lambda one: (-one.gain, -one.derivation.score))[: k - 1]


RULES: dict[str, Callable[[Forest, ConsensusConfig, int], list[Chosen]]] = {
    "kbest": by_list,
    "forest": by_forest,
    "consensus": by_expected_counts,
}


def choose(forest: Forest, config: ConsensusConfig, k: int = 1) -> list[Chosen]:
    """The k translations that the rule of the settings prefers, the best first; none without a derivation."""
    if config.mbr not in RULES:
        raise ConfigError(f"mbr: found {config.mbr}, expected {', '.join(RULES)}")
    return RULES[config.mbr](forest, config, k) if forest else []


# ---- posteriors of words

# A target word, and the source words, or arcs of a lattice, that it is linked to. A word of another
# derivation is the same with the same links; a word without links is the same as any other such word.
Event = tuple[int, frozenset[int]]


def word_confidence(forest: Forest, derivation: Derivation, alpha: float) -> list[float]:
    """The confidence of each word of a derivation, under p(derivation) ∝ exp(alpha * score)."""
    words = derivation.words.tolist()
    links: list[set[int]] = [set() for _ in words]
    for src, tgt in derivation.alignment:
        links[tgt].add(src)
    events = [(word, frozenset(sources)) for word, sources in zip(words, links, strict=True)]
    expected = _expected(forest, set(events), alpha)
    return [min(1.0, expected[event]) for event in events]


def _expected(forest: Forest, wanted: set[Event], alpha: float) -> dict[Event, float]:
    """The expected counts of some events."""
    posterior, rules = posteriors(forest, alpha), forest.whole
    has_word = np.isin(rules.tgt, np.array(sorted({word for word, _ in wanted}), np.int32))
    row = np.repeat(np.arange(len(rules.lhs)), np.diff(rules.first_tgt))
    of_rule = np.bincount(row, has_word, len(rules.lhs)) > 0
    chosen = np.flatnonzero((forest.edge_rule >= 0) & (posterior > 0))
    chosen = chosen[of_rule[forest.edge_rule[chosen]]]
    expected = dict.fromkeys(wanted, 0.0)
    for rule, position, share in _placed(forest, chosen, posterior):
        _, tgt, linked = rule_lists(rules, rule)
        for at, word in enumerate(tgt):
            if not is_gap(word):
                sources = {position[i] for i, j in linked if j == at} - {None}
                event = word, frozenset(cast("set[int]", sources))
                if event in expected:
                    expected[event] += share
    return expected


def _placed(forest: Forest, edges: Ints, posterior: Floats) -> Iterator[tuple[int, list[int | None], float]]:
    """The rules of edges, the source word at each place of the source side (None: a gap), and the shares."""
    head = np.searchsorted(forest.graph.first_edge, edges, side="right") - 1
    starts = forest.node_start[head]
    if forest.lattice is not None or forest.has_parts:
        finder = None if forest.lattice is None else PathFinder(forest)
        spans, rows = _GapSpans(forest, posterior), functools.partial(_row, forest)
        values = edges, forest.edge_rule[edges], starts, forest.node_end[head], posterior[edges]
        for edge, rule, start, end, share in zip(*(one.tolist() for one in values), strict=True):
            for gaps, part in spans.of_edge(edge).items():
                if finder is None:
                    yield rule, _positions(forest, rule, start, [last for _, last in gaps]), share * part
                    continue
                paths = finder.rule_arcs(rule, start, end, gaps, functools.partial(rows, edge))
                arcs = iter([word_arc(finder.lattice, path) for path in paths])
                symbols = rule_lists(forest.whole, rule)[0]
                yield rule, [None if is_gap(symbol) else next(arcs, None) for symbol in symbols], share * part
        return
    # Edges whose rules cover the same source words in the same way have the same links.
    tail = forest.graph.tail[edges]
    ends = np.where(tail >= 0, forest.node_end[tail], -1)
    columns = np.column_stack([forest.edge_rule[edges], starts, ends])
    distinct, place = np.unique(columns, axis=0, return_inverse=True)
    total = np.bincount(place.reshape(-1), posterior[edges], len(distinct)).tolist()
    for (rule, start, *gap_ends), one in zip(distinct.tolist(), total, strict=True):
        yield rule, _positions(forest, rule, start, gap_ends), one


def _positions(forest: Forest, rule: int, start: int, gap_ends: Sequence[int]) -> list[int | None]:
    """The source word at each place of the source side of a rule."""
    position: list[int | None] = []
    for symbol in rule_lists(forest.whole, rule)[0]:
        position.append(None if is_gap(symbol) else start)
        start = gap_ends[gap_index(symbol) - 1] if is_gap(symbol) else start + 1
    return position


def _row(forest: Forest, edge: int) -> dict[str, float]:
    features = forest.features_of_edges(np.array([edge], np.int32))
    return {} if features is None else features.row(0)


Spans = tuple[tuple[int, int], ...]


class _GapSpans:
    """The spans of the gaps of whole rules, and the shares of each in the posterior of the topmost part."""

    def __init__(self, forest: Forest, posterior: Floats) -> None:
        self.forest, self.posterior = forest, posterior
        self._of_node: dict[int, dict[Spans, float]] = {}

    def of_edge(self, edge: int) -> dict[Spans, float]:
        found: dict[Spans, float] = {(): 1.0}
        for tail in self.forest.graph.tail[edge].tolist():
            if tail >= 0:
                more = self._of_tail(tail).items()
                found = {(*a, *b): one * two for a, one in found.items() for b, two in more}
        return found

    def _of_tail(self, node: int) -> dict[Spans, float]:
        forest, known = self.forest, self._of_node.get(node)
        if known is not None:
            return known
        first, last = forest.graph.first_edge[node : node + 2].tolist()
        found: dict[Spans, float] = {}
        if forest.is_part(np.array([first])).all():
            total = float(self.posterior[first:last].sum())
            for edge in range(first, last):
                if self.posterior[edge] > 0:
                    for spans, share in self.of_edge(edge).items():
                        found[spans] = found.get(spans, 0.0) + share * float(self.posterior[edge]) / total
        else:
            found[((int(forest.node_start[node]), int(forest.node_end[node])),)] = 1.0
        self._of_node[node] = found
        return found


# ---- settings


def check_choice(config: ConsensusConfig, search: SearchConfig) -> None:
    """Refuse settings before anything is translated."""
    sentence_bleu(config.metric)
    if config.mbr != "none" and search.kbest and not search.unique:
        raise ConfigError("mbr lists every string once, and cannot be combined with unique: false")
