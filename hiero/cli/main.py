"""The ``hiero`` command: subcommands, and what becomes of errors."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

import hiero
from hiero.errors import HieroError, UsageError

COMMANDS = ("decode", "grammar", "lm")


def parser() -> argparse.ArgumentParser:
    """The whole command line; building it compiles nothing."""
    top = argparse.ArgumentParser(
        prog="hiero",
        description="Hierarchical phrase-based translation: decoding with synchronous grammars.",
        epilog="Each command has its own --help. Results go to standard output, all else to standard error. "
        "Exit codes: 0 done, 1 the input is wrong, 2 the command line is wrong, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"hiero {hiero.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        importlib.import_module(f"hiero.cli.{command}").add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    args = parser().parse_args(arguments)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"hiero {args.command}: {error}", file=sys.stderr)
        return 2
    except HieroError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever read our output has seen enough. Nothing may be flushed there when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"{error.filename or 'hiero'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nhiero: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
