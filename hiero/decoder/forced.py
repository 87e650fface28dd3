"""Forced decoding: the derivations of a sentence and a given translation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hiero.core.arrays import Ids, read_only
from hiero.core.errors import HieroError
from hiero.core.text import Segment
from hiero.decoder.bigram_kernels import edge_bigrams_kernel, edge_words_kernel
from hiero.decoder.derivation import Derivation
from hiero.decoder.forced_kernels import (
    CELL,
    END,
    START,
    Forced,
    Track,
    TrackProbs,
    add_bigrams_kernel,
    force_kernel,
    forced_chart_kernel,
    track_probs_kernel,
)
from hiero.decoder.forest import Forest
from hiero.decoder.forest_features import new_bigrams
from hiero.decoder.hypergraph import EMPTY_CHART, Chart, Hypergraph
from hiero.decoder.statistics import Statistics

if TYPE_CHECKING:
    from hiero.decoder.model import Model, ParsedSentence


@dataclass(frozen=True, slots=True)
class LongestMatch:
    """The most consecutive target words that some source words yield.

    source, target  the first word and the one after the last
    """

    source: tuple[int, int]
    target: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ForcedDecoding:
    """The derivations of a sentence and its translation; false in a condition if there is none.

    target   the words of the translation
    forest   all derivations, without any pruning
    longest  how far derivations get; None if no rule in place yields any of the words
    missing  places of target words that no rule in place yields
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    forest: Forest
    longest: LongestMatch | None
    missing: tuple[int, ...]

    def __bool__(self) -> bool:
        return self.reachable

    @property
    def reachable(self) -> bool:
        """Whether there is a derivation."""
        return self.forest.num_nodes > 0

    @property
    def best(self) -> Derivation:
        """The best derivation; an empty one, with score -inf, if there is none."""
        return self.forest.viterbi() if self.reachable else Derivation.none(self.forest, -math.inf)

    @property
    def score(self) -> float:
        """The score of the best derivation; -inf if there is none."""
        return self.best.score

    def why(self) -> str:
        """Why there is no derivation, in words; empty if there is one."""
        if self.reachable:
            return ""
        if not self.target:
            return "no derivation without words"
        if self.longest is None:
            return "no derivation; none of the words is in a rule that applies"
        (i, j), (k, m) = self.longest.source, self.longest.target
        source, target = " ".join(self.source[i:j]), " ".join(self.target[k:m])
        parts = [f'no derivation; longest match "{target}" of "{source}"']
        if self.forest.lattice is not None:
            parts = [f'no derivation; longest match "{target}", from node {i} to node {j}']
        if self.missing:
            words = dict.fromkeys(self.target[place] for place in self.missing)
            parts.append("in no rule that applies: " + " ".join(words))
        return "; ".join(parts)


def force(
    model: Model, segment: Segment, targets: Sequence[Sequence[str]], statistics: Statistics
) -> list[ForcedDecoding]:
    """Find all derivations of a sentence and each of its translations."""
    found = model.parsed(segment, statistics)
    decoded = [_force(model, found, tuple(words), statistics) for words in targets]
    for one in decoded:
        statistics.sentences += 1
        statistics.words += len(segment.words)
        statistics.failed += not one.reachable
        statistics.score += one.score if one.reachable else 0.0
    return decoded


def _force(
    model: Model, found: ParsedSentence, words: tuple[str, ...], statistics: Statistics
) -> ForcedDecoding:
    source = found.segment.words
    if found.search is None:
        nothing = model.forest_of(found, EMPTY_CHART)
        return ForcedDecoding(source, words, nothing, None, tuple(range(len(words))))
    pairs, rules = found.search[1], found.grammar.rules
    track = track_of([model.symbols.words.find(word.encode(errors="replace")) for word in words])
    with statistics.timed("cube"):
        limit = model.search.max_edges
        complete, forced = force_kernel(found.parse, pairs, rules.first_tgt, rules.tgt, track, limit)
        if not complete:
            expected = "set a smaller span_limit or a larger max_edges"
            raise HieroError(
                f"sentence of {len(source)} words: forced decoding needs over {limit} edges ({expected})"
            )
        probs = probs_of(model, found, track)
        chart = forced_chart_kernel(
            forced, pairs, rules.first_tgt, rules.tgt, track, probs, found.lm_weight, found.goal
        )
        add_bigrams(model, found, chart)
    forest = model.searched(found, chart, statistics)
    missing = tuple(np.flatnonzero(~forced.used).tolist())
    return ForcedDecoding(source, words, forest, _longest(found, forced, len(words)), missing)


def track_of(words: Sequence[int], last: Ids | None = None) -> Track:
    """A track of words; ``last`` are those that may follow all of these."""
    if last is None:
        words, last = words[:-1], np.array(words[-1:], np.int32)
    return Track(read_only(np.array(words, np.int32)), read_only(last))


def probs_of(model: Model, found: ParsedSentence, track: Track) -> TrackProbs:
    """Score the words of a track."""
    arrays = model.language_models.arrays
    stride = int(max(arrays.order, default=1)) - 1 or 1
    probs: TrackProbs = track_probs_kernel(track, found.lm_word, arrays, stride)
    return probs


def add_bigrams(model: Model, found: ParsedSentence, chart: Chart) -> None:
    """Add to the scores of edges those of bigrams across rules, if the model has them."""
    if found.kept is None or not len(chart.rule):
        return
    graph = Hypergraph(read_only(chart.first_edge), read_only(chart.tail))
    rule, rules, kept = read_only(chart.rule), found.grammar.rules, found.kept
    word = np.empty((len(chart.cell), 2), np.int32)
    edge_words_kernel(graph, rule, rules, kept, word)
    first, key = np.empty(len(rule) + 1, np.int64), np.empty((4 * len(rule), 3), np.int32)
    edge_bigrams_kernel(graph.tail, rule, rules, kept, read_only(word), first, key)
    bigrams = new_bigrams(model.scorer, found.lm_word, model.language_models.arrays, kept)
    add_bigrams_kernel(first, key, bigrams, chart.local)


def _longest(found: ParsedSentence, forced: Forced, num_words: int) -> LongestMatch | None:
    """The longest run of target words of any part; of equal ones the first, of the shortest source span."""
    node = forced.node[forced.node[:, START] >= 0]
    if not len(node):
        return None
    cell = found.parse.cell[node[:, CELL]]
    end = np.minimum(node[:, END], num_words)
    order = np.lexsort((cell[:, 1], cell[:, 2] - cell[:, 1], node[:, START], node[:, START] - end))
    at = int(order[0])
    return LongestMatch((int(cell[at, 1]), int(cell[at, 2])), (int(node[at, START]), int(end[at])))
