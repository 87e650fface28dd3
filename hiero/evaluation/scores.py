"""Scoring of files of translations, with the results in files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hiero.core.errors import ConfigError
from hiero.core.text import open_output
from hiero.evaluation.compare import EvalConfig, EvaluationReport, evaluate, read_system
from hiero.evaluation.corpus_metrics import corpus_metric
from hiero.evaluation.hypotheses import read_references


def score_files(
    systems: Mapping[str, Sequence[str | Path]],
    references: Sequence[str | Path],
    config: EvalConfig,
    table: str | Path,
    record: str | Path,
    *,
    say: Callable[[str], None] = lambda note: None,
) -> dict[str, float]:
    """Score systems of one or several runs each; write a table as text and a record as JSON.

    Returns the scores of the last system.
    """
    texts = read_references(references)
    read = [read_system(name, runs, len(texts[0]), references[0], say=say) for name, runs in systems.items()]
    try:
        report: EvaluationReport = evaluate(read, texts, config)
    except ConfigError as error:
        raise ConfigError(f"eval: {error}") from None
    for path, text in ((table, report.table()), (record, as_json(report))):
        with open_output(path) as stream:
            stream.write(text.encode())
    last = read[-1].name
    return {metric.label: report.result(metric.key, last).score for metric in report.metrics}


def check_config(config: EvalConfig) -> None:
    """Check the settings before any text is read."""
    config.check()
    for metric in config.metrics:
        corpus_metric(metric, [["."]], tokenize=config.tokenize, lowercase=config.lowercase)


def as_json(report: EvaluationReport, **more: Any) -> str:
    """A report as JSON."""
    return json.dumps(report.as_dict() | more, indent=2, ensure_ascii=False) + "\n"
