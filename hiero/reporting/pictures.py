"""Pictures of a report as SVG: learning curves and word alignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hiero.core.charts import COLOURS, GRID, Line, dot, drawing, line, line_chart, text
from hiero.core.markup import Markup, element
from hiero.reporting.records import TuningReport

WIDTH, HEIGHT = 440, 280
# Figures of epochs with their names in a legend; {on} is the set that is learnt from.
BLEU = {
    "choose_bleu": "held out, odd lines",
    "report_bleu": "held out, even lines",
    "model_bleu": "{on}, while learning",
    "oracle_bleu": "oracle",
    "prediction_bleu": "prediction",
}
OTHERS = {"loss": "loss", "objective": "objective", "features": "weights"}


def learning_charts(tuning: TuningReport) -> Iterator[Markup]:
    """BLEU by epoch, with a ring around the chosen one, then the loss and the number of weights."""
    lines = [
        found
        for key, name in BLEU.items()
        if (found := _line(tuning, key, name.format(on=tuning.on), ring=key == "choose_bleu"))
    ]
    if lines:
        yield line_chart(lines, "epoch", "BLEU", width=WIDTH, height=HEIGHT)
    for key, name in OTHERS.items():
        found = _line(tuning, key, name)
        if found is not None and len({y for _, y in found.points}) > 1:
            yield line_chart([found], "epoch", name, width=WIDTH, height=HEIGHT)


def comparison_chart(tunings: Sequence[tuple[str, TuningReport]]) -> Markup | None:
    """BLEU of several systems by epoch, on the lines that choose, or on the set that is learnt from."""
    for key, label in (("choose_bleu", "BLEU, held out, odd lines"), ("model_bleu", "BLEU while learning")):
        lines = [_line(tuning, key, name, ring=True) for name, tuning in tunings]
        found = [one for one in lines if one is not None]
        if len(found) > 1:
            return line_chart(found, "epoch", label, width=WIDTH, height=HEIGHT)
    return None


def _line(tuning: TuningReport, key: str, name: str, *, ring: bool = False) -> Line | None:
    numbered = [(at, one[key]) for at, one in enumerate(tuning.epochs, 1) if key in one]
    if not numbered:
        return None
    marked = tuple(k for k, (at, _) in enumerate(numbered) if ring and at == tuning.chosen)
    return Line(name, tuple((float(at), float(value)) for at, value in numbered), marked)


# ---- alignments

CELL = 22
CHARACTER = 7.4  # width, about
MOST_CHARACTERS = 24  # of a word
SIZE = 13


def matrix(source: Sequence[str], target: Sequence[str], links: Sequence[tuple[int, int]]) -> Markup:
    """The links of a sentence pair: a row for each source word, a column for each target word."""
    rows, columns = ([_short(word) for word in words] for words in (source, target))
    left = 14 + CHARACTER * max(map(len, rows), default=0)
    top = 14 + CHARACTER * max(map(len, columns), default=0)
    right, bottom = left + CELL * len(columns), top + CELL * len(rows)
    parts = []
    for i in range(len(rows) + 1):
        parts.append(line(left, top + CELL * i, right, top + CELL * i, GRID))
    for j in range(len(columns) + 1):
        parts.append(line(left + CELL * j, top, left + CELL * j, bottom, GRID))
    for i, word in enumerate(rows):
        parts.append(text(left - 6, top + CELL * i + 15, word, size=SIZE, anchor="end"))
    for j, word in enumerate(columns):
        parts.append(text(left + CELL * j + 15, top - 6, word, size=SIZE, turn=-90))
    for i, j in links:
        place = left + CELL * j + CELL / 2, top + CELL * i + CELL / 2
        parts.append(dot(*place, 7, COLOURS[0], "line0 dots"))
    pairs = ", ".join(f"{source[i]}–{target[j]}" for i, j in links)
    return drawing(right + 8, bottom + 8, f"Links: {pairs or 'none'}", parts, fixed=True)


def _short(word: str) -> str:
    return word if len(word) <= MOST_CHARACTERS else word[: MOST_CHARACTERS - 1] + "…"


def bar(value: float, largest: float) -> Markup:
    """A bar to the right of 0, or to the left of it, as wide as its share of the largest."""
    share = min(1.0, abs(value) / largest) if largest > 0 else 0.0
    side = "left:50%" if value >= 0 else "right:50%"
    name = "plus" if value >= 0 else "minus"
    inner = element("span", style=f"{side};width:{50 * share:.1f}%", class_=name)
    return element("span", inner, class_="bar", aria_hidden="true")
