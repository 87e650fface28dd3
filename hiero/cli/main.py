"""The ``hiero`` command: subcommands, error messages and exit codes."""

from __future__ import annotations

import _thread
import argparse
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

import hiero
from hiero.cli.options import Parser, check_files, user_modules
from hiero.core.errors import HieroError, UsageError, is_interrupt, os_message
from hiero.core.progress import announce_compiling

COMMANDS = {
    "align": "align",
    "bins": "bins",
    "completion": "completion",
    "decode": "decode",
    "env": "environment",
    "eval": "evaluate",
    "extract": "extract",
    "grammar": "grammar",
    "index": "index",
    "init": "init",
    "lexicon": "lexicon",
    "lm": "lm",
    "lookup": "lookup",
    "oracle": "oracle",
    "pack": "pack",
    "prep": "prep",
    "reorder": "reorder",
    "report": "report",
    "rescore": "rescore",
    "run": "run",
    "serve": "serve",
    "tune": "tune",
    "warm-up": "warm_up",
}  # to modules of hiero.cli
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def parser(commands: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of commands; building it does not load numba, so that --help is fast."""
    top = Parser(
        prog="hiero",
        description="Hierarchical phrase-based translation: decoding with synchronous grammars.",
        epilog="Each command has its own --help. Results go to standard output, everything else to standard "
        "error. Exit codes: 0 success, 1 input error, 2 usage error, 130 interrupted. "
        "With HIERO_TRACEBACK=1 in the environment, errors are printed with a traceback.",
    )
    top.add_argument("--version", action="version", version=f"hiero {hiero.__version__}")
    group = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in commands:
        importlib.import_module(f"hiero.cli.{COMMANDS[command]}").add_parser(group)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    # Before numpy is loaded: the threads are those of -j, and sums must not depend on the number of cores.
    for variable in BLAS_THREADS:
        os.environ.setdefault(variable, "1")
    _open_missing_streams()
    interrupts = _Interrupts()
    try:
        with interrupts:
            code = _run(arguments)
    except (KeyboardInterrupt, Exception) as error:
        if not is_interrupt(error) and not interrupts.lost:
            raise
        # The terminal has echoed ^C on the current line.
        print(("\n" if sys.stderr.isatty() else "") + "hiero: interrupted", file=sys.stderr)
        code = 130
    _exit_quietly(code)
    return code


class _Interrupts:
    """Repeats what Python ignores: ^C in a callback from compiled code, as when numba loads a kernel."""

    def __init__(self) -> None:
        self.lost = False  # whether there was one; what was called may then fail in any way
        self._timer: threading.Timer | None = None

    def __enter__(self) -> None:
        self._before, sys.unraisablehook = sys.unraisablehook, self._notice

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._before
        if self._timer is not None:
            self._timer.cancel()

    def _notice(self, ignored: Any) -> None:
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            self._before(ignored)
            return
        self.lost = True
        self._timer = threading.Timer(0.05, _interrupt)  # here it would be ignored again
        self._timer.daemon = True
        self._timer.start()


def _interrupt() -> None:
    """Interrupt the main thread, also while it waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _run(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    top = parser(given[:1] if given and given[0] in COMMANDS else COMMANDS)  # all take three times as long
    if not given:
        top.print_help()
        return 0
    args = top.parse_args(given)
    announce_compiling(not getattr(args, "quiet", False))
    try:
        check_files(args)
        with user_modules(args):
            code: int = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return 1  # the reader of standard output has closed it, as head does
    except (HieroError, OSError, MemoryError) as error:
        if os.environ.get("HIERO_TRACEBACK"):
            traceback.print_exc()
        print(_line(error, args.command), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1


def _line(error: HieroError | OSError | MemoryError, command: str) -> str:
    if isinstance(error, UsageError):
        return f"hiero {command}: {error}"
    if isinstance(error, HieroError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"hiero: out of memory{f' ({error})' if str(error) else ''}"
    reason = os_message(error)
    return f"{error.filename}: {reason}" if error.filename else f"hiero: {reason}"


def _open_missing_streams() -> None:
    """Replace closed standard streams (``hiero ... <&-``) by the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _exit_quietly(code: int) -> None:
    """Flush standard output, and exit without error messages or waiting for threads."""
    try:
        sys.stdout.flush()
    except OSError:
        # Otherwise Python would try to flush it again, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    parallel = sys.modules.get("hiero.core.parallel")
    if parallel is not None and parallel.still_busy():
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
