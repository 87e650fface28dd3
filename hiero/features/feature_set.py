"""The features of a model: parse ``--features rule_id,shape,mymodule:my_feature`` into objects."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hiero.core.errors import ConfigError, did_you_mean
from hiero.core.symbols import Symbols
from hiero.features.index import EdgeFeature, RuleFeature
from hiero.features.span_size import SpanSize
from hiero.features.template_kernels import (
    WITH_INSERTION_PAIR,
    WITH_LEXICAL,
    WITH_RULE_ID,
    WITH_SHAPE,
    WITH_SOURCE_BIGRAM,
    WITH_TARGET_BIGRAM,
)
from hiero.features.user import user_code

TEMPLATES = {
    "rule_id": WITH_RULE_ID,
    "source_bigram": WITH_SOURCE_BIGRAM,
    "target_bigram": WITH_TARGET_BIGRAM,
    "shape": WITH_SHAPE,
    "lexical": WITH_LEXICAL,
    "insertion_pair": WITH_INSERTION_PAIR,
}
SOURCE_WORD_PENALTY, ARITY = "source_word_penalty", "arity"
EDGE_FEATURES = {"span_size": SpanSize}
CDEC_NAMES = {
    "RuleIdentityFeatures": "rule_id",
    "RuleSourceBigramFeatures": "source_bigram",
    "RuleTargetBigramFeatures": "target_bigram",
    "RuleShape": "shape",
    "LexicalFeatures": "lexical",
    "SourceWordPenalty": SOURCE_WORD_PENALTY,
    "ArityPenalty": ARITY,
}
BUILT_IN = (*TEMPLATES, SOURCE_WORD_PENALTY, ARITY, *EDGE_FEATURES)


@dataclass(frozen=True)
class FeatureSet:
    """The features of a model beyond those of its grammars and language models, and ``WordPenalty``.

    templates  bits WITH_... of template_kernels.py
    """

    templates: int = 0
    source_word_penalty: bool = False
    arity: bool = False
    rule_features: tuple[RuleFeature, ...] = ()
    edge_features: tuple[EdgeFeature, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names in configurations."""
        templates = [name for name, bit in TEMPLATES.items() if self.templates & bit]
        flags = [SOURCE_WORD_PENALTY] * self.source_word_penalty + [ARITY] * self.arity
        own = [one.name for one in self.rule_features] + [one.name for one in self.edge_features]
        return templates + flags + own


Feature = RuleFeature | EdgeFeature


def feature_set(choices: Iterable[str | Feature], symbols: Symbols, *, here: bool = False) -> FeatureSet:
    """Look up features: built-in names, cdec's names for these, ``module:name`` in Python, or objects.

    here  search the working directory for modules, too
    """
    templates, flags = 0, set()
    rule_features: dict[str, RuleFeature] = {}
    edge_features: dict[str, EdgeFeature] = {}
    for choice in dict.fromkeys(CDEC_NAMES.get(c, c) if isinstance(c, str) else c for c in choices):
        if isinstance(choice, str) and choice in TEMPLATES:
            templates |= TEMPLATES[choice]
        elif choice in (SOURCE_WORD_PENALTY, ARITY):
            flags.add(choice)
        else:
            feature: object = _named(choice, symbols, here) if isinstance(choice, str) else choice
            if not isinstance(feature, RuleFeature | EdgeFeature) or not isinstance(feature.name, str):
                hint = "decorate a function with @rule_feature"
                raise ConfigError(f"features: {choice!r} is not a feature ({hint})")
            if feature.name in rule_features or feature.name in edge_features:
                raise ConfigError(f"features: two features are called {feature.name!r}")
            if isinstance(feature, EdgeFeature):
                edge_features[feature.name] = feature
            else:
                rule_features[feature.name] = feature
    own = tuple(rule_features.values()), tuple(edge_features.values())
    return FeatureSet(templates, SOURCE_WORD_PENALTY in flags, ARITY in flags, *own)


def _named(name: str, symbols: Symbols, here: bool) -> Feature:
    if name in EDGE_FEATURES:
        return EDGE_FEATURES[name](symbols)
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        hint = did_you_mean(name, [*BUILT_IN, *CDEC_NAMES])
        raise ConfigError(f"features: unknown feature {name!r}; {hint} (your own is MODULE:NAME)")
    searched = working_directory_importable() if here else contextlib.nullcontext()
    with searched, user_code(f"features: cannot import {module_name!r}"):
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            package = module_name.partition(".")[0]
            is_here = not here and (Path(f"{package}.py").is_file() or Path(package).is_dir())
            hint = " (--user-code searches the working directory for it)" if is_here else ""
            problem = f"features: cannot import {module_name!r} for {name!r}: {error}{hint}"
            raise ConfigError(problem) from error
    if not hasattr(module, attribute):
        hint = did_you_mean(attribute, [a for a in vars(module) if not a.startswith("_")])
        raise ConfigError(f"features: {module_name!r} has no {attribute!r}; {hint}")
    feature = getattr(module, attribute)
    # A class is instantiated with the symbols.
    with user_code(f"feature {name!r}"):
        made: Feature = feature(symbols) if isinstance(feature, type) else feature
    return made


@contextlib.contextmanager
def working_directory_importable() -> Iterator[None]:
    """Import from the working directory, as ``python -m`` does and an installed command does not."""
    folder = os.getcwd()
    if folder in sys.path:
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
