"""Reading of grammars as text: detection of the format, and the reader that those of all formats extend.

A reader scans a file in chunks with kernels (``reader_kernels.py``), converts words, labels and names to
shared ids, and splits the features of the rules into dense columns and sparse rows.
"""

from __future__ import annotations

import itertools
import pkgutil
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Bytes, Floats, Floats32, Ids, Ints, joined_columns, read_only
from hiero.core.errors import FormatError, show
from hiero.core.progress import Progress, SilentProgress
from hiero.core.records import MOST_GAPS
from hiero.core.scan_kernels import powers_of_ten
from hiero.core.symbols import Symbols, Vocabulary, intern_tokens, local_entries, local_vocabulary
from hiero.core.text import Chunk, is_utf8, read_chunks, without_mark
from hiero.grammar import reader_kernels as scanning
from hiero.grammar.config import AUTO, AUTO_FORMAT, FORMATS, GrammarFormat
from hiero.grammar.reader_kernels import ScannedRules, new_scanned_rules, split_features_kernel
from hiero.grammar.rules import Rules, RuleTable

MAX_COLUMNS = 64

_FIRST_LINE = re.compile(rb"[^ \t\r\n][^\n]*")


def read_text_grammar(
    path: str | Path, symbols: Symbols, how: GrammarFormat = AUTO, progress: Progress | None = None
) -> RuleTable:
    """Read all rules of a text grammar, plain or gz."""
    chunks = read_chunks(path, what="a grammar")
    first = list(itertools.islice(chunks, 1))
    name = how.format
    if name == AUTO_FORMAT:
        line = _FIRST_LINE.search(first[0].data) if first else None
        name = recognise(line[0] if line else b"")
    reader = reader_of(name)(path, symbols, **how.settings_of(name))
    return reader.read(itertools.chain(first, chunks), progress)


def recognise(line: bytes) -> str:
    """Recognise the format of a rule table that is read by its first rule."""
    return next((name for name in FORMATS if reader_of(name).recognises(line)), next(iter(FORMATS)))


def reader_of(name: str) -> type[RuleReader]:
    reader: type[RuleReader] = pkgutil.resolve_name(FORMATS[name].reader)
    return reader


# ---- features


def _choose_columns(num_rules: int, name: Ids, limit: int = MAX_COLUMNS) -> Ids:
    """The names that more than half of the rules have: at most the ``limit`` most frequent, by first use."""
    if not len(name):
        return np.zeros(0, np.int32)
    names, first, count = np.unique(name, return_index=True, return_counts=True)
    frequent = np.flatnonzero(count * 2 > num_rules)
    frequent = frequent[np.lexsort((first[frequent], -count[frequent]))[:limit]]
    return names[frequent[np.argsort(first[frequent])]].astype(np.int32)


def split_features(
    first_feature: Ints, name: Ids, value: Floats32, columns: Ids | None
) -> tuple[tuple[int, ...], Floats32, Ints, Ids, Floats32]:
    """Features of rules as (columns, dense, first_sparse, sparse_name, sparse_value), as in ``Rules``.

    Feature k of rule r is at first_feature[r] + k; if a rule has a name twice, the last value counts.
    """
    num_rules = len(first_feature) - 1
    if columns is None:
        columns = _choose_columns(num_rules, name)
    num_names = int(max(name.max(initial=-1), columns.max(initial=-1))) + 1
    column_of = np.full(num_names, -1, np.int64)
    column_of[columns] = np.arange(len(columns))
    num_sparse = int(np.count_nonzero(column_of[name] < 0)) if len(name) else 0
    dense = np.zeros((num_rules, len(columns)), np.float32)
    first_sparse = np.zeros(num_rules + 1, np.int64)
    sparse_name, sparse_value = np.empty(num_sparse, np.int32), np.empty(num_sparse, np.float32)
    place_of = np.full(num_names, -1, np.int64)
    features, out = (read_only(name), read_only(value)), (dense, first_sparse, sparse_name, sparse_value)
    split_features_kernel(read_only(first_feature), *features, column_of, place_of, *out)
    used = first_sparse[-1]
    sparse = read_only(first_sparse), read_only(sparse_name[:used]), read_only(sparse_value[:used])
    return tuple(columns.tolist()), read_only(dense), *sparse


# ---- messages

