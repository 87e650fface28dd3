"""Scores of whole sentences by language models of every kind that hiero or KenLM reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hiero.core.arrays import Floats
from hiero.core.errors import FormatError
from hiero.core.text import open_bytes
from hiero.lm.kenlm import TYPES, kenlm_type
from hiero.lm.load import load_language_models
from hiero.lm.model import LanguageModels, score_text

INSTALL = "needs the package kenlm: pip install 'hiero-mt[kenlm]', or build_binary probing"


class SentenceScorer(Protocol):
    """Scores sentences between <s> and </s>."""

    def score(self, sentences: Sequence[str]) -> tuple[Floats, Floats]:
        """The log10 probability and the number of unknown words of each sentence."""
        ...


class OwnScorer:
    """A model in one of our own formats, ARPA, or a KenLM binary of type probing."""

    def __init__(self, models: LanguageModels) -> None:
        self.models = models

    def score(self, sentences: Sequence[str]) -> tuple[Floats, Floats]:
        text = "".join(f"{sentence}\n" for sentence in sentences).encode()
        scored = score_text(self.models, 0, text)
        place = scored.first[:-1]
        if not len(place):
            return np.zeros(0), np.zeros(0)
        total = np.add.reduceat(scored.prob.astype(np.float64), place)
        return total, np.add.reduceat((scored.word == 0).astype(np.float64), place)


class KenlmScorer:
    """A binary of KenLM, read by the package kenlm."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def score(self, sentences: Sequence[str]) -> tuple[Floats, Floats]:
        rows = [list(self.model.full_scores(sentence)) for sentence in sentences]
        total = [sum(prob for prob, _, _ in row) for row in rows]
        return np.array(total, np.float64), np.array(
            [sum(oov for *_, oov in row) for row in rows], np.float64
        )


def sentence_scorer(path: Path) -> SentenceScorer:
    """Load a model: tries and quantised binaries by the package kenlm, all others by our own readers."""
    kind = None
    if path.is_file():
        with open_bytes(path, "a language model") as stream:
            kind = kenlm_type(stream.read(1 << 12))
    if kind is None or kind == 0:
        return OwnScorer(load_language_models([("LanguageModel", path)]))
    name = TYPES[kind] if kind < len(TYPES) else f"unknown ({kind})"
    try:
        import kenlm
    except ImportError:
        found = f"a KenLM binary of type {name}"
        raise FormatError(path, 0, found=found, expected="a model that can be read", hint=INSTALL) from None
    try:
        return KenlmScorer(kenlm.Model(str(path)))
    except (OSError, RuntimeError) as error:
        found = str(error).split("\n")[0]
        raise FormatError(path, 0, found=found, expected=f"a KenLM binary of type {name}") from None
