"""``hiero prep``: tokenise, clean and detokenise text."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from hiero.bitext.config import NO_LIMIT, OF_LINES, CompoundConfig, PrepConfig
from hiero.cli.options import (
    add_command,
    add_files,
    add_quiet,
    add_settings,
    add_threads,
    flag_of,
    overrides,
    replaced,
)
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress

if TYPE_CHECKING:
    from hiero.bitext.prepare import PrepCounts


DESCRIPTION = """\
Prepare raw text for the other commands: Unicode in NFC, no control characters, words and punctuation
separated by single spaces (by sacremoses, nothing escaped; Chinese and Japanese by characters; or by a
model of SentencePiece), optionally lower case.

Two files, -s and -t, are parallel: pairs that are empty, too long or of too unequal length are dropped, and
counted on standard error. In a single file, -i, lines are only dropped if a limit is given, so that
translations stay aligned.

--detokenize joins words to text, with capitals at sentence starts and in words of a list.

--learn-compounds counts the words of a text, and --split-compounds splits compounds of other text by these
counts (Koehn and Knight 2003): to the best parts, to lattices of several ways to split, or to marked parts
that --detokenize --join-compounds joins again."""
EPILOG = """\
examples:
  hiero prep -s raw.de -t raw.en --src-lang de --tgt-lang en --lowercase -o train.de train.en -j 4
  hiero prep -i test.raw.de --lang de --lowercase -o test.de
  hiero prep --learn-truecase -i raw.en --lang en -o truecase.en
  hiero decode ... | hiero prep --detokenize --lang en --truecase truecase.en
  hiero prep --learn-compounds -i train.de --no-tokenize -o compounds.gz
  hiero prep --split-compounds lattice --compounds compounds.gz -i test.de --no-tokenize | hiero decode ..."""
WITHOUT_LIMITS = PrepConfig(min_words=NO_LIMIT, max_words=NO_LIMIT, max_ratio=NO_LIMIT)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero prep`` with its arguments."""
    command = add_command(subparsers, "prep", "tokenise, clean and detokenise text", DESCRIPTION, EPILOG)
    group = command.add_argument_group("input and output")
    add = group.add_argument
    add("-s", "--source", metavar="SRC", help="source side of parallel text; gz is recognised")
    add("-t", "--target", metavar="TGT", help="target side, with the same number of lines")
    add("-i", "--input", metavar="IN", help="a single file (default without -s and -t: standard input)")
    add(
        "-o",
        "--output",
        metavar="OUT",
        nargs="+",
        help="two files for -s and -t, one for -i (default: standard output); compressed if it ends in .gz",
    )
    add("--src-lang", metavar="LANG", help="language of -s: de, en, ...")
    add("--tgt-lang", metavar="LANG", help="language of -t")
    add("--lang", metavar="LANG", help="language of -i")
    add_threads(group, "processes", "--jobs")
    add_quiet(group)
    add_settings(command.add_argument_group("text"), PrepConfig, without=OF_LINES)
    dropped = command.add_argument_group("lines to drop (defaults are for pairs; 0: no limit)")
    add_settings(dropped, PrepConfig, OF_LINES)
    group = command.add_argument_group("detokenisation")
    modes = group.add_mutually_exclusive_group()
    add = modes.add_argument
    add("--detokenize", action="store_true", help="join words to text")
    add("--learn-truecase", action="store_true", help="write a list of the words of -i that have capitals")
    add = group.add_argument
    add("--recase", action=argparse.BooleanOptionalAction, help="add capitals (default of --detokenize)")
    add("--truecase", metavar="LIST", help="words with capitals, one a line")
    add("--join-compounds", action="store_true", help="with --detokenize: join parts that end with @@")
    group = command.add_argument_group("compounds")
    modes.add_argument("--learn-compounds", action="store_true", help="write a model of the words of -i")
    modes.add_argument(
        "--split-compounds",
        choices=["best", "lattice", "marked"],
        help="split words of -i: best parts, lattices of several ways (PLF), best parts marked with @@",
    )
    group.add_argument("--compounds", metavar="MODEL", help="of --split-compounds, by --learn-compounds")
    add_settings(group, CompoundConfig)
    command.set_defaults(run=run)
    add_files(command, "-s -t -i --truecase --sentencepiece-model --compounds", "-o")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero prep``; return the exit status."""
    _check(args)
    if args.detokenize:
        return _detokenize(args)
    if args.learn_truecase:
        return _learn(args)
    if args.learn_compounds or args.split_compounds:
        return _compounds(args)
    return _prepare(args)


def _check(args: argparse.Namespace) -> None:
    """Check which options go together."""
    pair = args.source is not None or args.target is not None
    if pair and (args.source is None or args.target is None):
        raise UsageError("requires both -s and -t, or -i for a single file")
    if pair and args.input is not None:
        raise UsageError("argument -i: not allowed with -s and -t")
    if args.jobs < 1:
        raise UsageError(f"argument -j: found {args.jobs}, expected at least 1")
    if not pair and "max_ratio" in overrides(args, PrepConfig):
        raise UsageError("argument --max-ratio: requires -s and -t")
    modes = ("detokenize", "learn-truecase", "learn-compounds", "split-compounds")
    mode = next((mode for mode in modes if getattr(args, mode.replace("-", "_"))), "")
    if pair and mode:
        raise UsageError(f"argument --{mode}: requires a single file (-i, not -s and -t)")
    if pair and args.lang:
        raise UsageError("argument --lang: not allowed with -s and -t (use --src-lang and --tgt-lang)")
    if not pair and (args.src_lang or args.tgt_lang):
        raise UsageError("arguments --src-lang, --tgt-lang: require -s and -t (use --lang for a single file)")
    if not args.detokenize and (args.truecase or args.recase is not None):
        raise UsageError("arguments --truecase, --recase: require --detokenize")
    if args.recase is False and args.truecase:
        raise UsageError("argument --truecase: not allowed with --no-recase")
    if (mode == "split-compounds") != (args.compounds is not None):
        missing = "argument --compounds" if args.compounds else "argument --split-compounds"
        other = "--split-compounds" if args.compounds else "--compounds MODEL (made by --learn-compounds)"
        raise UsageError(f"{missing}: requires {other}")
    if args.join_compounds and not args.detokenize:
        raise UsageError("argument --join-compounds: requires --detokenize")
    if mode != "learn-compounds" and (given := overrides(args, CompoundConfig)):
        raise UsageError(f"argument {flag_of(CompoundConfig, next(iter(given)))}: requires --learn-compounds")
    if mode:
        _refuse(args, mode, detokenizing=args.detokenize)
    _check_outputs(args, pair)


def _refuse(args: argparse.Namespace, mode: str, *, detokenizing: bool) -> None:
    """Refuse options that would be ignored."""
    allowed = ["tokenizer", "sentencepiece_model"]
    if not detokenizing:
        allowed += ["tokenize", "normalize_punctuation"]
    if mode.endswith("compounds"):
        allowed += ["lowercase"]
    for name, value in overrides(args, PrepConfig).items():
        if name not in allowed:
            flag = flag_of(PrepConfig, name)
            flag = flag.replace("--", "--no-") if value is False else flag
            raise UsageError(f"argument {flag}: not allowed with --{mode}")


def _check_outputs(args: argparse.Namespace, pair: bool) -> None:
    num_expected = 2 if pair else 1
    args.output = args.output or ([] if pair else ["-"])
    if len(args.output) != num_expected:
        expected = "two files, OUT.SRC OUT.TGT," if pair else "one file"
        raise UsageError(f"argument -o: found {len(args.output)} files, expected {expected}")
    if pair and args.source == args.target == "-":
        raise UsageError("standard input (-) can be read only once")


def _languages(args: argparse.Namespace, config: PrepConfig, names: list[str]) -> list[str]:
    """The given languages, which are optional without tokenisation."""
    from hiero.bitext.prepare import knows_language, unsegmented_note

    languages = []
    needed = config.needs_language
    for name in names:
        language = getattr(args, name)
        if language is None and needed:
            raise UsageError(f"argument --{name.replace('_', '-')} is missing (a language, such as de)")
        joins = args.detokenize or not config.tokenize
        if not joins and not args.quiet and (note := unsegmented_note(language or "", config)):
            print(f"hiero: {note}", file=sys.stderr)
        elif needed and not args.quiet and not knows_language(language, config):
            print(
                f"hiero: no list of abbreviations for language {language}, using that of English",
                file=sys.stderr,
            )
        languages.append(language or "")
    return languages


def _prepare(args: argparse.Namespace) -> int:
    from hiero.bitext.prepare import prepare

    pair = args.source is not None
    inputs = [args.source, args.target] if pair else [args.input or "-"]
    config = replaced(PrepConfig() if pair else WITHOUT_LIMITS, args)
    languages = _languages(args, config, ["src_lang", "tgt_lang"] if pair else ["lang"])
    with CommandProgress("prep", quiet=args.quiet) as progress:
        counts = prepare(inputs, args.output, languages, config, args.jobs, progress)
    if not args.quiet:
        for note in _notes(counts, config, "pairs" if pair else "lines"):
            print(f"hiero: {note}", file=sys.stderr)
    return 0


def _notes(counts: PrepCounts, config: PrepConfig, unit: str) -> list[str]:
    reasons = {
        "empty": counts.empty,
        f"of fewer than {config.min_words} words": counts.short,
        f"of more than {config.max_words} words": counts.long,
        f"longer on one side by more than {config.max_ratio:g} times": counts.ratio,
    }
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
    notes = [f"{counts.read:,} {unit} read, {counts.kept:,} kept, {counts.dropped:,} dropped"]
    if dropped:
        notes[0] += f" ({dropped})"
    if counts.control:
        notes.append(f"control or invisible characters removed from {counts.control:,} {unit}")
    return notes


def _detokenize(args: argparse.Namespace) -> int:
    from hiero.bitext.prepare import Recaser, detokenize

    config = replaced(PrepConfig(), args)
    (language,) = _languages(args, config, ["lang"])
    recaser = None
    if args.recase is not False:
        recaser = Recaser.read(args.truecase) if args.truecase else Recaser()
    with CommandProgress("prep", quiet=args.quiet) as progress:
        files = args.input or "-", args.output[0]
        detokenize(*files, language, recaser, args.jobs, progress, config, join=args.join_compounds)
    return 0


def _compounds(args: argparse.Namespace) -> int:
    from hiero.bitext.compounds import learn_compounds, split_compounds

    config, source, output = replaced(WITHOUT_LIMITS, args), args.input or "-", args.output[0]
    (language,) = _languages(args, config, ["lang"])
    with CommandProgress("prep", quiet=args.quiet) as progress:
        if args.split_compounds:
            made = args.compounds, args.split_compounds
            split_compounds(source, output, *made, args.jobs, progress, (language, config))
            return 0
        words = learn_compounds(source, output, replaced(CompoundConfig(), args), (language, config))
    if not args.quiet:
        print(f"hiero: {words:,} words counted", file=sys.stderr)
    return 0


def _learn(args: argparse.Namespace) -> int:
    from hiero.bitext.prepare import learn_truecase

    config = replaced(WITHOUT_LIMITS, args)
    (language,) = _languages(args, config, ["lang"])
    with CommandProgress("prep", quiet=args.quiet) as progress:
        words = learn_truecase(args.input or "-", args.output[0], language, config, args.jobs, progress)
    if not args.quiet:
        print(f"hiero: {words:,} words with capitals inside sentences", file=sys.stderr)
    return 0
