"""Entry points of installed packages: features, learners, and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hiero
from hiero.cli.main import main
from hiero.core.errors import ConfigError
from hiero.core.plugins import load_plugin, plugins
from hiero.learning.config import ALGORITHMS, TuneConfig, algorithms

MODULE = """\
import dataclasses

import hiero
from hiero.learning.config import ALGORITHMS


@hiero.rule_feature(per_rule=True)
def long_words(rule):
    yield "LongWords", float(sum(len(str(word)) > 5 for word in rule.tgt))


slow = dataclasses.replace(ALGORITHMS["sgd"], preset={**ALGORITHMS["sgd"].preset, "rate": 1e-9})
number = 5
"""
POINTS = """\
[hiero.features]
long_words = plugged:long_words

[hiero.learners]
{learners}
"""


def install(folder: Path, learners: str) -> None:
    (folder / "plugged.py").write_text(MODULE)
    info = folder / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS.format(learners=learners))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory in which packages can be installed."""
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(ALGORITHMS)
    plugins.cache_clear()
    yield tmp_path
    plugins.cache_clear()
    ALGORITHMS.clear()
    ALGORITHMS.update(before)


def test_features_and_learners(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(folder, "slow = plugged:slow")
    assert TuneConfig(algorithm="slow").row.preset["rate"] == 1e-9
    with pytest.raises(SystemExit):
        main(["tune", "--help"])
    assert "slow: 1e-9" in " ".join(capsys.readouterr().out.split())
    model = hiero.load(
        rules=["[X] ||| a ||| bbbbbbb ||| p=1"],
        weights={"p": 1.0, "LongWords": 2.0},
        features=["long_words"],
    )
    assert model.translate("a").features["LongWords"] == 1
    assert main(["env"]) == 0
    assert "plugged:long_words (hiero.features)" in capsys.readouterr().out


def test_faults(folder: Path) -> None:
    install(folder, "a = plugged:number\nb = nowhere:x")
    with pytest.raises(ConfigError, match=r"plug-in 'a' of hiero.learners: found 5, expected an Algorithm"):
        algorithms()
    with pytest.raises(ConfigError, match=r"plug-in 'b' of hiero.learners: cannot import nowhere:x: No mod"):
        load_plugin("hiero.learners", "b")
    with pytest.raises(ConfigError, match="unknown feature 'long_word'; did you mean 'long_words'"):
        hiero.load(rules=["[X] ||| a ||| b ||| p=1"], weights={"p": 1.0}, features=["long_word"])
