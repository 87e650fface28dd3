"""User-defined features of rule applications: Python functions over all applications to one sentence.

    from hiero import edge_feature

    @edge_feature
    def left_context(edges):
        return edges.sparse("Left_{}_{}", edges.left, edges.first_tgt)

    @edge_feature
    def length(edges):
        return {"RuleLength": edges.length, "LongGap": edges.gap_length.max(axis=1) > 5}

    @edge_feature(per_edge=True)
    def after_comma(edge):
        if edge.left == ",":
            yield f"AfterComma_{edge.rule.lhs}", 1.0

They are selected with ``--features mymodule:left_context``. A function returns one of these, or several, in a
list or by ``yield``:

* a mapping from names to one number per application (zeros mean that the feature does not fire);
* the result of ``edges.sparse``: named features, one name for each combination of columns that occurs;
* triples ``(application, name, value)``, where ``application`` is the position in the batch;

and with ``per_edge=True`` pairs ``(name, value)``; the function is then called with one ``Application`` at a
time, which is slower.

Values must depend on nothing but the rule, the span, the gaps and the sentence, not on the other applications
of a batch. The function is called once a sentence before the search, with all applications; the values of
those in derivations are looked up.
"""

from __future__ import annotations

import functools
import itertools
import reprlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Flags, Floats, Ids, Ints, offsets_by_row, read_only
from hiero.core.errors import ConfigError
from hiero.core.symbols import Symbols
from hiero.features.index import EdgeBatch
from hiero.features.rows import FeatureRows, pick_feature_rows
from hiero.features.user import Rule, RuleBatch, user_code
from hiero.grammar.rules import Rules, take_rules

NONE = "<none>"  # the text of a column where there is no word
BEGIN, END = "<s>", "</s>"  # beside the first and the last word of a sentence
LARGEST_CODE = 2**62


class TextColumn:
    """A text for each application, as numbers of distinct texts; ``==`` and ``isin`` are element-wise.

    code   int64 [P]
    texts  the distinct texts
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, code: Ints, texts: Sequence[str]) -> None:
        self.code, self.texts = code, texts

    def __len__(self) -> int:
        return len(self.code)

    def __getitem__(self, index: int) -> str:
        return self.texts[int(self.code[index])]

    def __iter__(self) -> Iterator[str]:
        return (self.texts[code] for code in self.code.tolist())

    def __eq__(self, other: object) -> Flags:  # type: ignore[override]
        if isinstance(other, str):
            return self.isin([other])
        if isinstance(other, TextColumn) and len(other) == len(self):
            ids: dict[str, int] = {}
            mine, theirs = (
                np.array([ids.setdefault(text, len(ids)) for text in column.texts], np.int64)[column.code]
                for column in (self, other)
            )
            return np.asarray(mine == theirs)
        raise TypeError(f"compared with a value of type {type(other).__name__}, expected a str or a column")

    def __ne__(self, other: object) -> Flags:  # type: ignore[override]
        return ~(self == other)

    def isin(self, texts: Iterable[str]) -> Flags:
        """Where the text is one of several."""
        if isinstance(texts, str):
            raise TypeError("isin: found one str, expected several")
        wanted = set(texts)
        found: Flags = np.array([text in wanted for text in self.texts], np.bool_)[self.code]
        return found


class SparseFeatures(NamedTuple):
    """Named features: ``value[i]`` of ``names[name[i]]`` for application ``row[i]``."""

    names: list[str]
    row: Ints
    name: Ints
    value: Floats


class Application:
    """One rule application of a batch: a rule over the source words ``start ... end - 1``."""

    __slots__ = ("batch", "index")

    def __init__(self, batch: Applications, index: int) -> None:
        self.batch, self.index = batch, index

    @property
    def rule(self) -> Rule:
        return self.batch.rules[int(self.batch.rule[self.index])]

    @property
    def sentence(self) -> tuple[str, ...]:
        return self.batch.sentence

    @property
    def start(self) -> int:
        return int(self.batch.start[self.index])

    @property
    def end(self) -> int:
        return int(self.batch.end[self.index])

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The start and the end of the span of each gap, in source order."""
        one, two = self.batch.gap[self.index].tolist()
        return [(start, end) for start, end in (one, two) if start >= 0]

    @property
    def left(self) -> str:
        """The word before the span."""
        return self.sentence[self.start - 1] if self.start > 0 else BEGIN

    @property
    def right(self) -> str:
        """The word after the span."""
        return self.sentence[self.end] if self.end < len(self.sentence) else END

    def __repr__(self) -> str:
        return f"{self.rule!r} at words {self.start} to {self.end}"


