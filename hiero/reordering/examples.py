"""Examples of orientations: made from a word-aligned bitext, stored as memory-mapped arrays.

There are two passes over the bitext, by blocks of sentence pairs: one to count features, one to write
examples with the features that are frequent enough. In memory are the bitext, a table of all features, and
one block. A directory of examples holds::

    EXAMPLES/meta.json      settings, classes, digest of the features, frequent words
    EXAMPLES/first.npy      int64 [N + 1]  features of example n: feature[first[n]:first[n + 1]]
    EXAMPLES/feature.npy    int32          0 is the most frequent
    EXAMPLES/label.npy      int8 [N]       0 monotone, 1 swap, 2 other; of the next phrase in next_label.npy
    EXAMPLES/pair.npy       uint64 [N]     hash of the phrase pair, and of its source side in source.npy
    EXAMPLES/key.npy        int64 [F]      the features, see table_kernels.py; times.npy: their counts
    EXAMPLES/src_pool.npy   and so on: two WordTable; word w of a feature is entry w - 1
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.bitext.alignments import Alignment, check_alignment, read_alignment
from hiero.bitext.alignments_kernels import phrases_kernel
from hiero.bitext.corpus import Bitext, Text, read_bitext
from hiero.core.arrays import Hashes, Ids, Ints, are_offsets, is_within, read_only
from hiero.core.directories import META, GrowingArray, Kind, save_array
from hiero.core.errors import ConfigError, FormatError, HieroError, show
from hiero.core.hash_kernels import table_size
from hiero.core.progress import Progress, SilentProgress
from hiero.core.records import record
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import is_sound, table_entry, word_table_arrays, word_table_files, word_table_from
from hiero.reordering.config import MAX_WINDOW, ExampleConfig
from hiero.reordering.phrase_kernels import (
    orientations_kernel,
    phrase_codes_kernel,
    phrase_features_kernel,
    phrase_word_codes_kernel,
)
from hiero.reordering.table_kernels import (
    AROUND,
    KIND_SHIFT,
    WORD_BITS,
    WORD_MASK,
    count_orientation_keys_kernel,
    number_orientation_keys_kernel,
    orientation_key_slots_kernel,
)

NUM_CLASSES = 3
Shape = tuple[type[np.generic], int]
WORD_FILES = word_table_files("src", "tgt")
_ROWS: dict[str, Shape] = {
    "first": (np.int64, 1),
    "feature": (np.int32, 1),
    "label": (np.int8, 1),
    "next_label": (np.int8, 1),
    "pair": (np.uint64, 1),
    "source": (np.uint64, 1),
}
_KEYS: dict[str, Shape] = {"key": (np.int64, 1), "times": (np.int64, 1)}


Arrays = dict[str, npt.NDArray[Any]]


class FeatureKeys(NamedTuple):
    """The features of examples: F of them, the most frequent first.

    key    int64 [F]
    times  int64 [F]  training examples that have it
    src    WordTable
    tgt    WordTable
    """

    key: Ints
    times: Ints
    src: WordTable
    tgt: WordTable

    def digest(self, settings: Mapping[str, Any]) -> str:
        """A digest of the features in their order, on which feature ids depend."""
        digest = hashlib.sha256(repr(sorted(settings.items())).encode())
        for array in (self.key, self.src.pool, self.src.first, self.tgt.pool, self.tgt.first):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def example_words(arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[WordTable, WordTable]:
    """The source and the target words that features of examples refer to."""
    return word_table_from(arrays, "src"), word_table_from(arrays, "tgt")


class ExampleWriter:
    """Writes the arrays of examples; see ``writing_examples``."""

    def __init__(self, files: Mapping[str, GrowingArray]) -> None:
        self._files = files
        self.classes = np.zeros(NUM_CLASSES, np.int64)
        self._num_features = 0
        files["first"].append(np.zeros(1, np.int64))

    def append(
        self,
        length: Ints,
        feature: Ids,
        label: npt.NDArray[np.int8],
        next_label: npt.NDArray[np.int8],
        pair: Hashes,
        source: Hashes,
    ) -> None:
        """Append examples: the number of features of each, and the rest as in the files."""
        first = np.cumsum(length) + self._num_features
        self._num_features += len(feature)
        values: tuple[npt.NDArray[Any], ...] = (first, feature, label, next_label, pair, source)
        for name, each in zip(_ROWS, values, strict=True):
            self._files[name].append(each)
        self.classes += np.bincount(label, minlength=NUM_CLASSES)


def _is_sound(_meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    num_examples, num_features = len(arrays["label"]), len(arrays["key"])
    words = example_words(arrays)
    return (
        len(arrays["first"]) == num_examples + 1
        and len(arrays["pair"]) == len(arrays["source"]) == len(arrays["next_label"]) == num_examples
        and len(arrays["times"]) == num_features
        and are_offsets(arrays["first"], len(arrays["feature"]))
        and is_within(arrays["feature"], 0, num_features)
        and is_within(arrays["label"], 0, NUM_CLASSES)
        and is_within(arrays["next_label"], 0, NUM_CLASSES)
        and all(map(is_sound, words))
        and are_keys(arrays["key"], *words)
    )


def are_keys(key: Ints, src: WordTable, tgt: WordTable) -> bool:
    """Whether features have words of these tables, which count from 1."""
    kind, one, other = key >> KIND_SHIFT, key >> WORD_BITS & WORD_MASK, key & WORD_MASK
    return (
        is_within(kind, 0, AROUND + 2 * MAX_WINDOW)
        and is_within(one, 0, len(src.first))
        and is_within(other, 0, len(tgt.first))
    )


EXAMPLES = Kind(
    "hiero orientation examples",
    3,
    "make them again with hiero reorder extract",
    _ROWS | _KEYS | WORD_FILES,
    _is_sound,
)


@contextlib.contextmanager
def writing_examples(path: Path, features: FeatureKeys, meta: Mapping[str, Any]) -> Iterator[ExampleWriter]:
    """Write a directory of examples, which appears when the block ends without an exception."""
    with EXAMPLES.create(path) as (folder, head):
        table: Arrays = {"key": features.key, "times": features.times}
        for name, array in (table | word_table_arrays({"src": features.src, "tgt": features.tgt})).items():
            save_array(folder / f"{name}.npy", array)
        with contextlib.ExitStack() as stack:
            files = {
                name: stack.enter_context(GrowingArray(folder / f"{name}.npy", kind[0]))
                for name, kind in _ROWS.items()
            }
            writer = ExampleWriter(files)
            yield writer
        head.update(meta, classes=writer.classes.tolist())


def read_examples(path: Path) -> tuple[dict[str, Any], Arrays]:
    """The content of ``meta.json`` and the mapped arrays, checked."""
    meta, arrays = EXAMPLES.read(path)
    check_examples_meta(EXAMPLES, path, meta)
    return meta, arrays


def check_examples_meta(kind: Kind, path: Path, meta: Mapping[str, Any]) -> None:
    """Check what ``meta.json`` says about examples, in their directory or in that of a model."""
    types = {"settings": dict, "features": str, "classes": list, "frequent": dict}
    for name, type_ in types.items():
        if not isinstance(meta.get(name), type_):
            raise kind.broken(path / META, f"no {name}", f"a {kind.name}")
    counts = meta["classes"]
    if len(counts) != NUM_CLASSES or any(type(n) is not int or not 0 <= n < 1 << 62 for n in counts):
        raise kind.broken(path / META, f"classes {show(str(counts))}", "the number of examples of each of 3")
    for side in ("source", "target"):
        words = meta["frequent"].get(side)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise kind.broken(path / META, f"no frequent words of the {side} side", f"a {kind.name}")


PAIRS_AT_ONCE = 1000
NUM_FREQUENT = 40  # words stored in a model to recognise its language


# ---- examples


class Rows(NamedTuple):
    """N examples for learners; read-only.

    first    int64 [N + 1]
    feature  int32
    label    int8 [N]
    """

    first: Ints
    feature: Ids
    label: npt.NDArray[np.int8]

    @property
    def size(self) -> int:
        """The number of examples (``len`` of a named tuple is that of its fields)."""
        return len(self.label)


@dataclass(frozen=True, slots=True)
class Examples:
    """A directory of examples."""

    path: Path
    rows: Rows
    next_label: npt.NDArray[np.int8]  # of the phrase after each
    pair: Hashes
    source: Hashes
    features: FeatureKeys
    settings: ExampleConfig
    classes: Ints  # examples of each class
    digest: str  # of the features, see ``FeatureKeys.digest``
    frequent: dict[str, list[str]]  # words of either side to recognise its language

    @property
    def num_features(self) -> int:
        return len(self.features.key)

    def of_next(self) -> Examples:
        """The same examples, to learn the class of the next phrase."""
        classes = np.bincount(self.next_label, minlength=NUM_CLASSES)
        return replace(self, rows=self.rows._replace(label=self.next_label), classes=classes)


def open_examples(path: str | Path) -> Examples:
    """Map a directory that ``hiero reorder extract`` has made."""
    path = Path(path)
    meta, arrays = read_examples(path)
    try:
        settings = record(ExampleConfig, meta["settings"], "settings")
    except ConfigError:
        raise EXAMPLES.broken(path, "invalid settings", EXAMPLES.name) from None
    return Examples(
        path,
        Rows(arrays["first"], arrays["feature"], arrays["label"]),
        arrays["next_label"],
        arrays["pair"],
        arrays["source"],
        FeatureKeys(arrays["key"], arrays["times"], *example_words(arrays)),
        settings,
        np.array(meta["classes"], np.int64),
        meta["features"],
        meta["frequent"],
    )


@dataclass(frozen=True)
class Summary:
    """Statistics of the examples made from a bitext."""

    num_pairs: int
    num_examples: int
    num_held_out: int
    num_features: int
    num_rare: int  # features left out
    classes: tuple[int, int, int]
    num_active: int  # summed over training examples

    def __str__(self) -> str:
        share = [f"{100 * count / max(self.num_examples, 1):.1f} %" for count in self.classes]
        held = f" and {self.num_held_out:,} held out" if self.num_held_out else ""
        active = self.num_active / max(self.num_examples, 1)
        return (
            f"{self.num_pairs:,} sentence pairs; {self.num_examples:,} examples{held}: monotone {share[0]}, "
            f"swap {share[1]}, other {share[2]}; {self.num_features:,} features "
            f"({self.num_rare:,} rarer ones left out), {active:.1f} of them per example"
        )


def extract_examples(
    source: str | Path,
    target: str | Path,
    alignment: str | Path,
    output: str | Path,
    config: ExampleConfig | None = None,
    *,
    held_out: str | Path | None = None,
    every: int = 20,
    progress: Progress | None = None,
) -> Summary:
    """Make examples from a bitext; with ``held_out``, one sentence pair in ``every`` is held out."""
    config, progress = config or ExampleConfig(), progress or SilentProgress()
    if held_out is not None and every < 2:
        raise ConfigError(f"held_out_every: found {every}, expected 2 or more")
    if held_out is not None:
        there, here = Path(held_out).resolve(), Path(output).resolve()
        if there == here or there in here.parents or here in there.parents:
            raise ConfigError(f"held_out: found {held_out}, expected a path outside {output}")
    for path in (output, held_out):
        if path is not None:
            EXAMPLES.check_place(Path(path))
    bitext = read_bitext(source, target)
    if held_out is not None and bitext.num_pairs < every:
        hint = f"one in {every} is to be held out: hold out more, or none"
        raise FormatError(
            source, 0, found=f"{bitext.num_pairs} lines", expected=f"{every} or more", hint=hint
        )
    links = read_alignment(alignment)
    check_alignment(links, bitext.src.length, bitext.tgt.length, alignment)
    most = max(bitext.src.num_words, bitext.tgt.num_words)
    if most >= WORD_MASK:
        raise HieroError(f"found {most:,} different words, expected fewer than {WORD_MASK:,}")
    maker = _ExampleMaker(bitext, links, config, every if held_out is not None else 0)
    progress.begin(2 * bitext.num_pairs, "reorder extract")
    counted = maker.count(progress)
    features, num_rare = _chosen(counted, config.min_count, bitext)
    if num_rare and not len(features.key):
        most = int(counted.times.max())
        hint = f"the most frequent one has {most}: lower min_count"
        raise HieroError(f"{source}: no feature has {config.min_count} examples ({hint})")
    settings = asdict(config)
    meta = {
        "settings": settings,
        "features": features.digest(settings),
        "frequent": {"source": frequent_words(bitext.src), "target": frequent_words(bitext.tgt)},
        "pairs": bitext.num_pairs,
    }
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(writing_examples(Path(path), features, meta))
            for path in (output, held_out)
            if path is not None
        ]
        maker.write(features, writers, progress)
        num_train = int(writers[0].classes.sum())
        if not num_train:
            raise HieroError(f"{alignment}: the links give no phrase pair")
        if held_out is not None and not writers[1].classes.any():
            raise HieroError(f"{alignment}: the links give no phrase pair to hold out")
    num_held_out = int(writers[1].classes.sum()) if held_out is not None else 0
    mono, swap, other = writers[0].classes.tolist()
    return Summary(
        bitext.num_pairs,
        num_train,
        num_held_out,
        len(features.key),
        num_rare,
        (mono, swap, other),
        int(features.times.sum()),
    )


class _FeatureCounts(NamedTuple):
    """A hash table of features: key int64 [2 ** k], -1 for empty; times int64 [2 ** k]; used int64 [1]."""

    key: Ints
    times: Ints
    used: Ints


def _table(size: int) -> _FeatureCounts:
    return _FeatureCounts(np.full(size, -1, np.int64), np.zeros(size, np.int64), np.zeros(1, np.int64))


class _Block(NamedTuple):
    """The phrase pairs of some sentence pairs, see ``phrases_kernel``."""

    begin: int
    first: Ints
    phrase: Ids


class _ExampleMaker:
    """Makes examples from a bitext. Every ``every``-th sentence pair is held out; 0: none."""

    def __init__(self, bitext: Bitext, links: Alignment, config: ExampleConfig, every: int) -> None:
        self.bitext, self.config, self.every = bitext, config, every
        self.link_first, self.link = links.first, links.link
        self.sides = bitext.src.first, bitext.src.word, bitext.tgt.first, bitext.tgt.word

    def _ranges(self) -> Iterator[tuple[int, int, bool]]:
        """Runs of sentence pairs: the first, the one after the last, whether they are held out."""
        size = self.bitext.num_pairs
        if not self.every:
            cuts = [*range(0, size, PAIRS_AT_ONCE), size]
            yield from ((begin, end, False) for begin, end in itertools.pairwise(cuts))
            return
        for begin in range(0, size, self.every):
            last = begin + self.every - 1
            yield begin, min(last, size), False
            if last < size:
                yield last, last + 1, True

    def _block(self, begin: int, end: int) -> _Block:
        first, phrase = phrases_kernel(
            self.sides[0], self.sides[2], self.link_first, self.link, begin, end, self.config.max_length
        )
        return _Block(begin, read_only(first), read_only(phrase))

    def _keys(self, block: _Block) -> tuple[Ints, Ints]:
        first, key = phrase_features_kernel(
            *self.sides,
            self.link_first,
            self.link,
            *block,
            self.config.window,
            self.config.edges,
            self.config.context == "bag",
        )
        return read_only(first), read_only(key)

    def _mirrored(self, block: _Block) -> tuple[Ids, Ints, Ids]:
        """The phrases and the links of a block with both sides of its sentence pairs read from the end."""
        pairs = slice(block.begin, block.begin + len(block.first))
        first, links = (
            self.link_first[pairs],
            self.link[self.link_first[pairs][0] : self.link_first[pairs][-1]],
        )
        last_link, last_phrase = np.empty_like(links), np.empty_like(block.phrase)
        for side in range(2):
            length = np.diff(self.sides[2 * side][pairs])
            last_link[:, side] = np.repeat(length, np.diff(first)) - 1 - links[:, side]
            of_phrase = np.repeat(length, np.diff(block.first))
            last_phrase[:, 2 * side] = of_phrase - block.phrase[:, 2 * side + 1]
            last_phrase[:, 2 * side + 1] = of_phrase - block.phrase[:, 2 * side]
        return read_only(last_phrase), read_only(first - first[0]), read_only(last_link)

    def count(self, progress: Progress) -> _FeatureCounts:
        """Count the training examples that have each feature."""
        table = _table(1 << 16)
        for begin, end, is_held_out in self._ranges():
            if not is_held_out:
                _, key = self._keys(self._block(begin, end))
                done = 0
                while (done := count_orientation_keys_kernel(key, done, *table)) < len(key):
                    table = _larger(table)
            progress.advance(end - begin)
        return table

    def write(self, features: FeatureKeys, writers: list[ExampleWriter], progress: Progress) -> None:
        slot = example_feature_slots(features.key)
        src_code, tgt_code = _codes(self.bitext.src.words), _codes(self.bitext.tgt.words)
        for begin, end, is_held_out in self._ranges():
            block = self._block(begin, end)
            first, key = self._keys(block)
            num_phrases = len(block.phrase)
            length, feature = np.empty(num_phrases, np.int64), np.empty(len(key), np.int32)
            used = number_orientation_keys_kernel(first, key, features.key, slot, length, feature)
            label, next_label = np.empty(num_phrases, np.int8), np.empty(num_phrases, np.int8)
            by_word = self.config.orientation == "word"
            orientations_kernel(block.first, block.phrase, self.link_first, self.link, begin, by_word, label)
            # Seen from the end, the next phrase is the previous one.
            orientations_kernel(block.first, *self._mirrored(block), 0, by_word, next_label)
            pair, source = np.empty(num_phrases, np.uint64), np.empty(num_phrases, np.uint64)
            phrase_codes_kernel(*self.sides, src_code, tgt_code, *block, pair, source)
            writers[1 if is_held_out else 0].append(length, feature[:used], label, next_label, pair, source)
            progress.advance(end - begin)


def _larger(old: _FeatureCounts) -> _FeatureCounts:
    """The same counts in a table twice as large."""
    new = _table(2 * len(old.key))
    full = np.flatnonzero(old.key >= 0)
    key = read_only(old.key[full])
    count_orientation_keys_kernel(key, 0, *new)
    # Copy the counts, which are all 1 in the new table, in its order.
    place = np.argsort(key)
    fresh = np.flatnonzero(new.key >= 0)
    new.times[fresh] = old.times[full[place]][np.searchsorted(key[place], new.key[fresh])]
    return new


def _chosen(counted: _FeatureCounts, min_count: int, bitext: Bitext) -> tuple[FeatureKeys, int]:
    """The features that are frequent enough, and the number of others."""
    chosen = np.flatnonzero(counted.times >= min_count)
    # By descending count, so that the weights used most often are next to each other.
    order = chosen[np.lexsort((counted.key[chosen], -counted.times[chosen]))]
    keys = FeatureKeys(
        read_only(counted.key[order]), read_only(counted.times[order]), bitext.src.words, bitext.tgt.words
    )
    return keys, int(counted.used[0]) - len(order)


def example_feature_slots(key: Ints) -> Ids:
    """A hash table of the features of examples, see ``find_key``."""
    slot = np.full(table_size(len(key)), -1, np.int32)
    orientation_key_slots_kernel(read_only(key), slot)
    return read_only(slot)


def _codes(words: WordTable) -> Hashes:
    code = np.empty(len(words.first) - 1, np.uint64)
    phrase_word_codes_kernel(words.pool, words.first, code)
    return read_only(code)


def frequent_words(text: Text) -> list[str]:
    """The most frequent words of one side of examples that consist of letters, unlike punctuation."""
    count = np.bincount(text.word, minlength=text.num_words)
    found: list[str] = []
    for word in np.argsort(-count, kind="stable").tolist():
        entry = table_entry(text.words, word).decode("utf-8", errors="replace")
        if entry.isalpha():
            found.append(entry)
            if len(found) == NUM_FREQUENT:
                break
    return found


def check_features(
    digest: str, expected_digest: str, path: Path, other: Path, settings: Any, expected_settings: Any
) -> None:
    """Refuse examples whose features are not numbered as in ``other``, a model or training examples."""
    if digest == expected_digest:
        return
    differing = [
        f"{name} {value}"
        for name, value in asdict(settings).items()
        if value != asdict(expected_settings)[name]
    ]
    found = f"examples with {', '.join(differing)}" if differing else "examples of another extraction"
    expected = f"the same as in {other}"
    hint = "make both at once: hiero reorder extract … --held-out"
    raise HieroError(f"{path}: found {found}, expected {expected} ({hint})")
