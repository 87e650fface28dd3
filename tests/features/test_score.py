"""Scores of rules and rule applications, and the features behind them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.symbols import Symbols
from hiero.features.feature_set import TEMPLATES, FeatureSet, feature_set
from hiero.features.index import EdgeBatch, FeatureIndex
from hiero.features.index_kernels import RULE_ID
from hiero.features.names import Names
from hiero.features.score import Replay, RuleScorer, edge_scores
from hiero.features.weights import Weights
from hiero.grammar.cdec import parse_cdec
from tests.naive import features as naive
from tests.worlds.rules import LABELS, NASTY, rule, symbols_of, table

quarters = st.integers(-8, 8).map(lambda n: n / 4)
template_sets = st.sets(st.sampled_from(sorted(TEMPLATES)))
MODELS = ("LanguageModel", "Other")


def model_words(draw: st.DrawFn) -> tuple[list[set[int]], np.ndarray]:  # type: ignore[type-arg]
    """The words of two models, as sets and in the format of ``word_ids``."""
    known = [draw(st.sets(st.integers(0, len(NASTY) - 1))) for _ in MODELS]
    ids = np.zeros((len(MODELS), len(NASTY) + 3), np.int32)
    for m, words in enumerate(known):
        ids[m, sorted(words)] = 1 + np.arange(len(words))
    return known, read_only(ids)


@st.composite
def worlds(draw):
    rules = draw(st.lists(rule(num_words=12), min_size=1, max_size=5))
    templates = draw(template_sets)
    flags = draw(st.booleans()), draw(st.booleans())
    symbols = symbols_of()
    keys = sorted({key for r in rules for key in naive.keys(r, set(TEMPLATES))})
    weights = Weights(symbols, exact=draw(st.booleans()))
    given_keys = draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
    weights.set_all(given_keys, [draw(quarters) for _ in given_keys])
    for name in ("F0", "F1", "Glue", "WordPenalty", "SourceWordPenalty", "Arity_1", "LanguageModel_OOV"):
        weights[name] = draw(quarters)
    for key in draw(st.lists(st.sampled_from(keys), max_size=3)) if keys else []:
        weights["%~" + Names(symbols).cdec_name(key)] = draw(quarters)
    features = FeatureSet(sum(TEMPLATES[t] for t in templates), *flags)
    return rules, templates, weights, features, model_words(draw)


@given(worlds())
def test_scores_equal_those_of_the_twins(world):
    rules, templates, weights, features, (known, lm_word) = world
    symbols, names = weights.symbols, Names(weights.symbols)
    scorer = RuleScorer(symbols, weights, features, MODELS)
    scores = scorer.scores(table(rules), lm_word)
    own = {key: value for key, _, value in weights.items_bytes() if key[0] != 0}
    shared = {name.decode(): value for name, value in weights.shared.items()}
    if not weights.exact:
        shared = {names.name(key): value for key, value in own.items()} | shared
    weight = scorer.name_weights().tolist()
    name = symbols.names.find
    basic = [name(b"WordPenalty"), name(b"SourceWordPenalty") if features.source_word_penalty else -1]
    basic += [name(b"Arity_%d" % k) if features.arity else -1 for k in range(3)]
    oov = [name(f"{model}_OOV".encode()) for model in MODELS]
    for score, r in zip(scores, rules, strict=True):
        cdec = {key: names.cdec_name(key) for key in naive.keys(r, templates)}
        expected = naive.linear_score(naive.named(r, [0, 1], basic, oov, known), weight)
        expected += naive.template_score(r, templates, own)
        expected += naive.shared_score(r, templates, own, cdec, shared)
        assert score == pytest.approx(expected, abs=1e-9)


@given(st.lists(rule(num_words=4), min_size=1, max_size=6), template_sets, st.randoms(use_true_random=False))
def test_weights_of_templates_are_added_in_the_order_of_keys(rules, templates, random):
    """To the last bit, also where a rule has the source side of the one before."""
    weights = Weights(symbols_of())
    keys = sorted({key for r in rules for key in naive.keys(r, set(TEMPLATES))})
    weights.set_all(keys, [random.gauss(0.0, 1.0) for _ in keys])
    given_weights = {key: value for key, _, value in weights.items_bytes()}
    order = [r for r in rules for _ in range(random.randrange(1, 3))]
    features = FeatureSet(sum(TEMPLATES[t] for t in templates))
    lm_word = read_only(np.zeros((0, len(NASTY) + 3), np.int32))
    for r, score in zip(
        order, RuleScorer(weights.symbols, weights, features).scores(table(order), lm_word), strict=True
    ):
        expected = 0.0
        for key in naive.keys(r, templates):
            expected += given_weights[key]
        assert score == expected


@given(worlds(), st.randoms())
def test_features_times_weights_are_the_score(world, random):
    rules, _, weights, features, (_, lm_word) = world
    scorer = RuleScorer(weights.symbols, weights, features, MODELS)
    chosen = [random.randrange(len(rules)) for _ in range(4)]
    scores = scorer.scores(table(rules), lm_word, np.array(chosen, np.int64))
    assert scores.tolist() == scorer.scores(table(rules), lm_word)[chosen].tolist()
    names = Names(weights.symbols)
    mappings = Replay(scorer, table(rules), lm_word).rules(chosen)
    for score, features_of_rule in zip(scores, mappings, strict=True):
        assert 0 not in features_of_rule.values()
        product = sum(weights.of(names.parse(name)) * value for name, value in features_of_rule.items())
        assert score == pytest.approx(product, abs=1e-9)
    index = FeatureIndex()
    rows = scorer.rows(table(rules), lm_word, np.array(chosen, np.int64), index)
    vector = np.array([weights.of(key) for key in index.all_keys()])
    for i, score in enumerate(scores):
        part = slice(rows.first[i], rows.first[i + 1])
        assert np.all(np.diff(rows.id[part]) > 0)
        assert score == pytest.approx(float(vector[rows.id[part]] @ rows.value[part]), abs=1e-9)


def test_scoring_in_parts(monkeypatch):
    monkeypatch.setattr("hiero.features.score.RULES_AT_ONCE", 100)
    symbols = Symbols()
    one = parse_cdec(["[X] ||| a [X,1] b ||| c [1] ||| F=2 ||| 0-0"], symbols)
    weights = Weights(
        symbols, {"F": 1.5, "RBS:a_X": 1.0, "LT:a:c": 0.25, "R:X:a_NX_b:c_N1": 4.0, "LD:b": 8.0}
    )
    scorer = RuleScorer(symbols, weights, feature_set(["rule_id", "source_bigram", "lexical"], symbols))
    scores = scorer.scores(one, np.zeros((0, 9), np.int32), np.zeros(250, np.int64))
    assert len(scores) == 250
    assert set(scores.tolist()) == {3.0 + 1.0 + 0.25 + 4.0 + 8.0}


def test_long_names_are_looked_up():
    symbols = Symbols()
    long = "xyzzy_" * 99 + "y"
    weights = Weights(symbols, {f"R:X:{long}:z": 2.0}, exact=False)
    scorer = RuleScorer(symbols, weights, feature_set(["rule_id"], symbols))
    text = [f"[X] ||| {long} ||| z |||", f"[X] ||| {long.replace('_', ' ')} ||| z |||"]
    assert scorer.scores(parse_cdec(text, symbols), np.zeros((0, 9), np.int32)).tolist() == [2.0, 2.0]


def test_replay_can_write_cdecs_names():
    symbols = Symbols()
    rules = parse_cdec(["[X] ||| a_b c ||| N1 ||| F=1", "[X] ||| a b_c ||| d ||| F=1"], symbols)
    scorer = RuleScorer(symbols, Weights(symbols), feature_set(["source_bigram"], symbols))
    replay = Replay(scorer, rules, np.zeros((0, 9), np.int32), cdec_names=True)
    first, second = replay.rules([0, 1])
    assert first["RBS:a_b_c"] == second["RBS:a_b_c"] == 1
    assert replay.merged == {"RBS:a_b_c"}
    assert "RBS:a%5Fb_c" in Replay(scorer, rules, np.zeros((0, 9), np.int32)).rules([0])[0]


@st.composite
def applications(draw):
    """Rules, and where each of some of them is applied: span, splits."""
    rules = draw(st.lists(rule(num_words=4), min_size=1, max_size=4))
    uses = []
    for _ in range(draw(st.integers(0, 6))):
        r = draw(st.integers(0, len(rules) - 1))
        gaps = [s for s in rules[r].src if not isinstance(s, int)]
        cuts = sorted(draw(st.lists(st.integers(0, 60), min_size=6, max_size=6, unique=True)))
        splits = {gap[1]: (cuts[1 + 2 * k], cuts[2 + 2 * k]) for k, gap in enumerate(gaps)}
        uses.append((r, cuts[0], cuts[5], splits))
    return rules, uses


def batch_of(uses) -> EdgeBatch:
    split = np.full((len(uses), 4), -1, np.int32)
    for i, (_, _, _, splits) in enumerate(uses):
        for index, ends in splits.items():
            split[i, 2 * index - 2 : 2 * index] = ends
    columns = [np.array([use[k] for use in uses], np.int32) for k in range(3)]
    return EdgeBatch(*columns, split, np.arange(60, dtype=np.int32))


def bucket(size: int) -> str:
    for low, high in ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 7), (8, 10), (11, 15)):
        if low <= size <= high:
            return str(low) if low == high else f"{low}-{high}"
    return "16+"


@given(applications())
def test_span_sizes(world):
    rules, uses = world
    symbols = symbols_of()
    features = feature_set(["span_size"], symbols)
    weights = Weights(symbols, {"SpanSize_X_6-7": 1.0, "GapSize_NP2_3": 0.5, "SpanSize_S_16+": 2.0})
    scorer = RuleScorer(symbols, weights, features)
    batch, arrays = batch_of(uses), table(rules)
    expected = []
    for r, start, end, splits in uses:
        names = {}
        for what, size in naive.span_sizes(rules[r], start, end, splits):
            label, _, index = what.removeprefix("Span").removeprefix("Gap").partition(":")
            stem = f"Gap{'Size'}_{LABELS[int(label)]}{index}" if index else f"SpanSize_{LABELS[int(label)]}"
            names[Names(symbols).name((0, symbols.names.intern(f"{stem}_{bucket(size)}".encode()), 0))] = 1.0
        expected.append(names)
    assert Replay(scorer, arrays, np.zeros((0, 99), np.int32)).edges(batch) == expected
    scores = edge_scores(batch, arrays.rules, features.edge_features, scorer)
    assert scores.tolist() == [sum(weights.get(name, 0.0) for name in names) for names in expected]
    assert set().union(*expected) <= {*features.edge_features[0].names()} | set().union(*expected)


def test_names_of_span_sizes_are_known_in_advance():
    symbols = Symbols()
    symbols.labels.intern(b"X")
    (feature,) = feature_set(["span_size"], symbols).edge_features
    names = feature.names()
    assert len(names) == 3 * 9
    assert {"SpanSize_X_1", "GapSize_X1_6-7", "GapSize_X2_16+"} <= set(names)


@pytest.mark.heavy
@pytest.mark.reference
def test_rules_have_all_features_that_cdec_lists(reference):
    """All sparse features in cdec's lists occur, and scores of rules are dot products with weights."""
    import gzip
    import re

    from hiero.features.weights import read_weights
    from hiero.grammar.reader import RuleReader

    folder = reference / "m30k"
    symbols = Symbols()
    weights = read_weights(folder / "weights.sparse.gz", symbols)
    chosen = (
        "RuleIdentityFeatures RuleSourceBigramFeatures RuleTargetBigramFeatures RuleShape LexicalFeatures"
    )
    scorer = RuleScorer(symbols, weights, feature_set(chosen.split(), symbols))
    listed: dict[int, set[str]] = {}
    with gzip.open(folder / "kbest20.sparse.gz", "rt", encoding="utf-8") as file:
        for line in file:
            number, _, features, _ = line.split(" ||| ")
            names = {pair.rpartition("=")[0] for pair in features.split()}
            listed.setdefault(int(number), set()).update(names - {"LanguageModel", "LanguageModel_OOV"})
    inputs = (folder / "input.sgm").read_text(encoding="utf-8").splitlines()
    for number in sorted(listed)[:5]:
        words = re.sub(r"<seg[^>]*>|</seg>.*", "", inputs[number]).split()
        copies = [f"[X] ||| {word} ||| {word} ||| PassThrough=1 ||| 0-0" for word in words]
        glue = ["[S] ||| [X,1] ||| [1] |||", "[S] ||| [S,1] [X,2] ||| [1] [2] ||| Glue=1"]
        fired: set[str] = set()
        for rules in (
            RuleReader(folder / "g" / f"grammar.{number}.gz", symbols).read(),
            parse_cdec(copies + glue, symbols),
        ):
            no_models = np.zeros((0, len(symbols.words)), np.int32)
            found = Replay(scorer, rules, no_models, cdec_names=True).rules(range(rules.num_rules))
            fired.update(*found)
            scores = scorer.scores(rules, no_models)
            for score, features_of_rule in list(zip(scores, found, strict=True))[::50]:
                product = sum(weights.get(name, 0.0) * value for name, value in features_of_rule.items())
                assert score == pytest.approx(product, abs=1e-9)
        assert listed[number] <= fired


def test_rule_ids_are_compared_in_full():
    """Two rules that differ only in which target gap comes first."""
    symbols = Symbols()
    rules = parse_cdec(
        ["[X] ||| [X,1] a [X,2] ||| [1] [2] |||", "[X] ||| [X,1] a [X,2] ||| [2] [1] |||"], symbols
    )
    weights = Weights(symbols, {"R:X:NX_a_NX:N1_N2": 1.0})
    scorer = RuleScorer(symbols, weights, feature_set(["rule_id", "shape"], symbols))
    assert scorer.scores(rules, np.zeros((0, 9), np.int32)).tolist() == [1.0, 0.0]
    assert all(key[0] == RULE_ID for key in weights.index.all_keys())
