"""Gather the report of one run directory, or of several side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import yaml

import hiero
from hiero.bins.curves import curves_of, draw
from hiero.bins.file import read_bins
from hiero.core.errors import HieroError, UsageError
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbols import Symbols
from hiero.core.text import decode_line, read_lines, split_words
from hiero.features.weights import read_weights
from hiero.jobs.run_directory import changed_keys
from hiero.reporting.directory import RunDirectory
from hiero.reporting.examples import Looked, choose, examples_of, heaviest, look_into
from hiero.reporting.records import AlignedPair, CurveReport, ExamplesReport, Report
from hiero.reporting.scores import compared_scores, recorded_scores

PICTURES = 4  # of alignments
LOOKED_AT = 2000  # pairs, from the first on, among which they are chosen
SHORTEST, LONGEST = 5, 25  # words of a side


def make_report(
    directory: str | Path,
    others: Sequence[str | Path] = (),
    *,
    examples: int = 6,
    sample: int = 40,
    set_name: str | None = None,
    threads: int = 1,
    allow_grammar_paths: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Gather the report of a directory of ``hiero run`` or ``hiero tune``.

    others    directories to compare with
    examples  sentences to show; 0: none
    sample    sentences to translate again for the mean values of features; 0: none
    set_name  the set of these sentences; by default the last that the weights do not depend on
    """
    progress = progress or SilentProgress()
    paths = [directory, *others]
    runs = [RunDirectory(path, name) for path, name in zip(paths, _names(paths), strict=True)]
    report = Report([], hiero=hiero.__version__)
    report.scores = recorded_scores(runs[0]) if len(runs) == 1 else compared_scores(runs, progress)
    looked: list[Looked] = []
    if examples or sample:
        chosen = choose(runs, examples, set_name)
        if isinstance(chosen, str):
            if set_name is not None:
                raise UsageError(f"argument --set: {chosen}")
            report.examples = ExamplesReport(problem=chosen)
        else:
            looked = look_into(chosen, sample, threads, progress, allow_grammar_paths=allow_grammar_paths)
            report.examples = examples_of(chosen, looked)
            report.features = heaviest(
                runs, {run.name: one for (run, _), one in zip(chosen.runs, looked, strict=True)}
            )
    if not looked:
        report.features = heaviest(runs, {})
    for run in runs:
        report.curves += _curves(run)
    report.alignments = _alignments(runs[0])
    report.systems = [run.report() for run in runs]
    settings = [system.settings for system in report.systems]
    keys = dict.fromkeys(key for other in settings[1:] for key in changed_keys(settings[0], other))
    report.differences = {key: [_at(one, key) for one in settings] for key in keys}
    return report


def _names(paths: Sequence[str | Path]) -> list[str]:
    """Short names of directories, all different: their last parts, or more of them."""
    full = [Path(os.path.abspath(path)) for path in paths]
    if len(set(full)) < len(full):
        raise UsageError("the same directory is given twice")
    for parts in range(1, max(len(path.parts) for path in full) + 1):
        names = ["/".join(path.parts[-parts:]).removesuffix(".run") for path in full]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in full]  # alike but for the ending


def _at(settings: object, key: str) -> str:
    """The value of a dotted key, as YAML; empty if it is missing."""
    for part in key.split("."):
        if not isinstance(settings, dict) or part not in settings:
            return ""
        settings = settings[part]
    text: str = yaml.safe_dump(settings, default_flow_style=True, allow_unicode=True, width=1000)
    return text.removesuffix("...\n").strip()


def _curves(run: RunDirectory) -> list[CurveReport]:
    bins, weights = run.bins, run.weights
    if bins is None or weights is None:
        return []
    try:
        curves = curves_of(read_bins(bins), read_weights(weights, Symbols()))
    except HieroError as error:
        run.problem(str(error))
        return []
    return [
        CurveReport(run.name, one.bins.feature, one.bins.begin.tolist(), one.weight.tolist(), draw(one))
        for one in curves
    ]


def _alignments(run: RunDirectory) -> list[AlignedPair]:
    """A few pairs of the training data, evenly spaced among the first that are neither short nor long."""
    path, entry = run.output_of("align"), run.stages.get("align")
    if path is None or entry is None:
        return []
    keys = [f"data: train: {side}" for side in ("source", "target")]
    sides = [entry.inputs[key].path for key in keys if key in entry.inputs]
    if len(sides) != 2 or not all(map(run.is_unchanged, [str(path), *sides])):
        return []
    try:
        texts = [[split_words(line) for line in _first_lines(side)] for side in sides]
        links = [[_link(token) for token in line.split()] for line in _first_lines(str(path))]
    except HieroError as error:
        run.problem(str(error))
        return []
    except ValueError:
        run.problem(f"{path}: damaged, expected links i-j")
        return []
    number = min(len(texts[0]), len(texts[1]), len(links))
    fits = [n for n in range(number) if all(SHORTEST <= len(text[n]) <= LONGEST for text in texts)]
    fits = fits or list(range(number))
    chosen = dict.fromkeys(fits[round(k * (len(fits) - 1) / (PICTURES - 1))] for k in range(PICTURES) if fits)
    pairs = []
    for n in chosen:
        source, target = (list(text[n]) for text in texts)
        inside = [(i, j) for i, j in links[n] if 0 <= i < len(source) and 0 <= j < len(target)]
        pairs.append(AlignedPair(n + 1, source, target, inside))
    return pairs


def _link(token: str) -> tuple[int, int]:
    source, target = token.split("-")
    return int(source), int(target)


def _first_lines(path: str) -> list[str]:
    lines = enumerate(islice(read_lines(path), LOOKED_AT), 1)
    return [decode_line(line, number)[0] for number, line in lines]
