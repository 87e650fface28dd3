"""Bins on the command line, in ``hiero tune`` and in ``hiero run``, and their error messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from hiero.bins.file import read_bins
from hiero.cli.main import main
from hiero.core.symbols import Symbols
from hiero.features.weights import read_weights
from tests.worlds.experiments import Experiment
from tests.worlds.tune import Tuning

Capture = pytest.CaptureFixture[str]

# Figure 4 of Clark, Dyer and Lavie (2014): "he says" must win over "she said" and "big lion" over "small
# kitten", though the feature falls in one case and rises in the other.
FIGURE_4 = [
    *("[X] ||| er ||| she ||| H=2", "[X] ||| er ||| he ||| H=1"),
    *("[X] ||| sagt ||| said ||| H=2", "[X] ||| sagt ||| says ||| H=1"),
    *("[X] ||| grosser ||| small ||| H=2", "[X] ||| grosser ||| big ||| H=3"),
    *("[X] ||| loewe ||| kitten ||| H=2", "[X] ||| loewe ||| lion ||| H=3"),
]


@pytest.fixture
def world(tmp_path: Path) -> Tuning:
    world = Tuning(tmp_path / "world")
    world.file("grammar", FIGURE_4)
    world.file("dev.src", ["er sagt", "grosser loewe"])
    world.file("dev.ref", ["he says", "big lion"])
    world.set(
        data={"dev": {"source": "dev.src", "references": "dev.ref"}},
        search={"pass_through": "none"},
        tune={"algorithm": "pro", "epochs": 4, "kbest": 10, "held_out": None, "l2": 1e-4, "min_count": 0},
    )
    return world


def learn(world: Tuning, *more: str) -> Path:
    path = world.folder / "my.bins"
    assert (
        main(["bins", "learn", "-c", str(world.path), "--features", "H", "-q", "-o", str(path), *more]) == 0
    )
    return path


def translations(world: Tuning, *more: str) -> list[str]:
    """Translations of dev with the learnt weights."""
    output = world.folder / "output"
    command = ["decode", "-c", str(world.path), "-w", str(world.out / "weights.gz"), "-q", *more]
    assert main([*command, "-i", str(world.folder / "dev.src"), "-o", str(output)]) == 0
    return output.read_text().splitlines()


def test_figure_4_is_learnt_only_with_bins(world: Tuning) -> None:
    assert world.run("-q") == 0
    assert translations(world) != world.lines("dev.ref")
    bins = learn(world)
    assert read_bins(bins)[0].begin.tolist() == [-np.inf, 2, 3]
    world.out = world.folder / "binned"
    assert world.run("-q", "--bins", str(bins)) == 0
    assert translations(world, "--bins", str(bins)) == world.lines("dev.ref")
    weights = read_weights(world.out / "weights.gz", Symbols())
    assert weights["H_bin2_2"] < min(weights["H_bin1_-inf"], weights["H_bin3_3"])
    assert "H" not in weights


def second_differences(path: Path) -> float:
    weights = read_weights(path, Symbols())
    w = [weights.get(name, 0.0) for name in ("H_bin1_-inf", "H_bin2_2", "H_bin3_3")]
    return abs(w[0] - 2 * w[1] + w[2])


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("pro", {"l1": 0.001}),
        ("pro", {"variant": "released"}),
        ("adagrad", {"epochs": 6, "batch": 1, "rate": 0.1, "l1": 0.0}),
        ("adagrad", {"epochs": 6, "batch": 2, "rate": 0.1, "l1": 0.001}),
        (
            "sgd",
            {"epochs": 6, "rate": 0.05, "update": "sentence", "loss": "logistic", "average": "sentences"},
        ),
        ("sgd", {"epochs": 6, "rate": 0.05, "update": "pair", "loss": "logistic"}),
    ],
)
def test_every_learner_with_terms_regularizes_neighbours(
    world: Tuning, algorithm: str, more: dict[str, Any]
) -> None:
    """With strong regularization, the second differences of the weights are smaller than without."""
    world.config["tune"] = {"kbest": 10, "held_out": None, "l2": 1e-4, "min_count": 0, "epochs": 4}
    world.set(features={"bins": learn(world).name}, tune={"algorithm": algorithm, **more})
    bent = {}
    for neighbours, beta in (("none", 1.0), ("linear", 40.0 if algorithm == "adagrad" else 4.0)):
        world.out = world.folder / neighbours
        world.set(tune={"neighbours": neighbours, "beta": beta})
        assert world.run("-q") == 0
        bent[neighbours] = second_differences(world.out / "weights.gz")
    assert bent["linear"] < 0.8 * bent["none"]


def test_unseen_bins_are_learnt_from_neighbours(world: Tuning, capfd: Capture) -> None:
    (world.folder / "my.bins").write_text("feature H\nbin -inf\nbin 2\nbin 3\nbin 9\n")
    world.set(features={"bins": "my.bins"})
    for neighbours, learnt in (("none", False), ("linear", True)):
        world.out = world.folder / neighbours
        world.set(tune={"neighbours": neighbours})
        capfd.readouterr()
        assert world.run() == 0
        assert ("H_bin4_9" in read_weights(world.out / "weights.gz", Symbols())) == learnt
        said = "no translation has the feature H_bin4_9; no weight is learnt (is a column"
        assert (said in capfd.readouterr().err) != learnt


def test_isotonic_curves_are_monotone(world: Tuning, capfd: Capture) -> None:
    """Where the data are not: figure 4 needs a turning point."""
    bins = learn(world)
    world.set(features={"bins": bins.name}, tune={"neighbours": "isotonic", "beta": 0.01})
    assert world.run("-q", "--beta-per", "curve") == 0
    capfd.readouterr()
    assert main(["bins", "show", str(bins), "-w", str(world.out / "weights.gz")]) == 0
    assert capfd.readouterr().out.splitlines()[0].endswith("; monotone")


@pytest.mark.parametrize("neighbours", ["monotone", "isotonic"])
def test_results_after_a_kill_between_epochs(world: Tuning, neighbours: str) -> None:
    world.set(features={"bins": learn(world).name}, tune={"neighbours": neighbours})
    assert world.run("-q") == 0
    whole, world.out = world.answer(), world.folder / "resumed"
    assert world.run("-q", "--epochs", "2") == 0
    assert world.run("-q", "--resume") == 0
    assert world.answer() == whole


def test_runs_with_other_bins_are_not_resumed(world: Tuning, capfd: Capture) -> None:
    bins = learn(world)
    world.set(features={"bins": bins.name})
    assert world.run("-q") == 0
    bins.write_text("feature H\nbin -inf\nbin 3\n")
    assert "features: bins: has changed since the run began" in world.error(capfd, "--resume")


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"tune": {"neighbours": "linear"}},
            "tune: neighbours: needs bins (features: {bins: FILE})",
        ),
        (
            {"tune": {"neighbours": "linear", "algorithm": "mert"}},
            "neighbours works with sgd, mixsgd, itermixsgd, iterselsgd, adagrad and pro, not with mert",
        ),
        ({"tune": {"beta": -1.0}}, "tune: beta: found -1.0, expected 0 to 1e+15"),
        ({"tune": {"gamma": 0.0}}, "tune: gamma: found 0.0, expected at least 1"),
        (
            {"tune": {"neighbours": "linear", "algorithm": "adagrad", "stale": True}},
            "neighbours cannot be combined with stale: true",
        ),
        ({"features": {"bins": "none.bins"}}, "none.bins: found no such file, expected"),
        (
            {"features": {"transform": {"WordPenalty": "drop"}}},
            "features: transform: WordPenalty is not a column",
        ),
        (
            {"bins": {"features": {"H": {"of": "log"}}}},
            "bins: features: H: of: found 'log', expected one of given",
        ),
    ],
)
def test_invalid_settings(world: Tuning, capfd: Capture, sections: dict[str, Any], message: str) -> None:
    world.set(**sections)
    assert message in world.error(capfd)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--features", "G"], 1, "bins: features: 'G': no rule has it; one of H, WordPenalty"),
        (
            ["--features", "H=log"],
            2,
            "argument --features: found 'H=log', expected NAME or NAME=given|probability",
        ),
        (["--features", "H", "--on", "test"], 1, "bins: on: unknown set 'test'; one of dev"),
        ([], 1, "bins: features: needs names of dense features, such as EgivenFCoherent:"),
        (["--features", "H", "--bits", "0"], 2, "argument --bits: found 0, expected 1 to 16"),
        (
            ["--features", "WordPenalty"],
            1,
            "bins: features: WordPenalty: found the value 1 in all of 8 rules",
        ),
        (["--features", "H,H=count"], 2, "argument --features: H is given twice"),
        (["--features", "=count"], 2, "argument --features: found '=count', expected NAME or NAME=given|"),
        (["--features", "H="], 2, "argument --features: found 'H=', expected NAME or NAME=given|"),
        (
            ["--features", "H", "--leave-one-out"],
            1,
            "bins: leave_one_out: found no indexes, expected one, of a bitext with the same",
        ),
        (
            ["--features", "H", "-i", "x", "--on", "dev"],
            2,
            "argument --on: not allowed with -i",
        ),
    ],
)
def test_invalid_command_lines(
    world: Tuning, capfd: Capture, arguments: list[str], code: int, message: str
) -> None:
    capfd.readouterr()
    path = world.folder / "my.bins"
    assert main(["bins", "learn", "-c", str(world.path), "-q", "-o", str(path), *arguments]) == code
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not path.exists()


def test_a_feature_cannot_have_bins_and_a_transform(world: Tuning, capfd: Capture) -> None:
    world.set(features={"transform": {"H": "drop"}})
    assert main(["bins", "learn", "-c", str(world.path), "--features", "H", "-o", "-"]) == 1
    expected = f"{world.path}: bins: features: H: cannot be combined with features: transform"
    assert expected in capfd.readouterr().err


def test_no_sentences(world: Tuning, capfd: Capture) -> None:
    empty = world.file("empty", [])
    assert main(["bins", "learn", "-c", str(world.path), "--features", "H", "-i", str(empty), "-o", "-"]) == 1
    assert capfd.readouterr().err == f"{empty}: found no sentences, expected some\n"


def test_without_a_configuration(world: Tuning, capfd: Capture) -> None:
    assert main(["bins", "learn", "-o", "-", "-g", "x"]) == 2
    assert "requires -c CONFIG, or both -g GRAMMAR and -i IN" in capfd.readouterr().err
    where = ["-g", str(world.folder / "grammar"), "-i", str(world.folder / "dev.src"), "-o", "-"]
    assert main(["bins", "learn", *where, "--features", "H", "--keep", "--overlap", "1"]) == 0
    captured = capfd.readouterr()
    assert "feature H of=given overlap=1 keep=yes\nbin -inf rules=2 values=1 low=1 high=1\n" in captured.out
    assert "H: 3 bins instead of 16, one for each of its values" in captured.err


# ---- hiero run


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    experiment = Experiment(tmp_path / "exp")
    experiment.add_line()
    experiment.set(
        weights=None,
        bins={"features": {"EgivenFCoherent": {"of": "probability"}, "CountEF": {"of": "count"}}, "bits": 2},
        tune={"algorithm": "pro", "epochs": 2, "kbest": 10, "held_out": "test", "neighbours": "monotone"},
        eval={"metrics": ["bleu"], "tokenize": "none", "trials": 10},
    )
    return experiment


@pytest.mark.parametrize(
    "write",
    [
        pytest.param("nothing", marks=pytest.mark.heavy),
        pytest.param("whole", marks=pytest.mark.heavy),
        "per_sentence",
    ],
)
def test_stage(experiment: Experiment, capfd: Capture, write: str) -> None:
    experiment.set(grammar=[{"index": "train", "write": write}])
    stages = experiment.stages_run(capfd)
    assert stages.index("index") < stages.index("bins") < stages.index("tune") < stages.index("decode:dev")
    made = experiment.artefacts()
    bins = read_bins(experiment.out / "features.bins")
    assert [one.feature for one in bins] == ["EgivenFCoherent", "CountEF"]
    assert 2 < len(bins[0]) <= 4
    assert yaml.safe_load(made["model.yaml"])["features"]["bins"] == "features.bins"
    weights = read_weights(experiment.out / "weights.gz", Symbols())
    assert any(name in weights for name in bins[0].names)
    assert "EgivenFCoherent" not in weights
    entry = json.loads((experiment.out / "manifest.json").read_text())["stages"]["bins"]
    assert entry["figures"] == {one.feature: len(one) for one in bins}
    # From the directory alone, the same translations.
    capfd.readouterr()
    if write != "per_sentence":
        source = experiment.folder / "test.de"
        assert main(["decode", "-c", str(experiment.out / "model.yaml"), "-i", str(source)]) == 0
        assert capfd.readouterr().out.encode() == made["test.output"]
    assert experiment.stages_run(capfd) == []


def test_changed_bins_rerun_dependent_stages(experiment: Experiment, capfd: Capture) -> None:
    assert experiment.run("-q") == 0
    experiment.config["bins"]["bits"] = 1
    experiment.write()
    assert experiment.stages_run(capfd)[:2] == ["bins", "tune"]
    experiment.set(features={"bins": "features.bins"})
    assert "bins: features: cannot be combined with features: bins" in experiment.error(capfd)


def test_uniform_start_weights_leave_out_replaced_features(world: Tuning) -> None:
    """Otherwise weights of features that no rule has would be kept."""
    world.file("grammar", [rule.replace("H=", "EgivenFCoherent=") for rule in FIGURE_4])
    (world.folder / "my.bins").write_text("feature EgivenFCoherent\nbin -inf\nbin 2\n")
    world.set(tune={"start": "uniform"})
    assert world.run("-q") == 0
    assert "EgivenFCoherent" in read_weights(world.out / "weights.gz", Symbols())
    world.out = world.folder / "binned"
    assert world.run("-q", "--bins", str(world.folder / "my.bins")) == 0
    weights = read_weights(world.out / "weights.gz", Symbols())
    assert "EgivenFCoherent" not in weights
    assert "WordPenalty" in weights
