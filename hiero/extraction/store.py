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

from hiero.core.arrays import Ids, Ints, read_only
from hiero.core.errors import FormatError, HieroWarning, os_message
from hiero.core.text import NO_LINKS, lock_file, unlock_file
from hiero.extraction.store_kernels import (
    NUM_FEATURES,
    Packed,
    copy_packed_kernel,
    open_packed_kernel,
    pack_rules_kernel,
    packed_sizes_kernel,
    plant_packed_kernel,
)
from hiero.grammar.assemble_kernels import IdMaps, offsets_kernel
from hiero.grammar.rules import NO_IDS, Rules, RuleTable, frozen, new_rules
from hiero.grammar.trie_kernels import GrowingTrie, larger_trie

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


class PackedRules(NamedTuple):
    """Stored rules, numbered as in the index; ``own_ids`` map these numbers, and gaps, to themselves."""

    packed: Packed
    own_ids: IdMaps

    @property
    def num_rules(self) -> int:
        return len(self.packed.node_of)

    def words(self, side: int) -> Ids:
        """The distinct words of all source sides, SRC_WORD, or of all target sides, TGT_WORD."""
        item, first = self.packed.item, self.packed.first
        return item[first[side] : first[side + 1]]

    def unpacked(self) -> Rules:
        """The rules as they were extracted."""
        size, place = np.empty((self.num_rules, 4), np.int32), np.arange(self.num_rules)
        packed_sizes_kernel(self.packed, size)
        rules = new_rules(offsets_kernel(size, place), NUM_FEATURES)
        self.copy(self.own_ids, np.arange(NUM_FEATURES), place, rules)
        return rules

    def copy(self, ids: IdMaps, column: Ints, place: Ints, out: Rules) -> None:
        """Copy the rules to their places among others, with these ids."""
        copy_packed_kernel(self.packed, ids, column, place, out.dense.view(np.int32), out)


def own_ids(num_src: int, num_tgt: int) -> IdMaps:
    """Maps of so many words, and of gaps, to themselves."""
    gaps = np.array([-2, -1], np.int32)
    src, tgt = (np.append(np.arange(size, dtype=np.int32), gaps) for size in (num_src, num_tgt))
    return IdMaps(src, tgt, np.zeros(1, np.int32), NO_IDS)


class PackedTable(RuleTable):
    """Stored rules as a table, from which a grammar is built without unpacking them before."""

    __slots__ = ("_stored",)

    def __init__(self, stored: PackedRules, columns: tuple[int, ...], ids: IdMaps) -> None:
        self._stored = stored
        self.columns, self.ids = columns, ids
        self.num_rules, self.rows = stored.num_rules, np.arange(stored.num_rules)
        self._origin, self._rules = None, None

    @property
    def origin(self) -> Rules:
        if self._origin is None:
            self._origin = frozen(self._stored.unpacked())
        return self._origin

    def measure(self, names: Ids, out_size: Ids) -> None:
        packed_sizes_kernel(self._stored.packed, out_size)

    def plant(self, names: Ids, rank: Ids, nodes: GrowingTrie, key: Ids, size: Ids) -> GrowingTrie:
        if len(key) < self.num_rules:
            return super().plant(names, rank, nodes, key, size)
        packed = self._stored.packed
        while len(nodes.parent) < nodes.used[0] + packed.node_at[-1] - packed.node_at[0]:
            nodes = larger_trie(nodes)
        plant_packed_kernel(packed, self.ids, rank, nodes, key)
        self.measure(names, size)
        return nodes

    def copy(self, names: Ids, column: Ints, place: Ints, out: Rules) -> None:
        self._stored.copy(self.ids, column, place, out)


class RuleStore:
    """A directory of rules by key; safe to share between threads and processes.

    num_words  words of the source and the target side of the index, with the unknown one
    optional   whether to go on without what cannot be written, after a warning
    """

    def __init__(self, path: str | Path, num_words: tuple[int, int], *, optional: bool = False) -> None:
        self.path, self._optional = Path(path), optional
        self._is_full = False
        self._num_words = read_only(np.array(num_words, np.int64))
        self._own_ids = own_ids(*num_words)
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

    def get(self, key: bytes) -> PackedRules | None:
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
        return None if found is None else self._checked(found)

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

    def _checked(self, data: bytes) -> PackedRules | None:
        if len(data) % 8:
            return None
        is_sound, packed = open_packed_kernel(np.frombuffer(data, np.uint64), self._num_words)
        return PackedRules(packed, self._own_ids) if is_sound else None

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
