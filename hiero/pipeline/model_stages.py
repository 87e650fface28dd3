"""The stages from text to models: prepare, draw sets, align, estimate, index, learn orientations and bins.

Each ``add`` function adds the stages that the configuration asks for, and replaces these sections by the
paths of their outputs, for the functions that follow.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

from hiero.alignment.config import OF_MODELS, AlignConfig
from hiero.alignment.files import align_files
from hiero.bitext.config import NO_LIMIT, CompoundConfig, PrepConfig
from hiero.bitext.groups import sequester
from hiero.bitext.prepare import prepare, unsegmented_note
from hiero.config.config import Config
from hiero.config.model import model_inputs, model_settings
from hiero.config.sections import SET_NAME, TRAIN, DataSection, ReorderSection, as_list
from hiero.core.errors import ConfigError
from hiero.core.records import numbered_keys, part
from hiero.core.text import write_output
from hiero.extraction.index import make_index
from hiero.jobs.learn_bins import Binning
from hiero.lm.config import EstimateConfig
from hiero.lm.estimate import estimate_language_model
from hiero.pipeline.plan import Figures, Plan, Task, keys_of
from hiero.reordering.config import LEARNERS, USED_BY, ExampleConfig, LearnConfig
from hiero.reordering.evaluate import evaluate_majority, evaluations_of, report
from hiero.reordering.examples import extract_examples, open_examples
from hiero.reordering.feature import check_kinds
from hiero.reordering.learn import train_model
from hiero.reordering.model import Classifier, open_model

BINS = "features.bins"

# ---- from raw text to words


def add_prep(plan: Plan) -> None:
    """Add the stages that prepare the texts."""
    section = plan.config.prep
    if section is None:
        return
    if section.compounds != CompoundConfig() and not section.learns_compounds:
        raise plan.error("prep: compounds", "settings of models that are learnt, but there are none to learn")
    settings = dataclasses.asdict(part(PrepConfig, section))
    languages = section.source_language or "", section.target_language or ""
    model = section.sentencepiece_model
    models = {"prep: sentencepiece_model": Path(model)} if model is not None else {}
    data = {}
    for name, given in plan.config.data.items():
        is_train = name == TRAIN
        if is_train and given.alignment is not None:
            problem = "cannot be combined with prep, which may drop pairs"
            raise plan.error("data: train: alignment", problem)
        if is_train and (groups := _group_files(plan.config)):
            raise plan.error(next(iter(groups)), "cannot be combined with prep, which may drop pairs")
        limits = {"min_words": NO_LIMIT, "max_words": NO_LIMIT, "max_ratio": float(NO_LIMIT)}
        config = PrepConfig(**(settings if is_train else settings | limits))
        texts = given.all_sides
        keys = keys_of(name, given)
        endings = (
            ["source", "target"] if is_train else ["source", *map("reference{}".format, range(1, len(texts)))]
        )
        outputs = [plan.out / "prep" / f"{name}.{ending}" for ending in endings[: len(texts)]]
        text_languages = [languages[0], *[languages[1]] * len(given.translations)]

        plan.add(
            name=f"prep:{name}",
            work=partial(_prepare, texts, outputs, text_languages, config),
            inputs=dict(zip(keys, map(Path, texts), strict=True)) | models,
            outputs=tuple(outputs),
            settings=dataclasses.asdict(config) | {"languages": text_languages},
        )
        paths = [str(path) for path in outputs]
        prepared = {"target": paths[1]} if is_train else {"target": None, "references": paths[1:] or None}
        data[name] = dataclasses.replace(given, source=paths[0], **prepared)
    plan.replace(data=data)


def _prepare(
    texts: list[str], outputs: list[Path], languages: list[str], config: PrepConfig, task: Task
) -> Figures:
    outputs[0].parent.mkdir(exist_ok=True)
    for language in dict.fromkeys(languages) if config.tokenize else ():
        if note := unsegmented_note(language, config):
            task.progress.say(note)
    return vars(prepare(texts, outputs, languages, config, task.threads, task.progress))


# ---- sets from the bitext


def add_sequester(plan: Plan) -> None:
    """Add the stage that takes sets to tune on and to test with out of the training data."""
    sizes, seed = plan.config.sequester, plan.config.seed
    train = plan.train("data: sequester")
    tune = plan.config.tune
    if tune is not None and sizes.get(str(tune.held_out)) == 1:
        raise plan.error("data: sequester", f"{tune.held_out}: found 1, expected 2 or more (held out)")
    folder = plan.out / "sequester"
    alignments, groups = as_list(train.alignment), _group_files(plan.config)
    files = [train.source, str(train.target), *alignments, *groups.values()]
    keys = [*keys_of(TRAIN, train), *numbered_keys("data: train: alignment", alignments), *groups]
    endings = ["source", "target", *(f"align{number}" for number in range(1, len(alignments) + 1))]
    endings += [f"groups{number}" for number in range(1, len(groups) + 1)]
    rest = [folder / f"{TRAIN}.{ending}" for ending in endings]
    sets = {name: [folder / f"{name}.{ending}" for ending in ("source", "target", "lines")] for name in sizes}

    def work(task: Task) -> Figures:
        task.progress.begin(None)
        folder.mkdir(exist_ok=True)
        try:
            found = sequester(files, sets, rest, sizes, seed)
        except ConfigError as error:
            raise ConfigError(f"{plan.where}: {error}") from None
        task.progress.say(
            f"left: {len(found.rest)} pairs; dropped, with the text of a drawn one: {found.dropped}"
        )
        return {"left": len(found.rest), "dropped": found.dropped}

    plan.add(
        name="sequester",
        work=work,
        inputs=dict(zip(keys, map(Path, files), strict=True)),
        outputs=(*rest, *itertools.chain.from_iterable(sets.values())),
        settings={"sets": list(sizes.items()), "seed": seed},
    )
    source, target, *others = map(str, rest)
    links, labels = others[: len(alignments)], dict(zip(groups, others[len(alignments) :], strict=True))
    data = {TRAIN: dataclasses.replace(train, source=source, target=target, alignment=links or None)}
    for name, paths in sets.items():
        data[name] = DataSection(source=str(paths[0]), target=str(paths[1]))
    grammar = [
        dataclasses.replace(section, extract=dataclasses.replace(section.extract, leave_out=labels[key]))
        if (key := _group_key(number)) in labels
        else section
        for number, section in enumerate(plan.config.grammar, 1)
    ]
    plan.replace(data=plan.config.data | data, grammar=grammar, sequester={})


def _group_key(number: int) -> str:
    return f"grammar: entry {number}: extract: leave_out"


def _group_files(config: Config) -> dict[str, str]:
    """The files of groups of the pairs of the training data, by their keys."""
    numbered = ((_group_key(number), section) for number, section in enumerate(config.grammar, 1))
    return {
        key: section.extract.group_file
        for key, section in numbered
        if section.index == TRAIN and section.extract.group_file is not None
    }


# ---- from a bitext to models


def add_align(plan: Plan) -> None:
    """Add the stage that aligns words, unless an alignment is given."""
    config = plan.config.align
    given = plan.config.data[TRAIN].alignment if TRAIN in plan.config.data else None
    if given is not None:
        if config is not None:
            problem = "cannot be combined with data: train: alignment"
            raise plan.error("align", problem)
        return
    if config is None and not _indexes_train(plan.config) and plan.config.reorder is None:
        return
    train, config = plan.train("the word alignment"), config or AlignConfig()
    settings = {
        key: value
        for key, value in dataclasses.asdict(config).items()
        if config.model in OF_MODELS.get(key, (config.model,))
    }
    if not config.threshold:
        del settings["threshold"]  # runs made before there was one are not repeated
    del settings["dictionary"]  # an input
    if config.dictionary is None:
        del settings["dictionary_weight"]
    source, target, output = train.source, str(train.target), plan.out / "train.align.gz"

    def work(task: Task) -> Figures:
        summary = align_files(source, target, output, config, threads=task.threads, progress=task.progress)
        task.progress.say(str(summary))
        return {
            "pairs": summary.num_pairs,
            "links": summary.num_links,
            "perplexity": summary.last.perplexity,
            "tension": summary.last.tension,
        }

    inputs = {"data: train: source": Path(source), "data: train: target": Path(target)}
    if config.dictionary is not None:
        inputs["align: dictionary"] = Path(config.dictionary)
    plan.add(name="align", work=work, inputs=inputs, outputs=(output,), settings=settings)
    train = dataclasses.replace(train, alignment=str(output))
    plan.replace(data=plan.config.data | {TRAIN: train})


def _indexes_train(config: Config) -> bool:
    return any(section.index == TRAIN for section in config.grammar)


NO_SETTINGS = ("path", "name", "estimate", "text", "vocabulary", "classes", "memory")


def add_lm(plan: Plan) -> None:
    """Add the stages that estimate language models."""
    sections = []
    for number, section in enumerate(plan.config.lm, 1):
        place = f"lm: entry {number}"
        if (section.path is None) == (section.estimate is None):
            raise plan.error(place, "needs exactly one of path and estimate")
        if section.estimate is None:
            sections.append(section)
            continue
        if section.text is not None:
            raise plan.error(f"{place}: text", "cannot be combined with estimate, which names the text")
        if not SET_NAME.fullmatch(section.name):
            raise plan.error(f"{place}: name", f"found {section.name!r}, expected letters and digits, . _ -")
        ending = "arpa.gz" if section.format == "arpa" else "lm"
        output = plan.out / f"{section.name}.{ending}"
        if any(output in stage.outputs for stage in plan.stages):
            raise plan.error(f"{place}: name", f"{section.name!r} is already the name of another model")
        is_train = section.estimate == TRAIN
        text = str(plan.lm_text or plan.train(place).target) if is_train else section.estimate
        inputs = {"data: train: target" if is_train else f"{place}: estimate": Path(text)}
        for key, file in (("vocabulary", section.vocabulary), ("classes", section.classes)):
            inputs |= {} if file is None else {f"{place}: {key}": Path(file)}
        try:
            config = section.estimation()
        except ConfigError as error:
            raise plan.error(place, str(error)) from None
        settings = {k: v for k, v in dataclasses.asdict(section).items() if k not in NO_SETTINGS}
        plan.add(
            name=f"lm:{section.name}",
            work=partial(_estimate, text, output, config),
            inputs=inputs,
            outputs=(output,),
            settings=settings,
        )
        sections.append(dataclasses.replace(section, path=str(output), estimate=None, text=text))
    plan.replace(lm=sections)


def _estimate(text: str, output: Path, config: EstimateConfig, task: Task) -> Figures:
    local = dataclasses.replace(config, temp=task.temp, threads=task.threads)
    compiled = not output.name.endswith(".arpa.gz")
    model = estimate_language_model(text, output, local, compiled=compiled, progress=task.progress)
    ngrams = [order.kept for order in model.orders]
    return {"lines": model.num_lines, "words": model.num_words, "ngrams": ngrams}


def add_index(plan: Plan) -> None:
    """Add the stage that indexes the training data."""
    if not _indexes_train(plan.config):
        return
    train, output = plan.train("the index"), plan.out / "train.index"
    alignments = as_list(train.alignment)
    limits = next(section.extract.limits for section in plan.config.grammar if section.index == TRAIN)
    source, target = train.source, str(train.target)

    def work(task: Task) -> Figures:
        make_index(source, target, alignments, output, limits=limits, progress=task.progress)
        return {"pairs": task.opened.index(output).num_sentences}

    inputs = {"data: train: source": Path(source), "data: train: target": Path(target)}
    inputs |= dict(
        zip(numbered_keys("data: train: alignment", alignments), map(Path, alignments), strict=True)
    )
    settings = dataclasses.asdict(limits)
    plan.add(name="index", work=work, inputs=inputs, outputs=(output,), settings=settings)
    grammar = [
        dataclasses.replace(section, index=str(output)) if section.index == TRAIN else section
        for section in plan.config.grammar
    ]
    plan.replace(grammar=grammar)


EXAMPLES, HELD_OUT, MODEL = "reordering.examples", "reordering.held", "reordering.model"
TABLE, RECORD = "reordering.eval.txt", "reordering.eval.json"


def add_reorder(plan: Plan) -> None:
    """Add the stages that learn an orientation model and evaluate it."""
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
    of_examples = part(ExampleConfig, section)
    plan.add(
        name="reorder:extract",
        work=partial(_extract, files, examples, held_out, section),
        inputs=dict(zip(keys, files, strict=True)),
        outputs=made,
        settings=dataclasses.asdict(of_examples) | {"held_out_every": section.held_out_every},
    )
    learning = dataclasses.asdict(part(LearnConfig, section))
    learning = {k: value for k, value in learning.items() if section.learner in USED_BY.get(k, LEARNERS)}
    plan.add(
        name="reorder:train",
        work=partial(_train, examples, model, held_out, section, plan.config.seed),
        inputs={"examples": examples},
        outputs=(model,),
        settings=learning | {"seed": plan.config.seed},
    )
    if held_out is not None:
        plan.add(
            name="reorder:eval",
            work=partial(_evaluate, model, held_out, plan.out / TABLE, plan.out / RECORD),
            inputs={"model": model, "held-out examples": held_out},
            outputs=(plan.out / TABLE, plan.out / RECORD),
        )
    models = [*given, str(model)]
    plan.replace(features=dataclasses.replace(plan.config.features, reordering=models), reorder=None)


def _extract(
    files: tuple[Path, Path, Path], examples: Path, held_out: Path | None, section: ReorderSection, task: Task
) -> Figures:
    summary = extract_examples(
        *files,
        examples,
        part(ExampleConfig, section),
        held_out=held_out,
        every=section.held_out_every,
        progress=task.progress,
    )
    task.progress.say(str(summary))
    return dataclasses.asdict(summary)


def _train(
    examples: Path, model: Path, held_out: Path | None, section: ReorderSection, seed: int, task: Task
) -> Figures:
    config = part(LearnConfig, section)
    trained = train_model(examples, model, config, seed=seed, held_out=held_out, progress=task.progress)
    task.progress.say(str(trained))
    figures: dict[str, Any] = {"examples": trained.num_examples, "learning_cpu": trained.cpu}
    if trained.learned is not None:
        figures |= {"passes": trained.learned.history[-1].number, "primal": trained.learned.primal}
    return figures


def _evaluate(model: Path, held_out: Path, table: Path, record: Path, task: Task) -> Figures:
    task.progress.begin(None)
    opened, examples = open_model(model), open_examples(held_out)
    majority = evaluate_majority(opened, examples)
    # Named by its learner, since its path is not part of the result.
    path_of, learner = str(opened.path), str(opened.learning["learner"])
    found, gaps, *of_next = (
        dataclasses.replace(one, name=one.name.replace(path_of, learner, 1))
        for one in evaluations_of(opened, examples)
    )
    systems = [found, gaps, *of_next, majority]
    content = json.dumps([one.as_dict() for one in systems], indent=1) + "\n"
    for path, text in ((table, report(systems)), (record, content)):
        write_output(path, text)
    return {"error": found.error, "majority_error": majority.error, "bits": found.loss, "gap_bits": gaps.loss}


# ---- bins of dense features


def add_bins(plan: Plan) -> None:
    """Add the stage that learns bins of the dense features of a model."""
    config = plan.config
    if config.bins is None:
        return
    output = plan.out / BINS
    binning = Binning(config, plan.where, plan.texts, allow_grammar_paths=plan.allow_grammar_paths)
    add_bins_stage(plan, binning, "bins", output)
    plan.replace(features=dataclasses.replace(config.features, bins=str(output)), bins=None)


def add_bins_stage(plan: Plan, binning: Binning, name: str, output: Path) -> None:
    """Add a stage that learns bins of the dense features of a model from the grammars made before it."""
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

    plan.add(name=name, work=work, inputs=inputs, outputs=(output,), settings=settings)
