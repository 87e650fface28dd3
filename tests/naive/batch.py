"""Batch learning by definition. A candidate is (words, {feature: value}, statistics of BLEU)."""

import itertools
import math
from fractions import Fraction


def merged(lists):
    """The different candidates of each sentence in order of arrival; ``lists`` has (sentence, candidates)."""
    found = {}
    for sentence, candidates in lists:
        mine = found.setdefault(sentence, [])
        for candidate in candidates:
            if all(candidate[:2] != other[:2] for other in mine):
                mine.append(candidate)
    return dict(sorted(found.items()))


def score(candidate, weight):
    return sum(value * weight[feature] for feature, value in candidate[1].items())


def best(candidates, weight):
    """The place of the best, the first of equal ones."""
    scores = [score(candidate, weight) for candidate in candidates]
    return scores.index(max(scores))


def num_sentences(sentences, feature):
    """The number of lists with a candidate that has the feature."""
    return sum(any(feature in features for _, features, _ in candidates) for candidates in sentences)


def added(rows):
    return [sum(column) for column in zip(*rows, strict=True)]


def floor_bleu(stats):
    """BLEU with 0.1 for no match, without the orders that are longer than the text; 0 without any match."""
    order = (len(stats) - 2) // 2
    matches, totals = stats[2 : 2 + order], stats[2 + order :]
    if not any(matches):
        return 0.0
    used = [(match or 0.1) / total for match, total in zip(matches, totals, strict=True) if total > 0]
    return math.exp(min(0, 1 - stats[1] / stats[0])) * math.prod(used) ** (1 / len(used))


def corpus_floor_bleu(sentences, weight):
    """``floor_bleu`` of the best candidates; ``sentences`` is a list of lists of candidates."""
    return floor_bleu(added(mine[best(mine, weight)][2] for mine in sentences))


def difference(better, worse):
    features = sorted({*better[1], *worse[1]})
    values = {feature: better[1].get(feature, 0.0) - worse[1].get(feature, 0.0) for feature in features}
    return {feature: value for feature, value in values.items() if value}


def logistic_loss(differences, weight):
    """(loss, gradient, errors) of a list of dictionaries."""
    loss, gradient, errors = 0.0, [0.0] * len(weight), 0
    for row in differences:
        margin = sum(value * weight[feature] for feature, value in row.items())
        loss += math.log(1 + math.exp(-margin))
        errors += margin <= 0
        for feature, value in row.items():
            gradient[feature] -= value / (1 + math.exp(margin))
    return loss, gradient, errors


def logistic_curvature(differences, weight):
    """The matrix of second derivatives of the loss, as a list of rows."""
    matrix = [[0.0] * len(weight) for _ in weight]
    for row in differences:
        chance = 1 / (1 + math.exp(-sum(value * weight[feature] for feature, value in row.items())))
        for a, x in row.items():
            for b, y in row.items():
                matrix[a][b] += chance * (1 - chance) * x * y
    return matrix


def dense(candidates, features):
    return [[candidate[1].get(feature, 0.0) for feature in features] for candidate in candidates]


def envelope(lines):
    """The upper envelope of lines (intercept, slope), exactly: (start, place) of each, from -inf on."""
    exact = [(Fraction(a), Fraction(b)) for a, b in lines]
    crossings = {
        (a - c) / (d - b) for a, b in exact for c, d in exact if b != d
    }  # crossings of all pairs of lines; between them one line leads, the first of equal ones
    ends = sorted(crossings)
    inside = [(x + y) / 2 for x, y in itertools.pairwise(ends)]
    between = [ends[0] - 1, *inside, ends[-1] + 1] if ends else [Fraction(0)]
    found = []
    for start, x in zip([-math.inf, *ends], between, strict=True):
        values = [a + b * x for a, b in exact]
        place = values.index(max(values))
        if not found or found[-1][1] != place:
            found.append((float(start), place))
    return found


def statistics_at(envelopes, place):
    """Summed statistics of the leading candidates at a place."""
    return added([[stats for start, stats in lines if start <= place][-1] for lines in envelopes])


def bleu_at(envelopes, place):
    """Their BLEU."""
    return floor_bleu(statistics_at(envelopes, place))


def has_near_ties(envelopes, low, high):
    """Whether two places have statistics that differ, and BLEUs that differ by rounding at most."""
    inner = {start for lines in envelopes for start, _ in lines if low < start < high}
    totals = {tuple(statistics_at(envelopes, place)) for place in [low, *inner]}
    scores = sorted(floor_bleu(list(total)) for total in totals)
    return any(y - x < 1e-12 for x, y in itertools.pairwise(scores))


def best_step(envelopes, low, high):
    """The middle of the widest interval with the best BLEU; envelopes of (start, statistics) by sentence."""
    inner = {start for lines in envelopes for start, _ in lines if low < start < high}
    places = [low, *sorted(inner), high]
    intervals = []
    for begin, end in itertools.pairwise(places):
        leading = [[stats for start, stats in lines if start <= begin][-1] for lines in envelopes]
        bleu = floor_bleu(added(leading))
        if intervals and intervals[-1][0] == bleu:
            begin = intervals.pop()[1]
        intervals.append((bleu, begin, end))
    bleu, begin, end = max(intervals, key=lambda interval: (interval[0], interval[2] - interval[1]))
    return (begin + end) / 2, bleu


def kbmira(sentences, weight, visits, aggressiveness, decay, from_model):
    """The average of the weights after each sentence, epoch by epoch; ``visits`` has an order for each."""
    weight, memory, sums, seen, averages = list(weight), [1.0] * len(sentences[0][0][2]), [], 0, []
    for visit in visits:
        for s in visit:
            scores = [score(candidate, weight) for candidate in sentences[s]]
            together = [added([memory, candidate[2]]) for candidate in sentences[s]]
            gains = [floor_bleu(stats) * stats[1] for stats in together]
            hopes = [a + b for a, b in zip(scores, gains, strict=True)]
            fears = [a - b for a, b in zip(scores, gains, strict=True)]
            hope, fear = hopes.index(max(hopes)), fears.index(max(fears))
            change = difference(sentences[s][hope], sentences[s][fear])
            loss = gains[hope] - gains[fear] - (scores[hope] - scores[fear])
            if gains[hope] > gains[fear] and loss > 0 and change:
                step = min(aggressiveness, loss / sum(value**2 for value in change.values()))
                for feature, value in change.items():
                    weight[feature] += step * value
            chosen = scores.index(max(scores)) if from_model else hope
            memory = added([[decay * count for count in memory], sentences[s][chosen][2]])
            sums = added([sums, weight]) if sums else list(weight)
            seen += 1
        averages.append([total / seen for total in sums])
    return averages
