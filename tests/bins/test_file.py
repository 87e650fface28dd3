"""Files of bins, and the messages for broken ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.bins.bins import FeatureBins
from hiero.bins.file import read_bins, write_bins
from hiero.core.errors import HieroError
from tests.worlds.bins import begins


@st.composite
def written(draw: st.DrawFn) -> list[FeatureBins]:
    made = []
    for name in draw(
        st.lists(st.sampled_from(["A", "b=c", "ü|", "feature"]), unique=True, min_size=1, max_size=3)
    ):
        begin = np.array(draw(begins()), np.float32)
        size = draw(st.sampled_from([0, len(begin)]))
        count = st.lists(st.integers(1, 10**12), min_size=size, max_size=size)
        real = st.lists(st.floats(-(2.0**90), 2.0**90, width=32), min_size=size, max_size=size)
        made.append(
            FeatureBins(
                feature=name,
                of=draw(st.sampled_from(["given", "probability", "count"])),
                begin=begin,
                overlap=draw(st.integers(0, 3)),
                keep=draw(st.booleans()),
                low=np.array(draw(real), np.float32),
                high=np.array(draw(real), np.float32),
                values=np.array(draw(count), np.int64),
                rules=np.array(draw(count), np.int64),
            )
        )
    return made


def test_minus_0_is_0(tmp_path: Path) -> None:
    (tmp_path / "my.bins").write_text("feature A\nbin -inf low=-1 high=-1\nbin -0 low=-0.0 high=2\n")
    (found,) = read_bins(tmp_path / "my.bins")
    assert found.names == ["A_bin1_-inf", "A_bin2_0"]


@settings(max_examples=30)
@given(written())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, made: list[FeatureBins]) -> None:
    path = tmp_path_factory.mktemp("bins") / "some.bins"
    write_bins(path, made, "from somewhere")
    found = read_bins(path)
    assert [vars_of(one) for one in found] == [vars_of(one) for one in made]
    assert [one.names for one in found] == [one.names for one in made]
    assert len({name for one in made for name in one.names}) == sum(map(len, made))


def vars_of(one: FeatureBins) -> dict[str, Any]:
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(one).items()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bin 3\n", ":1: found a bin, expected feature NAME before it"),
        ("nonsense\n", ":1: found 'nonsense', expected feature NAME ..., or bin NUMBER ..."),
        ("feature A of=log\n", ":1: found of=log, expected one of given, probability, count"),
        ("feature A overlap=-1\n", ":1: found overlap=-1, expected a whole number, 0 or more"),
        ("feature A keep=maybe\n", ":1: found keep=maybe, expected yes or no"),
        ("feature A kep=yes\n", ":1: found 'kep=yes', expected of, overlap, keep (did you mean 'keep'?)"),
        ("feature A\nfeature A\n", ":2: found feature 'A' a second time, expected it once (first in line 1)"),
        ("feature A overlap=" + 5000 * "9" + "\n", ":1: found overlap=99"),
        ("", ": found no feature, expected feature NAME ..., and its bins"),
        ("# nothing but this\n", ": found no feature, expected feature NAME ..., and its bins"),
        ("feature A\nbin 1\n", ":2: found a first bin that begins at 1, expected -inf"),
        (
            "feature B\nbin -inf\n# here\nfeature A\nbin -inf\nbin 2\nbin 1\n",
            ":7: found a bin at 1 after one at 2, expected bins in ascending order",
        ),
        ("feature A\nbin -inf\nbin 2\nbin 2\n", ":4: found a bin at 2 after one at 2, expected bins in asc"),
        ("feature A\nbin -inf\nbin -inf\n", ":3: found a bin at -inf after one at -inf, expected bins in"),
        ("feature A\nbin 1e39\n", ":2: found '1e39', expected a number"),
        ("feature A\nbin nan\n", ":2: found 'nan', expected a number"),
        ("feature A\nbin -inf\nbin 1e999\n", ":3: found '1e999', expected a number"),
        ("feature A\nbin -inf low=1\nbin 2\n", ":3: found begin, expected begin, low, as in the first bin"),
    ],
)
def test_invalid_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "my.bins"
    path.write_text(text)
    with pytest.raises(HieroError) as error:
        read_bins(path)
    assert str(error.value).startswith(f"{path}{message}")
