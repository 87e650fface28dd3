"""Significance tests against enumeration, and on equally good systems."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.evaluation import significance
from hiero.evaluation.bleu import References, corpus_bleu
from hiero.evaluation.significance import (
    Comparison,
    bootstrap_scores,
    bootstrap_test,
    interval,
    pooled_score,
    randomization_test,
    significance_marks,
    spread,
)

Floats = npt.NDArray[np.float64]
TRIALS = 4000
NOISE = 0.03  # more than three standard deviations of a p value over so many trials


def ratio(sums: Floats) -> Floats:
    """A metric that is not linear: matches divided by possible matches."""
    return np.divide(sums[:, 0], sums[:, 1], out=np.zeros(len(sums)), where=sums[:, 1] > 0)


def bleu(sums: Floats) -> Floats:
    return 100 * corpus_bleu(sums)


def paired_bootstrap_test(
    metric: significance.Metric, baseline: Floats, system: Floats, trials: int = 10_000, seed: int = 1
) -> Comparison:
    samples = bootstrap_scores(metric, [baseline, system], trials, seed)
    observed = pooled_score(metric, system) - pooled_score(metric, baseline)
    return bootstrap_test(observed, samples[0], samples[1])


def enumerated(pairs: list[tuple[Floats, Floats]]) -> float:
    """The fraction of all swaps with a difference at least as large as the observed one."""

    def score(rows: list[Floats]) -> float:
        total = sum(row[1] for row in rows)
        return float(sum(row[0] for row in rows) / total) if total else 0.0

    def difference(swaps: tuple[bool, ...]) -> float:
        sides = [(b, a) if swap else (a, b) for (a, b), swap in zip(pairs, swaps, strict=True)]
        return abs(score([b for _, b in sides]) - score([a for a, _ in sides]))

    ways = list(itertools.product([False, True], repeat=len(pairs)))
    observed = difference(ways[0])
    return sum(difference(way) >= observed - 1e-9 for way in ways) / len(ways)


Rows = list[tuple[int, int]]
STATS = st.lists(st.tuples(st.integers(0, 5), st.integers(5, 9)), min_size=6, max_size=6)


@given(STATS, STATS)
def test_randomization_equals_enumeration(first: Rows, second: Rows) -> None:
    a, b = np.array([first], np.float64), np.array([second], np.float64)
    found = randomization_test(ratio, a, b, TRIALS)
    assert found.p == pytest.approx(enumerated(list(zip(a[0], b[0], strict=True))), abs=NOISE)
    assert found.difference == pytest.approx(ratio(b[0].sum(0)[None])[0] - ratio(a[0].sum(0)[None])[0])


@given(STATS, STATS)
def test_runs_are_swapped_pair_by_pair(first: Rows, second: Rows) -> None:
    """Two runs of three sentences: six pairs, swapped independently."""
    a, b = (np.array(rows, np.float64).reshape(2, 3, 2) for rows in (first, second))
    pairs = list(zip(a.reshape(6, 2), b.reshape(6, 2), strict=True))
    assert randomization_test(ratio, a, b, TRIALS).p == pytest.approx(enumerated(pairs), abs=NOISE)


@given(STATS, STATS)
def test_unequal_runs_are_swapped_together(first: Rows, second: Rows) -> None:
    a, b = np.array([first], np.float64)[:, :3], np.array(second, np.float64).reshape(2, 3, 2)
    pairs = list(zip(a.mean(axis=0), b.mean(axis=0), strict=True))
    assert randomization_test(ratio, a, b, TRIALS).p == pytest.approx(enumerated(pairs), abs=NOISE)


def test_a_system_compared_with_itself() -> None:
    stats = np.random.default_rng(2).integers(1, 9, (2, 30, 2)).astype(np.float64)
    for found in (
        randomization_test(ratio, stats, stats, 500),
        paired_bootstrap_test(ratio, stats, stats, 500),
    ):
        assert (found.difference, found.p) == (0.0, 1.0)
    assert paired_bootstrap_test(ratio, stats[:1], stats[:1], 500).wins == 0.5


def test_a_system_that_is_always_better() -> None:
    rng = np.random.default_rng(3)
    worse = np.stack([rng.integers(0, 5, 40), np.full(40, 10)], axis=1)[None].astype(np.float64)
    better = worse + np.array([3.0, 0.0])
    found = randomization_test(ratio, worse, better, 999)
    assert found.p == 1 / 1000
    assert found.difference == pytest.approx(0.3)
    assert randomization_test(ratio, better, worse, 999).difference == pytest.approx(-0.3)
    by_bootstrap = paired_bootstrap_test(ratio, worse, better, 999)
    assert (by_bootstrap.p, by_bootstrap.wins) == (1 / 1000, 1.0)
    assert by_bootstrap.interval is not None
    # Every sample gains 3 of 10: the variance is zero.
    assert (by_bootstrap.interval.low, by_bootstrap.interval.high) == pytest.approx((0.3, 0.3))


def test_the_interval_of_a_difference_of_means() -> None:
    """A ratio with a constant denominator is a mean, whose standard error is known."""
    rng = np.random.default_rng(5)
    first, second = (np.stack([rng.normal(5, 1, 400), np.ones(400)], axis=1)[None] for _ in range(2))
    found = paired_bootstrap_test(ratio, first, second, 4000).interval
    gains = second[0, :, 0] - first[0, :, 0]
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    assert found is not None
    assert found.low == pytest.approx(gains.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(gains.mean() + 1.96 * error, abs=0.1 * error)


@pytest.mark.parametrize("test", [randomization_test, paired_bootstrap_test])
def test_p_values_are_uniform_under_the_null_hypothesis(test: Callable[..., Comparison]) -> None:
    """A test at level alpha rejects in a fraction alpha of all experiments."""
    rng = np.random.default_rng(4)
    values = []
    for seed in range(300):
        a, b = (
            np.stack([rng.binomial(20, 0.4, 60), np.full(60, 20)], axis=1)[None].astype(np.float64)
            for _ in range(2)
        )
        values.append(test(ratio, a, b, 300, seed).p)
    for level in (0.05, 0.1, 0.25, 0.5, 0.75):
        # Three standard deviations of a fraction of 300 experiments.
        assert np.mean(np.array(values) <= level) == pytest.approx(
            level, abs=3 * np.sqrt(level * (1 - level) / 300) + 0.01
        )


def test_results_depend_on_seeds_but_not_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(1, 20, (2, 1, 50, 2)).astype(np.float64)
    first = randomization_test(ratio, a, b, 300, seed=7), bootstrap_scores(ratio, [a, b], 300, seed=7)
    other = randomization_test(ratio, a, b, 300, seed=8), bootstrap_scores(ratio, [a, b], 300, seed=8)
    assert first[0] == randomization_test(ratio, a, b, 300, seed=7)
    assert first[0].p != other[0].p
    assert not np.array_equal(first[1], other[1])
    monkeypatch.setattr(significance, "CHUNK_ENTRIES", 64)
    assert np.array_equal(first[1], bootstrap_scores(ratio, [a, b], 300, seed=7))
    assert randomization_test(ratio, a, b, 300, seed=7).p == pytest.approx(first[0].p, abs=0.1)


def test_the_confidence_interval_of_a_mean() -> None:
    """For a mean of independent values: 1.96 standard errors on each side."""
    rng = np.random.default_rng(6)
    hits = rng.binomial(1, 0.3, 400)
    stats = np.stack([hits, np.ones(400)], axis=1)[None].astype(np.float64)
    (samples,) = bootstrap_scores(ratio, [stats], 4000)
    found = interval(samples)
    error = np.sqrt(hits.mean() * (1 - hits.mean()) / 400)
    assert found.deviation == pytest.approx(error, rel=0.05)
    assert found.low == pytest.approx(hits.mean() - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(hits.mean() + 1.96 * error, abs=0.2 * error)


def test_bootstrap_samples_sentences() -> None:
    """With one sentence there is one sample; with two, three."""
    one = np.array([[[3.0, 4.0]]])
    assert set(bootstrap_scores(ratio, [one], 50)[0].tolist()) == {0.75}
    two = np.array([[[1.0, 2.0], [3.0, 3.0]]])
    assert set(bootstrap_scores(ratio, [two], 200)[0].round(6).tolist()) == {0.5, 0.8, 1.0}


def test_bootstrap_samples_runs() -> None:
    """Samples have the variance of the sentences, and that of a mean over runs."""

    def total(sums: np.ndarray) -> np.ndarray:
        return sums[..., 0]

    lines = np.random.default_rng(1).normal(size=(1, 50, 1))
    alone, same = bootstrap_scores(total, [lines, lines], 400)
    assert alone.tolist() == same.tolist()
    assert alone.std() == pytest.approx(lines.std() * 50**0.5, rel=0.15)
    # Runs that differ by a constant on each of ten lines: the variance of a mean of three.
    shifts = np.array([-1.0, 0.0, 1.0])
    runs = np.zeros((3, 10, 1)) + shifts[:, None, None]
    (found,) = bootstrap_scores(total, [runs], 4000)
    assert found.mean() == pytest.approx(0, abs=0.3)
    assert found.std() == pytest.approx(10 * shifts.std(ddof=1) / 3**0.5, rel=0.05)
    # Equal runs change nothing, and the runs of two systems are drawn apart.
    assert bootstrap_scores(total, [np.repeat(lines, 4, axis=0)], 400)[0] == pytest.approx(alone)
    one, other = bootstrap_scores(total, [runs, runs], 4000)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.06


def test_p_values_of_several_runs_are_uniform_under_the_null_hypothesis() -> None:
    """Two systems whose runs vary, and whose expected scores are equal."""
    rng = np.random.default_rng(4)
    values = []
    for seed in range(300):
        systems = []
        for rates in rng.normal(0.4, 0.05, (2, 8)).clip(0, 1):
            hits = np.stack([rng.binomial(20, rate, 60) for rate in rates]).astype(np.float64)
            systems.append(np.stack([hits, np.full_like(hits, 20)], axis=2))
        values.append(paired_bootstrap_test(ratio, *systems, 300, seed).p)
    for level in (0.05, 0.1, 0.25, 0.5):
        # The tails of the bootstrap of eight runs are lighter than those of Student's t.
        assert np.mean(np.array(values) <= level) == pytest.approx(
            level, abs=3 * np.sqrt(level * (1 - level) / 300) + 0.04
        )


def test_spread_over_runs() -> None:
    runs = np.array([[[1.0, 4.0], [1.0, 4.0]], [[2.0, 4.0], [2.0, 4.0]], [[3.0, 4.0], [3.0, 4.0]]])
    found = spread(ratio, runs)
    assert found.scores == (0.25, 0.5, 0.75)
    assert (found.mean, found.deviation) == (0.5, pytest.approx(0.25))
    assert spread(ratio, runs[:1]).deviation is None
    assert pooled_score(ratio, runs) == 0.5


def test_bleu_as_a_metric() -> None:
    rng = np.random.default_rng(7)
    sentences = [rng.integers(0, 30, 12).tolist() for _ in range(40)]
    references = References([[sentence] for sentence in sentences])
    systems = []
    for keep in (0.7, 0.9):
        noisy = [[w if rng.random() < keep else 99 for w in sentence] for sentence in sentences]
        rows = [references.statistics(s, [words]) for s, words in enumerate(noisy)]
        systems.append(np.concatenate(rows)[None].astype(np.float64))
    assert randomization_test(bleu, *systems, 500).p < 0.01
    assert paired_bootstrap_test(bleu, *systems, 500).p < 0.01


def test_shapes_must_match() -> None:
    with pytest.raises(ValueError, match="different shapes"):
        randomization_test(ratio, np.ones((1, 3, 2)), np.ones((1, 4, 2)))


def test_marks() -> None:
    assert [significance_marks(p) for p in (0.2, 0.05, 0.049, 0.0099, 0.0009)] == ["", "", "*", "**", "***"]
