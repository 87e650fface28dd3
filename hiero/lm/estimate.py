"""Estimate n-gram language models: interpolated modified Kneser-Ney, as KenLM's lmplz defines it.

The method is that of Heafield et al. (2013), "Scalable modified Kneser-Ney language model estimation": sort
the n-grams of the highest order by their endings, which gives adjusted counts of all orders in one pass; sort
each order by context for discounting; and go through the orders by their endings to interpolate.
Lists that do not fit into memory are sorted on disk. Word ids 0, 1, 2 are <unk>, <s>, </s>.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Flags, Floats, Floats32, Hashes, grown, read_only
from hiero.core.errors import FormatError, show
from hiero.core.parallel import in_order
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbol_kernels import WordTable, fill_word_slots_kernel
from hiero.core.symbols import pack, table_entry, word_table, word_table_of
from hiero.core.text import read_utf8_chunks
from hiero.lm import estimate_kernels as kernels
from hiero.lm.arpa import LEAST, check_output, write_model
from hiero.lm.classes import WordClasses, read_classes
from hiero.lm.config import Discounts, EstimateConfig
from hiero.lm.estimate_kernels import NO_ROOM, NUM_SPECIAL, SPECIAL, number_words_kernel
from hiero.lm.external_sort import Cursor, Sorter, Spool
from hiero.lm.table_kernels import NgramBlock


class OrderStatistics(NamedTuple):
    """The n-grams of one length."""

    listed: int  # distinct ones in the text
    kept: int  # not pruned
    discounts: Discounts
    problem: str  # why the discounts are those of the fallback; empty if they are estimated


def estimate_discounts(numbers: list[int]) -> tuple[Discounts, str]:
    """The discounts, or zeros and the reason if they cannot be estimated.

    ``numbers`` has the numbers of n-grams with adjusted counts 0 ... 4. Chen and Goodman (1998), equation 26.
    """
    for count in (1, 2, 3):
        if numbers[count] == 0:
            return (0.0, 0.0, 0.0), f"none with an adjusted count of {count}"
    share = numbers[1] / (numbers[1] + 2 * numbers[2])
    one, two, more = (j - (j + 1) * share * numbers[j + 1] / numbers[j] for j in (1, 2, 3))
    for count, discount in enumerate((one, two, more), 1):
        if not 0 <= discount <= count:
            return (0.0, 0.0, 0.0), f"an adjusted count of {count} would lose {discount:.3g}"
    return (one, two, more), ""


SPECIAL_WORDS = b"<unk> <s> </s>\n"
CHUNK_BYTES = 1 << 20


class Numbered(NamedTuple):
    """A text as word ids.

    ids        int32 [T]  of its words, or their classes; </s> at the end of each line
    words      WordTable  all words of the text, or <unk> and the words of the vocabulary, or all classes
    num_lines
    num_unknown  words without a class
    """

    ids: Spool
    words: WordTable
    num_lines: int
    num_unknown: int


class WordNumbering:
    """A growing vocabulary of words."""

    def __init__(self) -> None:
        first = np.zeros(1 << 12, np.int64)
        self._table = WordTable(np.empty(1 << 16, np.uint8), first, np.full(1 << 13, -1, np.int32))
        self._size = 0
        self.number(SPECIAL_WORDS, is_open=True, skip=False)

    def __len__(self) -> int:
        return self._size

    def number(self, text: bytes, *, is_open: bool, skip: bool) -> tuple[np.ndarray, int | None]:
        """The ids of the words in whole lines, and the position of a special word unless they are skipped."""
        data = np.frombuffer(text, np.uint8)
        ids = np.empty(len(data), np.int32)
        state = np.array([0, self._size, 0], np.int64)
        while (status := number_words_kernel(data, self._table, is_open, skip, state, ids)) == NO_ROOM:
            self._size = int(state[1])
            self._grow(len(data) - int(state[0]))
        self._size = int(state[1])
        return ids[: state[2]], int(state[0]) if status == SPECIAL else None

    def freeze(self) -> WordTable:
        first = self._table.first[: self._size + 1].copy()
        return word_table_of(read_only(self._table.pool[: first[-1]].copy()), read_only(first))

    def _grow(self, num_bytes: int) -> None:
        """Double the capacity, with room for a word of ``num_bytes``."""
        table = self._table
        pool = grown(table.pool, 2 * len(table.pool) + num_bytes)
        first = grown(table.first, 2 * len(table.first))
        slot = np.full(2 * len(table.slot), -1, np.int32)
        fill_word_slots_kernel(read_only(pool), read_only(first[: self._size + 1]), slot)
        self._table = WordTable(pool, first, slot)


def read_vocabulary(path: str | Path) -> WordNumbering:
    """Read the words in a file, separated by white space."""
    numbering = WordNumbering()
    for chunk in read_utf8_chunks(path, CHUNK_BYTES, "a list of words"):
        numbering.number(chunk.data, is_open=True, skip=True)
    if len(numbering) == NUM_SPECIAL:
        raise FormatError(path, 0, found="no words", expected="the vocabulary of the model")
    return numbering


def _numbering(vocabulary: Path | None, classes: WordClasses | None) -> WordNumbering:
    """The words that are numbered: at first none, those of the vocabulary, or those that have classes."""
    if vocabulary is not None:
        return read_vocabulary(vocabulary)
    numbering = WordNumbering()
    if classes is not None:
        entries = [table_entry(classes.words, word) for word in range(NUM_SPECIAL, len(classes.class_of))]
        numbering.number(b"\n".join(entries) + b"\n", is_open=True, skip=False)
    return numbering


def read_numbered(
    path: str | Path,
    vocabulary: Path | None,
    classes: WordClasses | None,
    *,
    skip_symbols: bool,
    memory: int,
    folder: Path,
    progress: Progress,
) -> Numbered:
    """Read a UTF-8 text, plain or gz. Words that are not in a vocabulary, or have no class, are <unk>."""
    numbering = _numbering(vocabulary, classes)
    is_open = vocabulary is None and classes is None
    ids = Spool(0, np.int32, memory, folder)
    num_lines, num_unknown = 0, 0
    progress.begin(None, "reading lines")
    for chunk in read_utf8_chunks(path, CHUNK_BYTES, "text"):
        data = chunk.data
        fresh, stopped = numbering.number(data, is_open=is_open, skip=skip_symbols)
        if stopped is not None:
            raise FormatError(
                path,
                chunk.first_line + data.count(b"\n", 0, stopped),
                found=show(data[stopped:].split(None, 1)[0]),
                expected="words of the language",
                hint="this symbol is reserved by the model; --skip-symbols leaves it out",
            )
        if classes is not None:
            fresh = classes.class_of[fresh]
            num_unknown += len(fresh) - int(np.count_nonzero(fresh))
        ids.append(fresh)
        read = data.count(b"\n")
        num_lines += read
        progress.advance(read)
    if not num_lines:
        raise FormatError(path, 0, found="an empty file", expected="text, a sentence on each line")
    words = numbering.freeze() if classes is None else word_table(classes.names)
    return Numbered(ids, words, num_lines, num_unknown)


BLOCK_ROWS = 1 << 16
MIN_DEFAULT_MEMORY = 1 << 30
SHARE_OF_MACHINE = 4


def estimation_memory() -> int:
    """The default memory of an estimation: a quarter of the machine's, in bytes."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return MIN_DEFAULT_MEMORY
    return machine // SHARE_OF_MACHINE


