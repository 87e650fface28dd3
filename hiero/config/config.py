"""The configuration: YAML in sections, each read into a typed record; ``load`` makes a model of it.

Unknown keys are errors that name the nearest one. Paths in a file are relative to the file. ``load`` and
``hiero decode`` use the sections of a model, ``hiero run`` all of them (see ``pipeline``).
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiero.alignment.config import AlignConfig
from hiero.bins.binned import check_features, check_weights
from hiero.bins.bins import FeatureBins
from hiero.bins.config import BinsConfig
from hiero.bins.file import read_bins
from hiero.config import load as bundled
from hiero.config.sections import (
    TRAIN,
    DataSection,
    EvalSection,
    FeaturesSection,
    GrammarSection,
    GridSection,
    LanguageModelSection,
    PrepSection,
    ReorderSection,
    WeightsSection,
    as_list,
    check_data,
)
from hiero.core.errors import ConfigError, FormatError, show
from hiero.core.records import record
from hiero.core.settings import read_settings
from hiero.core.symbols import Symbols
from hiero.decoder.config import SearchConfig
from hiero.decoder.model import Model
from hiero.extraction.config import ExtractConfig
from hiero.extraction.extractor import IndexSource
from hiero.extraction.index import is_index
from hiero.features.feature_set import Feature, feature_set
from hiero.features.weights import Weights
from hiero.features.weights_part import read_weights
from hiero.grammar.rules import GrammarSource
from hiero.grammar.sources import PerSentence, RuleList, open_grammar
from hiero.learning.config import STARTS, TuneConfig
from hiero.lm.load import load_language_models
from hiero.reordering.feature import open_reorderings


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole configuration. The default is the bundled model."""

    seed: int = 1  # of all random choices
    data: dict[str, DataSection] = field(default_factory=dict)
    prep: PrepSection | None = None
    align: AlignConfig | None = None
    grammar: list[GrammarSection] = field(default_factory=list)
    lm: list[LanguageModelSection] = field(default_factory=list)
    weights: WeightsSection | None = None
    features: FeaturesSection = field(default_factory=FeaturesSection)
    bins: BinsConfig | None = None
    reorder: ReorderSection | None = None
    search: SearchConfig = field(default_factory=SearchConfig)
    tune: TuneConfig | None = None
    grid: GridSection | None = None
    eval: EvalSection = field(default_factory=EvalSection)

    @property
    def is_bundled(self) -> bool:
        """Whether no part of a model is named, which stands for the bundled model."""
        return not self.grammar and not self.lm and self.weights is None

    @property
    def indexes(self) -> list[str]:
        """The bitext indexes among the grammars."""
        named = ((section.index, section.path) for section in self.grammar)
        return [str(index or path) for index, path in named if index is not None or (path and is_index(path))]

    @property
    def model_files(self) -> list[str]:
        """The files and directories that the model is loaded from."""
        named = [section.path or section.index for section in self.grammar]
        grammars = [path for path in named if path is not None and path != TRAIN]
        weights = [self.weights.path] if self.weights is not None else []
        models = [section.path for section in self.lm if section.path is not None]
        bins = [self.features.bins] if self.features.bins is not None else []
        return [*grammars, *models, *weights, *bins, *as_list(self.features.reordering)]


def read_config(path: str | Path) -> Config:
    """Read a YAML file."""
    content = read_settings(path)
    return config_of({} if content is None else content, str(path), Path(path).parent)


def config_of(content: Any, where: str = "config", base: Path = Path()) -> Config:
    """Check nested mappings and make a configuration of them; paths are relative to ``base``."""
    config = record(Config, content, where)
    check_data(config.data, where)
    evaluation = config.eval
    if "seed" not in (content.get("eval") or {}):
        evaluation = dataclasses.replace(evaluation, seed=config.seed)

    def based(path: Any) -> Any:
        """Resolve a path, a list of paths, or None."""
        if isinstance(path, list):
            return [based(one) for one in path]
        return None if path is None else os.path.normpath(base / path)

    def unless_train(path: str | None) -> Any:
        return path if path == TRAIN else based(path)

    def start_of(name: str) -> Any:
        return name if name in STARTS else based(name)

    return dataclasses.replace(
        config,
        data={
            name: DataSection(
                **{key.name: based(getattr(section, key.name)) for key in dataclasses.fields(section)}
            )
            for name, section in config.data.items()
        },
        grammar=[
            dataclasses.replace(
                section,
                path=based(section.path),
                index=unless_train(section.index),
                per_sentence=based(section.per_sentence),
                extract=dataclasses.replace(section.extract, store=based(section.extract.store)),
            )
            for section in config.grammar
        ],
        lm=[
            dataclasses.replace(
                section,
                path=based(section.path),
                estimate=unless_train(section.estimate),
                vocabulary=based(section.vocabulary),
            )
            for section in config.lm
        ],
        weights=config.weights and WeightsSection(path=based(config.weights.path)),
        features=dataclasses.replace(
            config.features,
            bins=based(config.features.bins),
            reordering=based(config.features.reordering),
        ),
        tune=config.tune and dataclasses.replace(config.tune, start=start_of(config.tune.start)),
        eval=dataclasses.replace(
            evaluation,
            against={
                system: {name: based(paths) for name, paths in sets.items()}
                for system, sets in evaluation.against.items()
            },
        ),
    )


