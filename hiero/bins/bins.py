"""Bins of dense rule features: the parameters of the transform into indicators.

A rule has a real number for each column of its grammar. A ``FeatureBins`` describes the transform of one
column: the number may be turned back into the probability or the count whose logarithm it is; its bin fires
one indicator, or with overlapping bins several; the number itself may be kept as a feature or not. The
transform needs only the rule, so the search is unchanged (Clark, Dyer and Lavie 2014).

Applying bins to the rules that a grammar returns is here; learning them is in ``learn.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.bins.config import WORDS, Of
from hiero.bins.kernels import bins_kernel
from hiero.core.arrays import (
    Floats32,
    Ids,
    Ints,
    count_per_row,
    offsets_by_row,
    offsets_of,
    read_only,
    row_of_entry,
)
from hiero.core.errors import ConfigError, HieroError, did_you_mean
from hiero.core.lattice import Arcs
from hiero.core.symbols import Symbols
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import NAME
from hiero.features.user import Rule, RuleBatch
from hiero.grammar.rules import GrammarSource, Rules, RuleTable


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureBins:
    """The transform of one dense feature of rules.

    feature  name of the feature in the grammar, or WORDS
    of       the number put into bins: the value as given; the probability p if the value is -log10 p; or the
             count c if the value is log10(1 + c)
    begin    [N] lower bounds of the bins, ascending; the first is -inf, the last bin has no upper bound. If
             empty, the feature is only converted according to ``of``, or dropped
    overlap  neighbours on either side of a bin that count as parts of it
    keep     whether the real number stays a feature in addition to the bins
    low, high, values, rules  [N] statistics of each bin, or empty: smallest and largest value seen, numbers
             of distinct values and of rules
    """

    feature: str
    of: Of = "given"
    begin: Floats32 = field(default_factory=lambda: np.zeros(0, np.float32))
    overlap: int = 0
    keep: bool = False
    low: Floats32 = field(default_factory=lambda: np.zeros(0, np.float32))
    high: Floats32 = field(default_factory=lambda: np.zeros(0, np.float32))
    values: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    rules: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        """The number of bins."""
        return len(self.begin)

    @property
    def names(self) -> list[str]:
        """Names of the indicators, in the order of bins: FEATURE_bin2_0.25 is the second, from 0.25 on.

        Names of overlapping bins include their width in bins: FEATURE_bin2x3_0.25.
        """
        width = f"x{2 * self.overlap + 1}" if self.overlap else ""
        return [f"{self.feature}_bin{j}{width}_{bin_value_text(x)}" for j, x in enumerate(self.begin, 1)]

    @property
    def real_name(self) -> str:
        """Name of the real number if it is kept; converted numbers have a suffix."""
        return self.feature if self.of == "given" else f"{self.feature}_{self.of}"

    @property
    def replaces(self) -> bool:
        """Whether rules no longer have the feature under its own name."""
        return self.feature != WORDS and not (self.keep and self.of == "given")

    def misplaced(self) -> tuple[int, str, str] | None:
        """The first bin with an invalid lower bound, the text of what was found, and of what was expected."""
        if len(self) and self.begin[0] != -np.inf:
            return 0, f"a first bin that begins at {bin_value_text(self.begin[0])}", "-inf"
        rising = self.begin[1:] > self.begin[:-1]
        if rising.all():
            return None
        j = int(np.argmin(rising)) + 1
        found = f"a bin at {bin_value_text(self.begin[j])} after one at {bin_value_text(self.begin[j - 1])}"
        return j, found, "bins in ascending order"


def bin_value_text(value: float | np.floating[npt.NBitBase]) -> str:
    """A bound or value of a bin as the shortest text that reads back as the same float32."""
    return str(np.float32(value)).removesuffix(".0")


def raw_values(of: Of, column: Floats32) -> Floats32:
    """Convert a column of a grammar into the numbers that are put into bins.

    In float32, because the last bits of a power in float64 differ between machines.
    """
    if of == "given":
        return np.ascontiguousarray(column, np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if of == "probability":
            return np.power(10.0, -column.astype(np.float64)).astype(np.float32)
        return (np.rint(np.power(10.0, column.astype(np.float64))) - 1).astype(np.float32)


# ---- application to grammars


class BinTable(NamedTuple):
    """The bins of K features as kernels read them; all arrays are read-only.

    first    int64 [K + 1]  bins of feature k: first[k] ... first[k + 1] - 1, at least one
    begin    float32        smallest value of each bin, ascending within a feature, the first one -inf
    overlap  int64 [K]      neighbouring bins on either side that a value fires too, fewer than bins
    name     int32          id in Symbols.names of each bin's indicator
    """

    first: Ints
    begin: Floats32
    overlap: Ints
    name: Ids


def bin_table(bins: Sequence[FeatureBins], names: Sequence[Ids]) -> BinTable:
    """Pack the bins of features that have at least one; ``names`` has the ids of their indicators."""
    first = offsets_of(map(len, bins))
    return BinTable(
        read_only(first),
        read_only(np.concatenate([np.zeros(0, np.float32), *(one.begin for one in bins)])),
        read_only(np.array([min(one.overlap, len(one) - 1) for one in bins], np.int64)),
        read_only(np.concatenate([np.zeros(0, np.int32), *names])),
    )


class Binned:
    """A grammar source with bins in place of some dense features.

    If some rule of a grammar has a feature, its value is 0 for the rules without it, as everywhere. Grammars
    that do not have the feature get no bins, nor do glue and pass-through rules.
    """

    def __init__(self, source: GrammarSource, bins: Sequence[FeatureBins], symbols: Symbols) -> None:
        self.source, self.bins, self.symbols = source, tuple(bins), symbols
        self.stage = source.stage
        names = symbols.names
        self._id = [names.intern(one.feature.encode()) for one in bins]
        self._real_id = [names.intern(one.real_name.encode()) if one.keep else -1 for one in bins]
        self._indicators = [names.intern_all(name.encode() for name in one.names) for one in bins]
        known = source.feature_names()
        self._known = [
            known is None or i in known or one.feature == WORDS for i, one in zip(self._id, bins, strict=True)
        ]

        # Whether a grammar has a feature does not depend on the sentence.
        used = [k for k, known in enumerate(self._known) if known and len(bins[k])]
        self._table = bin_table([bins[k] for k in used], [self._indicators[k] for k in used])

    def rules_for(self, src: Ids, segment: Mapping[str, str], lattice: Arcs | None = None) -> RuleTable:
        return self.applied(self.source.rules_for(src, segment, *(() if lattice is None else (lattice,))))

    def feature_names(self) -> frozenset[int] | None:
        """Those that rules have after the transform."""
        names = self.source.feature_names()
        return None if names is None else self.transformed(names)

    def transformed(self, names: frozenset[int]) -> frozenset[int]:
        """The names of features after the transform, given those before."""
        used = [k for k, known in enumerate(self._known) if known]
        made = [i for k in used for i in (self._real_id[k], *self._indicators[k]) if i >= 0]
        return frozenset({*names} - self._replaced() | {*made})

    def dense_names(self) -> Sequence[int]:
        names, replaced = self.source.dense_names(), self._replaced()
        kept = [self._real_id[k] for k in range(len(self.bins)) if self._id[k] in names and self.bins[k].keep]
        return [*(name for name in names if name not in replaced), *kept]

    def _replaced(self) -> set[int]:
        pairs = zip(self._id, self._known, self.bins, strict=True)
        return {name for name, known, one in pairs if known and one.feature != WORDS}

    def __repr__(self) -> str:
        return repr(self.source)

    def applied(self, table: RuleTable) -> RuleTable:
        """The same rules, transformed."""
        chosen = [k for k, known in enumerate(self._known) if known]
        if not table.num_rules or not chosen:
            return table
        raw = {
            k: raw_values(self.bins[k].of, column_to_bin(table, self.bins[k].feature, self._id[k]))
            for k in chosen
        }
        replaced = [self._id[k] for k in chosen if self.bins[k].feature != WORDS]
        rules = _without_sparse(table.rules, replaced)
        stay = [place for place, name in enumerate(table.columns) if name not in replaced]
        kept = [k for k in chosen if self.bins[k].keep and self.bins[k].feature != WORDS]
        dense = np.concatenate([rules.dense[:, stay], *(raw[k][:, None] for k in kept)], axis=1)
        columns = (*(table.columns[place] for place in stay), *(self._real_id[k] for k in kept))
        rules = rules._replace(dense=read_only(np.ascontiguousarray(dense, np.float32)))
        return RuleTable(
            self._with_bins(rules, raw, [k for k in chosen if len(self.bins[k])], table), columns
        )

    def _with_bins(
        self, rules: Rules, raw: Mapping[int, Floats32], chosen: Sequence[int], table: RuleTable
    ) -> Rules:
        if not chosen:
            return rules
        num_rules = table.num_rules
        bins = self._table
        value = read_only(np.stack([raw[k] for k in chosen]))
        fired = np.minimum(2 * bins.overlap + 1, np.diff(bins.first))  # by a rule, at most
        room = len(rules.sparse_name) + num_rules * int(fired.sum())
        first, name = np.empty(num_rules + 1, np.int64), np.empty(room, np.int32)
        weight = np.empty(room, np.float32)
        sparse = read_only(rules.first_sparse), read_only(rules.sparse_name), read_only(rules.sparse_value)
        wrong = bins_kernel(value, bins, *sparse, first, name, weight)
        if wrong >= 0:
            k, r = divmod(int(wrong), num_rules)
            raise not_a_number(self.bins[chosen[k]].feature, value[k, r], table, r, self.symbols)
        used = slice(0, first[-1])
        return rules._replace(
            first_sparse=read_only(first),
            sparse_name=read_only(name[used]),
            sparse_value=read_only(weight[used]),
        )


def not_a_number(
    feature: str, value: float, table: RuleTable, rule: int, symbols: Symbols, expected: str = "a number"
) -> HieroError:
    """The error for a value that belongs to no bin."""
    text = repr(Rule(RuleBatch(table.rules, table.columns, symbols), rule))
    return HieroError(f"{feature}: found {value} in the rule {text}, expected {expected}")


def column_to_bin(table: RuleTable, feature: str, name: int) -> Floats32:
    """The column of a feature to be binned: its values in all rules, be it dense, sparse or WORDS."""
    rules = table.rules
    if feature == WORDS:
        return count_per_row(rules.tgt >= 0, rules.first_tgt).astype(np.float32)
    if name in table.columns:
        return rules.dense[:, table.columns.index(name)]
    column = np.zeros(table.num_rules, np.float32)
    place = np.flatnonzero(rules.sparse_name == name)
    column[np.searchsorted(rules.first_sparse, place, side="right") - 1] = rules.sparse_value[place]
    return column


def _without_sparse(rules: Rules, names: Sequence[int]) -> Rules:
    """The same rules without some of their sparse features."""
    gone = np.isin(rules.sparse_name, names)
    if not gone.any():
        return rules
    row = row_of_entry(rules.first_sparse)[~gone]
    return rules._replace(
        first_sparse=read_only(offsets_by_row(row, len(rules.lhs))),
        sparse_name=read_only(rules.sparse_name[~gone]),
        sparse_value=read_only(rules.sparse_value[~gone]),
    )


# ---- checks

_INDICATOR = re.compile(r"(.+)_bin\d+(?:x\d+)?_(?:-inf|-?\d[-+.e\d]*)")  # FeatureBins.names


def check_features(bins: Sequence[FeatureBins], sources: Sequence[GrammarSource], symbols: Symbols) -> None:
    """Refuse bins of features that no grammar has, if the features of all grammars are known."""
    known = [source.feature_names() for source in sources]
    if not known or any(names is None for names in known):
        return
    names = {symbols.names.text(name) for some in known if some is not None for name in some}
    for one in bins:
        if one.feature != WORDS and one.feature not in names:
            hint = did_you_mean(one.feature, [*names, WORDS])
            raise ConfigError(f"features: bins of {one.feature!r}, which no grammar has; {hint}")


def check_weights(
    bins: Sequence[FeatureBins],
    sources: Sequence[GrammarSource],
    symbols: Symbols,
    weights: Mapping[str, float],
    path: str,
) -> None:
    """Refuse weights for the bins of a feature if none of them fits the bins in use.

    They would be silently ignored. Weights learnt with bins need the same bins.
    """
    found: dict[str, str] = {}  # from features with weights of bins to the name of one such weight
    for entry in symbols.names.entries():
        if b"_bin" in entry and (match := _INDICATOR.fullmatch(entry.decode("utf-8", "replace"))):
            if weights.get(match[0], 0.0):
                found.setdefault(match[1], match[0])
    if not found:
        return
    known = [source.feature_names() for source in sources]
    columns = {symbols.names.text(name) for some in known if some is not None for name in some}
    chosen = {one.feature: one for one in bins if len(one)}
    for feature, name in found.items():
        if name in columns or feature not in {*columns, *chosen, WORDS}:
            continue  # a user's feature that only looks like a bin
        one = chosen.get(feature)
        if one is None:
            expected = f"bins of {feature} (features: bins, or --bins)"
            raise ConfigError(f"{path}: found a weight of {name}, expected {expected}")
        if not any(weights.get(indicator, 0.0) for indicator in one.names):
            expected = f"some of the bins in use, such as {one.names[-1]}"
            raise ConfigError(f"{path}: found a weight of {name}, expected {expected}")


def bin_features(bins: Sequence[FeatureBins], symbols: Symbols, index: FeatureIndex) -> list[Ints]:
    """The numbers of the indicator features of each feature's bins, added to ``index`` if missing."""
    groups = []
    for one in bins:
        keys = [(NAME, symbols.names.intern(name.encode()), 0) for name in one.names]
        groups.append(index.intern_all(keys).astype(np.int64))
    return [group for group in groups if len(group)]
