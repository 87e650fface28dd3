"""The stages from models to scores: extracting, translating, evaluating."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from hiero.config.config import Config, check_entries
from hiero.config.model import _rule_settings, model_config, model_inputs, model_settings
from hiero.config.sections import DataSection, EvalSection, GrammarSection, as_list
from hiero.core.directories import create_directory
from hiero.core.errors import ConfigError, did_you_mean
from hiero.core.records import numbered_keys
from hiero.core.text import InputForm, open_output, read_chunks
from hiero.evaluation.compare import EVEN, OURS, check_config, score_files
from hiero.extraction.config import ExtractConfig
from hiero.extraction.target_counts import open_extractor
from hiero.extraction.write import GrammarWriter, grammar_name, line_with_grammar, read_sentences
from hiero.jobs.translate import Job, JobSettings
from hiero.pipeline.plan import Figures, Plan, Task, keys_of

# ---- from an index to grammars


def add_extract(plan: Plan) -> None:
    """Add the stages that extract the grammars to translate with, whole or for each sentence."""
    check_entries(plan.config, plan.where)
    grammar: list[GrammarSection] = []
    for number, section in enumerate(plan.config.grammar, 1):
        place = f"grammar: entry {number}"
        if section.write != "nothing" and section.index is None:
            raise plan.error(f"{place}: write", "needs index")
        if section.write == "whole":
            section = _add_whole(plan, place, section, len(grammar))
        elif section.write == "per_sentence":
            if plan.grammars:
                raise plan.error(f"{place}: write", "only one grammar can be written per_sentence")
            section = _add_per_sentence(plan, place, section)
        grammar.append(section)
    plan.replace(grammar=grammar)


def _add_whole(plan: Plan, place: str, section: GrammarSection, before: int) -> GrammarSection:
    output = plan.out / (f"grammar{before + 1}.gz" if before else "grammar.gz")
    index, config = Path(str(section.index)), section.extract

    def work(task: Task) -> Figures:
        extractor = open_extractor(task.opened.index(index), config)
        return {"rules": GrammarWriter(extractor, task.threads).whole(output, task.progress)}

    name = f"extract:{output.name.removesuffix('.gz')}"
    settings, inputs = _rule_settings(config), {f"{place}: index": index}
    plan.add(name=name, work=work, inputs=inputs, outputs=(output,), settings=settings)
    return GrammarSection(path=str(output))


def _add_per_sentence(plan: Plan, place: str, section: GrammarSection) -> GrammarSection:
    folder, index, search = plan.out / "grammars", Path(str(section.index)), plan.config.search
    if search.markup != "off":
        hint = "write: nothing extracts them while it decodes"
        raise plan.error("search: markup", f"not with grammars of sentences that are written ({hint})")
    form = search.form
    of_form = {} if form.format == "auto" else {"input_format": form.format}
    for name, data in plan.test_sets():
        grammars, text = folder / name, folder / f"{name}.sgm"
        plan.grammars[name], plan.texts[name] = grammars, text
        plan.add(
            name=f"extract:{name}",
            work=partial(_extract, index, section.extract, data.source, form, grammars, text),
            inputs={f"{place}: index": index, f"data: {name}: source": Path(data.source)},
            outputs=(grammars, text),
            settings=_rule_settings(section.extract) | of_form,
        )
    return GrammarSection(per_sentence=str(folder))


def _extract(
    index: Path, config: ExtractConfig, source: str, form: InputForm, grammars: Path, text: Path, task: Task
) -> Figures:
    segments = list(read_sentences(source, form=form))
    extractor = open_extractor(task.opened.index(index), config)
    names = [grammar_name(number) for number in range(len(segments))]
    num_rules = 0
    task.progress.begin(len(segments))
    # Replaced as a whole: no grammars of removed sentences may stay.
    with create_directory(grammars) as part:
        files = zip((part / name for name in names), segments, strict=True)
        with closing(GrammarWriter(extractor, task.threads).sentences(files)) as results:
            for found in results:
                num_rules += found
                task.progress.advance(1, f"{num_rules} rules")
    with open_output(text) as stream:
        for number, (name, segment) in enumerate(zip(names, segments, strict=True)):
            stream.write(line_with_grammar(number, f"{grammars.name}/{name}", segment).encode())
    return {"sentences": len(segments), "rules": num_rules}


# ---- from models to translations and scores


def add_decode(plan: Plan) -> None:
    """Add the stages that translate the sets of the configuration."""
    sets = dict(plan.test_sets())
    if not sets:
        return
    config = plan.config
    if not config.grammar:
        hint = "{index: train}, or {path: …}"
        raise plan.error("grammar", f"needs one to translate {next(iter(sets))}: {hint}")
    if config.weights is None:
        raise plan.error("weights", "needs a file with names and weights")
    model = model_config(config)
    for name, data in sets.items():
        source = plan.texts.setdefault(name, Path(data.source))
        output = plan.out / (f"{name}.kbest.gz" if config.search.kbest else f"{name}.output")
        if name in plan.unmarked and not config.search.kbest:
            output = plan.out / "marked" / output.name  # parts of compounds, to be joined
        plan.outputs[name] = output
        inputs = {f"data: {name}: source": source} | model_inputs(config)
        if name in plan.grammars:
            inputs["grammars of its sentences"] = plan.grammars[name]
        for number, section in enumerate(config.grammar, 1):
            if section.per_sentence is not None and name not in plan.grammars:
                inputs[f"grammar: entry {number}: per_sentence"] = Path(section.per_sentence)
        plan.add(
            name=f"decode:{name}",
            work=partial(_decode, source, output, model, plan.allow_grammar_paths),
            inputs=inputs,
            outputs=(output,),
            settings=model_settings(config) | ({"strict": True} if config.strict else {}),
        )


def _decode(source: Path, output: Path, model: Config, allow_grammar_paths: bool, task: Task) -> Figures:
    settings = JobSettings(
        input=str(source),
        output=str(output),
        threads=task.threads,
        key=task.key,
        allow_grammar_paths=allow_grammar_paths,
    )

    def report(note: str) -> None:
        if note not in task.opened.reported:  # of another set
            task.opened.reported.add(note)
            task.progress.say(note)

    job = Job(settings, model, task.progress, task.opened.model, report)
    job.run()
    job.report()
    return job.figures()


def add_eval(plan: Plan) -> None:
    """Add the stages that evaluate the translations."""
    config = plan.config.eval
    for system, sets in config.against.items():
        place = f"eval: against: {system}"
        if system == OURS:
            raise plan.error(place, "expected another name: this one is that of the run itself")
        for name in sets:
            if name not in plan.outputs:
                raise plan.error(place, f"unknown set {name!r}; {did_you_mean(name, plan.outputs)}")
    settings = {key: value for key, value in dataclasses.asdict(config).items() if key != "against"}
    unmarked = ((name, plan.unmarked.get(name, data)) for name, data in plan.test_sets())
    scored = [(name, data) for name, data in unmarked if data.translations]
    try:
        check_config(config if scored else EvalSection(metrics=["chrf"]))
    except ConfigError as error:
        raise plan.error("eval", str(error)) from None
    for name, data in scored:
        _check_lines(plan, name, data)
        # The first system is the baseline: other systems come before ours.
        systems = {system: as_list(sets[name]) for system, sets in config.against.items() if name in sets}
        inputs = {
            key: Path(path)
            for system, runs in systems.items()
            for key, path in zip(numbered_keys(f"eval: against: {system}: {name}", runs), runs, strict=True)
        }
        systems[OURS] = [str(plan.outputs[name])]
        inputs[f"translations of {name}"] = plan.outputs[name]
        inputs |= dict(zip(keys_of(name, data)[1:], map(Path, data.translations), strict=True))
        outputs = plan.out / f"{name}.eval.txt", plan.out / f"{name}.eval.json"
        even, learnt = name == plan.chosen_on, name == plan.learnt_from
        part = {"lines": EVEN} if even else {"learnt_from": True} if learnt else {}
        plan.add(
            name=f"eval:{name}",
            work=partial(_evaluate, name, systems, data.translations, outputs, config, even, learnt),
            inputs=inputs,
            outputs=outputs,
            settings=settings | {"systems": list(systems)} | part,
        )


def _check_lines(plan: Plan, name: str, data: DataSection) -> None:
    """Check before decoding that references are as long as the source, and have lines to score."""
    if any(Path(data.source) in stage.outputs for stage in plan.stages):
        return  # the stage checks the lengths
    source, *others = (sum(chunk.data.count(b"\n") for chunk in read_chunks(p)) for p in data.all_sides)
    for key, path, lines in zip(keys_of(name, data)[1:], data.translations, others, strict=True):
        if lines != source:
            expected = f"expected {source}, as many as {data.source} has"
            raise plan.error(key, f"{path}: found {lines} lines, {expected}")
    if name == plan.chosen_on and source == 1:
        raise plan.error(
            "tune: held_out", f"found {name}, which has one line: odd lines choose, even ones are scored"
        )


def _evaluate(
    name: str,
    systems: Mapping[str, list[str]],
    references: list[str],
    outputs: tuple[Path, Path],
    config: EvalSection,
    even: bool,
    learnt: bool,
    task: Task,
) -> Figures:
    task.progress.begin(None)
    if even:
        task.progress.say(f"the even lines of {name} are scored: its odd lines chose the weights")
    if learnt:
        task.progress.say(f"the weights were learnt from {name}: its scores are no test result")
    return score_files(
        systems,
        references,
        config,
        *outputs,
        lines=EVEN if even else None,
        learnt_from=learnt,
        progress=task.progress,
    )
