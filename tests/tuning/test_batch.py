"""``history``: batch learning from the lists of the last iterations only."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.tune import Tuning

PRO = {"algorithm": "pro", "epochs": 4, "kbest": 6, "l2": 0.1, "threshold": 0.0, "draws": 500}


@pytest.fixture
def tuning(tmp_path: Path) -> Tuning:
    found = Tuning(tmp_path / "world")
    found.config["tune"].pop("rate")
    return found


def run(tuning: Tuning, **keys: Any) -> dict[str, bytes]:
    shutil.rmtree(tuning.out, ignore_errors=True)
    tuning.set(tune={**PRO, "start": "right", **keys})
    assert tuning.run("-q") == 0
    return tuning.answer()


def log(tuning: Tuning) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tuning.lines("out/log.jsonl")]


def forget(tuning: Tuning, records: list[str], done: int) -> None:
    """Remove everything that is not there after the given number of epochs."""
    tuning.file("out/log.jsonl", records[:done])
    for path in tuning.out.glob("weights*.gz"):
        if path.name == "weights.gz" or path.name > f"weights.{done:02}.gz":
            path.unlink()
    for epoch in sorted((tuning.out / "epochs").iterdir())[done:]:
        for path in epoch.iterdir():
            if path.name != "start.npz" or epoch.name > f"{done + 1:02}":
                path.unlink()


@pytest.mark.heavy
def test_lists_in_use(tuning: Tuning) -> None:
    """The first lists have bad translations, later ones do not: dropped lists have no effect."""
    tuning.file("right", ["Wrong 1", "Length 0.5"])
    everything = run(tuning)
    grown = [record["candidates"] for record in log(tuning)]
    news = [record["new_candidates"] for record in log(tuning)]
    assert grown == [sum(news[: n + 1]) for n in range(len(news))]
    assert len(grown) > 2

    last = run(tuning, history=1)
    assert all(record["candidates"] == record["new_candidates"] for record in log(tuning))
    assert last["weights.01.gz"] == everything["weights.01.gz"]  # there is nothing to leave out yet
    assert last["weights.02.gz"] != everything["weights.02.gz"]

    two = run(tuning, history=2)
    assert two["weights.02.gz"] == everything["weights.02.gz"]
    assert two["weights.03.gz"] != everything["weights.03.gz"]
    assert run(tuning, history=9) == everything


@pytest.mark.heavy
def test_resumed(tuning: Tuning) -> None:
    tuning.file("right", ["Wrong 1", "Length 0.5"])
    expected = run(tuning, history=2)
    records = tuning.lines("out/log.jsonl")
    for done in range(1, len(records)):
        forget(tuning, records, done)
        assert tuning.run("-q", "--resume") == 0
        assert tuning.answer() == expected


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"history": -1}, "history: found -1, expected at least 0"),
        ({"algorithm": "sgd", "history": 2}, "history works with pro, kbmira and mert, not with sgd"),
        (
            {"algorithm": "mert", "forest": True, "history": 2},
            "history works with k-best lists, not with forest: true",
        ),
    ],
)
def test_learners_without_history(
    tuning: Tuning, capfd: pytest.CaptureFixture[str], keys: dict[str, Any], message: str
) -> None:
    tuning.set(tune=keys)
    assert tuning.error(capfd).endswith(message)
