"""Systems side by side: scores, intervals, spread over tuning runs, tests against the first system.

They are read from files of translations, and the results are written as a table and as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import hiero
from hiero.core.arrays import Floats
from hiero.core.errors import ConfigError, FormatError
from hiero.core.progress import Progress
from hiero.core.text import aligned, write_output
from hiero.evaluation.config import EvalConfig
from hiero.evaluation.corpus_metrics import CorpusMetric, corpus_metric, look_tokenized
from hiero.evaluation.hypotheses import read_hypotheses, read_references
from hiero.evaluation.significance import (
    COVERAGE,
    Comparison,
    Interval,
    RunSpread,
    bootstrap_scores,
    bootstrap_test,
    interval,
    pooled_score,
    randomization_test,
    significance_marks,
    spread,
)

EVEN: Literal["even"] = "even"  # lines to score where odd ones chose the weights
OURS = "hiero"  # name of a run in tables of scores
FEW_TRIALS = 100


@dataclass(frozen=True)
class System:
    """The translations of a test set by one system: one list of lines for each of its tuning runs."""

    name: str
    runs: Sequence[Sequence[str]]


def read_system(
    name: str,
    paths: Sequence[str | Path],
    num_lines: int,
    like: str | Path,
    form: str | None = None,
    progress: Progress | None = None,
) -> System:
    """Read a system to compare with others: its runs, with notes of missing translations."""
    runs = []
    for path in paths:
        found = read_hypotheses(path, num_lines, like, form)
        if found.missing and progress is not None:
            progress.say(f"{path}: {found.missing} sentences have no translation")
        runs.append(found.lines)
    return System(name, runs)


@dataclass(frozen=True)
class SystemResult:
    """The score of one system by one metric.

    score       of one run, or the mean over several
    interval    of the pooled runs, by bootstrap over sentences and runs; None without trials
    comparison  with the first system; None for the first system and without a test
    details     components of BLEU
    """

    score: float
    spread: RunSpread
    interval: Interval | None
    comparison: Comparison | None
    details: str


@dataclass(frozen=True)
class EvaluationReport:
    """All systems scored by all metrics, in the given order."""

    systems: list[System]
    metrics: list[CorpusMetric]
    results: dict[tuple[str, str], SystemResult]  # by key of the metric and name of the system
    segments: dict[tuple[str, str], list[Floats]]  # scores of all lines, an array for each run
    config: EvalConfig
    tokenized: bool  # the input looks tokenised, and BLEU tokenises it again
    lines: str | None = None  # EVEN, or all
    learnt_from: bool = False  # whether weights were learnt from these lines

    def result(self, metric: str, system: str) -> SystemResult:
        return self.results[metric, system]

    def table(self) -> str:
        """A text table with a row for each metric and system, then notes and signatures."""
        several, sampled = self._several, self.config.trials > 0
        head = ["metric", "system", "score"] + [f"{COVERAGE:.0%} interval"] * sampled
        head += ["runs", "std"] * several + ["difference", "p"] * self._tested
        rows = [head]
        for metric in self.metrics:
            for number, system in enumerate(self.systems):
                result = self.result(metric.key, system.name)
                row = [metric.label, system.name, f"{result.score:.2f}"]
                row += [_interval(result.interval)] * sampled
                if several:
                    deviation = result.spread.deviation
                    row += [str(len(system.runs)), "" if deviation is None else f"{deviation:.2f}"]
                if self._tested:
                    found = result.comparison
                    row += [_difference(found), _p_value(found)] if number else ["", "baseline"]
                rows.append(row)
        lines = [*aligned(rows, left=(0, 1)), "", *self._notes()]
        return "".join(f"{line}\n" for line in lines)

    @property
    def _tested(self) -> bool:
        return any(result.comparison is not None for result in self.results.values())

    @property
    def _several(self) -> bool:
        """Whether a system has several runs."""
        return any(len(system.runs) > 1 for system in self.systems)

    def _notes(self) -> Iterator[str]:
        if self.lines is not None:
            yield f"{self.lines} lines only: the others chose the weights"
        if self.learnt_from:
            yield "the weights were learnt from these lines: this is no test result"
        for metric in self.metrics:
            for system in self.systems:
                details = self.result(metric.key, system.name).details
                if details:
                    yield f"{metric.label} of {system.name}: {details}"
        for metric in self.metrics:
            yield f"{metric.label}|{metric.signature}"
        if self._several:
            yield "scores are means of the runs; intervals include the variance of tuning"
            if self._tested:
                of_ar = ", p does not" if self.config.test == "ar" else ""
                yield f"differences are of all runs together; their intervals include that variance{of_ar}"
        if 0 < self.config.trials < FEW_TRIALS:
            yield f"{self.config.trials} trials are few: intervals and p are rough"
        if self.config.trials:
            yield self.signature
        if self._tested:
            yield f"p against {self.systems[0].name}: * < .05, ** < .01, *** < .001"

    @property
    def signature(self) -> str:
        """The settings of intervals and p values."""
        test = f"test:{self.config.test}|" if self._tested else ""
        several = self._several
        if self._tested and self.config.test == "ar" and several:
            equal = len({len(system.runs) for system in self.systems}) == 1
            test += f"strata:{'run' if equal else 'run where equally many'}|"
        return (
            f"hiero:{hiero.__version__}|{test}interval:bootstrap{' over runs' if several else ''}|"
            f"trials:{self.config.trials}|seed:{self.config.seed}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values with unrounded numbers."""

        def scores(name: str) -> dict[str, Any]:
            return {metric.key: _result_dict(self.result(metric.key, name)) for metric in self.metrics}

        return {
            "systems": [
                {"name": system.name, "runs": len(system.runs), "metrics": scores(system.name)}
                for system in self.systems
            ],
            "sentences": len(self.systems[0].runs[0]),
            **({} if self.lines is None else {"lines": self.lines}),
            **({"learnt_from": True} if self.learnt_from else {}),
            "signatures": {metric.key: metric.signature for metric in self.metrics},
            "test": None if not self._tested else self.config.test,
            "trials": self.config.trials,
            "seed": self.config.seed,
            "version": hiero.__version__,
        }

    def segment_lines(self) -> Iterator[str]:
        """Scores of all lines as tab-separated columns with a header."""
        yield "\t".join(["line", "system", "run", *(metric.label for metric in self.metrics)])
        for system in self.systems:
            for run in range(len(system.runs)):
                columns = [self.segments[metric.key, system.name][run] for metric in self.metrics]
                for line, scores in enumerate(zip(*columns, strict=True), 1):
                    numbers = [f"{score:.4f}" for score in scores]
                    yield "\t".join([str(line), system.name, str(run + 1), *numbers])


