"""Rules with more than two gaps against enumeration of all derivations of the rules as they are."""

from __future__ import annotations

import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiero
from hiero.core.arrays import read_only
from hiero.core.errors import HieroError, HieroWarning
from hiero.core.lattice import Lattice
from hiero.core.text import Segment
from hiero.decoder.derivation import Derivation
from hiero.decoder.derivation_kernels import DEPTH, whole_steps_kernel
from hiero.decoder.forest import Forest
from hiero.decoder.hypergraph import validate
from hiero.decoder.parse_kernels import Parse, used_cells_kernel
from hiero.features.score import Replay
from hiero.grammar.cdec import parse_cdec
from tests.decoder.test_cube import ALL, best_of_strings, bigrams_of, listed, texts
from tests.naive import forest as naive_forest
from tests.naive import search as naive
from tests.worlds.search import (
    System,
    enumerated,
    naive_steps,
    rule_text,
    steps_of,
    wide_systems,
    world_of,
)

RULES = [
    "[X] ||| a ||| A ||| p=1 ||| 0-0",
    "[X] ||| b ||| B ||| p=1 ||| 0-0",
    "[X] ||| b ||| b2 b3 ||| p=2 ||| 0-1",
    "[Y] ||| c ||| C ||| p=1 ||| 0-0",
    "[X] ||| q [X,1] x [X,2] y [Y,3] z ||| u [3] v [1] w [2] ||| p=0.5 ||| 2-2 4-0 6-4",
    "[X] ||| q [X,1] x [X,2] y [Y,3] ||| [3] v [2] w [1] ||| p=0.25 ||| 2-1",
]
WEIGHTS = {"p": -1.0, "PassThrough": -5.0, "WordPenalty": 0.25}
LINE = "q a x b y c z"
CROSSED = "[X] ||| a [X,1] [X,2] [X,3] [X,4] ||| [2] [4] b [1] [3] ||| p=1"


def with_bigrams(system: System, weights: dict[str, float]) -> System:
    return replace(system, more_weights=weights)


@given(wide_systems())
def test_exhaustive_search_finds_all_derivations_once(system: System) -> None:
    forest, expected = system.forest(), enumerated(system)
    validate(forest.graph)
    assert bool(forest) == bool(expected)
    assert forest.num_derivations == len(expected)
    found = forest.kbest(ALL, unique=False)
    assert listed(found) == texts(expected)
    assert sorted(map(steps_of, found)) == sorted(naive_steps(d) for _, d in expected)
    unique = listed(forest.kbest(ALL))
    assert best_of_strings(unique) == best_of_strings(texts(expected))


@given(wide_systems(), st.integers(1, 12), st.sampled_from(["cube", "coarse_to_fine"]))
def test_pruned_search_lists_valid_derivations(system: System, pop_limit: int, algorithm: str) -> None:
    expected = Counter(texts(enumerated(system)))
    forest = system.forest(pop_limit=pop_limit, algorithm=algorithm)
    assert bool(forest) == bool(expected)
    assert not Counter(listed(forest.kbest(ALL, unique=False))) - expected


OF_TEMPLATES = re.compile("R:|RB|Arity|Source|WordPenalty")
TEMPLATES = ["rule_id", "source_bigram", "target_bigram"]


