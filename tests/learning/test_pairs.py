"""Pairs of translations for ranking, against naive twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import ConfigError
from hiero.learning.pairs import AllPairs, Multipartite, Pairing, SampledPairs
from tests.naive import learn as naive

GOLD = st.lists(st.integers(0, 12).map(lambda twelfths: twelfths / 16), min_size=1, max_size=30)


def pairs(choose: Pairing, gold: list[float], length: list[int] | None = None, *key: int) -> list[tuple]:
    length = [5] * len(gold) if length is None else length
    found = choose(np.array(gold), np.array(length), *(key or (0, 0)))
    assert found.dtype == np.int32
    assert not found.flags.writeable
    return [tuple(row) for row in found.tolist()]


@given(GOLD, st.sampled_from([0.05, 0.1, 0.2, 0.5]))
def test_multipartite_pairs_equal_their_twin(gold: list[float], share: float) -> None:
    size = min(max(1, int(share * len(gold) + 0.5)), len(gold) // 2)
    assert pairs(Multipartite(share=share), gold) == naive.level_pairs(gold, size, size)


def test_all_three_kinds_of_multipartite_pairs() -> None:
    """cdec's code leaves out those of MID and LOW."""
    rng = np.random.default_rng(1)
    gold = rng.permutation(100) / 100
    found = pairs(Multipartite(), gold.tolist())
    assert len(found) == len(set(found)) == 1700
    level = np.where(gold >= 0.9, 0, np.where(gold >= 0.1, 1, 2))
    kinds = [(level[a], level[b]) for a, b in found]
    assert kinds == [(0, 1)] * 800 + [(0, 2)] * 100 + [(1, 2)] * 800
    assert all(gold[a] > gold[b] for a, b in found)
    better = [gold[a] for a, _ in found[:800]]
    assert better == sorted(better, reverse=True)


def test_ties_of_the_metric_are_broken_by_the_model() -> None:
    assert pairs(Multipartite(), [0.5, 0.5, 0.25, 0.25]) == [(0, 2), (0, 3), (1, 3)]


def test_small_lists() -> None:
    assert pairs(Multipartite(), [0.5]) == []
    assert pairs(Multipartite(), [0.25, 0.5]) == [(1, 0)]
    assert pairs(Multipartite(), [0.5, 0.5]) == []
    assert pairs(AllPairs(), [0.5]) == []
    assert pairs(SampledPairs(), [0.5]) == []


@given(GOLD)
def test_all_pairs(gold: list[float]) -> None:
    everything = [(a, b) for a in range(len(gold)) for b in range(len(gold)) if gold[a] > gold[b]]
    found = pairs(AllPairs(), gold)
    assert sorted(found) == sorted(everything)
    assert found == sorted(found, key=lambda pair: (-gold[pair[0]], pair[0], -gold[pair[1]], pair[1]))


@given(
    GOLD,
    st.data(),
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2**31)),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.05, 0.25]),
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
)
def test_sampled_pairs_equal_their_twin(
    gold: list[float],
    data: st.DataObject,
    key: tuple[int, int, int],
    draws: int,
    threshold: float,
    soft: bool,
    deviations: float,
) -> None:
    length = data.draw(st.lists(st.integers(1, 20), min_size=len(gold), max_size=len(gold)))
    seed, epoch, number = key
    apart = deviations * max(2.0, float(np.std(length))) if deviations else np.inf
    twin = naive.drawn_pairs(gold, length, key, draws, threshold, apart, soft)
    settings = {"draws": draws, "threshold": threshold, "soft": soft, "length_deviations": deviations}
    found = pairs(SampledPairs(**settings, keep=5, seed=seed), gold, length, epoch, number)
    assert found == [(a, b) for _, a, b in sorted(twin, key=lambda pair: -pair[0])[:5]]
    drawn_first = pairs(
        SampledPairs(**settings, keep=5, seed=seed, largest=False), gold, length, epoch, number
    )
    assert drawn_first == [(a, b) for _, a, b in twin[:5]]


def test_samples_depend_on_seed_epoch_and_sentence() -> None:
    gold = (np.arange(50) / 50).tolist()
    found = {}
    for seed, epoch, number in np.ndindex(3, 3, 3):
        found[seed, epoch, number] = pairs(SampledPairs(seed=seed, draws=9), gold, None, epoch, number)
    assert len(set(map(tuple, found.values()))) == 27
    assert found[1, 2, 0] == pairs(SampledPairs(seed=1, draws=9), gold, None, 2, 0)


def test_samples_are_uniform() -> None:
    """Each of the ten pairs is drawn about as often as any other."""
    gold = [0.0, 0.25, 0.5, 0.75, 1.0]
    found = pairs(SampledPairs(draws=20_000, keep=20_000, threshold=0.0), gold)
    counts = np.unique(np.array(found), axis=0, return_counts=True)[1]
    assert len(counts) == 10
    # 1,600 each, and a standard deviation of 38.
    assert np.abs(counts - 1600).max() < 190


def test_more_pairs_than_memory_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.learning.pairs.MOST_PAIRS", 44)
    assert len(pairs(AllPairs(), [0.5, 0.5, *np.arange(2, 10.0).tolist()])) == 44
    with pytest.raises(ConfigError, match="found 45 in 10 translations of a sentence, expected at most 44 "):
        pairs(AllPairs(), np.arange(10.0).tolist())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Multipartite(share=0.0),
        lambda: Multipartite(share=0.6),
        lambda: SampledPairs(draws=0),
        lambda: SampledPairs(keep=0),
        lambda: SampledPairs(threshold=-0.1),
        lambda: SampledPairs(seed=-1),
    ],
)
def test_invalid_settings(wrong: object) -> None:
    with pytest.raises(ConfigError, match="expected"):
        wrong()  # type: ignore[operator]
