"""Weights of features, by name, as arrays for kernels, and in files.

A feature has the weight that is given under its exact name (``names.py``). Files of other systems use cdec's
names, which may fit several features: a weight under such a *shared* name applies to every feature of this
cdec name without a weight of its own. A name that is not the exact name of any feature can only be shared;
the prefix ``%~`` marks shared names. In weights that are not ``exact``, all names are shared as well.

Files have a line ``name value`` for each weight, as in cdec. Lines that begin with ``#`` are comments, and
empty lines are skipped. The name ends at the first space or tab; without these, at the last ``=``. A name may
not be given twice. A file written by hiero begins with the line ``EXACT``: each name in it is that of one
feature or marked ``%~``. Any other file may be written by cdec or by hand, and gives weights that are not
``exact``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hiero.core.arrays import Floats, Ids, read_only
from hiero.core.errors import FormatError, show
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import Symbols, word_table
from hiero.core.text import open_output, read_utf8_chunks
from hiero.features.index import KINDS, FeatureIndex, Key
from hiero.features.index_kernels import NAME, RULE_ID, FeatureTable, intern_keys_kernel
from hiero.features.names import Names, as_cdec

SHARED = "%~"
SHOWN = 5  # weights of a ``repr``


class LinearWeights(Protocol):
    """Weights for scoring: ``Weights``, or the vector of a learner."""

    @property
    def version(self) -> int:
        """A number that grows with every change, except for a vector that learners change in place."""
        ...

    @property
    def has_shared_names(self) -> bool:
        """Whether ``shared_weights`` is not empty."""
        ...

    def template_weights(self) -> tuple[FeatureTable, Floats]:
        """The features of templates that have a weight, and the weights; read-only."""
        ...

    def name_weights(self, start: int = 0) -> Floats:
        """The weights of the named features, by id in Symbols.names, from id ``start`` on."""
        ...

    def shared_weights(self) -> tuple[WordTable, Floats]:
        """The shared names of features of templates and their weights; read-only."""
        ...


class Weights(MutableMapping[str, float]):
    """A mapping from names to weights, stored as arrays.

    ``index`` numbers the features, also features without a weight; a learner with a vector of its own starts
    from ``vector()`` and calls ``assign`` at the end. A missing weight is 0. By default a copy of other
    ``Weights`` is ``exact`` if they are, and a copy of a plain mapping is. Changes apply from the next
    sentence that a model with these weights translates.
    """

    def __init__(
        self,
        symbols: Symbols,
        weights: Mapping[str, float] | Iterable[tuple[str, float]] = (),
        index: FeatureIndex | None = None,
        *,
        exact: bool | None = None,
    ) -> None:
        self.symbols = symbols
        self.names = Names(symbols)
        self.index = FeatureIndex() if index is None else index
        self.exact: bool = getattr(weights, "exact", True) if exact is None else exact
        self.shared: dict[bytes, float] = {}
        self._value = np.empty(0)
        self._given = np.empty(0, np.bool_)
        self._version = 0
        self._add(dict(weights))

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._version

    def __getitem__(self, name: str) -> float:
        if not name.startswith(SHARED):
            feature = self._find(name)
            if feature >= 0:
                return float(self._value[feature])
        shared = _shared_name(name)
        if shared in self.shared:
            return self.shared[shared]
        raise KeyError(name)

    def __setitem__(self, name: str, weight: float) -> None:
        """Set a weight. A name that is not exact becomes a shared one."""
        self._add({name: weight})

    def _add(self, weights: Mapping[str, float]) -> None:
        keys: list[Key] = []
        values: list[float] = []
        for name, weight in weights.items():
            if not math.isfinite(weight):
                raise ValueError(f"weight {weight} of {name!r} is not a finite number")
            key = None if name.startswith(SHARED) else self.names.parse(name)
            if key is None:
                self.shared[_shared_name(name)] = float(weight)
            else:
                keys.append(key)
                values.append(float(weight))
        self.set_all(keys, values)

    def __delitem__(self, name: str) -> None:
        feature = -1 if name.startswith(SHARED) else self._find(name)
        self._version += 1
        if feature >= 0:
            self._given[feature] = False
        elif self.shared.pop(_shared_name(name), None) is None:
            raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        for feature in np.flatnonzero(self._given).tolist():
            yield self.names.name(self.index.key(feature))
        for name in self.shared:
            yield SHARED + name.decode()

    def __len__(self) -> int:
        return int(np.count_nonzero(self._given)) + len(self.shared)

    def __repr__(self) -> str:
        listed = [f"{name}={self[name]:.6g}" for name in itertools.islice(self, SHOWN)]
        more = [f"{len(self) - SHOWN:,} more"] if len(self) > SHOWN else []
        return f"<Weights: {', '.join([*listed, *more]) or 'none'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """By names: numbers of features and words mean nothing in another process."""
        return _unpickled, (self.exact, dict(self))

    @property
    def has_shared_names(self) -> bool:
        return bool(self.shared) or not self.exact

    def given(self) -> tuple[Ids, Floats]:
        """Keys, as rows (kind, a, b), and weights of all features that have a weight of their own."""
        self._resize()
        chosen = np.flatnonzero(self._given)
        return self.index.table.key[chosen], self._value[chosen]

    def items_bytes(self) -> Iterator[tuple[Key, bytes, float]]:
        """Key, name and weight of every feature that has a weight of its own."""
        keys = self.index.all_keys()
        for feature in np.flatnonzero(self._given).tolist():
            yield keys[feature], self.names.name_bytes(keys[feature]), float(self._value[feature])

    def of(self, key: Key) -> float:
        """The effective weight of a feature."""
        feature = self.index.find(key)
        if self._is_given(feature):
            return float(self._value[feature])
        shared = self.of_spelling(key)
        return 0.0 if shared is None else shared

    def of_spelling(self, key: Key) -> float | None:
        """The weight of a feature's shared name, for a feature without its own; None if there is none."""
        if self.exact and not self.shared:
            return None
        spelling = self.names.cdec_bytes(key)
        if spelling in self.shared or self.exact:
            return self.shared.get(spelling)
        other = self.names.parse(spelling, add=False)
        feature = -1 if other is None or other == key else self.index.find(other)
        return float(self._value[feature]) if self._is_given(feature) else None

    def set_all(self, keys: Sequence[Key], weights: Sequence[float]) -> None:
        """Set the weights of features, given by their keys."""
        ids = self.index.intern_all(keys)
        self._resize()
        self._value[ids] = weights
        self._given[ids] = True
        self._version += 1

    def vector(self) -> Floats:
        """A new vector of the effective weights of the features of ``index``."""
        self._resize()
        vector = np.where(self._given, self._value, 0.0)
        if self.shared or not self.exact:
            for feature in np.flatnonzero(~self._given).tolist():
                vector[feature] = self.of(self.index.key(feature))
        return vector

    def assign(self, vector: Floats) -> None:
        """Set the weights of the first features of ``index`` from a vector; zeros count as missing.

        A zero is kept where a shared name would give the feature another weight.
        """
        if not np.isfinite(vector).all():
            feature = int(np.argmin(np.isfinite(vector)))
            name = self.names.name(self.index.key(feature))
            raise ValueError(f"weight {vector[feature]} of {name!r} is not a finite number")
        self._resize()
        self._value[: len(vector)] = vector
        given = vector != 0
        if self.shared or not self.exact:
            for feature in np.flatnonzero(~given).tolist():
                given[feature] = self.of_spelling(self.index.key(feature)) is not None
        self._given[: len(vector)] = given
        self._version += 1

    def template_weights(self) -> tuple[FeatureTable, Floats]:
        """The features of templates that have a weight, in a table of their own, and the weights; read-only.

        Zeros are left out, except where a shared name would apply instead.
        """
        by_spelling = self._exactly_shared()
        self._resize()
        table = self.index.table
        rows = table.key[: len(self.index)]
        listed = self._given & (rows[:, 0] != NAME)
        if self.exact and not self.shared:
            listed &= self._value != 0
        chosen = np.flatnonzero(listed)
        index = FeatureIndex()
        ids = np.empty(len(chosen), np.int32)
        room = index.reserve(len(chosen), len(table.pool))
        intern_keys_kernel(room, read_only(rows[chosen]), table.pool, ids)
        index.intern_all(list(by_spelling))
        weights = np.concatenate([self._value[chosen], np.array(list(by_spelling.values()), np.float64)])
        return index.table, read_only(weights)

    def _exactly_shared(self) -> dict[Key, float]:
        """Features with the weight of a shared name that is also their exact name.

        The kernel that looks up spellings skips features with unambiguous names.
        """
        found: dict[Key, float] = {}
        for name, value in self.shared.items():
            key = self.names.parse(name)
            if key is not None and key[0] != NAME and self.names.cdec_bytes(key) == name:
                if not self._is_given(self.index.find(key)):
                    found[key] = value
        return found

    def shared_weights(self) -> tuple[WordTable, Floats]:
        shared = dict(self.shared)
        if not self.exact:
            for key, name, value in self.items_bytes():
                if key[0] == RULE_ID or KINDS[key[0]].has_symbols:
                    shared.setdefault(name, value)
        return word_table(list(shared)), read_only(np.array(list(shared.values()), np.float64))

    def name_weights(self, start: int = 0) -> Floats:
        keys = [(NAME, i, 0) for i in range(start, len(self.symbols.names))]
        ids = self.index.find_all(keys)
        self._resize()
        given = ids >= 0
        given[given] = self._given[ids[given]]
        weights = np.zeros(len(keys))
        weights[given] = self._value[ids[given]]
        if self.shared or not self.exact:
            for i in np.flatnonzero(~given).tolist():
                weights[i] = self.of(keys[i])
        return weights

    def _find(self, name: str) -> int:
        key = self.names.parse(name, add=False)
        feature = -1 if key is None else self.index.find(key)
        return feature if self._is_given(feature) else -1

    def _is_given(self, feature: int) -> bool:
        return 0 <= feature < len(self._given) and bool(self._given[feature])

    def _resize(self) -> None:
        missing = len(self.index) - len(self._value)
        if missing > 0:
            self._value = np.concatenate([self._value, np.zeros(missing)])
            self._given = np.concatenate([self._given, np.zeros(missing, np.bool_)])


