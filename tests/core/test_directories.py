"""Directories of mapped arrays: what is checked, what is remembered, and arrays in the bytes of files."""

from __future__ import annotations

import io
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mutants import reseal
from hiero.core import directories
from hiero.core.arrays import are_offsets, is_finite, is_within
from hiero.core.directories import (
    SMALL_BYTES,
    GrowingArray,
    Kind,
    array_in,
    create_directory,
    save_array,
    sealed,
    unsealed,
)
from hiero.core.errors import FormatError, HieroError
from hiero.core.text import MARK


def ascends(_meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> bool:
    return are_offsets(arrays["first"], len(arrays["value"]))


KIND = Kind("toy", 3, "make it again", {"first": (np.int64, 1), "value": (np.float32, 1)}, ascends)


def write(path: Path, first: list[int], values: list[float]) -> None:
    arrays = {"first": np.array(first), "value": np.array(values, np.float32)}
    KIND.write(path, {"note": "x"}, arrays)


def test_every_changed_byte_is_found(tmp_path: Path) -> None:
    write(tmp_path / "toy", [0, 1, 2], [0.5, 2.0])
    meta, arrays = KIND.read(tmp_path / "toy")
    assert (meta["note"], arrays["first"].tolist(), arrays["value"].tolist()) == ("x", [0, 1, 2], [0.5, 2.0])
    for path in sorted((tmp_path / "toy").iterdir()):
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            with pytest.raises(FormatError) as caught:
                KIND.read(tmp_path / "toy")
            assert "\n" not in str(caught.value)
        path.write_bytes(whole)


def test_an_array_that_deceives_is_found(tmp_path: Path) -> None:
    write(tmp_path / "toy", [0, 1, 2], [0.5, 2.0])
    np.save(tmp_path / "toy" / "first.npy", np.array([0, 9, 2]))
    with pytest.raises(FormatError, match=r"first\.npy: found other content, expected what was written"):
        KIND.read(tmp_path / "toy")
    reseal(tmp_path / "toy")
    with pytest.raises(FormatError, match="toy: found arrays that do not fit together"):
        KIND.read(tmp_path / "toy")


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the files that are read for a check, with directories of any size remembered."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(directories, "LEAST_REMEMBERED", 0)
    read: list[int] = []
    monkeypatch.setattr(
        directories, "_sum", lambda raw, sums=directories._sum: read.append(len(raw)) or sums(raw)
    )
    return read


def test_a_directory_is_checked_once(
    tmp_path: Path, checks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "TICK_NS", -(10**15))
    write(tmp_path / "toy", [0, 1, 2], [0.5, 2.0])
    checks.clear()
    KIND.read(tmp_path / "toy")
    assert len(checks) == 2
    KIND.read(tmp_path / "toy")
    assert len(checks) == 2
    KIND.read(tmp_path / "toy", thorough=True)
    assert len(checks) == 4
    # A file with other content and the same length and time of change.
    path = tmp_path / "toy" / "value.npy"
    status = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"A")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(FormatError, match="other content"):
        KIND.read(tmp_path / "toy")
    write(tmp_path / "toy", [0, 1, 2], [0.5, 2.0])
    checks.clear()
    KIND.read(tmp_path / "toy")
    assert len(checks) == 2
    assert len(list((tmp_path / "cache" / "hiero" / "checked").iterdir())) == 1


def test_what_may_still_change_is_not_remembered(tmp_path: Path, checks: list[int]) -> None:
    write(tmp_path / "toy", [0, 1, 2], [0.5, 2.0])
    KIND.read(tmp_path / "toy")
    assert not (tmp_path / "cache").exists()


