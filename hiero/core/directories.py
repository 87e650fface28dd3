"""Directories of memory-mapped arrays, described by a ``meta.json``; arrays written piece by piece."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import read_only
from hiero.core.errors import FormatError, HieroError, os_message
from hiero.core.text import Claim, open_bytes

META = "meta.json"
SMALL_BYTES = 1 << 16  # reading a small file is cheaper than mapping it, and an empty array cannot be mapped


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of directory."""

    name: str  # "hiero grammar"
    version: int
    hint: str  # how to replace a damaged or outdated one
    arrays: Mapping[str, tuple[type[np.generic], int]]  # name of the file without .npy: scalar, dimensions

    def write(self, path: Path, meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write a directory as ``PATH.part``, and rename it when it is complete.

        A directory of the same kind is replaced; anything else at the path is left alone.
        """
        with self.create(path) as (part, head):
            for name in self.arrays:
                save_array(part / f"{name}.npy", arrays[name])
            head.update(meta)

    @contextlib.contextmanager
    def create(self, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Like ``write``, of arrays that the block writes into the directory yielded, as ``NAME.npy``.

        The content of the mapping yielded goes into ``meta.json``.
        """
        self.check_place(path)
        meta: dict[str, Any] = {}
        with create_directory(path) as part:
            yield part, meta
            head = {"format": self.name, "version": self.version}
            (part / META).write_text(json.dumps(head | meta, indent=1) + "\n", encoding="utf-8")

    def check_place(self, path: Path) -> None:
        """Refuse a path where something else exists; callers check this before long work as well."""
        if path.exists() and not self.recognises(path):
            raise HieroError(f"{path}: already exists and contains no {self.name}")

    def recognises(self, path: Path) -> bool:
        """Whether a path is a directory of this kind, of any version."""
        try:
            meta = json.loads((path / META).read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(meta, dict) and meta.get("format") == self.name

    def read(self, path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The content of ``meta.json`` and the mapped arrays; the caller checks that they are consistent."""
        meta = self._read_meta(path)
        return meta, {name: self._map(path / f"{name}.npy", *kind) for name, kind in self.arrays.items()}

    def broken(self, path: Path, found: str, expected: str) -> FormatError:
        return FormatError(path, 0, found=found, expected=expected, hint=self.hint)

    def _read_meta(self, path: Path) -> dict[str, Any]:
        what = f"a {self.name}, which has {META}"
        with open_bytes(path / META, what) as stream:
            text = stream.read()
        try:
            meta = json.loads(text)
        except ValueError as error:
            raise self.broken(path / META, f"damage ({error})", what) from None
        if not isinstance(meta, dict) or meta.get("format") != self.name:
            raise self.broken(path / META, "something else", f"a {self.name}")
        if meta.get("version") != self.version:
            raise self.broken(path / META, f"version {meta.get('version')}", f"version {self.version}")
        return meta

    def _map(self, path: Path, scalar: type[np.generic], dimensions: int) -> npt.NDArray[Any]:
        what = f"an array of a {self.name}"
        try:
            small = path.stat().st_size < SMALL_BYTES
            array = np.load(path) if small else np.load(path, mmap_mode="r")
        except FileNotFoundError:
            raise self.broken(path, "no such file", what) from None
        except (OSError, ValueError, EOFError) as error:
            raise self.broken(path, f"damage ({error})", what) from None
        if array.dtype != scalar or array.ndim != dimensions:
            found = f"{array.ndim} dimensions of {array.dtype}"
            raise self.broken(path, found, f"{dimensions} of {np.dtype(scalar)}")
        return read_only(array)


@contextlib.contextmanager
def create_directory(path: Path) -> Iterator[Path]:
    """Yield the new directory ``PATH.part``, which replaces that of the path when the block ends without an
    exception."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with Claim(path) as claim:
            claim.clear()
            claim.part.mkdir()
            claim.is_new = False
            try:
                yield claim.part
                claim.replace_directory()
            finally:
                claim.clear()
    except OSError as error:
        raise HieroError(f"{path}: cannot be written: {os_message(error)}") from None


class _PlainStream:
    """Hides that a stream is a file: numpy writes to files by C functions that do not report what failed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.write = stream.write


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array in a directory that is being created."""
    with open(path, "xb") as stream:
        np.save(_PlainStream(stream), array)


MAGIC = b"\x93NUMPY\x01\x00"
HEADER_BYTES = 128  # enough for one dimension of any length, and a multiple of 64, as numpy requires


class GrowingArray:
    """A one-dimensional ``.npy`` file whose length is known when it is closed; a context manager."""

    def __init__(self, path: Path, scalar: type[np.generic]) -> None:
        self.length = 0
        self._scalar = np.dtype(scalar)
        self._stream = open(path, "xb")  # noqa: SIM115
        self._stream.write(self._header())

    def _header(self) -> bytes:
        kind = {"descr": self._scalar.str, "fortran_order": False, "shape": (self.length,)}
        room = HEADER_BYTES - len(MAGIC) - 2
        return MAGIC + room.to_bytes(2, "little") + repr(kind).encode().ljust(room - 1) + b"\n"

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write more values, which must be of the type of the array."""
        assert values.dtype == self._scalar
        self._stream.write(np.ascontiguousarray(values).data)
        self.length += len(values)

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._stream:
            if error is None:
                self._stream.seek(0)
                self._stream.write(self._header())


HASH_BYTES = 1 << 22


def digest_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal, for the ``meta.json`` of what is made of it."""
    digest = hashlib.sha256()
    with open_bytes(path) as stream:
        while data := stream.read(HASH_BYTES):
            digest.update(data)
    return digest.hexdigest()