def _unpickled(exact: bool, weights: dict[str, float]) -> Weights:
    return Weights(Symbols(), weights, exact=exact)


def weights_of(given: LinearWeights | Mapping[str, float] | str | Path, symbols: Symbols) -> LinearWeights:
    """Weights for a model: a file is read and a mapping copied; weights of the same symbols are shared."""
    if isinstance(given, str | Path):
        return read_weights(given, symbols)
    if isinstance(given, Weights):
        return given if given.symbols is symbols else Weights(symbols, given)
    return Weights(symbols, given) if isinstance(given, Mapping) else given


def _shared_name(name: str) -> bytes:
    return as_cdec(name.removeprefix(SHARED).encode(errors="surrogateescape"))


# ---- files

EXACT = b"# hiero weights: every name is exact"
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_LINE = re.compile(rb"([^ \t]+)[ \t]+(?:= *)?([^ \t]+)[ \t]*")
_SHARED = SHARED.encode()
_CDEC_HINT = "without its first line the file may use cdec's names"
Lines = dict[bytes, "tuple[float, bool]"]  # the weight, and whether it must be written even if 0


def read_weights(path: str | Path, symbols: Symbols) -> Weights:
    """Read a file of weights; words, labels and names in it are added to the symbols."""
    reader = _WeightsReader(path, symbols)
    for chunk in read_utf8_chunks(path, what="a file of weights"):
        if chunk.data.isspace():
            continue
        for number, text in enumerate(chunk.data[:-1].split(b"\n"), chunk.first_line):
            reader.read_line(text, number)
    return reader.finish()


