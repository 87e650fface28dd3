"""BLEU as in its papers: lists of words, dictionaries, one sentence at a time."""

from __future__ import annotations

import math

Sentence = list[int]


def ngrams(words: Sentence, n: int) -> dict[tuple[int, ...], int]:
    counts: dict[tuple[int, ...], int] = {}
    for start in range(len(words) - n + 1):
        ngram = tuple(words[start : start + n])
        counts[ngram] = counts.get(ngram, 0) + 1
    return counts


def statistics(hyp: Sentence, refs: list[Sentence], order: int, shortest: bool) -> list[int]:
    """Length, reference length, clipped matches of each order, n-grams of each order."""
    if shortest:
        ref_length = min(len(ref) for ref in refs)
    else:
        ref_length = min((abs(len(ref) - len(hyp)), len(ref)) for ref in refs)[1]
    matches, totals = [], []
    for n in range(1, order + 1):
        found = 0
        for ngram, count in ngrams(hyp, n).items():
            if min(ngram) >= 0:
                found += min(count, max(ngrams(ref, n).get(ngram, 0) for ref in refs))
        matches.append(found)
        totals.append(max(len(hyp) - n + 1, 0))
    return [len(hyp), ref_length, *matches, *totals]


def brevity(length: float, ref_length: float) -> float:
    return math.exp(1 - ref_length / length) if length < ref_length else 1.0


def geometric_mean(precisions: list[float]) -> float:
    product = 1.0
    for precision in precisions:
        product *= precision
    return product ** (1 / len(precisions))


def plain(stats: list[float]) -> float:
    """Papineni et al. 2002."""
    order = (len(stats) - 2) // 2
    matches, totals = stats[2 : 2 + order], stats[2 + order :]
    if 0 in matches:
        return 0.0
    return brevity(stats[0], stats[1]) * geometric_mean(
        [match / total for match, total in zip(matches, totals, strict=True)]
    )


def shortened(stats: list[float]) -> list[float]:
    """Without the orders that are longer than the reference."""
    order = (len(stats) - 2) // 2
    keep = max(1, min(order, int(stats[1])))
    return [*stats[:2], *stats[2 : 2 + keep], *stats[2 + order : 2 + order + keep]]


def added(stats: list[float], first: int, longer: int = 0) -> float:
    """One more match and one more n-gram from order ``first`` on, the reference ``longer`` words longer."""
    order = (len(stats) - 2) // 2
    if first > 1 and stats[2] == 0:
        return 0.0
    if stats[0] == 0:
        return 0.0
    precisions = []
    for n in range(1, order + 1):
        extra = 1 if n >= first else 0
        precisions.append((stats[1 + n] + extra) / (stats[1 + order + n] + extra))
    return brevity(stats[0], stats[1] + longer) * geometric_mean(precisions)


def lin(stats: list[float]) -> float:
    return added(stats, first=2)


def nakov(stats: list[float]) -> float:
    return added(stats, first=2, longer=1)


def nakov_all(stats: list[float]) -> float:
    return added(stats, first=1, longer=1)


def moses(stats: list[float]) -> float:
    return added(stats, first=1)


def liang(stats: list[float]) -> float:
    """The BLEUs of all orders, each with half the weight of the next."""
    order = (len(stats) - 2) // 2
    total = 0.0
    for i in range(1, order + 1):
        bleu_i = plain([*stats[:2], *stats[2 : 2 + i], *stats[2 + order : 2 + order + i]])
        if bleu_i == 0.0:
            break
        total += bleu_i / 2 ** (order - i + 1)
    return total


def ibm(stats: list[float]) -> float:
    order = (len(stats) - 2) // 2
    if stats[0] == 0:
        return 0.0
    precisions = [
        (stats[1 + n] or 0.01) / stats[1 + order + n] for n in range(1, order + 1) if stats[1 + order + n] > 0
    ]
    return brevity(stats[0], stats[1]) * geometric_mean(precisions)


def qcri(stats: list[float]) -> float:
    """Difference to the score of a translation without any match."""
    order = (len(stats) - 2) // 2
    if stats[0] == 0:
        return 0.0
    precisions, worst = [], []
    for n in range(1, order + 1):
        match, total = stats[1 + n], stats[1 + order + n]
        if total > 0:
            precisions.append((match or 1) / total)
            worst.append(1 / (total + 1))
    short = math.exp((stats[0] - stats[1] - 1) / stats[0]) if stats[0] < stats[1] else 1.0
    return short * (geometric_mean(precisions) - geometric_mean(worst))
