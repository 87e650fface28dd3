"""Look up phrases in a bitext index: those that a sentence contains, their translations, and examples."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hiero.core.arrays import Ids, Ints
from hiero.core.symbols import table_entry
from hiero.extraction.config import MAX_SYMBOLS, LookupConfig
from hiero.extraction.extractor import COUNT, LOSS, SAMPLED, Extractor, counts_of
from hiero.extraction.index import BitextIndex
from hiero.extraction.table_kernels import IndexedText
from hiero.grammar.rules import Rules

SEARCHED = 10_000  # occurrences of a phrase, evenly spaced, among which examples are looked for

Run = tuple[int, int]  # words of a sentence: the first, and the one after the last, from 0
Symbols = tuple[int, ...]  # words of an index; gap g is -g


@dataclass(frozen=True)
class Occurrence:
    """A pair of the bitext in which a phrase is translated: its line from 1, and the words of both sides."""

    line: int
    source: str
    target: str
    source_runs: list[Run]
    target_runs: list[Run]

    def marked(self) -> str:
        """Both sides, with the phrases in brackets."""
        return f"{_marked(self.source, self.source_runs)} ||| {_marked(self.target, self.target_runs)}"


@dataclass(frozen=True)
class Translation:
    """A translation of a phrase.

    count        how often it was seen among the occurrences looked at
    probability  its share of them
    links        of words and gaps, as ``0-0 1-2``
    """

    target: str
    count: int
    probability: float
    links: str
    examples: list[Occurrence]


@dataclass(frozen=True)
class Phrase:
    """A phrase that an index translates.

    places       its places in the sentence: runs of words, several where the phrase has gaps
    occurrences  in the bitext; None for a phrase with gaps, whose occurrences are not counted
    sampled      occurrences looked at: times the alignments of the index
    """

    source: str
    places: list[list[Run]]
    occurrences: int | None
    sampled: int
    translations: list[Translation]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def find_phrases(extractor: Extractor, words: Sequence[str], config: LookupConfig) -> list[Phrase]:
    """The phrases of a sentence that an index translates, by their first place, longer ones first.

    The extractor has the settings ``config.extract``.
    """
    index = extractor.index
    ids = extractor.word_ids([word.encode() for word in words])
    if config.whole and len(ids) > MAX_SYMBOLS:
        return []
    found = []
    rules = extractor.rules(ids)
    sentence = ids.tolist()
    for source, numbers in _by_source(rules):
        if config.whole and source != tuple(sentence):
            continue
        runs = runs_of(source)
        if runs is None:
            continue
        count = counts_of(rules.dense[numbers, COUNT])
        order = np.argsort(-count, kind="stable")
        order = order[count[order] >= config.min_count][: config.translations or None]
        if len(order):
            places = [
                _runs_at(runs, starts) for starts in _matches(runs, sentence, extractor.config.max_span)
            ]
            found.append((source, runs, places, numbers[order]))
    found.sort(key=lambda one: (one[2][0][0][0], -one[2][0][-1][1], one[2]))
    if config.longest:
        covers = [place for *_, places, _ in found for place in places]
        found = [one for one in found if any(not _is_inside(place, covers) for place in one[2])]
    return [_phrase(index, rules, *one, config, extractor.config.max_span) for one in found]


def _by_source(rules: Rules) -> Iterator[tuple[Symbols, Ints]]:
    """The source sides of rules, and the numbers of the rules of each."""
    groups: dict[Symbols, list[int]] = {}
    first, src = rules.first_src.tolist(), rules.src.tolist()
    for rule in range(len(rules.lhs)):
        groups.setdefault(tuple(src[first[rule] : first[rule + 1]]), []).append(rule)
    return ((source, np.array(numbers)) for source, numbers in groups.items())


def _phrase(
    index: BitextIndex,
    rules: Rules,
    source: Symbols,
    runs: list[Symbols],
    places: list[list[Run]],
    numbers: Ints,
    config: LookupConfig,
    max_span: int,
) -> Phrase:
    targets = [tuple(rules.tgt[rules.first_tgt[r] : rules.first_tgt[r + 1]].tolist()) for r in numbers]
    examples = _examples(index, runs, targets, config.examples, max_span) if config.examples else {}
    counts = counts_of(rules.dense[numbers, COUNT]).tolist()
    translations = []
    for rule, target, count in zip(numbers.tolist(), targets, counts, strict=True):
        links = rules.link[rules.first_link[rule] : rules.first_link[rule + 1]].tolist()
        translations.append(
            Translation(
                _text(index.tgt_words, target),
                count,
                round(10.0 ** -float(rules.dense[rule, LOSS]), 6),
                " ".join(f"{a}-{b}" for a, b in links),
                examples.get(target, []),
            )
        )
    low, high = suffixes_of(index.text, source) if len(runs) == 1 else (0, 0)
    return Phrase(
        _text(index.src_words, source),
        places,
        high - low if len(runs) == 1 else None,
        int(counts_of(rules.dense[numbers[:1], SAMPLED])[0]),
        translations,
    )


def _text(words: Any, symbols: Symbols) -> str:
    return " ".join(
        table_entry(words, symbol - 1).decode() if symbol > 0 else f"[{-symbol}]" for symbol in symbols
    )


def _marked(text: str, runs: Sequence[Run]) -> str:
    words = text.split(" ")
    for first, last in runs:
        words[first] = "[" + words[first]
        words[last - 1] += "]"
    return " ".join(words)


# ---- matches


def runs_of(pattern: Symbols) -> list[Symbols] | None:
    """The runs of words of a pattern, or None if it has a gap at its edges."""
    if pattern[0] < 0 or pattern[-1] < 0:
        return None
    runs: list[Symbols] = []
    first = 0
    for at in range(len(pattern) + 1):
        if at == len(pattern) or pattern[at] < 0:
            runs.append(pattern[first:at])
            first = at + 1
    return runs


def _runs_at(runs: Sequence[Symbols], starts: Sequence[int]) -> list[Run]:
    return [(start, start + len(run)) for start, run in zip(starts, runs, strict=True)]


def _matches(
    runs: Sequence[Symbols], sentence: Sequence[int], max_span: int, starts: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """Where the runs of a pattern begin in a sentence, for each match."""
    if len(starts) == len(runs):
        yield starts
        return
    run = runs[len(starts)]
    low = starts[-1] + len(runs[len(starts) - 1]) + 1 if starts else 0
    high = min(len(sentence), starts[0] + max_span) if starts else len(sentence)
    for start in range(low, high - len(run) + 1):
        if tuple(sentence[start : start + len(run)]) == run:
            yield from _matches(runs, sentence, max_span, (*starts, start))


def _is_inside(place: Sequence[Run], others: Sequence[Sequence[Run]]) -> bool:
    """Whether the words of a place are some, but not all, of the words of another one."""
    words = {word for run in place for word in range(*run)}
    return any(
        len(words) < sum(last - first for first, last in other)
        and words <= {word for run in other for word in range(*run)}
        for other in others
    )


def suffixes_of(text: IndexedText, words: Symbols) -> tuple[int, int]:
    """The suffixes that begin with some words: the first place in the suffix array, and the one after."""
    low, high = (int(text.first_suffix[words[0] + more]) for more in (0, 1))
    places = range(len(text.suffix))
    for at, word in enumerate(words[1:], 1):

        def next_word(place: int, at: int = at) -> int:
            return int(text.src[text.suffix[place] + at])

        low, high = (cut(places, word, low, high, key=next_word) for cut in (bisect_left, bisect_right))
    return low, high


# ---- examples


def _examples(
    index: BitextIndex, runs: list[Symbols], targets: list[Symbols], most: int, max_span: int
) -> dict[Symbols, list[Occurrence]]:
    """Examples of translations of a phrase, shorter pairs first."""
    found: dict[Symbols, list[Occurrence]] = {target: [] for target in targets}
    missing = most * len(targets)
    for pair in _pairs_with(index.text, runs):
        for starts in _matches(runs, _words(index.text.src, index.text.first_src, pair), max_span):
            source_runs = _runs_at(runs, starts)
            for target, target_runs in targets_of(index, pair, source_runs):
                known = found.get(target)
                # One example of a pair.
                if known is None or len(known) == most or (known and known[-1].line == pair + 1):
                    continue
                known.append(_example(index, pair, source_runs, target_runs))
                missing -= 1
        if not missing:
            break
    return found


def _words(words: Ids, first: Ints, pair: int) -> list[int]:
    found: list[int] = words[first[pair] : first[pair + 1] - 1].tolist()
    return found


def _pairs_with(text: IndexedText, runs: Sequence[Symbols]) -> list[int]:
    """Pairs of the bitext whose source side has all runs, not more than SEARCHED, the shortest first."""
    pairs: Ints | None = None
    for run in runs:
        low, high = suffixes_of(text, run)
        here = np.unique(text.sentence[text.suffix[low:high]]).astype(np.int64)
        pairs = here if pairs is None else np.intersect1d(pairs, here, assume_unique=True)
    assert pairs is not None
    if len(pairs) > SEARCHED:
        pairs = pairs[np.linspace(0, len(pairs) - 1, SEARCHED).astype(np.int64)]
    length = text.first_src[pairs + 1] - text.first_src[pairs]
    chosen: list[int] = pairs[np.argsort(length, kind="stable")].tolist()
    return chosen


def targets_of(
    index: BitextIndex, pair: int, source_runs: Sequence[Run]
) -> Iterator[tuple[Symbols, list[Run]]]:
    """The target side of a phrase of a pair and its runs of words, by each alignment in which it has one."""
    inner = [(one[1], next_one[0]) for one, next_one in itertools.pairwise(source_runs)]
    words = _words(index.text.tgt, index.text.first_tgt, pair)
    for alignment in range(len(index.links.src_span)):
        whole = _target_span(index, alignment, pair, (source_runs[0][0], source_runs[-1][1]))
        gaps = [_target_span(index, alignment, pair, gap) for gap in inner]
        if whole is None or None in gaps:
            continue
        at, last = whole
        symbols: list[int] = []
        runs: list[Run] = []
        for (first, end), number in sorted((gap, k) for k, gap in enumerate(gaps, 1) if gap is not None):
            symbols += [*words[at:first], -number]
            runs += [(at, first)] if at < first else []
            at = end
        symbols += words[at:last]
        runs += [(at, last)] if at < last else []
        yield tuple(symbols), runs


def _target_span(index: BitextIndex, alignment: int, pair: int, source: Run) -> Run | None:
    """The target words of a phrase pair, from the first to the last linked one; None if there is no pair.

    The first and the last source word must be linked, as those of rules.
    """
    begin = int(index.text.first_src[pair])
    linked = index.links.src_span[alignment, begin + source[0] : begin + source[1]]
    if min(linked[0, 0], linked[-1, 0]) < 0:
        return None
    linked = linked[linked[:, 0] >= 0]
    first, last = int(linked[:, 0].min()), int(linked[:, 1].max())
    begin = int(index.text.first_tgt[pair])
    back = index.links.tgt_span[alignment, begin + first : begin + last]
    back = back[back[:, 0] >= 0]
    is_closed = source[0] <= int(back[:, 0].min()) and int(back[:, 1].max()) <= source[1]
    return (first, last) if is_closed else None


def _example(index: BitextIndex, pair: int, source_runs: list[Run], target_runs: list[Run]) -> Occurrence:
    source = tuple(_words(index.text.src, index.text.first_src, pair))
    target = tuple(_words(index.text.tgt, index.text.first_tgt, pair))
    return Occurrence(
        pair + 1,
        _text(index.src_words, source),
        _text(index.tgt_words, target),
        source_runs,
        target_runs,
    )