@pytest.mark.heavy
@given(wide_systems(), st.dictionaries(st.sampled_from(["B:u_v", "B:v_u", "B:u_a"]), st.just(0.5)))
def test_features_are_those_of_the_rules_as_read(system: System, weights: dict[str, float]) -> None:
    """Each rule has the features that it has on its own; bigrams are those of the translation's rules."""
    with with_bigrams(system, weights).opened(
        features=[*TEMPLATES, "bigram", "arity", "source_word_penalty"]
    ) as model:
        forest = model.parse(Segment(system.words))
        symbols = model.symbols
        world = world_of(system)
        rules = [*world.rules, *world.glue]
        table = parse_cdec([rule_text(rule) for rule in rules], symbols)
        lm_word = model.language_models.word_ids(symbols.words)
        rows = Replay(model.scorer, table, lm_word).rules(range(table.num_rules))
        of_rule = {naive_rule[:3]: row for naive_rule, row in zip(rules, rows, strict=True)}
        found, expected = [], []
        for derivation in forest.kbest(ALL, unique=False):
            features = dict(derivation.features)
            bigrams = sorted((name, n) for name, n in features.items() if name.startswith("B:"))
            found.append((derivation.score, steps_of(derivation), bigrams))
            weight = {name: model.weights.get(name, 0.0) for name in features}
            total = sum(weight[name] * value for name, value in features.items())
            assert total == pytest.approx(derivation.score, abs=1e-6)
            # Templates fire once for each rule, on all of it.
            steps = [step[:3] for step in steps_of(derivation)]
            counts: dict[str, float] = defaultdict(float)
            for step in steps:
                for name, value in of_rule[step].items():
                    counts[name] += value
            chosen = {name for name in features | counts if OF_TEMPLATES.match(name)}
            assert {name: features.get(name, 0.0) for name in chosen} == pytest.approx(
                {name: counts[name] for name in chosen}
            )
        for score, d in enumerated(system):
            own = bigrams_of(system, d)
            total = score + sum(weights.get(name, 0.0) * n for name, n in own.items())
            expected.append((total, naive_steps(d), sorted(own.items())))
        assert sorted(found) == sorted(expected)
        every = np.arange(forest.num_edges, dtype=np.int32)
        of_edges = forest.features_of_edges(every)
        assert of_edges is not None
        assert of_edges.scores(system.weights | weights) == pytest.approx(forest.edge_score, abs=1e-6)


def read_back(forest: Forest, folder: Path) -> Iterator[Forest]:
    for name in ("f.json", "f.npz"):
        forest.save(folder / name)
        yield Forest.load(folder / name)
    yield pickle.loads(pickle.dumps(forest))
    yield forest.prune(1e6)


def shown(derivation: Derivation) -> tuple[object, ...]:
    """Everything that users see; with few digits, since files do not have all."""

    def few(number: float | str) -> float:
        return round(float(number), 5) + 0.0

    rule_texts = [re.sub(r"=(\S+)", lambda found: f"={few(found[1])}", one) for one in derivation.rule_texts]
    features = {name: few(value) for name, value in derivation.features.items() if few(value)}
    scores = [few(score) for score in derivation.edge_scores]
    tree, spans = str(derivation.tree()), derivation.spans
    return derivation.text, derivation.alignment, tree, spans, rule_texts, features, scores


@given(wide_systems())
def test_files_and_copies_have_the_same_derivations(
    tmp_path_factory: pytest.TempPathFactory, system: System
) -> None:
    forest = system.forest(features=["rule_id"])
    if not forest:
        return
    expected = [shown(d) for d in forest.kbest(5, unique=False)]
    for other in read_back(forest, tmp_path_factory.mktemp("forest")):
        assert [shown(d) for d in other.kbest(5, unique=False)] == expected
    alone = pickle.loads(pickle.dumps(forest.viterbi()))
    assert shown(alone) == shown(forest.viterbi())
    assert forest.viterbi().edge_scores.sum() == pytest.approx(forest.viterbi().score)


@pytest.mark.heavy
@given(wide_systems())
def test_forced_decoding_and_sentences_as_lattices(system: System) -> None:
    expected = enumerated(system)
    if not expected:
        return
    with system.opened() as model:
        line = " ".join(system.words)
        for target in {naive.translation(d) for _, d in expected}:
            found = model.force(line, target)
            own = [(score, d) for score, d in expected if naive.translation(d) == target]
            assert listed(found.forest.kbest(ALL, unique=False)) == texts(own)
        arcs = [(at, at + 1, word, {}) for at, word in enumerate(system.words)]
        along = model.parse(Lattice.make(arcs))
        derivations = along.kbest(ALL, unique=False)
        assert listed(derivations) == texts(expected)
        assert sorted(map(steps_of, derivations)) == sorted(naive_steps(d) for _, d in expected)


