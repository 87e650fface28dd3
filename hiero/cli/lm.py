"""``hiero lm``: learn classes, estimate a language model, compile it, query it."""

from __future__ import annotations

import argparse
import io
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hiero.cli.options import (
    Parser,
    add_command,
    add_files,
    add_quiet,
    add_settings,
    add_temporary,
    add_threads,
    at_least,
    replaced,
)
from hiero.core.errors import UsageError
from hiero.core.progress import CommandProgress
from hiero.core.text import open_output, read_chunks
from hiero.lm.config import FALLBACK, TEMPORARY, ClassConfig, EstimateConfig, InterpolateConfig

if TYPE_CHECKING:
    from hiero.lm.estimate import EstimatedModel
    from hiero.lm.interpolate import InterpolatedModel


READ_BYTES = 1 << 20
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")
NUMBER_LISTS = ("--prune", "--discount-fallback", "--weights")
MIN_MEMORY = 16  # MB
CLASSES = "the model is one of classes: FILE has a word and its class on each line; other words are <unk>"
LEVELS = {
    "word": {"word"},
    "sentence": {"sentence"},
    "summary": {"summary"},
    "2": {"word", "sentence", "summary"},
    "1": {"sentence", "summary"},
    "0": {"summary"},
}
ESTIMATE_HELP = """\
Estimate a language model from text, a sentence on each line, with interpolated modified Kneser-Ney smoothing:
the same n-grams and probabilities as KenLM's lmplz. Words are separated by white space; the text must be
UTF-8. n-grams are counted and sorted in the memory given by --memory, and beyond that on disk; the
vocabulary needs additional memory.

OUT is an ARPA file if it ends in .arpa or .arpa.gz or is -, otherwise a compiled directory (see lm compile),
whose table must fit into memory. It only appears when it is complete."""
EXAMPLES = """\
examples:
  hiero lm estimate --order 5 train.en lm.arpa.gz
  hiero lm estimate --order 5 --prune 0 0 1 --memory 4000 --temp /scratch train.en.gz lm
  hiero lm estimate --order 3 --discount-fallback --vocab words.txt classes.txt lm.arpa
  hiero lm estimate --order 6 --discount-fallback --classes train.classes train.en classes.lm"""
COMPILE_HELP = """\
Write a language model as a directory of memory-mapped arrays: it opens at once, and all processes on a
machine share it. OUT is written as OUT.part and renamed at the end."""
CLASSES_HELP = """\
Learn classes of words, for language models of classes (hiero lm estimate --classes). Each word moves to the
class where a class bigram model fits the text best (exchange algorithm), until none moves; the objective is
that of mkcls. OUT has a word and its class, a number from 1, on each line, frequent words first. The symbols
<s>, </s> and <unk> are left out."""
CLASSES_EXAMPLES = """\
examples:
  hiero lm classes train.en train.classes
  hiero lm classes --classes 200 train.en.gz train.classes"""
INTERPOLATE_HELP = """\
Mix ARPA models: p(w | h) is the sum of weight times p(w | h) of each model, 0 for words that it does not
have. OUT has the n-grams of all models with these probabilities, and back-off weights that make those after
each context add up to one (static interpolation, as SRILM's ngram -mix-lm). The models are held in memory,
and their n-grams once more. Perplexities are those of the mixture before it is written, without words that no
model knows; hiero lm query gives those of OUT."""
INTERPOLATE_EXAMPLES = """\
examples:
  hiero lm interpolate news.arpa.gz talks.arpa.gz mixed.arpa.gz --tune dev.en
  hiero lm interpolate news.arpa.gz talks.arpa.gz mixed --weights 0.7 0.3"""
