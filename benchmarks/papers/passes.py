"""BLEU pass by pass, as pictures: ``python -m benchmarks.papers.passes OUT``.

Figures 1 to 6 of Eidelman (2012; 001), from the runs of ``benchmarks.papers.learners --paper 001``. A line
is BLEU on the tuning set while learning; its thin bars reach down to the predictions and up to the oracles,
as in the paper; its thick bars, from the least to the largest of the replicas.

    OUT/passes.strategies.svg  hope and fear against LU and cost (Figures 1 and 2)
    OUT/passes.hope.svg        the predictions with the oracle hope (3 and 5)
    OUT/passes.lu.svg          the predictions with the oracle LU (4 and 6)
    OUT/passes.held_out.svg    even lines of the held-out set with the weights of each pass, all systems

Pictures without runs are left out. The runs of all of them:

    P=mira.dev.dense
    python -m benchmarks.papers.learners runs --data ../shared/data/multi30k-de-en --epochs 6 --systems \
        $P,$P:oracle=lu:prediction=cost,$P:prediction=model,$P:prediction=cost,\
        $P:oracle=lu:prediction=model,$P:oracle=lu:prediction=fear
    python -m benchmarks.papers.passes runs
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hiero.core import charts
from hiero.core.charts import COLOURS, DASHES, digits_of, line, outer_ticks, text
from hiero.core.markup import Markup, element
from hiero.core.text import write_output
from hiero.tuning.report import read_log

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 46
LEGEND = 18  # height of a line of it
SIZE = 13  # of texts
APART = 5.0  # pixels between the bars of two systems
RUN = re.compile(r"(?P<system>.+?)(\.(?P<replica>[1-9]\d*))?\.run")
WHERE = "mira.dev."
ORACLES = {"hope": "M−C", "lu": "LU"}
PREDICTIONS = {"fear": "M+C", "cost": "MC", "model": "PB"}


@dataclass(frozen=True)
class Series:
    """A system: for each pass, the values of all replicas, and the mean bounds of the thin bars."""

    name: str
    values: tuple[tuple[float, ...], ...]
    bounds: tuple[tuple[float, float], ...] = ()

    def means(self) -> list[float]:
        return [sum(some) / len(some) for some in self.values]


# ---- runs


def logs(out: Path) -> dict[str, list[list[dict[str, float]]]]:
    """The logs of all replicas of each system of MIRA, by the names of their folders."""
    runs = []
    for path in out.glob(f"{WHERE}*.run"):
        parts = RUN.fullmatch(path.name)
        log = read_log(path / "tune") if (path / "tune").is_dir() else []
        if parts is not None and log:
            runs.append((parts["system"], int(parts["replica"] or 1), log))
    found: dict[str, list[list[dict[str, float]]]] = {}
    for system, _, log in sorted(runs, key=lambda run: run[:2]):
        found.setdefault(system, []).append(log)
    return found


def parts_of(system: str) -> tuple[str, str, list[str]]:
    """Oracle and prediction of a system, from the name of its folder; its features and other settings."""
    features, *settings = system.removeprefix(WHERE).split("-")
    given = dict(setting.partition("=")[::2] for setting in settings)
    oracle, prediction = given.pop("oracle", "hope"), given.pop("prediction", "fear")
    return oracle, prediction, [features, *(f"{key}={value}" for key, value in given.items())]


def title(system: str) -> str:
    oracle, prediction, more = parts_of(system)
    return f"{ORACLES[oracle]} / {PREDICTIONS[prediction]}, {', '.join(more)}"


def series_of(name: str, replicas: Sequence[Sequence[Mapping[str, float]]], what: str = "model") -> Series:
    """BLEU of each pass that all replicas have done."""
    passes = range(min(len(log) for log in replicas))
    values = tuple(tuple(float(log[n][f"{what}_bleu"]) for log in replicas) for n in passes)
    if what != "model" or "oracle_bleu" not in replicas[0][0]:
        return Series(name, values)

    def mean(n: int, which: str) -> float:
        # Of a prediction that is the best of the model, only the latter is reported.
        return sum(float(log[n].get(which, log[n]["model_bleu"])) for log in replicas) / len(replicas)

    return Series(name, values, tuple((mean(n, "prediction_bleu"), mean(n, "oracle_bleu")) for n in passes))


def pictures(out: Path) -> dict[str, str]:
    """The pictures of all runs, by the names of their files."""
    found = logs(out)
    groups: dict[str, Callable[[str, str], bool]] = {
        "strategies": lambda oracle, prediction: (oracle, prediction) in (("hope", "fear"), ("lu", "cost")),
        "hope": lambda oracle, _prediction: oracle == "hope",
        "lu": lambda oracle, _prediction: oracle == "lu",
    }
    made = {}
    for name, wanted in groups.items():
        mine = [system for system in found if wanted(*parts_of(system)[:2])]
        if mine:
            series = [series_of(title(system), found[system]) for system in mine]
            made[f"passes.{name}.svg"] = svg(series, "pass", "BLEU on the tuning set")
    scored = [
        system for system, replicas in found.items() if all("report_bleu" in log[0] for log in replicas)
    ]
    if scored:
        series = [series_of(title(system), found[system], "report") for system in scored]
        made["passes.held_out.svg"] = svg(series, "pass", "BLEU on held-out text")
    return made


# ---- drawing


def svg(series: Sequence[Series], across: str, label: str) -> str:
    """Lines over passes, with a legend below."""
    values = [value for one in series for some in (*one.values, *one.bounds) for value in some]
    marks = outer_ticks(min(values), max(values))
    passes = max(len(one.values) for one in series)
    bottom, height = HEIGHT - BOTTOM, HEIGHT + LEGEND * len(series)

    def x(number: float) -> float:
        return LEFT + (number + 0.5) / passes * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return bottom - (value - marks[0]) / (marks[-1] - marks[0]) * (bottom - TOP)

    digits = digits_of(marks)
    parts: list[Markup] = []
    for mark in marks:
        parts.append(line(LEFT, y(mark), WIDTH - RIGHT, y(mark)))
        parts.append(text(LEFT - 8, y(mark) + 4, f"{mark:.{digits}f}", size=SIZE, anchor="end"))
    for number in range(passes):
        parts.append(text(x(number), bottom + 18, str(number + 1), size=SIZE, anchor="middle"))
    caption = f"{label}, by {across}"
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, bottom + 38, caption, size=SIZE, anchor="middle"))
    for at, one in enumerate(series):
        shift, below = APART * (at - (len(series) - 1) / 2), HEIGHT + LEGEND * at + 4
        colour, dash = COLOURS[at % len(COLOURS)], DASHES[at % len(DASHES)]
        bars = _bars(one, lambda number, shift=shift: x(number) + shift, y, colour)  # type: ignore[misc]
        points = [(x(n) + shift, y(mean)) for n, mean in enumerate(one.means())]
        ways = [
            charts.path(way, colour, 2, dash=dash) for way in (points, [(LEFT, below), (LEFT + 28, below)])
        ]
        parts.append(element("g", bars, ways, stroke=colour, fill=colour))
        parts.append(text(LEFT + 36, below + 4, one.name, size=SIZE))
    return f"{charts.drawing(WIDTH, height, label, parts)}\n"


def _bars(one: Series, x: Callable[[float], float], y: Callable[[float], float], colour: str) -> list[Markup]:
    parts = []
    for n, (low, high) in enumerate(one.bounds):
        cap = "".join(f"M{x(n) - 3:.1f} {y(end):.1f}h6" for end in (low, high))
        way = f"M{x(n):.1f} {y(low):.1f}V{y(high):.1f}{cap}"
        parts.append(element("path", d=way, stroke_opacity=0.5))
    for n, some in enumerate(one.values):
        way = f"M{x(n):.1f} {y(min(some)):.1f}V{y(max(some)):.1f}"
        parts.append(element("path", d=way, stroke_width=4))
        parts.append(charts.dot(x(n), y(one.means()[n]), 2.5, colour))
    return parts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.passes", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="directory of benchmarks.papers.learners")
    args = parser.parse_args(arguments)
    made = pictures(args.out)
    if not made:
        sys.exit(
            f"{args.out}: found no runs of mira, expected those of benchmarks.papers.learners --paper 001"
        )
    for name, content in made.items():
        write_output(args.out / name, content)
        print(args.out / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
