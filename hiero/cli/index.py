"""``hiero index``: a bitext as arrays that rules are extracted from."""

from __future__ import annotations

import argparse
import sys
import time

from hiero.errors import UsageError

DESCRIPTION = """\
Index a bitext: its words, its source side as a suffix array, word alignments, lexical tables, and where
frequent words occur together. hiero extract and hiero decode -g take the rules of a sentence from it.

Several alignments may be given: each counts as if the bitext were there once more with it. The index is a
directory of arrays that are mapped when it is opened. It needs none of the files it is made from; but where
these are still in their places, a changed one is an error."""
EPILOG = """\
examples:
  hiero index -s train.de -t train.en -a train.align -o train.idx
  hiero index -s train.de -t train.en -a gdfa.align -a hmm.align -o train.idx
  hiero index --check train.idx"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Define ``hiero index``."""
    command = subparsers.add_parser(
        "index",
        help="index a bitext, to extract rules from",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("-s", "--source", metavar="SRC", help="source side, a sentence a line; plain or gz")
    add("-t", "--target", metavar="TGT", help="target side, as many lines")
    add(
        "-a",
        "--alignment",
        metavar="ALIGN",
        action="append",
        help="word links i-j of each pair, source first, from 0; repeatable",
    )
    add("-o", "--output", metavar="INDEX", help="the directory to make")
    add(
        "--check",
        metavar="INDEX",
        help="make no index, but compare every byte of one with its digest",
    )
    add("-q", "--quiet", action="store_true", help="nothing on standard error but errors")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    needed = {"-s": args.source, "-t": args.target, "-a": args.alignment, "-o": args.output}
    given = [flag for flag, value in needed.items() if value]
    if args.check:
        if given:
            raise UsageError(f"argument --check: expected no {given[0]} with it")
        return _check(args)
    missing = [flag for flag in needed if flag not in given]
    if missing:
        raise UsageError(f"argument {missing[0]}: expected one (needed are -s, -t, -a and -o)")

    from hiero.bitext.index import make_index

    started = time.monotonic()

    def log(stage: str) -> None:
        if not args.quiet:
            print(f"hiero index: {stage} ({time.monotonic() - started:.0f} s)", file=sys.stderr)

    make_index(args.source, args.target, args.alignment, args.output, log=log)
    log(f"{args.output} is complete")
    return 0


def _check(args: argparse.Namespace) -> int:
    from hiero.bitext.index import open_index

    index = open_index(args.check, thorough=True)
    if not args.quiet:
        places = len(index.text.src) - index.num_sentences, len(index.text.tgt) - index.num_sentences
        print(
            f"{args.check}: {index.num_sentences} sentence pairs, {places[0]} and {places[1]} words, "
            f"alignments: {len(index.links.src_span)}; as it was made",
            file=sys.stderr,
        )
    return 0
