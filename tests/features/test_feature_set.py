"""The choice of features by name."""

from __future__ import annotations

import sys

import pytest

from hiero.core.errors import ConfigError
from hiero.core.symbols import Symbols
from hiero.features.feature_set import BUILT_IN, CDEC_NAMES, TEMPLATES, feature_set
from hiero.features.user import UserRuleFeature, rule_feature


def test_built_in_names_and_those_of_cdec():
    for name in BUILT_IN:
        feature_set([name], Symbols())
    for cdec, name in CDEC_NAMES.items():
        assert feature_set([cdec], Symbols()) == feature_set([name], Symbols())
    everything = feature_set([*CDEC_NAMES, *BUILT_IN], Symbols())
    assert everything.templates == sum(TEMPLATES.values())
    assert everything.arity
    assert everything.source_word_penalty
    assert [feature.name for feature in everything.edge_features] == ["span_size"]


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
