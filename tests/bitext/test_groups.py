"""Sets drawn from a bitext, apart from the rest."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.bitext.groups import same_lines, sequester, set_aside, words_of
from hiero.core.errors import ConfigError

PAIRS = st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from("stuvwxyz")), min_size=1, max_size=30)


def numbers(side: list[str]) -> np.ndarray:
    return same_lines([words_of(line) for line in side])


def test_lines_are_the_same_if_their_words_are() -> None:
    lines = ["b  a", "a", "b a ", "a\tb", "b\u00a0a", "", " ", "a b"]
    assert numbers(lines).tolist() == [0, 1, 0, 2, 3, 4, 5, 2]
    assert numbers([]).tolist() == []


@given(PAIRS, st.integers(1, 3), st.integers(1, 3), st.integers(0, 9), st.integers(0, 3))
def test_sets_share_no_text_with_each_other_and_the_rest(
    pairs: list[tuple[str, str]], one: int, two: int, seed: int, empty: int
) -> None:
    sides = [list(side) for side in zip(*pairs, strict=True)]
    usable = np.arange(min(empty, len(pairs)), len(pairs))
    try:
        found = set_aside(numbers(sides[0]), numbers(sides[1]), usable, {"one": one, "two": two}, seed)
    except ConfigError:
        # Drawing is greedy: it may fail only where some order of drawing does.
        most = min(len({pairs[k][side] for k in usable}) for side in range(2))
        assert most == 0 or one + two > 1
        return
    assert [len(chosen) for chosen in found.sets.values()] == [one, two]
    drawn = [pairs[k] for chosen in found.sets.values() for k in chosen.tolist()]
    assert set(np.concatenate(list(found.sets.values())).tolist()) <= set(usable.tolist())
    for a, b in itertools.combinations(drawn, 2):
        assert a[0] != b[0]
        assert a[1] != b[1]
    expected = [
        k for k, (src, tgt) in enumerate(pairs) if all(src != a and tgt != b for a, b in drawn)
    ]  # all that has neither side, and nothing less
    assert found.rest.tolist() == expected
    assert found.dropped == len(pairs) - len(expected) - len(drawn)


def test_sets_depend_on_the_seed_and_on_those_before_them() -> None:
    source = target = np.arange(50, dtype=np.int32)
    usable = np.arange(50)

    def drawn(seed: int, **sizes: int) -> list[list[int]]:
        found = set_aside(source, target, usable, sizes, seed)
        return [chosen.tolist() for chosen in found.sets.values()]

    assert drawn(1, a=5, b=5) == drawn(1, a=5, b=5)
    assert drawn(1, a=5, b=5)[0] == drawn(1, a=5)[0]
    assert drawn(1, a=5) != drawn(2, a=5)
    assert drawn(-1, a=5) == drawn(1, a=5)


def test_pairs_with_an_empty_side_are_not_drawn(tmp_path: Path) -> None:
    source, target, links = (tmp_path / name for name in ("s", "t", "links"))
    source.write_text("\ufeffa\n\nc\n a  \nd\ne\n")
    target.write_text("s\r\nt\n\nx\ny\n\n")
    links.write_text("0-0\n\n\n0-0\n0-0\n\n")
    outputs = [tmp_path / "set" / name for name in ("s", "t", "lines")]
    rest = [tmp_path / f"rest.{name}" for name in ("s", "t", "links")]
    outputs[0].parent.mkdir()
    paths = [source, target, links]
    with pytest.raises(ConfigError, match="set: found 3, expected at most 2 pairs that share no source"):
        sequester(paths, {"set": outputs}, rest, {"set": 3}, 1)
    found = sequester(paths, {"set": outputs}, rest, {"set": 2}, 1)
    chosen = found.sets["set"].tolist()
    assert chosen in ([0, 4], [3, 4])
    assert [path.read_text() for path in rest] == ["\nc\ne\n", "t\n\n\n", "\n\n\n"]
    assert outputs[2].read_text() == "".join(f"{k + 1}\n" for k in chosen)
    assert outputs[0].read_text() == ("a\nd\n" if chosen[0] == 0 else " a  \nd\n")
    assert outputs[1].read_text() == ("s\ny\n" if chosen[0] == 0 else "x\ny\n")
    for path in (source, target, links):
        path.write_text("a\nb\n")
    with pytest.raises(ConfigError, match=r"no pair of .* is left for training"):
        sequester(paths, {"set": outputs}, rest, {"set": 2}, 1)