class _WeightsReader:
    def __init__(self, path: str | Path, symbols: Symbols) -> None:
        self.path = path
        self.weights = Weights(symbols, exact=False)
        self.names: dict[bytes, int] = {}  # line of each name
        self.keys: list[Key] = []
        self.values: list[float] = []

    def read_line(self, line: bytes, number: int) -> None:
        if number == 1:
            self.weights.exact = line.rstrip(b"\r") == EXACT
        line = line.removesuffix(b"\r")
        if line[:1] == b"#" or not line.strip(b" \t"):
            return
        found = _LINE.fullmatch(line)
        name, text = found.groups() if found else self._split(line, number)
        first_line = self.names.setdefault(name, number)
        if first_line != number:
            hint = f"its first weight is in line {first_line}"
            raise self._error(number, f"a second weight of {show(name)}", "one line a feature", hint)
        self._add(name, self._number(text, number), number)

    def _split(self, line: bytes, number: int) -> tuple[bytes, bytes]:
        """Lines that are not simply a name, a space and a number."""
        name, equals, text = line.rpartition(b"=")
        if line[:1] in (b" ", b"\t"):
            raise self._error(number, "a space before the name", "a line that begins with the name")
        if not equals or not name or b" " in line or b"\t" in line:
            raise self._error(number, show(line), "a name, a space and a number")
        return name, text

    def _number(self, text: bytes, number: int) -> float:
        if _NUMBER.fullmatch(text):
            value = float(text)
            if math.isfinite(value):
                return value
        raise self._error(number, f"the weight {show(text)}", "a finite number")

    def _add(self, name: bytes, value: float, number: int) -> None:
        if name.endswith(b"=") and not self.weights.exact:
            name = name[:-1]  # Moses writes 'name= value'
        shared = self.weights.shared
        if name.startswith(_SHARED):
            shared[as_cdec(name.removeprefix(_SHARED))] = value
            return
        key = self.weights.names.parse(name)
        if key is not None:
            self.keys.append(key)
            self.values.append(value)
        elif self.weights.exact:
            raise self._error(number, f"the name {show(name)}", "the exact name of a feature", _CDEC_HINT)
        else:
            shared[as_cdec(name)] = value

    def _error(self, number: int, found: str, expected: str, hint: str = "") -> FormatError:
        return FormatError(self.path, number, found=found, expected=expected, hint=hint)

    def finish(self) -> Weights:
        self.weights.set_all(self.keys, self.values)
        return self.weights


