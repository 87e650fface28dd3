"""Progress of commands and of the stages of a run: bars on a terminal, otherwise plain lines; notes.

All of it goes to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from hiero.core.progress import Progress, SilentProgress


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


class StageLines:
    """Plain lines on standard error, where it is not a terminal."""

    def __enter__(self) -> StageLines:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def plan(self, names: Sequence[str]) -> None:
        pass

    def skip(self, name: str, reason: str) -> None:
        _print(f"hiero run: {name}: {reason}")

    def start(self, name: str, reason: str) -> Progress:
        _print(f"hiero run: {name}: started ({reason})")
        return _NoteLines(name)

    def finish(self, name: str, usage: Mapping[str, float]) -> None:
        _print(f"hiero run: {name}: done in {_format_usage(usage)}")


class QuietStages(StageLines):
    """Shows nothing."""

    def skip(self, name: str, reason: str) -> None:
        pass

    def start(self, name: str, reason: str) -> Progress:
        return SilentProgress()

    def finish(self, name: str, usage: Mapping[str, float]) -> None:
        pass


class _NoteLines(SilentProgress):
    """Prints notes only."""

    def __init__(self, name: str) -> None:
        self._name = name

    def say(self, note: str) -> None:
        _print(f"hiero run: {self._name}: {note}")


class StageBars:
    """A line on the terminal for each stage, with a bar, its current task and the remaining time."""

    def __init__(self) -> None:
        from rich import progress as rich
        from rich.console import Console

        self.bars = rich.Progress(
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(bar_width=20),
            rich.TaskProgressColumn(show_speed=False),
            rich.TimeElapsedColumn(),
            rich.TimeRemainingColumn(),
            rich.TextColumn("{task.fields[note]}", markup=False),
            console=Console(stderr=True),
            redirect_stdout=False,  # results are not part of the display
        )
        self.tasks: dict[str, Any] = {}

    def __enter__(self) -> StageBars:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def plan(self, names: Sequence[str]) -> None:
        width = max(map(len, names), default=0)
        for name in names:
            self.tasks[name] = self.bars.add_task(name.ljust(width), start=False, total=None, note="")

    def skip(self, name: str, reason: str) -> None:
        self.bars.update(self.tasks[name], total=1, completed=1, note=reason)

    def start(self, name: str, reason: str) -> Progress:
        self.bars.start_task(self.tasks[name])
        self.bars.update(self.tasks[name], note=reason)
        return _StageBar(self, name)

    def finish(self, name: str, usage: Mapping[str, float]) -> None:
        self.bars.update(self.tasks[name], total=1, completed=1, note=f"done in {_format_usage(usage)}")


class _StageBar:
    """The line of one stage."""

    def __init__(self, display: StageBars, name: str) -> None:
        self._bars, self._task, self._name = display.bars, display.tasks[name], name

    def begin(self, total: int | None, what: str = "") -> None:
        self._bars.reset(self._task, total=total, note=what)

    def advance(self, steps: int, note: str = "") -> None:
        self._bars.update(self._task, advance=steps)
        if note:
            self._bars.update(self._task, note=note)

    def say(self, note: str) -> None:
        self._bars.console.print(f"{self._name}: {note}", markup=False, highlight=False, soft_wrap=True)


def stage_display(*, quiet: bool) -> StageBars | StageLines:
    """The display for standard error, for a ``with`` block."""
    if quiet:
        return QuietStages()
    return StageBars() if sys.stderr.isatty() else StageLines()


def _format_usage(usage: Mapping[str, float]) -> str:
    compiling = usage["compile_seconds"]
    more = f", {compiling:.1f} s of it compiling" if compiling >= 1 else ""
    cpu = f"{usage['cpu_seconds']:.1f} s of CPU{more}"
    return f"{usage['wall_seconds']:.1f} s ({cpu}; {usage['peak_mb']:.0f} MB)"


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