def bundled_config() -> Config:
    """The bundled German-English model."""
    return Config(
        grammar=[GrammarSection(path=str(bundled.path(bundled.GRAMMAR)))],
        lm=[LanguageModelSection(path=str(bundled.path(bundled.LM)))],
        weights=WeightsSection(path=str(bundled.path(bundled.WEIGHTS))),
    )


def load(
    config: str | Path | Mapping[str, Any] | Config | None = None,
    *,
    grammar: str | Path | Sequence[str | Path] = (),
    lm: str | Path | Mapping[str, str | Path] | None = None,
    weights: str | Path | Mapping[str, float] | None = None,
    rules: Sequence[str] = (),
    features: Sequence[str | Feature] | None = None,
    bins: str | Path | None = None,
    base: str | Path = ".",
    **search: Any,
) -> Model:
    """Make a model of a configuration, of its parts, or of both, where the parts take precedence.

    config    path of a YAML file, or its content; without any argument, the bundled model is loaded
    grammar   one or more files or compiled directories
    lm        a file or compiled directory, or several by the names of their features
    weights   a file, or names and numbers
    rules     rules of a grammar in cdec's text form
    features  names as in ``--features``, or feature functions of your own
    bins      a file of bins that replace dense features
    base      directory of relative paths in ``<seg grammar=…>``
    search    keys of ``SearchConfig``

    >>> import hiero
    >>> model = hiero.load(
    ...     rules=["[X] ||| das haus ||| the house ||| p=1", "[X] ||| [X,1] ist alt ||| [1] is old ||| p=1"],
    ...     weights={"p": -1.0, "PassThrough": -2.0},
    ... )
    >>> model.translate("das haus ist alt").text
    'the house is old'
    """
    if isinstance(config, str | Path):
        settings = read_config(config)
    elif isinstance(config, Config):
        settings = config
    else:
        settings = config_of({} if config is None else config)
    if isinstance(grammar, str | Path):
        grammar = [grammar]
    if grammar:
        settings = dataclasses.replace(settings, grammar=[GrammarSection(path=str(path)) for path in grammar])
    if lm is not None:
        named = {"LanguageModel": lm} if isinstance(lm, str | Path) else dict(lm)
        sections = [LanguageModelSection(path=str(path), name=name) for name, path in named.items()]
        settings = dataclasses.replace(settings, lm=sections)
    if isinstance(weights, str | Path):
        settings = dataclasses.replace(settings, weights=WeightsSection(path=str(weights)))
    if bins is not None:
        section = dataclasses.replace(settings.features, bins=str(bins))
        settings = dataclasses.replace(settings, features=section)
    if search:
        known = dataclasses.asdict(settings.search)
        settings = dataclasses.replace(settings, search=record(SearchConfig, known | search, "search"))
    if settings.is_bundled and not rules and weights is None:
        settings = with_bundled(settings)
    if settings.weights is None and weights is None:
        warnings.warn(NO_WEIGHTS, stacklevel=2)
    given = weights if isinstance(weights, Mapping) else None
    return make_model(settings, base=base, rules=rules, features=features, weights=given)


MADE_BY_RUN = "for files made by hiero run, use the model.yaml in its directory"
NO_WEIGHTS = "no weights given: every translation scores 0"


def with_bundled(config: Config) -> Config:
    """The same configuration with the bundled model."""
    model = bundled_config()
    return dataclasses.replace(config, grammar=model.grammar, lm=model.lm, weights=model.weights)


