"""BLEU on a held-out set: its odd lines choose the epoch, its even lines report.

The set is distributed over the same workers as the shards. Each sentence is translated by itself, so the
result does not depend on how.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hiero.core.arrays import Floats, Ints, is_within
from hiero.core.directories import read_npz
from hiero.core.errors import FormatError
from hiero.core.parallel import stop
from hiero.core.text import open_output
from hiero.decoder.model import Model
from hiero.evaluation.bleu import corpus_bleu
from hiero.tuning.shard import (
    Session,
    SetFiles,
    Stopped,
    TaskOutput,
    is_task_done,
    opened,
    opened_tuning_set,
    shards,
)
from hiero.tuning.vectors import read_vector

PART = 250  # sentences of a task, at most: enough to make the time to read weights negligible


class Score(NamedTuple):
    """BLEU in per cent, and the length of the translations divided by that of the references."""

    bleu: float
    brevity: float


def held_out_score(statistics: Floats | Ints) -> Score:
    """The score of BLEU statistics, summed over sentences."""
    total = np.asarray(statistics, np.float64)
    brevity = float(total[0] / total[1]) if total[1] else 0.0
    return Score(100 * float(corpus_bleu(total)[0]), brevity)


@dataclass(frozen=True)
class PartTask:
    """Sentences ``numbers`` of a set, and the file of weights to translate them with."""

    session: Session
    files: SetFiles
    numbers: tuple[int, ...]
    weights: str
    out: str


# The last decoder only: consecutive tasks have the same weights.
_decoder: dict[tuple[str, str, int, int], Model] = {}
_reading = threading.Lock()


def _decoder_with(task: PartTask) -> Model:
    model, _ = opened(task.session)
    status = os.stat(task.weights)
    key = task.session.key, task.weights, status.st_mtime_ns, status.st_ino
    with _reading:
        if key not in _decoder:
            _decoder.clear()
            _decoder[key] = model.with_weights(read_vector(task.weights, model.symbols))
        return _decoder[key]


def translate_held_out(task: PartTask) -> str:
    """Translate a part of a held-out set, unless that was done; return the path of the BLEU statistics."""
    if is_task_done(task.out):
        return task.out
    output, decoder = TaskOutput(task.out), _decoder_with(task)
    texts = opened_tuning_set(task.session, task.files)
    started, rows = time.thread_time(), []
    for number in task.numbers:
        if stop.is_set():
            raise Stopped("interrupted")
        forest = decoder.parse(texts.segments[number])
        words = forest.viterbi().words if forest else np.empty(0, np.int32)
        rows.append(texts.references.statistics(number, [words])[0])
        output.write_progress(len(rows))
    with open_output(f"{output.temporary}.npz") as stream:
        np.savez(stream, statistics=np.array(rows, np.int64).reshape(-1, 10))
    output.finish({"decode_s": time.thread_time() - started})
    return task.out


def part_tasks(
    session: Session, files: SetFiles, size: int, weights: str, out: str, workers: int
) -> list[PartTask]:
    """Split a set of ``size`` sentences into tasks, which write to OUT.FIRST-LAST.

    The names contain the lines, since a run may be resumed with another number of workers.
    """
    count = min(max(workers, -(-size // PART)), size)
    parts = shards(range(size), count) if size else []
    return [
        PartTask(session, files, tuple(part), weights, f"{out}.{part[0] + 1}-{part[-1] + 1}")
        for part in parts
    ]


def statistics_in(tasks: Sequence[PartTask]) -> Ints:
    """The statistics written by the tasks, a row for each line."""
    rows = [np.zeros((0, 10), np.int64)]
    for task in tasks:
        arrays = read_npz(f"{task.out}.npz", "BLEU statistics", {"statistics": (np.int64, 2)})
        if arrays["statistics"].shape[1] != 10 or not is_within(arrays["statistics"], 0, 1 << 40):
            raise FormatError(f"{task.out}.npz", 0, found="other numbers", expected="BLEU statistics")
        rows.append(arrays["statistics"])
    return np.concatenate(rows)


def halves(rows: Ints) -> tuple[Score, Score]:
    """The scores of odd and of even lines, counted from 1."""
    return held_out_score(rows[0::2].sum(axis=0)), held_out_score(rows[1::2].sum(axis=0))


def choose_epoch(log: Sequence[dict[str, Any]]) -> int:
    """The epoch, from 1, with the best BLEU on odd held-out lines, or the last without a held-out set.

    Of equal ones, the first.
    """
    if not log or "choose_bleu" not in log[0]:
        return len(log)
    return 1 + int(np.argmax([record["choose_bleu"] for record in log]))
