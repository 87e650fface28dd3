"""Box plots as SVG, for the variance between runs of one system."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

WIDTH, ROW = 640, 44  # pixels; of a row, its height
LEFT, RIGHT, TOP, BOTTOM = 150, 20, 16, 46
BOX = 20  # height of a box
TICKS = 6  # at most about so many


@dataclass(frozen=True)
class Box:
    """A system and the scores of its runs."""

    name: str
    values: tuple[float, ...]


def five_numbers(values: Sequence[float]) -> tuple[float, ...]:
    """The minimum, the quartiles (with linear interpolation), and the maximum."""
    return tuple(float(number) for number in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from at most ``low`` to at least ``high``."""
    span = max(high - low, 1e-3)
    power = 10.0 ** math.floor(math.log10(span / TICKS))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= TICKS)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def svg(boxes: Sequence[Box], label: str) -> str:
    """The plot: a row for each box, whiskers to the minimum and the maximum, a dot for each run."""
    values = [value for box in boxes for value in box.values]
    marks = ticks(min(values), max(values))
    height = TOP + ROW * len(boxes) + BOTTOM

    def x(value: float) -> str:
        share = (value - marks[0]) / (marks[-1] - marks[0])
        return f"{LEFT + share * (WIDTH - LEFT - RIGHT):.2f}"

    digits = max(0, -math.floor(math.log10(marks[1] - marks[0]) + 1e-9))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="13" stroke="black" fill="none">',
        f"<title>{html.escape(label)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white" stroke="none"/>',
    ]
    bottom = TOP + ROW * len(boxes)
    for mark in marks:
        parts += [
            f'<path d="M{x(mark)} {TOP}V{bottom}" stroke="#ddd"/>',
            _text(x(mark), bottom + 18, f"{mark:.{digits}f}", "middle"),
        ]
    for row, box in enumerate(boxes):
        parts += _row(box, TOP + ROW * row + ROW // 2, x)
    parts += [_text(str((LEFT + WIDTH - RIGHT) // 2), bottom + 38, label, "middle"), "</svg>"]
    return "\n".join(parts) + "\n"


def _row(box: Box, middle: int, x: Callable[[float], str]) -> list[str]:
    least, lower, median, upper, largest = five_numbers(box.values)
    top, half = middle - BOX // 2, BOX // 4
    parts = [
        _text(str(LEFT - 12), middle + 4, box.name, "end"),
        f'<path d="M{x(least)} {middle}H{x(lower)}M{x(upper)} {middle}H{x(largest)}"/>',
        f'<path d="M{x(least)} {middle - half}v{2 * half}M{x(largest)} {middle - half}v{2 * half}"/>',
        f'<rect x="{x(lower)}" y="{top}" width="{float(x(upper)) - float(x(lower)):.2f}" height="{BOX}" '
        'fill="#cfe0f3"/>',
        f'<path d="M{x(median)} {top}v{BOX}" stroke-width="2"/>',
    ]
    dots = [f'<circle cx="{x(value)}" cy="{middle}" r="2.5"/>' for value in sorted(box.values)]
    return [*parts, '<g fill="black" fill-opacity="0.35" stroke="none">', *dots, "</g>"]


def _text(x: str, y: int, text: str, anchor: str) -> str:
    style = f'text-anchor="{anchor}" fill="black" stroke="none"'
    return f'<text x="{x}" y="{y}" {style}>{html.escape(text)}</text>'
