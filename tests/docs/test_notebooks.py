"""The notebooks run, with the installed package and its data, and say what their text says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed (pip install 'hiero-mt[docs]')")

from docs.site import notebooks

pytestmark = [pytest.mark.heavy, pytest.mark.once]

NAMES = [path.stem for path in sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))]


def cells(folder: Path, name: str) -> list[Any]:
    return list(nbformat.read(folder / f"{name}.ipynb", as_version=4).cells)


def printed(folder: Path, name: str) -> str:
    outputs = [output for cell in cells(folder, name) for output in cell.get("outputs", [])]
    return "".join(
        output.text for output in outputs if output.output_type == "stream" and output.name == "stdout"
    )


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_kept_without_output(name: str) -> None:
    """Output would change with every version, and could be stale; the site has that of its own build."""
    for cell in cells(notebooks.NOTEBOOKS, name):
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert notebooks.title_of(notebooks.NOTEBOOKS / f"{name}.ipynb") != name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run(name: str, executed: Path) -> None:
    code = [cell for cell in cells(executed, name) if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    errors = [output for cell in code for output in cell.outputs if output.output_type == "error"]
    assert errors == []
    stderr = "".join(
        output.text for cell in code for output in cell.outputs if output.get("name") == "stderr"
    )
    assert "Warning" not in stderr


@pytest.mark.slow
def test_what_they_show(executed: Path) -> None:
    inside = printed(executed, "translate")
    total, score = re.search(r"^sum +(\S+)\nscore +(\S+)", inside, re.MULTILINE).groups()  # type: ignore[union-attr]
    assert total == score
    bitext = printed(executed, "bitext")
    assert "sie-she" in bitext
    assert float(re.search(r"BLEU +tuned +([\d.]+)", bitext)[1]) > 60  # type: ignore[index]
    learnt = printed(executed, "features")
    assert "Swapped" in learnt
    assert re.search(r"^selected .* 300 weights$", learnt, re.MULTILINE)
    prompt = printed(executed, "lookup")
    assert "- ein buch: a book" in prompt
    assert prompt.rstrip().endswith("English:")
