"""Learning to rank: dictionaries of weights and of features, one pair at a time."""

from __future__ import annotations

import math

Sparse = dict[int, float]
Pair = tuple[int, int]

MASK = 2**64 - 1


# ---- pairs of translations


def level_pairs(gold: list[float], high: int, low: int) -> list[Pair]:
    """The best ``high`` with the middle, the best with the last ``low``, the middle with the last."""
    order = sorted(range(len(gold)), key=lambda i: -gold[i])
    best, middle, last = order[:high], order[high : len(gold) - low], order[len(gold) - low :]
    between = [(best, middle), (best, last), (middle, last)]
    return [(a, b) for better, worse in between for a in better for b in worse if gold[a] > gold[b]]


def scrambled(number: int) -> int:
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & MASK
    return number ^ (number >> 31)


def drawn(stream: int, number: int) -> float:
    return (scrambled((stream + (number + 1) * 0x9E3779B97F4A7C15) & MASK) >> 11) / 2**53


def drawn_pairs(
    gold: list[float],
    length: list[int],
    key: tuple[int, int, int],
    draws: int,
    threshold: float,
    most_apart: float,
    soft: bool,
) -> list[tuple[float, int, int]]:
    """Difference, better and worse of the pairs accepted, as drawn."""
    stream = 0
    for part in key:
        stream = scrambled(stream ^ part)
    pairs = []
    for draw in range(draws):
        a, b = (int(drawn(stream, 2 * draw + side) * len(gold)) for side in (0, 1))
        if (
            gold[a] == gold[b]
            or abs(gold[a] - gold[b]) < threshold
            or abs(length[a] - length[b]) > most_apart
        ):
            continue
        better, worse = (a, b) if gold[a] > gold[b] else (b, a)
        pairs.append((gold[better] - gold[worse], better, worse))
    if not soft:
        return pairs
    mean = sum(pair[0] for pair in pairs) / max(len(pairs), 1)
    chance = [1 / (1 + math.exp(-mean - pair[0])) for pair in pairs]
    return [pair for i, pair in enumerate(pairs) if drawn(stream, 2 * draws + i) < chance[i]]


# ---- ranking


def dot(weight: Sparse, features: Sparse) -> float:
    return sum(weight.get(feature, 0.0) * value for feature, value in features.items())


def difference(better: Sparse, worse: Sparse) -> Sparse:
    found = {f: better.get(f, 0.0) - worse.get(f, 0.0) for f in better.keys() | worse.keys()}
    return {feature: value for feature, value in found.items() if value != 0}


def margin_of(weight: Sparse, better: Sparse, worse: Sparse) -> float:
    """Score of the better one less that of the worse one; 0 if it may be rounding."""
    ahead = dot(weight, difference(better, worse))
    return 0.0 if abs(ahead) <= 1e-12 * (abs(dot(weight, better)) + abs(dot(weight, worse))) else ahead


def loss_of(kind: str, margin: float, target: float) -> float:
    if kind == "perceptron":
        return max(0.0, -margin)
    if kind == "margin":
        return max(0.0, target - margin)
    return math.log(1 + math.exp(-margin))


def slope_of(kind: str, margin: float, target: float) -> float:
    """Increase of the loss when the margin shrinks."""
    if kind == "perceptron":
        return float(margin <= 0)
    if kind == "margin":
        return float(margin < target)
    return 1 / (1 + math.exp(margin))


def rank(
    rows: list[Sparse],
    pairs: list[Pair],
    margins: list[float],
    pair_weights: list[float],
    kind: str,
    rate: float,
    weight: Sparse,
) -> tuple[float, int]:
    """Algorithm 1 of Simianer, Riezler and Dyer (2012), its inner loop; changes ``weight``."""
    loss, steps = 0.0, 0
    for (better, worse), target, strength in zip(pairs, margins, pair_weights, strict=True):
        margin = margin_of(weight, rows[better], rows[worse])
        loss += strength * loss_of(kind, margin, target)
        slope = slope_of(kind, margin, target)
        steps += slope > 0
        for feature, value in difference(rows[better], rows[worse]).items():
            weight[feature] = weight.get(feature, 0.0) + rate * strength * slope * value
    return loss, steps


def gradient(
    rows: list[Sparse],
    pairs: list[Pair],
    margins: list[float],
    pair_weights: list[float],
    kind: str,
    weight: Sparse,
) -> tuple[float, Sparse]:
    """The summed loss of all pairs, and its gradient."""
    loss = 0.0
    total: Sparse = {}
    for (better, worse), target, strength in zip(pairs, margins, pair_weights, strict=True):
        margin = margin_of(weight, rows[better], rows[worse])
        loss += strength * loss_of(kind, margin, target)
        for feature, value in difference(rows[better], rows[worse]).items():
            total[feature] = total.get(feature, 0.0) - strength * slope_of(kind, margin, target) * value
    return loss, total


def shift(weight: Sparse, step: Sparse, factor: float) -> None:
    for feature, value in step.items():
        weight[feature] = weight.get(feature, 0.0) + factor * value


# ---- AdaGrad


def soft(weight: float, by: float) -> float:
    return math.copysign(max(0.0, abs(weight) - by), weight)


class Eager:
    """AdaGrad and FOBOS as in Green et al. (2013): every step updates every weight."""

    def __init__(self, weight: Sparse, rate: float, l1: float, epsilon: float, adaptive: bool) -> None:
        self.weight, self.rate, self.l1 = weight, rate, l1
        self.epsilon, self.adaptive = epsilon, adaptive
        self.square: Sparse = {}

    def rate_of(self, feature: int) -> float:
        if not self.adaptive:
            return self.rate
        square = self.square.get(feature, 0.0)
        return self.rate / (math.sqrt(square) + self.epsilon) if square else 0.0

    def step(self, gradient: Sparse) -> None:
        for feature, value in gradient.items():
            self.square[feature] = self.square.get(feature, 0.0) + value * value
            before = self.weight.get(feature, 0.0)
            self.weight[feature] = before - self.rate_of(feature) * value
        for feature in self.weight:
            self.weight[feature] = soft(self.weight[feature], self.rate_of(feature) * self.l1)


# ---- MIRA


def mira(weight: Sparse, oracle: Sparse, prediction: Sparse, cost: float, longest: float) -> float:
    """Lines 6 to 12 of Algorithm 1 of Eidelman (2012); changes ``weight``, returns the loss."""
    loss = dot(weight, prediction) - dot(weight, oracle) + cost
    moved = difference(oracle, prediction)
    if loss <= 0:
        return 0.0
    if moved:
        shift(weight, moved, min(longest, loss / sum(value**2 for value in moved.values())))
    return loss


def strategy(score: list[float], gold: list[float], mu: float, nu: float) -> int:
    """The first with the highest mu * score + nu * gold: Algorithms 2 and 3."""
    worth = [mu * s + nu * g for s, g in zip(score, gold, strict=True)]
    return worth.index(max(worth))
