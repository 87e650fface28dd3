"""``hiero oracle``: how good the best translations of lists and forests are."""

from __future__ import annotations

import argparse
import dataclasses

from hiero.cli.options import (
    add_command,
    add_files,
    add_quiet,
    add_threads,
    at_least,
    check_files,
)
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress

DESCRIPTION = """\
Find the translations with the best sentence BLEU against references, in k-best lists, in saved forests, or in
what a model finds, and print the BLEU of the text that they make: how good translations could be if the model
chose the right ones. Columns are the first 1, 10, 100, 1000 translations of lists, and whole forests."""
EPILOG = """\
examples:
  hiero oracle -i dev.kbest -r dev.ref
  hiero oracle --forests forests/ -r dev.ref0 dev.ref1 --write oracle.txt
  hiero oracle --text dev.src -c model.yaml -r dev.ref --pop-limits 50,200,1000 -j 4"""


def _whole_numbers(text: str) -> list[int]:
    numbers = [at_least(0)(part.strip()) for part in text.split(",")]
    if len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected different numbers")
    return numbers


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero oracle`` with its arguments."""
    command = add_command(
        subparsers, "oracle", "the best translations of lists and forests", DESCRIPTION, EPILOG
    )
    group = command.add_argument_group("input and output")
    add = group.add_argument
    add("-i", "--input", metavar="IN", help="k-best lists; - is standard input")
    add("--forests", metavar="DIR", help="forests of hiero decode --forest: 0.json.gz, 1.json.gz, ...")
    add("--text", metavar="FILE", help="text to translate with the model of -c")
    add(
        "-c",
        "--config",
        metavar="CONFIG",
        help="YAML configuration of a model (default: that of the package)",
    )
    add("-r", "--references", metavar="REF", nargs="+", required=True, help="one or several references")
    add("-o", "--output", metavar="OUT", default="-", help="default: standard output")
    add("--format", choices=["table", "json"], default="table", help="default: table")
    add("--write", metavar="FILE", help="write the best translations: of forests, or of the longest lists")
    add_threads(group)
    add_quiet(group)
    group = command.add_argument_group("search")
    add = group.add_argument
    add(
        "--sizes",
        metavar="N,M,...",
        type=_whole_numbers,
        default=[1, 10, 100, 1000],
        help="of lists (default 1,10,100,1000)",
    )
    add("--pop-limits", metavar="N,M,...", type=_whole_numbers, help="with --text: a row for each")
    add("--metric", metavar="NAME", default="lin", help="sentence BLEU, as for tuning (default lin)")
    add(
        "--beam",
        metavar="X",
        type=float,
        default=20.0,
        help="of forests: leave out derivations whose scores are more than X below the best (default 20)",
    )
    command.set_defaults(run=run)
    add_files(command, "-i --forests --text -c -r", "-o --write")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero oracle``; return the exit status."""
    if [args.input, args.forests, args.text].count(None) != 2:
        raise UsageError("requires one of -i LISTS, --forests DIR and --text FILE")
    if args.text is None and (args.config or args.pop_limits):
        raise UsageError(f"argument {'-c' if args.config else '--pop-limits'}: requires --text FILE")
    if 0 in args.sizes:
        raise UsageError("argument --sizes: found 0, expected at least 1")
    if not args.beam >= 0:
        raise UsageError(f"argument --beam: found {args.beam:g}, expected at least 0")
    check_files(args)

    from hiero.config.config import Config, read_config
    from hiero.config.model import with_bundled
    from hiero.core.text import open_output, write_output
    from hiero.jobs.oracle import OracleJob, OracleSettings, oracle_json, oracle_table

    config = read_config(args.config) if args.config else Config()
    if config.is_bundled:
        config = with_bundled(config)
    settings = OracleSettings(
        references=args.references,
        lists=args.input,
        forests=args.forests,
        text=args.text,
        pop_limits=args.pop_limits or (),
        sizes=args.sizes,
        metric=args.metric,
        beam=args.beam,
        threads=args.threads,
    )
    config = dataclasses.replace(config, search=dataclasses.replace(config.search, kbest=0))
    with CommandProgress("oracle", quiet=args.quiet) as progress:
        rows = OracleJob(settings, config, progress).run()
    write_output(args.output, oracle_table(rows) if args.format == "table" else oracle_json(rows))
    if args.write:
        with open_output(args.write) as stream:
            stream.writelines(f"{one.text}\n".encode() for one in rows[-1].best)
    return 0
