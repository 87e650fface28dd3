"""Examples in docstrings and in the README run as shown."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("hiero", marks=pytest.mark.heavy),
        "hiero.config.load",
        "hiero.evaluation.bleu",
        "hiero.bitext.prepare",
    ],
)
def test_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def readme_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.heavy
def test_readme_is_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "readme.py"
    script.write_text("\n\n".join(readme_blocks()))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(script)],
        cwd=README.parent,
        env=os.environ | {"MYPYPATH": str(README.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.heavy
def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    # One needs the reader's files; tests/cli/test_tune.py has the same with existing files.
    blocks = [block for block in readme_blocks() if "experiment.yaml" not in block]
    assert len(blocks) == 2
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), scope)
    printed = capsys.readouterr().out
    translation = re.search(r"hiero decode\n(.*)\n```", README.read_text())
    assert translation is not None
    assert printed.startswith(translation[1] + " ")
    assert (tmp_path / "forest.json").stat().st_size > 0
