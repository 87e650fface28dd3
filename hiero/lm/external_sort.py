"""Lists longer than memory, written once and read once, in order or sorted.

Both kinds keep as much as the memory given to them allows and write the rest to a temporary file without a
name, which the operating system removes in any case when the process ends.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Hashes
from hiero.core.errors import HieroError, os_message
from hiero.lm.estimate_kernels import combine_kernel, end_kernel, sort_kernel

BLOCK_BYTES = 1 << 21  # of a block that is read
FIRST_ROWS = 1 << 12  # of a buffer; it doubles
MAX_RUNS = 128  # merged at once


class TemporaryStore:
    """A temporary file for appending and random reading."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._errors():
            self._file: Any = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        # Not pread and pwrite, which Windows lacks.
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, self._file.close)
        self.size = 0

    def append(self, array: npt.NDArray[Any]) -> int:
        """Append an array; returns its offset."""
        start, rest = self.size, np.ascontiguousarray(array).data.cast("B")
        with self._errors(), self._lock:
            self._file.seek(self.size)
            while rest:
                written = self._file.write(rest)
                self.size += written
                rest = rest[written:]
        return start

    def read(self, start: int, out: npt.NDArray[Any]) -> None:
        rest = out.data.cast("B")
        with self._errors(), self._lock:
            self._file.seek(start)
            while rest:
                count = self._file.readinto(rest)
                if not count:
                    raise OSError(0, "the temporary file was truncated")
                rest = rest[count:]

    def close(self) -> None:
        """Free the space; done automatically when the object is deleted."""
        self._finalizer()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = os_message(error)
            message = (
                f"{self._folder}: cannot hold temporary files: {reason} (--temp names another directory)"
            )
            raise HieroError(message) from None


