"""``hiero align``: quality on the bundled bitext, options, and error messages."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hiero.alignment.config import MODELS
from hiero.bitext.alignments import read_alignment
from hiero.cli.main import main
from hiero.core.text import read_lines
from tests.alignment.test_symmetrize import lines_of
from tests.conftest import INTERPRETED

GRAMMARS = Path(__file__).parents[2] / "grammars"
SRC, TGT = GRAMMARS / "demo.train.de.gz", GRAMMARS / "demo.train.en.gz"
TRUTH = GRAMMARS / "demo.train.align.gz"


def hiero(*arguments: object) -> int:
    return main(["align", *map(str, arguments)])


def small_bitext(folder: Path, lines: int = 60) -> tuple[Path, Path]:
    for source, name in ((SRC, "src"), (TGT, "tgt")):
        text = [line + b"\n" for line, _ in zip(read_lines(source), range(lines), strict=False)]
        (folder / name).write_bytes(b"".join(text))
    return folder / "src", folder / "tgt"


def error_rate(capsys: pytest.CaptureFixture[str], alignment: Path) -> float:
    assert hiero("score", alignment, TRUTH) == 0
    name, value = capsys.readouterr().out.splitlines()[0].split()
    assert name == "AER"
    return float(value)


@pytest.mark.heavy
def test_error_rate_on_the_bundled_bitext(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Articles and inflections keep unsupervised models from learning all of it."""
    out = tmp_path / "align"
    assert hiero("-q", "-s", SRC, "-t", TGT, "-o", out) == 0
    ibm2 = error_rate(capsys, out)
    assert ibm2 < 0.14
    assert hiero("-q", "-s", SRC, "-t", TGT, "-o", out, "--model", "hmm") == 0
    hmm = error_rate(capsys, out)
    assert hmm < min(ibm2, 0.125)
    assert hiero("-q", "-s", SRC, "-t", TGT, "-o", out, "--model", "fertility") == 0
    assert error_rate(capsys, out) < hmm


