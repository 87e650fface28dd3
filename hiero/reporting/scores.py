"""Scores of the sets of run directories: as recorded, or of several systems side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from hiero.config.config import Config
from hiero.config.sections import TRAIN
from hiero.core.errors import HieroError
from hiero.core.progress import Progress
from hiero.core.records import part
from hiero.core.text import decode_line, parse_json, read_lines
from hiero.evaluation.compare import EVEN, System, evaluate
from hiero.evaluation.config import EvalConfig
from hiero.evaluation.hypotheses import read_hypotheses, read_references
from hiero.reporting.directory import RunDirectory
from hiero.reporting.records import SetScores


class _Metric(msgspec.Struct):
    score: float
    interval: tuple[float, float] | None = None
    difference: float | None = None
    difference_interval: tuple[float, float] | None = None
    p: float | None = None
    runs: list[float] = []
    std_runs: float | None = None
    details: str = ""


class _System(msgspec.Struct):
    name: str
    metrics: dict[str, _Metric]


class _Scores(msgspec.Struct):
    """What ``hiero eval --format json`` writes, as far as it is shown."""

    systems: list[_System]
    sentences: int
    signatures: dict[str, str]
    test: str | None = None
    trials: int = 0
    seed: int = 0
    lines: str | None = None
    learnt_from: bool = False


@dataclass
class SetTexts:
    """The texts of a set in a run, read and unchanged since.

    even     whether only even lines are scored, since odd ones chose the weights
    learnt   whether the weights were learnt from it
    """

    name: str
    source_path: Path
    source: list[str]
    references: list[list[str]]
    output: list[str]
    digests: list[str]  # of the references
    even: bool
    learnt: bool

    def lines(self, texts: list[str]) -> list[str]:
        """The lines of a text that are scored."""
        return texts[1::2] if self.even else texts

    @property
    def numbers(self) -> range:
        """The numbers of these lines, from 0."""
        return range(1, len(self.source), 2) if self.even else range(len(self.source))


def set_names(config: Config) -> list[str]:
    """The sets that are translated: first those that the weights do not depend on, the last of them first."""
    tune, names = config.tune, _names(config)[::-1]
    if tune is None:
        return names
    return sorted(names, key=lambda name: (name == tune.on, name == tune.held_out))


def _names(config: Config) -> list[str]:
    drawn = [name for name in config.sequester if name not in config.data]
    return [*(name for name in config.data if name != TRAIN), *drawn]


def set_files(run: RunDirectory, name: str) -> SetTexts | None:
    """The texts of a set; None, where some are missing or have changed, which is noted."""
    output = run.output_of(f"join:{name}") or run.output_of(f"decode:{name}")
    decoded = run.stages.get(f"decode:{name}")
    scored = run.stages.get(f"eval:{name}")
    if output is None or decoded is None or scored is None:
        return None
    key = f"data: {name}: "
    references = [one.path for at, one in scored.inputs.items() if at.startswith((f"{key}t", f"{key}r"))]
    sources = [one.path for at, one in decoded.inputs.items() if at == f"{key}source"]
    paths = [str(output), *sources, *references]
    if not sources or not references or not all(map(run.is_unchanged, paths)):
        return None
    try:
        lines = read_references(references)
        # As ``hiero decode`` reads it: what is not UTF-8 is replaced.
        source = [decode_line(line, n)[0] for n, line in enumerate(read_lines(sources[0]), 1)]
        found = read_hypotheses(output, len(lines[0]), references[0]).lines
    except (HieroError, OSError) as error:
        run.problem(str(error))
        return None
    even, learnt = scored.settings.get("lines") == EVEN, bool(scored.settings.get("learnt_from"))
    return SetTexts(
        name, Path(sources[0]), source, lines, found, run.digests(references), even=even, learnt=learnt
    )


def texts_of_all(runs: Sequence[RunDirectory], name: str) -> list[SetTexts | None]:
    """The texts of a set in each run; the same lines are scored of all with the references of the first.

    Where the odd lines chose the weights of one of them, these are the even ones.
    """
    files = [set_files(run, name) for run in runs]
    if files[0] is not None:
        alike = [one for one in files if one is not None and one.digests == files[0].digests]
        even = any(one.even for one in alike)
        for one in alike:
            one.even = even
    return files


def recorded_scores(run: RunDirectory) -> list[SetScores]:
    """The scores that the stages of a run have written."""
    found = []
    for stage, entry in run.stages.items():
        kind, _, name = stage.partition(":")
        paths = [run.path / output for output in entry.outputs if output.endswith(".json")]
        if kind != "eval" or not paths or not run.is_unchanged(paths[0]):
            continue
        try:
            scores = msgspec.convert(parse_json(paths[0].read_bytes()), _Scores)
            if not scores.systems:
                raise ValueError("no systems")
        except (OSError, ValueError, msgspec.ValidationError) as error:
            run.problem(f"{paths[0]}: damaged ({error})")
            continue
        content = msgspec.to_builtins(scores)
        if len(content["systems"]) == 1:
            content["systems"][0]["name"] = run.name
        found.append(SetScores(name, content))
    return found


def compared_scores(runs: Sequence[RunDirectory], progress: Progress) -> list[SetScores]:
    """All systems on the sets of the first; the first is the baseline of tests.

    Systems with other references are left out.
    """
    config = runs[0].config
    if config is None:
        return []
    names = _names(config)
    progress.begin(len(names), "scores")
    found = []
    for name in names:
        files = texts_of_all(runs, name)
        progress.advance(1)
        first = files[0]
        if first is None:
            continue
        used = [(run, one) for run, one in zip(runs, files, strict=True) if one is not None]
        other = [run.name for run, one in used if one.digests != first.digests]
        used = [(run, one) for run, one in used if one.digests == first.digests]
        missing = [run.name for run, one in zip(runs, files, strict=True) if one is None]
        problem = f"not compared, since their references differ: {', '.join(other)}" if other else ""
        if missing:
            problem += f"{'; ' if problem else ''}without translations of this set: {', '.join(missing)}"
        found.append(SetScores(name, _evaluated(config, first, used), problem))
    return found


def _evaluated(
    config: Config, first: SetTexts, used: Sequence[tuple[RunDirectory, SetTexts]]
) -> dict[str, Any]:
    systems = [System(run.name, [first.lines(one.output)]) for run, one in used]
    references = [first.lines(lines) for lines in first.references]
    report = evaluate(systems, references, part(EvalConfig, config.eval))
    more: dict[str, Any] = {"lines": EVEN} if first.even else {}
    if any(one.learnt for _, one in used):
        more["learnt_from"] = True
    return report.as_dict() | more
