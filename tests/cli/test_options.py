"""Flags made of records, and those that commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from hiero.cli.main import main
from hiero.cli.main import parser as main_parser
from hiero.cli.options import add_settings, check_files, overrides, replaced
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
        "oracle -r a",
        "rescore",
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


def commands(top: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """All commands that run, by their names."""
    inner = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    for action in inner:
        for word, command in action.choices.items():
            yield from commands(command, f"{name} {word}".strip())
    if not inner or top.get_default("files"):
        yield name, top


COMMANDS = dict(commands(main_parser()))
# Arguments whose values are no files that a command reads or writes, or whose files the command adds itself.
NO_FILES = {
    "decode": {"-g", "-l", "-w", "--bins", "--reordering", "--aligner", "--adapt-state"},  # of the model
    "eval": {"--system"},
    "extract": {"--store", "--target-counts"},  # read and written
    "init": {"FOLDER"},  # files that exist are never replaced
    "align": {"--temp"},
    "align score": {"HYP", "GOLD"},
    "run": {"CONFIG", "-o"},  # checked by the stages
    "tune": {"-c", "-o", "--bins", "--start", "--run"},  # directories, which must not hold an input
    "lm classes": {"--temp"},
    "lm estimate": {"--temp"},
}
PATHS = {"FILE", "DIR", "FILE.json", "OUT", "IN", "CONFIG", "RUNDIR"}


@pytest.mark.parametrize("name", COMMANDS)
def test_all_files_are_declared(name: str) -> None:
    command = COMMANDS[name]
    inputs, outputs = command.get_default("files") or ({}, {})
    known = {*inputs, *outputs, *NO_FILES.get(name, ())}
    for action in command._actions:
        metavar = str(action.metavar)
        is_path = metavar in PATHS or (metavar.isupper() and not action.option_strings)
        if is_path or "-o" in action.option_strings:
            assert known & {*action.option_strings, metavar}, action
    if "-o" in command._option_string_actions and name not in NO_FILES:
        assert outputs


@pytest.mark.parametrize("name", COMMANDS)
def test_no_output_is_an_input(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "link").hardlink_to(file)
    inputs, outputs = COMMANDS[name].get_default("files") or ({}, {})
    files = [inputs, outputs]
    arguments = dict.fromkeys([*inputs.values(), *outputs.values()])
    for flag, dest in outputs.items():
        for used in [*inputs.values(), *outputs.values()]:
            if dest != used:
                both = {dest: tmp_path / "link", used: [str(file)]}
                with pytest.raises(UsageError, match=f"argument .*: {tmp_path}/(link|file) is also the file"):
                    check_files(argparse.Namespace(files=files, **(arguments | both)))
                new = {dest: tmp_path / "new", used: "-"}
                check_files(argparse.Namespace(files=files, **(arguments | new)))
        named = {dest: str(file)}
        with pytest.raises(UsageError, match=f"argument {flag}: .*file is also the file of a friend"):
            check_files(argparse.Namespace(files=files, **(arguments | named)), [("of a friend", str(file))])


@pytest.mark.parametrize(
    "command",
    [
        "align -s in -t other -o in",
        "align -s in -t other -o new --forward new",
        "align -s in -t other -o link",
        "bins learn -g other -i in -o other --features A",
        "bins plot other -w in -o other",
        "decode -i in -o in",
        "decode -g other -i in -o other",
        "eval in -r other -o other",
        "eval --system a=in -r other -o in",
        "extract -x other -i in -o other",
        "grammar compile in in",
        "grammar convert in -o in",
        "index -s in -t other -a in -o other",
        "lm compile in in",
        "lm estimate in in",
        "lm query in other -o in",
        "prep -i in -o in",
        "prep -s in -t other -o new other",
        "prep -s in -t other -o new ./new",
        "reorder train other -o other",
        "oracle -i in -r other -o in",
        "rescore -i in -w other -o in",
        "rescore -i in -w other -l A=link -o in",
        "tune -c tune.yaml -o .",
    ],
)
def test_inputs_are_not_overwritten(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in", "other"):
        Path(name).write_text("text\n")
    Path("link").symlink_to("in")
    Path("tune.yaml").write_text("{data: {dev: {source: in, target: other}}, tune: {on: dev}}")
    assert main(command.split()) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "is also the file" in error or "new is given twice" in error or "is in this directory" in error
    assert Path("in").read_text() == Path("other").read_text() == "text\n"
