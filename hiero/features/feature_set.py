"""The features of a model: parse ``--features rule_id,shape,mymodule:my_feature`` into objects.

Weights are compared with the features of a model by name: a name in two spellings would change every score
without an error.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import itertools
import os
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hiero.core.errors import ConfigError, did_you_mean
from hiero.core.plugins import plugins
from hiero.core.symbols import Symbols
from hiero.features.index import KINDS, EdgeFeature, RuleFeature
from hiero.features.index_kernels import NAME, RULE_ID
from hiero.features.names import as_cdec
from hiero.features.template_kernels import (
    BIGRAM,
    DELETION,
    INSERTION,
    INSERTION_PAIR,
    SHAPE,
    SOURCE_BIGRAM,
    TARGET_BIGRAM,
    WITH_BIGRAM,
    WITH_DELETION,
    WITH_INSERTION,
    WITH_INSERTION_PAIR,
    WITH_RULE_ID,
    WITH_SHAPE,
    WITH_SOURCE_BIGRAM,
    WITH_TARGET_BIGRAM,
    WITH_WORD_PAIR,
    WORD_PAIR,
)
from hiero.features.user import user_code
from hiero.features.user_edges import EdgeFunction, UserEdgeFeature
from hiero.features.weights import Weights

TEMPLATES = {
    "rule_id": WITH_RULE_ID,
    "source_bigram": WITH_SOURCE_BIGRAM,
    "target_bigram": WITH_TARGET_BIGRAM,
    "shape": WITH_SHAPE,
    "word_pair": WITH_WORD_PAIR,
    "deletion": WITH_DELETION,
    "insertion": WITH_INSERTION,
    "insertion_pair": WITH_INSERTION_PAIR,
    "bigram": WITH_BIGRAM,
}
# Names for several.
GROUPS = {
    "lexical": ("word_pair", "deletion", "insertion"),
    # Green et al. 2013: a discriminative phrase table, alignments, and lexicalised reordering.
    "pt_al_lo": ("rule_id", "word_pair", "deletion", "orientation"),
}
SOURCE_WORD_PENALTY, ARITY = "source_word_penalty", "arity"
# MODULE:CLASS, imported if it is asked for.
EDGE_FEATURES = {
    "span_size": "hiero.features.span_size:SpanSize",
    "orientation": "hiero.reordering.feature:Orientation",
    "distortion": "hiero.reordering.feature:Distortion",
}
CDEC_NAMES = {
    "RuleIdentityFeatures": "rule_id",
    "RuleSourceBigramFeatures": "source_bigram",
    "RuleTargetBigramFeatures": "target_bigram",
    "RuleShape": "shape",
    "LexicalFeatures": "lexical",
    "SourceWordPenalty": SOURCE_WORD_PENALTY,
    "ArityPenalty": ARITY,
}
PLUGINS = "hiero.features"  # entry points: what MODULE:NAME can be
BUILT_IN = (*TEMPLATES, *GROUPS, SOURCE_WORD_PENALTY, ARITY, *EDGE_FEATURES)


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

    def check_wide_rules(self) -> None:
        """Refuse features that are not defined for rules with more than two gaps."""
        reason = "the feature reads the places of two gaps"
        wrong = [name for name in self.names if TEMPLATES.get(name, 0) & WITH_SHAPE]
        for name in [*wrong, *(one.name for one in self.edge_features)]:
            found, expected = "a rule with more than two gaps", "rules with at most two"
            raise ConfigError(f"feature {name}: found {found}, expected {expected} ({reason})")


Feature = RuleFeature | EdgeFeature | EdgeFunction


def expanded(choices: Iterable[str | Feature]) -> list[str | Feature]:
    """The choices, each once, with cdec's names and those of several features replaced."""
    own = [CDEC_NAMES.get(choice, choice) if isinstance(choice, str) else choice for choice in choices]
    each = [GROUPS.get(one, (one,)) if isinstance(one, str) else (one,) for one in own]
    return list(dict.fromkeys(itertools.chain.from_iterable(each)))


def feature_set(choices: Iterable[str | Feature], symbols: Symbols, *, here: bool = False) -> FeatureSet:
    """Look up features: built-in names, cdec's names for these, ``module:name`` in Python, or objects.

    here  search the working directory for modules, too
    """
    templates, flags = 0, set()
    rule_features: dict[str, RuleFeature] = {}
    edge_features: dict[str, EdgeFeature] = {}
    for choice in expanded(choices):
        if isinstance(choice, str) and choice in TEMPLATES:
            templates |= TEMPLATES[choice]
        elif choice in (SOURCE_WORD_PENALTY, ARITY):
            flags.add(choice)
        else:
            feature: object = _named(choice, symbols, here) if isinstance(choice, str) else choice
            if isinstance(feature, EdgeFunction):
                feature = UserEdgeFeature(feature, symbols)
            if not isinstance(feature, RuleFeature | EdgeFeature) or not isinstance(feature.name, str):
                hint = "decorate a function with @rule_feature or @edge_feature"
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
        built_in: EdgeFeature = pkgutil.resolve_name(EDGE_FEATURES[name])(symbols)
        return built_in
    target = name if ":" in name else plugins(PLUGINS).get(name, "")
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        hint = did_you_mean(name, [*BUILT_IN, *CDEC_NAMES, *plugins(PLUGINS)])
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


