"""Parts of plots as SVG: scales, marks of axes, texts and lines; and a plot of several lines.

Colours are attributes, which the style sheet of a page overrides by class: ``ink`` (text), ``grid``,
``frame``, ``back``, ``mass``, and ``line0`` ... ``line4``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hiero.core.markup import Markup, element

Place = Callable[[float], float]
Point = tuple[float, float]

FONT = "Helvetica, Arial, sans-serif"
INK, GRID, FRAME = "#222222", "#dddddd", "#555555"
COLOURS = ("#1f4e9c", "#c2571a", "#2e7d32", "#7b1fa2", "#555555")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4")  # so that colours are not needed
FACTORS = (1, 2, 5)  # of powers of ten, where a logarithmic axis has marks


# ---- axes


def scale(low: float, high: float, at_low: float, at_high: float) -> Place:
    """A linear map; all values of an empty range are in the middle."""
    width = high - low
    if width <= 0:
        return lambda value: (at_low + at_high) / 2
    return lambda value: at_low + (value - low) / width * (at_high - at_low)


def log_scale(low: float, high: float, at_low: float, at_high: float) -> Place:
    """A logarithmic map of positive values."""
    inner = scale(math.log10(low), math.log10(high), at_low, at_high)
    return lambda value: inner(math.log10(value))


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


def outer_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """About ``most`` round numbers, from at most ``low`` to at least ``high``; two or more."""
    span = max(high - low, 1e-3, 1e-12 * max(abs(low), abs(high)))
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= most)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def decade_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """At most ``most`` powers of ten, evenly spaced, from ``low`` to ``high``."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    every = max(1, -(-(last - first + 1) // most))
    return [10.0**k for k in range(first, last + 1, every)] or [low, high]


def outer_decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, from at most ``low`` to at least ``high``."""
    marks = [
        factor * 10.0**power
        for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
        for factor in FACTORS
    ]
    first = max(k for k, mark in enumerate(marks) if mark <= low * (1 + 1e-9))
    last = min(k for k, mark in enumerate(marks) if mark >= high * (1 - 1e-9))
    return marks[first : max(last, first + 1) + 1]


def digits_of(marks: Sequence[float]) -> int:
    """The decimals that tell evenly spaced marks apart."""
    apart = marks[1] - marks[0]
    return max(0, -math.floor(math.log10(apart) + 1e-9)) if apart > 0 else 0


def axis_number(value: float) -> str:
    """A number beside an axis."""
    return f"{value:,.0f}" if abs(value) >= 1000 and abs(value) < 1e7 else f"{value:.4g}"


# ---- marks


def drawing(
    width: float, height: float, title: str, parts: Iterable[Markup | None], *, fixed: bool = False
) -> Markup:
    """A whole SVG image on a white ground.

    title  for readers who cannot see it
    fixed  of this size in pixels; otherwise as large as there is room
    """
    return element(
        "svg",
        element("title", title),
        "\n",
        element("rect", width=width, height=height, fill="white", class_="back"),
        "\n",
        [part and [part, "\n"] for part in parts],
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        font_family=FONT,
        width=width if fixed else None,
        height=height if fixed else None,
        viewBox=f"0 0 {width:g} {height:g}",
    )


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: int = 11,
    anchor: str = "start",
    weight: str | None = None,
    colour: str = INK,
    turn: float = 0,
) -> Markup:
    """A text at a place, turned by an angle."""
    return element(
        "text",
        content,
        x=float(x),
        y=float(y),
        font_size=size,
        text_anchor=anchor,
        font_weight=weight,
        fill=colour,
        class_="ink",
        transform=f"rotate({turn:g} {x:.1f} {y:.1f})" if turn else None,
    )


def line(x0: float, y0: float, x1: float, y1: float, colour: str = GRID, name: str = "grid") -> Markup:
    """A straight line."""
    return element("line", x1=float(x0), y1=float(y0), x2=float(x1), y2=float(y1), stroke=colour, class_=name)


def path(
    points: Iterable[Point], colour: str, width: float, *, dash: str = "", name: str | None = None
) -> Markup:
    """A line through points."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element(
        "polyline",
        points=places,
        fill="none",
        stroke=colour,
        stroke_width=float(width),
        stroke_dasharray=dash or None,
        class_=name,
    )


