"""Damaged files: mutants of specimens, and their use in child processes with limits of memory and time.

A mutant has one to three changes: bits, bytes, blocks, numbers, separators, array elements, whole arrays, and
entries of JSON; in compressed files, of the compressed bytes or of their content. A directory of arrays is
*resealed* in half of all mutants: its checksums are made to agree, so that only the checks of its content
stand between it and kernels. Equal seeds give equal mutants.

The child process is forked, so that a crash costs one mutant, and another child continues after it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiero.core.directories import META, sealed
from hiero.core.errors import HieroError, HieroWarning

Random = np.random.Generator
Array = npt.NDArray[Any]
MEMORY = 1 << 30  # bytes that a mutant may take
SECONDS = 20.0
OUTCOMES = ("refused", "equal", "other", "other, resealed")
BAD = ("traceback", "lines", "memory", "signal", "hang", "silent")


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its name, and a function that reads and uses one; it returns the results."""

    name: str
    use: Callable[[Path], object]

    @property
    def is_directory(self) -> bool:
        return "." not in self.name


# ---- changes


def reseal(directory: Path, **changes: Any) -> None:
    """Change entries of ``meta.json``, and write lengths and checksums that agree with the present files."""
    path = directory / META
    meta: dict[str, Any] = json.loads(path.read_bytes())
    meta.pop("crc32", None)
    for name in meta["arrays"]:
        file = directory / f"{name}.npy"
        if file.exists():
            data = file.read_bytes()
            meta["arrays"][name] = [len(data), zlib.crc32(data)]
    path.write_bytes(sealed(json.dumps(meta | changes, indent=1)))


ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b"|||",
    b"\x1f\x8b",
    b'"',
    b"[",
    b"]",
    b"{",
    b"-",
    b"\xe2",
)
ODD_NUMBERS = (
    b"1e39",
    b"1e308",
    b"-1",
    b"0",
    b"nan",
    b"inf",
    b"99999999999",
    b"9" * 30,
    b"1e-400",
    b"1.5",
    b"",
)


def changed_bytes(data: bytes, rng: Random) -> bytes:
    """One change of some bytes."""
    size = len(data)
    if not size:
        return ODD_BYTES[rng.integers(len(ODD_BYTES))]
    a, b = sorted(rng.integers(0, size + 1, 2).tolist())
    b = min(b, a + int(rng.integers(1, 65)))
    block = data[a:b]
    how = rng.integers(8)
    if how == 0:
        a = min(a, size - 1)
        return data[:a] + bytes([data[a] ^ (1 << int(rng.integers(8)))]) + data[a + 1 :]
    if how == 1:
        return data[:a]
    if how == 2:
        return data[:a] + data[b:]
    if how == 3:
        return data[:b] + block + data[b:]
    if how == 4:
        c = int(rng.integers(0, size - len(block) + 1))
        rest = data[:a] + data[b:]
        return rest[:c] + block + rest[c:]
    if how == 5:
        return data[:a] + ODD_BYTES[rng.integers(len(ODD_BYTES))] + data[a:]
    if how == 6:
        return data[:a] + rng.integers(0, 256, len(block), np.uint8).tobytes() + data[b:]
    return data[:a] + bytes([int(rng.choice([0, 127, 128, 255]))]) * len(block) + data[b:]


def changed_text(data: bytes, rng: Random) -> bytes:
    """A change of bytes, a number, a word or a line."""
    how = rng.integers(5)
    if how == 0:
        return changed_bytes(data, rng)
    if how in (1, 2):
        starts = [
            k
            for k in range(len(data))
            if data[k : k + 1].isdigit() and (k == 0 or not data[k - 1 : k].isdigit())
        ]
        if not starts:
            return changed_bytes(data, rng)
        begin = end = int(rng.choice(starts))
        while data[end : end + 1].isdigit():
            end += 1
        return data[:begin] + ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))] + data[end:]
    separator = b"\n" if how == 3 else b" "
    parts = data.split(separator)
    k = int(rng.integers(len(parts)))
    other = int(rng.integers(len(parts)))
    change = rng.integers(4)
    if change == 0:
        parts[k], parts[other] = parts[other], parts[k]
    elif change == 1:
        parts.insert(k, parts[other])
    elif change == 2:
        del parts[k]
    else:
        parts[k] = parts[k] * int(rng.choice([2, 1000]))
    return separator.join(parts)


