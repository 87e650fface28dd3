"""Text formats of grammars, and the settings of their readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from hiero.core.errors import ConfigError, did_you_mean


class Format(NamedTuple):
    """A text format of grammars.

    reader    MODULE:CLASS, imported when a file is read: a ``RuleReader`` (``grammar/reader.py``) that
              recognises files of its format and reads them
    settings  fields of ``GrammarFormat`` that the reader is made with
    """

    reader: str
    settings: tuple[str, ...] = ()


# Formats by the name in configurations. Files that no reader recognises are read as the first one.
FORMATS = {
    "cdec": Format("hiero.grammar.reader:RuleReader"),
    "joshua": Format("hiero.grammar.cdec:JoshuaReader", ("owner", "sign")),
    "moses": Format("hiero.grammar.moses:MosesReader", ("scale",)),
}
AUTO_FORMAT = "auto"
SCALES = ("cdec", "moses", "keep")


def format_names() -> tuple[str, ...]:
    return AUTO_FORMAT, *FORMATS


@dataclass(frozen=True, slots=True, kw_only=True)
class GrammarFormat:
    """Options for reading a grammar file. Compiled grammars are always recognised, and ignore them."""

    format: str = (
        AUTO_FORMAT  # or one of FORMATS; "auto" recognises Moses' tables and cdec's, but not Joshua's
    )
    owner: str = "pt"  # Joshua: unlabelled values are called tm_OWNER_0, tm_OWNER_1, ...
    sign: int = -1  # Joshua: factor of unlabelled values; Joshua itself uses -1
    scale: str = "cdec"  # Moses: a score p becomes -log10 p ("cdec"), ln p ("moses") or stays p ("keep")

    def __post_init__(self) -> None:
        for key, value, choices in (("format", self.format, format_names()), ("scale", self.scale, SCALES)):
            if value not in choices:
                hint = did_you_mean(value, choices)
                raise ConfigError(f"{key}: found {value!r}, expected {' or '.join(choices)} ({hint})")
        if self.sign not in (-1, 1):
            raise ConfigError(f"sign: found {self.sign!r}, expected -1 or 1")

    def settings_of(self, name: str) -> dict[str, Any]:
        """The settings of the reader of a format."""
        return {key: getattr(self, key) for key in FORMATS[name].settings}


AUTO = GrammarFormat()
