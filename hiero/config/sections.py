"""Sections of a configuration that belong to no single module, as typed records.

``train`` in place of a path stands for the training data of the same configuration, of which ``hiero run``
makes the index or the language model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hiero.bins.config import WORDS
from hiero.bitext.config import CompoundConfig, PrepConfig
from hiero.core.errors import ConfigError, did_you_mean, show
from hiero.core.records import PathKey, setting
from hiero.evaluation.config import EvalConfig
from hiero.extraction.config import ExtractConfig
from hiero.grammar.config import GrammarFormat
from hiero.learning.config import Pull
from hiero.lm.config import FALLBACK, EstimateConfig
from hiero.reordering.config import ExampleConfig, LearnConfig

TRAIN, SEQUESTER = "train", "sequester"
SET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
Paths = PathKey | list[PathKey]  # a file, or several


def as_list(paths: Paths | None) -> list[str]:
    """The paths as a list, which is empty for None."""
    return [] if paths is None else [paths] if isinstance(paths, str) else list(paths)


@dataclass(frozen=True, kw_only=True)
class DataSection:
    """Parallel text: training data, or a set to translate and score."""

    source: PathKey
    target: PathKey | None = None
    references: Paths | None = None  # one or several translations of each line of the source
    alignment: Paths | None = None  # of training data; each of several counts as one more bitext

    @property
    def translations(self) -> list[str]:
        """The references, or the target side as the only one."""
        return as_list(self.references) or as_list(self.target)

    @property
    def all_sides(self) -> list[str]:
        return [self.source, *self.translations]


# Keys of models of compounds, and those of how they are used.
SPLITS = {"source_compounds": "split_compounds", "target_compounds": "split_compounds_target"}


@dataclass(frozen=True, kw_only=True)
class PrepSection(PrepConfig):
    """Preparation of all data, which are then raw text. Only pairs of the training data are dropped."""

    source_language: str | None = None  # needed for most tokenisers
    # Of the source side, by the frequencies of its words in the training data.
    split_compounds: Literal["no", "best", "lattice"] = "no"
    # Of the target side, into parts that are joined again in translations.
    split_compounds_target: Literal["no", "marked"] = "no"
    compounds: CompoundConfig = field(default_factory=CompoundConfig)
    # Models of hiero prep --learn-compounds; by default learnt from the training data, with ``compounds``.
    source_compounds: PathKey | None = None
    target_compounds: PathKey | None = None
    target_language: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for model, key in SPLITS.items():
            if getattr(self, model) is not None and getattr(self, key) == "no":
                raise ConfigError(f"{model}: requires {key}")
        for name in ("source_language", "target_language"):
            if getattr(self, name) is None and self.needs_language:
                raise ConfigError(f"{name} is missing (such as de)")

    @property
    def learns_compounds(self) -> bool:
        """Whether a side is split by a model that is learnt from the training data."""
        return any(
            getattr(self, key) != "no" and getattr(self, model) is None for model, key in SPLITS.items()
        )


@dataclass(frozen=True, kw_only=True)
class GrammarSection(GrammarFormat):
    """One grammar: a file, a compiled directory, an index, or the directory of ``<seg grammar=…>`` files."""

    path: PathKey | None = None
    # A bitext index (also allowed as path); train: made of data.train.
    index: Literal["train"] | PathKey | None = None
    per_sentence: PathKey | None = None
    extract: ExtractConfig = field(default_factory=ExtractConfig)  # from an index
    # Rules that hiero run writes before it translates: nothing (they are extracted on the fly), one grammar
    # of the whole bitext, or one grammar for each sentence to translate.
    write: Literal["nothing", "whole", "per_sentence"] = "nothing"


@dataclass(frozen=True, kw_only=True)
class LanguageModelSection:
    """A language model: an existing one, or one to be estimated."""

    path: PathKey | None = None
    name: str = "LanguageModel"  # of its feature; NAME_OOV counts unknown words
    # From this text; train: from the target side of data.train.
    estimate: Literal["train"] | PathKey | None = None
    # Of an existing model, for tune: lm: jackknife: the text, which was used with the settings below.
    text: PathKey | None = None
    order: int = 5
    prune: list[int] = field(default_factory=list)  # as --prune of hiero lm estimate
    discount_fallback: bool | list[float] = False  # as --discount-fallback; true: its own values
    vocabulary: PathKey | None = None  # file with the words of the model
    classes: PathKey | None = None  # file with the classes of words, if the words of the model are classes
    skip_symbols: bool = False
    memory: int = 0  # MB for n-grams; 0: a quarter of the machine's
    format: Literal["compiled", "arpa"] = "compiled"  # of the output

    @property
    def discounts(self) -> tuple[float, ...] | None:
        given = self.discount_fallback
        if isinstance(given, bool):
            return FALLBACK if given else None
        return tuple(given) or FALLBACK

    @property
    def files(self) -> tuple[str, str, str | None]:
        """The name and the paths of an existing model, as in ``lm.load.ModelFiles``."""
        return self.name, str(self.path), self.classes

    def estimation(self) -> EstimateConfig:
        """The settings of the estimation of this model."""
        return EstimateConfig(
            order=self.order,
            prune=tuple(self.prune),
            discount_fallback=self.discounts,
            vocabulary=None if self.vocabulary is None else Path(self.vocabulary),
            classes=None if self.classes is None else Path(self.classes),
            skip_symbols=self.skip_symbols,
            memory=self.memory * 1_000_000,
        )


def with_classes(
    sections: Sequence[LanguageModelSection], classes: Mapping[str, str]
) -> list[LanguageModelSection]:
    """The same models, with files of classes for those of some names."""
    names = [section.name for section in sections]
    for name in classes:
        if name not in names:
            known = did_you_mean(name, names) if names else "there are none"
            raise ConfigError(f"classes: {show(name)} is the name of no language model; {known}")
    return [replace(section, classes=classes.get(section.name, section.classes)) for section in sections]


@dataclass(frozen=True, kw_only=True)
class FeaturesSection:
    templates: list[str] = setting(
        help="rule_id, source_bigram, target_bigram, bigram, shape, word_pair, deletion, insertion, lexical "
        "(these three), insertion_pair, source_word_penalty, arity, span_size, orientation, distortion, "
        "pt_al_lo (rule_id, word_pair, deletion, orientation), cdec's names for them, or your own as "
        "MODULE:NAME",
        default_factory=list,
        flag="features",
        metavar="A,B,...",
    )
    bins: PathKey | None = setting(None, "bins that replace dense features, from hiero bins learn")
    # Dense features given as logarithms, turned back into probabilities or counts, or left out.
    transform: dict[str, Literal["probability", "count", "drop"]] = field(default_factory=dict)
    reordering: Paths | None = setting(
        None, "orientation model of hiero reorder train; repeatable, one of each kind", metavar="MODEL"
    )
    cdec_names: bool = setting(False, "write features under cdec's names, which several features may share")

    def __post_init__(self) -> None:
        if WORDS in self.transform:
            raise ConfigError(f"transform: {WORDS} is not a column of a grammar (bins can be made of it)")


@dataclass(frozen=True, kw_only=True)
class GridSection:
    """Settings to try in all combinations; odd lines of the held-out set choose the best."""

    # of bins, for all features
    bits: list[int] = field(default_factory=list)
    overlap: list[int] = field(default_factory=list)
    # of tune
    neighbours: list[Pull] = field(default_factory=list)
    beta: list[float] = field(default_factory=list)
    gamma: list[float] = field(default_factory=list)
    l1: list[float] = field(default_factory=list)
    l2: list[float] = field(default_factory=list)
    l2_sparse: list[float] = field(default_factory=list)
    l2_previous: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    c: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not any(getattr(self, key) for key in self.__dataclass_fields__):
            raise ConfigError(f"nothing to try, expected values of {', '.join(self.__dataclass_fields__)}")


@dataclass(frozen=True, kw_only=True)
class WeightsSection:
    path: PathKey


@dataclass(frozen=True, kw_only=True)
class ReorderSection(ExampleConfig, LearnConfig):
    """An orientation model, learnt from data.train and its alignment."""

    held_out_every: int = 0  # every Nth sentence pair is held out for evaluation; 0: none

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.held_out_every < 0 or self.held_out_every == 1:
            raise ConfigError(f"held_out_every: found {self.held_out_every}, expected 0, or 2 or more")


@dataclass(frozen=True, kw_only=True)
class EvalSection(EvalConfig):
    """Scoring of the translations of all sets that have references."""

    # Translations by other systems to compare with, by name and set: a file, or one for each tuning run.
    against: dict[str, dict[str, Paths]] = field(default_factory=dict)


def check_data(data: dict[str, DataSection], sequester: dict[str, int], where: str) -> None:
    """Check rules of ``data`` that types cannot express. ``sequester`` has the sizes of sets to draw."""
    if sequester and TRAIN not in data:
        raise ConfigError(f"{where}: data: {SEQUESTER}: needs {TRAIN}, from which sets are drawn")
    for name, size in sequester.items():
        place = f"{where}: data: {SEQUESTER}: {name}"
        _check_set_name(name, place)
        if name in data:
            hint = "each set needs a name of its own"
            raise ConfigError(f"{place}: found the name of another set of data ({hint})")
        if size < 1:
            raise ConfigError(f"{place}: found {size}, expected at least 1")
    for name, section in data.items():
        place = f"{where}: data: {name}"
        _check_set_name(name, place)
        if section.target is not None and section.references is not None:
            raise ConfigError(f"{place}: target cannot be combined with references")
        if name == TRAIN and section.references is not None:
            raise ConfigError(f"{place}: training data need target, not references")
        if name == TRAIN and section.target is None:
            raise ConfigError(f"{place}: target is missing")
        if name != TRAIN and section.alignment is not None:
            raise ConfigError(f"{place}: alignment is only allowed in {TRAIN}")
        if section.references is not None and not section.translations:
            raise ConfigError(f"{place}: references: needs at least one file")


def _check_set_name(name: str, place: str) -> None:
    if not SET_NAME.fullmatch(name):
        raise ConfigError(f"{place}: found {show(name)}, expected a name of letters and digits, . _ -")
