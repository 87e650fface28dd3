"""Grids of settings in ``hiero run``: each combination once; the best on odd lines is used afterwards."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from hiero.config.sections import GridSection
from hiero.pipeline.tune_stages import grid_table, label_of, trials
from tests.worlds.experiments import Experiment

Capture = pytest.CaptureFixture[str]
BINS = {"features": {"EgivenFCoherent": {"of": "probability", "bits": 3}, "CountEF": {"of": "count"}}}
TUNE = {"algorithm": "pro", "epochs": 2, "kbest": 10, "held_out": "test", "neighbours": "monotone"}
LABELS = ["bits=1,beta=0.1", "bits=1,beta=10", "bits=2,beta=0.1", "bits=2,beta=10"]


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    experiment = Experiment(tmp_path / "exp")
    experiment.add_line()
    experiment.set(
        weights=None,
        bins=BINS,
        tune=TUNE,
        grid={"bits": [1, 2], "beta": [0.1, 10]},
        eval={"metrics": ["bleu"], "tokenize": "none", "trials": 10},
    )
    return experiment


def test_all_combinations_are_tried_and_the_best_is_taken(experiment: Experiment, capfd: Capture) -> None:
    stages = experiment.stages_run(capfd)
    middle = stages[stages.index("index") + 1 : stages.index("decode:dev")]
    tuned = [f"tune:{label}" for label in LABELS]
    assert middle == ["bins:bits=1", *tuned[:2], "bins:bits=2", *tuned[2:], "grid", "curves"]
    made = experiment.artefacts()
    figures = [json.loads(made[f"grid/{label}.json"]) for label in LABELS]
    bleu = [one["choose_bleu"] for one in figures]
    best = bleu.index(max(bleu))
    assert made["weights.gz"] == made[f"grid/{LABELS[best]}.gz"]
    assert made["features.bins"] == made[f"grid/{LABELS[best].split(',')[0]}.bins"]
    lines = made["grid.txt"].decode().splitlines()
    assert lines == grid_table(trials(GridSection(bits=[1, 2], beta=[0.1, 10])), figures, best)
    assert [line.endswith("*") for line in lines[1:]] == [k == best for k in range(4)]
    assert {"curves/EgivenFCoherent.svg", "curves/CountEF.svg", "curves/table.txt"} <= set(made)
    assert b"features.bins" in made["model.yaml"]
    # First nothing, then only new combinations.
    assert experiment.stages_run(capfd) == []
    experiment.set(grid={"bits": [1, 2], "beta": [0.1, 10, 1000]})
    again = experiment.stages_run(capfd)
    assert again[:3] == ["tune:bits=1,beta=1000", "tune:bits=2,beta=1000", "grid"]


class Killed(BaseException):
    """Simulates SIGKILL: it is never caught."""


@pytest.mark.slow
def test_killed_grids_are_resumed(
    experiment: Experiment, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment.set(bins=None, tune=TUNE | {"neighbours": "none"}, grid={"l2": [0.1, 1.0]})
    assert experiment.run("-q") == 0
    whole = experiment.artefacts()
    experiment.out = experiment.folder / "killed"
    from hiero.tuning.report import append_log

    left = 3  # one of the first combination's two epochs, and one of the second's

    def counted(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        append_log(*arguments)
        if not left:
            raise Killed

    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr("hiero.tuning.loop.append_log", counted)
        experiment.run("-q")
    assert left == 0
    assert experiment.stages_run(capfd)[:2] == ["tune:l2=1", "grid"]
    assert experiment.artefacts() == whole


def test_labels_and_tables() -> None:
    found = trials(GridSection(gamma=[2.0], l2=[0.001, 1e-6]))
    assert [trial.values for trial in found] == [{"gamma": 2.0, "l2": 0.001}, {"gamma": 2.0, "l2": 1e-6}]
    assert [trial.label for trial in found] == ["gamma=2,l2=0.001", "gamma=2,l2=1e-06"]
    assert label_of({}) == ""
    halves = {"choose_bleu": 1.0, "choose_brevity": 1.0, "report_bleu": 2.0, "report_brevity": 0.5}
    lines = grid_table(found, [{"features": 1234, "epoch": 3} | halves] * 2, 0)
    assert lines[0].split() == [
        "gamma",
        "l2",
        "weights",
        "epoch",
        *["odd", "lines", "(choose)", "even", "lines", "(report)"],
    ]
    assert lines[1].split() == ["2", "0.001", "1,234", "3", "1.00", "(1.000)", "2.00", "(0.500)", "*"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"tune": None}, "grid: needs the section tune, whose settings it varies"),
        ({"grid": {}}, "grid: nothing to try, expected values of bits, overlap, neighbours, beta,"),
        (
            {"bins": None, "tune": TUNE | {"neighbours": "none"}},
            "grid: bits: needs the section bins",
        ),
        (
            {"tune": TUNE | {"held_out": None}},
            "grid: needs a held-out set to choose by (tune: held_out)",
        ),
        ({"grid": {"bits": [0]}}, "grid: bits=0: bits: found 0, expected 1 to 16"),
        ({"grid": {"beta": [1, -1]}}, "grid: beta=-1: beta: found -1, expected 0 to 1e+15"),
        ({"grid": {"beta": [1, 1.0]}}, "grid: found beta=1 twice, expected different values"),
        (
            {"grid": {"neighbours": ["none", "line"]}},
            "grid: neighbours: entry 2: found 'line', expected one of",
        ),
        ({"grid": {"beat": [1]}}, "grid: unknown key 'beat'; did you mean 'beta'?"),
        (
            {"weights": {"path": "weights"}},
            "weights: cannot be combined with tune, which learns them",
        ),
    ],
)
def test_errors(experiment: Experiment, capfd: Capture, sections: dict[str, Any], message: str) -> None:
    experiment.set(**sections)
    assert message in experiment.error(capfd)
