"""Bins as text:

    feature EgivenFCoherent of=probability overlap=0 keep=no
    bin -inf rules=4711 values=20 low=0.00333333 high=0.01
    bin 0.0101010101 rules=4812 values=17 low=0.0101010101 high=0.02
    ...

A value is in the last bin that does not begin above it. The fields after the beginning of a bin describe the
values that it was made of, and may be left out. Lines that begin with ``#`` are comments; empty lines are
skipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from hiero.bins.bins import FeatureBins, bin_value_text
from hiero.bins.config import OF, Of
from hiero.core.errors import FormatError, did_you_mean, show
from hiero.core.text import decode_utf8, read_lines, write_output

HEADING = "# hiero bins: a value is in the last bin that does not begin above it"
YES_NO = {"yes": True, "no": False}
MOST_DIGITS = 19  # of an int64
NUMBERS = {"low": np.float32, "high": np.float32, "values": np.int64, "rules": np.int64}


def write_bins(path: str | Path, bins: Sequence[FeatureBins], comment: str = "") -> None:
    """Write bins; ``comment`` is a line that describes their origin."""
    lines = [HEADING]
    if comment:
        lines.append(f"# {comment}")
    for one in bins:
        keep = "yes" if one.keep else "no"
        lines += ["", f"feature {one.feature} of={one.of} overlap={one.overlap} keep={keep}"]
        for j in range(len(one)):
            known = [name for name in ("rules", "values", "low", "high") if len(getattr(one, name))]
            text = (f"{name}={_text(getattr(one, name)[j])}" for name in known)
            lines.append(" ".join(["bin", bin_value_text(one.begin[j]), *text]))
    write_output(path, "\n".join(lines) + "\n")


def _text(number: Any) -> str:
    return str(int(number)) if isinstance(number, np.integer) else bin_value_text(number)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < MOST_DIGITS


def read_bins(path: str | Path) -> list[FeatureBins]:
    """Read bins, in the order of the file."""
    reader = _BinsReader(path)
    for number, line in enumerate(read_lines(path, "bins of features"), 1):
        fields = decode_utf8(path, line.removesuffix(b"\r"), number).split()
        if fields and not fields[0].startswith("#"):
            reader.line(fields, number)
    return reader.finish()


class _BinsReader:
    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.done: list[FeatureBins] = []
        self.place: dict[str, int] = {}  # the line that names each feature
        self.head: dict[str, Any] = {}
        self.rows: list[dict[str, float]] = []
        self.lines: list[int] = []  # of these rows

    def line(self, fields: list[str], number: int) -> None:
        kind, *rest = fields
        if kind not in ("feature", "bin") or not rest:
            raise self._error(number, show(" ".join(fields)), "feature NAME ..., or bin NUMBER ...")
        if kind == "feature":
            self._close()
            self._open(rest[0], rest[1:], number)
        elif not self.head:
            raise self._error(number, "a bin", "feature NAME before it")
        else:
            row = {"begin": self._number(rest[0], number, infinite=True)}
            for key, text in self._pairs(rest[1:], tuple(NUMBERS), number).items():
                row[key] = (
                    self._count(text, number) if NUMBERS[key] is np.int64 else self._number(text, number)
                )
            if self.rows and set(row) != set(self.rows[0]):
                raise self._error(number, ", ".join(row), f"{', '.join(self.rows[0])}, as in the first bin")
            self.rows.append(row)
            self.lines.append(number)

    def _open(self, name: str, rest: list[str], number: int) -> None:
        if name in self.place:
            raise self._error(
                number, f"feature {show(name)} a second time", "it once", f"first in line {self.place[name]}"
            )
        self.place[name] = number
        head = {"of": "given", "overlap": "0", "keep": "no"}
        head |= self._pairs(rest, tuple(head), number)
        if head["of"] not in OF:
            raise self._error(number, f"of={head['of']}", f"one of {', '.join(OF)}")
        if head["keep"] not in YES_NO:
            raise self._error(number, f"keep={head['keep']}", "yes or no")
        if not _is_count(head["overlap"]):
            raise self._error(number, f"overlap={head['overlap']}", "a whole number, 0 or more")
        self.head = {"feature": name, **head}

    def _pairs(self, fields: Sequence[str], keys: Sequence[str], number: int) -> dict[str, str]:
        pairs = {}
        for text in fields:
            key, equals, value = text.partition("=")
            if not equals or key not in keys:
                raise self._error(number, show(text), f"{', '.join(keys)}", did_you_mean(key, keys))
            pairs[key] = value
        return pairs

    def _count(self, text: str, number: int) -> int:
        if _is_count(text):
            return int(text)
        raise self._error(number, show(text), "a whole number")

    def _number(self, text: str, number: int, *, infinite: bool = False) -> float:
        try:
            with np.errstate(over="ignore"):  # infinity is refused below
                value = float(np.float32(text))
        except ValueError:
            value = math.nan
        if math.isfinite(value) or (infinite and value == -math.inf):
            return value + 0.0  # -0 is 0: a bin that begins there has one name
        raise self._error(number, show(text), "a number")

    def _close(self) -> None:
        if not self.head:
            return
        head, rows = self.head, self.rows
        columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}
        one = FeatureBins(
            feature=head["feature"],
            of=cast(Of, head["of"]),
            overlap=int(head["overlap"]),
            keep=YES_NO[head["keep"]],
            begin=np.array(columns.get("begin", []), np.float32),
            **{key: np.array(columns.get(key, []), kind) for key, kind in NUMBERS.items()},
        )
        if wrong := one.misplaced():
            j, found, expected = wrong
            raise self._error(self.lines[j], found, expected)
        self.done.append(one)
        self.rows, self.lines = [], []

    def finish(self) -> list[FeatureBins]:
        self._close()
        if not self.done:
            raise self._error(0, "no feature", "feature NAME ..., and its bins")
        return self.done

    def _error(self, number: int, found: str, expected: str, hint: str = "") -> FormatError:
        return FormatError(self.path, number, found=found, expected=expected, hint=hint)