def dot(x: float, y: float, radius: float, colour: str, name: str | None = None) -> Markup:
    """A filled circle."""
    return element("circle", cx=float(x), cy=float(y), r=float(radius), fill=colour, class_=name)


# ---- a plot of lines

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 58, 20, 16, 50
ROW = 18  # height of a row of the legend
SIZE = 13  # of texts
CHARACTER = 7.5  # width of one, about
LARGEST = 1e300


@dataclass(frozen=True)
class Line:
    """A line of a plot.

    points  by ascending first coordinate
    marked  numbers of points with a ring
    """

    name: str
    points: tuple[Point, ...]
    marked: tuple[int, ...] = ()


def line_chart(
    lines: Sequence[Line],
    x_label: str,
    y_label: str,
    *,
    log: bool = False,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> Markup:
    """A curve for each line, with a dot at each point, below a legend.

    Points that are not finite, or too large to compute with, are left out.

    log  with a logarithmic horizontal axis: first coordinates must be positive
    """
    lines = [_finite(one) for one in lines]
    points = [point for one in lines for point in one.points] or [(1.0, 0.0)]
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    across = outer_decades(low, high) if log else _inner(low, high)
    up = outer_ticks(min(y for _, y in points), max(y for _, y in points))
    legend, top = _legend(lines, width)
    right, bottom, height = width - RIGHT, height - BOTTOM + top, height + top
    top += TOP
    ends = (across[0], across[-1]) if log else (low, high)
    place_x = (log_scale if log else scale)(*ends, LEFT, right)
    place_y = scale(up[0], up[-1], bottom, top)
    parts = [*legend]
    for mark in across:
        x = place_x(mark)
        label = f"{mark:g}" if log else axis_number(mark)
        parts += [line(x, top, x, bottom), text(x, bottom + 18, label, size=SIZE, anchor="middle")]
    digits = digits_of(up)
    for mark in up:
        y = place_y(mark)
        parts += [
            line(LEFT, y, right, y),
            text(LEFT - 8, y + 4, f"{mark:.{digits}f}", size=SIZE, anchor="end"),
        ]
    for k, one in enumerate(lines):
        parts += _curve([(place_x(x), place_y(y)) for x, y in one.points], k, one.marked)
    parts.append(text((LEFT + right) / 2, height - 10, x_label, size=SIZE, anchor="middle"))
    parts.append(text(14, (top + bottom) / 2, y_label, size=SIZE, anchor="middle", turn=-90))
    return drawing(width, height, f"{y_label} against {x_label}", parts)


def _finite(one: Line) -> Line:
    kept = [k for k, (x, y) in enumerate(one.points) if abs(x) < LARGEST and abs(y) < LARGEST]
    marked = tuple(new for new, k in enumerate(kept) if k in one.marked)
    return Line(one.name, tuple(one.points[k] for k in kept), marked)


def _inner(low: float, high: float) -> list[float]:
    """Marks within a range; whole numbers, if its ends are."""
    found = ticks(low, high)
    is_whole = low == int(low) and high == int(high)
    return [mark for mark in found if mark == int(mark)] if is_whole else found


def _legend(lines: Sequence[Line], width: int) -> tuple[list[Markup], int]:
    """The legend above a plot, in rows, and its height."""
    parts: list[Markup] = []
    x, y = float(LEFT), 0
    for k, one in enumerate(lines):
        needed = 36 + CHARACTER * len(one.name) + 16
        if k and x + needed > width - RIGHT:
            x, y = float(LEFT), y + ROW
        parts += _curve([(x, y + 14.0), (x + 28, y + 14.0)], k, ())
        parts.append(text(x + 36, y + 18, one.name, size=SIZE))
        x += needed
    return parts, y + ROW


def _curve(points: Sequence[Point], k: int, marked: Sequence[int]) -> list[Markup]:
    colour, name = COLOURS[k % len(COLOURS)], f"line{k % len(COLOURS)}"
    rings = [(*points[at], 6.5) for at in marked]
    return [
        path(points, colour, 2, dash=DASHES[k % len(DASHES)], name=name),
        element("g", [dot(x, y, 3, colour) for x, y in points], class_=f"{name} dots"),
        *(
            element("circle", cx=x, cy=y, r=r, fill="none", stroke=colour, stroke_width=2, class_=name)
            for x, y, r in rings
        ),
    ]
