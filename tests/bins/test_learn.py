"""Learning of bins: the algorithm of the paper as corrected, and its properties."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hiero.bins.bins import FeatureBins
from hiero.bins.config import WORDS, BinsConfig, FeatureConfig
from hiero.bins.kernels import FAR, deviations_kernel
from hiero.bins.learn import Histogram, bins_of, exact, greedy, ideal_population, learn_bins
from hiero.core.errors import ConfigError, HieroError
from hiero.core.progress import SilentProgress
from hiero.core.symbols import Symbols
from hiero.core.text import parse_segment
from hiero.grammar.sources import RuleList
from tests.naive import bins as naive

counts = st.lists(st.integers(1, 60) | st.integers(1, 3) | st.sampled_from([1, 500]), min_size=1, max_size=9)


def capped(frequencies: list[int], number: int) -> tuple[Fraction, list[Fraction]]:
    """The ideal population and the adjusted frequencies, computed by the package."""
    ideal = Fraction(*ideal_population(frequencies, number))
    return ideal, [min(Fraction(f), ideal) for f in frequencies]


@given(counts, st.integers(1, 9))
def test_ideal_population_is_the_limit_of_the_iteration(frequencies: list[int], number: int) -> None:
    number = min(number, len(frequencies))
    ideal, mass = capped(frequencies, number)
    assert float(ideal) == pytest.approx(float(naive.adjusted(frequencies, number)), rel=1e-9)
    assert sum(mass) == number * ideal  # a fixed point, exactly


@given(counts, st.integers(1, 9))
def test_greedy_equals_algorithm_1_without_empty_bins(frequencies: list[int], number: int) -> None:
    begins = greedy(frequencies, number)
    number = min(number, len(frequencies))
    assert len(begins) == number
    assert begins[0] == 0
    assert all(a < b for a, b in itertools.pairwise([*begins, len(frequencies)]))
    ideal, mass = capped(frequencies, number)
    assert begins == naive.populated(mass, ideal, number)


@given(counts, st.integers(1, 9))
def test_greedy_against_all_partitions(frequencies: list[int], number: int) -> None:
    """Greedy bins are at most one ideal population away from the ideal; the optimum may be closer."""
    number = min(number, len(frequencies))
    ideal, mass = capped(frequencies, number)
    found = naive.objective(mass, ideal, greedy(frequencies, number))
    best = min(naive.objective(mass, ideal, begins) for begins in naive.partitions(len(frequencies), number))
    assert best <= found
    assert found < ideal
    assert naive.objective(mass, ideal, exact(frequencies, number)) == best


def test_values_across_a_boundary() -> None:
    """As in the last line of Algorithm 1: less than half of a value may be beyond the boundary."""
    assert greedy([1, 2, 1], 2) == [0, 1]
    assert greedy([10, 17, 11], 2) == [0, 2]


@given(
    st.lists(st.integers(1, 9) | st.integers(1, 60), min_size=1, max_size=20),
    st.integers(1, 60),
    st.integers(1, 9),
)
def test_least_deviations(mass: list[int], ideal: int, number: int) -> None:
    below = np.array([0, *itertools.accumulate(mass)])
    found = np.empty_like(below)
    deviations_kernel(below, ideal, number, found)
    expected = naive.least_deviations(mass, ideal, number)
    assert [None if value == FAR else value for value in found.tolist()] == expected


@pytest.mark.parametrize(
    ("values", "trials", "share_of_best", "mean", "most"),
    [((4, 11), 300, 0.8, 1.1, 2.0), ((20, 120), 100, 0.0, 1.6, 3.0)],
)
def test_greedy_compared_with_the_optimum(
    values: tuple[int, int], trials: int, share_of_best: float, mean: float, most: float
) -> None:
    """85 % of small inputs are optimal; the mean ratio of objectives (equation 7) is 1.07, of larger 1.5."""
    draw = np.random.default_rng(3)
    ratios = []
    for _ in range(trials):
        frequencies = (draw.pareto(1.2, draw.integers(*values)) * 5 + 1).astype(int).tolist()
        number = int(draw.integers(2, len(frequencies)))
        ideal, mass = capped(frequencies, number)
        found, best = (
            naive.objective(mass, ideal, method(frequencies, number)) for method in (greedy, exact)
        )
        ratios.append(1.0 if best == found else float(found / best) if best else math.inf)
    assert math.isfinite(max(ratios))
    assert np.mean(np.array(ratios) == 1) >= share_of_best
    assert 1 < np.mean(ratios) < mean
    assert max(ratios) <= most


# ---- features


def histogram(values: list[float]) -> Histogram:
    found = Histogram()
    for part in (values[::2], values[1::2]):
        value, count = np.unique(np.array(part, np.float32), return_counts=True)
        found.add(value, count.astype(np.int64))
    found.settle()
    return found


def learnt(values: list[float], bits: int) -> FeatureBins:
    return bins_of("F", FeatureConfig(of="given", bits=bits, overlap=0, keep=False), histogram(values))


def places(bins: FeatureBins, values: list[float]) -> list[int]:
    return [naive.bin_of(bins.begin.tolist(), value) for value in np.array(values, np.float32).tolist()]


values = st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=40)


@given(values, st.integers(1, 4))
def test_statistics_of_bins(numbers: list[float], bits: int) -> None:
    bins = learnt(numbers, bits)
    assert bins.misplaced() is None
    assert len(bins) == min(2**bits, len(set(numbers)))
    for j in range(len(bins)):
        inside = [x for x, place in zip(numbers, places(bins, numbers), strict=True) if place == j]
        assert bins.rules[j] == len(inside) > 0
        assert bins.values[j] == len(set(inside))
        assert (bins.low[j], bins.high[j]) == (min(inside), max(inside))
    # Unseen values are in an outer bin, or in that of the next smaller value.
    assert places(bins, [-1e30, 1e30]) == [0, len(bins) - 1]


INCREASING = {
    "scaled": lambda x: 3 * x - 7,
    "exponential": lambda x: math.exp(x / 8),
    "cubed": lambda x: x**3,
    "logistic": lambda x: 1 / (1 + math.exp(-x / 8)),
    "logarithm": lambda x: math.log(x + 21),
}


@given(values, st.integers(1, 4), st.sampled_from(sorted(INCREASING)))
def test_bins_are_invariant_under_increasing_transforms(numbers: list[float], bits: int, name: str) -> None:
    """Bins do not change for the values they were learnt from, nor for others."""
    transform = INCREASING[name]
    bins, changed = learnt(numbers, bits), learnt([transform(x) for x in numbers], bits)
    everything = [float(x) for x in range(-20, 21)]
    assume(len({np.float32(transform(x)) for x in everything}) == len(everything))
    assert places(bins, everything) == places(changed, [transform(x) for x in everything])
    assert bins.rules.tolist() == changed.rules.tolist()


@settings(max_examples=20)
@given(values)
def test_counts_of_parts_add_up(numbers: list[float]) -> None:
    found = histogram(numbers)
    assert dict(zip(found.value.tolist(), found.count.tolist(), strict=True)) == {
        x: numbers.count(x) for x in set(numbers)
    }


# ---- from grammars

RULES = [
    *(f"[X] ||| a ||| A{i} ||| P={i / 10} One=1 Two={i % 2} C={math.log10(1 + i)}" for i in range(10)),
    "[X] ||| b ||| B B ||| P=5 One=1 Two=1 C=2",
]


def learn(
    config: dict[str, Any], *sentences: str, rules: list[str] = RULES, **more: Any
) -> list[FeatureBins]:
    features = {name: FeatureConfig(**keys) for name, keys in config.pop("features", {}).items()}
    symbols = Symbols()
    source = RuleList(symbols, rules)
    segments = [parse_segment(sentence) for sentence in sentences]
    return learn_bins(BinsConfig(features=features, **config), [source], symbols, segments, **more)


@pytest.mark.parametrize("threads", [1, 3])
def test_each_rule_counts_once_per_sentence(threads: int) -> None:
    notes: list[str] = []
    progress = SilentProgress()
    progress.say = notes.append  # type: ignore[method-assign]
    found = learn(
        {"features": {"P": {}, "C": {"of": "count", "bits": 2}, WORDS: {"bits": 1}}, "bits": 1},
        "a",
        "a b",
        "b",
        "b",
        threads=threads,
        progress=progress,
    )
    assert [one.feature for one in found] == ["P", "C", WORDS]
    assert [one.rules.sum() for one in found] == [10 + 11 + 1 + 1] * 3
    # 20 votes for ten values below 1, 3 for 5: half of 23 votes is most nearly in the first six values.
    assert found[0].rules.tolist() == [12, 11]
    assert found[0].begin.tolist() == [-math.inf, np.float32(0.6)]
    assert found[1].low.tolist()[0] == 0
    assert found[1].high.tolist()[-1] == 99
    assert found[2].rules.tolist() == [20, 3]
    assert notes == []


def test_two_values_make_two_bins() -> None:
    notes: list[str] = []
    progress = SilentProgress()
    progress.say = notes.append  # type: ignore[method-assign]
    (found,) = learn({"features": {"Two": {}}, "bits": 4}, "a", progress=progress)
    assert found.begin.tolist() == [-math.inf, 1]
    assert notes == ["Two: 2 bins instead of 16, one for each of its values"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"features": {}}, "bins: features: found no names, expected some, such as EgivenFCoherent"),
        (
            {"features": {"One": {}}},
            "bins: features: One: found the value 1 in all of 10 rules, expected different ones"
            " (a constant is of no use: leave it out)",
        ),
        ({"features": {"Too": {}}}, "bins: features: 'Too': no rule has it; did you mean 'Two'?"),
        (
            {"features": {"Two": {"of": "probability"}, "Q": {}}},
            "bins: features: 'Q': no rule has it; one of",
        ),
    ],
)
def test_invalid_features(config: dict[str, Any], message: str) -> None:
    with pytest.raises(HieroError) as error:
        learn(config, "a")
    assert str(error.value).startswith(message)


def test_infinite_values_are_reported_with_their_rule() -> None:
    with pytest.raises(HieroError) as error:
        learn({"features": {"C": {"of": "count"}}}, "a", rules=["[X] ||| a ||| b ||| C=99"])
    assert str(error.value) == "C: found inf in the rule [X] ||| a ||| b, expected a number"


def test_values_that_are_not_counts_are_reported_with_their_rule() -> None:
    """Below 0 they would become one value."""
    rules = ["[X] ||| a ||| b ||| C=1", "[X] ||| a ||| c ||| C=-2", "[X] ||| a ||| d ||| C=-3"]
    with pytest.raises(HieroError) as error:
        learn({"features": {"C": {"of": "count"}}}, "a", rules=rules)
    assert str(error.value).startswith(
        "C: found -2.0 in the rule [X] ||| a ||| c, expected log10(1 + c) of a"
    )
    assert len(learn({"features": {"C": {}}}, "a", rules=rules)[0]) == 3


@pytest.mark.parametrize("zeros", [("0", "-0"), ("-0", "0"), ("-0", "-0")])
def test_minus_0_is_0(zeros: tuple[str, str]) -> None:
    rules = [f"[X] ||| a ||| b{k} ||| F={zero}" for k, zero in enumerate(zeros)]
    (found,) = learn({"features": {"F": {}}}, "a", rules=[*rules, "[X] ||| a ||| c ||| F=-1"])
    assert found.names == ["F_bin1_-inf", "F_bin2_0"]
    assert found.rules.tolist() == [1, 2]


def test_a_feature_of_unused_rules() -> None:
    """Although it is a feature of the grammar."""
    symbols = Symbols()
    sources = [RuleList(symbols, RULES), RuleList(symbols, ["[X] ||| z ||| Z ||| Far=1"])]
    config = BinsConfig(features={"Far": FeatureConfig()})
    with pytest.raises(HieroError, match=r"^bins: features: 'Far': no rule has it; one of C, One, P, Two"):
        learn_bins(config, sources, symbols, [parse_segment("a")])


def test_no_rules_at_all() -> None:
    with pytest.raises(HieroError, match="bins: found no rules for 2 sentences, expected some"):
        learn({"features": {"P": {}}}, "x", "y")


def test_settings_of_one_feature_take_precedence() -> None:
    config = BinsConfig(features={"A": FeatureConfig(bits=3, keep=False), "B": FeatureConfig()}, keep=True)
    assert config.settings_of("A") == FeatureConfig(bits=3, overlap=0, keep=False)
    assert config.settings_of("B") == FeatureConfig(bits=4, overlap=0, keep=True)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"bits": 0}, "bits: found 0, expected 1 to 16"),
        ({"overlap": -1}, "overlap: found -1, expected 0 to 1000"),
        ({"overlap": 1001}, "overlap: found 1001, expected 0 to 1000"),
    ],
)
def test_invalid_settings(keys: dict[str, Any], message: str) -> None:
    for kind in (BinsConfig, FeatureConfig):
        with pytest.raises(ConfigError, match=message):
            kind(**keys)


def test_the_number_of_words_is_not_converted() -> None:
    with pytest.raises(
        ConfigError, match=r"^features: WordPenalty: of: found count, expected given \(it is a"
    ):
        BinsConfig(features={WORDS: FeatureConfig(of="count")})
