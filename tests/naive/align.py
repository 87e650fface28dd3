"""Word alignment by definition: dictionaries, sums over all alignments of a sentence pair."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

Pair = tuple[list[int], list[int]]  # a source and a target sentence
Table = dict[tuple[int, int], tuple[float, float]]  # (v, w) -> p(w | v), p(v | w)
Link = tuple[int, int]
SAME = 1 + 1e-9  # equally probable, except for rounding
LEAST = 1e-37


def split_lines(text: bytes) -> list[list[bytes]]:
    """Words of each line."""
    lines = text.split(b"\n")[:-1]
    lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
    return [[word for word in line.replace(b"\t", b" ").split(b" ") if word] for line in lines]


def number_pairs(bitext: list[Pair]) -> list[tuple[int, int]]:
    """Pairs of words that occur together: by source word, then target words as they first appear with it."""
    opposite: dict[int, dict[int, None]] = defaultdict(dict)
    for src, tgt in bitext:
        for v in src:
            opposite[v] |= dict.fromkeys(tgt)
    return [(v, w) for v in sorted(opposite) for w in opposite[v]]


def digamma(x: float) -> float:
    shift = 0.0
    while x < 30.0:
        shift -= 1.0 / x
        x += 1.0
    z = 1.0 / (x * x)
    return shift + math.log(x) - 0.5 / x - z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z / 240)))


def worth(count: float, smoothing: float) -> float:
    return math.exp(digamma(count)) if smoothing > 0 else count


def normalize(count: dict[tuple[int, int], tuple[float, float]], smoothing: float) -> Table:
    """Probabilities from counts; the prior is over the words that occur with the given one."""
    table = {}
    for (v, w), (fwd, rev) in count.items():
        by_src = [each for (a, _), (each, _) in count.items() if a == v]
        by_tgt = [each for (_, b), (_, each) in count.items() if b == w]
        table[v, w] = (share(fwd, by_src, smoothing), share(rev, by_tgt, smoothing))
    return table


def unaligned(
    count: dict[tuple[int, int], tuple[float, float]], num_src: int, num_tgt: int, smoothing: float
) -> tuple[list[float], list[float]]:
    """Probabilities of a pair without counts, by source and by target word."""
    by_src = [[fwd for (a, _), (fwd, _) in count.items() if a == v] for v in range(num_src)]
    by_tgt = [[rev for (_, b), (_, rev) in count.items() if b == w] for w in range(num_tgt)]
    return (
        [share(0.0, counts, smoothing) if counts else 1 / num_tgt for counts in by_src],
        [share(0.0, counts, smoothing) if counts else 1 / num_src for counts in by_tgt],
    )


def find_pairs(whole: list[tuple[int, int]], part: list[tuple[int, int]]) -> list[int]:
    return [whole.index(pair) for pair in part]


def look_up_pairs(
    pairs: list[tuple[int, int]], table: Table, rest: tuple[dict[int, float], dict[int, float]]
) -> list[tuple[float, float]]:
    """p(w | v), p(v | w) of words that a model may know; ``rest`` has all that it knows."""
    known_src, known_tgt = rest
    return [
        table.get((v, w), (known_src.get(v, 1 / len(known_tgt)), known_tgt.get(w, 1 / len(known_src))))
        for v, w in pairs
    ]


def normalize_null(count: list[float], smoothing: float) -> list[float]:
    return [share(each, count, smoothing) for each in count]


def share(count: float, counts: Sequence[float], smoothing: float) -> float:
    total = worth(sum(counts) + smoothing * len(counts), smoothing)
    return max(worth(count + smoothing, smoothing) / max(total, LEAST), LEAST)


def distance(a: int, generating: int, b: int, generated: int) -> float:
    """Distance between positions, counted from 0, of two sentences of these lengths."""
    return abs((a + 1) / generating - (b + 1) / generated)


def prior(a: int, generating: int, b: int, generated: int, tension: float) -> float:
    weights = [math.exp(-tension * distance(k, generating, b, generated)) for k in range(generating)]
    return weights[a] / sum(weights)


def directions(
    pair: Pair, table: Table, null: tuple[list[float], list[float]]
) -> Iterator[tuple[list[list[float]], list[float]]]:
    """p(word | position) [word][position] and p(word | NULL), target given source, then the other."""
    src, tgt = pair
    yield [[table[v, w][0] for v in src] for w in tgt], [null[0][w] for w in tgt]
    yield [[table[v, w][1] for w in tgt] for v in src], [null[1][v] for v in src]


def ibm2_posteriors(
    emit: list[list[float]], from_null: list[float], tension: float, null: float
) -> tuple[list[list[float]], list[float], float]:
    """Posteriors of links and NULL for each word, and the log-likelihood."""
    posterior, rest, likelihood = [], [], 0.0
    for b, (row, other) in enumerate(zip(emit, from_null, strict=True)):
        joint = [(1 - null) * prior(a, len(row), b, len(emit), tension) * each for a, each in enumerate(row)]
        total = sum(joint) + null * other
        posterior.append([each / total for each in joint])
        rest.append(null * other / total)
        likelihood += math.log(total)
    return posterior, rest, likelihood


class Expected:
    """Expected counts of both directions."""

    def __init__(self) -> None:
        self.pair: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.null: list[dict[int, float]] = [defaultdict(float), defaultdict(float)]
        self.likelihood = [0.0, 0.0]
        self.distance = [0.0, 0.0]
        # (direction, source words, target words, position) -> words not from NULL
        self.aligned: dict[tuple[int, int, int, int], float] = defaultdict(float)
        # (direction, positions, position) -> jumps from there; (direction, class) -> jumps
        self.left: dict[tuple[int, int, int], float] = defaultdict(float)
        self.jump: dict[tuple[int, int], float] = defaultdict(float)

    def add_lexical(self, pair: Pair, posterior: list[list[list[float]]], rest: list[list[float]]) -> None:
        src, tgt = pair
        for i, j in itertools.product(range(len(src)), range(len(tgt))):
            self.pair[src[i], tgt[j]][0] += posterior[0][j][i]
            self.pair[src[i], tgt[j]][1] += posterior[1][i][j]
        for direction, words in enumerate((tgt, src)):
            for word, each in zip(words, rest[direction], strict=True):
                self.null[direction][word] += each


def ibm2_expect(
    bitext: list[Pair],
    table: Table,
    null_words: tuple[list[float], list[float]],
    tension: Sequence[float],
    null: float,
) -> Expected:
    out = Expected()
    for pair in bitext:
        if not all(pair):
            continue
        posterior, rest = [], []
        for direction, (emit, from_null) in enumerate(directions(pair, table, null_words)):
            links, others, likelihood = ibm2_posteriors(emit, from_null, tension[direction], null)
            posterior.append(links)
            rest.append(others)
            out.likelihood[direction] += likelihood
            for b, row in enumerate(links):
                out.aligned[direction, len(pair[0]), len(pair[1]), b] += sum(row)
                for a, each in enumerate(row):
                    out.distance[direction] += each * distance(a, len(row), b, len(links))
        out.add_lexical(pair, posterior, rest)
    return out


def best_links(posterior: list[list[float]], rest: list[float]) -> list[int]:
    """For each word the likeliest position, -1 for NULL."""
    found = []
    for row, other in zip(posterior, rest, strict=True):
        best, link = other, -1
        for a, each in enumerate(row):
            if each > best * SAME:
                best, link = each, a
        found.append(link)
    return found


def ibm2_decode(
    pair: Pair,
    table: Table,
    null_words: tuple[list[float], list[float]],
    tension: Sequence[float],
    null: float,
) -> list[list[int]]:
    if not all(pair):
        return [[-1] * len(pair[1]), [-1] * len(pair[0])]
    return [
        best_links(*ibm2_posteriors(emit, from_null, tension[direction], null)[:2])
        for direction, (emit, from_null) in enumerate(directions(pair, table, null_words))
    ]


def tension_sums(
    aligned: dict[tuple[int, int, int, int], float], direction: int, tension: float
) -> tuple[float, float, float]:
    """Sums over words of their mass times log Z, mean and variance of the distance under the prior."""
    log_z, means, variances = 0.0, 0.0, 0.0
    for (of, n, m, b), mass in aligned.items():
        if of != direction:
            continue
        generating, generated = (n, m) if direction == 0 else (m, n)
        far = [distance(a, generating, b, generated) for a in range(generating)]
        weights = [prior(a, generating, b, generated, tension) for a in range(generating)]
        mean = sum(p * d for p, d in zip(weights, far, strict=True))
        log_z += mass * math.log(sum(math.exp(-tension * d) for d in far))
        means += mass * mean
        variances += mass * sum(p * (d - mean) ** 2 for p, d in zip(weights, far, strict=True))
    return log_z, means, variances


def jump_class(jump: int, limit: int) -> int:
    return max(-limit - 1, min(limit + 1, jump)) + limit + 1


def hmm_posteriors(
    emit: list[list[float]],
    from_null: list[float],
    weights: Sequence[float],
    null: float,
    left: dict[int, float] | None = None,
    jumps: dict[int, float] | None = None,
) -> tuple[list[list[float]], list[float], float]:
    """Posteriors by enumeration of all alignments; ``left`` and ``jumps`` are added to, if given."""
    length, n = len(emit), len(emit[0])
    limit = (len(weights) - 3) // 2
    weight = {(p, q): weights[jump_class(q - p, limit)] for p in range(n + 1) for q in range(1, n + 1)}
    leaving = [sum(weight[p, q] for q in range(1, n + 1)) for p in range(n + 1)]
    paths = []
    for path in itertools.product(range(n + 1), repeat=length):  # 0 is NULL
        probability, at, steps = 1.0, 0, []
        for t, q in enumerate(path):
            if q == 0:
                probability *= null * from_null[t]
            else:
                probability *= (1 - null) * emit[t][q - 1] * weight[at, q] / leaving[at]
                steps.append((at, q))
                at = q
        paths.append((probability, path, steps))
    total = sum(probability for probability, _, _ in paths)
    posterior, rest = [[0.0] * n for _ in range(length)], [0.0] * length
    for probability, path, steps in paths:
        for t, q in enumerate(path):
            if q == 0:
                rest[t] += probability / total
            else:
                posterior[t][q - 1] += probability / total
        for at, q in steps:
            if left is not None:
                left[at] = left.get(at, 0.0) + probability / total
            if jumps is not None:
                k = jump_class(q - at, limit)
                jumps[k] = jumps.get(k, 0.0) + probability / total
    return posterior, rest, math.log(total)


def hmm_expect(
    bitext: list[Pair],
    table: Table,
    null_words: tuple[list[float], list[float]],
    weights: Sequence[Sequence[float]],
    null: float,
    agreement: bool,
) -> Expected:
    out = Expected()
    for pair in bitext:
        if not all(pair):
            continue
        posterior, rest = [], []
        for direction, (emit, from_null) in enumerate(directions(pair, table, null_words)):
            left: dict[int, float] = {}
            jumps: dict[int, float] = {}
            links, others, likelihood = hmm_posteriors(emit, from_null, weights[direction], null, left, jumps)
            posterior.append(links)
            rest.append(others)
            out.likelihood[direction] += likelihood
            for p, each in left.items():
                out.left[direction, len(pair[direction]), p] += each
            for k, each in jumps.items():
                out.jump[direction, k] += each
        if agreement:
            src, tgt = pair
            both = [
                [posterior[0][j][i] * posterior[1][i][j] for j in range(len(tgt))] for i in range(len(src))
            ]
            posterior = [[[row[j] for row in both] for j in range(len(tgt))], both]
            rest = [[1 - sum(row) for row in links] for links in posterior]
        out.add_lexical(pair, posterior, rest)
    return out


def hmm_decode(
    pair: Pair,
    table: Table,
    null_words: tuple[list[float], list[float]],
    weights: Sequence[Sequence[float]],
    null: float,
) -> list[list[int]]:
    if not all(pair):
        return [[-1] * len(pair[1]), [-1] * len(pair[0])]
    return [
        best_links(*hmm_posteriors(emit, from_null, weights[direction], null)[:2])
        for direction, (emit, from_null) in enumerate(directions(pair, table, null_words))
    ]


def jump_likelihood(
    left: dict[tuple[int, int, int], float],
    jump: dict[tuple[int, int], float],
    direction: int,
    weights: Sequence[float],
) -> float:
    """Objective of the M-step of the jump weights."""
    limit = (len(weights) - 3) // 2
    value = sum(each * math.log(weights[k]) for (of, k), each in jump.items() if of == direction)
    for (of, n, p), each in left.items():
        if of == direction:
            value -= each * math.log(sum(weights[jump_class(q - p, limit)] for q in range(1, n + 1)))
    return value


def fit_jumps(
    left: dict[tuple[int, int, int], float],
    jump: dict[tuple[int, int], float],
    direction: int,
    weights: Sequence[float],
    rounds: int,
) -> list[float]:
    """Minorise-maximise: each weight becomes its expected jumps over the sum of its chances."""
    limit = (len(weights) - 3) // 2
    found = list(weights)
    for _ in range(rounds):
        chances = [0.0] * len(found)
        for (of, n, p), each in left.items():
            if of != direction:
                continue
            classes = [jump_class(q - p, limit) for q in range(1, n + 1)]
            for k in classes:
                chances[k] += each / sum(found[c] for c in classes)
        found = [
            max(jump.get((direction, k), 0.0) / chance, 1e-12) if chance > 0 else old
            for k, (chance, old) in enumerate(zip(chances, found, strict=True))
        ]
        found = [each / sum(found) for each in found]
    return found


NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def symmetrize(n: int, m: int, fwd: set[Link], rev: set[Link], method: str) -> list[Link]:
    """Koehn's pseudo-code."""
    if method == "none":
        return sorted(fwd)
    if method == "union":
        return sorted(fwd | rev)
    chosen = fwd & rev
    if method == "intersection":
        return sorted(chosen)

    def src_free(i: int) -> bool:
        return all(a != i for a, _ in chosen)

    def tgt_free(j: int) -> bool:
        return all(b != j for _, b in chosen)

    before = -1
    while len(chosen) > before:
        before = len(chosen)
        for i, j in itertools.product(range(n), range(m)):
            if (i, j) in chosen:
                for a, b in NEIGHBOURS:
                    new = (i + a, j + b)
                    if new in fwd | rev and (src_free(new[0]) or tgt_free(new[1])):
                        chosen.add(new)
    for direction in (fwd, rev):
        for i, j in sorted(direction):
            if method == "grow-diag-final" and (src_free(i) or tgt_free(j)):
                chosen.add((i, j))
            if method == "grow-diag-final-and" and src_free(i) and tgt_free(j):
                chosen.add((i, j))
    return sorted(chosen)