class Spool:
    """A list of rows or numbers; ``append`` first, then ``blocks`` or ``take``."""

    def __init__(self, columns: int, scalar: npt.DTypeLike, memory: int, folder: Path) -> None:
        self._shape: tuple[int, ...] = (columns,) if columns else ()
        self._scalar = np.dtype(scalar)
        self._row_bytes = self._scalar.itemsize * max(columns, 1)
        self._memory, self._folder = memory, folder
        self._held: list[npt.NDArray[Any]] = []
        self._held_bytes = 0
        self._store: TemporaryStore | None = None
        self._length = 0
        self._read = 0  # rows handed out

    def __len__(self) -> int:
        return self._length

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Append a copy of the rows."""
        if not len(rows):
            return
        self._length += len(rows)
        self._held.append(np.array(rows, self._scalar))
        self._held_bytes += self._held[-1].nbytes
        if self._held_bytes > self._memory:
            self._store = self._store or TemporaryStore(self._folder)
            for held in self._held:
                self._store.append(held)
            self._held, self._held_bytes = [], 0

    def take(self, count: int) -> npt.NDArray[Any]:
        """The next rows, fewer only at the end. Rows in memory are freed when they have been read."""
        count = min(count, self._length - self._read)
        out = np.empty((count, *self._shape), self._scalar)
        stored = self._store.size // self._row_bytes if self._store else 0
        filled = max(0, min(count, stored - self._read))
        if self._store and filled:
            self._store.read(self._read * self._row_bytes, out[:filled])
        self._read += count
        while filled < count:
            piece = self._held[0][: count - filled]
            out[filled : filled + len(piece)] = piece
            filled += len(piece)
            self._held[0] = self._held[0][len(piece) :]
            if not len(self._held[0]):
                del self._held[0]
        if self._store and self._read == self._length:
            self._store.close()
            self._store = None
        return out

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        rows = max(1, BLOCK_BYTES // self._row_bytes)
        while self._read < self._length:
            yield self.take(rows)


class Sorter:
    """Rows of uint64, added in any order and read in the order of their first ``num_keys`` columns.

    With ``combine``, rows of equal keys become one whose last column is their sum. ``memory`` includes the
    working memory of sorting.
    """

    def __init__(
        self, columns: int, num_keys: int, memory: int, folder: Path, *, combine: bool = False
    ) -> None:
        self._columns, self._num_keys, self._folder, self._combine = columns, num_keys, folder, combine
        self._row_bytes = 8 * columns
        self._max_rows = max(16, memory // (2 * self._row_bytes))
        self._buffer: Hashes = np.empty((min(FIRST_ROWS, self._max_rows), columns), np.uint64)
        self._used = 0
        self._store: TemporaryStore | None = None
        self._runs: list[tuple[int, int]] = []  # offset in the store and number of rows

    def add(self, rows: Hashes) -> None:
        while len(rows):
            if self._used == self._max_rows:
                self._spill()
            count = min(len(rows), self._max_rows - self._used)
            self._make_room(self._used + count)
            self._buffer[self._used : self._used + count] = rows[:count]
            self._used += count
            rows = rows[count:]

    def blocks(self) -> Iterator[Hashes]:
        """All rows, in order, in pieces; afterwards the sorter is empty."""
        if not self._runs:
            rows = self._sorted()
            self._buffer = np.empty((0, self._columns), np.uint64)
            step = max(1, BLOCK_BYTES // self._row_bytes)
            for start in range(0, len(rows), step):
                yield rows[start : start + step]
            return
        self._spill()
        self._buffer = np.empty((0, self._columns), np.uint64)
        while len(self._runs) > MAX_RUNS:
            self._merge_some()
        yield from self._merged(self._runs)
        assert self._store is not None
        self._store.close()

    def _make_room(self, rows: int) -> None:
        if rows > len(self._buffer):
            larger: Hashes = np.empty(
                (min(max(rows, 2 * len(self._buffer)), self._max_rows), self._columns), np.uint64
            )
            larger[: self._used] = self._buffer[: self._used]
            self._buffer = larger

    def _sorted(self) -> Hashes:
        """Empty the buffer; returns its rows, sorted."""
        rows, self._used = self._order(self._buffer[: self._used]), 0
        return rows

    def _order(self, rows: Hashes) -> Hashes:
        spare = np.empty_like(rows)
        if sort_kernel(rows, spare, self._num_keys):
            rows = spare
        return rows[: combine_kernel(rows, self._num_keys)] if self._combine else rows

    def _spill(self) -> None:
        self._store = self._store or TemporaryStore(self._folder)
        rows = self._sorted()
        if len(rows):
            self._runs.append((self._store.append(rows), len(rows)))

    def _merge_some(self) -> None:
        """Merge the first MAX_RUNS runs: with more at once each would be read in tiny pieces."""
        assert self._store is not None
        some, self._runs = self._runs[:MAX_RUNS], self._runs[MAX_RUNS:]
        start, count = self._store.size, 0
        for rows in self._merged(some):
            self._store.append(rows)
            count += len(rows)
        self._runs.append((start, count))

    def _merged(self, runs: list[tuple[int, int]]) -> Iterator[Hashes]:
        """Merge runs: repeatedly sort the rows of all windows that no unread row can precede."""
        assert self._store is not None
        windows = [_Window(self._store, *run, self._columns) for run in runs]
        rows_each = max(1, self._max_rows // (2 * len(runs)))
        while windows:
            for window in windows:
                window.fill(rows_each)
            unfinished = [window.rows[-1:] for window in windows if window.unread]
            if unfinished:
                cut = min(unfinished, key=lambda row: tuple(row[0, : self._num_keys].tolist()))
                pieces = [
                    window.take(int(end_kernel(window.rows, cut, self._num_keys))) for window in windows
                ]
            else:
                pieces = [window.take(len(window.rows)) for window in windows]
            yield self._order(np.concatenate(pieces))
            windows = [window for window in windows if len(window.rows) or window.unread]


class _Window:
    """The next rows of a sorted run."""

    def __init__(self, store: TemporaryStore, start: int, unread: int, columns: int) -> None:
        self._store, self._start, self.unread = store, start, unread
        self.rows: Hashes = np.empty((0, columns), np.uint64)

    def fill(self, size: int) -> None:
        fresh = min(self.unread, size - len(self.rows))
        if fresh > 0:
            rows: Hashes = np.empty((len(self.rows) + fresh, self.rows.shape[1]), np.uint64)
            rows[: len(self.rows)] = self.rows
            self._store.read(self._start, rows[len(self.rows) :])
            self._start += rows[len(self.rows) :].nbytes
            self.unread -= fresh
            self.rows = rows

    def take(self, count: int) -> Hashes:
        taken, self.rows = self.rows[:count], self.rows[count:]
        return taken


class Cursor:
    """The current block of an iterator, for a kernel that asks for more rows."""

    def __init__(self, blocks: Iterator[Hashes], columns: int) -> None:
        self._blocks = blocks
        self.rows: Hashes = np.empty((0, columns), np.uint64)
        self.more = True

    def advance(self) -> None:
        """Go to the next block; ``more`` is False if there is none."""
        rows = next(self._blocks, None)
        self.more = rows is not None
        if rows is not None:
            self.rows = rows
