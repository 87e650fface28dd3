"""The stage that tunes: between the stages that make a model, and those that translate with it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hiero.formats.text import open_output
from hiero.rundir import CONFIG, LOCK
from hiero.sections import WeightsSection
from hiero.stages import Figures, Plan, Stage, Task
from hiero.tune.table import Table
from hiero.tunedir import STATE
from hiero.tuning import ANSWER, Tuned, Tuning
from hiero.watch import Watch

FOLDER = "tune"
FIGURES = ("choose_bleu", "choose_brevity", "report_bleu", "report_brevity", "features")


def add_tune(plan: Plan) -> None:
    config = plan.config
    if config.tune is None:
        return
    if config.weights is not None:
        problem = "found with tune, which makes them; expected one of them"
        raise plan.error("weights", f"{problem} (tune: {{start: PATH}} begins with weights there are)")
    tuning = Tuning(config, plan.where, plan.texts, made=True)
    on = tuning.settings.on
    if plan.grammars and on not in plan.grammars:
        problem = "found it with grammars written per_sentence, of which there are none for it"
        raise plan.error(f"tune: on: {on}", f"{problem}; expected write: nothing")
    folder, output = plan.out / FOLDER, plan.out / ANSWER
    inputs = tuning.inputs()
    for name in (on, tuning.settings.held_out):
        if name in plan.grammars:
            inputs[f"grammars of {name}"] = plan.grammars[name]
    plan.add(
        Stage(
            name="tune",
            work=_tuning(tuning, folder, output),
            inputs=inputs,
            outputs=(output,),
            settings=tuning.settings_of_answer() | {"epochs": tuning.settings.epochs},
        )
    )
    plan.replace(weights=WeightsSection(path=str(output)))


def _tuning(tuning: Tuning, folder: Path, output: Path) -> Callable[[Task], Figures]:
    def work(task: Task) -> Figures:
        if not tuning.fits(folder):
            shutil.rmtree(folder, ignore_errors=True)
        watch = _Rows(task.watch, Table(tuning.settings, held_out=tuning.held_out is not None))
        tuned: Tuned = tuning.run(folder, workers=task.threads, resume=True, watch=watch)
        with open_output(output, packed=True) as stream:
            stream.write(tuned.weights.read_bytes())
        _tidy(folder)
        chosen = {name: tuned.chosen[name] for name in FIGURES if name in tuned.chosen}
        return {"epochs": len(tuned.log), "epoch": tuned.epoch} | chosen

    return work


def _tidy(folder: Path) -> None:
    """Keep what is worth a look: the weights of all epochs, and the log."""
    for name in (STATE, CONFIG, LOCK):  # the first of them first: what is left could not be gone on with
        (folder / name).unlink()
    for made in ("epochs", "jackknife"):
        shutil.rmtree(folder / made, ignore_errors=True)


class _Rows:
    """Somebody who watches, and reads a table."""

    def __init__(self, watch: Watch, table: Table) -> None:
        self._watch, self._table, self._rows = watch, table, 0
        self.begin, self.advance, self.say = watch.begin, watch.advance, watch.say

    def epoch(self, record: Mapping[str, Any]) -> None:
        if not self._rows:
            self.say(self._table.heading())
        self.say(self._table.row(record))
        self._rows += 1
