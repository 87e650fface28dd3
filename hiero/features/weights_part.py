"""Weights as text: ``name value`` a line, as cdec writes them.

Reading: lines that begin with ``#`` are comments, and empty lines are skipped. The name ends at the first
space or tab; without these, at the last ``=``. A name may not be given twice.

A file written by hiero begins with the line ``EXACT``: each name in it is that of one feature (``names.py``)
or marked ``%~``. Any other file may be written by cdec or by hand, and gives weights that are not ``exact``
(``weights.py``): there a name also stands for all features that cdec spells so and that have no line of their
own.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from hiero.core.errors import FormatError, show
from hiero.core.symbols import Symbols
from hiero.core.text import open_output, read_utf8_chunks
from hiero.features.index import Key
from hiero.features.names import as_cdec
from hiero.features.weights import SHARED, Weights

EXACT = b"# hiero weights: every name is exact"

_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_LINE = re.compile(rb"([^ \t]+)[ \t]+(?:= *)?([^ \t]+)[ \t]*")
_SHARED = SHARED.encode()


def read_weights(path: str | Path, symbols: Symbols) -> Weights:
    """Read a file of weights; words, labels and names in it are added to the symbols."""
    reader = _WeightsReader(path, symbols)
    for chunk in read_utf8_chunks(path, what="a file of weights"):
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


_CDEC_HINT = "without its first line the file may use cdec's names"


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
        for name in sorted(lines):
            value, needed = lines[name]
            if value != 0 or zeros or needed:
                stream.write(b"%s %.17g\n" % (name, value))
    return clashes


Lines = dict[bytes, "tuple[float, bool]"]  # the weight, and whether it must be written even if 0


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
