"""Small bitexts for the tests of word alignment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from hiero.alignment.align import pair_index, sizes_of, windows_of
from hiero.alignment.hmm_kernels import NUM_JUMPS, Windows, num_windows
from hiero.alignment.ibm2_kernels import Sizes
from hiero.alignment.pair_kernels import ExpectedCounts, LexicalProbs, PairIndex
from hiero.bitext.corpus import Bitext, Text
from hiero.core.arrays import read_only
from hiero.core.symbols import word_table
from tests.naive import align as naive

NUM_WORDS = 4


class World(NamedTuple):
    """A bitext with random probabilities, for kernels and their twins."""

    pairs: list[naive.Pair]
    bitext: Bitext
    index: PairIndex
    sizes: Sizes
    windows: Windows
    lexicon: LexicalProbs
    table: naive.Table
    null_words: tuple[list[float], list[float]]
    null: float
    tension: np.ndarray
    weights: np.ndarray

    def no_expected_counts(self) -> ExpectedCounts:
        places = max(int(self.sizes.first[-1, 1]), num_windows(self.windows))
        return ExpectedCounts(
            np.zeros((len(self.index.pair_tgt), 2), np.int64),
            np.zeros(NUM_WORDS, np.int64),
            np.zeros(NUM_WORDS, np.int64),
            np.zeros(places, np.int64),
        )


def text_of(lines: list[list[int]], num_words: int = NUM_WORDS) -> Text:
    first = np.append(0, np.cumsum([len(line) for line in lines])).astype(np.int64)
    word = np.array([word for line in lines for word in line], np.int32)
    return Text(read_only(first), read_only(word), word_table([b"w%d" % w for w in range(num_words)]))


def bitext_of(pairs: list[naive.Pair], num_words: int = NUM_WORDS) -> Bitext:
    return Bitext(
        text_of([src for src, _ in pairs], num_words), text_of([tgt for _, tgt in pairs], num_words)
    )


def sentences(longest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, NUM_WORDS - 1), max_size=longest)


def pairs(longest: int = 4, most: int = 5) -> st.SearchStrategy[list[naive.Pair]]:
    return st.lists(st.tuples(sentences(longest), sentences(longest)), max_size=most)


@st.composite
def worlds(draw: st.DrawFn, longest: int = 4) -> World:
    drawn = draw(pairs(longest))
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    bitext = bitext_of(drawn)
    index = pair_index(bitext)

    def probabilities(*shape: int) -> np.ndarray:
        return np.exp(random.uniform(-8, 0, shape)).astype(np.float32)

    lexicon = LexicalProbs(
        probabilities(len(index.pair_tgt), 2), probabilities(NUM_WORDS), probabilities(NUM_WORDS)
    )
    table = {
        key: (float(row[0]), float(row[1]))
        for key, row in zip(naive.number_pairs(drawn), lexicon.prob, strict=True)
    }
    return World(
        drawn,
        bitext,
        index,
        sizes_of(index),
        windows_of(index),
        lexicon,
        table,
        (lexicon.null_tgt.tolist(), lexicon.null_src.tolist()),
        draw(st.sampled_from([0.01, 0.2, 0.9])),
        random.uniform(0.1, 12, 2),
        random.uniform(0.01, 1, (2, NUM_JUMPS)),
    )
