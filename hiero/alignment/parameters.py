"""What each model of alignment has beside lexical probabilities, and how it links words by them.

A model is a class here, with a row of PARAMETERS, and a round of training in ``align``, with a row of STEPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from hiero.alignment.config import MIN_TENSION
from hiero.alignment.fertility_kernels import (
    CountedLinks,
    Fertilities,
    most_probable_links_kernel,
    sample_links_kernel,
)
from hiero.alignment.hmm_kernels import NUM_JUMPS, hmm_decode_kernel, hmm_posteriors_kernel
from hiero.alignment.ibm2_kernels import ibm2_decode_kernel, ibm2_posteriors_kernel
from hiero.alignment.pair_kernels import LexicalProbs, PairIndex
from hiero.core.arrays import Floats, Floats32, Ids, is_finite

MAX_FERTILITY = 8  # each further word is as probable as the last
# Each link is sampled so often, and its probabilities after the first rounds are averaged.
ROUNDS, SKIPPED = 10, 2


class PairBlock(NamedTuple):
    """Sentence pairs begin ... end - 1 of a text, with its lexical probabilities and that of NULL."""

    cells: PairIndex
    lexicon: LexicalProbs
    null: float
    begin: int
    end: int


class Parameters(Protocol):
    """The parameters of a model."""

    def decode(self, block: PairBlock, fwd: Ids, rev: Ids) -> None:
        """Write the best links, as in DirectionalLinks."""

    def posteriors(self, block: PairBlock, out_prob: Floats, out_log: Floats) -> None:
        """Write the posteriors of links in both directions, [cells, 2], and log-likelihoods, [S, 2]."""

    def of_words(self, src: Ids, tgt: Ids) -> Parameters:
        """The parameters for a text whose words have these numbers in the model, or -1."""

    def arrays(self) -> dict[str, Any]:
        """What a file of the model has: ``positions``, and tables of fertilities, empty if there are none."""

    @classmethod
    def read(cls, arrays: Mapping[str, Any], num_src: int, num_tgt: int) -> Parameters | None:
        """The parameters that ``arrays`` returned; None if they are none, or of other words."""


@dataclass(frozen=True)
class Tensions:
    """IBM model 2: the tension of each direction, float64 [2]."""

    tension: Floats

    def decode(self, block: PairBlock, fwd: Ids, rev: Ids) -> None:
        ibm2_decode_kernel(*block[:2], self.tension, *block[2:], fwd, rev)

    def posteriors(self, block: PairBlock, out_prob: Floats, out_log: Floats) -> None:
        ibm2_posteriors_kernel(*block[:2], self.tension, *block[2:], out_prob, out_log)

    def of_words(self, src: Ids, tgt: Ids) -> Tensions:
        return self

    def arrays(self) -> dict[str, Any]:
        return _arrays(self.tension)

    @classmethod
    def read(cls, arrays: Mapping[str, Any], num_src: int, num_tgt: int) -> Tensions | None:
        tension = _positions(arrays, 2)
        return None if tension is None or tension.min() < MIN_TENSION else cls(tension)


@dataclass(frozen=True)
class Jumps:
    """The HMM: the weights of jumps, float64 [2, NUM_JUMPS]."""

    weights: Floats

    def decode(self, block: PairBlock, fwd: Ids, rev: Ids) -> None:
        hmm_decode_kernel(*block[:2], self.weights, *block[2:], fwd, rev)

    def posteriors(self, block: PairBlock, out_prob: Floats, out_log: Floats) -> None:
        hmm_posteriors_kernel(*block[:2], self.weights, *block[2:], out_prob, out_log)

    def of_words(self, src: Ids, tgt: Ids) -> Jumps:
        return self

    def arrays(self) -> dict[str, Any]:
        return _arrays(self.weights)

    @classmethod
    def read(cls, arrays: Mapping[str, Any], num_src: int, num_tgt: int) -> Jumps | None:
        weights = _positions(arrays, 2 * NUM_JUMPS)
        return None if weights is None else cls(weights.reshape(2, NUM_JUMPS))


@dataclass(frozen=True)
class FertileJumps:
    """The HMM with fertilities.

    fertilities  of all words of the text; in a trained model, there is one more row, for unknown words
    counted      the links in the counts behind the parameters, with which sampling starts; None: it is
                 another text, and sampling starts with the links of the HMM
    """

    weights: Floats
    fertilities: Fertilities
    counted: CountedLinks | None = None

    def decode(self, block: PairBlock, fwd: Ids, rev: Ids) -> None:
        first = block.cells.first_cell
        prob = np.empty((int(first[block.end] - first[block.begin]), 2))
        self._sample(block, prob)
        most_probable_links_kernel(block.cells, prob, block.begin, block.end, fwd, rev)

    def posteriors(self, block: PairBlock, out_prob: Floats, out_log: Floats) -> None:
        """The log-likelihood is the HMM's: a sum over alignments with fertilities takes too long."""
        hmm_posteriors_kernel(*block[:2], self.weights, *block[2:], out_prob, out_log)
        self._sample(block, out_prob)

    def _sample(self, block: PairBlock, out_prob: Floats) -> None:
        """Write the mean probabilities of links. Equal sentence pairs get equal ones."""
        cells, begin, end = block.cells, block.begin, block.end
        # For all words, since offsets are; what is not touched takes no memory.
        fwd, rev = np.empty(len(cells.tgt_word), np.int32), np.empty(len(cells.src_word), np.int32)
        counted = self.counted
        if counted is None:
            counted = no_counted_links(cells)
            hmm_decode_kernel(*block[:2], self.weights, *block[2:], fwd, rev)
        else:
            tgt = slice(cells.tgt_first[begin], cells.tgt_first[end])
            src = slice(cells.src_first[begin], cells.src_first[end])
            fwd[tgt], rev[src] = counted.fwd[tgt], counted.rev[src]
        model = *block[:2], self.weights, self.fertilities, block.null, counted
        sample_links_kernel(*model, ROUNDS, SKIPPED, 0, -1, begin, end, fwd, rev, out_prob)

    def sample(self, block: PairBlock, seed: int, number: int, fwd: Ids, rev: Ids) -> None:
        """Sample every link once; sentence pair 0 of the text is the pair ``number`` of the whole."""
        model = *block[:2], self.weights, self.fertilities, block.null, self.counted
        sample_links_kernel(*model, 1, 0, seed, number, *block[3:], fwd, rev, np.empty((0, 2)))

    def of_words(self, src: Ids, tgt: Ids) -> FertileJumps:
        # The number of unknown words, -1, is the last row.
        tables = Fertilities(self.fertilities.src[src], self.fertilities.tgt[tgt])
        return FertileJumps(self.weights, tables)

    def arrays(self) -> dict[str, Any]:
        return _arrays(self.weights, self.fertilities)

    @classmethod
    def read(cls, arrays: Mapping[str, Any], num_src: int, num_tgt: int) -> FertileJumps | None:
        weights = _positions(arrays, 2 * NUM_JUMPS)
        tables = arrays["fertility_src"], arrays["fertility_tgt"]
        shapes = (num_src + 1, MAX_FERTILITY), (num_tgt + 1, MAX_FERTILITY)
        if weights is None or tuple(table.shape for table in tables) != shapes:
            return None
        if not all(is_finite(table) and table.min() > 0 for table in tables):
            return None
        return cls(weights.reshape(2, NUM_JUMPS), Fertilities(*tables))


PARAMETERS: dict[str, type[Parameters]] = {"ibm2": Tensions, "hmm": Jumps, "fertility": FertileJumps}


def no_counted_links(cells: PairIndex) -> CountedLinks:
    """The links in the counts behind a model of another text."""
    fwd, rev = np.full(len(cells.tgt_word), -1, np.int32), np.full(len(cells.src_word), -1, np.int32)
    return CountedLinks(fwd, rev, np.zeros(0), np.zeros(0))


def _positions(arrays: Mapping[str, Any], length: int) -> Floats | None:
    positions = arrays["positions"]
    if len(positions) != length or not is_finite(positions) or positions.min() <= 0:
        return None
    # A copy, since kernels are compiled for arrays of training, which are no mapped files.
    copy: Floats = positions.copy()
    return copy


def _arrays(positions: Floats, fertilities: Fertilities | None = None) -> dict[str, Any]:
    none: Floats32 = np.zeros((0, MAX_FERTILITY), np.float32)
    tables = fertilities or (none, none)
    return {"positions": positions.reshape(-1), "fertility_src": tables[0], "fertility_tgt": tables[1]}
