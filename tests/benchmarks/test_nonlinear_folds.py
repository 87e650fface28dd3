"""benchmarks/papers/nonlinear_folds.py: configurations, and intervals over replicas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import nonlinear_folds as folds
from benchmarks.papers.experiment import Experiment
from benchmarks.papers.nonlinear_folds import FOLDS, main, parsed, sampled_scores
from hiero.config.config import read_config, write_settings
from tests.benchmarks.test_drawn_sets import SOURCE, TARGET
from tests.benchmarks.test_experiment import write


def test_intervals_include_the_variance_of_replicas() -> None:
    """The mean of samples is the score; their variance is that of the lines and of the mean of replicas."""

    def metric(sums: np.ndarray) -> np.ndarray:
        return sums[..., 0]

    lines = np.random.default_rng(1).normal(size=(1, 50, 1))
    [alone, same] = sampled_scores(metric, [[lines], [lines]], 400)
    assert alone.tolist() == same.tolist()
    assert alone.mean() == pytest.approx(lines.sum(), abs=3 * alone.std() / 20 + 1e-9)
    assert alone.std() == pytest.approx(lines.std() * 50**0.5, rel=0.15)
    # Replicas that differ by a constant on each of ten lines: the variance of a mean of three.
    shifts = np.array([-1.0, 0.0, 1.0])
    runs = np.zeros((3, 10, 1)) + shifts[:, None, None]
    [found] = sampled_scores(metric, [[runs]], 4000)
    assert found.mean() == pytest.approx(0, abs=0.3)
    assert found.std() == pytest.approx(10 * shifts.std(ddof=1) / 3**0.5, rel=0.05)
    [both] = sampled_scores(metric, [[runs, lines]], 400)
    assert both.std() > max(found.std(), alone.std())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    write(folder / "train.src.gz", SOURCE)
    write(folder / "train.trg.gz", TARGET)
    for name in FOLDS["a"]:
        write(folder / f"{name}.src.gz", ["x y", "z"])
        for k in (0, 1):
            write(folder / f"{name}.ref{k}.gz", [f"u v w x {k}", "a b c d e"])
    return folder


@pytest.mark.parametrize("sizes", [[], ["--sizes", "1,2"]])
def test_configurations(tmp_path: Path, data: Path, sizes: list[str]) -> None:
    out = tmp_path / "out"
    args = parsed([str(out), "--data", str(data), "--choose", "1", "--features", "seven", *sizes])
    given = Experiment.of(args)
    drawn = folds.make_drawn(given, args)
    again = folds.make_drawn(given, args)
    assert again == drawn
    assert (out / "drawn" / "train.src.gz").exists()
    args.choose = 2
    with pytest.raises(SystemExit, match="found other settings"):
        folds.make_drawn(given, args)
    parts = folds.parts_of(given, drawn, args)
    assert [part.label for part in parts] == (["1", "2"] if sizes else ["a", "b"])
    searched = [folds.searched_part(parts, part).label for part in parts]
    assert searched == (["2", "2"] if sizes else ["a", "b"])
    tested = {name for part in parts for name in part.tests}
    assert tested == {"test-dev", "test-devtest"}
    for part in parts:
        content = folds.settings_of(drawn, args, "iso-p7", part)
        write_settings(tmp_path / "config.yaml", content, "a condition")
        config = read_config(tmp_path / "config.yaml")
        assert config.tune is not None
        assert (config.tune.on, config.tune.held_out) == ("dev", "choose")
        assert len(config.data["choose"].translations) == len(config.data["dev"].translations) == 2
        assert {config.data["dev"].source}.isdisjoint(config.data[name].source for name in part.tests)


def write_outputs(out: Path, part: str, tests: list[str]) -> None:
    for replica in ("", ".2"):
        for condition, last in (("log-p7", "e"), ("iso-p7", "f"), ("log-c", "g")):
            run = out / f"{condition}.{part}{replica}.run"
            run.mkdir(parents=True)
            for test in tests:
                (run / f"test-{test}.output").write_text(f"u v w x 0\na b c d {last}\n")


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line]


def test_table_of_folds(tmp_path: Path, data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    flags = ["--choose", "1", "--features", "seven", "--table", "--trials", "50"]
    arguments = [str(out), "--data", str(data), *flags]
    with pytest.raises(SystemExit, match="found no translations, expected those of some condition"):
        main(arguments)
    for fold, (_, test) in FOLDS.items():
        write_outputs(out, fold, [test])
    assert main(arguments) == 0
    table = capfd.readouterr().out
    assert (out / "table.md").read_text() == table
    rows = cells(table)[2:]
    assert rows[0][:2] == ["log P, 7", "100.00"]
    assert [row[0] for row in rows] == ["log P, 7", "isotonic P, 7", "log C"]
    below = 100 - float(rows[1][1])
    assert float(rows[1][3].split(" ")[0]) == pytest.approx(-below, abs=0.01)
    assert rows[0][3:6] == ["", "", ""]  # the control
    assert [len(row[5].split(", ")) for row in rows[1:]] == [2, 2]


def test_tables_by_size(tmp_path: Path, data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    flags = ["--choose", "1", "--features", "seven", "--table", "--trials", "50", "--sizes", "1,2"]
    for size in ("1", "2"):
        write_outputs(out, size, ["dev", "devtest"])
    assert main([str(out), "--data", str(data), *flags]) == 0
    rows = cells(capfd.readouterr().out)
    assert rows[0] == ["difference by lines tuned on", "1", "2"]
    assert [row[0] for row in rows[2:4]] == ["isotonic P, 7", "log C"]
    assert rows[2][1] == rows[2][2] == rows[7][3]
    assert [row[0] for row in rows].count("condition") == 2
