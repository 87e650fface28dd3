"""The Containerfile, as far as it can be checked without an engine that builds images."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest

from hiero.cli.main import COMMANDS

PROJECT = Path(__file__).parents[1]
Step = tuple[str, str]  # an instruction and its arguments

pytestmark = pytest.mark.once


def stages() -> list[list[Step]]:
    """The instructions of each stage of the build."""
    text = (PROJECT / "Containerfile").read_text().replace("\\\n", " ")
    found: list[list[Step]] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        assert word in {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}, line
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def of(steps: list[Step], word: str) -> list[str]:
    return [rest for name, rest in steps if name == word]


def test_the_build_has_all_that_the_package_is_made_of() -> None:
    build, _ = stages()
    copied = [source for rest in of(build, "COPY") for source in rest.split()[:-1]]
    # .ci/run tests beside no sources.
    assert all((PROJECT / source).exists() for source in copied if source != "hiero")
    settings = (PROJECT / "pyproject.toml").read_text()
    packages = re.search(r"^packages = \[(.*?)\]", settings, re.M | re.S)
    moved = dict(re.findall(r'^"([\w.]+)" = "(\w+)"$', settings, re.M))
    assert packages is not None
    for package in re.findall(r'"([\w.]+)"', packages[1]):
        folder = moved.get(package, package.replace(".", "/"))
        assert folder.split("/")[0] in copied
    for key in ("readme", "license-files"):
        named = re.search(rf'^{key} = \[?"([^"]+)"', settings, re.M)
        assert named is not None
        assert named[1] in copied
    # The engine sees what is copied.
    rules = [
        line for line in (PROJECT / ".dockerignore").read_text().splitlines() if line[:1] not in ("#", "")
    ]
    for source in copied:
        ignored = False
        for rule in rules:
            if fnmatch.fnmatch(source, rule.removeprefix("!")):
                ignored = not rule.startswith("!")
        assert not ignored, source


def test_kernels_are_compiled_as_they_are_used() -> None:
    """By the user of the image, for any processor, in a directory that only this user may write to."""
    _, final = stages()
    words = [word for word, _ in final]
    runs = [at for at, (word, rest) in enumerate(final) if word == "RUN" and "hiero warm-up" in rest]
    assert len(runs) == 1
    before = final[: runs[0]]
    environment = dict(pair.split("=") for rest in of(final, "ENV") for pair in rest.split())
    assert environment == dict(pair.split("=") for rest in of(before, "ENV") for pair in rest.split())
    assert environment["NUMBA_CPU_NAME"] == "generic"
    (user,) = of(final, "USER")
    assert user in of(before, "USER")
    assert user != "root"
    cache = environment["XDG_CACHE_HOME"]
    assert any(f"-o {user} " in rest and f"-m 700 {cache}" in rest for rest in of(before, "RUN"))
    assert not any("NUMBA_CACHE_DIR" in rest for _, rest in final)
    assert words.index("USER") > max(at for at, word in enumerate(words) if word == "COPY")
    assert of(final, "ENTRYPOINT") == ['["hiero"]']


def test_what_it_runs_exists() -> None:
    """Commands and extras; the wheel of the first stage is that which the second installs."""
    build, final = stages()
    comments = re.findall(r"^#.*\bhiero (\w[\w-]*)", (PROJECT / "Containerfile").read_text(), re.M)
    used = [name for rest in of(final, "RUN") for name in re.findall(r"(?<![\w-])hiero ([a-z][\w-]*)", rest)]
    assert "warm-up" in used
    for name in {*used, *(name for name in comments if name in COMMANDS)}:
        assert name in COMMANDS
    assert {"decode", "run"} <= set(comments)
    (install,) = [rest for rest in of(final, "RUN") if "pip install" in rest]
    extras = re.search(r"\[([\w,]+)\]", install)
    assert extras is not None
    settings = (PROJECT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", settings, re.M) for extra in extras[1].split(","))
    (folder,) = (re.findall(r"--wheel-dir (\S+)", rest)[0] for rest in of(build, "RUN"))
    assert f"COPY --from=build {folder} {folder}" in [f"{word} {rest}" for word, rest in final]
    assert f"{folder}/hiero_mt-*.whl" in install
    python = {rest.split()[0] for steps in stages() for rest in of(steps, "FROM")}
    assert len(python) == 1
    version = re.search(r"python:3\.(\d+)-slim", python.pop())
    least = re.search(r'^requires-python = ">=3\.(\d+)"', settings, re.M)
    assert version is not None
    assert least is not None
    assert int(version[1]) >= int(least[1])