def evaluate(
    systems: Sequence[System], references: Sequence[Sequence[str]], config: EvalConfig
) -> EvaluationReport:
    """Score systems, of which the first is the baseline; ``references[k]`` are the lines of one reference."""
    _check(systems, references, config)
    metrics = [
        corpus_metric(key, references, tokenize=config.tokenize, lowercase=config.lowercase)
        for key in config.metrics
    ]
    results: dict[tuple[str, str], SystemResult] = {}
    segments: dict[tuple[str, str], list[Floats]] = {}
    for metric in metrics:
        stats = [np.stack([metric.statistics(run) for run in system.runs]) for system in systems]
        for system, runs, result in zip(systems, stats, _results(metric, stats, config), strict=True):
            results[metric.key, system.name] = result
            segments[metric.key, system.name] = [metric.segment_scores(run) for run in runs]
    tokenized = (
        "bleu" in config.metrics
        and config.tokenize != "none"
        and any(look_tokenized(run) for system in systems for run in system.runs)
    )
    return EvaluationReport(list(systems), metrics, results, segments, config, tokenized)


def _check(systems: Sequence[System], references: Sequence[Sequence[str]], config: EvalConfig) -> None:
    names = [system.name for system in systems]
    if not names:
        raise ConfigError("found no systems, expected one or more")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two systems have the name {name}")
    if not references or not references[0]:
        raise ConfigError("references: found no lines, expected at least one")
    lengths = {len(lines) for lines in references} | {len(run) for s in systems for run in s.runs}
    if len(lengths) > 1:
        raise ConfigError(f"found texts of {sorted(lengths)} lines, expected the same number of lines")


