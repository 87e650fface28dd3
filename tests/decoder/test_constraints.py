"""Translations of places, zones and walls against enumeration of all derivations."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hiero
from hiero.core.errors import ConfigError, HieroError
from hiero.core.given import Given, MarkedSpan, Wall
from hiero.core.text import Segment
from hiero.decoder.hypergraph import validate
from tests.naive import constrain as naive_constrain
from tests.naive import search as naive
from tests.naive.search import Rule
from tests.worlds.search import System, enumerated, naive_steps, steps_of, systems, world_of

ALL = 10_000
Found = list[tuple[float, naive.Derivation]]


@st.composite
def spans(draw: st.DrawFn, size: int) -> tuple[int, int]:
    start = draw(st.integers(0, size - 1))
    return start, draw(st.integers(start + 1, size))


@st.composite
def systems_with_zones(draw: st.DrawFn) -> tuple[System, Given]:
    """Zones, nested or apart, and walls that concern the sentence or a zone."""
    system = draw(systems().filter(lambda one: len(one.words) > 1))
    size = len(system.words)
    zones: list[tuple[int, int]] = []
    for zone in draw(st.lists(spans(size), max_size=2)):
        if not any(naive_constrain.crosses(("", *zone), *other) for other in zones):
            zones.append(zone)
    walls = set()
    for start, end in draw(st.lists(st.sampled_from([(0, size), *zones]), max_size=2)):
        if end - start > 1:
            walls.add(Wall(start, draw(st.integers(start + 1, end - 1)), end))
    return system, Given(zones=tuple(zones), walls=tuple(walls))


def listed_of(system: System, segment: Segment) -> list[hiero.Derivation]:
    with system.opened() as model:
        statistics = hiero.Statistics()
        forest = model.parse(segment, statistics)
        validate(forest.graph)
        assert not statistics.unmet
        return forest.kbest(ALL, unique=False)


def check_equal(found: list[hiero.Derivation], expected: Found) -> None:
    assert sorted(d.score for d in found) == sorted(score for score, _ in expected)
    assert sorted(map(steps_of, found)) == sorted(naive_steps(d) for _, d in expected)


@given(systems_with_zones())
def test_zones_and_walls_equal_enumeration(case: tuple[System, Given]) -> None:
    """Of derivations in which each rule with words yields some, exactly those that keep zones and walls.

    A rule that deletes its words leaves no trace of them: such derivations may be left out, if a rule of them
    would reorder.
    """
    system, extra = case
    glue = world_of(system).glue

    def keeps(derivation: naive.Derivation) -> bool:
        return all(naive_constrain.keeps_zone(derivation, glue, *zone) for zone in extra.zones) and all(
            naive_constrain.keeps_wall(derivation, *wall) for wall in extra.walls
        )

    def yields(derivation: naive.Derivation) -> bool:
        return not naive_constrain.deletes(derivation)

    kept = [(score, d) for score, d in enumerated(system) if keeps(d)]
    found = listed_of(system, Segment(system.words, given=extra))
    steps = [steps_of(one) for one in found]
    assert {tuple(one) for one in steps} <= {tuple(naive_steps(d)) for _, d in kept}
    traced = [(score, d) for score, d in kept if yields(d)]
    all_traced = {tuple(naive_steps(d)) for _, d in enumerated(system) if yields(d)}
    check_equal([d for d, s in zip(found, steps, strict=True) if tuple(s) in all_traced], traced)


@st.composite
def systems_with_places(draw: st.DrawFn) -> tuple[System, list[MarkedSpan]]:
    """Translations of one place or two that do not overlap; values are odd eighths."""
    mode = draw(st.sampled_from(["exclusive", "inclusive", "constraint"]))
    system = draw(systems().filter(lambda one: len(one.words) > 0))
    size = len(system.words)
    value = st.integers(-4, 4).map(lambda one: (2 * one + 1) / 8)
    target = st.lists(st.sampled_from(["u", "v", "a", "new"]), min_size=1, max_size=2).map(tuple)
    marked: list[MarkedSpan] = []
    for start, end in draw(st.lists(spans(size), min_size=1, max_size=2)):
        if end - start <= system.span_limit and all(end <= one.start or start >= one.end for one in marked):
            targets = draw(st.dictionaries(target, value, min_size=1, max_size=2))
            marked.append(MarkedSpan(start, end, tuple(targets.items()), mode))
    return system, marked


@given(systems_with_places())
def test_places_equal_enumeration(case: tuple[System, list[MarkedSpan]]) -> None:
    system, marked = case
    world = world_of(system)
    # Equal rules of different places are different objects.
    own = [
        (one, Rule("X", system.words[one.start : one.end], target, value))
        for one in marked
        for target, value in one.targets
    ]
    extended = naive.World(
        world.words, (*world.rules, *(rule for _, rule in own)), world.glue, world.order, world.span_limit
    )

    def keeps(derivation: naive.Derivation) -> bool:
        for step in naive.steps(derivation):
            for one, rule in own:
                if step.rule is rule and step.cell[1:] != (one.start, one.end):
                    return False
        for one in marked:
            rules = [rule for other, rule in own if other is one]
            for step in naive_constrain.translates(derivation, (one.start, one.end)):
                if any(step.rule is rule for rule in rules) or one.mode == "inclusive":
                    continue
                whole = set(range(one.start, one.end)) <= set(naive_constrain.own_words(step))
                has = any(naive_constrain.contains(step.rule.tgt, target) for target, _ in one.targets)
                if one.mode == "exclusive" or not (whole and has):
                    return False
                if any(step.rule is rule for _, rule in own):
                    return False
        return True

    expected = [
        (naive.rule_score(d) + system.lm_score(naive.translation(d)), d)
        for d in naive.derivations(extended, ("S", 0, len(system.words)))
        if keeps(d)
    ]
    check_equal(listed_of(system, Segment(system.words, given=Given(spans=tuple(marked)))), expected)


# ---- examples

RULES = [
    "[X] ||| das ||| this ||| p=0.5",
    "[X] ||| ist ||| is ||| p=0.5",
    "[X] ||| ein kleines [X,1] ||| a small [X,1] ||| p=0.5",
    "[X] ||| haus ||| house ||| p=0.25",
    "[X] ||| haus ||| dwelling ||| p=1.5",
    "[X] ||| kleines ||| little ||| p=0.5",
    "[X] ||| kleines haus ||| small dwelling ||| p=1.5",
    "[X] ||| [X,1] ist [X,2] ||| [X,2] is [X,1] ||| p=0.125",
]
WEIGHTS = {"p": -1.0, "Glue": -0.25, "PassThrough": -3.0}


def translated(line: str, markup: str, **more: Any) -> str:
    return hiero.load(rules=RULES, weights=WEIGHTS, markup=markup, **more).translate(line).text


def test_modes() -> None:
    """As Moses' manual describes them."""
    phrase = 'das ist <np translation="a cute place">ein kleines haus</np>'
    assert translated(phrase, "exclusive") == "a cute place is this"
    word = 'das ist ein kleines <n translation="hut" prob="0.01">haus</n>'
    assert translated(word, "exclusive") == "a small hut is this"
    assert translated(word, "inclusive") == "a small house is this"
    assert translated(word, "ignore") == "a small house is this"
    # A probability may be anything above 0.
    assert translated(word.replace("0.01", "1000"), "inclusive") == "a small hut is this"
    # Of the other rules, those remain that have the translation.
    word = 'das ist ein kleines <n translation="dwelling" prob="0.000001">haus</n>'
    best = hiero.load(rules=RULES, weights=WEIGHTS, markup="constraint").translate(word)
    assert (best.text, "Markup" in best.features) == ("a small dwelling is this", False)
    # Several translations: the model chooses, here by their probabilities.
    several = 'das ist ein kleines <n translation="hut||shed" prob="0.2||0.8">haus</n>'
    best = hiero.load(rules=RULES, weights=WEIGHTS, markup="exclusive").translate(several)
    assert best.text == "a small shed is this"
    assert best.features["Markup"] == pytest.approx(math.log10(0.8))
    # Only where it is marked.
    assert translated('haus <n translation="hut">haus</n> haus', "exclusive") == "house hut house"


