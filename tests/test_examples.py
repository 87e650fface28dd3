"""Examples in docstrings and in the README run as shown."""

from __future__ import annotations

import doctest
import importlib
import re
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


@pytest.mark.heavy
def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    # One needs the reader's files; tests/cli/test_tune.py has the same with existing files.
    blocks = [block for block in blocks if "experiment.yaml" not in block]
    assert len(blocks) == 2
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), scope)
    printed = capsys.readouterr().out
    translation = re.search(r"hiero decode\n(.*)\n```", README.read_text())
    assert translation is not None
    assert printed.startswith(translation[1] + " ")
    assert (tmp_path / "forest.json").stat().st_size > 0
