"""Run directories: a lock, and the configuration with all its defaults."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import hiero
from hiero.config.config import Config
from hiero.core.errors import FormatError, HieroError, os_message

LOCK, CONFIG = "lock", "config.yaml"


@contextlib.contextmanager
def locked(directory: Path, command: str) -> Iterator[None]:
    """Lock a directory against other runs; it is made if it is missing."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        stream = open(directory / LOCK, "a")  # noqa: SIM115
    except OSError as error:
        reason = os_message(error)
        raise FormatError(directory, 0, found=reason, expected="a directory to write to") from None
    with stream:
        try:
            _lock(stream)
        except OSError:
            raise HieroError(f"{directory}: another {command} is using this directory") from None
        yield


def _lock(stream: IO[str]) -> None:
    """Lock an open file until it is closed or its process ends."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


MODEL_SECTIONS = ("grammar", "lm", "weights", "features", "search")


def resolved(config: Config, base: Path | None = None) -> dict[str, Any]:
    """A configuration with its defaults as plain values.

    base  given, only the sections of a model, with the paths below this directory relative to it
    """

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            items = [(field, getattr(value, field.name)) for field in fields]
            # A None that is the default, and an empty mapping, are left out.
            return {
                f.name: plain(item) for f, item in items if item != {} and (item, f.default) != (None, None)
            }
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if base is not None and isinstance(value, str) and value.startswith(f"{base}{os.sep}"):
            return Path(value).relative_to(base).as_posix()
        return value

    written = plain(config)
    if base is not None:
        # Without the defaults of sections, which are left to the program that reads them.
        model = {key: written[key] for key in MODEL_SECTIONS if key in written}
        model["grammar"] = [
            {key: value for key, value in entry.items() if key != "write"} for entry in model["grammar"]
        ]
        model["lm"] = [{"name": entry["name"], "path": entry["path"]} for entry in model["lm"]]
        return model
    return dict(written)


def series() -> str:
    """The series of this version, whose versions all give the same results."""
    return ".".join(hiero.__version__.split(".")[:2])