QUERY_HELP = """\
Print log10 probabilities in the form of KenLM's query: for each line

  word=id ngram_length log10(p(word|context))<TAB>...Total: log10(p) OOV: count

and perplexities at the end. ngram_length is the length of the n-gram that was found, the word included. Id 0
is the unknown word; other ids number the words in the order of the model and may differ from KenLM's. A last
line without a line end counts too; KenLM's query prints no total for it."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero lm`` with its subcommands."""
    lm = subparsers.add_parser("lm", help="estimate, compile or query a language model")
    commands = lm.add_subparsers(
        dest="lm_command", required=True, metavar="COMMAND", parser_class=_NumberListParser
    )
    forms = "ARPA (plain or gz) or KenLM binary (probing, trie, quantised trie)"

    _add_estimate(commands)
    command = add_command(commands, "compile", "write a model as memory-mapped arrays", COMPILE_HELP)
    command.add_argument("input", metavar="IN", type=Path, help=forms)
    command.add_argument("output", metavar="OUT", type=Path, help="directory to write")
    for flag, text in (
        ("--quantize", "codes of 2 to 8 bits instead of probabilities and back-offs"),
        ("--backoff-bits", "another number of bits for back-offs (default: as --quantize)"),
    ):
        command.add_argument(flag, metavar="BITS", type=int, choices=range(2, 9), help=text)
    add_files(command, "IN", "OUT")

    _add_classes(commands)
    _add_interpolate(commands)
    command = add_command(commands, "query", "score text word by word", QUERY_HELP)
    command.add_argument("model", metavar="LM", type=Path, help=f"{forms}, or compiled directory")
    command.add_argument("text", metavar="TEXT", nargs="?", default="-", help="default: standard input")
    command.add_argument("-o", "--output", default="-", metavar="OUT", help="default: standard output")
    command.add_argument("--classes", metavar="FILE", type=Path, help=CLASSES)
    command.add_argument("-n", "--null-context", action="store_true", help="do not add <s> and </s> to lines")
    command.add_argument(
        "-v",
        "--verbosity",
        action="append",
        choices=list(LEVELS),
        help="what to print; repeatable; default: word, sentence and summary; 2: all, 1: sentence and "
        "summary, 0: summary",
    )
    add_files(command, "LM TEXT --classes", "-o")
    lm.set_defaults(run=run)


