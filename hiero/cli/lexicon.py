"""``hiero lexicon``: translations of words, from the links of a bitext index."""

from __future__ import annotations

import argparse

from hiero.cli.options import add_command, add_files, add_settings, replaced
from hiero.extraction.config import LexiconSettings

DESCRIPTION = """\
Write the lexicon of an index: pairs of words that are linked, with the probability of each as a translation
of the other, by relative frequency of links. NULL stands for no word, to which words without links are
counted.

With --format marian, lines are those of Marian's lexical shortlists, "target source p(target | source)", and
NULL is left out."""
EPILOG = """\
examples:
  hiero lexicon -x train.idx -o lexicon.tsv.gz --min-prob 0.01
  hiero lexicon -x train.idx -o lex.s2t.gz --format marian --top 100"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero lexicon`` with its arguments."""
    command = add_command(
        subparsers, "lexicon", "write translations of words, from an index", DESCRIPTION, EPILOG
    )
    add = command.add_argument
    add("-x", "--index", metavar="INDEX", required=True, help="index made by hiero index")
    add("-o", "--output", metavar="OUT", default="-", help="default: standard output; .gz compresses")
    add_settings(command, LexiconSettings)
    command.set_defaults(run=run)
    add_files(command, "-x", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero lexicon``; return the exit status."""
    settings = replaced(LexiconSettings(), args)

    from hiero.core.text import open_output
    from hiero.extraction.index import open_index
    from hiero.extraction.lexicon import lexicon_lines

    with open_output(args.output) as stream:
        stream.writelines(line.encode() for line in lexicon_lines(open_index(args.index), settings))
    return 0
