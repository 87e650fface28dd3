"""Rules of sentences, kept between runs: a directory that holds those of any number of sentences.

Rules are found by a digest of everything that they depend on, so they are never out of date. Processes
append to these files, and those that do it at the same time to 001.rules and so on:

    DIR/000.rules  packed rules of sentences, end to end
    DIR/000.index  for each of them its key, place, length and CRC-32, and the CRC-32 of these
    DIR/000.lock   exists while a process appends

An entry of the index is written after its rules. What a killed process left without an entry, and what does
not fit its CRC-32, counts as missing, and is made and appended again; nothing has to be removed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import threading
import warnings
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from hiero.core.arrays import read_only
from hiero.core.errors import FormatError, HieroWarning, os_message
from hiero.core.text import NO_LINKS, lock_file, unlock_file
from hiero.extraction.store_kernels import pack_rules_kernel, unpack_rules_kernel
from hiero.grammar.rules import Rules

ENTRY = struct.Struct("<32sqqI")  # key, place, length and CRC-32 of rules
SEALED = ENTRY.size + 4  # with the CRC-32 of the entry
MAGIC = b"hiero rules 3\n".ljust(SEALED, b"\0")
MOST_BYTES = 1 << 30  # of the rules of a sentence


class _Place(NamedTuple):
    """Packed rules: the name of their files, and what the index says of them."""

    name: str
    begin: int
    length: int
    crc: int


class _File:
    """A pair of files to read, to which another process may append."""

    def __init__(self, index: Path) -> None:
        with contextlib.ExitStack() as stack:
            self._index = stack.enter_context(open(index, "rb", buffering=0))
            self._rules = stack.enter_context(open(index.with_suffix(".rules"), "rb", buffering=0))
            self.close = stack.pop_all().close
        self._is_ours = False  # and not of another version

    def new_entries(self) -> list[tuple[bytes, int, int, int]]:
        """The entries that were appended since the last call."""
        if not self._is_ours:
            self._index.seek(0)
            self._is_ours = self._index.read(SEALED) == MAGIC
        data = self._index.read() if self._is_ours else b""
        if len(data) % SEALED:  # one that is being written
            self._index.seek(-(len(data) % SEALED), os.SEEK_CUR)
        found = []
        for at in range(0, len(data) - SEALED + 1, SEALED):
            entry = data[at : at + ENTRY.size]
            if data[at + ENTRY.size : at + SEALED] == _seal(entry):
                found.append(ENTRY.unpack(entry))
        return found

    def read(self, place: _Place) -> bytes | None:
        """Packed rules; None if they are damaged."""
        if not 0 <= place.length <= MOST_BYTES or place.begin < 0:
            return None
        self._rules.seek(place.begin)
        data = self._rules.read(place.length)
        return data if len(data) == place.length and zlib.crc32(data) == place.crc else None


def _seal(entry: bytes) -> bytes:
    return zlib.crc32(entry).to_bytes(4, "little")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The first index of this version that no other process appends to, and its rules."""
    for number in itertools.count():
        path = folder / f"{number:03d}.lock"
        try:
            lock = lock_file(path)
        except BlockingIOError:
            continue
        try:
            with _appended(path.with_suffix(".index")) as index:
                if MAGIC.startswith(index.read(SEALED)):
                    with _appended(path.with_suffix(".rules")) as rules:
                        yield index, rules
                        return
        finally:
            unlock_file(path, lock)


def _append(folder: Path, key: bytes, data: bytes) -> None:
    with _locked(folder) as (index, rules):
        sizes = index.seek(0, os.SEEK_END), rules.seek(0, os.SEEK_END)
        try:
            if sizes[0] < SEALED:
                index.truncate(0)
                _write(index, MAGIC)
            else:
                index.truncate(sizes[0] - sizes[0] % SEALED)  # what a killed process left
            _write(rules, data)
            entry = ENTRY.pack(key, sizes[1], len(data), zlib.crc32(data))
            _write(index, entry + _seal(entry))
        except OSError:
            for stream, size in zip((index, rules), sizes, strict=True):
                with contextlib.suppress(OSError):
                    stream.truncate(size)
                    if not size:
                        os.unlink(stream.name)
            raise


def _appended(path: Path) -> IO[bytes]:
    """A file to read and append to; a link is not followed."""
    how = os.O_RDWR | os.O_APPEND | os.O_CREAT | NO_LINKS
    return open(path, "r+b", buffering=0, opener=lambda name, _: os.open(name, how, 0o666))


def _write(stream: IO[bytes], data: bytes) -> None:
    """Write all of the data: a full disk takes part of them without an error."""
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


class RuleStore:
    """A directory of rules by key; safe to share between threads and processes.

    num_words  words of the source and the target side of the index, with the unknown one
    optional   whether to go on without what cannot be written, after a warning
    """

    def __init__(self, path: str | Path, num_words: tuple[int, int], *, optional: bool = False) -> None:
        self.path, self._optional = Path(path), optional
        self._is_full = False
        self._num_words = read_only(np.array(num_words, np.int64))
        self._lock = threading.Lock()
        self._files: dict[str, _File] = {}
        self._places: dict[bytes, list[_Place]] = {}
        self._stack = contextlib.ExitStack()
        weakref.finalize(self, self._stack.close)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._look()
        except OSError as error:
            self._fail(error, "a directory for rules")

    def get(self, key: bytes) -> Rules | None:
        """The rules stored under a key, or None."""
        try:
            with self._lock:
                if key not in self._places:
                    self._look()  # others may have written
                places = self._places.get(key, ())
                # Copies, since a map of a file that becomes shorter is fatal.
                found = next(filter(None, (self._files[place.name].read(place) for place in places)), None)
        except OSError:
            return None
        return None if found is None else self._unpacked(found)

    def _look(self) -> None:
        """Read new entries of all files."""
        for path in sorted(self.path.glob("[0-9]*.index")):
            if path.name not in self._files:
                with contextlib.suppress(FileNotFoundError):  # its rules: not yet written
                    self._files[path.name] = file = _File(path)
                    self._stack.callback(file.close)
        for name, file in self._files.items():
            for key, *place in file.new_entries():
                self._places.setdefault(key, []).append(_Place(name, *place))

    def _unpacked(self, data: bytes) -> Rules | None:
        if len(data) % 8:
            return None
        found = unpack_rules_kernel(np.frombuffer(data, np.uint64), self._num_words)
        is_sound, first_src, src, first_tgt, tgt, dense, first_link, link = found
        if not is_sound:
            return None
        num_rules = len(dense)
        return Rules(
            np.zeros(num_rules, np.int32),
            first_src,
            src,
            first_tgt,
            tgt,
            dense.view(np.float32),
            np.zeros(num_rules + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float32),
            first_link,
            link,
        )

    def put(self, key: bytes, rules: Rules) -> None:
        """Store rules without labels and named features, as they are extracted."""
        if not self._is_full:
            plain = Rules._make(read_only(array) for array in rules)
            self.append(key, pack_rules_kernel(plain, plain.dense.view(np.int32)).tobytes())

    def append(self, key: bytes, data: bytes) -> None:
        """Store packed rules."""
        with self._lock:
            try:
                _append(self.path, key, data)
            except OSError as error:
                self._fail(error, "room to write")

    def _fail(self, error: OSError, expected: str) -> None:
        if not self._optional:
            raise FormatError(self.path, 0, found=os_message(error), expected=expected) from None
        self._is_full = True
        problem = f"{self.path}: {os_message(error)}: not all rules of sentences are kept"
        warnings.warn(problem, HieroWarning, stacklevel=2)
