"""Orientation models in plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

MONOTONE, SWAP, OTHER = 0, 1, 2
BIAS, PAIR, FIRST_WORD, LAST_WORD, AROUND = 0, 1, 2, 3, 4
MASK = (1 << 64) - 1

Link = tuple[int, int]
Phrase = tuple[int, int, int, int]  # source start and end, target start and end
Example = tuple[list[int], int]  # features, class
Weights = list[list[float]]


# ---- phrase pairs


def phrases(num_src: int, num_tgt: int, links: Sequence[Link], max_length: int) -> list[Phrase]:
    """All phrase pairs of a sentence pair, by target span and then source span."""
    found = []
    for tgt_start, tgt_end in itertools.combinations(range(num_tgt + 1), 2):
        for src_start, src_end in itertools.combinations(range(num_src + 1), 2):
            if max(src_end - src_start, tgt_end - tgt_start) > max_length:
                continue
            sides = [(src_start <= i < src_end, tgt_start <= j < tgt_end) for i, j in links]
            if any(a and b for a, b in sides) and all(a == b for a, b in sides):
                found.append((src_start, src_end, tgt_start, tgt_end))
    return found


def orientations(found: Sequence[Phrase], links: Sequence[Link], by_word: bool) -> list[int]:
    """The orientation of each phrase towards the previous target phrase."""
    previous = [(i, i + 1, j, j + 1) for i, j in links] if by_word else list(found)
    labels = []
    for src_start, src_end, tgt_start, _ in found:
        monotone = tgt_start == src_start == 0 or any(
            end == src_start and tgt_end == tgt_start for _, end, _, tgt_end in previous
        )
        swap = any(start == src_end and tgt_end == tgt_start for start, _, _, tgt_end in previous)
        labels.append(OTHER if monotone == swap else MONOTONE if monotone else SWAP)
    return labels


def next_orientations(
    found: Sequence[Phrase], size: tuple[int, int], links: Sequence[Link], by_word: bool
) -> list[int]:
    """The orientation of the phrase after each phrase, seen from it; ``size``: the words of both sides."""
    following = [(i, i + 1, j, j + 1) for i, j in links] if by_word else list(found)
    labels = []
    for src_start, src_end, _, tgt_end in found:
        monotone = (src_end, tgt_end) == size or any(
            start == src_end and tgt_start == tgt_end for start, _, tgt_start, _ in following
        )
        swap = any(end == src_start and tgt_start == tgt_end for _, end, tgt_start, _ in following)
        labels.append(OTHER if monotone == swap else MONOTONE if monotone else SWAP)
    return labels


def key(kind: int, src: int = 0, tgt: int = 0) -> int:
    return kind << 56 | src << 28 | tgt


def features(
    src: Sequence[int],
    tgt: Sequence[int],
    links: Sequence[Link],
    phrase: Phrase,
    window: int,
    edges: bool,
    bag: bool = False,
) -> set[int]:
    """The features of a phrase pair. Words count from 1 in features."""
    src_start, src_end, tgt_start, tgt_end = phrase
    found = {key(BIAS)}
    for i, j in links:
        if src_start <= i < src_end and tgt_start <= j < tgt_end:
            found.add(key(PAIR, src[i] + 1, tgt[j] + 1))
    if edges:
        found |= {key(FIRST_WORD, src[src_start] + 1), key(LAST_WORD, src[src_end - 1] + 1)}
    if bag:
        around = [*src[max(0, src_start - window) : src_start], *src[src_end : src_end + window]]
        return found | {key(AROUND, word + 1) for word in around}
    padded = [0] * window + [word + 1 for word in src] + [0] * window
    for d in range(window):
        found.add(key(AROUND + 2 * d, padded[window + src_start - 1 - d]))
        found.add(key(AROUND + 2 * d + 1, padded[window + src_end + d]))
    return found


def count_keys(keys: Sequence[int]) -> Counter[int]:
    return Counter(keys)


def number_keys(rows: Sequence[Sequence[int]], numbers: dict[int, int]) -> list[list[int]]:
    return [[numbers[one] for one in row if one in numbers] for row in rows]


def fnv(word: bytes) -> int:
    code = 14695981039346656037
    for byte in word:
        code = (code ^ byte) * 1099511628211 & MASK
    return code ^ code >> 29


def chain(code: int, word: int) -> int:
    code = (code ^ word) * 0xD6E8FEB86659FD93 & MASK
    return code ^ code >> 32


def phrase_codes(src: Sequence[bytes], tgt: Sequence[bytes]) -> tuple[int, int]:
    """The hashes of a phrase pair, and of its source side."""
    code = 0x243F6A8885A308D3
    for word in src:
        code = chain(code, fnv(word))
    source = code
    code = chain(code, 0x13198A2E03707344)
    for word in tgt:
        code = chain(code, fnv(word))
    return code, source


# ---- learners


def draws(state: int) -> itertools.count:  # type: ignore[type-arg]
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        code = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        code = (code ^ code >> 27) * 0x94D049BB133111EB & MASK
        yield (code ^ code >> 31) >> 32


def shuffle(active: Sequence[int], seed: int, block: int, pool: int) -> list[int]:
    random = draws(seed)

    def mix(items: list) -> None:
        for n in range(len(items) - 1, 0, -1):
            other = next(random) * (n + 1) >> 32
            items[n], items[other] = items[other], items[n]

    blocks = [list(active[begin : begin + block]) for begin in range(0, len(active), block)]
    mix(blocks)
    order = [one for each in blocks for one in each]
    pools = [order[begin : begin + pool] for begin in range(0, len(order), pool)]
    for each in pools:
        mix(each)
    return [one for each in pools for one in each]


def log_probs(row: Sequence[int], weight: Weights) -> list[float]:
    scores = [sum(weight[f][k] for f in row) for k in range(3)]
    total = math.log(sum(map(math.exp, scores)))
    return [score - total for score in scores]


def primal(examples: Sequence[Example], weight: Weights, variance: float) -> float:
    """The paper's eq. 6."""
    norm = sum(x * x for row in weight for x in row)
    return norm / (2 * variance) - sum(log_probs(row, weight)[label] for row, label in examples)


