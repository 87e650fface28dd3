"""benchmarks/papers/seeds.py: many runs of a system, and their box plot."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.papers import seeds

DEMO = str(Path(__file__).parents[2] / "grammars" / "demo")


def test_the_plot_of_runs_that_are_done(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = [str(tmp_path), "--data", DEMO, "--table", "--runs", "4"]
    with pytest.raises(SystemExit, match="found no system with several runs that are done"):
        seeds.main(arguments)
    for seed, bleu in ((1, 20.0), (2, 21.0), (4, 23.0), (5, 99.0)):
        folder = tmp_path / "seeds" / f"mira.dev.dense.{seed}"
        folder.mkdir(parents=True)
        (folder / "scores.json").write_text(json.dumps({"bleu": bleu}))
    assert seeds.main(arguments) == 0
    assert (
        "| mira.dev.dense | 3 | 20.00 | 20.50 | 21.00 | 22.00 | 23.00 | 21.33 | 1.53 |"
        in capfd.readouterr().out
    )
    root = ET.parse(tmp_path / "seeds.svg").getroot()
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 3


def test_unknown_sets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--set: found other, expected held, devtest, test"):
        seeds.main([str(tmp_path), "--data", DEMO, "--set", "other"])
