"""Language models estimated without the references they score."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hiero.core.errors import ConfigError
from hiero.core.progress import SilentProgress
from hiero.jobs.tune import tune
from hiero.lm.config import FALLBACK, EstimateConfig
from hiero.lm.estimate import estimate_language_model
from hiero.lm.load import load_language_models
from hiero.lm.model import score_text
from hiero.tuning.jackknife import fold_of, jackknifed
from tests.worlds.tune import Tuning

ORDER = 3


def texts(number: int) -> list[str]:
    """Texts in which each line has a word of its own."""
    draw = random.Random(3)
    return [" ".join([*draw.choices("abcdefgh", k=6), f"own{line}"]) for line in range(number)]


def probabilities(path: Path, text: str) -> list[float]:
    found = score_text(load_language_models([("LM", path)]), 0, text.encode() + b"\n")
    return [float(p) for p in found.prob]


def unknown(path: Path, text: str) -> int:
    found = score_text(load_language_models([("LM", path)]), 0, text.encode() + b"\n")
    return sum(word == 0 for word in found.word.tolist())


def estimated(lines: list[str], folder: Path, name: str) -> Path:
    """A model of these lines only."""
    source = folder / f"{name}.txt"
    source.write_text("".join(f"{line}\n" for line in lines))
    config = EstimateConfig(order=ORDER, discount_fallback=FALLBACK, skip_symbols=True, temp=folder)
    estimate_language_model(source, folder / name, config, compiled=True)
    return folder / name


class Told(SilentProgress):
    """Keeps the number of folds, and steps."""

    def __init__(self) -> None:
        self.steps: list[int | None] = []

    def begin(self, total: int | None, what: str = "") -> None:
        self.steps.append(total)

    def advance(self, steps: int, note: str = "") -> None:
        self.steps.append(steps)


def test_a_fold_is_scored_by_the_others(tmp_path: Path) -> None:
    lines, told = texts(60), Told()
    references = tmp_path / "refs"
    references.write_text("".join(f"{line}\n" for line in lines))
    given = estimated(lines, tmp_path, "given")
    # Line 59 is not learnt from, and in all models.
    parts = [list(range(shard, 59, 5)) for shard in range(5)]
    specs = (("LM", str(given)), ("Other", "elsewhere"))
    found = jackknifed(specs, str(references), parts, 2, ORDER, tmp_path / "folds", told)
    assert told.steps == [2, 1, 1]
    assert len(found) == 2
    for fold, ((name, path), other) in enumerate(found):
        assert (name, other) == ("LM", ("Other", "elsewhere"))
        mine = {line for shard in range(5) if fold_of(shard, 2) == fold for line in parts[shard]}
        kept = [line for number, line in enumerate(lines) if number not in mine]
        expected = estimated(kept, tmp_path, f"without{fold}")
        for number, line in enumerate(lines):
            assert unknown(Path(path), line) == (number in mine)
            assert unknown(given, line) == 0
            assert probabilities(Path(path), line) == probabilities(expected, line)
    assert not list((tmp_path / "folds").glob("*.txt"))


def test_every_shard_is_in_one_fold(tmp_path: Path) -> None:
    lines = texts(30)
    references = tmp_path / "refs"
    references.write_text("".join(f"{line}\n" for line in lines))
    parts = [[line] for line in range(3)]
    specs = (("LM", "given"),)
    found = jackknifed(specs, str(references), parts, 10, 2, tmp_path, SilentProgress())
    assert len(found) == 3  # no more than there are shards
    missed = [[unknown(Path(spec[0][1]), line) for line in lines[:3]] for spec in found]
    assert missed == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("specs", "parts", "message"),
    [
        ((), [[0], [1]], "lm: jackknife needs a language model to replace"),
        ((("LM", "x"),), [[0, 1]], r"lm: jackknife needs several shards \(set shards\)"),
    ],
)
def test_errors(tmp_path: Path, specs: Any, parts: list[list[int]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        jackknifed(specs, "none", parts, 2, 3, tmp_path, SilentProgress())


def test_tuning_with_them(tmp_path: Path) -> None:
    """Shards are not decoded with the given model; the held-out set is."""
    world = Tuning(tmp_path / "exp")
    references = world.lines("dev.ref")
    text = world.file("text", references)
    config = EstimateConfig(order=2, discount_fallback=FALLBACK, skip_symbols=True, temp=tmp_path)
    estimate_language_model(text, world.folder / "lm", config, compiled=True)
    world.set(lm=[{"path": "lm"}], tune={"algorithm": "itermixsgd", "shards": 3, "epochs": 2})
    given = tune(world.path, world.folder / "given")
    jackknife = tune(world.path, world.folder / "jackknife", lm="jackknife", folds=3)
    folds = sorted(path.name for path in (world.folder / "jackknife" / "jackknife").iterdir())
    assert folds == ["fold.00", "fold.01", "fold.02"]
    assert jackknife.weights.read_bytes() != given.weights.read_bytes()
    again = tune(world.path, world.folder / "threads", lm="jackknife", folds=3, workers=2)
    assert again.weights.read_bytes() == jackknife.weights.read_bytes()
