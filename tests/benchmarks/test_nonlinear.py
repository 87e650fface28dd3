"""benchmarks/papers/nonlinear.py: the conditions of paper 003."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.papers.nonlinear import CONDITIONS, OF_BINS, variant
from hiero.config.config import read_config, write_settings


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_are_valid(tmp_path: Path, condition: str) -> None:
    path = tmp_path / "config.yaml"
    write_settings(path, variant(condition), "a condition")
    config = read_config(path)
    assert config.tune is not None
    assert (config.bins is None) == (condition in ("p", "log-p"))
    assert (config.tune.neighbours != "none") == condition.endswith(("nr-p", "nr-c"))
    grid = variant(condition).get("grid", {})
    assert bool(OF_BINS & grid.keys()) == (config.bins is not None)
    assert ("beta" in grid) == (config.tune.neighbours != "none")