def scan_links(text: str) -> list[list[tuple[int, int, bool]]]:
    """Links of each line of valid text, and whether each is only possible."""
    lines = []
    for line in text.split("\n")[:-1]:
        links = []
        for word in line.replace("\r", "").replace("\t", " ").split(" "):
            if word:
                body, _, mark = word.partition(":")
                i, j = body.replace("?", "-").split("-")
                links.append((int(i), int(j), "?" in body or mark in ("p", "P")))
        lines.append(links)
    return lines


def format_links(lines: list[list[Link]]) -> str:
    return "".join(" ".join(f"{i}-{j}" for i, j in line) + "\n" for line in lines)


# ---- the HMM with fertilities


def splitmix(state: int) -> int:
    code = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    code = ((code ^ (code >> 27)) * 0x94D049BB133111EB) % 2**64
    return code ^ (code >> 31)


def mix(code: int, number: int) -> int:
    code = ((code ^ number) * 0xD6E8FEB86659FD93) % 2**64
    return code ^ (code >> 32)


def fertile_joint(
    links: Sequence[int],
    emit: list[list[float]],
    from_null: list[float],
    weights: Sequence[float],
    null: float,
    ratios: list[list[float]],
) -> float:
    """The probability of all links of a sentence, but for a factor; ``ratios`` are those of each position."""
    n, limit = len(emit[0]), (len(weights) - 3) // 2
    joint, at = 1.0, 0
    for t, i in enumerate(links):
        if i < 0:
            joint *= null * from_null[t]
            continue
        leaving = sum(weights[jump_class(q - at, limit)] for q in range(1, n + 1))
        joint *= (1 - null) * emit[t][i] * weights[jump_class(i + 1 - at, limit)] / leaving
        at = i + 1
    for i, ratio in enumerate(ratios):
        for k in range(sum(link == i for link in links)):
            joint *= ratio[min(k, len(ratio) - 1)]
    return joint


