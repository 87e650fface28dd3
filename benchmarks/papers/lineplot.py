"""Curves as SVG, over a logarithmic axis."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.papers.boxplot import ticks

WIDTH, HEIGHT = 640, 380  # pixels
LEFT, RIGHT, TOP, BOTTOM = 58, 20, 16, 50
COLOURS = ("#1f4e9c", "#c2571a", "#2e7d32", "#7b1fa2", "#555555")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4")  # so that colours are not needed
ROW = 18  # height of a row of the legend
FACTORS = (1, 2, 5)  # of powers of ten, where the axis has marks


@dataclass(frozen=True)
class Line:
    """A system and its points, of which the first coordinate is positive and ascends."""

    name: str
    points: tuple[tuple[float, float], ...]


def decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, from at most ``low`` to at least ``high``."""
    marks = [
        factor * 10.0**power
        for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
        for factor in FACTORS
    ]
    first = max(k for k, mark in enumerate(marks) if mark <= low * (1 + 1e-9))
    last = min(k for k, mark in enumerate(marks) if mark >= high * (1 - 1e-9))
    return marks[first : max(last, first + 1) + 1]


def svg(lines: Sequence[Line], x_label: str, y_label: str) -> str:
    """The plot: a curve for each line, with a dot at each point, and a legend."""
    points = [point for line in lines for point in line.points]
    across = decades(min(x for x, _ in points), max(x for x, _ in points))
    up = ticks(min(y for _, y in points), max(y for _, y in points))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        share = math.log(x / across[0]) / math.log(across[-1] / across[0])
        return LEFT + share * (right - LEFT), bottom - (y - up[0]) / (up[-1] - up[0]) * (bottom - TOP)

    label = f"{y_label} against {x_label}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13" stroke="black" fill="none">',
        f"<title>{html.escape(label)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white" stroke="none"/>',
    ]
    for mark in across:
        x, _ = place(mark, up[0])
        parts += [f'<path d="M{x:.2f} {TOP}V{bottom}" stroke="#ddd"/>']
        parts += [_text(x, bottom + 18, f"{mark:g}", "middle")]
    digits = max(0, -math.floor(math.log10(up[1] - up[0]) + 1e-9))
    for mark in up:
        _, y = place(across[0], mark)
        parts += [f'<path d="M{LEFT} {y:.2f}H{right}" stroke="#ddd"/>']
        parts += [_text(LEFT - 8, y + 4, f"{mark:.{digits}f}", "end")]
    for k, line in enumerate(lines):
        parts += _curve([place(*point) for point in line.points], k)
        y = bottom - 14 - ROW * (len(lines) - 1 - k)
        parts += _curve([(right - 190, y - 4), (right - 162, y - 4)], k)
        parts += [_text(right - 152, y, line.name, "start")]
    parts += [_text((LEFT + right) / 2, HEIGHT - 10, x_label, "middle"), _text(12, TOP + 4, y_label, "start")]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curve(points: Sequence[tuple[float, float]], k: int) -> list[str]:
    colour, dash = COLOURS[k % len(COLOURS)], DASHES[k % len(DASHES)]
    way = "L".join(f"{x:.2f} {y:.2f}" for x, y in points)
    dots = [f'<circle cx="{x:.2f}" cy="{y:.2f}" r="3"/>' for x, y in points]
    pattern = f' stroke-dasharray="{dash}"' if dash else ""
    return [
        f'<path d="M{way}" stroke="{colour}" stroke-width="2"{pattern}/>',
        f'<g fill="{colour}" stroke="none">',
        *dots,
        "</g>",
    ]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    style = f'text-anchor="{anchor}" fill="black" stroke="none"'
    return f'<text x="{x:.2f}" y="{y:.2f}" {style}>{html.escape(text)}</text>'
