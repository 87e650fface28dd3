"""Hiero rules from derivations, with the features of a suffix-array extractor.

A rule with gaps is a piece of a derivation within Hiero's limits: at most five source symbols and two gaps,
no gaps side by side on the source, some terminal linked. A rule without gaps is any run of up to four source
words whose links stay inside it and one run of target words. The features follow cdec's extractor: ``n``
occurrences of a source side are looked at (at most 300, evenly spread), ``c`` of them translate as the rule.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from grammars.make_demo.trees import Links, Node, Pair, Side, spell, words

MAX_SYMBOLS = 5
MAX_GAPS = 2
MAX_WORDS = 4
MAX_SAMPLES = 300
SHORT = 3  # symbols of a source side with a gap whose rare rules are kept: ``will X1 kaufen``
_UNSEEN = 99.0


class Rule(NamedTuple):
    src: Side
    tgt: Side
    links: Links


class Lexicon(NamedTuple):
    """Translation probabilities by word pair (source, target); None is the word of the unlinked."""

    tgt_given_src: dict[tuple[str | None, str | None], float]
    src_given_tgt: dict[tuple[str | None, str | None], float]


def pieces(node: Node) -> tuple[list[Rule], list[Rule]]:
    """The pieces of a derivation that begin at its root, and those that begin anywhere."""
    below: list[Rule] = []
    options: list[list[Rule | None]] = []
    for kid in node.kids:
        mine, all_of_kid = pieces(kid)
        below += all_of_kid
        options.append([None, *mine])
    rooted = [Rule(node.src, node.tgt, node.links)]
    # From the last gap to the first, so that the numbers of the gaps before it stay as they are.
    for gap in range(len(node.kids), 0, -1):
        rooted = [
            grown
            for outer in rooted
            for inner in options[gap - 1]
            if (grown := _substitute(outer, gap, inner))
        ]
    return rooted, below + rooted


def _substitute(outer: Rule, gap: int, inner: Rule | None) -> Rule | None:
    """Put a piece into a gap, unless the result is too long; gaps are numbered in source order."""
    if inner is None:
        return outer
    # No piece is shorter than the gap it fills: what is too long now stays so.
    if len(outer.src) - 1 + len(inner.src) > MAX_SYMBOLS:
        return None
    more = sum(isinstance(symbol, int) for symbol in inner.src) - 1
    sides: list[Side] = []
    at: list[int] = []
    for symbols, inside in ((outer.src, inner.src), (outer.tgt, inner.tgt)):
        place = symbols.index(gap)
        shifted = [s + more if isinstance(s, int) and s > gap else s for s in symbols]
        moved = [s + gap - 1 if isinstance(s, int) else s for s in inside]
        sides.append((*shifted[:place], *moved, *shifted[place + 1 :]))
        at.append(place)
    wider = (len(inner.src) - 1, len(inner.tgt) - 1)
    links = [(i + wider[0] * (i > at[0]), j + wider[1] * (j > at[1])) for i, j in outer.links]
    links += [(i + at[0], j + at[1]) for i, j in inner.links]
    return Rule(sides[0], sides[1], tuple(sorted(links)))


def is_hiero(rule: Rule) -> bool:
    """Whether a piece is a rule with gaps as Hiero has them."""
    gaps = [i for i, symbol in enumerate(rule.src) if isinstance(symbol, int)]
    if not 1 <= len(gaps) <= MAX_GAPS or len(rule.src) > MAX_SYMBOLS or not rule.links:
        return False
    return all(b - a > 1 for a, b in pairwise(gaps))


def phrases(pair: Pair) -> Iterable[tuple[Side, Rule | None]]:
    """Every run of source words, with its translation where the links allow one."""
    for start in range(len(pair.src)):
        for end in range(start + 1, min(start + MAX_WORDS, len(pair.src)) + 1):
            yield tuple(pair.src[start:end]), _phrase(pair, start, end)


def _phrase(pair: Pair, start: int, end: int) -> Rule | None:
    inside = [(i, j) for i, j in pair.links if start <= i < end]
    ends = {i for i, _ in inside}
    if start not in ends or end - 1 not in ends:
        return None  # tight: an unlinked word at the edge belongs to no phrase
    first, last = min(j for _, j in inside), max(j for _, j in inside)
    if any(first <= j <= last and not start <= i < end for i, j in pair.links):
        return None
    links = tuple((i - start, j - first) for i, j in inside)
    return Rule(tuple(pair.src[start:end]), tuple(pair.tgt[first : last + 1]), links)


def lexicon(pairs: Iterable[Pair]) -> Lexicon:
    """Relative frequencies of links, unlinked words counting as linked to nothing."""
    links: Counter[tuple[str | None, str | None]] = Counter()
    for src, tgt, pair_links in pairs:
        links.update((src[i], tgt[j]) for i, j in pair_links)
        linked_src, linked_tgt = {i for i, _ in pair_links}, {j for _, j in pair_links}
        links.update((word, None) for i, word in enumerate(src) if i not in linked_src)
        links.update((None, word) for j, word in enumerate(tgt) if j not in linked_tgt)
    by_src: Counter[str | None] = Counter()
    by_tgt: Counter[str | None] = Counter()
    for (f, e), count in links.items():
        by_src[f] += count
        by_tgt[e] += count
    return Lexicon(
        {(f, e): count / by_src[f] for (f, e), count in links.items()},
        {(f, e): count / by_tgt[e] for (f, e), count in links.items()},
    )


def _lexical(rule: Rule, table: Lexicon) -> tuple[float, float]:
    """MaxLexFgivenE and MaxLexEgivenF."""
    src, tgt = words(rule.src), words(rule.tgt)
    total_f = total_e = 0.0
    for f in src:
        best = max(table.src_given_tgt.get((f, e), 0.0) for e in (*tgt, None))
        total_f += -math.log10(best) if best else _UNSEEN
    for e in tgt:
        best = max(table.tgt_given_src.get((f, e), 0.0) for f in (*src, None))
        total_e += -math.log10(best) if best else _UNSEEN
    return total_f, total_e


def _text(rule: Rule, features: dict[str, float]) -> str:
    src = " ".join(f"[X,{symbol}]" if isinstance(symbol, int) else symbol for symbol in rule.src)
    tgt = " ".join(f"[{symbol}]" if isinstance(symbol, int) else symbol for symbol in rule.tgt)
    # Adding zero turns the -0.0 of a logarithm of one into 0.
    values = " ".join(f"{name}={round(value, 5) + 0.0:.6g}" for name, value in features.items())
    links = " ".join(f"{i}-{j}" for i, j in rule.links)
    return f"[X] ||| {src} ||| {tgt} ||| {values} ||| {links}"


def _sample(seen: list[Rule | None]) -> list[Rule | None]:
    if len(seen) <= MAX_SAMPLES:
        return seen
    return [seen[i * len(seen) // MAX_SAMPLES] for i in range(MAX_SAMPLES)]


def grammar(derivations: Iterable[Node], table: Lexicon) -> list[str]:
    """The rules as lines of cdec's text form, in order of their source sides.

    Longer ones seen only once stay out: they are many, and the shorter ones cover them.
    """
    occurrences: dict[Side, list[Rule | None]] = defaultdict(list)  # None where no rule comes of it
    for derivation in derivations:
        for src, phrase in phrases(spell(derivation)):
            occurrences[src].append(phrase)
        for rule in pieces(derivation)[1]:
            if is_hiero(rule):
                occurrences[rule.src].append(rule)
    lines = []
    for src in sorted(occurrences, key=lambda side: [(isinstance(s, str), str(s)) for s in side]):
        seen = _sample(occurrences[src])
        for rule, c in _counted(seen):
            if c > 1 or len(src) <= (SHORT if 1 in src else 1):
                lines.append(_text(rule, _features(rule, len(seen), c, table)))
    return lines


def _counted(seen: list[Rule | None]) -> Iterable[tuple[Rule, int]]:
    """Rules of one source side and their counts, the commonest first.

    A rule is its two sides; of its alignments the commonest stands for it, as in any phrase table.
    """
    by_tgt: dict[Side, Counter[Rule]] = defaultdict(Counter)
    for rule in seen:
        if rule is not None:
            by_tgt[rule.tgt][rule] += 1
    for _, rules in sorted(by_tgt.items(), key=lambda item: (-item[1].total(), str(item[0]))):
        yield min(rules, key=lambda rule: (-rules[rule], rule.links)), rules.total()


def _features(rule: Rule, n: int, c: int, table: Lexicon) -> dict[str, float]:
    f_given_e, e_given_f = _lexical(rule, table)
    return {
        "EgivenFCoherent": -math.log10(c / n),
        "SampleCountF": math.log10(1 + n),
        "CountEF": math.log10(1 + c),
        "MaxLexFgivenE": f_given_e,
        "MaxLexEgivenF": e_given_f,
        "IsSingletonF": float(n == 1),
        "IsSingletonFE": float(c == 1),
    }
