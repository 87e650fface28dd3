"""``hiero decode`` under constraints, and the examples of docs/constraints.md."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from hiero.cli.main import main
from hiero.decoder.forest import Forest
from tests.worlds.small_model import small_model

PAGE = Path(__file__).parents[2] / "docs" / "constraints.md"
RULES = """\
[X] ||| das ||| the ||| p=0.5 ||| 0-0
[X] ||| haus ||| house ||| p=0.2 ||| 0-0
[X] ||| haus ||| home ||| p=1 ||| 0-0
[X] ||| heute [X,1] die [X,2] ||| the [X,2] [X,1] today ||| p=0.1 ||| 0-3 2-0
[X] ||| kauft ||| buys ||| p=0.3 ||| 0-0
[X] ||| frau ||| woman ||| p=0.3 ||| 0-0
[X] ||| ein [X,1] ||| a [X,1] ||| p=0.2 ||| 0-0
[X] ||| ein buch ||| a book ||| p=0.1 ||| 0-0 1-1
"""


def run(*arguments: str) -> int:
    return main(["decode", "-q", *arguments])


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return small_model(tmp_path_factory.mktemp("small"), RULES)


PAIRS = """\
das haus ||| the home ||| the house ||| a new house
<seg id="seven">heute kauft die frau</seg> ||| the woman buys today

"""


def test_force(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, forests = tmp_path / "in", tmp_path / "forests"
    source.write_text(PAIRS)
    assert run("--force", "-i", str(source), "--forest", str(forests), "-j", "2", *small) == 0
    lines = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [
        ["0", "the home"],
        ["0", "the house"],
        ["0", "a new house"],
        ["seven", "the woman buys today"],
    ]
    scores = [float(line[2]) for line in lines]
    assert scores[1] > scores[0] > scores[2] == float("-inf")
    assert lines[2][3] == 'no derivation; longest match "house" of "haus"; in no rule that applies: a new'
    names = {path.name for path in forests.iterdir()}
    assert names == {"0.json.gz", "0.1.json.gz", "0.2.json.gz", "1.json.gz", "2.json.gz"}
    assert Forest.load(forests / "0.1.json.gz").viterbi().text == "the house"
    assert not Forest.load(forests / "0.2.json.gz")

    # The derivations of each pair in a k-best list; nothing for a pair without one.
    assert run("--force", "-i", str(source), "--kbest", "3", *small) == 0
    listed = [line.split(" ||| ")[:2] for line in capsys.readouterr().out.splitlines()]
    assert listed == [["0", "the home"], ["0", "the house"], ["seven", "the woman buys today"]]

    assert run("--force", "-i", str(source), "--format", "json", *small) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(record["hypotheses"]) for record in records] == [3, 1, 0]
    home, _, new = records[0]["hypotheses"]
    assert home["reachable"]
    assert home["translations"][0]["alignment"] == [[0, 0], [1, 1]]
    assert (new["reachable"], new["score"], new["missing"]) == (False, None, [0, 1])
    assert new["longest_match"] == {"source": [1, 2], "target": [2, 3]}


@pytest.mark.parametrize("style", ["text", "cdec", "json"])
def test_force_with_a_file(
    style: str, small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The k-best list of the decoder itself: its scores are those of the best derivations."""
    source, given = tmp_path / "in", tmp_path / "given"
    source.write_text("das haus\nheute kauft die frau\n")
    kbest = [] if style == "text" else ["--kbest", "3"]
    assert run("-i", str(source), "-o", str(given), "--format", style, *kbest, *small) == 0
    output = tmp_path / "out"
    options = ["-i", str(source), "-o", str(output), "--hypotheses", str(given), *small]
    assert run(*options) == 0
    lines = [line.split(" ||| ") for line in output.read_text().splitlines()]
    if style == "cdec":
        listed = [line.split(" ||| ") for line in given.read_text().splitlines()]
        assert [line[:2] for line in lines] == [line[:2] for line in listed]
        for line, other in zip(lines, listed, strict=True):
            assert float(line[2]) == pytest.approx(float(other[3]), abs=1e-6)
    else:
        assert len(lines) == (2 if style == "text" else 6)
    assert all(float(line[2]) > -100 for line in lines)

    # Continued after an interruption, unless the file has changed.
    whole = output.read_bytes()
    given.write_text("the home\n")
    source.write_text("das haus\ndas haus\n")
    assert run(*options) == 1
    error = capsys.readouterr().err
    assert f"{given}: found no translation of sentence 1, expected one for each line of {source}" in error
    part = (tmp_path / "out.part").read_text()
    assert "0 ||| the home" in part
    assert output.read_bytes() == whole
    source.write_text("das haus\n")
    assert run(*options, "--resume") == 0
    assert output.read_text().startswith("0 ||| the home ||| ")


