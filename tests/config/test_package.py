"""Models as single files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import hiero
from hiero.cli.main import main
from hiero.config.config import read_config
from hiero.config.package import CARD, CONFIG, META, read_package, unpacked
from hiero.core.errors import HieroError
from hiero.jobs.pack import write_package

RULES = "[X] ||| a ||| A ||| p=1\n[X] ||| b ||| B ||| p=2 q=1\n[X] ||| b ||| C ||| p=1\n"
SETTINGS = """\
grammar: [{path: one/rules}, {path: two/rules}]
weights: {path: weights}
features: {templates: [shape]}
search: {pop_limit: 7}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a small model; packages are unpacked below CACHE/models."""
    monkeypatch.setattr("hiero.core.jit.CACHE_DIRECTORY", str(tmp_path / "cache" / "kernels"))
    for folder, rules in (("one", RULES), ("two", "[X] ||| c ||| c' ||| p=0.5\n")):
        (tmp_path / "model" / folder).mkdir(parents=True)
        (tmp_path / "model" / folder / "rules").write_text(rules)
    (tmp_path / "model" / "weights").write_text("p -1\nq 0.5\nWordPenalty -0.1\nPassThrough -5\nGlue -0.1\n")
    path = tmp_path / "model" / "model.yaml"
    path.write_text(SETTINGS)
    return path


def pack(*arguments: object) -> int:
    return main(["pack", *map(str, arguments)])


def test_a_package_has_what_prepares_text(config: Path, tmp_path: Path) -> None:
    """Without the limits of training data."""
    prep = "prep: {tokenizer: sentencepiece, sentencepiece_model: pieces, lowercase: true, max_words: 3}\n"
    config.write_text(config.read_text() + prep)
    (config.parent / "pieces").write_text("x")
    assert pack("-q", config, "-o", tmp_path / "raw.hiero") == 0
    found = read_config(tmp_path / "raw.hiero").prep
    assert found is not None
    assert (found.tokenizer, found.lowercase, found.max_words) == ("sentencepiece", True, 80)
    assert Path(str(found.sentencepiece_model)).read_text() == "x"


def test_a_package_translates_as_its_model(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "small.hiero"
    assert (
        pack(config, "-o", made, "--name", "Small", "--licence", "CC0", "--description", "For a test.") == 0
    )
    assert capsys.readouterr().err == f"hiero: {made} has 5 files, 0.0 MB unpacked\n"
    again = tmp_path / "again.hiero"
    assert (
        pack("-q", config, "-o", again, "--name", "Small", "--licence", "CC0", "--description", "For a test.")
        == 0
    )
    assert made.read_bytes() == again.read_bytes()

    expected = hiero.load(config).translate("a b c")
    assert expected.text == "A C c'"
    config.unlink()
    for _ in range(2):  # unpacked, and found
        found = hiero.load(made).translate("a b c")
        assert (found.text, found.score) == (expected.text, expected.score)
    assert read_config(made).search.pop_limit == 7
    assert len(list((tmp_path / "cache" / "models").iterdir())) == 1

    assert pack("--show", made) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# Small\n\nFor a test.\n")
    assert "| licence | CC0 |" in shown
    assert "files/2.rules" in shown
    assert pack("--extract", made, "-o", tmp_path / "out") == 0
    assert hiero.load(tmp_path / "out" / CONFIG).translate("a b c").score == expected.score
    assert (tmp_path / "out" / "files" / "2.rules").read_text() == "[X] ||| c ||| c' ||| p=0.5\n"


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Change the files of a package, which keeps its list of them unless that is changed, too."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def with_meta(**changes: object) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        files[META] = json.dumps(json.loads(files[META]) | changes).encode()

    return change


def rename_weights(files: dict[str, bytes]) -> None:
    meta = json.loads(files[META])
    meta["files"]["files/../../escaped"] = meta["files"].pop("files/weights")
    files["files/../../escaped"] = files.pop("files/weights")
    files[META] = json.dumps(meta).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files: files.update({"files/weights": b"p 1\n"}), "found damage in files/weights"),
        (lambda files: files.update({"files/weights": b"p 1\n" * 99}), "found damage in files/weights"),
        (lambda files: files.update({"files/more": b""}), "found other files than listed"),
        (lambda files: files.pop("files/weights"), "found other files than listed"),
        (lambda files: files.pop(META), "found damage, or another archive"),
        (rename_weights, "found a file named files/../../escaped"),
        (with_meta(format="docx"), "found another archive"),
        (with_meta(version=2), "found version 2, expected version 1"),
        (with_meta(files=3), "found an incomplete package.json"),
        (with_meta(files={"x": {"bytes": "many"}}), "found an incomplete package.json"),
    ],
)
def test_files_of_strangers_are_checked(
    config: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], message: str
) -> None:
    made = tmp_path / "small.hiero"
    assert pack("-q", config, "-o", made) == 0
    rewritten(made, change)
    with pytest.raises(HieroError) as error:
        unpacked(made)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("cache/models/*"))


def test_truncated(config: Path, tmp_path: Path) -> None:
    made = tmp_path / "small.hiero"
    assert pack("-q", config, "-o", made) == 0
    data = made.read_bytes()
    for length in range(4, len(data), 37):
        made.write_bytes(data[:length])
        with pytest.raises(HieroError, match="found damage, or another archive"):
            hiero.load(made)
    for place in range(30, len(data), 19):
        made.write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
        try:
            model = hiero.load(made)
        except HieroError:
            continue
        assert model.translate("a b c").text == "A C c'"  # in a date, or the like


def test_mistakes(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "small.hiero"
    assert pack(config) == 2
    assert capsys.readouterr().err == "hiero pack: argument -o is missing\n"
    assert pack("--show", config, "-o", made) == 2
    assert "not allowed with" in capsys.readouterr().err
    capsys.readouterr()
    (tmp_path / "empty").mkdir()
    assert pack(tmp_path / "empty", "-o", made) == 1
    assert "found no model.yaml, expected the directory of a hiero run" in capsys.readouterr().err
    (tmp_path / "model" / "weights").unlink()
    assert pack(config, "-o", made) == 1
    assert "weights: found no such file" in capsys.readouterr().err
    assert pack("--show", tmp_path / "none") == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_package_says_what_it_has(config: Path, tmp_path: Path) -> None:
    made = write_package(read_config(config), tmp_path / "p", name="n", licence="l", card="# n\n")
    assert read_package(tmp_path / "p") == made
    assert {CARD, CONFIG, "files/rules", "files/2.rules", "files/weights"} == set(made.files)
