"""Word alignment in memory: train a model of each direction, and link words.

The result does not depend on the number of threads: expected counts are integers, which can be added in any
order, and the few sums of floating-point numbers are taken block by block in the order of the text.
"""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from hiero.alignment.config import MAX_TENSION, MIN_TENSION, AlignConfig
from hiero.alignment.fertility import Sampled, count_links, count_pairs, fertility_ratios
from hiero.alignment.fertility_kernels import CountedLinks, Fertilities
from hiero.alignment.hmm_kernels import (
    JUMP_LIMIT,
    NUM_JUMPS,
    Windows,
    fit_jumps_kernel,
    hmm_expect_kernel,
    num_windows,
)
from hiero.alignment.ibm2_kernels import (
    Sizes,
    ibm2_expect_kernel,
    tension_kernel,
)
from hiero.alignment.links import (
    DirectionalLinks,
    Fitted,
    LinkScores,
    decode,
    links_above,
    score_links,
)
from hiero.alignment.pair_kernels import (
    LEAST,
    UNIT,
    ExpectedCounts,
    LexicalProbs,
    PairIndex,
    find_pairs_kernel,
    in_units,
    normalize_null_pairs_kernel,
    normalize_pairs_kernel,
    number_pairs_kernel,
    pair_targets_kernel,
    pair_totals_kernel,
    unaligned_probs_kernel,
)
from hiero.alignment.pair_tables import mapped_zeros, sorted_pairs
from hiero.alignment.parameters import FertileJumps, Jumps, Parameters, Tensions
from hiero.bitext.alignments import Alignment, alignment_of
from hiero.bitext.corpus import Bitext
from hiero.core.arrays import (
    Floats,
    Floats32,
    Ids,
    Ints,
    joined_offsets,
    offsets_of,
    read_only,
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
    return number_pairs(src.first, src.word, tgt.first, tgt.word, first_cell, src.num_words, tgt.num_words)


def number_pairs(
    src_first: Ints,
    src_word: Ids,
    tgt_first: Ints,
    tgt_word: Ids,
    first_cell: Ints,
    num_src: int,
    num_tgt: int,
) -> PairIndex:
    """``pair_index`` of a bitext as arrays, of so many different words."""
    first_pair = np.empty(num_src + 1, np.int64)
    pair = np.empty(first_cell[-1], np.int32)
    num_pairs = number_pairs_kernel(
        src_first, src_word, tgt_first, tgt_word, first_cell, num_tgt, MAX_PAIRS, first_pair, pair
    )
    if num_pairs < 0:
        raise HieroError(
            f"the bitext has more than {MAX_PAIRS:,} distinct word pairs; align it with --memory"
        )
    pair_tgt, of_tgt = np.empty(num_pairs, np.int32), np.zeros(num_tgt, np.int64)
    pair_targets_kernel(tgt_first, tgt_word, first_cell, pair, pair_tgt, of_tgt)
    arrays = (first_cell, pair, first_pair, pair_tgt, of_tgt)
    return PairIndex(src_first, src_word, tgt_first, tgt_word, *(read_only(array) for array in arrays))


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


def grouped_blocks(
    blocks: list[tuple[int, int]], first_cell: Ints, memory: int, threads: int
) -> list[list[tuple[int, int]]]:
    """Blocks that are worked on together within a limit of memory; 0: no limit."""
    most = memory // (CELL_BYTES + THREAD_BYTES * threads)
    if not memory or first_cell[-1] <= most:
        return [blocks]
    groups: list[list[tuple[int, int]]] = [[]]
    for begin, end in blocks:
        if groups[-1] and first_cell[end] - first_cell[groups[-1][0][0]] > most:
            groups.append([])
        groups[-1].append((begin, end))
    return groups


def uniform_lexicon(prob: Floats32, num_src: int, num_tgt: int) -> LexicalProbs:
    """The lexical table to train from: all words are equally probable. ``prob`` is written."""
    prob[:] = 1.0 / max(num_tgt, 1), 1.0 / max(num_src, 1)
    null_tgt = np.full(num_tgt, 1.0 / max(num_tgt, 1), np.float32)
    return LexicalProbs(prob, null_tgt, np.full(num_src, 1.0 / max(num_src, 1), np.float32))


def no_expected_counts(pair: Ints, num_src: int, num_tgt: int, num_places: int) -> ExpectedCounts:
    """The expected counts of a thread of training, all zero; ``pair`` is an array of zeros."""
    return ExpectedCounts(
        pair, np.zeros(num_tgt, np.int64), np.zeros(num_src, np.int64), np.zeros(num_places, np.int64)
    )


# ---- training

BLOCK_CELLS = 1 << 19  # work is divided into blocks of about as many cells, for any number of threads
BLOCK_PAIRS = 1 << 20
# Bytes of memory for a cell whose pair of words occurs nowhere else, and of counts in each thread.
CELL_BYTES, THREAD_BYTES = 40, 16
JUMP_ROUNDS = 10

Result = TypeVar("Result")


class Iteration(NamedTuple):
    """One round of training, by direction (target given source, source given target)."""

    model: str
    perplexity: tuple[float, float]  # per word, under the parameters before the round; of samples, the HMM's
    tension: tuple[float, float]  # before the round
    changed: float | None = None  # part of the links that sampling changed

    def __str__(self) -> str:
        if self.changed is not None:
            return f"{self.model} {self.changed:.1%} of links changed"
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
    bitext: Bitext,
    config: AlignConfig,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    memory: int = 0,
    folder: Path | None = None,
) -> Trainer:
    """Train on a bitext by all rounds of a configuration; see ``Trainer``."""
    trainer = Trainer(bitext, config, threads, progress, memory=memory, folder=folder)
    for step in STEPS[config.model]:
        for _ in range(step.rounds(config)):
            step.improve(trainer)
    return trainer


