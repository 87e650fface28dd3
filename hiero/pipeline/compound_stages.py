"""The stages that split compounds: on the source side, or on the target side, where translations are joined.

A target side is split before anything is learnt from it, so that models, tuning and its references have parts
with marks. Translations are joined before they are evaluated, with the references as they were.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from operator import ne
from pathlib import Path

from hiero.bitext.compounds import Compounds, split_compounds
from hiero.bitext.config import CompoundConfig
from hiero.bitext.prepare import MARK, join_compounds
from hiero.config.sections import TRAIN
from hiero.core.errors import FormatError, show
from hiero.core.text import read_lines, read_text, write_output
from hiero.evaluation.hypotheses import read_hypotheses
from hiero.pipeline.plan import Figures, Plan, Task, keys_of

# ---- the target side


def add_mark(plan: Plan) -> None:
    """Add the stages that split compounds of the target side into marked parts.

    So are the references of sets, for the stages that follow; ``plan.unmarked`` has the sets as they were.
    """
    section = plan.config.prep
    if section is None or section.split_compounds_target == "no":
        return
    train, folder = plan.train("prep: split_compounds_target"), plan.out / "marked"
    given = None if section.target_compounds is None else Path(section.target_compounds)
    model, output = given or plan.out / "compounds.target.gz", folder / f"{TRAIN}.target"
    models = {"prep: target_compounds": model}
    plan.add(
        name=f"mark:{TRAIN}",
        work=partial(_mark_train, str(train.target), given, model, output, section.compounds),
        inputs={"data: train: target": Path(str(train.target))} | (models if given else {}),
        outputs=(output,) if given else (model, output),
        settings={} if given else dataclasses.asdict(section.compounds),
    )
    data = {TRAIN: dataclasses.replace(train, target=str(output))}
    for name, unmarked in plan.test_sets():
        plan.unmarked[name] = data[name] = unmarked
        texts = [Path(path) for path in unmarked.translations]
        if not texts:
            continue
        outputs = tuple(folder / f"{name}.reference{number}" for number in range(1, len(texts) + 1))
        plan.add(
            name=f"mark:{name}",
            work=partial(_mark_set, texts, model, outputs),
            inputs=dict(zip(keys_of(name, unmarked)[1:], texts, strict=True)) | models,
            outputs=outputs,
        )
        references = [str(path) for path in outputs]
        data[name] = dataclasses.replace(unmarked, target=None, references=references)
    plan.replace(data=data, prep=dataclasses.replace(section, target_compounds=str(model)))


def _mark_train(
    target: str, given: Path | None, model: Path, output: Path, config: CompoundConfig, task: Task
) -> Figures:
    output.parent.mkdir(exist_ok=True)
    lines = read_text(target)
    for number, line in enumerate(lines, 1):
        if wrong := next((word for word in line.split(" ") if word.endswith(MARK) and word != MARK), ""):
            expected = f"no word that ends with {MARK}, the mark of the parts of compounds"
            raise FormatError(target, number, found=show(wrong), expected=expected)
    if given is None:
        Compounds.learn(lines, config).write(model)
    split_compounds(target, output, model, "marked", progress=task.progress)
    return {"lines": len(lines), "lines with compounds": sum(map(ne, lines, read_text(output)))}


def _mark_set(texts: list[Path], model: Path, outputs: tuple[Path, ...], task: Task) -> Figures:
    outputs[0].parent.mkdir(exist_ok=True)
    lines = 0
    for text, output in zip(texts, outputs, strict=True):
        lines = split_compounds(text, output, model, "marked", progress=task.progress)
    return {"lines": lines}


def add_join(plan: Plan) -> None:
    """Add the stages that join the marked parts of translations."""
    section = plan.config.prep
    if section is None or section.split_compounds_target == "no":
        return
    form = "kbest" if plan.config.search.kbest else "text"
    for name, data in plan.test_sets():
        if name in plan.outputs:
            given, output = plan.outputs[name], plan.out / f"{name}.output"
            plan.add(
                name=f"join:{name}",
                work=partial(_join, given, data.source, output, form),
                inputs={f"translations of {name}": given, f"data: {name}: source": Path(data.source)},
                outputs=(output,),
            )
            plan.outputs[name] = output


def _join(given: Path, source: str, output: Path, form: str, task: Task) -> Figures:
    task.progress.begin(None)
    found = read_hypotheses(given, sum(1 for _ in read_lines(source)), source, form)
    joined = [" ".join(join_compounds(line.split(" "))) for line in found.lines]
    write_output(output, "".join(f"{line}\n" for line in joined))
    return {"lines": len(joined), "lines with compounds": sum(map(ne, joined, found.lines))}


# ---- the source side


def add_split(plan: Plan) -> None:
    """Add the stages that split compounds on the source side, after the training data are complete.

    For lattices, the training data have both forms of each pair with compounds: as they are split best, and
    as they were, so that there are rules for all readings.
    """
    section = plan.config.prep
    if section is None or section.split_compounds == "no":
        return
    train, kind, config = plan.train("prep: split_compounds"), section.split_compounds, section.compounds
    given = None if section.source_compounds is None else Path(section.source_compounds)
    folder, model = plan.out / "split", given or plan.out / "compounds.gz"
    outputs = folder / f"{TRAIN}.source", folder / f"{TRAIN}.target"
    models = {"prep: source_compounds": model}
    sides = {"data: train: source": Path(train.source), "data: train: target": Path(str(train.target))}
    plan.add(
        name=f"split:{TRAIN}",
        work=partial(_split_bitext, train.source, str(train.target), given, model, outputs, config, kind),
        inputs=sides | (models if given else {}),
        outputs=outputs if given else (model, *outputs),
        settings=({} if given else dataclasses.asdict(config)) | {"kind": kind},
    )
    plan.lm_text = Path(str(train.target))
    data = {TRAIN: dataclasses.replace(train, source=str(outputs[0]), target=str(outputs[1]))}
    for name, unsplit in plan.test_sets():
        output = folder / f"{name}.source"
        plan.add(
            name=f"split:{name}",
            work=partial(_split_set, unsplit.source, model, output, kind),
            inputs={f"data: {name}: source": Path(unsplit.source)} | models,
            outputs=(output,),
            settings={"kind": kind},
        )
        data[name] = dataclasses.replace(unsplit, source=str(output))
    prep = dataclasses.replace(section, source_compounds=str(model))
    plan.replace(data=plan.config.data | data, prep=prep)


def _split_bitext(
    source: str,
    target: str,
    given: Path | None,
    model: Path,
    outputs: tuple[Path, Path],
    config: CompoundConfig,
    kind: str,
    task: Task,
) -> Figures:
    task.progress.begin(None)
    outputs[0].parent.mkdir(exist_ok=True)
    lines, targets = read_text(source), read_text(target)
    compounds = Compounds.learn(lines, config) if given is None else Compounds.read(given)
    if given is None:
        compounds.write(model)
    split = [compounds.line(line.split(" "), "best") for line in lines]
    both = [
        pair for pair in zip(lines, split, targets, strict=True) if kind == "lattice" and pair[0] != pair[1]
    ]
    write_output(outputs[0], "".join(f"{line}\n" for line in [*split, *(line for line, _, _ in both)]))
    write_output(outputs[1], "".join(f"{line}\n" for line in [*targets, *(line for _, _, line in both)]))
    return {"pairs": len(lines), "pairs with compounds": sum(map(ne, lines, split)), "twice": len(both)}


def _split_set(source: str, model: Path, output: Path, kind: str, task: Task) -> Figures:
    output.parent.mkdir(exist_ok=True)
    return {"lines": split_compounds(source, output, model, kind, progress=task.progress)}
