"""The stages of ``hiero run`` that learn an orientation model: after the alignment, before tuning."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hiero.config.sections import ReorderSection, as_list
from hiero.core.text import open_output
from hiero.pipeline.plan import Figures, Plan, Stage, Task
from hiero.reordering.config import LEARNERS, USED_BY, ExampleConfig, LearnConfig
from hiero.reordering.evaluate import evaluate, evaluate_majority, report
from hiero.reordering.examples import extract_examples, open_examples
from hiero.reordering.feature import check_kinds
from hiero.reordering.model import Classifier, open_model
from hiero.reordering.train import train_model

EXAMPLES, HELD_OUT, MODEL = "reordering.examples", "reordering.held", "reordering.model"
TABLE, RECORD = "reordering.eval.txt", "reordering.eval.json"


def add_reorder(plan: Plan) -> None:
    section = plan.config.reorder
    if section is None:
        return
    train = plan.train("the orientation model")
    alignments = as_list(train.alignment)
    if len(alignments) != 1:
        problem = f"found {len(alignments)} alignments of data: train, expected one"
        raise plan.error("reorder", problem)
    given = as_list(plan.config.features.reordering)
    kinds = [(path, isinstance(open_model(path), Classifier)) for path in given]
    check_kinds([*kinds, ("the one of reorder", section.learner != "lexicalised")])
    examples, model = plan.out / EXAMPLES, plan.out / MODEL
    held_out = plan.out / HELD_OUT if section.held_out_every else None
    made = (examples,) if held_out is None else (examples, held_out)
    files = Path(train.source), Path(str(train.target)), Path(alignments[0])
    keys = [f"data: train: {name}" for name in ("source", "target", "alignment")]
    of_examples = _part(section, ExampleConfig)
    plan.add(
        Stage(
            name="reorder:extract",
            work=_extraction(files, examples, held_out, section),
            inputs=dict(zip(keys, files, strict=True)),
            outputs=made,
            settings=dataclasses.asdict(of_examples) | {"held_out_every": section.held_out_every},
        )
    )
    learning = dataclasses.asdict(_part(section, LearnConfig))
    learning = {k: value for k, value in learning.items() if section.learner in USED_BY.get(k, LEARNERS)}
    plan.add(
        Stage(
            name="reorder:train",
            work=_training(examples, model, held_out, section, plan.config.seed),
            inputs={"examples": examples},
            outputs=(model,),
            settings=learning | {"seed": plan.config.seed},
        )
    )
    if held_out is not None:
        plan.add(
            Stage(
                name="reorder:eval",
                work=_evaluation(model, held_out, plan.out / TABLE, plan.out / RECORD),
                inputs={"model": model, "held-out examples": held_out},
                outputs=(plan.out / TABLE, plan.out / RECORD),
            )
        )
    models = [*given, str(model)]
    plan.replace(features=dataclasses.replace(plan.config.features, reordering=models), reorder=None)


def _part(section: ReorderSection, kind: Any) -> Any:
    """The part of a section that is a record of type ``kind``."""
    return kind(**{field.name: getattr(section, field.name) for field in dataclasses.fields(kind)})


def _extraction(
    files: tuple[Path, Path, Path], examples: Path, held_out: Path | None, section: ReorderSection
) -> Callable[[Task], Figures]:
    def work(task: Task) -> Figures:
        summary = extract_examples(
            *files,
            examples,
            _part(section, ExampleConfig),
            held_out=held_out,
            every=section.held_out_every,
            watch=task.progress,
        )
        task.progress.say(str(summary))
        return dataclasses.asdict(summary)

    return work


def _training(
    examples: Path, model: Path, held_out: Path | None, section: ReorderSection, seed: int
) -> Callable[[Task], Figures]:
    def work(task: Task) -> Figures:
        config = _part(section, LearnConfig)
        trained = train_model(examples, model, config, seed=seed, held_out=held_out, watch=task.progress)
        task.progress.say(str(trained))
        figures: dict[str, Any] = {"examples": trained.num_examples, "learning_cpu": trained.cpu}
        if trained.learned is not None:
            figures |= {"passes": trained.learned.history[-1].number, "primal": trained.learned.primal}
        return figures

    return work


def _evaluation(model: Path, held_out: Path, table: Path, record: Path) -> Callable[[Task], Figures]:
    def work(task: Task) -> Figures:
        task.progress.begin(None)
        opened, examples = open_model(model), open_examples(held_out)
        found = evaluate(opened, examples)
        majority = evaluate_majority(opened, examples)
        # Named by its learner, since its path is not part of the result.
        found = dataclasses.replace(found, name=opened.learning["learner"])
        systems = [found, majority]
        content = json.dumps([one.as_dict() for one in systems], indent=1) + "\n"
        for path, text in ((table, report(systems)), (record, content)):
            with open_output(path) as stream:
                stream.write(text.encode())
        return {"error": found.error, "majority_error": majority.error, "bits": found.loss}

    return work
