"""``hiero init``: configurations that run with the given files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiero.cli.main import main
from hiero.config.config import read_config

Capture = pytest.CaptureFixture[str]
PAPERS = ("000-iterselsgd", "000-sgd", "001-mira", "002-adagrad", "003", "004")


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("corpus", "dev", "test", "my file"):
        for language in ("fr", "en"):
            (tmp_path / f"{name}.{language}").write_text("a b\nc d\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


BITEXT = ("--source", "corpus.fr", "--target", "corpus.en")


def test_two_files_of_ones_own(texts: Path, capsys: Capture) -> None:
    assert main(["init", "work", *BITEXT, "--set", "test", "my file.fr", "my file.en"]) == 0
    assert capsys.readouterr().err == (
        "hiero: work/own-bitext.yaml is written; hiero run work/own-bitext.yaml --dry-run shows the stages\n"
    )
    assert sorted(path.name for path in (texts / "work").iterdir()) == ["own-bitext.yaml", "weights.dense"]
    config = read_config(texts / "work" / "own-bitext.yaml")
    train = config.data["train"]
    assert (train.source, train.target) == (str(texts / "corpus.fr"), str(texts / "corpus.en"))
    assert config.data["test"].source == str(texts / "my file.fr")
    assert config.data.keys() == {"train", "test"}
    assert config.prep is not None
    assert (config.prep.source_language, config.prep.target_language) == ("fr", "en")
    text = (texts / "work" / "own-bitext.yaml").read_text()
    assert "  # dev:\n" in text
    assert main(["run", "work/own-bitext.yaml", "--dry-run"]) == 0
    assert "decode:test: would run" in capsys.readouterr().out


@pytest.mark.parametrize("paper", PAPERS)
def test_papers(texts: Path, paper: str, capsys: Capture) -> None:
    sets = [word for name in ("dev", "devtest") for word in ("--set", name, "dev.fr", "dev.en")]
    assert main(["init", *BITEXT, *sets, "--paper", paper, "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["run", f"paper-{paper}.yaml", "--dry-run"]) == 0
    stages = capsys.readouterr().out
    assert "\ngrid" in stages if paper == "003" else "\ntune: would run" in stages


def test_sets_that_are_not_given(texts: Path, capsys: Capture) -> None:
    assert main(["init", *BITEXT, "--set", "dev", "dev.fr", "dev.en", "--paper", "003"]) == 0
    assert "enter the files of devtest in it" in capsys.readouterr().err
    config = read_config("paper-003.yaml")
    assert config.data["devtest"].source == "devtest.src.gz"
    assert config.data["train"].alignment is None


def test_every_paper_is_listed(texts: Path, capsys: Capture) -> None:
    assert main(["init", *BITEXT, "--paper", "000"]) == 2
    assert capsys.readouterr().err == (
        "hiero init: argument --paper: unknown paper '000'; "
        "one of 000-iterselsgd, 000-sgd, 001-mira, 002-adagrad, 003, 004, 004-phrase\n"
    )


def test_languages_of_raw_text(texts: Path, capsys: Capture) -> None:
    """From the names of files, or given; without either, nothing is written."""
    for side in ("src", "trg"):
        (texts / f"train.{side}").write_text("A b, c.\nD e.\n")
    files = ("--source", "train.src", "--target", "train.trg")
    assert main(["init", *files]) == 2
    assert capsys.readouterr().err == (
        "hiero init: found no language in the name of train.src: --languages SRC TGT names them, "
        "and --tokenized is for text that is split into words\n"
    )
    assert not (texts / "own-bitext.yaml").exists()
    assert main(["init", *files, "--languages", "ja", "pt-br"]) == 0
    prep = read_config("own-bitext.yaml").prep
    assert prep is not None
    assert (prep.source_language, prep.target_language) == ("ja", "pt-br")
    with pytest.raises(SystemExit):
        main(["init", "x", *files, "--languages", "ja", "Brazilian"])
    assert "found 'Brazilian', expected a code of a language such as de" in capsys.readouterr().err
    assert main(["init", "x", *files, "--paper", "001-mira"]) == 0  # its text is tokenised


def test_text_that_is_tokenized(texts: Path, capsys: Capture) -> None:
    (texts / "train.src").write_text("ein haus .\nder mann schläft .\n" * 60)
    assert (
        main(["init", "one", "--source", "train.src", "--target", "corpus.en", "--languages", "de", "en"])
        == 0
    )
    assert "train.src: looks tokenized (then leave out prep by --tokenized)\n" in capsys.readouterr().err
    assert main(["init", "two", "--source", "train.src", "--target", "corpus.en", "--tokenized"]) == 0
    assert "looks tokenized" not in capsys.readouterr().err
    config = read_config("two/own-bitext.yaml")
    assert config.prep is None
    text = Path("two/own-bitext.yaml").read_text()
    assert "raw text" not in text.partition("\nalign:")[0]
    assert "# Word alignment" in text
    assert main(["run", "two/own-bitext.yaml", "--dry-run"]) == 0


def test_mistakes(texts: Path, capsys: Capture) -> None:
    assert main(["init", *BITEXT, "-q"]) == 0
    assert main(["init", *BITEXT]) == 1
    found = "found a file, expected a new one (FOLDER names another place)"
    assert capsys.readouterr().err == f"own-bitext.yaml: {found}\n"
    assert main(["init", "--source", "corpus.fr", "--target", "none"]) == 1
    assert capsys.readouterr().err == "none: found no such file, expected text, a sentence on each line\n"
    assert main(["init", "x", *BITEXT, "--set", "train", "dev.fr", "dev.en"]) == 2
    assert "train is given twice" in capsys.readouterr().err
