"""Word alignment in memory: train a model of each direction, and link words.

The result does not depend on the number of threads: expected counts are integers, which can be added in any
order, and the few sums of floating-point numbers are taken block by block in the order of the text.
"""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from hiero.alignment.config import MAX_TENSION, METHODS, MIN_TENSION, AlignConfig
from hiero.alignment.hmm_kernels import (
    JUMP_LIMIT,
    NUM_JUMPS,
    Windows,
    fit_jumps_kernel,
    hmm_decode_kernel,
    hmm_expect_kernel,
    hmm_posteriors_kernel,
    num_windows,
)
from hiero.alignment.ibm2_kernels import (
    Sizes,
    ibm2_decode_kernel,
    ibm2_expect_kernel,
    ibm2_posteriors_kernel,
    tension_kernel,
)
from hiero.alignment.pair_kernels import (
    ExpectedCounts,
    LexicalProbs,
    PairIndex,
    normalize_null_pairs_kernel,
    normalize_pairs_kernel,
    number_pairs_kernel,
    pair_targets_kernel,
    pair_totals_kernel,
    unaligned_probs_kernel,
)
from hiero.alignment.symmetrize_kernels import symmetrize_kernel
from hiero.bitext.alignments import Alignment, alignment_of
from hiero.bitext.corpus import Bitext
from hiero.core.arrays import (
    Floats,
    Floats32,
    Ids,
    Ints,
    joined_offsets,
    offsets_by_row,
    offsets_of,
    read_only,
    row_of_entry,
)
from hiero.core.errors import HieroError
from hiero.core.parallel import in_order
from hiero.core.progress import Progress, SilentProgress

# ---- arrays

MAX_PAIRS = 2147483647  # their ids are int32


def pair_index(bitext: Bitext) -> PairIndex:
    """Number the pairs of words that occur together, and list the pair of every cell."""
    src, tgt = bitext.src, bitext.tgt
    first_cell = offsets_of(src.length * tgt.length)
    first_pair = np.empty(src.num_words + 1, np.int64)
    pair = np.empty(first_cell[-1], np.int32)
    num_pairs = number_pairs_kernel(
        src.first, src.word, tgt.first, tgt.word, first_cell, tgt.num_words, MAX_PAIRS, first_pair, pair
    )
    if num_pairs < 0:
        raise HieroError(f"the bitext has more than {MAX_PAIRS:,} distinct word pairs; align it in parts")
    pair_tgt, num_tgt = np.empty(num_pairs, np.int32), np.zeros(tgt.num_words, np.int64)
    pair_targets_kernel(tgt.first, tgt.word, first_cell, pair, pair_tgt, num_tgt)
    arrays = (first_cell, pair, first_pair, pair_tgt, num_tgt)
    return PairIndex(src.first, src.word, tgt.first, tgt.word, *(read_only(array) for array in arrays))


def sizes_of(index: PairIndex) -> Sizes:
    """The distinct sizes of sentence pairs, for the diagonal prior."""
    length = np.stack([np.diff(index.src_first), np.diff(index.tgt_first)], axis=1)
    full = np.flatnonzero(np.diff(index.first_cell) > 0)
    different, size = np.unique(length[full], axis=0, return_inverse=True)
    of = np.full(len(length), -1, np.int32)
    of[full] = size.reshape(-1)
    first = np.zeros((len(different) + 1, 2), np.int64)
    np.cumsum(different[:, ::-1], axis=0, out=first[1:])
    first[:, 1] += first[-1, 0]
    return Sizes(read_only(of), read_only(different.astype(np.int64)), read_only(first))


def windows_of(index: PairIndex) -> Windows:
    """The positions from which the HMM may jump, by sentence length."""
    full = np.diff(index.first_cell) > 0
    lengths = [np.unique(np.diff(first)[full]) for first in (index.src_first, index.tgt_first)]
    length = np.zeros((max(map(len, lengths)), 2), np.int64)
    first = np.full((int(max((each.max(initial=0) for each in lengths))) + 1, 2), -1, np.int64)
    used = 0
    for direction, each in enumerate(lengths):
        length[: len(each), direction] = each
        first[each, direction] = used + np.cumsum(each + 1) - (each + 1)
        used += int(np.sum(each + 1))
    return Windows(read_only(length), read_only(first))


