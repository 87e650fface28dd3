"""Splitting of compounds by enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence


def splits(word: str, fillers: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Every way to cut a word into parts with fillers after all but the last."""
    yield [(word, "")]
    for end in range(1, len(word)):
        for filler in ("", *fillers):
            rest = word[end + len(filler) :]
            if word.startswith(filler, end) and rest:
                yield from ([(word[:end], filler), *more] for more in splits(rest, fillers))


def ways(
    word: str,
    counts: Mapping[str, int],
    min_length: int,
    min_count: int,
    fillers: Sequence[str],
    most_parts: int,
) -> list[tuple[float, tuple[tuple[str, str], ...]]]:
    """All ways to write a word, with the geometric means of frequencies, the best first."""
    found = []
    for parts in splits(word, fillers):
        numbers = [counts.get(part, 0) for part, _ in parts]
        if len(parts) > 1:
            short = any(len(part) < min_length for part, _ in parts)
            if short or min(numbers) < min_count or len(parts) > most_parts:
                continue
        score = math.prod(numbers) ** (1 / len(numbers))
        found.append((score, tuple(parts)))
    return sorted(found, key=lambda way: -way[0])
