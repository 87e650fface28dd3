"""``hiero report``: a run directory as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from hiero.cli.options import (
    add_command,
    add_files,
    add_grammar_paths,
    add_quiet,
    add_threads,
    add_user_code,
    at_least,
)

DESCRIPTION = """\
Write one self-contained page of HTML about the directory of a hiero run, complete or not, or of hiero tune:
scores with intervals and tests, stages with their time and memory, learning curves, the heaviest features,
curves of bins, sentences with their derivations, word alignments, the model and its configuration.

With --compare, several systems side by side: RUNDIR is the baseline of the tests, and the sentences are those
where the systems differ most. Sentences are translated again with the models of the runs."""
EPILOG = """\
examples:
  hiero report demo.run
  hiero report dense.run --compare sparse.run -o sparse.html
  hiero report demo.run --set devtest --examples 20
  hiero report demo.run --examples 0 --sample 0       # without loading a model
  hiero report demo.run --format json -o report.json"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero report`` with its arguments."""
    command = add_command(subparsers, "report", "a run directory as one page", DESCRIPTION, EPILOG)
    add = command.add_argument
    add("directory", metavar="RUNDIR", help="directory of hiero run or hiero tune")
    add(
        "--compare",
        metavar="OTHER",
        nargs="+",
        action="extend",
        default=[],
        help="directories of other runs; repeatable",
    )
    add("-o", "--output", metavar="OUT", help="default: report.html in RUNDIR, or report.json")
    add("--format", choices=("html", "json"), default="html", help="of the output (default html)")
    add("--set", metavar="NAME", help="set of the sentences (default: the last that no weight depends on)")
    add("--examples", metavar="N", type=at_least(0), default=6, help="sentences to show (default 6)")
    add(
        "--sample",
        metavar="N",
        type=at_least(0),
        default=40,
        help="sentences to translate again for the mean values of features (default 40)",
    )
    add_threads(command)
    add_quiet(command)
    add_user_code(command)
    add_grammar_paths(command)
    command.set_defaults(run=run)
    add_files(command, "RUNDIR --compare", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero report``; return the exit status."""
    from hiero.core.errors import printable
    from hiero.core.progress import CommandProgress
    from hiero.reporting.write import report

    output = args.output or str(Path(args.directory) / f"report.{args.format}")
    with CommandProgress("report", quiet=args.quiet) as progress:
        found = report(
            args.directory,
            output,
            compare=args.compare,
            form=args.format,
            examples=args.examples,
            sample=args.sample,
            set_name=args.set,
            threads=args.threads,
            allow_grammar_paths=args.allow_grammar_paths,
            progress=progress,
        )
        for system in found.systems:
            for problem in system.problems:
                progress.say(f"{system.name}: {printable(problem)}")
        if output != "-":
            progress.say(f"{output} is complete")
    return 0
