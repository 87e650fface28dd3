"""Examples in docstrings, in the README and in docs run as shown."""

from __future__ import annotations

import doctest
import importlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hiero.cli.main import main

PROJECT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("hiero", marks=pytest.mark.heavy),
        "hiero.config.model",
        "hiero.evaluation.bleu",
        "hiero.bitext.prepare",
    ],
)
def test_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def blocks(page: Path) -> list[str]:
    """The Python code of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/python.md",
        "docs/tuning.md",
        "docs/consensus.md",
        "docs/lattices.md",
        "docs/adaptation.md",
    ],
)
def test_code_of_pages_is_typed(tmp_path: Path, page: str) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(blocks(PROJECT / page)))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(script)],
        cwd=PROJECT,
        env=os.environ | {"MYPYPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.heavy
def test_code_of_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of docs/tuning.md needs the files of a user; tests/cli/test_tune.py has the same with a world."""
    monkeypatch.chdir(tmp_path)
    for page, number in (
        ("README.md", 1),
        ("docs/python.md", 6),
        ("docs/consensus.md", 2),
        ("docs/lattices.md", 1),
        ("docs/adaptation.md", 2),
    ):
        scope: dict[str, object] = {}
        assert len(blocks(PROJECT / page)) == number
        for block in blocks(PROJECT / page):
            exec(compile(block, page, "exec"), scope)
    printed = capsys.readouterr().out
    translation = re.search(r"hiero decode\n(.*)\n```", (PROJECT / "README.md").read_text())
    assert translation is not None
    assert printed.startswith(translation[1] + " ")
    assert (tmp_path / "forest.json").stat().st_size > 0


@pytest.mark.heavy
def test_lines_of_pages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands that translate a line print what the page says, where ``...`` stands for anything."""
    lines = re.findall(
        r"\$ echo (?P<quote>['\"])(.*)(?P=quote) \| hiero (decode.*)\n(.*)\n",
        (PROJECT / "docs" / "lattices.md").read_text(),
    )
    assert len(lines) == 2
    for _, text, command, output in lines:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{text}\n".encode())))
        assert main(command.split()) == 0
        assert re.fullmatch(".*".join(map(re.escape, output.split(" ... "))), capsys.readouterr().out.strip())


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_of_pages_exist() -> None:
    for page in (*PROJECT.glob("*.md"), *PROJECT.glob("docs/*.md"), *PROJECT.glob("benchmarks/**/*.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            linked = page.parent / path if path else page
            assert linked.exists(), (page.name, target)
            assert not anchor or anchor in anchors(linked), (page.name, target)
