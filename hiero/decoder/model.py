"""The decoder: collect the rules for a sentence, score them, parse, and search with language models.

A ``Model`` is loaded once and shared by all threads. ``Model.parse`` is the whole decoder; each of its steps
is one kernel call over arrays.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from hiero.bins.bins import Binned, FeatureBins
from hiero.core.arrays import Flags, Floats, Floats32, Ids, is_finite, read_only
from hiero.core.errors import ConfigError, HieroError
from hiero.core.given import Given, GivenTerm, terms_of_pairs
from hiero.core.input import of_lattice, parse_input
from hiero.core.lattice import COST, Lattice
from hiero.core.parallel import in_order
from hiero.core.symbols import Symbols
from hiero.core.text import InputForm, Segment, split_words
from hiero.decoder.config import SearchConfig
from hiero.decoder.constraints import constraints_of, restrict
from hiero.decoder.derivation import Derivation
from hiero.decoder.forced import Completer, ForcedDecoding, force
from hiero.decoder.forest import Forest
from hiero.decoder.forest_features import ForestFeatures, kept_words, new_bigrams
from hiero.decoder.hypergraph import EMPTY_CHART, Chart, Hypergraph, Pairs
from hiero.decoder.lm_state_kernels import rule_states_kernel
from hiero.decoder.model_rules import sentence_grammar, with_part_names
from hiero.decoder.parse import SpanParser, edge_batch
from hiero.decoder.parse_kernels import Parse
from hiero.decoder.search import ParsedSentence, search_of
from hiero.decoder.statistics import Statistics
from hiero.decoder.terms import Terms, terms_of
from hiero.features.feature_set import DENSE, LANGUAGE_MODEL, FeatureSet, ModelFeatures
from hiero.features.index import has_all_names, prefixes_of, scores_gaps
from hiero.features.score import (
    ARITIES,
    DEFAULT_WEIGHTS,
    SOURCE_WORD_PENALTY,
    WORD_PENALTY,
    RuleScorer,
    edge_scores,
)
from hiero.features.template_kernels import WITH_BIGRAM
from hiero.features.user import RuleCache
from hiero.features.weights import LinearWeights, Weights, weights_of
from hiero.grammar.assemble import Ranks, label_ranks
from hiero.grammar.rules import Grammar, GrammarSource, RuleTable
from hiero.grammar.sources import PerSentence, StaticGrammar
from hiero.lm.model import LanguageModels

Sentence = str | Segment | Lattice
WeightsCheck = Callable[["Model", Weights, object], None]


class Model:
    """Grammars, language models, weights and features, ready to translate; safe to share between threads.

    A pickled model has the weights, and how ``hiero.load`` was called: another process, unless it was forked
    since, reads the files again, once, however often it is sent the model.

    >>> with multiprocessing.Pool() as pool:                # doctest: +SKIP
    ...     best = pool.map(model.translate, lines)
    """

    def __init__(
        self,
        symbols: Symbols,
        sources: Sequence[GrammarSource],
        language_models: LanguageModels,
        weights: LinearWeights,
        features: FeatureSet | None = None,
        search: SearchConfig | None = None,
        bins: tuple[FeatureBins, ...] = (),
        made_by: Callable[[], Model] | None = None,
    ) -> None:
        self.symbols = symbols
        self.features = features or FeatureSet()
        self.bins = bins
        self.sources = tuple(Binned(source, bins, symbols) if bins else source for source in sources)
        self.language_models = language_models
        of_classes = [ids is not None for ids in language_models.class_ids]
        if self.features.templates & WITH_BIGRAM and any(of_classes[:1]):
            found = f"the first language model, {language_models.names[0]}, is one of classes"
            raise ConfigError(f"features: bigram: {found} (begin with one of words, whose state knows them)")
        self._weights = weights
        self.search = search or SearchConfig()
        self.terms: Terms | None = None
        self._rule_cache = RuleCache(self.features.rule_features, symbols)
        self._scorer: RuleScorer | None = None
        self.check_weights: WeightsCheck | None = None  # is called with new weights before they are used
        self._made_by, self._key = made_by, uuid.uuid4().bytes
        _LIVE[self._key] = self
        self.num_names: int | None = None  # of features, before any sentence; known after ``warm_up``
        self._goal = symbols.labels.intern(self.search.goal.encode())
        self._category = symbols.labels.intern(self.search.category.encode())
        # Here, not with the first sentence: files of vectors have names in the order of their ids.
        symbols.names.intern(b"Glue")
        self._ranks = label_ranks(symbols.labels)
        plain = [source.source if isinstance(source, Binned) else source for source in self.sources]
        if any(isinstance(source, StaticGrammar) and source.has_wide_rules for source in plain):
            self.features.check_wide_rules()

    def __repr__(self) -> str:
        models = self.language_models
        sizes = zip(models.names, models.arrays.order.tolist(), models.tables, strict=True)
        defaults = dataclasses.asdict(SearchConfig())
        search = dataclasses.asdict(self.search).items()
        parts = {
            "grammars": [repr(source) for source in self.sources],
            "language models": [
                f"{name} (order {order}, {len(table.first) - 1:,} words)" for name, order, table in sizes
            ],
            "features": self.features.names,
            "bins": [one.feature for one in self.bins],
            "search": [
                f"{key}={value}" for key, value in search if key == "pop_limit" or value != defaults[key]
            ],
        }
        lines = [f"{key}: {', '.join(values)}" for key, values in parts.items() if values]
        if isinstance(self._weights, Weights):
            lines.append(f"{len(self._weights):,} weights")
        return f"<Model: {'; '.join(lines)}>"

    @property
    def weights(self) -> Weights:
        """The weights by name; a change applies from the next sentence."""
        if not isinstance(self._weights, Weights):
            raise HieroError("the weights of this model are a learner's, without names")
        return self._weights

    @weights.setter
    def weights(self, weights: LinearWeights | Mapping[str, float] | str | Path) -> None:
        self._replace_weights(weights)

    def with_weights(self, weights: LinearWeights | Mapping[str, float] | str | Path) -> Model:
        """A copy of the model with other weights: names and numbers, or a file. Everything else is shared.

        A model of ``hiero.load`` compares them with its features, as ``load`` does.
        """
        other = copy.copy(self)
        other._replace_weights(weights)
        return other

    def with_terms(self, terms: str | Path | Terms | Iterable[GivenTerm], *, hard: bool = False) -> Model:
        """A copy of the model with terms and their translations in place of those it has; the rest is shared.

        terms  a file, or pairs of source words and their translation, perhaps with a weight
        hard   whether these are the only translations of these words

        >>> model.with_terms([("das haus", "the premises")]).translate("das haus")  # doctest: +SKIP
        """
        other = copy.copy(self)
        other.terms = terms_of(terms, hard=hard, span_limit=self.search.span_limit)
        return other

    def _replace_weights(self, given: LinearWeights | Mapping[str, float] | str | Path) -> None:
        weights = weights_of(given, self.symbols)
        if self.check_weights is not None and isinstance(weights, Weights):
            self.check_weights(self, weights, given)
        self._weights = weights

    def __copy__(self) -> Model:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """By ``made_by``, and the present weights and settings of the search: large files stay files."""
        if self._made_by is None:
            raise HieroError("a model that was not made by hiero.load cannot be pickled")
        try:
            made_by = pickle.dumps(self._made_by)
        except Exception as error:
            hint = "features must be at the top level of a module"
            raise HieroError(f"this model cannot be pickled: {error} ({hint})") from error
        return _unpickled, (self._key, made_by, self.weights, self.search, self.terms)

    @property
    def scorer(self) -> RuleScorer:
        """The linear model with the current weights."""
        scorer, weights = self._scorer, self._weights
        if scorer is None or scorer.weights is not weights or scorer.version != weights.version:
            names = self.language_models.names
            scorer = RuleScorer(self.symbols, weights, self.features, names, self._rule_cache)
            self._scorer = scorer
        return scorer

    def weights_changed(self) -> None:
        """Discard values computed from the vector of a learner, after a change that is not noticed."""
        self._scorer = None

    def parse(self, sentence: Sentence, statistics: Statistics | None = None) -> Forest:
        """Return the forest of a sentence or lattice; it is falsy if there is no derivation."""
        segment = self.segment(sentence)
        own = Statistics()
        forest = self._decode(segment, own)
        own.sentences += 1
        own.words += len(segment.words)
        with own.timed("kbest"):
            if forest.num_nodes:
                _check_finite(segment, "the best translation", forest.best()[0][-1:])
            if forest:
                own.score += float(forest.best()[0][-1])
            else:
                own.failed += 1
        if statistics is not None:
            statistics.add(own)
        return forest

    def translate(
        self,
        sentence: Sentence,
        prefix: str | None = None,
        *,
        partial: bool = False,
        terms: Iterable[GivenTerm] | None = None,
        hard_terms: bool | None = None,
    ) -> Derivation:
        """Return the best derivation, whose ``text`` is the translation.

        If there is none, the result is false in a condition, its text is empty and its score -inf. The same
        holds for an empty sentence, except that the score is 0.

        prefix   the words that the translation begins with; see ``completer``
        partial  whether the last of them may be the beginning of a word, if no space follows it
        terms    of this sentence, beside those of the model; for equal source words, in their place
        hard_terms  whether all terms are hard; None: as those of the model
        """
        if terms is not None or hard_terms is not None:
            sentence = with_given(self.segment(sentence), terms or (), hard_terms)
        if prefix is not None:
            return self.completer(sentence).complete(prefix, partial=partial).best
        forest = self.parse(sentence)
        if forest:
            return forest.viterbi()
        return Derivation.none(forest, -math.inf if forest.source else 0.0)

    def segment(self, sentence: Sentence) -> Segment:
        """A sentence as it is parsed; a str is read as a line of input."""
        return _segment_of(sentence, self.search.form)

    def completer(self, source: Sentence) -> Completer:
        """Return what completes translations of a sentence; its search is done once, for any number.

        >>> completer = model.completer("das haus ist klein")    # doctest: +SKIP
        >>> completer.complete("the home").text                 # doctest: +SKIP
        'the home is small'
        """
        return Completer(self, self.segment(source))

    def force(self, source: Sentence, target: str | Sequence[str]) -> ForcedDecoding:
        """Find all derivations of a sentence and its translation.

        >>> found = model.force("das haus ist klein", "the house is small")  # doctest: +SKIP
        >>> found.reachable, found.score                        # doctest: +SKIP
        (True, -1.5)
        """
        return self.force_all(source, [target])[0]

    def force_all(
        self,
        source: Sentence,
        targets: Sequence[str | Sequence[str]],
        statistics: Statistics | None = None,
    ) -> list[ForcedDecoding]:
        """``force`` for several translations of a sentence, which is parsed once."""
        if isinstance(targets, str):
            raise HieroError("targets: found a str, expected several (force takes one)")
        words = [split_words(one) if isinstance(one, str) else tuple(one) for one in targets]
        return force(
            self,
            self.segment(source),
            words,
            Statistics() if statistics is None else statistics,
        )

    def translate_all(self, sentences: Iterable[Sentence], threads: int = 1) -> Iterator[Derivation]:
        """Iterate over the best derivations of many sentences, in their order, as ``translate`` returns them.

        Sentences are read as they are needed, at most a few for each thread ahead. A derivation holds its
        forest: of a long text, keep ``text`` or what else is needed, not the derivations.

        >>> for best in model.translate_all(open("input.txt"), threads=4):  # doctest: +SKIP
        ...     print(best.text)
        """
        if isinstance(sentences, str | bytes | Segment | Lattice):
            found = type(sentences).__name__
            raise HieroError(
                f"sentences: found one {found}, expected several sentences (translate takes one)"
            )
        if threads < 1:
            raise HieroError(f"threads: found {threads}, expected 1 or more")
        if threads == 1:
            return map(self.translate, sentences)
        self.warm_up()
        return in_order(self.translate, sentences, threads)

    def warm_up(self) -> None:
        """Translate an unknown word to compile all kernels before threads are started."""
        forest = self.parse(Segment(("\x00",)))
        if forest:
            _ = forest.viterbi().text
        if self.num_names is None:
            self.num_names = len(self.symbols.names)

    def note_grammars(self, segment: Segment) -> bool:
        """Read the grammars that a sentence names for their features; return whether there are new ones."""
        plain = (source.source if isinstance(source, Binned) else source for source in self.sources)
        noted = [source.note(segment.attributes) for source in plain if isinstance(source, PerSentence)]
        return any(noted)

    def known_features(self, *, all_read: bool = True) -> ModelFeatures:
        """The features of the model, for a comparison with weights.

        all_read  whether there are no grammars of sentences but those read so far
        """
        text, models = self.symbols.names.text, self.language_models.names
        dense = dict.fromkeys(text(name) for source in self.sources for name in source.dense_names())
        groups: list[Sequence[str]] = []
        prefixes = [COST]  # of the arcs of lattices
        for feature in self.features.edge_features:
            prefixes += prefixes_of(feature)
            if has_all_names(feature):
                groups.append(feature.names())
        possible = [WORD_PENALTY, "Glue", "PassThrough", *(f"{name}_OOV" for name in models)]
        possible += ["Bracket"] * self.search.brackets
        possible += DEFAULT_WEIGHTS
        possible += [SOURCE_WORD_PENALTY] * self.features.source_word_penalty
        possible += ARITIES if self.features.arity else ()

        def others() -> set[str] | None:
            ids = self._rule_names(all_read)
            return None if ids is None else set(map(text, ids))

        return ModelFeatures(
            expected=dict.fromkeys(dense, DENSE) | dict.fromkeys(models, LANGUAGE_MODEL),
            groups=groups,
            possible=possible,
            prefixes=tuple(prefixes),
            templates=self.features.templates,
            others=others,
        )

    def dense_features(self, segments: Iterable[Segment]) -> frozenset[str]:
        """The names of the dense features. Of grammars that sentences name, those of the first count."""
        other = copy.copy(self)
        other.sources = tuple(self._unread(source) for source in self.sources)
        segments = list(segments)
        any(map(other.note_grammars, segments))
        of_arcs = (segment.lattice.names for segment in segments if segment.lattice is not None)
        return other.known_features().dense.union(*of_arcs)

    def _unread(self, source: GrammarSource) -> GrammarSource:
        """A source without the names that depend on the sentences read so far."""
        if isinstance(source, Binned):
            return Binned(self._unread(source.source), self.bins, self.symbols)
        return source.unread() if isinstance(source, PerSentence) else source

    def _rule_names(self, all_read: bool) -> set[int] | None:
        """Ids of all features of rules; None if any name may be that of one."""
        own = [one for one in self.features.edge_features if not prefixes_of(one)]
        if self.features.rule_features or not all(map(has_all_names, own)):
            return None
        found: set[int] = set()
        for source in self.sources:
            plain = source.source if isinstance(source, Binned) else source
            names = (
                plain.seen_names() if isinstance(plain, PerSentence) and all_read else plain.feature_names()
            )
            # Weights of many sparse features may come from another part of the same grammar.
            if names is None or len(names) - len(plain.dense_names()) > MANY_NAMES:
                return None
            found |= source.transformed(names) if isinstance(source, Binned) else names
        return found or None

    # ---- steps

    def _decode(self, segment: Segment, statistics: Statistics) -> Forest:
        found = self.parsed(segment, statistics)
        if found.search is None:
            return self.forest_of(found, EMPTY_CHART)
        states, pairs = found.search
        with statistics.timed("cube"):
            arrays = self.language_models.arrays
            search = search_of(self.search.algorithm)
            limits = self.search.pop_limit, self.search.max_edges
            more = {}
            if found.kept is not None:
                more = {"bigrams": new_bigrams(self.scorer, found.lm_word, arrays, found.kept)}
            done, num_scored, chart = search(
                found.parse, pairs, states, arrays, found.lm_weight, found.goal, *limits, **more
            )
        if done < len(found.parse.cell):
            raise HieroError(
                f"sentence of {len(found.src)} words: an exhaustive search needs over"
                f" {self.search.max_edges} edges (set pop_limit, a smaller span_limit, or a larger max_edges)"
            )
        statistics.scored += int(num_scored)
        return self.searched(found, chart, statistics)

    def parsed(
        self, segment: Segment, statistics: Statistics, more: Sequence[RuleTable] = ()
    ) -> ParsedSentence:
        """Everything about a sentence up to the search: its rules with their scores, and where they apply.

        more  further rules for this sentence
        """
        lattice = segment.lattice
        given = segment.words if lattice is None else lattice.word_arcs.words
        src = read_only(self.symbols.words.intern_all(word.encode(errors="replace") for word in given))
        if lattice is not None:
            self._check_lattice_features(segment)
        along = () if lattice is None else (lattice.word_arcs.arcs,)
        tables = []
        for source in self.sources:
            # A bitext index does not load rules but extracts them.
            with statistics.timed(source.stage):
                tables.append(source.rules_for(src, segment.attributes, *along))
        tables += more
        limits = None
        if self.terms is not None or segment.given is not None or self.search.copy:
            limits = constraints_of(segment, self.terms, self.search)
        own = (limits.table(self.symbols, self.search.category),) if limits and limits.rows else ()
        with statistics.timed("load"):
            grammar, first_glue, ranks = sentence_grammar(
                *(self.symbols, src, tables, self.search, self._goal, self._category),
                given=own,
                ranks=self._label_ranks(),
                features=self.features,
            )
            lm_word = self.language_models.word_ids(self.symbols.words)
        parser = SpanParser(
            *(self.symbols, src, grammar, first_glue, ranks, self.search, self._goal, self._category),
            end=_last_node(segment),
        )
        if lattice is not None:
            # Before rules are scored, because those along arcs with features are others.
            with statistics.timed("parse"):
                grammar, parse = parser.lattice(lattice)
        with statistics.timed("features"):
            rule_score = self.scorer.scores(grammar.as_read, lm_word)
            _check_finite(segment, "a rule", rule_score)
            lm_weight = self._lm_weight()
        if lattice is None:
            with statistics.timed("parse"):
                parse = parser.sentence()
        statistics.rules += grammar.num_rules
        goal = parser.goal_cell(parse)
        is_restricted = limits is not None and limits.restricts and goal >= 0
        if limits is not None and is_restricted:
            with statistics.timed("parse"):
                batch, _ = edge_batch(parse, src)
                rules, category = grammar.rules, self._category
                found = restrict(limits, parse, batch, rules, first_glue, category, self.symbols)
                goals = [parser.goal_cell(one) for one in found]
                is_met = goals[1] >= 0
                parse, goal = found[is_met], goals[is_met]
            statistics.unmet += not is_met
        if goal < 0:
            return ParsedSentence(segment, src, grammar, lm_word, lm_weight, parse, goal, None, None)
        with statistics.timed("cube"):
            arrays = self.language_models.arrays
            stride = int(max(arrays.order, default=1)) - 1 or 1
            states = rule_states_kernel(
                grammar.rules.first_tgt, grammar.rules.tgt, lm_word, arrays, lm_weight, stride, rule_score
            )
        with statistics.timed("features"):
            pairs = self._pairs(src, grammar, parse, rule_score, states.estimate, shared=not is_restricted)
            _check_finite(segment, "an applied rule", pairs.score)
        words, search = self._kept_words(lm_word), (states, pairs)
        return ParsedSentence(segment, src, grammar, lm_word, lm_weight, parse, goal, words, search)

    def searched(self, found: ParsedSentence, chart: Chart, statistics: Statistics) -> Forest:
        """The forest of a chart that a search filled."""
        assert found.search is not None
        statistics.pops += int(np.count_nonzero(chart.rule >= 0))
        statistics.nodes += len(chart.cell)
        statistics.edges += len(chart.rule)
        with statistics.timed("features"):
            gains = self._rescored(found.src, found.grammar, found.parse, found.search[1], chart)
        with statistics.timed("cube"):
            return self.forest_of(found, chart, gains)

    def _check_lattice_features(self, segment: Segment) -> None:
        """Refuse features that read the words around a span, which a lattice has several of."""
        for feature in self.features.edge_features:
            expected = "a sentence, whose words the feature reads (it cannot be used with lattices)"
            raise HieroError(f"feature {feature.name}: found a lattice, expected {expected}")

    def _label_ranks(self) -> Ranks:
        ranks = self._ranks
        if len(ranks.label) < len(self.symbols.labels):
            self._ranks = ranks = label_ranks(self.symbols.labels)
        return ranks

    def _lm_weight(self) -> Floats:
        names = [self.symbols.names.intern(name.encode()) for name in self.language_models.names]
        return np.asarray(self.scorer.name_weights()[np.array(names, np.int64)], np.float64)

    def _pairs(
        self, src: Ids, grammar: Grammar, parse: Parse, rule_score: Floats, estimate: Floats, *, shared: bool
    ) -> Pairs:
        """The applications of rules to bundles, with their scores.

        shared  without edge features, bundles of the same rules share their pairs. The search sorts these, so
                no two bundles may have some of them in common.
        """
        if not self.features.edge_features and shared:
            rules = np.arange(grammar.num_rules, dtype=np.int32)
            return Pairs(np.ascontiguousarray(parse.rules[:, 0]), rules, rule_score, estimate)
        batch, first = edge_batch(parse, src)
        if not self.features.edge_features:
            return Pairs(first, batch.rule, rule_score[batch.rule], estimate[batch.rule])
        extra = edge_scores(batch, grammar.rules, self.features.edge_features, self.scorer)
        return Pairs(first, batch.rule, rule_score[batch.rule] + extra, estimate[batch.rule] + extra)

    def _rescored(
        self, src: Ids, grammar: Grammar, parse: Parse, pairs: Pairs, chart: Chart
    ) -> tuple[Ids, Floats32] | None:
        """Score gaps again, now that their words are known, by orientation models; None without any.

        Changes the scores of edges. Returns what each node adds to the orientation of a gap that it fills.
        """
        features = self.features.edge_features
        if not any(map(scores_gaps, features)):
            return None
        from hiero.reordering.feature import rescore_gaps

        weights = self.scorer.name_weights()
        return rescore_gaps(
            features, src, pairs.rule, grammar.rules, weights, chart[:4], parse.cell, chart.local
        )

    def _kept_words(self, lm_word: Ids) -> Flags | None:
        """Words that bigrams across rules may have; None without that feature or a language model."""
        if not self.features.templates & WITH_BIGRAM or not self.language_models.names:
            return None
        return kept_words(self.language_models.arrays, lm_word, self.scorer.shared_words())

    def forest_of(
        self, found: ParsedSentence, chart: Chart, gains: tuple[Ids, Floats32] | None = None
    ) -> Forest:
        """A forest of the nodes and edges of a chart."""
        segment, grammar = found.segment, found.grammar
        cells = np.concatenate([found.parse.cell, np.array([[self._goal, 0, _last_node(segment)]], np.int32)])
        cell = cells[chart.cell]  # -1 for the goal: the row appended above
        return Forest(
            Hypergraph(chart.first_edge, chart.tail),
            chart.local,
            chart.rule,
            np.ascontiguousarray(cell[:, 0]),
            np.ascontiguousarray(cell[:, 1]),
            np.ascontiguousarray(cell[:, 2]),
            grammar.rules,
            words=self.symbols.words,
            labels=self.symbols.labels if grammar.whole is None else with_part_names(grammar, self.symbols),
            source=segment.words,
            lattice=segment.lattice,
            edge_lm=chart.lm,
            lm_names=self.language_models.names,
            gains=gains,
            features=ForestFeatures(self.scorer, grammar.as_read, found.lm_word, kept=found.kept),
            whole=grammar.whole,
        )


MANY_NAMES = 64  # of sparse features in a grammar

# By their keys, also in processes that were forked since.
_LIVE: WeakValueDictionary[bytes, Model] = WeakValueDictionary()


@functools.lru_cache(maxsize=1)
def _made(made_by: bytes) -> Model:
    """A model from a pickled function, kept: a pool of processes sends it with every few sentences."""
    model: Model = pickle.loads(made_by)()
    return model


def _unpickled(
    key: bytes, made_by: bytes, weights: Weights, search: SearchConfig, terms: Terms | None
) -> Model:
    model = copy.copy(_LIVE.get(key) or _made(made_by))
    model._weights = weights_of(weights, model.symbols)  # compared where they were given
    model.search, model.terms = search, terms
    return model


def _check_finite(segment: Segment, what: str, scores: Floats) -> None:
    if not is_finite(scores):
        found = float(scores[np.argmin(np.isfinite(scores))])
        hint = "weights or values of features are too large"
        raise HieroError(f"sentence of {len(segment.words)} words: the score of {what} is {found} ({hint})")


def _last_node(segment: Segment) -> int:
    """Where the sentence ends: behind the last word, or the last node of a lattice."""
    return len(segment.words) if segment.lattice is None else segment.lattice.num_nodes - 1


def _segment_of(sentence: object, form: InputForm) -> Segment:
    if isinstance(sentence, str):
        # Lines of an open file have line ends.
        return parse_input(sentence.removesuffix("\n").removesuffix("\r"), form=form)
    if isinstance(sentence, Lattice):
        return of_lattice(sentence)
    if isinstance(sentence, Segment):
        return sentence
    hint = ""
    if isinstance(sentence, bytes):
        hint = " (decode it)"
    elif isinstance(sentence, Iterable):
        hint = " (join words by spaces; translate_all takes several sentences)"
    raise HieroError(f"sentence: found a value of type {type(sentence).__name__}, expected a str{hint}")


def with_given(segment: Segment, terms: Iterable[GivenTerm], hard: bool | None) -> Segment:
    """A sentence with further terms; ``hard``, if it is given, applies to all."""
    given = segment.given or Given()
    found = (*given.terms, *terms_of_pairs(terms))
    return dataclasses.replace(
        segment, given=dataclasses.replace(given, terms=found, hard=given.hard if hard is None else hard)
    )
