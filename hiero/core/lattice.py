"""Lattices: several readings of an input sentence as arcs between nodes, and the formats they are read from.

PLF, as Moses and cdec read it: a list of nodes, each a list of the arcs that leave it, an arc being a word,
its costs, and the distance to the node that it leads to; all after the last node is the end::

    ((('ein',-0.5,1),('eine',-0.9,1),),(('haus',0,1),),)

Without a distance an arc leads to the next node, as in a confusion network. ``*EPS*`` is an arc without a
word. JSON names nodes and features::

    {"arcs": [{"from": 0, "to": 1, "word": "ein", "cost": -0.5}, {"from": 0, "to": 1, "word": "eine"}, ...]}
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import msgspec
import numpy as np

from hiero.core.arrays import Floats, Ids, Ints, offsets_by_row, read_only
from hiero.core.errors import FormatError, HieroError, show
from hiero.core.text import split_words

EPSILON = "*EPS*"  # the word of an arc without a word
COST = "LatticeCost"  # the feature of the first cost of an arc; all others begin with it
MOST_NODES, MOST_ARCS = 4096, 100_000
LARGEST = 1e30  # of a cost


class Arc(NamedTuple):
    """A word that leads from a node to a later one."""

    start: int
    end: int
    word: str


class Arcs(NamedTuple):
    """A arcs with a word each between N nodes as arrays, in the order of the nodes that they leave.

    first   int64 [N + 1]    arcs that leave node v: first[v] ... first[v + 1] - 1
    start   int32 [A]
    end     int32 [A]        a later node than ``start``
    length  int32 [A]        arcs of the lattice that it stands for, more than one with arcs without words
    value   float64 [A, F]   of the features of arcs
    """

    first: Ints
    start: Ids
    end: Ids
    length: Ids
    value: Floats


class WordArcs(NamedTuple):
    """A lattice without arcs that have no word: each is joined to the word after it, or to the last one.

    arcs   the arrays
    words  of each arc
    paths  the arcs of the lattice that each stands for
    """

    arcs: Arcs
    words: tuple[str, ...]
    paths: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Lattice:
    """Readings of a sentence: every path from node 0 to the last node.

    arcs   in the order of the nodes that they leave; every node is on a path
    names  of the features of arcs
    values float64 [arcs, names]

    >>> lattice = Lattice.from_plf("((('das',0,1),),(('haus',0.5,1),('heim',1.5,1),),)")
    >>> lattice.num_nodes, lattice.words
    (3, ('das', 'haus', 'heim'))
    """

    arcs: tuple[Arc, ...]
    names: tuple[str, ...] = ()
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    # ---- from texts

    @classmethod
    def make(cls, arcs: Iterable[tuple[int, int, str, Mapping[str, float]]]) -> Lattice:
        """A lattice of arcs, each as start, end, word and values of features; HieroError if it is none."""
        found = sorted(arcs, key=lambda arc: arc[0])
        names = tuple(dict.fromkeys(name for *_, features in found for name in features))
        rows = [[float(features.get(name, 0.0)) for name in names] for *_, features in found]
        values = np.array(rows, np.float64).reshape(len(found), len(names))
        lattice = cls(tuple(Arc(*arc[:3]) for arc in found), names, read_only(values + 0.0))
        lattice._check()
        return lattice

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Lattice:
        """The lattice of one sentence."""
        return cls.make((at, at + 1, word, {}) for at, word in enumerate(words))

    @classmethod
    def from_slots(cls, slots: Iterable[Iterable[tuple[str, float]]]) -> Lattice:
        """A confusion network: alternatives, words with their costs, for each place; ``*EPS*`` is no word."""
        return cls.make(
            (at, at + 1, word, {COST: cost}) for at, slot in enumerate(slots) for word, cost in slot
        )

    @classmethod
    def from_plf(cls, text: str, path: str = "<lattice>", number: int = 1) -> Lattice:
        """Read PLF; errors name ``path`` and the line ``number``."""
        return _PlfReader(text, path, number).lattice()

    @classmethod
    def from_json(cls, text: str, path: str = "<lattice>", number: int = 1) -> Lattice:
        """Read a JSON object with a list of ``arcs``; errors name ``path`` and the line ``number``."""
        return read_json_lattice(text, path, number)[0]

    def to_plf(self) -> str:
        """The lattice as PLF, with as many costs for each arc as there are features."""
        columns = []
        leaving = itertools.groupby(
            zip(self.arcs, self.values.tolist(), strict=True), lambda one: one[0].start
        )
        for _, group in leaving:
            column = ""
            for arc, values in group:
                word = arc.word.replace("\\", "\\\\").replace("'", "\\'")
                costs = ",".join(f"{value:.9g}" for value in values) or "0"
                column += f"('{word}',{costs},{arc.end - arc.start}),"
            columns.append(f"({column}),")
        return f"({''.join(columns)})"

    def to_json(self) -> str:
        """The lattice as a JSON object."""
        arcs = []
        for arc, values in zip(self.arcs, self.values.tolist(), strict=True):
            one: dict[str, Any] = {"from": arc.start, "to": arc.end, "word": arc.word}
            named = {name: value for name, value in zip(self.names, values, strict=True) if value}
            if COST in named:
                one["cost"] = named.pop(COST)
            if named:
                one["features"] = {name.removeprefix(f"{COST}_"): value for name, value in named.items()}
            arcs.append(one)
        return msgspec.json.encode({"arcs": arcs}).decode()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lattice):
            return NotImplemented
        return (self.arcs, self.names) == (other.arcs, other.names) and np.array_equal(
            self.values, other.values
        )

    def __hash__(self) -> int:
        return hash((self.arcs, self.names))

    # ---- what it has

    @property
    def num_nodes(self) -> int:
        return max((arc.end for arc in self.arcs), default=0) + 1

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all arcs, ``*EPS*`` included."""
        return tuple(arc.word for arc in self.arcs)

    @property
    def is_sentence(self) -> bool:
        """Whether there is one path, with a word on each arc and all values 0."""
        arcs = self.arcs
        linear = all(
            (arc.start, arc.end) == (at, at + 1) and arc.word != EPSILON for at, arc in enumerate(arcs)
        )
        return linear and not self.values.any()

    @property
    def num_paths(self) -> float:
        """The number of paths; inf beyond 1.8e308."""
        count = [1.0] + [0.0] * (self.num_nodes - 1)
        for arc in self.arcs:
            count[arc.end] += count[arc.start]
        return count[-1]

    def paths(self) -> Iterator[tuple[int, ...]]:
        """Iterate over all paths as arcs, numbered from 0."""
        leaving: dict[int, list[int]] = {}
        for number, arc in enumerate(self.arcs):
            leaving.setdefault(arc.start, []).append(number)
        last = self.num_nodes - 1
        todo: list[tuple[int, tuple[int, ...]]] = [(0, ())] if self.arcs else []
        while todo:
            node, path = todo.pop()
            if node == last:
                yield path
                continue
            todo += [(self.arcs[k].end, (*path, k)) for k in reversed(leaving[node])]

    @cached_property
    def word_arcs(self) -> WordArcs:
        """The same readings without arcs that have no word, except the empty one."""
        return _word_arcs(self)

    def _check(self) -> None:
        """Raise HieroError unless every node is on a path from the first to the last."""
        if len(self.arcs) > MOST_ARCS:
            raise HieroError(f"lattice: found {len(self.arcs):,} arcs, expected at most {MOST_ARCS:,}")
        num_nodes = self.num_nodes
        if num_nodes > MOST_NODES:
            raise HieroError(f"lattice: found {num_nodes:,} nodes, expected at most {MOST_NODES:,}")
        leaves, enters = [False] * num_nodes, [False] * num_nodes
        for number, (start, end, word) in enumerate(self.arcs):
            if not 0 <= start < end:
                expected = "one from an earlier to a later node (nodes are numbered from 0 in such an order)"
                raise HieroError(f"lattice: found an arc from {start} to {end}, expected {expected}")
            if not word or split_words(word) != (word,) or "\n" in word:
                problem = (
                    f"arc {number}: found the word {show(word)}, expected one without spaces, or {EPSILON}"
                )
                raise HieroError(f"lattice: {problem}")
            leaves[start] = enters[end] = True
        for node in range(num_nodes if self.arcs else 0):
            if node and not enters[node]:
                raise HieroError(f"lattice: found no arc to node {node}, expected every node to be on a path")
            if node < num_nodes - 1 and not leaves[node]:
                problem = f"found no arc from node {node}, expected every node to be on a path"
                raise HieroError(f"lattice: {problem}")
        if not np.isfinite(self.values).all() or np.abs(self.values).max(initial=0) > LARGEST:
            wrong = np.argwhere(~(np.abs(self.values) <= LARGEST))[0]
            found = f"{self.names[wrong[1]]} of {float(self.values[tuple(wrong)])}"
            raise HieroError(f"lattice: arc {wrong[0]}: found a {found}, expected a finite number")