def make_model(
    config: Config,
    *,
    base: str | Path = ".",
    rules: Sequence[str] = (),
    features: Sequence[str | Feature] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Model:
    """Make a model of a configuration; see ``load``."""
    if config.bins is not None and config.features.bins is None:
        raise ConfigError(f"bins: needs features: bins, the path of a bins file ({MADE_BY_RUN})")
    symbols = Symbols()
    sources = open_sources(config, symbols, base=base, rules=rules)
    _check_names([section.name for section in config.lm])
    for number, model in enumerate(config.lm, 1):
        if model.path is None:
            raise ConfigError(f"lm: entry {number}: path is missing ({MADE_BY_RUN})")
    models = load_language_models([(section.name, Path(str(section.path))) for section in config.lm])
    if weights is not None:
        given = Weights(symbols, weights)
    elif config.weights is not None:
        given = read_weights(config.weights.path, symbols)
    else:
        given = Weights(symbols)
    if config.reorder is not None and not config.features.reordering:
        raise ConfigError(f"reorder: needs features: reordering, the path of a model ({MADE_BY_RUN})")
    reordering = open_reorderings(as_list(config.features.reordering), symbols, sources)
    names = config.features.templates if features is None else features
    chosen = feature_set([*names, *reordering], symbols)
    bins = transforms(config.features)
    # Grammars of sentences are optional where the configuration has no per_sentence.
    per_sentence = any(section.per_sentence is not None for section in config.grammar)
    check_features(bins, sources if per_sentence else sources[:-1], symbols)
    check_weights(bins, sources, symbols, given, "weights" if config.weights is None else config.weights.path)
    chosen = dataclasses.replace(chosen, bins=bins)
    return Model(symbols, sources, models, given, chosen, config.search)


def open_sources(
    config: Config, symbols: Symbols, *, base: str | Path = ".", rules: Sequence[str] = ()
) -> list[GrammarSource]:
    """The grammars of a configuration, in its order, then ``rules`` and the grammars of sentences."""
    limit = config.search.span_limit
    sources: list[GrammarSource] = []
    has_per_sentence = False
    for number, section in enumerate(config.grammar, 1):
        if (section.path, section.index, section.per_sentence).count(None) != 2:
            raise ConfigError(f"grammar: entry {number}: needs exactly one of path, index and per_sentence")
        if section.index == TRAIN:
            expected = f"expected its path ({MADE_BY_RUN})"
            raise ConfigError(f"grammar: entry {number}: found index: {TRAIN}, {expected}")
        if section.index is not None or is_index(section.path):
            path = section.index or section.path
            sources.append(IndexSource.open(str(path), symbols, section.extract))
        elif section.extract != ExtractConfig():
            raise ConfigError(f"grammar: entry {number}: extract needs an index, not a grammar")
        elif section.path is not None:
            sources.append(open_grammar(section.path, symbols, limit, section))
        else:
            has_per_sentence = True
            sources.append(PerSentence(symbols, _directory(section.per_sentence), limit, section))
    if rules:
        sources.append(RuleList(symbols, list(rules), limit))
    if not has_per_sentence:
        sources.append(PerSentence(symbols, base, limit))
    return sources


def transforms(section: FeaturesSection) -> tuple[FeatureBins, ...]:
    """The bins and transforms of the grammars' dense features."""
    bins = read_bins(section.bins) if section.bins is not None else []
    for feature, to in section.transform.items():
        if any(one.feature == feature for one in bins):
            place = f"features: transform: {feature}"
            raise ConfigError(f"{place}: already in {section.bins}, and a feature can only be in one of them")
        if to == "drop":
            bins.append(FeatureBins(feature=feature))
        else:
            bins.append(FeatureBins(feature=feature, of=to, keep=True))
    return tuple(bins)


def _directory(path: str | None) -> Path:
    if not Path(str(path)).is_dir():
        raise FormatError(str(path), 0, found="no such directory", expected="one with grammars")
    return Path(str(path))


def _check_names(names: Sequence[str]) -> None:
    """Check names of language models, which are feature names: files end them at spaces and ``=``."""
    for name in names:
        if not name or set(name) & set(" \t\r\n="):
            raise ConfigError(f"lm: found the name {show(name)}, expected one without spaces and =")
    if len(set(names)) < len(names):
        raise ConfigError("lm: two language models have the same name (NAME=PATH gives each its own)")
