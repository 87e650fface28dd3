"""MERT: direct maximisation of the corpus BLEU of the best translations (Och 2003).

Along a line in the space of weights, BLEU changes only where another translation of some sentence becomes
the best one. All these points are found, so that the line search is exact. Lines run along each feature, and
along random directions. The maximum depends on the start, so the search is repeated from random points. MERT
works for tens of features; the weights of others are not changed.

The search runs on a ``Surface``: k-best lists, or all derivations of forests (Kumar, Macherey, Dyer and Och
2009). Unlike a k-best list, a forest also has the translations that score low with the weights it was decoded
with.

>>> surface = ForestSurface(references, num_features)      # doctest: +SKIP
>>> surface.add(number, forest, edge_values(forest, keys)) # doctest: +SKIP
>>> MERT(features=...).fit(surface, weight, 1, seed)       # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from hiero.core.arrays import Floats, Floats32, Ints, offsets_of, read_only
from hiero.core.errors import ConfigError
from hiero.core.parallel import in_order
from hiero.core.records import Checked, part, setting
from hiero.decoder.forest import Forest
from hiero.evaluation.bleu import MAX_ORDER, References
from hiero.learning.candidates import check_finite
from hiero.learning.config import TuneSettings
from hiero.learning.learner import LearnerContext
from hiero.learning.list_kernels import dense_lists_kernel
from hiero.learning.lists import CandidateLists
from hiero.learning.mert_kernels import (
    Lines,
    best_step_kernel,
    forest_lines_kernel,
    lines_as_derivations_kernel,
    list_envelopes_kernel,
    union_kernel,
)

Each = Callable[[Callable[[Floats], tuple[float, Floats]], Iterable[Floats]], Iterable[tuple[float, Floats]]]

# Longest step, relative to the largest weight. Lines that intersect farther away are parallel up to rounding.
MAX_STEP = 1e6


class Envelopes(NamedTuple):
    """Upper envelopes of S sentences: the best translation in each of L segments of a line.

    first       int64 [S + 1]    segments of sentence s are first[s] ... first[s + 1] - 1, at least one
    start       float64 [L]      start of the segment; -inf for the first one of a sentence
    statistics  int64 [L, .]     BLEU statistics of the best translation
    """

    first: Ints
    start: Floats
    statistics: Ints


class Surface(Protocol):
    """Translations whose scores are linear in D weights. Must be thread-safe."""

    def envelopes(self, point: Floats, direction: Floats) -> Envelopes:
        """Return the best translations for the weights ``point + x * direction``."""
        ...

    def is_scale_free(self) -> bool:
        """Whether scaling all D weights by a positive number keeps the best translations."""
        ...


class ListSurface:
    """Surface of k-best lists, over the weights of some features."""

    def __init__(self, lists: CandidateLists, features: Ints, weight: Floats) -> None:
        self.view = lists.view()
        rest = np.array(lists.checked(weight))
        rest[features] = 0.0
        self.fixed = read_only(lists.scores(rest))
        column = np.full(len(weight), -1, np.int32)
        column[features] = np.arange(len(features))
        value = np.zeros((len(lists), len(features)))
        dense_lists_kernel(self.view, read_only(column), value)
        self.value = read_only(value)

    def envelopes(self, point: Floats, direction: Floats) -> Envelopes:
        first, start, candidate = list_envelopes_kernel(
            self.view, self.value, self.fixed, read_only(point), read_only(direction)
        )
        return Envelopes(first, start, self.view.statistics[candidate])

    def is_scale_free(self) -> bool:
        return not self.fixed.any()


def best_step(found: Envelopes, low: float, high: float, reach: float) -> tuple[float, float]:
    """Return the step with the best corpus BLEU, and this BLEU; see ``best_step_kernel``."""
    later = np.ones(len(found.start), np.bool_)
    later[found.first[:-1]] = False
    change = np.flatnonzero(later)
    change = change[np.argsort(found.start[change], kind="stable")]
    step, bleu = best_step_kernel(
        read_only(found.first),
        read_only(found.start),
        read_only(found.statistics),
        read_only(change),
        np.float64(low),
        np.float64(high),
        np.float64(reach),
    )
    return float(step), float(bleu)


class Climb(NamedTuple):
    """The end of a search."""

    point: Floats
    bleu: float
    moves: int


@dataclass(frozen=True, kw_only=True)
class MERT(Checked):
    """Batch learner.

    features    numbers of the features whose weights move
    bounds      [D, 2], lower and upper bound of each weight; infinite if left out
    directions  random directions of each step, beside those along single features
    restarts    searches from random points, beside the one from the given weights
    tolerance   least gain in BLEU of a step, and of the result of a restart
    threads     for parallel searches, or for the directions if there are fewer searches; the result is the
                same
    """

    features: Sequence[int]
    bounds: Sequence[tuple[float, float]] = field(default=())
    directions: int = setting(0, least=0)
    restarts: int = setting(20, least=0)
    tolerance: float = setting(1e-5, above=0)
    threads: int = setting(1, least=1)

    @classmethod
    def make(cls, settings: TuneSettings, context: LearnerContext) -> MERT:
        return part(cls, settings, features=context.named, threads=context.threads)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.features):
            raise ConfigError("mert: found no features to learn weights for, expected some")
        if len(set(self.features)) < len(self.features):
            raise ConfigError("mert: found a feature twice, expected different ones")
        if len(self.bounds) not in (0, len(self.features)):
            raise ConfigError(
                f"bounds: found {len(self.bounds)}, expected {len(self.features)}, one of each feature"
            )
        for low, high in self.bounds:
            if not low <= high:
                raise ConfigError(f"bounds: found {low} and {high}, expected a lower and an upper one")

    def fit(
        self, lists: CandidateLists | Surface, weight: Floats, iteration: int, seed: int
    ) -> tuple[Floats, dict[str, float]]:
        """As in ``BatchLearner``; any other surface must have the features as its columns."""
        features = np.asarray(self.features, np.int64)
        if len(weight) <= features.max():
            raise ValueError(f"{len(weight)} weights, but feature {features.max()}")
        check_finite(np.arange(len(weight), dtype=np.int32), weight)
        surface = ListSurface(lists, features, weight) if isinstance(lists, CandidateLists) else lists
        low, high = self._limits()
        given = np.clip(weight[features], low, high)
        start_bleu = self._bleu(surface, given)
        found = self._climbs(surface, given, iteration, seed)
        best = found[0]
        for other in found[1:]:
            if other.bleu > best.bleu + self.tolerance:
                best = other
        point = best.point
        if not self.bounds and surface.is_scale_free() and point.any():
            # BLEU does not depend on the norm of the weights, which would otherwise drift.
            point = point * ((np.abs(given).sum() or 1.0) / np.abs(point).sum())
        learnt = np.array(weight, np.float64)
        learnt[features] = point
        return learnt, {
            "start_bleu": start_bleu,
            "predicted_bleu": best.bleu,
            "moves": float(sum(climb.moves for climb in found)),
            "restart": float(next(i for i, climb in enumerate(found) if climb is best)),
        }

    def _limits(self) -> tuple[Floats, Floats]:
        pairs = list(self.bounds) or [(-np.inf, np.inf)] * len(self.features)
        low, high = np.array(pairs, np.float64).T
        return low, high

    def _climbs(self, surface: Surface, given: Floats, iteration: int, seed: int) -> list[Climb]:
        """Search from the given point and from random points."""
        starts = range(1 + self.restarts)

        def climb(number: int, each: Each = map) -> Climb:
            rng = np.random.default_rng([seed, iteration, number])
            start = given
            if number:
                start = rng.uniform(-1.0, 1.0, len(given)) * (np.abs(given).max() or 1.0)
            return self.climb(surface, np.clip(start, *self._limits()), rng, each)

        if self.threads == 1:
            return list(map(climb, starts))
        if self.threads <= len(starts):
            return list(in_order(climb, starts, self.threads))
        each = partial(in_order, threads=self.threads)
        return [climb(number, each) for number in starts]

    def climb(self, surface: Surface, point: Floats, rng: np.random.Generator, each: Each = map) -> Climb:
        """Step in the direction with the largest gain, until none has a gain."""
        bleu, moves = self._bleu(surface, point), 0
        while True:
            reach = MAX_STEP * max(1.0, float(np.abs(point).max()))

            def search(
                direction: Floats, point: Floats = point, reach: float = reach
            ) -> tuple[float, Floats]:
                low, high = self._range(point, direction)
                if low >= high:
                    return -1.0, point
                step, found = best_step(surface.envelopes(point, direction), low, high, reach)
                return found, np.clip(point + step * direction, *self._limits())

            best, reached = bleu + self.tolerance, point
            for found, target in each(search, self._directions(rng)):
                if found > best:
                    best, reached = found, target
            if reached is point:
                return Climb(point, bleu, moves)
            point, bleu, moves = reached, best, moves + 1

    def _directions(self, rng: np.random.Generator) -> list[Floats]:
        drawn = rng.standard_normal((self.directions, len(self.features)))
        drawn /= np.abs(drawn).max(axis=1, keepdims=True)
        return [*np.eye(len(self.features)), *drawn]

    def _range(self, point: Floats, direction: Floats) -> tuple[float, float]:
        """The longest steps backward and forward within the bounds."""
        moves = direction != 0
        low, high = (limit[moves] - point[moves] for limit in self._limits())
        ends = np.sort([low / direction[moves], high / direction[moves]], axis=0)
        return float(ends[0].max()), float(ends[1].min())

    def _bleu(self, surface: Surface, point: Floats) -> float:
        found = surface.envelopes(point, np.zeros(len(point)))
        return best_step(found, -1.0, 1.0, 1.0)[1]


NOISE = 1e-6  # relative: values are float32


class EdgeLines(NamedTuple):
    """A forest with the scores of its edges as linear functions of D weights.

    value  float32 [E, D]  values of the features whose weights move
    fixed  float64 [E]     the score of all others; -inf for an edge that is in no derivation
    """

    forest: Forest
    value: Floats32
    fixed: Floats


class ForestSurface:
    """A ``Surface`` of forests: one or several for each sentence, searched together.

    Forests and references must use the same word ids.
    """

    def __init__(self, references: References, num_features: int) -> None:
        self.references, self.num_features = references, num_features
        self._forests: dict[int, list[EdgeLines]] = {}

    def __len__(self) -> int:
        return len(self._forests)

    def add(self, number: int, forest: Forest, value: Floats32, point: Floats | None = None) -> bool:
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
        first = offsets_of(map(len, goal))
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
