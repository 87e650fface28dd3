"""Significance tests and confidence intervals over sentences and tuning runs.

A system is an array of statistics, float64 [runs, sentences, K], which its metric adds up, for every output
of each of its tuning runs. A metric is a function from rows of sums to scores, [rows, K] -> [rows]. All
random numbers come from a seed, and the trials of a chunk are one matrix product.

Approximate randomisation (Noreen 1989; Riezler and Maxwell 2005): under the null hypothesis, the outputs of
both systems are exchangeable. Outputs are swapped at random, and p is how often the difference is then at
least as large as the one observed. With several runs of each system, output i of run r of one system is
swapped with output i of run r of the other (Clark et al. 2011), each pair independently; between systems with
different numbers of runs, all outputs for a sentence are swapped together.

Bootstrap (Efron and Tibshirani 1993; Koehn 2004): sentences are drawn with replacement, the same for all
systems, and of several runs of a system those that count, so that intervals include the variance of tuning.
The differences, shifted so that their mean is zero, show what luck can do; p is how often they are at least
as large as the one observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hiero.core.arrays import Floats, Ints

Metric = Callable[[Floats], Floats]

CHUNK_ENTRIES = 1 << 21  # of the matrix of swaps or samples, 16 MB
TIE = 1e-9  # rounding differences between sums in another order
COVERAGE = 0.95


@dataclass(frozen=True)
class Interval:
    """A bootstrap confidence interval of a score."""

    low: float
    high: float
    deviation: float


@dataclass(frozen=True)
class Comparison:
    """A system against the baseline."""

    difference: float  # of their scores, all runs of each pooled
    p: float
    interval: Interval | None = None  # of the difference, by bootstrap
    wins: float | None = None  # share of the bootstrap's samples in which the system scores higher


@dataclass(frozen=True)
class RunSpread:
    """Scores of several tuning runs of one system."""

    scores: tuple[float, ...]
    mean: float
    deviation: float | None  # over runs, of a sample (n - 1); None for a single run


def spread(metric: Metric, runs: Floats) -> RunSpread:
    """The scores of all tuning runs, with their mean and standard deviation."""
    scores = metric(runs.sum(axis=1))
    deviation = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return RunSpread(tuple(scores.tolist()), float(scores.mean()), deviation)


def randomization_test(
    metric: Metric, baseline: Floats, system: Floats, trials: int = 10_000, seed: int = 1
) -> Comparison:
    """Two-sided approximate randomisation, stratified over runs where both systems have equally many."""
    first, second = _paired(baseline, system)
    sums = first.sum(axis=0), second.sum(axis=0)
    observed = _difference(metric, *sums)
    both = sums[0] + sums[1]
    rng = np.random.default_rng(seed)
    extreme = 0
    for count in _chunks(trials, len(first)):
        swapped = rng.integers(0, 2, (count, len(first)), np.uint8).astype(np.float64)
        left = sums[0] + swapped @ (second - first)
        sampled = metric(both - left) - metric(left)
        extreme += int(np.count_nonzero(np.abs(sampled) >= abs(observed) - TIE))
    return Comparison(observed, (extreme + 1) / (trials + 1))


def _paired(baseline: Floats, system: Floats) -> tuple[Floats, Floats]:
    """The pairs of rows to swap."""
    if baseline.shape[1:] != system.shape[1:]:
        raise ValueError(f"the systems' statistics have different shapes: {baseline.shape}, {system.shape}")
    if len(baseline) != len(system):
        return baseline.mean(axis=0), system.mean(axis=0)
    width, runs = baseline.shape[2], len(baseline)
    return baseline.reshape(-1, width) / runs, system.reshape(-1, width) / runs


def _difference(metric: Metric, first: Floats, second: Floats) -> float:
    scores = metric(np.stack([first, second]))
    return float(scores[1] - scores[0])


def _chunks(trials: int, width: int) -> Iterator[int]:
    size = max(1, CHUNK_ENTRIES // max(width, 1))
    for start in range(0, trials, size):
        yield min(size, trials - start)


def bootstrap_scores(
    metric: Metric, systems: Sequence[Floats], trials: int = 10_000, seed: int = 1
) -> Floats:
    """Scores of all systems on samples of sentences and of their runs, [systems, trials]."""
    sums = bootstrap_sums(systems, trials, seed)
    return metric(sums.reshape(-1, sums.shape[-1])).reshape(sums.shape[:2])


def bootstrap_sums(systems: Sequence[Floats], trials: int, seed: int = 1) -> Floats:
    """Statistics of samples, the mean over the runs that are drawn, [systems, trials, K].

    All systems have the same samples of sentences. The runs of a system are drawn for each sample.
    """
    first_run = np.concatenate([[0], np.cumsum([len(runs) for runs in systems])])
    rows = np.concatenate(list(systems)).transpose(1, 0, 2)
    num_sentences, num_runs, width = rows.shape
    flat = np.ascontiguousarray(rows).reshape(num_sentences, -1)
    of_sentences, of_runs = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    found = []
    for count in _chunks(trials, num_sentences):
        drawn = of_sentences.integers(0, num_sentences, (count, num_sentences))
        drawn += num_sentences * np.arange(count)[:, None]
        times = np.bincount(drawn.ravel(), minlength=count * num_sentences).reshape(count, num_sentences)
        sums = (times.astype(np.float64) @ flat).reshape(count, num_runs, width)
        shares = _run_shares(np.diff(first_run), count, of_runs)
        found.append(np.add.reduceat(sums * shares[:, :, None], first_run[:-1], axis=1))
    return np.concatenate(found).transpose(1, 0, 2)


def _run_shares(num_runs: Ints, count: int, rng: np.random.Generator) -> Floats:
    """The share of each run in the mean of each sample, [count, runs of all systems].

    Of R runs, R - 1 are drawn with replacement: the variance of their mean is then in expectation that of the
    mean of R runs, where R draws would have (R - 1) / R of it.
    """
    total = int(num_runs.sum())
    draws = rng.random((count, total))  # one a run, of which the last of a system is not used
    shares, first = np.zeros((count, total)), 0
    for runs in num_runs.tolist():
        if runs == 1:
            shares[:, first] = 1.0
        else:
            chosen = (draws[:, first : first + runs - 1] * runs).astype(np.intp)
            for column in chosen.T:
                shares[np.arange(count), first + column] += 1 / (runs - 1)
        first += runs
    return shares


def interval(samples: Floats) -> Interval:
    """The middle 95 % of bootstrap scores, or of their differences."""
    low, high = np.quantile(samples, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    deviation = float(np.std(samples, ddof=1)) if len(samples) > 1 else 0.0
    return Interval(float(low), float(high), deviation)


def bootstrap_test(observed: float, baseline: Floats, system: Floats) -> Comparison:
    """Two-sided paired bootstrap from the samples of ``bootstrap_scores`` for two systems.

    observed  the difference of their scores on all sentences
    """
    sampled = system - baseline
    shifted = np.abs(sampled - sampled.mean())
    extreme = int(np.count_nonzero(shifted >= abs(observed) - TIE))
    wins = (np.count_nonzero(sampled > 0) + np.count_nonzero(sampled == 0) / 2) / len(sampled)
    return Comparison(observed, (extreme + 1) / (len(sampled) + 1), interval(sampled), float(wins))


def pooled_score(metric: Metric, runs: Floats) -> float:
    """The score of all runs' outputs as one text."""
    return float(metric(runs.mean(axis=0).sum(axis=0)[None, :])[0])


def significance_marks(p: float) -> str:
    """Stars for significance: one for p < .05, two for p < .01, three for p < .001."""
    return "*" * sum(p < level for level in (0.05, 0.01, 0.001))
