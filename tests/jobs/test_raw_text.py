"""Raw text in and out of models: what hiero decode and hiero serve make of the section ``prep``."""

from __future__ import annotations

import io
import json
import pickle
import sys
from pathlib import Path

import pytest

import hiero
from hiero.bitext.compounds import Compounds
from hiero.bitext.config import CompoundConfig
from hiero.cli.main import main
from hiero.config.sections import PrepSection
from hiero.core.errors import ConfigError, HieroError
from hiero.jobs.raw_text import RawText, without_compounds
from hiero.jobs.resumable_output import ResumableOutput
from tests.worlds.server import write_models

Capture = pytest.CaptureFixture[str]
RAW = "Das Haus ist alt.\nHaus\n"


@pytest.fixture
def compounds(tmp_path: Path) -> str:
    """A model that splits Haustür, and others of the same parts."""
    found = Compounds.learn(["Haus Tür Tor"] * 4 + ["Haustür Türtor"], CompoundConfig(min_length=3))
    found.write(tmp_path / "compounds.gz")
    return str(tmp_path / "compounds.gz")


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    pytest.importorskip("sacremoses", reason="Moses' tokeniser needs it")
    return write_models(tmp_path / "models")


def test_words_and_text_with_compounds(compounds: str) -> None:
    prep = PrepSection(
        tokenize=False,
        split_compounds="lattice",
        source_compounds=compounds,
        split_compounds_target="marked",
        target_compounds=compounds,
    )
    raw = RawText(prep)
    found = raw.segment("Die  Haustür")
    assert found.lattice is not None
    assert found.words == ("Die", "Haus", "Haustür", "Tür")
    assert raw.segment("die Tür").lattice is None
    assert raw.target_words("Haustür auf") == ("Haus@@", "tür", "auf")
    assert raw.text("Haus@@ tür auf") == "Haustür auf"
    assert raw.text("") == ""
    best = RawText(PrepSection(tokenize=False, split_compounds="best", source_compounds=compounds))
    assert best.segment("Haustür auf").words == ("Haus", "Tür", "auf")
    assert best.text("Haus@@ tür") == "Haus@@ tür"
    whole = RawText(without_compounds(prep))
    assert whole.segment("Haustür").words == ("Haustür",)


def test_a_missing_model_of_compounds() -> None:
    with pytest.raises(ConfigError, match=r"prep: target_compounds is missing, the model that splits"):
        RawText(PrepSection(tokenize=False, split_compounds_target="marked"))