class EstimatedModel(NamedTuple):
    """An estimated model, whose n-grams are computed as they are read.

    words      WordTable  of the model, <unk> first
    num_lines, num_words  of the text
    num_unknown  words of the text without a class
    orders     statistics of each length
    blocks     the n-grams, in the order of their length; to be read once
    """

    words: WordTable
    num_lines: int
    num_words: int
    num_unknown: int
    orders: list[OrderStatistics]
    blocks: Iterator[NgramBlock]


def estimate(text: str | Path, config: EstimateConfig, progress: Progress | None = None) -> EstimatedModel:
    """Estimate a model from a text file (``-``: standard input)."""
    progress = progress or SilentProgress()
    memory = config.memory or estimation_memory()
    numbered = read_numbered(
        text,
        config.vocabulary,
        None if config.classes is None else read_classes(config.classes),
        skip_symbols=config.skip_symbols,
        memory=memory // 8,
        folder=config.temp,
        progress=progress,
    )
    return _Estimation(text, numbered, config, memory, progress).model()


def estimate_language_model(
    text: str | Path,
    output: Path,
    config: EstimateConfig,
    *,
    compiled: bool,
    progress: Progress | None = None,
) -> EstimatedModel:
    """Estimate a model and write it, as ARPA or compiled. The blocks of the result have been read."""
    check_output(output, compiled=compiled)
    if not config.temp.is_dir():
        raise FormatError(
            config.temp, 0, found="no such directory", expected="a directory for temporary files"
        )
    model = estimate(text, config, progress)
    counts = [statistics.kept for statistics in model.orders]
    source = None if str(text) == "-" else Path(text)
    write_model(output, model.words, counts, model.blocks, compiled=compiled, source=source)
    return model


