"""Random k-best lists for tests of batch learners, in the formats of the naive twins and of the package.

Values are quarters, so that sums are exact in any order and ties occur.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from hiero.core.arrays import read_only
from hiero.learning.candidates import Candidates
from hiero.learning.learner import Example
from hiero.learning.lists import CandidateLists

Candidate = tuple[tuple[int, ...], dict[int, float], list[int]]
NUM_FEATURES = 6

quarters = st.integers(-8, 8).map(lambda number: number / 4)


@st.composite
def candidates(draw: st.DrawFn, ref_length: int, num_features: int = NUM_FEATURES) -> Candidate:
    """Plausible BLEU statistics: higher orders have fewer matches."""
    words = tuple(draw(st.lists(st.integers(0, 2), max_size=6)))
    values = draw(st.dictionaries(st.integers(0, num_features - 1), quarters, max_size=num_features))
    features = {feature: value for feature, value in sorted(values.items()) if value}
    matches, most = [], len(words)
    for order in range(1, 5):
        most = draw(st.integers(0, max(0, min(most, len(words) - order + 1))))
        matches.append(most)
    totals = [max(0, len(words) - n) for n in range(4)]
    return words, features, [len(words), ref_length, *matches, *totals]


@st.composite
def lists_of(
    draw: st.DrawFn, num_sentences: int = 3, max_size: int = 5, num_features: int = NUM_FEATURES
) -> list[tuple[int, list[Candidate]]]:
    """Lists as decoding returns them: sentences in any order, some several times."""
    ref_lengths = draw(st.lists(st.integers(1, 6), min_size=num_sentences, max_size=num_sentences))
    found = []
    for sentence in draw(st.lists(st.integers(0, num_sentences - 1), min_size=1, max_size=2 * num_sentences)):
        mine = st.lists(candidates(ref_lengths[sentence], num_features), min_size=1, max_size=max_size)
        found.append((sentence, draw(mine)))
    return found


def example(sentence: int, found: Sequence[Candidate]) -> Example:
    """An example as decoding passes it to a learner."""

    def offsets(lengths: list[int]) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    arrays = (
        offsets([len(features) for _, features, _ in found]),
        np.array([f for _, features, _ in found for f in features], np.int32),
        np.array([value for _, features, _ in found for value in features.values()], np.float64),
        np.zeros(len(found)),
        offsets([len(words) for words, _, _ in found]),
        np.array([word for words, _, _ in found for word in words], np.int32),
    )
    statistics = np.array([stats for _, _, stats in found], np.int64)
    # The number stands for the words of the sentence; a single reference is the shortest.
    return Example(
        sentence, sentence + 1, Candidates(*map(read_only, arrays)), read_only(statistics), statistics[0, 1]
    )


def candidate_lists(found: Sequence[tuple[int, Sequence[Candidate]]]) -> CandidateLists:
    lists = CandidateLists()
    for sentence, mine in found:
        lists.add(example(sentence, mine))
    return lists


def dense(curvature):
    """The matrix of a ``newton.Curvature``."""
    matrix = np.diag(curvature.diagonal)
    for triple, block in zip(curvature.triple, curvature.block, strict=True):
        matrix[np.ix_(triple, triple)] += block
    return matrix
