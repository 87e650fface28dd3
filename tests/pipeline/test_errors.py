"""Errors of ``hiero run``: one line with the place, before any work if possible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.experiments import Experiment

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment(tmp_path / "exp")


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"data": {"dev": {"source": "dev.de"}}}, "data: train is missing, which the word alignment needs"),
        ({"data": {"train": {"source": "x", "target": "train.en"}}}, "data: train: source: no such file"),
        (
            {"data": {"trian": {"source": "train.de", "target": "train.en"}}},
            "which the word alignment needs; did you mean 'trian'?",
        ),
        ({"weights": {"path": "none"}}, "weights: path: no such file"),
        ({"weights": None}, "weights: needs a file with names and weights"),
        ({"grammar": None}, "grammar: needs one to translate dev: {index: train}"),
        ({"grammar": [{"index": "none"}]}, "grammar: entry 1: index: no such file"),
        (
            {"grammar": [{"path": "a", "index": "train"}]},
            "grammar: entry 1: needs exactly one of path, index",
        ),
        ({"grammar": [{"path": "weights", "write": "whole"}]}, "entry 1: write: needs index"),
        ({"lm": [{"order": 3}]}, "lm: entry 1: needs exactly one of path and estimate"),
        ({"lm": [{"estimate": "train", "order": 9}]}, "lm: entry 1: order: found 9, expected 1 to 6"),
        ({"lm": [{"estimate": "none"}]}, "lm: entry 1: estimate: no such file"),
        ({"lm": [{"estimate": "train", "name": "a b"}]}, "lm: entry 1: name: found 'a b', expected letters"),
        (
            {"lm": [{"estimate": "train", "discount_fallback": True}, {"estimate": "train"}]},
            "lm: entry 2: name: 'LanguageModel' is already the name",
        ),
        ({"eval": {"metrics": ["blue"]}}, "eval: metrics: unknown 'blue'; did you mean 'bleu'?"),
        ({"eval": {"tokenize": "all"}}, "eval: tokenize: unknown 'all'; one of"),
        ({"eval": {"trials": -1}}, "eval: trials: found -1, expected at least 0"),
        ({"eval": {"against": {"a": {"dev": "none"}}}}, "eval: against: a: dev: no such file"),
        (
            {"search": {"markup": "ignore"}, "grammar": [{"index": "train", "write": "per_sentence"}]},
            "search: markup: not with grammars of sentences that are written (write: nothing extracts them",
        ),
        ({"search": {"pop_limt": 3}}, "search: unknown key 'pop_limt'; did you mean 'pop_limit'?"),
        ({"grammar": None, "align": None, "data": {}}, "data: train is missing, which lm: entry 1 needs"),
    ],
)
def test_invalid_configurations(
    experiment: Experiment, capfd: Capture, sections: dict[str, Any], message: str
) -> None:
    experiment.set(**sections)
    line = experiment.error(capfd)
    assert line.startswith(f"{experiment.path}: ")
    assert message in line
    assert not experiment.out.exists()


def test_nothing_to_do(experiment: Experiment, capfd: Capture) -> None:
    experiment.path.write_text("")
    assert experiment.error(capfd) == (
        f"{experiment.path}: nothing to do: needs data, and sections such as align, lm or grammar"
    )


def test_texts_that_do_not_match(experiment: Experiment, capfd: Capture) -> None:
    with open(experiment.folder / "test.other.en", "a") as stream:
        stream.write("one more\n")
    line = experiment.error(capfd)
    assert line.startswith(f"{experiment.path}: data: test: references: entry 2: ")
    assert "found 2 lines, expected 1, as many as" in line
    assert not experiment.out.exists()
    (experiment.folder / "test.other.en").write_text("she owns a house\n")
    (experiment.folder / "train.en").write_text("the old house\n")
    line = experiment.error(capfd)
    assert "train.en:2: found the end of the file, expected a line, as there are 7 in" in line
    assert not list(experiment.out.glob("train*"))


def test_an_alignment_out_of_bounds(experiment: Experiment, capfd: Capture) -> None:
    (experiment.folder / "links").write_text("0-0\n" * 6 + "0-9\n")
    experiment.config["data"]["train"]["alignment"] = "links"
    experiment.set(align=None)
    assert f"{experiment.folder}/links:7: found" in experiment.error(capfd)
    assert not (experiment.out / "train.index").exists()


def test_missing_configuration(capfd: Capture, experiment: Experiment) -> None:
    experiment.path = experiment.folder / "none.yaml"
    assert experiment.error(capfd).startswith(f"{experiment.path}: found no such file, expected settings")


def test_unwritable_places(experiment: Experiment, capfd: Capture) -> None:
    experiment.out = experiment.folder / "weights"
    assert experiment.error(capfd) == f"{experiment.out}: found a file, expected a directory"
    experiment.out = experiment.folder / "weights" / "below"
    assert "found not a directory, expected a directory to write to" in experiment.error(capfd)
    experiment.out = experiment.folder
    line = experiment.error(capfd)
    assert (
        "found other files, expected a new directory, or one with manifest.json (choose another with -o)"
        in line
    )
    if os.getuid() != 0:
        experiment.out = experiment.folder / "locked"
        experiment.out.mkdir(mode=0o500)
        assert "found permission denied, expected a directory to write to" in experiment.error(capfd)


def test_a_damaged_manifest(experiment: Experiment, capfd: Capture) -> None:
    experiment.out.mkdir()
    (experiment.out / "manifest.json").write_text("{")
    assert "manifest.json: found damage, expected a manifest (remove it" in experiment.error(capfd)


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from hiero.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.skipif(sys.platform == "win32", reason="no limits of files")
def test_full_disk(experiment: Experiment, capfd: Capture) -> None:
    """At any write: one line, no partial output, and the next run completes the work."""
    assert experiment.run("-q") == 0
    whole = experiment.artefacts()
    failures = 0
    for limit in (60, 300, 1000, 3000, 6000, 9000):
        experiment.out = experiment.folder / f"at{limit}"
        command = [sys.executable, "-c", LIMITED, str(limit), *experiment.command("-q")]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            failures += 1
            assert result.returncode == 1, result.stderr
            assert result.stderr.count("\n") == 1, result.stderr
            assert "file too large" in result.stderr or "cannot be written" in result.stderr, result.stderr
        if experiment.out.exists():
            for name, content in experiment.artefacts().items():
                assert content == whole[name] or name.endswith((".part", ".part.lock", ".part.state")), name
        assert experiment.run("-q") == 0
        assert experiment.artefacts() == whole
    assert failures > 3