def sample_links(
    links: list[int],
    emit: list[list[float]],
    from_null: list[float],
    weights: Sequence[float],
    null: float,
    ratios: list[list[float]],
    rounds: int,
    skipped: int,
    state: int,
) -> tuple[list[int], list[list[float]]]:
    """The links after some rounds, and the mean probability of each, [word][position]."""
    links, n = list(links), len(emit[0])
    mean = [[0.0] * n for _ in emit]
    for k, (t, row) in itertools.product(range(rounds), enumerate(mean)):
        choices = [*range(n), -1]
        joint = [
            fertile_joint([*links[:t], i, *links[t + 1 :]], emit, from_null, weights, null, ratios)
            for i in choices
        ]
        if k >= skipped:
            for i in range(n):
                row[i] += joint[i] / sum(joint) / (rounds - skipped)
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        rest = (splitmix(state) >> 11) / 2**53 * sum(joint)
        upto = itertools.accumulate(joint)
        links[t] = next((i for i, most in zip(choices, upto, strict=True) if rest < most), -1)
    return links, mean


def fertile_posteriors(
    emit: list[list[float]],
    from_null: list[float],
    weights: Sequence[float],
    null: float,
    ratios: list[list[float]],
) -> list[list[float]]:
    """Posteriors of links by enumeration, [word][position]."""
    n, length = len(emit[0]), len(emit)
    paths = list(itertools.product(range(-1, n), repeat=length))
    joint = [fertile_joint(path, emit, from_null, weights, null, ratios) for path in paths]
    return [
        [sum(p for p, path in zip(joint, paths, strict=True) if path[t] == i) / sum(joint) for i in range(n)]
        for t in range(length)
    ]


def without(prob: float, total: float) -> float:
    """A probability estimated from ``total`` counts, one of which was not made."""
    return max(prob * total - 1, LEAST) / max(total - 1, LEAST)
