"""benchmarks/papers/learners.py: the systems of papers 000 to 002."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import sacrebleu

from benchmarks.papers.drawn_sets import make_drawn
from benchmarks.papers.experiment import Experiment, lines
from benchmarks.papers.learners import FEATURES, PAPERS, parsed, reports, settings_of, system_name
from hiero.config.config import read_config, write_settings
from tests.benchmarks.test_experiment import write

Capture = pytest.CaptureFixture[str]
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


def test_tuning_sets_with_several_references_are_drawn(tmp_path: Path, capsys: Capture) -> None:
    verses = [f"v{n} w" for n in range(9)]
    write(tmp_path / "train.src.gz", verses * 2)
    write(tmp_path / "train.trg.gz", [f"{verse} {k}" for k in (0, 1) for verse in verses])
    for name in ("dev", "devtest"):
        write(tmp_path / f"{name}.src.gz", ["x"])
        for k in (0, 1):
            write(tmp_path / f"{name}.ref{k}.gz", [f"y {k}"])
    given = [str(tmp_path / "out"), "--data", str(tmp_path), "--systems", "sgd.dev.dense", "--tune", "4"]
    args = parsed(given)
    experiment = Experiment.of(args)
    drawn = make_drawn(experiment, {"dev": args.tune}, 1, {})
    assert len(lines(drawn.train()["source"])) == 10
    path = tmp_path / "config.yaml"
    write_settings(path, settings_of(experiment, args, "sgd.dev.dense", seed=7), "a system")
    config = read_config(path)
    assert config.data.keys() == {"train", "dev", "held", "devtest"}
    sources = {name: lines(data.source) for name, data in config.data.items()}
    assert len(sources["dev"]) == 4
    assert sources["held"] == sources["devtest"] == ["x"]
    assert sorted({*sources["dev"]} | {*sources["train"]}) == verses
    references = [lines(path) for path in config.data["dev"].translations]
    assert [[f"{verse} {k}" for verse in sources["dev"]] for k in (0, 1)] == references
    output = tmp_path / "out" / "sgd.dev.dense.run"
    output.mkdir()
    for name in ("held", "devtest"):
        (output / f"{name}.output").write_text("y 1\n")
    assert list(reports(experiment, args)) == ["held", "devtest"]
    with pytest.raises(SystemExit):
        parsed([*given, "--drawn", "4"])
    assert "argument --drawn: not allowed with argument --tune" in capsys.readouterr().err


def test_pooled_sets_are_one_text(tmp_path: Path) -> None:
    """A replica that has not translated all of them is left out there."""
    texts = {"held": ["a b c d e"], "devtest": ["the cat sat on the mat", "yes"], "test": ["no one saw it"]}
    translations = {
        "sgd.dev.dense.run": {
            "held": ["a b"],
            "devtest": ["the cat sat on mat", "yes"],
            "test": ["no one saw"],
        },
        "sgd.dev.all.run": {"devtest": ["the cat sat on the mat", "no"], "test": ["no one saw it now"]},
        "sgd.dev.all.2.run": {"devtest": ["cat", "yes"]},
    }
    drawn = tmp_path / "base.run" / "sequester"
    drawn.mkdir(parents=True)
    for name, text in texts.items():
        (drawn / f"{name}.target").write_text("\n".join(text) + "\n")
    for run, outputs in translations.items():
        (tmp_path / run).mkdir()
        for name, text in outputs.items():
            (tmp_path / run / f"{name}.output").write_text("\n".join(text) + "\n")
    systems = ["sgd.dev.dense", "sgd.dev.all"]
    args = parsed([str(tmp_path), "--data", DEMO, "--systems", ",".join(systems), "--trials", "20"])
    found = reports(Experiment.of(args), args)
    assert list(found) == ["held", "devtest", "test", "devtest + test"]
    both = found["devtest + test"]
    oracle = sacrebleu.metrics.BLEU(tokenize="none")
    for system, run in zip(systems, ("sgd.dev.dense.run", "sgd.dev.all.run"), strict=True):
        pooled = translations[run]["devtest"] + translations[run]["test"]
        expected = oracle.corpus_score(pooled, [texts["devtest"] + texts["test"]]).score
        assert both.result("bleu", system).spread.scores == pytest.approx((expected,))
    assert len(found["devtest"].result("bleu", "sgd.dev.all").spread.scores) == 2
