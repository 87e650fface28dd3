"""``hiero decode``: translate lines."""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import hashlib
import io
import itertools
import json
import os
import sys
import time
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from hiero.cli.progress import Progress
from hiero.errors import FormatError, HieroError, UsageError

if TYPE_CHECKING:
    from hiero.config import Config
    from hiero.decode import Model
    from hiero.formats.resumable import ResumableOutput, StandardOutput
    from hiero.formats.segments import Segment
    from hiero.statistics import Statistics

DESCRIPTION = """\
Translate sentences, a line each: plain words, or <seg id="7" grammar="g.7.gz">words</seg>, whose grammars
are added for that sentence. A line in, a line out, in the same order, for any number of threads.

Without -c, -g, -l and -w the German-English model that comes with the package translates."""
EPILOG = """\
examples:
  echo 'er hat mir ein buch versprochen .' | hiero decode
  hiero decode -g grammar.gz -l lm.arpa.gz -w weights -i input.txt -o output.txt -j 4
  hiero decode -c model.yaml --kbest 100 --features rule_id,shape < input.sgm > kbest.txt
  hiero decode -c model.yaml --format json --forest forests/ -i input.txt -o output.json --resume"""
GZIP_MAGIC = b"\x1f\x8b"
AHEAD = 8  # sentences a thread may be ahead of the output


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Define ``hiero decode``."""
    command = subparsers.add_parser(
        "decode",
        help="translate text",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument_group("model").add_argument
    add("-c", "--config", metavar="CONFIG", help="YAML configuration; flags win over it")
    add(
        "-g",
        "--grammar",
        metavar="GRAMMAR",
        action="append",
        help="text (plain or gz) or compiled; repeatable",
    )
    add(
        "-l",
        "--lm",
        metavar="[NAME=]LM",
        action="append",
        help="ARPA, KenLM probing binary or compiled; repeatable",
    )
    add("-w", "--weights", metavar="WEIGHTS", help="a feature's name and its weight on each line")
    add(
        "--features",
        metavar="A,B,...",
        help="rule_id, source_bigram, target_bigram, shape, lexical, insertion_pair, source_word_penalty, "
        "arity, span_size, cdec's names for them, or MODULE:NAME of your own",
    )
    add = command.add_argument_group("input and output").add_argument
    add("-i", "--input", metavar="IN", default="-", help="default: standard input; gz is recognised")
    add(
        "-o",
        "--output",
        metavar="OUT",
        default="-",
        help="default: standard output; compressed if it ends in .gz",
    )
    add("--kbest", metavar="K", type=int, help="list the K best translations of each sentence")
    add("--unique", action=argparse.BooleanOptionalAction, help="list every string once (default)")
    add("--format", choices=["text", "cdec", "moses", "json"], help="default: text, and cdec with --kbest")
    add(
        "--cdec-names",
        action="store_true",
        default=None,
        help="spell features as cdec does, merging what it merges",
    )
    add("--forest", metavar="DIR", help="write the forest of each sentence into a directory, as N.json.gz")
    add("--forest-format", choices=["json", "json.gz", "npz"], default="json.gz", help="default: json.gz")
    add("--stats", metavar="FILE.json", help="write counts, scores, times and memory")
    add("--resume", action="store_true", help="continue an interrupted run with the same settings (needs -o)")
    add("-j", "--threads", metavar="N", type=int, default=1, help="sentences at once (default 1)")
    add("-q", "--quiet", action="store_true", help="nothing on standard error but errors")
    add = command.add_argument_group("search").add_argument
    add("--span-limit", metavar="N", type=int, help="longest span of a rule (default 15)")
    add(
        "--pop-limit",
        metavar="N",
        type=int,
        help="candidates popped per span and category (default 200); 0: all",
    )
    add(
        "--pass-through",
        choices=["all", "oov", "none"],
        help="words that may stand for themselves (default all)",
    )
    add(
        "--oov", choices=["copy", "drop", "mark"], help="what becomes of a word no rule covers (default copy)"
    )
    add(
        "--glue",
        action=argparse.BooleanOptionalAction,
        help="join partial translations left to right (default)",
    )
    add("--goal", metavar="LABEL", help="category of a whole sentence (default S)")
    add("--category", metavar="LABEL", help="category that glue joins (default X)")
    add(
        "--max-edges", metavar="N", type=int, help="an exhaustive search gives up beyond (default 50,000,000)"
    )
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.threads < 1:
        raise UsageError(f"argument -j: found {args.threads}, expected at least 1")
    if args.resume and args.output == "-":
        raise UsageError("argument --resume: expected -o OUT, since standard output cannot be continued")
    config = _config(args)

    # Loading numba takes longer than reading the command line: not before the command line is right.
    from hiero._jit import compile_timer
    from hiero.statistics import Statistics

    if not args.quiet:
        compile_timer.on_first = lambda: print(
            "hiero: compiling for this machine; this takes up to a minute, once", file=sys.stderr
        )
    statistics = Statistics()
    started = time.perf_counter()
    job = _Job(args, config, statistics)
    job.run()
    if args.stats:
        _write_stats(args.stats, job, statistics, time.perf_counter() - started)
    return 0


def _config(args: argparse.Namespace) -> Config:
    """The configuration with what the flags say in place of it."""
    from hiero.config import (
        Config,
        GrammarSection,
        LanguageModelSection,
        WeightsSection,
        bundled_config,
        read_config,
    )
    from hiero.config import record as typed
    from hiero.searchconfig import SearchConfig

    config = read_config(args.config) if args.config else Config()
    if args.grammar:
        config = dataclasses.replace(config, grammar=[GrammarSection(path=path) for path in args.grammar])
    if args.lm:
        sections = []
        for spec in args.lm:
            name, equals, path = spec.partition("=")
            named = equals and not Path(spec).exists()
            sections.append(
                LanguageModelSection(path=path, name=name) if named else LanguageModelSection(path=spec)
            )
        config = dataclasses.replace(config, lm=sections)
    if args.weights:
        config = dataclasses.replace(config, weights=WeightsSection(path=args.weights))
    features: dict[str, Any] = {}
    if args.features is not None:
        features["templates"] = [name for name in args.features.split(",") if name]
    if args.cdec_names is not None:
        features["cdec_names"] = args.cdec_names
    config = dataclasses.replace(config, features=dataclasses.replace(config.features, **features))
    given = {f.name: getattr(args, f.name) for f in dataclasses.fields(SearchConfig) if hasattr(args, f.name)}
    given = {name: value for name, value in given.items() if value is not None}
    config = dataclasses.replace(
        config, search=typed(SearchConfig, dataclasses.asdict(config.search) | given, "search")
    )
    if config.is_bundled and not args.config:
        ours = bundled_config()
        config = dataclasses.replace(config, grammar=ours.grammar, lm=ours.lm, weights=ours.weights)
    return config


class Result(NamedTuple):
    """What a worker makes of one sentence."""

    block: bytes
    statistics: Statistics
    num_escaped: int
    merged: frozenset[str]


class _Job:
    """One run of the command: read, share out, write in order."""

    def __init__(self, args: argparse.Namespace, config: Config, statistics: Statistics) -> None:
        self.args, self.config, self.statistics = args, config, statistics
        self.style = args.format or ("cdec" if config.search.kbest else "text")
        self.load_seconds = 0.0
        self.num_escaped = 0
        self.merged: set[str] = set()
        self.model: Model

    def run(self) -> None:
        from hiero.config import load
        from hiero.formats.segments import SegmentReader

        if self.args.forest:
            _make_directory(self.args.forest)
        with ExitStack() as stack:
            stream, total, digest = _open_input(self.args.input, stack)
            start = time.process_time()
            base = "." if self.args.input == "-" else str(Path(self.args.input).parent)
            self.model = load(self.config, base=base)
            self.load_seconds = time.process_time() - start
            output = self._open_output(digest, stack)
            self.model.warm_up()
            reader = SegmentReader(stream, "<stdin>" if self.args.input == "-" else self.args.input)
            progress = stack.enter_context(Progress("decode", total, quiet=self.args.quiet))
            progress.advance(output.done)
            try:
                for result in self._results(itertools.islice(enumerate(reader), output.done, None)):
                    output.write(result.block)
                    self._account(result)
                    progress.advance(1, f"{self.statistics.mean_score:.3f} mean score")
            except BaseException:
                output.close()
                if self.args.output != "-" and output.done and not self.args.quiet:
                    hint = f"{output.done} lines are in {self.args.output}.part; --resume continues"
                    print(f"\nhiero: {hint}", file=sys.stderr)
                raise
            output.finish()
        self._report(reader.num_broken)

    def _open_output(self, digest: str, stack: ExitStack) -> ResumableOutput | StandardOutput:
        from hiero.formats.resumable import ResumableOutput, StandardOutput

        target = self.args.output
        if target == "-":
            return StandardOutput(sys.stdout.buffer)
        if Path(target).exists() and not Path(target).is_file():
            return StandardOutput(stack.enter_context(open(target, "wb")))  # a device or a pipe
        made_with = [dataclasses.asdict(self.config), self.style, self.args.input, digest]
        text = json.dumps(made_with, sort_keys=True, default=str)
        return ResumableOutput(target, hashlib.sha256(text.encode()).hexdigest(), resume=self.args.resume)

    def _results(self, segments: Iterator[tuple[int, Segment]]) -> Iterator[Result]:
        """Results in the order of the input, computed by as many threads as were asked for."""
        if self.args.threads == 1:
            yield from (self._translate(number, segment) for number, segment in segments)
            return
        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(self.args.threads) as pool:
            try:
                for number, segment in segments:
                    waiting.append(pool.submit(self._translate, number, segment))
                    if len(waiting) >= AHEAD * self.args.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _translate(self, number: int, segment: Segment) -> Result:
        from hiero.decode import DerivationFeatures
        from hiero.translations import TranslationWriter
        from hiero.statistics import Statistics

        here = Statistics()
        forest = self.model.parse(segment, here)
        features = DerivationFeatures.of(forest, cdec_names=self.config.features.cdec_names)
        writer = TranslationWriter(self.style)
        with here.timed("kbest"):
            if self.config.search.kbest:
                found = forest.kbest(self.config.search.kbest, self.config.search.unique)
            else:
                found = [forest.viterbi()] if forest else []
            for translation in found[:1]:
                translation.words  # noqa: B018  works all of them out
        with here.timed("output"):
            lines = writer.lines(segment.name or str(number), segment.words, found, features)
            if self.args.forest:
                forest.save(Path(self.args.forest) / f"{number}.{self.args.forest_format}")
        return Result(lines.encode(), here, writer.num_escaped, frozenset(features.replay.merged))

    def _account(self, result: Result) -> None:
        self.statistics.add(result.statistics)
        self.num_escaped += result.num_escaped
        self.merged |= result.merged

    def _report(self, num_broken: int) -> None:
        """What the user should know, once."""
        if self.args.quiet:
            return
        notes = []
        if num_broken:
            notes.append(f"{num_broken} lines were not UTF-8; what could not be read is written as U+FFFD")
        if self.statistics.failed:
            notes.append(f"{self.statistics.failed} sentences have no translation")
        if self.num_escaped:
            notes.append(f"the word ||| is written as &#124;&#124;&#124; ({self.num_escaped} times)")
        if self.merged:
            example = sorted(self.merged)[0]
            notes.append(
                f"{len(self.merged)} of cdec's names stand for more than one feature, such as {example}"
            )
        for note in notes:
            print(f"hiero: {note}", file=sys.stderr)


def _open_input(path: str, stack: ExitStack) -> tuple[BinaryIO, int | None, str]:
    """The input, its number of lines if that can be known, and a digest of it."""
    if path == "-":
        return _standard_input(), None, ""
    from hiero.formats.text import read_chunks

    # Read whole: so that the number of lines is known, and the file may change meanwhile.
    data = b"".join(bytes(chunk.data) for chunk in read_chunks(path, what="text to translate"))
    return io.BytesIO(data), data.count(b"\n"), hashlib.sha256(data).hexdigest()


def _standard_input() -> BinaryIO:
    stream = sys.stdin.buffer
    if not isinstance(stream, io.BufferedReader) or stream.peek(2)[:2] != GZIP_MAGIC:
        return stream
    try:
        return io.BytesIO(gzip.decompress(stream.read()))
    except (EOFError, OSError, zlib.error):
        raise FormatError("<stdin>", 0, found="damaged gz data", expected="text or gz") from None


def _make_directory(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise HieroError(
            f"{path}: found {(error.strerror or str(error)).lower()}, expected a directory"
        ) from None


def _write_stats(path: str, job: _Job, statistics: Statistics, seconds: float) -> None:
    from hiero.formats.text import open_output

    numbers = statistics.as_dict()
    numbers["load_s"] += job.load_seconds
    numbers["wall_s"] = seconds
    with open_output(path) as stream:
        stream.write((json.dumps(numbers, indent=2) + "\n").encode())
