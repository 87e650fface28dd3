"""Random systems for property tests of the search, small enough to enumerate every derivation.

All numbers are eighths or quarters, so that sums are exact in any order and ties occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hiero.core.symbol_kernels import gap_index, gap_label
from hiero.core.symbols import Symbols
from hiero.core.text import Segment
from hiero.decoder.config import SearchConfig
from hiero.decoder.derivation import Derivation
from hiero.decoder.forest import Forest
from hiero.decoder.model import Model
from hiero.features.feature_set import feature_set
from hiero.features.index import EdgeFeature, RuleFeature
from hiero.features.weights import Weights
from hiero.grammar.sources import RuleList
from hiero.lm.load import ModelFiles, compile_language_model, load_language_models
from tests.naive import chart as naive_chart
from tests.naive import lm as naive_lm
from tests.naive import search as naive
from tests.naive.binarize import is_divisible
from tests.naive.search import Rule

SOURCE_WORDS = ["a", "b"]
TARGET_WORDS = ["u", "v", "w", "a"]
UNSEEN = "z"  # on the source side: known to no rule; on the target side: to no language model
LABELS = ["X", "Y", "S"]
GLUE, PASS_THROUGH = -0.25, -1.5
MAX_DERIVATIONS = 300

quarters = st.integers(-8, 8).map(lambda number: number / 4)


@st.composite
def rules(
    draw: st.DrawFn, scores: st.SearchStrategy[float] = quarters, least_gaps: int = 0, most_gaps: int = 2
) -> Rule:
    """Any rule with up to two gaps, or more, which may be adjacent, at the ends or alone."""
    categories = st.sampled_from(["X", "X", "X", "Y", "S"])
    labels = draw(st.lists(categories, min_size=least_gaps, max_size=most_gaps))
    src = draw(st.lists(st.sampled_from(SOURCE_WORDS), min_size=0 if labels else 1, max_size=2))
    tgt = draw(st.lists(st.sampled_from([*TARGET_WORDS, UNSEEN]), max_size=3))
    places = sorted(draw(st.integers(0, len(src))) for _ in labels)
    # From the last, so that the positions of the others do not change.
    for index, label, place in reversed(list(zip(range(1, most_gaps + 1), labels, places, strict=False))):
        src.insert(place, f"[{label},{index}]")
        tgt.insert(draw(st.integers(0, len(tgt))), f"[{label},{index}]")
    return Rule(draw(st.sampled_from(["X", "X", "X", "Y", "S"])), tuple(src), tuple(tgt), draw(scores))


@st.composite
def grammars(draw: st.DrawFn, scores: st.SearchStrategy[float] = quarters) -> tuple[Rule, ...]:
    """Several translations for some words, a rule that joins two parts, and random rules."""
    words, targets = st.sampled_from(SOURCE_WORDS), st.lists(st.sampled_from(TARGET_WORDS), max_size=2)
    lexical = st.builds(lambda *rule: Rule("X", *rule), st.tuples(words), targets.map(tuple), scores)
    between = draw(st.lists(words, max_size=1))
    tgt = draw(
        st.permutations(["[X,1]", "[X,2]", *draw(st.lists(st.sampled_from(TARGET_WORDS), max_size=1))])
    )
    join = Rule("X", ("[X,1]", *between, "[X,2]"), tuple(tgt), draw(scores))
    return (
        *draw(st.lists(lexical, min_size=2, max_size=5)),
        join,
        *draw(st.lists(rules(scores), max_size=4)),
    )


def rule_text(rule: Rule) -> str:
    return f"[{rule.lhs}] ||| {' '.join(rule.src)} ||| {' '.join(rule.tgt)} ||| F={rule.score}"


@st.composite
def arpa_texts(draw: st.DrawFn, max_order: int = 4, words: tuple[str, ...] = ("u", "v", "w")) -> str:
    """An ARPA file that KenLM can read too: of order 2 or more, with every context listed."""
    order = draw(st.integers(2, max_order))
    vocabulary = ["<s>", "</s>", *words, *draw(st.sampled_from([[], ["<unk>"]]))]
    # Scores above zero, after backing off, cannot be stored.
    highest, backoffs = draw(st.sampled_from([(0, ["", "\t0", "\t-0.25", "\t-0.5"]), (-1, ["", "\t0.125"])]))
    probs = st.integers(-24, 0).map(lambda number: number / 8 + highest)
    sections: list[list[tuple[str, ...]]] = [[(word,) for word in vocabulary]]
    for _ in range(2, order + 1):
        contexts = [ngram for ngram in sections[-1] if ngram[-1] != "</s>"]
        if not contexts:
            sections.append([])
            continue
        pair = st.tuples(st.sampled_from(contexts), st.sampled_from(vocabulary[1:]))
        longer = pair.map(lambda pair: (*pair[0], pair[1]))
        sections.append(draw(st.lists(longer, min_size=2, max_size=7, unique=True)))
    lines = ["\\data\\", *(f"ngram {n}={len(ngrams)}" for n, ngrams in enumerate(sections, 1))]
    for n, ngrams in enumerate(sections, 1):
        lines += ["", f"\\{n}-grams:"]
        backoff = st.sampled_from(backoffs) if n < order else st.just("")
        lines += [f"{draw(probs)}\t{' '.join(ngram)}{draw(backoff)}" for ngram in ngrams]
    return "\n".join([*lines, "", "\\end\\", ""])


read_arpa = lru_cache(naive_lm.read_arpa)


@dataclass(frozen=True)
class System:
    """A grammar, language models with weights, a sentence, and search settings."""

    rules: tuple[Rule, ...]
    words: tuple[str, ...]
    models: tuple[tuple[str, float], ...] = ()  # ARPA text and weight
    span_limit: int = 15
    labels: tuple[str, ...] = ("X", "Y", "S")  # in the order of their numbers
    more_weights: Mapping[str, float] = field(default_factory=dict)
    classes: Mapping[str, str] | None = None  # of words, if the models are of classes
    quantised: bool = False  # with as many codes as values

    @property
    def lm_names(self) -> list[str]:
        return [f"LM{m}" for m in range(len(self.models))]

    @property
    def weights(self) -> dict[str, float]:
        given = {"F": 1.0, "Glue": GLUE, "PassThrough": PASS_THROUGH}
        return given | dict(zip(self.lm_names, (weight for _, weight in self.models), strict=True))

    @contextmanager
    def opened(
        self, *, pop_limit: int = 0, features: Sequence[str | RuleFeature | EdgeFeature] = (), **settings: Any
    ) -> Iterator[Model]:
        """The system as a model of the package."""
        symbols = Symbols()
        symbols.labels.intern_all(label.encode() for label in self.labels)
        source = RuleList(symbols, [rule_text(rule) for rule in self.rules], self.span_limit)
        config = SearchConfig(**{"pop_limit": pop_limit, "span_limit": self.span_limit} | settings)
        with TemporaryDirectory() as folder:
            specs = [(name, Path(folder) / f"{name}.arpa") for name in self.lm_names]
            for (text, _), (_, path) in zip(self.models, specs, strict=True):
                path.write_text(text)
            if self.quantised:
                specs = [(name, _quantised(path)) for name, path in specs]
            place = None
            if self.classes is not None:
                place = Path(folder) / "classes"
                place.write_text("".join(f"{word}\t{name}\n" for word, name in self.classes.items()))
            models = load_language_models([ModelFiles(*spec, place) for spec in specs])
            yield Model(
                symbols,
                [source],
                models,
                Weights(symbols, self.weights | dict(self.more_weights)),
                feature_set(features, symbols),
                config,
            )

    def forest(self, **settings: Any) -> Forest:
        with self.opened(**settings) as model:
            return model.parse(Segment(self.words))

    def lm_score(self, words: tuple[str, ...]) -> float:
        if self.classes is not None:
            words = tuple(self.classes.get(word, "<unk>") for word in words)
        return sum(
            weight * naive_chart.sentence(naive_lm.read_arpa(text), words) for text, weight in self.models
        )


def _quantised(path: Path) -> Path:
    """A quantised model with the same values; one of order 1 remains as it is."""
    if naive_lm.read_arpa(path.read_text()).order == 1:
        return path
    compile_language_model(path, path.with_suffix(".q"), (5, 5))
    return path.with_suffix(".q")


@st.composite
def systems(draw: st.DrawFn, max_models: int = 2, scores: st.SearchStrategy[float] = quarters) -> System:
    """A system with a sentence short enough to have at most MAX_DERIVATIONS derivations."""
    lm_weight = st.sampled_from([1.0, 0.5, 0.25, 0.0, -0.5])
    num_models = draw(st.sampled_from([n for n in (0, 1, 1, 1, 2) if n <= max_models]))
    system = System(
        draw(grammars(scores)),
        tuple(draw(st.lists(st.sampled_from([*SOURCE_WORDS * 3, UNSEEN]), min_size=2, max_size=5))),
        tuple(draw(st.tuples(arpa_texts(), lm_weight)) for _ in range(num_models)),
        draw(st.integers(1, 6)),
        tuple(draw(st.permutations(LABELS))),
    )
    return _small_enough(system)


def _small_enough(system: System) -> System:
    while num_derivations(system) > MAX_DERIVATIONS:
        system = replace(system, words=system.words[:-1])
    return system


@st.composite
def wide_systems(draw: st.DrawFn, max_models: int = 1) -> System:
    """Systems with rules of three and four gaps as well, which may begin alike, and longer sentences."""
    system = draw(systems(max_models))
    wide = draw(st.lists(rules(quarters, 3, 4), min_size=1, max_size=3))
    # Others with the same gaps and other words, order or score.
    for rule in draw(st.lists(st.sampled_from(wide), max_size=2)):
        tgt = draw(st.permutations(rule.tgt)) if draw(st.booleans()) else rule.tgt
        wide.append(
            Rule(rule.lhs, (*rule.src, *draw(st.sampled_from([(), ("a",)]))), tuple(tgt), draw(quarters))
        )
    words = (*system.words, *draw(st.lists(st.sampled_from(SOURCE_WORDS), max_size=2)))
    return _small_enough(replace(system, rules=(*system.rules, *wide), words=words))


def world_of(system: System) -> naive.World:
    """The same for the twins, with glue and pass-through rules."""
    glue = Rule("S", ("[X,1]",), ("[X,1]",)), Rule("S", ("[S,1]", "[X,2]"), ("[S,1]", "[X,2]"), GLUE)
    passed = [Rule("X", (word,), (word,), PASS_THROUGH) for word in sorted(set(system.words))]
    order = naive.label_order((*system.rules, glue[0]), system.labels, "X")
    used = tuple(rule for rule in system.rules if is_divisible(rule.tgt))
    return naive.World(system.words, (*used, *passed), glue, order, system.span_limit)


def num_derivations(system: System) -> int:
    if not system.words:
        return 0
    return naive.count(world_of(system), ("S", 0, len(system.words)))


def enumerated(system: System) -> list[tuple[float, naive.Derivation]]:
    """Every derivation with its score, best first."""
    if not system.words:
        return []
    found = naive.derivations(world_of(system), ("S", 0, len(system.words)))
    lm_score = {words: system.lm_score(words) for words in map(naive.translation, found)}
    scored = [(naive.rule_score(d) + lm_score[naive.translation(d)], d) for d in found]
    return sorted(scored, key=lambda pair: -pair[0])


# ---- results of the package in the format of the twins


def side_texts(forest: Forest, first: np.ndarray, side: np.ndarray, rule: int) -> tuple[str, ...]:
    return tuple(
        forest.words.text(symbol)
        if symbol >= 0
        else f"[{forest.labels.text(int(gap_label(symbol)))},{gap_index(symbol)}]"
        for symbol in side[first[rule] : first[rule + 1]].tolist()
    )


def rule_key(forest: Forest, rule: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    rules = forest.whole
    lhs = forest.labels.text(int(rules.lhs[rule]))
    return (
        lhs,
        side_texts(forest, rules.first_src, rules.src, rule),
        side_texts(forest, rules.first_tgt, rules.tgt, rule),
    )


def steps_of(derivation: Derivation) -> list[tuple[Any, ...]]:
    """The rules and spans of a derivation in pre-order, without the edge into the goal."""
    forest = derivation.forest
    return [
        (*rule_key(forest, rule), int(forest.node_start[node]), int(forest.node_end[node]))
        for rule, node in zip(derivation.rules.tolist(), derivation.nodes.tolist(), strict=True)
        if rule >= 0
    ]


def naive_steps(derivation: naive.Derivation) -> list[tuple[Any, ...]]:
    return [(*step.rule[:3], *step.cell[1:]) for step in naive.steps(derivation)]
