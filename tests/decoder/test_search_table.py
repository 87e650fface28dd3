"""The heap against a sorted list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hiero.decoder.search_table_kernels import heap_pop, heap_push, order_by_score

# None: pop the best; else push an entry with this priority. Few priorities, so that many are equal.
steps = st.lists(st.none() | st.integers(-2, 2).map(float), max_size=40)


@given(steps, st.permutations(range(40)))
def test_the_top_is_the_best_and_of_equals_the_smallest(changes: list[float | None], ids: list[int]) -> None:
    priority, entry = np.empty(40), np.empty(40, np.int32)
    expected: list[tuple[float, int]] = []
    size = 0
    for change, number in zip(changes, ids, strict=False):
        if change is not None:
            heap_push(priority, entry, size, change, number)
            expected.append((-change, number))
            size += 1
        elif size:
            best = min(expected)
            assert (-priority[0], entry[0]) == best
            expected.remove(best)
            heap_pop(priority, entry, size)
            size -= 1
    while size:
        best = min(expected)
        assert (-priority[0], entry[0]) == best
        expected.remove(best)
        heap_pop(priority, entry, size)
        size -= 1


@given(st.lists(st.integers(-9, 9).map(float), max_size=100), st.integers(0, 5))
def test_order_by_score(scores: list[float], first: int) -> None:
    order, first = np.full(len(scores), -1, np.int32), min(first, len(scores))
    order_by_score(np.array(scores), first, len(scores), order, np.empty(len(scores), np.int32))
    expected = sorted(range(first, len(scores)), key=lambda i: -scores[i])  # which is stable
    assert order.tolist() == [-1] * first + expected