def dual_weights(examples: Sequence[Example], alpha: Weights, num_features: int, variance: float) -> Weights:
    """The paper's eq. 10."""
    weight = [[0.0] * 3 for _ in range(num_features)]
    for (row, label), shares in zip(examples, alpha, strict=True):
        for f in row:
            for k in range(3):
                weight[f][k] += variance * ((label == k) - shares[k])
    return weight


def dual_objective(examples: Sequence[Example], alpha: Weights, num_features: int, variance: float) -> float:
    """The paper's eq. 9, with w as in eq. 10, so that P + D is 0 at the optimum."""
    weight = dual_weights(examples, alpha, num_features, variance)
    norm = sum(x * x for row in weight for x in row)
    return norm / (2 * variance) + sum(a * math.log(a) for shares in alpha for a in shares)


def sgd(
    examples: Sequence[Example],
    order: Sequence[int],
    weight: Weights,
    rate: float,
    cooling: float,
    decay: float,
    steps: int,
) -> Weights:
    """One step after the other down the gradient of an example's share of P / N."""
    weight = [list(row) for row in weight]
    for step, i in enumerate(order, steps):
        size = min(rate / (1 + cooling * step), 0.5 / decay)
        row, label = examples[i]
        probs = [math.exp(log) for log in log_probs(row, weight)]
        for each in weight:
            for k in range(3):
                each[k] -= size * decay * each[k]
        for f in row:
            for k in range(3):
                weight[f][k] += size * ((label == k) - probs[k])
    return weight


def completed(stored: Sequence[float]) -> list[float]:
    """Exact shares: the largest, the first of several, is 1 less the others."""
    shares = list(stored)
    largest = shares.index(max(shares))
    shares[largest] = 1.0 - sum(shares[:largest] + shares[largest + 1 :])
    return shares


def dual_start(examples: Sequence[Example], start: float) -> Weights:
    return [[1 - start if label == k else start / 2 for k in range(3)] for _, label in examples]


def gradient(row: Sequence[int], shares: Sequence[float], weight: Weights) -> list[float]:
    """The paper's eq. 12 without terms common to all classes."""
    return [math.log(shares[k]) - sum(weight[f][k] for f in row) for k in range(3)]


def dual(
    examples: Sequence[Example],
    order: Sequence[int],
    alpha: Weights,
    num_features: int,
    variance: float,
    shrink: float,
    rate: float,
    trials: int,
) -> tuple[list[int], Weights]:
    """A pass of Algorithm 1, with D computed from scratch each time."""
    alpha = [list(shares) for shares in alpha]
    kept = []
    for i in order:
        row, _ = examples[i]
        slope = gradient(row, alpha[i], dual_weights(examples, alpha, num_features, variance))
        if max(slope) - min(slope) <= shrink:
            continue
        kept.append(i)
        before = dual_objective(examples, alpha, num_features, variance)
        old, step = alpha[i], rate
        for _ in range(trials):
            raised = [old[k] * math.exp(-step * slope[k]) for k in range(3)]
            alpha[i] = [one / sum(raised) for one in raised]
            if dual_objective(examples, alpha, num_features, variance) <= before:
                break
            alpha[i] = old
            step /= 2
    return kept, alpha


