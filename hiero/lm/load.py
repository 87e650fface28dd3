"""Load language models of all supported formats, and compile them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hiero.core.errors import FormatError
from hiero.core.symbol_kernels import WordTable
from hiero.core.text import open_bytes
from hiero.lm.arpa import read_arpa
from hiero.lm.kenlm import MAGIC, read_kenlm
from hiero.lm.model import LanguageModels, read_ngrams, side_by_side, write_ngrams
from hiero.lm.table_kernels import Ngrams

WHAT = "a language model: ARPA, KenLM binary of type probing, or compiled directory"


def load_language_model(path: Path) -> tuple[Ngrams, WordTable]:
    """Load one model and its words. The format, one of those in ``WHAT``, is recognised by the content."""
    if path.is_dir():
        return read_ngrams(path)
    if path.exists() and not path.is_file():
        hint = "a model is read in several passes: write it to a file first"
        raise FormatError(path, 0, found="a pipe or a device", expected=WHAT, hint=hint)
    with open_bytes(path, WHAT) as stream:
        is_binary = stream.read(len(MAGIC)) == MAGIC
    return read_kenlm(path) if is_binary else read_arpa(path)


def load_language_models(specs: Sequence[tuple[str, Path]]) -> LanguageModels:
    """Load the models of a system, given as (name of the feature, path). There may be none."""
    models = [load_language_model(path) for _, path in specs]
    return LanguageModels(
        side_by_side([arrays for arrays, _ in models]),
        tuple(name for name, _ in specs),
        tuple(table for _, table in models),
    )


def compile_language_model(source: Path, target: Path) -> None:
    """Convert a model to a memory-mapped directory, which loads at once and is shared by processes."""
    if source.is_dir():
        raise FormatError(source, 0, found="a directory", expected="an ARPA file or a KenLM binary")
    write_ngrams(target, *load_language_model(source), source)
