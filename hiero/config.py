"""The configuration: YAML in sections, each read into a typed record; ``load`` makes a model of it.

Unknown keys are errors that name the nearest one. Paths in a file are relative to the file.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from hiero import bundled
from hiero.decode import Model
from hiero.errors import ConfigError, FormatError, did_you_mean
from hiero.featureset import Feature, feature_set
from hiero.formats.text import read_lines
from hiero.formats.weights import read_weights
from hiero.grammar import GrammarSource
from hiero.language import load_language_models
from hiero.rulesource import GrammarFormat, PerSentence, RuleList, open_grammar
from hiero.searchconfig import SearchConfig
from hiero.symbols import Symbols
from hiero.weights import Weights

Record = TypeVar("Record")


@dataclass(frozen=True, kw_only=True)
class GrammarSection(GrammarFormat):
    """One grammar: a file or compiled directory, or where the files named in ``<seg grammar=…>`` are."""

    path: str | None = None
    per_sentence: str | None = None


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


def read_config(path: str | Path) -> Config:
    """Read a YAML file."""
    path = Path(path)
    text = b"\n".join(read_lines(path, "a configuration in YAML"))
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "a mistake")
        raise FormatError(path, mark.line + 1 if mark else 0, found=problem, expected="YAML") from None
    return config_of({} if content is None else content, str(path), path.parent)


def config_of(content: Any, where: str = "config", base: Path = Path()) -> Config:
    """Check nested mappings and make a configuration of them; paths are taken relative to ``base``."""
    if not isinstance(content, Mapping):
        raise ConfigError(f"{where}: found {content!r}, expected sections such as grammar, lm and weights")
    config = record(Config, content, where)
    return dataclasses.replace(
        config,
        grammar=[
            dataclasses.replace(
                section, path=_based(base, section.path), per_sentence=_based(base, section.per_sentence)
            )
            for section in config.grammar
        ],
        lm=[dataclasses.replace(section, path=_based(base, section.path)) for section in config.lm],
        weights=config.weights and WeightsSection(path=str(base / config.weights.path)),
    )


def record(kind: type[Record], content: Any, where: str) -> Record:
    """A typed record of what a file says; a wrong key or value is one line that says where."""
    _check_keys(kind, content, where)
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        key = place.strip("`").lstrip(".").replace(".", ": ")
        raise ConfigError(
            f"{where}: {key + ': ' if key else ''}{message[:1].lower() + message[1:]}"
        ) from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_keys(kind: Any, content: Any, where: str) -> None:
    if dataclasses.is_dataclass(kind) and isinstance(content, Mapping):
        fields = {f.name: f for f in dataclasses.fields(kind)}
        types = _types_of(kind)
        for key, value in content.items():
            if key not in fields:
                raise ConfigError(f"{where}: unknown key {key!r}; {did_you_mean(str(key), fields)}")
            for inner in types[key]:
                _check_keys(inner, value, f"{where}: {key}")
    elif isinstance(content, list):
        for number, item in enumerate(content, 1):
            _check_keys(kind, item, f"{where}: entry {number}")


def _types_of(kind: Any) -> dict[str, list[Any]]:
    """The record types that each field of a record may hold, by itself or in a list."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.DataclassType)
    return {f.name: _records_in(f.type) for f in info.fields}


def _records_in(info: msgspec.inspect.Type) -> list[Any]:
    if isinstance(info, msgspec.inspect.DataclassType):
        return [info.cls]
    if isinstance(info, msgspec.inspect.ListType):
        return _records_in(info.item_type)
    if isinstance(info, msgspec.inspect.UnionType):
        return [found for member in info.types for found in _records_in(member)]
    return []


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
        _check_keys(SearchConfig, search, "search")
        settings = dataclasses.replace(settings, search=record(SearchConfig, known | search, "search"))
    if settings.is_bundled and not rules and weights is None:
        ours = bundled_config()
        settings = dataclasses.replace(settings, grammar=ours.grammar, lm=ours.lm, weights=ours.weights)
    return _model(settings, rules, features, weights, Path(base))


def _model(
    config: Config,
    rules: Sequence[str],
    features: Sequence[str | Feature] | None,
    weights: str | Path | Mapping[str, float] | None,
    base: Path,
) -> Model:
    symbols = Symbols()
    limit = config.search.span_limit
    sources: list[GrammarSource] = []
    own_base = False
    for number, section in enumerate(config.grammar, 1):
        if (section.path is None) == (section.per_sentence is None):
            raise ConfigError(f"grammar: entry {number}: expected either path or per_sentence")
        if section.path is not None:
            sources.append(open_grammar(section.path, symbols, limit, section))
        else:
            own_base = True
            sources.append(PerSentence(symbols, str(section.per_sentence), limit, section))
    if rules:
        sources.append(RuleList(symbols, list(rules), limit))
    if not own_base:
        sources.append(PerSentence(symbols, base, limit))
    names = [section.name for section in config.lm]
    if len(set(names)) < len(names):
        raise ConfigError("lm: two language models have the same name (give each one: NAME=PATH)")
    models = load_language_models([(section.name, Path(section.path)) for section in config.lm])
    if isinstance(weights, Mapping):
        given = Weights(symbols, weights)
    elif config.weights is not None:
        given = read_weights(config.weights.path, symbols)
    else:
        given = Weights(symbols)
        print("hiero: no weights are given: every translation scores 0", file=sys.stderr)
    chosen = feature_set(config.features.templates if features is None else features, symbols)
    return Model(symbols, sources, models, given, chosen, config.search)