# ---- arcs without words


def _word_arcs(lattice: Lattice) -> WordArcs:
    """Join each arc without a word to the word after it; those before the end to the last word."""
    last = lattice.num_nodes - 1
    words: dict[int, list[int]] = {}
    empty: dict[int, list[int]] = {}
    for number, arc in enumerate(lattice.arcs):
        (empty if arc.word == EPSILON else words).setdefault(arc.start, []).append(number)
    total = lattice.values.tolist()

    def added(values: Sequence[float], arc: int) -> tuple[float, ...]:
        return tuple(a + b for a, b in zip(values, total[arc], strict=True))

    none = (0.0,) * len(lattice.names)
    made = 0

    def without_words(node: int) -> list[tuple[int, tuple[float, ...], tuple[int, ...]]]:
        """The ends of paths of arcs without words, their values, and the paths; one for equal values."""
        nonlocal made
        found: dict[tuple[int, tuple[float, ...]], tuple[int, ...]] = {(node, none): ()}
        todo: list[tuple[int, tuple[float, ...]]] = [(node, none)]
        while todo:
            at = todo.pop()
            for number in empty.get(at[0], ()):
                new = lattice.arcs[number].end, added(at[1], number)
                if new not in found:
                    found[new] = (*found[at], number)
                    todo.append(new)
                    made += 1
                    if made > MOST_ARCS:
                        problem = f"more than {MOST_ARCS:,} paths of {EPSILON}"
                        raise HieroError(f"lattice: found {problem}, expected fewer")
        return [(end, values, path) for (end, values), path in found.items()]

    closures = {node: without_words(node) for node in (range(last + 1) if empty else ())}
    rows: list[tuple[int, int, int, tuple[float, ...], tuple[int, ...]]] = []
    reached = [True] + [False] * last
    for node in range(last):
        if not reached[node]:
            continue  # only by arcs without words, which are joined to words before
        for middle, before, prefix in closures.get(node, [(node, none, ())]):
            for number in words.get(middle, ()):
                end, values = lattice.arcs[number].end, added(before, number)
                ends = [(end, values, (*prefix, number))]
                if end != last:
                    ends += [
                        (
                            last,
                            tuple(a + b for a, b in zip(values, more, strict=True)),
                            (*prefix, number, *path),
                        )
                        for stop, more, path in closures.get(end, ())
                        if stop == last
                    ]
                for stop, value, path in ends:
                    rows.append((node, stop, number, value, path))
                    reached[stop] = True
                if len(rows) > MOST_ARCS:
                    raise HieroError(
                        f"lattice: found more than {MOST_ARCS:,} words behind {EPSILON}, expected fewer"
                    )
    start = np.array([row[0] for row in rows], np.int32)
    arcs = Arcs(
        offsets_by_row(start, last + 1),
        start,
        np.array([row[1] for row in rows], np.int32),
        np.array([len(row[4]) for row in rows], np.int32),
        np.array([row[3] for row in rows], np.float64).reshape(len(rows), len(lattice.names)) + 0.0,
    )
    arcs = Arcs._make(read_only(array) for array in arcs)
    texts = tuple(lattice.arcs[row[2]].word for row in rows)
    return WordArcs(arcs, texts, tuple(row[4] for row in rows))


