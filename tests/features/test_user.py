"""User-defined features, and the standard ones beside them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.errors import ConfigError
from hiero.core.symbols import Symbols
from hiero.features.feature_set import feature_set
from hiero.features.score import Replay, RuleScorer
from hiero.features.user import RuleBatch, RuleCache, rule_feature
from hiero.features.weights import Weights
from hiero.grammar.cdec import parse_cdec
from tests.naive import features as naive
from tests.worlds.rules import rule, symbols_of, table

NO_MODEL = np.zeros((0, 99), np.int32)
TEXT = [
    "[X] ||| [X,1] hat ||| [1] has ||| Count=2 Other=1 ||| 1-1",
    "[X] ||| das haus ||| the big house ||| Count=3 Other=0 ||| 0-0 1-2",
]


@rule_feature
def growth(rules):
    return {"Growth": rules.num_tgt_words - rules.num_src_words, "Twice": 2 * rules.dense("Count")}


@rule_feature("doubled", per_rule=True)
def _doubles(rule):
    if rule.lhs == "X" and rule["Count"] > 2:
        yield "Big", rule["Count"]
        yield f"Last_{rule.tgt[-1]}", 1.0
        yield f"Last_{rule.tgt[-1]}", 1.0


@rule_feature
def triples(rules):
    return [(i, "Links", float(len(rule.links))) for i, rule in enumerate(rules)]


def features_of(*features) -> list[dict[str, float]]:
    symbols = Symbols()
    rules = parse_cdec(TEXT, symbols)
    scorer = RuleScorer(symbols, Weights(symbols), feature_set(features, symbols))
    standard = {"Count", "Other", "WordPenalty"}
    found = Replay(scorer, rules, NO_MODEL).rules([0, 1])
    return [{name: value for name, value in row.items() if name not in standard} for row in found]


def test_forms_of_results():
    assert features_of(growth) == [{"Twice": 4}, {"Growth": 1, "Twice": 6}]
    assert features_of(_doubles) == [{}, {"Big": 3, "Last_house": 2}]
    assert features_of(triples) == [{"Links": 1}, {"Links": 2}]
    assert features_of(growth, triples)[1] == {"Growth": 1, "Twice": 6, "Links": 2}


def test_scores_include_user_features():
    symbols = Symbols()
    rules = parse_cdec(TEXT, symbols)
    weights = Weights(symbols, {"Growth": 0.5, "Twice": 1.0, "Last_house": 10.0})
    scorer = RuleScorer(symbols, weights, feature_set([growth, _doubles], symbols))
    assert scorer.scores(rules, NO_MODEL).tolist() == [4.0, 6.5 + 20.0]


def test_a_batch_as_text():
    symbols = Symbols()
    rules = parse_cdec(TEXT, symbols)
    batch = RuleBatch(rules.rules, rules.columns, symbols)
    assert batch.src == [("[X,1]", "hat"), ("das", "haus")]
    assert batch.tgt == [("[X,1]", "has"), ("the", "big", "house")]
    assert batch.lhs == ["X", "X"]
    assert batch.links == [[(1, 1)], [(0, 0), (1, 2)]]
    assert batch.num_src_words.tolist() == [1, 2]
    assert repr(batch[-1]) == "[X] ||| das haus ||| the big house"
    assert [r.index for r in batch[0:2]] == [0, 1]
    with pytest.raises(IndexError):
        batch[2]
    with pytest.raises(ConfigError, match="no dense feature 'Cuont'; did you mean 'Count'"):
        batch.dense("Cuont")


def test_each_rule_is_passed_once():
    asked = []

    @rule_feature
    def spy(rules):
        asked.extend(map(repr, rules))
        return {"Seen": np.ones(len(rules))}

    symbols = Symbols()
    scorer = RuleScorer(symbols, Weights(symbols, {"Seen": 2.0}), feature_set([spy], symbols))
    first = parse_cdec([TEXT[0], TEXT[0]], symbols)
    assert scorer.scores(first, NO_MODEL).tolist() == [2.0, 2.0]
    assert len(asked) == 1
    assert scorer.scores(parse_cdec([TEXT[1], TEXT[0]], symbols), NO_MODEL).tolist() == [2.0, 2.0]
    assert len(asked) == 2
    other_value = TEXT[0].replace("Count=2", "Count=4")
    scorer.scores(parse_cdec([other_value], symbols), NO_MODEL)
    assert len(asked) == 3


@given(st.lists(rule(num_words=2), max_size=8))
def test_the_cache_distinguishes_rules_by_their_whole_content(rules):
    cache = RuleCache([], symbols_of())
    contents = cache._contents(table(rules), read_only(np.arange(len(rules))))
    assert contents.tolist() == naive.contents(rules)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"F": [1.0]},
            r"feature 'wrong' returned an array of shape \(1,\) for 'F', expected one value per rule: \(2,\)",
        ),
        ([(2, "F", 1.0)], "feature 'wrong' returned rule 2, expected 0 to 1"),
        ([(0, "F", float("nan"))], r"feature 'wrong' returned F=nan for the rule \[X\] \|\|\| \[X,1\] hat"),
        ([(0, "", 1.0)], "feature 'wrong' returned '', expected the name of a feature"),
        ([("F", 1.0)], r"feature 'wrong' returned \('F', 1.0\), expected a mapping or triples"),
    ],
)
def test_invalid_results(answer, message):
    @rule_feature
    def wrong(rules):
        return answer

    with pytest.raises(ConfigError, match=message):
        features_of(wrong)


def test_penalties_have_cdecs_values():
    symbols = Symbols()
    rules = parse_cdec(["[X] ||| a [X,1] b ||| [1] c ||| F=1"], symbols)
    scorer = RuleScorer(symbols, Weights(symbols), feature_set(["SourceWordPenalty", "arity"], symbols))
    (found,) = Replay(scorer, rules, NO_MODEL).rules([0])
    unit = -0.43429448190325176
    assert found == pytest.approx(
        {"F": 1, "WordPenalty": unit, "SourceWordPenalty": 2 * unit, "Arity_1": unit}
    )


def test_pickling():
    """A decorated function by its name, another one by that of the function."""
    for feature in (growth, _doubles):
        assert pickle.loads(pickle.dumps(feature)) is feature
    named = rule_feature("named", per_rule=True)(pytest.approx)
    other = pickle.loads(pickle.dumps(named))
    assert (other.name, other.per_rule, other.function) == ("named", True, pytest.approx)
