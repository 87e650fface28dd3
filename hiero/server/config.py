"""Settings of the server."""

from __future__ import annotations

from dataclasses import dataclass

from hiero.core.records import Checked, setting


@dataclass(frozen=True, kw_only=True)
class ServerConfig(Checked):
    """Where ``hiero serve`` listens, and what it accepts."""

    host: str = setting(
        "127.0.0.1", "listen at this address; 0.0.0.0: at all of this machine", metavar="HOST", group="server"
    )
    port: int = setting(5000, "listen at this port; 0: at any that is free", least=0, most=65_535)
    allow_origin: str | None = setting(
        None, "let pages of this origin use the server (https://example.org; *: all)", metavar="ORIGIN"
    )
    max_words: int = setting(500, "words of a line", least=1, group="limits of a request")
    max_chars: int = setting(50_000, "characters of all lines", least=1)
    max_lines: int = setting(500, "lines, except in streams", least=1)
    max_kbest: int = setting(100, "translations of a line", least=1, most=10_000)
    max_terms: int = setting(1000, "terms and marked translations", least=0)
    max_body: int = setting(1 << 20, "bytes, also of streams", least=1)
    timeout: float = setting(
        60.0, "seconds until an answer; of streams, between two lines of it", above=0, metavar="SECONDS"
    )
    read_timeout: float = setting(
        10.0, "seconds until the header, then until the content has arrived", above=0, metavar="SECONDS"
    )
    queue: int = setting(
        1000,
        "lines that may wait for a thread; beyond, answers are 503",
        least=1,
        group="limits of the server",
    )
    max_connections: int = setting(256, "open connections; beyond, answers are 503", least=1)
    max_new_words: int = setting(
        1_000_000,
        "words that a model has not seen before, until it is loaded anew to free their memory",
        least=1,
    )
    grace: float = setting(
        30.0, "seconds to finish requests after SIGTERM or Ctrl-C", least=0, metavar="SECONDS"
    )