# ---- PLF

_SPACE = re.compile(r"[ \t]*")
_WORD = re.compile(r"'((?:[^'\\]|\\.)*)'" + r'|"((?:[^"\\]|\\.)*)"')
_NUMBER = re.compile(r"[^\s,()'\"]+")
_ESCAPED = re.compile(r"\\(.)")


class _PlfReader:
    """One line of PLF; commas at the ends of lists are optional."""

    def __init__(self, text: str, path: str, number: int) -> None:
        self.text, self.path, self.number, self.at = text, path, number, 0

    def lattice(self) -> Lattice:
        arcs: list[tuple[int, int, str, list[float]]] = []
        column = 0
        self._expect("(", "a lattice (((…")
        while not self._end_of_list():
            place = self._place()
            self._expect("(", "( before the arcs of a node")
            before = len(arcs)
            while not self._end_of_list():
                arcs.append(self._arc(column))
                if len(arcs) > MOST_ARCS:
                    self._fail(f"more than {MOST_ARCS:,} arcs", "fewer")
            if len(arcs) == before:
                self._fail(f"node {column} without arcs", "at least one arc from every node", place=place)
            column += 1
            if column >= MOST_NODES:
                self._fail(f"more than {MOST_NODES:,} nodes", "fewer")
        if self.at < len(self.text):
            self._fail(show(self.text[self.at :], 20), "the end of the line behind the lattice")
        for start, end, word, _ in arcs:
            if end > column:
                problem = f"the word {show(word)} from node {start} to node {end} of {column}"
                self._fail(problem, "a distance within the lattice", place="")
        names = [COST, *(f"{COST}_{k}" for k in range(1, max((len(arc[3]) for arc in arcs), default=1)))]
        named = [(*arc[:3], dict(zip(names, arc[3], strict=False))) for arc in arcs]
        try:
            return Lattice.make(named)
        except HieroError as error:
            raise _located(error, self.path, self.number) from None

    def _arc(self, column: int) -> tuple[int, int, str, list[float]]:
        self._expect("(", "( before an arc")
        self._skip()
        quoted = _WORD.match(self.text, self.at)
        if quoted is None:
            self._fail(self._found(), "a word in quotation marks")
        word = _ESCAPED.sub(r"\1", quoted[1] if quoted[1] is not None else quoted[2])
        self.at = quoted.end()
        if not word:
            self._fail("an empty word", f"a word, or {EPSILON} for none")
        numbers: list[tuple[str, str]] = []  # with their places
        while self._next() == ",":
            self.at += 1
            self._skip()
            found = _NUMBER.match(self.text, self.at)
            if found is None:
                self._fail(self._found(), "a cost or a distance")
            numbers.append((found[0], self._place()))
            self.at = found.end()
        self._expect(")", "a comma, or ) behind an arc")
        distance = 1
        if len(numbers) > 1:
            last, place = numbers.pop()
            if not (last.isascii() and last.isdigit() and len(last) < 10 and int(last)):
                self._fail(f"the distance {show(last)}", "a whole number, 1 or more", place=place)
            distance = int(last)
        if not numbers:
            self._fail(f"no cost of {show(word)}", "('word', cost, distance)", place=self._place())
        return column, column + distance, word, [self._cost(*number) for number in numbers]

    def _cost(self, text: str, place: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not abs(value) <= LARGEST or "_" in text:
            self._fail(f"the cost {show(text)}", "a finite number", place=place)
        return value

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def _next(self) -> str:
        self._skip()
        return self.text[self.at : self.at + 1]

    def _end_of_list(self) -> bool:
        """Skip a comma; at the end of a list, go behind it and return True."""
        if self._next() == ",":
            self.at += 1
        if self._next() == ")":
            self.at += 1
            self._skip()
            return True
        return False

    def _expect(self, character: str, expected: str) -> None:
        if self._next() != character:
            self._fail(self._found(), expected)
        self.at += 1

    def _found(self) -> str:
        return show(self.text[self.at :], 20) if self.at < len(self.text) else "the end of the line"

    def _place(self) -> str:
        return f" in column {self.at + 1}"

    def _fail(self, found: str, expected: str, *, place: str | None = None) -> NoReturn:
        where = self._place() if place is None else place
        raise FormatError(self.path, self.number, found=f"{found}{where}", expected=expected)


def _located(error: HieroError, path: str, number: int) -> HieroError:
    return HieroError(f"{path}:{number}: {error}")


# ---- JSON


class _JsonArc(msgspec.Struct, forbid_unknown_fields=True):
    start: int = msgspec.field(name="from")
    end: int = msgspec.field(name="to")
    word: str
    cost: float | None = None
    features: dict[str, float] = {}


class _JsonLattice(msgspec.Struct, forbid_unknown_fields=True):
    arcs: list[_JsonArc]
    id: str | int | None = None
    reference: str | None = None


def read_json_lattice(text: str, path: str, number: int) -> tuple[Lattice, str | None, str | None]:
    """A lattice, its id and its reference."""
    try:
        found = msgspec.json.decode(text.encode(errors="replace"), type=_JsonLattice)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError(
            path,
            number,
            found=str(error),
            expected='{"arcs": [{"from": 0, "to": 1, "word": "…", "cost": 0.5, "features": {…}}, …]}',
        ) from None
    named = []
    for arc in found.arcs:
        features = {} if arc.cost is None else {COST: arc.cost}
        for name, value in arc.features.items():
            if not name or split_words(name) != (name,):
                raise FormatError(
                    path, number, found=f"the feature {show(name)}", expected="a name without spaces"
                )
            features[f"{COST}_{name}"] = value
        named.append((arc.start, arc.end, arc.word, features))
    try:
        lattice = Lattice.make(named)
    except HieroError as error:
        raise _located(error, path, number) from None
    return lattice, None if found.id is None else str(found.id), found.reference


# ---- recognition


def looks_like_plf(text: str) -> bool:
    """Whether a line begins and ends as PLF, which no sentence of words does."""
    text = text.strip(" \t")
    return text[:3] == "(((" and text[3:4] in ("'", '"') and text.replace(" ", "").endswith((")))", "),)"))