def training_blocks(first: Ints, size: int) -> list[tuple[int, int]]:
    """Divide the sentence pairs, or the words, of a round of training into blocks of about ``size``.

    Item k has size first[k + 1] - first[k]. There is at least one block,
    so that sums over blocks have a shape.
    """
    if len(first) == 1:
        return [(0, 0)]
    cuts = np.searchsorted(first, np.arange(0, first[-1], size), side="left")
    cuts = np.unique(np.append(cuts, [0, len(first) - 1]))
    return [(int(begin), int(end)) for begin, end in itertools.pairwise(cuts)]


def uniform_lexicon(num_pairs: int, num_src: int, num_tgt: int) -> LexicalProbs:
    """The lexical table to train from: all words are equally probable."""
    prob = np.empty((num_pairs, 2), np.float32)
    prob[:] = 1.0 / max(num_tgt, 1), 1.0 / max(num_src, 1)
    null_tgt = np.full(num_tgt, 1.0 / max(num_tgt, 1), np.float32)
    return LexicalProbs(prob, null_tgt, np.full(num_src, 1.0 / max(num_src, 1), np.float32))


def no_expected_counts(num_pairs: int, num_src: int, num_tgt: int, num_places: int) -> ExpectedCounts:
    """The expected counts of a thread of training, all zero."""
    pair = np.zeros((num_pairs, 2), np.int64)
    return ExpectedCounts(
        pair, np.zeros(num_tgt, np.int64), np.zeros(num_src, np.int64), np.zeros(num_places, np.int64)
    )


# ---- training

BLOCK_CELLS = 1 << 19  # work is divided into blocks of about as many cells, for any number of threads
BLOCK_PAIRS = 1 << 20
JUMP_ROUNDS = 10

Result = TypeVar("Result")


class DirectionalLinks(NamedTuple):
    """Directional alignments.

    fwd  int32 [target words]  source position in its sentence that a target word is linked to, or -1
    rev  int32 [source words]  target position that a source word is linked to, or -1
    """

    fwd: Ids
    rev: Ids


class Iteration(NamedTuple):
    """One round of training, by direction (target given source, source given target)."""

    model: str
    perplexity: tuple[float, float]  # per word, under the parameters before the round
    tension: tuple[float, float]  # before the round

    def __str__(self) -> str:
        return f"{self.model} perplexity {self.perplexity[0]:.1f} {self.perplexity[1]:.1f}"


class Aligned(NamedTuple):
    links: DirectionalLinks
    history: list[Iteration]


def align(bitext: Bitext, config: AlignConfig, threads: int = 1, progress: Progress | None = None) -> Aligned:
    """Train on a bitext and align it.

    Its progress is in sentence pairs, in ``num_rounds(config)`` passes over the bitext.
    """
    trainer = trained(bitext, config, threads, progress)
    return Aligned(trainer.decode(), trainer.history)


def trained(
    bitext: Bitext, config: AlignConfig, threads: int = 1, progress: Progress | None = None
) -> Trainer:
    """Train on a bitext by all rounds of a configuration."""
    trainer = Trainer(bitext, config, threads, progress)
    for _ in range(config.iterations):
        trainer.improve_ibm2()
    if config.model == "hmm":
        for _ in range(config.hmm_iterations):
            trainer.improve_hmm()
    return trainer


def num_rounds(config: AlignConfig) -> int:
    """The number of passes over the bitext in training and decoding."""
    return config.iterations + (config.hmm_iterations if config.model == "hmm" else 0) + 1


