"""The progress of long work: a protocol for bars and logs, and a silent one."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Shows the progress of some work, on a terminal or in a log."""

    def begin(self, total: int | None, what: str = "") -> None:
        """Begin a task named ``what``, of ``total`` steps if that is known."""

    def advance(self, steps: int, note: str = "") -> None:
        """Add finished steps; ``note`` is a current figure, such as a mean score."""

    def say(self, note: str) -> None:
        """Show a message of one line."""


class SilentProgress:
    """Shows nothing."""

    def begin(self, total: int | None, what: str = "") -> None:
        pass

    def advance(self, steps: int, note: str = "") -> None:
        pass

    def say(self, note: str) -> None:
        pass
