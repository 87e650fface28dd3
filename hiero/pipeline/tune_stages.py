"""The tuning stage of ``hiero run``, and the one that draws the weights of bins.

Or the stages of a grid search: tune with each combination of settings, choose on the held-out set.

    RUNDIR/grid/LABEL.bins     bins, if settings of bins are varied
    RUNDIR/grid/LABEL/         the tuning directory of a combination, like RUNDIR/tune
    RUNDIR/grid/LABEL.gz       its weights, and LABEL.json their scores
    RUNDIR/grid.txt            the table of all combinations
    RUNDIR/rules/              rules of sentences, for all combinations; can be deleted
    RUNDIR/weights.gz          of the combination that is best on odd lines; features.bins its bins

Each combination is a stage of its own: a run that is resumed, or that has one more value of a setting, only
does what is missing.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hiero.bins.config import FeatureConfig
from hiero.bins.curves import curves_of, table, write_pictures
from hiero.bins.file import read_bins
from hiero.config.config import Config
from hiero.config.sections import GridSection, WeightsSection
from hiero.core.directories import create_directory
from hiero.core.errors import ConfigError
from hiero.core.symbols import Symbols
from hiero.core.text import aligned, write_output
from hiero.features.weights import read_weights
from hiero.jobs.learn_bins import Binning
from hiero.jobs.run_directory import CONFIG, LOCK
from hiero.jobs.tune import ANSWER, RULES, STATE, Tuning
from hiero.learning.config import TuneConfig
from hiero.pipeline.model_stages import BINS, add_bins_stage
from hiero.pipeline.plan import Figures, Plan, Task

FOLDER, CURVES = "tune", "curves"
FIGURES = ("choose_bleu", "choose_brevity", "report_bleu", "report_brevity", "features")


def add_tune(plan: Plan) -> None:
    """Add the stage that tunes with the settings of the configuration."""
    config = plan.config
    if config.tune is None or any(stage.name == "grid" for stage in plan.stages):
        return
    if config.weights is not None:
        problem = "cannot be combined with tune, which learns them"
        raise plan.error("weights", f"{problem} (tune: {{start: PATH}} starts from given ones)")
    tuning = _tuning(plan, config)
    output = plan.out / ANSWER
    add_tune_stage(plan, tuning, "tune", plan.out / FOLDER, output)
    plan.replace(weights=WeightsSection(path=str(output)))


def _tuning(plan: Plan, config: Config) -> Tuning:
    allowed = plan.allow_grammar_paths
    return Tuning(config, plan.where, plan.texts, made=True, allow_grammar_paths=allowed)


def add_tune_stage(
    plan: Plan, tuning: Tuning, name: str, folder: Path, output: Path, figures: Path | None = None
) -> None:
    """Add the stage that tunes in a folder, writes the weights to ``output``, and figures to a file."""
    on = tuning.settings.on
    plan.learnt_from = on
    plan.chosen_on = tuning.settings.held_out if tuning.held_out is not None else None
    if plan.grammars and on not in plan.grammars:
        problem = "write: per_sentence makes no grammars for this set; set write: nothing"
        raise plan.error(f"tune: on: {on}", problem)
    inputs = tuning.inputs()
    for text in (on, tuning.settings.held_out):
        if text in plan.grammars:
            inputs[f"grammars of {text}"] = plan.grammars[text]
    plan.add(
        name=name,
        work=partial(_tune, tuning, folder, plan.out / RULES, output, figures),
        inputs=inputs,
        outputs=(output,) if figures is None else (output, figures),
        settings=tuning.settings_of_answer() | {"epochs": tuning.settings.epochs},
    )


def _tune(tuning: Tuning, folder: Path, rules: Path, output: Path, to: Path | None, task: Task) -> Figures:
    if not tuning.fits(folder, task.opened.digest):
        shutil.rmtree(folder, ignore_errors=True)
    tuned = tuning.run(
        folder,
        workers=task.threads,
        resume=True,
        progress=task.progress,
        opened=task.opened,
        rules=rules,
    )
    write_output(output, tuned.weights.read_bytes(), packed=True)
    task.progress.say(tuned.summary(tuning.settings.held_out))
    chosen = {name: tuned.chosen[name] for name in FIGURES if name in tuned.chosen}
    figures = {"epochs": len(tuned.log), "epoch": tuned.epoch} | chosen
    if to is not None:
        write_output(to, json.dumps(figures) + "\n")
    _tidy(folder)
    return figures


def _tidy(folder: Path) -> None:
    """Delete all files but the weights of all epochs and the log."""
    for name in (STATE, CONFIG, LOCK):  # STATE first: without it, the rest is never resumed
        (folder / name).unlink()
    for made in ("epochs", "jackknife"):
        shutil.rmtree(folder / made, ignore_errors=True)


GRID_FOLDER, TABLE = "grid", "grid.txt"
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
    """Add the stages that tune with several settings, and the one that chooses the best."""
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
            tuning = _tuning(plan, varied)
        except ConfigError as error:
            raise plan.error(f"grid: {trial.label}", str(error)) from None
        if tuning.held_out is None:
            raise plan.error("grid", "needs a held-out set to choose by (tune: held_out)")
        folder = plan.out / GRID_FOLDER / trial.label
        outputs.append((folder.with_name(f"{trial.label}.gz"), folder.with_name(f"{trial.label}.json")))
        add_tune_stage(plan, tuning, f"tune:{trial.label}", folder, *outputs[-1])
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
        binning = Binning(
            dataclasses.replace(config, bins=bins),
            plan.where,
            plan.texts,
            allow_grammar_paths=plan.allow_grammar_paths,
        )
        made[label] = plan.out / GRID_FOLDER / f"{label}.bins"
        add_bins_stage(plan, binning, f"bins:{label}", made[label])
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
        name="grid",
        work=partial(_choose, plan.out, found, outputs, bins),
        inputs=inputs,
        outputs=(*answer, plan.out / TABLE),
        settings={"trials": [trial.label for trial in found]},
    )
    plan.replace(weights=WeightsSection(path=str(answer[0])), grid=None, bins=None)
    if bins:
        plan.replace(features=dataclasses.replace(plan.config.features, bins=str(answer[1])))


def _choose(
    out: Path, found: Sequence[Trial], outputs: Sequence[tuple[Path, Path]], bins: Sequence[Path], task: Task
) -> Figures:
    figures = [json.loads(paths[1].read_bytes()) for paths in outputs]
    bleu = [one["choose_bleu"] for one in figures]
    best = bleu.index(max(bleu))  # the first of equal ones
    lines = grid_table(found, figures, best)
    for line in lines:
        task.progress.say(line)
    copies = [(outputs[best][0], out / ANSWER)]
    if bins:
        label = label_of({k: v for k, v in found[best].values.items() if k in OF_BINS}) or "all"
        copies.append((out / GRID_FOLDER / f"{label}.bins", out / BINS))
    for source, target in copies:
        write_output(target, source.read_bytes(), packed=True)
    write_output(out / TABLE, "".join(f"{line}\n" for line in lines))
    return {"chosen": found[best].label, **figures[best]}


def grid_table(found: Sequence[Trial], figures: Sequence[Mapping[str, Any]], best: int) -> list[str]:
    """The report of the stage ``grid``: a line for each combination; the chosen one has a star."""
    keys = list(found[0].values)
    rows = [[*keys, "weights", "epoch", "odd lines (choose)", "even lines (report)", ""]]
    for k, (trial, one) in enumerate(zip(found, figures, strict=True)):
        bleu = (f"{one[f'{half}_bleu']:.2f} ({one[f'{half}_brevity']:.3f})" for half in ("choose", "report"))
        values = [_short(trial.values[key]) for key in keys]
        rows.append([*values, f"{one['features']:,}", str(one["epoch"]), *bleu, "*" if k == best else ""])
    return aligned(rows)


def add_curves(plan: Plan) -> None:
    """Add pictures of the weights that this run learns for bins."""
    config = plan.config
    if config.tune is None or config.weights is None or config.features.bins is None:
        return
    folder = plan.out / CURVES
    inputs = {"features: bins": Path(config.features.bins), "weights": Path(config.weights.path)}
    work = partial(_draw, config.features.bins, config.weights.path, folder)
    plan.add(name="curves", work=work, inputs=inputs, outputs=(folder,))


def _draw(bins: str, weights: str, folder: Path, task: Task) -> Figures:
    curves = curves_of(read_bins(bins), read_weights(weights, Symbols()))
    # Replaced as a whole: no pictures of removed features may stay.
    with create_directory(folder) as made:
        write_pictures(curves, made)
        write_output(made / "table.txt", "\n".join(table(curve) for curve in curves))
    return {"log_leaves": {c.bins.feature: c.fit.left for c in curves if c.fit is not None}}
