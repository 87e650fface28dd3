"""Models from configurations, and the bundled model.

Its files are in ``grammars/`` at the top of the project and in ``hiero/grammars/`` of a wheel.
``grammars/make_demo`` describes how they were made.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiero.bins.bins import Binned, FeatureBins, check_features, check_weights
from hiero.bins.file import read_bins
from hiero.config.config import Config, check_entries, check_made, config_from
from hiero.config.sections import (
    FeaturesSection,
    GrammarSection,
    LanguageModelSection,
    WeightsSection,
    as_list,
    with_classes,
)
from hiero.core.errors import ConfigError, FormatError, HieroError, HieroWarning, did_you_mean, show
from hiero.core.given import GivenTerm
from hiero.core.records import hints_of, is_path_key, record
from hiero.core.symbols import Symbols
from hiero.core.text import Segment, shipped_folder
from hiero.decoder.config import ConsensusConfig, SearchConfig
from hiero.decoder.model import Model
from hiero.extraction.config import ExtractConfig
from hiero.features.feature_set import Feature, Mismatch, compare_weights, feature_set
from hiero.features.weights import Weights, read_weights
from hiero.grammar.config import GrammarFormat
from hiero.grammar.rules import GrammarSource
from hiero.grammar.sources import PerSentence, RuleList, StaticGrammar, open_grammar
from hiero.lm.load import load_language_models, model_files

if TYPE_CHECKING:
    from hiero.extraction.index import BitextIndex

# Indexes and orientation models are imported where there are some: their kernels take a while to load.

BUNDLED_GRAMMAR, BUNDLED_LM, BUNDLED_WEIGHTS = "demo.grammar.gz", "demo.lm.arpa.gz", "demo.weights"


def bundled_names() -> list[str]:
    """The names of all bundled files."""
    return sorted(file.name for file in shipped_folder("grammars").glob("demo.*"))


def bundled_path(name: str) -> Path:
    """The path of a bundled file, such as ``demo.grammar.gz``."""
    folder, names = shipped_folder("grammars"), bundled_names()
    if name not in names:
        raise HieroError(f"there is no bundled file {name!r} in {folder}: {did_you_mean(name, names)}")
    return folder / name


def bundled_config() -> Config:
    """The bundled German-English model."""
    return Config(
        grammar=[GrammarSection(path=str(bundled_path(BUNDLED_GRAMMAR)))],
        lm=[LanguageModelSection(path=str(bundled_path(BUNDLED_LM)))],
        weights=WeightsSection(path=str(bundled_path(BUNDLED_WEIGHTS))),
    )


def load(
    config: str | Path | Mapping[str, Any] | Config | None = None,
    *,
    grammar: str | Path | Sequence[str | Path] = (),
    lm: str | Path | Mapping[str, str | Path] | None = None,
    classes: Mapping[str, str | Path] | None = None,
    weights: str | Path | Mapping[str, float] | None = None,
    rules: str | Sequence[str] = (),
    features: str | Feature | Sequence[str | Feature] | None = None,
    bins: str | Path | None = None,
    terms: str | Path | Sequence[GivenTerm] | None = None,
    hard_terms: bool = False,
    base: str | Path = ".",
    allow_grammar_paths: bool = False,
    strict: bool | None = None,
    **search: Any,
) -> Model:
    """Make a model of a configuration, of its parts, or of both, where the parts take precedence.

    config    path of a YAML file, or its content; without any argument, the bundled model is loaded
    grammar   one or more files or compiled directories
    lm        a file or compiled directory, or several by the names of their features
    classes   files with the classes of words, by the names of language models of classes
    weights   a file, or names and numbers
    rules     one or more rules of a grammar in cdec's text form
    features  one or more names as in ``--features``, or feature functions of your own
    bins      a file of bins that replace dense features
    terms     a file of terms, or pairs of source words and their translation, perhaps with a weight
    hard_terms  whether these are the only translations of the terms
    base      directory of the paths in ``<seg grammar=…>``
    allow_grammar_paths  permit paths outside it
    strict    whether weights that do not fit the model are an error; by default a ``HieroWarning``
    search    keys of ``SearchConfig``

    >>> import hiero
    >>> model = hiero.load(
    ...     rules=["[X] ||| das haus ||| the house ||| p=1", "[X] ||| [X,1] ist alt ||| [1] is old ||| p=1"],
    ...     weights={"p": -1.0, "PassThrough": -2.0},
    ... )
    >>> model.translate("das haus ist alt").text
    'the house is old'
    """
    settings = config_from({} if config is None else config)
    if isinstance(grammar, str | Path):
        grammar = [grammar]
    if grammar:
        settings = dataclasses.replace(settings, grammar=[GrammarSection(path=str(path)) for path in grammar])
    if lm is not None:
        named = {"LanguageModel": lm} if isinstance(lm, str | Path) else dict(lm)
        sections = [LanguageModelSection(path=str(path), name=name) for name, path in named.items()]
        settings = dataclasses.replace(settings, lm=sections)
    if classes is not None:
        given_classes = {name: str(path) for name, path in classes.items()}
        settings = dataclasses.replace(settings, lm=with_classes(settings.lm, given_classes))
    if isinstance(weights, str | Path):
        settings = dataclasses.replace(settings, weights=WeightsSection(path=str(weights)))
    if bins is not None:
        section = dataclasses.replace(settings.features, bins=str(bins))
        settings = dataclasses.replace(settings, features=section)
    if isinstance(rules, str):
        rules = [rules]
    if features is not None and (isinstance(features, str) or not isinstance(features, Sequence)):
        features = [features]
    if weights is not None and not isinstance(weights, str | Path | Mapping):
        raise ConfigError(f"weights: found {weights!r}, expected a path, or names and numbers")
    if search:
        known = dataclasses.asdict(settings.search)
        for key in search.keys() - known.keys():
            arguments = [*inspect.signature(load).parameters][:-1]
            raise ConfigError(f"load: unknown argument {key!r}; {did_you_mean(key, [*arguments, *known])}")
        settings = dataclasses.replace(settings, search=record(SearchConfig, known | search, "search"))
    if settings.is_bundled and not rules and weights is None:
        settings = with_bundled(settings)
    given = weights if isinstance(weights, Mapping) else None
    if terms is not None:
        path = str(terms) if isinstance(terms, str | Path) else None
        settings = dataclasses.replace(settings, terms=path, hard_terms=hard_terms and path is not None)
    elif hard_terms:
        settings = dataclasses.replace(settings, hard_terms=True)
    model = make_model(
        settings,
        base=base,
        rules=rules,
        features=features,
        weights=given,
        allow_grammar_paths=allow_grammar_paths,
    )
    if terms is not None and settings.terms is None:
        model = model.with_terms(terms, hard=hard_terms)
    all_read = not settings.grammar_folders and bool(settings.grammar or rules)
    check = WeightsCheck(
        "weights" if settings.weights is None or given is not None else settings.weights.path,
        strict=settings.strict if strict is None else strict,
        report=functools.partial(warnings.warn, category=HieroWarning, stacklevel=4),
    )
    if settings.weights is None and weights is None:
        check.no_weights()
    else:
        plain = given is not None and not isinstance(given, Weights)
        check.compare(model, model.weights, all_read=all_read, has_zeros=plain or None)
    check.shared_names(model)
    model.check_weights = functools.partial(_check_replaced, all_read, check.strict)
    return model


def _check_replaced(all_read: bool, strict: bool, model: Model, weights: Weights, given: object) -> None:
    """Compare weights that replace those of ``load``; ``given`` are the same as names or a file."""
    path = str(given) if isinstance(given, str | Path) else "weights"
    # From the line of ``Model.with_weights``, or of the assignment.
    report = functools.partial(warnings.warn, category=HieroWarning, stacklevel=6)
    plain = not isinstance(given, str | Path | Weights)
    check = WeightsCheck(path, strict=strict, report=report)
    check.compare(model, weights, all_read=all_read, has_zeros=plain or None)


# Names of features without one, in grammars without an owner; not those of Joshua with an owner.
UNLABELLED = re.compile(r"PhraseModel_\d+|tm_pt_\d+")


def shared_names(model: Model) -> str:
    """A message if several grammars have unlabelled features under the same names, else nothing."""
    counts = Counter[str]()
    for source in model.sources:
        plain = source.source if isinstance(source, Binned) else source
        counts.update({model.symbols.names.text(name) for name in plain.dense_names()})
    shared = sorted(name for name, count in counts.items() if count > 1 and UNLABELLED.fullmatch(name))
    if not shared:
        return ""
    number = max(counts[name] for name in shared)
    more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
    hint = "owner: NAME, of a grammar in the configuration, gives each its own"
    names = f"{shared[0]}{more}"
    return f"{number} grammars have unlabelled features of the same names, {names}, and one weight ({hint})"


def left_out_rules(model: Model) -> str:
    """A message if rules cannot be applied, else nothing."""
    plain = [source.source if isinstance(source, Binned) else source for source in model.sources]
    number = sum(one.num_indivisible for one in plain if isinstance(one, StaticGrammar | PerSentence))
    if not number:
        return ""
    rules = (
        "1 rule with more than two gaps is"
        if number == 1
        else f"{number:,} rules with more than two gaps are"
    )
    hint = "their gaps change places in a way that is not one of neighbours; hiero grammar stats counts them"
    return f"{rules} left out ({hint})"


NO_WEIGHTS = "no weights given: every translation scores 0"


class WeightsCheck:
    """Compares weights with the features of a model; a mismatch is reported once, or is an error if strict.

    path  of the weights, for messages
    """

    def __init__(self, path: str, *, strict: bool, report: Callable[[str], None]) -> None:
        self.path, self.strict, self.report = path, strict, report
        self._known = Mismatch()
        self._told: set[str] = set()

    def shared_names(self, model: Model) -> None:
        """Report unlabelled features that have one weight for several grammars, which may be meant."""
        if problem := shared_names(model):
            self._tell(problem, strict=False)
        self.left_out(model)

    def left_out(self, model: Model) -> None:
        """Report rules that cannot be applied."""
        if problem := left_out_rules(model):
            self._tell(problem)

    def no_weights(self) -> None:
        """Report that there are no weights."""
        self._tell(NO_WEIGHTS)

    def compare(
        self,
        model: Model,
        weights: Weights,
        *,
        all_read: bool = True,
        has_zeros: bool | None = None,
        unread: Iterable[Segment] = (),
    ) -> None:
        """Report what does not fit, and was not reported before.

        all_read   whether all grammars of sentences have been read, so that all features are known
        has_zeros  whether weights of 0 are given as well; by default, unless hiero wrote them
        unread     the sentences whose grammars have not been read, although ``all_read``: they are read as
                   long as they may explain weights
        """
        self.left_out(model)
        zeros = not weights.exact if has_zeros is None else has_zeros

        def mismatch() -> Mismatch:
            features = model.known_features(all_read=all_read)
            return compare_weights(weights, features, has_zeros=zeros).without(self._known)

        found = mismatch()
        for number, segment in enumerate(unread):
            if number and not (found.unused or found.unasked):
                break  # dense features are those of the first grammar
            try:
                if not model.note_grammars(segment):
                    continue
            except HieroError:
                all_read = False
            found = mismatch()
            if not all_read:
                break
        if found:
            self._known = self._known.joined(found)
            self._tell(f"{self.path}: {found}")

    def _tell(self, problem: str, *, strict: bool = True) -> None:
        if self.strict and strict:
            raise ConfigError(problem)
        if problem not in self._told:
            self._told.add(problem)
            self.report(problem)


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
    index: Callable[[str], BitextIndex] | None = None,
    allow_grammar_paths: bool = False,
    spare_store: str | None = None,
) -> Model:
    """Make a model of a configuration; see ``load``, and ``open_model_sources`` for the other arguments."""
    check_made(config)
    check_terms(config)
    symbols = Symbols()
    sources = open_model_sources(
        config,
        symbols,
        base=base,
        rules=rules,
        index=index,
        allow_grammar_paths=allow_grammar_paths,
        spare_store=spare_store,
    )
    _check_names([section.name for section in config.lm])
    models = load_language_models([model_files(*section.files) for section in config.lm])
    given = _weights_of(config, symbols) if weights is None else Weights(symbols, weights)
    reordering: Sequence[Feature] = ()
    if paths := as_list(config.features.reordering):
        from hiero.reordering.feature import open_reorderings

        reordering = open_reorderings(paths, symbols, sources)
    names = config.features.templates if features is None else features
    # A configuration may come from others: its modules are not taken from the working directory.
    chosen = feature_set([*names, *reordering], symbols, here=features is not None)
    bins = model_bins(config.features)
    # Grammars of sentences are optional where the configuration has no per_sentence.
    check_features(bins, sources if config.grammar_folders else sources[:-1], symbols)
    _check_weights(config, bins, sources, given)
    # Without the weights, which are pickled themselves.
    plain = dataclasses.replace(config, weights=None)
    again = functools.partial(
        make_model,
        plain,
        base=base,
        rules=tuple(rules),
        features=features,
        allow_grammar_paths=allow_grammar_paths,
        spare_store=spare_store,
    )
    model = Model(symbols, sources, models, given, chosen, config.search, bins, again)
    if config.terms is not None:
        model = model.with_terms(config.terms, hard=config.hard_terms)
    return model


def check_terms(config: Config) -> None:
    """Refuse hard terms without any."""
    if config.hard_terms and config.terms is None:
        raise ConfigError("hard_terms: needs terms, the path of a file with terms and their translations")


def _weights_of(config: Config, symbols: Symbols) -> Weights:
    return Weights(symbols) if config.weights is None else read_weights(config.weights.path, symbols)


def _check_weights(
    config: Config, bins: Sequence[FeatureBins], sources: Sequence[GrammarSource], weights: Weights
) -> None:
    path = "weights" if config.weights is None else config.weights.path
    check_weights(bins, sources, weights.symbols, weights, path)


class OpenedFiles:
    """The model and the indexes of several pieces of work in one process, opened once.

    What was opened is used again for the same settings and the same content of its files only.

    digest  of the content of a file or directory
    """

    def __init__(self, digest: Callable[[Path], str]) -> None:
        self.digest = digest
        self.reported: set[str] = set()  # notes on the model, which are shown once
        self._indexes: dict[str, tuple[str, BitextIndex]] = {}
        self._model: tuple[str, Model] | None = None

    def index(self, path: str | Path) -> BitextIndex:
        """An open index."""
        digest, known = self.digest(Path(path)), self._indexes.get(str(path))
        if known is None or known[0] != digest:
            from hiero.extraction.index import open_index

            known = self._indexes[str(path)] = digest, open_index(path)
        return known[1]

    def model(self, config: Config, spare_store: str | None = None) -> Model:
        """The model of a configuration; all but the weights is shared with models of other weights.

        Also with those of other stores, on which no result depends.
        """
        plain = dataclasses.replace(config, weights=None)
        digests = {key: self.digest(path) for key, path in model_inputs(plain).items()}
        key = json.dumps([dataclasses.asdict(plain), digests])
        if self._model is None or self._model[0] != key:
            self._model = None  # before another is loaded: models are large
            self._model = key, make_model(plain, index=self.index, spare_store=spare_store)
            self._model[1].warm_up()
        model = self._model[1]
        weights = _weights_of(config, model.symbols)
        sources = [one.source if isinstance(one, Binned) else one for one in model.sources]
        _check_weights(config, model.bins, sources, weights)
        return model.with_weights(weights)


def _is_index(path: str | Path | None) -> bool:
    if path is None or not Path(path).is_dir():
        return False
    from hiero.extraction.index import is_index

    return is_index(path)


def open_model_sources(
    config: Config,
    symbols: Symbols,
    *,
    base: str | Path = ".",
    rules: Sequence[str] = (),
    index: Callable[[str], BitextIndex] | None = None,
    allow_grammar_paths: bool = False,
    spare_store: str | None = None,
) -> list[GrammarSource]:
    """The grammars of a configuration, in its order, then ``rules`` and the grammars of sentences.

    index        opens a bitext index, if not ``open_index``
    spare_store  directory of a store of rules, for each index without ``store``
    """
    check_entries(config)
    limit = config.search.span_limit
    sources: list[GrammarSource] = []
    has_per_sentence = False
    for number, section in enumerate(config.grammar, 1):
        if section.index is not None or _is_index(section.path):
            from hiero.extraction.extractor import IndexSource
            from hiero.extraction.index import open_index
            from hiero.extraction.target_counts import open_extractor

            opened = (index or open_index)(str(section.index or section.path))
            sources.append(IndexSource(open_extractor(opened, section.extract, spare_store), symbols))
        elif section.extract != ExtractConfig():
            raise ConfigError(f"grammar: entry {number}: extract needs an index, not a grammar")
        elif section.path is not None:
            sources.append(open_grammar(section.path, symbols, limit, section))
        else:
            has_per_sentence = True
            folder = _directory(section.per_sentence)
            sources.append(PerSentence(symbols, folder, limit, section, anywhere=allow_grammar_paths))
    if rules:
        sources.append(RuleList(symbols, list(rules), limit))
    if not has_per_sentence:
        sources.append(PerSentence(symbols, base, limit, anywhere=allow_grammar_paths))
    return sources


def model_bins(section: FeaturesSection) -> tuple[FeatureBins, ...]:
    """The bins and transforms of a model's dense features, from files and settings."""
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


