"""Progress bars, only on a terminal, and notes on standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class ProgressBar:
    """``with ProgressBar("decode", total) as bar: bar.advance(1)``; total is None if it is unknown."""

    def __init__(self, what: str, total: int | None, *, quiet: bool = False) -> None:
        self._bar: Any = None
        if not quiet and sys.stderr.isatty():
            from rich import progress as rich
            from rich.console import Console

            self._bar = rich.Progress(
                rich.TextColumn("{task.description}"),
                rich.BarColumn(),
                rich.MofNCompleteColumn(),
                rich.TextColumn("{task.fields[rate]}"),
                rich.TimeElapsedColumn(),
                rich.TimeRemainingColumn(),
                console=Console(stderr=True),
                redirect_stdout=False,  # results are not part of the display
            )
            self._task = self._bar.add_task(what, total=total, rate="")

    def __enter__(self) -> ProgressBar:
        if self._bar is not None:
            self._bar.start()
        return self

    def advance(self, steps: int, rate: str = "") -> None:
        if self._bar is not None:
            self._bar.update(self._task, advance=steps, rate=rate)

    def say(self, note: str) -> None:
        """Print a line, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(note, markup=False, highlight=False, soft_wrap=True)
        else:
            print(note, file=sys.stderr)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class CommandProgress:
    """The progress of a single command: bars and notes, in a ``with`` block."""

    def __init__(self, command: str, *, quiet: bool = False, bar: bool = True) -> None:
        self._command, self._quiet, self._with_bar = command, quiet, bar and not quiet
        self._progress: ProgressBar | None = None

    def __enter__(self) -> CommandProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.__exit__(kind, error, trace)
            self._progress = None

    def begin(self, total: int | None, what: str = "") -> None:
        self.__exit__(None, None, None)
        self._progress = ProgressBar(what or self._command, total, quiet=not self._with_bar).__enter__()

    def advance(self, steps: int, note: str = "") -> None:
        if self._progress is not None:
            self._progress.advance(steps, note)

    def say(self, note: str) -> None:
        if self._quiet:
            return
        if self._progress is not None:
            self._progress.say(f"hiero: {note}")
        else:
            print(f"hiero: {note}", file=sys.stderr)