class Trainer:
    """The state of training; one round of EM at a time."""

    def __init__(
        self, bitext: Bitext, config: AlignConfig, threads: int = 1, progress: Progress | None = None
    ) -> None:
        self.config = config
        self.model = "ibm2"
        self.history: list[Iteration] = []
        self.threads = threads
        self.progress = progress or SilentProgress()
        self.progress.begin(bitext.num_pairs * num_rounds(config))
        self.index = pair_index(bitext)
        self.blocks = training_blocks(self.index.first_cell, BLOCK_CELLS)
        self.word_blocks = training_blocks(self.index.first_pair, BLOCK_PAIRS)
        self.sizes, self.windows = sizes_of(self.index), windows_of(self.index)
        num_places = max(int(self.sizes.first[-1, 1]), num_windows(self.windows))
        num_src, num_tgt = bitext.src.num_words, bitext.tgt.num_words
        num_pairs = len(self.index.pair_tgt)
        self.lexicon = uniform_lexicon(num_pairs, num_src, num_tgt)
        # One for each thread; all except the first are zero between rounds.
        self.counts = [no_expected_counts(num_pairs, num_src, num_tgt, num_places) for _ in range(threads)]
        self.tension = np.full(2, config.tension)
        # Start with jumps by one as the most frequent; EM fits the rest.
        distance = np.abs(np.arange(NUM_JUMPS) - JUMP_LIMIT - 2)
        self.jump = np.tile(1.0 / (1.0 + distance), (2, 1))
        used = np.diff(self.index.first_cell) > 0
        sides = self.index.tgt_first, self.index.src_first
        self.num_words = [max(int(np.sum(np.diff(first)[used])), 1) for first in sides]

    def improve_ibm2(self) -> None:
        """A round of EM of IBM model 2."""
        self.model = "ibm2"
        sums = np.sum(self._expect(self._expect_ibm2), axis=0)
        fits_tension = len(self.history) < self.config.tension_rounds
        self._record(sums[:, 0])
        if fits_tension:
            place = self.counts[0].place
            fitted = (fit_tension(self.sizes, place, d, sums[d, 1], self.tension[d]) for d in range(2))
            self.tension = np.array(list(fitted))
        self._maximize()

    def improve_hmm(self) -> None:
        """A round of EM of the HMM."""
        self.model = "hmm"
        results = self._expect(self._expect_hmm)
        self._record(np.sum([sums for sums, _ in results], axis=0)[:, 0])
        jumps = np.sum([jump for _, jump in results], axis=0)
        for direction in range(2):
            fit_jumps_kernel(self.windows, self.counts[0].place, jumps, direction, JUMP_ROUNDS, self.jump)
        self._maximize()

    @property
    def fitted(self) -> Fitted:
        """The bitext with the model trained last."""
        positions = self.jump if self.model == "hmm" else self.tension
        return Fitted(self.index, self.lexicon, positions, self.config.null)

    def decode(self, note: str = "decoding") -> DirectionalLinks:
        """The best links under the model trained last; without ``note``, no progress is reported."""
        links = DirectionalLinks(
            np.empty(len(self.index.tgt_word), np.int32), np.empty(len(self.index.src_word), np.int32)
        )
        fitted = self.fitted
        self._map(lambda begin, end: decode(fitted, begin, end, links), self.blocks, note)
        return links

    def links_above(self, threshold: float) -> Alignment:
        """The links whose posterior is at least ``threshold``."""
        fitted = self.fitted
        found = self._map(
            lambda begin, end: links_above(fitted, begin, end, threshold), self.blocks, "decoding"
        )
        return alignment_of(
            joined_offsets([one.first for one in found]), np.concatenate([one.link for one in found])
        )

    def score_links(self, links: Alignment) -> LinkScores:
        """The scores of all sentence pairs and their links."""
        fitted = self.fitted
        found = self._map(
            lambda begin, end: score_links(fitted, begin, end, links.first, links.link), self.blocks
        )
        return LinkScores(*(np.concatenate(part) for part in zip(*found, strict=True)))

    def unaligned(self) -> tuple[Floats32, Floats32]:
        """The probabilities of a pair that is never aligned, after the last round.

        p(target word | source word) by source word, and p(source word | target word) by target word
        """
        index, counts = self.index, self.counts[0]
        by_src = np.empty(len(index.first_pair) - 1, np.float32)
        by_tgt = np.empty(len(index.num_tgt), np.float32)
        unaligned_probs_kernel(
            index.first_pair,
            index.pair_tgt,
            index.num_tgt,
            counts.pair,
            self.config.smoothing,
            by_src,
            by_tgt,
        )
        return by_src, by_tgt

    def _expect_ibm2(self, begin: int, end: int, counts: ExpectedCounts) -> Floats:
        sums = np.empty((2, 2))
        null = self.config.null
        ibm2_expect_kernel(self.index, self.sizes, self.lexicon, self.tension, null, begin, end, counts, sums)
        return sums

    def _expect_hmm(self, begin: int, end: int, counts: ExpectedCounts) -> tuple[Floats, Floats]:
        sums, jumps = np.empty((2, 2)), np.empty((2, NUM_JUMPS))
        model = self.index, self.windows, self.lexicon, self.jump, self.config.null
        hmm_expect_kernel(*model, self.config.hmm_agreement, begin, end, counts, sums, jumps)
        return sums, jumps

    def _expect(self, step: Callable[[int, int, ExpectedCounts], Result]) -> list[Result]:
        """The E-step: fill ``counts[0]``; return the results of ``step`` for all blocks, in order."""
        for array in self.counts[0]:
            array[:] = 0
        free: queue.SimpleQueue[ExpectedCounts] = queue.SimpleQueue()
        for counts in self.counts:
            free.put(counts)

        def work(begin: int, end: int) -> Result:
            counts = free.get()
            try:
                return step(begin, end, counts)
            finally:
                free.put(counts)

        results = self._map(work, self.blocks, str(self.history[-1]) if self.history else self.model)
        for other in self.counts[1:]:
            for total, array in zip(self.counts[0], other, strict=True):
                total += array
                array[:] = 0
        return results

    def _map(
        self, work: Callable[[int, int], Result], blocks: Sequence[tuple[int, int]], note: str = ""
    ) -> list[Result]:
        """Results of all blocks, in order; after an error or interrupt no new ones are started."""
        results = []
        found = in_order(lambda block: work(*block), blocks, self.threads)
        for (begin, end), result in zip(blocks, found, strict=True):
            results.append(result)
            if note:
                self.progress.advance(end - begin, note)
        return results

    def _maximize(self) -> None:
        """The M-step of the lexical tables."""
        counts, index, smoothing = self.counts[0], self.index, self.config.smoothing
        tgt_total = np.zeros(len(index.num_tgt), np.int64)
        pair_totals_kernel(index.pair_tgt, counts.pair, tgt_total)
        prob = self.lexicon.prob

        def normalize(begin: int, end: int) -> None:
            normalize_pairs_kernel(
                index.first_pair,
                index.pair_tgt,
                index.num_tgt,
                counts.pair,
                tgt_total,
                smoothing,
                begin,
                end,
                prob,
            )

        self._map(normalize, self.word_blocks)
        normalize_null_pairs_kernel(counts.null_tgt, smoothing, self.lexicon.null_tgt)
        normalize_null_pairs_kernel(counts.null_src, smoothing, self.lexicon.null_src)

    def _record(self, likelihood: Floats) -> None:
        perplexity = [
            float(np.exp(-total / words)) for total, words in zip(likelihood, self.num_words, strict=True)
        ]
        self.history.append(
            Iteration(
                self.model, (perplexity[0], perplexity[1]), (float(self.tension[0]), float(self.tension[1]))
            )
        )


