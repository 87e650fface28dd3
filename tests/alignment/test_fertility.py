"""The HMM with fertilities: samples against definitions and enumeration, counts of links."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiero.alignment.align import trained
from hiero.alignment.config import AlignConfig
from hiero.alignment.fertility import JUMP, OWN_FERTILITY, count_links, count_pairs, fertility_ratios
from hiero.alignment.fertility_kernels import (
    CountedLinks,
    Fertilities,
    most_probable_links_kernel,
    sample_links_kernel,
)
from hiero.alignment.hmm_kernels import JUMP_LIMIT, NUM_JUMPS, num_windows
from hiero.alignment.links import DirectionalLinks, Fitted, posteriors_of
from hiero.alignment.parameters import MAX_FERTILITY, FertileJumps
from tests.naive import align as naive
from tests.worlds.align import NUM_WORDS, World, bitext_of, pairs, worlds


class Start(NamedTuple):
    """What sampling needs beside a world."""

    fertilities: Fertilities
    counted: CountedLinks
    links: DirectionalLinks


def start_of(world: World, seed: int) -> Start:
    random = np.random.default_rng(seed)

    def links() -> DirectionalLinks:
        fwd = [random.integers(-1, len(src)) if src else -1 for src, tgt in world.pairs for _ in tgt]
        rev = [random.integers(-1, len(tgt)) if tgt else -1 for src, tgt in world.pairs for _ in src]
        return DirectionalLinks(np.array(fwd, np.int32), np.array(rev, np.int32))

    tables = (np.exp(random.uniform(-2, 1, (NUM_WORDS, 3))).astype(np.float32) for _ in range(2))
    totals = (random.uniform(1, 20, NUM_WORDS) for _ in range(2))
    return Start(Fertilities(*tables), CountedLinks(*links(), *totals), links())


def sampled(
    world: World, start: Start, rounds: int, skipped: int, seed: int, number: int
) -> tuple[DirectionalLinks, np.ndarray]:
    links = DirectionalLinks(*map(np.copy, start.links))
    prob = np.empty((len(world.index.pair), 2))
    model = world.index, world.lexicon, world.weights, start.fertilities, world.null, start.counted
    sample_links_kernel(*model, rounds, skipped, seed, number, 0, len(world.pairs), *links, prob)
    return links, prob


@settings(max_examples=40)
@given(
    worlds(longest=3),
    st.integers(0, 9),
    st.sampled_from([(1, 0), (3, 0), (3, 2)]),
    st.sampled_from([-1, 0, 7]),
)
def test_sampled_links(world: World, seed: int, rounds: tuple[int, int], number: int) -> None:
    start = start_of(world, seed)
    found, prob = sampled(world, start, *rounds, seed, number)
    links: tuple[list[int], list[int]] = ([], [])
    cells = []
    for s, (src, tgt) in enumerate(world.pairs):
        if not src or not tgt:
            links[0].extend([-1] * len(tgt))
            links[1].extend([-1] * len(src))
            continue
        means = []
        model = zip(naive.directions((src, tgt), world.table, world.null_words), world.weights, strict=True)
        for direction, ((emit, null), weights) in enumerate(model):
            first = (world.index.tgt_first, world.index.src_first)[direction][s]
            words, length = ((src, len(tgt)), (tgt, len(src)))[direction]
            for t, own in enumerate(start.counted[direction][first : first + length]):
                if own >= 0:
                    emit[t][own] = naive.without(emit[t][own], start.counted[2 + direction][words[own]])
            now, mean = naive.sample_links(
                start.links[direction][first : first + length].tolist(),
                *(emit, null, weights.tolist(), world.null),
                [start.fertilities[direction][word].tolist() for word in words],
                *rounds,
                naive.mix(naive.mix(seed, number + s if number >= 0 else 0), direction),
            )
            links[direction].extend(now)
            means.append(mean)
        cells += [[means[0][j][i], means[1][i][j]] for i in range(len(src)) for j in range(len(tgt))]
    assert found.fwd.tolist() == links[0]
    assert found.rev.tolist() == links[1]
    assert prob == pytest.approx(np.array(cells).reshape(-1, 2), rel=1e-7, abs=1e-12)


@pytest.mark.heavy
@settings(max_examples=5)
@given(worlds(longest=3).filter(lambda world: any(all(pair) for pair in world.pairs)))
def test_samples_approach_the_posteriors(world: World) -> None:
    """The mean of many samples is the sum over all alignments; nothing was counted."""
    world = world._replace(weights=world.weights + 0.5, null=0.2)
    start = start_of(world, 1)
    for links in start.counted[:2]:
        links[:] = -1
    _, prob = sampled(world, start, 20_000, 100, 5, 0)
    cell = 0
    for src, tgt in world.pairs:
        if not src or not tgt:
            continue
        both = [
            naive.fertile_posteriors(
                *(emit, null, weights.tolist(), world.null),
                [start.fertilities[direction][word].tolist() for word in (src, tgt)[direction]],
            )
            for direction, ((emit, null), weights) in enumerate(
                zip(naive.directions((src, tgt), world.table, world.null_words), world.weights, strict=True)
            )
        ]
        for i in range(len(src)):
            for j in range(len(tgt)):
                assert prob[cell] == pytest.approx([both[0][j][i], both[1][i][j]], abs=0.05)
                cell += 1


@given(worlds())
def test_most_probable_links(world: World) -> None:
    random = np.random.default_rng(len(world.index.pair))
    prob = random.choice([0.0, 0.1, 0.2, 0.25], (len(world.index.pair), 2))
    fwd, rev = (np.empty(len(words), np.int32) for words in (world.index.tgt_word, world.index.src_word))
    most_probable_links_kernel(world.index, prob, 0, len(world.pairs), fwd, rev)
    expected: tuple[list[int], list[int]] = ([], [])
    for (src, tgt), first in zip(world.pairs, world.index.first_cell, strict=False):
        table = prob[first : first + len(src) * len(tgt)].reshape(len(src), len(tgt), 2)
        for direction, rows in enumerate((table[:, :, 0].T.tolist(), table[:, :, 1].tolist())):
            rest = [max(1 - sum(row), 0.0) for row in rows]
            expected[direction].extend(naive.best_links(rows, rest))
    assert fwd.tolist() == expected[0]
    assert rev.tolist() == expected[1]


@given(worlds(longest=6), st.integers(0, 9))
def test_counts_of_links(world: World, seed: int) -> None:
    links = start_of(world, seed).links
    found = count_links(world.index, links, world.windows, num_windows(world.windows))
    of_pair = count_pairs(world.index, links)
    keys = {pair: k for k, pair in enumerate(naive.number_pairs(world.pairs))}
    expected_pair = np.zeros((len(keys), 2), int)
    at = [0, 0]
    null, given, jumps, places = ([Counter(), Counter()] for _ in range(4))  # type: ignore[var-annotated]
    fertility = np.zeros((2, NUM_WORDS, MAX_FERTILITY + 1), int)
    for pair in world.pairs:
        for direction in range(2):
            others, words = pair[direction], pair[1 - direction]
            link = links[direction][at[direction] : at[direction] + len(words)].tolist()
            at[direction] += len(words)
            if not all(pair):
                continue
            before = 0
            for word, i in zip(words, link, strict=True):
                if i < 0:
                    null[direction][word] += 1
                    continue
                given[direction][others[i]] += 1
                expected_pair[
                    keys[(others[i], word) if direction == 0 else (word, others[i])], direction
                ] += 1
                jumps[direction][naive.jump_class(i + 1 - before, JUMP_LIMIT)] += 1
                places[direction][int(world.windows.first[len(others), direction]) + before] += 1
                before = i + 1
            for i, other in enumerate(others):
                fertility[direction, other, min(link.count(i), MAX_FERTILITY)] += 1
    assert np.array_equal(of_pair, expected_pair)
    for direction, one in enumerate(found):
        assert one.null.tolist() == [null[direction][word] for word in range(NUM_WORDS)]
        assert one.given.tolist() == [given[direction][word] for word in range(NUM_WORDS)]
        assert np.array_equal(one.fertility, fertility[direction])
        assert one.jump.tolist() == [jumps[direction][k] + JUMP for k in range(NUM_JUMPS)]
        assert one.place.tolist() == [places[direction][k] for k in range(num_windows(world.windows))]


def test_fertilities_of_rare_words_are_those_of_all() -> None:
    count = np.zeros((3, MAX_FERTILITY + 1), np.int64)
    count[0, 1], count[1, 2] = 90, 10
    ratio = fertility_ratios(count)
    assert ratio.shape == (4, MAX_FERTILITY)
    assert np.array_equal(ratio[2], ratio[3])  # a word that does not occur is like an unknown one
    anyone = (count.sum(axis=0) + 0.5) / (100 + 0.5 * (MAX_FERTILITY + 1))
    assert ratio[3] == pytest.approx(anyone[1:] / anyone[:-1])
    own = count[0] + OWN_FERTILITY * anyone
    assert ratio[0] == pytest.approx(own[1:] / own[:-1])


@settings(max_examples=25)
@given(pairs(longest=5), st.integers(1, 3))
def test_links_of_training_add_up(drawn: list[naive.Pair], seed: int) -> None:
    """The kept state has the counts of its own links."""
    config = AlignConfig(model="fertility", iterations=2, hmm_iterations=1, fertility_iterations=2, seed=seed)
    trainer = trained(bitext_of(drawn), config)
    assert [one.model for one in trainer.history] == ["ibm2", "ibm2", "hmm", "fertility", "fertility"]
    assert trainer.sampled is not None
    prior = config.fertility_smoothing
    count = count_pairs(trainer.index, trainer.sampled.links) + prior
    of_src = np.repeat(np.arange(NUM_WORDS), np.diff(trainer.index.first_pair))
    for direction, word in enumerate((of_src, trainer.index.pair_tgt)):
        total = np.bincount(word, count[:, direction], NUM_WORDS)
        assert trainer.sampled[1 + direction] == pytest.approx(total, rel=1e-6)
        assert trainer.lexicon.prob[:, direction] == pytest.approx(
            count[:, direction] / total[word], rel=1e-5
        )


def test_equal_sentence_pairs_get_equal_posteriors() -> None:
    """With a trained model, wherever they are."""
    from hiero.alignment.model import model_of

    bitext = bitext_of([([0, 1, 2], [1, 0, 3]), ([1], [0]), ([0, 1, 2], [1, 0, 3])])
    config = AlignConfig(model="fertility", iterations=2, hmm_iterations=1, fertility_iterations=2)
    fitted = model_of(trained(bitext, config), bitext).fitted(bitext)
    assert isinstance(fitted, Fitted)
    assert isinstance(fitted.parameters, FertileJumps)
    link = posteriors_of(fitted, 0, 3).link
    assert np.array_equal(link[:9], link[-9:])
    assert (link > 0).all()
