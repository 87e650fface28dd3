"""Sentences to look at: those where systems differ most, or the worst and the best, with their derivations.

``hiero run`` does not store derivations: the model is loaded, and translates these sentences again. A sample
of the set is translated with them, for the mean values of features.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hiero.config.model import make_model
from hiero.core.errors import HieroError
from hiero.core.input import parse_input
from hiero.core.parallel import in_order
from hiero.core.progress import Progress
from hiero.core.symbols import Symbols
from hiero.core.text import AUTO, InputForm, Segment
from hiero.decoder.derivation_kernels import DEPTH
from hiero.evaluation.corpus_metrics import corpus_metric
from hiero.features.weights import Weights, read_weights
from hiero.jobs.pack import without_caches
from hiero.reporting.directory import RunDirectory
from hiero.reporting.records import (
    DerivationReport,
    ExampleReport,
    ExamplesReport,
    FeatureReport,
    FeaturesReport,
    OutputReport,
    StepReport,
)
from hiero.reporting.scores import SetTexts, set_names, texts_of_all

if TYPE_CHECKING:
    from hiero.core.arrays import Floats
    from hiero.decoder.derivation import Derivation

SHOWN_FEATURES = 15  # of a derivation
HEAVIEST = 25


@dataclass
class ChosenLines:
    """A set, its texts in each run, and the lines to show, from 0, with the reason for each."""

    name: str
    rule: str
    runs: list[tuple[RunDirectory, SetTexts]]
    bleu: list[Floats]  # of the scored lines, for each run
    lines: list[tuple[int, str]]  # among the scored ones


@dataclass
class Looked:
    """What decoding again has found in a run.

    total      sums of the values of features over the sample
    sentences  number of sentences in the sample with a translation
    """

    derivations: dict[int, DerivationReport] = field(default_factory=dict)
    total: dict[str, float] = field(default_factory=dict)
    sentences: int = 0
    problem: str = ""


def choose(runs: Sequence[RunDirectory], count: int, name: str | None) -> ChosenLines | str:
    """Choose a set and sentences of it; otherwise why there are none."""
    config = runs[0].config
    if config is None or runs[0].kind != "run":
        return "the directory has no translations"
    for candidate in [name] if name is not None else set_names(config):
        files = texts_of_all(runs, candidate)
        first = files[0]
        if first is None:
            continue
        used = [
            (run, one)
            for run, one in zip(runs, files, strict=True)
            if one is not None and one.digests == first.digests and len(one.source) == len(first.source)
        ]
        metric = corpus_metric(
            "bleu",
            [first.lines(lines) for lines in first.references],
            tokenize=config.eval.tokenize,
            lowercase=config.eval.lowercase,
        )
        bleu = [metric.segment_scores(metric.statistics(first.lines(one.output))) for _, one in used]
        rule, lines = _most_different(bleu, count) if len(used) > 1 else _extremes(bleu[0], first, count)
        return ChosenLines(candidate, rule, used, bleu, lines)
    if name is not None and name not in set_names(config):
        return f"there is no set {name}"
    return "no set has been translated and scored, with all its files as they were"


def _most_different(bleu: Sequence[Floats], count: int) -> tuple[str, list[tuple[int, str]]]:
    table = np.stack(bleu)
    spread = table.max(axis=0) - table.min(axis=0)
    order = np.argsort(-spread, kind="stable")[:count]
    lines = [(int(k), f"sentence BLEU differs by {spread[k]:.1f}") for k in order if spread[k] > 0]
    return "the sentences whose sentence BLEU differs most between the systems", lines


def _extremes(bleu: Floats, files: SetTexts, count: int) -> tuple[str, list[tuple[int, str]]]:
    """Half of them the worst, half the best; of equally good ones the longest."""
    words = np.array([len(line.split()) for line in files.lines(files.source)])
    worst = np.lexsort((-words, bleu))[: (count + 1) // 2]
    best = [k for k in np.lexsort((-words, -bleu))[: count // 2] if k not in set(worst.tolist())]
    lines = [(int(k), "among the worst") for k in worst] + [(int(k), "among the best") for k in best]
    rule = "the sentences with the lowest and with the highest sentence BLEU, of equal ones the longest"
    return rule, lines


# ---- decoding again


def look_into(
    chosen: ChosenLines, sample: int, threads: int, progress: Progress, *, allow_grammar_paths: bool = False
) -> list[Looked]:
    """Translate the chosen sentences and a sample with the model of each run."""
    found = []
    for run, files in chosen.runs:
        progress.begin(None, f"load {run.name}")
        try:
            found.append(_look_into(run, files, chosen, sample, threads, progress, allow_grammar_paths))
        except (HieroError, OSError, MemoryError, ImportError) as error:
            problem = f"the model cannot be loaded or used: {error}"
            run.problem(problem)
            found.append(Looked(problem=problem))
    return found


def _look_into(
    run: RunDirectory,
    files: SetTexts,
    chosen: ChosenLines,
    sample: int,
    threads: int,
    progress: Progress,
    allow_grammar_paths: bool,
) -> Looked:
    config = run.model
    if config is None:
        raise HieroError("there is no model.yaml")
    # Nothing is written into the stores of the run.
    config = dataclasses.replace(config, grammar=[without_caches(one) for one in config.grammar])
    base = str(files.source_path.parent)
    model = make_model(config, base=base, allow_grammar_paths=allow_grammar_paths)
    weights = model.weights
    folder = "" if config.grammar_folders else base
    numbers = files.numbers
    wanted = {numbers[k]: k for k, _ in chosen.lines}
    spaced = np.linspace(0, len(numbers) - 1, num=min(sample, len(numbers))).round().astype(int)
    sampled = {numbers[k] for k in spaced.tolist()} if sample else set()
    form = config.search.form
    model.warm_up()
    todo = sorted(sampled | wanted.keys())

    def translated(number: int) -> tuple[int, Segment, Derivation]:
        try:
            segment = parse_input(files.source[number], str(files.source_path), number + 1, form)
        except HieroError:
            segment = Segment(())  # as hiero decode reads a malformed line
        segment = segment.with_base(folder, anywhere=allow_grammar_paths)
        return number, segment, model.translate(segment)

    looked = Looked()
    progress.begin(len(todo), f"translate with {run.name}")
    with closing(in_order(translated, todo, threads)) as results:
        for number, segment, best in results:
            progress.advance(1)
            if not best:
                continue
            if number in sampled:
                looked.sentences += 1
                for name, value in best.features.items():
                    looked.total[name] = looked.total.get(name, 0.0) + value
            if number in wanted:
                looked.derivations[wanted[number]] = _described(segment, best, weights)
    return looked


def _described(segment: Segment, best: Derivation, weights: Weights) -> DerivationReport:
    scores = best.edge_scores.tolist()
    steps = []
    for depth, rule, span, score in zip(
        best.steps[:, DEPTH].tolist(), best.rule_texts, best.spans, scores, strict=True
    ):
        left, source, target = rule.split(" ||| ")[:3]
        steps.append(StepReport(depth, left.strip("[]"), source, target, span[:2], span[2:], score))
    features = [(name, value, weights.get(name, 0.0)) for name, value in best.features.items()]
    features.sort(key=lambda one: (-abs(one[1] * one[2]), one[0]))
    more = max(0, len(features) - SHOWN_FEATURES)
    return DerivationReport(
        list(segment.words), best.text, best.score, steps, best.alignment, features[:SHOWN_FEATURES], more
    )


def examples_of(chosen: ChosenLines, looked: Sequence[Looked]) -> ExamplesReport:
    """The sentences with the outputs of all systems."""
    run, first = chosen.runs[0]
    form = run.model.search.form if run.model else AUTO
    found = ExamplesReport(chosen.name, chosen.rule)
    for k, why in chosen.lines:
        references = [first.lines(lines)[k] for lines in first.references]
        source = " ".join(parse_or_plain(first.lines(first.source)[k], form))
        example = ExampleReport(first.numbers[k] + 1, why, source, references)
        for at, (run, files) in enumerate(chosen.runs):
            text = first.lines(files.output)[k]
            one = looked[at] if looked else Looked()
            output = OutputReport(run.name, text, float(chosen.bleu[at][k]), one.derivations.get(k))
            if looked and one.problem:
                output.problem = one.problem
            elif looked and output.derivation is None:
                output.problem = "no translation was found when it was translated again"
            elif output.derivation is not None and output.derivation.text != text:
                output.problem = (
                    "the text differs from the derivation: the output was changed after decoding, or the "
                    "model is not the same any more"
                )
            example.outputs.append(output)
        found.sentences.append(example)
    return found


def parse_or_plain(line: str, form: InputForm) -> Sequence[str]:
    """The words of a source line without its markup, or of the arcs of a lattice."""
    try:
        return parse_input(line, form=form).words
    except HieroError:
        return line.split()


# ---- weights


def heaviest(runs: Sequence[RunDirectory], looked: Mapping[str, Looked]) -> FeaturesReport:
    """The features with the largest weights, and those with the largest products of weight and mean value."""
    weights = [_weights(run) for run in runs]
    means = [_means(looked.get(run.name)) for run in runs]
    report = FeaturesReport([None if one is None else len(one) for one in weights])
    report.sentences = max((one.sentences for one in looked.values()), default=0)

    def row(name: str) -> FeatureReport:
        given = [None if one is None else one.get(name) for one in weights]
        values = [None if mean is None else mean.get(name, 0.0) for mean in means]
        return FeatureReport(name, given, values)

    names = {name for one in weights if one is not None for name in _largest(one)}
    report.by_weight = _ordered(list(map(row, names)), lambda one: [w or 0.0 for w in one.weights])
    if report.sentences:
        names = {name for mean in means if mean is not None for name in mean}
        report.by_share = _ordered([one for one in map(row, names) if any(shares(one))], shares)
    return report


def _ordered(
    rows: list[FeatureReport], sizes: Callable[[FeatureReport], Sequence[float]]
) -> list[FeatureReport]:
    """The largest rows by their sizes in any system, relative to the largest size in it."""
    if not rows:
        return rows
    table = np.abs([sizes(one) for one in rows])
    largest = table.max(axis=0)
    relative = (table / np.where(largest > 0, largest, 1.0)).max(axis=1)
    order = sorted(range(len(rows)), key=lambda k: (-relative[k], rows[k].name))
    return [rows[k] for k in order[:HEAVIEST]]


def shares(one: FeatureReport) -> list[float]:
    """Weight times mean value in each system, 0 where one of them is not known."""
    return [(w or 0.0) * (m or 0.0) for w, m in zip(one.weights, one.means, strict=True)]


def _largest(weights: Weights) -> Iterator[str]:
    sized = ((abs(value), name) for name, value in weights.items() if value and math.isfinite(value))
    return (name for _, name in heapq.nlargest(HEAVIEST, sized))


def _weights(run: RunDirectory) -> Weights | None:
    path = run.weights
    if path is None:
        return None
    try:
        return read_weights(path, Symbols())
    except HieroError as error:
        run.problem(str(error))
        return None


def _means(looked: Looked | None) -> dict[str, float] | None:
    if looked is None or not looked.sentences:
        return None
    return {name: total / looked.sentences for name, total in looked.total.items()}
