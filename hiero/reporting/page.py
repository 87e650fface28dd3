"""A report as one page of HTML, which needs neither network nor scripts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from hiero.core.markup import Child, Markup, element
from hiero.core.text import split_words
from hiero.evaluation.corpus_metrics import METRICS
from hiero.evaluation.significance import significance_marks
from hiero.reporting.examples import shares
from hiero.reporting.pictures import bar, comparison_chart, learning_charts, matrix
from hiero.reporting.records import (
    CurveReport,
    DerivationReport,
    ExampleReport,
    FeatureReport,
    OutputReport,
    Report,
    SetScores,
    StageReport,
    SystemReport,
    TuningReport,
)
from hiero.reporting.style import STYLE

# Nothing is loaded and no script runs, whatever is in the data.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
NUMBER = "n"  # class of columns of numbers
MEMORY = (
    "Memory is the peak of the process during the stage; compiling is part of the CPU time, and only the "
    "first run on a machine has to."
)


def page(report: Report) -> str:
    """The page of a report."""
    names = [system.name for system in report.systems]
    title = f"{' and '.join(names) if len(names) < 3 else f'{names[0]} and {len(names) - 1} others'}: report"
    sections = [(head, body) for head, body in _sections(report) if body]
    ids = _Ids()
    placed = [(ids.of(head), head, body) for head, body in sections]
    links = [element("li", element("a", head, href=f"#{at}")) for at, head, _ in placed]
    content = [
        element("header", element("h1", title), _overview(report)),
        element("nav", element("ul", links), aria_label="Contents"),
        element(
            "main", [element("section", element("h2", head, id=at), "\n", body) for at, head, body in placed]
        ),
        element("footer", element("p", f"Made by hiero {report.hiero}.", class_="dim")),
    ]
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Markup(STYLE)),
    ]
    body = element("body", content)
    return f"<!DOCTYPE html>\n{element('html', element('head', head), body, lang='en')}\n"


class _Ids:
    """Names of places in the page, each of them once."""

    def __init__(self) -> None:
        self._taken = Counter[str]()

    def of(self, text: str) -> str:
        """A new name, like a text."""
        base = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"
        self._taken[base] += 1
        return base if self._taken[base] == 1 else f"{base}-{self._taken[base]}"


def _sections(report: Report) -> Iterator[tuple[str, Child]]:
    scores = [element("div", _scores(one)) for one in report.scores]
    wide = any(len(one.scores["systems"]) > 1 for one in report.scores)
    yield "Scores", element("div", scores, class_="sets wide" if wide else "sets") if scores else None
    stages = _each(report, _stages)
    yield "Stages", [stages, element("p", MEMORY, class_="dim")] if stages else None
    yield "Learning", _learning(report)
    yield "Features", _features(report)
    yield "Bins", _bins(report.curves, len(report.systems))
    yield "Sentences", _examples(report)
    yield "Word alignments", _alignments(report)
    yield "Model", _each(report, _model)
    yield "Configuration", _configuration(report)


def _each(report: Report, part: Callable[[SystemReport], Child]) -> Child:
    """A part of a section for each system, under its name where there are several."""
    found = [(system.name, body) for system in report.systems if (body := part(system))]
    several = len(report.systems) > 1
    return [[element("h3", name) if several else None, body] for name, body in found]


# ---- tables and numbers


def table(head: Sequence[str], rows: Sequence[Sequence[Child]], names: Sequence[str | None]) -> Markup:
    """A table that scrolls if it is too wide; ``names`` are the classes of its columns."""
    cells = [
        element("tr", [element("td", cell, class_=name) for cell, name in zip(row, names, strict=True)])
        for row in rows
    ]
    top = element(
        "tr", [element("th", text, class_=name, scope="col") for text, name in zip(head, names, strict=True)]
    )
    inner = element("table", element("thead", top), "\n", element("tbody", [[c, "\n"] for c in cells]))
    return element("div", inner, class_="scroll", tabindex="0")


def _details(summary: str, *children: Child) -> Markup:
    return element("details", element("summary", summary), children)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{seconds / 3600:.1f} h"


def _memory(megabytes: float | None) -> str:
    if megabytes is None:
        return ""
    return f"{megabytes:,.0f} MB" if megabytes < 10_000 else f"{megabytes / 1000:,.1f} GB"


def _when(time: str) -> str:
    """A time without its zone."""
    return time[:19].replace("T", " ")


def _weight(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


# ---- the head


def _overview(report: Report) -> Child:
    return [
        [_state(system, named=len(report.systems) > 1) for system in report.systems],
        element("dl", list(_tiles(report)), class_="tiles"),
    ]


def _state(system: SystemReport, *, named: bool) -> Child:
    verdict = element("span", "complete", class_="state done")
    if not system.complete:
        verdict = element("span", "incomplete", class_="state warm")
    parts = [f"hiero {system.kind}"]
    if system.finished:
        parts.append(f"last stage finished {_when(system.finished)}")
    if "hiero" in system.versions:
        parts.append(f"hiero {system.versions['hiero']}")
    name = [element("b", system.name), ": "] if named else None
    line = element("p", name, verdict, f" · {' · '.join(parts)} · ", element("code", system.path))
    if not system.problems:
        return line
    items = element("ul", [element("li", problem) for problem in system.problems])
    return [line, element("div", "Not everything is in this report:", items, class_="problems")]


def _tiles(report: Report) -> Iterator[Markup]:
    several = len(report.systems) > 1
    for one in report.scores:
        if several and report.examples.set not in ("", one.name):
            continue  # the first set of results is enough
        for system in one.scores["systems"] if several else one.scores["systems"][-1:]:
            for metric, found in list(system["metrics"].items())[:1]:
                label = f"{METRICS.get(metric, metric)}, {one.name}"
                notes = [_interval(found.get("interval")), _set_note(one), system["name"] if several else ""]
                yield _tile(label, f"{found['score']:.2f}", *notes)
    for run in report.systems:
        name = run.name if several else ""
        if any(one.seconds is not None for one in run.stages):
            cpu = _duration(sum(one.cpu_seconds or 0.0 for one in run.stages))
            wall = _duration(sum(one.seconds or 0.0 for one in run.stages))
            yield _tile("time", wall, f"{cpu} of CPU", name)
            most = max(run.stages, key=lambda one: one.peak_mb or 0.0)
            yield _tile("peak memory", _memory(most.peak_mb), most.name, name)
    for run, number in zip(report.systems, report.features.numbers, strict=False):
        if number is not None:
            yield _tile("weights", f"{number:,}", run.name if several else "")


def _tile(what: str, value: str, *notes: str) -> Markup:
    small = [element("small", note) for note in notes if note]
    return element("div", element("dt", what), element("dd", value, small))


# ---- scores


def _set_note(one: SetScores) -> str:
    if one.scores.get("lines"):
        return f"{one.scores['lines']} lines"
    return "learnt from" if one.scores.get("learnt_from") else ""


def _scores(one: SetScores) -> Child:
    scores = one.scores
    rows: list[list[Child]] = []
    tested = any("p" in _given(m) for s in scores["systems"] for m in s["metrics"].values())
    labels = list(scores["signatures"]) or list(scores["systems"][0]["metrics"])
    for metric in labels:
        for number, system in enumerate(scores["systems"]):
            found = _given(system["metrics"].get(metric, {}))
            if not found:
                continue
            row: list[Child] = [METRICS.get(metric, metric), system["name"], f"{found['score']:.2f}"]
            row.append(_interval(found.get("interval")))
            if tested:
                row += _tested(found) if number else ["", "baseline"]
            rows.append(row)
    head = ["metric", "system", "score", "95 % interval"] + (["difference", "p"] if tested else [])
    names = ["name", "name", NUMBER, NUMBER] + ([NUMBER, "name"] if tested else [])
    notes = [f"{scores['sentences']:,} sentences."]
    if scores.get("lines"):
        notes.append(f"Only {scores['lines']} lines are scored: the others chose the weights.")
    if scores.get("learnt_from"):
        notes.append("The weights were learnt from these lines: this is no test result.")
    if one.problem:
        notes.append(f"{one.problem[0].upper()}{one.problem[1:]}.")
    if tested:
        notes.append(f"p against {scores['systems'][0]['name']}: * < .05, ** < .01, *** < .001.")
    return [
        element("h3", one.name),
        table(head, rows, names),
        element("p", " ".join(notes), class_="dim"),
        _details("How it is computed", element("pre", "\n".join(_signatures(scores)))),
    ]


def _given(found: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a metric that are there."""
    return {key: value for key, value in found.items() if value not in (None, "", [])}


