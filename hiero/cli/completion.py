"""``hiero completion``: completion of commands and options in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from hiero.cli.options import add_command

DESCRIPTION = """\
Write a script by which a shell completes the commands, options and files of hiero."""
EPILOG = """\
for bash, in ~/.bashrc:
  eval "$(hiero completion bash)"
or once, without the time that this takes in each shell:
  hiero completion bash > ~/.local/share/bash-completion/completions/hiero
for zsh, in a directory of $fpath:
  hiero completion zsh > ~/.zfunc/_hiero"""
SHELLS = ("bash", "zsh", "tcsh")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero completion`` with its arguments."""
    command = add_command(
        subparsers, "completion", "complete commands and options in a shell", DESCRIPTION, EPILOG
    )
    command.add_argument("shell", choices=SHELLS)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``hiero completion``; return the exit status."""
    import shtab

    from hiero.cli.main import parser

    top = parser()
    for command in commands(top):
        for dest in files_of(command):
            dest.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(top, args.shell))
    return 0


def commands(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its commands."""
    yield top
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from commands(command)


def files_of(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a command whose values are files or directories."""
    inputs, outputs = command.get_default("files") or ({}, {})
    declared = {*inputs.values(), *outputs.values()}
    for action in command._actions:
        if action.dest in declared or str(action.metavar) in PATHS:
            yield action


PATHS = {"FILE", "DIR", "FILE.json", "OUT", "IN", "CONFIG", "RUNDIR", "INDEX", "GRAMMAR", "WEIGHTS", "FOLDER"}
