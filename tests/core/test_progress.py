"""Displays of progress, on a terminal and elsewhere."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import types

import pytest

from hiero.core import progress as display
from hiero.core.progress import CommandProgress, Progress, StageProgress

USAGE = {"wall_seconds": 2.0, "cpu_seconds": 1.5, "compile_seconds": 0.0, "peak_mb": 10.0}
ROWS = [{"epoch": "    1", "weights": "     12"}, {"epoch": "    2", "weights": "    345"}]


class Terminal(io.StringIO):
    """Standard error as a terminal, in a ``with`` block."""

    def isatty(self) -> bool:
        return True

    def __enter__(self) -> Terminal:
        self._redirection = contextlib.redirect_stderr(self)
        self._redirection.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._redirection.__exit__(None, None, None)

    @property
    def text(self) -> str:
        """What was written, without control sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue())


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")


def work(progress: Progress) -> None:
    progress.begin(4, "learn")
    for _ in range(4):
        progress.advance(1, "0.5 mean score")
    progress.say("a message")
    for row in ROWS:
        progress.record(row)
    progress.begin(None, "count")
    progress.advance(7)


def test_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(display, "EVERY", 0.0)
    with CommandProgress("tune") as progress:
        work(progress)
    assert capsys.readouterr().err.splitlines() == [
        *(f"hiero: learn: {done} of 4, 0:00 left" for done in (1, 2, 3)),
        "hiero: a message",
        "epoch  weights",
        "    1       12",
        "    2      345",
        "hiero: count: 7 done",
    ]


def test_lines_are_rare(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(display, "EVERY", 30.0)
    with CommandProgress("tune") as progress:
        work(progress)
    assert len(capsys.readouterr().err.splitlines()) == 1 + 1 + len(ROWS)


def test_no_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(display, "EVERY", 0.0)
    with CommandProgress("decode", bar=False) as progress:
        progress.begin(2)
        progress.advance(1)
    progress.say("after the end")
    assert capsys.readouterr().err == "hiero: after the end\n"


def test_quiet() -> None:
    with Terminal() as terminal, CommandProgress("tune", quiet=True) as progress:
        work(progress)
    with terminal, StageProgress(quiet=True) as stages:
        stages.plan(["align"])
        work(stages.start("align", "not done before"))
        stages.finish("align", USAGE)
    assert terminal.text == ""


def test_a_bar_for_a_command() -> None:
    with Terminal() as terminal, CommandProgress("tune") as progress:
        progress.begin(4, "learn")
        progress.advance(3, "0.5 mean score")
        progress.say("a [message]")
    assert "hiero: a [message]\n" in terminal.text
    last = terminal.text.splitlines()[-1]
    assert re.match(r"tune .* 3/4 .*0\.5 mean score", last)


def test_the_total_of_the_next_task_may_be_unknown() -> None:
    with Terminal() as terminal, CommandProgress("lm") as progress:
        work(progress)
    assert re.match(r"lm .* 7/\? .*count", terminal.text.splitlines()[-1])


def test_stages(capsys: pytest.CaptureFixture[str]) -> None:
    with StageProgress() as stages:
        stages.plan(["prep", "align"])
        stages.skip("prep", "unchanged")
        stages.start("align", "not done before").say("a message")
        stages.finish("align", USAGE)
    assert capsys.readouterr().err.splitlines() == [
        "hiero run: prep: unchanged",
        "hiero run: align: started (not done before)",
        "hiero run: align: a message",
        "hiero run: align: done in 2.0 s (1.5 s of CPU; 10 MB)",
    ]


def test_bars_for_stages() -> None:
    with Terminal() as terminal, StageProgress() as stages:
        stages.plan(["prep", "align"])
        stages.skip("prep", "unchanged")
        progress = stages.start("align", "not done before")
        progress.begin(4, "HMM")
        progress.advance(1)
        progress.say("a message")
    assert "hiero run: align: a message\n" in terminal.text
    prep, align = terminal.text.splitlines()[-2:]
    assert re.match(r"prep  .* 100% .*unchanged", prep)
    assert re.match(r"align .* 25% .*HMM", align)


def test_the_parts_of_a_task_share_its_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display, "EVERY", 0.0)
    with CommandProgress("tune") as progress:
        progress.begin(4)
        progress.part("epoch 1 of 2: learn")
        progress.advance(1)
        progress.part("epoch 2 of 2: learn")
        progress.advance(1)
    shown = capsys.readouterr().err
    assert (
        shown
        == "hiero: epoch 1 of 2: learn: 1 of 4, 0:00 left\nhiero: epoch 2 of 2: learn: 2 of 4, 0:00 left\n"
    )


def test_in_notebooks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with display.shown_progress("tune") as progress:
        work(progress)
    assert capsys.readouterr().err == ""
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(display, "find_spec", lambda name: None)  # no ipywidgets: lines
    with display.shown_progress("tune") as progress:
        work(progress)
    assert "hiero: a message\n" in capsys.readouterr().err
    drawn = []
    monkeypatch.setattr(display, "find_spec", lambda name: object())
    monkeypatch.setattr(display, "_make_bars", lambda stages: drawn.append(stages))
    display.shown_progress("tune")
    assert drawn == [False]


def test_lines_are_written_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C in the middle of a message, the next one would be on the same line."""
    written: list[str] = []

    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stderr", Interrupted())
    progress = CommandProgress("tune")
    for show in (lambda: progress.say("note"), lambda: progress.record({"epoch": "1"})):
        with pytest.raises(KeyboardInterrupt):
            show()
    assert written == ["hiero: note\n", "epoch\n"]
