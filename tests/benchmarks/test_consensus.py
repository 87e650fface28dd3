"""benchmarks/consensus.py: rules of choice with the factor that dev chooses, and oracles."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks import consensus
from benchmarks.papers.experiment import Experiment
from hiero.decoder.consensus import RULES as RULES_OF_CHOICE
from tests.worlds.server import RULES, WEIGHTS

Capture = pytest.CaptureFixture[str]
SOURCE = ["das haus ist alt .", "haus", "das haus"]
REFERENCE = ["the home is ancient .", "house", "the home"]
BEST = ["the house is old .", "house", "the house"]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """A run that is done, a bitext with its sets, and few settings."""
    run, data = tmp_path / "done.run", tmp_path / "data"
    run.mkdir()
    data.mkdir()
    (run / "grammar").write_text(RULES)
    (run / "weights").write_text(WEIGHTS)
    (run / "model.yaml").write_text("grammar: [{path: grammar}]\nweights: {path: weights}\n")
    (run / "dev.output").write_text("".join(f"{line}\n" for line in BEST))
    for name in ("dev", "devtest"):
        for side, lines in (("src", SOURCE), ("trg", REFERENCE)):
            (data / f"{name}.{side}.gz").write_bytes(gzip.compress("".join(f"{x}\n" for x in lines).encode()))
    given = [str(tmp_path / "out"), "--data", str(data), "--runs", str(run), "--trials", "50", "-q"]
    return [*given, "--alphas", "0.5,9", "--sizes", "1,2,9", "--pop-limits", "1,50"]


def rows_of(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line]


def test_the_tables_and_a_second_start(arguments: list[str], tmp_path: Path, capfd: Capture) -> None:
    assert consensus.main(arguments) == 0
    text = capfd.readouterr().out
    out = tmp_path / "out"
    assert (out / "table.md").read_text() == text
    rows = rows_of(text)
    by_name = {row[0]: row for row in rows}
    best = by_name["the model's best"]
    assert best[2] == ""
    assert best[1] == best[3] == best[4]
    for rule in RULES_OF_CHOICE:
        dev, alpha, devtest, *_ = by_name[rule][1:]
        # Both sets are the same here: the factor with the larger BLEU of dev has that BLEU of devtest.
        scores = dict(zip(["0.5", "9"], dev.split(", "), strict=True))
        assert float(scores[alpha]) == max(map(float, scores.values()))
        assert scores[alpha] == devtest
    # Oracles of longer lists, of forests, and of more thorough searches are no worse.
    for limit in ("1", "50"):
        figures = [float(cell) for cell in by_name[limit][1:]]
        assert figures == sorted(figures)
    assert float(by_name["50"][-1]) > float(best[3])
    assert "3 sentences" in text
    made = {path: path.stat().st_mtime_ns for path in out.glob("*.jsonl")}
    assert len(made) == 4
    assert consensus.main(arguments) == 0
    assert capfd.readouterr().out == text
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.jsonl")} == made
    # Other settings, other files; fewer sentences.
    assert consensus.main([*arguments, "--sentences", "2"]) == 0
    assert "2 sentences" in capfd.readouterr().out
    assert len(list(out.glob("*.jsonl"))) == 8


def test_work_that_was_stopped_is_continued(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = consensus.parsed(arguments)
    work = consensus.Work(Experiment.of(args), args.runs[0], "dev", None, sizes=[1])
    seen = list[int]()
    of_forest = consensus.Work._of_forest

    def counted(self: consensus.Work, forest: object, number: int, oracle: object) -> dict[str, str]:
        if number == 2 and not seen.count(2):
            seen.append(number)
            raise KeyboardInterrupt
        seen.append(number)
        return of_forest(self, forest, number, oracle)  # type: ignore[arg-type]

    monkeypatch.setattr(consensus.Work, "_of_forest", counted)
    with pytest.raises(KeyboardInterrupt):
        work.texts()
    assert work.texts()[consensus.BEST] == BEST
    assert seen == [0, 1, 2, 2]


def test_precision_and_ratio() -> None:
    """Of 5 words 4 are right, of 4 bigrams 2, of 3 trigrams 1, and of 2 4-grams none."""
    precision, ratio = consensus.slope(["a b c x d"], [["a b c d"]])
    assert precision == 0.8
    assert ratio == pytest.approx((0.5 / 0.8 + 1 / 3 / 0.5) / 2, abs=1e-3)
    assert consensus.slope(["x y"], [["a b"]]) == consensus.slope([""], [["a"]]) == (0.85, 0.72)


def test_settings_of_replicas(tmp_path: Path) -> None:
    demo = str(Path(__file__).parents[2] / "grammars" / "demo")
    args = consensus.parsed([str(tmp_path), "--data", demo, "--pairs", "3", "--epochs", "2"])
    first, second = (consensus.settings_of(Experiment.of(args), args, seed) for seed in (1, 2))
    assert "train" in first["data"]
    assert second["lm"] == [{"path": str(tmp_path / "model.run" / "LanguageModel.lm")}]
    assert second["tune"]["seed"] == 2
    assert second["tune"]["epochs"] == 2
