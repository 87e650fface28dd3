"""Alignment models against sums over all alignments, and properties of EM and the M-steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hiero.alignment.align import Trainer, align, fit_tension, pair_index, trained
from hiero.alignment.config import MODELS, AlignConfig
from hiero.alignment.hmm_kernels import NUM_JUMPS, fit_jumps_kernel, hmm_decode_kernel, hmm_expect_kernel
from hiero.alignment.ibm2_kernels import ibm2_decode_kernel, ibm2_expect_kernel, tension_kernel
from hiero.alignment.links import Fitted, links_above, posteriors_of, score_links
from hiero.alignment.model import model_of
from hiero.alignment.pair_kernels import (
    UNIT,
    ExpectedCounts,
    exp_digamma,
    find_pairs_kernel,
    normalize_null_pairs_kernel,
    normalize_pairs_kernel,
    pair_totals_kernel,
)
from hiero.alignment.pair_tables import sorted_pairs
from hiero.alignment.parameters import Jumps, Tensions
from hiero.core.errors import ConfigError, HieroError
from hiero.core.progress import SilentProgress
from tests.conftest import INTERPRETED
from tests.naive import align as naive
from tests.worlds.align import NUM_WORDS, World, bitext_of, pairs, worlds


def near(value: object, abs_tol: float = 1e-7) -> object:
    return pytest.approx(value, rel=1e-9, abs=abs_tol)


def expect_ibm2(world: World, tension: np.ndarray) -> tuple[ExpectedCounts, np.ndarray]:
    counts, sums = world.no_expected_counts(), np.empty((2, 2))
    ibm2_expect_kernel(
        world.index, world.sizes, world.lexicon, tension, world.null, 0, len(world.pairs), counts, sums
    )
    return counts, sums


def expect_hmm(world: World, agreement: bool) -> tuple[ExpectedCounts, np.ndarray, np.ndarray]:
    counts, sums, jumps = world.no_expected_counts(), np.empty((2, 2)), np.empty((2, NUM_JUMPS))
    hmm_expect_kernel(
        world.index,
        world.windows,
        world.lexicon,
        world.weights,
        world.null,
        agreement,
        0,
        len(world.pairs),
        counts,
        sums,
        jumps,
    )
    return counts, sums, jumps


def check_lexical(world: World, counts: ExpectedCounts, expected: naive.Expected) -> None:
    for row, key in zip(counts.pair, naive.number_pairs(world.pairs), strict=True):
        assert row / UNIT == near(np.array(expected.pair[key]))
    for direction, array in enumerate((counts.null_tgt, counts.null_src)):
        assert array / UNIT == near(np.array([expected.null[direction][w] for w in range(NUM_WORDS)]))


def aligned_mass(world: World, expected: naive.Expected) -> np.ndarray:
    """The expected counts of the twin in the layout of ``ExpectedCounts.place``."""
    places = np.zeros(len(world.no_expected_counts().place))
    sizes = [tuple(row) for row in world.sizes.length.tolist()]
    for (direction, n, m, b), mass in expected.aligned.items():
        places[world.sizes.first[sizes.index((n, m)), direction] + b] += mass
    return places


@given(pairs(longest=6))
def test_pair_of_every_cell(drawn: list[naive.Pair]) -> None:
    index = pair_index(bitext_of(drawn))
    expected = naive.number_pairs(drawn)
    of_src = np.repeat(np.arange(NUM_WORDS), np.diff(index.first_pair))
    assert list(zip(of_src.tolist(), index.pair_tgt.tolist(), strict=True)) == expected
    cells = [(v, w) for src, tgt in drawn for v in src for w in tgt]
    assert [expected[p] for p in index.pair] == cells
    assert index.num_tgt.tolist() == [sum(b == w for _, b in expected) for w in range(NUM_WORDS)]


def test_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.alignment.align.MAX_PAIRS", 5)
    with pytest.raises(HieroError, match="the bitext has more than 5 distinct word pairs"):
        pair_index(bitext_of([([0, 1], [0, 1, 2, 3])]))


@given(worlds())
def test_expected_counts_of_ibm2(world: World) -> None:
    counts, sums = expect_ibm2(world, world.tension)
    expected = naive.ibm2_expect(
        world.pairs, world.table, world.null_words, world.tension.tolist(), world.null
    )
    check_lexical(world, counts, expected)
    assert sums[:, 0] == near(np.array(expected.likelihood))
    assert sums[:, 1] == near(np.array(expected.distance))
    assert counts.place / UNIT == near(aligned_mass(world, expected))


@given(worlds())
def test_links_of_ibm2(world: World) -> None:
    fwd, rev = np.empty(len(world.index.tgt_word), np.int32), np.empty(len(world.index.src_word), np.int32)
    ibm2_decode_kernel(world.index, world.lexicon, world.tension, world.null, 0, len(world.pairs), fwd, rev)
    expected = [
        naive.ibm2_decode(pair, world.table, world.null_words, world.tension.tolist(), world.null)
        for pair in world.pairs
    ]
    assert fwd.tolist() == [i for links, _ in expected for i in links]
    assert rev.tolist() == [j for _, links in expected for j in links]


@given(worlds())
def test_sums_of_the_diagonal_prior(world: World) -> None:
    counts, _ = expect_ibm2(world, world.tension)
    expected = naive.ibm2_expect(
        world.pairs, world.table, world.null_words, world.tension.tolist(), world.null
    )
    for direction in range(2):
        for tension in (0.1, 5.0):
            found = tension_kernel(world.sizes.length, world.sizes.first, counts.place, direction, tension)
            assert found == near(naive.tension_sums(expected.aligned, direction, tension))


@given(worlds())
def test_places_without_mass_add_nothing(world: World) -> None:
    counts, _ = expect_ibm2(world, world.tension)
    even = counts.place.copy()
    even[1::2] = 0
    for direction in range(2):
        whole, first, second = (
            np.array(tension_kernel(world.sizes.length, world.sizes.first, place, direction, 2.0))
            for place in (counts.place, even, counts.place - even)
        )
        assert first + second == near(whole)


@given(worlds(longest=6))
def test_gradient_of_the_tension(world: World) -> None:
    """Fisher's identity: at its starting point, EM's objective has the gradient of the likelihood.

    Sentences differ in length, so that swapped lengths are detected.
    """
    counts, sums = expect_ibm2(world, world.tension)
    step = 1e-4
    for direction in range(2):
        shift = np.zeros(2)
        shift[direction] = step
        (_, more), (_, less) = (expect_ibm2(world, world.tension + sign * shift) for sign in (1, -1))
        slope = (more[direction, 0] - less[direction, 0]) / (2 * step)
        look = [
            tension_kernel(world.sizes.length, world.sizes.first, counts.place, direction, tension)
            for tension in world.tension[direction] + np.array([-step, 0.0, step])
        ]
        assert look[1][1] - sums[direction, 1] == pytest.approx(slope, abs=1e-6)
        assert -look[1][1] == pytest.approx((look[2][0] - look[0][0]) / (2 * step), abs=1e-6)
        assert -look[1][2] == pytest.approx((look[2][1] - look[0][1]) / (2 * step), abs=1e-6)


@given(worlds(longest=6), st.floats(0.1, 25))
def test_tension_is_fitted(world: World, start: float) -> None:
    counts, sums = expect_ibm2(world, world.tension)
    assume(counts.place.any())
    for direction in range(2):

        def objective(tension: float, direction: int = direction) -> float:
            table = (world.sizes.length, world.sizes.first, counts.place, direction, tension)
            return float(-tension * sums[direction, 1] - tension_kernel(*table)[0])

        best = fit_tension(world.sizes, counts.place, direction, sums[direction, 1], start)
        for other in np.linspace(0.1, 30, 40):
            assert objective(best) >= objective(other) - 1e-7


@settings(max_examples=30)
@given(worlds(), st.booleans())
def test_expected_counts_of_the_hmm(world: World, agreement: bool) -> None:
    counts, sums, jumps = expect_hmm(world, agreement)
    expected = naive.hmm_expect(
        world.pairs, world.table, world.null_words, world.weights.tolist(), world.null, agreement
    )
    check_lexical(world, counts, expected)
    assert sums[:, 0] == near(np.array(expected.likelihood))
    assert jumps == near(np.array([[expected.jump[d, k] for k in range(NUM_JUMPS)] for d in range(2)]))
    left = np.zeros(len(counts.place))
    for (direction, n, p), mass in expected.left.items():
        left[world.windows.first[n, direction] + p] += mass
    assert counts.place / UNIT == near(left)


@settings(max_examples=30)
@given(worlds())
def test_links_of_the_hmm(world: World) -> None:
    fwd, rev = np.empty(len(world.index.tgt_word), np.int32), np.empty(len(world.index.src_word), np.int32)
    hmm_decode_kernel(world.index, world.lexicon, world.weights, world.null, 0, len(world.pairs), fwd, rev)
    expected = [
        naive.hmm_decode(pair, world.table, world.null_words, world.weights.tolist(), world.null)
        for pair in world.pairs
    ]
    assert fwd.tolist() == [i for links, _ in expected for i in links]
    assert rev.tolist() == [j for _, links in expected for j in links]


@settings(max_examples=30)
@given(worlds(), st.sampled_from(["ibm2", "hmm"]), st.floats(0.05, 0.9))
def test_posteriors_of_links(world: World, model: str, threshold: float) -> None:
    positions = world.weights if model == "hmm" else world.tension
    parameters = Jumps(positions) if model == "hmm" else Tensions(positions)
    fitted = Fitted(world.index, world.lexicon, parameters, world.null)
    begin, end = min(1, len(world.pairs)), len(world.pairs)
    found = posteriors_of(fitted, begin, end)
    expected, logs, links, lines = [], [], [], []
    for src, tgt in world.pairs[begin:]:
        both, log = [], 0.0
        for direction, (emit, null) in enumerate(
            naive.directions((src, tgt), world.table, world.null_words) if src and tgt else ()
        ):
            twin = naive.hmm_posteriors if model == "hmm" else naive.ibm2_posteriors
            posterior, _, likelihood = twin(emit, null, positions[direction].tolist(), world.null)
            both.append(posterior)
            log += likelihood
        cells = [
            (both[0][j][i] * both[1][i][j]) ** 0.5 if both else 0.0
            for i in range(len(src))
            for j in range(len(tgt))
        ]
        expected += cells
        logs.append(log / (len(src) + len(tgt)) if both else np.nan)
        lines.append([divmod(k, len(tgt)) for k, value in enumerate(cells) if value >= threshold])
        links += lines[-1]
    assert found.link == near(np.array(expected))
    assert found.log_prob == pytest.approx(np.array(logs), rel=1e-9, nan_ok=True)
    assume(all(abs(value - threshold) > 1e-6 for value in expected))
    chosen = links_above(fitted, begin, end, threshold)
    assert np.diff(chosen.first).tolist() == list(map(len, lines))
    assert [tuple(link) for link in chosen.link.tolist()] == links
    # Those scores belong to those links; offsets are those of all pairs.
    first = np.concatenate([np.zeros(begin, np.int64), chosen.first])
    scores = score_links(fitted, begin, end, first, chosen.link)
    assert scores.link == near(np.array([value for value in expected if value >= threshold]))
    assert scores.log_prob == pytest.approx(found.log_prob, nan_ok=True)


@settings(max_examples=30)
@given(worlds())
def test_jump_weights(world: World) -> None:
    counts, _, jumps = expect_hmm(world, False)
    # From the counts of the E-step, which has its own test: small numbers are divided by each other.
    jump = {(d, k): float(jumps[d, k]) for d in range(2) for k in range(NUM_JUMPS) if jumps[d, k] > 0}
    left = {}
    for direction in range(2):
        for n in {len(pair[direction]) for pair in world.pairs if all(pair)}:
            for p in range(n + 1):
                place = world.windows.first[n, direction] + p
                left[direction, n, p] = counts.place[place] / UNIT
    for direction in range(2):
        likelihood = -np.inf
        for rounds in range(4):
            weights = world.weights.copy()
            fit_jumps_kernel(world.windows, counts.place, jumps, direction, rounds, weights)
            found = weights[direction].tolist()
            twin = naive.fit_jumps(left, jump, direction, world.weights[direction], rounds)
            if rounds:
                assert found == pytest.approx(twin, rel=1e-9)
            now = naive.jump_likelihood(left, jump, direction, found)
            assert now >= likelihood - 1e-7
            likelihood = now


@given(st.floats(1e-3, 1e7))
def test_exponential_of_digamma(x: float) -> None:
    with np.errstate(under="ignore"):
        assert exp_digamma(x) == pytest.approx(np.exp(naive.digamma(x)), rel=1e-8)


@given(worlds(), st.sampled_from([0.0, 0.01, 1.0]), st.randoms(use_true_random=False))
def test_normalizing(world: World, smoothing: float, random: object) -> None:
    keys = naive.number_pairs(world.pairs)
    drawn = np.random.default_rng(len(keys)).exponential(2.0, (len(keys), 2)) * (world.lexicon.prob > 0.01)
    count = (drawn * UNIT).astype(np.int64)
    prob = np.zeros((len(keys), 2), np.float32)
    total = np.zeros(NUM_WORDS, np.int64)
    index = world.index
    pair_totals_kernel(index.pair_tgt, count, total)
    for begin, end in ((0, 2), (2, NUM_WORDS)):
        normalize_pairs_kernel(
            index.first_pair, index.pair_tgt, index.num_tgt, count, total, smoothing, begin, end, prob
        )
    table = naive.normalize(dict(zip(keys, map(tuple, count / UNIT), strict=True)), smoothing)
    for key, row in zip(keys, prob, strict=True):
        assert row == pytest.approx(np.array(table[key]), rel=1e-6)
    null, chosen = np.zeros(NUM_WORDS, np.float32), np.arange(NUM_WORDS) * (1 << 32)
    normalize_null_pairs_kernel(chosen, smoothing, null)
    assert null == pytest.approx(
        np.array(naive.normalize_null((chosen / UNIT).tolist(), smoothing)), rel=1e-6
    )


@settings(max_examples=25)
@given(pairs(longest=5), st.sampled_from(["ibm2", "hmm"]))
def test_likelihood_never_decreases(drawn: list[naive.Pair], model: str) -> None:
    config = AlignConfig(smoothing=0.0, tension_rounds=100, hmm_agreement=False)
    trainer = Trainer(bitext_of(drawn), config)
    for _ in range(2 if model == "hmm" else 6):
        trainer.improve_ibm2()
    if model == "hmm":
        trainer.history.clear()
        for _ in range(5):
            trainer.improve_hmm()
    perplexity = np.array([each.perplexity for each in trainer.history])
    assert np.all(perplexity[1:] <= perplexity[:-1] * (1 + 1e-6))


@pytest.mark.parametrize("model", MODELS)
def test_nothing_to_align(model: str) -> None:
    config = AlignConfig(model=model)  # type: ignore[arg-type]
    empty = align(bitext_of([]), config)
    assert len(empty.links.fwd) == len(empty.links.rev) == 0
    one_side = align(bitext_of([([], [1, 2]), ([3], [])]), config)
    assert one_side.links.fwd.tolist() == [-1, -1]
    assert one_side.links.rev.tolist() == [-1]


@pytest.mark.parametrize(
    "model", [pytest.param(one, marks=[pytest.mark.heavy] * (one == "fertility")) for one in MODELS]
)
def test_results_do_not_depend_on_threads(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.alignment.align.BLOCK_CELLS", 50)
    monkeypatch.setattr("hiero.alignment.align.BLOCK_PAIRS", 10)
    random = np.random.default_rng(5)
    drawn = [
        (random.integers(0, 30, n).tolist(), random.integers(0, 30, n + 1).tolist()) for n in range(1, 14)
    ]
    bitext = bitext_of(drawn * (1 if INTERPRETED else 5), 30)
    config = AlignConfig(model=model)  # type: ignore[arg-type]
    one, two, five = (align(bitext, config, threads) for threads in (1, 2, 5))
    for other in (two, five):
        assert other.history == one.history
        assert np.array_equal(other.links.fwd, one.links.fwd)
        assert np.array_equal(other.links.rev, one.links.rev)


@pytest.mark.parametrize(
    "model", ["ibm2", *(pytest.param(one, marks=pytest.mark.heavy) for one in ("hmm", "fertility"))]
)
def test_results_do_not_depend_on_memory(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit: history, links, posteriors, and the model that is kept."""
    monkeypatch.setattr("hiero.alignment.align.BLOCK_CELLS", 30)
    monkeypatch.setattr("hiero.alignment.align.BLOCK_PAIRS", 20)
    random = np.random.default_rng(7)
    drawn = [
        (random.integers(0, 12, n % 5).tolist(), random.integers(0, 12, (n + 2) % 6).tolist())
        for n in range(14)
    ]
    bitext = bitext_of(drawn, 12)
    config = AlignConfig(model=model, iterations=3, hmm_iterations=2, fertility_iterations=2)  # type: ignore[arg-type]
    whole = trained(bitext, config)
    for memory, threads in ((1, 1), (5000, 2)):
        parts = trained(bitext, config, threads, memory=memory, folder=tmp_path)
        assert 1 < len(parts.grouped) <= len(parts.blocks)
        assert parts.history == whole.history
        for one, other in zip(parts.decode(), whole.decode(), strict=True):
            assert np.array_equal(one, other)
        links = whole.links_above(0.2)
        above = parts.links_above(0.2)
        assert above.first.tolist() == links.first.tolist()
        assert above.link.tolist() == links.link.tolist()
        mine, theirs = (trainer.score_links(links) for trainer in (parts, whole))
        assert np.array_equal(mine.link, theirs.link)
        assert np.array_equal(mine.log_prob, theirs.log_prob, equal_nan=True)
        kept, expected = (model_of(trainer, bitext).lexicon for trainer in (parts, whole))
        for name, array in expected._asdict().items():
            assert np.array_equal(getattr(kept, name), array), name
    assert list(tmp_path.iterdir()) == []


