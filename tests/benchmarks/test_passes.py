"""benchmarks/papers/passes.py: pictures of BLEU pass by pass."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.papers import passes


def write_log(out: Path, name: str, model: list[float], **more: list[float]) -> None:
    folder = out / f"{name}.run" / "tune"
    folder.mkdir(parents=True)
    rows = [{"model_bleu": bleu, "report_bleu": bleu - 1} for bleu in model]
    for key, values in more.items():
        rows = [row | {key: value} for row, value in zip(rows, values, strict=True)]
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_pictures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bounds = {"oracle_bleu": [30.0, 40.0], "prediction_bleu": [10.0, 20.0]}
    write_log(tmp_path, "mira.dev.dense", [20.0, 28.0], **bounds)
    write_log(tmp_path, "mira.dev.dense.2", [22.0, 30.0], **bounds)
    # Without a prediction: it is the best of the model.
    write_log(tmp_path, "mira.dev.dense-prediction=model", [15.0, 16.0], oracle_bleu=[30.0, 31.0])
    started = "mira.dev.dense-start=uniform-prediction=model"
    write_log(tmp_path, started, [25.0, 26.0], oracle_bleu=[30.0, 31.0])
    write_log(tmp_path, "mira.dev.pairs-oracle=lu-prediction=cost", [25.0, 26.0], **bounds)
    write_log(tmp_path, "sgd.dev.dense", [1.0])
    found = passes.logs(tmp_path)
    assert [len(replicas) for replicas in found.values()] == [2, 1, 1, 1]
    one = passes.series_of("x", found["mira.dev.dense"])
    assert one.values == ((20.0, 22.0), (28.0, 30.0))
    assert one.means() == [21.0, 29.0]
    assert one.bounds == ((10.0, 30.0), (20.0, 40.0))
    best = passes.series_of("x", found["mira.dev.dense-prediction=model"])
    assert best.bounds == ((15.0, 30.0), (16.0, 31.0))
    assert passes.main([str(tmp_path)]) == 0
    names = [f"passes.{name}.svg" for name in ("strategies", "hope", "lu", "held_out")]
    assert [Path(line).name for line in capfd.readouterr().out.splitlines()] == names
    shown = {
        "strategies": ["M−C / M+C, dense", "LU / MC, pairs"],
        "hope": ["M−C / M+C, dense", "M−C / PB, dense", "M−C / PB, dense, start=uniform"],
        "lu": ["LU / MC, pairs"],
        "held_out": [
            "M−C / M+C, dense",
            "M−C / PB, dense",
            "M−C / PB, dense, start=uniform",
            "LU / MC, pairs",
        ],
    }
    for name, expected in shown.items():
        root = ET.parse(tmp_path / f"passes.{name}.svg").getroot()
        texts = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
        assert sorted(text for text in texts if " / " in text) == sorted(expected)
        # A line, and its row of the legend.
        lines = list(root.iter("{http://www.w3.org/2000/svg}polyline"))
        assert len(lines) == 2 * len(expected)


def test_without_runs(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="found no runs of mira"):
        passes.main([str(tmp_path)])
