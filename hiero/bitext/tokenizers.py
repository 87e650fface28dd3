"""Tokenisers by name: text to words, and back.

A further one is a class with the methods of ``Tokenizer`` and a row of ``TOKENIZERS``, or an entry point of
the group hiero.tokenizers in an installed package.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Sequence
from typing import Any, Protocol

from hiero.bitext.config import TOKENIZERS, PrepConfig
from hiero.core.errors import ConfigError
from hiero.core.plugins import load_plugin

# Han, kana, bopomofo, their punctuation, and full-width forms.
_CJK = (
    "\u2e80-\u303f\u3040-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff"
)
_CHARACTER = re.compile(f"([{_CJK}])")
_BESIDE = re.compile(f"(?<=[{_CJK}]) | (?=[{_CJK}])")
MARK = "\u2581"  # of SentencePiece, where a space was


class Tokenizer(Protocol):
    """Made of a language, such as de, and settings, in each process."""

    def __init__(self, language: str, config: PrepConfig) -> None: ...

    def split(self, text: str) -> str:
        """A line as words with spaces between them."""
        ...

    def join(self, words: Sequence[str]) -> str:
        """Words as a line of text."""
        ...


class Moses:
    """Splits off punctuation as Moses' scripts do, by sacremoses, without escaping anything."""

    def __init__(self, language: str, config: PrepConfig) -> None:
        package = sacremoses()
        self._tokenizer = package.MosesTokenizer(lang=language)
        self._detokenizer = package.MosesDetokenizer(lang=language)
        self._generic = package.MosesDetokenizer(lang="")

    def split(self, text: str) -> str:
        return str(self._tokenizer.tokenize(text, escape=False, return_str=True))

    def join(self, words: Sequence[str]) -> str:
        try:
            return str(self._detokenizer.detokenize(words, unescape=False))
        except TypeError:
            # sacremoses 0.2 calls next() on a list at a Czech "-li": join that line by the generic rules.
            return str(self._generic.detokenize(words, unescape=False))


class Characters(Moses):
    """Each Chinese or Japanese character is a word; other text is split as by ``Moses``."""

    def split(self, text: str) -> str:
        return super().split(_CHARACTER.sub(r" \1 ", text))

    def join(self, words: Sequence[str]) -> str:
        return _BESIDE.sub("", super().join(words))


class SentencePiece:
    """Pieces of words by a SentencePiece model; a piece that begins a word begins with its mark, U+2581."""

    def __init__(self, language: str, config: PrepConfig) -> None:
        try:
            import sentencepiece
        except ImportError:
            hint = "pip install 'hiero-mt[sentencepiece]'"
            raise ConfigError(f"sentencepiece is not installed ({hint})") from None
        if config.sentencepiece_model is None:
            raise ConfigError("sentencepiece_model is missing (a file made by SentencePiece)")
        try:
            self._model = sentencepiece.SentencePieceProcessor(model_file=config.sentencepiece_model)
        except (OSError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(
                f"{config.sentencepiece_model}: not a model of SentencePiece ({reason})"
            ) from None

    def split(self, text: str) -> str:
        return " ".join(self._model.encode(text, out_type=str))

    def join(self, words: Sequence[str]) -> str:
        return "".join(words).replace(MARK, " ").strip()


def sacremoses() -> Any:
    """The package, or an error with the command that installs it."""
    try:
        import sacremoses as package
    except ImportError as error:
        reason = "" if error.name == "sacremoses" else f" ({error})"
        raise ConfigError(f"sacremoses is not installed (pip install 'hiero-mt[prep]'){reason}") from None
    return package


def make_tokenizer(language: str, config: PrepConfig) -> Tokenizer:
    """The tokeniser of the settings for a language."""
    name = tokenizer_name(language, config)
    kind = pkgutil.resolve_name(TOKENIZERS[name]) if name in TOKENIZERS else load_plugin(GROUP, name)
    made: Tokenizer = kind(language, config)
    return made


GROUP = "hiero.tokenizers"
BY_CHARACTERS = ("zh", "ja")


def tokenizer_name(language: str, config: PrepConfig) -> str:
    """The name of the tokeniser: that of the settings, or one by the language."""
    if config.tokenizer != "auto":
        return config.tokenizer
    return "characters" if base_language(language) in BY_CHARACTERS else "moses"


def base_language(language: str) -> str:
    """The language of a tag, such as zh of zh-TW."""
    return language.lower().replace("_", "-").partition("-")[0]
