"""benchmarks/serve.py, with fewer requests."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the server needs it")

from benchmarks.serve import compare, load, running, soak
from benchmarks.soak import growth
from hiero.config.model import bundled_path
from hiero.core.text import read_text


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_load_and_memory() -> None:
    lines = read_text(bundled_path("demo.test.de"))
    with running(["-j", "2"]) as target:
        assert compare(target, lines[:60]) == 60
        figures = load(target, lines, 4, 100)
        assert figures["p50 ms"] <= figures["p99 ms"]
        samples = soak(target, lines, 4, 1200)
        assert growth(samples) < 40  # MB; a forest of each would be hundreds
