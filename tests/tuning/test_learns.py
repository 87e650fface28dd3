"""Every algorithm learns a toy language: the right words, and reordering rules."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hiero.jobs.tune import tune
from hiero.learning.config import ALGORITHMS

LETTERS = "abcd"
RULES = [
    *(f"[X] ||| {x} ||| {x.upper()} ||| Right=1" for x in LETTERS),
    *(f"[X] ||| {x} ||| {x}{x} ||| Wrong=1" for x in LETTERS),
    "[X] ||| [X,1] [X,2] ||| [1] [2] ||| Straight=1",
    "[X] ||| [X,1] [X,2] ||| [2] [1] ||| Swapped=1",
]
# What presets leave to corpora of thousands of sentences is less here.
LESS: dict[str, dict[str, Any]] = {
    "sgd": {"rate": 0.1},
    "mixsgd": {"shards": 3},
    "itermixsgd": {"shards": 3},
    "iterselsgd": {"shards": 3, "select": 8},
    "mira": {"shards": 2, "kbest": 50},
    "adagrad": {"batch": 3, "l1": 0.01, "rate": 0.2},
    "mert": {"restarts": 5, "kbest": 200, "epochs": 8},
    "forest": {"algorithm": "mert", "forest": True, "directions": 5, "beam": 100.0},
}


def config(folder: Path, seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    (folder / "grammar").write_text("".join(f"{rule}\n" for rule in RULES))
    data = {}
    for name, count in (("dev", 15), ("devtest", 8)):
        lines = [draw.choices(LETTERS, k=draw.randint(4, 5)) for _ in range(count)]
        (folder / f"{name}.src").write_text("".join(" ".join(line) + "\n" for line in lines))
        turned = ("".join(f"{x.upper()} " for x in reversed(line)).strip() for line in lines)
        (folder / f"{name}.ref").write_text("".join(f"{line}\n" for line in turned))
        data[name] = {"source": str(folder / f"{name}.src"), "references": str(folder / f"{name}.ref")}
    return {"seed": seed, "data": data, "grammar": [{"path": str(folder / "grammar")}]}


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("preset", "seed"), [(preset, seed) for preset in (*sorted(ALGORITHMS), "forest") for seed in (1, 2, 3)]
)
def test_learns_to_translate_and_reorder(tmp_path: Path, preset: str, seed: int) -> None:
    keys = {"algorithm": preset, "epochs": 4, "kbest": 40} | LESS.get(preset, {})
    if preset == "mert":
        # From zero, where all are alike, lists are of chance translations, among which no line may lead up.
        start = tmp_path / "start"
        start.write_text("Right -0.1\nSwapped 0.1\nStraight 0.11\n")
        keys["start"] = str(start)
    found = tune(config(tmp_path, seed), tmp_path / "run", **keys)
    assert found.chosen["report_bleu"] == pytest.approx(100)
    assert found.chosen["report_brevity"] == 1