def test_mistakes(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in"
    source.write_text("das haus\n")
    assert run("--force", "-i", str(source), *small) == 1
    expected = "in:1: found no |||, expected source ||| translation (or give translations in a file"
    assert expected in capsys.readouterr().err


@pytest.mark.once
@pytest.mark.heavy
def test_examples_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command and its output; files in blocks are written under their names."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    for name, content in re.findall(r"`([\w.]+)`:\n\n```text\n(.*?)```", text, re.DOTALL):
        Path(name).write_text(content)
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        command, _, expected = block.removeprefix("$ ").replace("\\\n", " ").partition("\n")
        words = shlex.split(command)
        if words[0] == "echo":
            Path("input").write_text(words[1] + "\n")
            words = [*words[words.index("|") + 1 :], "-i", "input"]
        assert words[:2] == ["hiero", "decode"]
        assert main(["decode", "-q", *words[2:]]) == 0
        pattern = re.escape(expected).replace(r"\.\.\.", ".*")
        found = capsys.readouterr().out
        assert re.fullmatch(pattern, found, re.DOTALL), (command, found)
    scope: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), scope)


def test_prefix(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, forests = tmp_path / "in", tmp_path / "forests"
    source.write_text(
        'das haus ||| the home\n<seg id="a">das haus</seg> ||| the h\ndas haus ||| my\ndas haus |||\n\n'
    )
    options = ["-i", str(source), "--prefix", *small]
    assert main(["decode", *options, "-j", "2"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "the home"
    assert lines[1].startswith("the h ") or lines[1] == "the h"
    assert lines[2].startswith("my")
    assert lines[3:] == ["the house", ""]
    expected = "2 beginnings are not reachable with the grammar; words of them were inserted as given"
    assert expected in printed.err

    options = [*options, "--partial-word", "--format", "json", "--forest", str(forests)]
    assert run(*options) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["prefix"]["reachable"] for record in records] == [True, True, False, True, True]
    assert records[1]["prefix"] == {"words": ["the", "h"], "partial": True, "reachable": True, "edited": []}
    assert records[1]["translations"][0]["text"] == "the house"
    assert records[2]["prefix"]["edited"] == [0]
    assert Forest.load(forests / "0.json.gz").viterbi().text == "the home"
    source.write_text("das haus ||| the h \n")
    assert run(*options[:-4]) == 0
    assert capsys.readouterr().out.startswith("the h")

    source.write_text("das haus\n")
    assert run(*options) == 1
    assert "in:1: found no |||, expected source ||| beginning" in capsys.readouterr().err
    assert run("--prefix", "--force", *small) == 2
    assert run("--force", "--mbr", "kbest", *small) == 2


def test_terms(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, terms, config = tmp_path / "in", tmp_path / "terms.tsv", tmp_path / "config.yaml"
    source.write_text("das haus\nheute kauft die frau ein buch\n\n")
    terms.write_text("haus\tbuilding\t-9\nein buch\ta tome\n")
    assert run("-i", str(source), *small) == 0
    plain = capsys.readouterr().out
    assert run("-i", str(source), "--terms", str(terms), "-j", "2", *small) == 0
    soft = capsys.readouterr().out.splitlines()
    assert (soft[0], "a tome" in soft[1], soft[2]) == (plain.splitlines()[0], True, "")
    hard = ["-i", str(source), "--terms", str(terms), "--hard-terms", *small]
    assert run(*hard) == 0
    found = capsys.readouterr().out
    assert "building" in found.splitlines()[0]
    config.write_text("terms: terms.tsv\nhard_terms: true\n")
    assert run("-i", str(source), "-c", str(config), *small) == 0
    assert capsys.readouterr().out == found
    terms.write_text("maus\tmouse\n")
    assert run(*hard) == 0
    assert capsys.readouterr().out == plain
    assert run("-i", str(source), "--hard-terms", *small) == 2
    assert "argument --hard-terms: requires --terms FILE" in capsys.readouterr().err


def test_terms_are_continued(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An output with other terms is not continued."""
    source, terms, output = tmp_path / "in", tmp_path / "terms.tsv", tmp_path / "out"
    source.write_text("das haus\n((('haus',0.5,1),),)\n")
    terms.write_text("haus\tbuilding\n")
    options = ["-i", str(source), "-o", str(output), "--terms", str(terms), *small]
    assert run(*options) == 1
    assert "in:2: terms: found a lattice, expected a sentence" in capsys.readouterr().err
    source.write_text("das haus\n")
    terms.write_text("haus\tother building\n")
    assert run(*options, "--resume") == 1
    assert "settings" in capsys.readouterr().err
    terms.unlink()
    assert run(*options) == 1
    assert f"{terms}: found no such file" in capsys.readouterr().err


def test_sentences_without_all_terms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in {
        "in": "haus\ndas haus\n",
        "grammar": "[X] ||| das haus ||| the house ||| p=1\n",
        "weights": "p 1\nGlue 1\nPassThrough 1\n",
        "terms": "haus\tbuilding\n",
    }.items():
        tmp_path.joinpath(name).write_text(content)
    files = [f"-{name[0]}={tmp_path / name}" for name in ("in", "grammar", "weights")]
    command = ["decode", *files, f"--terms={tmp_path / 'terms'}", "--hard-terms", "--pass-through", "oov"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out == "building\nthe house\n"
    assert "1 sentence has no translation that meets all constraints, first in line 2; other rules" in err


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("haus house", "no tab, expected the words of a term, a tab, and its translation"),
        ("haus\ta\t1\t2", "3 tabs, expected"),
        ("\thouse", "no source words, expected"),
        ("haus\t ", "no translation, expected"),
        ("haus\thouse\tx", "the weight 'x', expected a number"),
        ("haus\thouse\tnan", "the weight 'nan', expected a number"),
        ("haus\thouse\t1e99", "the weight '1e99', expected a number"),
    ],
)
def test_mistakes_in_terms(
    line: str, found: str, small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text(f"das\tthe\n{line}\n")
    terms.with_name("in").touch()
    assert run("--terms", str(terms), "-i", str(terms.with_name("in")), *small) == 1
    err = capsys.readouterr().err
    assert f"{terms}:2: found {found}" in err


MARKED = """\
das <n translation="hut||shed" prob="0.2||0.8">haus</n>
heute <zone>kauft <wall/> die</zone> frau
das <n translation="hut">haus
das haus
{"source": "das haus", "terms": [["haus", "tent"]], "hard_terms": true, "id": 9}
<seg id="x" terms='[["haus", "tent"]]' hard_terms="true">das haus</seg>
"""


def test_markup(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a flag and in a configuration; a line with broken markup is empty, and reported."""
    source, config = tmp_path / "in", tmp_path / "config.yaml"
    source.write_text(MARKED)
    options = ["decode", "-i", str(source), *small]
    assert main([*options, "--markup", "exclusive", "--kbest", "1", "-j", "2"]) == 0
    out, err = capsys.readouterr()
    texts = [line.split(" ||| ")[:2] for line in out.splitlines()]
    assert texts[0] == ["0", "the shed"]
    assert [number for number, _ in texts] == ["0", "1", "3", "9", "x"]
    assert [text for _, text in texts[-2:]] == ["the tent", "the tent"]
    assert f"{source}:3: found <n> without an end in column 5, expected </n>; its translation is empty" in err
    config.write_text("search: {markup: ignore, copy: [haus]}\n")
    assert run("-i", str(source), "-c", str(config), *small) == 0
    assert capsys.readouterr().out.splitlines()[0] == "the haus"
    assert run("-i", str(source), "-c", str(config), "--markup", "off", "--copy", "x", *small) == 0
    unchanged = capsys.readouterr().out.splitlines()
    assert "<n" in unchanged[0]
    assert unchanged[3] == "the house"


def test_markup_under_constraints(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in"
    marked = 'das <n translation="hut||shed">haus</n>'
    source.write_text(f"{marked} ||| the shed ||| the house\n<seg>{marked}</seg> ||| the hut\n")
    assert run("-i", str(source), "--force", "--markup", "exclusive", *small) == 0
    found = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert [(line[1], float(line[2]) > float("-inf")) for line in found] == [
        ("the shed", True),
        ("the house", False),
        ("the hut", True),
    ]
    source.write_text(f'{marked} ||| the hu\n{{"source": "das haus", "reference": "the ho"}}\n')
    assert run("-i", str(source), "--partial-word", "--markup", "exclusive", *small) == 0
    assert capsys.readouterr().out == "the hut\nthe house\n"


def test_markup_is_continued(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An output of another kind of markup is not continued."""
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("das haus\n((('haus',0.5,1),),)\n")
    options = ["-i", str(source), "-o", str(output), *small]
    assert run(*options, "--copy", "haus") == 1
    assert "in:2: terms: found a lattice, expected a sentence" in capsys.readouterr().err
    source.write_text("das haus\n")
    for other in (["--copy", "das"], ["--copy", "haus", "--markup", "ignore"]):
        assert run(*options, *other, "--resume") == 1
        assert "settings" in capsys.readouterr().err
