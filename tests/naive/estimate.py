"""Kneser-Ney by definition: dictionaries of word tuples; and the steps of estimation, one by one."""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from dataclasses import dataclass

Ngram = tuple[str, ...]
Discounts = tuple[float, float, float]

BOS, EOS, UNK = "<s>", "</s>", "<unk>"


# ---- steps


def number_words(text: bytes, known: list[bytes], is_open: bool, skip: bool) -> tuple[list[int], int | None]:
    """Ids, and the place of a special word if not skipped; new words are appended to an open ``known``."""
    ids: list[int] = []
    start = 0
    for line in text.split(b"\n")[:-1]:
        token, at = b"", start
        for place, byte in enumerate(line + b" ", start):
            if byte not in b" \t\r\0":
                at = at if token else place
                token += bytes([byte])
                continue
            if not token:
                continue
            if token in (b"<unk>", b"<s>", b"</s>", b"<UNK>"):
                if not skip:
                    return ids, at
            else:
                if token not in known and is_open:
                    known.append(token)
                ids.append(known.index(token) if token in known else 0)
            token = b""
        ids.append(2)
        start += len(line) + 1
    return ids, None


def windows(order: int, ids: list[int]) -> list[tuple[int, ...]]:
    """For each word the n-gram that ends there, the last word first."""
    found, line = [], [1] * order
    for word in ids:
        line = [word, *line[:-1]]
        found.append(tuple(line))
        if word == 2:
            line = [1] * order
    return found


def sort(rows: list[list[int]], num_keys: int) -> list[list[int]]:
    return sorted(rows, key=lambda row: row[:num_keys])


def combine(rows: list[list[int]], num_keys: int) -> list[list[int]]:
    total: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        key = tuple(row[:num_keys])
        if key in total:
            total[key][-1] += row[-1]
        else:
            total[key] = list(row)
    return list(total.values())


def end(rows: list[list[int]], cut: list[int], num_keys: int) -> int:
    return sum(row[:num_keys] <= cut[:num_keys] for row in rows)


def unpack(words: list[int], number: list[int]) -> list[int]:
    """Words given last word first, in the order of writing."""
    return [number[word] for word in reversed(words)]


def entries(words: list[bytes], ngrams: list[tuple[int, ...]], numbers: list[tuple[float, ...]]) -> list[str]:
    """Lines of an ARPA file, except for the number of digits."""
    lines = []
    for ngram, (prob, *backoff) in zip(ngrams, numbers, strict=True):
        text = " ".join(words[word].decode() for word in ngram)
        lines.append("\t".join([repr(prob), text, *map(repr, backoff)]))
    return lines


def float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


# ---- models


@dataclass
class Counts:
    adjusted: dict[Ngram, int]
    actual: dict[Ngram, int]


def adjusted_counts(order: int, sentences: list[list[str]]) -> Counts:
    """Plain counts at the highest order and where a sentence begins; elsewhere words to the left."""
    actual: Counter[Ngram] = Counter()
    left: defaultdict[Ngram, set[str]] = defaultdict(set)
    for sentence in sentences:
        line = [BOS, *sentence, EOS]
        for length in range(1, order + 1):
            for start in range(len(line) - length + 1):
                ngram = tuple(line[start : start + length])
                if ngram == (BOS,):
                    continue  # it is never predicted
                actual[ngram] += 1
                if start:
                    left[ngram].add(line[start - 1])
    plain = {ngram for ngram in actual if len(ngram) == order or ngram[0] == BOS}
    adjusted = {ngram: actual[ngram] if ngram in plain else len(left[ngram]) for ngram in actual}
    return Counts(adjusted, dict(actual))


def tally(
    order: int, sentences: list[list[str]], counts: Counts, vocabulary: list[str]
) -> dict[int, Counter[int]]:
    """For each length: the number of n-grams by adjusted count.

    The n-grams still open in lmplz when its list ends are tallied by their plain count. The list is in the
    order of the vocabulary, and of new words in the text.
    """
    number: dict[str, int] = {UNK: 0, BOS: 1, EOS: 2}
    for sentence in [vocabulary, *sentences]:
        for word in sentence:
            number.setdefault(word, len(number))
    last: Ngram = max(
        (
            tuple([*[BOS] * order, *sentence, EOS][at + 1 : at + order + 1])
            for sentence in sentences
            for at in range(len(sentence) + 1)
        ),
        key=lambda ngram: [number[word] for word in reversed(ngram)],
    )
    tallies: dict[int, Counter[int]] = {length: Counter() for length in range(1, order + 1)}
    for ngram, count in counts.adjusted.items():
        is_last = len(ngram) < order and ngram == last[-len(ngram) :]
        tallies[len(ngram)][counts.actual[ngram] if is_last else count] += 1
    return tallies


