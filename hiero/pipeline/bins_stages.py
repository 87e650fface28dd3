"""The stages of ``hiero run`` that learn bins and draw their weights."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hiero.bins.curves import curves_of, table, write_pictures
from hiero.bins.file import read_bins
from hiero.config.load import model_inputs, model_settings
from hiero.core.symbols import Symbols
from hiero.core.text import open_output
from hiero.features.weights import read_weights
from hiero.jobs.learn_bins import Binning
from hiero.pipeline.plan import Figures, Plan, Stage, Task

OUTPUT, CURVES = "features.bins", "curves"


def add_bins(plan: Plan) -> None:
    config = plan.config
    if config.bins is None:
        return
    output = plan.out / OUTPUT
    plan.add(bins_stage(plan, Binning(config, plan.where, plan.texts), "bins", output))
    plan.replace(features=dataclasses.replace(config.features, bins=str(output)), bins=None)


def bins_stage(plan: Plan, binning: Binning, name: str, output: Path) -> Stage:
    """The stage that learns bins from the grammars made before it."""
    on = binning.settings.on
    inputs = model_inputs(dataclasses.replace(binning.config, lm=[], weights=None))
    inputs[f"data: {on}: source"] = Path(binning.files.source)
    if on in plan.grammars:
        inputs[f"grammars of {on}"] = plan.grammars[on]
    settings: dict[str, Any] = dataclasses.asdict(binning.settings)
    settings["grammar"] = model_settings(binning.config)["grammar"]

    def work(task: Task) -> Figures:
        output.parent.mkdir(exist_ok=True)
        bins = binning.run(output, task.threads, task.progress, task.opened.index)
        return {one.feature: len(one) for one in bins}

    return Stage(name=name, work=work, inputs=inputs, outputs=(output,), settings=settings)


def add_curves(plan: Plan) -> None:
    """Add pictures of the weights that this run learns for bins."""
    config = plan.config
    if config.tune is None or config.weights is None or config.features.bins is None:
        return
    folder = plan.out / CURVES
    inputs = {"features: bins": Path(config.features.bins), "weights": Path(config.weights.path)}
    work = _drawing(config.features.bins, config.weights.path, folder)
    plan.add(Stage(name="curves", work=work, inputs=inputs, outputs=(folder,)))


def _drawing(bins: str, weights: str, folder: Path) -> Callable[[Task], Figures]:
    def work(task: Task) -> Figures:
        curves = curves_of(read_bins(bins), read_weights(weights, Symbols()))
        part = folder.with_name(folder.name + ".part")
        # Replaced as a whole: no pictures of removed features may stay.
        shutil.rmtree(part, ignore_errors=True)
        write_pictures(curves, part)
        with open_output(part / "table.txt") as stream:
            stream.write("\n".join(table(curve) for curve in curves).encode())
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(part, folder)
        return {"log_leaves": {c.bins.feature: c.fit.left for c in curves if c.fit is not None}}

    return work
