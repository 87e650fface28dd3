"""Stale gradients: asynchronous threads."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hiero.core.symbols import Symbols
from hiero.features.weights import read_weights
from tests.conftest import INTERPRETED
from tests.worlds.tune import Tuning


@pytest.fixture
def world(tmp_path: Path) -> Tuning:
    world = Tuning(tmp_path / "exp")
    lines = world.lines("dev.src") * 4
    world.file("dev.src", lines)
    world.file("dev.ref", [line.upper() for line in lines])
    learn = {"algorithm": "adagrad", "stale": True, "batch": 3, "epochs": 3, "rate": 0.1, "l1": 0.0}
    world.set(tune=learn, features={"templates": ["rule_id"]})
    return world


@pytest.mark.heavy
@pytest.mark.parametrize("threads", [1, 3])
def test_learns_and_reports_staleness(world: Tuning, capfd: pytest.CaptureFixture[str], threads: int) -> None:
    assert world.run("-j", str(threads)) == 0
    captured = capfd.readouterr()
    assert captured.err.count("stale: gradients are applied late, and another run will learn") == 1
    weights = dict(read_weights(world.out / "weights.gz", Symbols()).items())
    assert weights["Right"] > weights.get("Wrong", 0.0)
    assert all(math.isfinite(weight) for weight in weights.values())
    assert "BLEU 100.00 (brevity 1.000) on even lines" in captured.out


def test_every_sentence_is_used_once_an_epoch(world: Tuning) -> None:
    lines = world.lines("dev.src")
    world.file("dev.src", ["", *lines[1:]])  # one of them cannot be
    from hiero.jobs.tune import tune

    epochs = 1 if INTERPRETED else 3
    world.set(tune={"epochs": epochs})
    tuned = tune(world.path, world.out, workers=3)
    assert [(record["sentences"], record["failed"]) for record in tuned.log] == [(47, 1)] * epochs
    assert [record["updates"] for record in tuned.log] == [16] * epochs  # mini-batches


@pytest.mark.heavy
def test_resumed(world: Tuning) -> None:
    assert world.run("-q", "--epochs", "1", "-j", "2") == 0
    first = (world.out / "weights.01.gz").read_bytes()
    assert world.run("-q", "--resume", "-j", "2") == 0
    assert (world.out / "weights.01.gz").read_bytes() == first
    assert (world.out / "weights.03.gz").exists()


@pytest.mark.heavy
def test_one_thread_is_never_stale(world: Tuning) -> None:
    """The result equals that of synchronous learning."""
    assert world.run("-q") == 0
    stale, world.out = world.answer(), world.folder / "other"
    assert world.run("-q", "--no-stale") == 0
    found = [dict(read_weights(path, Symbols()).items()) for path in sorted(world.out.glob("weights.0*.gz"))]
    world.out = world.folder / "out"
    late = [dict(read_weights(path, Symbols()).items()) for path in sorted(world.out.glob("weights.0*.gz"))]
    assert len(stale) == 4
    for one, other in zip(found, late, strict=True):
        assert other == pytest.approx(one)
