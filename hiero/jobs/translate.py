"""Decoding of a whole text: input, threads, ordered output and a report."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import hiero
from hiero.config.config import Config
from hiero.config.model import WeightsCheck, make_model
from hiero.core.errors import FormatError, HieroError, os_message
from hiero.core.input import parse_input
from hiero.core.parallel import in_order
from hiero.core.progress import Progress
from hiero.core.records import record_paths
from hiero.core.text import (
    TRANSLATED_BARS,
    Segment,
    checked_path,
    decode_line,
    read_chunks,
    write_output,
)
from hiero.decoder.config import ConsensusConfig, SearchConfig
from hiero.decoder.consensus import check_choice, choose
from hiero.decoder.derivation import Derivation
from hiero.decoder.forest import Forest
from hiero.decoder.forest_features import ForestFeatures
from hiero.decoder.model import Model
from hiero.decoder.output import TranslationWriter
from hiero.decoder.statistics import Statistics
from hiero.grammar.sources import grammar_paths
from hiero.jobs.raw_text import RawText, without_compounds
from hiero.jobs.resumable_output import ResumableOutput, StandardOutput, is_begun
from hiero.jobs.run_directory import locked_directory

STANDARD_INPUT = "<stdin>"
GZIP_MAGIC = b"\x1f\x8b"
LATTICE_SETTINGS = ("lattice", "lattice_format", "lattice_beam", "lattice_posterior")
LATTICE_ARCS, SMALLEST_BEAM = 200_000, 1e-3  # lattices with more arcs are made with smaller beams
MAX_SHOWN = 5  # malformed lines, before they are only counted
BY_PREP = "hiero prep makes them"
LINES_COMPARED = 10  # at the beginning, with text as the model's preparation leaves it


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Input, output and other settings beside the model."""

    input: str = "-"
    output: str = "-"
    style: str | None = None  # of the output; by default text, or cdec for k-best lists
    forest: str | None = None  # directory, with a file for each sentence
    forest_format: str = "json.gz"
    lattice: str | None = None  # directory, with a word lattice for each sentence
    lattice_format: Literal["openfst", "plf"] = "openfst"
    lattice_beam: float = 1.0  # derivations further below the best are left out
    lattice_posterior: float = 0.0  # arcs with a smaller posterior are left out
    threads: int = 1
    resume: bool = False  # continue an interrupted output, made with the same settings
    allow_grammar_paths: bool = False  # of <seg>, outside the directory of the input
    raw: bool = False  # lines are raw text, and so are translations, by the section prep of the model
    truecase: str | None = None  # a list of words with capitals, for raw text
    # A digest of everything that the output depends on. An interrupted output with the same key is continued,
    # one with another key is made again.
    key: str | None = None


@dataclass(slots=True)
class LineResult:
    line: bytes
    block: bytes
    statistics: Statistics
    num_escaped: int
    merged: frozenset[str]
    is_utf8: bool
    is_failure: bool  # a sentence with words but without a translation
    has_grammar: bool
    problem: str  # of the markup, because of which the line counts as empty
    has_bars: bool  # ||| in a line without <seg>, which looks like a reference
    looks_raw: bool  # unlike the text that the model was made of
    is_narrowed: bool


@dataclass(slots=True)
class Block:
    """What is written for a line of the input, and what the report counts."""

    text: str
    num_escaped: int
    merged: frozenset[str]
    is_failure: bool
    is_narrowed: bool = False  # its lattice has a smaller beam than was asked for


