"""Linear interpolation of language models, written as one back-off model.

A mixture has p(w | h) = sum of weight_i * p_i(w | h), where p_i is 0 for words that model i does not have,
and words of h that it does not have are its <unk>. The result lists the n-grams of all models, with these
probabilities (and their contexts and endings), and backs off for others, with back-off weights that make
the probabilities after each context add up to one: "static" interpolation, as by SRILM's ngram -mix-lm.
Weights are given, or the best ones for a text, found by expectation maximisation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Flags, Floats, Floats32, Ids, Ints, read_only
from hiero.core.errors import ConfigError, FormatError
from hiero.core.progress import Progress, SilentProgress
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import Vocabulary, find_all, table_entry, word_table
from hiero.core.text import read_chunks
from hiero.lm.arpa import LEAST, WHAT, check_output, read_arpa, write_model
from hiero.lm.config import InterpolateConfig
from hiero.lm.estimate_kernels import backoffs_kernel, list_ngrams_kernel
from hiero.lm.model import LanguageModels, score_text
from hiero.lm.table_kernels import NgramBlock, score_sentences_kernel

PIECE = 1 << 18  # n-grams scored at a time
READ_BYTES = 1 << 20


class Fit(NamedTuple):
    """Weights, and what is known of the text that they were learnt from.

    perplexities   of the mixture, before each step and at the end; empty if the weights were given
    num_words      words that a model knows, ends of sentences included
    num_unknown    words that no model knows, which do not count
    """

    weights: tuple[float, ...]
    perplexities: tuple[float, ...] = ()
    num_words: int = 0
    num_unknown: int = 0


class InterpolatedModel(NamedTuple):
    """What was written: how the models were mixed, and the number of n-grams of each length."""

    fit: Fit
    counts: tuple[int, ...]


@dataclass(frozen=True)
class _Part:
    """A model of a mixture.

    own    int32 [V]   own id of each word of the mixture, 0 if it has none
    knows  bool [V]    whether it has the word
    """

    path: Path
    model: LanguageModels
    own: Ids
    knows: Flags

    def log_probs(self, words: Ids) -> Floats:
        """log10 probability of the last word of each n-gram, -inf for words that the model does not have."""
        own = read_only(self.own[words].reshape(-1))
        length = words.shape[1]
        prob, found = np.empty(len(own), np.float32), np.empty(len(own), np.int32)
        first = read_only(np.arange(len(words) + 1, dtype=np.int64) * length)
        score_sentences_kernel(self.model.arrays, 0, first, own, False, prob, found)
        last = prob[length - 1 :: length].astype(np.float64)
        return np.where(self.knows[words[:, -1]], last, -np.inf)


def interpolate(
    paths: Sequence[Path],
    output: Path,
    config: InterpolateConfig,
    *,
    compiled: bool,
    progress: Progress | None = None,
) -> InterpolatedModel:
    """Mix the models in ARPA files and write the result, as ARPA or compiled."""
    progress = progress or SilentProgress()
    if config.weights and len(config.weights) != len(paths):
        raise ConfigError(f"weights: found {len(config.weights)}, expected {len(paths)}, one for each model")
    check_output(output, compiled=compiled)
    words, parts = _read_parts(paths, progress)
    weights = np.array(config.weights or [1.0] * len(parts))
    fit = Fit(tuple((weights / weights.sum()).tolist()))
    if config.tune is not None:
        fit = fit_weights(_probabilities(config.tune, parts, words), config)
    orders = _all_ngrams(parts, words, progress)
    counts = (len(words.first) - 1, *(len(rows) for rows in orders[1:]))
    blocks = _blocks(orders, parts, words, np.array(fit.weights), progress)
    write_model(output, words, counts, blocks, compiled=compiled, source=None)
    return InterpolatedModel(fit, counts)


def _read_parts(paths: Sequence[Path], progress: Progress) -> tuple[WordTable, list[_Part]]:
    vocabulary, models = Vocabulary([b"<unk>"]), []
    progress.begin(len(paths), "reading models")
    for path in paths:
        if path.is_dir():
            hint = "compiled models and binaries do not list their n-grams"
            raise FormatError(path, 0, found="a directory", expected=WHAT, hint=hint)
        arrays, table = read_arpa(path).ngrams()
        entries = [table_entry(table, word) for word in range(len(table.first) - 1)]
        models.append((path, arrays, table, vocabulary.intern_all(entries)))
        progress.advance(1)
    words = word_table(vocabulary.entries())
    parts = []
    for path, arrays, table, ids in models:
        own, knows = np.zeros(len(vocabulary), np.int32), np.zeros(len(vocabulary), np.bool_)
        own[ids], knows[ids] = np.arange(len(ids)), True
        parts.append(_Part(path, LanguageModels(arrays, ("LanguageModel",), (table,), (None,)), own, knows))
    return words, parts


# ---- weights


def _probabilities(text: Path, parts: Sequence[_Part], words: WordTable) -> tuple[Floats, int]:
    """The probability of each word of a text (row) by each model, and the number of words left out."""
    kept, num_unknown = [], 0
    for chunk in read_chunks(text, READ_BYTES, "text"):
        columns = []
        for part in parts:
            scored = score_text(part.model, 0, chunk.data)
            columns.append(np.where(scored.word == 0, 0.0, 10.0 ** scored.prob.astype(np.float64)))
        prob = np.stack(columns, axis=1)
        known = prob.any(axis=1)
        kept.append(prob[known])
        num_unknown += int(np.count_nonzero(~known))
    if not sum(map(len, kept)):
        raise FormatError(text, 0, found="no word of the models", expected="text to learn the weights from")
    return np.concatenate(kept), num_unknown


def fit_weights(probabilities: tuple[Floats, int], config: InterpolateConfig) -> Fit:
    """The weights with the least perplexity: each step takes a model's share in the words of the text."""
    prob, num_unknown = probabilities
    weights = np.full(prob.shape[1], 1.0 / prob.shape[1])
    perplexities: list[float] = []
    for _ in range(config.iterations):
        mixed = prob @ weights
        perplexities.append(_perplexity(mixed))
        if (
            len(perplexities) > 1
            and perplexities[-2] - perplexities[-1] < config.precision * perplexities[-1]
        ):
            break
        weights = (prob * weights / mixed[:, np.newaxis]).mean(axis=0)
        weights /= weights.sum()
    else:
        perplexities.append(_perplexity(prob @ weights))
    return Fit(tuple(weights.tolist()), tuple(perplexities), len(prob), num_unknown)


