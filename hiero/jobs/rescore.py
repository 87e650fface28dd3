"""Rescoring of k-best lists and forests: other weights, further features, weights learnt from references."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hiero.core.arrays import offsets_of, read_only
from hiero.core.errors import FormatError, HieroError, UsageError
from hiero.core.parallel import in_order
from hiero.core.progress import Progress
from hiero.core.symbols import Symbols
from hiero.core.text import open_output, read_lines, utf8_line
from hiero.decoder.forest import Forest
from hiero.decoder.output import ListedTranslation, TranslationList, read_translation_lists
from hiero.evaluation.bleu import References
from hiero.evaluation.hypotheses import read_references
from hiero.features.weights import Weights, read_weights, write_weights
from hiero.learning.candidates import Candidates
from hiero.learning.config import TuneConfig
from hiero.learning.learner import Example, LearnerContext, make_learner
from hiero.learning.lists import CandidateLists
from hiero.lm.load import SentenceScorer, model_files, sentence_scorer

FOREST_NAME = re.compile(r"(\d+)\.(?:json|json\.gz|npz)")


@dataclass(frozen=True, kw_only=True)
class RescoreSettings:
    """What ``hiero rescore`` reads and writes."""

    input: str = "-"
    forests: str | None = None  # a directory, instead of ``input``
    output: str = "-"
    weights: str | None = None
    given: Mapping[str, float] = field(default_factory=dict)  # weights by name, over those of the file
    lm: Sequence[tuple[str, str, str | None]] = ()  # as ``lm.load.model_files`` takes them
    columns: Sequence[tuple[str, str]] = ()
    kbest: int = 0  # translations to write, 0: all; of forests, to list
    style: str | None = None  # of the output; by default that of the input
    references: Sequence[str] = ()  # to learn weights from
    save_weights: str | None = None
    threads: int = 1


class Rescoring:
    """Rescores one file of lists, or a directory of forests."""

    def __init__(self, settings: RescoreSettings, tune: TuneConfig, seed: int, progress: Progress) -> None:
        self.settings, self.tune, self.seed, self.progress = settings, tune, seed, progress
        symbols = Symbols()
        self.weights: Weights | None = None
        if settings.weights is not None:
            self.weights = read_weights(settings.weights, symbols)
        elif settings.references:
            self.weights = Weights(symbols)
        self.given = dict(settings.given)
        if self.weights is not None:
            for name, value in self.given.items():
                self.weights[name] = value
        self.scorers: list[tuple[str, SentenceScorer]] = [
            (files.name, sentence_scorer(files)) for files in (model_files(*spec) for spec in settings.lm)
        ]
        self.num_lists, self.num_changed = 0, 0
        self.bleu: tuple[float, float] | None = None

    def run(self) -> None:
        lists = self._with_features()
        if self.settings.references:
            kept = list(lists)
            self._learn(kept)
            lists = iter(kept)
        with open_output(self.settings.output) as stream:
            for found in self._complete(map(self._rescored, lists)):
                stream.write(found.encode())

    def summary(self) -> str:
        """A line about the run."""
        text = f"{self.num_lists} lists rescored, {self.num_changed} with another best translation"
        if self.bleu is not None:
            text += f"; BLEU of the lists {100 * self.bleu[0]:.2f}, after learning {100 * self.bleu[1]:.2f}"
        return text

    # ---- input

    def _lists(self) -> Iterator[TranslationList]:
        if self.settings.forests is None:
            return read_translation_lists(self.settings.input)
        return self._from_forests(Path(self.settings.forests))

    def _from_forests(self, folder: Path) -> Iterator[TranslationList]:
        found = forest_files(folder)
        k, style = self.settings.kbest or 100, self.settings.style or "cdec"

        def listed(item: tuple[int, Path]) -> TranslationList:
            forest = Forest.load(item[1])
            if self.weights is not None and not self.settings.references:
                forest = forest.with_weights(self.weights)
            translations = []
            for one in forest.kbest(k):
                fields = [" ".join(f"{i}-{j}" for i, j in one.alignment)] if style == "moses" else []
                features = dict(sorted(one.features.items()))
                links = [list(link) for link in one.alignment]
                record = {"alignment": links} if style == "json" else {}
                translations.append(ListedTranslation(one.text, features, one.score, 0, fields, record))
            return TranslationList(str(item[0]), style, translations, {"source": list(forest.source)})

        return in_order(listed, found.items(), self.settings.threads)

    # ---- features

    def _with_features(self) -> Iterator[TranslationList]:
        with contextlib.ExitStack() as stack:
            columns = [(name, _Column(path)) for name, path in self.settings.columns]

            def numbered() -> Iterator[tuple[TranslationList, list[list[float]]]]:
                for found in self._lists():
                    size = len(found.translations)
                    yield found, [column.take(size, found.name) for _, column in columns]
                for _, column in columns:
                    column.finish()

            def add(item: tuple[TranslationList, list[list[float]]]) -> TranslationList:
                found, values = item
                for (name, _), numbers in zip(columns, values, strict=True):
                    self._add(found, name, numbers)
                for name, scorer in self.scorers:
                    texts = [" ".join(one.words) for one in found.translations]
                    score, unknown = scorer.score(texts)
                    self._add(found, name, score.tolist())
                    self._add(found, f"{name}_OOV", unknown.tolist())
                return found

            results = in_order(add, numbered(), self.settings.threads)
            stack.enter_context(contextlib.closing(results))
            for found in results:
                self.num_lists += 1
                self.progress.advance(1)
                yield found

    def _add(self, found: TranslationList, name: str, values: Sequence[float]) -> None:
        for one, value in zip(found.translations, values, strict=True):
            if name in one.features:
                what = f"the feature {name!r} of sentence {found.name!r} in the list already"
                hint = "give the model or the column another name: NAME=FILE"
                raise FormatError(self._source, one.line, found=what, expected="a new feature", hint=hint)
            if value:
                one.features[name] = float(value)
                if self.weights is None:
                    one.score += self.given.get(name, 0.0) * float(value)

    @property
    def _source(self) -> str:
        return self.settings.forests or ("<stdin>" if self.settings.input == "-" else self.settings.input)

    # ---- scores and output

    def _rescored(self, found: TranslationList) -> TranslationList:
        listed = found.translations
        if self.weights is not None:
            weight = self.weights.get
            for one in listed:
                # In the order of the names, so that equal features give equal scores.
                one.score = sum(weight(name, 0.0) * one.features[name] for name in sorted(one.features))
        order = sorted(range(len(listed)), key=lambda i: -listed[i].score)
        self.num_changed += bool(order and listed[order[0]].text != listed[0].text)
        found.translations = [listed[i] for i in order[: self.settings.kbest or None]]
        return found

    def _complete(self, lists: Iterable[TranslationList]) -> Iterator[str]:
        """The text of lists; as plain text, a line for each sentence up to the last one of the lists."""
        style, line = self.settings.style, 0
        for found in lists:
            if style != "text":
                if style is not None and style != found.style:
                    found.style = style
                    found.record.setdefault("source", [])
                yield found.text()
                continue
            if found.name.isascii() and found.name.isdigit() and int(found.name) >= line:
                yield "\n" * (int(found.name) - line)
                line = int(found.name)
            line += 1
            yield (" ".join(found.translations[0].words) if found.translations else "") + "\n"

    # ---- learning

    def _learn(self, kept: Sequence[TranslationList]) -> None:
        """Learn weights from the references, starting from those given, and use them."""
        assert self.weights is not None
        texts = read_references(self.settings.references)
        lines = len(texts[0])
        number_of = _numbers(kept, lines, self.settings.references[0], self._source)
        words: dict[str, int] = {}

        def ids(tokens: Iterable[str]) -> list[int]:
            return [words.setdefault(token, len(words)) for token in tokens]

        references = References([[ids(text[n].split()) for text in texts] for n in range(lines)])
        shortest = references.shortest()
        names: dict[str, int] = {}
        for found in kept:
            for one in found.translations:
                for name in one.features:
                    names.setdefault(name, len(names))
        if not names:
            raise HieroError(f"{self._source}: found no features, expected some to learn weights for")
        lists = CandidateLists()
        for number, found in zip(number_of, kept, strict=True):
            if found.translations:
                source = len(found.record.get("source", ())) or int(shortest[number])
                lists.add(_example(number, source, found, ids, names, references, int(shortest[number])))
        start = np.array([self.weights.get(name, 0.0) for name in names])
        settings = self.tune.resolved()
        if settings.algorithm == "mert" and not start.any():
            raise UsageError("argument --tune: mert needs weights to start from (-w or --weight)")
        context = LearnerContext(
            seed=self.seed, sentences=len(kept), named=range(len(names)), threads=self.settings.threads
        )
        learner = make_learner(settings, context)
        best, before = start, lists.bleu(start)
        best_bleu, weight = -1.0, start
        for iteration in range(1, settings.epochs + 1):
            weight, _ = learner.fit(lists, weight, iteration, self.seed)
            bleu = lists.bleu(weight)
            self.progress.record({"iteration": str(iteration), "BLEU": f"{100 * bleu:.2f}"})
            if bleu > best_bleu:
                best, best_bleu = weight, bleu
        self.bleu = before, best_bleu
        self.weights = Weights(Symbols(), dict(zip(names, best.tolist(), strict=True)), exact=True)
        if self.settings.save_weights:
            write_weights(self.settings.save_weights, self.weights)


def forest_files(folder: Path) -> dict[int, Path]:
    """The forests of a directory by the numbers of their sentences."""
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if name := FOREST_NAME.fullmatch(path.name):
            if int(name[1]) in found:
                second = f"{path.name} and {found[int(name[1])].name}"
                raise FormatError(folder, 0, found=second, expected="one forest a sentence")
            found[int(name[1])] = path
    if not found:
        expected = "a directory of forests"
        hint = "from hiero decode --forest"
        raise FormatError(folder, 0, found="no file such as 0.json.gz", expected=expected, hint=hint)
    return dict(sorted(found.items()))


def _numbers(kept: Sequence[TranslationList], lines: int, like: str, source: str) -> list[int]:
    """The line of the reference of each list: its id if all are numbers, or else its place."""
    names = [found.name for found in kept]
    if all(name.isascii() and name.isdigit() for name in names):
        numbers = [int(name) for name in names]
        if max(numbers, default=-1) < lines:
            return numbers
        found = f"sentence {max(numbers)}"
    elif len(names) == lines:
        return list(range(lines))
    else:
        found = f"{len(names)} sentences"
    raise FormatError(source, 0, found=found, expected=f"{lines} sentences, as many as {like} has lines")


def _example(
    number: int,
    source_length: int,
    found: TranslationList,
    ids: Callable[[Iterable[str]], list[int]],
    names: Mapping[str, int],
    references: References,
    shortest: int,
) -> Example:
    listed = found.translations
    rows = [sorted((names[name], value) for name, value in one.features.items()) for one in listed]
    strings = [ids(one.words) for one in listed]
    features = [entry for row in rows for entry in row if entry[1]]
    lengths = [sum(1 for entry in row if entry[1]) for row in rows]
    candidates = Candidates(
        read_only(offsets_of(lengths)),
        read_only(np.array([i for i, _ in features], np.int32)),
        read_only(np.array([value for _, value in features], np.float64)),
        read_only(np.array([one.score for one in listed], np.float64)),
        read_only(offsets_of(map(len, strings))),
        read_only(np.array([word for string in strings for word in string], np.int32)),
    )
    return Example(number, source_length, candidates, references.statistics(number, strings), shortest)


class _Column:
    """A file with a number for each translation of the lists, in their order."""

    def __init__(self, path: str) -> None:
        self.path, self.line = path, 0
        self.lines = read_lines(path, "a column of scores")

    def take(self, count: int, name: str) -> list[float]:
        values = []
        for _ in range(count):
            line = next(self.lines, None)
            if line is None:
                found = f"{self.line} lines"
                expected = f"a number for each translation, also those of sentence {name!r}"
                raise FormatError(self.path, 0, found=found, expected=expected)
            self.line += 1
            text = utf8_line(self.path, self.line, line).strip()
            try:
                value = float(text)
            except ValueError:
                value = np.nan
            if not np.isfinite(value):
                raise FormatError(self.path, self.line, found=repr(text), expected="a finite number")
            values.append(value)
        return values

    def finish(self) -> None:
        rest = sum(1 for line in self.lines if line.strip())
        if rest:
            found = f"{self.line + rest} lines"
            expected = f"{self.line}, as many as the lists have translations"
            raise FormatError(self.path, 0, found=found, expected=expected)
