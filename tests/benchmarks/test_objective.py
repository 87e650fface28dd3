"""benchmarks/papers/objective.py and list_losses.py: losses of lists, weights, reports and tables."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.papers import list_losses
from benchmarks.papers import objective as command
from benchmarks.papers.list_losses import (
    LOSSES,
    OBJECTIVES,
    STRENGTHS,
    Lists,
    learn,
    selected,
    smooth_log_bleu,
    softmax,
)
from benchmarks.papers.objective import GOLD, PAIRS, RIGHT, Fits, Unseen, World, best_of, measure, samples
from hiero.core.arrays import offsets_of
from hiero.evaluation.bleu import corpus_bleu, sentence_bleu
from tests.conftest import INTERPRETED

NUM_FEATURES = 7
DENSE = np.arange(NUM_FEATURES) < 2


def lists_of(num_sentences: int, seed: int = 0) -> Lists:
    """Lists in which the number of matches follows from features 2, 3 and 4, which dense ones do not show."""
    draw = np.random.default_rng(seed)
    first = offsets_of(draw.integers(4, 8, num_sentences))
    size = int(first[-1])
    value = draw.integers(0, 2, (size, NUM_FEATURES)).astype(np.float64)
    match = 3 + value[:, 2] + 2 * value[:, 3] + value[:, 4] - value[:, 2] * value[:, 4]
    rows = [np.full(size, 8.0), np.full(size, 8.0), *(np.maximum(match - n, 0) for n in range(4))]
    statistics = np.stack([*rows, *(np.full(size, 8.0 - n) for n in range(4))], axis=1)
    gold = sentence_bleu("nakov")(statistics)
    return Lists(np.arange(num_sentences), first, csr_matrix(value), gold, statistics)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_losses(name: str) -> None:
    lists = lists_of(6)
    loss, score = LOSSES[name](lists, 1), np.random.default_rng(1).normal(size=len(lists.gold))
    _, slope = loss(score)
    for place in range(len(score)):
        step = 1e-6 * (np.arange(len(score)) == place)
        assert slope[place] == pytest.approx((loss(score + step)[0] - loss(score - step)[0]) / 2e-6, abs=1e-6)


def test_losses_are_those_of_the_definitions() -> None:
    lists, score = lists_of(5), np.random.default_rng(2).normal(size=len(lists_of(5).gold))
    expected, pairs, total = 0.0, [], np.zeros(10)
    for a, b in pairwise(lists.first.tolist()):
        share = np.exp(score[a:b]) / np.exp(score[a:b]).sum()
        assert softmax(score, lists.first)[a:b] == pytest.approx(share)
        expected += float(share @ lists.gold[a:b])
        total += share @ lists.statistics[a:b]
        order = a + np.argsort(-lists.gold[a:b], kind="stable")
        levels = [[order[0]], order[1:-1].tolist(), [order[-1]]]  # a tenth of so few is one
        for high, low in ((0, 1), (0, 2), (1, 2)):
            pairs += [(i, j) for i in levels[high] for j in levels[low] if lists.gold[i] > lists.gold[j]]
    assert LOSSES["expected"](lists, 0)(score)[0] == pytest.approx(-expected)
    assert LOSSES["corpus"](lists, 0)(score)[0] == pytest.approx(-5 * smooth_log_bleu(total)[0])
    mean = np.mean([np.log1p(np.exp(score[j] - score[i])) for i, j in pairs])
    assert LOSSES["multipartite"](lists, 0)(score)[0] == pytest.approx(5 * mean)


def test_smooth_bleu_is_nearly_bleu() -> None:
    total = np.array([900.0, 1000, 600, 400, 250, 150, 900, 880, 860, 840])
    assert np.exp(smooth_log_bleu(total)[0]) == pytest.approx(float(corpus_bleu(total)[0]), rel=1e-3)
    value, slope = smooth_log_bleu(total)
    for place in range(10):
        step = 1e-4 * (np.arange(10) == place)
        found = (smooth_log_bleu(total + step)[0] - smooth_log_bleu(total - step)[0]) / 2e-4
        assert slope[place] == pytest.approx(found, abs=1e-8)
    total[5] = 0  # no match of an order
    assert np.isfinite(smooth_log_bleu(total)[0])
    assert smooth_log_bleu(total)[0] < value


def test_parts_of_lists() -> None:
    lists = lists_of(8)
    some = lists.of(np.array([6, 2]))
    rows = [*range(lists.first[6], lists.first[7]), *range(lists.first[2], lists.first[3])]
    assert some.number.tolist() == [6, 2]
    assert some.gold.tolist() == lists.gold[rows].tolist()
    assert (some.features.toarray() == lists.features.toarray()[rows]).all()
    kept = np.array([1, 3, 4])
    assert (lists.with_features(kept).features.toarray() == lists.features.toarray()[:, kept]).all()
    assert lists.with_features(kept).used().tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "pro" or not INTERPRETED])
def test_sparse_features_are_learnt(name: str) -> None:
    """What they say holds for other sentences, too; dense features know nothing of it."""
    train, unseen = lists_of(60), Unseen(lists_of(40, seed=1))
    strength = 0.1 if name == "hope_fear" else STRENGTHS[name][0]
    found = {}
    for features, kept in (("dense", np.flatnonzero(DENSE)), ("all", np.arange(NUM_FEATURES))):
        weight, some = np.zeros(NUM_FEATURES), train.with_features(kept)
        weight[kept], _ = learn(name, some, DENSE[kept], strength, np.zeros(len(kept)), 1)
        found[features] = unseen.rows(weight)
    assert measure("BLEU", [found["all"]]) > 0.99 * unseen.oracle()
    assert measure("BLEU", [found["dense"]]) < 0.9 * unseen.oracle()
    assert measure("pair accuracy", [found["all"]]) > 90 > measure("pair accuracy", [found["dense"]])


def test_rows_of_unseen_lists() -> None:
    # Few scores are equal.
    unseen, weight = Unseen(lists_of(5)), np.array([0.1, 0.2, 1.0, 0.4, 0.03, 0.6, 0.7])
    lists, rows = unseen.lists, unseen.rows(weight)
    score = lists.features.toarray() @ weight
    for s, (a, b) in enumerate(pairwise(lists.first.tolist())):
        best = a + int(np.argmax(score[a:b]))
        assert best_of(score, lists.first)[s] == best
        assert rows[s, :10].tolist() == lists.statistics[best].tolist()
        assert rows[s, GOLD] == lists.gold[best]
        pairs = unseen.pair[unseen.sentence == s]
        ahead = [score[i] - score[j] for i, j in pairs.tolist()]
        assert rows[s, PAIRS] == len(pairs)
        assert rows[s, RIGHT] == sum(1.0 if d > 0 else 0.5 if d == 0 else 0.0 for d in ahead)
    share = softmax(score * unseen._temperature(score), lists.first)
    entropy = [-sum(p * np.log(p) for p in share[a:b]) for a, b in pairwise(lists.first.tolist())]
    assert np.exp(entropy).mean() == pytest.approx(np.diff(lists.first).mean() / 2, abs=0.01)


def test_samples_vary_around_the_measure() -> None:
    unseen = Unseen(lists_of(60))
    runs = [unseen.rows(np.eye(NUM_FEATURES)[feature]) for feature in (2, 3)]
    for name in command.MEASURES:
        found = samples(name, [runs, runs], 300)
        assert found.shape == (2, 300)
        assert (found[0] == found[1]).all()
        assert found.std() > 0
        assert found.mean() == pytest.approx(measure(name, runs), abs=3 * found.std())


def test_selected_features() -> None:
    parts = [np.array([0.0, 0, 3, 0, 2, 0, 1]), np.array([0.0, 0, 0, -3, 2, 0, 1])]
    # The norms are 3, 3, 2.8 and 1.4; dense features are kept without weights.
    assert selected(parts, DENSE, 2).tolist() == [0, 1, 2, 3]
    assert selected(parts, DENSE, 100).tolist() == [0, 1, 2, 3, 4, 6]


def test_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_losses, "ITERATIONS", 4)
    sets = {"train": lists_of(20), "devtest": lists_of(15, seed=1), "test": lists_of(15, seed=2)}
    world = World(sets, DENSE, np.zeros(NUM_FEATURES))
    arguments = ["out", "--data", "none", "--sizes", "10,20", "--seeds", "2", "--keep", "1", "--trials", "50"]
    args = command.parsed([*arguments, "--objectives", "multipartite,expected"])
    text = command.report(Fits(tmp_path, world), args)
    both = "multipartite, expected"
    assert f"Sparse features rank unseen translations better with {both}." in text
    assert f"* BLEU is better with sparse features by {both}" in text
    assert "* BLEU, all: better than multipartite by no objective." in text
    assert "What limits them: **nothing: they gain**" in text
    assert len([line for line in text.splitlines() if line.startswith("| multipartite | ")]) == 6
    made = sorted(tmp_path.iterdir())
    # For each objective and number of sentences: dense features with both seeds; all features with each
    # strength, and with one kept; and the best of these with the second seed.
    assert len(made) == 2 * 2 * (2 + 4 + 1 + 1)
    # Nothing is learnt again.
    before = {path: path.stat().st_mtime_ns for path in made}
    assert command.report(Fits(tmp_path, world), args) == text
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.iterdir())} == before