def test_zones_and_walls_in_sentences() -> None:
    sentence = "das ist ein kleines haus"
    assert translated(sentence, "inclusive") == "a small house is this"
    assert translated("das <wall/> ist ein kleines haus", "inclusive") == "this is a small house"
    assert translated("<zone>das <wall/> ist</zone> ein kleines haus", "exclusive") == "this is a small house"
    zone = "das <zone> ist ein </zone> kleines haus"
    rules = [*RULES, "[X] ||| ist [X,1] ||| [X,1] is ||| p=0", "[X] ||| [X,1] [X,2] ||| [X,2] [X,1] ||| p=0"]
    rules += ["[X] ||| ein ||| a ||| p=0"]
    model = hiero.load(rules=rules, weights=WEIGHTS, markup="inclusive")
    words = model.translate(zone).text.split()
    assert abs(words.index("a") - words.index("is")) == 1
    # A zone longer than a rule can cover is joined by glue, and a wall in it still holds.
    long = f"<zone> {'das ' * 20} <wall/> ist {'kleines ' * 10}</zone> haus"
    assert model.translate(long).text.split()[:20] == ["this"] * 20
    assert model.translate(long.replace("<wall/>", "")).text.split()[:20] != ["this"] * 20
    statistics = hiero.Statistics()
    model.parse(long, statistics)
    assert statistics.unmet == 0


