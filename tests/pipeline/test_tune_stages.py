"""``hiero run`` with a stage that tunes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from hiero.cli.main import main
from hiero.config import model
from hiero.extraction import index
from hiero.extraction.extractor import Workspace
from tests.worlds.experiments import Experiment

Capture = pytest.CaptureFixture[str]
TUNE = {"algorithm": "itermixsgd", "shards": 2, "epochs": 2, "kbest": 10, "held_out": "test"}


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    experiment = Experiment(tmp_path / "exp")
    experiment.add_line()
    experiment.set(weights=None, tune=TUNE, eval={"metrics": ["bleu"], "tokenize": "none", "trials": 10})
    return experiment


def test_learnt_weights_are_used_in_the_test_stage(experiment: Experiment, capfd: Capture) -> None:
    stages = experiment.stages_run(capfd)
    assert stages.index("index") < stages.index("tune") < stages.index("decode:dev")
    made = experiment.artefacts()
    tuned = {name for name in made if name.startswith("tune/")}
    assert tuned == {"tune/weights.01.gz", "tune/weights.02.gz", "tune/weights.gz"}
    assert made["weights.gz"] == made["tune/weights.gz"]
    model = yaml.safe_load(made["model.yaml"])
    assert model["weights"] == {"path": "weights.gz"}
    entry = json.loads((experiment.out / "manifest.json").read_text())["stages"]["tune"]
    assert entry["figures"]["epochs"] == 2
    assert entry["settings"]["tune"]["rate"] == 1e-4
    assert "data: dev: references: entry 1" in entry["inputs"]

    assert experiment.stages_run(capfd, "-j", "2") == []
    experiment.set(tune=TUNE | {"rate": 0.01})
    assert "tune" in experiment.stages_run(capfd)
    (experiment.folder / "dev.en").write_text("the house\nhe has read the house\n")
    assert experiment.stages_run(capfd)[0] == "tune"


def test_the_model_and_the_index_are_opened_once(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    for module, name in ((model, "make_model"), (index, "open_index")):
        function = getattr(module, name)

        def counting(*args: Any, name: str = name, function: Any = function, **keys: Any) -> Any:
            opened.append(name)
            return function(*args, **keys)

        monkeypatch.setattr(module, name, counting)
    assert experiment.run() == 0
    assert sorted(opened) == ["make_model", "open_index"]


def test_tuning_on_the_bitext_leaves_out_rules_of_the_sentence(
    experiment: Experiment, capfd: Capture
) -> None:
    experiment.set(tune=TUNE | {"on": "train", "held_out": "dev"})
    assert experiment.run() == 0
    said = capfd.readouterr().err
    assert (
        "train.index is an index of the sentences of train: leave_one_out: true translates each without"
        in said
    )
    experiment.set(tune=TUNE | {"on": "train", "held_out": "dev", "leave_one_out": True})
    assert experiment.run() == 0
    assert "index of the sentences" not in capfd.readouterr().err


@pytest.mark.slow
def test_rules_are_extracted_once(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all epochs, stages, workers and later runs; the results are those without a store."""
    extracted: list[int] = []
    plain = Workspace.rules

    def counting(self: Workspace, src: Any, left_out: Any, *further: Any, **named: Any) -> Any:
        if src.any():  # and not the unknown word that a model is warmed up with
            extracted.append(*(left_out.tolist() or [-1]))
        return plain(self, src, left_out, *further, **named)

    monkeypatch.setattr(Workspace, "rules", counting)
    settings = TUNE | {"on": "train", "held_out": "dev", "leave_one_out": True}

    def weights(*more: str, **keys: Any) -> bytes:
        extracted.clear()
        experiment.set(tune=settings | keys)
        assert experiment.run("-q", *more) == 0
        return experiment.artefacts()["weights.gz"]

    expected = weights(keep_rules=False)
    assert len(extracted) == 2 * (7 + 2) + 2 + 2  # epochs of train and dev, and stages of dev and test
    assert not (experiment.out / "rules").exists()
    experiment.out = experiment.folder / "kept"
    assert weights() == expected
    assert sorted(extracted) == [-1] * 4 + list(range(7))
    assert weights("-j", "2", rate=0.1) != expected
    assert extracted == []
    shutil.rmtree(experiment.out / "tune")
    for path in experiment.out.glob("rules/*.rules"):
        path.write_bytes(path.read_bytes()[:-9])
    assert weights(rate=0.01) != expected
    assert len(extracted) == 1


