"""What can be wrong with the user's input, and how it is said: one line, with the place and a way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class HieroError(Exception):
    """The input is wrong; ``str()`` of it is the one line that the user sees. Exit code 1."""

    def __reduce__(self) -> tuple[Any, ...]:
        # So that it comes back whole from another process, whatever its ``__init__`` is called with.
        return _revived, (type(self), self.args, self.__dict__)


def _revived(kind: type[HieroError], args: tuple[Any, ...], state: dict[str, Any]) -> HieroError:
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
    """A setting that does not exist or makes no sense."""


class UsageError(HieroError):
    """The command line is wrong. Exit code 2."""


def is_interrupt(error: BaseException) -> bool:
    """Whether this is ^C: a kernel that is just giving arrays back makes a SystemError of it, or several."""
    while isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


def os_message(error: OSError) -> str:
    """The operating system's message, in lower case."""
    return (error.strerror or str(error)).lower()


def show(token: str | bytes, limit: int = 60) -> str:
    """A value from the user's file as it may stand in a message: quoted, printable, not endless."""
    text = token.decode("utf-8", errors="replace") if isinstance(token, bytes) else token
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the nearest of the choices, or the list of them all."""
    choices = sorted(choices)
    near = difflib.get_close_matches(name, choices, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "one of " + ", ".join(choices)