def test_capitals(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("Haus\n")
    raw = RawText(PrepSection(tokenize=False, lowercase=True), str(tmp_path / "list"))
    assert raw.segment("Das HAUS").words == ("das", "haus")
    assert raw.text("das haus") == "Das Haus"
    assert RawText(PrepSection(tokenize=False)).text("das haus") == "das haus"


def test_which_lines_are_prepared() -> None:
    lower = RawText(PrepSection(tokenize=False, lowercase=True))
    assert lower.is_prepared("das haus .")
    assert lower.is_prepared("")
    assert not lower.is_prepared("das Haus .")
    pytest.importorskip("sacremoses", reason="Moses' tokeniser needs it")
    moses = RawText(PrepSection(source_language="de", target_language="en"))
    assert moses.is_prepared("das Haus , das alt ist .")
    assert moses.is_prepared("Kapitel eins")
    assert not moses.is_prepared("Das Haus ist alt.")


# ---- in Python


def test_raw_text_of_a_model(tmp_path: Path) -> None:
    """By a configuration as a file, as its content, or in a package."""
    content = {"prep": {"tokenize": False, "lowercase": True, "source_language": "de"}}
    (tmp_path / "list").write_text("House\n")
    raw = hiero.RawText.load(content, tmp_path / "list")
    assert repr(raw) == "<RawText: de-?>"
    assert raw.segment("Das HAUS").words == ("das", "haus")
    assert raw.text("house") == raw.text(("house",)) == "House"
    other = pickle.loads(pickle.dumps(raw))
    assert (repr(other), other.text("house")) == (repr(raw), "House")
    with pytest.raises(ConfigError, match=r"^the model has no section prep"):
        hiero.RawText.load({})


def test_translations_in_python_are_those_of_decode(paths: dict[str, Path], tmp_path: Path) -> None:
    package = tmp_path / "raw.hiero"
    assert main(["pack", str(paths["raw"]), "-o", str(package), "-q"]) == 0
    for config in (paths["raw"], package):
        model, raw = hiero.load(config), hiero.RawText.load(config)
        found = [raw.text(model.translate(raw.segment(line)).text) for line in RAW.splitlines()]
        assert found == ["The house is old.", "House"]
    with pytest.raises(ConfigError, match=rf"^{paths['words']}: the model has no section prep"):
        hiero.RawText.load(paths["words"])


# ---- hiero decode


def decode(model: Path, text: str, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return main(["decode", "-c", str(model), *more])


def test_decode_raw(
    paths: dict[str, Path], tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are prepared and translations joined, in order, for any number of threads."""
    for threads in ("1", "2"):
        assert decode(paths["raw"], RAW, monkeypatch, "--raw", "-j", threads) == 0
        found = capfd.readouterr()
        assert found.out == "The house is old.\nHouse\n"
        assert "raw text" not in found.err
    (tmp_path / "list").write_text("House\n")
    assert decode(paths["raw"], RAW, monkeypatch, "--raw", "--truecase", str(tmp_path / "list"), "-q") == 0
    assert capfd.readouterr().out == "The House is old.\nHouse\n"
    # A line is nothing but text.
    assert decode(paths["raw"], '<seg id="7">haus\n\n(((\n', monkeypatch, "--raw", "-q") == 0
    assert capfd.readouterr().out.count("\n") == 3
    more = ["--raw", "-q", "--format", "json", "--kbest", "2"]
    assert decode(paths["raw"], RAW, monkeypatch, *more) == 0
    first = json.loads(capfd.readouterr().out.splitlines()[0])
    assert first["source"] == ["das", "haus", "ist", "alt", "."]
    texts = [one["text"] for one in first["translations"]]
    assert texts == ["The house is old.", "The home is old."]
    assert first["translations"][0]["words"] == ["the", "house", "is", "old", "."]


def test_decode_resumes_raw_text(
    paths: dict[str, Path], tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output of raw text is not continued with words, nor with another list of capitals."""
    out, capitals = tmp_path / "out", tmp_path / "list"
    (tmp_path / "in").write_text(RAW)
    given = ["decode", "-c", str(paths["raw"]), "-i", str(tmp_path / "in"), "-o", str(out), "-q"]
    assert main([*given, "--raw"]) == 0
    made = out.read_text()
    state = tmp_path / "out.part.state"

    def stop(output: ResumableOutput) -> None:
        output.close()
        raise HieroError("stopped")

    with monkeypatch.context() as patched:
        patched.setattr("hiero.jobs.resumable_output.ResumableOutput.finish", stop)
        assert main([*given, "--raw"]) == 1
    out.rename(tmp_path / "out.before")
    assert state.exists()
    capitals.write_text("House\n")
    for other in ([], ["--raw", "--truecase", str(capitals)]):
        capfd.readouterr()
        assert main([*given, *other, "--resume"]) == 1
        assert "made with other settings" in capfd.readouterr().err
    assert main([*given, "--raw", "--resume"]) == 0
    assert out.read_text() == made


def test_raw_lines_without_raw_are_said(
    paths: dict[str, Path], capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = "looks like raw text, but the model translates prepared words (--raw prepares lines"
    assert decode(paths["raw"], "das haus .\n" + RAW * 3, monkeypatch) == 0
    found = capfd.readouterr().err
    assert found.count("raw text") == 1
    assert f"<stdin>:2: {expected}" in found
    for model, text in (("raw", "das haus ist alt .\n\nhaus\n"), ("words", RAW)):
        assert decode(paths[model], text, monkeypatch) == 0
        assert "raw text" not in capfd.readouterr().err
    assert decode(paths["raw"], "Das Haus. ||| the house\n", monkeypatch, "--force") == 0
    assert (
        "raw text, but the model translates prepared words (hiero prep makes them)" in capfd.readouterr().err
    )


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        ("words", "--raw", "argument --raw: the model has no section prep"),
        ("raw", "--truecase list", "argument --truecase: requires --raw"),
        ("raw", "--raw --kbest 3", "argument --raw: not with --format cdec"),
        ("raw", "--raw --format align", "argument --raw: not with --format align"),
        ("raw", "--raw --force", "argument --raw: not with --force or --prefix"),
        ("raw", "--raw --partial-word", "argument --raw: not with --force or --prefix"),
        ("raw", "--raw --adapt", "argument --raw: not with --adapt"),
        ("raw", "--raw --input-format plf", "argument --raw: not with --input-format plf"),
        ("raw", "--raw --markup exclusive", "argument --raw: not with --markup exclusive"),
    ],
)
def test_what_raw_does_not_go_with(
    paths: dict[str, Path],
    capfd: Capture,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    more: str,
    message: str,
) -> None:
    monkeypatch.chdir(paths[model].parent)
    Path("list").write_text("House\n")
    assert decode(paths[model], RAW, monkeypatch, *more.split()) == 2
    assert message in capfd.readouterr().err
