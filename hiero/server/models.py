"""Models by name, with what turns raw text into words and back."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hiero.config.config import Config, read_config
from hiero.config.model import WeightsCheck, make_model, with_bundled
from hiero.config.sections import PrepSection
from hiero.core.errors import ConfigError, HieroError, UsageError, show
from hiero.core.given import GivenTerm
from hiero.core.input import parse_input
from hiero.core.parallel import NAME
from hiero.core.text import Segment, split_words
from hiero.decoder.model import Model, with_given
from hiero.grammar.rules import source_words
from hiero.grammar.sources import grammar_paths
from hiero.jobs.raw_text import RawText


@dataclass(frozen=True, kw_only=True)
class LineForm:
    """How a line is read.

    tokens  take words as they are, also where the model has a preparation of raw text
    terms   beside those of the model; ``hard_terms``: whether all are hard, None as the model has it
    """

    tokens: bool = False
    terms: tuple[GivenTerm, ...] = ()
    hard_terms: bool | None = None


PLAIN = LineForm()
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LANGUAGES = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")
BUNDLED = "de-en"


@dataclass(frozen=True)
class ModelSpec:
    """A model to serve: its name, the path of its configuration or package, and a list for its capitals."""

    name: str
    path: str | None = None  # None: the bundled model
    truecase: str | None = None


def specs_of(models: Sequence[str], truecase: Sequence[str] = ()) -> list[ModelSpec]:
    """The models that arguments name: ``NAME=PATH`` or ``PATH``, and ``NAME=LIST`` or ``LIST``."""
    named = dict[str, str | None]()
    for given in models:
        name, path = _named(given)
        if name is None:
            # hiero run always writes model.yaml, into a directory with a name of its own.
            stem = Path(path).stem
            name = Path(path).absolute().parent.stem if stem == "model" else stem
        if not MODEL_NAME.fullmatch(name):
            hint = "--model NAME=FILE gives it another one"
            raise UsageError(
                f"argument --model: found the name {show(name)}, expected letters and digits ({hint})"
            )
        if name in named:
            raise UsageError(f"argument --model: two models have the name {name} (--model NAME=FILE)")
        named[name] = path
    if not named:
        named[BUNDLED] = None
    lists = dict[str, str]()
    for given in truecase:
        name, path = _named(given)
        if name is None and len(named) > 1:
            raise UsageError(
                f"argument --truecase: found {show(given)}, expected NAME=LIST with several models"
            )
        name = name or next(iter(named))
        if name not in named:
            raise UsageError(
                f"argument --truecase: found the model {show(name)}, expected one of {', '.join(named)}"
            )
        lists[name] = path
    return [ModelSpec(name, path, lists.get(name)) for name, path in named.items()]


def _named(given: str) -> tuple[str | None, str]:
    """Split ``NAME=PATH``; an existing path may contain ``=``."""
    name, equals, path = given.partition("=")
    return (None, given) if not equals or Path(given).exists() else (name, path)


@dataclass
class ServedModel:
    """A model that threads share, and its texts.

    make            loads it
    raw             makes words of raw text; None: lines are words already
    most_new_words  words beyond those of the files, after which it is loaded anew
    """

    name: str
    config: Config
    make: Callable[[], Model]
    raw: RawText | None
    source_language: str | None
    target_language: str | None
    most_new_words: int
    loads: int = 0
    _model: Model = field(init=False, repr=False)
    _first_words: int = 0
    _growing: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _terms: tuple[tuple[GivenTerm, ...], list[GivenTerm]] = field(default=((), []), repr=False)  # the last

    def __post_init__(self) -> None:
        self._load()

    @property
    def model(self) -> Model:
        return self._model

    @property
    def is_raw(self) -> bool:
        """Whether lines are raw text, not words."""
        return self.raw is not None

    @property
    def num_words(self) -> int:
        return len(self._model.symbols.words)

    def _load(self) -> None:
        model = self.make()
        model.warm_up()
        self._first_words = len(model.symbols.words)
        self._model = model
        self.loads += 1

    def renew(self) -> bool:
        """Load the model anew, in the background, if it has seen too many new words, which it never frees."""
        if self.num_words - self._first_words < self.most_new_words:
            return False
        if not self._growing.acquire(blocking=False):
            return False

        def load() -> None:
            try:
                self._load()
            finally:
                self._growing.release()

        threading.Thread(target=load, name=NAME, daemon=True).start()
        return True

    def segment(self, line: str, how: LineForm = PLAIN) -> Segment:
        """The words of a line, with its terms."""
        segment = self._segment(line, tokens=how.tokens)
        if how.terms or how.hard_terms is not None:
            terms = how.terms if self.raw is None or how.tokens else self._words_of(how.terms)
            segment = with_given(segment, terms, how.hard_terms)
        return segment

    def _words_of(self, terms: tuple[GivenTerm, ...]) -> list[GivenTerm]:
        """Terms of raw text as words; a request has the same for all of its lines."""
        assert self.raw is not None
        known, found = self._terms
        if known != terms:
            source, target = self.raw.segment, self.raw.target_words
            found = [(" ".join(source(one[0]).words), " ".join(target(one[1])), *one[2:]) for one in terms]
            self._terms = terms, found
        return found

    def _segment(self, line: str, *, tokens: bool) -> Segment:
        if self.raw is not None and not tokens:
            return self.raw.segment(line)
        segment = parse_input(line, form=self.config.search.form)
        if grammar_paths(segment.attributes):
            raise HieroError("<seg grammar=…>: sentences cannot name grammars here")
        return segment

    def text(self, words: str, *, tokens: bool = False) -> str:
        """The text of translated words."""
        return words if self.raw is None or tokens else self.raw.text(words)

    def target_words(self, text: str, *, tokens: bool = False) -> tuple[str, ...]:
        """The words of a text in the target language."""
        return split_words(text) if self.raw is None or tokens else self.raw.target_words(text)

    def known_share(self, line: str) -> float:
        """The share of the words of a line that are in source sides of rules; 0 without words."""
        words, model = self.segment(line).words, self._model
        if not words:
            return 0.0
        src = model.symbols.words.intern_all(word.encode(errors="replace") for word in words)
        known = source_words([source.rules_for(src, {}) for source in model.sources])
        return float(np.isin(src, known).mean())


def load_served(
    spec: ModelSpec, report: Callable[[str], None], *, strict: bool, most_new_words: int
) -> ServedModel:
    """Load a model; ``report`` takes notes on it."""
    config = Config() if spec.path is None else read_config(spec.path)
    if config.is_bundled:
        config = with_bundled(config)
    if spec.truecase is not None and config.prep is None:
        hint = "a section prep in its configuration makes it one"
        raise UsageError(f"argument --truecase: the model {spec.name} is not one of raw text ({hint})")
    try:
        raw = None if config.prep is None else RawText(config.prep, spec.truecase)
    except ConfigError as error:
        raise ConfigError(f"{spec.name}: {error}") from None

    def make() -> Model:
        model = make_model(config)
        path = "" if config.weights is None else config.weights.path
        check = WeightsCheck(path, strict=strict or config.strict, report=report)
        if config.weights is None:
            check.no_weights()
        else:
            check.compare(model, model.weights, all_read=not config.grammar_folders)
        check.shared_names(model)
        return model

    source, target = _languages(spec.name, config.prep)
    served = ServedModel(spec.name, config, make, raw, source, target, most_new_words)
    if raw is not None:
        raw.check()
    return served


def _languages(name: str, prep: PrepSection | None) -> tuple[str | None, str | None]:
    """The languages of a model: of its preparation, or in its name, such as de-en."""
    found = LANGUAGES.fullmatch(name)
    given = (None, None) if prep is None else (prep.source_language, prep.target_language)
    named = (None, None) if found is None else (found[1], found[2])
    return given[0] or named[0], given[1] or named[1]


def chosen(models: Mapping[str, ServedModel], name: str | None) -> ServedModel:
    """The model of a request: the named one, or the first."""
    if name is None:
        return next(iter(models.values()))
    if name not in models:
        raise ConfigError(f"model: found {show(name)}, expected one of {', '.join(models)}")
    return models[name]