def num_rounds(config: AlignConfig) -> int:
    """The number of passes over the bitext in training and decoding."""
    return sum(step.rounds(config) for step in STEPS[config.model]) + 1


class BitextPiece(NamedTuple):
    """Sentence pairs that are worked on together: the whole bitext, or a part of it.

    begin   the first one
    blocks  of them, counted from ``begin``
    pair    int64 [P]  places of their word pairs among those of the bitext; None if they are the same
    """

    begin: int
    blocks: list[tuple[int, int]]
    cells: PairIndex
    sizes: Sizes
    lexicon: LexicalProbs
    pair: Ints | None


class Trainer:
    """The state of training; one round of EM at a time.

    memory  bytes for word pairs; if all of them might need more, the bitext is worked on in pieces, and
            tables of all pairs are in temporary files; 0: no limit. The result is the same.
    folder  for temporary files; None: that of the system
    """

    def __init__(
        self,
        bitext: Bitext,
        config: AlignConfig,
        threads: int = 1,
        progress: Progress | None = None,
        *,
        memory: int = 0,
        folder: Path | None = None,
    ) -> None:
        self.config = config
        self.model = "ibm2"
        self.sampled: Sampled | None = None  # the state of sampling
        self.history: list[Iteration] = []
        self.threads = threads
        self.progress = progress or SilentProgress()
        self.progress.begin(bitext.num_pairs * num_rounds(config))
        src, tgt = bitext.src, bitext.tgt
        num_src, num_tgt = src.num_words, tgt.num_words
        first_cell = offsets_of(src.length * tgt.length)
        self.blocks = training_blocks(first_cell, BLOCK_CELLS)
        self.grouped = grouped_blocks(self.blocks, first_cell, memory, threads)
        if len(self.grouped) == 1:
            self.index = pair_index(bitext)
            num_pairs = len(self.index.pair_tgt)
            prob = np.empty((num_pairs, 2), np.float32)
            counts = [np.zeros((num_pairs, 2), np.int64) for _ in range(threads)]
        else:
            self.index = self._index_pieces(bitext, first_cell, memory, folder)
            num_pairs = len(self.index.pair_tgt)
            prob = mapped_zeros((num_pairs, 2), np.float32, folder)
            counts = [mapped_zeros((num_pairs, 2), np.int64, folder)]
        self.word_blocks = training_blocks(self.index.first_pair, BLOCK_PAIRS)
        self.sizes, self.windows = sizes_of(self.index), windows_of(self.index)
        self.num_places = max(int(self.sizes.first[-1, 1]), num_windows(self.windows))
        self.lexicon = uniform_lexicon(prob, num_src, num_tgt)
        # In one piece, one for each thread; all except the first are zero between rounds.
        self.counts = [no_expected_counts(pair, num_src, num_tgt, self.num_places) for pair in counts]
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
        self._maximize(self.config.smoothing)

    def improve_hmm(self) -> None:
        """A round of EM of the HMM."""
        self.model = "hmm"
        results = self._expect(self._expect_hmm)
        self._record(np.sum([sums for sums, _ in results], axis=0)[:, 0])
        jumps = np.sum([jump for _, jump in results], axis=0)
        for direction in range(2):
            fit_jumps_kernel(self.windows, self.counts[0].place, jumps, direction, JUMP_ROUNDS, self.jump)
        self._maximize(self.config.smoothing)

    def improve_fertility(self) -> None:
        """A round of sampling of the HMM with fertilities, from the links of the HMM on."""
        if self.sampled is None:
            self._estimate(self.decode(""))
        assert self.sampled is not None
        before, last = self.sampled.links, self.history[-1]
        links = DirectionalLinks(before.fwd.copy(), before.rev.copy())
        seed = self.config.seed + (len(self.history) << 32)

        def work(fitted: Fitted, first: int, begin: int, end: int) -> None:
            assert isinstance(fitted.parameters, FertileJumps)
            fitted.parameters.sample(fitted.block(begin, end), seed, first, *self._from(links, first))

        for _ in self._map_fitted(work, str(last)):
            pass
        changed = sum(np.count_nonzero(a != b) for a, b in zip(links, before, strict=True))
        part = changed / max(sum(map(len, links)), 1)
        self.history.append(Iteration("fertility", last.perplexity, last.tension, part))
        self._estimate(links)

    def _estimate(self, links: DirectionalLinks) -> None:
        """Set the parameters of the HMM with fertilities to their posterior means, given all links."""
        counts, unit = self.counts[0], int(UNIT)
        prior = int(in_units(self.config.fertility_smoothing))
        found = count_links(self.index, links, self.windows, self.num_places)
        for direction, one in enumerate(found):
            counts.place[:] = one.place * unit
            jumps = np.tile(one.jump, (2, 1))
            fit_jumps_kernel(self.windows, counts.place, jumps, direction, JUMP_ROUNDS, self.jump)
        counts.null_tgt[:], counts.null_src[:] = (one.null * unit + prior for one in found)
        counts.pair[:] = prior
        for piece in self._pieces():
            rows = slice(None) if piece.pair is None else piece.pair
            counts.pair[rows] += count_pairs(piece.cells, self._from(links, piece.begin)) * unit
        self._maximize(0.0)
        num_pairs = np.diff(self.index.first_pair), self.index.num_tgt
        totals = [(one.given * unit + num * prior) / UNIT for one, num in zip(found, num_pairs, strict=True)]
        fertilities = Fertilities(*(fertility_ratios(one.fertility) for one in found))
        self.sampled = Sampled(links, totals[0], totals[1], fertilities)
        self.model = "fertility"

    def _from(self, links: DirectionalLinks, first: int) -> DirectionalLinks:
        """The links from a sentence pair on."""
        return DirectionalLinks(
            links.fwd[self.index.tgt_first[first] :], links.rev[self.index.src_first[first] :]
        )

    # ---- pieces

    def _index_pieces(self, bitext: Bitext, first_cell: Ints, memory: int, folder: Path | None) -> PairIndex:
        """The index of a bitext without the pairs of cells."""
        src, tgt = bitext.src, bitext.tgt
        texts = PairIndex(
            *(src.first, src.word, tgt.first, tgt.word, read_only(first_cell)),
            read_only(np.zeros(0, np.int32)),
            np.zeros(src.num_words + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(tgt.num_words, np.int64),
        )
        parts = (self._numbered(texts, blocks) for blocks in self.grouped)
        first_pair, pair_tgt, num_tgt = sorted_pairs(parts, src.num_words, tgt.num_words, memory // 2, folder)
        return texts._replace(first_pair=first_pair, pair_tgt=pair_tgt, num_tgt=num_tgt)

    def _numbered(self, index: PairIndex, blocks: list[tuple[int, int]]) -> PairIndex:
        """The index of some blocks."""
        begin, end = blocks[0][0], blocks[-1][1]
        src, tgt = (
            (read_only(first[begin : end + 1] - first[begin]), read_only(word[first[begin] : first[end]]))
            for first, word in (
                (index.src_first, index.src_word),
                (index.tgt_first, index.tgt_word),
            )
        )
        cells = index.first_cell[begin : end + 1] - index.first_cell[begin]
        return number_pairs(*src, *tgt, cells, len(index.first_pair) - 1, len(index.num_tgt))

    def _pieces(self) -> Iterator[BitextPiece]:
        if len(self.grouped) == 1:
            yield BitextPiece(0, self.blocks, self.index, self.sizes, self.lexicon, None)
            return
        for blocks in self.grouped:
            begin, end = blocks[0][0], blocks[-1][1]
            index = self._numbered(self.index, blocks)
            pair = np.empty(len(index.pair_tgt), np.int64)
            table = self.index.first_pair, self.index.pair_tgt
            find_pairs_kernel(*table, index.first_pair, index.pair_tgt, pair)
            yield BitextPiece(
                begin,
                [(one - begin, other - begin) for one, other in blocks],
                index,
                self.sizes._replace(of=self.sizes.of[begin:end]),
                self.lexicon._replace(prob=self.lexicon.prob[pair]),
                pair,
            )

    def _fitted(self, piece: BitextPiece) -> Fitted:
        """The sentence pairs of a piece with the model trained last."""
        return Fitted(piece.cells, piece.lexicon, self.parameters(piece.begin), self.config.null)

    def parameters(self, first: int = 0) -> Parameters:
        """The parameters of the model trained last, for the sentence pairs from ``first`` on."""
        if self.model == "ibm2":
            return Tensions(self.tension)
        if self.sampled is None:
            return Jumps(self.jump)
        counted = CountedLinks(*self._from(self.sampled.links, first), *self.sampled[1:3])
        return FertileJumps(self.jump, self.sampled.fertilities, counted)

    def _map_fitted(
        self, work: Callable[[Fitted, int, int, int], Result], note: str = ""
    ) -> Iterator[Result]:
        """The results of a function of all blocks: the piece, its first sentence pair, and the block."""
        for piece in self._pieces():
            yield from self._map(partial(work, self._fitted(piece), piece.begin), piece.blocks, note)

    # ---- links

    def decode(self, note: str = "decoding") -> DirectionalLinks:
        """The best links under the model trained last; without ``note``, no progress is reported."""
        links = DirectionalLinks(
            np.empty(len(self.index.tgt_word), np.int32), np.empty(len(self.index.src_word), np.int32)
        )

        def work(fitted: Fitted, first: int, begin: int, end: int) -> None:
            decode(fitted, begin, end, self._from(links, first))

        for _ in self._map_fitted(work, note):
            pass
        return links

    def links_above(self, threshold: float) -> Alignment:
        """The links whose posterior is at least ``threshold``."""

        def work(fitted: Fitted, first: int, begin: int, end: int) -> Alignment:
            return links_above(fitted, begin, end, threshold)

        found = list(self._map_fitted(work, "decoding"))
        return alignment_of(
            joined_offsets([one.first for one in found]), np.concatenate([one.link for one in found])
        )

    def score_links(self, links: Alignment) -> LinkScores:
        """The scores of all sentence pairs and their links."""

        def work(fitted: Fitted, first: int, begin: int, end: int) -> LinkScores:
            return score_links(fitted, begin, end, links.first[first:], links.link)

        found = self._map_fitted(work)
        return LinkScores(*(np.concatenate(part) for part in zip(*found, strict=True)))

    def unaligned(self) -> tuple[Floats32, Floats32]:
        """The probabilities of a pair that is never aligned, after the last round.

        p(target word | source word) by source word, and p(source word | target word) by target word
        """
        index, counts = self.index, self.counts[0]
        num_src, num_tgt = len(index.first_pair) - 1, len(index.num_tgt)
        if self.sampled is not None:
            src_total, tgt_total = self.sampled.src_total, self.sampled.tgt_total
            return self._never_counted(src_total, num_tgt), self._never_counted(tgt_total, num_src)
        by_src, by_tgt = np.empty(num_src, np.float32), np.empty(num_tgt, np.float32)
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

    def _never_counted(self, total: Floats, num_others: int) -> Floats32:
        """The probability of a pair that only the prior counts, as computed by ``normalize_pairs_kernel``.

        A word without pairs has the uniform probability.
        """
        prior = int(in_units(self.config.fertility_smoothing)) / UNIT
        prob = np.maximum(prior * (1.0 / np.maximum(total, LEAST)), LEAST)
        found: Floats32 = np.where(total > 0, prob, 1.0 / max(num_others, 1)).astype(np.float32)
        return found

    def _expect_ibm2(self, piece: BitextPiece, begin: int, end: int, counts: ExpectedCounts) -> Floats:
        sums = np.empty((2, 2))
        model = piece.cells, piece.sizes, piece.lexicon, self.tension, self.config.null
        ibm2_expect_kernel(*model, begin, end, counts, sums)
        return sums

    def _expect_hmm(
        self, piece: BitextPiece, begin: int, end: int, counts: ExpectedCounts
    ) -> tuple[Floats, Floats]:
        sums, jumps = np.empty((2, 2)), np.empty((2, NUM_JUMPS))
        model = piece.cells, self.windows, piece.lexicon, self.jump, self.config.null
        hmm_expect_kernel(*model, self.config.hmm_agreement, begin, end, counts, sums, jumps)
        return sums, jumps

    def _expect(self, step: Callable[[BitextPiece, int, int, ExpectedCounts], Result]) -> list[Result]:
        """The E-step: fill ``counts[0]``; return the results of ``step`` for all blocks, in order."""
        total = self.counts[0]
        for array in total:
            array[:] = 0
        results = []
        note = str(self.history[-1]) if self.history else self.model
        for piece in self._pieces():
            counts = self.counts if piece.pair is None else self._no_counts(len(piece.cells.pair_tgt))
            free: queue.SimpleQueue[ExpectedCounts] = queue.SimpleQueue()
            for one in counts:
                free.put(one)
            results += self._map(partial(self._step, step, piece, free), piece.blocks, note)
            for one in counts if piece.pair is not None else counts[1:]:
                self._add_counts(one, piece.pair)
        return results

    def _no_counts(self, num_pairs: int) -> list[ExpectedCounts]:
        sizes = len(self.index.first_pair) - 1, len(self.index.num_tgt), self.num_places
        return [no_expected_counts(np.zeros((num_pairs, 2), np.int64), *sizes) for _ in range(self.threads)]

    def _step(
        self,
        step: Callable[[BitextPiece, int, int, ExpectedCounts], Result],
        piece: BitextPiece,
        free: queue.SimpleQueue[ExpectedCounts],
        begin: int,
        end: int,
    ) -> Result:
        counts = free.get()
        try:
            return step(piece, begin, end, counts)
        finally:
            free.put(counts)

    def _add_counts(self, counts: ExpectedCounts, pair: Ints | None) -> None:
        """Add counts to ``counts[0]``, those of pairs at the places ``pair``, and set them to 0."""
        total = self.counts[0]
        if pair is None:
            total.pair[:] += counts.pair
        else:
            total.pair[pair] += counts.pair
        for name in ("null_tgt", "null_src", "place"):
            getattr(total, name)[:] += getattr(counts, name)
        for array in counts:
            array[:] = 0

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

    def _maximize(self, smoothing: float) -> None:
        """The M-step of the lexical tables."""
        counts, index = self.counts[0], self.index
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


class TrainingStep(NamedTuple):
    """Rounds of training."""

    improve: Callable[[Trainer], None]
    rounds: Callable[[AlignConfig], int]


IBM2 = TrainingStep(Trainer.improve_ibm2, lambda config: config.iterations)
HMM = TrainingStep(Trainer.improve_hmm, lambda config: config.hmm_iterations)
FERTILITY = TrainingStep(Trainer.improve_fertility, lambda config: config.fertility_iterations)
STEPS = {"ibm2": (IBM2,), "hmm": (IBM2, HMM), "fertility": (IBM2, HMM, FERTILITY)}


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
