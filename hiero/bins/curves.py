"""Curves of discretised features: the learnt weights of bins against feature values.

With the logarithm that fits best, as a hand-made transformation to compare with, and the number of rules in
each bin (Clark, Dyer and Lavie 2014, figure 7). Plots are written as SVG without a library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hiero.bins.bins import FeatureBins, bin_value_text
from hiero.core import charts
from hiero.core.arrays import Floats
from hiero.core.charts import COLOURS, Place, axis_number
from hiero.core.errors import FormatError, did_you_mean
from hiero.core.markup import Markup, element
from hiero.core.text import aligned, write_output
from hiero.features.weights import Weights


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
class Trend:
    """How far a curve is from monotone.

    turns    places where it turns from rising to falling, or from falling to rising
    against  share of its whole movement, up and down, that goes against the larger part
    """

    turns: int
    against: float

    @classmethod
    def of(cls, weight: Floats) -> Trend:
        """The trend of the weights of bins in order."""
        step = np.diff(weight)
        step = step[step != 0]
        up, down = float(step[step > 0].sum()), float(-step[step < 0].sum())
        turns = int(np.count_nonzero(np.diff(np.sign(step))))
        return cls(turns, min(up, down) / (up + down) if turns else 0.0)

    def __str__(self) -> str:
        if not self.turns:
            return "monotone"
        points = "1 turning point" if self.turns == 1 else f"{self.turns} turning points"
        return f"{points}, {100 * self.against:.2g} % of its movement against the trend"


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

    @property
    def trend(self) -> Trend:
        return Trend.of(self.weight)


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

BAR = 20  # characters of the longest bar in a table


def table(curve: Curve, *, with_weights: bool = True) -> str:
    """A table for a terminal: bins, the rules in them, and a bar from 0 to each weight."""
    bins = curve.bins
    kind = "" if bins.of == "given" else f" ({bins.of})"
    head = f"{bins.feature}{kind}: {len(bins)} bins"
    if bins.overlap:
        head += f", a value counts for {bins.overlap} more on either side"
    if with_weights and curve.fit is not None:
        head += f"; best log: {curve.fit}, which leaves {100 * curve.fit.left:.0f} % of the variance"
    if with_weights:
        head += f"; {curve.trend}"
    columns = [["from", "seen", "rules"], *([["weight", ""]] if with_weights else [])]
    rows = [[name for group in columns for name in group]]
    for j in range(len(bins)):
        row = [
            bin_value_text(bins.begin[j]),
            _seen(curve, j),
            f"{int(bins.rules[j]):,}" if len(bins.rules) else "-",
        ]
        if with_weights:
            row += [f"{curve.weight[j]:.4f}", _bar(curve.weight[j], curve.weight)]
        rows.append(row)
    return "".join(f"{line}\n" for line in [head, *aligned(rows, left=(4,))])


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

UNSAFE = set('/\\:*?"<>|%') | {chr(code) for code in range(33)}  # in names of files


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
        write_output(path, draw(curve))
        paths.append(path)
    return paths


def draw(curve: Curve) -> Markup:
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
    note = "" if fit is None else f"{fit}; leaves {100 * fit.left:.0f} % of the variance; "
    note += str(curve.trend)
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


# ---- plots

WIDTH, HEIGHT = 640, 460
LEFT, RIGHT, TOP = 70, 20, 48
UPPER, LOWER = 250, 70  # heights of the two panels
GAP = 16
EDGE = 8  # width of a bar at an end, at least
POINT, LINE, ZERO, BARS, DIM = COLOURS[0], "#999999", "#888888", "#c9d4e8", "#666666"


def picture(
    *,
    title: str,
    x_label: str,
    y_label: str,
    points: tuple[Floats, Floats],
    spans: tuple[Floats, Floats],
    mass: Floats | None = None,
    line: tuple[Floats, Floats] | None = None,
    note: str = "",
    decades: bool = False,
) -> Markup:
    """Plot points in order, each with its span of values, and a grey line; bars of ``mass`` below.

    With ``decades`` the horizontal axis is logarithmic; all x must then be positive.
    """
    x, y = points
    low, high = float(spans[0].min()), float(spans[1].max())
    across = (charts.log_scale if decades else charts.scale)(low, high, LEFT + 10, WIDTH - RIGHT - 10)
    ys = np.concatenate([y, [0.0] if line is None else np.clip(line[1], *_wider(y, 0.5))])
    bottom, top = _wider(ys, 0.06)
    up = charts.scale(bottom, top, TOP + UPPER, TOP)
    parts = [
        charts.text(LEFT, 22, title, size=15, weight="bold"),
        charts.text(LEFT, 39, note, size=10, colour=DIM),
    ]
    for tick in charts.ticks(bottom, top):
        parts.append(charts.line(LEFT, up(tick), WIDTH - RIGHT, up(tick)))
        parts.append(charts.text(LEFT - 6, up(tick) + 4, axis_number(tick), anchor="end"))
    if bottom < 0 < top:
        parts.append(charts.line(LEFT, up(0), WIDTH - RIGHT, up(0), ZERO, "frame"))
    floor = TOP + UPPER + GAP + LOWER
    for tick in charts.decade_ticks(low, high) if decades else charts.ticks(low, high):
        if low <= tick <= high:
            parts.append(charts.line(across(tick), TOP, across(tick), floor))
            parts.append(charts.text(across(tick), floor + 16, axis_number(tick), anchor="middle"))
    parts += _bars(spans, mass, across, floor)
    if line is not None:
        inside = [
            (across(a), min(max(up(b), TOP), TOP + UPPER)) for a, b in zip(*map(_list, line), strict=True)
        ]
        parts.append(charts.path(inside, LINE, 2.5))
    places = [(across(a), up(b)) for a, b in zip(_list(x), _list(y), strict=True)]
    parts.append(charts.path(places, POINT, 1.0, name="line0"))
    for a, b, (c, d) in zip(_list(spans[0]), _list(spans[1]), places, strict=True):
        parts.append(charts.line(across(a), d, across(b), d, POINT, "line0"))
        parts.append(charts.dot(c, d, 2.6, POINT, "line0 dots"))
    parts.append(charts.text((LEFT + WIDTH - RIGHT) / 2, floor + 38, x_label, anchor="middle", size=12))
    parts.append(charts.text(18, TOP + UPPER / 2, y_label, anchor="middle", size=12, turn=-90))
    for y0, y1 in ((TOP, TOP + UPPER), (TOP + UPPER + GAP, floor)):
        box = {"x": LEFT, "y": y0, "width": WIDTH - LEFT - RIGHT, "height": y1 - y0}
        parts.append(element("rect", fill="none", stroke=charts.FRAME, class_="frame", **box))
    return charts.drawing(WIDTH, HEIGHT, title, parts, fixed=True)


def _bars(spans: tuple[Floats, Floats], mass: Floats | None, across: Place, floor: float) -> list[Markup]:
    """Bars of the mass of each point, which reach half-way to its neighbours."""
    if mass is None:
        return [charts.text(LEFT + 8, floor - 8, "rules in each bin: not known", colour=DIM)]
    starts, ends = [across(v) for v in _list(spans[0])], [across(v) for v in _list(spans[1])]
    edges = [starts[0], *((a + b) / 2 for a, b in zip(ends, starts[1:], strict=False)), ends[-1]]
    # Bars of single values at the ends have a width as well.
    edges[0], edges[-1] = min(edges[0], edges[1] - EDGE), max(edges[-1], edges[-2] + EDGE)
    tall = charts.scale(0.0, float(mass.max()) or 1.0, floor, floor - LOWER + 4)
    parts = []
    for m, a, b in zip(_list(mass), edges, edges[1:], strict=False):
        left, right = (a, b) if b - a >= 1 else (a - 0.5, a + 0.5)
        size = {"x": left, "y": tall(m), "width": right - left, "height": floor - tall(m)}
        parts.append(element("rect", fill=BARS, stroke="white", stroke_width=0.5, class_="mass", **size))
    parts.append(charts.text(LEFT - 6, floor - LOWER + 12, axis_number(float(mass.max())), anchor="end"))
    parts.append(charts.text(18, floor - LOWER / 2, "rules", anchor="middle", size=12, turn=-90))
    return parts


def _wider(values: Floats, share: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = share * (high - low) or 1.0
    return low - margin, high + margin


def _list(values: Floats) -> list[float]:
    return [float(value) for value in values]
