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
    kind, _, columns = condition.partition("-")
    assert (config.bins is None) == (kind in ("p", "p7", "log"))
    assert (config.tune.neighbours != "none") == (kind in ("lnr", "mnr", "iso"))
    one = columns.endswith("7") or condition in ("p7", "log-c")
    assert ((config.tune.l2, config.tune.l2_previous) == (250, 2500)) == one
    grid = variant(condition).get("grid", {})
    assert bool(OF_BINS & grid.keys()) == (config.bins is not None)
    assert ("beta" in grid) == (config.tune.neighbours != "none")
