"""Files of a run of tuning."""

from __future__ import annotations

from pathlib import Path

import pytest

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