def entropy(alpha: Weights) -> float:
    return sum(a * math.log(a) for shares in alpha for a in shares)


def gather_counts(codes: Sequence[int], labels: Sequence[int]) -> dict[int, list[int]]:
    """Counts of each item by class."""
    found: dict[int, list[int]] = {}
    for code, label in zip(codes, labels, strict=True):
        found.setdefault(code, [0, 0, 0])[label] += 1
    return dict(sorted(found.items()))


# ---- models on applied rules

# A rule is (source side, target side, links): words are strings, gaps the numbers 1 and 2.
Symbol = str | int
Rule = tuple[Sequence[Symbol], Sequence[Symbol], Sequence[Link]]


class Block:
    """A part of a target side: its symbols, and the places of the source side that it covers."""

    def __init__(self, tgt: list[int], src: list[int], gap: int = 0) -> None:
        self.tgt, self.src, self.gap = tgt, src, gap


def cut(rule: Rule) -> list[Block]:
    """The blocks of a rule's target side, those of words without links left out."""
    src, tgt, links = rule
    run = [sum(isinstance(symbol, int) for symbol in src[:i]) for i in range(len(src))]
    stretches: list[list[int]] = [[]]
    found: list[Block] = []
    for j, symbol in enumerate(tgt):
        if isinstance(symbol, int):
            stretches += [[j], []]
        else:
            stretches[-1].append(j)
    for stretch in stretches:
        if stretch and isinstance(tgt[stretch[0]], int):
            gap = tgt[stretch[0]]
            assert isinstance(gap, int)
            found.append(Block(stretch, [list(src).index(gap)], gap))
            continue
        ends, waiting = None, []
        for j in stretch:
            here = sorted(i for i, k in links if k == j)
            if not here:
                if ends is None:
                    waiting.append(j)
                else:
                    found[-1].tgt.append(j)
                continue
            if ends == (run[here[0]], run[here[-1]]):
                found[-1].tgt.append(j)
                found[-1].src += here
            else:
                found.append(Block([*waiting, j], here))
                ends, waiting = (run[here[0]], run[here[-1]]), []
    return found


def blocks(rule: Rule) -> list[tuple[Block, int]]:
    """The blocks that have one before them, with their class."""
    src, _, links = rule
    linked = {i for i, _ in links}
    found = []
    parts = cut(rule)
    for before, block in itertools.pairwise(parts):
        label = OTHER
        for first, second, this in ((before, block, MONOTONE), (block, before, SWAP)):
            between = range(max(first.src) + 1, min(second.src))
            free = all(i not in linked and not isinstance(src[i], int) for i in between)
            if max(first.src) < min(second.src) and free:
                label = this
        found.append((block, label))
    return found


