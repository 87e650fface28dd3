"""The configuration: YAML in sections, each read into a typed record; ``load`` makes a model of it.

Unknown keys are errors that name the nearest one. Paths in a file are relative to the file.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiero import bundled
from hiero.bitext.extract import IndexSource
from hiero.bitext.index import is_index
from hiero.bitext.limits import ExtractConfig
from hiero.decode import Model
from hiero.errors import ConfigError, FormatError, show
from hiero.featureset import Feature, feature_set
from hiero.formats.settings import read_settings
from hiero.formats.weights import read_weights
from hiero.grammar import GrammarSource
from hiero.grammarformat import GrammarFormat
from hiero.language import load_language_models
from hiero.records import record
from hiero.rulesource import PerSentence, RuleList, open_grammar
from hiero.searchconfig import SearchConfig
from hiero.symbols import Symbols
from hiero.weights import Weights


@dataclass(frozen=True, kw_only=True)
class GrammarSection(GrammarFormat):
    """One grammar: a file, a compiled directory, an index, or where files of ``<seg grammar=…>`` are."""

    path: str | None = None
    index: str | None = None  # a bitext index, where ``path`` would do as well
    per_sentence: str | None = None
    extract: ExtractConfig = field(default_factory=ExtractConfig)  # from an index


@dataclass(frozen=True, kw_only=True)
class LanguageModelSection:
    path: str
    name: str = "LanguageModel"  # of its feature; NAME_OOV counts the words it does not know


@dataclass(frozen=True, kw_only=True)
class FeaturesSection:
    templates: list[str] = field(default_factory=list)
    cdec_names: bool = False  # write names as cdec spells them, also where two features then share one


@dataclass(frozen=True, kw_only=True)
class WeightsSection:
    path: str


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole configuration. The default is the model that comes with the package."""

    grammar: list[GrammarSection] = field(default_factory=list)
    lm: list[LanguageModelSection] = field(default_factory=list)
    weights: WeightsSection | None = None
    features: FeaturesSection = field(default_factory=FeaturesSection)
    search: SearchConfig = field(default_factory=SearchConfig)

    @property
    def is_bundled(self) -> bool:
        """Whether no part of a model is named, which means ours."""
        return not self.grammar and not self.lm and self.weights is None

    @property
    def model_files(self) -> list[str]:
        """The files and directories that the model is loaded from."""
        named = [section.path or section.index for section in self.grammar]
        grammars = [path for path in named if path is not None]
        weights = [self.weights.path] if self.weights is not None else []
        return [*grammars, *(section.path for section in self.lm), *weights]


def read_config(path: str | Path) -> Config:
    """Read a YAML file."""
    content = read_settings(path)
    return config_of({} if content is None else content, str(path), Path(path).parent)


def config_of(content: Any, where: str = "config", base: Path = Path()) -> Config:
    """Check nested mappings and make a configuration of them; paths are taken relative to ``base``."""
    config = record(Config, content, where)
    return dataclasses.replace(
        config,
        grammar=[
            dataclasses.replace(
                section,
                path=_based(base, section.path),
                index=_based(base, section.index),
                per_sentence=_based(base, section.per_sentence),
                extract=dataclasses.replace(section.extract, store=_based(base, section.extract.store)),
            )
            for section in config.grammar
        ],
        lm=[dataclasses.replace(section, path=_based(base, section.path)) for section in config.lm],
        weights=config.weights and WeightsSection(path=str(base / config.weights.path)),
    )


def _based(base: Path, path: Any) -> Any:
    return None if path is None else str(base / path)


def bundled_config() -> Config:
    """The German-English model that comes with the package."""
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
    base: str | Path = ".",
    **search: Any,
) -> Model:
    """Make a model of a configuration, of its parts, or of both, where the parts win.

    config    path of a YAML file, or its content; nothing at all stands for the model in the package
    grammar   one or more files or compiled directories
    lm        a file or compiled directory, or several by the names of their features
    weights   a file, or names and numbers
    rules     rules of a grammar in cdec's text form
    features  names as in ``--features``, or features of one's own
    base      what paths in ``<seg grammar=…>`` are relative to
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
    if search:
        known = dataclasses.asdict(settings.search)
        settings = dataclasses.replace(settings, search=record(SearchConfig, known | search, "search"))
    if settings.is_bundled and not rules and weights is None:
        settings = with_bundled(settings)
    if settings.weights is None and weights is None:
        warnings.warn(NO_WEIGHTS, stacklevel=2)
    given = weights if isinstance(weights, Mapping) else None
    return make_model(settings, base=base, rules=rules, features=features, weights=given)


NO_WEIGHTS = "no weights are given: every translation scores 0"


def with_bundled(config: Config) -> Config:
    """The same with the model that comes with the package."""
    ours = bundled_config()
    return dataclasses.replace(config, grammar=ours.grammar, lm=ours.lm, weights=ours.weights)


def make_model(
    config: Config,
    *,
    base: str | Path = ".",
    rules: Sequence[str] = (),
    features: Sequence[str | Feature] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Model:
    """What ``load`` does once it knows the configuration."""
    symbols = Symbols()
    limit = config.search.span_limit
    sources: list[GrammarSource] = []
    own_base = False
    for number, section in enumerate(config.grammar, 1):
        if (section.path, section.index, section.per_sentence).count(None) != 2:
            raise ConfigError(f"grammar: entry {number}: expected either path, index or per_sentence")
        if section.index is not None or is_index(section.path):
            path = section.index or section.path
            sources.append(IndexSource.open(str(path), symbols, section.extract))
        elif section.extract != ExtractConfig():
            raise ConfigError(f"grammar: entry {number}: expected extract with an index, and this is none")
        elif section.path is not None:
            sources.append(open_grammar(section.path, symbols, limit, section))
        else:
            own_base = True
            sources.append(PerSentence(symbols, _directory(section.per_sentence), limit, section))
    if rules:
        sources.append(RuleList(symbols, list(rules), limit))
    if not own_base:
        sources.append(PerSentence(symbols, base, limit))
    _check_names([section.name for section in config.lm])
    models = load_language_models([(section.name, Path(section.path)) for section in config.lm])
    if weights is not None:
        given = Weights(symbols, weights)
    elif config.weights is not None:
        given = read_weights(config.weights.path, symbols)
    else:
        given = Weights(symbols)
    chosen = feature_set(config.features.templates if features is None else features, symbols)
    return Model(symbols, sources, models, given, chosen, config.search)


def _directory(path: str | None) -> Path:
    if not Path(str(path)).is_dir():
        raise FormatError(str(path), 0, found="no such directory", expected="one with grammars")
    return Path(str(path))


def _check_names(names: Sequence[str]) -> None:
    """Names of language models are names of features: in files, spaces and ``=`` end them."""
    for name in names:
        if not name or set(name) & set(" \t\r\n="):
            raise ConfigError(f"lm: found the name {show(name)}, expected one without spaces and =")
    if len(set(names)) < len(names):
        raise ConfigError("lm: found two language models of one name (give each its own: NAME=PATH)")
