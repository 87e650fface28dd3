"""Notebooks: execute them outside of the project, and show them as pages.

python -m docs.site.notebooks DIR [NAME ...]: execute the notebooks of docs/notebooks, by default all, and
write them to DIR with their output.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
TIMEOUT = 300  # seconds for a cell, compiling included
COMPILING = re.compile(r"^hiero: compiling.*\n", re.MULTILINE)  # depends on what was compiled before
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def read(path: Path) -> Any:
    """The content of a notebook."""
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)


def execute(path: Path, out: Path) -> float:
    """Execute a notebook in an empty temporary directory, write it with its output; return the seconds."""
    from nbclient import NotebookClient

    notebook = read(path)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hiero-notebook-") as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times, which differ each time
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return time.monotonic() - started


def as_markdown(path: Path) -> str:
    """A notebook as Markdown, with the output that it has."""
    notebook = read(path)
    return "\n\n".join(part for cell in notebook.cells for part in _parts(cell)) + "\n"


def title_of(path: Path) -> str:
    """The first heading of a notebook."""
    found = re.search(r"^# (.+)$", as_markdown(path), re.MULTILINE)
    return found[1] if found else path.stem


def _parts(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    printed = ""
    for output in [*cell.get("outputs", []), None]:
        if output is not None and output.output_type == "stream":
            printed += output.text
            continue
        if text := COMPILING.sub("", printed).strip("\n"):
            yield _text(text)
        printed = ""
        if output is not None and output.output_type in ("display_data", "execute_result"):
            yield _shown(output.data)


def _shown(data: Any) -> str:
    """The best form of an output: a picture, HTML, or text."""
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            text = re.sub(r"\n\s*\n", "\n", data[kind])
            return f'<div class="output" markdown="0">\n{text}\n</div>'
    if "text/markdown" in data:
        return str(data["text/markdown"])
    return _text(data["text/plain"])


def _text(text: str) -> str:
    """Printed text, under a fence that it does not contain."""
    return f"````{{ .text .output }}\n{ESCAPES.sub('', text).rstrip()}\n````"


def main(arguments: Sequence[str]) -> int:
    """Execute notebooks; return the exit status."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    out, names = Path(arguments[0]), arguments[1:]
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.stem in names:
            print(f"{path.name}: {execute(path, out / path.name):.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
