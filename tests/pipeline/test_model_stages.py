"""``hiero run``: sets that are drawn from the bitext."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hiero.cli.main import main
from hiero.config.config import read_config, resolved
from hiero.core.errors import ConfigError
from hiero.jobs.tune import tune
from tests.worlds.experiments import PAIRS, STAGES, Experiment

Capture = pytest.CaptureFixture[str]
TRAIN = {"source": "train.de", "target": "train.en"}
TWICE = [("er hat ein haus", "he has a house"), ("er hat ein haus", "he owns a house")] * 2


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    """A bitext with repetitions, of which sets are drawn."""
    experiment = Experiment(tmp_path / "exp")
    pairs = [*PAIRS, *TWICE]
    for side, name in enumerate(("train.de", "train.en")):
        (experiment.folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
    experiment.config["data"] = {"train": TRAIN, "sequester": {"dev": 3, "test": 2}}
    experiment.write()
    return experiment


def lines(experiment: Experiment, name: str) -> list[str]:
    return (experiment.out / "sequester" / name).read_text().splitlines()


def test_sets_drawn_from_the_bitext(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.stages_run(capfd) == ["sequester", *STAGES]
    pairs = [*PAIRS, *TWICE]
    drawn: list[tuple[str, str]] = []
    for name, size in (("dev", 3), ("test", 2)):
        found = list(
            zip(lines(experiment, f"{name}.source"), lines(experiment, f"{name}.target"), strict=True)
        )
        assert len(found) == size
        assert found == [pairs[int(number) - 1] for number in lines(experiment, f"{name}.lines")]
        assert len((experiment.out / f"{name}.output").read_text().splitlines()) == size
        drawn += found
    rest = list(zip(lines(experiment, "train.source"), lines(experiment, "train.target"), strict=True))
    expected = [pair for pair in pairs if all(pair[0] != src and pair[1] != tgt for src, tgt in drawn)]
    assert rest == expected
    entry = json.loads((experiment.out / "manifest.json").read_text())["stages"]["sequester"]
    assert entry["figures"] == {"left": len(rest), "dropped": len(pairs) - 5 - len(rest)}
    assert list(entry["inputs"]) == ["data: train: source", "data: train: target"]
    assert experiment.stages_run(capfd) == []
    # The configuration in full is the same configuration, and the model's needs no bitext.
    experiment.path = experiment.out / "config.yaml"
    assert experiment.stages_run(capfd) == []
    assert read_config(experiment.out / "model.yaml").sequester == {}


def test_its_inputs_and_settings(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run() == 0
    with open(experiment.folder / "train.de", "a") as src, open(experiment.folder / "train.en", "a") as tgt:
        src.write("sie hat ein buch\n")
        tgt.write("she has a book\n")
    assert experiment.stages_run(capfd)[0] == "sequester"
    before = experiment.artefacts()
    experiment.set(seed=4)
    assert experiment.stages_run(capfd)[0] == "sequester"
    drawn = [
        {name: made[f"sequester/{name}.lines"] for name in ("dev", "test")}
        for made in (before, experiment.artefacts())
    ]
    assert drawn[0] != drawn[1]
    experiment.config["data"]["sequester"] = {"dev": 3}
    experiment.write()
    assert experiment.stages_run(capfd)[0] == "sequester"
    assert experiment.artefacts()["sequester/dev.lines"] == drawn[1]["dev"]
    (experiment.out / "sequester" / "dev.target").write_text("changed\n")
    assert experiment.stages_run(capfd) == ["sequester"]


def test_alignments_are_split_with_the_text(experiment: Experiment, capfd: Capture) -> None:
    count = len(PAIRS) + len(TWICE)
    for number in range(2):
        text = "".join(f"0-{number} 1-1\n" if k % 2 else "0-0\n" for k in range(count))
        (experiment.folder / f"links{number}").write_text(text)
    experiment.config["data"]["train"] = TRAIN | {"alignment": ["links0", "links1"]}
    experiment.set(align=None)
    stages = experiment.stages_run(capfd)
    assert stages[:2] == ["sequester", "lm:LanguageModel"]
    taken = {int(number) for name in ("dev", "test") for number in lines(experiment, f"{name}.lines")}
    for number in range(2):
        kept = lines(experiment, f"train.align{number + 1}")
        assert len(kept) == len(lines(experiment, "train.source"))
    index = json.loads((experiment.out / "manifest.json").read_text())["stages"]["index"]
    assert [key for key in index["inputs"] if "alignment" in key] == [
        f"data: train: alignment: entry {number}" for number in (1, 2)
    ]
    assert taken
    for number in (1, 12):
        (experiment.folder / "links1").write_text("0-0\n" * number)
        line = experiment.error(capfd)
        assert f"found {min(number, 11)} lines, expected {max(number, 11)}, as many as" in line


def test_groups_of_pairs_are_split_with_the_text(experiment: Experiment, capfd: Capture) -> None:
    count = len(PAIRS) + len(TWICE)
    (experiment.folder / "groups").write_text("".join(f"{k // 2}\n" for k in range(count)))
    tune = {"algorithm": "sgd", "epochs": 1, "kbest": 10, "held_out": "test", "on": "train"}
    experiment.set(
        grammar=[{"index": "train", "extract": {"leave_out": "groups"}}],
        weights=None,
        tune=tune | {"leave_one_out": True},
        eval=None,
    )
    experiment.config["data"]["sequester"] = {"test": 2}
    experiment.write()
    assert "tune" in experiment.stages_run(capfd)
    taken = [int(number) - 1 for number in lines(experiment, "test.lines")]
    kept = lines(experiment, "train.groups1")
    assert len(kept) == len(lines(experiment, "train.source"))
    assert set(kept) <= {str(k // 2) for k in range(count) if k not in taken}
    inputs = json.loads((experiment.out / "manifest.json").read_text())["stages"]["tune"]["inputs"]
    assert inputs["grammar: entry 1: extract: leave_out"]["path"].endswith("sequester/train.groups1")
    (experiment.folder / "groups").write_text("".join(f"{k % 2}\n" for k in range(count)))
    assert experiment.stages_run(capfd)[:2] == ["sequester", "tune"]
    experiment.set(prep={"tokenize": False})
    expected = "grammar: entry 1: extract: leave_out: cannot be combined with prep, which may drop pairs"
    assert experiment.error(capfd).endswith(expected)


def test_after_preparation(experiment: Experiment, capfd: Capture) -> None:
    """Texts are compared as they are after it."""
    capitals = (experiment.folder / "train.de").read_text().title()
    (experiment.folder / "train.de").write_text((experiment.folder / "train.de").read_text() + capitals)
    (experiment.folder / "train.en").write_text((experiment.folder / "train.en").read_text() * 2)
    experiment.set(prep={"tokenize": False, "lowercase": True})
    assert experiment.stages_run(capfd)[:2] == ["prep:train", "sequester"]
    drawn = {line for name in ("dev", "test") for line in lines(experiment, f"{name}.source")}
    assert len(drawn) == 5
    assert not drawn & set(lines(experiment, "train.source"))
    assert all(line.islower() for line in drawn)


def test_tuning_on_a_set_drawn(experiment: Experiment, capfd: Capture, tmp_path: Path) -> None:
    settings = {"algorithm": "sgd", "epochs": 1, "kbest": 10, "held_out": "test"}
    experiment.set(
        weights=None, tune=settings, eval={"metrics": ["bleu"], "tokenize": "none", "test": "none"}
    )
    assert "tune" in experiment.stages_run(capfd)
    # hiero tune makes the same sets by the stages of hiero run.
    where = ["--run", str(experiment.out), "-o", str(tmp_path / "tuned")]
    assert main(["tune", "-c", str(experiment.path), *where]) == 0
    assert (tmp_path / "tuned" / "weights.gz").read_bytes() == (experiment.out / "weights.gz").read_bytes()
    experiment.set(lm=None, grammar=None, align=None)
    with pytest.raises(ConfigError, match=r"exp.yaml: data: sequester: hiero tune draws no sets \(for files"):
        tune(experiment.path, tmp_path / "other")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"train": TRAIN, "sequester": {"dev": 0}}, "data: sequester: dev: found 0, expected at least 1"),
        (
            {"train": TRAIN, "sequester": {"dev": "2"}},
            "data: sequester: dev: found '2', expected a whole number",
        ),
        ({"train": TRAIN, "sequester": [2]}, "data: sequester: found [2], expected names and values"),
        (
            {"train": TRAIN, "sequester": {"train": 2}},
            "data: sequester: train: found the name of another set",
        ),
        (
            {"train": TRAIN, "dev": {"source": "dev.de"}, "sequester": {"dev": 2}},
            "data: sequester: dev: found the name of another set of data (each set needs a name of its own)",
        ),
        ({"train": TRAIN, "sequester": {"a b": 2}}, "data: sequester: a b: found 'a b', expected a name of"),
        ({"sequester": {"dev": 2}}, "data: sequester: needs train, from which sets are drawn"),
        ({"train": TRAIN | {"source": "x"}, "sequester": {"dev": 2}}, "data: train: source: no such file"),
        (
            {"train": TRAIN, "sequester": {"dev": 3, "test": 7}},
            "data: sequester: test: found 7, expected at most ",
        ),
        (
            {"train": TRAIN, "sequester": {"dev": 12}},
            "expected at most 8 pairs that share no source and no target",
        ),
    ],
)
def test_sets_that_cannot_be_drawn(
    experiment: Experiment, capfd: Capture, data: dict[str, Any], message: str
) -> None:
    experiment.set(data=data)
    line = experiment.error(capfd)
    assert line.startswith(f"{experiment.path}: ")
    assert message in line


def test_a_name_twice_a_wrong_place_and_a_held_out_set_of_one_line(
    experiment: Experiment, capfd: Capture
) -> None:
    experiment.set(weights=None, tune={"held_out": "test"})
    experiment.config["data"]["sequester"]["test"] = 1
    experiment.write()
    assert "data: sequester: test: found 1, expected 2 or more (held out)" in experiment.error(capfd)
    experiment.path.write_text("data: {sequester: {dev: 2, dev: 3}}\n")
    assert "the key 'dev' a second time" in experiment.error(capfd)
    experiment.path.write_text("sequester: {dev: 2}\n")
    assert "sequester: belongs in data (data: {sequester: {NAME: PAIRS}})" in experiment.error(capfd)


def test_bins_of_a_set_to_be_drawn(experiment: Experiment, capfd: Capture) -> None:
    experiment.set(bins={"on": "dev", "features": {"CountEF": {}}}, lm=None, grammar=[{"path": "weights"}])
    assert main(["bins", "learn", "-c", str(experiment.path), "-o", str(experiment.folder / "bins")]) == 1
    message = "bins: on: found dev, a set to be drawn (for files made by hiero run, use the model.yaml"
    assert message in capfd.readouterr().err


def test_nothing_changes_without_it(experiment: Experiment) -> None:
    experiment.config["data"]["sequester"] = None
    experiment.write()
    assert "sequester" not in resolved(read_config(experiment.path))["data"]