@pytest.mark.parametrize(
    ("rule", "line", "plain", "constrained"),
    [
        # Words left of a wall go before a gap right of it, and words right of it behind a gap left of it.
        ("a [X,1] ||| [1] u", "a <wall/> b", "v u", "u v"),
        ("[X,1] b ||| v [1]", "a <wall/> b", "v u", "u v"),
        ("[X,1] [X,2] ||| [2] [1]", "a <wall/> b", "v u", "u v"),
        # So they do with a gap across it; on one side, rules reorder.
        ("a [X,1] ||| [1] u", "a b <wall/> c", "v w u", "v u w"),
        ("[X,1] c ||| w [1]", "a <wall/> b c", "w u v", "u w v"),
        # A rule with words on both sides does not apply.
        ("a b ||| x", "a <wall/> b", "x", "u v"),
        ("a b ||| x", "<zone>a</zone> b", "x", "u v"),
        # Nothing comes between the words of a zone.
        ("[X,1] b [X,2] ||| [1] [2] v", "a <zone>b c</zone>", "u w v", "u w v"),
        ("[X,1] b [X,2] ||| [2] [1] v", "a <zone>b c</zone>", "w u v", "u v w"),
        ("[X,1] [X,2] c ||| [1] w [2]", "<zone>a b</zone> c", "u w v", "u v w"),
    ],
)
def test_rules_across_walls_and_zones(rule: str, line: str, plain: str, constrained: str) -> None:
    rules = [f"[X] ||| {rule}", *(f"[X] ||| {pair}" for pair in ("a ||| u", "b ||| v", "c ||| w"))]
    rules.append("[X] ||| [X,1] [X,2] ||| [1] [2] ||| p=1")
    settings: dict[str, Any] = {"rules": rules, "weights": {"p": -1.0, "Glue": -5.0}, "pass_through": "none"}
    assert hiero.load(markup="ignore", **settings).translate(line).text == plain
    assert hiero.load(markup="inclusive", **settings).translate(line).text == constrained


def test_terms_of_a_sentence_and_of_the_model() -> None:
    model = hiero.load(
        rules=RULES, weights=WEIGHTS, terms=[("haus", "hut"), ("das", "that")], hard_terms=True
    )
    assert model.translate("das haus").text == "that hut"
    assert model.translate("das haus", terms=[("haus", "shed")]).text == "that shed"
    assert model.translate('{"source": "das haus", "terms": [["haus", "shed"]]}').text == "that shed"
    line = """<seg terms='[["haus", "shed", -9]]' hard_terms="false">das haus</seg>"""
    assert model.translate(line).text == "that house"
    assert model.translate(line, hard_terms=True).text == "that shed"
    assert model.translate(line, terms=[("haus", "tent")], hard_terms=True).text in ("that shed", "that tent")
    assert model.completer(line).complete("that s").text == "that s"
    assert model.force(line, "that house")
    assert not model.force(line.replace("false", "true"), "that house")


