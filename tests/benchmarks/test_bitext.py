"""benchmarks/papers/bitext.py: the systems of paper 000 on a bitext."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.papers.bitext import SYSTEMS, parsed, settings_of, system_name
from benchmarks.papers.experiment import Experiment
from hiero.config.config import read_config, write_settings

DEMO = str(Path(__file__).parents[2] / "grammars" / "demo")


@pytest.mark.parametrize("system", SYSTEMS)
def test_systems_are_valid(tmp_path: Path, system: str) -> None:
    args = parsed([str(tmp_path / "out"), "--data", DEMO, "--further", f"other={DEMO}"])
    path = tmp_path / "config.yaml"
    write_settings(path, settings_of(Experiment.of(args), args, system, seed=7), "a system")
    config = read_config(path)
    assert config.tune is not None
    assert {"train", "dev", "devtest", "test", "other"} == config.data.keys()
    on, features, *selected = system.split(".")
    assert config.tune.on == ("dev" if on == "dev" else "train")
    assert config.tune.leave_one_out == (config.tune.lm == "jackknife") == (on != "dev")
    assert bool(config.features.templates) == (features == "all")
    if selected:
        assert (config.tune.select, config.tune.sentences) == (int(selected[0]), int(on))


@pytest.mark.parametrize("text", ["dev", "dev.all.5", "0.dense", "5000.all", "5000.dense.1", "test.all"])
def test_wrong_names_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"found {text}, expected such as dev.all"):
        system_name(text)