def _interval(found: Sequence[float] | None) -> str:
    return "" if found is None else f"{found[0]:.2f} – {found[1]:.2f}"


def _tested(found: Mapping[str, Any]) -> list[Child]:
    if "p" not in found:
        return ["", ""]
    around = found.get("difference_interval")
    more = f" ({around[0]:+.2f} – {around[1]:+.2f})" if around else ""
    return [
        f"{found.get('difference', 0.0):+.2f}{more}",
        f"{found['p']:.4f} {significance_marks(found['p'])}",
    ]


def _signatures(scores: Mapping[str, Any]) -> Iterator[str]:
    for system in scores["systems"]:
        for metric, found in system["metrics"].items():
            if found.get("details"):
                yield f"{METRICS.get(metric, metric)} of {system['name']}: {found['details']}"
    for metric, signature in scores["signatures"].items():
        yield f"{METRICS.get(metric, metric)}|{signature}"
    if scores.get("trials"):
        test = f"|test:{scores['test']}" if scores.get("test") else ""
        yield f"interval:bootstrap{test}|trials:{scores['trials']}|seed:{scores['seed']}"


# ---- stages


def _stages(system: SystemReport) -> Child:
    if not system.stages:
        return None
    longest = max((one.seconds or 0.0 for one in system.stages), default=0.0)
    rows = [_stage(one, longest) for one in system.stages]
    done = [one for one in system.stages if one.seconds is not None]
    if done:
        keys = ("seconds", "cpu_seconds", "compile_seconds")
        sums = [_duration(sum(getattr(one, key) or 0.0 for one in done)) for key in keys]
        peak = max(one.peak_mb or 0.0 for one in done)
        rows.append([element("b", "all"), "", "", *sums, _memory(peak), "", ""])
    head = ["stage", "state", "", "time", "CPU", "compiling", "memory", "threads", "finished"]
    names = ["name", "name", "name", NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, "name"]
    more = [part for one in system.stages for part in _stage_notes(one)]
    return [
        table(head, rows, names),
        _details("Figures and notes of the stages", more) if more else None,
    ]


