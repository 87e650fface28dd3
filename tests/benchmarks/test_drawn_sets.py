"""benchmarks/papers/drawn_sets.py: sets with several references."""

from __future__ import annotations

import pytest

from benchmarks.papers.drawn_sets import draw

SOURCE = ["a", "b", "c", "a", "b", "c", "d", "d", "e", "f", "e", ""]
TARGET = ["A", "B", "C", "AA", "BB", "CC", "D", "D", "E", "A", "EE", ""]


def test_drawn_sets_have_their_references_and_share_nothing_with_the_rest() -> None:
    """``d`` has one target, ``f`` that of another source."""
    for seed in range(5):
        drawn = draw(SOURCE, TARGET, [1, 2], 2, seed)
        assert [len(one) for one in drawn.sets] == [1, 2]
        chosen = [mine for one in drawn.sets for mine in one]
        assert all(len(mine) == 2 and len({SOURCE[k] for k in mine}) == 1 for mine in chosen)
        sources = {SOURCE[mine[0]] for mine in chosen}
        assert len(sources) == 3
        assert sources <= {"a", "b", "c", "e"}
        assert {SOURCE[k] for k in drawn.rest} == {*SOURCE} - sources - ({"f"} if "a" in sources else set())
    assert draw(SOURCE, TARGET, [2], 2, 1) == draw(SOURCE, TARGET, [2], 2, 1)
    with pytest.raises(SystemExit, match="found 4 sources with 2 targets, expected 5 or more"):
        draw(SOURCE, TARGET, [5], 2, 1)
