"""Features of rules by definition, one rule at a time.

A rule is a ``Rule``; a gap is the pair (label, index). Keys use the codes that ``hiero.features`` documents:
a gap is ``-(4 * label + index) - 1``, and index 3 is used for boundaries.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field

Symbol = int | tuple[int, int]
Key = tuple[int, ...]

START, END, SEPARATOR = -4, -8, -12


@dataclass
class Rule:
    lhs: int
    src: list[Symbol]
    tgt: list[Symbol]
    links: list[tuple[int, int]] = field(default_factory=list)
    dense: list[float] = field(default_factory=list)
    sparse: list[tuple[int, float]] = field(default_factory=list)


def is_word(symbol: Symbol) -> bool:
    return isinstance(symbol, int)


def code(symbol: Symbol) -> int:
    if isinstance(symbol, int):
        return symbol
    label, index = symbol
    return -(4 * label + index) - 1


def bare(symbol: Symbol) -> Symbol:
    return symbol if isinstance(symbol, int) else (symbol[0], 0)


def unlabelled(symbol: Symbol) -> Symbol:
    return symbol if isinstance(symbol, int) else (0, symbol[1])


def bigrams(kind: int, side: list[int]) -> list[Key]:
    padded = [START, *side, END]
    return [(kind, padded[i], padded[i + 1]) for i in range(len(padded) - 1)]


def shape(side: list[Symbol]) -> int:
    """A regular expression by hand: words? gap? words? gap? words?"""
    pattern = ""
    for symbol in side:
        letter = "w" if is_word(symbol) else "g"
        if letter == "g" or not pattern.endswith("w"):
            pattern += letter
    bits = ""
    for slot in "wgwgw":
        if pattern.startswith(slot):
            bits += "1"
            pattern = pattern[1:]
        else:
            bits += "0"
    assert pattern == ""
    return int(bits, 2)


def keys(rule: Rule, templates: set[str]) -> list[Key]:
    """All features, repeated as often as they fire."""
    fired: list[Key] = []
    if "rule_id" in templates:
        src = [code(bare(symbol)) for symbol in rule.src]
        tgt = [code(unlabelled(symbol)) for symbol in rule.tgt]
        fired.append((1, rule.lhs, *src, SEPARATOR, *tgt))
    if "source_bigram" in templates:
        fired += bigrams(2, [code(bare(symbol)) for symbol in rule.src])
    if "target_bigram" in templates:
        fired += bigrams(3, [code(symbol) for symbol in rule.tgt])
    if "shape" in templates:
        fired.append((4, 32 * shape(rule.src) + shape(rule.tgt), 0))
    linked_src = {s for s, _ in rule.links}
    linked_tgt = {t for _, t in rule.links}
    src_words = [symbol for symbol in rule.src if is_word(symbol)]
    inserted = [e for j, e in enumerate(rule.tgt) if is_word(e) and j not in linked_tgt]
    if "word_pair" in templates:
        pairs = [(rule.src[s], rule.tgt[t]) for s, t in rule.links]
        fired += [(5, f, e) for f, e in pairs if is_word(f) and is_word(e)]  # type: ignore[misc]
    if "deletion" in templates:
        fired += [(6, f, 0) for i, f in enumerate(rule.src) if is_word(f) and i not in linked_src]  # type: ignore[misc]
    for e in inserted:
        if "insertion" in templates:
            fired.append((7, e, 0))  # type: ignore[arg-type]
        if "insertion_pair" in templates:
            fired += [(8, f, e) for f in src_words]  # type: ignore[misc]
    if "bigram" in templates:
        fired += [(9, a, b) for a, b in itertools.pairwise(rule.tgt) if is_word(a) and is_word(b)]  # type: ignore[misc]
    return fired


def template_score(rule: Rule, templates: set[str], weights: dict[Key, float]) -> float:
    return sum(weights.get(key, 0.0) for key in keys(rule, templates))


def shared_score(
    rule: Rule,
    templates: set[str],
    weights: dict[Key, float],
    names: dict[Key, str],
    shared: dict[str, float],
) -> float:
    """Weights of shared names, for features without a weight of their own, by their names in cdec."""
    return sum(shared.get(names[key], 0.0) for key in keys(rule, templates) if key not in weights)


def rows(rules: list[Rule], templates: set[str]) -> tuple[list[Key], list[dict[int, float]]]:
    """Features in the order of first appearance, and the counts of each rule."""
    number: dict[Key, int] = {}
    counts = []
    for rule in rules:
        fired = Counter(keys(rule, templates))
        # Within a rule a repeated feature keeps its first place, and a Counter its order of insertion.
        counts.append({number.setdefault(key, len(number)): float(n) for key, n in fired.items()})
    return list(number), counts


def words(rule: Rule) -> tuple[int, int, int]:
    """Target words, source words, gaps."""
    gaps = [symbol for symbol in rule.src if not is_word(symbol)]
    return sum(map(is_word, rule.tgt)), len(rule.src) - len(gaps), len(gaps)


def oovs(rule: Rule, known: list[set[int]]) -> list[int]:
    """Target words that each model does not know; ``known`` holds the words of each."""
    return [sum(is_word(e) and e not in model for e in rule.tgt) for model in known]


def named(
    rule: Rule, columns: list[int], basic: list[int], oov: list[int], known: list[set[int]]
) -> Counter[int]:
    """Named features; ``basic`` are word penalty, source word penalty, arities; -1 for one that is off."""
    features: Counter[int] = Counter()
    for name, value in [*zip(columns, rule.dense, strict=True), *rule.sparse]:
        features[name] += value  # type: ignore[assignment]
    unit = -1 / math.log(10)
    num_tgt, num_src, arity = words(rule)
    features[basic[0]] += num_tgt * unit  # type: ignore[assignment]
    features[basic[1]] += num_src * unit  # type: ignore[assignment]
    features[basic[2 + arity]] += unit  # type: ignore[assignment]
    for name, count in zip(oov, oovs(rule, known), strict=True):
        features[name] += count
    features.pop(-1, None)
    return features


def linear_score(features: Counter[int], weight: list[float]) -> float:
    return sum(weight[name] * value for name, value in features.items())


def span_sizes(rule: Rule, start: int, end: int, splits: dict[int, tuple[int, int]]) -> list[tuple[str, int]]:
    """Names and sizes: the span of the rule and, by index, those of its gaps."""
    sizes = [(f"Span{rule.lhs}", end - start)]
    for symbol in rule.src:
        if not isinstance(symbol, int):
            label, index = symbol
            left, right = splits[index]
            sizes.append((f"Gap{label}:{index}", right - left))
    return sizes


def content_room(rules: list[Rule]) -> int:
    """How many integers the rules consist of, with five lengths and the left-hand side of each."""
    room = 0
    for rule in rules:
        pairs = [*rule.links, *rule.sparse, *enumerate(rule.dense)]
        room += len([rule.lhs, *rule.src, *rule.tgt]) + 4 + 2 * len(pairs)
    return room


def contents(rules: list[Rule]) -> list[int]:
    """Rules numbered so that equal rules have equal numbers."""
    number: dict[str, int] = {}
    return [number.setdefault(repr(rule), len(number)) for rule in rules]
