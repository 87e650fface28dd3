"""The choice of features by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from hiero.core.errors import ConfigError
from hiero.core.symbols import Symbols
from hiero.features.feature_set import (
    BUILT_IN,
    CDEC_NAMES,
    DENSE,
    LANGUAGE_MODEL,
    TEMPLATES,
    Mismatch,
    ModelFeatures,
    compare_weights,
    feature_set,
)
from hiero.features.user import UserRuleFeature, rule_feature
from hiero.features.weights import Weights


def test_built_in_names_and_those_of_cdec():
    for name in BUILT_IN:
        feature_set([name], Symbols())
    for cdec, name in CDEC_NAMES.items():
        assert feature_set([cdec], Symbols()) == feature_set([name], Symbols())
    everything = feature_set([*CDEC_NAMES, *BUILT_IN], Symbols())
    assert everything.templates == sum(TEMPLATES.values())
    assert everything.arity
    assert everything.source_word_penalty
    assert {feature.name for feature in everything.edge_features} == {
        "span_size",
        "orientation",
        "distortion",
    }


def test_a_name_of_several():
    three = feature_set(["word_pair", "deletion", "insertion"], Symbols())
    assert (
        feature_set(["lexical"], Symbols())
        == feature_set(["deletion", "LexicalFeatures"], Symbols())
        == three
    )
    assert three.names == ["word_pair", "deletion", "insertion"]
    assert feature_set(["pt_al_lo"], Symbols()).names == ["rule_id", "word_pair", "deletion", "orientation"]


MODULE = """
from hiero.features.user import rule_feature

@rule_feature
def mine(rules):
    return {"Mine": [1.0] * len(rules)}

def plain(rules):
    return {}
