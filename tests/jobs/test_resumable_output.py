"""Output that can be resumed: one writer at a time, and files of others stay."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from hiero.core.errors import HieroError
from hiero.jobs.resumable_output import ResumableOutput
from hiero.jobs.run_directory import locked_directory


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    first = ResumableOutput(path, "settings")
    first.write(b"one\n", b"1")
    first.save()
    for resume in (False, True):
        with pytest.raises(HieroError, match=r"out: another process is writing this output$"):
            ResumableOutput(path, "settings", resume=resume)
    first.write(b"two\n", b"2")
    first.finish()
    assert path.read_bytes() == b"one\ntwo\n"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_resumed_after_an_error_and_after_a_kill(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    output = ResumableOutput(path, "settings")
    output.write(b"one\n", b"1")
    output.close()
    assert sorted(os.listdir(tmp_path)) == [f"{name}.part", f"{name}.part.state"]
    output = ResumableOutput(path, "settings", resume=True)
    output.skip(iter([b"1"]))
    output.write(b"two\n", b"2")
    output.save()
    # As a kill does, which leaves all files.
    os.close(output._claim._file)
    output._file.close()
    output = ResumableOutput(path, "settings", resume=True)
    output.skip(iter([b"1", b"2"]))
    output.finish()
    found = path.read_bytes()
    assert (gzip.decompress(found) if name.endswith(".gz") else found) == b"one\ntwo\n"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("is_link", [False, True])
def test_files_of_others_stay(tmp_path: Path, resume: bool, is_link: bool) -> None:
    (tmp_path / "precious").write_text("precious")
    if is_link:
        (tmp_path / "out.part").symlink_to("precious")
    else:
        (tmp_path / "out.part").write_text("precious")
    with pytest.raises(HieroError, match=r"out\.part: already exists and is not from hiero"):
        ResumableOutput(tmp_path / "out", "settings", resume=resume)
    assert (tmp_path / "out.part").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["out.part", "precious"]


def test_a_busy_directory(tmp_path: Path) -> None:
    busy = pytest.raises(HieroError, match="another hiero run is using this directory")
    with (
        locked_directory(tmp_path, "hiero run", keep=False),
        busy,
        locked_directory(tmp_path, "hiero run", keep=False),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_the_lock_of_a_directory_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "lock").symlink_to("precious")
    refused = pytest.raises(HieroError, match="lock: already exists and is not from hiero")
    with refused, locked_directory(tmp_path, "hiero run"):
        pass
