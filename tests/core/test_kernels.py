# mypy: ignore-errors
"""Kernels of tables, orders and room against their twins."""

from __future__ import annotations

import math
import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from hiero.core.arrays import read_only
from hiero.core.symbol_kernels import UNKNOWN, find_all_kernel, unknown_ids_kernel
from hiero.core.symbols import pack, word_table
from hiero.decoder.cube_kernels import sort_pairs_kernel
from hiero.decoder.hypergraph import Pairs
from hiero.decoder.kbest_kernels import chain_kernel
from hiero.extraction.suffix_kernels import sort_by_two_kernel
from hiero.features.feature_set import TEMPLATES
from hiero.features.index import FeatureIndex, pack_keys
from hiero.features.index_kernels import (
    RULE_ID,
    find_keys_kernel,
    intern_keys_kernel,
    intern_rules_room_kernel,
)
from hiero.features.shared_names_kernels import mark_shared_spellings_kernel
from hiero.features.template_kernels import room_kernel
from hiero.reordering.phrase_kernels import phrase_word_codes_kernel
from tests.conftest import INTERPRETED
from tests.naive import extract as naive_extract
from tests.naive import features as naive_features
from tests.naive import grammar as naive_grammar
from tests.naive import reorder as naive_reorder
from tests.naive import tables as naive
from tests.worlds.rules import rule, table

keys = st.one_of(
    st.tuples(st.sampled_from([2, 3, 5]), st.integers(-3, 3), st.integers(-3, 3)),
    st.lists(st.integers(-3, 3), min_size=1, max_size=3).map(lambda symbols: (RULE_ID, *symbols)),
)
entries = st.lists(st.binary(max_size=4), max_size=12)


@given(st.lists(keys, max_size=20), st.lists(keys, max_size=20))
def test_keys_are_numbered_and_found(known: list[tuple[int, ...]], asked: list[tuple[int, ...]]) -> None:
    index = FeatureIndex()
    rows, sequence = pack_keys(known)
    ids = np.empty(len(known), np.int32)
    intern_keys_kernel(index.reserve(len(rows), len(sequence)), rows, sequence, ids)
    assert ids.tolist() == naive.numbered(known)
    ids = np.empty(len(asked), np.int32)
    find_keys_kernel(index.table, *pack_keys(asked), ids)
    assert ids.tolist() == naive.places(list(dict.fromkeys(known)), asked)


@given(entries, entries)
def test_words_are_found(known: list[bytes], asked: list[bytes]) -> None:
    known = list(dict.fromkeys(known))
    ids = np.empty(len(asked), np.int32)
    find_all_kernel(word_table(known), *pack(asked), ids)
    assert ids.tolist() == naive.places(known, asked)


@given(st.lists(st.lists(st.integers(-2, 3))), st.permutations(range(6)), st.integers(0, 6), st.data())
def test_unknown_ids_are_found(
    rows: list[list[int]], ids: list[int], num_unknown: int, data: st.DataObject
) -> None:
    shared = np.array([UNKNOWN if number < num_unknown else number for number in ids], np.int32)
    first = np.cumsum([0, *map(len, rows)])
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1))) if rows else []
    symbol = np.array([symbol for row in rows for symbol in row], np.int32)
    found = unknown_ids_kernel(first, symbol, np.array(chosen, np.int64), shared)
    assert found.tolist() == naive_grammar.unknown([rows[r] for r in chosen], shared.tolist(), UNKNOWN)


