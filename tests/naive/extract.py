"""Extraction by definition: sentences are lists of words, alignments lists of pairs, patterns tuples.

A gap inside a pattern is None. A match is a tuple: the sentence and where each run of words begins in it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

Words = list[str]
Links = list[tuple[int, int]]
Pattern = tuple[str | None, ...]
Match = tuple[int, tuple[int, ...]]


@dataclass
class Bitext:
    src: list[Words]
    tgt: list[Words]
    alignments: list[list[Links]]


@dataclass
class Limits:
    span: int = 15
    symbols: int = 5
    gaps: int = 2
    samples: int = 300
    num_frequent: int = 100
    num_super: int = 10
    min_frequency: int = 1000
    frequent_length: int = 4


@dataclass
class Rule:
    """Statistics of one source and target side."""

    seen: int  # matches looked at, times alignments
    count: int
    singleton: bool  # whether the source side was seen once
    links: list[tuple[int, int]]
    features: list[float] = field(default_factory=list)
    stands_for: float = 0.0  # occurrences, of all matches that those looked at were chosen from


def suffix_array(text: list[int]) -> list[int]:
    return sorted(range(len(text)), key=lambda start: text[start:])


def sort_by_two(text: list[int]) -> tuple[list[int], list[int]]:
    """Suffixes by their first two words, equal ones by place; for each, the last place of its equals."""
    suffixes = sorted(range(len(text)), key=lambda start: text[start : start + 2])
    pairs = [text[start : start + 2] for start in suffixes]
    ranks = [max(k for k, pair in enumerate(pairs) if pair == text[at : at + 2]) for at in range(len(text))]
    return suffixes, ranks


def numbered(sentences: list[Words]) -> tuple[dict[str, int], list[int]]:
    """Words by first appearance from 1, and all sentences, each ended by 0."""
    ids: dict[str, int] = {}
    text = []
    for words in sentences:
        text += [ids.setdefault(word, len(ids) + 1) for word in words] + [0]
    return ids, text


def frequent(text: list[int], longest: int, least: int) -> list[tuple[int, ...]]:
    """Sequences of words in a sentence that occur so often, in any order."""
    counts: Counter[tuple[int, ...]] = Counter()
    for start in range(len(text)):
        for length in range(1, longest + 1):
            piece = tuple(text[start : start + length])
            if len(piece) == length and 0 not in piece:
                counts[piece] += 1
    return [piece for piece, count in counts.items() if count >= least]


def collocations(sentences: list[Words], runs: list[Words], super_runs: list[Words], limits: Limits) -> Any:
    """Matches of frequent runs with gaps between them, in the order of the text, by pattern."""
    listed: dict[Pattern, list[Match]] = defaultdict(list)
    for s, words in enumerate(sentences):
        places = [
            (start, run)
            for start in range(len(words))
            for run in sorted(runs, key=len)
            if words[start : start + len(run)] == run and all(run[:k] in runs for k in range(1, len(run)))
        ]
        for a, first in places:
            for b, second in places:
                if b <= a + len(first) or b + len(second) > a + limits.span:
                    continue
                pair = (*first, None, *second)
                if len(pair) > limits.symbols or limits.gaps < 1:
                    continue
                listed[pair].append((s, (a, b)))
                for c, third in places:
                    triple = (*pair, None, *third)
                    if c <= b + len(second) or c + len(third) > a + limits.span or limits.gaps < 2:
                        continue
                    if len(triple) > limits.symbols or second not in super_runs:
                        continue
                    if first in super_runs or third in super_runs:
                        listed[triple].append((s, (a, b, c)))
    return listed


def runs_of(pattern: Pattern) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    for symbol in pattern:
        if symbol is None:
            runs.append([])
        else:
            runs[-1].append(symbol)
    return runs


class Finder:
    """All matches of patterns, in cdec's order, which determines the sample."""

    def __init__(self, bitext: Bitext, limits: Limits) -> None:
        self.sentences, self.limits = bitext.src, limits
        ids, text = numbered(bitext.src)
        names = {number: word for word, number in ids.items()}
        place = [(s, i) for s, words in enumerate(bitext.src) for i in range(len(words) + 1)]
        self.suffixes = suffix_array(text)
        self.place = place
        counted = []
        for piece in frequent(text, limits.frequent_length, limits.min_frequency):
            starts = [start for start in self.suffixes if tuple(text[start : start + len(piece)]) == piece]
            counted.append((len(starts), starts[0], len(piece), [names[number] for number in piece]))
        best = [run for *_, run in sorted(counted, reverse=True)[: limits.num_frequent]]
        self.listed = collocations(bitext.src, best, best[: limits.num_super], limits)
        self.known: dict[Pattern, list[Match]] = {}

    def matches(self, pattern: Pattern) -> list[Match]:
        if pattern not in self.known:
            self.known[pattern] = self._find(pattern)
        return self.known[pattern]

    def _find(self, pattern: Pattern) -> list[Match]:
        if None not in pattern:
            found = [self.place[start] for start in self.suffixes]
            words = list(pattern)
            return [(s, (i,)) for s, i in found if self.sentences[s][i : i + len(words)] == words]
        if pattern in self.listed:
            return list(self.listed[pattern])
        left, left_gap = (pattern[:-2], True) if pattern[-2] is None else (pattern[:-1], False)
        right, right_gap = (pattern[2:], True) if pattern[1] is None else (pattern[1:], False)
        if self._cost(left, left_gap) <= self._cost(right, right_gap):
            return [new for match in self.matches(left) for new in self._to_the_right(pattern, left, match)]
        return [new for match in self.matches(right) for new in self._to_the_left(pattern, right, match)]

    def _cost(self, part: Pattern, gap: bool) -> int:
        cost = len(self.matches(part)) * (part.count(None) + 1)
        return cost * self.limits.span if gap else cost

    def _to_the_right(self, pattern: Pattern, part: Pattern, match: Match) -> list[Match]:
        s, starts = match
        words, gap = self.sentences[s], len(part) == len(pattern) - 2
        end = starts[-1] + len(runs_of(part)[-1])
        last = min(starts[0] + self.limits.span, len(words))
        places = range(end + 1, last) if gap else range(end, min(end + 1, last))
        return [(s, (*starts, at) if gap else starts) for at in places if words[at] == pattern[-1]]

    def _to_the_left(self, pattern: Pattern, part: Pattern, match: Match) -> list[Match]:
        s, starts = match
        words, gap = self.sentences[s], len(part) == len(pattern) - 2
        first = max(starts[-1] + len(runs_of(part)[-1]) - self.limits.span, 0)
        nearest = starts[0] - (2 if gap else 1)
        places = range(nearest, first - 1, -1) if gap else range(nearest, max(nearest, first) - 1, -1)
        rest = starts if gap else starts[1:]
        return [(s, (at, *rest)) for at in places if at >= first and words[at] == pattern[0]]


