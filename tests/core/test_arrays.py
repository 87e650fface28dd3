"""Offsets of CSR form, growth of arrays, and maps between vocabularies."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from hiero.core import array_kernels
from hiero.core.arrays import (
    count_per_row,
    grown,
    joined_offsets,
    offsets_by_row,
    offsets_of,
    read_only,
    row_of_entry,
    take_rows,
)
from hiero.core.symbols import SharedIds, Vocabulary, word_table
from tests.naive.tables import numbered

rows_of = st.lists(st.lists(st.booleans(), max_size=4), max_size=6)


@given(st.lists(st.integers(-3, 9) | st.integers(-(2**31), 2**31 - 1)))
def test_distinct_items(items: list[int]) -> None:
    distinct, place = array_kernels.distinct_kernel(read_only(np.array(items, np.int32)))
    assert distinct.tolist() == list(dict.fromkeys(items))
    assert place.tolist() == numbered(items)


@given(rows_of)
def test_offsets_rows_and_counts(rows: list[list[bool]]) -> None:
    first, flat = offsets_of(map(len, rows)), np.array(list(chain(*rows)), np.bool_)
    assert first.dtype == np.int64
    assert [flat[a:b].tolist() for a, b in pairwise(first)] == rows
    assert np.array_equal(offsets_of(np.array([len(row) for row in rows], np.int32)), first)
    row = row_of_entry(first)
    assert row.tolist() == [number for number, entries in enumerate(rows) for _ in entries]
    assert np.array_equal(offsets_by_row(row, len(rows)), first)
    assert count_per_row(flat, first).tolist() == [sum(entries) for entries in rows]


@given(rows_of, st.data())
def test_rows_in_another_order_and_tables_end_to_end(rows: list[list[bool]], data: st.DataObject) -> None:
    first, flat = offsets_of(map(len, rows)), np.array(list(chain(*rows)), np.bool_)
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    taken = [rows[k] for k in order]
    new_first, place = take_rows(first, np.array(order, np.int64))
    assert np.array_equal(new_first, offsets_of(map(len, taken)))
    assert flat[place].tolist() == list(chain(*taken))
    assert np.array_equal(joined_offsets([first, new_first]), offsets_of(map(len, rows + taken)))


@pytest.mark.parametrize("shape", [(0,), (3,), (3, 2)])
def test_arrays_grow(shape: tuple[int, ...]) -> None:
    array: np.ndarray[Any, Any] = np.ones(shape, np.int32)
    assert grown(array, len(array)) is array
    larger = grown(array, 8)
    assert len(larger) >= 8
    assert larger.dtype == array.dtype
    assert larger[: len(array)].tolist() == array.tolist()
    assert not larger[len(array) :].any()
    assert len(grown(larger, len(larger) + 1)) >= 3 * len(larger) // 2  # so that appending takes linear time
    copy = grown(read_only(array), 0)
    assert copy.flags.writeable
    assert copy.tolist() == array.tolist()


@pytest.mark.parametrize("scalar", [np.int64, np.float64])
def test_arrays_of_kernels_grow(scalar: type[np.generic]) -> None:
    array = np.arange(6).astype(scalar)
    assert array_kernels.grown(array, 6) is array
    for size, length in ((7, 12), (20, 20)):
        larger = array_kernels.grown(array, size)
        assert (len(larger), larger.dtype) == (length, scalar)
        assert larger[:6].tolist() == array.tolist()
    rows = array_kernels.longer_rows(array.reshape(3, 2), 5)
    assert rows.shape == (5, 2)
    assert rows[:3].tolist() == array.reshape(3, 2).tolist()


@given(st.lists(st.binary(max_size=2), unique=True, max_size=6), st.integers(0, 1), st.data())
def test_ids_of_a_table_are_shared_on_demand(entries: list[bytes], start: int, data: st.DataObject) -> None:
    vocabulary = Vocabulary(data.draw(st.lists(st.binary(max_size=2), max_size=3)))
    ids = SharedIds(word_table(entries), vocabulary, start, gaps=(-5, -6))
    used = data.draw(st.lists(st.sampled_from(range(len(entries))), max_size=6)) if entries else []
    known = len(vocabulary)
    own = np.array([*(start + k for k in used), -1, -2], np.int32)
    for _ in range(2):
        shared = ids.to_shared(own)[own]
        assert [vocabulary.entry(k) for k in shared[:-2].tolist()] == [entries[k] for k in used]
        assert shared[-2:].tolist() == [-5, -6]
    fresh = {entries[k] for k in used} - set(vocabulary.entries()[:known])
    assert len(vocabulary) == known + len(fresh)
    places = ids.to_own(np.arange(len(vocabulary), dtype=np.int32)).tolist()
    assert places == [entries.index(one) if one in entries else -1 for one in vocabulary.entries()]


def test_rows_are_kept_or_doubled() -> None:
    array = np.arange(6).reshape(3, 2)
    assert array_kernels.with_free_row(array, 2) is array
    larger = array_kernels.with_free_row(array, 3)
    assert larger.shape == (6, 2)
    assert larger[:3].tolist() == array.tolist()