class _Estimation:
    """The lists between text and model. Those that exist at the same time share the memory."""

    def __init__(
        self, text: str | Path, numbered: Numbered, config: EstimateConfig, memory: int, progress: Progress
    ) -> None:
        self._text, self._config, self._memory, self._progress = text, config, memory, progress
        self._numbered = numbered
        self._num_tokens = len(numbered.ids)
        self._order = order = config.order
        self._num_words = num_words = len(numbered.words.first) - 1
        self._packing = kernels.ngram_packing(order, num_words)
        self._threshold = np.array(config.thresholds(), np.int64)
        self._width = [0, *(int(column) + 1 for column in self._packing.column)]  # columns of n words
        self._unigram = np.zeros((num_words, 2), np.int64)
        self._tally = np.zeros((order + 1, 7), np.int64)
        share = memory // (4 * order)
        self._keys = [Spool(width, np.uint64, share // 2, config.temp) for width in self._width]
        self._contexts = [
            Sorter(self._width[max(n - 1, 0)] + 2, self._width[max(n - 1, 0)], 2 * share, config.temp)
            for n in range(order + 1)
        ]
        # Discounted probabilities in the order of n-grams, and back-offs by context.
        self._weights = [Sorter(2, 1, share, config.temp) for _ in range(order + 1)]
        self._backoffs = [Spool(width + 1, np.uint64, share // 2, config.temp) for width in self._width]

    def model(self) -> EstimatedModel:
        self._adjust(self._count())
        kept = self._finish_unigrams()
        orders = [self._statistics(n) for n in range(1, self._order + 1)]
        discounts = [np.array([0.0, *statistics.discounts]) for statistics in orders]
        lengths = range(self._order, 1, -1)
        # The longest n-grams first, as they take most time.
        smoothed = in_order(lambda n: self._discount(n, discounts[n - 1]), lengths, self._config.threads)
        self._progress.begin(len(lengths), "discounting")
        for _ in smoothed:
            self._progress.advance(1)
        return EstimatedModel(
            _subset(self._numbered.words, kept),
            self._numbered.num_lines,
            self._num_tokens - self._numbered.num_lines,
            self._numbered.num_unknown,
            orders,
            self._interpolate(discounts[0], kept),
        )

    def _count(self) -> Sorter:
        """All n-grams of the highest order."""
        width = self._width[self._order]
        counts = Sorter(width + 1, width, self._memory // 2, self._config.temp, combine=True)
        context = np.full(self._order - 1, kernels.BOS, np.int64)
        self._progress.begin(self._num_tokens, "counting words")
        for ids in self._numbered.ids.blocks():
            for start in range(0, len(ids), BLOCK_ROWS):
                piece = ids[start : start + BLOCK_ROWS]
                rows = np.empty((len(piece), width + 1), np.uint64)
                kernels.windows_kernel(self._packing, piece, context, rows)
                counts.add(rows)
                self._progress.advance(len(piece))
        return counts

    def _adjust(self, counts: Sorter) -> None:
        """Adjusted counts of all orders, by ending and by context."""
        order, width = self._order, self._width[self._order]
        state = kernels.Adjusting(
            np.full(order, -1, np.int64),
            np.zeros(order + 1, np.int64),
            np.zeros(order + 1, np.int64),
            np.zeros(1, np.int64),
        )
        out = kernels.Adjusted(
            np.empty((order + 1, BLOCK_ROWS, width), np.uint64),
            np.empty((order + 1, BLOCK_ROWS, width + 2), np.uint64),
            np.zeros((order + 1, 2), np.int64),
            self._unigram,
            self._tally,
        )
        self._progress.begin(self._num_tokens, "adjusting counts")
        for rows in counts.blocks():
            for start in range(0, len(rows), BLOCK_ROWS):
                kernels.adjust_kernel(
                    self._packing, rows[start : start + BLOCK_ROWS], self._threshold, state, out
                )
                self._take(out)
            self._progress.advance(int(rows[:, -1].sum()))
        kernels.adjust_last_kernel(self._packing, self._threshold, state, out)
        self._take(out)

    def _take(self, out: kernels.Adjusted) -> None:
        for n in range(2, self._order + 1):
            num_keys, num_contexts = out.num[n]
            self._keys[n].append(out.key[n, :num_keys, : self._width[n]])
            self._contexts[n].add(out.context[n, :num_contexts, : self._width[n - 1] + 2])

    def _finish_unigrams(self) -> Flags:
        """Which words are kept. Words that do not occur (<unk>, <s>, words of a vocabulary) count as well."""
        kept = np.ones(self._num_words, np.bool_)
        if self._threshold[1]:
            kept[kernels.NUM_SPECIAL :] = self._unigram[kernels.NUM_SPECIAL :, 1] > self._threshold[1]
        self._tally[1, kernels.LISTED] = self._num_words
        self._tally[1, kernels.KEPT] = np.count_nonzero(kept)
        return kept

    def _statistics(self, length: int) -> OrderStatistics:
        tally = self._tally[length].tolist()
        discounts, problem = estimate_discounts(tally[:5])
        if problem:
            fallback = self._config.fallback()
            if fallback is None:
                raise FormatError(
                    self._text,
                    0,
                    found=f"{length}-grams whose discounts cannot be estimated: {problem}",
                    expected="more text, or less repetitive text",
                    hint="--discount-fallback sets discounts for such cases",
                )
            discounts = fallback
        return OrderStatistics(tally[kernels.LISTED], tally[kernels.KEPT], discounts, problem)

    def _discount(self, length: int, discount: Floats) -> None:
        num_keys = self._width[length - 1]
        held: Hashes = np.empty((0, num_keys + 2), np.uint64)
        for fresh in self._contexts[length].blocks():
            held = self._discount_some(length, discount, np.concatenate([held, fresh]), False)
        self._discount_some(length, discount, held, True)

    def _discount_some(self, length: int, discount: Floats, rows: Hashes, is_last: bool) -> Hashes:
        """Discount complete contexts; returns the rows of the last one, which may continue."""
        num_keys = rows.shape[1] - 2
        weight: Hashes = np.empty((len(rows), 2), np.uint64)
        backoff: Hashes = np.empty((len(rows), num_keys + 1), np.uint64)
        done, num_weights, num_contexts = kernels.discount_kernel(
            rows,
            num_keys,
            discount,
            is_last,
            weight,
            weight.view(np.float32),
            backoff,
            backoff.view(np.float64),
        )
        self._weights[length].add(weight[:num_weights])
        self._backoffs[length - 1].append(backoff[:num_contexts])
        return rows[done:]

    def _interpolate(self, discount: Floats, kept: Flags) -> Iterator[NgramBlock]:
        number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        parents = Spool(2, np.uint64, self._memory // 8, self._config.temp)
        yield self._unigrams(discount, kept, parents)
        self._progress.begin(int(self._tally[2:, kernels.KEPT].sum()), "writing n-grams")
        for length in range(2, self._order + 1):
            width = self._width[length]
            probs = Spool(width + 1, np.uint64, self._memory // 8, self._config.temp)
            is_longest = length == self._order
            for key, prob, backoff in self._longer(length, parents):
                if not is_longest:
                    row: Hashes = np.empty((len(key), width + 1), np.uint64)
                    row[:, :width] = key
                    row[:, width] = prob.view(np.uint64)
                    probs.append(row)
                words = np.empty((len(key), length), np.int32)
                kernels.unpack_ngrams_kernel(self._packing, number, key, words)
                yield NgramBlock(words, _log(prob), _log(backoff))
                self._progress.advance(len(key))
            parents = probs

    def _unigrams(self, discount: Floats, kept: Flags, out: Spool) -> NgramBlock:
        """Words, smoothed with the uniform distribution over all words except <s>."""
        count = self._unigram[:, 0]
        total = count.sum()
        cut = discount[np.minimum(count, 3)]
        left = (cut[kept].sum() + count[~kept].sum()) / total
        prob = (count - cut) / total + left / (np.count_nonzero(kept) - 1)
        prob[kernels.BOS] = 1.0  # it is never predicted; so it does not change the score of a sentence
        backoff = np.ones(len(count))
        for rows in self._backoffs[1].blocks():
            word = rows[:, 0] >> self._packing.shift[0]
            backoff[word.astype(np.int64)] = rows.view(np.float64)[:, 1]
        ids = np.flatnonzero(kept)
        out.append(
            np.stack([ids.astype(np.uint64) << self._packing.shift[0], prob[ids].view(np.uint64)], axis=1)
        )
        words = np.arange(len(ids), dtype=np.int32)[:, np.newaxis]
        return NgramBlock(words, _log(prob[ids]), _log(backoff[ids]))

    def _longer(self, length: int, parents: Spool) -> Iterator[tuple[Hashes, Floats, Floats]]:
        """n-grams, probabilities, back-offs; from the probabilities of shorter n-grams."""
        parent = Cursor(parents.blocks(), self._width[length - 1] + 1)
        context = Cursor(self._backoffs[length].blocks(), self._width[length] + 1)
        state = np.zeros(3, np.int64)
        for weight in self._weights[length].blocks():
            key = self._keys[length].take(len(weight))
            prob, backoff = np.empty(len(key)), np.empty(len(key))
            state[0] = 0
            while True:
                status = kernels.interpolate_kernel(
                    self._packing,
                    length,
                    key,
                    weight.view(np.float32),
                    parent.rows,
                    parent.rows.view(np.float64),
                    context.rows,
                    context.rows.view(np.float64),
                    context.more,
                    state,
                    prob,
                    backoff,
                )
                if status == kernels.DONE:
                    break
                if status == kernels.NEED_PARENTS:
                    parent.advance()
                    assert parent.more, "every n-gram has its ending in the model"
                    state[1] = 0
                else:
                    context.advance()
                    state[2] = 0 if context.more else len(context.rows)
            yield key, prob, backoff


def _log(values: Floats) -> Floats32:
    """Logarithms to base 10 of probabilities, at least -99 and at most 0.

    Rounding may give a probability just above one, which readers of models refuse. Where the discounts that
    apply are 0, the back-off is 0, which models write as -99.
    """
    return np.log10(np.clip(values, LEAST, 1.0)).astype(np.float32)


def _subset(words: WordTable, kept: Flags) -> WordTable:
    if kept.all():
        return words
    return word_table_of(*pack([table_entry(words, int(word)) for word in np.flatnonzero(kept)]))
