"""Frozen weights do not change while others are learnt."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiero.core.symbols import Symbols
from hiero.features.weights import read_weights
from tests.worlds.tune import Tuning

START = {"Right": 0.25, "Wrong": 0.5, "R:X:a:A": 0.125}


def weights(path: Path) -> dict[str, float]:
    return dict(read_weights(path, Symbols()).items())


@pytest.mark.parametrize("frozen", ["dense", "sparse"])
def test_frozen_weights_stay_and_others_are_learnt(tmp_path: Path, frozen: str) -> None:
    tuning = Tuning(tmp_path)
    start = tuning.file("start", [f"{name} {value}" for name, value in START.items()])
    tuning.set(
        features={"templates": ["rule_id"]},
        tune={"start": str(start), "freeze": frozen, "update": "sentence", "average": "sentences"},
    )
    assert tuning.run("-q", "-j", "2") == 0
    found = weights(tuning.out / "weights.gz")
    dense = {"Right", "Wrong", "Length", "Glue", "WordPenalty", "PassThrough"}
    changed = {name for name in found.keys() | START.keys() if found.get(name, 0) != START.get(name, 0)}
    assert changed
    assert changed <= dense if frozen == "sparse" else not changed & dense


@pytest.mark.parametrize(("key", "value"), [("algorithm", "kbmira"), ("update", "pair")])
def test_weights_that_cannot_be_frozen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], key: str, value: str
) -> None:
    tuning = Tuning(tmp_path)
    tuning.set(tune={"freeze": "dense", key: value})
    assert "freeze works with " in tuning.error(capfd)
