"""The progress of long work: a protocol, bars on a terminal or in a notebook, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing import Self

COMPILING = (
    "hiero: compiling what this needs, once for this machine (hiero warm-up compiles for all commands)"
)
COMPILING_AGAIN = (
    "hiero: compiling, each time, since there is no private directory to keep the result"
    " (XDG_CACHE_HOME names one)"
)
EVERY = 30.0  # seconds between lines about a task, where there is no bar


class Progress(Protocol):
    """Shows the progress of some work, on a terminal or in a log.

    Functions that take long take one as ``progress``, by default a silent one. Work may consist of several
    tasks, one after the other, each begun with ``begin``.
    """

    def begin(self, total: int | None, what: str = "") -> None:
        """Begin a task named ``what``, of ``total`` steps if that is known."""

    def part(self, what: str) -> None:
        """Name the current part of a task, whose steps are among those of the task."""

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

    def part(self, what: str) -> None:
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


def print_line(line: str) -> None:
    """Write a line to standard error at once: Ctrl-C may come between the two writes of ``print``."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


# ---- display


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
        # rich draws bars in a notebook by means of ipywidgets.
        draws = sys.stderr.isatty() or (is_notebook() and find_spec("ipywidgets") is not None)
        if self.with_lines and draws:
            self.bars, self.with_lines = _make_bars(stages), False

    def print(self, line: str) -> None:
        if self.quiet:
            return
        if self.bars is not None:
            self.bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print_line(line)


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
        console=Console(stderr=not is_notebook()),
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

    def part(self, what: str) -> None:
        self._what = what
        if self._display.bars is not None:
            self._display.bars.update(self._bar, note=what)

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


_announces_compiling: bool | None = None  # None: in interactive sessions and notebooks


def announce_compiling(wanted: bool) -> None:
    """Choose whether a note is printed when the first kernel is compiled."""
    global _announces_compiling
    _announces_compiling = wanted


def show_compiling(*, keeps: bool = True) -> None:
    """Print the note, if it is wanted; ``keeps``: the result is kept."""
    if is_interactive() if _announces_compiling is None else _announces_compiling:
        print_line(COMPILING if keeps else COMPILING_AGAIN)


def is_interactive() -> bool:
    """Whether Python runs in an interactive session or a notebook."""
    return hasattr(sys, "ps1") or is_notebook()


def is_notebook() -> bool:
    """Whether Python runs in a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


Callback = Callable[[str, int, int | None], object]


class CallbackProgress(SilentProgress):
    """Calls a function with the name of the current task, the steps done, and their number if known."""

    def __init__(self, function: Callback) -> None:
        self._function = function
        self._what, self._done = "", 0
        self._total: int | None = None

    def begin(self, total: int | None, what: str = "") -> None:
        self._what, self._done, self._total = what, 0, total
        self._function(what, 0, total)

    def advance(self, steps: int, note: str = "") -> None:
        self._done += steps
        self._function(self._what, self._done, self._total)


def shown_progress(
    what: str, progress: Progress | Callback | None = None
) -> AbstractContextManager[Progress]:
    """Progress for functions of the Python interface.

    progress  an object, a function for ``CallbackProgress``, or None: bars in notebooks, silence elsewhere
    """
    if progress is None:
        return CommandProgress(what) if is_notebook() else nullcontext(SilentProgress())
    return nullcontext(CallbackProgress(progress) if callable(progress) else progress)