def test_copied_words() -> None:
    rules = ["[X] ||| Haus ||| house", "[X] ||| ein [X,1] ||| a [X,1]", "[X] ||| [X,1] Haus ||| [X,1] house"]
    settings: dict[str, Any] = {"rules": rules, "weights": {"Glue": -1.0}, "pass_through": "none"}
    sentence = "ein Haus"
    assert hiero.load(**settings).translate(sentence).text == "a house"
    assert hiero.load(copy=["[A-Z].*"], **settings).translate(sentence).text == "a Haus"
    # A pattern describes whole words; terms come before it.
    assert hiero.load(copy=["[A-Z]"], **settings).translate(sentence).text == "a house"
    model = hiero.load(copy=["[A-Z].*"], **settings)
    assert model.translate(sentence, terms=[("Haus", "home")], hard_terms=True).text == "a home"
    assert pickle.loads(pickle.dumps(model)).translate(sentence).text == "a Haus"
    names = hiero.load(copy=["email", "url", "tag", "placeholder"], **settings)
    for word in ("a.b@c.de", "https://a.de/b?c=d", "www.a.de", "<x/>", "</b>", "@num@", "{name}", "%s"):
        assert names.translate(f"ein {word}").text == f"a {word}", word
    for word in ("a@b", "@", "{", "<", "http", "50%"):
        assert names.translate(f"ein {word}").text == "", word
    with pytest.raises(ConfigError, match=r"copy: found '\(', expected a regular expression"):
        hiero.load(copy=["("], **settings)
    for settings in ({"copy": ["a"]}, {"terms": [("a", "b")]}):
        with pytest.raises(HieroError, match="terms: found a lattice, expected a sentence"):
            hiero.load(rules=rules, weights={"Glue": -1.0}, **settings).translate(
                "((('a',0.5,1),('b',0,1),),)"
            )


def test_overlaps() -> None:
    """Places come before hard terms, those before copies; of several, the longest."""
    model = hiero.load(
        rules=RULES,
        weights=WEIGHTS,
        markup="exclusive",
        copy=["h.*"],
        terms=[("kleines haus", "hut")],
        hard_terms=True,
    )
    assert model.translate("ein kleines haus haus").text.split()[1:] == ["hut", "haus"]
    marked = 'ein <n translation="tiny">kleines</n> haus'
    assert "tiny haus" in model.translate(marked).text
    nested = 'ein <a translation="u v"><b translation="w">kleines</b> haus</a>'
    assert "u v" in model.translate(nested).text
    same = 'ein <a translation="u v"><b translation="w">kleines haus</b></a>'
    assert model.force(same, "a u v") or model.force(same, "ein u v")
    assert model.force(same, "ein w")


def test_constraints_that_no_derivation_meets() -> None:
    """Translations of places stay where they are given, and the other constraints are left out."""
    settings: dict[str, Any] = {"weights": {"Glue": -1.0}, "pass_through": "none", "markup": "exclusive"}
    model = hiero.load(rules=["[X] ||| a b ||| u v", "[X] ||| a ||| u"], **settings)
    statistics = hiero.Statistics()
    assert model.parse('a <n translation="w">b</n>', statistics).viterbi().text == "u w"
    assert statistics.unmet == 0
    assert model.parse("a <wall/> b", statistics).viterbi().text == "u v"
    assert statistics.unmet == 1
    assert model.parse('<n translation="w">a</n> b a', statistics).viterbi().text == "u v u"
    assert (statistics.unmet, statistics.failed) == (2, 0)


@pytest.mark.parametrize("algorithm", ["cube", "coarse_to_fine"])
@pytest.mark.parametrize("pop_limit", [0, 3])
def test_searches(algorithm: str, pop_limit: int) -> None:
    line = 'das <wall/> ist <zone>ein <n translation="tiny||little" prob="0.5||0.5">kleines</n></zone> haus'
    found = translated(line, "exclusive", algorithm=algorithm, pop_limit=pop_limit)
    assert found == "this is ein tiny house"