class Fitted(NamedTuple):
    """A bitext, and the probabilities by which it is linked.

    positions  weights of jumps of the HMM, [2, NUM_JUMPS], or tensions of IBM model 2, [2]
    null       probability of NULL
    """

    cells: PairIndex
    lexicon: LexicalProbs
    positions: Floats
    null: float


def decode(fitted: Fitted, begin: int, end: int, out: DirectionalLinks) -> None:
    """Write the best links of some sentence pairs."""
    common = (*fitted, begin, end, out.fwd, out.rev)
    if fitted.positions.ndim == 2:
        hmm_decode_kernel(*common)
    else:
        ibm2_decode_kernel(*common)


def decoded(fitted: Fitted) -> DirectionalLinks:
    """The best links of all sentence pairs."""
    index = fitted.cells
    links = DirectionalLinks(np.empty(len(index.tgt_word), np.int32), np.empty(len(index.src_word), np.int32))
    decode(fitted, 0, len(index.src_first) - 1, links)
    return links


class Posteriors(NamedTuple):
    """Posteriors of the links of some sentence pairs.

    link      float64 [cells]  of the link of each cell: the geometric mean of both directions
    log_prob  float64 [S]      mean log-probability of a word, of both sides, given the other side; NaN if
                               a side is empty
    """

    link: Floats
    log_prob: Floats


def posteriors_of(fitted: Fitted, begin: int, end: int) -> Posteriors:
    """The posteriors of some sentence pairs."""
    index = fitted.cells
    prob = np.empty((int(index.first_cell[end] - index.first_cell[begin]), 2))
    log_prob = np.empty((end - begin, 2))
    if fitted.positions.ndim == 2:
        hmm_posteriors_kernel(*fitted, begin, end, prob, log_prob)
    else:
        ibm2_posteriors_kernel(*fitted, begin, end, prob, log_prob)
    words = np.diff(index.src_first[begin : end + 1]) + np.diff(index.tgt_first[begin : end + 1])
    full = np.diff(index.first_cell[begin : end + 1]) > 0
    mean = np.where(full, log_prob.sum(axis=1) / np.maximum(words, 1), np.nan)
    return Posteriors(np.sqrt(prob[:, 0] * prob[:, 1]), mean)


