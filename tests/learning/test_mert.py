"""MERT: line search against brute force, and optimisation of small problems."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hiero.core.errors import ConfigError
from hiero.evaluation.bleu import References
from hiero.learning.mert import MERT, Envelopes, ForestSurface, ListSurface, best_step
from hiero.learning.mert_kernels import insert_line
from tests.naive import batch as naive
from tests.naive import forest as naive_forest
from tests.worlds.batch import NUM_FEATURES, candidate_lists, lists_of, quarters
from tests.worlds.strategies import World, enumerated, worlds

weights = st.lists(quarters, min_size=NUM_FEATURES, max_size=NUM_FEATURES).map(np.array)
MOVING = [0, 2, 3]
points = st.lists(quarters, min_size=len(MOVING), max_size=len(MOVING)).map(np.array)


def whole(weight, point):
    weight = np.array(weight)
    weight[MOVING] = point
    return weight


@given(st.lists(st.tuples(quarters, quarters), min_size=1, max_size=12))
def test_the_envelope_does_not_depend_on_the_order_of_lines(lines):
    room = len(lines)
    slope, intercept, start = np.empty(room), np.empty(room), np.empty(room)
    label, size = np.empty(room, np.int64), np.int64(0)
    for place, (a, b) in enumerate(lines):
        size = insert_line(slope, intercept, start, label, size, b, a, place)
        expected = naive.envelope(lines[: place + 1])
        assert list(zip(start[:size].tolist(), label[:size].tolist(), strict=True)) == expected
        assert [lines[i] for i in label[:size]] == list(zip(intercept[:size], slope[:size], strict=True))


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)), min_size=1, max_size=40))
def test_envelopes_in_spite_of_rounding(lines):
    room = len(lines)
    slope, intercept, start = np.empty(room), np.empty(room), np.empty(room)
    label, size = np.empty(room, np.int64), np.int64(0)
    for place, (a, b) in enumerate(lines):
        size = insert_line(slope, intercept, start, label, size, b, a, place)
        assert 1 <= size <= place + 1
        assert start[0] == -math.inf
        assert (np.diff(start[:size]) > 0).all()
        assert (np.diff(slope[:size]) > 0).all()
        assert not np.isnan(start[:size]).any()
    for begin, end, leads in zip(start[:size], [*start[1:size], math.inf], range(size), strict=True):
        x = min(max(begin, -1e3), 1e3) / 2 + min(max(end, -1e3), 1e3) / 2
        if begin < x < end:
            values = [a + b * x for a, b in lines]
            assert intercept[leads] + slope[leads] * x == pytest.approx(max(values), rel=1e-9, abs=1e-3)


@given(lists_of(), weights, points, points)
def test_envelopes_of_lists(found, weight, point, direction):
    surface = ListSurface(candidate_lists(found), np.array(MOVING), weight)
    envelopes = surface.envelopes(point, direction)
    base, moved = whole(weight, point), whole(np.zeros(NUM_FEATURES), direction)
    for s, candidates in enumerate(naive.merged(found).values()):
        lines = [(naive.score(c, base), naive.score(c, moved)) for c in candidates]
        expected = [(start, candidates[place][2]) for start, place in naive.envelope(lines)]
        mine = slice(envelopes.first[s], envelopes.first[s + 1])
        start, stats = envelopes.start[mine].tolist(), envelopes.statistics[mine].tolist()
        assert list(zip(start, stats, strict=True)) == expected
    assert surface.value[surface.view.order].tolist() == [
        row for candidates in naive.merged(found).values() for row in naive.dense(candidates, MOVING)
    ]
    assert surface.is_scale_free() == (not surface.fixed.any())


def as_lists(envelopes):
    return [
        list(zip(envelopes.start[a:b].tolist(), envelopes.statistics[a:b].tolist(), strict=True))
        for a, b in zip(envelopes.first[:-1], envelopes.first[1:], strict=True)
    ]


@given(lists_of(max_size=8), weights, points, points, quarters, st.integers(1, 12))
def test_best_step_within_bounds(found, weight, point, direction, low, width):
    envelopes = ListSurface(candidate_lists(found), np.array(MOVING), weight).envelopes(point, direction)
    step, bleu = best_step(envelopes, low, low + width, 1e6)
    middle, best = naive.best_step(as_lists(envelopes), low, low + width)
    assert bleu == pytest.approx(best)
    # Intervals may differ if their BLEU differs only by rounding.
    assert low <= step <= low + width
    assert naive.bleu_at(as_lists(envelopes), step) == pytest.approx(best)
    if not naive.has_near_ties(as_lists(envelopes), low, low + width):
        assert step == pytest.approx(middle)


@given(lists_of(max_size=8), weights, points, points)
def test_best_step_anywhere_equals_brute_force(found, weight, point, direction):
    envelopes = ListSurface(candidate_lists(found), np.array(MOVING), weight).envelopes(point, direction)
    step, bleu = best_step(envelopes, -np.inf, np.inf, 1e6)
    ends = sorted({start for lines in as_lists(envelopes) for start, _ in lines} - {-math.inf})
    # One point in each interval, in which BLEU is constant.
    tried = [(x + y) / 2 for x, y in itertools.pairwise(ends)]
    tried += [ends[0] - 1, ends[-1] + 1] if ends else [0.0]

    # Fractions, since rounding would break ties of candidates that are equal along the whole line.
    exact = [
        [
            (words, {f: Fraction(value) for f, value in features.items()}, stats)
            for words, features, stats in mine
        ]
        for mine in naive.merged(found).values()
    ]

    def at(x):
        moved = [Fraction(one) for one in weight]
        for feature, one, change in zip(MOVING, point, direction, strict=True):
            moved[feature] = Fraction(one) + Fraction(x) * Fraction(change)
        return naive.corpus_floor_bleu(exact, moved)

    assert bleu == pytest.approx(max(map(at, tried)))
    assert at(step) == pytest.approx(bleu)
    if ends:
        outside = 0.2 * (1 + max(map(abs, ends)))
        assert ends[0] - outside < step < ends[-1] + outside
        # Points beyond the limit are ignored; inside, the result is at least as good.
        near, less = best_step(envelopes, -np.inf, np.inf, 1.0)
        assert abs(near) <= 1.4
        assert at(near) == pytest.approx(less)


def test_the_middle_of_the_widest_interval():
    def row(matches):
        return [4, 4, matches, 0, 0, 0, 4, 3, 2, 1]

    def step(*lines, low=-np.inf, high=np.inf):
        start, stats = zip(*lines, strict=True)
        stats = np.array([row(matches) for matches in stats])
        found = Envelopes(np.array([0, len(start)]), np.array(start), stats)
        return best_step(found, low, high, 1e6)[0]

    def to(x):
        return pytest.approx(x)

    best = [(-math.inf, 0), (1, 2), (2, 1), (3, 2), (7, 1)]
    assert step(*best) == to(5)
    assert step(*best, high=3.5) == to(1.5)
    assert step((-math.inf, 0), (1, 2), (4, 2), (6, 1), (7, 2), (10, 0)) == to(3.5)  # neighbours are merged
    assert step((-math.inf, 1), (5, 2)) == to(5.6)  # a little beyond
    assert step((-math.inf, 2), (5, 1)) == to(4.4)
    assert step((-math.inf, 2), (5, 1), low=-100, high=100) == to(-47.5)
    assert step((-math.inf, 2), (-5, 1), low=-2, high=-1) == to(-1.5)
    assert step((-math.inf, 1), (1e9, 2)) == to(0)  # out of reach
    assert step((-math.inf, 1)) == to(0)


def best_is_tied(candidates, weight):
    """Whether rounding decides between candidates with other features."""
    score = max(naive.score(candidate, weight) for candidate in candidates)
    near = [c[1] for c in candidates if naive.score(c, weight) > score - 1e-9 * (1 + abs(score))]
    return any(features != near[0] for features in near)


@settings(max_examples=25)
@given(lists_of(max_size=6), weights, st.integers(0, 3), st.booleans())
def test_predicted_bleu_is_reached_and_no_step_is_better(found, weight, directions, bounded):
    lists = candidate_lists(found)
    bounds = [(-1.0, 1.0), (0.0, math.inf), (0.5, 0.5)] if bounded else []
    mert = MERT(features=MOVING, bounds=bounds, directions=directions, restarts=2)
    learnt, happened = mert.fit(lists, weight, 1, 5)
    fixed = [f for f in range(NUM_FEATURES) if f not in MOVING]
    assert learnt[fixed].tolist() == weight[fixed].tolist()
    assert happened["predicted_bleu"] >= happened["start_bleu"]
    sentences = list(naive.merged(found).values())
    is_tied = any(best_is_tied(candidates, learnt.tolist()) for candidates in sentences)
    if happened["moves"] and happened["restart"] == 0 and not is_tied:
        assert naive.corpus_floor_bleu(sentences, learnt.tolist()) == pytest.approx(
            happened["predicted_bleu"]
        )
    if bounded:
        assert all(low <= learnt[f] <= high for f, (low, high) in zip(MOVING, bounds, strict=True))
    else:
        surface = ListSurface(lists, np.array(MOVING), learnt)
        for direction in np.eye(len(MOVING)):
            _, bleu = best_step(surface.envelopes(learnt[MOVING], direction), -np.inf, np.inf, 1e6)
            assert bleu <= happened["predicted_bleu"] + 2e-5


def learnable():
    """The optimum needs a weight of feature 0 more than twice that of feature 1, with opposite sign."""
    rows = []
    for sentence in range(10):
        mine = []
        for good in range(5):
            features = {0: float(good), 1: 2.0 * good + sentence % 3 * (good == 2), 4: 1.0 + good % 2}
            stats = [4, 4, good, max(0, good - 1), max(0, good - 2), max(0, good - 3), 4, 3, 2, 1]
            mine.append(((sentence, good), {f: v for f, v in features.items() if v}, stats))
        rows.append((sentence, mine))
    return candidate_lists(rows)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mert_finds_the_optimum(seed):
    start = np.array([-1.0, 1.0, 0.0, 0.0, 0.25])
    mert = MERT(features=[0, 1], restarts=3, directions=2)
    learnt, happened = mert.fit(learnable(), start, 1, seed)
    assert happened["predicted_bleu"] == learnable().bleu(learnt) == 1.0
    assert happened["start_bleu"] < 1
    assert learnt[4] == 0.25
    again, _ = mert.fit(learnable(), start, 1, seed)
    assert again.tolist() == learnt.tolist()
    for threads in (2, 5):  # over starts, over directions
        together = MERT(features=[0, 1], restarts=3, directions=2, threads=threads)
        assert together.fit(learnable(), start, 1, seed)[0].tolist() == learnt.tolist()


def test_weights_keep_their_norm():
    start = np.array([-1.0, 1.0, 0.0, 0.0, 0.0])
    learnt, happened = MERT(features=[0, 1], restarts=0).fit(learnable(), start, 1, 1)
    assert happened["moves"] > 0
    assert np.abs(learnt).sum() == pytest.approx(2)
    learnt, happened = MERT(features=[0, 1], restarts=0).fit(learnable(), np.zeros(5), 1, 1)
    assert np.abs(learnt).sum() == pytest.approx(1)
    assert learnable().bleu(learnt) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": []}, "found no features to learn weights for"),
        ({"features": [1, 1]}, "found a feature twice"),
        ({"features": [1], "bounds": [(0, 1)] * 2}, "bounds: found 2, expected 1"),
        ({"features": [1], "bounds": [(1, 0)]}, "bounds: found 1 and 0, expected a lower"),
        ({"features": [1], "restarts": -1}, "restarts: found -1"),
        ({"features": [1], "threads": 0}, "threads: found 0"),
        ({"features": [1], "tolerance": 0.0}, "tolerance: found 0.0"),
    ],
)
def test_wrong_settings(wrong, message):
    with pytest.raises(ConfigError, match=message):
        MERT(**wrong)


def test_too_few_weights():
    with pytest.raises(ValueError, match="2 weights, but feature 3"):
        MERT(features=[3]).fit(learnable(), np.zeros(2), 1, 1)


# ---- forests


@st.composite
def valued_worlds(draw, num_features=2, dead=False):
    """A forest with derivations, and values of features on its edges."""
    world = draw(worlds(max_derivations=60, dead=dead))
    assume(enumerated(world))
    row = st.lists(quarters, min_size=num_features, max_size=num_features)
    return world, draw(st.lists(row, min_size=len(world.edges), max_size=len(world.edges)))


def lines_of(world, values, point, direction, fixed=True):
    """(intercept, slope) and the words of every derivation of the goal."""
    lines, words = [], []
    for derivation in enumerated(world):
        edges = naive_forest.all_edges(derivation)
        at = [sum(values[edge][d] for edge in edges) for d in range(len(point))]
        a = sum(x * w for x, w in zip(at, point, strict=True))
        a += naive_forest.score(world.edges, derivation) if fixed else 0
        lines.append((a, sum(x * w for x, w in zip(at, direction, strict=True))))
        words.append(naive_forest.words(world.tgt, world.edge_rule, derivation))
    return lines, words


REFERENCES = References([[[0, 1, 0, 2], [1, 1]], [[2, 0]]])
pair = st.lists(quarters, min_size=2, max_size=2).map(np.array)


def surface_of(world, values, fixed=True, number=0):
    surface = ForestSurface(REFERENCES, 2)
    matrix = np.array(values, np.float32).reshape(-1, 2)
    assert surface.add(number, world.forest, matrix, np.zeros(2) if fixed else None)
    return surface


@given(valued_worlds() | valued_worlds(dead=True), pair, pair, st.booleans())
def test_envelopes_of_forests_equal_enumeration(world_and_values, point, direction, fixed):
    world, values = world_and_values
    lines, words = lines_of(world, values, point, direction, fixed)
    expected = naive.envelope(lines)
    envelopes = surface_of(world, values, fixed).envelopes(point, direction)
    assert envelopes.start.tolist() == [start for start, _ in expected]
    assert envelopes.first.tolist() == [0, len(expected)]
    for row, (_, place) in zip(envelopes.statistics.tolist(), expected, strict=True):
        # Several derivations may have the same line; any of them may be returned.
        same = [words[i] for i, line in enumerate(lines) if line == lines[place]]
        assert row in REFERENCES.statistics(0, same).tolist()


@given(valued_worlds(), valued_worlds(), pair, pair)
def test_several_forests_of_a_sentence_are_searched_together(one, other, point, direction):
    surface = surface_of(*one, number=1)
    assert surface.add(1, other[0].forest, np.array(other[1], np.float32).reshape(-1, 2), np.zeros(2))
    lines, words = (
        a + b for a, b in zip(*(lines_of(*w, point, direction) for w in (one, other)), strict=True)
    )
    expected = naive.envelope(lines)
    envelopes = surface.envelopes(point, direction)
    assert envelopes.start.tolist() == [start for start, _ in expected]
    for row, (_, place) in zip(envelopes.statistics.tolist(), expected, strict=True):
        same = [words[i] for i, line in enumerate(lines) if line == lines[place]]
        assert row in REFERENCES.statistics(1, same).tolist()


@settings(max_examples=20)
@given(valued_worlds(), valued_worlds(), pair)
def test_mert_over_forests_reaches_the_predicted_bleu(one, other, start):
    surface = surface_of(*one, fixed=False)
    matrix = np.array(other[1], np.float32).reshape(-1, 2)
    surface.add(1, other[0].forest, matrix)
    assert len(surface) == 2
    assert surface.is_scale_free()
    learnt, happened = MERT(features=[0, 2], restarts=1).fit(
        surface, np.array([start[0], 7.0, start[1]]), 1, 3
    )
    assert learnt[1] == 7
    point = learnt[[0, 2]]
    best = []
    for number, world in enumerate((one, other)):
        lines, words = lines_of(*world, point, np.zeros(2), fixed=False)
        highest = max(a for a, _ in lines)
        near = [words[i] for i, (a, _) in enumerate(lines) if a > highest - 1e-9]
        best.append({tuple(row) for row in REFERENCES.statistics(number, near).tolist()})
    possible = [naive.floor_bleu(naive.added(rows)) for rows in itertools.product(*best)]
    assert any(bleu == pytest.approx(happened["predicted_bleu"]) for bleu in possible)
    assert happened["predicted_bleu"] >= happened["start_bleu"]


def test_the_fixed_part_of_edge_scores():
    world = World([[0, 1]], [([], 1.5), ([], -1.0)], [0, 1], [[0], [0]], [[0], [1]], [[], []], [(0, 1)])
    values = np.array([[1.0, 0.0], [0.5, 0.0]], np.float32)
    surface = ForestSurface(REFERENCES, 2)
    surface.add(1, world.forest, values, np.array([2.0, 0.0]))  # 1.5 = 2 - 0.5 and -1 = 1 - 2
    assert surface._forests[1][0].fixed.tolist() == [-0.5, -2.0]
    assert not surface.is_scale_free()
    assert surface.envelopes(np.zeros(2), np.array([1.0, 0.0])).start.tolist() == [-math.inf, -3.0]
    surface.clear()
    surface.add(1, world.forest, values, np.array([1.5, 3.0]))
    assert surface._forests[1][0].fixed.tolist() == [0, -1.75]
    assert len(surface) == 1


def test_mismatched_forests():
    surface = ForestSurface(REFERENCES, 2)
    dead = World([[], [0]], [([0], 0.0)], [-1], [], [], [], [(0, 1), (0, 1)])
    assert not surface.add(0, dead.forest, np.zeros((1, 2), np.float32))
    assert len(surface.envelopes(np.zeros(2), np.zeros(2)).start) == 0
    with pytest.raises(ValueError, match=r"values \(1, 3\) for 1 edges and 2 features"):
        surface.add(0, dead.forest, np.zeros((1, 3), np.float32))
    with pytest.raises(IndexError, match="references for 2 sentences, not for 2"):
        surface.add(2, dead.forest, np.zeros((1, 2), np.float32))
