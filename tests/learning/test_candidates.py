"""Features of k-best lists as arrays, and weights changed by a learner."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hiero
from hiero.core.arrays import read_only
from hiero.decoder.forest_features import edge_values
from hiero.decoder.model import Model
from hiero.features.index import FeatureIndex
from hiero.features.index_kernels import NAME
from hiero.learning.candidates import candidates
from hiero.learning.list_kernels import replay_candidates_kernel
from hiero.tuning.vectors import WeightVector
from tests.conftest import MODEL
from tests.naive import candidates as naive

FEATURES = ["rule_id", "source_bigram", "target_bigram", "shape", "lexical", "span_size", "arity"]
SENTENCES = ["er hat mir ein buch versprochen .", "das haus", "kennt niemand", ""]


@pytest.fixture(scope="module")
def model() -> Model:
    return hiero.load(MODEL, features=FEATURES)


VALUES = st.sampled_from([-1.0, 0.5, 1.0, 3.0])
ROWS = st.lists(st.dictionaries(st.integers(0, 6), VALUES, max_size=4), min_size=1, max_size=5)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_replayed_features_give_the_score(data: st.DataObject) -> None:
    rows = data.draw(ROWS)
    step = st.lists(st.integers(-1, len(rows) - 1), min_size=2, max_size=2)
    steps = data.draw(st.lists(st.lists(step, max_size=6), max_size=4))
    first = np.cumsum([0, *map(len, rows)])
    features = np.array([f for row in rows for f in sorted(row)], np.int32)
    value = np.array([row[f] for row in rows for f in sorted(row)], np.float64)
    first_step = np.cumsum([0, *map(len, steps)])
    part = np.array([parts for derivation in steps for parts in derivation], np.int32).reshape(-1, 2)
    got_first, got_id, got_value = replay_candidates_kernel(
        first_step, read_only(part), first, features, value, np.int64(7)
    )
    found = [
        dict(zip(got_id[a:b].tolist(), got_value[a:b].tolist(), strict=True))
        for a, b in itertools.pairwise(got_first)
    ]
    assert found == naive.replay(steps, rows)
    assert all(list(row) == sorted(row) for row in found)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_features_of_derivations(model: Model, sentence: str) -> None:
    forest = model.parse(sentence)
    index = FeatureIndex()
    names = type(model.weights.names)(model.symbols)
    found = candidates(forest, 30, index)
    derivations = forest.kbest(30)
    assert found.size == len(derivations)
    for i, derivation in enumerate(derivations):
        here = slice(found.first[i], found.first[i + 1])
        assert np.all(np.diff(found.id[here]) > 0)
        mine = {names.name(index.key(f)): v for f, v in zip(found.id[here], found.value[here], strict=True)}
        assert mine == pytest.approx(dict(derivation.features), rel=1e-12)
        assert found.score[i] == derivation.score
        words = found.word[found.first_word[i] : found.first_word[i + 1]]
        assert words.tolist() == derivation.words.tolist()


def test_decoding_uses_the_vector_of_a_learner(model: Model) -> None:
    vector = WeightVector(model.symbols)
    other = model.with_weights(vector)
    forest = other.parse(SENTENCES[0])
    assert forest.viterbi().score == 0
    found = candidates(forest, 10, vector.index)
    vector.grow()
    # Compared with weights by name, to check the numbers of the vector.
    generator = np.random.default_rng(7)
    vector.value[: len(vector)] = generator.normal(size=len(vector))
    other.weights_changed()
    weights = vector.as_weights()
    assert len(weights) == len(vector)
    theirs = model.with_weights(hiero.Weights(model.symbols, dict(weights)))
    for sentence in SENTENCES:
        mine, plain = other.parse(sentence).kbest(20), theirs.parse(sentence).kbest(20)
        assert [d.text for d in mine] == [d.text for d in plain]
        assert [d.score for d in mine] == pytest.approx([d.score for d in plain], rel=1e-12, abs=1e-12)
    assert found.size == 10


def test_feature_numbers_do_not_depend_on_the_order_of_interning(model: Model) -> None:
    fresh = hiero.load(MODEL, features=FEATURES)
    fresh.symbols.words.intern_all(word.encode() for s in reversed(SENTENCES) for word in reversed(s.split()))
    fresh.symbols.names.intern_all([b"PassThrough", b"Glue", b"LanguageModel_OOV", b"Arity_2"])
    found = []
    for one in (model, fresh):
        vector = WeightVector(one.symbols)
        zero = one.with_weights(vector)
        rows = [candidates(zero.parse(sentence), 50, vector.index) for sentence in SENTENCES]
        found.append([(row.first.tolist(), row.id.tolist(), row.value.tolist()) for row in rows])
    assert found[0] == found[1]


def test_values_of_edges_add_up_to_features_of_derivations(model: Model) -> None:
    found = model.parse("ein buch .").kbest(20)
    dense = sorted({name for d in found for name in d.features if "_" not in name and ":" not in name})
    assert len(dense) > 5
    keys = [(NAME, model.symbols.names.intern(name.encode()), 0) for name in [*dense, "nowhere"]]
    values = edge_values(found[0].forest, keys)
    assert values.shape == (found[0].forest.num_edges, len(keys))
    for derivation in found:
        expected = [derivation.features.get(name, 0.0) for name in dense]
        assert values[derivation.edges].sum(axis=0) == pytest.approx([*expected, 0.0], rel=1e-5, abs=1e-5)
