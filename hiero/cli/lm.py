"""``hiero lm``: compile a language model, query it."""

from __future__ import annotations

import argparse
import io
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from hiero.formats.text import open_output, read_chunks

if TYPE_CHECKING:
    from hiero.language import ScoredText

READ_BYTES = 1 << 20
LEVELS = {
    "word": {"word"},
    "sentence": {"sentence"},
    "summary": {"summary"},
    "2": {"word", "sentence", "summary"},
    "1": {"sentence", "summary"},
    "0": {"summary"},
}
COMPILE_HELP = """\
Write a language model as a directory of arrays, which are mapped into memory: it opens at once, and all
processes on a machine share it. OUT is written as OUT.part and renamed at the end."""
QUERY_HELP = """\
Print log10 probabilities in the form of KenLM's query: for each line

  word=id ngram_length log10(p(word|context))<TAB>...Total: log10(p) OOV: count

and perplexities at the end. ngram_length is the length of the n-gram that was found, the word included. Id 0
is the unknown word; other ids number the words in the order of the model and may differ from KenLM's. Every
line counts, also a last one without a line end, for which KenLM's query prints no total."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    lm = subparsers.add_parser("lm", help="compile or query a language model")
    commands = lm.add_subparsers(dest="lm_command", required=True, metavar="COMMAND")
    style = argparse.RawDescriptionHelpFormatter
    forms = "ARPA (plain or gz) or KenLM binary of type probing"

    command = commands.add_parser(
        "compile", help="write the mapped form of a model", description=COMPILE_HELP, formatter_class=style
    )
    command.add_argument("input", metavar="IN", type=Path, help=forms)
    command.add_argument("output", metavar="OUT", type=Path, help="directory to write")

    command = commands.add_parser(
        "query", help="score text word by word", description=QUERY_HELP, formatter_class=style
    )
    command.add_argument("model", metavar="LM", type=Path, help=f"{forms}, or compiled directory")
    command.add_argument("text", metavar="TEXT", nargs="?", default="-", help="default: standard input")
    command.add_argument("-o", "--output", default="-", metavar="OUT", help="default: standard output")
    command.add_argument(
        "-n", "--null-context", action="store_true", help="do not put lines between <s> and </s>"
    )
    command.add_argument(
        "-v",
        "--verbosity",
        action="append",
        choices=list(LEVELS),
        help="what to print; may be given several times; default: all three; "
        "2, 1, 0: from words, from sentences, only the summary",
    )
    lm.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    # Kernels are compiled or fetched at import: not before they are needed, and not for --help.
    from hiero.language import compile_language_model, load_language_models, score_text

    if args.lm_command == "compile":
        compile_language_model(args.input, args.output)
        return 0
    models = load_language_models([("LanguageModel", args.model)])
    levels = set().union(*(LEVELS[level] for level in args.verbosity or ["2"]))
    summary = _Summary()
    with open_output(args.output) as out:
        for text in _texts(args.text):
            scored = score_text(models, 0, text, markers=not args.null_context)
            lines = "".join(_lines(scored, text, levels, summary))
            out.write(lines.encode("utf-8", "surrogateescape"))
            out.flush()
        if "summary" in levels:
            out.write(summary.text().encode())
    return 0


def _texts(path: str) -> Iterator[bytes]:
    """Whole lines, as they arrive."""
    if path != "-":
        yield from (chunk.data for chunk in read_chunks(path, READ_BYTES, "text"))
        return
    held = b""
    standard_input = cast(io.BufferedReader, sys.stdin.buffer)
    while data := standard_input.read1(READ_BYTES):
        lines, end, rest = (held + data).rpartition(b"\n")
        if end:
            yield lines + end
        held = rest
    if held:
        yield held + b"\n"


class _Summary:
    """What KenLM's query adds up: totals of lines in single precision, of the corpus in double."""

    def __init__(self) -> None:
        self.total, self.unknown_total = 0.0, 0.0
        self.tokens, self.unknown = 0, 0

    def add(self, scored: ScoredText) -> None:
        self.unknown_total += float(np.sum(scored.prob[scored.word == 0], dtype=np.float64))
        self.unknown += int(np.count_nonzero(scored.word == 0))
        self.tokens += len(scored.word)

    def text(self) -> str:
        known = _perplexity(self.total - self.unknown_total, self.tokens - self.unknown)
        return (
            f"Perplexity including OOVs:\t{_number(_perplexity(self.total, self.tokens))}\n"
            f"Perplexity excluding OOVs:\t{_number(known)}\n"
            f"OOVs:\t{self.unknown}\nTokens:\t{self.tokens}\n"
        )


def _perplexity(total: float, tokens: int) -> np.float64:
    with np.errstate(all="ignore"):
        return np.float64(10.0) ** -(np.float64(total) / np.float64(tokens))


def _lines(scored: ScoredText, text: bytes, levels: set[str], summary: _Summary) -> Iterator[str]:
    summary.add(scored)
    words, lengths, probs = scored.word.tolist(), scored.length.tolist(), list(scored.prob)
    spans, first = scored.span.tolist(), scored.first.tolist()
    for begin, end in itertools.pairwise(first):
        if "word" in levels:
            for n in range(begin, end):
                start, stop = spans[n]
                surface = text[start:stop].decode("utf-8", "surrogateescape") if stop else "</s>"
                yield f"{surface}={words[n]} {lengths[n]} {_number(probs[n])}\t"
        # One after the other, in single precision: np.sum would add in pairs.
        total = np.add.accumulate(scored.prob[begin:end])[-1] if end > begin else np.float32(0.0)
        summary.total += float(total)
        if "sentence" in levels:
            yield f"Total: {_number(total)} OOV: {words[begin:end].count(0)}\n"


def _number(value: np.floating) -> str:
    """The shortest digits that read back as the same number, written as KenLM (and JavaScript) write them."""
    text = str(value)
    if "e" not in text and "n" not in text:
        return text.removesuffix(".0")
    if np.isnan(value):
        return "NaN"
    if np.isinf(value) or 1e-6 <= abs(value) < 1e21:
        return np.format_float_positional(value, unique=True, trim="-") if np.isfinite(value) else text
    return np.format_float_scientific(value, unique=True, trim="-", exp_digits=1).replace("e+", "e")
