# mypy: allow-untyped-calls
"""From a sentence to its forest: gather the rules, score them, parse, search.

A ``Model`` holds what is loaded once and shared by all threads. ``Model.parse`` is the whole decoder; each
step of it is one kernel call over arrays.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from hiero._jit import compile_timer
from hiero.derivation import Derivation
from hiero.errors import ConfigError, HieroError
from hiero.features import EdgeBatch
from hiero.featureset import FeatureSet
from hiero.forest import Forest
from hiero.formats.segments import Segment, parse_segment
from hiero.grammar import Grammar, GrammarSource, Rules, RuleTable
from hiero.hypergraph import Hypergraph
from hiero.kernels.cube import Chart, search_kernel
from hiero.kernels.parse import Parse, parse_kernel
from hiero.kernels.rulestates import rule_states_kernel
from hiero.lm import LanguageModels
from hiero.rulesource import build_grammar, merge_tables
from hiero.scoring import Replay, RuleScorer, edge_scores
from hiero.symbols import Symbols, gap, gap_label, read_only
from hiero.weights import Weights

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """How to search; the defaults are those of Simianer, Riezler and Dyer (2012)."""

    span_limit: int = 15  # longest span of source words that a rule of a grammar may cover
    pop_limit: int = 200  # candidates popped per span and category; 0: all of them, which is exact and slow
    glue: bool = True  # glue rules that join partial translations from left to right, without span limit
    pass_through: Literal["all", "oov", "none"] = "all"  # words that may be translated by themselves
    oov: Literal["copy", "drop", "mark"] = "copy"  # how a word that no rule covers passes through
    goal: str = "S"  # category of a whole sentence
    category: str = "X"  # category that glue joins and passed-through words have
    max_edges: int = 50_000_000  # an exhaustive search gives up on a sentence with more

    def __post_init__(self) -> None:
        for name, least in (("span_limit", 1), ("pop_limit", 0), ("max_edges", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"search: {name} is {getattr(self, name)}, must be at least {least}")
        for name, choices in (("pass_through", ("all", "oov", "none")), ("oov", ("copy", "drop", "mark"))):
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"search: {name} is {getattr(self, name)!r}, must be one of {', '.join(choices)}"
                )


@dataclass(slots=True)
class Statistics:
    """What decoding took. Times are CPU seconds, summed over threads, without compiling kernels."""

    sentences: int = 0
    words: int = 0
    failed: int = 0  # sentences without any derivation
    rules: int = 0  # rules that could match
    pops: int = 0  # candidates that made or joined a node
    scored: int = 0  # candidates scored with language models
    nodes: int = 0
    edges: int = 0
    score: float = 0.0  # sum over the best derivations
    seconds: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        start, compiled = time.thread_time(), compile_timer.here()
        try:
            yield
        finally:
            self.seconds[stage] += time.thread_time() - start - (compile_timer.here() - compiled)

    def add(self, other: Statistics) -> None:
        for name in ("sentences", "words", "failed", "rules", "pops", "scored", "nodes", "edges", "score"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds.update(other.seconds)

    @property
    def mean_score(self) -> float:
        done = self.sentences - self.failed
        return self.score / done if done else 0.0

    def as_dict(self) -> dict[str, float | int]:
        stages = ("features", "parse", "search", "kbest")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            "sentences": self.sentences,
            "words": self.words,
            "failed": self.failed,
            "mean_score": self.mean_score,
            "search_cpu_s": sum(self.seconds[stage] for stage in stages),
            **{f"{stage}_cpu_s": self.seconds[stage] for stage in stages},
            "load_s": self.seconds["load"],
            "extract_s": self.seconds["extract"],
            "compile_s": compile_timer.seconds,
            "rules": self.rules,
            "pops": self.pops,
            "scored": self.scored,
            "nodes": self.nodes,
            "edges": self.edges,
            # Kilobytes on Linux, bytes on macOS.
            "peak_rss_mb": peak / (2**20 if sys.platform == "darwin" else 2**10),
        }


class Model:
    """Grammars, language models, weights and features, ready to translate; safe to share between threads."""

    def __init__(
        self,
        symbols: Symbols,
        sources: Sequence[GrammarSource],
        language_models: LanguageModels,
        weights: Weights,
        features: FeatureSet | None = None,
        search: SearchConfig | None = None,
    ) -> None:
        self.symbols = symbols
        self.sources = tuple(sources)
        self.language_models = language_models
        self.weights = weights
        self.features = features or FeatureSet()
        self.search = search or SearchConfig()
        self._goal = symbols.labels.intern(self.search.goal.encode())
        self._category = symbols.labels.intern(self.search.category.encode())
        self._glue = self._glue_rules()

    @cached_property
    def scorer(self) -> RuleScorer:
        """The linear model with the weights of now; ``weights_changed`` makes a new one."""
        return RuleScorer(self.symbols, self.weights, self.features, self.language_models.names)

    def weights_changed(self) -> None:
        """To be called after ``weights`` were changed, before the next sentence."""
        self.__dict__.pop("scorer", None)

    def parse(self, sentence: str | Segment, statistics: Statistics | None = None) -> Forest:
        """The forest of a sentence. It is false if there is no derivation."""
        segment = parse_segment(sentence) if isinstance(sentence, str) else sentence
        here = Statistics()
        forest = self._parse(segment, here)
        here.sentences += 1
        here.words += len(segment.words)
        if forest:
            here.score += float(forest.best()[0][-1])
        else:
            here.failed += 1
        if statistics is not None:
            statistics.add(here)
        return forest

    def translate(self, sentence: str | Segment) -> Derivation | None:
        """The best derivation of a sentence; its ``text`` is the translation. None if there is none."""
        forest = self.parse(sentence)
        return forest.viterbi() if forest else None

    def warm_up(self) -> None:
        """Translate a word that nobody knows, so that every kernel is compiled before work is shared out."""
        forest = self.parse(Segment(("\x00",)))
        if forest:
            _ = forest.viterbi().text

    # ---- the steps

    def _parse(self, segment: Segment, statistics: Statistics) -> Forest:
        src = read_only(self.symbols.words.intern_all(word.encode() for word in segment.words))
        with statistics.timed("load"):
            tables = [source.rules_for(src, segment.attributes) for source in self.sources]
            grammar, first_glue = self._grammar_of(src, tables)
            label_order = self._label_order(grammar)
        lm_word = self.language_models.word_ids(self.symbols.words)
        with statistics.timed("features"):
            rule_score = self.scorer.scores(grammar, lm_word)
            lm_weight = self._lm_weight()
        with statistics.timed("parse"):
            limit = min(self.search.span_limit, max(len(src), 1))
            parse = parse_kernel(
                src, grammar.trie, grammar.rules.lhs, self._glue_table(first_glue), label_order, limit
            )
            if not len(parse.rules):
                return self._forest(segment, grammar, lm_word, parse, _EMPTY_CHART)
        with statistics.timed("search"):
            arrays = self.language_models.arrays
            stride = int(max(arrays.order, default=1)) - 1 or 1
            states = rule_states_kernel(
                grammar.rules.first_tgt, grammar.rules.tgt, lm_word, arrays, lm_weight, stride, rule_score
            )
        with statistics.timed("features"):
            pairs = self._pairs(src, grammar, parse, rule_score, states.estimate)
        with statistics.timed("search"):
            goal = self._goal_cell(parse, len(src))
            done, num_scored, chart = search_kernel(
                parse, *pairs, states, arrays, lm_weight, goal, self.search.pop_limit, self.search.max_edges
            )
        if done < len(parse.cell):
            raise HieroError(
                f"sentence of {len(src)} words: an exhaustive search needs over {self.search.max_edges} edges"
                " (set pop_limit, a smaller span_limit, or a larger max_edges)"
            )
        statistics.rules += grammar.num_rules
        statistics.scored += num_scored
        statistics.pops += len(chart.rule)
        statistics.nodes += len(chart.cell)
        statistics.edges += len(chart.rule)
        return self._forest(segment, grammar, lm_word, parse, chart if goal >= 0 else _EMPTY_CHART)

    def _grammar_of(self, src: Ints, tables: list[RuleTable]) -> tuple[Grammar, int]:
        """All rules of a sentence, and where among them glue begins, which is not in the trie."""
        passed = self._pass_through(src, tables)
        grammar = build_grammar([*tables, passed] if passed.num_rules else tables)
        first_glue = grammar.num_rules
        if not self.search.glue:
            return grammar, first_glue
        table = merge_tables([RuleTable(grammar.rules, grammar.columns), self._glue])
        return Grammar(table.rules, grammar.trie, table.columns), first_glue

    def _pass_through(self, src: Ints, tables: list[RuleTable]) -> RuleTable:
        """A rule for every word to stand for itself, or as the configuration has it for unknown ones."""
        words = np.unique(src)
        name = self.symbols.names.intern(b"PassThrough")
        known = np.zeros(0, np.int32)
        if self.search.pass_through != "all" or self.search.oov != "copy":
            known = np.unique(np.concatenate([known, *(table.rules.src for table in tables)]))
        if self.search.pass_through == "none":
            words = words[:0]
        elif self.search.pass_through == "oov":
            words = np.setdiff1d(words, known)
        targets: list[list[int]] = [[word] for word in words.tolist()]
        if self.search.oov != "copy":
            for i in np.flatnonzero(~np.isin(words, known)).tolist():
                marked = self.symbols.words.entry(int(words[i])) + b"_OOV"
                targets[i] = [] if self.search.oov == "drop" else [self.symbols.words.intern(marked)]
        return _rule_table(self._category, [[word] for word in words.tolist()], targets, name, link=True)

    def _glue_rules(self) -> RuleTable:
        goal, category = self._goal, self._category
        name = self.symbols.names.intern(b"Glue")
        alone = _rule_table(goal, [[gap(category, 1)]], [[gap(category, 1)]], name, value=0.0)
        both = [gap(goal, 1), gap(category, 2)]
        return merge_tables([alone, _rule_table(goal, [both], [both], name)])

    def _glue_table(self, first: int) -> npt.NDArray[np.int64]:
        """Glue as the parser wants it; see ``parse_kernel``."""
        if not self.search.glue:
            return np.zeros((0, 5), np.int64)
        goal, category = self._goal, self._category
        return np.array([[goal, -1, category, first, 1], [goal, goal, category, first + 1, 1]], np.int64)

    def _label_order(self, grammar: Grammar) -> Ints:
        """Categories so that unary rules lead from earlier to later ones; one that closes a circle is idle."""
        num_labels = len(self.symbols.labels)
        parents: list[set[int]] = [set() for _ in range(num_labels)]
        if self.search.glue:
            parents[self._category].add(self._goal)
        trie, lhs = grammar.trie, grammar.rules.lhs
        for child in range(int(trie.first_child[0]), int(trie.first_child[1])):
            if trie.symbol[child] >= 0:
                break
            rules = lhs[trie.first_rule[child] : trie.first_rule[child + 1]]
            parents[gap_label(int(trie.symbol[child]))].update(rules.tolist())
        order: list[int] = []
        state = [0] * num_labels  # 1: entered, 2: done
        for root in range(num_labels):
            stack = [root]
            while stack:
                label = stack[-1]
                if state[label] == 0:
                    state[label] = 1
                    stack += [parent for parent in sorted(parents[label]) if state[parent] == 0]
                else:
                    stack.pop()
                    if state[label] == 1:
                        state[label] = 2
                        order.append(label)
        return np.array(order[::-1], np.int32)

    def _lm_weight(self) -> Floats:
        names = [self.symbols.names.intern(name.encode()) for name in self.language_models.names]
        return np.asarray(self.scorer.name_weights()[np.array(names, np.int64)], np.float64)

    def _pairs(
        self, src: Ints, grammar: Grammar, parse: Parse, rule_score: Floats, estimate: Floats
    ) -> tuple[npt.NDArray[np.int64], Ints, Floats, Floats]:
        """First pair of each bundle; rule, score and estimate of each pair.

        Without features of edges, what a rule scores is the same everywhere and bundles share their pairs.
        """
        if not self.features.edge_features:
            rules = np.arange(grammar.num_rules, dtype=np.int32)
            return np.ascontiguousarray(parse.rules[:, 0]), rules, rule_score, estimate
        batch, first = _edge_batch(parse, src)
        extra = edge_scores(batch, grammar.rules, self.features.edge_features, self.scorer)
        return first, batch.rule, rule_score[batch.rule] + extra, estimate[batch.rule] + extra

    def _goal_cell(self, parse: Parse, num_words: int) -> int:
        whole = (parse.cell[:, 0] == self._goal) & (parse.cell[:, 1] == 0) & (parse.cell[:, 2] == num_words)
        found = np.flatnonzero(whole)
        return int(found[0]) if len(found) else -1

    def _forest(
        self, segment: Segment, grammar: Grammar, lm_word: Ints, parse: Parse, chart: Chart
    ) -> Forest:
        cells = np.concatenate([parse.cell, np.array([[self._goal, 0, len(segment.words)]], np.int32)])
        cell = cells[chart.cell]  # the goal's is -1, the last
        return Forest(
            Hypergraph(chart.first_edge, chart.tail),
            chart.local,
            chart.rule,
            np.ascontiguousarray(cell[:, 0]),
            np.ascontiguousarray(cell[:, 1]),
            np.ascontiguousarray(cell[:, 2]),
            grammar.rules,
            words=self.symbols.words,
            labels=self.symbols.labels,
            source=segment.words,
            edge_lm=chart.lm,
            lm_names=self.language_models.names,
            features_of=DerivationFeatures(self, grammar, lm_word),
        )


class DerivationFeatures:
    """The features of derivations, replayed from their rules: names to values, zeros left out."""

    def __init__(self, model: Model, grammar: Grammar, lm_word: Ints, *, cdec_names: bool = False) -> None:
        self.model, self.replay = model, Replay(model.scorer, grammar, lm_word, cdec_names=cdec_names)

    def __call__(self, derivation: Derivation) -> Mapping[str, float]:
        forest = derivation.forest
        total: dict[str, float] = {}
        edges, rules = derivation.edges, derivation.rules
        parts: list[Mapping[str, float]] = self.replay.rules(rules[rules >= 0].tolist())
        if self.model.features.edge_features:
            parts = [
                *parts,
                *self.replay.edges(_batch_of_edges(forest, edges[rules >= 0], self.model.symbols)),
            ]
        for part in parts:
            for name, value in part.items():
                total[name] = total.get(name, 0.0) + value
        for name, value in zip(forest.lm_names, derivation.lm_scores.tolist(), strict=True):
            total[name] = total.get(name, 0.0) + value
        return {name: value for name, value in total.items() if value != 0.0}


_EMPTY_CHART = Chart(
    np.zeros(1, np.int64),
    np.zeros(0, np.int32),
    np.zeros((0, 2), np.int32),
    np.zeros(0, np.int32),
    np.zeros(0),
    np.zeros((0, 0), np.float32),
)


def _rule_table(
    lhs: int,
    sources: list[list[int]],
    targets: list[list[int]],
    name: int,
    *,
    value: float = 1.0,
    link: bool = False,
) -> RuleTable:
    """Rules of one category with one feature; with ``link``, their first words are aligned."""
    num_rules = len(sources)
    linked = np.array([link and bool(target) for target in targets], np.bool_)
    offset = lambda sides: np.cumsum([0, *map(len, sides)])  # noqa: E731
    flat = lambda sides: np.array([symbol for side in sides for symbol in side], np.int32)  # noqa: E731
    rules = Rules(
        lhs=np.full(num_rules, lhs, np.int32),
        first_src=offset(sources),
        src=flat(sources),
        first_tgt=offset(targets),
        tgt=flat(targets),
        dense=np.full((num_rules, 1), value, np.float32),
        first_sparse=np.zeros(num_rules + 1, np.int64),
        sparse_name=np.zeros(0, np.int32),
        sparse_value=np.zeros(0, np.float32),
        first_link=np.concatenate([[0], np.cumsum(linked)]),
        link=np.zeros((int(linked.sum()), 2), np.int16),
    )
    return RuleTable(Rules._make(map(read_only, rules)), (name,))


def _edge_batch(parse: Parse, src: Ints) -> tuple[EdgeBatch, npt.NDArray[np.int64]]:
    """Every application of a rule in a parse, and the first of each bundle."""
    num_rules = parse.rules[:, 1]
    first = np.concatenate([[0], np.cumsum(num_rules)])
    bundle = np.repeat(np.arange(len(num_rules)), num_rules)
    rule = parse.rules[bundle, 0] + np.arange(first[-1]) - first[bundle]
    cell = np.repeat(np.arange(len(parse.cell)), np.diff(parse.first_bundle))
    span = parse.cell[cell]
    tails = parse.cell[parse.tail, 1:]  # where there is no tail, -1 takes the last cell: overwritten below
    tails[parse.tail < 0] = -1
    split = tails.reshape(-1, 4)[bundle]
    batch = EdgeBatch(rule.astype(np.int32), span[bundle, 1], span[bundle, 2], split, src)
    return batch, first[:-1]


def _batch_of_edges(forest: Forest, edges: Ints, symbols: Symbols) -> EdgeBatch:
    """Chosen edges of a forest as a batch."""
    head = np.searchsorted(forest.graph.first_edge, edges, side="right") - 1
    tail = forest.graph.tail[edges]
    split = np.stack([forest.node_start[tail], forest.node_end[tail]], axis=2)
    split[tail < 0] = -1
    return EdgeBatch(
        forest.edge_rule[edges],
        forest.node_start[head],
        forest.node_end[head],
        np.ascontiguousarray(split.reshape(-1, 4)),
        symbols.words.intern_all(word.encode() for word in forest.source),
    )
