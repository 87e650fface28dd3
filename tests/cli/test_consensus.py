"""Choosing among translations from the command line, and the commands of docs/consensus.md."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

import hiero
from hiero.cli.main import main
from hiero.core.input import parse_input
from hiero.core.text import InputForm
from tests.cli.test_decode import TEXT, run, small, written
from tests.conftest import MODEL, PROJECT

__all__ = ["small"]  # a fixture


# The best translation of "a" has no word in common with the others, which agree.
AGREEING = """\
[X] ||| a ||| k l m n ||| p=0.1
[X] ||| a ||| x y z u ||| p=0.2
[X] ||| a ||| x y z v ||| p=0.2
[X] ||| a ||| x y z ||| p=0.2
[X] ||| b ||| b ||| p=0
"""


@pytest.mark.parametrize("rule", ["kbest", "forest", "consensus"])
def test_translations_by_expected_bleu(rule: str, tmp_path: Path) -> None:
    lines = ["a b", "b", "a a", "b a"]
    text, output = written(tmp_path / "in", "\n".join(lines) + "\n"), tmp_path / "out"
    given = ["-g", written(tmp_path / "grammar", AGREEING), "-i", text, "-o", str(output)]
    given += ["-w", written(tmp_path / "weights", "p -1\nPassThrough -9\nGlue -0.1\n")]
    assert run(*given, "--mbr", rule, "--mbr-alpha", "0.5", "-j", "2") == 0
    chosen = output.read_text().splitlines()
    weights = {"p": -1.0, "PassThrough": -9.0, "Glue": -0.1}
    model = hiero.load(rules=AGREEING.splitlines(), weights=weights)
    assert chosen == [model.parse(line).mbr(rule, alpha=0.5).text for line in lines]
    assert chosen[0].startswith("x y z")
    assert model.translate(lines[0]).text == "k l m n b"
    (tmp_path / "c.yaml").write_text(f"consensus: {{mbr: {rule}, alpha: 0.5}}\n")
    assert run(*given, "-c", str(tmp_path / "c.yaml"), "--kbest", "2") == 0
    lists = output.read_text().splitlines()
    first = {line.split(" ||| ")[0]: line.split(" ||| ")[1] for line in reversed(lists)}
    assert [first[str(number)] for number in range(len(lines))] == chosen


def test_an_empty_line_and_one_without_a_translation(small: list[str], tmp_path: Path) -> None:
    text, output = written(tmp_path / "in", "\nnein\ndas haus\n"), tmp_path / "out"
    assert run(*small, "-i", text, "-o", str(output), "--mbr", "forest", "--pass-through", "none") == 0
    lines = output.read_text().split("\n")
    assert lines[:2] == ["", ""]
    assert lines[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mbr", "kbest", "--mbr-metric", "linn"], "unknown sentence BLEU 'linn'; did you mean 'lin'?"),
        (["--mbr", "kbest", "--kbest", "3", "--no-unique"], "mbr lists every string once"),
        (["--force", "--lattice", "x"], "argument --lattice: not with --force"),
        (["--prefix", "--confidence", "--format", "json"], "argument --confidence: not with --prefix"),
        (["--confidence"], "argument --confidence: requires --format json"),
        (["--format", "align", "--kbest", "2"], "align has no room for the translations"),
        (["--lattice", "x", "--lattice-beam", "-1"], "argument --lattice-beam, --lattice-posterior: found"),
        (["--mbr", "kbest", "--mbr-alpha", "0"], "argument --mbr-alpha: found 0.0, expected more than 0"),
    ],
)
def test_mistakes(
    arguments: list[str], message: str, small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert run(*small, "-i", written(tmp_path / "in", TEXT), "-o", str(output), *arguments) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not output.exists()


def test_words_with_confidence_alignments_and_lattices(small: list[str], tmp_path: Path) -> None:
    text, output = written(tmp_path / "in", "\n" + TEXT), tmp_path / "out"
    given = [*small, "-i", text, "-o", str(output)]
    lattices = ["--lattice", str(tmp_path / "lattices"), "--lattice-beam", "2"]
    assert run(*given, "--format", "json", "--confidence", "--mbr-alpha", "0.5", *lattices, "-j", "2") == 0
    model = hiero.load(grammar=small[1], weights=small[3], lm=small[5])
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert lines[0]["translations"] == []
    for number, (record, line) in enumerate(zip(lines[1:], TEXT.splitlines(), strict=True), 1):
        forest = model.parse(line)
        (best,) = record["translations"]
        expected = forest.confidence(forest.viterbi(), alpha=0.5)
        assert best["confidence"] == pytest.approx(expected, abs=1e-8)
        assert len(expected) == len(best["text"].split())
        lattice = forest.word_lattice(alpha=0.5, beam=2)
        assert (tmp_path / "lattices" / f"{number}.fst.txt").read_text() == lattice.openfst()
        assert (tmp_path / "lattices" / f"{number}.syms").read_text() == lattice.symbols()
    assert (tmp_path / "lattices" / "0.fst.txt").read_text() == ""
    plf = ["--lattice", str(tmp_path / "plf"), "--lattice-format", "plf", "--lattice-beam", "5"]
    assert run(*given, "--format", "align", *plf) == 0
    links = [" ".join(f"{i}-{j}" for i, j in model.translate(line).alignment) for line in TEXT.splitlines()]
    assert output.read_text().splitlines() == ["", *links]
    assert any(links)
    assert (tmp_path / "plf" / "1.plf").read_text() == model.parse(TEXT.splitlines()[0]).word_lattice(
        beam=5
    ).plf()
    assert (tmp_path / "plf" / "0.plf").read_text() == "()\n"


def test_lattices_that_are_too_large_get_smaller_beams(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hiero.jobs.translate.LATTICE_ARCS", 30)
    text, output = written(tmp_path / "in", TEXT.splitlines()[0] + "\n"), str(tmp_path / "out")
    given = [*small, "-i", text, "-o", output, "--lattice", str(tmp_path / "lattices")]
    assert main(["decode", *given, "--lattice-beam", "8"]) == 0
    assert "1 lattice was too large, and made with a smaller --lattice-beam" in capsys.readouterr().err
    forest = hiero.load(grammar=small[1], weights=small[3], lm=small[5]).parse(TEXT.splitlines()[0])
    found = (tmp_path / "lattices" / "0.fst.txt").read_text()
    assert found in [forest.word_lattice(beam=8 / 2**k).openfst() for k in range(1, 10)]


def test_a_linear_lattice_has_the_confidence_of_its_sentence(small: list[str]) -> None:
    model = hiero.load(grammar=small[1], weights=small[3], lm=small[5])
    for line in TEXT.splitlines()[:4]:
        lattice = "(" + "".join(f"(('{word}',0,1),)," for word in line.split()) + ")"
        one, other = model.translate(line), model.translate(parse_input(lattice, form=InputForm("plf")))
        assert one.text == other.text
        assert one.confidence == pytest.approx(other.confidence)
        assert min(one.confidence) > 0


@pytest.mark.heavy
@pytest.mark.once
@pytest.mark.skipif(MODEL is not None, reason="needs the bundled model")
def test_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, in a directory with the files of the package, of which the text is shorter."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grammars").mkdir()
    for file in (PROJECT / "grammars").glob("demo.*"):
        if ".dev." in file.name:
            first = file.read_text().splitlines(keepends=True)[:4]
            (tmp_path / "grammars" / file.name).write_text("".join(first))
        else:
            (tmp_path / "grammars" / file.name).symlink_to(file)
    page = (PROJECT / "docs" / "consensus.md").read_text()
    commands = re.findall(r"^\$ hiero (.*)", "\n".join(re.findall(r"```console\n(.*?)```", page, re.S)), re.M)
    assert len(commands) > 3
    for command in commands:
        assert main(shlex.split(command)) == 0, command
