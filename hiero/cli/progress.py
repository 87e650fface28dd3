"""Progress on a terminal: a bar with an estimate; elsewhere nothing."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class Progress:
    """``with Progress("decode", total) as progress: progress.advance(1)``; total None if it is not known."""

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
                redirect_stdout=False,  # results go where they go
            )
            self._task = self._bar.add_task(what, total=total, rate="")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def advance(self, steps: int, rate: str = "") -> None:
        if self._bar is not None:
            self._bar.update(self._task, advance=steps, rate=rate)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
