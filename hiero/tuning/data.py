"""Sentences to learn from and their references, with words numbered by this process."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hiero.core.errors import FormatError
from hiero.core.segments import GRAMMAR, Segment, decode_line, parse_segment, split_words
from hiero.core.symbols import Symbols
from hiero.core.text import read_lines
from hiero.evaluation.bleu import References
from hiero.extraction.extractor import LEAVE_OUT


@dataclass(frozen=True)
class SetFiles:
    """The files of a set.

    leave_one_out  line N, from 0, is pair N of the bitext index, whose own rules are left out
    base           directory for relative paths of grammars in the source; empty: the directory of the model
    """

    source: str
    references: tuple[str, ...]
    leave_one_out: bool = False
    base: str = ""


def read_segments(files: SetFiles) -> list[Segment]:
    """Read the sentences of a set; paths of their grammars are joined with ``files.base``."""
    segments = []
    for number, line in enumerate(read_lines(files.source, "text to translate"), 1):
        segment = parse_segment(decode_line(line, number)[0], files.source, number)
        attributes = {
            key: os.path.join(files.base, value) if GRAMMAR.fullmatch(key) else value
            for key, value in segment.attributes.items()
        }
        if files.leave_one_out:
            attributes[LEAVE_OUT] = str(number - 1)
        segments.append(Segment(segment.words, attributes, segment.reference))
    return segments


class TuningSet:
    """A set in memory: ``segments``, and ``references`` in the same order."""

    def __init__(self, files: SetFiles, symbols: Symbols) -> None:
        self.files = files
        self.segments = read_segments(files)
        sides = [_words(path, symbols) for path in files.references]
        for path, side in zip(files.references, sides, strict=True):
            if len(side) != len(self.segments):
                expected = f"{len(self.segments)}, as in {files.source}"
                raise FormatError(path, 0, found=f"{len(side)} lines", expected=expected)
        # A blank line is a missing reference.
        rows = [[ref for ref in refs if len(ref)] for refs in zip(*sides, strict=True)]
        self.has_reference = np.array([len(row) > 0 for row in rows], np.bool_)
        blank = [np.empty(0, np.int32)]
        self.references = References([row or blank for row in rows])
        self.shortest = self.references.shortest()

    def __len__(self) -> int:
        return len(self.segments)


def _words(path: str, symbols: Symbols) -> list[npt.NDArray[np.int32]]:
    lines = enumerate(read_lines(path, "references"), 1)
    texts = (decode_line(line, number)[0] for number, line in lines)
    return [symbols.words.intern_all(word.encode() for word in split_words(text)) for text in texts]


def shuffled(numbers: Sequence[int], *seed: int) -> list[int]:
    """Return the numbers in an order that depends on the seed alone."""
    generator = np.random.Generator(np.random.PCG64([abs(part) for part in seed]))
    return [numbers[i] for i in generator.permutation(len(numbers)).tolist()]


def shards(numbers: Sequence[int], count: int) -> list[list[int]]:
    """Split into ``count`` consecutive parts of almost equal size."""
    ends = [len(numbers) * part // count for part in range(count + 1)]
    return [list(numbers[a:b]) for a, b in itertools.pairwise(ends)]
