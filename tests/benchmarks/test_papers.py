"""benchmarks/papers/tables.py: tables from tuning runs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import tables as papers
from benchmarks.papers.boxplot import Box, five_numbers, svg
from benchmarks.papers.tune_runs import Run, read_run, with_templates
from hiero.config.config import config_of
from hiero.core.charts import outer_ticks
from hiero.core.errors import ConfigError, HieroError
from hiero.core.symbols import Symbols
from hiero.features.weights import Weights
from tests.worlds.tune import Tuning

Capture = pytest.CaptureFixture[str]
RECORD = {"wall_s": 3.0, "cpu_s": 2.0, "decode_s": 1.0, "features": 12}


def run_of(choose: list[float], **more: list[float]) -> Run:
    rows = [RECORD | {"choose_bleu": bleu, "choose_brevity": 1.0, "report_bleu": bleu + 1} for bleu in choose]
    for name, values in more.items():
        rows = [row | {name: value} for row, value in zip(rows, values, strict=True)]
    return Run("sgd/dense", "", Path("run"), [row | {"report_brevity": 0.98} for row in rows])


def test_chosen_and_converged() -> None:
    run = run_of([20.0, 30.05, 29.0, 30.1, 30.0])
    assert (run.epoch, run.converged) == (4, 2)  # 0.05 below the best is as good as it
    assert run.weights == Path("run/weights.04.gz")
    assert run_of([20.0, 29.9, 30.1]).converged == 3
    assert "| 12 | 5 | 4 | 2 | 30.10 (1.000) | 31.10 (0.980) | 3.0 | 2.0 |" in papers.summary(
        [run], {}, set()
    )


def test_cpu_of_processes_counts() -> None:
    assert run_of([1.0, 2.0, 3.0], decode_s=[9.0, 9.0, 1.0], learn_s=[1.0, 1.0, 1.0]).seconds == (3.0, 10.0)


def test_stability() -> None:
    run = run_of([1.0, 2.0, 3.0], model_bleu=[10.0, 20.0, 22.0], oracle_bleu=[30.0, 40.0, 39.0])
    lines = papers.stability([run]).splitlines()
    assert lines[2:] == [
        "| sgd/dense | model | 10.0 | 20.0 | 22.0 | 2.00 |",
        "| sgd/dense | oracle | 30.0 | 40.0 | 39.0 | 1.00 |",
    ]


def statistics(matches: int, seed: int, runs: int = 1) -> np.ndarray:
    """Statistics of 200 lines of ten words, with about the given number of matches."""
    draw = np.random.default_rng(seed)
    match = draw.binomial(10, matches / 10, (runs, 200, 1))
    rows = [np.full_like(match, 10), np.full_like(match, 10), *(match - n for n in range(4))]
    rows += [np.full_like(match, 10 - n) for n in range(4)]
    return np.maximum(np.concatenate(rows, axis=2), 0).astype(np.float64)


def test_marks_as_in_table_2() -> None:
    found = papers.tested(
        {
            "sgd/dense": statistics(5, 1),
            "sgd/all": statistics(8, 2),
            "mix/dense": statistics(5, 1),
            "iter/dense": statistics(7, 3, runs=2),
        },
        trials=200,
        seed=1,
    )
    # sgd differs from iter (3) with dense features, and from its own best; mix is the same system again.
    assert found.marks == {
        "sgd/dense": "<sup>3</sup>⋆", "sgd/all": "",
        "mix/dense": "<sup>3</sup>", "iter/dense": "<sup>1,2</sup>",
    }  # fmt: skip
    assert found.best == {"sgd/all"}
    assert set(found.pairs) == {
        ("sgd/dense", "mix/dense"), ("sgd/dense", "iter/dense"), ("mix/dense", "iter/dense"),
        ("sgd/dense", "sgd/all"),
    }  # fmt: skip
    assert found.pairs["sgd/dense", "mix/dense"].p == 1
    assert found.pairs["sgd/dense", "sgd/all"].difference > 0


def test_templates_that_no_weight_needs() -> None:
    config = config_of({"features": {"templates": ["RuleShape", "rule_id", "span_size"]}})
    dense = Weights(Symbols(), {"Glue": 1.0})
    assert with_templates(config, dense).features.templates == ["span_size"]
    shapes = Weights(Symbols(), {"Shape_S01111_T01110": 1.0})
    assert with_templates(config, shapes).features.templates == ["shape", "span_size"]
    config = config_of({"features": {"templates": ["lexical"]}})
    assert with_templates(config, Weights(Symbols(), {"LD:a": 1.0})).features.templates == ["deletion"]
    with pytest.raises(ConfigError, match="found weights for source_bigram, expected these templates, too"):
        with_templates(config, Weights(Symbols(), {"RBS:a_b": 1.0}))


@pytest.mark.parametrize("spec", ["runs/sgd", "=runs/sgd", "sgd="])
def test_names(spec: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected NAME=DIR"):
        read_run(spec)
    with pytest.raises(HieroError, match="found no epoch that is done, expected a run with log"):
        read_run(f"sgd={tmp_path}")


# ---- directories of runs


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    """Three runs, of which the first two differ only in their seeds."""
    world = Tuning(tmp_path_factory.mktemp("papers"))
    world.set(tune={"epochs": 2}, features={"templates": ["shape"]})
    lines = world.lines("devtest.src")
    world.file("devtest.ref", [" ".join(line.upper().split()[::-1]) for line in lines])
    for name, more in (("one", ()), ("two", ("--seed", "2")), ("mira", ("--algorithm", "mira"))):
        world.out = world.folder / name
        assert world.run("-q", *more) == 0
    return world


@pytest.mark.heavy
def test_from_runs_to_tables(seeds: Tuning, capsys: Capture) -> None:
    folder = seeds.folder
    named = [f"sgd#1={folder / 'one'}", f"sgd#2={folder / 'two'}", f"mira={folder / 'mira'}"]
    plot = folder / "plot.svg"
    options = ["--significance", "--trials", "50", "--stability", "--boxplot", str(plot)]
    assert papers.main([*named, *options]) == 0
    out, err = capsys.readouterr()
    assert err.count("translating 3 even lines") == 3
    assert "expected" not in err  # what is decoded scores what the log says
    assert "Algorithms: 1 sgd, 2 mira." in out
    assert "| mira | oracle |" in out
    assert "| sgd | 2 |" in out  # two runs, in the table of the box plot
    kept = json.loads(next((folder / "one").glob("even.*.json")).read_bytes())
    assert len(kept["lines"]) == 3
    assert len(ET.parse(plot).findall(".//{http://www.w3.org/2000/svg}circle")) == 2
    assert papers.main([*named, "--significance", "--trials", "50"]) == 0
    assert "translating" not in capsys.readouterr().err


def test_different_models_are_reported(seeds: Tuning, capsys: Capture) -> None:
    grammar = seeds.lines("grammar")
    folder = seeds.folder / "one"
    try:
        seeds.file("grammar", [line.replace("||| A |||", "||| B |||") for line in grammar])
        assert papers.main([f"sgd={folder}", "--significance", "--config", str(folder / "config.yaml")]) == 0
    finally:
        seeds.file("grammar", grammar)
    err = capsys.readouterr().err
    assert "as in its log (is it the same grammar and language model?)" in err


def test_errors(seeds: Tuning, capsys: Capture) -> None:
    one = f"sgd={seeds.folder / 'one'}"
    for more, message in (
        ([one], "found a name twice"),
        (["--boxplot", "x.svg"], "found no system with several runs"),
        (["--significance", "--config", "nowhere.yaml"], "nowhere.yaml: found no such file"),
        (["--significance", "--set", "test"], "found no set test with references"),
    ):
        assert papers.main([one, *more]) == 1
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1


# ---- box plots


def test_five_numbers() -> None:
    assert five_numbers([5.0, 1.0, 2.0, 4.0, 3.0]) == (1, 2, 3, 4, 5)
    assert five_numbers([1.0, 2.0]) == (1, 1.25, 1.5, 1.75, 2)


@pytest.mark.parametrize(("low", "high"), [(37.1, 38.4), (0.0, 100.0), (30.0, 30.0), (-3.0, -2.999)])
def test_ticks(low: float, high: float) -> None:
    found = outer_ticks(low, high)
    assert found[0] <= low + 1e-9
    assert found[-1] >= high - 1e-9
    assert 2 <= len(found) <= 8


def test_a_picture() -> None:
    picture = ET.fromstring(svg([Box("a & b", (1.0, 2.0, 3.0)), Box("c", (2.0, 2.0))], "BLEU < 5"))
    texts = [text.text for text in picture.findall("{http://www.w3.org/2000/svg}text")]
    assert "a & b" in texts
    assert "BLEU < 5" in texts
    boxes = picture.findall("{http://www.w3.org/2000/svg}rect")[1:]  # the first is the ground
    assert [float(box.attrib["width"]) > 0 for box in boxes] == [True, False]
