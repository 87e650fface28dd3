"""``hiero decode`` as a process: one line out per line in, one-line errors, no partial output."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hiero.cli.main import main
from hiero.config.model import bundled_path
from tests.conftest import INTERPRETED
from tests.worlds.small_model import small_model

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
    return small_model(tmp_path_factory.mktemp("small"), RULES)


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
    number = "0" if style == "text" else "3"
    assert_equal_output_with_threads(tmp_path, "-i", source, "--format", style, "--kbest", number, *small)


def test_lists_have_no_room_in_plain_text(
    small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "in", TEXT)
    config = written(tmp_path / "config", "search: {kbest: 3}\n")
    for more in (["--kbest", "3"], ["-c", config]):
        assert run("-i", source, "--format", "text", *small, *more) == 2
        captured = capfd.readouterr()
        assert captured.out == ""
        message = "argument --format: text has no room for the translations of --kbest 3"
        assert captured.err == f"hiero decode: {message} (cdec, moses and json have)\n"
    assert run("-i", source, "--format", "text", *small, "-c", config, "--kbest", "0") == 0


def test_references_outside_of_tags_are_told_once(
    small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = ["das", "das haus ||| the house", "<seg>das</seg> ||| the", "buch ||| book"]
    source = written(tmp_path / "in", "".join(f"{line}\n" for line in lines))
    assert main(["decode", "-i", source, *small]) == 0
    captured = capfd.readouterr()
    assert captured.out.splitlines() == ["the", "the house ||| the house", "the", "book ||| book"]
    notes = [line for line in captured.err.splitlines() if "|||" in line]
    assert notes[0].startswith(f"hiero: {source}:2: the words from ||| on are translated as well (")
    assert len([note for note in notes if "are translated as well" in note]) == 1


def notes_of(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[str]:
    """The messages of a run, but for those on compiling and at the end."""
    capfd.readouterr()
    assert main(["decode", *arguments]) == code
    lines = capfd.readouterr().err.splitlines()
    return [line for line in lines if "compiling" not in line and "translated in" not in line]


def test_a_line_at_the_end(small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, out = written(tmp_path / "in", "das haus\nein haus\n"), str(tmp_path / "out")
    assert main(["decode", "-i", source, "-o", out, *small]) == 0
    last = capfd.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"hiero: 2 sentences translated in \d+\.\d s, mean score -?\d+\.\d{3}", last)
    made = Path(out).read_bytes()
    # A complete output is not made again.
    assert main(["decode", "-i", source, "-o", out, *small, "--resume"]) == 0
    assert capfd.readouterr().err == (
        f"hiero: {out}: the output is complete, nothing to resume (remove it to start again)\n"
    )
    assert Path(out).read_bytes() == made


def test_weights_that_do_not_fit(small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path / "in", "das haus\n<seg id='2'>ein haus</seg>\n")
    weights = written(tmp_path / "weights", "p -1\nGlue -0.1\nLanguageModle 0.5\n")
    options = ["-i", source, *small, "-w", weights]
    expected = (
        f"{weights}: the weight LanguageModle names no feature of the model; the language model "
        "LanguageModel has no weight (is 'LanguageModle' meant for 'LanguageModel'?)"
    )
    assert notes_of(capfd, "-i", source, *small) == []
    assert notes_of(capfd, *options) == [f"hiero: {expected}"]
    assert notes_of(capfd, *options, "-q") == []
    out = tmp_path / "out"
    assert notes_of(capfd, *options, "--strict", "-q", "-o", str(out), code=1) == [expected]
    assert not out.exists()
    config = written(tmp_path / "config", "strict: true\n")
    assert notes_of(capfd, *options, "-c", config, code=1) == [expected]
    # Another name of the model, and none.
    lm = small[small.index("-l") + 1]
    (note,) = notes_of(capfd, "-i", source, *small[:4], "-l", f"LM={lm}")
    assert "the weight LanguageModel names no feature" in note
    assert note.endswith("the language model LM has no weight (is 'LanguageModel' meant for 'LM'?)")
    (note,) = notes_of(capfd, "-i", source, *small[:4])
    assert note.endswith("the weight LanguageModel names no feature of the model")


def test_weights_and_grammars_of_sentences(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All features are known after the last sentence."""
    written(tmp_path / "one", RULES)
    written(tmp_path / "two", "[X] ||| das ||| the ||| q=1 r=2\n")
    tagged = '<seg grammar="one">das haus</seg>\n<seg grammar="two">das</seg>\n'
    source = written(tmp_path / "in", tagged)
    weights = written(tmp_path / "weights", "p -1\nq -1\nGlue 1\n")
    assert notes_of(capfd, "-i", source, "-w", weights) == [
        f"hiero: {weights}: the dense feature r has no weight"
    ]
    weights = written(tmp_path / "weights", "p -1\nq -1\nrr -1\nGlue 1\nPassThrough -1\n")
    expected = (
        f"{weights}: the weight rr names no feature of the model; the dense feature r has no weight "
        "(is 'rr' meant for 'r'?)"
    )
    assert notes_of(capfd, "-i", source, "-w", weights) == [f"hiero: {expected}"]
    assert notes_of(capfd, "-i", source, "-w", weights, "--strict", "-o", str(tmp_path / "out"), code=1) == [
        expected
    ]
    assert list(tmp_path.glob("out*")) == []
    fits = written(tmp_path / "weights", "p -1\nq -1\nr -1\nGlue 1\n")
    assert notes_of(capfd, "-i", source, "-w", fits) == []


