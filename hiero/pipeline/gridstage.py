"""Grid search stages of ``hiero run``: tune with each combination of settings, choose on the held-out set.

    RUNDIR/grid/LABEL.bins     bins, if settings of bins are varied
    RUNDIR/grid/LABEL/         the tuning directory of a combination, like RUNDIR/tune
    RUNDIR/grid/LABEL.gz       its weights, and LABEL.json their scores
    RUNDIR/grid.txt            the table of all combinations
    RUNDIR/weights.gz          of the combination that is best on odd lines; features.bins its bins

Each combination is a stage of its own: a run that is resumed, or that has one more value of a setting, only
does what is missing.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiero.bins.config import FeatureConfig
from hiero.config.config import Config
from hiero.config.sections import GridSection, WeightsSection
from hiero.core.errors import ConfigError
from hiero.core.text import open_output
from hiero.jobs.learn_bins import Binning
from hiero.jobs.tune import ANSWER, Tuning
from hiero.learning.config import TuneConfig
from hiero.pipeline.bins_stages import OUTPUT as BINS
from hiero.pipeline.bins_stages import bins_stage
from hiero.pipeline.plan import Figures, Plan, Stage, Task
from hiero.pipeline.tune_stages import tune_stage

FOLDER, TABLE = "grid", "grid.txt"
OF_BINS = ("bits", "overlap")  # keys of bins; all others are keys of tune


@dataclass
class Trial:
    """A combination of values of the varied settings."""

    values: Mapping[str, Any]
    label: str = field(init=False)

    def __post_init__(self) -> None:
        self.label = label_of(self.values)


def label_of(values: Mapping[str, Any]) -> str:
    """``bits=4,beta=0.5``"""
    return ",".join(f"{key}={_short(value)}" for key, value in values.items())


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def trials(section: GridSection) -> list[Trial]:
    """All combinations, the last key changing first."""
    values = {key: found for key, found in dataclasses.asdict(section).items() if found}
    return [Trial(dict(zip(values, chosen, strict=True))) for chosen in itertools.product(*values.values())]


def add_grid(plan: Plan) -> None:
    config = plan.config
    if config.grid is None:
        return
    found = trials(config.grid)
    _check(plan, found)
    bins: dict[str, Path] = {}
    outputs: list[tuple[Path, Path]] = []  # weights and figures of each
    for trial in found:
        varied = _with_bins(plan, trial, bins)
        values = {key: value for key, value in trial.values.items() if key not in OF_BINS}
        try:
            settings = dataclasses.replace(varied.tune or TuneConfig(), **values)
            varied = dataclasses.replace(varied, tune=settings)
            tuning = Tuning(varied, plan.where, plan.texts, made=True)
        except ConfigError as error:
            raise plan.error(f"grid: {trial.label}", str(error)) from None
        if tuning.held_out is None:
            raise plan.error("grid", "needs a held-out set to choose by (tune: held_out)")
        folder = plan.out / FOLDER / trial.label
        outputs.append((folder.with_name(f"{trial.label}.gz"), folder.with_name(f"{trial.label}.json")))
        plan.add(tune_stage(plan, tuning, f"tune:{trial.label}", folder, *outputs[-1]))
    _add_choice(plan, found, outputs, list(bins.values()))


def _check(plan: Plan, found: Sequence[Trial]) -> None:
    config = plan.config
    if config.tune is None:
        raise plan.error("grid", "needs the section tune, whose settings it varies")
    if config.weights is not None:
        raise plan.error("weights", "cannot be combined with tune, which learns them")
    of_bins = [key for key in OF_BINS if key in found[0].values]
    if of_bins and config.bins is None:
        raise plan.error(f"grid: {of_bins[0]}", "needs the section bins")
    labels = [trial.label for trial in found]
    twice = next((label for k, label in enumerate(labels) if label in labels[:k]), None)
    if twice is not None:
        raise plan.error("grid", f"found {twice} twice, expected different values")


def _with_bins(plan: Plan, trial: Trial, made: dict[str, Path]) -> Config:
    """Return the configuration with the bins of a combination; combinations share the stage of equal bins."""
    config = plan.config
    if config.bins is None:
        return config
    values = {key: trial.values[key] for key in OF_BINS if key in trial.values}
    label = label_of(values) or "all"
    if label not in made:
        try:
            bins = dataclasses.replace(config.bins, **values)
            # Varied settings override those of single features.
            features = {name: _without(one, values) for name, one in bins.features.items()}
        except ConfigError as error:
            raise plan.error(f"grid: {label}", str(error)) from None
        bins = dataclasses.replace(bins, features=features)
        binning = Binning(dataclasses.replace(config, bins=bins), plan.where, plan.texts)
        made[label] = plan.out / FOLDER / f"{label}.bins"
        plan.add(bins_stage(plan, binning, f"bins:{label}", made[label]))
    features_of = dataclasses.replace(config.features, bins=str(made[label]))
    return dataclasses.replace(config, features=features_of, bins=None)


def _without(one: FeatureConfig, values: Mapping[str, Any]) -> FeatureConfig:
    """The settings of a feature without those that are varied."""
    bits = None if "bits" in values else one.bits
    return dataclasses.replace(one, bits=bits, overlap=None if "overlap" in values else one.overlap)


# ---- the choice


def _add_choice(
    plan: Plan, found: Sequence[Trial], outputs: Sequence[tuple[Path, Path]], bins: Sequence[Path]
) -> None:
    inputs = {f"weights of {t.label}": paths[0] for t, paths in zip(found, outputs, strict=True)}
    inputs |= {f"figures of {t.label}": paths[1] for t, paths in zip(found, outputs, strict=True)}
    inputs |= {f"bins: {path.name.removesuffix('.bins')}": path for path in bins}
    answer = [plan.out / ANSWER, *([plan.out / BINS] if bins else [])]
    plan.add(
        Stage(
            name="grid",
            work=_choosing(plan, found, outputs, bins),
            inputs=inputs,
            outputs=(*answer, plan.out / TABLE),
            settings={"trials": [trial.label for trial in found]},
        )
    )
    plan.replace(weights=WeightsSection(path=str(answer[0])), grid=None, bins=None)
    if bins:
        plan.replace(features=dataclasses.replace(plan.config.features, bins=str(answer[1])))


def _choosing(
    plan: Plan, found: Sequence[Trial], outputs: Sequence[tuple[Path, Path]], bins: Sequence[Path]
) -> Callable[[Task], Figures]:
    out = plan.out

    def work(task: Task) -> Figures:
        figures = [json.loads(paths[1].read_bytes()) for paths in outputs]
        bleu = [one["choose_bleu"] for one in figures]
        best = bleu.index(max(bleu))  # the first of equal ones
        lines = table(found, figures, best)
        for line in lines:
            task.progress.say(line)
        copies = [(outputs[best][0], out / ANSWER)]
        if bins:
            label = label_of({k: v for k, v in found[best].values.items() if k in OF_BINS}) or "all"
            copies.append((out / FOLDER / f"{label}.bins", out / BINS))
        for source, target in copies:
            with open_output(target, packed=True) as stream:
                stream.write(source.read_bytes())
        with open_output(out / TABLE) as stream:
            stream.write("".join(f"{line}\n" for line in lines).encode())
        return {"chosen": found[best].label, **figures[best]}

    return work


def table(found: Sequence[Trial], figures: Sequence[Mapping[str, Any]], best: int) -> list[str]:
    """A line for each combination; the chosen one has a star."""
    keys = list(found[0].values)
    rows = [[*keys, "weights", "epoch", "odd lines (choose)", "even lines (report)", ""]]
    for k, (trial, one) in enumerate(zip(found, figures, strict=True)):
        bleu = (f"{one[f'{half}_bleu']:.2f} ({one[f'{half}_brevity']:.3f})" for half in ("choose", "report"))
        values = [_short(trial.values[key]) for key in keys]
        rows.append([*values, f"{one['features']:,}", str(one["epoch"]), *bleu, "*" if k == best else ""])
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
