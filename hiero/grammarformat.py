"""How grammar files are to be read; the readers are in ``formats/``."""

from __future__ import annotations

from dataclasses import dataclass

from hiero.errors import ConfigError, did_you_mean

FORMATS = ("auto", "cdec", "joshua", "moses")
SCALES = ("cdec", "moses", "keep")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrammarFormat:
    """How a grammar file is read. A compiled grammar is recognised whatever is said here."""

    format: str = "auto"  # one of FORMATS; "auto" tells Moses' tables from cdec's, but cannot tell Joshua's
    owner: str = "pt"  # Joshua: unlabelled values are called tm_OWNER_0, tm_OWNER_1, ...
    sign: int = -1  # Joshua: what unlabelled values are multiplied by; Joshua itself takes -1
    scale: str = "cdec"  # Moses: a score p becomes -log10 p ("cdec"), ln p ("moses") or stays p ("keep")

    def __post_init__(self) -> None:
        for key, value, choices in (("format", self.format, FORMATS), ("scale", self.scale, SCALES)):
            if value not in choices:
                hint = did_you_mean(value, choices)
                raise ConfigError(f"{key}: found {value!r}, expected {' or '.join(choices)} ({hint})")
        if self.sign not in (-1, 1):
            raise ConfigError(f"sign: found {self.sign!r}, expected -1 or 1")


AUTO = GrammarFormat()
