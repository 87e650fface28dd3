"""``hiero serve``: its arguments."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hiero.cli.main import main
from tests.worlds.server import write_models

pytest.importorskip("uvicorn", reason="the server needs it")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "a b=x"], 2, "argument --model: found the name 'a b', expected letters and digits"),
        (["-c", "words.yaml", "-c", "words.yaml"], 2, "argument --model: two models have the name words"),
        (["-c", "none.yaml"], 1, "none.yaml: found no such file"),
        (["-c", "words.yaml", "--truecase", "words.yaml"], 2, "the model words is not one of raw text"),
        (["-c", "raw.yaml", "--truecase", "x=raw.yaml"], 2, "found the model 'x', expected one of raw"),
        (["--max-words", "0"], 2, "argument --max-words: found 0, expected at least 1"),
        (["--port", "70000"], 2, "argument --port: found 70000, expected 0 to 65535"),
        (["--host", "no.such.host.invalid"], 1, "no.such.host.invalid:5000: cannot listen: "),
    ],
)
def test_mistakes(
    folder: Path,
    arguments: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    more = [] if {"--host", "--port"} & {*arguments} else ["--port", "0"]
    assert main(["serve", *arguments, *more]) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not logging.getLogger("hiero.server").handlers  # which would write to the stream of this test


def test_names_of_models(folder: Path) -> None:
    from hiero.server.models import specs_of

    assert [spec.name for spec in specs_of(["x=a/model.yaml", "demo.run/model.yaml", "b/fr-en.hiero"])] == [
        "x",
        "demo",
        "fr-en",
    ]
    assert [(spec.name, spec.path) for spec in specs_of([])] == [("de-en", None)]
    (spec,) = specs_of(["x=a"], ["list"])
    assert spec.truecase == "list"


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hiero.cli.serve.find_spec", lambda name: None)
    assert main(["serve"]) == 1
    expected = "hiero serve needs starlette and uvicorn: pip install 'hiero-mt[serve]'\n"
    assert capsys.readouterr().err == expected