def _stage(one: StageReport, longest: float) -> list[Child]:
    state = element("span", one.state, class_=f"state {one.state.replace(' ', '-')}")
    share = (one.seconds or 0.0) / longest if longest else 0.0
    mark = element("span", class_="time", style=f"width:{6 * share:.2f}rem", aria_hidden="true")
    return [
        one.name,
        state,
        mark if one.seconds else "",
        _duration(one.seconds),
        _duration(one.cpu_seconds),
        _duration(one.compile_seconds) if one.compile_seconds else "",
        _memory(one.peak_mb),
        "" if one.threads is None else str(one.threads),
        _when(one.finished),
    ]


def _stage_notes(one: StageReport) -> Iterator[Markup]:
    if not (one.figures or one.notes or one.reason):
        return
    yield element("h4", one.name)
    if one.reason:
        yield element("p", f"{one.state}: {one.reason}", class_="stopped")
    if one.figures:
        rows = [[key, _plain(value)] for key, value in one.figures.items()]
        yield table(["figure", "value"], rows, ["name", NUMBER])
    if one.notes:
        yield element("div", element("pre", "\n".join(one.notes)), class_="scroll", tabindex="0")


def _plain(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        return "; ".join(map(_plain, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


# ---- learning


def _learning(report: Report) -> Child:
    tunings = [(system, one) for system in report.systems for one in system.tunings]
    parts: list[Child] = []
    if len(tunings) > 1:
        named = [(_label(report, system, one), one) for system, one in tunings]
        chart = comparison_chart(named)
        parts += [_figure_grid([chart])] if chart is not None else []
    for system, one in tunings:
        if len(tunings) > 1:
            parts.append(element("h3", _label(report, system, one)))
        parts.append(_tuning(one))
    for system in report.systems:
        if system.grid:
            parts += [element("h3", f"All settings that were tried{_of(report, system)}")]
            parts += [element("div", element("pre", system.grid), class_="scroll", tabindex="0")]
    return parts


def _label(report: Report, system: SystemReport, one: TuningReport) -> str:
    if len(report.systems) == 1:
        return one.name
    return system.name if len(system.tunings) == 1 else f"{system.name}, {one.name}"


def _of(report: Report, system: SystemReport) -> str:
    return f", {system.name}" if len(report.systems) > 1 else ""


def _tuning(one: TuningReport) -> Child:
    told = f"{len(one.epochs)} epochs on {one.on}."
    if one.chosen and "choose_bleu" in one.epochs[one.chosen - 1]:
        told += f" The odd lines of {one.held_out or 'the held-out set'} chose epoch {one.chosen} (ring)"
        chosen = one.epochs[one.chosen - 1]
        told += f": BLEU {chosen['choose_bleu']:.2f}"
        told += f", and {chosen['report_bleu']:.2f} on even lines." if "report_bleu" in chosen else "."
    elif one.chosen:
        told += " Nothing is held out: the last epoch counts."
    columns = list(dict.fromkeys(key for epoch in one.epochs for key in epoch))
    rows = [[_weight(epoch.get(key)) for key in columns] for epoch in one.epochs]
    return [
        element("p", told),
        _figure_grid(list(learning_charts(one))),
        _details("Figures of all epochs", table(columns, rows, [NUMBER] * len(columns))),
    ]


def _figure_grid(charts: Sequence[Markup]) -> Child:
    if not charts:
        return None
    return element("div", [element("figure", chart) for chart in charts], class_="charts")


# ---- features


def _features(report: Report) -> Child:
    features, systems = report.features, [system.name for system in report.systems]
    known = [k for k, number in enumerate(features.numbers) if number is not None]
    if not features.by_weight or not known:
        return None
    numbers = ", ".join(
        f"{features.numbers[k]:,}{f' in {systems[k]}' if len(systems) > 1 else ''}" for k in known
    )
    of_each = " of each system" if len(known) > 1 else ""
    told = f"Weights: {numbers}. Bars are relative to the largest one{of_each}."
    parts: list[Child] = [element("p", told)]
    parts.append(element("h3", "Largest weights"))
    parts.append(_weights(features.by_weight, systems, known))
    if features.by_share:
        parts.append(element("h3", "Largest shares of the score"))
        parts.append(
            element(
                "p",
                "Weight × mean value: what a feature adds to the score of a sentence on average, over "
                f"the best derivations of {features.sentences} sentences, evenly spaced in "
                f"{report.examples.set}.",
            )
        )
        parts.append(_shares(features.by_share, systems, known))
    return parts


def _weights(rows: Sequence[FeatureReport], systems: Sequence[str], known: Sequence[int]) -> Markup:
    largest = [max(abs(one.weights[k] or 0.0) for one in rows) for k in range(len(systems))]
    head, names = ["feature"], ["name"]
    for k in known:
        head += [f"weight, {systems[k]}" if len(known) > 1 else "weight", ""]
        names += [NUMBER, "name"]
    cells: list[list[Child]] = []
    for one in rows:
        cell: list[Child] = [element("code", one.name)]
        for k in known:
            weight = one.weights[k]
            cell += [_weight(weight), "" if weight is None else bar(weight, largest[k])]
        cells.append(cell)
    return table(head, cells, names)


def _shares(rows: Sequence[FeatureReport], systems: Sequence[str], known: Sequence[int]) -> Markup:
    largest = [max(abs(shares(one)[k]) for one in rows) for k in range(len(systems))]
    head, names = ["feature"], ["name"]
    for k in known:
        more = f", {systems[k]}" if len(known) > 1 else ""
        head += [f"mean value{more}", f"share{more}", ""]
        names += [NUMBER, NUMBER, "name"]
    cells: list[list[Child]] = []
    for one in rows:
        cell: list[Child] = [element("code", one.name)]
        for k in known:
            share = shares(one)[k]
            cell += [_weight(one.means[k]), f"{share:+.3f}", bar(share, largest[k])]
        cells.append(cell)
    return table(head, cells, names)


def _bins(curves: Sequence[CurveReport], systems: int) -> Child:
    if not curves:
        return None
    figures = []
    for one in curves:
        # Made by ``bins.curves``, which escapes all names.
        drawn = element("div", Markup(one.picture), class_="scroll", tabindex="0")
        caption = element("figcaption", one.system, class_="dim") if systems > 1 else None
        figures.append(element("figure", drawn, caption))
    return [
        element("p", "The learnt weight of each bin of a feature (above), and the rules in it (below)."),
        element("div", figures, class_="charts"),
    ]


# ---- sentences


def _examples(report: Report) -> Child:
    examples = report.examples
    if examples.problem:
        return element("p", f"No sentences are shown: {examples.problem}.", class_="dim")
    if not examples.sentences:
        return None
    told = f"Of {examples.set}: {examples.rule}. Words that the references do not have are underlined."
    return [element("p", told), [_example(one) for one in examples.sentences]]


def _example(one: ExampleReport) -> Markup:
    texts: list[Child] = [element("dt", "source"), element("dd", one.source, dir="auto")]
    for number, reference in enumerate(one.references, 1):
        name = "reference" if len(one.references) == 1 else f"reference {number}"
        texts += [element("dt", name), element("dd", reference, dir="auto")]
    for output in one.outputs:
        texts.append(element("dt", f"{output.system}: sentence BLEU {output.bleu:.1f}"))
        texts.append(element("dd", _marked(output.text, one.references), dir="auto"))
    more = [_output(output) for output in one.outputs]
    return element(
        "article",
        element("h3", f"Line {one.number:,}: {one.why}"),
        element("dl", texts, class_="texts"),
        more,
        class_="example",
    )


def _marked(text: str, references: Sequence[str]) -> Child:
    """A translation, with marks on words that no reference has, or not so often."""
    left = Counter[str]()
    for reference in references:
        left |= Counter(reference.split())
    parts: list[Child] = []
    for word in text.split():
        if left[word] > 0:
            left[word] -= 1
            parts += [word, " "]
        else:
            parts += [element("span", word, class_="miss"), " "]
    return parts or element("span", "(empty)", class_="dim")


def _output(output: OutputReport) -> Child:
    parts: list[Child] = []
    if output.problem:
        parts.append(element("p", f"{output.system}: {output.problem}.", class_="dim"))
    if output.derivation is not None:
        parts.append(_details(f"How {output.system} made it", *_derivation(output.derivation)))
    return parts


def _derivation(found: DerivationReport) -> Iterator[Child]:
    yield element("p", f"Score {found.score:.4f}. Rules from the top, with the words that they cover:")
    rows: list[list[Child]] = []
    for step in found.steps:
        indent = f"padding-left:{min(step.depth, 12) * 0.8:.1f}rem"
        rule = element("span", f"{step.category} → {step.source} ⟩ {step.target}", style=indent)
        spans = (f"{start}–{end}" for start, end in (step.source_span, step.target_span))
        rows.append([rule, *spans, f"{step.score:.4f}"])
    yield table(["rule", "source", "target", "score"], rows, ["name", NUMBER, NUMBER, NUMBER])
    features: list[list[Child]] = [
        [element("code", name), _weight(value), _weight(weight), f"{value * weight:+.4f}"]
        for name, value, weight in found.features
    ]
    yield element("h4", "Features")
    yield table(["feature", "value", "weight", "product"], features, ["name", NUMBER, NUMBER, NUMBER])
    if found.more:
        yield element("p", f"And {found.more:,} with smaller products.", class_="dim")
    yield element("h4", "Words")
    drawn = matrix(found.source, split_words(found.text), found.links)
    yield element("div", drawn, class_="scroll", tabindex="0")


def _alignments(report: Report) -> Child:
    pairs = report.alignments
    if not pairs:
        return None
    of = f" of {report.systems[0].name}" if len(report.systems) > 1 else ""
    told = f"Pairs of the training data{of}, source words on the left, with the links of the stage align."
    figures = []
    for one in pairs:
        drawn = element("div", matrix(one.source, one.target, one.links), class_="scroll", tabindex="0")
        figures.append(element("figure", drawn, element("figcaption", f"pair {one.number:,}", class_="dim")))
    return [element("p", told), figures]


# ---- the model and the configuration


def _model(system: SystemReport) -> Child:
    if not system.model and not system.files:
        return None
    parts: list[Child] = []
    if system.kind == "run":
        use = f"hiero decode -c {system.path}/model.yaml"
        pack = element("code", f"hiero pack {system.path} -o MODEL.hiero")
        told = ["Translate with ", element("code", use), ", pack it as one file with ", pack, "."]
        parts.append(element("p", told))
    facts = {**system.model, **{f"version of {k}": v for k, v in system.versions.items()}, **system.machine}
    parts.append(table(["", ""], [[what, fact] for what, fact in facts.items()], ["name", None]))
    if system.files:
        rows = [[name, element("code", digest)] for name, digest in system.files.items()]
        files = table(["file", "SHA-256"], rows, ["name", "name"])
        parts.append(_details("Files of the run and their SHA-256", files))
    return parts


def _configuration(report: Report) -> Child:
    parts: list[Child] = []
    names = [system.name for system in report.systems]
    if report.differences:
        rows = [[element("code", key), *values] for key, values in report.differences.items()]
        parts.append(element("h3", "Settings that differ"))
        parts.append(table(["setting", *names], rows, ["name", *[None for _ in names]]))
    elif len(names) > 1:
        parts.append(element("p", "All settings are the same."))
    for system in report.systems:
        if system.settings:
            text = yaml.safe_dump(system.settings, sort_keys=False, allow_unicode=True, width=100)
            what = f"The whole configuration{f' of {system.name}' if len(names) > 1 else ''}"
            parts.append(_details(what, element("pre", text)))
    return parts
