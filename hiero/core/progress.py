"""The progress of long work: a protocol for bars, lines and logs, and a silent one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Progress(Protocol):
    """Shows the progress of some work, on a terminal or in a log.

    Functions that take long take one as ``progress``, by default a silent one. Work may consist of several
    tasks, one after the other, each begun with ``begin``.
    """

    def begin(self, total: int | None, what: str = "") -> None:
        """Begin a task named ``what``, of ``total`` steps if that is known."""

    def advance(self, steps: int, note: str = "") -> None:
        """Add finished steps; ``note`` is a current figure, such as a mean score."""

    def say(self, note: str) -> None:
        """Show a message of one line."""

    def record(self, row: Mapping[str, str]) -> None:
        """Show a row of a table: cells by heading, padded to their columns' widths.

        The headings are shown above the first row: see ``progress_lines``.
        """


class SilentProgress:
    """Shows nothing."""

    def begin(self, total: int | None, what: str = "") -> None:
        pass

    def advance(self, steps: int, note: str = "") -> None:
        pass

    def say(self, note: str) -> None:
        pass

    def record(self, row: Mapping[str, str]) -> None:
        pass


def progress_lines(row: Mapping[str, str], *, heading: bool) -> list[str]:
    """The lines in which ``Progress.record`` shows a row; ``heading``: the first, below the headings."""
    lines = ["  ".join(name.rjust(len(cell)) for name, cell in row.items())] if heading else []
    return [*lines, "  ".join(cell.rjust(len(name)) for name, cell in row.items())]
