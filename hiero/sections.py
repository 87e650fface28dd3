"""The sections of a configuration that are no settings of one module alone, as typed records.

``train`` in place of a path stands for the training data of the same configuration: ``hiero run`` makes of
them what is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from hiero.bins import WORDS
from hiero.bitext.discounts import FALLBACK
from hiero.bitext.limits import ExtractConfig
from hiero.errors import ConfigError, show
from hiero.evaluation import EvalConfig
from hiero.grammarformat import GrammarFormat
from hiero.prep import PrepConfig
from hiero.reorder.settings import ExampleConfig, LearnConfig
from hiero.tune.settings import Pull

TRAIN = "train"
SET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
Paths = str | list[str]  # a file, or several


def as_list(paths: Paths | None) -> list[str]:
    """The files, however many."""
    return [] if paths is None else [paths] if isinstance(paths, str) else list(paths)


@dataclass(frozen=True, kw_only=True)
class DataSection:
    """Parallel text: training data, or a set to translate and score."""

    source: str
    target: str | None = None
    references: Paths | None = None  # one or several translations of each line of the source
    alignment: Paths | None = None  # of training data; several count as so many bitexts

    @property
    def translations(self) -> list[str]:
        """What translations of the source are compared with."""
        return as_list(self.references) or as_list(self.target)

    @property
    def all_sides(self) -> list[str]:
        return [self.source, *self.translations]


@dataclass(frozen=True, kw_only=True)
class PrepSection(PrepConfig):
    """All data are raw text, to be made into words first. Pairs are dropped of the training data alone."""

    source_language: str | None = None  # needed unless tokenize is off
    target_language: str | None = None

    def __post_init__(self) -> None:
        for name in ("source_language", "target_language"):
            if getattr(self, name) is None and (self.tokenize or self.normalize_punctuation):
                raise ConfigError(f"found no {name}, expected one, such as de")
        for name in ("min_words", "max_words", "max_ratio"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected 0 or more")


@dataclass(frozen=True, kw_only=True)
class GrammarSection(GrammarFormat):
    """One grammar: a file, a compiled directory, an index, or where files of ``<seg grammar=…>`` are."""

    path: str | None = None
    index: str | None = None  # a bitext index, where ``path`` would do as well; train: made of data.train
    per_sentence: str | None = None
    extract: ExtractConfig = field(default_factory=ExtractConfig)  # from an index
    # What hiero run writes of the rules in an index before it translates: nothing, so that they are extracted
    # as they are needed; one grammar of the whole bitext; or one grammar for each sentence to translate.
    write: Literal["nothing", "whole", "per_sentence"] = "nothing"


@dataclass(frozen=True, kw_only=True)
class LanguageModelSection:
    """A language model: one there is, or one to be estimated."""

    path: str | None = None
    name: str = "LanguageModel"  # of its feature; NAME_OOV counts the words it does not know
    estimate: str | None = None  # from this text; train: from the target side of data.train
    order: int = 5
    prune: list[int] = field(default_factory=list)  # as --prune of hiero lm estimate
    discount_fallback: bool | list[float] = False  # as --discount-fallback; true: its own values
    vocabulary: str | None = None  # file with the words of the model
    skip_symbols: bool = False
    memory: int = 0  # MB for n-grams; 0: a quarter of the machine's
    format: Literal["compiled", "arpa"] = "compiled"  # what is written

    @property
    def discounts(self) -> tuple[float, ...] | None:
        given = self.discount_fallback
        if isinstance(given, bool):
            return FALLBACK if given else None
        return tuple(given) or FALLBACK


@dataclass(frozen=True, kw_only=True)
class FeaturesSection:
    templates: list[str] = field(default_factory=list)
    bins: str | None = None  # a file of bins, as hiero bins learn makes it
    # Dense features of the grammars turned back into what their logarithms are of, or left out.
    transform: dict[str, Literal["probability", "count", "drop"]] = field(default_factory=dict)
    reordering: Paths | None = None  # orientation models of hiero reorder train: one, or one of each kind
    cdec_names: bool = False  # write names as cdec spells them, also where two features then share one

    def __post_init__(self) -> None:
        if WORDS in self.transform:
            found = f"transform: found {WORDS}, which is of no grammar"
            raise ConfigError(f"{found}, expected columns of grammars (it can be put into bins)")


@dataclass(frozen=True, kw_only=True)
class GridSection:
    """Settings to be tried out in all combinations; odd lines of the held-out set choose."""

    # of bins, for all features
    bits: list[int] = field(default_factory=list)
    overlap: list[int] = field(default_factory=list)
    # of tune
    neighbours: list[Pull] = field(default_factory=list)
    beta: list[float] = field(default_factory=list)
    gamma: list[float] = field(default_factory=list)
    l1: list[float] = field(default_factory=list)
    l2: list[float] = field(default_factory=list)
    l2_previous: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    c: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not any(getattr(self, key) for key in self.__dataclass_fields__):
            raise ConfigError(
                f"found nothing to try out, expected values of {', '.join(self.__dataclass_fields__)}"
            )


@dataclass(frozen=True, kw_only=True)
class WeightsSection:
    path: str


@dataclass(frozen=True, kw_only=True)
class ReorderSection(ExampleConfig, LearnConfig):
    """An orientation model, to be learnt from data.train and its alignment."""

    held_out_every: int = 0  # one sentence pair in so many is not learnt from, but evaluated on; 0: none

    def __post_init__(self) -> None:
        ExampleConfig.__post_init__(self)
        LearnConfig.__post_init__(self)
        if self.held_out_every < 0 or self.held_out_every == 1:
            raise ConfigError(f"held_out_every: found {self.held_out_every}, expected 0, or 2 or more")


@dataclass(frozen=True, kw_only=True)
class EvalSection(EvalConfig):
    """How to score the translations of all sets that have references."""

    # Translations by other systems, by name and set, which ours are compared with: a file, or one of each of
    # several tuning runs.
    against: dict[str, dict[str, Paths]] = field(default_factory=dict)


def check_data(data: dict[str, DataSection], where: str) -> None:
    """What types cannot say of ``data``."""
    for name, section in data.items():
        place = f"{where}: data: {name}"
        if not SET_NAME.fullmatch(name):
            raise ConfigError(f"{place}: found {show(name)}, expected a name of letters and digits, . _ -")
        if section.target is not None and section.references is not None:
            raise ConfigError(f"{place}: found target and references, expected one of them")
        if name == TRAIN and section.references is not None:
            raise ConfigError(f"{place}: found references, expected target")
        if name == TRAIN and section.target is None:
            raise ConfigError(f"{place}: found no target, expected one")
        if name != TRAIN and section.alignment is not None:
            raise ConfigError(f"{place}: found alignment, which only {TRAIN} has")
        if section.references is not None and not section.translations:
            raise ConfigError(f"{place}: references: found none, expected a file or several")
