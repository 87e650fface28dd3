"""Hash tables against dictionaries, and hashes against published values."""

from __future__ import annotations

from itertools import accumulate

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from hiero.core.hash_kernels import (
    GOLDEN,
    hash_number,
    is_key_of,
    is_same,
    probe,
    probe_new,
    probe_number,
    probe_within,
    splitmix,
    table_size,
)

numbers = st.lists(st.integers(0, 2**62), max_size=40)
crowded = st.sampled_from([0, 1, 2**64 - 1])  # hashes that collide, or wrap around at the end of the table


@given(numbers, st.booleans(), crowded)
def test_numbers_are_found_where_they_were_entered(keys: list[int], collide: bool, code: int) -> None:
    slot = np.full(table_size(len(keys)), -1, np.int64)
    entered: dict[int, int] = {}
    for key in keys:
        hashed = np.uint64(code) if collide else hash_number(key)
        at = probe_number(slot, hashed, np.int64(key))
        assert slot[at] == (key if key in entered else -1)
        assert entered.setdefault(key, at) == at
        slot[at] = key
    assert sorted(slot[slot >= 0].tolist()) == sorted(set(keys))


@given(numbers, st.lists(st.integers(0, 2**62), max_size=5), st.booleans(), crowded)
def test_places_of_keys_are_found(keys: list[int], more: list[int], collide: bool, code: int) -> None:
    distinct = np.array(list(dict.fromkeys(keys)), np.int64)
    slot = np.full(table_size(len(distinct)), -1, np.int32)

    def hashed(key: int) -> np.uint64:
        return np.uint64(code) if collide else hash_number(key)

    for place, key in enumerate(distinct.tolist()):
        slot[probe_new(slot, hashed(key))] = place
    places = {key: place for place, key in enumerate(distinct.tolist())}
    for key in keys + more:
        assert slot[probe(slot, hashed(key), is_key_of, distinct, np.int64(key))] == places.get(key, -1)


@given(numbers)
def test_a_table_may_be_the_beginning_of_an_array(keys: list[int]) -> None:
    size = table_size(len(keys))
    slot = np.full(2 * size, -1, np.int64)
    for key in keys:
        at = probe_within(slot, np.int64(size - 1), hash_number(key), is_same, slot, np.int64(key))
        slot[at] = key
    assert (slot[size:] == -1).all()
    assert set(slot[:size].tolist()) == {-1, *keys}


def test_tables_are_at_most_half_full() -> None:
    assert [table_size(entries) for entries in (0, 8, 9, 16, 17, 1 << 20)] == [16, 16, 32, 32, 64, 1 << 21]


@pytest.mark.parametrize(
    ("seed", "drawn"),
    [
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (1234567, [6457827717110365317, 3203168211198807973, 9817491932198370423]),
    ],
)
def test_splitmix64(seed: int, drawn: list[int]) -> None:
    """The numbers of the reference implementation (Vigna 2015)."""
    states = accumulate([int(GOLDEN)] * len(drawn), lambda a, b: (a + b) % 2**64, initial=seed)
    assert [splitmix(np.uint64(state)) for state in list(states)[1:]] == drawn
