"""Shared fixtures and hypothesis settings."""

from __future__ import annotations

import gc
import math
import os

# Before anything imports numba. The package keys its cache of machine code on a digest of the kernels and on
# the flags they are compiled with; a directory that is set by hand has no such key, and a warm one would hide
# a changed kernel, or the bounds checks that NUMBA_BOUNDSCHECK=1 asks for.
os.environ.pop("NUMBA_CACHE_DIR", None)

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from hiero.core import progress
from hiero.core.jit import compile_timer

PROJECT = Path(__file__).parents[1]
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
MAX_INTERPRETED_EXAMPLES = 15
# For tests that need any German-English model: the bundled one, or, where nothing
# is compiled and it takes a quarter of a minute to load, a small one.
MODEL = PROJECT / "tests" / "golden" / "reordering" / "config.yaml" if INTERPRETED else None

# Compiling breaks any deadline.
settings.register_profile(
    "hiero",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("hiero")


def pytest_collection_finish() -> None:
    """Look less often for garbage in cycles, which takes a tenth of the time of compiling and of tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limit the number of examples where kernels are interpreted, which is some hundred times slower."""
    if not INTERPRETED:
        return
    for item in items:
        test = getattr(item, "obj", None)
        # The attribute that the decorator ``settings`` sets, which refuses to decorate a test twice.
        asked = getattr(test, "_hypothesis_internal_use_settings", None)
        if asked is not None and asked.max_examples > MAX_INTERPRETED_EXAMPLES:
            fewer = settings(asked, max_examples=MAX_INTERPRETED_EXAMPLES)
            test._hypothesis_internal_use_settings = fewer  # type: ignore[union-attr]


@pytest.fixture(scope="session", autouse=True)
def no_messages_that_depend_on_time() -> None:
    """Whether a test is the first to compile something depends on the cache, and how long it takes, too."""
    compile_timer.on_first = None
    progress.EVERY = math.inf


def import_kenlm() -> Any:
    """The module kenlm; a test that needs it is skipped where it does not exist."""
    reason = "kenlm is not installed: it has no wheel, and does not compile on Python 3.13 or newer"
    return pytest.importorskip("kenlm", reason=reason)


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder with cdec's output; tests that need it are skipped where it does not exist."""
    folder = PROJECT.parent / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip(f"no reference data in {folder}")
    return folder