def discounts(numbers: Counter[int]) -> Discounts | None:
    if not (numbers[1] and numbers[2] and numbers[3]):
        return None
    share = numbers[1] / (numbers[1] + 2 * numbers[2])
    found = tuple(j - (j + 1) * share * numbers[j + 1] / numbers[j] for j in (1, 2, 3))
    return found if all(0 <= d <= j for j, d in enumerate(found, 1)) else None  # type: ignore[return-value]


def discounted(
    counts: dict[Ngram, int], kept: set[Ngram], discount: Discounts
) -> tuple[dict[Ngram, float], dict[Ngram, float]]:
    """n-grams of one length: the share of each in its context, and the mass that each context leaves."""
    total: Counter[Ngram] = Counter()
    left: defaultdict[Ngram, float] = defaultdict(float)
    for ngram, count in counts.items():
        total[ngram[:-1]] += count
        cut = discount[min(count, 3) - 1] if count else 0.0
        left[ngram[:-1]] += cut if ngram in kept else count
    share = {
        ngram: (counts[ngram] - (discount[min(counts[ngram], 3) - 1] if counts[ngram] else 0.0))
        / total[ngram[:-1]]
        for ngram in kept
    }
    return share, {context: left[context] / total[context] for context in total}


def probabilities(
    order: int,
    sentences: list[list[str]],
    prune: list[int],
    fallback: Discounts,
    vocabulary: list[str] | None = None,
) -> dict[Ngram, tuple[float, float]]:
    """log10 probability and back-off of every n-gram of the model."""
    if vocabulary is not None:
        sentences = [[word if word in vocabulary else UNK for word in line] for line in sentences]
    counts = adjusted_counts(order, sentences)
    tallies = tally(order, sentences, counts, vocabulary or [])
    for word in (UNK, BOS, *(vocabulary or ())):
        counts.adjusted.setdefault((word,), 0)
        counts.actual.setdefault((word,), 0)
    threshold = [0, *prune, *[prune[-1] if prune else 0] * order]
    prob: dict[Ngram, float] = {}
    backoff: dict[Ngram, float] = {}
    for length in range(1, order + 1):
        here = {ngram: count for ngram, count in counts.adjusted.items() if len(ngram) == length}
        kept = {
            ngram
            for ngram in here
            if not threshold[length]
            or counts.actual[ngram] > threshold[length]
            or ngram in ((UNK,), (BOS,), (EOS,))
        }
        share, left = discounted(here, kept, discounts(tallies[length]) or fallback)
        if length == 1:
            uniform = 1 / (len(kept) - 1)  # <s> is no word to predict
            prob = {ngram: share[ngram] + left[()] * uniform for ngram in kept}
            prob[(BOS,)] = 1.0
        else:
            backoff |= left
            prob |= {ngram: share[ngram] + left[ngram[:-1]] * prob[ngram[1:]] for ngram in kept}
    return {ngram: (log10(p), log10(backoff.get(ngram, 1.0))) for ngram, p in prob.items()}


def log10(p: float) -> float:
    """log10 as models write it: at most 0, and -99 for 0."""
    return min(0.0, math.log10(p)) if p > 0 else -99.0


def sum_of_probabilities(model: dict[Ngram, tuple[float, float]], context: Ngram) -> float:
    """Sum over all words after a context, with backing off."""
    words = {ngram[0] for ngram in model if len(ngram) == 1} - {BOS}
    return sum(10 ** score(model, (*context, word)) for word in words)


def score(model: dict[Ngram, tuple[float, float]], ngram: Ngram) -> float:
    if ngram in model:
        return model[ngram][0]
    return model.get(ngram[:-1], (0.0, 0.0))[1] + score(model, ngram[1:])