def _perplexity(prob: Floats) -> float:
    return float(np.exp(-np.log(prob).mean()))


# ---- n-grams


def _all_ngrams(parts: Sequence[_Part], words: WordTable, progress: Progress) -> list[Ids]:
    """The n-grams of each length from 1 on, ordered by context: those of any model, contexts and endings."""
    order = max(int(part.model.arrays.order[0]) for part in parts)
    found: list[list[Ids]] = [[] for _ in range(order + 1)]
    progress.begin(len(parts), "listing n-grams")
    for part in parts:
        section = 0
        for chunk in read_chunks(part.path, what=WHAT):
            data = np.frombuffer(chunk.data, np.uint8)
            most = chunk.data.count(b"\n")
            length, word = np.empty(most, np.int32), np.empty((most, order), np.int32)
            used, section = list_ngrams_kernel(data, words, section, length, word)
            for n in range(2, order + 1):
                rows = word[:used][length[:used] == n, :n]
                if len(rows):
                    found[n].append(rows)
        progress.advance(1)
    orders = [np.arange(len(words.first) - 1, dtype=np.int32).reshape(-1, 1)]
    longer = np.empty((0, order + 1), np.int32)
    for n in range(order, 1, -1):
        rows = np.concatenate([*found[n], longer[:, 1:], longer[:, :-1]])
        longer = _distinct(rows)
        orders.insert(1, longer)
    return orders


def _distinct(rows: Ids) -> Ids:
    """Distinct rows in their order."""
    rows = rows[np.lexsort(rows.T[::-1])]
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return rows[fresh]


def _blocks(
    orders: Sequence[Ids], parts: Sequence[_Part], words: WordTable, weights: Floats, progress: Progress
) -> Iterator[NgramBlock]:
    """The n-grams with probabilities and back-offs, shortest first."""
    bos = int(find_all(words, [b"<s>"])[0])
    progress.begin(sum(map(len, orders)), "writing n-grams")
    prob = _mixed(orders[0], parts, weights)
    for rows, longer in itertools.zip_longest(orders, orders[1:], fillvalue=None):
        assert rows is not None
        backoff = np.full(len(rows), -0.0, np.float32)
        if longer is not None and len(longer):
            longer_prob = _mixed(longer, parts, weights)
            lower = _linear(prob)[_places(rows, longer[:, 1:])]
            context, weight = np.empty(len(longer), np.int64), np.empty(len(longer))
            num = backoffs_kernel(longer, _linear(longer_prob), lower, bos, context, weight)
            place = _places(rows, longer[context[:num], :-1])
            backoff[place] = np.log10(np.maximum(weight[:num], LEAST))
        yield NgramBlock(rows, prob, backoff)
        progress.advance(len(rows))
        if longer is not None:
            prob = longer_prob if len(longer) else np.empty(0, np.float32)


def _mixed(rows: Ids, parts: Sequence[_Part], weights: Floats) -> Floats32:
    """log10 probabilities of the last words by the mixture, as they are written."""
    prob = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), PIECE):
        piece = rows[start : start + PIECE]
        total = np.zeros(len(piece))
        for part, weight in zip(parts, weights.tolist(), strict=True):
            total += weight * 10.0 ** part.log_probs(piece)
        prob[start : start + PIECE] = np.log10(np.clip(total, LEAST, 1.0))
    return prob


def _linear(prob: Floats32) -> Floats:
    """Probabilities."""
    linear: Floats = 10.0 ** prob.astype(np.float64)
    return linear


def _places(rows: Ids, wanted: Ids) -> Ints:
    """The places of n-grams among ordered ones, which have them."""
    both = np.concatenate([rows, wanted])
    order = np.lexsort(both.T[::-1])  # stable: a row before those that look for it
    place_of = np.empty(len(both), np.int64)
    place_of[order] = np.cumsum(order < len(rows)) - 1
    return place_of[len(rows) :]
