"""benchmarks/papers/experiment.py: sets of a bitext, replicas, and the table of orientation models."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.papers import orientation
from benchmarks.papers.experiment import Experiment, replica_names

REFERENCE = ["a b c d e", "f g h i j", "k l m n o", "p q r s t"]
WRONG = ["a b c d", "f g x i j", "k l m n o", "p q r s y"]


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def test_paths_of_sets(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("train.src.gz", "train.trg.gz", "devtest.src.gz", "devtest.ref0.gz", "devtest.ref1.gz"):
        write(data / name, ["x"])
    experiment = Experiment(out=tmp_path / "out", data=str(data))
    train = {"source": str(data / "train.src.gz"), "target": str(data / "train.trg.gz")}
    assert experiment.train() == train
    references = [str(data / f"devtest.ref{number}.gz") for number in (0, 1)]
    assert experiment.part("devtest") == {"source": str(data / "devtest.src.gz"), "references": references}
    assert experiment.references("devtest") == [["x"], ["x"]]
    with pytest.raises(SystemExit, match=r"found no dev\.src\.gz and dev\.trg\.gz in it, expected a bitext"):
        experiment.part("dev")
    made = tmp_path / "out" / "base.run" / "train.align.gz"
    write(made, ["0-0"])
    assert experiment.train() == train | {"alignment": str(made)}
    write(data / "train.align.gz", ["0-0"])
    assert experiment.train() == train | {"alignment": str(data / "train.align.gz")}


def test_replicas(tmp_path: Path) -> None:
    experiment = Experiment(out=tmp_path, data="none")
    assert replica_names(3) == ["", ".2", ".3"]
    write(tmp_path / "a.run" / "devtest.output", ["one"])
    write(tmp_path / "a.3.run" / "devtest.output", ["three"])
    assert experiment.outputs("a", replica_names(3)) == [["one"], ["three"]]


def test_the_table_of_orientation_models(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("src", "trg"):
        write(tmp_path / "data" / f"devtest.{name}.gz", REFERENCE)
    out = tmp_path / "out"
    arguments = [str(out), "--data", str(tmp_path / "data"), "--table", "--trials", "200"]
    with pytest.raises(SystemExit, match="found no translations, expected those of some system"):
        orientation.main(arguments)
    for run in ("none", "lexicalised", "lexicalised.2"):
        write(out / f"{run}.run" / "devtest.output", WRONG)
    write(out / "dual.run" / "devtest.output", REFERENCE)
    assert orientation.main(arguments) == 0
    table = capfd.readouterr().out
    assert (out / "table.md").read_text() == table
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert [row[0] for row in rows[2:]] == ["no model", "lexicalised", "dual, ε 0.1"]
    assert rows[0][3] == "from lexicalised"
    assert rows[2][2:] == [rows[2][1], "+0.00 (+0.00 to +0.00)", "1.0000"]
    assert rows[3][2:] == [f"{rows[3][1]}, {rows[3][1]}", "", ""]
    assert rows[4][1] == "100.00"
    assert float(rows[4][3].split(" ")[0]) == pytest.approx(100 - float(rows[3][1]), abs=0.01)


def test_settings_of_orientation_models_in_both_modes(tmp_path: Path) -> None:
    for name in ("dev", "devtest", "train"):
        for side in ("src", "trg"):
            write(tmp_path / "data" / f"{name}.{side}.gz", REFERENCE)
    given = [str(tmp_path / "out"), "--data", str(tmp_path / "data"), "--epochs", "2"]
    hiero = orientation.parsed(given)
    phrase = orientation.parsed([*given, "--mode", "phrase", "--algorithm", "pro"])
    assert orientation.models_of(hiero, "both") == ["dual", "lexicalised"]
    assert orientation.models_of(phrase, "both") == ["dual", "bidirectional"]
    assert orientation.name_of(hiero, "both") == "both"
    assert orientation.name_of(phrase, "both") == "phrase.pro.both"
    experiment = Experiment.of(phrase)
    found = orientation.settings_of(experiment, phrase, ["a.model"], 3)
    (grammar,) = found["grammar"]
    assert grammar["extract"] == {"max_gaps": 0}
    assert grammar["index"].endswith("base.run/train.index")
    assert found["features"] == {"templates": ["distortion"], "reordering": ["a.model"]}
    assert found["search"]["brackets"]
    assert found["tune"] == {"algorithm": "pro", "on": "dev", "held_out": None, "epochs": 2}
    assert "reorder" not in found
    plain = orientation.settings_of(experiment, hiero, [], 1)
    assert "features" not in plain
    assert plain["tune"]["algorithm"] == "sgd"


def test_scaled_models_have_the_scale_that_is_best_on_dev(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("src", "trg"):
        write(tmp_path / "data" / f"devtest.{name}.gz", REFERENCE)
    out = tmp_path / "out"
    given = [str(out), "--data", str(tmp_path / "data"), "--table", "--trials", "50", "--scaled"]
    given += ["--mode", "phrase", "--replicas", "2"]
    args = orientation.parsed(given)
    experiment = Experiment.of(args)
    # Of the first replica 0.2 is best, of the second 0.05; what others translate does not count.
    best = {"": 0.2, ".2": 0.05}
    for suffix, one in best.items():
        write(out / f"phrase.none{suffix}.run" / "devtest.output", REFERENCE)
        for scale in orientation.SCALES:
            folder = out / f"{orientation.scaled_name(args, 'lexicalised', scale, suffix)}.run"
            write(folder / "devtest.output", WRONG if scale == one else REFERENCE)
            stages = {"eval:dev": {"figures": {"BLEU": 9.0 if scale == one else 5.0}}}
            manifest = {"version": 1, "stages": stages, "files": {}}
            (folder / "manifest.json").write_text(json.dumps(manifest))
        assert orientation.best_scale(experiment, args, "lexicalised", suffix) == one
    assert orientation.outputs_of(experiment, args, "lexicalised") == [WRONG, WRONG]
    assert orientation.outputs_of(experiment, args, "none") == [REFERENCE, REFERENCE]
    assert orientation.main(given) == 0
    assert "| no model | 100.00 | 100.00, 100.00 |" in capfd.readouterr().out