class Applications(Sequence[Application]):
    """P applications of rules to spans of one sentence, as arrays and as text.

    sentence  the source words
    rules     the rules that are applied, a ``RuleBatch`` without dense features
    rule      int64 [P]        position in ``rules``
    start     int32 [P]        the span is that of the words start ... end - 1
    end       int32 [P]
    gap       int32 [P, 2, 2]  start and end of the span of each gap; -1 where the rule has no such gap
    """

    def __init__(self, batch: EdgeBatch, rules: Rules, symbols: Symbols) -> None:
        used, place = np.unique(batch.rule, return_inverse=True)
        self.rules = RuleBatch(take_rules(rules, used.astype(np.int64)), (), symbols)
        self.rule: Ints = read_only(place.astype(np.int64).reshape(-1))
        self.start, self.end = read_only(batch.start), read_only(batch.end)
        self.gap: Ids = read_only(batch.split.reshape(-1, 2, 2))
        self.sentence = tuple(map(symbols.words.text, batch.src.tolist()))
        self._symbols = symbols

    def __len__(self) -> int:
        return len(self.rule)

    @overload
    def __getitem__(self, index: int) -> Application: ...
    @overload
    def __getitem__(self, index: slice) -> list[Application]: ...
    def __getitem__(self, index: int | slice) -> Application | list[Application]:
        if isinstance(index, slice):
            return [Application(self, i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return Application(self, index % len(self))

    @cached_property
    def length(self) -> Ids:
        """The number of words in each span."""
        return read_only(self.end - self.start)

    @cached_property
    def gap_length(self) -> Ids:
        """The number of words in each gap, int32 [P, 2]; 0 where there is none."""
        return read_only(self.gap[:, :, 1] - self.gap[:, :, 0])

    @cached_property
    def num_gaps(self) -> Ints:
        return read_only((self.gap[:, :, 0] >= 0).sum(axis=1))

    @cached_property
    def left(self) -> TextColumn:
        """The word before each span; ``<s>`` at the beginning of the sentence."""
        return self.take(self.sentence, self.start - 1, outside=BEGIN)

    @cached_property
    def right(self) -> TextColumn:
        """The word after each span; ``</s>`` at the end of the sentence."""
        return self.take(self.sentence, self.end, outside=END)

    @cached_property
    def lhs(self) -> TextColumn:
        """The category of each rule."""
        return self.of_rules(self.rules.lhs)

    @cached_property
    def first_src(self) -> TextColumn:
        """The first symbol of the source side: a word, or a gap such as ``[X,1]``."""
        return self._symbol(self.rules.rules.src, self.rules.rules.first_src, 0)

    @cached_property
    def last_src(self) -> TextColumn:
        return self._symbol(self.rules.rules.src, self.rules.rules.first_src, -1)

    @cached_property
    def first_tgt(self) -> TextColumn:
        """The first symbol of the target side: a word, a gap, or ``<none>`` if the side is empty."""
        return self._symbol(self.rules.rules.tgt, self.rules.rules.first_tgt, 0)

    @cached_property
    def last_tgt(self) -> TextColumn:
        return self._symbol(self.rules.rules.tgt, self.rules.rules.first_tgt, -1)

    def take(self, values: Sequence[str], index: npt.ArrayLike, outside: str = NONE) -> TextColumn:
        """The text ``values[i]`` for each application, such as a tag of the word ``index[i]``.

        ``outside`` stands where an index is negative or too large.
        """
        at = np.asarray(index)
        if at.shape != (len(self),) or at.dtype.kind not in "iu":
            raise ValueError(
                f"take: found indices of shape {at.shape} and dtype {at.dtype}, expected integers of shape"
                f" ({len(self)},)"
            )
        ids: dict[str, int] = {}
        codes = [ids.setdefault(text, len(ids)) for text in (*values, outside)]
        wrong = next((text for text in ids if not isinstance(text, str)), None)
        if wrong is not None:
            raise TypeError(f"take: found a value of type {type(wrong).__name__}, expected str")
        place = np.where((at >= 0) & (at < len(values)), at, len(values))
        return TextColumn(np.array(codes, np.int64)[place], list(ids))

    def of_rules(self, values: Sequence[str]) -> TextColumn:
        """A text for each of ``rules``, for the applications of the rule."""
        if len(values) != len(self.rules):
            raise ValueError(f"of_rules: found {len(values)} values, expected {len(self.rules)}")
        return self.take(values, self.rule)

    def sparse(
        self, template: str, *columns: TextColumn | npt.NDArray[Any], values: npt.ArrayLike = 1.0
    ) -> SparseFeatures:
        """Features named after columns: ``template`` has a ``{}`` for each of them.

        columns  texts, or arrays of integers
        values   one number, or one for each application; a feature does not fire where it is 0
        """
        parts = template.split("{}")
        if len(parts) != len(columns) + 1:
            found = f"{len(parts) - 1} places {{}} in {template!r}"
            raise ValueError(f"sparse: found {found}, expected one for each of {len(columns)} columns")
        value = np.broadcast_to(self._numbers(template, values, scalar=True), (len(self),))
        row = np.flatnonzero(value)
        code, combined = np.zeros(len(row), np.int64), 1
        chosen: list[tuple[Ints, Sequence[str]]] = []
        for column in columns:
            own, texts = self._coded(column)
            own = own[row]
            chosen.append((own, texts))
            if combined * (len(texts) + 1) > LARGEST_CODE:
                code = np.unique(code, return_inverse=True)[1].reshape(-1)
                combined = len(row)
            code, combined = code * len(texts) + own, combined * len(texts)
        _, place, name = np.unique(code, return_index=True, return_inverse=True)
        names = [
            "".join(itertools.chain.from_iterable(zip(parts, (*of_one, ""), strict=True)))
            for of_one in zip(*([texts[i] for i in own[place]] for own, texts in chosen), strict=True)
        ]
        if not columns:
            names = [template] * len(place)
        return SparseFeatures(names, row, name.reshape(-1), value[row])

    def _coded(self, column: object) -> tuple[Ints, Sequence[str]]:
        if isinstance(column, TextColumn):
            code, texts = column.code, column.texts
        elif isinstance(column, np.ndarray) and column.dtype.kind in "biu":
            distinct, code = np.unique(column, return_inverse=True)
            code, texts = code.reshape(column.shape), [str(int(number)) for number in distinct]
        else:
            dtype = f" of {column.dtype}" if isinstance(column, np.ndarray) else ""
            found = f"a column of type {type(column).__name__}{dtype}"
            raise TypeError(f"sparse: found {found}, expected texts (of take or of_rules) or integers")
        if code.shape != (len(self),):
            raise ValueError(f"sparse: found a column of shape {code.shape}, expected ({len(self)},)")
        return code, texts

    def _numbers(self, name: str, values: npt.ArrayLike, *, scalar: bool = False) -> Floats:
        """Values of one feature, checked."""
        try:
            array = np.asarray(values)
        except ValueError:  # lists of several lengths
            array = np.asarray(values, object)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"found values of dtype {array.dtype} for {name!r}, expected numbers")
        if array.shape != (len(self),) and not (scalar and array.shape == ()):
            raise ValueError(
                f"found an array of shape {array.shape} for {name!r},"
                f" expected one value per application: ({len(self)},)"
            )
        return array.astype(np.float64)

    def _symbol(self, symbols: Ids, first: Ints, place: int) -> TextColumn:
        """The first (0) or last (-1) symbol of a side of each rule."""
        is_empty = first[1:] == first[:-1]
        at = first[:-1] if place == 0 else first[1:] - 1
        found = np.append(symbols, np.int32(0))[np.where(is_empty, len(symbols), at)]
        distinct, code = np.unique(found, return_inverse=True)
        texts = [*map(self.rules._text, distinct.tolist()), NONE]
        code = np.where(is_empty, len(distinct), code.reshape(-1))
        return TextColumn(code[self.rule], texts)


class EdgeFunction:
    """A Python function as a feature of rule applications; calling it calls the function."""

    def __init__(self, function: Callable[..., Any], name: str, per_edge: bool) -> None:
        self.function, self.name, self.per_edge = function, name, per_edge
        functools.update_wrapper(self, function, updated=())

    def __call__(self, edges: Any) -> Any:
        return self.function(edges)

    def __repr__(self) -> str:
        return f"<edge feature {self.name!r}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By the name of the function, which in its module is that of the feature if it was decorated."""
        name = vars(self).get("__qualname__", "")
        if vars(sys.modules.get(self.__module__, object)).get(name) is self:
            return str(name)
        return EdgeFunction, (self.function, self.name, self.per_edge)

    @property
    def place(self) -> str:
        """``path:line`` of the function, for messages."""
        code = getattr(self.function, "__code__", None)
        return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}: "