def sample(matches: list[Match], first_rank: int, most: int, left_out: Collection[int] = ()) -> list[Match]:
    """cdec's sampler; it counts from ``first_rank`` in floating point, and rounds halves up.

    Several sentences are left out as if they were not among the matches, which cdec cannot do.
    """
    if len(left_out) > 1:
        return sample([match for match in matches if match[0] not in left_out], first_rank, most)

    def at(position: float) -> int:
        return math.floor(position + 0.5) - first_rank

    step = max(1.0, len(matches) / most)
    chosen: list[int] = []
    position, taken = float(first_rank), 0
    while taken < most and position < first_rank + len(matches):
        last = chosen[-1] if chosen else -1
        tries = [at(position)]
        if not (tries[0] > last and matches[tries[0]][0] not in left_out):
            away = 1.0
            while away < step:
                tries += [at(position - away), at(position + away)]
                away += 1.0
        for k, index in enumerate(tries):
            backward = k % 2 == 1 or k == 0
            if (index > last if backward else index < len(matches)) and matches[index][0] not in left_out:
                chosen.append(index)
                break
        position += step
        taken += 1
    return [matches[index] for index in chosen]


def targets(links: Links, low: int, high: int) -> set[int]:
    return {t for s, t in links if low <= s < high}


def sources(links: Links, low: int, high: int) -> set[int]:
    return {s for s, t in links if low <= t < high}


