"""Keys, the feature table, and the templates against their twins."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.core.symbols import Symbols
from hiero.features.feature_set import TEMPLATES
from hiero.features.index import FeatureIndex, Key
from hiero.features.index_kernels import NAME, RULE_ID
from hiero.features.names import Names
from hiero.features.score import template_keys, template_rows
from hiero.grammar.cdec import parse_cdec
from tests.naive import features as naive
from tests.worlds.rules import rule, table

template_sets = st.sets(st.sampled_from(sorted(TEMPLATES)))


def bits(templates: set[str]) -> int:
    return sum(TEMPLATES[template] for template in templates)


def unpacked(first: np.ndarray, key: np.ndarray, pool: np.ndarray) -> list[list[Key]]:  # type: ignore[type-arg]
    rows = [
        (RULE_ID, *pool[a : a + b].tolist()) if kind == RULE_ID else (kind, a, b)
        for kind, a, b in key.tolist()
    ]
    return [rows[start:end] for start, end in pairwise(first.tolist())]


@given(st.lists(rule(), max_size=6), template_sets, st.randoms())
def test_templates_equal_their_twins(rules, templates, random):
    chosen = [random.randrange(len(rules)) for _ in rules]
    keys = template_keys(table(rules).rules, read_only(np.array(chosen, np.int64)), bits(templates))
    assert unpacked(*keys) == [naive.keys(rules[r], templates) for r in chosen]


@given(st.lists(st.lists(rule(num_words=6), max_size=5), max_size=3), template_sets)
def test_rows_number_features_by_first_occurrence(batches, templates):
    index = FeatureIndex()
    rows = []
    for rules in batches:
        chosen = read_only(np.arange(len(rules)))
        found = template_rows(table(rules).rules, chosen, bits(templates), index)
        ends = found.first.tolist()
        ids, values = found.id.tolist(), found.value.tolist()
        rows += [dict(zip(ids[a:b], values[a:b], strict=True)) for a, b in pairwise(ends)]
    keys, expected = naive.rows([r for rules in batches for r in rules], templates)
    assert index.all_keys() == keys
    assert rows == expected


keys = st.one_of(
    st.tuples(st.sampled_from([NAME, 2, 3, 5]), st.integers(-20, 20), st.integers(-20, 20)),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=5).map(lambda seq: (RULE_ID, *seq)),
)


@given(st.lists(st.lists(keys, max_size=20), max_size=10))
def test_index_equals_a_dictionary(batches):
    index, known = FeatureIndex(), {}
    for batch in batches:
        ids = index.intern_all(batch)
        assert ids.tolist() == [known.setdefault(key, len(known)) for key in batch]
    assert index.all_keys() == list(known)
    assert [index.key(i) for i in range(len(index))] == list(known)
    assert [index.find(key) for key in known] == list(range(len(known)))
    assert index.find((7, 12345, 6)) == -1


def test_index_survives_growth():
    index = FeatureIndex()
    many = [(2, i % 100, i // 100) for i in range(3000)] + [(RULE_ID, i, -i, 5) for i in range(3000)]
    assert index.intern_all(many[:10]).tolist() == list(range(10))
    assert index.intern_all(many).tolist() == list(range(6000))
    assert index.find_all(many[::-1]).tolist() == list(range(6000))[::-1]


def fired(text: str, templates: set[str]) -> dict[str, float]:
    symbols = Symbols()
    index = FeatureIndex()
    rows = template_rows(parse_cdec([text], symbols).rules, read_only(np.arange(1)), bits(templates), index)
    names = Names(symbols)
    return {
        names.name(index.key(f)): value
        for f, value in zip(rows.id.tolist(), rows.value.tolist(), strict=True)
    }


VERSPROCHEN = "[X] ||| [X,1] hat [X,2] versprochen ||| [1] promised [2] ||| F=1 ||| 1-1 3-1"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("rule_id", {"R:X:NX_hat_NX_versprochen:N1_promised_N2": 1}),
        (
            "source_bigram",
            {
                "RBS:<r>_X": 1,
                "RBS:X_hat": 1,
                "RBS:hat_X": 1,
                "RBS:X_versprochen": 1,
                "RBS:versprochen_</r>": 1,
            },
        ),
        ("target_bigram", {"RBT:<r>_X1": 1, "RBT:X1_promised": 1, "RBT:promised_X2": 1, "RBT:X2_</r>": 1}),
        ("bigram", {}),
        ("shape", {"Shape_S01111_T01110": 1}),
        ("word_pair", {"LT:hat:promised": 1, "LT:versprochen:promised": 1}),
        ("insertion_pair", {}),
    ],
)
def test_names_of_the_example_in_cdecs_spelling(template, expected):
    assert fired(VERSPROCHEN, {template}) == expected


def test_repeated_bigrams_count_and_shapes_do_not():
    everything = fired("[X] ||| a a a ||| b b b b ||| ||| 0-0", {"source_bigram", "target_bigram", "shape"})
    assert everything["RBS:a_a"] == 2
    assert everything["RBT:b_b"] == 3
    assert everything["Shape_S10000_T10000"] == 1
    assert fired("[X] ||| a [X,1] ||| b_c d d d [1] e ||| ||| 0-0", {"bigram"}) == {
        "B:b%5Fc_d": 1,
        "B:d_d": 2,
    }


def test_unlinked_words():
    rule_text = "[X] ||| a b ||| c d d ||| ||| 0-0"
    assert fired(rule_text, {"word_pair"}) == {"LT:a:c": 1}
    assert fired(rule_text, {"deletion"}) == {"LD:b": 1}
    assert fired(rule_text, {"insertion"}) == {"LI:d": 2}
    assert fired(rule_text, {"insertion_pair"}) == {"IP:a:d": 2, "IP:b:d": 2}


def test_glue():
    assert fired("[S] ||| [S,1] [X,2] ||| [1] [2] ||| Glue=1", set(TEMPLATES)) == {
        "R:S:NS_NX:N1_N2": 1,
        **dict.fromkeys(["RBS:<r>_S", "RBS:S_X", "RBS:X_</r>"], 1),
        **dict.fromkeys(["RBT:<r>_S1", "RBT:S1_X2", "RBT:X2_</r>"], 1),
        "Shape_S01010_T01010": 1,
    }
