"""Plots as SVG without a library: points, a line through them, and bars below."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Place = Callable[[float], float]

WIDTH, HEIGHT = 640, 460
LEFT, RIGHT, TOP = 70, 20, 48
UPPER, LOWER = 250, 70  # heights of the two panels
GAP = 16
EDGE = 8  # width of a bar at an end, at least
POINT, LINE, GRID, BARS = "#1f4e9c", "#999999", "#e3e3e3", "#c9d4e8"
FONT = "font-family='Helvetica, Arial, sans-serif'"


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
) -> str:
    """Plot points in order, each with its span of values, and a grey line; bars of ``mass`` below.

    With ``decades`` the horizontal axis is logarithmic; all x must then be positive.
    """
    x, y = points
    low, high = float(spans[0].min()), float(spans[1].max())
    across = _across(low, high, decades)
    ys = np.concatenate([y, [0.0] if line is None else np.clip(line[1], *_wider(y, 0.5))])
    bottom, top = _wider(ys, 0.06)
    up = _scale(bottom, top, TOP + UPPER, TOP)
    parts = [_text(LEFT, 22, title, size=15, weight="bold"), _text(LEFT, 39, note, size=11, colour="#666666")]
    for tick in ticks(bottom, top):
        parts.append(_line(LEFT, up(tick), WIDTH - RIGHT, up(tick), GRID))
        parts.append(_text(LEFT - 6, up(tick) + 4, _number(tick), anchor="end"))
    if bottom < 0 < top:
        parts.append(_line(LEFT, up(0), WIDTH - RIGHT, up(0), "#888888"))
    floor = TOP + UPPER + GAP + LOWER
    for tick in decade_ticks(low, high) if decades else ticks(low, high):
        if low <= tick <= high:
            parts.append(_line(across(tick), TOP, across(tick), floor, GRID))
            parts.append(_text(across(tick), floor + 16, _number(tick), anchor="middle"))
    parts += _bars(spans, mass, across, floor)
    if line is not None:
        inside = [
            (across(a), min(max(up(b), TOP), TOP + UPPER)) for a, b in zip(*map(_list, line), strict=True)
        ]
        parts.append(_path(inside, LINE, 2.5))
    parts.append(_path([(across(a), up(b)) for a, b in zip(_list(x), _list(y), strict=True)], POINT, 1.0))
    for a, b, c, d in zip(_list(spans[0]), _list(spans[1]), _list(x), _list(y), strict=True):
        parts.append(_line(across(a), up(d), across(b), up(d), POINT))
        parts.append(f"<circle cx='{across(c):.1f}' cy='{up(d):.1f}' r='2.6' fill='{POINT}'/>")
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, floor + 38, x_label, anchor="middle", size=12))
    parts.append(_text(18, TOP + UPPER / 2, y_label, anchor="middle", size=12, turned=True))
    for y0, y1 in ((TOP, TOP + UPPER), (TOP + UPPER + GAP, floor)):
        size = f"width='{WIDTH - LEFT - RIGHT}' height='{y1 - y0}'"
        parts.append(f"<rect x='{LEFT}' y='{y0}' {size} fill='none' stroke='#555555'/>")
    size = f"width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {size}>"
    return "\n".join(
        [head, f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>", *filter(None, parts), "</svg>", ""]
    )


def _bars(spans: tuple[Floats, Floats], mass: Floats | None, across: Place, floor: float) -> list[str]:
    """Bars of the mass of each point, which reach half-way to its neighbours."""
    if mass is None:
        return [_text(LEFT + 8, floor - 8, "rules in each bin: not known", colour="#666666")]
    starts, ends = [across(v) for v in _list(spans[0])], [across(v) for v in _list(spans[1])]
    edges = [starts[0], *((a + b) / 2 for a, b in zip(ends, starts[1:], strict=False)), ends[-1]]
    # Bars of single values at the ends have a width as well.
    edges[0], edges[-1] = min(edges[0], edges[1] - EDGE), max(edges[-1], edges[-2] + EDGE)
    tall = _scale(0.0, float(mass.max()) or 1.0, floor, floor - LOWER + 4)
    parts = []
    for m, a, b in zip(_list(mass), edges, edges[1:], strict=False):
        left, right = (a, b) if b - a >= 1 else (a - 0.5, a + 0.5)
        size = f"width='{right - left:.1f}' height='{floor - tall(m):.1f}'"
        look = f"fill='{BARS}' stroke='white' stroke-width='0.5'"
        parts.append(f"<rect x='{left:.1f}' y='{tall(m):.1f}' {size} {look}/>")
    parts.append(_text(LEFT - 6, floor - LOWER + 12, _number(float(mass.max())), anchor="end"))
    parts.append(_text(18, floor - LOWER / 2, "rules", anchor="middle", size=12, turned=True))
    return parts


# ---- axes


def _across(low: float, high: float, decades: bool) -> Place:
    if decades:
        inner = _scale(math.log10(low), math.log10(high), LEFT + 10, WIDTH - RIGHT - 10)
        return lambda value: inner(math.log10(value))
    return _scale(low, high, LEFT + 10, WIDTH - RIGHT - 10)


def _scale(low: float, high: float, at_low: float, at_high: float) -> Place:
    width = high - low
    if width <= 0:
        return lambda value: (at_low + at_high) / 2
    return lambda value: at_low + (value - low) / width * (at_high - at_low)


def _wider(values: Floats, share: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = share * (high - low) or 1.0
    return low - margin, high + margin


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """At most ``most`` round numbers from ``low`` to ``high``."""
    width = high - low
    if width <= 0 or not math.isfinite(width):
        return [low]
    step = 10.0 ** math.floor(math.log10(width / most))
    factor = next(f for f in (1, 2, 5, 10, 20) if width / (f * step) <= most)
    step *= factor
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    round_ones = (float(f"{k * step:.12g}") for k in range(first, last + 1))
    # There may be none between neighbouring floats.
    return [tick for tick in round_ones if low <= tick <= high] or [low]


def decade_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """At most ``most`` powers of ten, evenly spaced, from ``low`` to ``high``."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    every = max(1, -(-(last - first + 1) // most))
    return [10.0**k for k in range(first, last + 1, every)] or [low, high]


# ---- marks


def _list(values: Floats) -> list[float]:
    return [float(value) for value in values]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 and abs(value) < 1e7 else f"{value:.4g}"


def _line(x0: float, y0: float, x1: float, y1: float, colour: str) -> str:
    return f"<line x1='{x0:.1f}' y1='{y0:.1f}' x2='{x1:.1f}' y2='{y1:.1f}' stroke='{colour}'/>"


def _path(places: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f"<polyline points='{text}' fill='none' stroke='{colour}' stroke-width='{width}'/>"


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 11,
    anchor: str = "start",
    weight: str = "normal",
    colour: str = "#222222",
    turned: bool = False,
) -> str:
    turn = f" transform='rotate(-90 {x:.1f} {y:.1f})'" if turned else ""
    kept = "".join(c for c in text if c >= " " and not 0x7F <= ord(c) < 0xA0)  # characters allowed in XML
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' font-weight='{weight}' "
        f"fill='{colour}' {FONT}{turn}>{escape(kept)}</text>"
    )
