"""The saved state of an adapter: a directory that a killed process leaves complete.

::

    DIR/meta.json     what the state was begun with: the digests of the model's index and weights, settings
    DIR/pairs.jsonl   the pairs, a line each: {"source": ..., "target": ..., "links": "0-0 1-2"}
    DIR/state.npz     weights, the memory of the learner, the number of pairs and the bytes of their lines

``state.npz`` is replaced after each pair, when the line of the pair is on disk; lines beyond those it counts
were being written when the process ended, and are cut off. Equal pairs make equal files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import is_finite
from hiero.core.directories import check_kinds
from hiero.core.errors import FormatError, HieroError, os_message
from hiero.core.text import lock_file, parse_json, split_words, unlock_file, write_output
from hiero.learning.learner import Learner
from hiero.tuning.vectors import (
    OTHER,
    PER_FEATURE,
    WHAT,
    WeightVector,
    flat_state,
    nested_state,
    read_vectors,
    write_vectors,
)

META, PAIRS, STATE, LOCK = "meta.json", "pairs.jsonl", "state.npz", "lock"
FORMAT = "hiero adaptation 1"
HINT = "remove the directory to begin again"


class EditedPair(NamedTuple):
    """A sentence, its post-edit, and the links of their words."""

    source: str
    target: str
    links: Sequence[tuple[int, int]]

    def line(self) -> bytes:
        links = " ".join(f"{s}-{t}" for s, t in self.links)
        content = {"source": self.source, "target": self.target, "links": links}
        return (json.dumps(content, ensure_ascii=False) + "\n").encode()


class AdaptState:
    """The directory of an adapter, which one process at a time may use."""

    def __init__(self, folder: str | Path, made_with: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.num_pairs, self._num_bytes = 0, 0
        self._lock: int | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            known = {META, PAIRS, STATE, LOCK}
            foreign = sorted(
                p.name for p in self.folder.iterdir() if p.name.partition(".part")[0] not in known
            )
            if foreign:
                expected = "an empty directory, or the state of an adapter"
                raise FormatError(self.folder, 0, found=f"the file {foreign[0]}", expected=expected)
            self._lock = lock_file(self.folder / LOCK)
        except BlockingIOError:
            raise HieroError(f"{self.folder}: another process adapts with this directory") from None
        except OSError as error:
            found = "a file" if isinstance(error, FileExistsError) else os_message(error)
            raise FormatError(self.folder, 0, found=found, expected="a directory to write to") from None
        try:
            self._check(made_with)
        except BaseException:
            self.close()
            raise

    def _check(self, made_with: Mapping[str, Any]) -> None:
        meta = self.folder / META
        content = {"format": FORMAT, **made_with}
        if not meta.exists():
            write_output(meta, json.dumps(content, indent=1) + "\n")
            return
        try:
            found = parse_json(meta.read_bytes())
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise FormatError(meta, 0, found="other content", expected=FORMAT, hint=HINT)
        for key, value in json.loads(json.dumps(content)).items():
            if found.get(key) != value:
                shown = f"{found.get(key)!r}, expected {value!r}" if key != "weights" else "other ones"
                raise HieroError(f"{self.folder}: was begun with another setting of {key}: {shown} ({HINT})")

    @property
    def exists(self) -> bool:
        """Whether a pair was learnt from."""
        return (self.folder / STATE).exists()

    def read(self, vector: WeightVector) -> dict[str, Any]:
        """Read weights into a vector; returns the memory of the learner, as it was written."""
        path = self.folder / STATE
        ids, values = read_vectors(path, vector.symbols, vector.index)
        vector.grow()
        check_kinds(path, WHAT, values, {"weight": (np.float64, 1), "pairs": (np.int64, 1)})
        weight, pairs = values["weight"], values["pairs"].tolist()
        if len(weight) != len(ids) or not is_finite(weight) or len(pairs) != 2 or min(pairs) < 0:
            raise self._broken()
        vector.value[ids] = weight
        self.num_pairs, self._num_bytes = pairs
        try:
            return nested_state(ids, values, len(vector.value))
        except (ValueError, TypeError, AttributeError, IndexError):
            raise self._broken() from None

    def restore(self, learner: Learner, memory: Mapping[str, Any]) -> None:
        """Restore a learner from its memory."""
        try:
            learner.restore(memory)
        except (ValueError, TypeError, KeyError, IndexError):
            raise self._broken() from None

    def _broken(self) -> FormatError:
        return FormatError(self.folder / STATE, 0, found="a broken file", expected=WHAT, hint=HINT)

    def pairs(self) -> Iterator[EditedPair]:
        """The pairs so far; lines that no state counts are cut off."""
        path = self.folder / PAIRS
        if not self.num_pairs:
            path.unlink(missing_ok=True)
            return
        with self._opened(path) as stream:
            data = stream.read()
            lines = data[: self._num_bytes].splitlines(keepends=True)
            if len(data) < self._num_bytes or len(lines) != self.num_pairs:
                expected = f"{self.num_pairs} lines of {self._num_bytes} bytes"
                raise FormatError(path, 0, found=f"{len(lines)} lines", expected=expected, hint=HINT)
            stream.truncate(self._num_bytes)
        for number, line in enumerate(lines, 1):
            try:
                content = parse_json(line)
                links = [tuple(map(int, link.split("-"))) for link in content["links"].split()]
                pair = EditedPair(content["source"], content["target"], [(s, t) for s, t in links])
                for side in pair[:2]:
                    if not side.encode().strip() or " ".join(split_words(side)) != side:
                        raise ValueError("no words")
            except (ValueError, KeyError, TypeError, AttributeError):
                raise FormatError(path, number, found="a broken line", expected="a pair", hint=HINT) from None
            yield pair

    def add(self, pair: EditedPair, vector: WeightVector, memory: Mapping[str, Any]) -> None:
        """Append a pair, and replace weights and the memory of the learner."""
        line = pair.line()
        with self._opened(self.folder / PAIRS) as stream:
            stream.seek(self._num_bytes)
            stream.write(line)
            stream.truncate()
            stream.flush()
            os.fsync(stream.fileno())
        self.num_pairs += 1
        self._num_bytes += len(line)
        count = len(vector)
        # All features, also those of weight 0: so they keep their numbers, and with these the order of sums.
        write_vectors(
            self.folder / STATE,
            vector.symbols,
            vector.index,
            np.arange(count),
            weight=vector.value[:count],
            pairs=np.array([self.num_pairs, self._num_bytes]),
            **state_arrays(memory, vector),
        )

    def _opened(self, path: Path) -> Any:
        try:
            return open(path, "r+b" if path.exists() else "w+b")
        except OSError as error:
            raise FormatError(path, 0, found=os_message(error), expected="a file to write to") from None

    def close(self) -> None:
        if self._lock is not None:
            unlock_file(self.folder / LOCK, self._lock)
            self._lock = None

    def __enter__(self) -> AdaptState:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def state_arrays(memory: Mapping[str, Any], vector: WeightVector) -> dict[str, npt.NDArray[Any]]:
    """The memory of a learner as arrays, those over features as long as the vector has features."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, value in flat_state(memory):
        if isinstance(value, np.ndarray) and value.shape[:1] == vector.value.shape:
            arrays[PER_FEATURE + name] = value[: len(vector)]
        else:
            arrays[OTHER + name] = np.asarray(value)
    return arrays