MESSAGES: dict[int, tuple[str, str]] = {
    scanning.BAD_LHS: ("'[LABEL] |||' at the beginning of a rule", ""),
    scanning.INDENTED: ("'[LABEL] |||' at the beginning of the line", "coarse-to-fine levels are not read"),
    scanning.NO_TARGET: ("'|||' and a target side", ""),
    scanning.EMPTY_SOURCE: ("a source side before it", ""),
    scanning.TOO_MANY_GAPS: ("a word or '|||'", f"a rule has at most {MOST_GAPS} gaps"),
    scanning.INDEX_ORDER: ("source gaps numbered 1, 2 ... in this order", ""),
    scanning.TOO_MANY_SYMBOLS: (f"'|||' after at most {scanning.MAX_SYMBOLS} symbols", ""),
    scanning.NO_SUCH_GAP: ("a gap of the source side", ""),
    scanning.GAP_TWICE: ("each gap of the source side once", ""),
    scanning.LABEL_DIFFERS: ("the label that this gap has on the source side", ""),
    scanning.GAP_MISSING: ("each gap of the source side on the target side as well", ""),
    scanning.BAD_VALUE: ("a number", "features are NAME=NUMBER or NUMBER"),
    scanning.NOT_FINITE: ("a number of at most 3.4e38", ""),
    scanning.NO_NAME: ("a name before '='", ""),
    scanning.TOO_MANY_FEATURES: (f"at most {scanning.MAX_FEATURES} features", ""),
    scanning.BAD_LINK: ("an alignment link i-j", ""),
    scanning.LINK_RANGE: ("a link between positions of the rule, counted from 0", "gaps count as positions"),
    scanning.LINK_TO_GAP: ("a link between two words or between two gaps", ""),
    scanning.NO_VALUE: ("a number after the name of a feature", ""),
    scanning.NO_MOSES_LHS: ("a left-hand side [LABEL] at the end of the side", ""),
    scanning.NOT_LINKED: ("a link i-j in the alignment for every gap", ""),
}


# ---- rules


class _SharedIds:
    """Strings of one kind in a file, and their ids in a shared vocabulary."""

    def __init__(self, path: str | Path, shared: Vocabulary) -> None:
        self.path, self.shared = path, shared
        self.local = local_vocabulary()
        self.known = np.zeros(0, np.int32)

    def __call__(self, chunk: Chunk, data: Bytes, token: Ids) -> Ids:
        """Shared ids of tokens. Invalid UTF-8 is an error at the first line that has it."""
        self.local, ids = intern_tokens(self.local, data, token)
        new = local_entries(self.local, len(self.known))
        # One decoder call for all: no entry contains a newline, so none can complete its neighbour's bytes.
        if not is_utf8(b"\n".join(new)):
            raise self._error(chunk, [entry for entry in new if not is_utf8(entry)])
        self.known = np.concatenate([self.known, self.shared.intern_all(new)])
        shared: Ids = self.known[ids]
        return shared

    def _error(self, chunk: Chunk, bad: list[bytes]) -> FormatError:
        line, entry = next(
            (number, entry)
            for number, line in enumerate(chunk.data.split(b"\n"), chunk.first_line)
            if not is_utf8(line)
            for entry in bad
            if entry in line
        )
        return FormatError(self.path, line, found=str(entry)[1:], expected="UTF-8")


class Part(NamedTuple):
    """The rules of one chunk with shared ids: ``Rules`` before their features are split.

    name and value are those of features first_feature[r] ... first_feature[r + 1] - 1 of rule r; a name is
    an id in Symbols.names, or -1 - k for the k-th unlabelled value.
    """

    lhs: Ids
    first_src: Ints
    src: Ids
    first_tgt: Ints
    tgt: Ids
    first_feature: Ints
    name: Ids
    value: Floats
    first_link: Ints
    link: npt.NDArray[np.int16]


