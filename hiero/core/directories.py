"""Directories of memory-mapped arrays, described by a ``meta.json``; arrays written piece by piece.

``meta.json`` has the length and the CRC-32 of every array file, and ends with that of the text before it. A
directory is checked when it is opened: all of its bytes against these, and by the ``check`` of its kind every
offset and number that kernels use as a place, since a file may also be made to deceive. Large directories
that passed are remembered in the cache by what the system knows of their files, and not read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Bytes, read_only
from hiero.core.errors import FormatError, HieroError, os_message, show
from hiero.core.text import Claim, open_bytes

META = "meta.json"
MOST_META = 16 << 20  # bytes of meta.json
SMALL_BYTES = 1 << 16  # reading a small file is cheaper than mapping it, and an empty array cannot be mapped
Arrays = Mapping[str, npt.NDArray[Any]]
ArrayKind = tuple[type[np.generic], int]  # scalar, number of dimensions


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of directory."""

    name: str  # "hiero grammar"
    version: int
    hint: str  # how to replace a damaged or outdated one
    arrays: Mapping[str, tuple[type[np.generic], int]]  # name of the file without .npy: scalar, dimensions
    check: Callable[[Mapping[str, Any], Arrays], bool]  # whether the content is safe to use

    def write(self, path: Path, meta: Mapping[str, Any], arrays: Arrays) -> None:
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
            sums = {"arrays": {name: _sum_of(part / f"{name}.npy") for name in self.arrays}}
            (part / META).write_bytes(sealed(json.dumps(head | meta | sums, indent=1)))

    def check_place(self, path: Path) -> None:
        """Refuse a path where something else exists; callers check this before long work as well."""
        if path.exists() and not self.recognises(path):
            raise HieroError(f"{path}: already exists and contains no {self.name}")

    def recognises(self, path: Path) -> bool:
        """Whether a path is a directory of this kind, of any version."""
        try:
            with _opened(path / META) as (stream, _):
                meta = json.loads(stream.read(MOST_META))
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(meta, dict) and meta.get("format") == self.name

    def read(self, path: Path, *, thorough: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """The content of ``meta.json`` and the mapped arrays, checked.

        ``thorough``: check a directory again that passed before.
        """
        text, place = self._file(path / META, f"a {self.name}, which has {META}")
        meta = self._meta(path / META, text.tobytes())
        files = {name: self._file(path / f"{name}.npy", f"an array of a {self.name}") for name in self.arrays}
        arrays = {
            name: self._array(path / f"{name}.npy", raw, *self.arrays[name])
            for name, (raw, _) in files.items()
        }
        passed = _Passed(path, [self.name, place, *(place for _, place in files.values())])
        if thorough or not passed.known:
            for name, (raw, _) in files.items():
                if meta["arrays"].get(name) != _sum(raw):
                    raise self.broken(path / f"{name}.npy", "other content", "what was written")
            if not self.check(meta, arrays):
                raise self.broken(path, "arrays that do not fit together", f"a {self.name}")
            passed.remember()
        return meta, arrays

    def broken(self, path: Path, found: str, expected: str) -> FormatError:
        return FormatError(path, 0, found=found, expected=expected, hint=self.hint)

    def _meta(self, path: Path, text: bytes) -> dict[str, Any]:
        try:
            meta = json.loads(text)
        except RecursionError:
            raise self.broken(path, "lists nested too deeply", f"a {self.name}") from None
        except ValueError as error:
            raise self.broken(path, f"damage ({error})", f"a {self.name}, which has {META}") from None
        if not isinstance(meta, dict) or meta.get("format") != self.name:
            raise self.broken(path, "something else", f"a {self.name}")
        if meta.get("version") != self.version:
            found = show(str(meta.get("version"))).strip("'")
            raise self.broken(path, f"version {found}", f"version {self.version}")
        if unsealed(text) is None or not isinstance(meta.get("arrays"), dict):
            raise self.broken(path, "other content", "what was written")
        return meta

    def _file(self, path: Path, what: str) -> tuple[Bytes, Place]:
        """The bytes of a file, and its place."""
        try:
            with _opened(path) as (stream, place):
                if path.name == META and place[2] > MOST_META:
                    raise self.broken(path, f"{place[2]:,} bytes", f"at most {MOST_META:,}")
                if place[2] >= SMALL_BYTES:
                    return read_only(np.memmap(stream, np.uint8, "r")), place
                return read_only(np.fromfile(stream, np.uint8)), place
        except FileNotFoundError:
            raise self.broken(path, "no such file", what) from None
        except (OSError, ValueError) as error:
            raise self.broken(path, f"damage ({error})", what) from None

    def _array(self, path: Path, raw: Bytes, scalar: type[np.generic], dimensions: int) -> npt.NDArray[Any]:
        try:
            array = array_in(raw)
        except ValueError as error:
            raise self.broken(path, f"damage ({error})", f"an array of a {self.name}") from None
        if array.dtype != scalar or array.ndim != dimensions:
            found = f"{array.ndim} dimensions of {array.dtype}"
            raise self.broken(path, found, f"{dimensions} of {np.dtype(scalar)}")
        return array


# ---- array files

MAGIC = b"\x93NUMPY\x01\x00"
SCALARS = {
    np.dtype(scalar).str: np.dtype(scalar)
    for scalar in (
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64),
        *(np.float32, np.float64, np.bool_),
    )
}
# As numpy and ``GrowingArray`` write it: nothing is evaluated, and no array has objects.
HEADER = re.compile(
    rb"{'descr': '([<|][a-z]\d)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,18}(?:, \d{1,18})*)?),?\)(?:, )?} *\n"
)


