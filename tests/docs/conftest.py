"""Notebooks with their output, executed once for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the executed notebooks; HIERO_NOTEBOOKS names one that exists."""
    if found := os.environ.get("HIERO_NOTEBOOKS"):
        return Path(found)
    from docs.site import notebooks

    folder = tmp_path_factory.mktemp("notebooks")
    assert notebooks.main([str(folder)]) == 0
    return folder
