"""``hiero run``: all stages of a configuration."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from hiero.cli.options import (
    add_command,
    add_grammar_paths,
    add_quiet,
    add_strict,
    add_threads,
    add_user_code,
)
from hiero.pipeline.plan import STAGES

DESCRIPTION = """\
Run all stages of a configuration. Each stage runs if its inputs, settings or outputs have changed since the
last time; otherwise it is skipped. After an interruption, the same command continues the run and ends with
the same files.

RUNDIR holds all outputs, config.yaml (the configuration in full), model.yaml (for hiero decode -c),
manifest.json (versions, digests, settings, times of all stages) and log.jsonl. Scores go to standard output.
Paths in CONFIG are relative to CONFIG."""
NAMES = "\n".join(f"  {name:8} {kind.help}" for name, kind in STAGES.items())
EPILOG = f"""\
stages, in their order:
{NAMES}

examples:
  hiero run demo.yaml -j 4
  hiero run experiment.yaml -o runs/first --dry-run
  hiero run experiment.yaml -o runs/first --only decode:dev --only eval:dev

configs/ has commented examples."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero run`` with its arguments."""
    command = add_command(
        subparsers, "run", "run all stages of a configuration, from bitext to scores", DESCRIPTION, EPILOG
    )
    add = command.add_argument
    add("config", metavar="CONFIG", help="YAML; docs/pipeline.md describes its sections")
    add(
        "-o",
        "--output",
        metavar="RUNDIR",
        type=Path,
        help="directory of all outputs (default for NAME.yaml: NAME.run in the working directory)",
    )
    add(
        "--only",
        metavar="STAGE",
        action="append",
        default=[],
        help="run only this stage, such as align or decode:dev, or all of a kind, such as decode; repeatable",
    )
    add("--dry-run", action="store_true", help="print the stages that would run, with reasons, and exit")
    add_strict(command)
    add_threads(command, "threads of each stage")
    add_quiet(command)
    add_user_code(command)
    add_grammar_paths(command)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``hiero run``; return the exit status."""
    from hiero.core.progress import StageProgress
    from hiero.pipeline.run import Run, default_directory

    directory = args.output or default_directory(Path(args.config))
    planned = Run(
        args.config,
        directory,
        args.only,
        strict=args.strict,
        allow_grammar_paths=args.allow_grammar_paths,
    )
    if args.dry_run:
        for step in planned.steps():
            verdict = "unchanged" if step.reason is None else f"would run ({step.reason})"
            print(f"{step.stage.name}: {verdict}")
        return 0
    with StageProgress(quiet=args.quiet) as display:
        planned.run(display, args.threads)
    sys.stdout.write(_table(planned.scores()))
    return 0


def _table(scores: Mapping[str, Mapping[str, float]]) -> str:
    """A line for each set."""
    width = max(map(len, scores), default=0)
    lines = (
        f"{name:{width}}  " + "  ".join(f"{metric} {score:.2f}" for metric, score in found.items())
        for name, found in scores.items()
    )
    return "".join(f"{line}\n" for line in lines)
