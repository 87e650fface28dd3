"""``hiero eval``: input, output, and agreement with sacrebleu."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

from hiero.cli.evaluate import add_parser
from hiero.core.errors import ConfigError, FormatError, UsageError
from hiero.evaluation.compare import System, evaluate
from hiero.evaluation.config import EvalConfig
from hiero.evaluation.corpus_metrics import (
    METRICS,
    chrf_scores,
    corpus_metric,
    corpus_metric_tokenizers,
    ter_scores,
)
from hiero.evaluation.hypotheses import read_hypotheses, read_references

WORDS = ["der", "die", "das", "haus", "baum", "fährt", "schläft", ",", ".", "grüner", "3,5", "%"]


def lines(seed: int, count: int = 30) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 15))) for _ in range(count)]


def worse(text: list[str], share: float, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join("x" if rng.random() < share else word for word in line.split()) for line in text]


def evaluated(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["eval", *map(str, arguments)])
    return int(args.run(args))


def write(path: Path, text: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    ref = lines(1)
    return {
        "ref": write(tmp_path / "ref", ref),
        "ref2": write(tmp_path / "ref2", worse(ref, 0.2, 9)),
        "good": write(tmp_path / "good", worse(ref, 0.1)),
        "bad": write(tmp_path / "bad", worse(ref, 0.5)),
    }


def as_json(capfd: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert evaluated(*arguments, "--format", "json") == 0
    record: dict[str, Any] = json.loads(capfd.readouterr().out)
    return record


def test_scores_and_signatures_are_sacrebleus(
    files: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    hyp, refs = read_references([files["bad"]])[0], read_references([files["ref"], files["ref2"]])
    metrics = {
        "bleu": sacrebleu.BLEU(tokenize="none", lowercase=True),
        "chrf": sacrebleu.CHRF(lowercase=True),
        "chrf++": sacrebleu.CHRF(word_order=2, lowercase=True),
        "ter": sacrebleu.TER(),
    }
    found = as_json(
        capfd, files["bad"], "-r", files["ref"], files["ref2"], "--metrics", ",".join(METRICS),
        "--lowercase", "--tokenize", "none", "--trials", 100,
    )  # fmt: skip
    for key, metric in metrics.items():
        wanted = metric.corpus_score(hyp, refs)
        assert found["systems"][0]["metrics"][key]["score"] == pytest.approx(wanted.score, abs=1e-9)
        assert found["signatures"][key] == str(metric.get_signature())
    assert found["sentences"] == 30
    assert found["test"] is None
    assert found["references"] == [str(files["ref"]), str(files["ref2"])]


def test_scores_of_lines_are_sacrebleus(files: dict[str, Path], tmp_path: Path) -> None:
    hyp, refs = read_references([files["bad"]])[0], read_references([files["ref"], files["ref2"]])
    table = tmp_path / "scores.tsv.gz"
    evaluated(files["bad"], "-r", files["ref"], files["ref2"], "--per-segment", table, "-o", tmp_path / "out")
    head, *rows = gzip.decompress(table.read_bytes()).decode().splitlines()
    assert head.split("\t") == ["line", "system", "run", "BLEU", "chrF2", "TER"]
    metrics = [sacrebleu.BLEU(effective_order=True), sacrebleu.CHRF(), sacrebleu.TER()]
    for number, (row, line, *both) in enumerate(zip(rows, hyp, *refs, strict=True), 1):
        scores = [metric.sentence_score(line, both).score for metric in metrics]
        cells = row.split("\t")
        assert cells[:3] == [str(number), str(files["bad"]), "1"]
        assert [float(cell) for cell in cells[3:]] == pytest.approx(scores, abs=5.1e-5)


@pytest.mark.parametrize("key", METRICS)
def test_scores_of_random_statistics(key: str) -> None:
    """Against sacrebleu, one sum at a time, including sums without words on either side."""
    ref = [*lines(1), "", "a", ""]
    hyp = [*worse(lines(1), 0.4), "", "", "b c d e f"]
    metric = corpus_metric(key, [ref])
    stats = metric.statistics(hyp)
    rng = np.random.default_rng(1)
    sums = np.concatenate([stats, rng.integers(0, 3, (50, len(stats))) @ stats])
    wanted = [metric._sacrebleu._compute_score_from_stats(row.tolist()).score for row in sums]
    assert metric.scores(sums) == pytest.approx(wanted, abs=1e-9)


def test_score_of_empty_statistics() -> None:
    assert chrf_scores(np.zeros((1, 18))).tolist() == [0.0]
    assert ter_scores(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 4.0]])).tolist() == [0.0, 100.0, 25.0]


def test_several_systems_in_one_table(files: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    arguments = (files["good"], files["bad"], "--system", f"again={files['good']}", "-r", files["ref"])
    assert evaluated(*arguments, "--trials", "999", "--tokenize", "none") == 0
    out, err = capfd.readouterr()
    assert err == ""
    rows = [row.split() for row in out.split("\n\n")[0].splitlines()]
    assert rows[0] == ["metric", "system", "score", "95%", "interval", "difference", "p"]
    assert [row[0] for row in rows[1:]] == ["BLEU"] * 3 + ["chrF2"] * 3 + ["TER"] * 3
    for start in (1, 4, 7):
        assert rows[start][-1] == "baseline"
        difference = float(rows[start + 1][2]) - float(rows[start][2])
        found, low, dash, high, *p = rows[start + 1][-6:]
        assert float(found) == pytest.approx(difference, abs=0.011)
        assert (dash, p) == ("–", ["0.0010", "**"])
        assert float(low.strip("(")) < float(found) < float(high.strip(")"))
        assert rows[start + 2][-5:] == ["+0.00", "(+0.00", "–", "+0.00)", "1.0000"]
    notes = out.split("\n\n")[1].splitlines()
    assert notes[0].startswith(f"BLEU of {files['good']}: ")
    assert "BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:" + sacrebleu.__version__ in notes
    assert notes[-2].endswith("|test:ar|interval:bootstrap|trials:999|seed:1")
    assert notes[-1] == f"p against {files['good']}: * < .05, ** < .01, *** < .001"


def test_several_runs(files: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ref = read_references([files["ref"]])[0]
    runs = [write(tmp_path / f"run{n}", worse(ref, 0.3, n)) for n in range(3)]
    specs = [f"a={runs[0]},{files['good']},{runs[1]}", f"b={runs[2]},{runs[1]},{files['bad']}"]
    arguments = ("--system", specs[0], "--system", specs[1], "-r", files["ref"], "--metrics", "bleu")
    found = as_json(capfd, *arguments)
    for system, paths in zip(found["systems"], ([0, "good", 1], [2, 1, "bad"]), strict=True):
        texts = [read_references([files[p] if isinstance(p, str) else runs[p]])[0] for p in paths]
        scores = [sacrebleu.corpus_bleu(text, [ref]).score for text in texts]
        bleu = system["metrics"]["bleu"]
        assert bleu["runs"] == pytest.approx(scores)
        assert bleu["score"] == pytest.approx(np.mean(scores))
        assert bleu["std_runs"] == pytest.approx(np.std(scores, ddof=1))
        assert bleu["interval"][0] < bleu["score"] < bleu["interval"][1]
    assert "p" not in found["systems"][0]["metrics"]["bleu"]
    assert 0 < found["systems"][1]["metrics"]["bleu"]["p"] < 0.05
    evaluated(*arguments, "--trials", 99)
    out = capfd.readouterr().out
    assert out.splitlines()[0].split()[-4:] == ["runs", "std", "difference", "p"]
    assert "|test:ar|strata:run|" in out
    assert "scores are means of the runs; intervals include the variance of tuning\n" in out
    assert "their intervals include that variance, p does not\n" in out
    assert "99 trials are few: intervals and p are rough\n" in out
    evaluated(*arguments, "--trials", 0)
    assert capfd.readouterr().out.splitlines()[0].split() == ["metric", "system", "score", "runs", "std"]
    evaluated(*arguments, "--trials", 100, "--test", "bootstrap")
    notes = capfd.readouterr().out
    assert "their intervals include that variance\n" in notes
    assert "trials are few" not in notes
    evaluated("--system", specs[0], files["bad"], "-r", files["ref"], "--metrics", "bleu", "--trials", 99)
    assert "|strata:run where equally many|" in capfd.readouterr().out


def test_the_baseline_is_the_first(files: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("--system", f"b={files['good']}", "-r", files["ref"], "--metrics", "chrf", "--test")
    found = as_json(capfd, files["bad"], *arguments, "bootstrap", "--trials", 200)
    assert [system["name"] for system in found["systems"]] == [str(files["bad"]), "b"]
    second = found["systems"][1]["metrics"]["chrf"]
    assert second["difference"] > 0
    assert (second["p"], second["wins"]) == (1 / 201, 1.0)
    low, high = second["difference_interval"]
    assert low < second["difference"] < high
    evaluated(files["bad"], *arguments, "bootstrap", "--trials", 200)
    assert f"{second['difference']:+.2f} ({low:+.2f} – {high:+.2f})" in capfd.readouterr().out
    by_randomization = as_json(capfd, files["bad"], *arguments, "ar", "--trials", 200)
    tested = by_randomization["systems"][1]["metrics"]["chrf"]
    assert tested["difference_interval"] == [low, high]
    assert "wins" not in tested
    none = as_json(capfd, files["bad"], *arguments, "none", "--trials", 200)
    assert "p" not in none["systems"][1]["metrics"]["chrf"]
    nothing = as_json(capfd, files["bad"], *arguments, "ar", "--trials", 0)
    assert set(nothing["systems"][1]["metrics"]["chrf"]) == {"score", "runs"}
    evaluated(files["bad"], "-r", files["ref"], "--metrics", "chrf", "--trials", 0)
    assert "trials" not in capfd.readouterr().out


def test_seeds(files: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    arguments = (files["good"], files["bad"], "-r", files["ref"], "--metrics", "bleu", "--trials", 50)
    first, again, other = (as_json(capfd, *arguments, "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    intervals = [record["systems"][0]["metrics"]["bleu"]["interval"] for record in (first, other)]
    assert intervals[0] != intervals[1]


# ---- input


KBEST = [
    "0 ||| a b ||| F=1 ||| -1.5",
    "0 ||| worst ||| F=2 ||| -2",
    "1 ||| ||| ||| -1",
    "2 ||| c |||d ||| F= 1 ||| 3e-1",
]


def test_input_formats(tmp_path: Path) -> None:
    def read(text: list[str], count: int, form: str | None = None) -> list[str]:
        found = read_hypotheses(write(tmp_path / "hyp", text), count, "ref", form)
        assert found.missing == 0
        return found.lines

    assert read(["a ||| b", "c"], 2) == ["a ||| b", "c"]
    assert read(KBEST, 3) == ["a b", "", "c |||d"]
    assert read(KBEST, 4, "text") == KBEST
    records = [
        {"id": "x", "translations": [{"text": "a b"}, {"text": "c"}]},
        {"translations": [{"text": ""}]},
    ]
    assert read([json.dumps(record) for record in records], 2) == ["a b", ""]
    # Numeric ids may be in any order; names keep their order.
    assert read(["5 ||| e ||| F=1 ||| 1", "4 ||| d ||| F=1 ||| 1"], 2) == ["d", "e"]
    assert read(["y ||| e ||| F=1 ||| 1", "", "x ||| d ||| F=1 ||| 1"], 2) == ["e", "d"]
    (tmp_path / "hyp.gz").write_bytes(gzip.compress("\ufeffä\r\nb".encode()))
    assert read_hypotheses(tmp_path / "hyp.gz", 2, "ref") == (["ä", "b"], 0)


def test_sentences_without_translation(
    files: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ref = read_references([files["ref"]])[0]
    kbest = [f"{n} ||| {line} ||| F=1 ||| -1" for n, line in enumerate(ref) if n not in (3, 28)]
    hyp = write(tmp_path / "kbest", kbest)
    assert evaluated(hyp, "-r", files["ref"], "--metrics", "bleu", "--tokenize", "none") == 0
    assert capfd.readouterr().err == f"hiero: {hyp}: 2 sentences have no translation\n"
    found = read_hypotheses(hyp, 30, "ref")
    assert found.missing == 2
    assert found.lines == [*ref[:3], "", *ref[4:28], "", ref[29]]
    empty = write(tmp_path / "json", ['{"translations":[]}'])
    assert read_hypotheses(empty, 1, "ref") == ([""], 1)


def test_standard_input(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(files["good"].read_bytes())))
    assert evaluated("-", "-r", files["ref"], "--metrics", "bleu") == 0
    assert capfd.readouterr().out.splitlines()[1].split()[1] == "-"


def test_input_that_looks_tokenised(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One line on standard error, however many systems there are."""
    text = write(tmp_path / "text", ["ein satz ."] * 100)
    arguments = (text, "--system", f"b={text},{text}", "-r", text, "--metrics", "bleu", "--trials", "9")
    evaluated(*arguments)
    assert capfd.readouterr().err == (
        "hiero: the input looks tokenised, and BLEU tokenises it again (13a); detokenise both sides, "
        "or use --tokenize none or --force\n"
    )
    for flags in (["--force"], ["--quiet"], ["--tokenize", "none"]):
        evaluated(*arguments, *flags)
        assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (["a"] * 29, "hyp: found 29 lines, expected 30, as many as {ref} has lines"),
        ([], "hyp: found 0 lines, expected 30, as many as {ref} has lines"),
        (KBEST, "hyp: found 3 sentences, expected 30"),
        (["30 ||| a ||| F=1 ||| 1"], "hyp: found 1 sentences, expected 30"),
        (
            [KBEST[0], "plain"],
            r"hyp:2: found 'plain', expected id ||| translation ||| features ||| score (is",
        ),
        (['{"translations":[]}', "{"], "hyp:2: found input data was truncated, expected a JSON object"),
        (
            ['{"translations":[]}', '{"translations":[{}]}'],
            "hyp:2: found '{\"translations\":[{}]}', expected",
        ),
        (['{"translations":[]}', "3"], "hyp:2: found '3', expected an object with"),
    ],
)
def test_wrong_input(files: dict[str, Path], tmp_path: Path, text: list[str], message: str) -> None:
    hyp = write(tmp_path / "hyp", text)
    with pytest.raises(FormatError) as error:
        evaluated(hyp, "-r", files["ref"])
    assert message.replace("{ref}", str(files["ref"])) in str(error.value)