@pytest.mark.parametrize("model", MODELS)
def test_learns_to_copy(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every word translated by itself, the order of three words at a time reversed."""
    random = np.random.default_rng(3)
    src, tgt, gold = [], [], []
    for n in range(80):
        line = [f"w{word}" for word in random.permutation(20)[:6]]
        order = [2, 1, 0, 5, 4, 3] if n % 2 else list(range(6))
        src.append(" ".join(line))
        tgt.append(" ".join(line[i].upper() for i in order))
        gold.append(" ".join(f"{i}-{j}" for j, i in enumerate(order)))
    for name, lines in (("src", src), ("tgt", tgt), ("gold", gold)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    files = ("-s", tmp_path / "src", "-t", tmp_path / "tgt")
    assert hiero("-q", *files, "--model", model, "--tension", 0.1, "--tension-rounds", 0) == 0
    (tmp_path / "found").write_text(capsys.readouterr().out)
    assert hiero("score", tmp_path / "found", tmp_path / "gold") == 0
    assert float(capsys.readouterr().out.split()[1]) < 0.1


def test_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    src, tgt = small_bitext(tmp_path)
    files = {name: tmp_path / f"{name}.gz" for name in ("out", "forward", "reverse")}
    arguments = ("-s", src, "-t", tgt, "--forward", files["forward"], "--reverse", files["reverse"])
    assert hiero(*arguments, "-o", files["out"], "--symmetrize", "intersection") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    note = captured.err.splitlines()[-1]
    assert note.startswith("hiero: 60 sentence pairs; ")
    out, fwd, rev = (lines_of(read_alignment(files[name])) for name in ("out", "forward", "reverse"))
    assert [sorted(set(f) & set(r)) for f, r in zip(fwd, rev, strict=True)] == out
    assert hiero("-q", "-s", src, "-t", tgt, "--symmetrize", "none") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.encode() == gzip.decompress(files["forward"].read_bytes())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["src", "tgt", "out.gz", "forward.gz", "reverse.gz"]
    )


@pytest.mark.heavy
def test_options_change_the_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    src, tgt = small_bitext(tmp_path, 20 if INTERPRETED else 60)

    def output(*options: object) -> str:
        assert hiero("-q", "-s", src, "-t", tgt, *options) == 0
        return capsys.readouterr().out

    default, hmm = output(), output("--model", "hmm")
    assert output("-j", 3) == default
    assert output("--iterations", 5, "--null", 0.2, "--smoothing", 0.01, "--tension", 4) == default
    for options in (
        ("--symmetrize", "union"),
        ("--iterations", 1),
        ("--null", 0.9),
        ("--smoothing", 10),
        ("--tension", 30),
        ("--tension-rounds", 5),
    ):
        assert output(*options) != default, options
    for options in (("--hmm-iterations", 1), ("--no-hmm-agreement",)):
        assert output("--model", "hmm", *options) != hmm, options
    sampled = output("--model", "fertility")
    assert output("--model", "fertility", "-j", 3, "--seed", 1) == sampled != hmm
    for options in (("--fertility-iterations", 1), ("--fertility-smoothing", 1), ("--seed", 2)):
        assert output("--model", "fertility", *options) != sampled, options


@pytest.mark.heavy
@pytest.mark.parametrize("model", ["ibm2", "hmm"])
def test_a_kept_model_links_its_training_text_alike(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hiero.alignment.files.APPLIED_PAIRS", 7)
    src, tgt = small_bitext(tmp_path, 20 if INTERPRETED else 60)
    files = ("-s", src, "-t", tgt)
    options = ("--model", model, "--symmetrize", "union", "--forward", tmp_path / "forward")
    assert hiero("-q", *files, *options, "--save-model", tmp_path / "model") == 0
    links, forward = capsys.readouterr().out, (tmp_path / "forward").read_text()
    for threads in (1, 3):
        apply: list[object] = ["apply", tmp_path / "model", *files, "-j", threads]
        assert hiero(*apply, "--forward", tmp_path / "again") == 0
        captured = capsys.readouterr()
        assert captured.out == links
        assert f"hiero: {len(links.splitlines())} sentence pairs; " in captured.err
        assert (tmp_path / "again").read_text() == forward
        assert hiero("-q", *apply, "--symmetrize", "none") == 0
        assert capsys.readouterr().out == forward
    # Other pairs do not change the links of a pair.
    short = [part.write_bytes(b"".join(path.read_bytes().splitlines(True)[3:6])) for path, part in
             ((src, tmp_path / "s"), (tgt, tmp_path / "t"))]  # fmt: skip
    assert all(short)
    assert hiero("-q", "apply", tmp_path / "model", "-s", tmp_path / "s", "-t", tmp_path / "t") == 0
    assert capsys.readouterr().out.splitlines() == links.splitlines()[3:6]


@pytest.mark.parametrize("model", ["ibm2", pytest.param("hmm", marks=pytest.mark.heavy)])
def test_posteriors_as_scores_and_threshold(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hiero.alignment.files.APPLIED_PAIRS", 7)
    monkeypatch.setattr("hiero.alignment.align.BLOCK_CELLS", 200)
    src, tgt = small_bitext(tmp_path, 9 if INTERPRETED else 60)
    for path in (src, tgt):
        path.write_bytes(path.read_bytes() + (b"\n" if path == src else b"extra\n"))
    files, scores = ("-q", "-s", src, "-t", tgt), tmp_path / "scores"
    training = ("--model", model, "--iterations", 2, "--hmm-iterations", 1)[: 6 if model == "hmm" else 4]

    def read() -> tuple[list[list[tuple[int, int]]], list[float], list[list[float]]]:
        (tmp_path / "links").write_text(capsys.readouterr().out)
        lines = [line.split("\t") for line in scores.read_text().splitlines()]
        rows = [[float(value) for value in found.split()] for _, found in lines]
        return lines_of(read_alignment(tmp_path / "links")), [float(score) for score, _ in lines], rows

    saved = ("--save-model", tmp_path / "model")
    assert hiero(*files, *training, "--symmetrize", "union", "--scores", scores, *saved) == 0
    links, logs, posteriors = read()
    assert list(map(len, links)) == list(map(len, posteriors))
    assert all(0 <= value <= 1 for row in posteriors for value in row)
    assert np.isnan(logs[-1])
    assert max(logs[:-1]) < 0
    values = sorted(value for row in posteriors for value in row)
    threshold = next(value for value in values if value > 0.4) + 0.0001
    assert hiero(*files, *training, "--threshold", threshold, "--scores", scores, *saved, "-j", 2) == 0
    chosen, again, certain = read()
    assert again == pytest.approx(logs, nan_ok=True)
    assert min(value for row in certain for value in row) >= threshold - 0.0001
    # All links of the union that are as certain.
    for row, kept, found in zip(links, chosen, posteriors, strict=True):
        assert {link for link, value in zip(row, found, strict=True) if value >= threshold + 0.0001} <= set(
            kept
        )
    # The model has the threshold.
    apply = ("apply", tmp_path / "model", *files, "--scores", scores)
    assert hiero(*apply, "-j", 2) == 0
    found = read()
    assert found[0] == chosen
    assert found[1] == pytest.approx(logs, nan_ok=True)
    assert found[2] == certain
    assert hiero(*apply, "--symmetrize", "union") == 0
    assert read()[0] == links
    assert hiero(*apply, "--threshold", 1) == 0
    assert sum(map(len, read()[0])) < sum(map(len, chosen))
    # Directional links do not depend on the threshold.
    directions = [tmp_path / name for name in ("forward", "again")]
    assert hiero(*files, *training, "--symmetrize", "none") == 0
    forward = capsys.readouterr().out
    assert hiero(*files, *training, "--threshold", 0.5, "--forward", directions[0]) == 0
    assert hiero(*apply, "--forward", directions[1]) == 0
    assert [path.read_text() for path in directions] == [forward] * 2
    capsys.readouterr()


@pytest.mark.heavy
def test_a_limit_of_memory_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hiero.alignment.align.BLOCK_CELLS", 100)
    monkeypatch.setattr("hiero.alignment.align.CELL_BYTES", 100_000)  # as if there were more cells
    src, tgt = small_bitext(tmp_path, 20 if INTERPRETED else 60)
    (tmp_path / "temp").mkdir()
    files = ("-q", "-s", src, "-t", tgt, "--model", "hmm", "--scores")
    assert hiero(*files, tmp_path / "whole") == 0
    links = capsys.readouterr().out
    assert hiero(*files, tmp_path / "pieces", "--memory", 100, "--temp", tmp_path / "temp") == 0
    assert capsys.readouterr().out == links
    assert (tmp_path / "pieces").read_bytes() == (tmp_path / "whole").read_bytes()
    assert hiero(*files, tmp_path / "none", "--memory", 100, "--temp", tmp_path / "no") == 1
    assert "no: temporary files cannot be written: no such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        hiero(*files, tmp_path / "none", "--memory", 5)
    assert "argument --memory: found 5, expected at least 100" in capsys.readouterr().err


def test_models_are_kept_with_care(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    src, tgt = small_bitext(tmp_path, 3)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert hiero("-s", src, "-t", tgt, "--save-model", tmp_path / "full") == 1
    expected = f"hiero: {tmp_path}/full: already exists and contains no hiero alignment model\n"
    assert capsys.readouterr().err.removeprefix("hiero: ") == expected.removeprefix("hiero: ")
    assert hiero("apply", tmp_path / "full", "-s", src, "-t", tgt) == 1
    assert "found no such file, expected a hiero alignment model" in capsys.readouterr().err
    assert hiero("-q", "-s", src, "-t", tgt, "-o", tmp_path / "out", "--save-model", tmp_path / "model") == 0
    (tmp_path / "short").write_bytes(b"a\n")
    assert hiero("apply", tmp_path / "model", "-s", src, "-t", tmp_path / "short") == 1
    expected = f"{tmp_path}/short:2: found the end of the file, expected a line, as there are more in {src}"
    assert capsys.readouterr().err.splitlines()[-1].startswith(expected)
    assert hiero("apply", tmp_path / "model", "-s", src) == 2
    assert "the target text is missing" in capsys.readouterr().err


def test_empty_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").write_text("a b\n\nc\n \n")
    (tmp_path / "tgt").write_text("x y\nz\n\n\n")
    assert hiero("-s", tmp_path / "src", "-t", tmp_path / "tgt", "--symmetrize", "union") == 0
    captured = capsys.readouterr()
    assert captured.out == "0-0 1-1\n\n\n\n"
    assert "hiero: 4 sentence pairs, 3 of them with an empty side; 2 links" in captured.err


def test_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "found").write_text("0-0 1-1 2-2\n\n")
    (tmp_path / "gold").write_text("0-0 1?1 3-3:p 4-4:s\n0-0\n")
    assert hiero("score", tmp_path / "found", tmp_path / "gold") == 0
    assert capsys.readouterr().out == (
        "AER 0.5000\nprecision 0.6667\nrecall 0.3333\nlinks 3\nsure 3\npossible 2\n"
    )


def test_scores_of_files_that_do_not_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "found").write_text("0-0\n")
    (tmp_path / "gold").write_text("0-0\n0-0\n")
    found, gold = tmp_path / "found", tmp_path / "gold"
    assert hiero("score", found, gold) == 1
    assert (
        capsys.readouterr().err == f"{found}:2: found the end of the file, expected 2 lines, as in {gold}\n"
    )
    assert hiero("score", gold, found) == 1
    assert capsys.readouterr().err == f"{gold}:2: found another line, expected 1 lines, as in {found}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "argument -s: the source text is missing"),
        (("-s", "a"), "argument -t: the target text is missing"),
        (
            ("-s", "-", "-t", "-"),
            "argument -t: standard input (-) can be read only once",
        ),
        (("-s", "a", "-t", "b", "--threshold", "2"), "argument --threshold: found 2.0, expected 0 to 1"),
        (
            ("-s", "a", "-t", "b", "--threshold", ".5", "--symmetrize", "union"),
            "argument --threshold: cannot be combined with --symmetrize",
        ),
        (("-s", "a", "-t", "b", "--null", "2"), "argument --null: found 2.0, expected 1e-06 to 0.999999"),
        (
            ("-s", "a", "-t", "b", "--hmm-iterations", "2"),
            "argument --hmm-iterations: requires --model hmm or fertility",
        ),
        (
            ("-s", "a", "-t", "b", "--no-hmm-agreement"),
            "argument --hmm-agreement: requires --model hmm or fertility",
        ),
        (
            ("-s", "a", "-t", "b", "--model", "hmm", "--seed", "2"),
            "argument --seed: requires --model fertility",
        ),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hiero(*arguments) == 2
    assert capsys.readouterr().err == f"hiero align: {message}\n"


def test_interrupts_and_errors_leave_no_partial_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    src, tgt = small_bitext(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert hiero("-s", src, "-t", tmp_path / "none", "-o", tmp_path / "out") == 1
    assert capsys.readouterr().err == f"{tmp_path}/none: found no such file, expected target text\n"
    assert hiero("-s", src, "-t", tgt, "-o", tmp_path / "no" / "out") == 1
    assert "no/out: found no such file, expected a writable path" in capsys.readouterr().err

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupt_in_allocation(*_: object) -> None:
        inner = SystemError("_numba_unpickle returned a result with an exception set")
        inner.__cause__ = KeyboardInterrupt()
        raise SystemError("CPUDispatcher returned a result with an exception set") from inner

    for one in (interrupt, interrupt_in_allocation):
        monkeypatch.setattr("hiero.alignment.align.ibm2_expect_kernel", one)
        assert hiero("-s", src, "-t", tgt, "-o", tmp_path / "out") == 130
        assert capsys.readouterr().err.endswith("hiero: interrupted\n")
        assert sorted(tmp_path.iterdir()) == before

    def fail_with_a_bug(*_: object) -> None:
        raise SystemError("something else")

    monkeypatch.setattr("hiero.alignment.align.ibm2_expect_kernel", fail_with_a_bug)
    with pytest.raises(SystemError, match="something else"):
        hiero("-s", src, "-t", tgt, "-o", tmp_path / "out")