ORDER = ("weights", "features", "grammar", "lm", "terms")  # of inputs in manifests


def _rule_settings(config: ExtractConfig) -> dict[str, Any]:
    """Settings that change the rules, without those of caches, and without paths, since content counts."""
    if config.group_file is not None:
        config = dataclasses.replace(config, leave_out="a file")
    left_out = ("cache_mb", "store", "target_counts")
    settings = {key: value for key, value in dataclasses.asdict(config).items() if key not in left_out}
    return settings | ({} if config.target_counts is None else {"target_counts": True})


def model_config(config: Config) -> Config:
    """The sections of a configuration that make a model."""
    grammar = [dataclasses.replace(section, write="nothing") for section in config.grammar]
    return Config(
        strict=config.strict,
        grammar=grammar,
        lm=config.lm,
        weights=config.weights,
        features=config.features,
        search=config.search,
        terms=config.terms,
        hard_terms=config.hard_terms,
        consensus=config.consensus,
    )


def model_inputs(config: Config) -> dict[str, Path]:
    """The files of a model by their keys, in the order of manifests."""
    # The grammars of sentences count by those that a text names.
    files = config.model_files.items()
    found = {key: Path(path) for key, path in files if not key.endswith(": per_sentence")}
    return {key: found[key] for key in sorted(found, key=lambda key: ORDER.index(key.partition(":")[0]))}


def model_settings(config: Config) -> dict[str, Any]:
    """The settings of a model, without its files."""

    def has_rules(section: GrammarSection) -> bool:
        return section.index is not None or section.extract != ExtractConfig()

    grammar = [
        {key.name: getattr(section, key.name) for key in dataclasses.fields(GrammarFormat)}
        | ({"extract": _rule_settings(section.extract)} if has_rules(section) else {})
        for section in config.grammar
    ]
    chosen = config.consensus
    files = [key for key, hint in hints_of(FeaturesSection).items() if is_path_key(hint)]
    search = dataclasses.asdict(config.search)
    # Runs made before there were these settings are not repeated.
    for key, default in (("input_format", "auto"), ("markup", "off"), ("copy", [])):
        if search[key] == default:
            del search[key]
    return {
        "search": search,
        # Files count by their content, as inputs.
        "features": {k: v for k, v in dataclasses.asdict(config.features).items() if k not in files},
        "grammar": grammar,
        "lm": [section.name for section in config.lm],
        **({"hard_terms": True} if config.hard_terms else {}),
        **({"consensus": dataclasses.asdict(chosen)} if chosen != ConsensusConfig() else {}),
    }