# ---- weights of a model

DENSE, LANGUAGE_MODEL, ORIENTATION = "dense feature", "language model", "orientation model"
LIKE, VERY_LIKE = 0.6, 0.8  # least similarity of two spellings of a name
USUAL_MODELS = ("LanguageModel", "LM", "LM0", "lm")  # names of language models here and in other systems
MOST_COMPARED = 50  # names, each with each
MOST_CHECKED = 20_000  # names, each with those of features without a weight
MOST_SHOWN = 3  # names of a kind in a message

# Flags that features with these names, or beginnings of names, need.
FLAGS = {
    "SourceWordPenalty": f"--features {SOURCE_WORD_PENALTY}",
    "Arity_": f"--features {ARITY}",
    "SpanSize_": "--features span_size",
    "GapSize_": "--features span_size",
    "LO:": "--features orientation",
    "Distortion": "--features distortion",
    "Reordering": "--reordering",
    "LexicalReordering": "--reordering",
}
# The template for each kind of feature; named features need none.
TEMPLATE_OF = {
    RULE_ID: "rule_id",
    SOURCE_BIGRAM: "source_bigram",
    TARGET_BIGRAM: "target_bigram",
    SHAPE: "shape",
    WORD_PAIR: "word_pair",
    DELETION: "deletion",
    INSERTION: "insertion",
    INSERTION_PAIR: "insertion_pair",
    BIGRAM: "bigram",
}


@dataclass(frozen=True)
class ModelFeatures:
    """The features of a model, as far as weights can be compared with them.

    expected   names that should have a weight, each with its kind, such as LANGUAGE_MODEL
    groups     names of which at least one should have a weight: those of an orientation model
    possible   other names that may have a weight
    prefixes   beginnings of names that may have a weight
    templates  bits WITH_... of template_kernels.py
    others     returns all further names, or None if they are not known, as those of features in Python
    """

    expected: Mapping[str, str]
    groups: Sequence[Sequence[str]]
    possible: Collection[str]
    prefixes: tuple[str, ...]
    templates: int
    others: Callable[[], Collection[str] | None]

    @property
    def dense(self) -> frozenset[str]:
        """The names of the dense features: columns of grammars, language and orientation models, and those
        that the model adds. Span sizes, bins, features in Python and sparse features of rules are not dense.
        """
        return frozenset(itertools.chain(self.expected, self.possible, *self.groups))


@dataclass(frozen=True)
class Mismatch:
    """Weights without a feature, and features without a weight; ``str()`` of it is one line.

    unused      names of weights that fit no feature
    unasked     numbers of weights of features that the model lacks, by the flag that asks for them
    unweighted  names of features without a weight, each with its kind
    near        a weight without a feature, and the name that it may be a misspelling of
    """

    unused: tuple[str, ...] = ()
    unasked: Mapping[str, int] = field(default_factory=dict)
    unweighted: Mapping[str, str] = field(default_factory=dict)
    near: tuple[str, str] | None = None

    def __bool__(self) -> bool:
        return bool(self.unused or self.unasked or self.unweighted)

    def joined(self, other: Mismatch) -> Mismatch:
        """The parts of both."""
        return Mismatch(
            self.unused + other.unused,
            {**self.unasked, **other.unasked},
            {**self.unweighted, **other.unweighted},
        )

    def without(self, other: Mismatch) -> Mismatch:
        """The parts that are not in another one."""
        unused = tuple(name for name in self.unused if name not in other.unused)
        unasked = {flag: count for flag, count in self.unasked.items() if flag not in other.unasked}
        unweighted = {name: kind for name, kind in self.unweighted.items() if name not in other.unweighted}
        near = self.near if self.near and self.near[0] in unused else None
        return Mismatch(unused, unasked, unweighted, near)

    def __str__(self) -> str:
        found = []
        if self.unused:
            text = "the weight {} names" if len(self.unused) == 1 else "the weights {} name"
            found.append(f"{text.format(_listed(self.unused))} no feature of the model")
        for flag, count in self.unasked.items():
            found.append(f"{count:,} {'weight needs' if count == 1 else 'weights need'} {flag}")
        for kind in dict.fromkeys(self.unweighted.values()):
            names = [name for name, its in self.unweighted.items() if its == kind]
            one = len(names) == 1
            found.append(
                f"the {kind}{'' if one else 's'} {_listed(names)} {'has' if one else 'have'} no weight"
            )
        near = f" (is {self.near[0]!r} meant for {self.near[1]!r}?)" if self.near else ""
        return "; ".join(found) + near


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_SHOWN
    shown = ", ".join(names[:MOST_SHOWN])
    return f"{shown} and {more:,} more" if more > 0 else shown


