"""Raw text in and out of a model, by the section ``prep`` of its configuration."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hiero.bitext.compounds import Compounds
from hiero.bitext.config import CompoundConfig
from hiero.bitext.prepare import Cleaner, Detokenizer, Recaser, join_compounds
from hiero.config.config import Config, config_from
from hiero.config.sections import PrepSection
from hiero.core.errors import ConfigError
from hiero.core.input import of_lattice
from hiero.core.text import Segment, split_words


class RawText:
    """Makes words of raw lines as the training data were made, and text of translated words.

    Threads may share it.

    >>> raw = hiero.RawText.load("de-en.hiero")              # doctest: +SKIP
    >>> raw.text(model.translate(raw.segment("Das Haus ist klein.")).text)  # doctest: +SKIP
    'The house is small.'
    """

    def __init__(self, prep: PrepSection, truecase: str | None = None) -> None:
        """``truecase``: a list of words with capitals, which are added to translations."""
        self.prep, self._truecase = prep, truecase
        self._recaser: Recaser | None = None
        if prep.lowercase or truecase:
            self._recaser = Recaser.read(truecase) if truecase else Recaser()
        self._of_source = _compounds("source_compounds", prep.split_compounds, prep.source_compounds)
        self._of_target = _compounds("target_compounds", prep.split_compounds_target, prep.target_compounds)
        self._tools = threading.local()  # tokenisers of others may not be safe to share

    @classmethod
    def load(
        cls, config: str | Path | Mapping[str, Any] | Config, truecase: str | Path | None = None
    ) -> RawText:
        """That of a model, by the section ``prep`` of its configuration: a file, its content, or a package.

        truecase  a list of words with capitals, which are added to translations
        """
        settings = config_from(config)
        if settings.prep is None:
            given = f"{config}: " if isinstance(config, str | Path) else ""
            hint = "its lines are words; hiero run and hiero pack keep the section of raw text"
            raise ConfigError(f"{given}the model has no section prep ({hint})")
        found = cls(settings.prep, None if truecase is None else str(truecase))
        found.check()
        return found

    def __repr__(self) -> str:
        languages = (self.prep.source_language or "?", self.prep.target_language or "?")
        return f"<RawText: {'-'.join(languages)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """By its settings: tokenisers are made again."""
        return type(self), (self.prep, self._truecase)

    def segment(self, line: str) -> Segment:
        """The words of a line to translate, or the lattice of their compounds."""
        words = self._words(line, self.prep.source_language)
        if self._of_source is None:
            return Segment(words)
        lattice = self._of_source.lattice(words) if self.prep.split_compounds == "lattice" else None
        return Segment(tuple(self._of_source.split(words))) if lattice is None else of_lattice(lattice)

    def target_words(self, text: str) -> tuple[str, ...]:
        """The words of a text in the target language."""
        words = self._words(text, self.prep.target_language)
        return words if self._of_target is None else tuple(self._of_target.marked(words))

    def text(self, words: str | Sequence[str]) -> str:
        """The text of translated words: of a translation as a string, or as its words."""
        found = split_words(words) if isinstance(words, str) else tuple(words)
        if self._of_target is not None:
            found = tuple(join_compounds(found))
        return self._detokenizer()(" ".join(found))

    def is_prepared(self, line: str) -> bool:
        """Whether a line has the case, and the last word, that it has after preparation.

        Nothing else is compared, since tokenisers may change their own output.
        """
        given, prepared = split_words(line), self._words(line, self.prep.source_language)
        return given[-1:] == prepared[-1:] and not (self.prep.lowercase and line != line.lower())

    def check(self) -> None:
        """Prepare and join a word, so that a missing package is reported at once."""
        self.text(" ".join(self.segment("a").words))

    def _words(self, line: str, language: str | None) -> tuple[str, ...]:
        known: dict[str, Cleaner] = self._tools.__dict__.setdefault("cleaners", {})
        name = language or ""
        if name not in known:
            known[name] = Cleaner(name, self.prep)
        return split_words(known[name](line)[0])

    def _detokenizer(self) -> Detokenizer:
        if not hasattr(self._tools, "detokenizer"):
            self._tools.detokenizer = Detokenizer(self.prep.target_language or "", self._recaser, self.prep)
        detokenizer: Detokenizer = self._tools.detokenizer
        return detokenizer


def without_compounds(prep: PrepSection) -> PrepSection:
    """The same preparation, but for compounds, which stay whole."""
    return dataclasses.replace(
        prep,
        split_compounds="no",
        source_compounds=None,
        split_compounds_target="no",
        target_compounds=None,
        compounds=CompoundConfig(),
    )


def _compounds(key: str, kind: str, model: str | None) -> Compounds | None:
    """The model that splits compounds; None if they are not split."""
    if kind == "no":
        return None
    if model is None:
        found = f"prep: {key} is missing, the model that splits compounds"
        raise ConfigError(f"{found} (hiero run and hiero pack name it in model.yaml)")
    return Compounds.read(model)