def test_weights_and_grammars_of_sentences_of_an_earlier_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A resumed run reads the grammars of earlier lines, if these may explain a weight."""
    written(tmp_path / "one", RULES)
    written(tmp_path / "two", "[X] ||| das ||| the ||| q=1 s=1\n")
    lines = [f'<seg grammar="{name}">das haus</seg>\n' for name in ("one", "two", "three")]
    source, out = written(tmp_path / "in", "".join(lines)), tmp_path / "out"

    def resumed(weights: str, *, code: int = 0) -> list[str]:
        written(tmp_path / "three", "broken\n")
        out.unlink(missing_ok=True)
        options = ["-i", source, "-o", str(out), "-w", written(tmp_path / "weights", weights)]
        options += ["--strict"] * code
        assert "2 lines are" in notes_of(capfd, *options, code=1)[0]
        written(tmp_path / "three", "[X] ||| das ||| the ||| p=1\n")
        notes = notes_of(capfd, *options, "--resume", code=code)
        return [note.removeprefix("hiero: ").removeprefix(f"{tmp_path}/") for note in notes]

    assert resumed("p -1\nq -1\ns -1\nGlue 1\n") == []
    assert resumed("p -1\nq -1\ns -1\nt 1\n") == ["weights: the weight t names no feature of the model"]
    assert out.exists()
    assert resumed("t 1\n", code=1)[0].startswith("weights: the weight t names no feature")
    assert list(tmp_path.glob("out*")) == []


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
        (
            "-i",
            '<seg grammar="/etc/passwd"> a </seg>\n',
            "found the grammar '/etc/passwd', expected a path inside",
        ),
        (
            "-i",
            'a\n<seg grammar="../in"> a </seg>\n',
            "bad:2: found the grammar '../in', expected a path inside",
        ),
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


FEATURE = """\
from hiero import rule_feature
print("imported")

@rule_feature
def ours(rules):
    return {"Ours": [1.0] * len(rules)}