def _results(metric: CorpusMetric, stats: Sequence[Floats], config: EvalConfig) -> Iterator[SystemResult]:
    samples = bootstrap_scores(metric.scores, stats, config.trials, config.seed) if config.trials else None
    pooled = [pooled_score(metric.scores, runs) for runs in stats]
    for number, runs in enumerate(stats):
        comparison = None
        if number and samples is not None:
            if config.test == "ar":
                test = randomization_test(metric.scores, stats[0], runs, config.trials, config.seed)
                comparison = replace(test, interval=interval(samples[number] - samples[0]))
            elif config.test == "bootstrap":
                comparison = bootstrap_test(pooled[number] - pooled[0], samples[0], samples[number])
        over_runs = spread(metric.scores, runs)
        around = None if samples is None else interval(samples[number])
        details = metric.details(runs[0].sum(axis=0)) if len(runs) == 1 else ""
        yield SystemResult(over_runs.mean, over_runs, around, comparison, details)


def _interval(found: Interval | None) -> str:
    return "" if found is None else f"{found.low:.2f} – {found.high:.2f}"


def _difference(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    found = comparison.interval
    return f"{comparison.difference:+.2f}" + (f" ({found.low:+.2f} – {found.high:+.2f})" if found else "")


def _p_value(comparison: Comparison | None) -> str:
    return "" if comparison is None else f"{comparison.p:.4f} {significance_marks(comparison.p):<3}"


def _result_dict(result: SystemResult) -> dict[str, Any]:
    record: dict[str, Any] = {"score": result.score, "runs": list(result.spread.scores)}
    if result.spread.deviation is not None:
        record["std_runs"] = result.spread.deviation
    if result.interval is not None:
        record["interval"] = [result.interval.low, result.interval.high]
        record["std_sentences"] = result.interval.deviation
    if result.comparison is not None:
        record["difference"] = result.comparison.difference
        record["p"] = result.comparison.p
        if result.comparison.wins is not None:
            record["wins"] = result.comparison.wins
        if result.comparison.interval is not None:
            record["difference_interval"] = [result.comparison.interval.low, result.comparison.interval.high]
    if result.details:
        record["details"] = result.details
    return record


def score_files(
    systems: Mapping[str, Sequence[str | Path]],
    references: Sequence[str | Path],
    config: EvalConfig,
    table: str | Path,
    record: str | Path,
    *,
    lines: Literal["even"] | None = None,
    learnt_from: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Score systems of one or several runs each; write a table as text and a record as JSON.

    lines        EVEN: score the even lines only, counted from 1
    learnt_from  say that the weights of a system were learnt from these lines

    Returns the scores of the last system.
    """
    texts = read_references(references)
    read = [
        read_system(name, runs, len(texts[0]), references[0], progress=progress)
        for name, runs in systems.items()
    ]
    if lines is not None:
        if len(texts[0]) == 1:
            raise FormatError(
                references[0], 0, found="one line", expected="two or more, of which even ones count"
            )
        texts = [text[1::2] for text in texts]
        read = [System(one.name, [run[1::2] for run in one.runs]) for one in read]
    try:
        report = replace(evaluate(read, texts, config), lines=lines, learnt_from=learnt_from)
    except ConfigError as error:
        raise ConfigError(f"eval: {error}") from None
    for path, text in ((table, report.table()), (record, as_json(report))):
        write_output(path, text)
    last = read[-1].name
    return {metric.label: report.result(metric.key, last).score for metric in report.metrics}


def check_config(config: EvalConfig) -> None:
    """Check the settings before any text is read."""
    for metric in config.metrics:
        corpus_metric(metric, [["."]], tokenize=config.tokenize, lowercase=config.lowercase)


def as_json(report: EvaluationReport, **more: Any) -> str:
    """A report as JSON."""
    return json.dumps(report.as_dict() | more, indent=2, ensure_ascii=False) + "\n"
