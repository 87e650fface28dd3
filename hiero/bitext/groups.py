"""Sentence pairs that belong together, such as those with an equal side, and sets drawn without such pairs.

Lines are the same if they have the same words. A group is not transitive: of three pairs, of which the second
has the source of the first and the target of the third, the first and the third are in no group together.
They share no text, and chains of frequent short sentences would join ever more of a bitext.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hiero.bitext.prepare import rows_to_prepare
from hiero.core.arrays import Flags, Ids, Ints, offsets_by_row
from hiero.core.errors import ConfigError, FormatError
from hiero.core.text import open_output, read_lines, split_words

DIGEST = 16  # bytes


def same_lines(lines: Iterable[bytes]) -> Ids:
    """A number for each line, equal for equal lines: from 0, in the order of their first occurrence.

    An empty line equals no other.
    """
    names = (line or b"\n%d" % number for number, line in enumerate(lines))  # no line has a line end
    digests = b"".join(hashlib.blake2b(name, digest_size=DIGEST).digest() for name in names)
    halves = np.frombuffer(digests, np.uint64).reshape(-1, 2)
    _, first, number = np.unique(halves, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[number.reshape(-1)]


def words_of(line: str) -> bytes:
    """The words of a line, for ``same_lines``."""
    return " ".join(split_words(line)).encode()


class PairGroups:
    """The pairs of a bitext that belong together: those with an equal number in one of several arrays.

    numbers  an array for each property, with a number from 0 on for each pair
    """

    def __init__(self, *numbers: Ids) -> None:
        self._number = numbers
        self._order = [np.argsort(number, kind="stable") for number in numbers]
        self._first = [offsets_by_row(number, int(number.max(initial=-1)) + 1) for number in numbers]

    def of(self, pair: int) -> Ints:
        """A pair and those that belong to it, ascending."""
        found = [
            order[first[number[pair]] : first[number[pair] + 1]]
            for number, order, first in zip(self._number, self._order, self._first, strict=True)
        ]
        if all(len(pairs) == 1 for pairs in found):
            return np.array([pair], np.int64)
        return np.unique(np.concatenate(found))


def read_groups(path: str | Path, num_pairs: int, bitext: str | Path) -> PairGroups:
    """Groups from a file with a label for each pair; a pair with an empty line is alone."""
    labels = [line.split() for line in read_lines(path, "labels of groups, one for each sentence pair")]
    if len(labels) != num_pairs:
        expected = f"{num_pairs}, one for each pair of {bitext}"
        raise FormatError(path, 0, found=f"{len(labels)} lines", expected=expected)
    return PairGroups(same_lines(map(b" ".join, labels)))


# ---- sets apart from the rest


class SetAside(NamedTuple):
    """Places of pairs in a bitext: those of each set, those of the rest, and how many are in neither."""

    sets: dict[str, Ints]
    rest: Ints
    dropped: int


def set_aside(source: Ids, target: Ids, usable: Ints, sizes: Mapping[str, int], seed: int) -> SetAside:
    """Draw sets of pairs. No two pairs in sets, and none of a set and the rest, share a source or a target.

    source, target  a number for each pair, equal for equal lines
    usable          the pairs to draw from

    Pairs are drawn without replacement until the sets, in their order, are full; one whose source or target
    was drawn before is passed over. All pairs with a source or a target that was drawn are dropped from the
    rest.
    """
    is_source = np.zeros(int(source.max(initial=-1)) + 1, np.bool_)
    is_target = np.zeros(int(target.max(initial=-1)) + 1, np.bool_)
    order = iter(usable[np.random.Generator(np.random.PCG64(abs(seed))).permutation(len(usable))].tolist())
    sets: dict[str, Ints] = {}
    for name, size in sizes.items():
        chosen: list[int] = []
        while len(chosen) < size:
            pair = next(order, None)
            if pair is None:
                before = sum(map(len, sets.values()))
                left = f"{len(chosen)} pairs that share no source and no target"
                expected = f"at most {left}{f', beside the {before} of sets before' if before else ''}"
                raise ConfigError(f"data: sequester: {name}: found {size}, expected {expected}")
            if not is_source[source[pair]] and not is_target[target[pair]]:
                is_source[source[pair]] = is_target[target[pair]] = True
                chosen.append(pair)
        sets[name] = np.sort(np.array(chosen, np.int64))
    rest = np.flatnonzero(~(is_source[source] | is_target[target]))
    drawn = sum(map(len, sets.values()))
    return SetAside(sets, rest, len(source) - len(rest) - drawn)


def sequester(
    paths: Sequence[str | Path],
    outputs: Mapping[str, Sequence[Path]],
    rest: Sequence[Path],
    sizes: Mapping[str, int],
    seed: int,
) -> SetAside:
    """Write sets of pairs drawn from a bitext, and the rest of it.

    paths    the source, the target, and further files of a line a pair
    outputs  for each set, the files of its sources, targets and numbers of lines, from 1
    rest     the files of the rest, one for each of ``paths``
    """
    (source, has_source), (target, has_target) = (_numbered_side(paths[:2], side) for side in range(2))
    found = set_aside(source, target, np.flatnonzero(has_source & has_target), sizes, seed)
    if not len(found.rest):
        raise ConfigError(f"data: sequester: no pair of {paths[0]} is left for training")
    part_of = np.full(len(source), -1)
    for part, pairs in enumerate([found.rest, *found.sets.values()]):
        part_of[pairs] = part
    # The texts are read again: they may be longer than memory.
    with ExitStack() as stack:
        files = [
            [stack.enter_context(open_output(path)) for path in part] for part in (rest, *outputs.values())
        ]
        for pair, (part, row) in enumerate(zip(part_of.tolist(), rows_to_prepare(paths), strict=True)):
            if part >= 0:
                lines = row if part == 0 else (*row[:2], str(pair + 1))
                for stream, line in zip(files[part], lines, strict=True):
                    stream.write(f"{line}\n".encode())
    return found


def _numbered_side(paths: Sequence[str | Path], side: int) -> tuple[Ids, Flags]:
    """A number for each line of one of several files, equal for equal lines; and whether it has words."""
    has_words: list[bool] = []

    def lines() -> Iterator[bytes]:
        for row in rows_to_prepare(paths):
            words = words_of(row[side])
            has_words.append(bool(words))
            yield words

    return same_lines(lines()), np.array(has_words, np.bool_)
