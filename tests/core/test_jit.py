"""The cache of machine code: a private place, and damage in it is compiled anew."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hiero.core import jit
from tests.conftest import INTERPRETED

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home and temporary directories below a folder."""
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def chosen() -> Path:
    return Path(jit._cache_directory()).parent


def test_places_of_the_cache(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen() == places / "home" / ".cache" / "hiero"
    monkeypatch.setenv("XDG_CACHE_HOME", str(places / "chosen"))
    assert chosen() == places / "chosen" / "hiero"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert chosen() == places / "home" / ".cache" / "hiero"


@pytest.mark.parametrize("home", ["file", "", "~", "relative"])
def test_without_a_home_the_cache_is_private(
    places: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "home" / ".cache").touch()
    monkeypatch.setenv("HOME", str(places / "home") if home == "file" else home)
    if home != "file":
        # As os.path.expanduser answers for a user without an entry.
        monkeypatch.setattr(os.path, "expanduser", lambda path: home or path)
    own = places / "tmp" / f"hiero-{os.getuid()}"
    assert chosen() == own
    assert [path.stat().st_mode & 0o777 for path in (own, *own.iterdir())] == [0o700, 0o700]


def test_a_directory_that_others_can_write_to_is_not_used(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are unpickled: whoever can write there can run code."""
    home = Path(jit._cache_directory())
    home.chmod(0o777)
    own = places / "tmp" / f"hiero-{os.getuid()}"
    own.mkdir(mode=0o700)
    assert chosen() == own
    own.chmod(0o755)
    assert jit._cache_directory() == ""
    own.chmod(0o700)
    (own / home.name).chmod(0o770)
    assert jit._cache_directory() == ""
    (own / home.name).rmdir()
    own.rmdir()
    (places / "elsewhere").mkdir(mode=0o700)
    own.symlink_to(places / "elsewhere")
    assert jit._cache_directory() == ""
    own.unlink()
    home.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: 12345)  # these directories are another's
    assert jit._cache_directory() == ("" if os.stat(places).st_uid else str(home))


KERNEL = """\
from hiero.core.jit import kernel, compile_timer as t


@kernel
def double(x):
    return x + x


print(double(21), double(1.5), t.seconds > 0)
"""


def compiled(places: Path, limit: int | None = None) -> str:
    """The output of a process with a kernel, which may write files up to a size."""
    (places / "script.py").write_text(KERNEL)

    def prepare() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, str(places / "script.py")]
    environment = os.environ | {"TMPDIR": str(places / "tmp")}
    done = subprocess.run(
        command, env=environment, capture_output=True, check=True, text=True, preexec_fn=prepare
    )
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.once
@pytest.mark.skipif(INTERPRETED, reason="compiles")
def test_a_full_disk_is_no_error(places: Path) -> None:
    assert compiled(places, limit=100) == "42 3.0 True"
    assert compiled(places) == "42 3.0 True"
    assert compiled(places, limit=100) == "42 3.0 False"


@pytest.mark.once
@pytest.mark.skipif(INTERPRETED, reason="compiles")
@pytest.mark.parametrize("damage", ["half", "empty", "byte", "exchange", "rubbish"])
def test_damage_is_compiled_anew(places: Path, damage: str) -> None:
    assert compiled(places) == "42 3.0 True"
    assert compiled(places) == "42 3.0 False"
    files = sorted((places / "home").rglob("*.nb[ic]"))
    assert len(files) == 3
    contents = [path.read_bytes() for path in files]
    if damage == "exchange":
        contents = [contents[1], contents[0], contents[2]]
    for path, data in zip(files, contents, strict=True):
        middle = len(data) // 2
        changed = {
            "half": data[:middle],
            "empty": b"",
            "byte": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "exchange": data,
            "rubbish": b"cos\nsystem\n(S'echo owned'\ntR.",
        }
        path.write_bytes(changed[damage])
    assert compiled(places) == "42 3.0 True"
    assert compiled(places) == "42 3.0 False"
