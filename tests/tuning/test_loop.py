"""Files of a run of tuning."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from hiero.core.errors import HieroError
from hiero.features.weights import Weights
from hiero.tuning import loop
from hiero.tuning.loop import Loop
from hiero.tuning.online import OnlineCourse, run_online_shard
from hiero.tuning.shard import ShardTask
from tests.worlds.tune import Tuning

SHARDS = {"shard.000.json", "shard.000.npz", "shard.001.json", "shard.001.npz"}


@pytest.mark.parametrize(
    ("settings", "first", "last"),
    [
        ({"algorithm": "itermixsgd"}, {"answer.npz"}, SHARDS | {"answer.npz"}),
        (
            {"algorithm": "itermixsgd", "average": "epochs"},
            {"answer.npz"},
            SHARDS | {"answer.npz", "mixed.npz"},
        ),
        (
            {"algorithm": "itermixsgd", "average": "sentences"},
            {"answer.npz"},
            SHARDS | {"answer.npz", "mixed.npz", "average.npz"},
        ),
        ({"algorithm": "kbmira"}, SHARDS | {"answer.npz", "start.npz"}, SHARDS | {"answer.npz"}),
    ],
)
def test_files_of_epochs(tmp_path: Path, settings: dict[str, str], first: set[str], last: set[str]) -> None:
    """The weights of an epoch are in one file, from which the next one starts."""
    world = Tuning(tmp_path)
    world.set(tune=settings | {"shards": 2, "epochs": 2, "held_out": None})
    assert world.run("-q") == 0
    files = {
        folder.name: {path.name for path in folder.iterdir()} for folder in (world.out / "epochs").iterdir()
    }
    assert files == {"01": first, "02": last}


def test_the_next_epoch_begins_before_weights_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed then continues with the epoch that is not logged."""
    write, events = loop.write_weights, []

    def slow_write(path: Path, weights: Weights) -> list[bytes]:
        if path.name == "weights.01.gz":
            assert begun.wait(60)
        events.append(path.name)
        return write(path, weights)

    def noted(task: ShardTask) -> str:
        if task.epoch == 1:
            begun.set()
        return run_online_shard(task)

    begun = threading.Event()
    monkeypatch.setattr(loop, "write_weights", slow_write)
    monkeypatch.setattr(OnlineCourse, "work", staticmethod(noted))
    monkeypatch.setattr(Loop, "_forget", lambda *_: None)
    world = Tuning(tmp_path)
    world.set(tune={"algorithm": "itermixsgd", "shards": 2, "epochs": 3, "held_out": None})
    assert world.run("-q") == 0
    assert events == ["weights.01.gz", "weights.02.gz", "weights.03.gz"]
    whole = {path.name: path.read_bytes() for path in world.out.glob("weights*")}
    log = (world.out / "log.jsonl").read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["epoch"] for line in log] == [1, 2, 3]

    (world.out / "log.jsonl").write_bytes(log[0])
    for name in ("weights.02.gz", "weights.03.gz", "weights.gz"):
        (world.out / name).unlink()
    assert world.run("-q", "--resume") == 0
    assert {path.name: path.read_bytes() for path in world.out.glob("weights*")} == whole
    assert len(world.lines("out/log.jsonl")) == 3


def test_an_epoch_before_an_error_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(task: ShardTask) -> str:
        if task.epoch == 1:
            raise HieroError("no second epoch")
        return run_online_shard(task)

    monkeypatch.setattr(OnlineCourse, "work", staticmethod(failing))
    world = Tuning(tmp_path)
    world.set(tune={"algorithm": "sgd", "epochs": 2, "held_out": None})
    assert world.run("-q") == 1
    assert [json.loads(line)["epoch"] for line in world.lines("out/log.jsonl")] == [1]
    assert (world.out / "weights.01.gz").exists()