"""


def test_features_of_a_module(tmp_path, monkeypatch):
    (tmp_path / "my_features_for_a_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    message = (
        r"cannot import 'my_features_for_a_test' .* \(--user-code searches the working directory for it\)"
    )
    with pytest.raises(ConfigError, match=message):
        feature_set(["my_features_for_a_test:mine"], Symbols())
    path = list(sys.path)
    (mine,) = feature_set(["my_features_for_a_test:mine"], Symbols(), here=True).rule_features
    assert sys.path == path
    assert isinstance(mine, UserRuleFeature)
    assert mine([0]) == {"Mine": [1.0]}
    for name, message in [
        ("my_features_for_a_test:mien", "has no 'mien'; did you mean 'mine'"),
        ("my_features_for_a_test:plain", "is not a feature .decorate a function with @rule_feature"),
        ("no_such_module:x", "cannot import 'no_such_module' for 'no_such_module:x'"),
        ("shap", "unknown feature 'shap'; did you mean 'shape'"),
    ]:
        with pytest.raises(ConfigError, match=message):
            feature_set([name], Symbols())
    with pytest.raises(ConfigError, match="two features are called 'growth'"):
        feature_set([rule_feature("growth")(lambda rules: {}) for _ in range(2)], Symbols())


# ---- weights and features


def features_of(**parts: Any) -> ModelFeatures:
    expected = {"p": DENSE, "q": DENSE, "LanguageModel": LANGUAGE_MODEL}
    default: dict[str, Any] = {
        "expected": expected,
        "groups": [],
        "possible": ["WordPenalty", "Glue", "PassThrough", "LanguageModel_OOV"],
        "prefixes": (),
        "templates": 0,
        "others": lambda: (),
    }
    return ModelFeatures(**default | parts)


FITTING = {"p": 1.0, "q": 0.0, "LanguageModel": 1.0, "Glue": -1.0}


def compared(weights: Mapping[str, float], exact: bool = True, **parts: Any) -> Mismatch:
    has_zeros = parts.pop("has_zeros", True)
    found = Weights(Symbols(), weights, exact=exact)
    return compare_weights(found, features_of(**parts), has_zeros=has_zeros)


def test_weights_that_fit() -> None:
    assert not compared(FITTING)
    assert not compared(FITTING, exact=False)
    assert not compared({**FITTING, "Whatever": 0.0})  # changes nothing
    assert not compared({**FITTING, "Sparse_1": 1.0}, others=lambda: {"Sparse_1"})
    # Names in cdec's spelling.
    assert not compared({**FITTING, "a_b": 1.0}, exact=False, others=lambda: {"a=b"})
    assert compared({**FITTING, "a_b": 1.0}, others=lambda: {"a=b"}).unused == ("a_b",)
    assert not compared({**FITTING, "SpanSize_X_3": 1.0}, prefixes=("SpanSize_",))
    assert not compared({**FITTING, "ReorderingSwap": 1.0}, groups=[["ReorderingMonotone", "ReorderingSwap"]])
    assert not compared({**FITTING, "Shape_S01110_T01110": 1.0}, templates=TEMPLATES["shape"])


def test_names_that_nothing_has() -> None:
    found = compared({"p": 1.0, "q": 1.0, "LanguageModle": 1.0})
    assert found == Mismatch(
        ("LanguageModle",), {}, {"LanguageModel": LANGUAGE_MODEL}, ("LanguageModle", "LanguageModel")
    )
    expected = (
        "the weight LanguageModle names no feature of the model; the language model LanguageModel has no "
        "weight (is 'LanguageModle' meant for 'LanguageModel'?)"
    )
    assert str(found) == expected
    # Another name of the model: not alike, but that of most language models.
    found = compared({"LM": 1.0, "LM_OOV": 1.0, "p": 1.0, "q": 1.0})
    assert set(found.unused) == {"LM", "LM_OOV"}
    assert found.near == ("LM", "LanguageModel")
    found = compared({**FITTING, **{f"Feature{i}": 1.0 for i in range(1000)}, "WordPenatly": 1.0})
    assert "Feature0, Feature1, Feature2 and 998 more name no feature" in str(found)
    assert compared({**FITTING, "WordPenatly": 1.0}).near == ("WordPenatly", "WordPenalty")
    assert str(compared({"Glue": 1.0, "LanguageModel": 1.0})) == "the dense features p, q have no weight"


def test_features_that_were_not_asked_for() -> None:
    weights = {**FITTING, "Shape_S01110_T01110": 1.0, "LT:a:b": 1.0, "LD:a": 2.0, "Arity_1": 1.0}
    found = compared({**weights, "ReorderingSwap": 1.0})
    assert found.unused == ()
    assert found.unasked == {
        "--features shape": 1,
        "--features word_pair": 1,
        "--features deletion": 1,
        "--features arity": 1,
        "--reordering": 1,
    }
    assert "1 weight needs --features deletion" in str(found)
    found = compared(FITTING, groups=[["ReorderingMonotone", "ReorderingSwap"]])
    assert str(found) == "the orientation model ReorderingMonotone has no weight"


def test_features_of_templates_in_the_spelling_of_cdec() -> None:
    weights = {**FITTING, "R:X:das:the": 1.0, "Shape_S01110_T01110": 1.0}
    found = compared(weights, exact=False, others=lambda: {"p", "Sparse_1"})
    assert found.unasked == {"--features rule_id": 1, "--features shape": 1}
    # The grammar has a feature of its own with such a name.
    found = compared(weights, exact=False, others=lambda: {"p", "R:X:das:the"})
    assert found.unasked == {"--features shape": 1}
    assert not compared(weights, exact=False, others=lambda: None)


def test_names_that_are_not_known() -> None:
    """Those of features in Python: only a name much like one without a weight counts."""
    weights = {**FITTING, "Whatever": 1.0, "PassTrough": 1.0, "Arity_1": 1.0}
    assert not compared(weights, others=lambda: None)
    found = compared({"p": 1.0, "q": 1.0, "LanguageModle": 1.0, "Mine": 1.0}, others=lambda: None)
    assert found.unused == ("LanguageModle",)
    found = compared({"p": 1.0, "q": 1.0, "LM": 1.0, "Mine": 1.0}, others=lambda: None)
    assert found.unused == ("LM",)


def test_files_without_zeros() -> None:
    """A dense feature may have the weight 0, which files of hiero leave out."""
    assert not compared({"p": 1.0, "LanguageModel": 1.0}, has_zeros=False)
    assert compared({"p": 1.0, "LanguageModel": 1.0}).unweighted == {"q": DENSE}
    assert compared({"LanguageModel": 1.0}, has_zeros=False).unweighted == {"p": DENSE, "q": DENSE}
    found = compared({"p": 1.0, "LanguageModel": 1.0, "r": 1.0}, has_zeros=False)
    assert (found.unused, found.unweighted) == (("r",), {"q": DENSE})


def test_mismatches_are_told_once() -> None:
    one, other = Mismatch(("a",), {"f": 1}, {"x": DENSE}), Mismatch(("b",), {}, {"y": DENSE})
    assert one.joined(other).without(one) == other
    assert not one.without(one)
