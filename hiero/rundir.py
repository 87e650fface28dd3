"""What directories of runs have in common: one run at a time, and the configuration in full."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import hiero
from hiero.config import Config
from hiero.errors import FormatError, HieroError, os_message

LOCK, CONFIG = "lock", "config.yaml"


@contextlib.contextmanager
def locked(directory: Path, command: str) -> Iterator[None]:
    """Nobody else runs in a directory, which is made if it is not there."""
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
            raise HieroError(f"{directory}: found another {command} at work here, expected none") from None
        yield


def _lock(stream: IO[str]) -> None:
    """Lock an open file until it is closed, or its process ends, however it does."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


MODEL_SECTIONS = ("grammar", "lm", "weights", "features", "search")


def resolved(config: Config, base: Path | None = None) -> dict[str, Any]:
    """A configuration with its defaults, as it would be written; paths below ``base`` relative to it."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            items = [(field, getattr(value, field.name)) for field in fields]
            # Nothing is written where it is what is meant by writing nothing.
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
        # Of a model alone; and what its defaults are is for the program that reads it.
        wanted = {key: written[key] for key in MODEL_SECTIONS if key in written}
        wanted["grammar"] = [
            {key: value for key, value in entry.items() if key != "write"} for entry in wanted["grammar"]
        ]
        wanted["lm"] = [{"name": entry["name"], "path": entry["path"]} for entry in wanted["lm"]]
        return wanted
    return dict(written)


def series() -> str:
    """Versions of one series give the same results."""
    return ".".join(hiero.__version__.split(".")[:2])
