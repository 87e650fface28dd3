"""Load language models of all supported formats, compile them, and score text with them.

A compiled model is a directory of memory-mapped arrays, those of ``table_kernels.Ngrams`` and ``core``'s
``WordTable``. Its ``meta.json`` holds ``format``, ``version``, ``order``, ``bos``, ``eos``, ``ngrams`` (the
number of those of two or more words) and ``source`` with the name and SHA-256 of the source file (null:
standard input).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.core.arrays import Floats32, Ids, Ints
from hiero.core.directories import META, Kind, digest_of
from hiero.core.errors import FormatError
from hiero.core.records import MAX_ORDER
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import is_sound, word_table_arrays, word_table_files, word_table_from
from hiero.core.text import open_bytes
from hiero.lm.arpa import read_arpa
from hiero.lm.kenlm import MAGIC, read_kenlm
from hiero.lm.model import LanguageModels, ngrams_of, side_by_side
from hiero.lm.table_kernels import Ngrams, look_up_kernel, score_sentences_kernel

WHAT = "a language model: ARPA, KenLM binary of type probing, or compiled directory"
MODEL = Kind(
    "hiero language model",
    1,
    "make it again with hiero lm compile",
    {"slots": (np.uint64, 1), "unigram": (np.float32, 2), **word_table_files("word")},
)


def write_ngrams(path: Path, model: Ngrams, words: WordTable, source: Path | None) -> None:
    """Write a model made from a file, or from standard input (None)."""
    meta = {
        "order": int(model.order[0]),
        "bos": int(model.bos[0]),
        "eos": int(model.eos[0]),
        "ngrams": int(np.count_nonzero(model.key[::2])),
        "source": {"name": source.name, "sha256": digest_of(source)} if source else None,
    }
    arrays = word_table_arrays({"word": words})
    MODEL.write(path, meta, {"slots": model.key, "unigram": model.unigram, **arrays})


def read_ngrams(path: Path) -> tuple[Ngrams, WordTable]:
    """Map a compiled model; its arrays are read as they are used."""
    meta, arrays = MODEL.read(path)
    slots, unigram, words = arrays["slots"], arrays["unigram"], word_table_from(arrays, "word")
    order, bos, eos, num_ngrams = numbers = [meta.get(name, -1) for name in ("order", "bos", "eos", "ngrams")]
    if not all(isinstance(number, int) for number in numbers):
        raise MODEL.broken(path / META, "damage", f"a {MODEL.name}")
    num_slots, num_words = len(slots) // 2, len(unigram)
    fits = (
        len(slots) == 2 * num_slots > 0
        and num_slots & (num_slots - 1) == 0
        and 0 <= num_ngrams < num_slots
        and unigram.shape == (num_words, 2)
        and len(words.first) == num_words + 1
        and is_sound(words)
        and 1 <= order <= MAX_ORDER
        and max(bos, eos) < num_words
    )
    if not fits:
        raise MODEL.broken(path, "arrays that do not fit together", f"a {MODEL.name}")
    return ngrams_of(slots, unigram, order, bos, eos), words


def load_language_model(path: Path) -> tuple[Ngrams, WordTable]:
    """Load one model and its words. The format, one of those in ``WHAT``, is recognised by the content."""
    if path.is_dir():
        return read_ngrams(path)
    with open_bytes(path, WHAT) as stream:
        is_binary = stream.read(len(MAGIC)) == MAGIC
    return read_kenlm(path) if is_binary else read_arpa(path)


def load_language_models(specs: Sequence[tuple[str, Path]]) -> LanguageModels:
    """Load the models of a system, given as (name of the feature, path). There may be none."""
    models = [load_language_model(path) for _, path in specs]
    return LanguageModels(
        side_by_side([arrays for arrays, _ in models]),
        tuple(name for name, _ in specs),
        tuple(table for _, table in models),
    )


def compile_language_model(source: Path, target: Path) -> None:
    """Convert a model to a memory-mapped directory, which loads at once and is shared by processes."""
    if source.is_dir():
        raise FormatError(source, 0, found="a directory", expected="an ARPA file or a KenLM binary")
    write_ngrams(target, *load_language_model(source), source)


class ScoredText(NamedTuple):
    """Lines of text, scored word by word.

    first     int64 [S + 1]   words of line s: first[s] ... first[s + 1] - 1
    word      int32 [N]       ids in the model, 0 if unknown; with markers, </s> ends every line
    span      int64 [N, 2]    word n is text[span[n, 0]:span[n, 1]]; empty for </s>
    prob      float32 [N]     log10 probability
    length    int32 [N]       length of the longest n-gram found
    """

    first: Ints
    word: Ids
    span: Ints
    prob: Floats32
    length: Ids


def score_text(models: LanguageModels, m: int, text: bytes, markers: bool = True) -> ScoredText:
    """Score lines, each ended by ``\\n``, with model m; with markers each stands between <s> and </s>."""
    data = np.frombuffer(text, np.uint8)
    first = np.zeros(text.count(b"\n") + 1, np.int64)
    word = np.zeros(len(data) // 2 + 1, np.int32)
    span = np.zeros((len(data) // 2 + 1, 2), np.int64)
    num_lines, num_words = look_up_kernel(models.tables[m], data, first, word, span)
    word, span = word[:num_words], span[:num_words]
    num_scores = num_words + num_lines * markers
    prob, length = np.empty(num_scores, np.float32), np.empty(num_scores, np.int32)
    score_sentences_kernel(models.arrays, m, first, word, markers, prob, length)
    if markers:
        word = np.insert(word, first[1:], models.arrays.eos[m])
        span = np.insert(span, first[1:], 0, axis=0)
        first = first + np.arange(len(first))
    return ScoredText(first, word, span, prob, length)


class QuerySummary:
    """Sums as in KenLM's query: totals of lines in single precision, of the corpus in double."""

    def __init__(self) -> None:
        self.total, self.unknown_total = 0.0, 0.0
        self.tokens, self.unknown = 0, 0

    def add(self, scored: ScoredText) -> None:
        self.unknown_total += float(np.sum(scored.prob[scored.word == 0], dtype=np.float64))
        self.unknown += int(np.count_nonzero(scored.word == 0))
        self.tokens += len(scored.word)

    def text(self) -> str:
        known = _perplexity(self.total - self.unknown_total, self.tokens - self.unknown)
        return (
            f"Perplexity including OOVs:\t{format_number(_perplexity(self.total, self.tokens))}\n"
            f"Perplexity excluding OOVs:\t{format_number(known)}\n"
            f"OOVs:\t{self.unknown}\nTokens:\t{self.tokens}\n"
        )


