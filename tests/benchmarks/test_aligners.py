"""benchmarks/aligners.py: BLEU by aligner."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import aligners
from benchmarks.papers.experiment import Experiment
from hiero.core.text import read_lines

DEMO = str(Path(__file__).parents[2] / "grammars" / "demo")


def test_the_table_of_runs_that_are_done(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = [str(tmp_path), "--data", DEMO, "--table", "--replicas", "2", "--trials", "200"]
    arguments += ["--systems", "ibm2,hmm:threshold=0.2,hmm"]
    with pytest.raises(SystemExit, match="found no translations"):
        aligners.main(arguments)
    reference = list(read_lines(f"{DEMO}.devtest.en"))
    worse = [b"a" for _ in reference]
    for run, lines in (
        ("ibm2", reference),
        ("ibm2.2", reference),
        ("hmm-threshold=0.2", worse),
        ("hmm-threshold=0.2.2", reference),
    ):
        folder = tmp_path / f"{run}.run"
        folder.mkdir()
        (folder / "devtest.output").write_bytes(b"".join(line + b"\n" for line in lines))
        (folder / "train.align.gz").write_bytes(b"0-0 1-1\n0-0\n")
    assert aligners.main(arguments) == 0
    _, _, first, second = capfd.readouterr().out.splitlines()
    assert first == "| ibm2 | 3 | 100.00 | 100.00, 100.00 | 1.000 |  |  |"
    words = sum(len(line.split()) for line in reference)
    length = (words + len(worse)) / 2 / words
    assert second.startswith(f"| hmm:threshold=0.2 | 3 | 50.00 | 0.00, 100.00 | {length:.3f} | -")
    assert float(second.split(" | ")[-1].rstrip(" |")) < 0.05


def test_settings_of_a_system(tmp_path: Path) -> None:
    args = aligners.parsed(
        [str(tmp_path), "--data", DEMO, "--pairs", "3", "--systems", "hmm:null=0.1:threshold=0.3"]
    )
    experiment = Experiment.of(args)
    first, second = (aligners.settings_of(experiment, args, args.systems[0], seed) for seed in (1, 2))
    assert first["align"] == {"model": "hmm", "null": 0.1, "threshold": 0.3}
    assert [len(list(read_lines(path))) for path in first["data"]["train"].values()] == [3, 3]
    assert first["grammar"] == [{"index": "train"}]
    assert "align" not in second
    assert second["grammar"] == [{"index": str(tmp_path / "hmm-null=0.1-threshold=0.3.run" / "train.index")}]
    own = aligners.settings_of(experiment, args, "eflomal=links.align", 1)
    assert "align" not in own
    assert own["data"]["train"]["alignment"] == "links.align"


def test_unknown_systems_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        aligners.parsed([str(tmp_path), "--data", DEMO, "--systems", "ibm3"])
    assert "found ibm3, expected such as hmm:threshold=0.2" in capsys.readouterr().err