@given(wide_systems(), st.sampled_from([1.0, 0.5]))
def test_confidence_is_that_of_all_derivations(system: System, alpha: float) -> None:
    forest = system.forest()
    found = forest.kbest(ALL, unique=False)
    if not found:
        return
    weight = np.exp([alpha * (d.score - found[0].score) for d in found])
    expected: dict[tuple[str, tuple[int, ...]], float] = defaultdict(float)
    for d, share in zip(found, (weight / weight.sum()).tolist(), strict=True):
        for event in events_of(d):
            expected[event] += share
    best = forest.viterbi()
    assert forest.confidence(best, alpha=alpha) == pytest.approx(
        [min(1.0, expected[event]) for event in events_of(best)], abs=1e-9
    )


def events_of(derivation: Derivation) -> list[tuple[str, tuple[int, ...]]]:
    links: dict[int, list[int]] = defaultdict(list)
    for src, tgt in derivation.alignment:
        links[tgt].append(src)
    return [(word, tuple(links[at])) for at, word in enumerate(derivation.text.split())]


def test_links_and_rules_are_those_of_the_whole_rule() -> None:
    model = hiero.load(rules=RULES, weights=WEIGHTS)
    best = model.translate(LINE)
    assert best.text == "u C v A w B"
    # z to w, y to u, x to v, across the parts; and the words in the gaps.
    assert best.alignment == [(1, 3), (2, 2), (3, 5), (4, 0), (5, 1), (6, 4)]
    assert str(best.tree()) == "(S (S (X u (Y C) v (X A) w (X B))))"
    assert [rule.split(" ||| ")[1] for rule in best.rule_texts] == [
        "[S,1]", "[X,1]", "q [X,1] x [X,2] y [Y,3] z", "a", "b", "c",
    ]  # fmt: skip
    assert [int(depth) for depth in best.steps[:, DEPTH]] == [0, 1, 2, 3, 3, 3]
    assert best.features["p"] == 3.5
    lexical = hiero.load(rules=RULES, weights=WEIGHTS, features=["lexical", "insertion_pair"]).translate(LINE)
    pairs = {name for name in lexical.features if name[:2] in ("LT", "LD", "LI", "IP")}
    assert pairs == {f"LT:{pair}" for pair in ("x:v", "y:u", "z:w", "a:A", "b:B", "c:C")} | {"LD:q"}
    lattice = [(at, at + 1, word, {"LatticeCost": 0.5}) for at, word in enumerate(LINE.split())]
    along = model.with_weights(WEIGHTS | {"LatticeCost": -1.0}).translate(Lattice.make(lattice))
    assert (along.text, along.alignment, along.arcs) == (best.text, best.alignment, [*range(7)])
    assert along.features["LatticeCost"] == 3.5
    assert along.score == pytest.approx(best.score - 3.5)


def test_confidence_of_words_with_links_to_other_parts() -> None:
    forest = hiero.load(rules=RULES, weights=WEIGHTS | {"Glue": 0.0}).parse(LINE)
    found = forest.kbest(ALL, unique=False)
    weight = np.exp([d.score - found[0].score for d in found])
    for best in found[:3]:
        expected = []
        for event in events_of(best):
            counts = [Counter(events_of(d))[event] for d in found]
            expected.append(min(1.0, float(counts @ weight / weight.sum())))
        assert forest.confidence(best) == pytest.approx(expected)


def test_rules_that_cannot_be_divided_are_reported() -> None:
    message = "1 rule with more than two gaps is left out"
    with pytest.warns(HieroWarning, match=message):
        model = hiero.load(rules=[*RULES, CROSSED], weights=WEIGHTS)
    assert model.translate("a a a b b").text == "A A A B B"
    with pytest.raises(HieroError, match=message):
        hiero.load(rules=[*RULES, CROSSED], weights=WEIGHTS, strict=True)


