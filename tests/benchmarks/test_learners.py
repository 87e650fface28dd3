"""benchmarks/papers/learners.py: the systems of papers 000 to 002."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.papers.experiment import Experiment
from benchmarks.papers.learners import FEATURES, PAPERS, parsed, settings_of, system_name
from hiero.config.config import read_config, write_settings

DEMO = str(Path(__file__).parents[2] / "grammars" / "demo")


@pytest.mark.parametrize("paper", PAPERS)
def test_systems_are_valid(tmp_path: Path, paper: str) -> None:
    args = parsed([str(tmp_path / "out"), "--data", DEMO, "--further", f"other={DEMO}", "--paper", paper])
    assert args.systems == [system_name(system) for system in PAPERS[paper]]
    for system in args.systems:
        path = tmp_path / "config.yaml"
        write_settings(path, settings_of(Experiment.of(args), args, system, seed=7), "a system")
        config = read_config(path)
        assert config.tune is not None
        assert {"train", "dev", "held", "devtest", "test", "other"} == config.data.keys()
        name, *settings = system.split(":")
        algorithm, on, features = name.split(".")
        assert (config.tune.algorithm, config.tune.seed) == (algorithm, 7)
        assert config.tune.on == ("dev" if on == "dev" else "train")
        assert config.tune.leave_one_out == (config.tune.lm == "jackknife") == (on != "dev")
        assert list(config.features.templates) == FEATURES[features]
        for setting in settings:
            key, _, value = setting.partition("=")
            assert str(getattr(config.tune, key)) == value


@pytest.mark.parametrize(
    "text", ["sgd.dev", "sgd.dev.dense.5", "sgd.0.all", "sgd.test.all", "sgd.5.all:select"]
)
def test_wrong_names_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"found {text}, expected such as iterselsgd.5000"):
        system_name(text)
