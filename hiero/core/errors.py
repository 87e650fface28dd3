"""Exceptions for errors in the user's input; a message is one line with the place and a hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class HieroError(Exception):
    """An error in the input; ``str()`` of it is the one line that the user sees. Exit code 1."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions of worker processes are pickled, and ``__init__`` of subclasses takes other arguments.
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(kind: type[HieroError], args: tuple[Any, ...], state: dict[str, Any]) -> HieroError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class FormatError(HieroError):
    """``path:line: found X, expected Y (hint)``; lines count from 1, and 0 stands for the whole file."""

    def __init__(self, path: str | Path, line: int, *, found: str, expected: str, hint: str = "") -> None:
        self.path, self.line, self.found, self.expected, self.hint = str(path), line, found, expected, hint
        place = f"{path}:{line}" if line else f"{path}"
        super().__init__(f"{place}: found {found}, expected {expected}" + (f" ({hint})" if hint else ""))


class ConfigError(HieroError):
    """An unknown setting, or an invalid value of one."""


class HieroWarning(UserWarning):
    """A doubt about the input, which does not stop the work: a model and its weights that do not fit."""


class UsageError(HieroError):
    """An error in the command line. Exit code 2."""


def is_interrupt(error: BaseException) -> bool:
    """Whether this is ^C, which a kernel that is returning arrays turns into nested SystemErrors."""
    while isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


def os_message(error: OSError) -> str:
    """The operating system's message, in lower case."""
    return (error.strerror or str(error)).lower()


def show(token: str | bytes, limit: int = 60) -> str:
    """A value from the user's file for a message: quoted, printable, at most ``limit`` characters."""
    text = token.decode("utf-8", errors="replace") if isinstance(token, bytes) else token
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def printable(text: str) -> str:
    """Text from a file for a terminal: U+FFFD stands for control characters."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the nearest choice, or the list of all choices."""
    choices = sorted(choices)
    near = difflib.get_close_matches(name, choices, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "one of " + ", ".join(choices)