class Job:
    """Decodes one text."""

    MAKES_WORDS = "--raw prepares lines and joins translations, as hiero serve does"

    def __init__(
        self,
        settings: JobSettings,
        config: Config,
        progress: Progress,
        load: Callable[[Config], Model] = make_model,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.settings, self.config, self.progress, self._load = settings, config, progress, load
        self.statistics = Statistics()
        check_choice(config.consensus, config.search)
        self.style = settings.style or ("cdec" if config.search.kbest else "text")
        self.path = STANDARD_INPUT if settings.input == "-" else settings.input
        folder = "." if settings.input == "-" else str(Path(settings.input).parent)
        self.base = "" if config.grammar_folders else folder
        self.load_seconds = 0.0
        self.decode_seconds = 0.0
        self.num_resumed = 0
        self._skipped: list[tuple[int, bytes]] = []  # lines of an earlier run, with their numbers
        self.num_escaped = 0
        self.num_broken = 0
        self.num_failed, self.first_failed = 0, 0
        self.num_narrowed = 0
        self.num_unmet, self.first_unmet = 0, 0
        self.num_malformed, self.first_malformed = 0, 0
        self.merged: set[str] = set()
        self.has_bars = self.looks_raw = False
        self.raw: RawText | None = None
        self._prepared: RawText | None = None  # to compare with, where words are expected
        if settings.raw:
            assert config.prep is not None
            self.raw = RawText(config.prep, settings.truecase)
            self.raw.check()
        elif config.prep is not None:
            with contextlib.suppress(HieroError):  # its tokeniser is not installed
                self._prepared = RawText(without_compounds(config.prep))
                self._prepared.check()
        self.without_grammar: int | None = None  # the first line without a grammar
        self.model: Model
        path = "" if config.weights is None else config.weights.path
        self.check = WeightsCheck(path, strict=config.strict, report=report or progress.say)
        self.may_name_grammars = bool(config.grammar_folders) or settings.input == "-"

    # ---- the run

    def run(self) -> None:
        with ExitStack() as stack:
            for folder in filter(None, (self.settings.forest, self.settings.lattice)):
                _make_directory(folder)
                stack.enter_context(locked_directory(Path(folder), "hiero decode", keep=False))
            self._run(stack)

    def _run(self, stack: ExitStack) -> None:
        lines, total = self._open_input()
        start = time.process_time()
        self.model = self._load(self.config)
        self._compare_weights(all_read=not self.may_name_grammars)
        self.check.shared_names(self.model)
        self.load_seconds = time.process_time() - start
        output = self._open_output(stack)
        try:
            self._resume(output, lines)
            self.model.warm_up()
            start = time.perf_counter()
            self._decode(output, lines, total)
            self.decode_seconds = time.perf_counter() - start
        except BaseException:
            output.close()
            if output.kept:
                kept = counted(output.kept, "line is", "lines are")
                next_time = "--resume" if self.settings.key is None else "the next run"
                self.progress.say(f"{kept} in {self.settings.output}.part; {next_time} continues from there")
            raise
        try:
            if self.may_name_grammars:
                self._compare_at_the_end()
        except HieroError:
            output.discard()
            raise
        output.finish()

    def _compare_weights(self, *, all_read: bool) -> None:
        if self.config.weights is not None:
            self.check.compare(self.model, self.model.weights, all_read=all_read)
        else:
            self.check.no_weights()

    def _compare_at_the_end(self) -> None:
        """Compare the weights once more, with the grammars of sentences, those of an earlier run included."""
        if self.config.weights is not None:
            self.check.compare(self.model, self.model.weights, unread=self._skipped_segments())

    def _skipped_segments(self) -> Iterator[Segment]:
        for number, line in self._skipped:
            segment = self._parse(decode_line(line, number)[0], number)[0]
            yield segment.with_base(self.base, anywhere=self.settings.allow_grammar_paths)

    def _decode(
        self, output: ResumableOutput | StandardOutput, lines: Iterator[bytes], total: int | None
    ) -> None:
        results = in_order(self._translate, enumerate(lines, output.done + 1), self.settings.threads)
        self.progress.begin(total)
        with contextlib.closing(results):
            self.progress.advance(output.done)
            for result in results:
                output.write(result.block, result.line)
                self._account(result, output.done)
                self.progress.advance(1, f"{self.statistics.mean_score:.3f} mean score")

    def _resume(self, output: ResumableOutput | StandardOutput, lines: Iterator[bytes]) -> None:
        self.num_resumed = output.done

        def skipped() -> Iterator[bytes]:
            for number, line in enumerate(lines, 1):
                if b"<seg" in line:
                    self._skipped.append((number, line))
                yield line

        output.skip(skipped())
        for number in range(output.done):
            written = {"a forest": [self._forest_path(number)] if self.settings.forest else []}
            written["a lattice"] = self._lattice_paths(number) if self.settings.lattice else []
            for expected, path in ((what, path) for what, paths in written.items() for path in paths):
                if not path.exists():
                    hint = "omit --resume to start again"
                    raise FormatError(path, 0, found="no such file", expected=expected, hint=hint)

    # ---- input and output

    def _open_input(self) -> tuple[Iterator[bytes], int | None]:
        """The lines with their line ends, and their number if it is known."""
        if self.settings.input == "-":
            return self._standard_input(), None
        # Read whole, so that the number of lines is known and the file may change meanwhile.
        data = b"".join(chunk.data for chunk in read_chunks(self.path, what="text to translate"))
        if b"<seg" in data:
            self._check(io.BytesIO(data))
        return iter(io.BytesIO(data)), data.count(b"\n")

    def _standard_input(self) -> Iterator[bytes]:
        """The lines of standard input, as they arrive."""
        stream = sys.stdin.buffer
        if sys.stdin.isatty():
            self.progress.say("reading sentences from the terminal, a line each")
        if not isinstance(stream, io.BufferedReader) or stream.peek(2)[:2] != GZIP_MAGIC:
            yield from stream
            return
        try:
            for chunk in read_chunks("-", what="text to translate"):
                yield from io.BytesIO(chunk.data)
        except FormatError as error:
            found, expected, hint = error.found, error.expected, error.hint
            raise FormatError(STANDARD_INPUT, error.line, found=found, expected=expected, hint=hint) from None

    def _check(self, lines: Iterable[bytes]) -> None:
        """Check the grammar files of all lines before decoding."""
        bases = self.config.grammar_folders or [self.base]
        for number, line in enumerate(lines, 1):
            if b"<seg" in line:
                segment, _ = self._parse(decode_line(line, number)[0], number)
                names = grammar_paths(segment.attributes)
                self.may_name_grammars |= bool(names)
                for base, name in itertools.product(bases, names):
                    try:
                        path = self._checked(name, base)
                        if path != "-" and not Path(path).exists():
                            raise FormatError(Path(path), 0, found="no such file", expected="a grammar")
                    except HieroError as error:
                        raise self._located(error, number) from None

    def _parse(self, text: str, number: int) -> tuple[Segment, str]:
        """A line, which counts as empty if its markup is malformed; then also the problem."""
        if self.raw is not None:
            return self.raw.segment(text), ""
        try:
            return self._read(text, number), ""
        except HieroError as error:
            return Segment(()), str(error)

    def _read(self, text: str, number: int) -> Segment:
        return parse_input(text, self.path, number, self.config.search.form)

    def _checked(self, name: str, base: str) -> str:
        if name == "-" and self.settings.input == "-":
            raise HieroError("found the grammar '-', expected a file: standard input is the text")
        return checked_path(name, base, anywhere=self.settings.allow_grammar_paths)

    def _located(self, error: HieroError, number: int) -> HieroError:
        """The error with the line of the input that caused it."""
        place = f"{self.path}:{number}"
        if not isinstance(error, FormatError):
            return HieroError(f"{place}: {error}")
        if error.path == self.path:
            return error
        hint = f"{error.hint}; for {place}" if error.hint else f"for {place}"
        return FormatError(error.path, error.line, found=error.found, expected=error.expected, hint=hint)

    def _open_output(self, stack: ExitStack) -> ResumableOutput | StandardOutput:
        target = self.settings.output
        if target == "-":
            return StandardOutput(sys.stdout.buffer)
        if Path(target).exists() and not Path(target).is_file():
            return StandardOutput(stack.enter_context(open(target, "wb", buffering=0)), target)
        if self.settings.key is not None:
            return ResumableOutput(target, self.settings.key, resume=is_begun(target, self.settings.key))
        made_with = [
            hiero.__version__,
            dataclasses.asdict(self.config),
            self.style,
            self.settings.forest and [self.settings.forest, self.settings.forest_format],
            self.settings.lattice and [vars(self.settings)[name] for name in LATTICE_SETTINGS],
            [file_state(path) for path in self.config.model_files.values()],
            *self._settings_of_raw(),
            *self._more_settings(),
        ]
        settings = json.dumps(made_with, sort_keys=True)
        return ResumableOutput(target, settings, resume=self.settings.resume)

    def _settings_of_raw(self) -> list[Any]:
        if self.raw is None:
            return []
        files = [*record_paths(self.raw.prep).values(), *filter(None, [self.settings.truecase])]
        return ["raw", files, [file_state(path) for path in files]]

    def _more_settings(self) -> list[Any]:
        """Settings of other jobs on which the output depends."""
        return []

    def _forest_path(self, number: int) -> Path:
        return Path(str(self.settings.forest)) / f"{number}.{self.settings.forest_format}"

    def _lattice_paths(self, number: int) -> list[Path]:
        folder = Path(str(self.settings.lattice))
        suffixes = ["fst.txt", "syms"] if self.settings.lattice_format == "openfst" else ["plf"]
        return [folder / f"{number}.{suffix}" for suffix in suffixes]

    def _write_lattice(self, forest: Forest, number: int) -> bool:
        """Write the lattice of a sentence; return whether it needed a smaller beam."""
        settings = self.settings
        alpha, beam, least = self.config.consensus.alpha, settings.lattice_beam, settings.lattice_posterior
        while True:
            try:
                lattice = forest.word_lattice(beam=beam, alpha=alpha, least=least, max_arcs=LATTICE_ARCS)
                break
            except HieroError:  # too many arcs
                if beam == 0:
                    raise
                beam = beam / 2 if beam > SMALLEST_BEAM else 0.0
        texts = [lattice.openfst(), lattice.symbols()]
        if settings.lattice_format == "plf":
            texts = [lattice.plf()]
        for path, text in zip(self._lattice_paths(number), texts, strict=True):
            write_output(path, text)
        return beam < settings.lattice_beam

    # ---- one line

    def _translate(self, numbered: tuple[int, bytes]) -> LineResult:
        number, line = numbered
        text, is_utf8 = decode_line(line, number)
        statistics = Statistics()
        segment, problem = self._parse(text, number)
        try:
            for name in grammar_paths(segment.attributes):
                self._checked(name, (self.config.grammar_folders or [self.base])[0])
            segment = segment.with_base(self.base, anywhere=self.settings.allow_grammar_paths)
            block = self._block(segment, number, statistics)
        except HieroError as error:
            raise self._located(error, number) from error
        return LineResult(
            line,
            block.text.encode(),
            statistics,
            block.num_escaped,
            block.merged,
            is_utf8,
            block.is_failure,
            bool(problem) or self._has_grammar(segment),
            problem,
            segment.lattice is None and "|||" in segment.words and not text.lstrip(" \t").startswith("<seg"),
            self._looks_raw(segment, number),
            block.is_narrowed,
        )

    def _looks_raw(self, segment: Segment, number: int) -> bool:
        if self._prepared is None or number > LINES_COMPARED or segment.lattice is not None:
            return False
        return not self._prepared.is_prepared(" ".join(segment.words))

    def _block(self, segment: Segment, number: int, statistics: Statistics) -> Block:
        """Translate the sentence of a line."""
        forest = self._forest(segment, statistics)
        features = self.features_of(forest)
        chosen = self.config.consensus
        with_confidence = partial(forest.confidence, alpha=chosen.alpha) if chosen.confidence else None
        text_of = None if self.raw is None else self.raw.text
        writer = TranslationWriter(self.style, with_confidence, text_of)
        with statistics.timed("kbest"):
            found = list_translations(forest, self.config.search, self.config.consensus)
        with statistics.timed("output"):
            block = writer.lines(
                segment.name or str(number - 1), segment.words, found, features.of_derivation
            )
            if self.settings.forest:
                forest.save(self._forest_path(number - 1))
            is_narrowed = bool(self.settings.lattice) and self._write_lattice(forest, number - 1)
        is_failure = bool(segment.words) and not forest
        return Block(block, writer.num_escaped, frozenset(features.merged), is_failure, is_narrowed)

    def _forest(self, segment: Segment, statistics: Statistics) -> Forest:
        return self.model.parse(segment, statistics)

    def features_of(self, forest: Forest) -> ForestFeatures:
        """The features of a forest, under the names that were asked for."""
        return forest.features.with_cdec_names() if self.config.features.cdec_names else forest.features

    def _has_grammar(self, segment: Segment) -> bool:
        return bool(grammar_paths(segment.attributes)) or any(
            section.path or section.index for section in self.config.grammar
        )

    # ---- the report

    def _account(self, result: LineResult, number: int) -> None:
        self.statistics.add(result.statistics)
        self.num_escaped += result.num_escaped
        self.num_broken += not result.is_utf8
        self.merged |= result.merged
        self.num_narrowed += result.is_narrowed
        if result.is_failure:
            self.num_failed += 1
            self.first_failed = self.first_failed or number
        if result.statistics.unmet:
            self.num_unmet += 1
            self.first_unmet = self.first_unmet or number
        if result.problem:
            self.num_malformed += 1
            self.first_malformed = self.first_malformed or number
            if self.num_malformed <= MAX_SHOWN:
                self.progress.say(f"{result.problem}; its translation is empty")
        if result.has_bars and not self.has_bars:
            self.has_bars = True
            self.progress.say(f"{self.path}:{number}: {TRANSLATED_BARS}")
        if result.looks_raw and not self.looks_raw:
            self.looks_raw = True
            found = "looks like raw text, but the model translates prepared words"
            self.progress.say(f"{self.path}:{number}: {found} ({self.MAKES_WORDS})")
        if not result.has_grammar and self.without_grammar is None:
            self.without_grammar = number
            self.progress.say(
                f"{self.path}:{number}: no grammar (from -g GRAMMAR, grammar in the configuration,"
                ' or <seg grammar="…">); words pass through untranslated'
            )

    def report(self) -> None:
        if self.num_broken:
            lines = counted(self.num_broken, "line was", "lines were")
            self.progress.say(f"{lines} not UTF-8; invalid bytes are written as U+FFFD")
        if self.num_failed:
            sentences = counted(self.num_failed, "sentence has", "sentences have")
            self.progress.say(f"{sentences} no translation, first in line {self.first_failed}")
        if self.num_narrowed:
            lattices = counted(self.num_narrowed, "lattice was", "lattices were")
            self.progress.say(f"{lattices} too large, and made with a smaller --lattice-beam")
        if self.num_unmet:
            sentences = counted(self.num_unmet, "sentence has", "sentences have")
            found = f"{sentences} no translation that meets all constraints"
            first = f"first in line {self.first_unmet}"
            self.progress.say(f"{found}, {first}; other rules were used there as well")
        if self.num_malformed > MAX_SHOWN:
            found = f"{self.num_malformed} lines have malformed markup and empty translations"
            self.progress.say(f"{found}, first line {self.first_malformed}")
        if self.num_escaped:
            times = counted(self.num_escaped, "time", "times")
            self.progress.say(f"the word ||| is written as &#124;&#124;&#124; ({times})")
        if self.merged:
            names = counted(len(self.merged), "of cdec's names stands", "of cdec's names stand")
            self.progress.say(f"{names} for several features, such as {min(self.merged)}")

    def summary(self, seconds: float) -> str:
        """A line about the run, ``seconds`` long."""
        translated = self.statistics.sentences
        figures = [f"{counted(translated, 'sentence', 'sentences')} translated in {seconds:.1f} s"]
        if self.num_resumed:
            figures.append(f"{self.num_resumed} were done before")
        if translated:
            figures.append(f"mean score {self.statistics.mean_score:.3f}")
        return ", ".join(figures)

    def figures(self) -> dict[str, float | int]:
        """Counts, scores and times."""
        numbers = self.statistics.as_dict()
        numbers["load_s"] += self.load_seconds
        numbers["decode_wall_s"] = self.decode_seconds  # without loading the model
        numbers["resumed"] = self.num_resumed  # lines done by an earlier run, not counted above
        return numbers

    def write_statistics(self, path: str, seconds: float) -> None:
        numbers = self.figures() | {"wall_s": seconds}
        write_output(path, json.dumps(numbers, indent=2) + "\n")


def list_translations(forest: Forest, search: SearchConfig, consensus: ConsensusConfig) -> list[Derivation]:
    """The translations that the settings ask for; without ``kbest`` one, if there is any."""
    if consensus.mbr != "none":
        found = [choice.derivation for choice in choose(forest, consensus, search.kbest or 1)]
    elif search.kbest:
        found = forest.kbest(search.kbest, search.unique)
    else:
        found = [forest.viterbi()] if forest else []
    for translation in found[:1]:
        translation.words  # noqa: B018  expands all derivations
    return found


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def file_state(path: str) -> list[int]:
    """Size and modification time, which change when a file is replaced."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def _make_directory(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        found = "a file" if isinstance(error, FileExistsError) else os_message(error)
        raise FormatError(path, 0, found=found, expected="a directory") from None
    if not os.access(path, os.W_OK):
        raise FormatError(path, 0, found="no write permission", expected="a directory for forests")
