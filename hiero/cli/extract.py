"""``hiero extract``: grammars from a bitext index."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hiero.cli.progress import ProgressBar
from hiero.errors import FormatError, UsageError

if TYPE_CHECKING:
    from hiero.bitext.extract import Extractor
    from hiero.bitext.write import GrammarWriter

DESCRIPTION = """\
Extract hierarchical rules from an index, with seven features each, as cdec's extractor does.

With -i, the rules of each sentence go to a grammar of its own, OUT/grammar.N.gz, and the sentences, with the
names of their grammars, to standard output: input for hiero decode, or for cdec. With --all, all rules of the
bitext go to one grammar."""
EPILOG = """\
examples:
  hiero extract -x train.idx -i dev.de -o grammars > dev.sgm
  hiero extract -x train.idx -i train.de -o train.grammars --leave-one-out -j 4 > train.sgm
  hiero extract -x train.idx --all --max-span 10 -o grammar.gz -j 4

hiero decode -g train.idx extracts on the fly, with no grammars in between."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Define ``hiero extract``."""
    command = subparsers.add_parser(
        "extract",
        help="extract grammars from an indexed bitext",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument_group("input and output").add_argument
    add("-x", "--index", metavar="INDEX", required=True, help="made by hiero index")
    add("-i", "--input", metavar="IN", help="sentences to extract for; - is standard input; gz is recognised")
    add("--all", action="store_true", help="one grammar of the whole bitext")
    add("-o", "--output", metavar="OUT", required=True, help="a directory; with --all a file, gz by its name")
    add(
        "--leave-one-out",
        action="store_true",
        help="sentence N of the input is sentence N of the bitext: take no rules from it",
    )
    add(
        "--leave-out-links",
        action="store_true",
        help="with --leave-one-out: nor count its links for lexical probabilities (cdec counts them)",
    )
    add("--store", metavar="DIR", help="keep the rules of sentences here in binary form, and find them again")
    add("-j", "--threads", metavar="N", type=int, default=1, help="sentences at once (default 1)")
    add("-q", "--quiet", action="store_true", help="nothing on standard error but errors")
    add = command.add_argument_group("rules").add_argument
    add("--max-span", metavar="N", type=int, default=15, help="words that a rule may cover (default 15)")
    add(
        "--max-symbols",
        metavar="N",
        type=int,
        default=5,
        help="words and gaps of a source side (default 5)",
    )
    add("--max-gaps", metavar="N", type=int, default=2, help="gaps of a rule (default 2)")
    add(
        "--samples",
        metavar="N",
        type=int,
        default=300,
        help="occurrences of a source phrase to look at, evenly spaced (default 300)",
    )
    add(
        "--min-count",
        metavar="N",
        type=int,
        default=1,
        help="leave out rules that fewer of these gave, but for translations of single words (default 1)",
    )
    add("--category", metavar="LABEL", default="X", help="label of rules and gaps (default X)")
    add(
        "--cache-mb",
        metavar="N",
        type=int,
        default=512,
        help="memory for phrases met before, in each thread (default 512)",
    )
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.threads < 1:
        raise UsageError(f"argument -j: found {args.threads}, expected at least 1")
    if args.all == (args.input is not None):
        raise UsageError("expected either -i IN or --all")
    for flag, value in (("--leave-one-out", args.leave_one_out), ("--store", args.store)):
        if args.all and value:
            raise UsageError(f"argument {flag}: expected with -i, not with --all")
    if args.leave_out_links and not args.leave_one_out:
        raise UsageError("argument --leave-out-links: expected with --leave-one-out")

    from hiero.bitext.extract import Extractor
    from hiero.bitext.index import open_index
    from hiero.bitext.limits import ExtractConfig
    from hiero.bitext.write import GrammarWriter

    config = ExtractConfig(
        max_span=args.max_span,
        max_symbols=args.max_symbols,
        max_gaps=args.max_gaps,
        samples=args.samples,
        min_count=args.min_count,
        leave_out_links=args.leave_out_links,
        category=args.category,
        cache_mb=args.cache_mb,
        store=args.store,
    )
    extractor = Extractor(open_index(args.index), config)
    writer = GrammarWriter(extractor, args.threads)
    num_rules = _whole(args, writer, extractor) if args.all else _sentences(args, writer, extractor)
    if not args.quiet:
        print(f"hiero extract: {num_rules} rules", file=sys.stderr)
        if writer.num_escaped:
            print(
                f"hiero: {writer.num_escaped} words of the bitext look like a gap or |||, "
                "and are written with &#91; &#93; &#124;",
                file=sys.stderr,
            )
    return 0


def _whole(args: argparse.Namespace, writer: GrammarWriter, extractor: Extractor) -> int:
    done = num_rules = 0
    with ProgressBar("extract", extractor.index.num_sentences, quiet=args.quiet) as progress:
        for sentences, num_rules in writer.whole(args.output):
            progress.advance(sentences - done, f"{num_rules} rules")
            done = sentences
    return num_rules


def _sentences(args: argparse.Namespace, writer: GrammarWriter, extractor: Extractor) -> int:
    from hiero.bitext.write import grammar_name, line_with_grammar, read_sentences

    # All of the input before anything is made: what is wrong with it leaves nothing behind.
    segments = list(read_sentences(args.input, extractor if args.leave_one_out else None))
    directory = Path(args.output)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file" if isinstance(error, FileExistsError) else (error.strerror or str(error)).lower()
        raise FormatError(directory, 0, found=reason, expected="a directory for grammars") from None
    paths = [directory / grammar_name(number) for number in range(len(segments))]
    num_rules = 0
    results = writer.sentences(zip(paths, segments, strict=True), args.leave_one_out)
    with ProgressBar("extract", len(segments), quiet=args.quiet) as progress, contextlib.closing(results):
        for number, found in enumerate(results):
            num_rules += found
            progress.advance(1, f"{num_rules} rules")
            sys.stdout.buffer.write(line_with_grammar(number, paths[number], segments[number]).encode())
    return num_rules
