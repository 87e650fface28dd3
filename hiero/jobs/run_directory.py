"""Run directories: the lock, the manifest, and what has changed since a result was made.

Unchanged stages of ``hiero run`` are skipped by the manifest: ``manifest.json`` holds the digests of each
stage's inputs and outputs, its settings and its resource usage, the versions of the programs, and the sizes,
times and digests of files, so that a large unchanged file is not read again. It is replaced as a whole after
each stage.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import hiero
from hiero.core.errors import FormatError, HieroError, os_message
from hiero.core.text import lock_file, open_output, parse_json, unlock_file

LOCK, TEMPORARY_LOCK, CONFIG = "lock", "hiero.lock", "config.yaml"


@contextlib.contextmanager
def locked_directory(directory: Path, command: str, *, keep: bool = True) -> Iterator[None]:
    """Lock a directory against other runs; it is made if it is missing.

    keep  leave the file of the lock in it
    """
    name = directory / (LOCK if keep else TEMPORARY_LOCK)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = lock_file(name)
    except BlockingIOError:
        raise HieroError(f"{directory}: another {command} is using this directory") from None
    except OSError as error:
        reason = "a file" if isinstance(error, FileExistsError) else os_message(error)
        raise FormatError(directory, 0, found=reason, expected="a directory to write to") from None
    try:
        yield
    finally:
        if keep:
            os.close(file)
        else:
            unlock_file(name, file)


def check_directory(directory: Path, record: str) -> bool:
    """Refuse a directory with other files than those of a run, which has the file ``record``.

    Returns whether there is a run.
    """
    if not directory.is_dir():
        if directory.exists():
            raise FormatError(directory, 0, found="a file", expected="a directory")
        return False
    names = set(os.listdir(directory)) - {LOCK, f"{record}.part", f"{record}.part.lock"}
    if names and record not in names:
        expected = f"a new directory, or one with {record}"
        raise FormatError(directory, 0, found="other files", expected=expected, hint="choose another with -o")
    return bool(names)


def version_series() -> str:
    """The series of this version, as run directories record it: all its versions give the same results."""
    return ".".join(hiero.__version__.split(".")[:2])


NAME = "manifest.json"
VERSION = 1
# A file modified less than this before its digest was taken could change again within one tick of its clock:
# its modification time does not prove then that it is unchanged.
TICK_NS = 2_000_000_000
READ_BYTES = 1 << 20
Entry = dict[str, Any]


class Manifest:
    """``manifest.json`` of a run directory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self.head: dict[str, Any] = {}
        self.stages: dict[str, Entry] = {}
        self._files: dict[str, list[Any]] = {}
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        hint = f"remove it, and all stages run again: rm {self.path}"
        try:
            content = parse_json(self.path.read_bytes())
            version = content["version"]
            self.stages, self._files = dict(content["stages"]), dict(content["files"])
        except (OSError, ValueError, KeyError, TypeError):
            raise FormatError(self.path, 0, found="damage", expected="a manifest", hint=hint) from None
        if version != VERSION:
            raise FormatError(self.path, 0, found=f"version {version}", expected=str(VERSION), hint=hint)

    def write(self) -> None:
        """Replace the file atomically."""
        content = {
            "version": VERSION,
            **self.head,
            "versions": versions(),
            "machine": {
                "system": platform.platform(),
                "processor": platform.machine(),
                "processors": os.cpu_count(),
            },
            "stages": self.stages,
            "files": {path: known for path, known in sorted(self._files.items()) if os.path.exists(path)},
        }
        with open_output(self.path) as stream:
            stream.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
            stream.flush()
            os.fsync(stream.fileno())

    def digest(self, path: Path) -> str:
        """SHA-256 of a file, or of the names and digests of the files in a directory; empty for neither."""
        if path.is_dir():
            names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
            listed = "".join(f"{self._of_file(path / name)} {name}\n" for name in names)
            return hashlib.sha256(listed.encode()).hexdigest()
        return self._of_file(path) if path.exists() else ""

    def _of_file(self, path: Path) -> str:
        place = os.path.abspath(path)
        try:
            status = path.stat()
            identity = [status.st_size, status.st_mtime_ns, status.st_ino]
            known = self._files.get(place)
            if known is not None and known[:3] == identity:
                return str(known[3])
            digest, started = hashlib.sha256(), time.time_ns()
            with open(path, "rb", buffering=0) as stream:
                while data := stream.read(READ_BYTES):
                    digest.update(data)
        except OSError as error:
            reason = os_message(error)
            raise FormatError(path, 0, found=reason, expected="a readable file") from None
        self._files.pop(place, None)
        if status.st_mtime_ns < started - TICK_NS:
            self._files[place] = [*identity, digest.hexdigest()]
        return digest.hexdigest()


def versions() -> dict[str, str]:
    """The versions of hiero, Python and the packages that results depend on."""
    found = {"hiero": hiero.__version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "llvmlite", "sacrebleu", "sacremoses", "scipy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def first_change(
    old: Mapping[str, Any], settings: Mapping[str, Any], digests: Callable[[], Mapping[str, str]]
) -> tuple[str, str] | None:
    """The first difference between what a result in a run directory was made from, and what it would be now.

    old      ``made_by``, ``settings`` and ``digests`` of the inputs
    returns  one of these three, and the key under it that differs; None if nothing does
    """
    if old["made_by"] != version_series():
        return "made_by", ""
    if changed := changed_keys(old["settings"], settings):
        return "settings", changed[0]
    if changed := changed_keys(old["digests"], digests()):
        return "digests", changed[0]
    return None


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The keys of settings or digests that have changed since a result was made, with dots between levels."""
    found = []
    for key in [*old, *(key for key in new if key not in old)]:
        one, other = old.get(key), new.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found += changed_keys(one, other, f"{prefix}{key}.")
        elif one != other or (key in old) != (key in new):
            found.append(f"{prefix}{key}")
    return found
