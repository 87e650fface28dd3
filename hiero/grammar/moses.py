"""Moses' tables: of rules, ``[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 0``, and of
phrases, ``ein haus ||| a house ||| 0.5 0.2 0.4 0.1 ||| 0-0 1-1 ||| 4 5 2``, which have no gaps and no labels.

A gap is a pair of a source and a target label, of which the second is its category here; the left-hand side
is the last symbol of the target side. The alignment tells which gaps of both sides belong together. Scores
are probabilities, by default converted to cdec's -log10 p. Sparse features, the sixth field, are pairs ``name
value``, read unchanged; counts and properties are not read.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from hiero.core.arrays import Ids
from hiero.core.errors import FormatError
from hiero.core.symbols import Symbols
from hiero.grammar.moses_kernels import (
    scan_moses_links_kernel,
    scan_phrase_kernel,
    scan_side_kernel,
    scan_sparse_kernel,
)
from hiero.grammar.reader import RuleReader, Scan

ZERO_COST = 99.0  # for -log10 0, as written by cdec's extractor
LOWEST_SCORE = -100.0  # for ln 0, as in Moses
CATEGORY = b"X"  # of phrases
_LABEL = re.compile(rb"\[[^\[\]]+\]")
_NUMBERS = re.compile(rb"[ \t]*(?:[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?[ \t]*)+")


class MosesReader(RuleReader):
    """Reads rule tables.

    ``scale`` is the conversion of a score p: to -log10 p, at most 99 (``cdec``), to ln p, at least -100
    (``moses``), or none (``keep``).
    """

    def __init__(
        self, path: str | Path, symbols: Symbols, scale: str = "cdec", owner: str | None = None
    ) -> None:
        super().__init__(path, symbols, owner)
        self.scale = scale

    @staticmethod
    def recognises(line: bytes) -> bool:
        """Whether the rule begins with a source side and its label, and not with a left-hand side."""
        first_field = line.partition(b"|||")[0].strip(b" \t\r")
        last = re.split(rb"[ \t]", first_field)[-1]
        return first_field != last and last.startswith(b"[") and last.endswith(b"]")

    def scan_sides(self, scan: Scan) -> None:
        b = scan.batch
        # The first label tokens are reserved for the left-hand sides, which are read with the target sides.
        b.lhs[:] = np.arange(len(b.lhs))
        num_words, num_labels = 0, scan.num_rules
        for source, first, symbol in ((True, b.first_src, b.src), (False, b.first_tgt, b.tgt)):
            out = first, symbol, b.word_token, b.label_token
            num_words, num_labels = scan.run(
                scan_side_kernel, source, b.end, b.at, num_words, num_labels, *out
            )
        scan.num_words, scan.num_labels = num_words, num_labels

    def scan_rest(self, scan: Scan) -> None:
        b = scan.batch
        self.scan_features(scan)
        sides = b.first_src, b.src, b.first_tgt, b.tgt, b.label_token
        scan.run(scan_moses_links_kernel, b.end, b.at, *sides, b.first_link, b.link)
        self._scan_sparse(scan)

    def _scan_sparse(self, scan: Scan) -> None:
        b, num_rules = scan.batch, scan.num_rules
        most = len(b.value)
        count = np.zeros(num_rules, np.int64)
        value, unsure = np.empty(most, np.float64), np.empty((most, 3), np.int32)
        out = count, b.name_token[scan.num_names :], value, unsure
        num_pairs, num_unsure = scan.run(scan_sparse_kernel, b.end, b.at, self.powers, *out)
        if scan.fault is not None or num_pairs == 0:
            return
        for at, first, last in unsure[:num_unsure].tolist():
            value[at] = float(scan.chunk.data[first:last])
        # Scores and sparse features of a rule, one after the other.
        first_score = b.first_feature[: num_rules + 1]
        pairs_before = np.cumsum(count) - count
        score_at = np.arange(first_score[-1]) + np.repeat(pairs_before, np.diff(first_score))
        pair_at = np.arange(num_pairs) + np.repeat(first_score[1:], count)
        num_features = first_score[-1] + num_pairs
        name, all_value = np.empty(num_features, np.int32), np.empty(num_features)
        name[score_at], name[pair_at] = b.name[: first_score[-1]], scan.num_names + np.arange(num_pairs)
        all_value[score_at], all_value[pair_at] = b.value[: first_score[-1]], value[:num_pairs]
        b.first_feature[1 : num_rules + 1] += np.cumsum(count)
        scan.batch = b._replace(name=name, value=all_value)
        scan.num_names += num_pairs

    def convert(self, scan: Scan) -> None:
        if self.scale == "keep":
            return
        b = scan.batch
        used = b.first_feature[scan.num_rules]
        score = np.flatnonzero(b.name[:used] < 0)
        value = b.value[score]
        if (value < 0).any():
            bad = score[np.argmax(value < 0)]
            rule = np.searchsorted(b.first_feature[: scan.num_rules + 1], bad, side="right") - 1
            line = scan.chunk.first_line + int(b.line[rule])
            hint = "use the scale 'keep' for scores that are no probabilities"
            found = f"{b.value[bad]:g}"
            raise FormatError(self.path, line, found=found, expected="a probability", hint=hint)
        with np.errstate(divide="ignore"):
            if self.scale == "cdec":
                b.value[score] = np.minimum(-np.log10(value), ZERO_COST)
            else:
                b.value[score] = np.maximum(np.log(value), LOWEST_SCORE)


class PhraseTableReader(MosesReader):
    """Reads phrase tables; the category of phrases is X."""

    @staticmethod
    def recognises(line: bytes) -> bool:
        """Whether the third field is numbers and neither label of a rule is there."""
        fields = line.rstrip(b"\r\n").split(b"|||")
        if len(fields) < 3 or not _NUMBERS.fullmatch(fields[2]):
            return False
        sides = [field.split() for field in fields[:2]]
        return all(words and not _LABEL.fullmatch(words[-1]) for words in sides)

    def scan_sides(self, scan: Scan) -> None:
        b = scan.batch
        num_words = 0
        for source, first, symbol in ((True, b.first_src, b.src), (False, b.first_tgt, b.tgt)):
            (num_words,) = scan.run(
                scan_phrase_kernel, source, b.end, b.at, num_words, first, symbol, b.word_token
            )
        scan.num_words = num_words

    def left_hand_sides(self, scan: Scan, labels: Ids) -> Ids:
        return np.full(scan.num_rules, self.symbols.labels.intern(CATEGORY), np.int32)
