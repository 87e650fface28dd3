"""Directories of arrays that are complete or absent."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from hiero.core.directories import GrowingArray, Kind, create_directory, save_array
from hiero.core.errors import HieroError
from hiero.core.text import MARK

KIND = Kind("test directory", 1, "make it again", {"numbers": (np.int64, 1)})


def write(path: Path, *numbers: int) -> None:
    KIND.write(path, {}, {"numbers": np.array(numbers, np.int64)})


def content(path: Path) -> list[int]:
    numbers: list[int] = KIND.read(path)[1]["numbers"].tolist()
    return numbers


def test_a_directory_of_the_same_kind_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "new" / "out", 1, 2)
    write(tmp_path / "new" / "out", 3)
    assert content(tmp_path / "new" / "out") == [3]
    assert os.listdir(tmp_path / "new") == ["out"]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    refused = pytest.raises(HieroError, match=r"out: another process is writing this output$")
    with create_directory(tmp_path / "out"), refused:
        write(tmp_path / "out", 2)
    assert os.listdir(tmp_path / "out") == []


def test_directories_of_others_stay(tmp_path: Path) -> None:
    for name in ("out.part", "out.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("precious")
    with pytest.raises(HieroError, match=r"out\.part: already exists and is not from hiero"):
        write(tmp_path / "out", 1)
    (tmp_path / "out.part").rename(tmp_path / "elsewhere")
    write(tmp_path / "out", 1)
    write(tmp_path / "out", 2)
    assert content(tmp_path / "out") == [2]
    assert [path.read_text() for path in tmp_path.glob("*/precious")] == 2 * ["precious"]


def test_the_old_directory_survives_a_kill_between_two_renames(tmp_path: Path) -> None:
    write(tmp_path / "out", 1)
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
