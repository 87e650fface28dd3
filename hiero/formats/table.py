# mypy: allow-untyped-calls
"""From what a scanner found to a RuleTable: shared ids, dense and sparse features, messages for the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hiero._jit import kernel
from hiero.errors import FormatError, show
from hiero.formats import rulescan
from hiero.formats.rulescan import RuleBatch, rule_batch
from hiero.formats.scan import intern_tokens, local_entries, local_vocabulary, powers_of_ten
from hiero.formats.text import Chunk, read_chunks
from hiero.grammar import Rules, RuleTable
from hiero.symbols import Symbols, Vocabulary, read_only

MAX_COLUMNS = 64

MESSAGES: dict[int, tuple[str, str]] = {
    rulescan.BAD_LHS: ("'[LABEL] |||' at the beginning of a rule", ""),
    rulescan.INDENTED: ("'[LABEL] |||' at the beginning of the line", "coarse-to-fine levels are not read"),
    rulescan.NO_TARGET: ("'|||' and a target side", ""),
    rulescan.EMPTY_SOURCE: ("a source side before the second '|||'", ""),
    rulescan.TOO_MANY_GAPS: ("a word or '|||'", "a rule has at most two gaps"),
    rulescan.INDEX_ORDER: ("source gaps numbered 1, 2 in this order", ""),
    rulescan.TOO_MANY_SYMBOLS: (f"'|||' after at most {rulescan.MAX_SYMBOLS} symbols", ""),
    rulescan.NO_SUCH_GAP: ("a gap of the source side", ""),
    rulescan.GAP_TWICE: ("each gap of the source side once", ""),
    rulescan.LABEL_DIFFERS: ("the label that this gap has on the source side", ""),
    rulescan.GAP_MISSING: ("each gap of the source side on the target side, as [LABEL,n] or [n]", ""),
    rulescan.BAD_VALUE: ("a number", "features are NAME=NUMBER or NUMBER"),
    rulescan.NOT_FINITE: ("a number of at most 3.4e38", ""),
    rulescan.NO_NAME: ("a name before '='", ""),
    rulescan.TOO_MANY_FEATURES: (f"at most {rulescan.MAX_FEATURES} features", ""),
    rulescan.BAD_LINK: ("an alignment link i-j", ""),
    rulescan.LINK_RANGE: ("a link between positions of the rule, counted from 0", "gaps count as positions"),
    rulescan.LINK_TO_GAP: ("a link between two words or between two gaps", ""),
}


class _Ids:
    """Strings of one kind that a file brings, and their ids in a shared vocabulary."""

    def __init__(self, path: str | Path, shared: Vocabulary) -> None:
        self.path, self.shared = path, shared
        self.local = local_vocabulary()
        self.known = np.zeros(0, np.int32)

    def __call__(
        self, chunk: Chunk, data: npt.NDArray[np.uint8], token: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Shared ids of tokens. Broken UTF-8 is an error at the line that has it first."""
        self.local, ids = intern_tokens(self.local, data, token)
        new = local_entries(self.local, len(self.known))
        try:
            # One decoder call for all: no entry holds a newline, so none can complete its neighbour's bytes.
            b"\n".join(new).decode("utf-8")
        except UnicodeDecodeError:
            bad = next(entry for entry in new if not _is_utf8(entry))
            line = chunk.first_line + chunk.data[: chunk.data.index(bad)].count(b"\n")
            raise FormatError(self.path, line, found=str(bad)[1:], expected="UTF-8") from None
        self.known = np.concatenate([self.known, self.shared.intern_all(new)])
        return self.known[ids]


def _is_utf8(entry: bytes) -> bool:
    try:
        entry.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class Part(NamedTuple):
    """The rules of one chunk with shared ids: ``Rules`` before their features are split.

    name and value are those of features first_feature[r] ... first_feature[r + 1] - 1 of rule r; a name is
    an id in Symbols.names, or -1 - k for an unlabelled value, the k-th feature of its rule.
    """

    lhs: npt.NDArray[np.int32]
    first_src: npt.NDArray[np.int64]
    src: npt.NDArray[np.int32]
    first_tgt: npt.NDArray[np.int64]
    tgt: npt.NDArray[np.int32]
    first_feature: npt.NDArray[np.int64]
    name: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]
    first_link: npt.NDArray[np.int64]
    link: npt.NDArray[np.int16]