class _NumberListParser(Parser):
    """A parser in which the numbers of ``--prune 0 0 1 TEXT`` end before TEXT, unlike with nargs."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        return super().parse_known_args(_fold(sys.argv[1:] if args is None else args), namespace)


def _fold(arguments: Sequence[str]) -> list[str]:
    """Join each list of numbers into one argument: ``--prune=0 0 1``."""
    folded: list[str] = []
    rest = list(arguments)
    while rest:
        flag = rest.pop(0)
        numbers = list(itertools.takewhile(NUMBER.fullmatch, rest)) if flag in NUMBER_LISTS else []
        del rest[: len(numbers)]
        folded.append(f"{flag}={' '.join(numbers)}" if flag in NUMBER_LISTS else flag)
    return folded


def _integers(text: str) -> tuple[int, ...]:
    numbers = text.split()
    if not numbers or not all(number.isdecimal() for number in numbers):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected whole numbers")
    return tuple(map(int, numbers))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split())) or FALLBACK


def _add_estimate(commands: argparse._SubParsersAction[_NumberListParser]) -> None:
    command = add_command(commands, "estimate", "estimate a model from text", ESTIMATE_HELP, EXAMPLES)
    add = command.add_argument
    add("text", metavar="TEXT", help="plain or gz; - for standard input")
    add("output", metavar="OUT", type=Path, help="file or directory to write")
    add_settings(command, EstimateConfig, ("order",))
    add(
        "--prune",
        metavar="N ...",
        type=_integers,
        default=(),
        help="leave out n-grams that occur N times or less; a number for each length, the last one for all "
        "longer n-grams (0 0 1: those of three or more words that occur once)",
    )
    add(
        "--discount-fallback",
        metavar="D ...",
        type=_numbers,
        help="discounts of counts 1, 2, and 3 and more, for n-gram lengths whose discounts cannot be "
        f"estimated, as in small or repetitive text (without numbers: {' '.join(map(str, FALLBACK))})",
    )
    add("--vocab", metavar="FILE", type=Path, help="words of the model; all others become <unk>")
    add("--classes", metavar="FILE", type=Path, help=CLASSES)
    add_settings(command, EstimateConfig, ("skip_symbols",))
    add(
        "--memory",
        metavar="MB",
        type=at_least(MIN_MEMORY),
        help=f"memory for n-grams, {MIN_MEMORY} or more (default: a quarter of the machine's)",
    )
    add_temporary(command)
    add("--format", choices=["arpa", "compiled"], help="format of OUT (default: by its name)")
    add_threads(command)
    add_quiet(command)
    add_files(command, "TEXT --vocab --classes", "OUT")


def _add_classes(commands: argparse._SubParsersAction[_NumberListParser]) -> None:
    command = add_command(commands, "classes", "learn classes of words", CLASSES_HELP, CLASSES_EXAMPLES)
    add = command.add_argument
    add("text", metavar="TEXT", help="plain or gz; - for standard input")
    add("output", metavar="OUT", help="file to write; - for standard output")
    add_settings(command, ClassConfig, ("classes", "passes"))
    add_temporary(command)
    add_quiet(command)
    add_files(command, "TEXT", "OUT")


def _add_interpolate(commands: argparse._SubParsersAction[_NumberListParser]) -> None:
    command = add_command(commands, "interpolate", "mix models", INTERPOLATE_HELP, INTERPOLATE_EXAMPLES)
    add = command.add_argument
    add("models", metavar="MODEL", nargs="+", type=Path, help="ARPA, plain or gz")
    add("output", metavar="OUT", type=Path, help="file or directory to write, as in lm estimate")
    add("--tune", metavar="TEXT", type=Path, help="text to learn the weights from, by EM")
    add(
        "--weights",
        metavar="W ...",
        type=_numbers,
        default=(),
        help="weights of the models, which are normalised (default: equal)",
    )
    add_settings(command, InterpolateConfig, ("iterations", "precision"))
    add("--format", choices=["arpa", "compiled"], help="format of OUT (default: by its name)")
    add_quiet(command)
    add_files(command, "MODEL --tune", "OUT")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero lm``; return the exit status."""
    if args.lm_command == "estimate":
        return _estimate(args)
    if args.lm_command == "interpolate":
        return _interpolate(args)
    if args.lm_command == "classes":
        return _classes(args)
    # Imported here, since numba is slow to load.
    from hiero.lm.kenlm import KenlmQuerySummary, kenlm_query_lines
    from hiero.lm.load import ModelFiles, compile_language_model, load_language_models
    from hiero.lm.model import score_text

    if args.lm_command == "compile":
        if args.backoff_bits is not None and args.quantize is None:
            raise UsageError("argument --backoff-bits: requires --quantize BITS")
        bits = None if args.quantize is None else (args.quantize, args.backoff_bits or args.quantize)
        compile_language_model(args.input, args.output, bits)
        return 0
    models = load_language_models([ModelFiles("LanguageModel", args.model, args.classes)])
    levels = set().union(*(LEVELS[level] for level in args.verbosity or ["2"]))
    summary = KenlmQuerySummary()
    with open_output(args.output) as out:
        for text in _texts(args.text):
            scored = score_text(models, 0, text, markers=not args.null_context)
            lines = "".join(kenlm_query_lines(scored, text, levels, summary))
            out.write(lines.encode("utf-8", "surrogateescape"))
            out.flush()
        if "summary" in levels:
            out.write(summary.text().encode())
    return 0


