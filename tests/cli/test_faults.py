"""Invalid input to all commands from bitext to evaluation: one line, exit code 1, no partial output."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hiero.cli.main import main

FILES = {
    "src": b"das haus\ndas buch\nein haus\n",
    "tgt": b"the house\nthe book\na house\n",
    "align": b"0-0 1-1\n0-0 1-1\n0-0 1-1\n",
}
COMMANDS = {
    "align": "align -s src -t tgt -o out.gz --forward fwd --reverse rev",
    "index": "index -q -s src -t tgt -a align -o x",
    "prep": "prep -s src -t tgt -o out1 out2.gz --no-tokenize",
    "lm": "lm estimate --order 2 --discount-fallback src out.arpa",
    "eval": "eval src -r tgt -o out --per-segment lines",
    "score": "align score align gold",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    Path("gold").write_bytes(FILES["align"])
    return tmp_path


def everything() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def refused(command: str, capfd: pytest.CaptureFixture[str]) -> str:
    """The one-line error of a command that must not do anything."""
    before, folders = everything(), sorted(os.listdir())
    capfd.readouterr()
    assert main(command.split()) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.endswith("\n")
    assert (everything(), sorted(os.listdir())) == (before, folders)
    return captured.err


LINES_DIFFER = "found the end of the file, expected a line, as there are"


@pytest.mark.parametrize(
    ("command", "file", "content", "message"),
    [
        # One side is longer than the other, or missing.
        ("align", "tgt", b"the house\n", f"tgt:2: {LINES_DIFFER} 3 in src (line n of one file must be"),
        ("align", "tgt", FILES["tgt"] + b"\n", f"src:4: {LINES_DIFFER} 4 in tgt"),
        ("align", "src", b"", f"src:1: {LINES_DIFFER} 3 in tgt"),
        ("index", "src", b"das haus\n", f"src:2: {LINES_DIFFER} 3 in tgt"),
        ("index", "tgt", FILES["tgt"] + b"x", f"src:4: {LINES_DIFFER} 4 in tgt"),
        ("index", "tgt", b"", f"tgt:1: {LINES_DIFFER} 3 in src"),
        ("prep", "src", b"das haus\n", "src: found 1 lines, expected 3, as many as tgt has"),
        ("prep", "tgt", FILES["tgt"] + b"x", "src: found 3 lines, expected 4, as many as tgt has"),
        ("prep", "tgt", b"", "tgt: found 0 lines, expected 3, as many as src has"),
        ("eval", "src", b"das haus\n", "src: found 1 lines, expected 3, as many as tgt has"),
        ("eval", "tgt", b"the house\n", "src: found 3 lines, expected 1, as many as tgt has"),
        ("eval", "src", b"", "src: found 0 lines, expected 3, as many as tgt has"),
        ("eval", "tgt", b"", "tgt: found no lines, expected references"),
        ("lm", "src", b"", "src: found an empty file, expected text"),
        # A blank line: allowed in prep, align, lm and eval, but not in an index.
        ("index", "src", b"das haus\n\nein haus\n", "src:2: found an empty line, expected 1 to 32000 words"),
        ("index", "tgt", b"the house\nthe book\n \t\n", "tgt:3: found an empty line, expected 1 to 32000"),
        # Alignments of another bitext.
        ("index", "align", b"0-0\n0-0 2-1\n0-0\n", "align:2: found link 2-1, expected positions in 2 source"),
        ("index", "align", b"0-0\n0-0\n0-0 1-2\n", "align:3: found link 1-2, expected positions in 2 source"),
        ("index", "align", b"0-0\n\n1-9999999999\n", "align:3: found '1-9999999999', expected i-j"),
        ("index", "align", FILES["align"] + b"\n", "align:4: found another line, expected 3 lines"),
        ("index", "align", b"0-0\n", "align:2: found the end of the file, expected 3 lines"),
        ("index", "align", b"", "align:1: found the end of the file, expected 3 lines"),
        ("score", "align", b"0-0\n", "align:2: found the end of the file, expected 3 lines, as in gold"),
        ("score", "gold", b"0-0\n0-0\n", "align:3: found another line, expected 2 lines, as in gold"),
    ],
)
def test_files_that_do_not_match(
    command: str, file: str, content: bytes, message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_bytes(content)
    assert refused(COMMANDS[command], capfd).startswith(message)


@pytest.mark.parametrize("command", ["align", "index"])
def test_an_empty_bitext(command: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in FILES:
        Path(name).write_bytes(b"")
    message = "src: found no line, expected sentences, one a line\n"
    assert refused(COMMANDS[command], capfd) == message


def test_allowed_blank_lines(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("src").write_bytes(b"das haus\n\nein haus\n")
    Path("tgt").write_bytes(b" \nthe book\na house\n")
    for command in ("align", "prep", "lm", "eval"):
        assert main(COMMANDS[command].split()) == 0
    assert gzip.decompress(Path("out.gz").read_bytes()).decode().split("\n")[:2] == ["", ""]
    assert Path("out1").read_text() == "ein haus\n"
    assert len(Path("lines").read_text().splitlines()) == 1 + 3
    assert "1 of them" not in capfd.readouterr().err


BINARY = bytes(range(256)) * 9
PACKED = gzip.compress(FILES["src"] * 99, mtime=0)
BROKEN = {
    "binary": (BINARY, r"[12]: found ('|byte|the bytes)"),
    "truncated": (
        PACKED[:-9],
        r"\d+: found the end of the file in the middle of compressed data",
    ),
    "damaged": (PACKED[:40] + b"\0\0\0\0" + PACKED[44:], r"\d+: found damaged compressed data \(Error"),
    "no gz": (PACKED[:2] + b"xyz", r"1: found damaged compressed data \(Error"),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("align", "src"),
        ("align", "tgt"),
        ("index", "src"),
        ("index", "tgt"),
        ("index", "align"),
        ("prep", "src"),
        ("prep", "tgt"),
        ("lm", "src"),
        ("eval", "src"),
        ("eval", "tgt"),
        ("score", "align"),
        ("score", "gold"),
    ],
)
def test_binary_files(
    command: str, file: str, fault: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content, message = BROKEN[fault]
    Path(file).write_bytes(content)
    assert re.match(f"{file}:{message}", refused(COMMANDS[command], capfd))


# ---- damaged indexes

USES = {
    "extract": "extract -x x -i in -o g",
    "all": "extract -x x --all -o all.gz",
    "decode": "decode -q -g x -i in -o out",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for name, content in (FILES | {"in": b"das haus\n"}).items():
        (folder / name).write_bytes(content)
    files = [str(folder / name) for name in FILES]
    assert main(["index", "-q", "-s", files[0], "-t", files[1], "-a", files[2], "-o", str(folder / "x")]) == 0
    return folder


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "src",
            FILES["src"].replace(b"ein", b"das"),
            "src: found other content than when the index was made",
        ),
        ("tgt", FILES["tgt"][:-3], "tgt: found other content than when the index was made"),
        ("align", FILES["align"].replace(b"1-1", b"1-0"), "align: found other content than when the index"),
        ("x/meta.json", b'{"format": "hiero in', "x/meta.json: found damage ("),
        ("x/meta.json", None, "x/meta.json: found no such file, expected a hiero index"),
        ("x/suffix.npy", None, "x/suffix.npy: found no such file"),
        ("x/link.npy", -1, "x/link.npy: found damage ("),
        ("x/pair_loss.npy", 60, "x/pair_loss.npy: found damage ("),
        ("x/tgt.npy", 0, "x/tgt.npy: found damage ("),
        ("x/src_words_pool.npy", b"\x93NUMPY", "x/src_words_pool.npy: found damage ("),
    ],
)
def test_a_changed_index(
    use: str,
    file: str,
    content: bytes | int | None,
    message: str,
    made: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    path = Path(file)
    if content is None:
        path.unlink()
    elif isinstance(content, int):
        os.truncate(path, content if content >= 0 else path.stat().st_size + content)
    else:
        path.write_bytes(content)
    said = refused(USES[use], capfd)
    if file == "x/meta.json" and use == "decode":
        message = "x"  # without it, the directory is not recognised as an index
    assert said.startswith(message)


# ---- full disks

# By the kind of failure: a full file system, a limit on the size of files, or standard output.
FULL = {
    "align": "align -q -s ../src -t ../tgt -o out",
    "align, compressed": "align -q -s ../src -t ../tgt -o out.gz --forward fwd --reverse rev",
    "index": "index -q -s ../src -t ../tgt -a ../align -o x",
    "prep": "prep -s ../src -t ../tgt -o out1 out2.gz --no-tokenize",
    "lm estimate": "lm estimate -q --order 2 --discount-fallback ../src out.arpa",
    "lm estimate, compressed": "lm estimate -q --order 2 --discount-fallback ../src out.arpa.gz",
    "lm estimate, compiled": "lm estimate -q --order 2 --discount-fallback ../src out",
    "extract": "extract -x ../x -i ../in -o .",
    "extract --store": "extract -x ../x -i ../in -o ../g --store .",
    "extract --all": "extract -x ../x --all -o out",
    "extract --all, compressed": "extract -x ../x --all -o out.gz -j 2",
    "eval": "eval ../src -r ../tgt -o out --trials 10",
    "eval, json": "eval ../src -r ../tgt -o out.gz --format json --trials 10",
    "eval --per-segment": "eval ../src -r ../tgt -o ../scores --per-segment out --trials 10",
    "decode": "decode -q -g ../x -w ../w -i ../in -o out",
}
PRINTED = {
    "align": "align -q -s ../src -t ../tgt",
    "prep": "prep -i ../src --no-tokenize",
    "lm estimate": "lm estimate -q --order 2 --discount-fallback ../src -",
    "extract": "extract -x ../x -i ../in -o ../g",
    "eval": "eval ../src -r ../tgt --trials 10",
    "decode": "decode -q -g ../x -w ../w -i ../in",
}
# Runs commands without free space, and writes the result of each on standard error.
SCRIPT = """
import contextlib, io, json, os, resource, shutil, signal, sys, tempfile
tempfile.gettempdir()  # tries to write on its first call
how, full, commands = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
os.chdir(full)
if how == "limit":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
elif how == "disk":
    with open("ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(4096))
from hiero.cli.main import main
found = {}
for name, command in commands.items():
    if how == "stdout":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(command.split())
    left = sorted(set(os.listdir(".")) - {"ballast"})
    for path in left:
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    found[name] = code, said.getvalue(), left
print(json.dumps(found), file=sys.stderr)
"""


def can_mount() -> bool:
    """Whether a process can mount a private file system here."""
    try:
        command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def without_room(how: str, folder: Path, commands: dict[str, str]) -> dict[str, Any]:
    """Exit code, standard error and remaining files of each command."""
    (folder / "w").write_bytes(b"EgivenFCoherent -1\n")
    (folder / "full").mkdir(exist_ok=True)
    command = [sys.executable, "-c", SCRIPT, how, str(folder / "full"), json.dumps(commands)]
    if how == "disk":
        mount = 'mount -t tmpfs -o size=64k none "$1" && shift && exec "$@"'
        command = ["unshare", "-rm", "sh", "-c", mount, "sh", str(folder / "full"), *command]
    # Without compilation, whose cache would need space as well.
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1"}
    process = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert process.returncode == 0, process.stderr
    found: dict[str, Any] = json.loads(process.stderr)
    return found


@pytest.fixture(scope="module")
def disk(made: Path) -> dict[str, Any]:
    if not can_mount():
        pytest.skip("no file system can be made here")
    return without_room("disk", made, FULL)


@pytest.fixture(scope="module")
def limit(made: Path) -> dict[str, Any]:
    if not hasattr(signal, "SIGXFSZ"):
        pytest.skip("no limit on the size of files here")
    return without_room("limit", made, FULL)


@pytest.fixture(scope="module")
def stdout(made: Path) -> dict[str, Any]:
    if not os.path.exists("/dev/full"):
        pytest.skip("no device that is always full")
    return without_room("stdout", made, PRINTED)


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize(
    ("how", "reason"), [("disk", "no space left on device"), ("limit", "file too large")]
)
def test_full_disk(name: str, how: str, reason: str, request: pytest.FixtureRequest) -> None:
    code, said, left = request.getfixturevalue(how)[name]
    assert code == 1, said
    assert reason in said
    assert said.count("\n") == 1
    assert left == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTED)
def test_full_standard_output(name: str, stdout: dict[str, Any]) -> None:
    code, said, left = stdout[name]
    assert code == 1, said
    assert "no space left on device" in said
    assert said.count("\n") == 1
    assert left == []