class RuleReader:
    """Reads a file of rules in cdec's or Joshua's syntax."""

    def __init__(self, path: str | Path, symbols: Symbols) -> None:
        self.path, self.symbols = path, symbols
        self.words = _Ids(path, symbols.words)
        self.labels = _Ids(path, symbols.labels)
        self.names = _Ids(path, symbols.names)
        self.powers = powers_of_ten()

    def read(self, progress: Callable[[int], None] | None = None) -> list[Part]:
        parts, num_rules = [], 0
        for chunk in read_chunks(self.path, what="a grammar"):
            part = self.read_chunk(chunk)
            parts.append(part)
            num_rules += len(part.lhs)
            if progress is not None:
                progress(num_rules)
        return parts or [self.read_chunk(Chunk(b"", 1, 0))]

    def read_chunk(self, chunk: Chunk) -> Part:
        data = np.frombuffer(chunk.data, np.uint8)
        line_end = np.flatnonzero(data == ord("\n"))
        b = rule_batch(len(line_end), len(data))
        fault, num_rules = None, 0
        status, *place, num_rules = rulescan.scan_lhs_kernel(data, line_end, b)
        fault = (status, place) if status else fault
        status, *place, num_words = rulescan.scan_source_kernel(
            data, num_rules, b.end, b.at, b.first_src, b.src, b.word_token, b.label_token
        )
        fault, num_rules = ((status, place), place[0]) if status else (fault, num_rules)
        status, *place, num_words = rulescan.scan_target_kernel(
            data,
            num_rules,
            b.end,
            b.at,
            b.first_src,
            b.src,
            b.label_token,
            num_words,
            b.first_tgt,
            b.tgt,
            b.word_token,
        )
        fault, num_rules = ((status, place), place[0]) if status else (fault, num_rules)
        status, *place, num_names, num_unsure = rulescan.scan_features_kernel(
            data,
            num_rules,
            b.end,
            b.at,
            self.powers,
            b.first_feature,
            b.name,
            b.value,
            b.name_token,
            b.unsure,
        )
        fault, num_rules = ((status, place), place[0]) if status else (fault, num_rules)
        status, *place = rulescan.scan_links_kernel(
            data, num_rules, b.end, b.at, b.first_src, b.src, b.first_tgt, b.tgt, b.first_link, b.link
        )
        fault = (status, place) if status else fault
        if fault is not None:
            raise self._error(chunk, b, *fault)
        for at, first, last in b.unsure[:num_unsure].tolist():
            b.value[at] = float(chunk.data[first:last])
        return self._part(chunk, data, b, num_rules, num_words, num_names)

    def _part(
        self,
        chunk: Chunk,
        data: npt.NDArray[np.uint8],
        b: RuleBatch,
        num_rules: int,
        num_words: int,
        num_names: int,
    ) -> Part:
        src, tgt = b.src[: b.first_src[num_rules]].copy(), b.tgt[: b.first_tgt[num_rules]].copy()
        num_labels = num_rules + np.count_nonzero(src < 0)
        words = self.words(chunk, data, b.word_token[:num_words])
        labels = self.labels(chunk, data, b.label_token[:num_labels])
        for side in (src, tgt):
            rulescan.share_ids_kernel(side, words, labels)
        name = b.name[: b.first_feature[num_rules]].copy()
        name[name >= 0] = self.names(chunk, data, b.name_token[:num_names])
        return Part(
            labels[:num_rules],
            b.first_src[: num_rules + 1].copy(),
            src,
            b.first_tgt[: num_rules + 1].copy(),
            tgt,
            b.first_feature[: num_rules + 1].copy(),
            name,
            b.value[: len(name)].copy(),
            b.first_link[: num_rules + 1].copy(),
            b.link[: b.first_link[num_rules]].copy(),
        )

    def _error(self, chunk: Chunk, b: RuleBatch, status: int, place: list[int]) -> FormatError:
        rule, first, last = place
        expected, hint = MESSAGES[status]
        found = chunk.data[first:last].strip(b" \t\r\n")
        line = chunk.first_line + int(b.line[rule])
        return FormatError(
            self.path, line, found=show(found) if found else "nothing", expected=expected, hint=hint
        )


def rule_table(
    parts: Sequence[Part],
    symbols: Symbols,
    unlabelled: Callable[[int], bytes],
    convert: Callable[[Part], npt.NDArray[np.float64]] | None = None,
) -> RuleTable:
    """One table of what was read. ``unlabelled`` names the k-th feature; ``convert`` gives new values."""
    part = _joined(parts)
    value = part.value if convert is None else convert(part)
    name = part.name
    num_unlabelled = max(0, -int(name.min(initial=0)))
    if num_unlabelled:
        ids = symbols.names.intern_all(unlabelled(k) for k in range(num_unlabelled))
        name = np.where(name < 0, ids[np.minimum(-1 - name, num_unlabelled - 1)], name)
    columns, *features = split_features(part.first_feature, name, value.astype(np.float32), None)
    rules = Rules(
        *(read_only(array) for array in part[:5]), *features, *(read_only(array) for array in part[-2:])
    )
    return RuleTable(rules, columns)