def test_rules_are_kept_by_hiero_tune(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(experiment.folder)
    experiment.set(tune=TUNE | {"on": "train", "held_out": "dev", "leave_one_out": True})
    for folder, more in (("none", ["--no-keep-rules"]), ("one", ["--epochs", "1"]), ("kept", [])):
        assert main(["tune", "-q", "-c", str(experiment.path), "-o", folder, *more]) == 0
    assert [Path(folder, "rules").exists() for folder in ("none", "one", "kept")] == [False, False, True]
    assert Path("kept/weights.gz").read_bytes() == Path("none/weights.gz").read_bytes()
    assert main(["tune", "-q", "-c", str(experiment.path), "-o", "kept", "--resume", "--no-keep-rules"]) == 0


def test_leave_one_out_with_another_bitext(experiment: Experiment, capfd: Capture) -> None:
    experiment.set(tune=TUNE | {"leave_one_out": True})
    message = experiment.error(capfd)
    assert "dev.de:1: found another sentence, expected that of pair 1 of " in message


def test_grammars_of_sentences(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run("-q") == 0
    expected = experiment.artefacts()["weights.gz"]
    experiment.set(grammar=[{"index": "train", "write": "per_sentence"}])
    assert experiment.run("-q") == 0
    assert experiment.artefacts()["weights.gz"] == expected
    experiment.set(tune=TUNE | {"on": "train"})
    assert "tune: on: train: write: per_sentence makes no grammars for this set" in experiment.error(capfd)


def test_weights_are_given_or_learnt(experiment: Experiment, capfd: Capture) -> None:
    experiment.set(weights={"path": "weights"})
    assert "weights: cannot be combined with tune, which learns them" in experiment.error(capfd)
    experiment.set(weights=None, tune=TUNE | {"start": "weights"})
    assert experiment.run("-q") == 0
    experiment.set(tune=TUNE | {"on": "dve"})
    assert "tune: on: unknown set 'dve'; did you mean 'dev'?" in experiment.error(capfd)


def test_even_lines_are_scored_where_odd_ones_chose(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run() == 0
    captured = capfd.readouterr()
    assert [line.split("  ")[0] for line in captured.out.splitlines()] == [
        "dev (learnt from)",
        "test (even lines)",
    ]
    assert "tune: epoch 1 of 2: BLEU" in captured.err or "tune: epoch 2 of 2: BLEU" in captured.err
    assert "on odd lines of test, which chose it" in captured.err
    assert "eval:test: the even lines of test are scored: its odd lines chose the weights" in captured.err
    made = experiment.artefacts()
    record, table = json.loads(made["test.eval.json"]), made["test.eval.txt"].decode()
    assert (record["lines"], record["sentences"]) == ("even", 1)
    assert "even lines only: the others chose the weights" in table
    # Nor are those that were learnt from a test set.
    record, table = json.loads(made["dev.eval.json"]), made["dev.eval.txt"].decode()
    assert record["learnt_from"] is True
    assert "lines" not in record
    assert "the weights were learnt from these lines: this is no test result" in table
    assert "eval:dev: the weights were learnt from dev: its scores are no test result" in captured.err
    assert "learnt_from" not in json.loads(made["test.eval.json"])
    (experiment.folder / "test.de").write_text("sie hat ein haus\n")
    (experiment.folder / "test.en").write_text("she has a house\n")
    (experiment.folder / "test.other.en").write_text("she has a house\n")
    message = "tune: held_out: found test, which has one line: odd lines choose, even ones are scored"
    assert message in experiment.error(capfd)
    # With the last epoch instead, nothing is chosen.
    experiment.set(tune=TUNE | {"held_out": None})
    assert experiment.run() == 0
    captured = capfd.readouterr()
    assert "tune: epoch 2 of 2 (the last: nothing is held out)" in captured.err
    assert captured.out.splitlines()[1].startswith("test ")


class Killed(BaseException):
    """Simulates SIGKILL: it is never caught."""


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # a simulated kill leaves files open
def test_interrupted_anywhere(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated kills before each rename of a file."""
    assert experiment.run("-q") == 0
    whole, replace = experiment.artefacts(), os.replace
    moment, finished = 6, False
    while not finished:
        experiment.out = experiment.folder / f"killed{moment}"
        left = moment

        def counted(source: Any, target: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            replace(source, target)

        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr("os.replace", counted)
            finished = experiment.run("-q") == 0
        assert experiment.run("-q") == 0
        assert experiment.artefacts() == whole, moment
        moment += 5
    assert moment > 30


def test_hiero_tune_takes_the_configuration_of_hiero_run(
    experiment: Experiment, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(experiment.folder)
    assert main(["tune", "-c", "exp.yaml", "-o", "tuned"]) == 0
    shown = capfd.readouterr()
    assert shown.out.startswith("epoch ")
    assert "index: done" in shown.err
    assert "decode" not in shown.err
    assert experiment.run() == 0
    assert (experiment.folder / "tuned" / "weights.gz").read_bytes() == experiment.artefacts()["weights.gz"]
    # The stages of an earlier run are not repeated.
    assert main(["tune", "-c", "exp.yaml", "-o", "again", "--run", str(experiment.out)]) == 0
    assert "index: unchanged" in capfd.readouterr().err
