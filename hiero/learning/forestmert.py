# mypy: allow-untyped-calls
"""MERT over all derivations of forests (Kumar, Macherey, Dyer and Och 2009).

Unlike a k-best list, a forest also has the translations that score low with the weights it was decoded with.

>>> surface = ForestSurface(references, num_features)      # doctest: +SKIP
>>> surface.add(number, forest, edge_values(forest, keys)) # doctest: +SKIP
>>> MERT(features=...).fit(surface, weight, 1, seed)       # doctest: +SKIP
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.symbols import read_only
from hiero.decoder.forest import Forest
from hiero.evaluation.bleu import MAX_ORDER, References
from hiero.learning.learn_forest_part_kernels import (
    Lines,
    forest_lines_kernel,
    lines_as_derivations_kernel,
    union_kernel,
)
from hiero.learning.mert import Envelopes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOISE = 1e-6  # relative: values are float32


class EdgeLines(NamedTuple):
    """A forest with the scores of its edges as linear functions of D weights.

    value  float32 [E, D]  values of the features whose weights move
    fixed  float64 [E]     the score of all others; -inf for an edge that is in no derivation
    """

    forest: Forest
    value: npt.NDArray[np.float32]
    fixed: Floats


class ForestSurface:
    """A ``Surface`` of forests: one or several for each sentence, searched together.

    Forests and references must use the same word ids.
    """

    def __init__(self, references: References, num_features: int) -> None:
        self.references, self.num_features = references, num_features
        self._forests: dict[int, list[EdgeLines]] = {}

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self._forests)

    def add(
        self,
        number: int,
        forest: Forest,
        value: npt.NDArray[np.float32],
        point: Floats | None = None,
    ) -> bool:
        """Add a forest of sentence ``number``; return whether it has a derivation.

        value  [E, D], values of the features whose weights move
        point  float64 [D], their weights in the scores of the edges; the rest of an edge's score is fixed.
               None: there are no other features.
        """
        if value.shape != (forest.num_edges, self.num_features):
            raise ValueError(
                f"values {value.shape} for {forest.num_edges} edges and {self.num_features} features"
            )
        if not 0 <= number < len(self.references):
            raise IndexError(f"there are references for {len(self.references)} sentences, not for {number}")
        if not forest:
            return False
        value = read_only(np.asarray(value, np.float32))
        alive = forest.edge_score > -np.inf
        fixed = np.zeros(forest.num_edges)
        if point is not None:
            moved = value[alive].astype(np.float64) * point
            rest = forest.edge_score[alive] - moved.sum(axis=1)
            fixed[alive] = np.where(np.abs(rest) > NOISE * (1 + np.abs(moved).sum(axis=1)), rest, 0.0)
        fixed[~alive] = -np.inf
        self._forests.setdefault(number, []).append(EdgeLines(forest, value, read_only(fixed)))
        return True

    def clear(self) -> None:
        """Remove all forests."""
        self._forests.clear()

    def is_scale_free(self) -> bool:
        return not any(
            np.isfinite(lines.fixed[lines.fixed != 0]).any()
            for forests in self._forests.values()
            for lines in forests
        )

    def envelopes(self, point: Floats, direction: Floats) -> Envelopes:
        point, direction = read_only(point), read_only(direction)
        starts: list[Floats] = [np.zeros(0)]
        statistics: list[Ints] = [np.zeros((0, 2 + 2 * MAX_ORDER), np.int64)]
        first = [0]
        for number, forests in sorted(self._forests.items()):
            start, rows = self._envelope(number, forests, point, direction)
            starts.append(start)
            statistics.append(rows)
            first.append(first[-1] + len(start))
        return Envelopes(np.array(first, np.int64), np.concatenate(starts), np.concatenate(statistics))

    def _envelope(
        self, number: int, forests: list[EdgeLines], point: Floats, direction: Floats
    ) -> tuple[Floats, Ints]:
        """For one sentence, the starts of the segments and the statistics of the best derivation in each."""
        found = [
            Lines._make(forest_lines_kernel(forest.graph, value, fixed, point, direction))
            for forest, value, fixed in forests
        ]
        goal = [np.arange(lines.first[-2], lines.first[-1]) for lines in found]
        first = np.concatenate([[0], np.cumsum([len(roots) for roots in goal])]).astype(np.int64)
        start, leading = union_kernel(
            first,
            np.concatenate([lines.slope[roots] for lines, roots in zip(found, goal, strict=True)]),
            np.concatenate([lines.intercept[roots] for lines, roots in zip(found, goal, strict=True)]),
        )
        rows = np.empty((len(leading), 2 + 2 * MAX_ORDER), np.int64)
        for n, (forest, _, _) in enumerate(forests):
            mine = (first[n] <= leading) & (leading < first[n + 1])
            rows[mine] = self._statistics(number, forest, found[n], goal[n][leading[mine] - first[n]])
        return start, rows

    def _statistics(self, number: int, forest: Forest, lines: Lines, roots: Ints) -> Ints:
        table, places = lines_as_derivations_kernel(forest.edge_rule, forest.rules, lines, roots)
        first_word, word, _, _ = forest.expand(table, places)
        return self.references.batch_statistics(
            np.array([number], np.int64), np.array([0, len(roots)], np.int64), first_word, word
        )
