"""Flags made of records, and those that commands share."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from hiero.cli.main import main
from hiero.cli.options import add_settings, overrides, replaced
from hiero.core.errors import UsageError
from hiero.core.records import Checked, PathKey, setting


@dataclass(frozen=True, kw_only=True)
class Fruit(Checked):
    num_seeds: int = setting(12_000, "seeds; 0: 100% seedless", least=0, most=50_000, metavar="S")
    weight: float = setting(1e-8, "in kg", above=0)
    colour: Literal["red", "green"] | None = setting(None, "of the skin", group="looks")
    shiny: bool = setting(True, "polished")
    soft: bool = setting(False, "ripe")
    kinds: list[str] = setting(
        help="names", default_factory=lambda: ["a", "b"], flag="names", metavar="A,B,..."
    )
    picture: PathKey | None = setting(None, "photograph")
    labels: PathKey | list[PathKey] | None = setting(None, "stickers; repeatable")
    hidden: int = 3


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_settings(parser, Fruit, defaults={"colour": "default by season"})
    return parser.parse_args(arguments)


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    text = " ".join(capsys.readouterr().out.split())
    for part in (
        "--num-seeds S seeds; 0: 100% seedless (default 12,000; 0 to 50000)",
        "--weight X in kg (default 1e-8)",
        "looks: --colour {red,green} of the skin (default by season)",
        "--shiny, --no-shiny polished (default)",
        "--soft, --no-soft ripe",
        "--names A,B,... names (default a,b)",
        "--picture FILE photograph",
        "--labels FILE stickers; repeatable",
    ):
        assert part in text
    assert "hidden" not in text


def test_given_flags_replace_settings() -> None:
    assert overrides(parsed(), Fruit) == {}
    assert replaced(Fruit(num_seeds=3), parsed()) == Fruit(num_seeds=3)
    args = parsed("--num-seeds", "7", "--no-shiny", "--names", "x, y,", "--labels", "p", "--labels", "q")
    expected = Fruit(num_seeds=7, shiny=False, kinds=["x", "y"], labels=["p", "q"], hidden=4)
    assert replaced(Fruit(), args, {"hidden": 4}) == expected


def test_paths_can_be_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = replaced(Fruit(labels="relative to another"), parsed("--picture", "p"), absolute=True)
    assert (found.picture, found.labels) == (str(tmp_path / "p"), "relative to another")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num-seeds", "-1"], "argument --num-seeds: found -1, expected 0 to 50000"),
        (["--weight", "nan"], "argument --weight: found nan, expected more than 0"),
    ],
)
def test_limits(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        replaced(Fruit(), parsed(*arguments))
    assert str(error.value) == message


def test_wrong_types(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["--num-seeds", "1.5"], "argument --num-seeds: found '1.5', expected a whole number"),
        (["--weight", "x"], "argument --weight: found 'x', expected a number"),
        (["--colour", "blue"], "argument --colour: invalid choice: 'blue'"),
    ):
        with pytest.raises(SystemExit):
            parsed(*arguments)
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "align -s a -t b",
        "bins learn -c a -o b",
        "decode",
        "extract -x a --all -o b",
        "lm estimate a b",
        "prep",
        "run a",
        "tune -c a -o b",
    ],
)
def test_numbers_of_threads(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*command.split(), "-j", "0"])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"hiero {command.split()[0]}")
    assert "found 0, expected at least 1" in err
    assert err.count("\n") == 1