"""


@pytest.mark.parametrize("how", ["configuration", "with --user-code", "flag"])
def test_the_working_directory_is_searched_for_modules_on_request(
    small: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    how: str,
) -> None:
    """A configuration from others may name any module."""
    monkeypatch.chdir(tmp_path)
    name = f"features_{how.split()[-1].strip('-').replace('-', '_')}"
    written(tmp_path / f"{name}.py", FEATURE)
    written(tmp_path / "in", "das haus\n")
    listed = "[]" if how == "flag" else f"['{name}:ours']"
    config = written(tmp_path / "config.yaml", f"features: {{templates: {listed}}}\n")
    options = {"flag": ["--features", f"{name}:ours"], "with --user-code": ["--user-code"]}.get(how, [])
    code = run("-c", config, "-i", "in", "-o", "out", *options, *small)
    captured = capfd.readouterr()
    if how == "configuration":
        assert code == 1
        assert captured.out == ""
        assert "(--user-code searches the working directory for it)" in captured.err
    else:
        assert code == 0
        assert captured.out == "imported\n"
    assert str(tmp_path) not in sys.path


BROKEN = ["<seg > he", "<seg id=1 id=2> a </seg>", "<seg gramar=x>a</seg>", '<seg id="1" das</seg>']


@pytest.mark.parametrize("style", ["text", "cdec", "json"])
def test_malformed_markup_costs_its_line(
    small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str], style: str
) -> None:
    source = written(tmp_path / "in", "\n".join(["das haus", *BROKEN, "<seg>das buch</seg>"]) + "\n")
    out, forests = tmp_path / "out", tmp_path / "forests"
    options = ["-i", source, "-o", str(out), "--format", style, "--forest", str(forests)]
    assert main(["decode", *options, "-j", "2", *small]) == 0
    said = [line for line in capfd.readouterr().err.split("\n") if "its translation is empty" in line]
    assert [line.partition(": found")[0] for line in said] == [f"hiero: {source}:{n}" for n in (2, 3, 4, 5)]
    lines = out.read_text().split("\n")
    if style == "text":
        assert lines == ["the house", "", "", "", "", "the book", ""]
    elif style == "cdec":
        assert [line.partition(" ||| ")[0] for line in lines] == ["0", "5", ""]
    else:
        found = [json.loads(line)["translations"] for line in lines[:-1]]
        assert [len(translations) for translations in found] == [1, 0, 0, 0, 0, 1]
    assert len(list(forests.iterdir())) == 6


LATTICES = """\
((('das',0,1),),(('haus',1,1),('buch',2,1),),)
das haus
<seg id="x"> ((('das',0,1),),(('heim',1,1),('buch',2),),) </seg> ||| the book
((('das',0,1),),(('haus',1,7),),)
{"arcs": [{"from": 0, "to": 1, "word": "ein", "cost": 1}, {"from": 1, "to": 2, "word": "haus"}]}
"""


def test_lattices(small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path / "in", LATTICES)
    out, forests = tmp_path / "out", tmp_path / "forests"
    options = ["-i", source, "-o", str(out), "--forest", str(forests), "--format", "json"]
    assert main(["decode", *options, "-j", "2", *small]) == 0
    error = capfd.readouterr().err
    assert f"{source}:4: found the word 'haus' from node 1 to node 8 of 2" in error
    found = [json.loads(line) for line in out.read_text().split("\n")[:-1]]
    best = [(one["id"], *[(t["text"], t.get("arcs")) for t in one["translations"]]) for one in found]
    assert best == [
        ("0", ("the book", [0, 2])),
        ("1", ("the house", None)),
        ("x", ("the book", [0, 2])),
        ("3",),
        ("4", ("a house", [0, 1])),
    ]
    assert found[0]["source"] == ["das", "haus", "buch"]
    assert found[0]["translations"][0]["alignment"] == [[0, 0], [2, 1]]
    assert found[0]["translations"][0]["features"]["LatticeCost"] == 2
    assert len(list(forests.iterdir())) == 5
    # The same formats for all lines.
    assert run("-i", source, "-o", str(out), "--input-format", "text", *small) == 0
    assert out.read_text().split("\n")[0] == LATTICES.split("\n")[0]
    assert main(["decode", "-i", source, "-o", str(out), "--input-format", "plf", *small]) == 0
    assert f"{source}:2: found 'das haus' in column 1, expected a lattice" in capfd.readouterr().err
    weights = written(tmp_path / "weights", Path(small[3]).read_text() + "LatticeCost -9\n")
    assert run("-i", source, "-o", str(out), "--strict", *small, "-w", weights) == 0
    assert out.read_text().split("\n")[0] == "the house"


def test_many_malformed_lines_are_counted(
    small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "in", "a\n" + 20 * "<seg > he\n")
    assert main(["decode", "-i", source, "-o", str(tmp_path / "out"), *small]) == 0
    error = capfd.readouterr().err
    assert error.count("its translation is empty") == 5
    assert "20 lines have malformed markup and empty translations, first line 2" in error
    assert (tmp_path / "out").read_text().count("\n") == 21


def test_standard_input_is_no_grammar(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = '<seg grammar="-">das haus</seg>\n[X] ||| das ||| this ||| p=1\n'
    for flags, expected in (
        ([], "found the grammar '-', expected a file: standard input is the text"),
        (["--allow-grammar-paths"], "found the grammar '-', expected a file: standard input is the text"),
    ):
        with (tmp_path / "text").open("w+") as stream:
            stream.write(text)
            stream.seek(0)
            monkeypatch.setattr(sys, "stdin", stream)
            assert run(*flags, *small) == 1
        assert f"<stdin>:1: {expected}" in capfd.readouterr().err


def test_grammars_elsewhere_need_a_flag(
    small: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "more").write_text("[X] ||| haus ||| mansion ||| p=0\n")
    source = written(tmp_path / "text" / "in", '<seg grammar="../more">das haus</seg>\n')
    options = ["-i", source, "-o", str(tmp_path / "out"), *small]
    assert run(*options) == 1
    assert f"{source}:1: found the grammar '../more', expected a path inside" in capfd.readouterr().err
    assert run(*options, "--allow-grammar-paths") == 0
    assert (tmp_path / "out").read_text() == "the mansion\n"


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
