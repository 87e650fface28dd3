"""How good weights are on text that was not learnt from: odd lines choose, even lines report."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.decode import Model
from hiero.formats.vectors import read_vectors
from hiero.inorder import in_order
from hiero.metrics import corpus_bleu
from hiero.symbols import Symbols
from hiero.tune.data import TuningSet
from hiero.weightvector import WeightVector


class Score(NamedTuple):
    """BLEU in per cent, and the length of the translations by that of the references."""

    bleu: float
    brevity: float


def score(statistics: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> Score:
    """Of summed statistics of BLEU."""
    total = np.asarray(statistics, np.float64)
    brevity = float(total[0] / total[1]) if total[1] else 0.0
    return Score(100 * float(corpus_bleu(total)[0]), brevity)


def read_vector(path: str, symbols: Symbols) -> WeightVector:
    """The weights in a file, ready to decode with."""
    vector = WeightVector(symbols)
    ids, values = read_vectors(path, symbols, vector.index)
    vector.grow()
    vector.value[ids] = values["weight"]
    return vector


def statistics_of(
    model: Model, texts: TuningSet, weights: str, threads: int, advance: Callable[[int], None]
) -> npt.NDArray[np.int64]:
    """Translate a set with the weights in a file; BLEU's statistics of each line."""
    decoder = model.with_weights(read_vector(weights, model.symbols))

    def translate(number: int) -> npt.NDArray[np.int64]:
        forest = decoder.parse(texts.segments[number])
        words = forest.viterbi().words if forest else np.empty(0, np.int32)
        row: npt.NDArray[np.int64] = texts.references.statistics(number, [words])[0]
        return row

    rows = []
    for row in in_order(translate, range(len(texts)), threads):
        rows.append(row)
        advance(1)
    return np.array(rows, np.int64).reshape(-1, 10)


def halves(rows: npt.NDArray[np.int64]) -> tuple[Score, Score]:
    """The scores of odd and of even lines, counted from 1."""
    return score(rows[0::2].sum(axis=0)), score(rows[1::2].sum(axis=0))
