"""The search against enumeration of all derivations.

Numbers in random systems are eighths, so that scores can be compared exactly.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hiero.core.errors import HieroError
from hiero.core.text import Segment
from hiero.decoder.cube_kernels import FINE, loss_kernel
from hiero.decoder.derivation import Derivation
from hiero.decoder.forest import Forest
from hiero.decoder.hypergraph import Pairs, validate
from hiero.decoder.parse_kernels import Parse
from hiero.decoder.search import SEARCHES
from hiero.decoder.statistics import Statistics
from hiero.features.index import FeatureIndex
from hiero.learning.candidates import candidates
from tests.naive import search as naive
from tests.naive.search import Rule
from tests.worlds.lm import kenlm_model
from tests.worlds.search import (
    GLUE,
    System,
    enumerated,
    naive_steps,
    read_arpa,
    rule_key,
    steps_of,
    systems,
)

ALL = 10_000  # more than the number of derivations
algorithms = st.sampled_from(sorted(SEARCHES))


def texts(scored: Iterable[tuple[float, naive.Derivation]]) -> list[tuple[float, str]]:
    return sorted((score, " ".join(naive.translation(d))) for score, d in scored)


def listed(found: Iterable[Derivation]) -> list[tuple[float, str]]:
    return sorted((d.score, d.text) for d in found)


def best_of_strings(pairs: Iterable[tuple[float, str]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for score, text in pairs:
        best[text] = max(best.get(text, -math.inf), score)
    return best


@given(systems())
def test_quantised_models(system: System) -> None:
    """Codes of all values give the same derivations; models with and without codes are searched together."""
    forest, expected = replace(system, quantised=True).forest(), enumerated(system)
    assert listed(forest.kbest(ALL, unique=False)) == texts(expected)
    assert forest.num_nodes == system.forest().num_nodes


CLASSES = st.dictionaries(
    st.sampled_from(["u", "v", "w", "a", "b"]), st.sampled_from(["u", "v", "w", "none"]), min_size=1
).filter(lambda classes: set(classes.values()) != {"none"})


@given(systems(), CLASSES)
def test_models_of_classes(system: System, classes: dict[str, str]) -> None:
    system = replace(system, classes=classes)
    forest, expected = system.forest(), enumerated(system)
    assert listed(forest.kbest(ALL, unique=False)) == texts(expected)
    for derivation in forest.kbest(ALL):
        assert derivation.features.get("LM0_OOV", 0) == (
            sum(classes.get(word, "none") == "none" for word in derivation.text.split())
            if system.models
            else 0
        )
    # Words of one class are equal for the search.
    mapped = [
        rule._replace(tgt=tuple(s if s.startswith("[") else classes.get(s, "none") for s in rule.tgt))
        for rule in system.rules
    ]
    # Sentences with passed words are left out: these are not in rules.
    if not {"a", "b", "z"} & {word for _, d in expected for word in naive.translation(d)}:
        of_words = replace(system, rules=tuple(mapped), classes=None)
        assert forest.num_nodes == of_words.forest().num_nodes


@given(systems())
# A cycle of unary rules through glue, with any id of the goal's category.
@example(
    System((Rule("X", ("a",), ("u",)), Rule("X", ("[S,1]",), ("[S,1]",))), ("a",) * 3, labels=("S", "Y", "X"))
)
def test_exhaustive_search_finds_all_derivations(system: System) -> None:
    forest, expected = system.forest(), enumerated(system)
    validate(forest.graph)
    assert bool(forest) == bool(expected)
    assert forest.num_derivations == len(expected)
    if expected:
        assert forest.viterbi().score == expected[0][0]
    found = forest.kbest(ALL, unique=False)
    assert listed(found) == texts(expected)
    assert sorted(map(steps_of, found)) == sorted(naive_steps(d) for _, d in expected)
    unique = listed(forest.kbest(ALL))
    assert len({text for _, text in unique}) == len(unique)
    assert best_of_strings(unique) == best_of_strings(texts(expected))


@given(systems())
def test_sums_over_derivations(system: System) -> None:
    """With scores as natural logarithms, sums by dynamic programming equal those over all derivations."""
    forest, expected = system.forest(), enumerated(system)
    assume(expected)
    scores = np.array([score for score, _ in expected])
    total = np.logaddexp.reduce(scores)
    assert forest.inside()[-1] == pytest.approx(total, rel=1e-9, abs=1e-9)
    counts: dict[tuple[object, ...], float] = defaultdict(float)
    for score, d in expected:
        for step in naive.steps(d):
            counts[step.rule[:3]] += math.exp(score - total)
    found: dict[tuple[object, ...], float] = defaultdict(float)
    for rule, count in enumerate(forest.expected_rule_counts().tolist()):
        if count:
            found[rule_key(forest, rule)] += count
    assert found == pytest.approx(dict(counts), rel=1e-9)
    by_edge: dict[tuple[object, ...], float] = defaultdict(float)
    for rule, posterior in zip(forest.edge_rule.tolist(), forest.posteriors().tolist(), strict=True):
        if rule >= 0 and posterior:
            by_edge[rule_key(forest, rule)] += posterior
    assert by_edge == pytest.approx(dict(counts), rel=1e-9)


def assert_same_forest(one: Forest, other: Forest) -> None:
    for array in ("edge_score", "edge_rule", "edge_lm", "node_label", "node_start", "node_end"):
        assert np.array_equal(getattr(one, array), getattr(other, array)), array
    assert np.array_equal(one.graph.first_edge, other.graph.first_edge)
    assert np.array_equal(one.graph.tail, other.graph.tail)


@given(systems(), st.sampled_from([10**6, 2**31 - 1]), algorithms)
def test_an_unlimited_search_is_exhaustive(system: System, pop_limit: int, algorithm: str) -> None:
    expected = system.forest()
    assert_same_forest(expected, system.forest(algorithm=algorithm))
    # From coarse to fine, cells that no derivation of the sentence goes through are not filled at any limit.
    assert_same_forest(expected, system.forest(algorithm="cube", pop_limit=pop_limit))


@given(systems(), st.integers(1, 12), algorithms)
def test_pruned_search_lists_valid_derivations(system: System, pop_limit: int, algorithm: str) -> None:
    """It may miss some, but scores are correct, and it finds a derivation if there is one."""
    forest = system.forest(pop_limit=pop_limit, algorithm=algorithm)
    validate(forest.graph)
    expected = Counter(texts(enumerated(system)))
    assert bool(forest) == bool(expected)
    found = Counter(listed(forest.kbest(ALL, unique=False)))
    assert not found - expected
    if expected:
        assert forest.viterbi().score <= max(expected)[0]
    popped = edges_of_cells(forest)
    most = pop_limit if algorithm == "cube" else FINE * pop_limit
    assert all(count <= most for count in popped.values())


def edges_of_cells(forest: Forest) -> Counter[tuple[int, int, int]]:
    cells = zip(forest.node_label.tolist(), forest.node_start.tolist(), forest.node_end.tolist(), strict=True)
    counts: Counter[tuple[int, int, int]] = Counter()
    for cell, edges in list(zip(cells, np.diff(forest.graph.first_edge).tolist(), strict=True))[:-1]:
        counts[cell] += edges
    return counts


BIGRAMS = "\n".join(
    ["\\data\\", "ngram 1=6", "ngram 2=3", "", "\\1-grams:", "-1 <s>", "-1 </s>", "-1 <unk>"]
    + [f"-1 {word} -0.5" for word in "uvw"]
    + ["", "\\2-grams:"]
    + [f"-0.5 {word} {word}" for word in "uvw"]
    + ["", "\\end\\", ""]
)
WORDS = ("u", "v", "w", "a", "z")


@st.composite
def systems_with_bigrams(draw: st.DrawFn) -> System:
    """Weights of bigrams of all words, also of those that no rule or model has."""
    pairs = st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS))
    names = pairs.map(lambda pair: f"B:{pair[0]}_{pair[1]}")
    weights = draw(st.dictionaries(names, st.sampled_from([-0.5, 0.25, 1.0]), max_size=12))
    return replace(draw(systems()), more_weights=weights)


def bigrams_of(system: System, derivation: naive.Derivation) -> Counter[str]:
    ngrams = read_arpa(system.models[0][0]).listed if system.models else {}
    return Counter(f"B:{a}_{b}" for a, b in naive.bigrams(derivation, naive.kept_words(ngrams)))


@given(systems_with_bigrams(), algorithms)
# A gap without words, whose neighbours meet; two gaps that meet.
@example(
    System(
        (
            Rule("X", ("a", "[X,1]", "b"), ("u", "[X,1]", "v")),
            Rule("X", ("a", "[X,1]"), ("u", "[X,1]")),
            Rule("X", ("[X,1]", "[X,2]"), ("[X,2]", "[X,1]")),
            Rule("X", ("b",), ()),
            Rule("X", ("b",), ("v", "u")),
        ),
        ("a", "b", "b"),
        ((BIGRAMS, 1.0),),
        more_weights={"B:u_v": 0.25, "B:v_u": -0.5, "B:u_u": 1.0},
    ),
    "cube",
)
def test_bigrams_across_rules_are_scored_in_search(system: System, algorithm: str) -> None:
    """All derivations have the scores and features of their twins, without more nodes than otherwise."""
    expected = []
    for score, d in enumerated(system):
        found = bigrams_of(system, d)
        total = score + sum(system.more_weights.get(name, 0.0) * n for name, n in found.items())
        expected.append((total, " ".join(naive.translation(d)), sorted(found.items())))
    forest = system.forest(features=["bigram"], algorithm=algorithm)
    listed_derivations = forest.kbest(ALL, unique=False)
    features = [
        sorted((name, n) for name, n in d.features.items() if name.startswith("B:"))
        for d in listed_derivations
    ]
    assert sorted(
        (d.score, d.text, names) for d, names in zip(listed_derivations, features, strict=True)
    ) == sorted(expected)
    assert forest.num_nodes == replace(system, more_weights={}).forest(algorithm=algorithm).num_nodes
    if forest:
        # The features of edges, which forests keep and learners use.
        every = np.arange(forest.num_edges, dtype=np.int32)
        of_edges = forest.features_of_edges(every)
        assert of_edges is not None
        assert of_edges.scores(system.weights | dict(system.more_weights)) == pytest.approx(forest.edge_score)


@given(systems_with_bigrams(), st.integers(1, 6), algorithms)
def test_bigrams_in_a_pruned_search(system: System, pop_limit: int, algorithm: str) -> None:
    with system.opened(features=["bigram"], algorithm=algorithm, pop_limit=pop_limit) as model:
        forest, index = model.parse(Segment(system.words)), FeatureIndex()
        weights = system.weights | dict(system.more_weights)
        for d in forest.kbest(20):
            assert d.score == pytest.approx(sum(weights.get(name, 0.0) * n for name, n in d.features.items()))
        found = candidates(forest, 20, index)
        weight = np.array([model.weights.of(key) for key in index.all_keys()])
        for i in range(found.size):
            part = slice(found.first[i], found.first[i + 1])
            assert found.score[i] == pytest.approx(float(weight[found.id[part]] @ found.value[part]))


@given(systems(max_models=0), st.integers(1, 5), algorithms)
def test_without_language_models_one_pop_is_enough(system: System, pop_limit: int, algorithm: str) -> None:
    """Every cell has one node, estimates are scores, and the best candidate is popped first."""
    expected = enumerated(system)
    assume(expected)
    assert system.forest(pop_limit=pop_limit, algorithm=algorithm).viterbi().score == expected[0][0]


@given(systems())
def test_scores_are_dot_products_and_kenlms(system: System) -> None:
    with system.opened() as model:
        forest = model.parse(" ".join(system.words))
        for d in forest.kbest(20):
            product = sum(model.weights.get(name, 0.0) * value for name, value in d.features.items())
            assert product == pytest.approx(d.score, abs=1e-9)
            lm_features = [d.features.get(name, 0.0) for name in system.lm_names]
            assert d.lm_scores.tolist() == lm_features
            for value, (text, weight) in zip(lm_features, system.models, strict=True):
                alone = replace(system, models=((text, 1.0),))
                assert value == pytest.approx(alone.lm_score(tuple(d.text.split())), abs=1e-6), weight


@given(systems(max_models=1))
def test_language_model_values_are_kenlms(system: System) -> None:
    assume(system.models)
    forest = system.forest(pop_limit=30)
    assume(forest)
    kenlm = kenlm_of(system.models[0][0])
    assume(kenlm is not None)
    for d in forest.kbest(10):
        assert d.lm_scores[0] == pytest.approx(kenlm.score(d.text), abs=1e-4)


def kenlm_of(text: str):  # type: ignore[no-untyped-def]
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        path.write_text(text)
        return kenlm_model(path)


@pytest.mark.heavy
@given(systems(scores=st.just(0.0)), st.permutations(list("abcuvwz")), st.integers(0, 8), algorithms)
def test_tie_breaking_does_not_depend_on_word_ids(
    system: System, words: list[str], pop_limit: int, algorithm: str
) -> None:
    def run(first: list[str]) -> list[tuple[float, str, list[tuple[object, ...]]]]:
        with system.opened(pop_limit=pop_limit, algorithm=algorithm) as model:
            model.symbols.words.intern_all(word.encode() for word in first)
            forest = model.parse(" ".join(system.words))
            lists = forest.kbest(ALL, unique=False) + forest.kbest(ALL)
            return [(d.score, d.text, steps_of(d)) for d in lists]

    assert run([]) == run([]) == run(words) == run(["some", "others", *words])


def test_scoring_is_bounded_by_pops() -> None:
    """Each of several equally good rules has a better estimate than the last, which is scored already."""
    text = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 u\n-1 <unk>\n\n\\end\\\n"
    many = tuple(Rule("X", ("a",), ("u",), 0.0) for _ in range(50))
    system = System(many, ("a",), ((text, 1.0),))
    for pop_limit, scored, popped in ((1, 4, 1), (3, 12, 3), (0, 51, 51), (100, 51, 51)):
        statistics = Statistics()
        with system.opened(pop_limit=pop_limit, algorithm="cube") as model:
            forest = model.parse("a", statistics)
        assert forest.graph.first_edge[1] == popped
        assert statistics.scored == scored + forest.graph.first_edge[2] - popped


@st.composite
def parse_forests(draw: st.DrawFn) -> naive.Forest:
    scores = st.integers(-16, 0).map(lambda number: number / 8)
    rows = []
    for cell in range(draw(st.integers(1, 6))):
        tails = st.lists(st.integers(0, cell - 1), max_size=2) if cell else st.just([])
        rows.append(draw(st.lists(st.tuples(scores, tails.map(tuple)), min_size=1, max_size=3)))
    return naive.Forest(rows)


@given(parse_forests(), st.data())
def test_losses_of_cells(forest: naive.Forest, data: st.DataObject) -> None:
    goal = data.draw(st.integers(0, len(forest.bundles) - 1))
    flat = [bundle for row in forest.bundles for bundle in row]
    parse = Parse(
        np.zeros((len(forest.bundles), 3), np.int32),
        np.cumsum([0, *map(len, forest.bundles)]),
        np.array([(b, 1) for b in range(len(flat))]),
        np.array([[*tails, -1, -1][:2] for _, tails in flat], np.int32),
    )
    estimates = np.array([estimate for estimate, _ in flat])
    pairs = Pairs(np.arange(len(flat)), np.zeros(len(flat), np.int32), estimates, estimates)
    found = np.empty(len(forest.bundles))
    loss_kernel(parse, pairs, goal, found)
    assert found.tolist() == naive.losses(forest, goal)


def test_cells_of_good_derivations_pop_more() -> None:
    """The best translation of "a b" joins two that a search with one pop does not find."""
    text = "\n".join(
        ["\\data\\", "ngram 1=8", "ngram 2=1", "", "\\1-grams:", "-1 <s>", "-1 </s>", "-1 <unk>"]
        + [f"-1 {word} 0" for word in "uvwxy"]
        + ["", "\\2-grams:", "-0.1 v x", "", "\\end\\", ""]
    )
    rules = tuple(
        Rule("X", src, (target,), score)
        for src, target, score in (
            (("a",), "u", 0.0),
            (("a",), "v", -0.25),
            (("b",), "w", 0.0),
            (("b",), "x", -0.25),
            (("a", "b"), "y", -99.0),
            (("a", "b"), "u", -99.25),
        )
    )
    system = System(rules, ("a", "b"), ((text, 1.0),))
    even = system.forest(algorithm="cube", pop_limit=1, pass_through="none")
    assert even.viterbi().text == "u w"
    guided = system.forest(algorithm="coarse_to_fine", pop_limit=1, pass_through="none")
    assert guided.viterbi().text == "v x" == system.forest(pass_through="none").viterbi().text
    popped = edges_of_cells(guided)
    (label,) = (label for label, start, _ in popped if start == 1)
    assert popped[label, 1, 2] == 2
    assert popped[label, 0, 2] == 1


def test_tables_grow() -> None:
    """More nodes, edges and candidates than the initial arrays have room for."""
    words = "uvw"
    lines = ["\\data\\", "ngram 1=5", *(f"ngram {n}={3**n}" for n in (2, 3, 4))]
    for n in range(1, 5):
        lines += ["", f"\\{n}-grams:", *(["-1 <s> -0.5", "-2 </s>"] if n == 1 else [])]
        for i, ngram in enumerate(itertools.product(words, repeat=n)):
            lines.append(f"{-1 - (7 * i) % 16 / 8} {' '.join(ngram)}{' -0.25' if n < 4 else ''}")
    text = "\n".join([*lines, "", "\\end\\", ""])
    grammar = tuple(Rule("X", (word,), (target,), 0.0) for word in "ab" for target in words)
    system = System(grammar, tuple("ababab"), ((text, 1.0),))
    forest = system.forest(pass_through="none")
    assert forest.num_derivations == 3**6
    assert forest.num_nodes > 1024
    scores = {" ".join(t): system.lm_score(t) + 5 * GLUE for t in itertools.product(words, repeat=6)}
    assert {d.text: d.score for d in forest.kbest(ALL)} == scores


def test_an_exhaustive_search_gives_up_at_a_limit() -> None:
    system = System((Rule("X", ("[X,1]", "[X,2]"), ("[X,2]", "[X,1]")),), ("a",) * 5)
    edges = system.forest().num_edges
    assert system.forest(max_edges=edges).num_edges == edges
    with pytest.raises(HieroError, match=r"sentence of 5 words: .* needs over 7 edges \(set pop_limit"):
        system.forest(max_edges=7)
    assert system.forest(pop_limit=3, max_edges=7)


def test_statistics_count_the_forest() -> None:
    system = System(
        (Rule("X", ("a",), ("u",)), Rule("X", ("[X,1]", "[X,2]"), ("[X,2]", "[X,1]"))), tuple("aaa")
    )
    statistics = Statistics()
    with system.opened(pass_through="none") as model:
        forests = [model.parse(sentence, statistics) for sentence in ("a a a", "b", "")]
    assert [bool(forest) for forest in forests] == [True, False, False]
    assert (statistics.sentences, statistics.words, statistics.failed) == (3, 4, 2)
    assert (statistics.nodes, statistics.edges) == (forests[0].num_nodes, forests[0].num_edges)
    # X over six spans, S over three, and the goal.
    assert statistics.nodes == 6 + 3 + 1
    assert statistics.pops == statistics.scored == statistics.edges - 1
    assert statistics.mean_score == forests[0].viterbi().score
