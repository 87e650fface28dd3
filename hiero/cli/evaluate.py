"""``hiero eval``: score translations, compare systems."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hiero.cli.options import (
    add_command,
    add_files,
    add_quiet,
    add_settings,
    check_files,
    check_writable,
    replaced,
)
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress
from hiero.evaluation.config import EvalConfig

if TYPE_CHECKING:
    from hiero.evaluation.compare import EvaluationReport


DESCRIPTION = """\
Score translations against references with sacrebleu and print its signatures. Each HYP is a system; --system
names one, which may have several tuning runs. The first system is the baseline for all others; HYP come
before those of --system.

HYP is plain lines, a k-best list (id ||| translation ||| ...; the first of each id counts) or the JSON lines
of hiero decode; gz is recognised. TER is an error rate: lower is better."""
EPILOG = """\
examples:
  hiero eval output.txt -r reference.en
  hiero eval old.txt new.txt -r ref0 ref1 ref2 --test bootstrap
  hiero eval --system mert=m1,m2,m3 --system pro=p1,p2,p3 -r reference.en --per-segment scores.tsv

Several tuning runs of a system show the variance of tuning (Clark et al. 2011): the score is their mean, std
their standard deviation. A difference is that of the runs taken together, which is not quite that of the
means. Its interval includes the variance of tuning; p of approximate randomisation, which swaps the outputs
of the runs pair by pair, does not: it is of these runs, that of the bootstrap of others, too."""


OF_METRICS = ("metrics", "tokenize", "lowercase")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero eval`` with its arguments."""
    command = add_command(subparsers, "eval", "score translations, compare systems", DESCRIPTION, EPILOG)
    group = command.add_argument_group("input and output")
    add = group.add_argument
    add("hypotheses", metavar="HYP", nargs="*", help="translations; - is standard input")
    add("-r", "--references", metavar="REF", nargs="+", required=True, help="one or several references")
    add(
        "--system",
        metavar="NAME=RUN1,RUN2,...",
        action="append",
        default=[],
        help="a system by name, with the output of one or several tuning runs; repeatable",
    )
    add("--input-format", choices=["text", "kbest", "json"], help="of all HYP; default: detected")
    add("-o", "--output", metavar="OUT", default="-", help="default: standard output")
    add("--format", choices=["table", "json"], default="table", help="default: table")
    add("--per-segment", metavar="FILE", help="write the scores of every line, as tab-separated columns")
    add_quiet(group)
    metrics = command.add_argument_group("metrics")
    add_settings(metrics, EvalConfig, OF_METRICS)
    metrics.add_argument("--force", action="store_true", help="do not warn that the input looks tokenised")
    add_settings(command.add_argument_group("significance"), EvalConfig, without=OF_METRICS)
    command.set_defaults(run=run)
    add_files(command, "HYP -r", "-o --per-segment")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero eval``; return the exit status."""
    named = list(_named(args))
    if not named:
        hint = " (before -r, which takes all that follow it)" if len(args.references) > 1 else ""
        raise UsageError(f"requires translations: HYP or --system NAME=RUN1,RUN2{hint}")
    if args.per_segment == "-":
        raise UsageError("argument --per-segment: requires a file, since the table goes to standard output")
    for path in (args.output, args.per_segment):
        check_writable(path)
    config = replaced(EvalConfig(), args)
    inputs = [path for _, runs in named for path in runs] + args.references
    check_files(args, (("of --system", path) for _, runs in named for path in runs))
    if inputs.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")

    from hiero.core.text import open_output
    from hiero.evaluation.compare import evaluate, read_system
    from hiero.evaluation.hypotheses import read_references

    references = read_references(args.references)

    progress = CommandProgress("eval", quiet=args.quiet, bar=False)
    like = args.references[0]
    systems = [
        read_system(name, runs, len(references[0]), like, args.input_format, progress) for name, runs in named
    ]
    report = evaluate(systems, references, config)
    if report.tokenized and not args.force:
        progress.say(
            f"the input looks tokenised, and BLEU tokenises it again ({config.tokenize}); "
            "detokenise both sides, or use --tokenize none or --force"
        )
    _write(args, report)
    if args.per_segment:
        with open_output(args.per_segment) as stream:
            stream.writelines(f"{line}\n".encode() for line in report.segment_lines())
    return 0


def _named(args: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Every system's name and the files of its runs."""
    yield from ((path, [path]) for path in args.hypotheses)
    for spec in args.system:
        name, equals, paths = spec.partition("=")
        if not equals or not name or not paths:
            raise UsageError(f"argument --system: found {spec!r}, expected NAME=RUN1,RUN2,...")
        runs = [paths] if Path(paths).exists() else paths.split(",")
        if "" in runs:
            raise UsageError(f"argument --system: found {spec!r}, expected a file between all commas")
        yield name, runs


def _write(args: argparse.Namespace, report: EvaluationReport) -> None:
    from hiero.core.text import write_output
    from hiero.evaluation.compare import as_json

    text = as_json(report, references=args.references) if args.format == "json" else report.table()
    write_output(args.output, text)