def _estimate(args: argparse.Namespace) -> int:
    from hiero.lm.estimate import estimate_language_model

    further = {
        "prune": args.prune,
        "discount_fallback": args.discount_fallback,
        "vocabulary": args.vocab,
        "classes": args.classes,
        "memory": (args.memory or 0) * 1_000_000,
        "temp": args.temp or TEMPORARY,
        "threads": args.threads,
    }
    config = replaced(EstimateConfig(), args, further)
    compiled = _is_compiled(args)
    with CommandProgress("lm", quiet=args.quiet) as progress:
        model = estimate_language_model(args.text, args.output, config, compiled=compiled, progress=progress)
    if not args.quiet:
        print("\n".join(_statistics(model)), file=sys.stderr)
    return 0


def _is_compiled(args: argparse.Namespace) -> bool:
    """Whether OUT is to be a compiled directory."""
    if args.format is not None:
        return bool(args.format == "compiled")
    return str(args.output) != "-" and not args.output.name.endswith((".arpa", ".arpa.gz"))


def _interpolate(args: argparse.Namespace) -> int:
    from hiero.lm.interpolate import interpolate

    config = replaced(InterpolateConfig(), args, {"weights": args.weights, "tune": args.tune})
    with CommandProgress("lm", quiet=args.quiet) as progress:
        mixed = interpolate(args.models, args.output, config, compiled=_is_compiled(args), progress=progress)
    if not args.quiet:
        print("\n".join(_mixture(args.models, mixed)), file=sys.stderr)
    return 0


def _classes(args: argparse.Namespace) -> int:
    from hiero.lm.cluster import learn_classes, write_classes

    config = replaced(ClassConfig(), args, {"temp": args.temp or TEMPORARY})
    with CommandProgress("lm", quiet=args.quiet) as progress:
        learnt = learn_classes(args.text, config, progress)
    write_classes(args.output, learnt)
    if not args.quiet:
        first, *_, last = learnt.perplexities
        print(
            f"hiero: {len(learnt.words)} words in {config.classes} classes; perplexity of the class bigram "
            f"model {last:.3f}, {first:.3f} at the beginning ({len(learnt.perplexities) - 1} passes)",
            file=sys.stderr,
        )
    return 0


def _mixture(paths: Sequence[Path], mixed: InterpolatedModel) -> Iterator[str]:
    """Weights, perplexities and numbers of n-grams."""
    fit = mixed.fit
    for path, weight in zip(paths, fit.weights, strict=True):
        yield f"hiero: weight {weight:.6f} {path}"
    if fit.perplexities:
        first, last = fit.perplexities[0], fit.perplexities[-1]
        yield (
            f"hiero: perplexity {last:.3f}, {first:.3f} with equal weights "
            f"({fit.num_words} words, {fit.num_unknown} unknown; {len(fit.perplexities) - 1} steps)"
        )
    counts = ", ".join(f"{count} {length}-grams" for length, count in enumerate(mixed.counts, 1))
    yield f"hiero: {counts}"


def _statistics(model: EstimatedModel) -> Iterator[str]:
    """Statistics in the form of lmplz."""
    different = len(model.words.first) - 1
    yield f"hiero: {model.num_lines} lines, {model.num_words} words, {different} different ones"
    if model.num_unknown:
        yield f"hiero: {model.num_unknown} words without a class"
    for length, order in enumerate(model.orders, 1):
        of_all = f" of {order.listed}" if order.kept < order.listed else ""
        one, two, more = order.discounts
        note = f" (fallback: {order.problem})" if order.problem else ""
        yield f"hiero: {order.kept}{of_all} {length}-grams, discounts {one:.6g} {two:.6g} {more:.6g}{note}"


def _texts(path: str) -> Iterator[bytes]:
    """Blocks of whole lines, as they arrive."""
    if path != "-":
        yield from (chunk.data for chunk in read_chunks(path, READ_BYTES, "text"))
        return
    partial = b""
    standard_input = cast(io.BufferedReader, sys.stdin.buffer)
    while data := standard_input.read1(READ_BYTES):
        lines, end, rest = (partial + data).rpartition(b"\n")
        if end:
            yield lines + end
        partial = rest
    if partial:
        yield partial + b"\n"
