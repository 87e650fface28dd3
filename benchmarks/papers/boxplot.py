"""Box plots as SVG, for the variance between runs of one system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hiero.core.charts import FRAME, digits_of, drawing, line, outer_ticks, text
from hiero.core.markup import Markup, element

WIDTH, ROW = 640, 44  # pixels; of a row, its height
LEFT, RIGHT, TOP, BOTTOM = 150, 20, 16, 46
BOX = 20  # height of a box
SIZE = 13  # of texts


@dataclass(frozen=True)
class Box:
    """A system and the scores of its runs."""

    name: str
    values: tuple[float, ...]


def five_numbers(values: Sequence[float]) -> tuple[float, ...]:
    """The minimum, the quartiles (with linear interpolation), and the maximum."""
    return tuple(float(number) for number in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))


def svg(boxes: Sequence[Box], label: str) -> str:
    """The plot: a row for each box, whiskers to the minimum and the maximum, a dot for each run."""
    values = [value for box in boxes for value in box.values]
    marks = outer_ticks(min(values), max(values))
    height = TOP + ROW * len(boxes) + BOTTOM

    def x(value: float) -> float:
        share = (value - marks[0]) / (marks[-1] - marks[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    digits = digits_of(marks)
    parts: list[Markup] = []
    bottom = TOP + ROW * len(boxes)
    for mark in marks:
        parts.append(line(x(mark), TOP, x(mark), bottom))
        parts.append(text(x(mark), bottom + 18, f"{mark:.{digits}f}", size=SIZE, anchor="middle"))
    for row, box in enumerate(boxes):
        parts += _row(box, TOP + ROW * row + ROW // 2, x)
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, bottom + 38, label, size=SIZE, anchor="middle"))
    return f"{drawing(WIDTH, height, label, parts)}\n"


def _row(box: Box, middle: int, x: Callable[[float], float]) -> list[Markup]:
    least, lower, median, upper, largest = five_numbers(box.values)
    top, half = middle - BOX // 2, BOX // 4

    def across(start: float, end: float) -> Markup:
        return line(x(start), middle, x(end), middle, FRAME)

    def upright(value: float, height: float) -> Markup:
        return line(x(value), middle - height, x(value), middle + height, FRAME)

    box_size = {"x": x(lower), "y": top, "width": x(upper) - x(lower), "height": BOX}
    parts = [
        text(LEFT - 12, middle + 4, box.name, size=SIZE, anchor="end"),
        across(least, lower),
        across(upper, largest),
        upright(least, half),
        upright(largest, half),
        element("rect", fill="#cfe0f3", stroke=FRAME, **box_size),
        element("g", upright(median, BOX / 2), stroke_width=2),
    ]
    dots = [element("circle", cx=x(value), cy=middle, r=2.5) for value in sorted(box.values)]
    return [*parts, element("g", dots, fill="black", fill_opacity=0.35)]
