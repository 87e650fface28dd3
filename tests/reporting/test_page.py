"""Pages of records: complete, empty and hostile ones."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.reporting.page import page
from hiero.reporting.records import (
    DONE,
    NOT_DONE,
    STOPPED,
    AlignedPair,
    CurveReport,
    DerivationReport,
    ExampleReport,
    ExamplesReport,
    FeatureReport,
    FeaturesReport,
    OutputReport,
    Report,
    SetScores,
    StageReport,
    StepReport,
    SystemReport,
    TuningReport,
)
from tests.worlds.pages import check_page, sections, text_of

HOSTILE = (
    "</title></style><script>alert(\"1\")</script><img src=x onerror='alert(1)'>&amp;\x00\x1b[31m\u202e\ud800"
)


def scores(text: str, systems: int) -> dict[str, Any]:
    metric = {"score": 31.25, "interval": [30.0, 32.5], "details": text}
    tested = metric | {"difference": -1.5, "difference_interval": [-2.0, -1.0], "p": 0.004}
    return {
        "systems": [
            {"name": f"{text}{k}", "metrics": {"bleu": tested if k else metric}} for k in range(systems)
        ],
        "sentences": 1234,
        "signatures": {"bleu": text},
        "test": "ar" if systems > 1 else None,
        "trials": 100,
        "seed": 1,
        "lines": "even",
    }


def report(text: str, systems: int = 1) -> Report:
    """A report in which every text is made of one."""
    steps = [
        StepReport(0, text, text, text, (0, 1), (0, 2), -1.0),
        StepReport(1, text, text, text, (0, 1), (0, 1), -0.5),
    ]
    derivation = DerivationReport([text], text, -1.5, steps, [(0, 0)], [(text, 2.0, -0.5)], more=3)
    outputs = [OutputReport(f"{text}{k}", text, 12.5, derivation, text) for k in range(systems)]
    return Report(
        [
            SystemReport(
                f"{text}{k}",
                text,
                "run",
                problems=[text],
                versions={"hiero": text, text: text},
                machine={text: text},
                finished=text,
                settings={text: {text: [text]}},
                stages=[
                    StageReport(text, DONE, "", 90.0, 80.0, 1.0, 12_000, 2, text, {text: [1.5, 2]}, [text]),
                    StageReport("next", STOPPED, text),
                    StageReport("last", NOT_DONE),
                ],
                tunings=[
                    TuningReport(text, text, text, [{text: 1.0, "choose_bleu": k + e} for e in (1, 2)], 2)
                ],
                grid=text,
                model={text: text},
                files={text: text},
            )
            for k in range(systems)
        ],
        scores=[SetScores(text, scores(text, systems), text)],
        differences={text: [text] * systems},
        features=FeaturesReport(
            [12_345] * systems,
            7,
            [FeatureReport(text, [0.5] * systems, [2.0] * systems)],
            [FeatureReport(text, [-0.5] * systems, [2.0] * systems)],
        ),
        curves=[CurveReport(text, text, [0.0], [1.0], "<svg></svg>")],
        examples=ExamplesReport(text, text, [ExampleReport(3, text, text, [text, "right"], outputs)]),
        alignments=[AlignedPair(5, [text, "b"], ["a", text], [(0, 1), (1, 0)])],
        hiero=text,
    )


@pytest.mark.parametrize("systems", [1, 2, 3])
def test_all_parts_are_on_the_page(systems: int) -> None:
    root = check_page(page(report("word", systems)))
    parts = sections(root)
    assert list(parts) == [
        *("Scores", "Stages", "Learning", "Features", "Bins", "Sentences"),
        *("Word alignments", "Model", "Configuration"),
    ]
    assert "31.25 30.00 – 32.50" in parts["Scores"]
    assert "1,234 sentences. Only even lines are scored: the others chose the weights." in parts["Scores"]
    assert ("-1.50 (-2.00 – -1.00) 0.0040 **" in parts["Scores"]) == (systems > 1)
    assert "word done 90.0 s 80.0 s 1.0 s 12.0 GB 2 word next stopped last not done" in parts["Stages"]
    assert "The odd lines of word chose epoch 2 (ring): BLEU 2.00" in parts["Learning"]
    assert "12,345" in parts["Features"]
    assert "-1.000" in parts["Features"]  # -0.5 times 2
    assert "Line 3: word" in parts["Sentences"]
    assert "word → word ⟩ word" in parts["Sentences"]
    assert "And 3 with smaller products." in parts["Sentences"]
    assert "pair 5" in parts["Word alignments"]
    assert ("Settings that differ" in parts["Configuration"]) is True
    everything = text_of(root)
    assert "incomplete" in everything
    for system in range(systems):
        assert f"word{system}" in everything


def test_words_without_a_reference_are_marked() -> None:
    made = report("a a b")
    made.examples.sentences[0].references = ["a c", "b"]
    root = check_page(page(made))
    marked = [one.text for one in root.iter("span") if one.get("class") == "miss"]
    assert marked == ["a"]  # the second one


def test_text_is_escaped() -> None:
    plain, hostile = page(report("word", 2)), page(report(HOSTILE, 2))
    hostile.encode()
    root = check_page(hostile)
    assert '<script>alert("1")</script><img src=x' in text_of(root)
    # The same elements as with harmless text.
    assert {one.tag for one in root.iter()} == {one.tag for one in check_page(plain).iter()}
    assert not set("\x00\x1b\u202e\ud800") & set(hostile)


def test_an_empty_report() -> None:
    root = check_page(page(Report([SystemReport("a", "b", "run")])))
    assert sections(root) == {}
    assert text_of(root).startswith("a: report incomplete · hiero run · b")
    nothing = Report(
        [SystemReport("a", "b", "tune", tunings=[TuningReport("tune", "dev", None, [{}], 1)])],
        scores=[
            SetScores("dev", {"systems": [{"name": "a", "metrics": {}}], "sentences": 0, "signatures": {}})
        ],
        features=FeaturesReport([0]),
        examples=ExamplesReport(problem="there is no model"),
    )
    parts = sections(check_page(page(nothing)))
    assert parts["Sentences"] == "Sentences No sentences are shown: there is no model."
    assert "Nothing is held out: the last epoch counts." in parts["Learning"]


FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324])


def strategy(kind: Any) -> st.SearchStrategy[Any]:
    """Values of the type of a record's field."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(
            kind, **{field.name: strategy(hints[field.name]) for field in dataclasses.fields(kind)}
        )
    if get_origin(kind) is list:
        return st.lists(strategy(get_args(kind)[0]), max_size=3)
    if get_origin(kind) is tuple:
        return st.tuples(*map(strategy, get_args(kind)))
    if get_origin(kind) is dict:
        return st.dictionaries(strategy(str), strategy(get_args(kind)[1]), max_size=3)
    simple = {
        str: st.text(max_size=5) | st.just(HOSTILE),
        int: st.integers(0, 10),
        float: FLOATS,
        bool: st.booleans(),
        Any: st.text(max_size=3) | FLOATS | st.lists(FLOATS | st.text(max_size=2), max_size=2) | st.none(),
    }
    return simple[kind] if kind in simple else st.one_of(st.none(), strategy(get_args(kind)[0]))


@settings(max_examples=30)
@given(strategy(SystemReport), strategy(DerivationReport), st.lists(FLOATS, min_size=3, max_size=3))
def test_any_values_make_a_page(
    system: SystemReport, derivation: DerivationReport, numbers: list[float]
) -> None:
    for stage in system.stages:  # as the reader of the manifest checks
        stage.seconds = stage.cpu_seconds = stage.compile_seconds = stage.peak_mb = 1.0
    for tuning in system.tunings:
        tuning.chosen = min(tuning.chosen, len(tuning.epochs))
    made = report("word")
    made.systems[0] = system
    derivation.links = []
    made.examples.sentences[0].outputs[0].derivation = derivation
    made.features.by_weight[0].weights = [numbers[0]]
    made.features.by_share[0].means = [numbers[1]]
    made.scores[0].scores["systems"][0]["metrics"]["bleu"] = {"score": numbers[2], "interval": numbers[:2]}
    check_page(page(made))
