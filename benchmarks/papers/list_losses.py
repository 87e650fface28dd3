"""Objectives on fixed k-best lists: a loss of the scores of all translations, minimised over the weights.

    multipartite  pairs between the best tenth, the middle and the last tenth (Simianer, Riezler and Dyer
                  2012), logistic loss, the mean over the pairs of a sentence
    pro           sampled pairs with the largest differences (Hopkins and May 2011), likewise
    hope_fear     batch MIRA (Cherry and Foster 2012), a step towards hope and away from fear (Eidelman 2012)
    expected      minus the expected BLEU of a sentence, its translations drawn by a softmax of their scores
    corpus        minus the logarithm of corpus BLEU of the expected statistics of all sentences (Rosti et al.
                  2010), so that a sentence may be as short as another is long

All but hope_fear are minimised by L-BFGS: the sum of the losses of sentences, and ``strength`` times the
square of the weights of sparse features. ``strength`` of hope_fear is its largest step, C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from hiero.core.arrays import Flags, Floats, Ids, Ints, offsets_of, read_only, row_of_entry, take_rows
from hiero.learning.candidates import Candidates
from hiero.learning.learner import Example
from hiero.learning.lists import CandidateLists
from hiero.learning.mira import KBMIRA
from hiero.learning.pairs import Multipartite, Pairing, SampledPairs
from hiero.learning.pro_kernels import logistic_kernel

DENSE_RIDGE = 1e-3  # of dense features, which keeps softmaxes from becoming ever sharper
ITERATIONS = 100  # of L-BFGS
PASSES = 20  # of hope_fear
SHARPNESS = 50.0  # of the brevity penalty of ``corpus`` around equal lengths, where it has a corner
NEVER = 0.1  # expected matches of an order without any


@dataclass(frozen=True)
class Lists:
    """The translations of S sentences, C in all, those of one adjacent.

    number      int64 [S]        of sentences
    first       int64 [S + 1]    translations of sentence s: first[s]:first[s + 1]
    features    sparse [C, F]
    gold        float64 [C]      BLEU of a translation by itself
    statistics  float64 [C, 10]  of BLEU
    """

    number: Ints
    first: Ints
    features: Any
    gold: Floats
    statistics: Floats

    @property
    def size(self) -> int:
        return len(self.number)

    def sentence(self) -> Ints:
        """The sentence of each translation, from 0."""
        return np.asarray(row_of_entry(self.first))

    def of(self, chosen: Ints) -> Lists:
        """Some of the sentences, in the given order."""
        first, rows = take_rows(self.first, chosen)
        parts = self.features[rows], self.gold[rows], self.statistics[rows]
        return Lists(self.number[chosen], first, *parts)

    def with_features(self, kept: Ints) -> Lists:
        """The same with some of the features, which are renumbered in ascending order."""
        place = np.full(self.features.shape[1], -1, np.int64)
        place[kept] = np.arange(len(kept))
        found = place[self.features.indices]
        ends = offsets_of(found >= 0)[self.features.indptr]
        arrays = self.features.data[found >= 0], found[found >= 0], ends
        matrix = csr_matrix(arrays, shape=(self.features.shape[0], len(kept)))
        return replace(self, features=matrix)

    def used(self) -> Ints:
        """The features that some translation has."""
        return np.unique(self.features.indices).astype(np.int64)


class Loss(Protocol):
    """The summed loss of sentences, given the scores of their translations, and its gradient by these."""

    def __call__(self, score: Floats) -> tuple[float, Floats]: ...


# ---- losses


class PairLoss:
    """Logistic loss of pairs (better, worse) of translations: of each sentence, the mean over its pairs.

    That is, as far as sentences have equally many: the mean over all pairs, times the number of sentences.
    """

    def __init__(self, lists: Lists, pairing: Pairing, seed: int = 0) -> None:
        self.pair, _ = pairs_of(lists, pairing, seed)
        self.factor = lists.size / max(1, len(self.pair))
        self._first = read_only(2 * np.arange(len(self.pair) + 1))
        self._ids = read_only(self.pair.reshape(-1).astype(np.int32))
        self._values = read_only(np.tile([1.0, -1.0], len(self.pair)))

    def __call__(self, score: Floats) -> tuple[float, Floats]:
        slope = np.empty(len(score))
        value, _ = logistic_kernel(self._first, self._ids, self._values, read_only(score), slope)
        return self.factor * float(value), self.factor * slope


def pairs_of(lists: Lists, pairing: Pairing, seed: int = 0) -> tuple[Ints, Ints]:
    """Pairs (better, worse) of translations, int64 [P, 2], and the sentence of each."""
    found, sentence = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.int64)]
    for s, number in enumerate(lists.number.tolist()):
        mine = slice(lists.first[s], lists.first[s + 1])
        length = lists.statistics[mine, 0].astype(np.int64)
        pair: Ids = pairing(lists.gold[mine], length, seed, number)
        found.append(lists.first[s] + pair.astype(np.int64))
        sentence.append(np.full(len(pair), s))
    return np.concatenate(found), np.concatenate(sentence)


def softmax(score: Floats, first: Ints) -> Floats:
    """Probabilities of the translations of each sentence."""
    row = row_of_entry(first)
    share = np.exp(score - np.maximum.reduceat(score, first[:-1])[row])
    share /= np.add.reduceat(share, first[:-1])[row]
    return np.asarray(share)


class ExpectedLoss:
    """Minus the expected BLEU of each sentence."""

    def __init__(self, lists: Lists) -> None:
        self.first, self.gold, self.row = lists.first, lists.gold, lists.sentence()

    def __call__(self, score: Floats) -> tuple[float, Floats]:
        share = softmax(score, self.first)
        expected = np.add.reduceat(share * self.gold, self.first[:-1])
        return -float(expected.sum()), share * (expected[self.row] - self.gold)


class CorpusLoss:
    """Minus the logarithm of BLEU of the expected statistics, times the number of sentences."""

    def __init__(self, lists: Lists) -> None:
        self.first, self.row, self.size = lists.first, lists.sentence(), lists.size
        self.statistics = lists.statistics

    def __call__(self, score: Floats) -> tuple[float, Floats]:
        share = softmax(score, self.first)
        value, by_statistics = smooth_log_bleu(share @ self.statistics)
        gain = self.statistics @ by_statistics
        mean = np.add.reduceat(share * gain, self.first[:-1])
        return -self.size * value, self.size * share * (mean[self.row] - gain)


def smooth_log_bleu(total: Floats) -> tuple[float, Floats]:
    """The logarithm of BLEU of summed statistics, its brevity penalty without a corner, and its gradient."""
    length, reference, match, tried = total[0], total[1], total[2:6], total[6:10]
    slope, is_met = np.zeros(10), match > NEVER
    value = float(np.mean(np.log(np.maximum(match, NEVER)) - np.log(np.maximum(tried, NEVER))))
    slope[2:6] = np.where(is_met, 0.25 / np.maximum(match, NEVER), 0.0)
    slope[6:10] = np.where(tried > NEVER, -0.25 / np.maximum(tried, NEVER), 0.0)
    over = SHARPNESS * (reference / length - 1)
    value -= float(np.logaddexp(0.0, over)) / SHARPNESS
    by_ratio = -1 / (1 + np.exp(-over))
    slope[0], slope[1] = -by_ratio * reference / length**2, by_ratio / length
    return value, slope


LOSSES: dict[str, Callable[[Lists, int], Loss]] = {
    "multipartite": lambda lists, _seed: PairLoss(lists, Multipartite()),
    "pro": lambda lists, seed: PairLoss(lists, SampledPairs(seed=seed)),
    "expected": lambda lists, _seed: ExpectedLoss(lists),
    "corpus": lambda lists, _seed: CorpusLoss(lists),
}
OBJECTIVES = ("multipartite", "pro", "hope_fear", "expected", "corpus")
# Strengths to choose from. A pair's loss is about ten times as steep as a difference of expected BLEU.
STRENGTHS: dict[str, tuple[float, ...]] = {
    "multipartite": (0.1, 1.0, 10.0, 100.0),
    "pro": (0.1, 1.0, 10.0, 100.0),
    "hope_fear": (1e-4, 1e-3, 1e-2),
    "expected": (0.001, 0.01, 0.1, 1.0),
    "corpus": (0.01, 0.1, 1.0, 10.0),
}


# ---- learning


def learn(
    objective: str, lists: Lists, dense: Flags, strength: float, start: Floats, seed: int
) -> tuple[Floats, int]:
    """Weights of all features of the lists, and the number of steps taken."""
    if objective == "hope_fear":
        return hope_fear(lists, strength, start, seed), PASSES
    ridge = np.where(dense, DENSE_RIDGE, strength)
    return minimum(LOSSES[objective](lists, seed), lists.features, ridge, start)


def minimum(loss: Loss, features: Any, ridge: Floats, start: Floats) -> tuple[Floats, int]:
    """A minimum, near ``start``, of the loss of the scores plus the squared weights times ``ridge``."""
    transposed = features.T.tocsr()

    def value_and_gradient(weight: Floats) -> tuple[float, Floats]:
        value, slope = loss(features @ weight)
        return value + float(ridge @ (weight * weight)), transposed @ slope + 2 * ridge * weight

    options = {"maxiter": ITERATIONS, "maxcor": 10, "ftol": 1e-7}
    found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x), int(found.nit)


def hope_fear(lists: Lists, most: float, start: Floats, seed: int) -> Floats:
    learnt, _ = KBMIRA(C=most, epochs=PASSES).fit(candidate_lists(lists), start, 1, seed)
    return learnt


def candidate_lists(lists: Lists) -> CandidateLists:
    """The same lists for batch learners. All translations get different words, so that none are merged."""
    found, matrix = CandidateLists(), lists.features
    matrix.sort_indices()
    for s, number in enumerate(range(lists.size)):
        rows = slice(lists.first[s], lists.first[s + 1])
        ends = matrix.indptr[lists.first[s] : lists.first[s + 1] + 1].astype(np.int64)
        entries, size = slice(ends[0], ends[-1]), int(lists.first[s + 1] - lists.first[s])
        arrays = (
            ends - ends[0],
            matrix.indices[entries].astype(np.int32),
            matrix.data[entries].astype(np.float64),
            np.zeros(size),
            np.arange(size + 1),
            np.arange(size, dtype=np.int32),
        )
        statistics = lists.statistics[rows].astype(np.int64)
        candidates = Candidates(*map(read_only, arrays))
        found.add(Example(number, 1, candidates, statistics, int(statistics[0, 1])))
    return found


def selected(parts: Sequence[Floats], dense: Flags, most: int) -> Ints:
    """The dense features, and the sparse ones with the largest norms over parts of the data (IterSelSGD)."""
    norm = np.sqrt(np.sum(np.square(parts), axis=0))
    sparse = np.flatnonzero(~dense & (norm > 0))
    best = sparse[np.argsort(-norm[sparse], kind="stable")[:most]]
    return np.sort(np.concatenate([np.flatnonzero(dense), best]))
