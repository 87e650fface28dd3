"""Curves as SVG, over a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence

from hiero.core.charts import Line, line_chart


def svg(lines: Sequence[Line], x_label: str, y_label: str) -> str:
    """The plot: a curve for each line, with a dot at each point, and a legend."""
    return f"{line_chart(lines, x_label, y_label, log=True)}\n"
