"""Counts of target sides in all rules of a bitext, for p(f | e) and singletons of e.

A source side has its occurrences in the index, and so p(e | f). A target side occurs with any source side:
its count is a sum over all rules of the bitext, which are found once. Rules of a source side with more
occurrences than are sampled count as often as the samples stand for.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hiero.core.arrays import Floats, Hashes, Ids, Ints, is_finite, read_only
from hiero.core.directories import META, Arrays, Kind
from hiero.core.progress import Progress, SilentProgress
from hiero.extraction.extractor import Extractor
from hiero.extraction.growth import BitextRules
from hiero.extraction.index import BitextIndex
from hiero.extraction.rule_kernels import target_keys_kernel
from hiero.extraction.table_kernels import Store
from hiero.grammar.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hiero.extraction.config import ExtractConfig
    from hiero.extraction.grown_kernels import Grown

SAMPLE_COUNT, COUNT = 1, 2  # columns of features: log10(1 + n), log10(1 + c)
ROUNDING = 1e-6


def _is_sound(_meta: Mapping[str, Any], arrays: Arrays) -> bool:
    key, count = arrays["key"], arrays["count"]
    return len(key) == len(count) and bool((key[:-1] < key[1:]).all()) and is_finite(count)


TARGET_COUNTS = Kind(
    "hiero target counts",
    1,
    "remove it, and it is made again",
    {"key": (np.uint64, 1), "count": (np.float64, 1)},
    _is_sound,
)


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """Counts by 64-bit hashes of target sides, which ascend."""

    key: Hashes
    count: Floats

    def of(self, key: Hashes) -> Floats:
        """The counts of some keys, 0 of others."""
        if not len(self.key):
            return np.zeros(len(key))
        place = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return np.where(self.key[place] == key, self.count[place], 0.0)

    @classmethod
    def sums(cls, key: Hashes, count: Floats) -> KeyCounts:
        """Add up the counts of equal keys."""
        order = np.argsort(key, kind="stable")
        key, count = key[order], count[order]
        first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
        return cls(key[first], np.add.reduceat(count, first) if len(key) else count)

    def joined(self, other: KeyCounts) -> KeyCounts:
        return KeyCounts.sums(
            np.concatenate([self.key, other.key]), np.concatenate([self.count, other.count])
        )


def target_keys(first_tgt: Ints, tgt: Ids) -> Hashes:
    """Hashes of target sides, in which all gaps are equal: their order is one of the source side."""
    out = np.empty(len(first_tgt) - 1, np.uint64)
    target_keys_kernel(read_only(first_tgt), read_only(tgt), out)
    return out


def rule_counts(feature: Any, stands_for: Ints, num_alignments: int) -> Floats:
    """How many occurrences of each rule its count stands for.

    stands_for  of each rule, the occurrences of its source side that the samples stand for
    """
    seen, count = (np.rint(10.0 ** feature[:, k].astype(np.float64)) - 1 for k in (SAMPLE_COUNT, COUNT))
    return np.asarray(count * (stands_for * num_alignments / seen))


class TargetCounts:
    """The counts of target sides in the rules of an index, and the features made of them."""

    def __init__(self, counts: KeyCounts, num_alignments: int) -> None:
        self._counts, self._num_alignments = counts, num_alignments

    def extended(
        self, rules: Rules, stands_for: Ints, left_out: tuple[tuple[Rules, Ints], tuple[Rules, Ints]] | None
    ) -> Rules:
        """The rules with two more features.

        left_out  with sentences left out, the rules of these, with them and without them: the counts are then
                  those of the other sentences
        """
        key, count = self._keyed(rules, stands_for)
        total = self._counts.of(key)
        if left_out is not None:
            with_them, without = (KeyCounts.sums(*self._keyed(*found)) for found in left_out)
            total += without.of(key) - with_them.of(key)
        # Sums of shares of samples are rounded.
        share = np.minimum(count / total, 1.0)
        single = np.abs(total - 1.0) < ROUNDING
        more = np.stack([np.abs(np.log10(share)), single], axis=1).astype(np.float32)
        return rules._replace(dense=np.concatenate([rules.dense, more], axis=1))

    def _keyed(self, rules: Rules, stands_for: Ints) -> tuple[Hashes, Floats]:
        count = rule_counts(rules.dense, stands_for, self._num_alignments)
        return target_keys(rules.first_tgt, rules.tgt), count


def open_extractor(
    index: BitextIndex, config: ExtractConfig | None = None, spare_store: str | Path | None = None
) -> Extractor:
    """An extractor, with the counts of target sides that its configuration names."""
    extractor = Extractor(index, config, spare_store)
    if extractor.config.target_counts is not None:
        extractor.targets = open_target_counts(extractor.config.target_counts, extractor)
    return extractor


def open_target_counts(
    path: str | Path, extractor: Extractor, threads: int = 1, progress: Progress | None = None
) -> TargetCounts:
    """The counts in a directory, which is made if it is not there."""
    path, index, config = Path(path), extractor.index, extractor.config
    num_alignments = len(index.links.first_link)
    limits = [*astuple(config.limits), config.samples]
    if not path.exists():
        counts = _count(extractor, path, threads, progress or SilentProgress())
        meta = {"index": index.digest, "limits": limits}
        TARGET_COUNTS.write(path, meta, {"key": counts.key, "count": counts.count})
    meta, arrays = TARGET_COUNTS.read(path)
    if meta.get("index") != index.digest or meta.get("limits") != limits:
        expected = f"those of {index.path} with the limits of extraction"
        raise TARGET_COUNTS.broken(path / META, "counts of another index or other limits", expected)
    return TargetCounts(KeyCounts(arrays["key"], arrays["count"]), num_alignments)


def _count(extractor: Extractor, path: Path, threads: int, progress: Progress) -> KeyCounts:
    """Counts of all target sides; parts are joined when they have grown to equal sizes."""
    TARGET_COUNTS.check_place(path)
    num_alignments = len(extractor.index.links.first_link)

    def sums(patterns: Grown, store: Store) -> KeyCounts:
        used = int(store.used[0])
        rule = patterns.rule[: patterns.used[0]]
        stands_for = np.repeat(rule[:, 2], rule[:, 1] - rule[:, 0])
        first, symbols = store.first_tgt[: used + 1], store.tgt[: store.first_tgt[used]]
        count = rule_counts(store.feature[:used], stands_for, num_alignments)
        return KeyCounts.sums(target_keys(first, symbols), count)

    parts: list[KeyCounts] = []
    for found in BitextRules(extractor, path.parent).each(sums, threads, progress):
        parts.append(found)
        while len(parts) > 1 and len(parts[-2].key) <= 2 * len(parts[-1].key):
            parts[-2:] = [parts[-2].joined(parts[-1])]
    total = KeyCounts(np.zeros(0, np.uint64), np.zeros(0))
    for part in reversed(parts):
        total = total.joined(part)
    return total
