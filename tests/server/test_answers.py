"""Records about translations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import HieroError
from hiero.server.answers import Translator, Wanted, edit_distances
from hiero.server.metrics import Metrics
from tests.naive import server as naive
from tests.worlds.server import running_service, write_models

pytest.importorskip("starlette", reason="the server needs it")
LINE = "das haus ist alt ."


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Translator]:
    path = write_models(tmp_path_factory.mktemp("models"))["words"]
    with running_service([f"de-en={path}"], max_words=10) as service:
        yield service.translator(None)


words = st.lists(st.integers(0, 3), max_size=5)


@given(words, st.lists(words, min_size=1, max_size=4))
def test_edit_distances(wanted: list[int], rows: list[list[int]]) -> None:
    found = edit_distances(np.array(wanted, np.int32), rows)
    assert found.tolist() == [naive.edit_distance(wanted, row) for row in rows]


def test_a_line_with_all_details(translator: Translator) -> None:
    everything = Wanted(kbest=100, alignment=True, features=True, derivation=True, confidence=True)
    found = translator.line(LINE, everything)
    model = translator.served.model
    assert found["source"] == LINE.split()
    translations = found["translations"]
    assert translations[0]["text"] == model.translate(LINE).text == "the house is old ."
    assert len({one["text"] for one in translations}) == len(translations) > 3
    # Shares of the list, by the scores.
    weights = [math.exp(one["score"]) for one in translations]
    for one, weight in zip(translations, weights, strict=True):
        assert one["confidence"] == pytest.approx(weight / sum(weights), rel=1e-6)
        assert one["words"] == one["text"].split()
        total = sum(model.weights.get(name, 0) * value for name, value in one["features"].items())
        assert total == pytest.approx(one["score"], rel=1e-6)
        assert sum(node["score"] for node in one["derivation"]) == pytest.approx(one["score"], rel=1e-6)
        assert all(0 < node["posterior"] <= 1 + 1e-9 for node in one["derivation"])
    assert translations[0]["alignment"] == [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]
    assert "[X] ||| [X,1] ist alt ||| [1] is old" in [node["rule"] for node in translations[0]["derivation"]]
    # The confidence does not depend on how many translations are asked for.
    (one,) = translator.line(LINE, Wanted(confidence=True))["translations"]
    assert one["confidence"] == translations[0]["confidence"]


def test_lines_without_words_or_with_too_many(translator: Translator) -> None:
    assert translator.line(" \t", Wanted(kbest=3, confidence=True)) == {"source": [], "translations": []}
    assert translator.texts("") == [""]
    with pytest.raises(HieroError, match="found a line of 11 words, expected at most 10"):
        translator.line("a " * 11, Wanted())


def test_sentences_name_no_grammars(translator: Translator) -> None:
    """The files of the server are not for clients."""
    with pytest.raises(HieroError, match="sentences cannot name grammars here"):
        translator.line('<seg grammar="other.grammar">das haus</seg>', Wanted())
    assert translator.texts('<seg id="3">das haus</seg>') == ["the house"]


def test_rules_for_a_span(translator: Translator) -> None:
    found = translator.span(LINE, 3, 4, 10)
    assert [rule["rule"] for rule in found["rules"]] == [
        "[X] ||| alt ||| old",
        "[X] ||| alt ||| ancient",
        "[X] ||| alt ||| alt",
    ]
    forest = translator.served.model.parse(LINE)
    best = forest.viterbi().score
    for rule in found["rules"]:
        word = rule["rule"].split()[-1]
        with_it = [one.score for one in forest.kbest(1000, unique=False) if _has(one.rule_texts, word)]
        assert rule["best"] == pytest.approx(max(with_it), rel=1e-6)
        assert rule["loss"] == pytest.approx(best - max(with_it), abs=1e-6)
        total = sum(
            translator.served.model.weights.get(name, 0) * value for name, value in rule["features"].items()
        )
        assert total == pytest.approx(rule["score"], rel=1e-6)
        everything = [one.score for one in forest.kbest(1000, unique=False)]
        share = sum(map(math.exp, with_it)) / sum(map(math.exp, everything))
        assert rule["posterior"] == pytest.approx(share, rel=1e-6)
    assert not any(rule["is_used"] for rule in found["rules"])  # that of three words is
    assert translator.span(LINE, 0, 4, 10)["rules"][0]["is_used"]
    assert translator.span(LINE, 0, 4, 1)["num_rules"] == 3
    assert len(translator.span(LINE, 3, 4, 2)["rules"]) == 2
    with pytest.raises(HieroError, match="expected a span of the 5 words"):
        translator.span(LINE, 2, 6, 10)


def _has(rules: list[str], word: str) -> bool:
    return any(rule.startswith(f"[X] ||| alt ||| {word} |||") for rule in rules)


def test_comparison_with_an_edited_translation(translator: Translator) -> None:
    found = translator.comparison(LINE, "the home is old .")
    assert (found["is_wanted"], found["distance"]) == (True, 0)
    assert found["best"]["text"] == "the house is old ."
    assert found["other"]["text"] == "the home is old ."
    assert found["features"][0]["feature"] == "p"
    assert found["features"][0]["difference"] == pytest.approx(-0.7)
    total = sum(row["difference"] for row in found["features"])
    assert total == pytest.approx(found["other"]["score"] - found["best"]["score"])
    assert found["why"] == ""
    found = translator.comparison(LINE, "the home was old .")
    assert (found["is_wanted"], found["distance"]) == (False, 1)
    assert found["other"]["text"] == "the home is old ."
    longest = 'longest match "the home" of "das haus"'
    assert found["why"] == f"no derivation; {longest}; in no rule that applies: was"
    assert found["searched"] == len(translator.served.model.parse(LINE).kbest(1000))
    assert translator.comparison(LINE, "")["distance"] > 0
    with pytest.raises(HieroError, match="no translation to compare with"):
        translator.comparison("", "x")


def test_comparison_with_what_the_search_left_out(tmp_path: Path) -> None:
    path = write_models(tmp_path)["words"]
    path.write_text(path.read_text() + "search: {pop_limit: 1}\n")
    with running_service([str(path)]) as service:
        translator = service.translator(None)
        wanted = "das house is ancient ."
        assert wanted not in translator.texts(LINE, 100)
        found = translator.comparison(LINE, wanted)
        assert found["is_wanted"]
        assert found["other"]["text"] == wanted
        assert found["other"]["score"] < found["best"]["score"]


def test_models_are_loaded_anew_after_many_new_words(tmp_path: Path) -> None:
    path = write_models(tmp_path)["words"]
    with running_service([f"de-en={path}"], max_new_words=50) as service:
        translator = service.translator(None)
        first = translator.served.model
        for number in range(60):
            assert translator.texts(f"das haus {number}") == [f"the house {number}"]
        for _ in range(1000):
            if translator.served.model is not first:
                break
            translator.texts("das haus")
        assert translator.served.model is not first
        assert translator.served.loads == 2
        assert translator.served.num_words < 60
        assert translator.texts("das haus 3") == ["the house 3"]


def test_metrics() -> None:
    metrics = Metrics()
    metrics.add("hiero_requests_total", path='a"\n\\', status="200")
    metrics.observe("hiero_request_seconds", 0.3, path="/")
    metrics.observe("hiero_request_seconds", 1000.0, path="/")
    text = metrics.text({("hiero_threads", ()): 3})
    assert '\nhiero_requests_total{path="a\\"\\n\\\\",status="200"} 1\n' in text
    assert "\nhiero_threads 3\n" in text
    for bound, count in (("0.25", 0), ("0.5", 1), ("60.0", 1), ("+Inf", 2)):
        assert f'\nhiero_request_seconds_bucket{{path="/",le="{bound}"}} {count}\n' in text
    assert 'hiero_request_seconds_sum{path="/"} 1000.3' in text
    kinds = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(kinds) == len(set(kinds))
