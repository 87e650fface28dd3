"""``hiero extract``: grammars from a bitext index."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hiero.cli.options import (
    add_command,
    add_files,
    add_quiet,
    add_settings,
    add_threads,
    overrides,
    replaced,
)
from hiero.core.errors import FormatError, UsageError, os_message
from hiero.core.progress import CommandProgress
from hiero.extraction.config import ExtractConfig, PhraseConfig

if TYPE_CHECKING:
    from hiero.extraction.extractor import Extractor
    from hiero.extraction.write import GrammarWriter


DESCRIPTION = """\
Extract hierarchical rules from an index, with seven features each, as cdec's extractor does; two more with
--target-counts.

With -i, the rules of each sentence are written to its own grammar, OUT/grammar.N.gz, and the sentences, with
the names of their grammars, to standard output, as input for hiero decode or cdec. With --all, all rules of
the bitext are written to one grammar, by where their source sides occur first; they take 100 bytes each
beside it while they are sorted.

With --phrases, OUT is a phrase table as Moses' training makes it, of the bitext in an index or in text files:
source ||| target ||| p(f|e) lex(f|e) p(e|f) lex(e|f) ||| links ||| count(e) count(f) count(f, e). All phrase
pairs are held in memory, about 100 bytes each."""
EPILOG = """\
examples:
  hiero extract -x train.idx -i dev.de -o grammars > dev.sgm
  hiero extract -x train.idx -i train.de -o train.grammars --leave-one-out -j 4 > train.sgm
  hiero extract -x train.idx --all --max-span 10 -o grammar.gz -j 4
  hiero extract -x train.idx --phrases -o phrases.gz
  hiero extract -s train.de -t train.en -a train.align --phrases --max-length 5 -o phrases.gz

hiero decode -g train.idx extracts on the fly, without writing grammars."""

OF_PAIRS = ("leave_out", "leave_out_links")  # settings of --leave-one-out


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero extract`` with its arguments."""
    command = add_command(
        subparsers, "extract", "extract grammars from an indexed bitext", DESCRIPTION, EPILOG
    )
    group = command.add_argument_group("input and output")
    add = group.add_argument
    add("-x", "--index", metavar="INDEX", help="index made by hiero index")
    add("-i", "--input", metavar="IN", help="sentences to extract for; - is standard input; gz is recognised")
    add("--all", action="store_true", help="write one grammar of the whole bitext")
    add("--phrases", action="store_true", help="write one phrase table of the whole bitext")
    add("-s", "--source", metavar="FILE", help="with --phrases, instead of -x: source text, plain or gz")
    add("-t", "--target", metavar="FILE", help="target text")
    add("-a", "--alignment", metavar="FILE", action="append", help="word alignment, i-j; repeatable")
    add(
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="directory; with --all or --phrases a file, .gz compresses",
    )
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
    phrases = command.add_argument_group("phrases", "of --phrases, with --min-count")
    add_settings(phrases, PhraseConfig, without=("min_count",))
    command.set_defaults(run=run)
    add_files(command, "-x -i -s -t -a", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero extract``; return the exit status."""
    if args.all + (args.input is not None) + args.phrases != 1:
        raise UsageError("requires either -i IN, --all or --phrases")
    if args.phrases:
        return _phrases(args)
    _check_only_index(args)
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
        _report_escaped(writer.num_escaped)
    return 0


def _check_only_index(args: argparse.Namespace) -> None:
    """Refuse options of phrase tables, and require an index."""
    given = overrides(args, PhraseConfig).keys() - {"min_count"}
    texts = {name for name in ("source", "target", "alignment") if getattr(args, name) is not None}
    for name in sorted(given | texts):
        raise UsageError(f"argument --{name.replace('_', '-')}: requires --phrases")
    if args.index is None:
        raise UsageError("the following arguments are required: -x/--index")


def _phrases(args: argparse.Namespace) -> int:
    for name in sorted(overrides(args, ExtractConfig).keys() - {"min_count"}):
        raise UsageError(f"argument --{name.replace('_', '-')}: not allowed with --phrases")
    if args.leave_one_out:
        raise UsageError("argument --leave-one-out: not allowed with --phrases")
    texts = args.source, args.target, args.alignment
    if (args.index is None) == (texts == (None, None, None)) or (args.index is None and None in texts):
        raise UsageError("--phrases requires either -x INDEX or -s FILE -t FILE -a FILE")

    from hiero.extraction.index import open_index
    from hiero.extraction.write import (
        aligned_bitext_of,
        find_phrase_pairs,
        read_aligned_bitext,
        write_phrase_table,
    )

    config = replaced(PhraseConfig(), args)
    bitext = read_aligned_bitext(*texts) if args.index is None else aligned_bitext_of(open_index(args.index))
    with CommandProgress("extract", quiet=args.quiet) as progress:
        pairs = find_phrase_pairs(bitext, config, progress)
        num_escaped = write_phrase_table(args.output, bitext, pairs, progress)
    if not args.quiet:
        print(f"hiero extract: {len(pairs.pair)} phrase pairs", file=sys.stderr)
        _report_escaped(num_escaped)
    return 0


def _report_escaped(num_escaped: int) -> None:
    if num_escaped:
        print(
            f"hiero: {num_escaped} words of the bitext look like a gap or |||; "
            "they are written with &#91; &#93; &#124;",
            file=sys.stderr,
        )


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
