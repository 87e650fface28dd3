"""Phrase tables by definition, and all translations of a phrase-based decoder with brackets."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

Words = tuple[str, ...]
Link = tuple[int, int]
Sentence = tuple[Words, Words, frozenset[Link]]
Scores = tuple[float, float, float, float]
Row = tuple[Scores, tuple[Link, ...], tuple[int, int, int]]


def phrase_pairs(pair: Sentence, max_length: int) -> list[tuple[Words, Words, tuple[Link, ...]]]:
    """All phrase pairs of a sentence pair, with links by their positions in it."""
    src, tgt, links = pair
    found = []
    for start, end in itertools.combinations(range(len(src) + 1), 2):
        for begin, stop in itertools.combinations(range(len(tgt) + 1), 2):
            if end - start > max_length or stop - begin > max_length:
                continue
            inside = [(i, j) for i, j in links if start <= i < end or begin <= j < stop]
            if inside and all(start <= i < end and begin <= j < stop for i, j in inside):
                moved = tuple(sorted((i - start, j - begin) for i, j in inside))
                found.append((src[start:end], tgt[begin:stop], moved))
    return found


def word_probs(corpus: Sequence[Sentence]) -> tuple[dict[Link, float], dict[Link, float]]:
    """p(f | e) and p(e | f) of linked words; words without a link are linked to None."""
    pairs: Counter = Counter()  # type: ignore[type-arg]
    for src, tgt, links in corpus:
        pairs.update((src[i], tgt[j]) for i, j in links)
        pairs.update((word, None) for i, word in enumerate(src) if i not in {i for i, _ in links})
        pairs.update((None, word) for j, word in enumerate(tgt) if j not in {j for _, j in links})
    src_total, tgt_total = Counter(), Counter()  # type: ignore[var-annotated]
    for (f, e), count in pairs.items():
        src_total[f] += count
        tgt_total[e] += count
    return (
        {(f, e): count / tgt_total[e] for (f, e), count in pairs.items()},
        {(f, e): count / src_total[f] for (f, e), count in pairs.items()},
    )


def lexical_weight(words: Words, others: Words, links: Sequence[Link], probs: Mapping) -> float:  # type: ignore[type-arg]
    """The product over words of the mean probability given linked words; links are (word, other)."""
    weight = 1.0
    for k, word in enumerate(words):
        linked = [others[j] for i, j in links if i == k]
        weight *= sum(probs[word, other] for other in linked or [None]) / max(len(linked), 1)
    return weight


def phrase_table(corpus: Sequence[Sentence], max_length: int) -> dict[tuple[Words, Words], Row]:
    """Scores, links and counts of all phrase pairs."""
    links_of: dict[tuple[Words, Words], Counter[tuple[Link, ...]]] = defaultdict(Counter)
    for pair in corpus:
        for src, tgt, links in phrase_pairs(pair, max_length):
            links_of[src, tgt][links] += 1
    count = {pair: sum(links.values()) for pair, links in links_of.items()}
    src_count, tgt_count = Counter(), Counter()  # type: ignore[var-annotated]
    for (src, tgt), times in count.items():
        src_count[src] += times
        tgt_count[tgt] += times
    backward, forward = word_probs(corpus)
    swapped = {(e, f): p for (f, e), p in forward.items()}
    table = {}
    for (src, tgt), times in count.items():
        links = links_of[src, tgt].most_common(1)[0][0]
        scores = (
            times / tgt_count[tgt],
            lexical_weight(src, tgt, links, backward),
            times / src_count[src],
            lexical_weight(tgt, src, [(j, i) for i, j in links], swapped),
        )
        table[src, tgt] = scores, links, (tgt_count[tgt], src_count[src], times)
    return table


# ---- decoding

Found = dict[Words, float]


def translations(
    table: Mapping[tuple[Words, Words], Sequence[float]],
    src: Words,
    weights: Mapping[str, float],
    span_limit: int,
) -> Found:
    """The best score of each translation with brackets and glue: of phrases, and of how they are joined."""
    spans: dict[tuple[int, int], Found] = {}
    for length in range(1, len(src) + 1):
        for start in range(len(src) - length + 1):
            end = start + length
            best: Found = {}
            for (phrase, tgt), scores in table.items():
                if phrase == src[start:end] and length <= span_limit:
                    values = sum(weights.get(f"PhraseModel_{k}", 0.0) * p for k, p in enumerate(scores))
                    _better(best, tgt, values - weights["WordPenalty"] * len(tgt) / math.log(10))
            if length == 1:
                _better(best, src[start:end], weights["PassThrough"] - weights["WordPenalty"] / math.log(10))
            for middle in range(start + 1, end if length <= span_limit else 0):
                for (one, score), (other, more) in itertools.product(
                    spans[start, middle].items(), spans[middle, end].items()
                ):
                    joined = score + more + weights["Bracket"]
                    _better(best, one + other, joined)
                    _better(best, other + one, joined + weights["Distortion"] * length)
            spans[start, end] = best
    prefix: Found = {}
    glued: list[Found] = [{(): -weights["Glue"]}]
    for end in range(1, len(src) + 1):
        best = {}
        for start in range(end):
            for (one, score), (other, more) in itertools.product(
                glued[start].items(), spans[start, end].items()
            ):
                _better(best, one + other, score + more + weights["Glue"])
        glued.append(best)
        prefix = best
    return prefix


def _better(best: Found, words: Words, score: float) -> None:
    best[words] = max(score, best.get(words, -math.inf))
