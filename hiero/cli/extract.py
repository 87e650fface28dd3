"""``hiero extract``: grammars from a bitext index."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hiero.cli.options import add_command, add_files, add_quiet, add_settings, add_threads, replaced
from hiero.core.errors import FormatError, UsageError, os_message
from hiero.core.progress import CommandProgress
from hiero.extraction.config import ExtractConfig

if TYPE_CHECKING:
    from hiero.extraction.extractor import Extractor
    from hiero.extraction.write import GrammarWriter


DESCRIPTION = """\
Extract hierarchical rules from an index, with seven features each, as cdec's extractor does; two more with
--target-counts.

With -i, the rules of each sentence are written to its own grammar, OUT/grammar.N.gz, and the sentences, with
the names of their grammars, to standard output, as input for hiero decode or cdec. With --all, all rules of
the bitext are written to one grammar, by where their source sides occur first; they take 100 bytes each
beside it while they are sorted."""
EPILOG = """\
examples:
  hiero extract -x train.idx -i dev.de -o grammars > dev.sgm
  hiero extract -x train.idx -i train.de -o train.grammars --leave-one-out -j 4 > train.sgm
  hiero extract -x train.idx --all --max-span 10 -o grammar.gz -j 4

hiero decode -g train.idx extracts on the fly, without writing grammars."""

OF_PAIRS = ("leave_out", "leave_out_links")  # settings of --leave-one-out


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero extract`` with its arguments."""
    command = add_command(
        subparsers, "extract", "extract grammars from an indexed bitext", DESCRIPTION, EPILOG
    )
    group = command.add_argument_group("input and output")
    add = group.add_argument
    add("-x", "--index", metavar="INDEX", required=True, help="index made by hiero index")
    add("-i", "--input", metavar="IN", help="sentences to extract for; - is standard input; gz is recognised")
    add("--all", action="store_true", help="write one grammar of the whole bitext")
    add("-o", "--output", metavar="OUT", required=True, help="directory; with --all a file, .gz compresses")
    add(
        "--leave-one-out",
        action="store_true",
        help="input sentence N is sentence N of the bitext: extract none of its rules (see --leave-out)",
    )
    add_settings(group, ExtractConfig, ("store", "target_counts", *OF_PAIRS))
    add_threads(group)
    add_quiet(group)
    rules = command.add_argument_group("rules")
    add_settings(rules, ExtractConfig, without=("store", "target_counts", *OF_PAIRS))
    command.set_defaults(run=run)
    add_files(command, "-x -i", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero extract``; return the exit status."""
    if args.all == (args.input is not None):
        raise UsageError("requires either -i IN or --all")
    config = replaced(ExtractConfig(), args)
    for flag, value in (("--leave-one-out", args.leave_one_out), ("--store", config.store)):
        if args.all and value:
            raise UsageError(f"argument {flag}: not allowed with --all")
    for name in OF_PAIRS:
        if getattr(config, name) != getattr(ExtractConfig(), name) and not args.leave_one_out:
            raise UsageError(f"argument --{name.replace('_', '-')}: requires --leave-one-out")

    from hiero.extraction.index import open_index
    from hiero.extraction.target_counts import open_extractor
    from hiero.extraction.write import GrammarWriter

    extractor = open_extractor(open_index(args.index), config)
    writer = GrammarWriter(extractor, args.threads)
    num_rules = _whole(args, writer) if args.all else _sentences(args, writer, extractor)
    if not args.quiet:
        print(f"hiero extract: {num_rules} rules", file=sys.stderr)
        if writer.num_escaped:
            print(
                f"hiero: {writer.num_escaped} words of the bitext look like a gap or |||; "
                "they are written with &#91; &#93; &#124;",
                file=sys.stderr,
            )
    return 0


def _whole(args: argparse.Namespace, writer: GrammarWriter) -> int:
    with CommandProgress("extract", quiet=args.quiet) as progress:
        return writer.whole(args.output, progress)


def _sentences(args: argparse.Namespace, writer: GrammarWriter, extractor: Extractor) -> int:
    from hiero.extraction.write import grammar_name, line_with_grammar, read_sentences
    from hiero.jobs.run_directory import locked_directory

    # The whole input is read first, so that an error in it leaves no files behind.
    segments = list(read_sentences(args.input, extractor if args.leave_one_out else None))
    directory = Path(args.output)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file" if isinstance(error, FileExistsError) else os_message(error)
        raise FormatError(directory, 0, found=reason, expected="a directory for grammars") from None
    paths = [directory / grammar_name(number) for number in range(len(segments))]
    num_rules = 0
    results = writer.sentences(zip(paths, segments, strict=True), args.leave_one_out)
    with (
        locked_directory(directory, "hiero extract", keep=False),
        CommandProgress("extract", quiet=args.quiet) as progress,
        contextlib.closing(results),
    ):
        progress.begin(len(segments))
        for number, found in enumerate(results):
            num_rules += found
            progress.advance(1, f"{num_rules} rules")
            sys.stdout.buffer.write(line_with_grammar(number, paths[number], segments[number]).encode())
    sys.stdout.flush()  # before the number of rules is reported: standard output may be full
    return num_rules