def _perplexity(total: float, tokens: int) -> np.float64:
    with np.errstate(all="ignore"):
        return np.float64(10.0) ** -(np.float64(total) / np.float64(tokens))


def query_lines(scored: ScoredText, text: bytes, levels: set[str], summary: QuerySummary) -> Iterator[str]:
    """The lines of KenLM's query for words, sentences, or both (``levels``)."""
    summary.add(scored)
    words, lengths, probs = scored.word.tolist(), scored.length.tolist(), list(scored.prob)
    spans, first = scored.span.tolist(), scored.first.tolist()
    for begin, end in itertools.pairwise(first):
        if "word" in levels:
            for n in range(begin, end):
                start, stop = spans[n]
                surface = text[start:stop].decode("utf-8", "surrogateescape") if stop else "</s>"
                yield f"{surface}={words[n]} {lengths[n]} {format_number(probs[n])}\t"
        # Added one by one in single precision, as in KenLM: np.sum adds in pairs.
        total = np.add.accumulate(scored.prob[begin:end])[-1] if end > begin else np.float32(0.0)
        summary.total += float(total)
        if "sentence" in levels:
            yield f"Total: {format_number(total)} OOV: {words[begin:end].count(0)}\n"


def format_number(value: np.floating) -> str:
    """The shortest digits that read back as the same number, written as KenLM (and JavaScript) write them."""
    text = str(value)
    if "e" not in text and "n" not in text:
        return text.removesuffix(".0")
    if np.isnan(value):
        return "NaN"
    if np.isinf(value) or 1e-6 <= abs(value) < 1e21:
        return np.format_float_positional(value, unique=True, trim="-") if np.isfinite(value) else text
    return np.format_float_scientific(value, unique=True, trim="-", exp_digits=1).replace("e+", "e")
