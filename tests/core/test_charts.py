"""Plots as SVG."""

from __future__ import annotations

import math
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from hiero.core.charts import BOTTOM, HEIGHT, ROW, WIDTH, Line, line_chart, outer_ticks

SVG = "{http://www.w3.org/2000/svg}"
NUMBERS = (
    st.floats(allow_nan=True, allow_infinity=True) | st.floats(-100, 100) | st.integers(-5, 5).map(float)
)


@given(
    st.lists(st.tuples(st.text(max_size=9), st.lists(NUMBERS, max_size=6)), max_size=4),
    st.booleans(),
)
def test_points_are_in_order_and_inside(given_lines: list[tuple[str, list[float]]], log: bool) -> None:
    lines = [
        Line(name, tuple((float(k), y) for k, y in enumerate(values, 1)), marked=(0,))
        for name, values in given_lines
    ]
    root = ElementTree.fromstring(line_chart(lines, "x", "y < z", log=log))
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == "y < z against x"
    height = float(root.attrib["viewBox"].split()[3])
    assert HEIGHT < height <= HEIGHT + ROW * (len(lines) + 1)
    groups = root.findall(f"{SVG}g")[len(lines) :]  # the first are those of the legend
    assert len(groups) == len(lines)
    for group, one in zip(groups, lines, strict=True):
        shown = [point for point in one.points if abs(point[1]) < 1e300]
        places = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in group]
        assert len(places) == len(shown)
        assert all(0 <= x <= WIDTH and 0 <= y <= height - BOTTOM for x, y in places)
        for (x0, y0), (x1, y1), a, b in zip(places, places[1:], shown, shown[1:], strict=False):
            assert x0 < x1
            assert (y0 - y1) * (b[1] - a[1]) >= 0 or math.isclose(y0, y1, abs_tol=0.02)


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300))
def test_ticks_reach_both_ends(low: float, width: float) -> None:
    marks = outer_ticks(low, low + width)
    slack = 1e-9 * max(abs(low), width, 1e-3)
    assert marks[0] <= low + slack
    assert marks[-1] >= low + width - slack
    assert 2 <= len(marks) <= 9
