"""Forced decoding: the derivations of a sentence and a given translation, or the beginning of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hiero.core.arrays import Ids, read_only
from hiero.core.errors import HieroError
from hiero.core.text import Segment, split_words
from hiero.decoder.bigram_kernels import add_bigrams_kernel, edge_bigrams_kernel, edge_words_kernel
from hiero.decoder.cube_kernels import search_cells_kernel
from hiero.decoder.derivation import Derivation
from hiero.decoder.derivation_kernels import TGT_END, TGT_START
from hiero.decoder.forced_kernels import (
    CELL,
    END,
    START,
    Forced,
    complete_kernel,
    force_kernel,
    forced_chart_kernel,
)
from hiero.decoder.forest import Forest
from hiero.decoder.forest_features import new_bigrams
from hiero.decoder.hypergraph import EMPTY_CHART, Chart, Hypergraph
from hiero.decoder.lm_state_kernels import Track, TrackProbs, track_probs_kernel
from hiero.decoder.statistics import Statistics
from hiero.grammar.rules import RuleTable, frozen, rules_from_lists

if TYPE_CHECKING:
    from hiero.decoder.model import Model
    from hiero.decoder.search import ParsedSentence


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


def add_bigrams(model: Model, found: ParsedSentence, chart: Chart, num_done: int = 0) -> None:
    """Add to the scores of all edges but the first those of bigrams across rules, if the model has them."""
    if found.kept is None or not len(chart.rule):
        return
    graph = Hypergraph(read_only(chart.first_edge), read_only(chart.tail))
    rule, rules, kept = read_only(chart.rule), found.grammar.rules, found.kept
    word = np.empty((len(chart.cell), 2), np.int32)
    edge_words_kernel(graph, rule, rules, kept, word)
    first, key = np.empty(len(rule) + 1, np.int64), np.empty((4 * len(rule), 3), np.int32)
    edge_bigrams_kernel(graph.tail, rule, rules, kept, read_only(word), first, key)
    bigrams = new_bigrams(model.scorer, found.lm_word, model.language_models.arrays, kept)
    add_bigrams_kernel(first[num_done:], key, bigrams, chart.local[num_done:])


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


# ---- beginnings

PREFIX_EDIT = "PrefixEdit"  # feature: number of words that rules do not yield


@dataclass(frozen=True, slots=True)
class Completion:
    """Translations that begin with given words.

    prefix     the words; the last may be the beginning of one, if it is ``partial``
    forest     the derivations found
    reachable  whether the grammar has a derivation; if not, rules were added that yield any words
    """

    prefix: tuple[str, ...]
    partial: bool
    forest: Forest
    reachable: bool

    @property
    def best(self) -> Derivation:
        """The best derivation, whose text begins with the words; an empty one if there is none."""
        return self.forest.viterbi() if self.forest else Derivation.none(self.forest, -math.inf)

    @property
    def text(self) -> str:
        """The best translation; only the words given if the sentence has no derivation at all."""
        return self.best.text if self.forest else " ".join(self.prefix)

    def edited(self, derivation: Derivation) -> list[int]:
        """Places of the words of a derivation that are inserted as they were given."""
        if self.reachable or not derivation:
            return []
        rules = derivation.rules.tolist()
        found = self.forest.features.rules([max(rule, 0) for rule in rules])
        places: list[int] = []
        for rule, features, step in zip(rules, found, derivation.steps.tolist(), strict=True):
            if rule >= 0 and PREFIX_EDIT in features:
                places += range(step[TGT_START], step[TGT_END])
        return sorted(places)


class Completer:
    """Completes the beginnings of translations of one sentence."""

    def __init__(self, model: Model, segment: Segment, statistics: Statistics | None = None) -> None:
        self.model, self.segment = model, segment
        self.statistics = Statistics() if statistics is None else statistics
        self.statistics.sentences += 1
        self.statistics.words += len(segment.words)

    @cached_property
    def _plain(self) -> _FreeSearch:
        """The search without any beginning."""
        return _FreeSearch(self.model, self.segment, self.statistics)

    def complete(self, prefix: str | Sequence[str], *, partial: bool = False) -> Completion:
        """Find the best translations that begin with a prefix.

        partial  the last word may be the beginning of a word, unless a space follows it

        If the grammar has none, any source word may yield any run of the words given. Each of them counts in
        the feature ``PrefixEdit``, which has the weight -10 unless the weights have it.
        """
        if isinstance(prefix, str):
            words, is_open = split_words(prefix), partial and not prefix.endswith((" ", "\t"))
        else:
            words, is_open = tuple(prefix), partial
        is_open = is_open and len(words) > 0
        if not words:
            return Completion(words, False, self.model.parse(self.segment), True)
        forest = self._plain.forest(words, is_open)
        if forest is not None:
            return Completion(words, is_open, forest, True)
        lattice = self.segment.lattice
        given = self.segment.words if lattice is None else lattice.word_arcs.words
        more = _edits(self.model, given, words)
        edited = _FreeSearch(self.model, self.segment, self.statistics, more)
        forest = edited.forest(words, is_open)
        if forest is None:
            forest = self.model.forest_of(edited.found, EMPTY_CHART)
        return Completion(words, is_open, forest, False)


class _FreeSearch:
    """The search of a sentence, whose parts complete any beginning."""

    def __init__(
        self, model: Model, segment: Segment, statistics: Statistics, more: Sequence[RuleTable] = ()
    ) -> None:
        self.model, self.statistics = model, statistics
        self.found = found = model.parsed(segment, statistics, more)
        if found.search is None:
            return
        states, pairs = found.search
        arrays, bigrams = model.language_models.arrays, None
        if found.kept is not None:
            bigrams = new_bigrams(model.scorer, found.lm_word, arrays, found.kept)
        limits = model.search.pop_limit, model.search.max_edges, model.search.algorithm == "coarse_to_fine"
        with statistics.timed("cube"):
            done, num_scored, *self.parts = search_cells_kernel(
                found.parse, pairs, states, arrays, found.lm_weight, found.goal, *limits, bigrams
            )
        statistics.scored += int(num_scored)
        if done < len(found.parse.cell):
            raise HieroError(
                f"an exhaustive search needs over {model.search.max_edges} edges (set pop_limit)"
            )

    @cached_property
    def _target_words(self) -> list[tuple[str, int]]:
        tgt = self.found.grammar.rules.tgt
        return [(self.model.symbols.words.text(word), word) for word in np.unique(tgt[tgt >= 0]).tolist()]

    def _last(self, word: str, is_open: bool) -> Ids:
        """What the last word of a beginning may be."""
        if is_open:
            ids = [known for text, known in self._target_words if text.startswith(word)]
        else:
            ids = [self._id(word)]
        return np.array(ids or [-1], np.int32)

    def _id(self, word: str) -> int:
        return self.model.symbols.words.find(word.encode(errors="replace"))

    def forest(self, words: Sequence[str], is_open: bool) -> Forest | None:
        """The derivations that begin with some words; None if there are none."""
        found, model = self.found, self.model
        if found.search is None:
            return None
        states, pairs = found.search
        track = track_of([self._id(word) for word in words[:-1]], self._last(words[-1], is_open))
        sides = found.grammar.rules.first_tgt, found.grammar.rules.tgt
        with self.statistics.timed("cube"):
            limit = model.search.max_edges
            complete, forced = force_kernel(found.parse, pairs, *sides, track, limit)
            if not complete:
                raise HieroError(
                    f"a beginning of {len(words)} words needs over {limit} edges (set max_edges)"
                )
            probs = probs_of(model, found, track)
            arrays, weight = model.language_models.arrays, found.lm_weight
            chart, num_free = complete_kernel(
                found.parse,
                pairs,
                states,
                *sides,
                arrays,
                weight,
                found.goal,
                model.search.pop_limit,
                track,
                probs,
                forced,
                *self.parts,
            )
            if not len(chart.cell):
                return None
            add_bigrams(model, found, chart, num_free)
        return model.searched(found, chart, self.statistics)


def _edits(model: Model, source: Sequence[str], words: Sequence[str]) -> list[RuleTable]:
    """Rules by which each source word yields any short run of the words."""
    intern = model.symbols.words.intern
    src = dict.fromkeys(intern(word.encode(errors="replace")) for word in source)
    tgt = [intern(word.encode(errors="replace")) for word in words]
    # Long enough for the source words to yield all of them, one run each.
    longest = max(2, -(-len(tgt) // max(len(source), 1)))
    runs = {
        tuple(tgt[at : at + size]): size
        for size in range(1, longest + 1)
        for at in range(len(tgt) - size + 1)
    }
    sides = [([one], list(run)) for one in src for run in runs]
    label = model.symbols.labels.intern(model.search.category.encode())
    rules = rules_from_lists(
        [label] * len(sides), [one for one, _ in sides], [run for _, run in sides], [[[0, 0]]] * len(sides)
    )
    dense = np.array([[len(run)] for _, run in sides], np.float32).reshape(-1, 1)
    column = model.symbols.names.intern(PREFIX_EDIT.encode())
    return [RuleTable(frozen(rules._replace(dense=dense)), (column,))]
