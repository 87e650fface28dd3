"""Classes of words from text, by the exchange algorithm.

Kneser and Ney (1993), "Improved clustering techniques for class-based statistical language modelling": the
classes maximise the likelihood of the text under a class bigram model, p(w | v) = p(class of w | class of v)
p(w | class of w), as those of mkcls do.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Floats, Ids, Ints, offsets_by_row
from hiero.core.errors import FormatError
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import table_entry
from hiero.core.text import write_output
from hiero.lm.cluster_kernels import AdjacentWords, exchange_kernel
from hiero.lm.config import ClassConfig
from hiero.lm.estimate import read_numbered
from hiero.lm.estimate_kernels import EOS, NUM_SPECIAL

MEMORY = 1 << 28  # bytes of word ids, beyond which they are on disk


class LearntClasses(NamedTuple):
    """Words with their classes, the most frequent word first.

    perplexities  of the text under a class bigram model, at the beginning and after each pass
    """

    words: list[bytes]
    classes: Ids
    perplexities: list[float]


def learn_classes(text: str | Path, config: ClassConfig, progress: Progress | None = None) -> LearntClasses:
    """Learn classes, numbered from 1, of all words of a text (``-``: standard input)."""
    progress = progress or SilentProgress()
    numbered = read_numbered(
        text, None, None, skip_symbols=True, memory=MEMORY, folder=config.temp, progress=progress
    )
    ids = np.concatenate([*numbered.ids.blocks()])
    count = np.bincount(ids, minlength=len(numbered.words.first) - 1)
    order = NUM_SPECIAL + np.argsort(-count[NUM_SPECIAL:], kind="stable").astype(np.int32)
    if len(order) < config.classes:
        found, expected = f"{len(order)} different words", f"at least as many as classes, {config.classes}"
        raise FormatError(text, 0, found=found, expected=expected)
    # Boundaries are those of </s>, before and after a sentence.
    before = np.concatenate([np.array([EOS], np.int32), ids[:-1]])
    class_of = np.zeros(len(count), np.int32)
    class_of[order] = 1 + np.arange(len(order)) % config.classes
    after_words, before_words = _neighbours(before, ids, len(count)), _neighbours(ids, before, len(count))
    pair = np.zeros((config.classes + 1, config.classes + 1), np.int64)
    np.add.at(pair, (class_of[before], class_of[ids]), 1)
    total = pair.sum(axis=0)
    perplexities = [_perplexity(pair, count)]
    progress.begin(config.passes, "moving words")
    for _ in range(config.passes):
        moves = exchange_kernel(after_words, before_words, order, class_of, pair, total)
        perplexities.append(_perplexity(pair, count))
        progress.advance(1)
        if not moves:
            break
    words = _entries(numbered.words, order)
    return LearntClasses(words, class_of[order], perplexities)


def _entries(table: WordTable, order: Ids) -> list[bytes]:
    return [table_entry(table, word) for word in order.tolist()]


def _neighbours(words: Ids, others: Ids, num_words: int) -> AdjacentWords:
    """How often each of ``others`` stands beside each of ``words``."""
    pair, count = np.unique(words.astype(np.int64) * num_words + others, return_counts=True)
    first = offsets_by_row(pair // num_words, num_words)
    return AdjacentWords(first, (pair % num_words).astype(np.int32), count.astype(np.int64))


def _perplexity(pair: Ints, count: Ints) -> float:
    """That of the class bigram model with maximum likelihood; ``count`` is of words."""
    fit = _sum_xlogx(pair) - _sum_xlogx(pair.sum(axis=0)) - _sum_xlogx(pair.sum(axis=1)) + _sum_xlogx(count)
    return float(np.exp(-fit / count.sum()))


def _sum_xlogx(counts: Ints) -> float:
    positive: Floats = counts[counts > 0].astype(np.float64)
    return float((positive * np.log(positive)).sum())


def write_classes(path: str | Path, learnt: LearntClasses) -> None:
    """Write a word and its class on each line."""
    pairs = zip(learnt.words, learnt.classes.tolist(), strict=True)
    write_output(path, b"".join(b"%s\t%d\n" % pair for pair in pairs))
