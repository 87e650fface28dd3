"""Options for reading grammar files; the readers are in the other modules."""

from __future__ import annotations

from dataclasses import dataclass

from hiero.core.errors import ConfigError, did_you_mean

FORMATS = ("auto", "cdec", "joshua", "moses")
SCALES = ("cdec", "moses", "keep")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrammarFormat:
    """Options for reading a grammar file. Compiled grammars are always recognised, and ignore them."""

    format: str = "auto"  # one of FORMATS; "auto" recognises Moses' tables and cdec's, but not Joshua's
    owner: str = "pt"  # Joshua: unlabelled values are called tm_OWNER_0, tm_OWNER_1, ...
    sign: int = -1  # Joshua: factor of unlabelled values; Joshua itself uses -1
    scale: str = "cdec"  # Moses: a score p becomes -log10 p ("cdec"), ln p ("moses") or stays p ("keep")

    def __post_init__(self) -> None:
        for key, value, choices in (("format", self.format, FORMATS), ("scale", self.scale, SCALES)):
            if value not in choices:
                hint = did_you_mean(value, choices)
                raise ConfigError(f"{key}: found {value!r}, expected {' or '.join(choices)} ({hint})")
        if self.sign not in (-1, 1):
            raise ConfigError(f"sign: found {self.sign!r}, expected -1 or 1")


AUTO = GrammarFormat()
