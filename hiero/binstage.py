"""The stage of ``hiero run`` that learns bins: after the grammars, before what is tuned with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hiero.binning import Binning
from hiero.stages import Figures, Plan, Stage, Task
from hiero.teststages import model_inputs, model_settings

OUTPUT = "features.bins"


def add_bins(plan: Plan) -> None:
    config = plan.config
    if config.bins is None:
        return
    binning = Binning(config, plan.where, plan.texts)
    on, output = binning.settings.on, plan.out / OUTPUT
    inputs = model_inputs(dataclasses.replace(binning.config, lm=[], weights=None))
    inputs[f"data: {on}: source"] = Path(binning.files.source)
    if on in plan.grammars:
        inputs[f"grammars of {on}"] = plan.grammars[on]
    settings: dict[str, Any] = dataclasses.asdict(binning.settings)
    settings["grammar"] = model_settings(binning.config)["grammar"]
    plan.add(
        Stage(
            name="bins", work=_learning(binning, output), inputs=inputs, outputs=(output,), settings=settings
        )
    )
    plan.replace(features=dataclasses.replace(config.features, bins=str(output)), bins=None)


def _learning(binning: Binning, output: Path) -> Callable[[Task], Figures]:
    def work(task: Task) -> Figures:
        bins = binning.run(output, task.threads, task.watch)
        return {one.feature: len(one) for one in bins}

    return work
