"""The tuning stage of ``hiero run``, between the stages that make a model and those that translate."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hiero.config.sections import WeightsSection
from hiero.core.progress import Progress
from hiero.core.text import open_output
from hiero.jobs.directory import CONFIG, LOCK
from hiero.jobs.tune import ANSWER, Tuned, Tuning
from hiero.jobs.tunedir import STATE
from hiero.pipeline.plan import Figures, Plan, Stage, Task
from hiero.tuning.table import Table

FOLDER = "tune"
FIGURES = ("choose_bleu", "choose_brevity", "report_bleu", "report_brevity", "features")


def add_tune(plan: Plan) -> None:
    config = plan.config
    if config.tune is None or any(stage.name == "grid" for stage in plan.stages):
        return
    if config.weights is not None:
        problem = "cannot be combined with tune, which learns them"
        raise plan.error("weights", f"{problem} (tune: {{start: PATH}} starts from given ones)")
    tuning = Tuning(config, plan.where, plan.texts, made=True)
    output = plan.out / ANSWER
    plan.add(tune_stage(plan, tuning, "tune", plan.out / FOLDER, output))
    plan.replace(weights=WeightsSection(path=str(output)))


def tune_stage(
    plan: Plan, tuning: Tuning, name: str, folder: Path, output: Path, figures: Path | None = None
) -> Stage:
    """Make the stage that tunes in a folder, writes the weights to ``output``, and figures to a file."""
    on = tuning.settings.on
    if plan.grammars and on not in plan.grammars:
        problem = "write: per_sentence makes no grammars for this set; set write: nothing"
        raise plan.error(f"tune: on: {on}", problem)
    inputs = tuning.inputs()
    for text in (on, tuning.settings.held_out):
        if text in plan.grammars:
            inputs[f"grammars of {text}"] = plan.grammars[text]
    return Stage(
        name=name,
        work=_tuning(tuning, folder, output, figures),
        inputs=inputs,
        outputs=(output,) if figures is None else (output, figures),
        settings=tuning.settings_of_answer() | {"epochs": tuning.settings.epochs},
    )


def _tuning(tuning: Tuning, folder: Path, output: Path, to: Path | None) -> Callable[[Task], Figures]:
    def work(task: Task) -> Figures:
        if not tuning.fits(folder):
            shutil.rmtree(folder, ignore_errors=True)
        watch = _Rows(task.progress, Table(tuning.settings, held_out=tuning.held_out is not None))
        tuned: Tuned = tuning.run(folder, workers=task.threads, resume=True, watch=watch)
        with open_output(output, packed=True) as stream:
            stream.write(tuned.weights.read_bytes())
        chosen = {name: tuned.chosen[name] for name in FIGURES if name in tuned.chosen}
        figures = {"epochs": len(tuned.log), "epoch": tuned.epoch} | chosen
        if to is not None:
            with open_output(to) as stream:
                stream.write((json.dumps(figures) + "\n").encode())
        _tidy(folder)
        return figures

    return work


def _tidy(folder: Path) -> None:
    """Delete all files but the weights of all epochs and the log."""
    for name in (STATE, CONFIG, LOCK):  # STATE first: without it, the rest is never resumed
        (folder / name).unlink()
    for made in ("epochs", "jackknife"):
        shutil.rmtree(folder / made, ignore_errors=True)


class _Rows:
    """Progress of tuning, with a table of its epochs as notes."""

    def __init__(self, watch: Progress, table: Table) -> None:
        self._watch, self._table, self._rows = watch, table, 0
        self.begin, self.advance, self.say = watch.begin, watch.advance, watch.say

    def epoch(self, record: Mapping[str, Any]) -> None:
        if not self._rows:
            self.say(self._table.heading())
        self.say(self._table.row(record))
        self._rows += 1
