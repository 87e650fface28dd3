"""Plots and tables of the weights of bins."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.bins.bins import FeatureBins
from hiero.bins.curves import HEIGHT, WIDTH, best_log, curves_of, draw, table
from hiero.bins.file import write_bins
from hiero.cli.main import main
from hiero.core.charts import decade_ticks, ticks
from hiero.core.symbols import Symbols
from hiero.features.weights import Weights

SVG = "{http://www.w3.org/2000/svg}"


def bins(values: list[float], *, seen: bool = True, **more: Any) -> FeatureBins:
    """A bin for each value, or two."""
    begin = np.array([-math.inf, *values[1:]], np.float32)
    known: dict[str, Any] = {}
    if seen:
        high = [*values[1:], values[-1] * 1.5 + 1]
        known = {
            "low": np.array(values, np.float32),
            "high": np.array([a + (b - a) / 4 for a, b in zip(values, high, strict=True)], np.float32),
            "values": np.full(len(values), 3),
            "rules": np.arange(1, len(values) + 1) * 10,
        }
    return FeatureBins(feature="F", begin=begin, **known, **more)


def weights(one: FeatureBins, values: list[float]) -> Weights:
    return Weights(Symbols(), dict(zip(one.names, values, strict=True)))


def test_a_logarithm_is_found() -> None:
    one = bins([0.001, 0.01, 0.05, 0.2, 0.5], of="probability")
    (empty,) = curves_of([one], None)
    wanted = 2 + 3 * np.log10(empty.middle)
    (curve,) = curves_of([one], weights(one, wanted.tolist()))
    assert curve.fit is not None
    assert (curve.fit.offset, curve.fit.slope) == pytest.approx((2, 3))
    assert curve.fit.left == pytest.approx(0, abs=1e-12)
    assert str(curve.fit) == "2 + 3 log10(value)"


def test_the_fit_is_weighted_by_rules() -> None:
    one = bins([1.0, 2.0, 5.0, 9.0, 30.0], of="count")
    (curve,) = curves_of([one], weights(one, [0.3, -0.2, 0.9, 0.5, 2.0]))
    fit = best_log(curve)
    assert fit is not None
    assert fit.shift == 1

    def left(offset: float, slope: float) -> float:
        off = curve.weight - offset - slope * np.log10(curve.middle + 1)
        return float(np.average(off**2, weights=curve.rules))

    best = left(fit.offset, fit.slope)
    for da, db in ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01)):
        assert left(fit.offset + da, fit.slope + db) > best
    mean = np.average(curve.weight, weights=curve.rules)
    assert fit.left == pytest.approx(best / np.average((curve.weight - mean) ** 2, weights=curve.rules))


def test_bins_without_rules_have_equal_weight() -> None:
    one = bins([1.0, 2.0, 5.0, 9.0])
    none = FeatureBins(feature="F", begin=one.begin, low=one.low, high=one.high, rules=np.zeros(4, np.int64))
    alike = FeatureBins(feature="F", begin=one.begin, low=one.low, high=one.high)
    (curve,), (other,) = (curves_of([some], weights(one, [0.3, -0.2, 0.9, 0.5])) for some in (none, alike))
    assert curve.fit == other.fit is not None
    assert len(ElementTree.fromstring(draw(curve)).findall(f"{SVG}circle")) == 4


def test_where_there_is_no_logarithm() -> None:
    for one in (bins([-3.0, 1.0, 2.0, 4.0]), bins([1.0, 2.0])):
        (curve,) = curves_of([one], weights(one, [1.0] * len(one)))
        assert curve.fit is None


@pytest.mark.parametrize(
    ("learnt", "turns", "against", "text"),
    [
        ([1.0, 2.0, 2.0, 4.0], 0, 0.0, "monotone"),
        ([4.0, 3.0, 3.0, -1.0], 0, 0.0, "monotone"),
        ([1.0, 1.0, 1.0, 1.0], 0, 0.0, "monotone"),
        ([0.0, 4.0, 3.0, 3.0], 1, 0.2, "1 turning point, 20 % of its movement against the trend"),
        ([0.0, -2.0, 1.0, -4.0], 2, 0.3, "2 turning points, 30 % of its movement against the trend"),
    ],
)
def test_trends(learnt: list[float], turns: int, against: float, text: str) -> None:
    one = bins([1.0, 2.0, 5.0, 9.0])
    (curve,) = curves_of([one], weights(one, learnt))
    assert curve.trend.turns == turns
    assert curve.trend.against == pytest.approx(against)
    assert str(curve.trend) == text
    assert table(curve).split("\n")[0].endswith(f"; {text}")
    assert text in draw(curve)


def test_a_table_for_the_terminal() -> None:
    one = bins([1.0, 2.0, 5.0], of="count", overlap=1)
    (curve,) = curves_of([one], weights(one, [-1.0, 0.0, 1.0]))
    lines = table(curve).split("\n")
    assert lines[0].startswith("F (count): 3 bins, a value counts for 1 more on either side; best log: -")
    assert lines[1].split() == ["from", "seen", "rules", "weight"]
    assert lines[2].split() == ["-inf", "1", "..", "1.25", "10", "-1.0000", "##########|"]
    assert lines[3].split() == ["2", "2", "..", "2.75", "20", "0.0000", "|"]
    assert lines[4].split() == ["5", "5", "..", "5.875", "30", "1.0000", "|##########"]
    assert lines[3].index("|") == lines[2].index("|")
    plain = table(curves_of([one], None)[0], with_weights=False)
    assert "weight" not in plain
    assert "best log" not in plain


# ---- plots


def numbers(element: ElementTree.Element, names: str) -> list[float]:
    return [float(element.attrib[name]) for name in names.split() if name in element.attrib]


@settings(max_examples=40)
@given(
    st.lists(st.floats(-50, 5000, width=32), min_size=1, max_size=9, unique=True).map(sorted),
    st.booleans(),
    st.sampled_from(["given", "count"]),
    st.data(),
)
def test_plots_stay_inside_their_frames(
    values: list[float], seen: bool, of: Any, data: st.DataObject
) -> None:
    one = bins(values, seen=seen, of=of)
    learnt = data.draw(st.lists(st.floats(-9, 9), min_size=len(one), max_size=len(one)))
    learnt = [w or 0.5 for w in learnt]  # a table without weights is an error
    (curve,) = curves_of([one], weights(one, learnt))
    root = ElementTree.fromstring(draw(curve))
    circles = root.findall(f"{SVG}circle")
    assert len(circles) == len(one)
    for element in root.iter():
        assert all(-0.1 <= x <= WIDTH + 0.1 for x in numbers(element, "x x1 x2 cx"))
        assert all(-0.1 <= y <= HEIGHT + 0.1 for y in numbers(element, "y y1 y2 cy"))
        assert all(size >= 0 for size in numbers(element, "width height"))
    heights = [(float(c.attrib["cy"]), w) for c, w in zip(circles, learnt, strict=True)]
    for (y0, w0), (y1, w1) in itertools.pairwise(heights):
        assert (y0 - y1) * (w1 - w0) >= -1e-6  # larger weights are higher up


def test_names_are_escaped(tmp_path: Path) -> None:
    one = FeatureBins(feature='a/<b>"&\x01', begin=np.array([-math.inf, 1], np.float32))
    (curve,) = curves_of([one], Weights(Symbols(), dict.fromkeys(one.names, 1.0)))
    assert "a/<b>" in "".join(ElementTree.fromstring(draw(curve)).itertext())


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks(low: float, width: float) -> None:
    found = ticks(low, low + width)
    assert len(found) <= 8
    assert all(low <= tick <= low + width for tick in found)


def test_decades() -> None:
    assert decade_ticks(0.02, 500) == pytest.approx([0.1, 1, 10, 100])
    assert decade_ticks(2, 5) == [2, 5]
    assert len(decade_ticks(1e-30, 1)) <= 8


# ---- the command


def test_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = bins([1.0, 2.0, 5.0])
    write_bins(tmp_path / "my.bins", [one, FeatureBins(feature="Gone")])
    lines = (f"{name} {value}\n" for name, value in zip(one.names, (1, 2, 2.5), strict=True))
    (tmp_path / "weights").write_text("".join(lines))
    assert main(["bins", "show", str(tmp_path / "my.bins")]) == 0
    assert capfd.readouterr().out.startswith("F: 3 bins\n")
    assert main(["bins", "show", str(tmp_path / "my.bins"), "-w", str(tmp_path / "weights")]) == 0
    assert "2.5000" in capfd.readouterr().out
    command = ["bins", "plot", str(tmp_path / "my.bins"), "-w", str(tmp_path / "weights")]
    assert main([*command, "-o", str(tmp_path / "curves")]) == 0
    assert capfd.readouterr().out == f"{tmp_path}/curves/F.svg\n"
    assert [path.name for path in (tmp_path / "curves").iterdir()] == ["F.svg"]
    (tmp_path / "file").touch()
    assert main([*command, "-o", str(tmp_path / "file")]) == 1
    assert capfd.readouterr().err == f"{tmp_path}/file: found a file, expected a directory to write to\n"
    (tmp_path / "weights").write_text("F_bin1_0 3\n")
    assert main([*command, "-o", str(tmp_path / "curves")]) == 1
    expected = (
        f"{tmp_path}/weights: found no weight of F_bin1_-inf or another bin, expected weights of the bins"
    )
    assert capfd.readouterr().err.startswith(expected)
