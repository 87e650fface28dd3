"""The stages before and after translation as functions, for programs that import hiero.

A text is a path (``str`` or ``Path``), or a sequence of sentences. What is large is written to files and
mapped; what a program asks about is returned as objects.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from hiero.alignment.align import trained
from hiero.alignment.config import AlignConfig
from hiero.alignment.dictionary import first_pairs, with_dictionary
from hiero.alignment.links import combine, score_links
from hiero.alignment.model import AlignmentModel, model_of, read_model, write_model
from hiero.bitext.alignments import Alignment, write_alignment
from hiero.bitext.corpus import Bitext, Text, check_bitext, read_text, text_of
from hiero.core.errors import ConfigError, did_you_mean
from hiero.core.progress import Callback, Progress, shown_progress
from hiero.core.text import open_output, split_words, write_output
from hiero.core.text import read_text as read_sentences
from hiero.evaluation.compare import EvaluationReport, System
from hiero.evaluation.compare import evaluate as compare
from hiero.evaluation.config import EvalConfig
from hiero.extraction.config import ExtractConfig, FrequentSettings, LookupConfig, RuleLimits
from hiero.extraction.extractor import Extractor
from hiero.extraction.index import BitextIndex, make_index, open_index
from hiero.extraction.lookup import Phrase, find_phrases
from hiero.extraction.target_counts import open_extractor
from hiero.extraction.write import RuleText
from hiero.lm.config import FALLBACK, EstimateConfig
from hiero.lm.estimate import estimate_language_model
from hiero.lm.load import load_language_models, model_files
from hiero.lm.model import LanguageModels, score_text

Lines: TypeAlias = str | Path | Sequence[str]
Links: TypeAlias = list[tuple[int, int]]
Shown: TypeAlias = Progress | Callback | None

Settings = TypeVar("Settings")

log = logging.getLogger("hiero")


def _configured(kind: type[Settings], settings: Mapping[str, Any], where: str) -> Settings:
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in settings:
        if name not in names:
            raise ConfigError(f"{where}: unknown argument {name!r}; {did_you_mean(name, names)}")
    try:
        return kind(**settings)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


# ---- alignment


@dataclass(frozen=True)
class PairScore:
    """How probable a sentence pair and its links are.

    log_prob  mean log-probability of a word given the other side; nan if a side is empty
    links     posteriors of the links, the geometric mean of both directions
    """

    log_prob: float
    links: list[float]


@dataclass(frozen=True)
class Aligner:
    """A trained word aligner, and the links of the bitext that it was trained on, if it was trained here."""

    model: AlignmentModel
    alignment: Alignment | None = None

    @functools.cached_property
    def links(self) -> list[Links]:
        """For each pair of the bitext, its links: positions of a source and a target word, from 0."""
        if self.alignment is None:
            raise ConfigError("an aligner that was read from a file has no links of its own; use apply")
        return _links_of(self.alignment)

    def write(self, path: str | Path) -> None:
        """Write the links of the bitext as a file of lines such as ``0-0 1-2``, for ``index``."""
        if self.alignment is None:
            raise ConfigError("an aligner that was read from a file has no links of its own; use apply")
        with open_output(path) as stream:
            write_alignment(stream, self.alignment.first, self.alignment.link)

    def apply(self, source: Lines, target: Lines) -> list[Links]:
        """The links of other sentence pairs; for files of any size, use ``hiero align apply``."""
        return _links_of(self.model.aligned(_bitext(source, target)))

    def score(self, source: Lines, target: Lines, links: Sequence[Links] | None = None) -> list[PairScore]:
        """Score sentence pairs and their links, by default those of ``apply``."""
        bitext = _bitext(source, target)
        if links is None:
            alignment = self.model.aligned(bitext)
            first, link = alignment.first, alignment.link
        else:
            first, link = _arrays_of(links, bitext)
        scores = score_links(self.model.fitted(bitext), 0, bitext.num_pairs, first, link)
        posterior = scores.link.tolist()
        rows = zip(scores.log_prob.tolist(), itertools.pairwise(first.tolist()), strict=True)
        return [PairScore(value, posterior[a:b]) for value, (a, b) in rows]

    def save(self, path: str | Path) -> None:
        """Write the model as a directory, for ``Aligner.load`` and ``hiero align apply``."""
        write_model(Path(path), self.model)

    @classmethod
    def load(cls, path: str | Path) -> Aligner:
        """Read a model that ``save`` or ``hiero align --save-model`` has written."""
        return cls(read_model(path))


def align(
    source: Lines, target: Lines, *, threads: int = 1, progress: Shown = None, **settings: Any
) -> Aligner:
    """Train a word aligner on a bitext, and align it.

    source, target  paths, or lists of sentences
    threads         the result does not depend on it
    progress        a ``hiero.core.progress.Progress``, or a function of task, steps done, and steps
    settings        of ``hiero.alignment.config.AlignConfig``, as the flags of ``hiero align``

    >>> import hiero
    >>> hiero.align(["das haus", "das buch"], ["the house", "the book"]).links
    [[(0, 0), (1, 1)], [(0, 0), (1, 1)]]
    """
    config, own = _configured(AlignConfig, settings, "align"), _bitext(source, target)
    bitext = with_dictionary(own, config)
    with shown_progress("align", progress) as shown:
        trainer = trained(bitext, config, threads, shown)
        if config.threshold:
            found = trainer.links_above(config.threshold)
        else:
            found = combine(bitext, trainer.decode(), config.symmetrize)
    found = first_pairs(found, own.num_pairs)
    log.info("align: %d sentence pairs, %d links", own.num_pairs, len(found.link))
    return Aligner(model_of(trainer, bitext), found)


def _links_of(alignment: Alignment) -> list[Links]:
    pairs = [(int(a), int(b)) for a, b in alignment.link.tolist()]
    return [pairs[a:b] for a, b in itertools.pairwise(alignment.first.tolist())]


def _arrays_of(links: Sequence[Links], bitext: Bitext) -> Any:
    if len(links) != bitext.num_pairs:
        raise ConfigError(f"links: found {len(links)} lists, expected {bitext.num_pairs}, one for each pair")
    first = np.cumsum([0, *map(len, links)])
    link = np.array(list(itertools.chain.from_iterable(links)), np.int32).reshape(-1, 2)
    lengths = np.stack([np.repeat(side.length, np.diff(first)) for side in bitext], axis=1)
    if ((link < 0) | (link >= lengths)).any():
        raise ConfigError("links: found a position outside of a sentence, expected those of words, from 0")
    return first, link


def _bitext(source: Lines, target: Lines) -> Bitext:
    return check_bitext(Bitext(_text(source), _text(target)), "source", "target")


def _text(lines: Lines) -> Text:
    if isinstance(lines, str | Path):
        return read_text(lines)
    return text_of([_joined(lines)] if len(lines) else [])


def _joined(lines: Sequence[str]) -> bytes:
    for number, line in enumerate(lines):
        if not isinstance(line, str) or "\n" in line:
            raise ConfigError(f"sentence {number}: found {line!r}, expected a str of one line")
    return "".join(f"{line}\n" for line in lines).encode()


# ---- language models


@dataclass(frozen=True)
class WordScore:
    """The log10 probability of a word, and the length of the n-gram that gave it."""

    word: str
    log10_prob: float
    length: int


@dataclass(frozen=True)
class LanguageModel:
    """A language model on disk: ARPA, KenLM probing, or compiled."""

    path: Path
    models: LanguageModels

    @classmethod
    def load(cls, path: str | Path, classes: str | Path | None = None) -> LanguageModel:
        """Load a model; ``classes`` is the file with the classes of words, for a model of classes."""
        files = model_files("LanguageModel", str(path), None if classes is None else str(classes))
        return cls(Path(path), load_language_models([files]))

    def words(self, sentence: str, *, markers: bool = True) -> list[WordScore]:
        """The score of each word of a sentence; with ``markers`` between <s> and </s>."""
        scored = score_text(self.models, 0, _joined([sentence]), markers)
        words = [*split_words(sentence), *(["</s>"] if markers else [])]
        columns = zip(words, scored.prob.tolist(), scored.length.tolist(), strict=True)
        return [WordScore(*row) for row in columns]

    def score(self, sentence: str, *, markers: bool = True) -> float:
        """The log10 probability of a sentence."""
        return sum(one.log10_prob for one in self.words(sentence, markers=markers))

    def perplexity(self, text: Lines) -> float:
        """The perplexity of a text, with unknown words and ends of sentences."""
        lines = read_sentences(text) if isinstance(text, str | Path) else text
        prob = score_text(self.models, 0, _joined(lines)).prob
        if not len(prob):
            raise ConfigError("perplexity: found no sentence, expected a text")
        return float(10.0 ** -prob.mean(dtype=np.float64))


def estimate_lm(text: Lines, path: str | Path, *, progress: Shown = None, **settings: Any) -> LanguageModel:
    """Estimate a language model from text, and write it.

    path      an ARPA file if it ends in .arpa or .arpa.gz, otherwise a compiled directory
    settings  of ``hiero.lm.config.EstimateConfig``, such as ``order``, ``prune=[0, 0, 1]``,
              ``discount_fallback=True`` for small texts, and ``classes``, a file of classes of words
    """
    if "prune" in settings:
        settings["prune"] = tuple(settings["prune"])
    for key in {"vocabulary", "classes"} & settings.keys():
        settings[key] = None if settings[key] is None else Path(settings[key])
    if settings.get("discount_fallback") is True:
        settings["discount_fallback"] = FALLBACK
    config, path = _configured(EstimateConfig, settings, "estimate_lm"), Path(path)
    compiled = not path.name.endswith((".arpa", ".arpa.gz"))
    with shown_progress("lm", progress) as shown, _files(text) as (place,):
        made = estimate_language_model(place, path, config, compiled=compiled, progress=shown)
    log.info("estimate_lm: %d lines, %d words, written to %s", made.num_lines, made.num_words, path)
    return LanguageModel.load(path, config.classes)


@contextmanager
def _files(*texts: Lines) -> Iterator[list[str]]:
    """Paths of texts, of which those in memory are written to temporary files."""
    with ExitStack() as stack:
        paths = []
        for text in texts:
            if not isinstance(text, str | Path):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hiero-"))
                write_output(Path(folder, "text"), _joined(text))
                text = Path(folder, "text")
            paths.append(str(text))
        yield paths


# ---- the index of a bitext


def index(
    source: Lines,
    target: Lines,
    alignment: Lines | Aligner | Sequence[Lines],
    path: str | Path,
    *,
    progress: Shown = None,
    **settings: Any,
) -> BitextIndex:
    """Index a bitext for ``lookup``, ``extract`` and ``load(grammar=path)``.

    alignment  a file of links, an ``Aligner`` that was trained on the bitext, or a list of files
    path       directory to write
    settings   of ``hiero.extraction.config.RuleLimits``: what is precomputed
    """
    several = isinstance(alignment, Sequence) and not isinstance(alignment, str)
    with ExitStack() as stack:
        links: list[str | Path] = []
        for one in alignment if several else [alignment]:  # type: ignore[union-attr]
            if isinstance(one, Aligner):
                place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hiero-")), "links")
                one.write(place)
                links.append(place)
            else:
                links.append(one)  # type: ignore[arg-type]
        sides = stack.enter_context(_files(source, target))
        shown = stack.enter_context(shown_progress("index", progress))
        limits = _configured(RuleLimits, settings, "index")
        make_index(
            sides[0], sides[1], links, path, limits=limits, frequent=FrequentSettings(), progress=shown
        )
    made = open_index(path)
    log.info("index: %d sentence pairs, written to %s", made.num_sentences, path)
    return made


def extract(index: str | Path | BitextIndex, sentence: str, **settings: Any) -> list[str]:
    """The rules that an index has for a sentence, as lines of a grammar, for ``load(rules=...)``.

    settings  of ``hiero.extraction.config.ExtractConfig``, as the flags of ``hiero extract``
    """
    extractor = open_extractor(_opened(index), _configured(ExtractConfig, settings, "extract"))
    text = RuleText(
        extractor.index.src_words,
        extractor.index.tgt_words,
        extractor.config.category.encode(),
        [name.encode() for name in extractor.features],
    )
    rules = extractor.rules(extractor.word_ids([word.encode() for word in split_words(sentence)]))
    return text.lines(rules).decode().splitlines()


def lookup(index: str | Path | BitextIndex, text: str, **settings: Any) -> list[Phrase]:
    """The phrases of a sentence in an index, with their translations, and examples of them.

    settings  of ``hiero.extraction.config.LookupConfig``, as the flags of ``hiero lookup``
    """
    config = _configured(LookupConfig, settings, "lookup")
    return find_phrases(Extractor(_opened(index), config.extract), split_words(text), config)


def _opened(index: str | Path | BitextIndex) -> BitextIndex:
    return index if isinstance(index, BitextIndex) else open_index(index)


# ---- evaluation


def evaluate(
    outputs: Lines | Mapping[str, Lines | Sequence[Lines]],
    references: Lines | Sequence[Lines],
    **settings: Any,
) -> EvaluationReport:
    """Score translations by BLEU, chrF and TER, with intervals and tests against the first system.

    outputs     a text, or several by the names of their systems; a list of texts for several tuning runs
    references  a text, or a list of texts
    settings    of ``hiero.evaluation.config.EvalConfig``, as the flags of ``hiero eval``
    """
    named = outputs if isinstance(outputs, Mapping) else {"system": outputs}
    config = _configured(EvalConfig, settings, "evaluate")
    return compare([System(name, _texts(runs)) for name, runs in named.items()], _texts(references), config)


def _texts(given: Lines | Sequence[Lines]) -> list[list[str]]:
    """One text or several: a sequence of str is a text of sentences."""
    if isinstance(given, str | Path):
        return [read_sentences(given)]
    if all(isinstance(one, str) for one in given):
        return [list(given)]  # type: ignore[arg-type]
    return [read_sentences(one) if isinstance(one, str | Path) else list(one) for one in given]