def joined_offsets(parts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """CSR offsets of tables put end to end."""
    if len(parts) == 1:
        return parts[0]
    pieces, base = [np.zeros(1, np.int64)], 0
    for part in parts:
        pieces.append(part[1:] + base)
        base += int(part[-1])
    return np.concatenate(pieces)


def _joined(parts: Sequence[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return Part(
        *(
            (joined_offsets if field.startswith("first_") else np.concatenate)(
                [getattr(p, field) for p in parts]
            )
            for field in Part._fields
        )
    )


def choose_columns(
    num_rules: int, name: npt.NDArray[np.int32], limit: int = MAX_COLUMNS
) -> npt.NDArray[np.int32]:
    """The names that more than half of the rules carry, the most frequent ``limit`` of them, as met first."""
    if not len(name):
        return np.zeros(0, np.int32)
    names, first, count = np.unique(name, return_index=True, return_counts=True)
    frequent = np.flatnonzero(count * 2 > num_rules)
    frequent = frequent[np.argsort(-count[frequent], kind="stable")[:limit]]
    return names[frequent[np.argsort(first[frequent])]].astype(np.int32)


def split_features(
    first_feature: npt.NDArray[np.int64],
    name: npt.NDArray[np.int32],
    value: npt.NDArray[np.float32],
    columns: npt.NDArray[np.int32] | None,
) -> tuple[
    tuple[int, ...],
    npt.NDArray[np.float32],
    npt.NDArray[np.int64],
    npt.NDArray[np.int32],
    npt.NDArray[np.float32],
]:
    """Features of rules as (columns, dense, first_sparse, sparse_name, sparse_value), as in ``Rules``.

    Feature k of rule r is at first_feature[r] + k; if a rule has a name twice, the last value counts.
    """
    num_rules = len(first_feature) - 1
    if columns is None:
        columns = choose_columns(num_rules, name)
    num_names = int(max(name.max(initial=-1), columns.max(initial=-1))) + 1
    column_of = np.full(num_names, -1, np.int64)
    column_of[columns] = np.arange(len(columns))
    num_sparse = int(np.count_nonzero(column_of[name] < 0)) if len(name) else 0
    dense = np.zeros((num_rules, len(columns)), np.float32)
    first_sparse = np.zeros(num_rules + 1, np.int64)
    sparse_name, sparse_value = np.empty(num_sparse, np.int32), np.empty(num_sparse, np.float32)
    place_of = np.full(num_names, -1, np.int64)
    split_features_kernel(
        read_only(first_feature),
        read_only(name),
        read_only(value),
        column_of,
        place_of,
        dense,
        first_sparse,
        sparse_name,
        sparse_value,
    )
    used = first_sparse[-1]
    return (
        tuple(columns.tolist()),
        read_only(dense),
        read_only(first_sparse),
        read_only(sparse_name[:used]),
        read_only(sparse_value[:used]),
    )


@kernel
def split_features_kernel(
    first_feature,
    name,
    value,
    column_of,
    place_of,
    out_dense,
    out_first_sparse,
    out_sparse_name,
    out_sparse_value,
):
    """Lay features out as dense rows and sparse rows.

    first_feature     int64 [R + 1]  features of rule r: name[first_feature[r]:first_feature[r + 1]]
    name              int32 [F]
    value             float32 [F]
    column_of         int64 [N]      dense column of a name, or -1
    place_of          int64 [N]      scratch, all -1: where a name of the current rule was written
    out_dense         float32 [R, D] all 0; written
    out_first_sparse  int64 [R + 1]  written
    out_sparse_name   int32 [S]      written
    out_sparse_value  float32 [S]    written

    O(F).  Twin: tests/naive/grammar.py::split_features.
    """
    used = 0
    for r in range(first_feature.shape[0] - 1):
        out_first_sparse[r] = used
        for k in range(first_feature[r], first_feature[r + 1]):
            column = column_of[name[k]]
            if column >= 0:
                out_dense[r, column] = value[k]
            elif place_of[name[k]] >= out_first_sparse[r]:
                out_sparse_value[place_of[name[k]]] = value[k]
            else:
                place_of[name[k]] = used
                out_sparse_name[used] = name[k]
                out_sparse_value[used] = value[k]
                used += 1
    out_first_sparse[first_feature.shape[0] - 1] = used