LINES_AT_ONCE = 10_000


def write_weights(
    path: str | Path, weights: Weights, *, zeros: bool = False, cdec_names: bool = False
) -> list[bytes]:
    """Write weights, sorted by name, the file appearing only when it is complete.

    Weights of 0 are left out unless ``zeros``. With ``cdec_names`` names are written as cdec does. Returns
    the names that several features with different weights share. Of these weights one is written: that of
    the feature whose exact name it is, or else of the feature whose exact name comes first.
    """
    lines, clashes = _cdec_lines(weights) if cdec_names else (_exact_lines(weights), [])
    with open_output(path) as stream:
        if weights.exact and not cdec_names:
            stream.write(EXACT + b"\n")
        names = sorted(lines)
        for start in range(0, len(names), LINES_AT_ONCE):
            block = ((name, *lines[name]) for name in names[start : start + LINES_AT_ONCE])
            written = (b"%s %.17g\n" % (n, v) for n, v, needed in block if v != 0 or zeros or needed)
            stream.write(b"".join(written))
    return clashes


def _exact_lines(weights: Weights) -> Lines:
    lines: Lines = {_SHARED + name: (value, False) for name, value in weights.shared.items()}
    for key, name, value in weights.items_bytes():
        # If a zero were left out, the shared weight would apply instead.
        lines[name] = value, value == 0 and weights.of_spelling(key) is not None
    return lines


def _cdec_lines(weights: Weights) -> tuple[Lines, list[bytes]]:
    lines: Lines = {name: (value, False) for name, value in weights.shared.items()}
    clashes: set[bytes] = set()
    taken: dict[bytes, tuple[bool, bytes]] = {}
    for key, name, value in weights.items_bytes():
        spelling = weights.names.cdec_bytes(key)
        rank = (name != spelling, name)
        if spelling in lines and lines[spelling][0] != value:
            clashes.add(spelling)
        if spelling not in taken or rank < taken[spelling]:
            taken[spelling] = rank
            lines[spelling] = value, False
    return lines, sorted(clashes)
