"""Bins populated as evenly as possible (Clark, Dyer and Lavie 2014, section 3.2).

The values of a feature are counted over the rules of every sentence of a set; a bin is a range of adjacent
values. Only the order of values matters, so that no increasing transform of a feature changes its bins.

Two corrections to the paper. Its equations 5 and 6, taken literally, reduce all frequencies to the smallest
one: the ideal population u of a bin must be their sum divided by the number of bins, not by that of values.
And its R(j) must leave N - j values to the bins after bin j, not one more, so that no bin is empty and every
value is in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from hiero.bins.bins import FeatureBins, column_to_bin, not_a_number, raw_values
from hiero.bins.config import WORDS, BinsConfig, FeatureConfig, Method
from hiero.bins.kernels import FAR, deviations_kernel
from hiero.core.arrays import Floats32, Ints, read_only
from hiero.core.errors import ConfigError, HieroError, did_you_mean
from hiero.core.parallel import in_order
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbols import Symbols
from hiero.core.text import Segment
from hiero.grammar.rules import GrammarSource, RuleTable

MAX_PENDING = 1 << 20  # values added before they are merged


class Histogram:
    """Distinct values in ascending order and their counts, complete after ``settle``."""

    def __init__(self) -> None:
        self.value, self.count = np.zeros(0, np.float32), np.zeros(0, np.int64)
        self._pending: list[tuple[Floats32, Ints]] = []
        self._num_pending = 0

    def add(self, value: Floats32, count: Ints) -> None:
        """Add distinct values and their counts."""
        self._pending.append((value, count))
        self._num_pending += len(value)
        if self._num_pending > MAX_PENDING:
            self.settle()

    def settle(self) -> None:
        """Merge all values added so far."""
        value = np.concatenate([self.value, *(value for value, _ in self._pending)])
        count = np.concatenate([self.count, *(count for _, count in self._pending)])
        self.value, place = np.unique(value, return_inverse=True)
        total = np.zeros(len(self.value), np.int64)
        np.add.at(total, place, count)
        self.count, self._pending, self._num_pending = total, [], 0


class Ideal(NamedTuple):
    """The ideal population of a bin, as the fraction ``total / parts``: exact, unlike a float."""

    total: int
    parts: int


def ideal_population(counts: Sequence[int], number: int) -> Ideal:
    """The largest u with u = (sum of min(f, u)) / number, at which frequencies f are capped.

    It is the limit of the paper's iteration (equations 5 and 6) in closed form: if the m largest frequencies
    are capped at u, then u = (sum of the others) / (number - m).
    """
    ascending = sorted(counts)
    below = [0, *accumulate(ascending)]
    for cut in range(number):
        rest = len(counts) - cut
        found = Ideal(below[rest], number - cut)
        if ascending[rest - 1] * found.parts <= found.total:
            return found
    raise AssertionError("more bins than values")


class Populations(NamedTuple):
    """Capped populations of values, and the ideal one of a bin: integers in units of 1 / ``Ideal.parts``."""

    mass: list[int]
    ideal: int
    number: int


def populations(counts: Sequence[int], number: int) -> Populations:
    """Those of ascending values, for ``number`` bins, or for fewer if there are fewer values."""
    number = min(number, len(counts))
    ideal = ideal_population(counts, number)
    return Populations([min(count * ideal.parts, ideal.total) for count in counts], ideal.total, number)


def greedy(counts: Sequence[int], number: int) -> list[int]:
    """First value of each bin, for ascending values with given counts: the paper's algorithm 1.

    From left to right, each bin takes values while its cumulative ideal is not exceeded, and the value that
    straddles it if less than half of that is beyond. If there are fewer values than ``number``, each has its
    own bin.

    Equation 7 is 1.07 times that of the best partition on average for up to ten values, and the best one in
    85 % of random inputs; for 20 to 120 values it is about 1.5 times (tests/bins/test_learn.py), and for
    thousands it was up to 2.4 times.
    """
    mass, ideal, number = populations(counts, number)
    begins, i, room = [], 0, 0
    for j in range(1, number + 1):
        begins.append(i)
        room += ideal  # C(j): what the bins so far lack of their cumulative ideal
        end = len(counts) - (number - j)  # R(j)
        while i < end and mass[i] <= room:
            room -= mass[i]
            i += 1
        if i < end and 2 * (mass[i] - room) < mass[i]:
            room -= mass[i]
            i += 1
    return begins


def exact(counts: Sequence[int], number: int) -> list[int]:
    """First value of each bin: of all partitions, one for which equation 7 is least.

    By halves of the bins (Hirschberg 1975): the least sums from the left and from the right say where the
    second half begins. O(values * bins) time, O(values) memory.
    """
    mass, ideal, number = populations(counts, number)
    below = np.array([0, *accumulate(mass)], np.int64)
    begins: list[int] = []
    parts = [(0, len(counts), number)]
    while parts:
        first, end, bins = parts.pop()
        if bins == 1 or bins == end - first:
            begins += range(first, first + bins)
            continue
        left = below[first : end + 1] - below[first]
        right = below[end] - below[first : end + 1][::-1]
        from_left, from_right = np.empty_like(left), np.empty_like(left)
        deviations_kernel(read_only(left), ideal, bins // 2, from_left)
        deviations_kernel(read_only(right), ideal, bins - bins // 2, from_right)
        reached = (from_left < FAR) & (from_right[::-1] < FAR)
        middle = first + int(np.argmin(np.where(reached, from_left + from_right[::-1], FAR)))
        parts += [(first, middle, bins // 2), (middle, end, bins - bins // 2)]
    return sorted(begins)


METHODS: dict[str, Callable[[Sequence[int], int], list[int]]] = {"greedy": greedy, "exact": exact}


def bins_of(
    feature: str, settings: FeatureConfig, histogram: Histogram, method: Method = "greedy"
) -> FeatureBins:
    """The bins of a feature; ``settings`` are complete."""
    value, count = histogram.value, histogram.count
    begins = METHODS[method](count.tolist(), 2 ** (settings.bits or 1))
    ends = [*begins[1:], len(value)]
    first = np.array(begins, np.int64)
    begin = value[first]
    begin[0] = -np.inf
    return FeatureBins(
        feature=feature,
        of=settings.of,
        begin=begin,
        overlap=settings.overlap or 0,
        keep=bool(settings.keep),
        low=value[first],
        high=value[np.array(ends) - 1],
        values=np.diff([*begins, len(value)]).astype(np.int64),
        rules=np.add.reduceat(count, first),
    )


def learn_bins(
    config: BinsConfig,
    sources: Sequence[GrammarSource],
    symbols: Symbols,
    segments: Sequence[Segment],
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> list[FeatureBins]:
    """Learn bins for the features in ``config``, from the rules of some sentences."""
    if not config.features:
        raise ConfigError("bins: features: found no names, expected some, such as EgivenFCoherent")
    progress = progress or SilentProgress()
    progress.begin(len(segments), "bins")
    counter = _Counter(config, sources, symbols)
    histograms = {feature: Histogram() for feature in config.features}
    num_rules = 0
    for rules, found in in_order(counter.count, segments, threads):
        num_rules += rules
        for feature, (value, count) in found.items():
            histograms[feature].add(value, count)
        progress.advance(1)
    if not num_rules:
        hint = "are grammar and text of the same language, and prepared alike?"
        raise HieroError(f"bins: found no rules for {len(segments)} sentences, expected some ({hint})")
    learnt = []
    for feature, histogram in histograms.items():
        histogram.settle()
        settings = config.settings_of(feature)
        _check_values(feature, histogram, counter)
        learnt.append(bins_of(feature, settings, histogram, config.method))
        if len(learnt[-1]) < 2 ** (settings.bits or 1):
            asked = 2 ** (settings.bits or 1)
            progress.say(f"{feature}: {len(learnt[-1])} bins instead of {asked}, one for each of its values")
    return learnt


class _Counter:
    """Counts of feature values over the rules of a sentence."""

    def __init__(self, config: BinsConfig, sources: Sequence[GrammarSource], symbols: Symbols) -> None:
        self.config, self.symbols = config, symbols
        self.id = {name: symbols.names.intern(name.encode()) for name in config.features}
        self.sources = [(source, source.feature_names()) for source in sources]
        self.seen: set[int] = set()  # all features of the rules

    def count(self, segment: Segment) -> tuple[int, Mapping[str, tuple[Floats32, Ints]]]:
        """Return the number of rules of a sentence; for each feature its distinct values and their counts."""
        lattice = segment.lattice
        given = segment.words if lattice is None else lattice.word_arcs.words
        along = () if lattice is None else (lattice.word_arcs.arcs,)
        words = (word.encode(errors="replace") for word in given)
        src = self.symbols.words.intern_all(words)
        num_rules, parts = 0, {feature: [np.zeros(0, np.float32)] for feature in self.config.features}
        for source, known in self.sources:
            table = source.rules_for(src, segment.attributes, *along)
            if not table.num_rules:
                continue
            num_rules += table.num_rules
            self.seen.update(table.columns, np.unique(table.rules.sparse_name).tolist())
            for feature, values in parts.items():
                if feature == WORDS or known is None or self.id[feature] in known:
                    values.append(self._values(feature, table))
        counted = {f: np.unique(np.concatenate(v), return_counts=True) for f, v in parts.items()}
        return num_rules, {f: (value, count.astype(np.int64)) for f, (value, count) in counted.items()}

    def _values(self, feature: str, table: RuleTable) -> Floats32:
        of, column = self.config.features[feature].of, column_to_bin(table, feature, self.id[feature])
        values = raw_values(of, column)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise not_a_number(feature, float(values[wrong[0]]), table, int(wrong[0]), self.symbols)
        if of == "count" and len(values) and values.min() < 0:
            # All values below 0 would become equal.
            r, expected = int(values.argmin()), "log10(1 + c) of a count c (of: given takes all numbers)"
            raise not_a_number(feature, float(column[r]), table, r, self.symbols, expected)
        return values + np.float32(0)  # turns -0 into 0

    def names(self) -> Iterable[str]:
        """All features of the rules."""
        return [*(self.symbols.names.text(name) for name in self.seen), WORDS]


def _check_values(feature: str, histogram: Histogram, counter: _Counter) -> None:
    """Refuse a feature that no rule has, or that is constant."""
    if feature != WORDS and counter.id[feature] not in counter.seen:
        near = did_you_mean(feature, [name for name in counter.names() if name != feature])
        raise ConfigError(f"bins: features: {feature!r}: no rule has it; {near}")
    if len(histogram.value) == 1:
        found = f"the value {histogram.value[0]:g} in all of {int(histogram.count[0]):,} rules"
        hint = "a constant is of no use: leave it out"
        raise HieroError(f"bins: features: {feature}: found {found}, expected different ones ({hint})")