ODD_VALUES: tuple[Any, ...] = (
    None,
    -1,
    0,
    1,
    2**31,
    2**63,
    10**40,
    1e308,
    0.5,
    "",
    "x" * 500,
    [],
    {},
    [[]],
    True,
)


def changed_value(value: Any, rng: Random) -> Any:
    """JSON with one entry replaced, left out, or moved."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.1:
            return {name: one for name, one in value.items() if name != key}
        return value | {key: changed_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        k = int(rng.integers(len(value)))
        if rng.random() < 0.1:
            return value[:k] + value[k + 1 :]
        return [*value[:k], changed_value(value[k], rng), *value[k + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return value + int(rng.choice([-1, 1, 1000]))
    return ODD_VALUES[rng.integers(len(ODD_VALUES))]


def changed_array(array: Array, rng: Random) -> Array:
    """An array with other elements, another order, another shape or of another type."""
    array = np.array(array)
    how = rng.integers(12)
    if how == 0:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(["<i4", "<i8", "<f4", "<f8", "|u1", "<i2", "<u8", "|b1"]))
    if how == 1 or not array.size:
        return _odd_shape(array, rng)
    flat = array.reshape(-1)
    if how == 2:
        return rng.permutation(array)
    if how == 3:
        k = int(rng.integers(len(array)))
        return np.delete(array, k, axis=0)
    if how == 4:
        return np.concatenate([array, array[: int(rng.integers(1, len(array) + 1))]])
    number: Any
    for _ in range(int(rng.integers(1, 4))):
        k = int(rng.integers(len(flat)))
        if array.dtype.kind == "f":
            number = rng.choice([np.inf, -np.inf, np.nan, 1e38, -1e38, 0.0, -0.0, float(flat[k]) + 1])
        elif array.dtype.kind == "b":
            number = not flat[k]
        else:
            limits = np.iinfo(array.dtype)
            near = [int(flat[k]) + 1, int(flat[k]) - 1, len(flat), len(flat) - 1, 0, -1, 1]
            number = int(
                [*near, limits.min, limits.max, int(flat[rng.integers(len(flat))])][rng.integers(10)]
            )
            number = min(max(number, int(limits.min)), int(limits.max))
        flat[k : k + (int(rng.integers(1, 5)) if how == 5 else 1)] = number
    if how == 6:
        flat[:] = flat[rng.integers(len(flat))]
    return array


def _odd_shape(array: Array, rng: Random) -> Array:
    shapes = [(), (0,), (1,), (2, 2), (0, 2), (1, 1, 1)]
    return np.zeros(shapes[rng.integers(len(shapes))], array.dtype)


def npy_bytes(array: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def changed_file(name: str, data: bytes, rng: Random) -> bytes:
    """A changed file; its name tells how to reach its content."""
    if rng.random() < 0.3:
        return changed_bytes(data, rng)
    if name.endswith(".gz"):
        return gzip.compress(changed_file(name.removesuffix(".gz"), gzip.decompress(data), rng), 1)
    if name.endswith(".npy"):
        return npy_bytes(changed_array(np.load(io.BytesIO(data)), rng))
    if name.endswith(".npz"):
        with np.load(io.BytesIO(data)) as file:
            arrays = {**file}
        chosen = list(arrays)[rng.integers(len(arrays))]
        arrays[chosen] = changed_array(arrays[chosen], rng)
        if rng.random() < 0.1:
            del arrays[chosen]
        stream = io.BytesIO()
        (np.savez_compressed if rng.random() < 0.3 else np.savez)(stream, **arrays)
        return stream.getvalue()
    if name.endswith((".json", ".state")) and rng.random() < 0.7:
        return json.dumps(changed_value(json.loads(data), rng)).encode()
    if name.endswith(".binary"):
        return changed_bytes(data, rng)
    return changed_text(data, rng)


def make_mutant(kind: FileKind, specimen: Path, to: Path, rng: Random) -> bool:
    """Write a mutant of a specimen; whether it was resealed."""
    times = int(rng.choice([1, 1, 1, 2, 3]))
    if not specimen.is_dir():
        data = specimen.read_bytes()
        for _ in range(times):
            with contextlib.suppress(Exception):  # a change after one that made it unreadable
                data = changed_file(specimen.name, data, rng)
        to.write_bytes(data)
        return False
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(specimen, to)
    names = sorted(path.name for path in specimen.iterdir())
    for _ in range(times):
        path = to / names[rng.integers(len(names))]
        if rng.random() < 0.02:
            path.unlink(missing_ok=True)
        elif path.exists():
            with contextlib.suppress(Exception):
                path.write_bytes(changed_file(path.name, path.read_bytes(), rng))
    if rng.random() < 0.5:
        return False
    with contextlib.suppress(Exception):  # of meta.json no longer one
        reseal(to)
        return True
    return False


# ---- use


def results_of(kind: FileKind, path: Path) -> str:
    """The results of using a file; a warning is an error, except those for users."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", HieroWarning)
        return repr(kind.use(path))