def links_above(fitted: Fitted, begin: int, end: int, threshold: float) -> Alignment:
    """The links of some sentence pairs whose posterior is at least ``threshold``."""
    index = fitted.cells
    cell = np.flatnonzero(posteriors_of(fitted, begin, end).link >= threshold)
    cell += index.first_cell[begin]
    # Of pairs with an empty side, which have no cells, the last one with the same offset is none of these.
    pair = np.searchsorted(index.first_cell[: end + 1], cell, side="right") - 1
    place, length = cell - index.first_cell[pair], np.diff(index.tgt_first)[pair]
    link = np.stack([place // np.maximum(length, 1), place % np.maximum(length, 1)], axis=1)
    return alignment_of(offsets_by_row(pair - begin, end - begin), link.astype(np.int32))


class LinkScores(NamedTuple):
    """Scores of the links of some sentence pairs.

    link      float64 [L]  posterior of each link
    log_prob  float64 [S]  as in Posteriors
    """

    link: Floats
    log_prob: Floats


def score_links(fitted: Fitted, begin: int, end: int, first: Ints, link: Ids) -> LinkScores:
    """The scores of sentence pairs begin ... end - 1 and of their links.

    first, link  as in Alignment, of all pairs
    """
    found = posteriors_of(fitted, begin, end)
    pair = begin + row_of_entry(first[begin : end + 1])
    chosen = link[first[begin] : first[end]].astype(np.int64)
    cell = fitted.cells.first_cell[pair] - fitted.cells.first_cell[begin]
    cell += chosen[:, 0] * np.diff(fitted.cells.tgt_first)[pair] + chosen[:, 1]
    return LinkScores(found.link[cell], found.log_prob)


def fit_tension(sizes: Sizes, mass: Ints, direction: int, distance: float, tension: float) -> float:
    """The tension that maximises the likelihood of the expected links, by Newton's method.

    ``distance`` is the sum from the E-step. A step that would lower the concave objective is halved.
    """

    def evaluate(at: float) -> tuple[float, float, float]:
        partition, mean, variance = tension_kernel(sizes.length, sizes.first, mass, direction, at)
        return -at * distance - partition, mean - distance, variance

    value, gradient, curvature = evaluate(tension)
    for _ in range(50):
        if curvature <= 0.0:
            break  # every sentence has one word: the tension does not matter
        aim = min(max(tension + gradient / curvature, MIN_TENSION), MAX_TENSION)
        found = evaluate(aim)
        while found[0] < value and abs(aim - tension) > 1e-9:
            aim = (aim + tension) / 2
            found = evaluate(aim)
        moved, tension = abs(aim - tension), aim
        value, gradient, curvature = found
        if moved < 1e-7:
            break
    return float(tension)


# ---- symmetrisation


def combine(bitext: Bitext, links: DirectionalLinks, method: str) -> Alignment:
    """Symmetrise the links of both directions by one of METHODS, or take one (``forward``, ``reverse``)."""
    src_first, tgt_first = bitext.src.first, bitext.tgt.first
    if method == "reverse":
        return _reverse(src_first, links.rev)
    method = "none" if method == "forward" else method
    return symmetrize(src_first, tgt_first, links.fwd, links.rev, method)


def symmetrize(src_first: Ints, tgt_first: Ints, fwd: Ids, rev: Ids, method: str) -> Alignment:
    """Combine directional links by one of METHODS; ``none`` is ``fwd`` alone.

    ``fwd`` has the source position linked to each target word, ``rev`` the opposite; -1 is no link.
    """
    first = np.empty(len(src_first), np.int64)
    link = np.empty((len(fwd) + len(rev), 2), np.int32)
    used = symmetrize_kernel(src_first, tgt_first, fwd, rev, METHODS.index(method), first, link)
    return alignment_of(first, link[:used].copy())


def _reverse(src_first: Ints, rev: Ids) -> Alignment:
    linked = rev >= 0
    position = np.arange(len(rev)) - src_first[row_of_entry(src_first)]
    first = offsets_of(linked)[src_first]
    return alignment_of(first, np.stack([position[linked], rev[linked]], axis=1).astype(np.int32))