@given(pairs(longest=6), st.integers(0, 5))
def test_pairs_of_parts_are_found_in_the_whole(drawn: list[naive.Pair], cut: int) -> None:
    parts = [bitext_of(drawn[:cut]), bitext_of(drawn[cut:])]
    indexes = [pair_index(part) for part in parts]
    first, tgt, num_tgt = sorted_pairs(iter(indexes), NUM_WORDS, NUM_WORDS, 1 << 20, None)
    of_src = np.repeat(np.arange(NUM_WORDS), np.diff(first)).tolist()
    whole = list(zip(of_src, tgt.tolist(), strict=True))
    assert whole == sorted(naive.number_pairs(drawn))
    assert num_tgt.tolist() == [sum(w == other for _, other in whole) for w in range(NUM_WORDS)]
    for part, index in zip((drawn[:cut], drawn[cut:]), indexes, strict=True):
        found = np.empty(len(index.pair_tgt), np.int64)
        find_pairs_kernel(first, tgt, index.first_pair, index.pair_tgt, found)
        assert found.tolist() == naive.find_pairs(whole, naive.number_pairs(part))


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiero.alignment.align.BLOCK_CELLS", 1)
    bitext = bitext_of([([0, 1], [1, 2])] * 3)
    with pytest.raises(HieroError, match=r"none: temporary files cannot be written: no such file .*--temp"):
        Trainer(bitext, AlignConfig(), memory=1, folder=tmp_path / "none")


def test_progress_adds_up() -> None:
    class Recorded(SilentProgress):
        total, done = 0, 0

        def begin(self, total: int | None, what: str = "") -> None:
            self.total += total or 0

        def advance(self, steps: int, note: str = "") -> None:
            self.done += steps

    progress = Recorded()
    config = AlignConfig(model="hmm", iterations=2, hmm_iterations=1)
    align(bitext_of([([1], [2]), ([3], [1])]), config, 1, progress)
    assert progress.done == progress.total == 2 * 4


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"null": 0.0}, "null: found 0.0, expected 1e-06 to 0.999999"),
        ({"iterations": 0}, "iterations: found 0, expected 1 to 1000"),
        ({"model": "ibm4"}, "model: found 'ibm4', expected one of ibm2, hmm, fertility"),
    ],
)
def test_invalid_settings(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        AlignConfig(**setting)  # type: ignore[arg-type]
    assert str(caught.value) == message
