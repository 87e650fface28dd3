"""How long work tells whoever waits for it where it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Somebody who watches: a terminal, a log, or nobody."""

    def begin(self, total: int | None, what: str = "") -> None:
        """A piece of work begins, of ``total`` steps if that is known, with a name if there are several."""

    def advance(self, steps: int, note: str = "") -> None:
        """So many steps more are done; ``note`` is a figure of now, such as a mean score."""

    def say(self, note: str) -> None:
        """What the user should know, in a line."""


class SilentProgress:
    """Does not watch."""

    def begin(self, total: int | None, what: str = "") -> None:
        pass

    def advance(self, steps: int, note: str = "") -> None:
        pass

    def say(self, note: str) -> None:
        pass