def outcome_of(kind: FileKind, path: Path, expected: str, resealed: bool) -> tuple[str, str]:
    """The outcome of using a mutant, and what is wrong with it."""
    try:
        found = results_of(kind, path)
    except HieroError as error:
        return ("lines", str(error)) if "\n" in str(error) else ("refused", "")
    except MemoryError as error:
        return "memory", str(error) or traceback.format_exc().splitlines()[-3].strip()
    except Exception:
        lines = traceback.format_exc().splitlines()
        places = [line.strip() for line in lines if line.strip().startswith("File")]
        return "traceback", f"{lines[-1]} in {places[-1] if places else '?'}"
    if found == expected:
        return "equal", ""
    if resealed:
        return "other, resealed", ""
    return ("silent", "accepted, with other results") if kind.is_directory else ("other", "")


@dataclass
class Counts:
    """Outcomes of the mutants of one kind; ``bad`` has those with an error, by number."""

    outcomes: Counter[str] = field(default_factory=Counter)
    bad: list[tuple[int, str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def note(self, number: int, outcome: str, detail: str) -> None:
        self.outcomes[outcome] += 1
        if outcome in BAD:
            self.bad.append((number, outcome, detail))


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _child(
    kind: FileKind,
    specimen: Path,
    folder: Path,
    seeds: tuple[int, ...],
    numbers: range,
    expected: str,
    pipe: int,
) -> None:
    """Use mutants; before and after each, write its number."""
    if sys.platform == "linux":
        _limit_memory()
    for number in numbers:
        os.write(pipe, f"begin {number}\n".encode())
        path = folder / specimen.name
        resealed = make_mutant(kind, specimen, path, np.random.default_rng([*seeds, number]))
        outcome, detail = outcome_of(kind, path, expected, resealed)
        os.write(pipe, f"{number}\t{outcome}\t{detail[:300]}\n".replace("\r", " ").encode())
    os.write(pipe, b"end\n")


def run_mutants(
    kind: FileKind,
    specimen: Path,
    folder: Path,
    seeds: tuple[int, ...],
    numbers: range,
    seconds: float = SECONDS,
) -> Counts:
    """Make and use mutants of a specimen in child processes."""
    counts, started = Counts(), time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    expected = results_of(kind, specimen)
    begin = numbers.start
    while begin < numbers.stop:
        begin = _run_child(
            kind, specimen, folder, seeds, range(begin, numbers.stop), expected, seconds, counts
        )
    counts.seconds = time.perf_counter() - started
    shutil.rmtree(folder, ignore_errors=True)
    return counts


def _run_child(
    kind: FileKind,
    specimen: Path,
    folder: Path,
    seeds: tuple[int, ...],
    numbers: range,
    expected: str,
    seconds: float,
    counts: Counts,
) -> int:
    """Run a child until it ends; returns the first mutant that is left."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        with contextlib.suppress(BaseException):
            _child(kind, specimen, folder, seeds, numbers, expected, write)
        os._exit(0)
    os.close(write)
    text, number, hung, ended = b"", numbers.start, False, False
    with open(read, "rb", buffering=0) as stream:
        while True:
            if not select.select([stream], [], [], seconds)[0]:
                hung = True
                os.kill(child, signal.SIGKILL)
                break
            piece = stream.read(1 << 16)
            if not piece:
                break
            text += piece
            *lines, text = text.split(b"\n")
            for line in lines:
                fields = line.decode(errors="replace").split("\t", 2)
                if len(fields) == 3:
                    counts.note(int(fields[0]), fields[1], fields[2])
                    number = int(fields[0]) + 1
                ended = ended or line == b"end"
    _, status = os.waitpid(child, 0)
    if ended:
        return numbers.stop
    if hung:
        counts.note(number, "hang", f"more than {seconds:g} s")
    elif os.WIFSIGNALED(status):
        counts.note(number, "signal", signal.Signals(os.WTERMSIG(status)).name)
    else:
        counts.note(number, "memory", "the child ended")
    return number + 1