def test_without_a_cache_everything_is_checked(
    tmp_path: Path, checks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "TICK_NS", -(10**15))
    (tmp_path / "cache").write_text("no directory")
    write(tmp_path / "toy", [0, 1, 2], [0.5, 2.0])
    checks.clear()
    KIND.read(tmp_path / "toy")
    KIND.read(tmp_path / "toy")
    assert len(checks) == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("name", ["meta.json", "first.npy"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    write(tmp_path / "toy", [0], [])
    (tmp_path / "toy" / name).unlink()
    os.mkfifo(tmp_path / "toy" / name)
    assert KIND.recognises(tmp_path / "toy") == (name != "meta.json")
    with pytest.raises(FormatError, match="no regular file"):
        KIND.read(tmp_path / "toy")


@given(st.text(), st.lists(st.integers()))
def test_seals(name: str, values: list[int]) -> None:
    import json

    text = json.dumps({"name": name, "values": values}, indent=1)
    data = sealed(text)
    assert {"name": name, "values": values, "crc32": json.loads(data)["crc32"]} == json.loads(data)
    assert unsealed(data) == text.removesuffix("\n}").encode()
    assert unsealed(data.replace(b"name", b"nama")) is None
    assert unsealed(data[:-1]) is None


SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


@given(SHAPES, st.sampled_from(["<i4", "<i8", "<u8", "|i1", "|u1", "<i2", "<f4", "<f8", "|b1"]))
def test_arrays_in_files_are_those_of_numpy(shape: tuple[int, ...], scalar: str) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(scalar)
    stream = io.BytesIO()
    np.save(stream, array)
    found = array_in(np.frombuffer(stream.getvalue(), np.uint8))
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)
    assert not found.flags.writeable
    with pytest.raises(ValueError, match=r"bytes of numbers|no array"):
        array_in(np.frombuffer(stream.getvalue() + b"x", np.uint8))


def test_other_arrays_are_refused() -> None:
    whole = io.BytesIO()
    np.save(whole, np.zeros((2, 2), np.int32))
    for array in (np.array(["a"]), np.zeros((2, 2), order="F"), np.zeros(2, ">i4"), np.zeros(2, complex)):
        stream = io.BytesIO()
        np.save(stream, array)
        with pytest.raises(ValueError, match="an array of another kind"):
            array_in(np.frombuffer(stream.getvalue(), np.uint8))
    for data in (
        b"",
        b"PK\3\4" + bytes(200),
        whole.getvalue()[:100],
        whole.getvalue().replace(b"(2, 2)", b"(2, -2"),
    ):
        with pytest.raises(ValueError, match="array"):
            array_in(np.frombuffer(data, np.uint8))
    scalar = io.BytesIO()
    np.save(scalar, np.int64(3))
    assert array_in(np.frombuffer(scalar.getvalue(), np.uint8)).shape == ()


def test_growing_arrays_are_arrays(tmp_path: Path) -> None:
    with GrowingArray(tmp_path / "a.npy", np.int32) as growing:
        growing.append(np.arange(5, dtype=np.int32))
    assert array_in(np.fromfile(tmp_path / "a.npy", np.uint8)).tolist() == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(-1, 5), max_size=6), st.integers(0, 6), st.integers(1, 3))
def test_offsets(first: list[int], num_entries: int, block: int) -> None:
    expected = bool(first) and first[0] == 0 and first[-1] == num_entries and first == sorted(first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hiero.core.arrays.BLOCK", block)
        assert are_offsets(np.array(first, np.int64), num_entries) == expected


@given(st.lists(st.floats(width=32), max_size=5), st.integers(-2, 2), st.integers(-2, 2))
def test_ranges(values: list[float], low: int, high: int) -> None:
    array = np.array(values, np.float32)
    assert is_finite(array) == all(map(np.isfinite, values))
    assert is_within(array, low, high) == all(low <= value < high for value in values)


# ---- complete or absent

NUMBERS = Kind("test directory", 1, "make it again", {"numbers": (np.int64, 1)}, lambda _meta, _arrays: True)


def write_numbers(path: Path, *numbers: int) -> None:
    NUMBERS.write(path, {}, {"numbers": np.array(numbers, np.int64)})


def content(path: Path) -> list[int]:
    numbers: list[int] = NUMBERS.read(path)[1]["numbers"].tolist()
    return numbers


def test_a_directory_of_the_same_kind_is_replaced(tmp_path: Path) -> None:
    write_numbers(tmp_path / "new" / "out", 1, 2)
    write_numbers(tmp_path / "new" / "out", 3)
    assert content(tmp_path / "new" / "out") == [3]
    assert os.listdir(tmp_path / "new") == ["out"]


def test_mapped_arrays_stay_when_their_directory_is_replaced(tmp_path: Path) -> None:
    """Truncating a mapped file would kill the process that reads it."""
    many = list(range(SMALL_BYTES))
    write_numbers(tmp_path / "out", *many)
    mapped = NUMBERS.read(tmp_path / "out")[1]["numbers"]
    write_numbers(tmp_path / "out", 1)
    assert mapped.tolist() == many
    assert content(tmp_path / "out") == [1]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    refused = pytest.raises(HieroError, match=r"out: another process is writing this output$")
    with create_directory(tmp_path / "out"), refused:
        write_numbers(tmp_path / "out", 2)
    assert os.listdir(tmp_path / "out") == []


def test_directories_of_others_stay(tmp_path: Path) -> None:
    for name in ("out.part", "out.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("precious")
    with pytest.raises(HieroError, match=r"out\.part: already exists and is not from hiero"):
        write_numbers(tmp_path / "out", 1)
    (tmp_path / "out.part").rename(tmp_path / "elsewhere")
    write_numbers(tmp_path / "out", 1)
    write_numbers(tmp_path / "out", 2)
    assert content(tmp_path / "out") == [2]
    assert [path.read_text() for path in tmp_path.glob("*/precious")] == 2 * ["precious"]


def test_the_old_directory_survives_a_kill_between_two_renames(tmp_path: Path) -> None:
    write_numbers(tmp_path / "out", 1)
    (tmp_path / "out").rename(tmp_path / "out.part.old")
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part.lock").write_bytes(MARK)
    with pytest.raises(KeyError), create_directory(tmp_path / "out"):
        raise KeyError
    assert content(tmp_path / "out") == [1]
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of the size of files")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(HieroError, match=r"out: cannot be written: file too large$"):
        write_at_most(tmp_path / "out", 8192)
    assert os.listdir(tmp_path) == []


def write_at_most(path: Path, size: int) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        with create_directory(path) as folder:
            with GrowingArray(folder / "first.npy", np.int64) as growing:
                growing.append(np.arange(10))
            save_array(folder / "second.npy", np.arange(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
