"""Choosing among translations from the command line, and the commands of docs/consensus.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import hiero
from hiero.cli.main import main
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


@pytest.mark.heavy
@pytest.mark.once
@pytest.mark.skipif(MODEL is not None, reason="needs the bundled model")
def test_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, in a directory with the files of the package."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grammars").symlink_to(PROJECT / "grammars")
    page = (PROJECT / "docs" / "consensus.md").read_text()
    commands = re.findall(r"^\$ hiero (.*)", "\n".join(re.findall(r"```console\n(.*?)```", page, re.S)), re.M)
    assert len(commands) > 3
    for command in commands:
        assert main(shlex.split(command)) == 0, command