@pytest.mark.skipif(INTERPRETED, reason="kernels then hold the interpreter's lock most of the time")
def test_unknown_ids_while_they_become_known() -> None:
    """Other threads look up words, too: no more of the result is used than was written."""
    num = 100_000
    first, symbol = read_only(np.array([0, num])), read_only(np.arange(1, num + 1, dtype=np.int32))
    ids, rows, done = np.full(num + 1, UNKNOWN, np.int32), np.zeros(1, np.int64), threading.Event()

    def look_up() -> None:
        while not done.is_set():
            ids[:] = 7
            ids[:] = UNKNOWN

    other = threading.Thread(target=look_up)
    other.start()
    try:
        for _ in range(100):
            found = unknown_ids_kernel(first, symbol, rows, ids)
            assert ((found > 0) & (found <= num)).all()
    finally:
        done.set()
        other.join()


@given(entries, st.data())
def test_codes_and_marks_of_words(words: list[bytes], data: st.DataObject) -> None:
    pool, first = pack(words)
    code = np.empty(len(words), np.uint64)
    phrase_word_codes_kernel(pool, first, code)
    assert code.tolist() == [naive_reorder.fnv(word) for word in words]
    start = data.draw(st.integers(0, len(words)))
    special = np.zeros(len(words), np.bool_)
    mark_shared_spellings_kernel(pool, first, start, len(words), special)
    assert special.tolist() == [k >= start and naive.special(word) for k, word in enumerate(words)]


@given(st.permutations(range(8)), st.integers(0, 7), st.integers(0, 9))
def test_a_linked_list_is_read_in_order(order: list[int], size: int, k: int) -> None:
    next_of = np.full(8, -1, np.int32)
    next_of[order[:size]] = order[1 : size + 1]
    for first in (-1, order[0]):
        found = chain_kernel(next_of, np.int64(first), k)
        assert found.tolist() == naive.chained(next_of.tolist(), first, k)


@given(
    st.lists(st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 2.5]), min_size=1, max_size=6), min_size=1),
    st.data(),
)
def test_pairs_are_sorted_in_each_bundle(runs: list[list[float]], data: st.DataObject) -> None:
    ends = np.cumsum([len(run) for run in runs])
    places = [(int(end) - len(run), len(run)) for end, run in zip(ends, runs, strict=True)]
    bundles = data.draw(st.permutations(places + data.draw(st.lists(st.sampled_from(places), max_size=3))))
    first, size = np.array(bundles, np.int64).T.copy()
    estimate = np.concatenate(runs)
    numbers = np.arange(len(estimate), dtype=np.int32)
    ordered = sort_pairs_kernel(Pairs(first, numbers, estimate, estimate), size)
    assert dict(enumerate(ordered.rule.tolist())) == naive.by_estimate(bundles, estimate.tolist())


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_suffixes_are_sorted_by_two_words(text: list[int]) -> None:
    first = np.zeros(max(text) + 2, np.int64)
    np.cumsum(np.bincount(text), out=first[1:])
    suffix, rank = np.empty(len(text), np.int32), np.empty(len(text) + 1, np.int32)
    sort_by_two_kernel(read_only(np.array(text, np.int32)), read_only(first), rank, suffix)
    suffixes, ranks = naive_extract.sort_by_two(text)
    assert suffix.tolist() == suffixes
    assert rank.tolist() == [*ranks, -1]


@given(st.lists(rule(num_words=6), max_size=5), st.sets(st.sampled_from(sorted(TEMPLATES))))
def test_room_for_rules(rules: list[naive_features.Rule], templates: set[str]) -> None:
    arrays, chosen = table(rules).rules, read_only(np.arange(len(rules)))
    room = np.zeros(1, np.int64)
    intern_rules_room_kernel(arrays, chosen, room)
    assert room[0] == naive_features.content_room(rules)
    rooms = np.empty(3, np.int64)
    room_kernel(arrays, chosen, sum(TEMPLATES[template] for template in templates), rooms)
    fired = [key for one in rules for key in naive_features.keys(one, templates)]
    assert len(fired) <= rooms[0]
    assert sum(len(key) - 1 for key in fired if key[0] == RULE_ID) <= rooms[1]
    assert rooms[2] == max((len(side) for one in rules for side in (one.src, one.tgt)), default=0)
