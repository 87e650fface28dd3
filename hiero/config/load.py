"""Paths of the files of the bundled model.

They are in ``grammars/`` at the top of the project and in ``hiero/grammars/`` of a wheel.
``grammars/make_demo`` describes how they were made.
"""

from __future__ import annotations

from pathlib import Path

from hiero.core.errors import HieroError, did_you_mean

GRAMMAR = "demo.grammar.gz"
LM = "demo.lm.arpa.gz"
WEIGHTS = "demo.weights"


def _folder() -> Path:
    package = Path(__file__).resolve().parent
    installed = package / "grammars"
    return installed if installed.is_dir() else package.parent / "grammars"


def names() -> list[str]:
    """The names of all bundled files."""
    return sorted(file.name for file in _folder().glob("demo.*"))


def path(name: str) -> Path:
    """The path of one of the files: ``path("demo.grammar.gz")``."""
    if name not in names():
        raise HieroError(f"there is no bundled file {name!r} in {_folder()}: {did_you_mean(name, names())}")
    return _folder() / name