def test_invalid_utf8_and_references(files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "hyp").write_bytes(b"a\nb\xc3\xff\n")
    with pytest.raises(
        FormatError, match=r"hyp:2: found byte 0xc3 at position 2 of the line, expected UTF-8"
    ):
        evaluated(tmp_path / "hyp", "-r", files["ref"])
    short = write(tmp_path / "short", ["a"])
    with pytest.raises(FormatError, match=r"short: found 1 lines, expected 30, as many as .*ref has"):
        evaluated(files["good"], "-r", files["ref"], short)
    with pytest.raises(FormatError, match="found no lines, expected references"):
        evaluated(files["good"], "-r", write(tmp_path / "empty", []))
    with pytest.raises(FormatError, match="found no such file, expected translations"):
        evaluated(tmp_path / "none", "-r", files["ref"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "requires translations: HYP or --system"),
        (["--system", "good"], "argument --system: found 'good', expected NAME=RUN1"),
        (["--system", "a=b,,c"], "argument --system: found 'a=b,,c', expected a file between all commas"),
        (["-", "-"], "standard input (-) can be read only once"),
        (["good", "--metrics", "bleu,bleu"], "expected one or more different metrics"),
        (["good", "--metrics", ""], "argument --metrics: found none, expected"),
        (["good", "--trials", "-1"], "argument --trials: found -1, expected at least 0"),
    ],
)
def test_wrong_usage(files: dict[str, Path], arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        evaluated(*arguments, "-r", files["ref"])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metrics", "blue"], "metrics: unknown 'blue'; did you mean 'bleu'?"),
        (["--tokenize", "14a"], "tokenize: unknown '14a'; did you mean '13a'?"),
        (["--system", "a=good", "--system", "a=bad"], "two systems have the name a"),
    ],
)
def test_wrong_settings(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(files["good"].parent)
    with pytest.raises(ConfigError) as error:
        evaluated("good", "-r", files["ref"], *arguments)
    assert message in str(error.value)


def test_a_tokenizer_that_is_not_installed() -> None:
    assert {"none", "13a", "ja-mecab"} <= set(corpus_metric_tokenizers())
    try:
        import MeCab  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        with pytest.raises(ConfigError, match=r"tokenize: ja-mecab is not installed \(.*pip install"):
            corpus_metric("bleu", [["a"]], tokenize="ja-mecab")


def test_python_interface() -> None:
    ref = lines(1)
    report = evaluate(
        [System("a", [ref]), System("b", [worse(ref, 0.2)])],
        [ref],
        EvalConfig(metrics=["ter"], trials=100),
    )
    assert report.result("ter", "a").score == 0.0
    assert report.result("ter", "b").comparison is not None
    for wrong, message in (
        ({"test": "t"}, "test: found 't', expected one of ar, bootstrap, none"),
        ({"trials": -1}, "trials: found -1"),
        ({"seed": -1}, "seed: found -1"),
        ({"metrics": ["wer"]}, "metrics: unknown 'wer'"),
    ):
        with pytest.raises(ConfigError, match=message):
            evaluate([System("a", [ref])], [ref], EvalConfig(**wrong))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"found texts of \[29, 30\] lines"):
        evaluate([System("a", [ref[1:]])], [ref], EvalConfig())
    with pytest.raises(ConfigError, match="references: found no lines"):
        evaluate([System("a", [[]])], [[]], EvalConfig())


@pytest.mark.once
def test_as_a_command(files: dict[str, Path]) -> None:
    def hiero(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hiero.cli.main", "eval", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = hiero(files["good"], "-r", files["ref"], "--metrics", "bleu")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("metric  system")
    wrong = hiero(files["good"], "-r", files["ref"], "--metrics", "blue")
    assert (wrong.returncode, wrong.stderr) == (1, "metrics: unknown 'blue'; did you mean 'bleu'?\n")
    usage = hiero("-r", files["ref"])
    assert usage.returncode == 2
    assert usage.stderr.startswith("hiero eval: requires translations")
