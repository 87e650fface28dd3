"""User-defined rule features: Python functions over batches of rules.

    from hiero import rule_feature

    @rule_feature
    def length_ratio(rules):
        return {"LengthRatio": rules.num_tgt_words / np.maximum(rules.num_src_words, 1)}

    @rule_feature(per_rule=True)
    def question(rule):
        if rule.src[-1] == "?" and rule.tgt[-1] != "?":
            yield "QuestionLost", 1.0

They are selected with ``--features mymodule:length_ratio``. A function returns one of

* a mapping from names to one number per rule (zeros mean that the feature does not fire);
* triples ``(rule, name, value)``, where ``rule`` is the position in the batch;
* with ``per_rule=True``: pairs ``(name, value)``; the function is then called with one ``Rule`` at a time.

The result must depend on nothing but the rule: it is cached, and each rule is passed only once, not once per
sentence.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np

import hiero
from hiero.core.arrays import Floats32, Ids, Ints, count_per_row, offsets_by_row, read_only
from hiero.core.errors import ConfigError, HieroError, did_you_mean
from hiero.core.symbol_kernels import gap_index, gap_label
from hiero.core.symbols import Symbols
from hiero.features.index import (
    FeatureIndex,
    RuleFeature,
)
from hiero.features.index_kernels import intern_rules_kernel, intern_rules_room_kernel
from hiero.features.rows import FeatureRows, concat_feature_rows, merge_feature_rows, pick_feature_rows
from hiero.grammar.rules import Grammar, Rules, RuleTable, take_rules

LIBRARIES = tuple(str(Path(str(module.__file__)).parent) + os.sep for module in (hiero, np))


@contextlib.contextmanager
def user_code(what: str) -> Iterator[None]:
    """Run user code; any exception becomes a ConfigError with ``what`` and the place in one line."""
    try:
        yield
    except HieroError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = (frame for frame in reversed(frames) if not frame.filename.startswith(LIBRARIES))
        frame = next(theirs, frames[-1])
        place = "" if frame.filename.startswith("<") else f"{frame.filename}:{frame.lineno}: "
        raise ConfigError(
            f"{what}: {place}{type(error).__name__}: {error}"
            " (set HIERO_TRACEBACK=1 in the environment for the traceback)"
        ) from error


class Rule:
    """One rule of a batch; words as text, gaps as ``[X,1]``."""

    __slots__ = ("batch", "index")

    def __init__(self, batch: RuleBatch, index: int) -> None:
        self.batch, self.index = batch, index

    @property
    def lhs(self) -> str:
        return self.batch.lhs[self.index]

    @property
    def src(self) -> tuple[str, ...]:
        return self.batch.src[self.index]

    @property
    def tgt(self) -> tuple[str, ...]:
        return self.batch.tgt[self.index]

    @property
    def links(self) -> list[tuple[int, int]]:
        return self.batch.links[self.index]

    def __getitem__(self, name: str) -> float:
        """The value of a dense feature of the grammar."""
        return float(self.batch.dense(name)[self.index])

    def __repr__(self) -> str:
        return f"[{self.lhs}] ||| {' '.join(self.src)} ||| {' '.join(self.tgt)}"


class RuleBatch(Sequence[Rule]):
    """Rules as arrays (``rules``) and as text, for the computation of features."""

    def __init__(self, rules: Rules, columns: Sequence[int], symbols: Symbols) -> None:
        self.rules, self.columns, self.symbols = rules, columns, symbols

    def __len__(self) -> int:
        return len(self.rules.lhs)

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> list[Rule]: ...
    def __getitem__(self, index: int | slice) -> Rule | list[Rule]:
        if isinstance(index, slice):
            return [Rule(self, i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return Rule(self, index % len(self))

    @cached_property
    def lhs(self) -> list[str]:
        return [self.symbols.labels.text(label) for label in self.rules.lhs.tolist()]

    @cached_property
    def src(self) -> list[tuple[str, ...]]:
        """The source sides."""
        return self._sides(self.rules.src, self.rules.first_src)

    @cached_property
    def tgt(self) -> list[tuple[str, ...]]:
        """The target sides."""
        return self._sides(self.rules.tgt, self.rules.first_tgt)

    @cached_property
    def links(self) -> list[list[tuple[int, int]]]:
        """The word alignments, as positions in ``src`` and ``tgt``."""
        pairs = [(s, t) for s, t in self.rules.link.tolist()]
        return [pairs[start:end] for start, end in pairwise(self.rules.first_link.tolist())]

    @cached_property
    def num_src_words(self) -> Ints:
        """Words on each source side, gaps not counted."""
        return count_per_row(self.rules.src >= 0, self.rules.first_src)

    @cached_property
    def num_tgt_words(self) -> Ints:
        """Words on each target side, gaps not counted."""
        return count_per_row(self.rules.tgt >= 0, self.rules.first_tgt)

    @property
    def dense_names(self) -> list[str]:
        """The names of the dense features of the grammar."""
        return [self.symbols.names.text(column) for column in self.columns]

    def dense(self, name: str) -> Floats32:
        """The values of a dense feature for all rules."""
        names = self.dense_names
        if name not in names:
            raise ConfigError(f"the grammar has no dense feature {name!r}; {did_you_mean(name, names)}")
        return self.rules.dense[:, names.index(name)]

    def _sides(self, symbols: Ids, first: Ints) -> list[tuple[str, ...]]:
        texts = {symbol: self._text(symbol) for symbol in set(symbols.tolist())}
        line = [texts[symbol] for symbol in symbols.tolist()]
        return [tuple(line[start:end]) for start, end in pairwise(first.tolist())]

    def _text(self, symbol: int) -> str:
        if symbol >= 0:
            return self.symbols.words.text(symbol)
        return f"[{self.symbols.labels.text(gap_label(symbol))},{gap_index(symbol)}]"


class UserRuleFeature:
    """A Python function as a ``RuleFeature``; calling it calls the function."""

    def __init__(self, function: Callable[..., Any], name: str, per_rule: bool) -> None:
        self.function, self.name, self.per_rule = function, name, per_rule
        functools.update_wrapper(self, function, updated=())

    def __call__(self, rules: Any) -> Any:
        return self.function(rules)

    def __repr__(self) -> str:
        return f"<rule feature {self.name!r}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By the name of the function, which in its module is that of the feature if it was decorated."""
        name = vars(self).get("__qualname__", "")
        if vars(sys.modules.get(self.__module__, object)).get(name) is self:
            return str(name)
        return UserRuleFeature, (self.function, self.name, self.per_rule)

    def rows(self, batch: RuleBatch) -> FeatureRows:
        """One row per rule; ids in Symbols.names. Values of a name that is given twice for a rule add up."""
        with user_code(f"feature {self.name!r}"):
            return self._rows(batch)

    def _rows(self, batch: RuleBatch) -> FeatureRows:
        triples = list(self._triples(batch))
        for rule, name, value in triples:
            if not isinstance(name, str) or not name or set(name) & set(" \t\r\n"):
                expected = "the name of a feature, without spaces"
                raise ConfigError(f"feature {self.name!r} returned {name!r}, expected {expected}")
            if not 0 <= rule < len(batch):
                raise ConfigError(
                    f"feature {self.name!r} returned rule {rule}, expected 0 to {len(batch) - 1}"
                )
            if not np.isfinite(value):
                rule_text = repr(batch[rule])
                raise ConfigError(f"feature {self.name!r} returned {name}={value} for the rule {rule_text}")
        names = self._intern(batch.symbols, triples)
        merged: dict[tuple[int, int], float] = {}
        for rule, name, value in triples:
            at = (int(rule), names[name])
            merged[at] = merged.get(at, 0.0) + float(value)
        fired = [(rule, name, value) for (rule, name), value in sorted(merged.items()) if value != 0]
        first = offsets_by_row(np.array([rule for rule, _, _ in fired], np.int64), len(batch))
        ids = np.array([name for _, name, _ in fired], np.int32)
        return FeatureRows(first, ids, np.array([value for _, _, value in fired], np.float64))

    def _intern(self, symbols: Symbols, triples: list[tuple[int, str, float]]) -> dict[str, int]:
        fired = dict.fromkeys(name for _, name, value in triples if value != 0)
        names = {name: symbols.names.intern(name.encode()) for name in fired}
        # Names that never fire get no id; their zeros are dropped.
        return {**{name: -1 for _, name, _ in triples}, **names}

    def _triples(self, batch: RuleBatch) -> Iterator[tuple[int, str, float]]:
        if self.per_rule:
            for index, rule in enumerate(batch):
                for name, value in self._checked(self.function(rule), 2, "pairs (name, value)"):
                    yield index, name, value
            return
        answer = self.function(batch)
        if not isinstance(answer, Mapping):
            yield from self._checked(answer, 3, "a mapping or triples (rule, name, value)")
            return
        for name, column in answer.items():
            values = np.asarray(column, np.float64)
            if values.shape != (len(batch),):
                found = f"an array of shape {values.shape} for {name!r}"
                raise ConfigError(
                    f"feature {self.name!r} returned {found}, expected one value per rule: ({len(batch)},)"
                )
            for index in np.flatnonzero(values).tolist():
                yield index, name, values[index]

    def _checked(self, answer: Any, length: int, expected: str) -> Iterator[Any]:
        for item in () if answer is None else answer:
            if not isinstance(item, tuple) or len(item) != length:
                raise ConfigError(f"feature {self.name!r} returned {item!r}, expected {expected}")
            yield item