class _GivenWeights:
    """The names of weights, with the values of those that a feature in a grammar may have."""

    def __init__(self, weights: Weights) -> None:
        rows, values = weights.given()
        is_name = rows[:, 0] == NAME
        entries = weights.symbols.names.entries()
        ids = rows[is_name, 1].tolist()
        self.value = {entries[i]: value for i, value in zip(ids, values[is_name].tolist(), strict=True)}
        self.is_shared = weights.has_shared_names
        kinds = Counter(rows[~is_name & (values != 0), 0].tolist())
        for name, value in weights.shared.items():
            kind = next((kind for kind in TEMPLATE_OF if name.startswith(KINDS[kind].prefix)), NAME)
            if kind == NAME:
                self.value[name] = value
            elif value:
                kinds[kind] += 1
        self.kinds = {kind: count for kind, count in kinds.items() if kind in TEMPLATE_OF}  # of templates
        self._spelled = {as_cdec(name) for name in self.value} if self.is_shared else set()

    def has(self, name: str) -> bool:
        """Whether a feature has a weight, which may be 0."""
        written = _bytes(name)
        return written in self.value or as_cdec(written) in self._spelled

    def unknown(self, known: Iterable[str]) -> list[str]:
        """The names of weights other than 0 that are not among the known ones."""
        names = set(map(_bytes, known))
        spelled = set(map(as_cdec, names)) if self.is_shared else set()
        unknown = (
            name
            for name, value in self.value.items()
            if value and name not in names and not (spelled and as_cdec(name) in spelled)
        )
        return [name.decode(errors="replace") for name in unknown]


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")


def compare_weights(weights: Weights, model: ModelFeatures, *, has_zeros: bool = True) -> Mismatch:
    """Compare weights with the features of a model. A weight of 0 does not need a feature.

    has_zeros  whether weights of 0 are given, too. Files of hiero leave them out: a dense feature without a
               weight then counts only if no dense feature has one, or beside another mismatch
    """
    given = _GivenWeights(weights)
    lacking = {name: kind for name, kind in model.expected.items() if not given.has(name)}
    for names in model.groups:
        if not any(map(given.has, names)):
            lacking[names[0]] = ORIENTATION
    known = {*model.expected, *model.possible, *itertools.chain(*model.groups)}
    unused = [name for name in given.unknown(known) if not name.startswith(model.prefixes)]
    kinds = {kind: n for kind, n in given.kinds.items() if not model.templates & TEMPLATES[TEMPLATE_OF[kind]]}
    others = model.others() if unused or (kinds and given.is_shared) else ()
    if others is None:
        # Any weight may be that of a feature, unless its name is much like one that lacks a weight.
        alike = {name for _, name, _ in _alike(unused[:MOST_CHECKED], lacking, VERY_LIKE)}
        unused = [name for name in unused if name in alike or _usual_model(name, lacking)]
    elif others:
        unknown = set(given.unknown({*known, *others}))
        unused = [name for name in unused if name in unknown]
    if given.is_shared:
        # Features of grammars may be called like those of templates.
        named = None if others is None else tuple(map(_bytes, others))
        kinds = {k: n for k, n in kinds.items() if named is not None and not _begins(named, KINDS[k].prefix)}
    unasked = Counter[str]()
    for kind, count in kinds.items():
        unasked[f"--features {TEMPLATE_OF[kind]}"] += count
    for name in list(unused):
        flag = next((flag for start, flag in FLAGS.items() if name.startswith(start)), None)
        if flag is not None:
            unused.remove(name)
            unasked[flag] += 1
    dense = [name for name, kind in model.expected.items() if kind == DENSE]
    if not has_zeros and not unused and not unasked and not all(name in lacking for name in dense):
        lacking = {name: kind for name, kind in lacking.items() if kind != DENSE}
    near = _nearest(unused, lacking, LIKE) or _nearest(unused, {*known, *(others or ())}, VERY_LIKE)
    if near is None:
        near = next(((name, found) for name in unused if (found := _usual_model(name, lacking))), None)
    return Mismatch(tuple(unused), dict(unasked), lacking, near)


def _begins(names: Iterable[bytes], prefix: bytes) -> bool:
    return any(name.startswith(prefix) for name in names)


def _usual_model(name: str, lacking: Mapping[str, str]) -> str:
    """The language model without a weight, if there is one, for a name like the usual ones."""
    models = [one for one, kind in lacking.items() if kind == LANGUAGE_MODEL]
    return models[0] if len(models) == 1 and name.removesuffix("_OOV") in USUAL_MODELS else ""


def _nearest(names: Sequence[str], choices: Iterable[str], least: float) -> tuple[str, str] | None:
    """The name and the choice that are most alike."""
    found = max(_alike(names[:MOST_COMPARED], choices, least), default=None)
    return None if found is None else found[1:]


def _alike(names: Sequence[str], choices: Iterable[str], least: float) -> Iterator[tuple[float, str, str]]:
    """Likeness, name and choice where they are alike, upper and lower case being equal."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    for choice in sorted(choices)[:MOST_COMPARED]:
        matcher.set_seq2(choice.lower())
        for name in names:
            matcher.set_seq1(name.lower())
            # Upper bounds first, which are quickly computed.
            if matcher.real_quick_ratio() >= least and matcher.quick_ratio() >= least:
                if (likeness := matcher.ratio()) >= least:
                    yield likeness, name, choice
