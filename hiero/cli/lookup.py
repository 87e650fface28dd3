"""``hiero lookup``: the phrases of a text in a bitext index, their translations, and examples."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from hiero.cli.options import add_command, add_files, add_quiet, add_settings, add_threads, replaced
from hiero.core.errors import UsageError
from hiero.extraction.config import LookupConfig

if TYPE_CHECKING:
    from hiero.core.text import Segment
    from hiero.extraction.lookup import Phrase

DESCRIPTION = """\
Look up the phrases of each line in the index of a bitext: their translations, most frequent first, with
probabilities and counts, and pairs of the bitext as examples. Words are looked up as they are: tokenise and
lower-case the text as the bitext was (hiero prep).

With --format json, each line of output is an object for a line of input, with its phrases, for programs such
as those that prompt a language model with translations."""
EPILOG = """\
examples:
  hiero lookup -x train.idx "das alte haus" --examples 2
  hiero lookup -x train.idx -i test.de --longest --format json > phrases.jsonl
  hiero lookup -x train.idx -i terms.de --whole --translations 1
  hiero lookup -x train.idx --gaps --max-words 4 "er hat es nicht gelesen" """


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero lookup`` with its arguments."""
    command = add_command(
        subparsers, "lookup", "look up phrases in an indexed bitext", DESCRIPTION, EPILOG.rstrip()
    )
    add = command.add_argument
    add("text", nargs="*", help="a line to look up; with -i none")
    add("-x", "--index", metavar="INDEX", required=True, help="index made by hiero index")
    add("-i", "--input", metavar="IN", help="lines to look up; - is standard input; gz is recognised")
    add("--format", choices=("text", "json"), default="text", help="of the output (default text)")
    add_settings(command, LookupConfig)
    add_threads(command)
    add_quiet(command)
    command.set_defaults(run=run)
    add_files(command, "-x -i", "")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero lookup``; return the exit status."""
    if bool(args.text) == (args.input is not None):
        raise UsageError("requires either a text or -i IN")
    config = replaced(LookupConfig(), args)

    from hiero.core.parallel import in_order
    from hiero.core.progress import CommandProgress
    from hiero.core.text import InputForm, parse_segment
    from hiero.extraction.extractor import Extractor
    from hiero.extraction.index import open_index
    from hiero.extraction.lookup import find_phrases
    from hiero.extraction.write import read_sentences

    extractor = Extractor(open_index(args.index), config.extract)

    def segments() -> Iterator[Segment]:
        if args.text:
            yield parse_segment(" ".join(args.text), "<text>")
        else:
            yield from read_sentences(args.input, form=InputForm("text"))

    def looked_up(segment: Segment) -> tuple[Segment, list[Phrase]]:
        return segment, find_phrases(extractor, segment.words, config)

    with (
        closing(in_order(looked_up, segments(), args.threads)) as results,
        CommandProgress("lookup", quiet=args.quiet or bool(args.text)) as progress,
    ):
        progress.begin(None)
        for number, (segment, phrases) in enumerate(results, 1):
            if args.format == "json":
                found = [phrase.as_dict() for phrase in phrases]
                record = {"line": number, "source": " ".join(segment.words), "phrases": found}
                text = json.dumps(record, ensure_ascii=False) + "\n"
            else:
                text = "".join(f"{line}\n" for line in report(segment.words, phrases))
            sys.stdout.buffer.write(text.encode())
            progress.advance(1)
    sys.stdout.flush()
    return 0


def report(words: tuple[str, ...], phrases: list[Phrase]) -> Iterator[str]:
    """The phrases of a sentence for people, with an empty line at the end."""
    yield " ".join(words)
    if not phrases:
        yield "  (no phrase of the bitext)"
    for phrase in phrases:
        number = f", {times(phrase.occurrences)}" if phrase.occurrences is not None else ""
        yield f"  {phrase.source}  (word {phrase.places[0][0][0] + 1}{number})"
        for one in phrase.translations:
            yield f"    {one.probability:.3f} {one.count:7}  {one.target}"
            yield from (f"{'':18}{example.line}: {example.marked()}" for example in one.examples)
    yield ""


def times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
