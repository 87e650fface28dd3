"""Statistics of decoding."""

from __future__ import annotations

import time

import pytest

import hiero
from hiero.decoder.statistics import STAGES, Statistics


def test_decoding_time_is_the_sum_of_its_stages() -> None:
    statistics = Statistics()
    for seconds, stage in enumerate([*STAGES, "load"], 1):
        statistics.seconds[stage] = float(seconds)
    numbers = statistics.as_dict()
    assert numbers["decode_cpu_s"] == 1 + 2 + 3 + 4
    assert [numbers[name] for name in STAGES.values()] == [1, 2, 3, 4]


def test_all_work_on_a_sentence_is_timed() -> None:
    rules = [f"[X] ||| {src} ||| {tgt} ||| p=1" for src in "abcd" for tgt in "stuvwxyz"]
    rules += ["[X] ||| [X,1] a [X,2] ||| [2] s [1] ||| p=2", "[X] ||| [X,1] b ||| t [1] ||| p=1"]
    model = hiero.load(rules=rules, weights={"p": -1.0, "Glue": -0.1})
    line = " ".join("abcd" * 15)
    model.translate(line)
    statistics = Statistics()
    start = time.thread_time()
    model.parse(line, statistics)
    spent = time.thread_time() - start
    assert statistics.sentences == 1
    assert statistics.words == 60
    assert 0.8 * spent <= sum(statistics.seconds.values()) <= spent


def test_compile_time_is_counted_from_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several stages of a run are one process."""
    monkeypatch.setattr("hiero.decoder.statistics.compile_timer.seconds", 80.0)
    total = Statistics()
    assert total.as_dict()["compile_s"] == 0
    monkeypatch.setattr("hiero.decoder.statistics.compile_timer.seconds", 82.5)
    total.add(Statistics())
    assert total.as_dict()["compile_s"] == 2.5


def test_adding_up() -> None:
    total = Statistics()
    for score in (-1.0, -3.0):
        part = Statistics(sentences=1, words=2, score=score)
        with part.timed("parse"):
            pass
        total.add(part)
    assert (total.sentences, total.words, total.mean_score) == (2, 4, -2.0)
    assert set(total.seconds) == {"parse"}
    assert Statistics(sentences=3, failed=3).mean_score == 0.0
