"""Files of orientation examples and orientation models: directories of memory-mapped arrays.

::

    EXAMPLES/meta.json      settings, classes, digest of the features, frequent words
    EXAMPLES/first.npy      int64 [N + 1]  features of example n: feature[first[n]:first[n + 1]]
    EXAMPLES/feature.npy    int32          0 is the most frequent
    EXAMPLES/label.npy      int8 [N]       0 monotone, 1 swap, 2 other
    EXAMPLES/pair.npy       uint64 [N]     hash of the phrase pair, and of its source side in source.npy
    EXAMPLES/key.npy        int64 [F]      the features, see table_kernels.py; times.npy: their counts
    EXAMPLES/src_pool.npy   and so on: two WordTable; word w of a feature is entry w - 1

A classifier has ``key``, a hash table ``slot`` of the keys, float32 ``weight`` [F, 3], and the words. A
lexicalised model has two ``table_kernels.OrientationCounts``, of phrase pairs and of source phrases.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiero.core.arrays import Hashes, Ids, Ints
from hiero.core.directories import META, GrowingArray, Kind
from hiero.core.errors import show
from hiero.core.symbol_kernels import WordTable
from hiero.core.symbols import word_table_arrays, word_table_files, word_table_from

NUM_CLASSES = 3
Shape = tuple[type[np.generic], int]
_WORDS = word_table_files("src", "tgt")
_ROWS: dict[str, Shape] = {
    "first": (np.int64, 1),
    "feature": (np.int32, 1),
    "label": (np.int8, 1),
    "pair": (np.uint64, 1),
    "source": (np.uint64, 1),
}
_KEYS: dict[str, Shape] = {"key": (np.int64, 1), "times": (np.int64, 1)}
_WEIGHTS: dict[str, Shape] = {"key": (np.int64, 1), "slot": (np.int32, 1), "weight": (np.float32, 2)}
_OF_COUNTS: dict[str, Shape] = {"key": (np.uint64, 1), "first": (np.int64, 1), "count": (np.int32, 2)}
_COUNTS: dict[str, Shape] = {
    f"{what}_{name}": kind for what in ("pair", "source") for name, kind in _OF_COUNTS.items()
}
EXAMPLES = Kind(
    "hiero orientation examples",
    1,
    "make them again with hiero reorder extract",
    _ROWS | _KEYS | _WORDS,
)
CLASSIFIER = Kind(
    "hiero orientation classifier",
    1,
    "train it again with hiero reorder train",
    _WEIGHTS | _WORDS,
)
LEXICALISED = Kind(
    "hiero lexicalised orientation model", 1, "train it again with hiero reorder train", _COUNTS
)

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


def words_of(arrays: Arrays) -> tuple[WordTable, WordTable]:
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
        pair: Hashes,
        source: Hashes,
    ) -> None:
        """Append examples: the number of features of each, and the rest as in the files."""
        first = np.cumsum(length) + self._num_features
        self._num_features += len(feature)
        values: tuple[npt.NDArray[Any], ...] = (first, feature, label, pair, source)
        for name, each in zip(_ROWS, values, strict=True):
            self._files[name].append(each)
        self.classes += np.bincount(label, minlength=NUM_CLASSES)


@contextlib.contextmanager
def writing_examples(path: Path, features: FeatureKeys, meta: Mapping[str, Any]) -> Iterator[ExampleWriter]:
    """Write a directory of examples, which appears when the block ends without an exception."""
    with EXAMPLES.create(path) as (folder, head):
        table: Arrays = {"key": features.key, "times": features.times}
        for name, array in (table | word_table_arrays({"src": features.src, "tgt": features.tgt})).items():
            np.save(folder / f"{name}.npy", array)
        with contextlib.ExitStack() as stack:
            files = {
                name: stack.enter_context(GrowingArray(folder / f"{name}.npy", kind[0]))
                for name, kind in _ROWS.items()
            }
            writer = ExampleWriter(files)
            yield writer
        head.update(meta, classes=writer.classes.tolist())


def read_examples(path: Path) -> tuple[dict[str, Any], Arrays]:
    """The content of ``meta.json`` and the mapped arrays, whose lengths are checked."""
    meta, arrays = EXAMPLES.read(path)
    num_examples, num_features = len(arrays["label"]), len(arrays["key"])
    fits = (
        len(arrays["first"]) == num_examples + 1
        and len(arrays["pair"]) == len(arrays["source"]) == num_examples
        and arrays["first"][-1] == len(arrays["feature"])
        and len(arrays["times"]) == num_features
    )
    if not fits:
        raise EXAMPLES.broken(path, "arrays that do not fit together", f"{EXAMPLES.name}")
    check_meta(EXAMPLES, path, meta)
    return meta, arrays


def check_meta(kind: Kind, path: Path, meta: Mapping[str, Any]) -> None:
    """Check the entries of ``meta.json`` that examples and models have in common."""
    types = {"settings": dict, "features": str, "classes": list, "frequent": dict}
    for name, type_ in types.items():
        if not isinstance(meta.get(name), type_):
            raise kind.broken(path / META, f"no {name}", f"a {kind.name}")
    counts = meta["classes"]
    if len(counts) != NUM_CLASSES or any(type(count) is not int or count < 0 for count in counts):
        raise kind.broken(path / META, f"classes {show(str(counts))}", "the number of examples of each of 3")
    for side in ("source", "target"):
        words = meta["frequent"].get(side)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise kind.broken(path / META, f"no frequent words of the {side} side", f"a {kind.name}")