def source_span(rule: Rule, block: Block, start: int, gaps: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The span of the sentence that a block covers."""
    if block.gap:
        return gaps[block.gap]
    place, at = [], start
    for symbol in rule[0]:
        place.append(at)
        at = gaps[symbol][1] if isinstance(symbol, int) else at + 1
    return place[min(block.src)], place[max(block.src)] + 1


Feature = tuple[str, ...] | tuple[str, int, str]


def block_features(
    rule: Rule,
    block: Block,
    span: tuple[int, int],
    sentence: Sequence[str],
    window: int,
    edges: bool,
    bag: bool = False,
) -> set[tuple]:  # type: ignore[type-arg]
    """The features of a block: names instead of numbers, "" for the edge of the sentence."""
    src, tgt, links = rule
    found: set[tuple] = {("bias",)}  # type: ignore[type-arg]
    if not block.gap:
        found |= {("pair", src[i], tgt[j]) for i, j in links if j in block.tgt}
    if edges:
        found |= {("first", sentence[span[0]]), ("last", sentence[span[1] - 1])}
    if bag:
        around = [*sentence[max(0, span[0] - window) : span[0]], *sentence[span[1] : span[1] + window]]
        return found | {("before", 0, word) for word in around}  # the kind of features that they share
    padded = [""] * window + list(sentence) + [""] * window
    for d in range(window):
        found.add(("before", d, padded[window + span[0] - 1 - d]))
        found.add(("after", d, padded[window + span[1] + d]))
    return found


Shares = tuple[float, float, float]


def lexical_probs(
    pair: tuple,
    source: tuple,
    counts: dict,
    prior: Sequence[float],
    smoothing: float,  # type: ignore[type-arg]
) -> list[float]:
    """The shares of the classes by relative frequency, smoothed by those of the source side and of all."""
    shares = list(prior)
    for key in (source, pair):
        if key in counts:
            total = sum(counts[key]) + smoothing
            shares = [(counts[key][k] + smoothing * shares[k]) / total for k in range(3)]
    return shares


def block_shares(
    rule: Rule,
    block: Block,
    span: tuple[int, int],
    sentence: Sequence[str],
    counts: dict,  # type: ignore[type-arg]
    prior: Sequence[float],
    smoothing: float,
    max_length: int,
) -> list[float]:
    src, tgt, _ = rule
    if block.gap:
        words = tuple(sentence[slice(*span)])
        known = words if len(words) <= max_length else None
        return lexical_probs(("",), (known,), counts, prior, smoothing)
    covered = src[min(block.src) : max(block.src) + 1]
    if any(isinstance(symbol, int) for symbol in covered):
        return list(prior)
    source = tuple(covered)
    return lexical_probs((source, tuple(tgt[j] for j in block.tgt)), (source,), counts, prior, smoothing)


def edge_features(rule: Rule, start: int, gaps: dict[int, tuple[int, int]], judge) -> list[float]:  # type: ignore[no-untyped-def]
    """log10 of the probabilities of the classes used, and the numbers of their blocks.

    ``judge`` returns the probabilities of a block and its span.
    """
    total, count = [0.0] * 3, [0.0] * 3
    for block, label in blocks(rule):
        total[label] += math.log10(judge(block, source_span(rule, block, start, gaps))[label])
        count[label] += 1
    return [*total, *count]


def next_features(rule: Rule, start: int, gaps: dict[int, tuple[int, int]], judge) -> list[float]:  # type: ignore[no-untyped-def]
    """log10 of the probabilities of the classes of blocks, by the block before each."""
    total, oriented = [0.0] * 3, iter(blocks(rule))
    for before, _ in itertools.pairwise(cut(rule)):
        _, label = next(oriented)
        total[label] += math.log10(judge(before, source_span(rule, before, start, gaps))[label])
    return total


def distortion(rule: Rule, start: int, gaps: dict[int, tuple[int, int]]) -> int:
    """The words jumped over between blocks that follow each other."""
    spans = [source_span(rule, block, start, gaps) for block in cut(rule)]
    return sum(abs(this[0] - before[1]) for before, this in itertools.pairwise(spans))


def orientation_items(
    rule: Rule, start: int, gaps: dict[int, tuple[int, int]], sentence: Sequence[str]
) -> Counter[str]:
    """Names of the classes of blocks, alone and with the words at their edges."""
    found: Counter[str] = Counter()
    for block, label in blocks(rule):
        low, high = source_span(rule, block, start, gaps)
        edges = [("src.first", sentence[low]), ("src.last", sentence[high - 1])]
        if not block.gap:
            edges += [("tgt.first", str(rule[1][min(block.tgt)])), ("tgt.last", str(rule[1][max(block.tgt)]))]
        name = "LO:" + {MONOTONE: "monotone", SWAP: "swap", OTHER: "other"}[label]
        found.update([name, *(f"{name}:{edge}:{word}" for edge, word in edges)])
    return found


# ---- gaps whose words are known


def gap_labels(rule: Rule) -> list[int]:
    """The classes of the blocks of gap 1 and gap 2, and of the blocks after them, or -1."""
    found = {block.gap: label for block, label in blocks(rule) if block.gap}
    after = {b.gap: label for b, (_, label) in zip(cut(rule), blocks(rule), strict=False) if b.gap}
    return [found.get(1, -1), found.get(2, -1), after.get(1, -1), after.get(2, -1)]


def rule_pairs(rule: Rule) -> set[tuple[Symbol, Symbol]]:
    """The pairs of words that are linked, each once."""
    return {(rule[0][i], rule[1][j]) for i, j in rule[2]}


def gap_rows(rule: Rule, gains: Sequence[Sequence[float]]) -> Counter[int]:
    """Changes of features; ``gains`` of the fillers of gaps 1 and 2: of two models, each ahead, too."""
    found: Counter[int] = Counter()
    one, two, *after = gap_labels(rule)
    for label, gain in zip((one, two), gains, strict=True):
        for model in (0, 6) if label >= 0 else ():
            found[model + label] += gain[model + label]  # type: ignore[assignment]
    for label, gain in zip(after, gains, strict=True):
        for model in (3, 9) if label >= 0 else ():
            found[model + label] += gain[model + label]  # type: ignore[assignment]
    return found


def filler(rule: Rule, tails: Sequence[tuple[list[str], list]]) -> tuple[list[str], list]:  # type: ignore[type-arg]
    """The translation of a node and its pairs of words, given its best derivation's rule and tails."""
    words: list[str] = []
    for symbol in rule[1]:
        words += tails[symbol - 1][0] if isinstance(symbol, int) else [symbol]
    return words, [*rule_pairs(rule), *(pair for _, pairs in tails for pair in pairs)]
