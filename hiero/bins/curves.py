# mypy: allow-untyped-calls
"""Curves of discretised features: the learnt weights of bins against feature values.

With the logarithm that fits best, as a hand-made transformation to compare with, and the number of rules in
each bin (Clark, Dyer and Lavie 2014, figure 7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hiero.bins.bins import FeatureBins, short
from hiero.bins.svg import picture
from hiero.core.errors import FormatError, did_you_mean
from hiero.core.text import open_output
from hiero.features.weights import Weights

Floats = npt.NDArray[np.float64]

UNSAFE = set('/\\:*?"<>|%') | {chr(code) for code in range(33)}  # in names of files
BAR = 20  # characters of the longest bar in a table


@dataclass(frozen=True)
class LogFit:
    """weight = offset + slope * log10(value + shift), by least squares; bins are weighted by their rules.

    shift    0, or 1 for counts, which may be 0
    left     unexplained share of the variance of the weights
    """

    offset: float
    slope: float
    shift: float
    left: float

    def at(self, value: Floats) -> Floats:
        return self.offset + self.slope * np.log10(value + self.shift)

    def __str__(self) -> str:
        inner = f"value + {self.shift:g}" if self.shift else "value"
        sign = "-" if self.slope < 0 else "+"
        return f"{self.offset:.3g} {sign} {abs(self.slope):.3g} log10({inner})"


@dataclass(frozen=True)
class Curve:
    """The curve of one feature.

    low, high  [N] least and greatest value in each bin; the limits of the bin if no value is known
    rules      [N] rules in each bin, all 1 if not known
    weight     [N] weights of the indicators
    """

    bins: FeatureBins
    low: Floats
    high: Floats
    rules: Floats
    weight: Floats
    fit: LogFit | None

    @property
    def middle(self) -> Floats:
        return (self.low + self.high) / 2


def curves_of(bins: Sequence[FeatureBins], weights: Weights | None, path: str = "") -> list[Curve]:
    """The curves of all features that have bins.

    With ``path``, the file of the weights, some of them must be of bins.
    """
    curves = []
    for one in bins:
        if not len(one):
            continue
        weight = np.array([0.0 if weights is None else weights.get(name, 0.0) for name in one.names])
        low, high = _ranges(one)
        rules = one.rules.astype(np.float64) if len(one.rules) else np.ones(len(one))
        curves.append(Curve(one, low, high, rules, weight, None))
        curves[-1] = Curve(one, low, high, rules, weight, best_log(curves[-1]))
    if path and curves and weights is not None and not any(curve.weight.any() for curve in curves):
        first = curves[0].bins.names[0]
        others = [name for name in weights if "_bin" in name]
        near = did_you_mean(first, others) if others else "no weight in it is of a bin"
        raise FormatError(
            path, 0, found=f"no weight of {first} or another bin", expected="weights of the bins", hint=near
        )
    return curves


def _ranges(bins: FeatureBins) -> tuple[Floats, Floats]:
    if len(bins.low) and len(bins.high):
        return bins.low.astype(np.float64), bins.high.astype(np.float64)
    begin = bins.begin.astype(np.float64)
    if len(begin) < 2:
        return np.zeros(1), np.zeros(1)
    low = np.concatenate([begin[1:2], begin[1:]])
    return low, np.concatenate([begin[1:], begin[-1:]])


def best_log(curve: Curve) -> LogFit | None:
    """The best-fitting logarithm; None if values are not positive or there are fewer than three bins."""
    value, weight = curve.middle, curve.weight
    mass = curve.rules if curve.rules.any() else np.ones(len(value))
    shift = 1.0 if curve.bins.of == "count" else 0.0
    fine = value + shift > 0
    if np.count_nonzero(fine) < 3 or (~fine).any():
        return None
    root = np.sqrt(mass / mass.sum())
    design = np.stack([np.ones(len(value)), np.log10(value + shift)], axis=1)
    (offset, slope), *_ = np.linalg.lstsq(design * root[:, None], weight * root, rcond=None)
    residual = weight - design @ np.array([offset, slope])
    centred = weight - np.average(weight, weights=mass)
    variance = float(np.average(centred**2, weights=mass))
    left = float(np.average(residual**2, weights=mass)) / variance if variance else 0.0
    return LogFit(float(offset), float(slope), shift, left)


# ---- as text


def table(curve: Curve, *, with_weights: bool = True) -> str:
    """A table for a terminal: bins, the rules in them, and a bar from 0 to each weight."""
    bins = curve.bins
    kind = "" if bins.of == "given" else f" ({bins.of})"
    head = f"{bins.feature}{kind}: {len(bins)} bins"
    if bins.overlap:
        head += f", a value counts for {bins.overlap} more on either side"
    if with_weights and curve.fit is not None:
        head += f"; best log: {curve.fit}, which leaves {100 * curve.fit.left:.0f} % of the variance"
    lines = [head]
    columns = [["from", "seen", "rules"], *([["weight", ""]] if with_weights else [])]
    rows = [[name for group in columns for name in group]]
    for j in range(len(bins)):
        row = [short(bins.begin[j]), _seen(curve, j), f"{int(bins.rules[j]):,}" if len(bins.rules) else "-"]
        if with_weights:
            row += [f"{curve.weight[j]:.4f}", _bar(curve.weight[j], curve.weight)]
        rows.append(row)
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if c < 4 else cell
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _seen(curve: Curve, j: int) -> str:
    low, high = np.float32(curve.low[j]), np.float32(curve.high[j])
    return f"{low:.6g}" if low == high else f"{low:.6g} .. {high:.6g}"


def _bar(weight: float, weights: Floats) -> str:
    """A bar from 0 to a weight, on the scale of all weights."""
    least, most = min(0.0, float(weights.min())), max(0.0, float(weights.max()))
    if most == least:
        return "|"
    zero = round(-least / (most - least) * BAR)
    at = round((weight - least) / (most - least) * BAR)
    line = [" "] * (BAR + 1)
    for k in range(min(zero, at), max(zero, at) + 1):
        line[k] = "#"
    line[zero] = "|"
    return "".join(line)


# ---- as pictures


def write_pictures(curves: Sequence[Curve], folder: str | Path) -> list[Path]:
    """Write an SVG file for each feature."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FormatError(folder, 0, found="a file", expected="a directory for pictures") from None
    paths = []
    for curve in curves:
        name = "".join(f"%{ord(c):02x}" if c in UNSAFE else c for c in curve.bins.feature)
        path = Path(folder) / f"{name}.svg"
        with open_output(path) as stream:
            stream.write(draw(curve).encode())
        paths.append(path)
    return paths


def draw(curve: Curve) -> str:
    """The picture of one feature: weights above, numbers of rules below, on a common axis of values."""
    bins, fit = curve.bins, curve.fit
    positive = curve.low > 0
    # A logarithmic axis for positive values that span more than a decade and a half.
    decades = bool(positive.all()) and curve.high.max() > 30 * curve.low.min()
    line = None
    if fit is not None:
        ends = float(curve.middle.min()), float(curve.middle.max())
        x = np.geomspace(*ends, 120) if decades and ends[0] > 0 else np.linspace(*ends, 120)
        line = x, fit.at(x)
    label = bins.feature if bins.of == "given" else f"{bins.of} of {bins.feature}"
    note = "" if fit is None else f"{fit}; leaves {100 * fit.left:.0f} % of the variance"
    return picture(
        title=f"{bins.feature}: {len(bins)} bins",
        x_label=label,
        y_label="weight",
        points=(curve.middle, curve.weight),
        spans=(curve.low, curve.high),
        mass=curve.rules if len(bins.rules) else None,
        line=line,
        note=note,
        decades=decades and math.isfinite(float(curve.high.max())),
    )