class Scan:
    """State of a chunk while kernels read it field by field."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.data = np.frombuffer(chunk.data, np.uint8)
        line_end = np.flatnonzero(self.data == ord("\n"))
        self.batch: ScannedRules = new_scanned_rules(len(line_end), len(self.data))
        b = self.batch
        self.num_rules: int = scanning.scan_lines_kernel(self.data, line_end, b.line, b.at, b.end)
        self.num_words = self.num_labels = self.num_names = 0
        self.fault: tuple[int, int, int] | None = None

    def run(self, kernel: Callable[..., tuple[int, ...]], *arrays: Any) -> tuple[int, ...]:
        """Run a kernel over the rules that all kernels before could read."""
        status, self.num_rules, first, last, *rest = kernel(self.data, self.num_rules, *arrays)
        if status != scanning.OK:
            self.fault = status, first, last
        return tuple(rest)

    def error(self, path: str | Path) -> FormatError:
        assert self.fault is not None
        status, first, last = self.fault
        expected, hint = MESSAGES[status]
        found = self.chunk.data[first:last].strip(b" \t\r\n")
        shown = show(found) if found else "the end of the line" if first == last else "nothing"
        line = self.chunk.first_line + int(self.batch.line[self.num_rules])
        return FormatError(path, line, found=shown, expected=expected, hint=hint)


class RuleReader:
    """Reads rules, one a line, in cdec's syntax; readers of other formats override parts of it.

    A reader whose format has settings takes them as further arguments, by name.
    """

    count_all = True  # the k-th feature of a rule is PhraseModel_k, even after labelled ones

    @staticmethod
    def recognises(line: bytes) -> bool:
        """Whether a file is of this format and of no other, by its first line that is not blank."""
        return False

    def __init__(self, path: str | Path, symbols: Symbols, owner: str | None = None) -> None:
        self.path, self.symbols, self.owner = path, symbols, owner
        self.words = _SharedIds(path, symbols.words)
        self.labels = _SharedIds(path, symbols.labels)
        self.names = _SharedIds(path, symbols.names)
        self.powers = powers_of_ten()

    def unlabelled(self, k: int) -> bytes:
        """The name of the k-th unlabelled value: that of cdec, or with an owner that of Joshua."""
        return b"PhraseModel_%d" % k if self.owner is None else f"tm_{self.owner}_{k}".encode()

    def scan_sides(self, scan: Scan) -> None:
        b = scan.batch
        scan.run(scanning.scan_lhs_kernel, b.end, b.at, b.lhs, b.label_token)
        side = b.first_src, b.src, b.word_token, b.label_token
        num_words, scan.num_labels = scan.run(scanning.scan_source_kernel, b.end, b.at, *side)
        sides = b.first_src, b.src, b.label_token, num_words, b.first_tgt, b.tgt, b.word_token
        (scan.num_words,) = scan.run(scanning.scan_target_kernel, b.end, b.at, *sides)

    def scan_rest(self, scan: Scan) -> None:
        b = scan.batch
        self.scan_features(scan)
        sides = b.first_src, b.src, b.first_tgt, b.tgt
        scan.run(scanning.scan_rule_links_kernel, b.end, b.at, *sides, b.first_link, b.link)

    def scan_features(self, scan: Scan) -> None:
        b = scan.batch
        out = b.first_feature, b.name, b.value, b.name_token, b.unsure
        scan.num_names, num_unsure = scan.run(
            scanning.scan_features_kernel, self.count_all, b.end, b.at, self.powers, *out
        )
        for at, first, last in b.unsure[:num_unsure].tolist():
            b.value[at] = float(scan.chunk.data[first:last])

    def left_hand_sides(self, scan: Scan, labels: Ids) -> Ids:
        """The left-hand side of each rule; ``labels`` are those of the tokens."""
        lhs: Ids = labels[scan.batch.lhs[: scan.num_rules]]
        return lhs

    def convert(self, scan: Scan) -> None:
        """Change values to the conventions of this package, in place; cdec's need no change."""

    def read_chunk(self, chunk: Chunk) -> Part:
        scan = Scan(chunk)
        self.scan_sides(scan)
        self.scan_rest(scan)
        self.convert(scan)
        if scan.fault is not None:
            raise scan.error(self.path)
        b, num_rules = scan.batch, scan.num_rules
        offsets = (b.first_src, b.first_tgt, b.first_feature, b.first_link)
        first_src, first_tgt, first_feature, first_link = (first[: num_rules + 1].copy() for first in offsets)
        src, tgt = b.src[: first_src[-1]].copy(), b.tgt[: first_tgt[-1]].copy()
        words = self.words(chunk, scan.data, b.word_token[: scan.num_words])
        labels = self.labels(chunk, scan.data, b.label_token[: scan.num_labels])
        for side in (src, tgt):
            scanning.share_ids_kernel(side, words, labels)
        name = b.name[: first_feature[-1]].copy()
        labelled = name >= 0
        name[labelled] = self.names(chunk, scan.data, b.name_token[: scan.num_names])[name[labelled]]
        features = first_feature, name, b.value[: len(name)].copy()
        links = first_link, b.link[: first_link[-1]].copy()
        return Part(self.left_hand_sides(scan, labels), first_src, src, first_tgt, tgt, *features, *links)

    def read(self, chunks: Iterable[Chunk] | None = None, progress: Progress | None = None) -> RuleTable:
        """Read all rules, by default of the file, else of ``chunks``, which are part of it or read ahead."""
        if chunks is None:
            chunks = read_chunks(self.path, what="a grammar")
        progress = progress or SilentProgress()
        progress.begin(None, f"rules of {Path(self.path).name}")
        parts: list[Part] = []
        for chunk in chunks:
            parts.append(self.read_chunk(without_mark(chunk)))
            progress.advance(len(parts[-1].lhs))
        parts = parts or [self.read_chunk(Chunk(b"", 1, 0))]
        return self._table(parts[0] if len(parts) == 1 else Part(*joined_columns(Part._fields, parts)))

    def _table(self, part: Part) -> RuleTable:
        name = part.name
        num_unlabelled = max(0, -int(name.min(initial=0)))
        if num_unlabelled:
            ids = self.symbols.names.intern_all(self.unlabelled(k) for k in range(num_unlabelled))
            name[name < 0] = ids[-1 - name[name < 0]]
        split = split_features(part.first_feature, name, part.value.astype(np.float32), None)
        arrays: list[Any] = [*part[:5], *split[1:], part.first_link, part.link]
        return RuleTable(Rules(*map(read_only, arrays)), split[0])
