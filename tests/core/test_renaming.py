"""Files that a system does not replace while a process uses them, as Windows does."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from hiero.core import renaming
from hiero.core.directories import create_directory
from hiero.core.errors import HieroError
from hiero.core.renaming import rename_over
from hiero.core.text import write_output
from hiero.jobs.resumable_output import ResumableOutput

replace = os.replace


class Held:
    """A system that refuses to rename onto, or away, what a process has mapped."""

    def __init__(self, code: int | None) -> None:
        self.paths: set[Path] = set()
        self.code, self.attempts, self.free_after = code, 0, 10_000

    def replace(self, new: str | Path, old: str | Path) -> None:
        if {Path(new), Path(old)} & self.paths and os.path.lexists(new):
            self.attempts += 1
            if self.attempts <= self.free_after:
                error = OSError(errno.EACCES if self.code is None else errno.EINVAL, "Refused", str(old))
                if self.code is not None:
                    error.winerror = self.code  # type: ignore[attr-defined,unused-ignore]
                raise error
        replace(new, old)


@pytest.fixture(params=[None, 5, 32, 1224])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Held:
    made = Held(request.param)
    monkeypatch.setattr(renaming, "ATTEMPTS", 20)
    monkeypatch.setattr(renaming, "WAIT", 0.0)
    monkeypatch.setattr(os, "replace", made.replace)
    monkeypatch.setattr(os, "rename", made.replace)
    return made


def write(path: Path, text: str) -> None:
    write_output(path, text)


def write_directory(path: Path, text: str) -> None:
    with create_directory(path) as made:
        (made / "inner").write_text(text)


def write_resumable(path: Path, text: str) -> None:
    output = ResumableOutput(path, "settings")
    output.write(text.encode(), b"")
    output.finish()


@pytest.mark.parametrize("make", [write, write_directory, write_resumable])
def test_the_older_output_stays(held: Held, tmp_path: Path, make: Any) -> None:
    path = tmp_path / "out"

    def content() -> str:
        return (path / "inner" if path.is_dir() else path).read_text()

    make(path, "old")
    held.paths.add(path)
    with pytest.raises(HieroError) as caught:
        make(path, "new")
    assert str(caught.value) == (
        f"{path}: found a file that another process has open or mapped, expected to replace it "
        "(end that process, or choose another output)"
    )
    assert held.attempts == 20
    assert content() == "old"
    # The process ends, or was a scanner.
    held.attempts, held.free_after = 0, 3
    make(path, "new")
    assert content() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_other_errors_are_raised_at_once(held: Held, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rename_over(tmp_path / "none", tmp_path / "out")
    assert held.attempts == 0


def test_posix_tries_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(None)
    held.paths.add(tmp_path / "out")
    monkeypatch.setattr(renaming, "ATTEMPTS", 1)
    monkeypatch.setattr(os, "replace", held.replace)
    (tmp_path / "new").touch()
    with pytest.raises(PermissionError):
        rename_over(tmp_path / "new", tmp_path / "out")
    assert held.attempts == 1
