"""Interrupts that come where Python ignores exceptions."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence

import pytest

from hiero.cli import main as command

CALLBACK = ctypes.CFUNCTYPE(None)


@CALLBACK
def interrupted() -> None:
    """As numba's callback when a kernel is loaded."""
    raise KeyboardInterrupt


@CALLBACK
def broken() -> None:
    raise ValueError("of the callback")


@pytest.mark.parametrize("fails", [False, True])
def test_an_ignored_interrupt_is_repeated(
    fails: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Work ends soon after it, also where what was called fails for want of what the callback does."""

    def work(arguments: Sequence[str] | None) -> int:
        interrupted()
        if fails:
            raise RuntimeError("no compiled object")
        time.sleep(20)
        return 0

    hook, started = sys.unraisablehook, time.monotonic()
    monkeypatch.setattr(command, "_run", work)
    assert command.main([]) == 130
    assert capsys.readouterr().err == "hiero: interrupted\n"
    assert time.monotonic() - started < 10
    time.sleep(0.2)  # nothing comes later
    assert sys.unraisablehook is hook


def test_other_ignored_exceptions_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []

    def work(arguments: Sequence[str] | None) -> int:
        broken()
        return 0

    monkeypatch.setattr(sys, "unraisablehook", lambda ignored: told.append(ignored.exc_type))
    monkeypatch.setattr(command, "_run", work)
    assert command.main([]) == 0
    assert told == [ValueError]