class UserEdgeFeature:
    """An ``EdgeFunction`` for the symbols of a model: an ``EdgeFeature``."""

    def __init__(self, source: EdgeFunction, symbols: Symbols) -> None:
        self.source, self.symbols, self.name = source, symbols, source.name
        self._local = threading.local()  # the last sentence of each thread

    def __repr__(self) -> str:
        return repr(self.source)

    def names(self) -> Sequence[str]:
        """None: all depend on the input."""
        return ()

    def rows(self, batch: EdgeBatch, rules: Rules) -> FeatureRows:
        """One row per application; ids in Symbols.names."""
        if not len(batch.rule):
            return FeatureRows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))
        known: _Sentence | None = getattr(self._local, "known", None)
        if known is not None and known.is_of(batch, rules):
            place = known.find(batch)
            if place.min() >= 0:
                return pick_feature_rows(known.rows, place)
        else:
            known = None
        with user_code(f"feature {self.name!r}"):
            rows = self._rows(Applications(batch, rules, self.symbols))
        if known is None or len(known.batch.rule) < len(batch.rule):
            self._local.known = _Sentence(batch, rules, rows)
        return rows

    def _rows(self, edges: Applications) -> FeatureRows:
        parts = list(self._parts(edges))
        texts = sorted({name for part in parts for name in part.names})
        # By name, not by id, which depends on threads: sums are then the same in every run.
        number = {name: i for i, name in enumerate(texts)}
        row = np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)])
        value = np.concatenate([np.zeros(0), *(part.value for part in parts)])
        name = np.concatenate(
            [
                np.zeros(0, np.int64),
                *(np.array([number[name] for name in part.names], np.int64)[part.name] for part in parts),
            ]
        )
        order = np.lexsort((name, row))
        row, name, value = row[order], name[order], value[order]
        if len(row):
            starts = np.flatnonzero(np.r_[True, (np.diff(row) != 0) | (np.diff(name) != 0)])
            value = np.add.reduceat(value, starts)
            row, name, value = row[starts][value != 0], name[starts][value != 0], value[value != 0]
        fired = np.unique(name)
        ids = np.full(len(texts), -1, np.int32)
        ids[fired] = self.symbols.names.intern_all(texts[i].encode() for i in fired.tolist())
        return FeatureRows(offsets_by_row(row, len(edges)), ids[name], value)

    def _parts(self, edges: Applications) -> Iterator[SparseFeatures]:
        answers = self._answers(edges)
        names: list[str] = []
        triples: list[tuple[int, int, float]] = []
        for answer in answers:
            if isinstance(answer, Mapping):
                for name, column in answer.items():
                    try:
                        values = edges._numbers(name, column)
                    except ValueError as error:
                        raise self._wrong(str(error).removeprefix("found "), "") from None
                    row = np.flatnonzero(values)
                    yield self._checked(
                        edges, SparseFeatures([name], row, np.zeros(len(row), np.int64), values[row])
                    )
            elif isinstance(answer, SparseFeatures):
                yield self._checked(edges, answer)
            else:
                if not isinstance(answer, tuple) or len(answer) != 3:
                    expected = "a mapping, edges.sparse(...) or triples (application, name, value)"
                    raise self._wrong(reprlib.repr(answer), expected)
                row_number, name, value = answer
                if not isinstance(row_number, int | np.integer) or not 0 <= row_number < len(edges):
                    raise self._wrong(f"application {row_number!r}", f"0 to {len(edges) - 1}")
                triples.append((int(row_number), len(names), self._number(name, value)))
                names.append(name)
        if triples:
            row_of, name_of, value_of = zip(*triples, strict=True)
            columns = np.array(row_of, np.int64), np.array(name_of, np.int64), np.array(value_of, np.float64)
            yield self._checked(edges, SparseFeatures(names, *columns))

    def _answers(self, edges: Applications) -> Iterable[Any]:
        if not self.source.per_edge:
            answer = self.source.function(edges)
            if answer is None:
                return ()
            if isinstance(answer, Mapping | SparseFeatures):
                return (answer,)
            if isinstance(answer, str) or not isinstance(answer, Iterable):
                expected = "a mapping, edges.sparse(...) or triples (application, name, value)"
                raise self._wrong(reprlib.repr(answer), expected)
            return answer
        return self._pairs(edges)

    def _pairs(self, edges: Applications) -> Iterator[tuple[int, Any, Any]]:
        for index, edge in enumerate(edges):
            for item in self.source.function(edge) or ():
                if not isinstance(item, tuple) or len(item) != 2:
                    raise self._wrong(reprlib.repr(item), "pairs (name, value)")
                yield index, *item

    def _number(self, name: object, value: object) -> float:
        if isinstance(value, bool | int | float | np.number | np.bool_) and not isinstance(
            value, np.complexfloating
        ):
            return float(value)
        raise self._wrong(f"{reprlib.repr(value)} for {name!r}", "a number")

    def _checked(self, edges: Applications, part: SparseFeatures) -> SparseFeatures:
        for name in part.names:
            if not isinstance(name, str) or not name or name.split() != [name]:
                raise self._wrong(repr(name), "the name of a feature, without spaces")
        if not np.isfinite(part.value).all():
            i = int(np.flatnonzero(~np.isfinite(part.value))[0])
            found = (
                f"{part.names[int(part.name[i])]}={part.value[i]} for the rule {edges[int(part.row[i])]!r}"
            )
            raise self._wrong(found, "a finite number")
        return part

    def _wrong(self, found: str, expected: str) -> ConfigError:
        hint = f", expected {expected}" if expected else ""
        return ConfigError(f"{self.source.place}feature {self.name!r} returned {found}{hint}")