@pytest.mark.parametrize("feature", ["shape", "span_size", "orientation"])
def test_features_of_two_gaps_are_refused(feature: str) -> None:
    with pytest.raises(HieroError, match=rf"feature {feature}.*: found a rule with more than two gaps"):
        hiero.load(rules=RULES, weights=WEIGHTS, features=[feature])
    hiero.load(rules=RULES[:4], weights=WEIGHTS, features=[feature])


def test_features_in_python_see_whole_rules() -> None:
    seen = []

    @hiero.rule_feature(per_rule=True)
    def sides(rule: hiero.Rule) -> Iterator[tuple[str, float]]:  # type: ignore[name-defined]
        seen.append(rule.src)
        yield "Long", float(rule.src[-1] == "z")

    model = hiero.load(rules=RULES, weights=WEIGHTS | {"Long": 0.25}, features=[sides])
    assert model.translate(LINE).features["Long"] == 1
    assert ("q", "[X,1]", "x", "[X,2]", "y", "[Y,3]", "z") in seen
    assert () not in seen


# ---- kernels


@st.composite
def trees_of_steps(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[bool]]:
    """Depths and ends of the steps of a random tree, and which are parts; the root is none."""
    depth = [0]
    for _ in range(draw(st.integers(0, 10))):
        depth.append(draw(st.integers(1, depth[-1] + 1)))
    ends = [
        next((j for j in range(i + 1, len(depth)) if depth[j] <= depth[i]), len(depth))
        for i in range(len(depth))
    ]
    part = [False, *(draw(st.booleans()) for _ in depth[1:])]
    return list(zip(depth, ends, strict=True)), part


@given(trees_of_steps())
def test_steps_without_parts(case: tuple[list[tuple[int, int]], list[bool]]) -> None:
    rows, part = case
    step = np.array([[at, at, depth, end, 0, 0] for at, (depth, end) in enumerate(rows)], np.int32)
    whole, owner = whole_steps_kernel(read_only(step), np.array(part))
    expected, owners = naive_forest.whole_steps(rows, part)
    assert [(row[0], row[2], row[3]) for row in whole.tolist()] == expected
    assert owner.tolist() == owners


@st.composite
def parses_with_parts(draw: st.DrawFn) -> tuple[list[int], list[list[tuple[int, ...]]]]:
    """The category of each cell, and the tails of its bundles."""
    labels = draw(st.lists(st.integers(0, 3), min_size=1, max_size=8))
    bundles = []
    for cell in range(len(labels)):
        tail = st.lists(st.integers(0, cell - 1), max_size=2).map(tuple) if cell else st.just(())
        bundles.append(draw(st.lists(tail, min_size=1, max_size=3)))
    return labels, bundles


@given(parses_with_parts())
def test_cells_of_parts_without_use_are_found(case: tuple[list[int], list[list[tuple[int, ...]]]]) -> None:
    labels, bundles = case
    flat = [[*tails, -1, -1][:2] for own in bundles for tails in own]
    first = np.cumsum([0, *map(len, bundles)])
    cell = np.array([[label, at, at + 1] for at, label in enumerate(labels)], np.int32)
    parse = Parse(cell, first, np.zeros((len(flat), 2), np.int64), np.array(flat, np.int32))
    used = np.empty(len(labels), np.bool_)
    used_cells_kernel(parse, 2, used)
    cells = [(str(label), at, at + 1) for at, label in enumerate(labels)]
    named = {
        cells[at]: [naive.Bundle((), tuple(cells[tail] for tail in tails), ()) for tails in own]
        for at, own in enumerate(bundles)
    }
    expected = naive.used_cells(cells, named, frozenset("23"))
    assert [one for one, kept in zip(cells, used.tolist(), strict=True) if kept] == sorted(
        expected, key=cells.index
    )
