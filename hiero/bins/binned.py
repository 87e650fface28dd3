# mypy: allow-untyped-calls
"""Apply bins to the dense features of the rules that a grammar returns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hiero.bins.bins import WORDS, FeatureBins, bin_table, raw_values
from hiero.bins.kernels import bins_kernel
from hiero.core.errors import ConfigError, HieroError, did_you_mean
from hiero.core.symbols import Symbols, read_only
from hiero.features.rulecache import row_of_entry
from hiero.features.user import Rule, RuleBatch
from hiero.grammar.rules import GrammarSource, Rules, RuleTable

Column = npt.NDArray[np.float32]

_INDICATOR = re.compile(r"(.+)_bin\d+(?:x\d+)?_(?:-inf|-?\d[-+.e\d]*)")  # FeatureBins.names


class Binned:
    """A grammar source with bins in place of some dense features.

    If some rule of a grammar has a feature, its value is 0 for the rules without it, as everywhere. Grammars
    that do not have the feature get no bins, nor do glue and pass-through rules.
    """

    def __init__(self, source: GrammarSource, bins: Sequence[FeatureBins], symbols: Symbols) -> None:
        self.source, self.bins, self.symbols = source, tuple(bins), symbols
        self.stage = getattr(source, "stage", "load")  # of decoding, in its statistics
        names = symbols.names
        self._id = [names.intern(one.feature.encode()) for one in bins]
        self._real_id = [names.intern(one.real_name.encode()) if one.keep else -1 for one in bins]
        self._indicators = [names.intern_all(name.encode() for name in one.names) for one in bins]
        known = features_of(source)
        self._known = [
            known is None or i in known or one.feature == WORDS for i, one in zip(self._id, bins, strict=True)
        ]

        # Whether a grammar has a feature does not depend on the sentence.
        used = [k for k, known in enumerate(self._known) if known and len(bins[k])]
        self._table = bin_table([bins[k] for k in used], [self._indicators[k] for k in used])

    def rules_for(self, src: npt.NDArray[np.int32], segment: Mapping[str, str]) -> RuleTable:
        return self.applied(self.source.rules_for(src, segment))

    def applied(self, table: RuleTable) -> RuleTable:
        """The same rules, transformed."""
        chosen = [k for k, known in enumerate(self._known) if known]
        if not table.num_rules or not chosen:
            return table
        raw = {
            k: raw_values(self.bins[k].of, column_of(table, self.bins[k].feature, self._id[k]))
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
        self, rules: Rules, raw: Mapping[int, Column], chosen: Sequence[int], table: RuleTable
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
        sparse = (read_only(array) for array in (rules.first_sparse, rules.sparse_name, rules.sparse_value))
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


def features_of(source: GrammarSource) -> frozenset[int] | None:
    """The features that a source may return, by id in Symbols.names; None if unknown."""
    known = getattr(source, "feature_names", None)
    return None if known is None else known()


def column_of(table: RuleTable, feature: str, name: int) -> Column:
    """The values of a feature, dense or not, for all rules."""
    rules = table.rules
    if feature == WORDS:
        before = np.zeros(len(rules.tgt) + 1, np.int64)
        np.cumsum(rules.tgt >= 0, out=before[1:])
        return np.diff(before[rules.first_tgt]).astype(np.float32)
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
    first = np.zeros(len(rules.lhs) + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=len(rules.lhs)), out=first[1:])
    return rules._replace(
        first_sparse=read_only(first),
        sparse_name=read_only(rules.sparse_name[~gone]),
        sparse_value=read_only(rules.sparse_value[~gone]),
    )


def check_features(bins: Sequence[FeatureBins], sources: Sequence[GrammarSource], symbols: Symbols) -> None:
    """Refuse bins of features that no grammar has, if the features of all grammars are known."""
    known = [features_of(source) for source in sources]
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
    known = [features_of(source) for source in sources]
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
