"""``hiero decode`` as a process: one line out per line in, one-line errors, no partial output."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hiero.cli.main import main
from hiero.config.model import bundled_path
from tests.conftest import INTERPRETED

# Shorter where kernels are interpreted.
ODD = "das haus\n\n[X,1] ||| \x00 a\n\u2028 x\n" + "wort " * (20 if INTERPRETED else 500) + "\n"
RULES = """\
[X] ||| das ||| the ||| p=0.5 ||| 0-0
[X] ||| haus ||| house ||| p=0.2 ||| 0-0
[X] ||| haus ||| home ||| p=1 ||| 0-0
[X] ||| buch ||| book ||| p=0.1 ||| 0-0
[X] ||| heute [X,1] die [X,2] ||| the [X,2] [X,1] today ||| p=0.1 ||| 0-3 2-0
[X] ||| kauft ||| buys ||| p=0.3 ||| 0-0
[X] ||| frau ||| woman ||| p=0.3 ||| 0-0
[X] ||| ein [X,1] ||| a [X,1] ||| p=0.2 ||| 0-0
[X] ||| . ||| . ||| p=0 ||| 0-0
"""
TEXT = "heute kauft die frau ein buch .\ndas haus\nein haus . das buch\nkauft haus buch das\n" * 3


def run(*arguments: str) -> int:
    return main(["decode", "-q", *arguments])


def written(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options for a model of a few rules, which loads fast even without compilation."""
    folder = tmp_path_factory.mktemp("small")
    grammar, weights = folder / "grammar", folder / "weights"
    grammar.write_text(RULES)
    weights.write_text("p -1\nGlue -0.1\nPassThrough -3\nWordPenalty -0.3\nLanguageModel 0.5\n")
    lm = Path(__file__).parents[1] / "data" / "tiny.arpa"
    return ["-g", str(grammar), "-w", str(weights), "-l", str(lm)]


@pytest.mark.parametrize("model", ["small", pytest.param("bundled", marks=pytest.mark.heavy)])
def test_one_line_out_per_line_in(
    model: str, small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "in", b"\xef\xbb\xbf" + ODD.encode() + b"\xff b")
    options = ["-i", source, "--pop-limit", "5", "-o", str(tmp_path / "out")]
    assert main(["decode", *options, *(small if model == "small" else [])]) == 0
    lines = (tmp_path / "out").read_bytes().decode().split("\n")
    assert lines.pop() == ""
    assert [bool(line) for line in lines] == [True, False, True, True, True, True]
    assert lines[0] == "the house"
    assert "|||" in lines[2].split(" ")
    assert "[X,1]" in lines[2].split(" ")
    assert "\x00" in lines[2]
    assert "\u2028" in lines[3]
    assert "\ufffd" in lines[5]
    assert "1 line was not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("style", ["text", "cdec", "moses", "json"])
def test_output_does_not_depend_on_threads(style: str, small: list[str], tmp_path: Path) -> None:
    source = written(tmp_path / "in", TEXT)
    assert_equal_output_with_threads(tmp_path, "-i", source, "--format", style, "--kbest", "3", *small)


@pytest.mark.slow
@pytest.mark.heavy
def test_output_of_many_sentences_does_not_depend_on_threads(tmp_path: Path) -> None:
    assert_equal_output_with_threads(tmp_path, "-i", str(bundled_path("demo.dev.de")), "--kbest", "3")


def assert_equal_output_with_threads(folder: Path, *options: str) -> None:
    outputs = []
    for threads in ("1", "3"):
        path = folder / f"out.{threads}"
        assert run(*options, "-o", str(path), "-j", threads) == 0
        outputs.append(path.read_bytes())
    assert outputs[0] == outputs[1] != b""


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("-g", "[X] ||| a ||| b ||| x=nan\n", "bad:1: found 'nan', expected a number"),
        ("-g", "[X] ||| a\n", "bad:1: found"),
        ("-g", gzip.compress(b"[X] ||| a ||| b ||| x=1\n" * 2000)[:-20], "bad:"),
        ("-w", "a 1\nb nan\n", "bad:2: found"),
        ("-l", "no language model\n", "bad:"),
        ("-c", "search: {pop_limt: 3}\n", "did you mean 'pop_limit'?"),
        ("-c", "search: {pop_limit: much}\n", "pop_limit: found 'much', expected a whole number"),
        ("-c", "search: [\n", "bad:"),
        ("-i", '<seg grammar="none.gz"> a </seg>\n', "none.gz: found no such file"),
        ("-i", "<seg id=1 id=2> a </seg>\n", "bad:1: found"),
    ],
)
def test_errors_are_one_line(
    small: list[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    option: str,
    content: str | bytes,
    message: str,
) -> None:
    bad, out = written(tmp_path / "bad", content), tmp_path / "out"
    arguments = [option, bad, "-o", str(out)]
    arguments += small if option == "-i" else ["-i", written(tmp_path / "in", "a\n")]
    assert run(*arguments) == 1
    said = [line for line in capfd.readouterr().err.split("\n") if line and "no weights" not in line]
    assert len(said) == 1
    assert message in said[0]
    assert not out.exists()


@pytest.mark.parametrize("option", ["-g", "-l", "-w", "-c", "-i"])
def test_missing_files(
    small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str], option: str
) -> None:
    model = small if option == "-i" else []
    assert run(option, str(tmp_path / "none"), "-o", str(tmp_path / "out"), *model) == 1
    assert "none: found no such file" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_forests_statistics_and_derivations(small: list[str], tmp_path: Path) -> None:
    source = written(tmp_path / "in", "heute kauft die frau ein buch .\n")
    forests, stats, out = tmp_path / "forests", tmp_path / "stats.json", tmp_path / "out.gz"
    options = ["--forest", str(forests), "--stats", str(stats), "--format", "json"]
    assert run("-i", source, "-o", str(out), *options, *small) == 0
    record = json.loads(gzip.decompress(out.read_bytes()))
    best = record["translations"][0]
    assert best["derivation"][0]["source"] == [0, 7]
    assert len(list(forests.iterdir())) == 1
    numbers = json.loads(stats.read_text())
    wanted = {"sentences", "words", "mean_score", "decode_cpu_s", "load_s", "extract_s", "compile_s"}
    assert wanted | {"pops", "nodes", "edges", "peak_rss_mb"} <= numbers.keys()
    assert numbers["mean_score"] == pytest.approx(best["score"], rel=1e-8)


@pytest.mark.slow
@pytest.mark.heavy
def test_killed_and_resumed(tmp_path: Path) -> None:
    source = str(bundled_path("demo.dev.de"))
    whole, out = tmp_path / "whole", tmp_path / "out"
    options = ["-i", source, "--kbest", "5", "--pop-limit", "500"]
    assert run(*options, "-o", str(whole)) == 0
    command = [sys.executable, "-m", "hiero.cli.main", "decode", "-q", *options, "-o", str(out)]
    part = tmp_path / "out.part"
    process = subprocess.Popen(command, env=dict(os.environ))
    deadline = time.monotonic() + 120
    while not (part.exists() and part.stat().st_size > 2000) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run(*options, "-o", str(out), *([] if out.exists() else ["--resume"])) == 0
    assert out.read_bytes() == whole.read_bytes()
    assert not part.exists()