def hull(places: set[int]) -> tuple[int, int]:
    return min(places), max(places) + 1


def closure(links: Links, low: int, high: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The smallest phrase pair around some source words."""
    while True:
        linked = targets(links, low, high)
        if not linked:
            return None
        target = hull(linked)
        wider = hull(sources(links, *target) | {low, high - 1})
        if wider == (low, high):
            return (low, high), target
        low, high = wider


def phrases(links: Links, starts: tuple[int, ...], runs: list[list[str]], limits: Limits) -> Any:
    """Source and target phrase, and gaps (source, target) in order of the source, of each rule of a match."""
    linked = {s for s, _ in links}
    ends = [start + len(run) for start, run in zip(starts, runs, strict=True)]
    inner = list(zip(ends[:-1], starts[1:], strict=True))
    if not any(s in linked for a, b in zip(starts, ends, strict=True) for s in range(a, b)):
        return
    core = closure(links, starts[0], ends[-1])
    # The gaps that the alignment requires must not add target words.
    if core is None or core[1] != hull(targets(links, starts[0], ends[-1])):
        return
    symbols = sum(map(len, runs)) + len(inner)
    for left in (False, True):
        for right in (False, True):
            (low, high), target = core
            if (left and low < starts[0]) or (right and high > ends[-1]):
                continue
            if left or right:
                # Each further gap begins with the word next to the phrase, which must be linked.
                if (left and low - 1 not in linked) or (right and high not in linked):
                    continue
                wider = closure(links, low - left, high + right)
                assert wider is not None
                if (not left and wider[0][0] < low) or (not right and wider[0][1] > high):
                    continue
                (low, high), target = wider
            gaps = [(a, b) for a, b in ((low, starts[0]), *inner, (ends[-1], high)) if a < b]
            outer = (low < starts[0]) + (high > ends[-1])
            if len(inner) + outer > limits.gaps or symbols + outer > limits.symbols:
                continue
            if high - low > limits.span or target[1] - target[0] > limits.span:
                continue
            if low not in linked or high - 1 not in linked:
                continue
            inside = [closure(links, a, b) for a, b in gaps]
            if any(pair is None or pair[0] != gap for pair, gap in zip(inside, gaps, strict=True)):
                continue
            if any(a not in linked or b - 1 not in linked for a, b in gaps):
                continue
            yield (low, high), target, [pair for pair in inside if pair is not None]


def gap_lengths(links: Links, low: int, size: int, span: int) -> set[int]:
    """How many words from here on can be a gap of a rule."""
    linked = {s for s, _ in links}
    found = set()
    for high in range(low + 1, min(low + span - 2, size) + 1):
        if low in linked and high - 1 in linked:
            pair = closure(links, low, high)
            if pair is not None and pair[0] == (low, high) and pair[1][1] - pair[1][0] <= span:
                found.add(high - low)
    return found


def sides(words: Words, phrase: tuple[int, int], gaps: list[tuple[int, int]]) -> tuple[list[Any], list[Any]]:
    """The symbols of one side, gaps as numbers from 1, and the place of each in the sentence."""
    symbols: list[Any] = []
    places: list[Any] = []
    at = phrase[0]
    while at < phrase[1]:
        inside = [k for k, gap in enumerate(gaps) if gap[0] == at]
        symbols.append(inside[0] + 1 if inside else words[at])
        places.append(None if inside else at)
        at = gaps[inside[0]][1] if inside else at + 1
    return symbols, places


def patterns(sentence: Words, limits: Limits) -> list[Pattern]:
    """Every pattern of a sentence, over limits.span + 1 words at most."""
    found: dict[Pattern, None] = {}

    def grow(pattern: Pattern, first: int, last: int) -> None:
        found[pattern] = None
        for at in range(last + 1, min(first + limits.span + 1, len(sentence))):
            new = (*pattern, *([] if at == last + 1 else [None]), sentence[at])
            if len(new) <= limits.symbols and new.count(None) <= limits.gaps:
                grow(new, first, at)

    for start, word in enumerate(sentence):
        grow((word,), start, start)
    return list(found)


def lexicon(
    bitext: Bitext, left_out: Collection[int] = ()
) -> dict[tuple[str | None, str | None], tuple[float, float]]:
    """p(source word | target word) and p(target word | source word); None means no word."""
    pairs: Counter[tuple[str | None, str | None]] = Counter()
    for alignment in bitext.alignments:
        for number, (src, tgt, links) in enumerate(zip(bitext.src, bitext.tgt, alignment, strict=True)):
            if number in left_out:
                continue
            pairs.update((src[s], tgt[t]) for s, t in set(links))
            pairs.update((word, None) for s, word in enumerate(src) if not targets(links, s, s + 1))
            pairs.update((None, word) for t, word in enumerate(tgt) if not sources(links, t, t + 1))
    by_src: Counter[str | None] = Counter()
    by_tgt: Counter[str | None] = Counter()
    for (s, t), count in pairs.items():
        by_src[s] += count
        by_tgt[t] += count
    return {(s, t): (count / by_tgt[t], count / by_src[s]) for (s, t), count in pairs.items()}


def features(rule: Rule, src: tuple[Any, ...], tgt: tuple[Any, ...], table: Any) -> list[float]:
    src_words = [symbol for symbol in src if isinstance(symbol, str)]
    tgt_words = [symbol for symbol in tgt if isinstance(symbol, str)]

    def loss(probabilities: list[float]) -> float:
        best = max(probabilities, default=0.0)
        return -math.log10(best) if best > 0 else 99.0

    return [
        -math.log10(rule.count / rule.seen),
        math.log10(1 + rule.seen),
        math.log10(1 + rule.count),
        sum(loss([table.get((s, t), (0.0, 0.0))[0] for t in [*tgt_words, None]]) for s in src_words),
        sum(loss([table.get((s, t), (0.0, 0.0))[1] for s in [*src_words, None]]) for t in tgt_words),
        float(rule.singleton),
        float(rule.count == 1),
    ]


def extract(
    bitext: Bitext,
    sentence: Words,
    limits: Limits,
    left_out: Collection[int] = (),
    leave_out_links: bool = False,
) -> dict[tuple[tuple[Any, ...], tuple[Any, ...]], Rule]:
    """The rules of a sentence by source and target side; gaps are numbers."""
    finder, table = Finder(bitext, limits), lexicon(bitext, left_out if leave_out_links else ())
    known = {word for words in bitext.src for word in words}
    rules: dict[Any, Rule] = {}
    for pattern in patterns([word if word in known else f"?{k}" for k, word in enumerate(sentence)], limits):
        matches = finder.matches(pattern)
        if not matches:
            continue
        rank = 0
        if None not in pattern:
            # cdec's suffix array begins with the end of the text.
            starts = [finder.place[start] for start in finder.suffixes]
            rank = 1 + starts.index((matches[0][0], matches[0][1][0]))
        chosen = sample(matches, rank, limits.samples, left_out)
        seen: dict[Any, Counter[Any]] = defaultdict(Counter)
        for s, starts_ in chosen:
            for alignment in bitext.alignments:
                links = sorted(set(alignment[s]))
                runs = runs_of(pattern)
                for phrase, target, gaps in phrases(links, starts_, runs, limits):
                    src, src_places = sides(bitext.src[s], phrase, [gap for gap, _ in gaps])
                    tgt, tgt_places = sides(bitext.tgt[s], target, [gap for _, gap in gaps])
                    inner = tuple(
                        (src_places.index(a), tgt_places.index(b))
                        for a, b in links
                        if a in src_places and b in tgt_places
                    )
                    seen[tuple(src), tuple(tgt)][inner] += 1
        by_src: Counter[Any] = Counter()
        for (src_side, _), variants in seen.items():
            by_src[src_side] += variants.total()
        for (src_side, tgt_side), variants in seen.items():
            links_of = min(variants, key=lambda inner: (-variants[inner], inner))
            total = len(chosen) * len(bitext.alignments)
            rule = Rule(total, variants.total(), by_src[src_side] == 1, list(links_of))
            rule.features = features(rule, src_side, tgt_side, table)
            drawn_from = [match for match in matches if len(left_out) < 2 or match[0] not in left_out]
            share = len(drawn_from) / len(chosen) if len(drawn_from) > limits.samples else 1.0
            rule.stands_for = rule.count * share
            assert (src_side, tgt_side) not in rules
            rules[src_side, tgt_side] = rule
    return rules


def group(bitext: Bitext, pair: int) -> list[int]:
    """The pairs with the same source or the same target."""
    src, tgt = bitext.src, bitext.tgt
    return [k for k in range(len(src)) if src[k] == src[pair] or tgt[k] == tgt[pair]]


def without(bitext: Bitext, left_out: Collection[int]) -> Bitext:
    """The bitext as it were if these pairs had never been in it."""

    def rest(column: list[Any]) -> list[Any]:
        return [item for number, item in enumerate(column) if number not in left_out]

    return Bitext(rest(bitext.src), rest(bitext.tgt), [rest(links) for links in bitext.alignments])


def bare(tgt: Sequence[Any]) -> tuple[Any, ...]:
    """A target side in which all gaps are equal."""
    return tuple(symbol if isinstance(symbol, str) else None for symbol in tgt)


def target_numbers(sides: Sequence[Sequence[Any]]) -> list[int]:
    """Numbers of target sides, equal for equal ones."""
    known: dict[Any, int] = {}
    return [known.setdefault(bare(side), len(known)) for side in sides]


def target_features(
    bitext: Bitext, sentence: Words, limits: Limits, left_out: Collection[int] = ()
) -> dict[Any, tuple[float, float]]:
    """-log10 p(f | e), and whether e occurs once, of the rules of a sentence, from those of all sentences."""
    rules: dict[Any, Rule] = {}
    for words in bitext.src:
        rules |= extract(bitext, words, limits, left_out)
    total: Counter[Any] = Counter()
    for (_, tgt), rule in rules.items():
        total[bare(tgt)] += rule.stands_for  # type: ignore[assignment]
    return {
        (src, tgt): (math.log10(total[bare(tgt)] / rule.stands_for), float(abs(total[bare(tgt)] - 1) < 1e-6))
        for (src, tgt), rule in extract(bitext, sentence, limits, left_out).items()
    }


def spans(size: int, links: Links) -> list[tuple[int, int]]:
    """First linked target word of each source word and the one after the last; (-1, -1) if there is none."""
    return [hull(found) if (found := targets(links, s, s + 1)) else (-1, -1) for s in range(size)]


def rule_lines(rules: dict[tuple[tuple[Any, ...], tuple[Any, ...]], Rule], names: list[str]) -> list[str]:
    """Rules as cdec writes them, features as float32s with nine digits."""
    lines = []
    for (src, tgt), rule in rules.items():
        written = [
            " ".join(f"[X,{symbol}]" if isinstance(symbol, int) else symbol for symbol in side)
            for side in (src, tgt)
        ]
        values = " ".join(f"{name}={value:.9g}" for name, value in zip(names, rule.features, strict=True))
        links = " ".join(f"{a}-{b}" for a, b in rule.links)
        lines.append(" ||| ".join(["[X]", *written, values, *([links] if links else [])]))
    return lines


def is_text(text: list[int], first: list[int], num_words: int, sentence: list[int]) -> bool:
    """Whether sentences are not empty, have known words, and end with their only 0."""
    sentences = [text[low:high] for low, high in itertools.pairwise(first)]
    sound = all(
        len(words) > 1 and words[-1] == 0 and all(0 < word <= num_words for word in words[:-1])
        for words in sentences
    )
    numbers = [s for s, words in enumerate(sentences) for _ in words]
    return sound and sentence in ([], numbers)


def are_links(first_src: list[int], first_tgt: list[int], first_link: list[int], link: list[int]) -> bool:
    """Whether every source word has ascending links to words of its sentence, and the ends have none."""
    for s, (low, high) in enumerate(itertools.pairwise(first_src)):
        size = first_tgt[s + 1] - first_tgt[s] - 1
        for at in range(low, high):
            begin, end = first_link[at], first_link[at + 1]
            if not 0 <= begin <= end <= len(link) or (at == high - 1 and begin < end):
                return False
            words = link[begin:end]
            if words != sorted(set(words)) or not all(0 <= word < size for word in words):
                return False
    return True


def are_suffixes(text: list[int], suffix: list[int], first: list[int]) -> bool:
    """Whether these are the suffix array, and the first place of each word in it."""
    counts = [sum(other < word for other in text) for word in range(len(first))]
    return suffix == suffix_array(text) and first == counts


def are_matches(
    text: list[int], lengths: list[int], pairs: list[list[int]], triples: list[list[int]]
) -> bool:
    """Whether the matches of all pairs and triples of runs lie within sentences, with gaps between runs."""

    def fits(match: int, sizes: tuple[int, ...]) -> bool:
        start, later = match >> 16, [match >> 8 & 255, match & 255][: len(sizes) - 1]
        if not 0 <= start < len(text) or (len(sizes) == 2 and match & 255):
            return False
        runs = [(0, sizes[0]), *zip(later, sizes[1:], strict=True)]
        apart = all(at > low + size for (low, size), (at, _) in itertools.pairwise(runs))
        end = start + runs[-1][0] + runs[-1][1]
        return apart and end < len(text) and end <= text.index(0, start)

    sizes_2, sizes_3 = (list(itertools.product(lengths, repeat=n)) for n in (2, 3))
    return all(
        fits(match, sizes)
        for rows, sizes_of in ((pairs, sizes_2), (triples, sizes_3))
        for matches, sizes in zip(rows, sizes_of, strict=True)
        for match in matches
    )


# ---- packed rules


def unpacked(words: list[int]) -> list[tuple[list[int], list[int], list[int], list[tuple[int, int]]]]:
    """The source side, target side, bits of features and links of each rule packed in 64-bit words."""
    arrays, begin = [], 24
    for head in words[:24]:
        size, bits = head >> 8, head & 255
        end = begin + -(-size * bits // 64)
        number = sum(word << 64 * k for k, word in enumerate(words[begin:end]))
        arrays.append([number >> bits * k & (1 << bits) - 1 for k in range(size)])
        begin = end
    assert begin == len(words)
    src_words, tgt_words, *rest = arrays

    def rows(sizes: list[int], items: list[Any]) -> list[list[Any]]:
        ends = list(itertools.accumulate(sizes, initial=0))
        return [items[a:b] for a, b in itertools.pairwise(ends)]

    nodes, phrases = rows(rest[0], rest[1]), rows(rest[2], rest[3])
    links = rows(rest[4], list(zip(rest[5], rest[6], strict=True)))
    pairs, cores = list(zip(*rest[13:16], strict=True)), list(zip(*rest[16:21], strict=True))
    values = rest[21]
    rules, newest = [], -1
    for back, pair, one, two, core, alignment in zip(*rest[7:13], strict=True):
        node = nodes[newest + 1 - back]
        newest += back == 0
        phrase, lex_f, lex_e = pairs[pair]
        tgt = [tgt_words[word] for word in phrases[phrase]]
        for place, gap in sorted([(one, -1), (two, -2)]):
            if place:
                tgt.insert(place - 1, gap)
        a, b, c, d, e = cores[core]
        features = [values[k] for k in (a, b, c, lex_f, lex_e, d, e)]
        src = [-1 - symbol if symbol < 2 else src_words[symbol - 2] for symbol in node]
        rules.append((src, tgt, features, links[alignment]))
    return rules


def merged_suffixes(text: list[int], suffix: list[int]) -> list[int]:
    """The suffixes of a text of which the first ones are sorted, by words up to the end of the sentence."""
    return sorted([*suffix, *range(len(suffix), len(text))], key=lambda at: text[at : text.index(0, at) + 1])


def located(text: list[int], suffix: list[int], words: list[int]) -> tuple[int, int]:
    """The number of occurrences of a sequence of words, and the first of them among sorted suffixes."""
    found = [k for k, at in enumerate(suffix) if text[at : at + len(words)] == words]
    return len(found), found[0] if found else -1
