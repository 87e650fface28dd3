"""Byte pair encoding of words (Sennrich, Haddow and Birch 2016), for the network of ``transformer.py``.

All units of a word except the last end in ``@@``.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

GOES_ON = "@@"
END = "\0"  # of a word, within units

Pair = tuple[str, str]


def learn_merges(lines: Iterable[str], number: int) -> list[Pair]:
    """The merges that are most frequent at each step; of equally frequent ones, the first in order."""
    counts = Counter(word for line in lines for word in line.split())
    words = [split(word) for word in counts]
    times = list(counts.values())
    pairs: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for k, word in enumerate(words):
        for pair in itertools.pairwise(word):
            pairs[pair] += times[k]
            places[pair].add(k)
    # Entries are out of date if the count has changed since; a decreased one comes again when it is found.
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    merges: list[Pair] = []
    while len(merges) < number and heap:
        count, best = heapq.heappop(heap)
        if -count != pairs[best]:
            if pairs[best] > 0:
                heapq.heappush(heap, (-pairs[best], best))
            continue
        if pairs[best] < 2:
            break
        merges.append(best)
        grown = set()
        for k in sorted(places.pop(best)):
            for pair in itertools.pairwise(words[k]):
                pairs[pair] -= times[k]
            words[k] = merged(words[k], best)
            for pair in itertools.pairwise(words[k]):
                pairs[pair] += times[k]
                places[pair].add(k)
                grown.add(pair)
        for pair in grown:
            heapq.heappush(heap, (-pairs[pair], pair))
    return merges


def split(word: str) -> list[str]:
    """The characters of a word, of which the last has the mark of the end."""
    return [*word[:-1], word[-1] + END]


def merged(word: Sequence[str], pair: Pair) -> list[str]:
    """The units of a word after one merge, from the left."""
    units: list[str] = []
    at = 0
    while at < len(word):
        if at + 1 < len(word) and (word[at], word[at + 1]) == pair:
            units.append(word[at] + word[at + 1])
            at += 2
        else:
            units.append(word[at])
            at += 1
    return units


class Encoder:
    """Splits words into units by merges; words are remembered.

    ``seen``: units that are kept, if it is set; others, which training text has only as parts of larger
    units, are divided again, down to units that it has or to characters. Words encoded before stay.
    """

    def __init__(self, merges: Sequence[Pair]) -> None:
        self.rank = {tuple(pair): k for k, pair in enumerate(merges)}
        self._parts = {one + other: (one, other) for one, other in merges}
        self.seen: Collection[str] | None = None
        self._known: dict[str, list[str]] = {}

    def encode(self, line: str) -> list[str]:
        """The units of a line."""
        return [unit for word in line.split() for unit in self._units(word)]

    def _units(self, word: str) -> list[str]:
        if word not in self._known:
            units = split(word)
            while len(units) > 1:
                pairs = itertools.pairwise(units)
                best = min(pairs, key=lambda pair: self.rank.get(pair, len(self.rank)))
                if best not in self.rank:
                    break
                units = merged(units, best)
            self._known[word] = [part for unit in units for part in self._divided(unit)]
        return self._known[word]

    def _divided(self, unit: str) -> list[str]:
        text = unit[:-1] if unit.endswith(END) else f"{unit}{GOES_ON}"
        if self.seen is None or text in self.seen or unit not in self._parts:
            return [text]
        return [part for half in self._parts[unit] for part in self._divided(half)]


def decode(units: Iterable[str]) -> str:
    """The line of some units."""
    return " ".join(units).replace(f"{GOES_ON} ", "").removesuffix(GOES_ON)
