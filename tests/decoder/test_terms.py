"""Terms against enumeration of all derivations; numbers are eighths, so scores are exact."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiero
from hiero.core.errors import HieroError
from hiero.core.text import Segment
from hiero.decoder.hypergraph import validate
from hiero.decoder.terms import read_terms
from tests.naive import constrain as naive_constrain
from tests.naive import search as naive
from tests.naive.search import Rule
from tests.worlds.search import System, naive_steps, steps_of, systems, world_of

ALL = 10_000
RULES = [
    "[X] ||| das ||| the ||| p=0.5",
    "[X] ||| das [X,1] gehört [X,2] ||| [X,2] owns the [X,1] ||| p=0.25 ||| 0-2 2-1",
    "[X] ||| haus ||| house ||| p=0.25",
    "[X] ||| das haus ||| the house ||| p=0.25",
    "[X] ||| [X,1] gehört [X,2] ||| [X,2] owns [X,1] ||| p=0.5 ||| 1-1",
    "[X] ||| ihr ||| she ||| p=0.5 ||| 0-0",
]


@st.composite
def systems_with_terms(draw: st.DrawFn) -> tuple[System, list[tuple[str, str, float]]]:
    """Terms that stand in the sentence, or nearly. Their weights are odd eighths, those of rules are not."""
    system = draw(systems())
    words = st.sampled_from([*system.words, "a", "b"])
    sources = st.lists(words, min_size=1, max_size=min(3, system.span_limit))
    if system.words:
        at = st.integers(0, len(system.words) - 1)
        size = st.integers(1, min(3, system.span_limit))
        sources |= st.builds(lambda start, length: list(system.words[start : start + length]), at, size)
    targets = st.lists(st.sampled_from(["u", "v", "w", "new"]), min_size=1, max_size=2)
    number = st.integers(-4, 4).map(lambda one: (2 * one + 1) / 8)
    pairs = draw(st.dictionaries(st.tuples(sources.map(" ".join), targets.map(" ".join)), number, max_size=3))
    return system, [(source, target, weight) for (source, target), weight in pairs.items()]


@given(systems_with_terms(), st.booleans())
def test_terms_equal_enumeration(case: tuple[System, list[tuple[str, str, float]]], hard: bool) -> None:
    system, terms = case
    rules = [Rule("X", tuple(src.split()), tuple(tgt.split()), weight) for src, tgt, weight in terms]
    world = world_of(system)
    sources = [rule.src for rule in rules]
    spans = naive_constrain.term_spans(system.words, sources)
    expected: list[tuple[float, naive.Derivation]] = []
    if system.words:
        extended = naive.World(world.words, (*world.rules, *rules), world.glue, world.order, world.span_limit)
        found = naive.derivations(extended, ("S", 0, len(system.words)))
        if hard:
            found = [d for d in found if naive_constrain.has_terms(d, spans, rules)]
            assert found  # words pass through, and glue joins them
        expected = [(naive.rule_score(d) + system.lm_score(naive.translation(d)), d) for d in found]
    with system.opened() as model:
        forest = model.with_terms(terms, hard=hard).parse(Segment(system.words))
        validate(forest.graph)
        listed = forest.kbest(ALL, unique=False)
        assert sorted(d.score for d in listed) == sorted(score for score, _ in expected)
        assert sorted(map(steps_of, listed)) == sorted(naive_steps(d) for _, d in expected)


def test_terms_inside_gaps_and_reordering() -> None:
    model = hiero.load(rules=RULES, weights={"p": -1.0, "Glue": -4.0, "PassThrough": -3.0})
    sentence = "das haus gehört ihr"
    assert model.translate(sentence).text == "she owns the house"
    soft = model.translate(sentence, terms=[("haus", "building")])
    assert (soft.text, soft.features["Term"]) == ("she owns the building", 1.0)
    # Not worth it.
    assert model.translate(sentence, terms=[("haus", "building", -5.0)]).text == "she owns the house"
    hard = model.translate(sentence, terms=[("haus", "building", -5.0)], hard_terms=True)
    assert (hard.text, hard.features["Term"]) == ("she owns the building", -5.0)
    assert hard.alignment == [(0, 2), (1, 3), (2, 1), (3, 0)]
    # Of terms that overlap, the longest; of equally long ones, the leftmost.
    nested = [("haus", "building"), ("das haus", "this edifice"), ("haus gehört", "x")]
    assert model.translate(sentence, terms=nested, hard_terms=True).text == "she owns this edifice"
    # The word of the rule is one of the term, so the rule does not apply.
    across = model.translate(sentence, terms=[("gehört ihr", "is hers")], hard_terms=True)
    assert across.text == "the house is hers"
    # Alternatives: the language model and weights choose.
    several = [("haus", "building"), ("haus", "edifice", 2.0)]
    assert model.translate(sentence, terms=several, hard_terms=True).text == "she owns the edifice"
    weighted = model.with_weights({"p": -1.0, "Glue": -4.0, "PassThrough": -3.0, "Term": -5.0})
    assert weighted.translate(sentence, terms=[("haus", "building")]).text == "she owns the house"
    assert model.force(sentence, "she owns the building").reachable is False
    assert model.with_terms(several).force(sentence, "she owns the building").reachable


def test_a_sentence_without_all_its_terms_is_translated() -> None:
    """Where words do not pass through, a rule across the end of a term may be needed."""
    rules = ["[X] ||| das haus ||| the house", "[X] ||| alt ||| old"]
    model = hiero.load(rules=rules, weights={"Glue": -1.0}, pass_through="oov")
    hard = model.with_terms([("haus", "building"), ("alt", "aged")], hard=True)
    statistics = hiero.Statistics()
    assert hard.parse("das haus alt", statistics).viterbi().text == "the house aged"
    assert statistics.unmet == 1
    assert hard.parse("haus alt", statistics).viterbi().text == "building aged"
    assert (statistics.unmet, statistics.failed) == (1, 0)
    # A word that is only in terms is still unknown elsewhere.
    soft = model.with_terms([("neu alt", "novel")])
    assert soft.translate("alt neu").text == "old neu"


def test_models_with_terms(tmp_path: Path) -> None:
    path = tmp_path / "terms"
    path.write_text("das  haus\tthe premises\n\nhaus\tbuilding\t0.5\r\n")
    assert [(term.source, term.target, term.weight) for term in read_terms(path)] == [
        (("das", "haus"), ("the", "premises"), 1.0),
        (("haus",), ("building",), 0.5),
    ]
    settings = {"rules": RULES, "weights": {"p": -1.0, "PassThrough": -3.0}}
    for terms in (path, str(path), [("das haus", "the premises")]):
        model = hiero.load(terms=terms, hard_terms=True, **settings)
        assert model.translate("das haus").text == "the premises"
    assert pickle.loads(pickle.dumps(model)).translate("das haus").text == "the premises"
    assert (
        hiero.load({"terms": str(path), "hard_terms": True}, **settings).translate("haus").text == "building"
    )
    # A beginning of the translation, with terms.
    assert model.translate("das haus ihr", "the").text == "the premises she"
    assert model.completer("ihr das haus").complete("my").text == "my the premises"
    assert model.completer("das haus").complete("my").text == "my"


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (["haus"], "terms: found 'haus', expected source words"),
        ([("haus",)], r"terms: found \('haus',\), expected source words"),
        ([("haus", " ")], "terms: found no translation in"),
        ([("haus", "house", "x")], "terms: found the weight 'x' in"),
        ([("haus", "house", float("inf"))], "terms: found the weight 'inf' in"),
        ([("a " * 16, "b")], "terms: found 16 words in 'a a .*expected at most 15"),
    ],
)
def test_mistakes(terms: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(HieroError, match=message):
        hiero.load(rules=RULES, weights={"p": -1.0}, terms=terms)


def test_more_mistakes() -> None:
    with pytest.raises(HieroError, match="hard_terms: needs terms"):
        hiero.load(rules=RULES, weights={"p": -1.0}, hard_terms=True)
    model = hiero.load(rules=RULES, weights={"p": -1.0}, terms=[("haus", "house")])
    with pytest.raises(HieroError, match="terms: found a lattice, expected a sentence"):
        model.translate("((('haus',0.5,1),('maus',0.5,1),),)")
