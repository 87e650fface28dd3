"""Evaluation of the held-out set in parts."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
import pytest

from hiero.config.config import config_of, read_settings
from hiero.config.model import make_model
from hiero.core.parallel import stop
from hiero.learning.config import TuneConfig
from hiero.tuning.held_out import PART, PartTask, halves, part_tasks, statistics_in, translate_held_out
from hiero.tuning.shard import Session, SetFiles, Stopped, opened, opened_tuning_set
from hiero.tuning.vectors import write_start
from tests.worlds.tune import Tuning


@pytest.fixture
def task(tmp_path: Path) -> PartTask:
    """A task for all of six sentences."""
    world = Tuning(tmp_path / "exp")
    config = config_of(read_settings(world.path), base=world.folder)
    sets = {
        name: SetFiles(config.data[name].source, tuple(config.data[name].translations))
        for name in ("dev", "devtest")
    }
    load = functools.partial(make_model, config)
    session = Session(load, sets["dev"], TuneConfig().resolved(), 1, str(tmp_path))
    weights = tmp_path / "given"
    weights.write_text("Right 1\nWrong -0.5\nPassThrough -1\n")
    write_start(str(tmp_path / "weights.npz"), str(weights), opened(session)[0])
    return PartTask(
        session, sets["devtest"], tuple(range(6)), str(tmp_path / "weights.npz"), str(tmp_path / "held")
    )


def parts_of(task: PartTask, workers: int, out: str) -> list[PartTask]:
    return part_tasks(task.session, task.files, len(task.numbers), task.weights, out, workers)


def test_parts_cover_the_set(task: PartTask, tmp_path: Path) -> None:
    texts, model = opened_tuning_set(task.session, task.files), opened(task.session)[0]
    expected = [
        texts.references.statistics(number, [model.symbols.words.intern_all(text.upper().encode().split())])
        for number, text in enumerate(" ".join(segment.words) for segment in texts.segments)
    ]
    whole = statistics_in([PartTask(task.session, task.files, task.numbers, task.weights, task.out)][:0])
    assert whole.shape == (0, 10)
    translate_held_out(task)
    whole = statistics_in([task])
    assert whole.tolist() == np.concatenate(expected).tolist()  # these weights translate everything rightly
    for workers in (1, 2, 4, 9):
        tasks = parts_of(task, workers, str(tmp_path / f"held{workers}"))
        assert len(tasks) == min(workers, 6)
        for part in reversed(tasks):
            assert translate_held_out(part) == part.out
        assert statistics_in(tasks).tolist() == whole.tolist()
    assert halves(whole)[0].bleu == pytest.approx(100)
    assert not list(tmp_path.glob("tmp.*"))


def test_complete_parts_are_not_repeated(task: PartTask, tmp_path: Path) -> None:
    first, second = parts_of(task, 2, task.out)
    translate_held_out(first)
    before = os.stat(f"{first.out}.npz").st_mtime_ns
    os.remove(task.weights)
    translate_held_out(first)
    assert os.stat(f"{first.out}.npz").st_mtime_ns == before
    with pytest.raises(OSError):
        translate_held_out(second)
    # Gone on with by other workers, parts are others, under other names.
    assert not {part.out for part in parts_of(task, 3, task.out)} & {first.out, second.out}


def test_other_weights_in_a_file_of_the_same_name(task: PartTask, tmp_path: Path) -> None:
    translate_held_out(task)
    model = opened(task.session)[0]
    wrong = tmp_path / "wrong"
    wrong.write_text("Right -1\nWrong 1\n")
    write_start(task.weights, str(wrong), model)
    again = PartTask(task.session, task.files, task.numbers, task.weights, str(tmp_path / "again"))
    translate_held_out(again)
    assert statistics_in([task])[:, 2].sum() == statistics_in([task])[:, 0].sum()  # every word is right
    assert statistics_in([again])[:, 2].sum() == 0


def test_interrupted(task: PartTask) -> None:
    stop.set()
    try:
        with pytest.raises(Stopped):
            translate_held_out(task)
    finally:
        stop.clear()


def test_number_of_parts(task: PartTask) -> None:
    def sizes(size: int, workers: int) -> list[int]:
        tasks = part_tasks(task.session, task.files, size, task.weights, task.out, workers)
        assert [number for part in tasks for number in part.numbers] == list(range(size))
        return [len(part.numbers) for part in tasks]

    assert sizes(0, 4) == []
    assert sizes(PART, 1) == [PART]
    assert len(sizes(PART + 1, 1)) == 2
    assert sizes(3, 8) == [1, 1, 1]
