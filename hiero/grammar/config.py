"""Text formats of grammars, and the settings of their readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from hiero.core.errors import ConfigError, show
from hiero.core.records import Checked, setting


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
    "cdec": Format("hiero.grammar.reader:RuleReader", ("owner",)),
    "joshua": Format("hiero.grammar.cdec:JoshuaReader", ("owner", "sign")),
    "moses": Format("hiero.grammar.moses:MosesReader", ("owner", "scale")),
    "phrases": Format("hiero.grammar.moses:PhraseTableReader", ("owner", "scale")),
}
AUTO_FORMAT = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrammarFormat(Checked):
    """Options for reading a grammar file. Compiled grammars are always recognised, and ignore them."""

    format: str = setting(
        AUTO_FORMAT,
        "auto detects cdec, Moses and phrase tables; Joshua's grammars look like cdec's, so give joshua",
        choices=lambda: (AUTO_FORMAT, *FORMATS),
    )
    owner: str | None = setting(
        None,
        "name values without a name tm_OWNER_0, ... (default: PhraseModel_0, ...; for Joshua tm_pt_0, ...)",
    )
    sign: Literal[-1, 1] = setting(-1, "Joshua: factor of values without a name; Joshua itself uses -1")
    scale: Literal["cdec", "moses", "keep"] = setting(
        "cdec", "Moses: a score p becomes -log10 p (cdec), ln p (moses) or stays p (keep)"
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.owner is not None and (not self.owner or set(self.owner) & set(" \t\r\n=;")):
            raise ConfigError(f"owner: found {show(self.owner)}, expected a name without spaces, = and ;")

    def settings_of(self, name: str) -> dict[str, Any]:
        """The settings of the reader of a format."""
        return {key: getattr(self, key) for key in FORMATS[name].settings}


AUTO = GrammarFormat()
