"""``hiero lookup`` and ``hiero lexicon``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hiero.cli.main import main
from tests.cli.test_extract import make_index


def hiero(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("index"))


def test_text_for_people(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hiero("lookup", "-x", index, "ein", "altes haus", "--examples", 1, "--longest") == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "ein altes haus",
        "  ein  (word 1, 2 times)",
        "    1.000       2  a",
        "                  3: [ein] haus ||| [a] house",
        "  haus  (word 3, 2 times)",
        "    1.000       2  house",
        "                  3: ein [haus] ||| a [house]",
        "",
    ]
    assert captured.err == ""
    assert hiero("lookup", "-x", index, "nichts") == 0
    assert capsys.readouterr().out == "nichts\n  (no phrase of the bitext)\n\n"


def test_json_for_programs(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text('<seg id="3">er hat ein buch gelesen</seg>\n\ndas haus\n')
    options = ("--gaps", "--min-count", 1, "--examples", 5, "--format", "json")
    found = []
    for threads in (1, 2):
        assert hiero("lookup", "-q", "-x", index, "-i", tmp_path / "in", *options, "-j", threads) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]
    rows = [json.loads(line) for line in found[0].splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert rows[1] == {"line": 2, "source": "", "phrases": []}
    phrases = {phrase["source"]: phrase for phrase in rows[0]["phrases"]}
    assert phrases["hat [1] gelesen"] == {
        "source": "hat [1] gelesen",
        "places": [[[1, 2], [4, 5]]],
        "occurrences": None,
        "sampled": 1,
        "translations": [
            {
                "target": "has read [1]",
                "count": 1,
                "probability": 1.0,
                "links": "0-0 2-1",
                "examples": [
                    {
                        "line": 4,
                        "source": "er hat ein buch gelesen",
                        "target": "he has read a book",
                        "source_runs": [[1, 2], [4, 5]],
                        "target_runs": [[1, 3]],
                    }
                ],
            }
        ],
    }


@pytest.mark.parametrize("arguments", [(), ("haus", "-i", "in")])
def test_a_text_or_a_file(
    index: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert hiero("lookup", "-x", index, *arguments) == 2
    assert capsys.readouterr().err == "hiero lookup: requires either a text or -i IN\n"


def test_lexicon(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hiero("lexicon", "-x", index, "--min-prob", 0.5) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[:2] == ["das\tthe\t1\t1", "alte\told\t1\t1"]
    assert hiero("lexicon", "-x", index, "--format", "marian", "-o", tmp_path / "lex.gz") == 0
    lines = gzip.decompress((tmp_path / "lex.gz").read_bytes()).decode().splitlines()
    assert lines[:2] == ["the das 1.0000000", "old alte 1.0000000"]
    assert len(lines) == len({line.split()[1] for line in lines})


def test_no_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("lookup", "haus"), ("lexicon",)):
        assert hiero(command[0], "-x", tmp_path / "none", *command[1:]) == 1
        assert capsys.readouterr().err.count("\n") == 1
