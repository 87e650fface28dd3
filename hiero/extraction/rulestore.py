"""Rules of single sentences, kept between runs: a file each, of arrays end to end.

A file is named after a digest of everything that its rules depend on, so it is never out of date. An
incomplete file, or one of another version, counts as missing, so files are written in place, and a killed
run leaves nothing behind that has to be removed.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np

from hiero.core.errors import FormatError, os_message
from hiero.grammar.rules import Rules

MAGIC = b"hiero rules 1\n\0\0"
# Name, scalar, last axis of arrays with two. Larger items first, so that all are aligned.
_ARRAYS: tuple[tuple[str, type[np.generic], int], ...] = (
    ("first_src", np.int64, 0),
    ("first_tgt", np.int64, 0),
    ("first_link", np.int64, 0),
    ("src", np.int32, 0),
    ("tgt", np.int32, 0),
    ("dense", np.float32, 7),
    ("link", np.int16, 2),
)
_HEAD_BYTES = len(MAGIC) + 8 * len(_ARRAYS)


class RuleStore:
    """A directory of rules by key; safe to share between threads and processes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FormatError(
                self.path, 0, found=os_message(error), expected="a directory for rules"
            ) from None

    def _file(self, key: str) -> Path:
        return self.path / key[:2] / f"{key[2:]}.rules"

    def get(self, key: str) -> Rules | None:
        """The rules stored under a key, or None."""
        try:
            data = self._file(key).read_bytes()
        except OSError:
            return None
        if len(data) < _HEAD_BYTES or not data.startswith(MAGIC):
            return None
        sizes = np.frombuffer(data, np.int64, len(_ARRAYS), len(MAGIC)).tolist()
        total = sum(size * np.dtype(kind).itemsize for size, (_, kind, _) in zip(sizes, _ARRAYS, strict=True))
        if len(data) != _HEAD_BYTES + total:
            return None
        arrays = {}
        at = _HEAD_BYTES
        for size, (name, kind, width) in zip(sizes, _ARRAYS, strict=True):
            array = np.frombuffer(data, kind, size, at)
            at += array.nbytes
            arrays[name] = array.reshape(-1, width) if width else array
        num_rules = len(arrays["first_src"]) - 1
        return Rules(
            lhs=np.zeros(num_rules, np.int32),
            first_sparse=np.zeros(num_rules + 1, np.int64),
            sparse_name=np.zeros(0, np.int32),
            sparse_value=np.zeros(0, np.float32),
            **arrays,
        )

    def put(self, key: str, rules: Rules) -> None:
        """Store rules without labels and named features, as they are extracted."""
        arrays = [np.ascontiguousarray(getattr(rules, name), kind) for name, kind, _ in _ARRAYS]
        sizes = np.array([array.size for array in arrays], np.int64)
        file = self._file(key)
        try:
            file.parent.mkdir(exist_ok=True)
            # A process that writes this file at the same time writes the same bytes.
            file.write_bytes(b"".join([MAGIC, sizes.tobytes(), *(array.tobytes() for array in arrays)]))
        except OSError as error:
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
                file.parent.rmdir()  # if it is empty
            raise FormatError(file, 0, found=os_message(error), expected="room to write") from None
