"""``hiero index``: index a bitext for rule extraction."""

from __future__ import annotations

import argparse
import sys
import time

from hiero.cli.options import add_command, add_files, add_quiet
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress

DESCRIPTION = """\
Index a bitext: its words, the suffix array of its source side, word alignments, lexical tables, and the
collocations of frequent words. hiero extract and hiero decode -g extract the rules of a sentence from it.

Several alignments may be given; each counts as one more copy of the bitext. The index is a directory of
memory-mapped arrays. The files it is made from are no longer needed; but if they still exist and have
changed, opening the index is an error."""
EPILOG = """\
examples:
  hiero index -s train.de -t train.en -a train.align -o train.idx
  hiero index -s train.de -t train.en -a gdfa.align -a hmm.align -o train.idx
  hiero index --check train.idx"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero index`` with its arguments."""
    command = add_command(subparsers, "index", "index a bitext for rule extraction", DESCRIPTION, EPILOG)
    add = command.add_argument
    add("-s", "--source", metavar="SRC", help="source side, a sentence a line; plain or gz")
    add("-t", "--target", metavar="TGT", help="target side, with the same number of lines")
    add(
        "-a",
        "--alignment",
        metavar="ALIGN",
        action="append",
        help="word links i-j of each pair, source first, from 0; repeatable",
    )
    add("-o", "--output", metavar="INDEX", help="directory to write")
    add("--check", metavar="INDEX", help="check all of an existing index, also if it passed before")
    add_quiet(command)
    command.set_defaults(run=run)
    add_files(command, "-s -t -a --check", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero index``; return the exit status."""
    needed = {"-s": args.source, "-t": args.target, "-a": args.alignment, "-o": args.output}
    given = [flag for flag, value in needed.items() if value]
    if args.check:
        if given:
            raise UsageError(f"argument --check: not allowed with {given[0]}")
        return _check(args)
    missing = [flag for flag in needed if flag not in given]
    if missing:
        raise UsageError(f"argument {missing[0]} is missing (-s, -t, -a and -o are required)")

    from hiero.extraction.index import make_index

    started = time.monotonic()

    with CommandProgress("index", quiet=args.quiet, with_names=True) as progress:
        make_index(args.source, args.target, args.alignment, args.output, progress=progress)
    progress.say(f"{args.output} is complete ({time.monotonic() - started:.0f} s)")
    return 0


def _check(args: argparse.Namespace) -> int:
    from hiero.extraction.index import open_index

    index = open_index(args.check, thorough=True)
    if not args.quiet:
        places = len(index.text.src) - index.num_sentences, len(index.text.tgt) - index.num_sentences
        print(
            f"{args.check}: {index.num_sentences} sentence pairs, {places[0]} and {places[1]} words, "
            f"alignments: {len(index.links.src_span)}; unchanged",
            file=sys.stderr,
        )
    return 0