@overload
def rule_feature(function: Callable[..., Any], /) -> UserRuleFeature: ...
@overload
def rule_feature(
    name: str | None = None, /, *, per_rule: bool = False
) -> Callable[[Callable[..., Any]], UserRuleFeature]: ...
def rule_feature(
    function: Callable[..., Any] | str | None = None, /, *, per_rule: bool = False
) -> UserRuleFeature | Callable[[Callable[..., Any]], UserRuleFeature]:
    """Make a function a feature: ``@rule_feature``, ``@rule_feature("name")`` or with ``per_rule=True``."""
    if callable(function):
        return UserRuleFeature(function, function.__name__, per_rule)
    return lambda decorated: UserRuleFeature(decorated, function or decorated.__name__, per_rule)


MAX_RULES = 1 << 18  # the cache is cleared when it has more


class RuleCache:
    """Values of rule features by the whole content of rules; safe to share between threads."""

    def __init__(self, features: Sequence[RuleFeature], symbols: Symbols) -> None:
        self.features, self.symbols = features, symbols
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._index = FeatureIndex()
        self._rows = FeatureRows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float64))

    def rows(self, table: RuleTable | Grammar, chosen: Ints) -> FeatureRows:
        """The features of the chosen rules; ids in Symbols.names."""
        with self._lock:
            if len(self._index) > MAX_RULES:
                self._clear()
            num_known = len(self._index)
            contents = self._contents(table, chosen)
            # Numbers are consecutive, so new rows are appended to the old ones.
            new, place = np.unique(contents, return_index=True)
            fresh = chosen[place[new >= num_known]]
            if len(fresh):
                batch = RuleBatch(take_rules(table.rules, fresh), table.columns, self.symbols)
                answers = [feature.rows(batch) for feature in self.features]
                self._rows = concat_feature_rows([self._rows, merge_feature_rows(answers)])
            return pick_feature_rows(self._rows, contents)

    def _contents(self, table: RuleTable | Grammar, chosen: Ints) -> Ids:
        """Number the rules by content: equal rules have equal numbers."""
        rules = Rules._make(read_only(array) for array in table.rules)
        columns = read_only(np.array(table.columns, np.int32))
        room = np.zeros(1, np.int64)
        intern_rules_room_kernel(rules, chosen, room)
        contents = np.empty(len(chosen), np.int32)
        writable = self._index.reserve(len(chosen), int(room[0]))
        dense, sparse = rules.dense.view(np.int32), rules.sparse_value.view(np.int32)
        pool = np.empty(room[0], np.int32)
        intern_rules_kernel(rules, chosen, columns, dense, sparse, writable, pool, contents)
        return contents
