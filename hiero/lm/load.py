"""Load language models of all supported formats, compile them, and score sentences with any of KenLM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from hiero.core.arrays import Floats, Ids
from hiero.core.errors import FormatError
from hiero.core.symbol_kernels import WordTable
from hiero.core.text import open_bytes
from hiero.lm.arpa import read_arpa
from hiero.lm.classes import ids_in_model, read_classes
from hiero.lm.kenlm import MAGIC, READ_TYPES, TYPES, kenlm_type, read_kenlm
from hiero.lm.model import (
    MODEL,
    LanguageModels,
    ReadModel,
    read_ngrams,
    score_text,
    side_by_side,
    write_ngrams,
)
from hiero.lm.quantize import QUANTISED, read_quantised, write_quantised
from hiero.lm.table_kernels import Ngrams

WHAT = "a language model: ARPA, KenLM binary, or compiled directory"
INSTALL = "needs the package kenlm: pip install 'hiero-mt[kenlm]', or build_binary probing"


def load_language_model(path: Path) -> tuple[Ngrams, WordTable]:
    """Load one model and its words. The format, one of those in ``WHAT``, is recognised by the content."""
    if path.is_dir():
        return read_quantised(path) if QUANTISED.recognises(path) else read_ngrams(path)
    return _read(path).ngrams()


def _read(path: Path) -> ReadModel:
    """Read a model that is not compiled."""
    if path.exists() and not path.is_file():
        hint = "a model is read in several passes: write it to a file first"
        raise FormatError(path, 0, found="a pipe or a device", expected=WHAT, hint=hint)
    with open_bytes(path, WHAT) as stream:
        is_binary = stream.read(len(MAGIC)) == MAGIC
    return read_kenlm(path) if is_binary else read_arpa(path)


class ModelFiles(NamedTuple):
    """The files of one model.

    name     of its feature
    path
    classes  of words, if the words of the model are classes
    """

    name: str
    path: Path
    classes: Path | None = None


def model_files(name: str, path: str, classes: str | None = None) -> ModelFiles:
    """The files of a model, by paths as strings."""
    return ModelFiles(name, Path(path), None if classes is None else Path(classes))


def load_language_models(specs: Sequence[tuple[str, Path] | ModelFiles]) -> LanguageModels:
    """Load the models of a system, given as ``ModelFiles`` or the first of these. There may be none."""
    files = [ModelFiles(*spec) for spec in specs]
    models = [load_language_model(path) for _, path, _ in files]
    tables: list[WordTable] = []
    class_ids: list[Ids | None] = []
    for (_, _, path), (_, table) in zip(files, models, strict=True):
        classes = None if path is None else read_classes(path)
        tables.append(table if classes is None else classes.words)
        class_ids.append(None if classes is None else ids_in_model(classes, table))
    return LanguageModels(
        side_by_side([arrays for arrays, _ in models]),
        tuple(name for name, _, _ in files),
        tuple(tables),
        tuple(class_ids),
    )


def compile_language_model(source: Path, target: Path, quantize: tuple[int, int] | None = None) -> None:
    """Convert a model to a memory-mapped directory, which loads at once and is shared by processes.

    quantize  bits of probabilities and of back-offs
    """
    if source.is_dir():
        raise FormatError(source, 0, found="a directory", expected="an ARPA file or a KenLM binary")
    (MODEL if quantize is None else QUANTISED).check_place(target)
    model = _read(source)
    if quantize is None:
        write_ngrams(target, *model.ngrams(), source)
    else:
        write_quantised(target, source, model, *quantize)


# ---- scores of sentences


class SentenceScorer(Protocol):
    """Scores sentences between <s> and </s>."""

    def score(self, sentences: Sequence[str]) -> tuple[Floats, Floats]:
        """The log10 probability and the number of unknown words of each sentence."""
        ...


class OwnScorer:
    """A model in one of our own formats, ARPA, or a KenLM binary without rest costs."""

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


def sentence_scorer(files: ModelFiles) -> SentenceScorer:
    """Load a model: binaries with rest costs by the package kenlm, all others by our own readers."""
    path = files.path
    kind = None
    if path.is_file():
        with open_bytes(path, "a language model") as stream:
            kind = kenlm_type(stream.read(1 << 12))
    if kind is None or kind in READ_TYPES:
        return OwnScorer(load_language_models([files]))
    name = TYPES[kind] if kind < len(TYPES) else f"unknown ({kind})"
    if files.classes is not None:
        hint = "rebuild it with: build_binary probing ARPA OUT"
        expected = "a model of another type, as it is one of classes"
        raise FormatError(path, 0, found=f"a KenLM binary of type {name}", expected=expected, hint=hint)
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