class _Sentence:
    """The features of the applications of one sentence, to look up those of some of them."""

    def __init__(self, batch: EdgeBatch, rules: Rules, rows: FeatureRows) -> None:
        self.batch, self.rules, self.rows = batch, rules, rows
        self._sorted: tuple[npt.NDArray[np.uint64], Ints, npt.NDArray[np.int32]] | None = None

    def is_of(self, batch: EdgeBatch, rules: Rules) -> bool:
        """Whether applications are of the same sentence and rules."""
        # The rules of a sentence are arrays of its own, which this object keeps.
        return self.rules.tgt is rules.tgt and bool(np.array_equal(self.batch.src, batch.src))

    def find(self, batch: EdgeBatch) -> Ids:
        """The rows of applications, -1 for those that are not among these."""
        if self._sorted is None:
            key = _keys(self.batch)
            order = np.argsort(_hashes(key), kind="stable")
            self._sorted = _hashes(key)[order], order, key
        hashes, order, key = self._sorted
        wanted = _keys(batch)
        place = order[np.minimum(np.searchsorted(hashes, _hashes(wanted)), len(order) - 1)]
        # Two applications with one hash: the second counts as not found.
        return np.where((key[place] == wanted).all(axis=1), place, -1).astype(np.int32)


def _keys(batch: EdgeBatch) -> npt.NDArray[np.int32]:
    return np.column_stack([batch.rule, batch.start, batch.end, batch.split]).astype(np.int32)


def _hashes(keys: npt.NDArray[np.int32]) -> npt.NDArray[np.uint64]:
    hashes = np.zeros(len(keys), np.uint64)
    for column in keys.T:
        hashes = (hashes + column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes


@overload
def edge_feature(function: Callable[..., Any], /) -> EdgeFunction: ...
@overload
def edge_feature(
    name: str | None = None, /, *, per_edge: bool = False
) -> Callable[[Callable[..., Any]], EdgeFunction]: ...
def edge_feature(
    function: Callable[..., Any] | str | None = None, /, *, per_edge: bool = False
) -> EdgeFunction | Callable[[Callable[..., Any]], EdgeFunction]:
    """Make a function a feature of rule applications, which sees spans and the source sentence.

    ``@edge_feature``, ``@edge_feature("name")``, or with ``per_edge=True`` for a function of one application.
    """
    if callable(function):
        return EdgeFunction(function, function.__name__, per_edge)
    return lambda decorated: EdgeFunction(decorated, function or decorated.__name__, per_edge)