def array_in(raw: Bytes) -> npt.NDArray[Any]:
    """The array in the bytes of an ``.npy`` file, without a copy; ValueError if they are something else."""
    if raw[: len(MAGIC)].tobytes() != MAGIC or len(raw) < len(MAGIC) + 2:
        raise ValueError("no array")
    begin = len(MAGIC) + 2
    end = begin + int(raw[begin - 2]) + 256 * int(raw[begin - 1])
    header = HEADER.fullmatch(raw[begin:end].tobytes())
    scalar = SCALARS.get(header[1].decode()) if header else None
    if header is None or scalar is None or end % 64:
        raise ValueError("an array of another kind")
    shape = tuple(int(length) for length in header[2].split(b", ") if length)
    num_bytes = math.prod(shape) * scalar.itemsize
    if len(raw) - end != num_bytes:
        raise ValueError(f"{len(raw) - end} bytes of numbers, not {num_bytes}")
    return read_only(raw[end:].view(scalar).reshape(shape))


# Raised for a damaged archive.
DAMAGE = (ValueError, LookupError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
MOST_UNPACKED = 1 << 30  # bytes of the compressed arrays of a file


def read_npz(path: str | Path, what: str, kinds: Mapping[str, ArrayKind]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an ``.npz`` file; a FormatError unless ``check_kinds`` finds those of ``kinds``."""
    try:
        with open_bytes(path, what) as stream:
            arrays = _arrays_in(stream)
    except DAMAGE as error:
        raise FormatError(path, 0, found=f"damage ({error})", expected=f"{what} as .npz") from None
    check_kinds(path, what, arrays, kinds)
    return arrays


def check_kinds(path: str | Path, what: str, arrays: Arrays, kinds: Mapping[str, ArrayKind]) -> None:
    """Refuse a file that lacks an array, or has another one by its name."""
    for name, (scalar, dimensions) in kinds.items():
        array = arrays.get(name)
        if array is None:
            raise FormatError(path, 0, found=f"no array {name!r}", expected=what)
        if array.dtype != scalar or array.ndim != dimensions:
            found = f"{name} with {array.ndim} dimensions of {array.dtype}"
            raise FormatError(path, 0, found=found, expected=f"{dimensions} of {np.dtype(scalar)}")


def _arrays_in(stream: IO[bytes]) -> dict[str, npt.NDArray[Any]]:
    num_bytes = stream.seek(0, 2)
    with zipfile.ZipFile(stream) as file:
        entries = file.infolist()
        # What the entries say about themselves is what is allocated for them.
        if sum(entry.compress_size for entry in entries) > num_bytes:
            raise ValueError("entries longer than the file")
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > max(MOST_UNPACKED, num_bytes):
            raise ValueError(f"{unpacked:,} bytes of arrays")
        raw = {entry.filename: np.frombuffer(file.read(entry), np.uint8) for entry in entries}
    return {name.removesuffix(".npy"): array_in(data) for name, data in raw.items()}


# ---- checks

Place = tuple[int, ...]  # device, inode, length and times of a file: another value if it changes
CHECKS = 1  # raised with every change of a ``check``, so that directories are checked again
LEAST_REMEMBERED = 1 << 20  # bytes; a smaller directory is checked faster than looked up
TICK_NS = 2_000_000_000  # a file may change within one tick of its clock and keep its time
SEAL = re.compile(rb',\n "crc32": (\d{1,10})\n}\n')


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], Place]]:
    """A regular file, and its place; opening anything else, such as a pipe, could wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("no regular file")
        times = status.st_mtime_ns, status.st_ctime_ns
        yield stream, (status.st_dev, status.st_ino, status.st_size, *times)


def _sum(raw: Bytes) -> list[int]:
    return [len(raw), zlib.crc32(raw.data)]


def _sum_of(path: Path) -> list[int]:
    with open(path, "rb") as stream:
        return _sum(np.memmap(stream, np.uint8, "r"))


def sealed(text: str) -> bytes:
    """The text of a JSON object with the CRC-32 of it as its last entry."""
    body = text.removesuffix("\n}").encode()
    return body + f',\n "crc32": {zlib.crc32(body)}\n}}\n'.encode()


def unsealed(data: bytes) -> bytes | None:
    """What ``sealed`` was given, without its end; None if it has changed."""
    seal = SEAL.fullmatch(data, max(data.rfind(b",\n"), 0))
    body = data[: seal.start()] if seal else b""
    return body if seal and int(seal[1]) == zlib.crc32(body) else None


class _Passed:
    """Whether a directory passed its checks before, remembered in a file of the cache."""

    def __init__(self, path: Path, what: list[Any]) -> None:
        places = [place for place in what if isinstance(place, tuple)]
        self._started = time.time_ns()
        self._last_change = max(max(place[3:]) for place in places)
        self._content = f"{CHECKS} {what}".encode()
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        is_large = sum(place[2] for place in places) >= LEAST_REMEMBERED
        name = hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._file = Path(base, "hiero", "checked", name) if is_large and os.path.isabs(base) else None
        self.known = False
        if self._file is not None:
            with contextlib.suppress(OSError):
                self.known = self._file.read_bytes() == self._content

    def remember(self) -> None:
        if self._file is None or self._last_change > self._started - TICK_NS:
            return
        part = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_bytes(self._content)
            os.replace(part, self._file)


# ---- writing


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
        np.save(_PlainStream(stream), np.ascontiguousarray(array))


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
