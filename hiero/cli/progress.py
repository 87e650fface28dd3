"""Progress on standard error: bars on a terminal, lines elsewhere; a note on compiling."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hiero.core.progress import Progress, progress_lines

if TYPE_CHECKING:
    from typing import Self

COMPILING = "hiero: compiling for this machine; this takes up to a minute, once"
COMPILING_AGAIN = (
    "hiero: compiling; this takes up to a minute, each time, since there is no private directory to keep the"
    " result (XDG_CACHE_HOME names one)"
)
EVERY = 30.0  # seconds between lines about a task, where there is no bar


class _Display:
    """Lines on standard error, above bars if it is a terminal.

    quiet       show nothing
    with_bars   show how far the work is, by bars or lines
    with_names  show the beginning of each task, where there are no bars
    stages      the bars are those of stages: names in a column, percentages
    """

    def __init__(
        self, *, quiet: bool, with_bars: bool = True, with_names: bool = False, stages: bool = False
    ) -> None:
        self.with_names = with_names
        self.quiet, self.with_lines = quiet, with_bars and not quiet
        self.bars: Any = None
        if self.with_lines and sys.stderr.isatty():
            self.bars, self.with_lines = _make_bars(stages), False

    def print(self, line: str) -> None:
        if self.quiet:
            return
        if self.bars is not None:
            self.bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)


class _Displayed:
    """Shows its display in a ``with`` block."""

    _display: _Display

    def __enter__(self) -> Self:
        if self._display.bars is not None:
            self._display.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._display.bars is not None:
            self._display.bars.stop()


def _make_bars(stages: bool) -> Any:
    from rich import progress as rich
    from rich.console import Console

    return rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=20 if stages else 40),
        rich.TaskProgressColumn(show_speed=False) if stages else rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
        redirect_stdout=False,  # results are not part of the display
    )


class _WorkProgress:
    """The progress of one piece of work: its bar, or lines, and its messages."""

    def __init__(self, display: _Display, prefix: str, row_prefix: str, bar: Any) -> None:
        self._display, self._prefix, self._row_prefix, self._bar = display, prefix, row_prefix, bar
        self._has_rows = False
        self._what, self._done = "", 0
        self._total: int | None = None
        self._began = self._said = 0.0

    def begin(self, total: int | None, what: str = "") -> None:
        self._what, self._total, self._done = what, total, 0
        self._began = self._said = time.monotonic()
        if self._display.with_lines and self._display.with_names:
            self.say(what)
        if self._display.bars is not None:
            # ``reset`` cannot make a total unknown.
            self._display.bars.tasks[self._bar].total = total
            self._display.bars.reset(self._bar, visible=True, note=what)

    def advance(self, steps: int, note: str = "") -> None:
        if self._display.bars is not None:
            fields = {"note": note} if note else {}
            self._display.bars.update(self._bar, advance=steps, **fields)
        elif self._display.with_lines:
            self._done += steps
            unfinished = self._total is None or self._done < self._total
            if self._done and unfinished and time.monotonic() - self._said >= EVERY:
                self._said = time.monotonic()
                what = f"{self._what}: " if self._what else ""
                self.say(what + self._so_far())

    def _so_far(self) -> str:
        if self._total is None:
            return f"{self._done} done"
        left = (self._said - self._began) / self._done * (self._total - self._done)
        minutes, seconds = divmod(round(left), 60)
        return f"{self._done} of {self._total}, {minutes}:{seconds:02d} left"

    def say(self, note: str) -> None:
        self._display.print(f"{self._prefix}{note}")

    def record(self, row: Mapping[str, str]) -> None:
        for line in progress_lines(row, heading=not self._has_rows):
            self._display.print(f"{self._row_prefix}{line}")
        self._has_rows = True


class CommandProgress(_Displayed, _WorkProgress):
    """The progress of a single command, with one bar from its first task on; for a ``with`` block."""

    def __init__(
        self, command: str, *, quiet: bool = False, bar: bool = True, with_names: bool = False
    ) -> None:
        display = _Display(quiet=quiet, with_bars=bar, with_names=with_names)
        task = None
        if display.bars is not None:
            task = display.bars.add_task(command, start=False, visible=False, total=None, note="")
        super().__init__(display, "hiero: ", "", task)


class StageProgress(_Displayed):
    """The stages of a run: on a terminal, a bar for each, with its current task; for a ``with`` block."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._display = _Display(quiet=quiet, stages=True)
        self._bar_of: dict[str, Any] = {}

    def plan(self, names: Sequence[str]) -> None:
        if (bars := self._display.bars) is not None:
            width = max(map(len, names), default=0)
            for name in names:
                self._bar_of[name] = bars.add_task(name.ljust(width), start=False, total=None, note="")

    def skip(self, name: str, reason: str) -> None:
        self._end(name, reason)

    def start(self, name: str, reason: str) -> Progress:
        bar, prefix = self._bar_of.get(name), f"hiero run: {name}: "
        if self._display.bars is not None:
            self._display.bars.start_task(bar)
            self._display.bars.update(bar, note=reason)
        else:
            self._display.print(f"{prefix}started ({reason})")
        return _WorkProgress(self._display, prefix, prefix, bar)

    def finish(self, name: str, usage: Mapping[str, float]) -> None:
        self._end(name, f"done in {_format_usage(usage)}")

    def _end(self, name: str, note: str) -> None:
        if self._display.bars is not None:
            self._display.bars.update(self._bar_of[name], total=1, completed=1, note=note)
        else:
            self._display.print(f"hiero run: {name}: {note}")


def _format_usage(usage: Mapping[str, float]) -> str:
    compiling = usage["compile_seconds"]
    more = f", {compiling:.1f} s of it compiling" if compiling >= 1 else ""
    cpu = f"{usage['cpu_seconds']:.1f} s of CPU{more}"
    return f"{usage['wall_seconds']:.1f} s ({cpu}; {usage['peak_mb']:.0f} MB)"


def announce_compiling(args: argparse.Namespace) -> None:
    """Print a note on standard error when the first kernel is compiled, unless ``--quiet``."""
    from hiero.core.jit import CACHE_DIRECTORY, compile_timer

    if not args.quiet:
        note = COMPILING if CACHE_DIRECTORY else COMPILING_AGAIN
        compile_timer.on_first = lambda: print(note, file=sys.stderr)
