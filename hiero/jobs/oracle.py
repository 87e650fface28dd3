"""Oracle translations of a test set: of lists, of saved forests, and of what a model finds at pop limits."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from hiero.config.config import Config
from hiero.config.model import make_model
from hiero.core.arrays import Ints
from hiero.core.errors import FormatError, HieroError
from hiero.core.input import parse_input
from hiero.core.parallel import in_order
from hiero.core.progress import Progress
from hiero.core.text import aligned, read_text
from hiero.decoder.consensus import SplitForest, best_gains, split_forest
from hiero.decoder.forest import Forest
from hiero.decoder.output import read_translation_lists
from hiero.evaluation.bleu import MAX_ORDER, References, SentenceBleu, corpus_bleu, sentence_bleu
from hiero.evaluation.hypotheses import read_references
from hiero.jobs.rescore import forest_files

Item = TypeVar("Item")
FOREST = "forest"
# Precision and ratio of the linear BLEU that finds candidates: for translations of different quality.
SLOPES = ((0.95, 0.9), (0.8, 0.7), (0.6, 0.55), (0.4, 0.4))
PER_SLOPE = 100
MOST_EDGES, SMALLEST_BEAM = 5_000_000, 1e-3  # forests with more edges are searched with smaller beams


@dataclass(frozen=True)
class OracleTranslation:
    """A translation, its statistics of BLEU, and whether its forest was searched with a smaller beam."""

    text: str
    statistics: Ints
    bleu: float
    narrowed: bool = False


class OracleSearch:
    """Finds the oracle translations of the sentences of a test set.

    references  the words of each reference of each sentence
    bleu        variant of the BLEU of a sentence
    """

    def __init__(self, references: Sequence[Sequence[Sequence[str]]], bleu: SentenceBleu) -> None:
        self.bleu, self.references = bleu, references

    def of_list(self, number: int, texts: Sequence[str], sizes: Sequence[int]) -> list[OracleTranslation]:
        """The oracle among the first ``size`` translations, for each size; of equal ones the first."""
        if not texts:
            texts = [""]
        ids: dict[str, int] = {}

        def numbered(words: Sequence[str]) -> list[int]:
            return [ids.setdefault(word, len(ids)) for word in words]

        references = References([[numbered(one) for one in self.references[number]]])
        statistics = references.statistics(0, [numbered(text.split()) for text in texts])
        scores = self.bleu(statistics, references.shortest()[0])
        found = []
        for size in sizes:
            best = int(np.argmax(scores[:size]))
            found.append(OracleTranslation(texts[best], statistics[best], float(scores[best])))
        return found

    def of_forest(self, number: int, forest: Forest, texts: Sequence[str], beam: float) -> OracleTranslation:
        """The oracle of a forest: of ``texts``, a list, and of the translations with the largest linear BLEU.

        Exact if ``texts`` are all translations of the forest; otherwise an approximation, never worse than
        the oracle of the list. Linear BLEU (``consensus.by_forest``) counts each n-gram of a reference as
        often as the translation has it.

        beam  leave out derivations whose scores are more than this below the best; of large forests, more
              than half of it, a quarter, ...
        """
        split, narrowed = _split_within(forest, beam)
        known = {
            tuple(words[at : at + n])
            for words in self.references[number]
            for n in range(1, MAX_ORDER + 1)
            for at in range(len(words) - n + 1)
        }
        text = forest.words.text
        right = np.array([tuple(map(text, ngram)) in known for ngram in split.words()], np.float64)
        more = list(texts)
        for precision, ratio in SLOPES if len(right) else ():
            theta = 1 / (MAX_ORDER * precision * ratio ** np.arange(MAX_ORDER))
            gains = split.gains(theta[split.lengths - 1] * right, -1.0)
            more += [one.derivation.text for one in best_gains(split, gains, PER_SLOPE)]
        more = list(dict.fromkeys(more))
        return dataclasses.replace(self.of_list(number, more, [len(more)])[0], narrowed=narrowed)


def _split_within(forest: Forest, beam: float) -> tuple[SplitForest, bool]:
    """A forest split by outer words, with the first of beam, beam / 2, ... that leaves few enough edges."""
    widest = beam
    while True:
        try:
            return split_forest(forest.prune(beam), MAX_ORDER, MOST_EDGES), beam < widest
        except HieroError:
            if beam == 0:
                raise
            beam = beam / 2 if beam > SMALLEST_BEAM else 0.0


@dataclass(frozen=True, kw_only=True)
class OracleSettings:
    """What ``hiero oracle`` reads, one of ``lists``, ``forests`` and ``text``, and how."""

    references: Sequence[str]
    lists: str | None = None
    forests: str | None = None
    text: str | None = None  # to translate
    pop_limits: Sequence[int] = ()  # by default that of the configuration
    sizes: Sequence[int] = (1, 10, 100, 1000)
    metric: str = "lin"
    beam: float = 20.0
    threads: int = 1


@dataclass
class OracleRow:
    """The oracles of one source of translations, by column: a size of lists, or the forest."""

    name: str
    oracles: dict[str, list[OracleTranslation]] = field(default_factory=dict)

    def bleu(self, column: str) -> float:
        """Corpus BLEU of the oracle translations."""
        total = np.sum([one.statistics for one in self.oracles[column]], axis=0)
        return 100 * float(corpus_bleu(total)[0])

    @property
    def best(self) -> list[OracleTranslation]:
        """The oracles of the last column."""
        return self.oracles[list(self.oracles)[-1]]


class OracleJob:
    """Finds oracles of all sentences."""

    def __init__(self, settings: OracleSettings, config: Config, progress: Progress) -> None:
        self.settings, self.config, self.progress = settings, config, progress
        texts = read_references(settings.references)
        lines = [[text[number].split() for text in texts] for number in range(len(texts[0]))]
        self.search = OracleSearch(lines, sentence_bleu(settings.metric))
        self.num_sentences = len(lines)
        self.sizes = sorted(set(settings.sizes))

    def run(self) -> list[OracleRow]:
        settings = self.settings
        if settings.lists is not None:
            return [self._row("lists", self._of_lists(settings.lists))]
        if settings.forests is not None:
            files = forest_files(Path(settings.forests))
            self._check(max(files) + 1, settings.forests, at_most=True)

            def of_file(number: int) -> list[OracleTranslation]:
                return self._of_forest(number, Forest.load(files[number]) if number in files else None)

            return [self._row("forests", self._each(of_file, range(self.num_sentences)))]
        return list(self._decoded(str(settings.text)))

    def _decoded(self, path: str) -> Iterator[OracleRow]:
        lines = read_text(path, "text to translate")
        self._check(len(lines), path)
        form = self.config.search.form
        segments = [parse_input(line, path, number, form) for number, line in enumerate(lines, 1)]
        for limit in self.settings.pop_limits or [self.config.search.pop_limit]:
            search = dataclasses.replace(self.config.search, pop_limit=limit)
            model = make_model(dataclasses.replace(self.config, search=search), base=str(Path(path).parent))
            model.warm_up()

            def of_line(number: int, model: object = model) -> list[OracleTranslation]:
                return self._of_forest(number, model.parse(segments[number]))  # type: ignore[attr-defined]

            yield self._row(f"pop limit {limit}", self._each(of_line, range(len(lines))))

    def _each(
        self, function: Callable[[int], list[OracleTranslation]], numbers: Sequence[int]
    ) -> Iterator[list[OracleTranslation]]:
        self.progress.begin(len(numbers))
        with contextlib.closing(in_order(function, numbers, self.settings.threads)) as results:
            for found in results:
                self.progress.advance(1)
                yield found

    def _row(self, name: str, found: Iterator[list[OracleTranslation]]) -> OracleRow:
        row = OracleRow(name)
        for oracles in found:
            columns = [*map(str, self.sizes), *([FOREST] if len(oracles) > len(self.sizes) else [])]
            for column, one in zip(columns, oracles, strict=True):
                row.oracles.setdefault(column, []).append(one)
        if narrowed := sum(one.narrowed for one in row.best):
            forests = (
                f"{narrowed} of {len(row.best)} forests were too large, and searched with a smaller --beam"
            )
            self.progress.say(f"{name}: {forests}")
        return row

    def _of_forest(self, number: int, forest: Forest | None) -> list[OracleTranslation]:
        if not forest:
            return self.search.of_list(number, [], [*self.sizes, 1])
        texts = [one.text for one in forest.kbest(self.sizes[-1])]
        found = self.search.of_list(number, texts, self.sizes)
        return [*found, self.search.of_forest(number, forest, texts, self.settings.beam)]

    def _of_lists(self, path: str) -> Iterator[list[OracleTranslation]]:
        lists = {one.name: one for one in read_translation_lists(path)}
        numbers = {name: int(name) for name in lists if name.isascii() and name.isdigit()}
        if len(numbers) < len(lists):
            numbers = {name: place for place, name in enumerate(lists)}
            self._check(len(lists), path)
        self._check(max(numbers.values(), default=-1) + 1, path, at_most=True)
        by_number = {number: lists[name] for name, number in numbers.items()}

        def of_number(number: int) -> list[OracleTranslation]:
            listed = by_number[number].translations if number in by_number else []
            return self.search.of_list(number, [" ".join(one.words) for one in listed], self.sizes)

        return self._each(of_number, range(self.num_sentences))

    def _check(self, found: int, path: str, *, at_most: bool = False) -> None:
        if found > self.num_sentences or (found < self.num_sentences and not at_most):
            like = self.settings.references[0]
            expected = f"{self.num_sentences}, as many as {like} has lines"
            raise FormatError(path, 0, found=f"{found} sentences", expected=expected)


def oracle_table(rows: Sequence[OracleRow]) -> str:
    """BLEU of the oracles, a line for each row."""
    columns = list(rows[0].oracles)
    cells = [["BLEU of the oracle", *columns]]
    cells += [[row.name, *(f"{row.bleu(column):.2f}" for column in columns)] for row in rows]
    return "".join(f"{line}\n" for line in aligned(cells, left=[0]))


def oracle_json(rows: Sequence[OracleRow]) -> str:
    """The same as JSON, with the mean sentence BLEU of each column."""
    content = [
        {
            "name": row.name,
            "bleu": {column: row.bleu(column) for column in row.oracles},
            "sentence_bleu": {c: float(np.mean([one.bleu for one in row.oracles[c]])) for c in row.oracles},
        }
        for row in rows
    ]
    return json.dumps(content, indent=2) + "\n"
