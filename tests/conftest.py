"""What all tests share."""

from __future__ import annotations

import os

# Before anything imports numba. The package keys its cache of machine code on a digest of the kernels and on
# the flags they are compiled with; a directory that is set by hand has no such key, and a warm one would hide
# a changed kernel, or the bounds checks that NUMBA_BOUNDSCHECK=1 asks for.
os.environ.pop("NUMBA_CACHE_DIR", None)

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Compiling breaks any deadline; interpreted kernels are some hundred times slower.
settings.register_profile(
    "hiero",
    deadline=None,
    max_examples=20 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("hiero")

PROJECT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder with cdec's own output; what needs it skips where it is not beside the project."""
    folder = PROJECT.parent / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip(f"no reference data in {folder}")
    return folder
